/*
 * x86 virtual PMU: the description of a guest
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef I386_VPMU_GUEST_H
#define I386_VPMU_GUEST_H

#include "hw/pmu/pmu-guest.h"

/**
 * x86_pmu_guest_ops - the operations, for SysemuCPUOps
 */
extern const PmuGuestOps x86_pmu_guest_ops;

#endif /* I386_VPMU_GUEST_H */
