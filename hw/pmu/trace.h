#include "trace/trace-hw_pmu.h"
