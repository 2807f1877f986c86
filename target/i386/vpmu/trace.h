#include "trace/trace-target_i386_vpmu.h"
