/*
 * Power virtual PMU: what is told of a guest
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "guest.h"
#include "modes.h"
#include "monitor.h"

/* MSR[HV] and MSR[PR] */
static const char *const mode_names[PPC_VPMU_NR_MODES] = {
    "problem", "privileged", "hypervisor-problem", "hypervisor",
};

const PmuGuestOps ppc_pmu_guest_ops = {
    .nr_modes = PPC_VPMU_NR_MODES,
    .mode_names = mode_names,
    .user_modes = 1u << 0 | 1u << PPC_VPMU_MODE_HV,
    .counter_name = ppc_vpmu_counter_name,
    .describe = ppc_vpmu_describe,
};
