/*
 * Power virtual PMU: the description for the monitor
 *
 * The operations of PmuGuestOps of the same names.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef PPC_VPMU_MONITOR_H
#define PPC_VPMU_MONITOR_H

#include "hw/pmu/pmu-guest.h"

PmuEvent ppc_vpmu_raw_event(const CPUState *cs, uint64_t raw);
const char *ppc_vpmu_counter_name(const CPUState *cs, unsigned counter);
bool ppc_vpmu_describe(CPUState *cs, struct PmuCpuInfo *info, Error **errp);

#endif /* PPC_VPMU_MONITOR_H */
