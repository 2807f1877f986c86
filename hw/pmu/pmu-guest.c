/*
 * Performance monitoring unit: what an architecture tells of a guest
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/core/sysemu-cpu-ops.h"
#include "hw/pmu/pmu-guest.h"

const PmuGuestOps *pmu_guest_ops(const CPUState *cpu)
{
    return cpu->cc->sysemu_ops->pmu_guest;
}
