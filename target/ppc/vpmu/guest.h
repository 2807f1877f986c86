/*
 * Power virtual PMU: the description of a guest
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef PPC_VPMU_GUEST_H
#define PPC_VPMU_GUEST_H

#include "hw/pmu/pmu-guest.h"

/**
 * ppc_pmu_guest_ops - the operations, for SysemuCPUOps
 */
extern const PmuGuestOps ppc_pmu_guest_ops;

#endif /* PPC_VPMU_GUEST_H */
