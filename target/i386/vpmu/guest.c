/*
 * x86 virtual PMU: what is told of a guest
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "guest.h"
#include "internal.h"
#include "monitor.h"

static const char *const mode_names[X86_VPMU_NR_MODES] = {
    "kernel", "user", "guest-kernel", "guest-user",
    "smm", "smm-user", "guest-smm", "guest-smm-user",
};

const PmuGuestOps x86_pmu_guest_ops = {
    .nr_modes = X86_VPMU_NR_MODES,
    .mode_names = mode_names,
    .user_modes = X86_VPMU_MODES_USER,
    .nested_modes = X86_VPMU_MODES_GUEST,
    .counter_name = x86_vpmu_counter_name,
    .describe = x86_vpmu_describe,
};
