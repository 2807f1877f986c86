#include "trace/trace-target_ppc_vpmu.h"
