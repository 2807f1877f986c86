/*
 * x86 virtual PMU: Intel's extended architectural performance monitoring
 *
 * CPUID leaf 0x23, which processors since Redwood Cove and Crestmont have.  The
 * registers of version 6, which comes with it, are in intel.c.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef I386_VPMU_PERFMON_EXT_H
#define I386_VPMU_PERFMON_EXT_H

#include "internal.h"

/**
 * The feature of Intel's CPUs
 */
extern const X86VPmuFeature intel_perfmon_ext;

#endif /* I386_VPMU_PERFMON_EXT_H */
