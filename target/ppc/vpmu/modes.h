/*
 * Power virtual PMU: the privilege states that its counters distinguish
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef PPC_VPMU_MODES_H
#define PPC_VPMU_MODES_H

/*
 * Modes, as hw/pmu numbers them: a sum of these.  The other two states that
 * freeze bits distinguish, MSR[PMM] and CTRL[RUN], are not modes: when they
 * change, the counters are updated (ppc_vpmu_state_changed()).
 */
#define PPC_VPMU_MODE_PRIVILEGED 1 /* MSR[PR] is 0 */
#define PPC_VPMU_MODE_HV         2 /* MSR[HV] is 1 */
#define PPC_VPMU_NR_MODES        4

/*
 * CPUPPCState.hflags have the privilege in bits of the data's MMU index.
 * HFLAGS_HV is of no use: it is set where there is no hypervisor mode.
 */
#define PPC_VPMU_MODE_FLAGS \
    { 1 << HFLAGS_DMMU_IDX, 4 << HFLAGS_DMMU_IDX }

#endif /* PPC_VPMU_MODES_H */
