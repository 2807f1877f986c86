/*
 * x86 virtual PMU: Intel's events of requests that leave the first level
 *
 * For CPUs with a model of the core.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef I386_VPMU_OFFCORE_H
#define I386_VPMU_OFFCORE_H

#include "internal.h"

/**
 * Generations: Nehalem, Sandy Bridge and Ivy Bridge, Haswell and Broadwell,
 * Skylake, Ice Lake, Golden Cove.
 */
extern const X86VPmuOffcore offcore_of_nehalem, offcore_of_sandy_bridge,
                            offcore_of_haswell, offcore_of_skylake,
                            offcore_of_ice_lake, offcore_of_golden_cove;

/**
 * The feature of Intel's CPUs
 */
extern const X86VPmuFeature intel_offcore;

/**
 * vmstate_x86_vpmu_offcore - a subsection of the PMU's state
 */
extern const VMStateDescription vmstate_x86_vpmu_offcore;

#endif /* I386_VPMU_OFFCORE_H */
