/*
 * x86 virtual PMU: the description for the monitor
 *
 * The operations of PmuGuestOps of the same names.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef I386_VPMU_MONITOR_H
#define I386_VPMU_MONITOR_H

#include "hw/pmu/pmu-guest.h"

PmuEvent x86_vpmu_raw_event(const CPUState *cs, uint64_t raw);
const char *x86_vpmu_counter_name(const CPUState *cs, unsigned counter);
bool x86_vpmu_host_first(const CPUState *cs);
bool x86_vpmu_describe(CPUState *cs, struct PmuCpuInfo *info, Error **errp);

#endif /* I386_VPMU_MONITOR_H */
