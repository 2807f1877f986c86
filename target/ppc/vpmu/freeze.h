/*
 * Power virtual PMU: when a counter counts
 *
 * The freeze bits of MMCR0 and MMCR2, for every privilege state, mark and run
 * latch.  Pure functions of the registers, so that a table can walk them all
 * (tests/qtest/vpmu-test-ppc-freeze.c).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef PPC_VPMU_FREEZE_H
#define PPC_VPMU_FREEZE_H

#include "hw/pmu/pmu-engine.h"

/**
 * struct PpcVPmuFreeze - the state that decides whether counters move
 * @mmcr0: MMCR0
 * @mmcr2: MMCR2
 * @pmm: MSR[PMM]
 * @run: CTRL[RUN]
 */
typedef struct PpcVPmuFreeze {
    uint64_t mmcr0;
    uint64_t mmcr2;
    bool pmm;
    bool run;
} PpcVPmuFreeze;

/**
 * ppc_vpmu_freeze_modes - the privilege states in which a counter counts
 * @freeze: the state
 * @pmc: 1 to PPC_VPMU_NR_PMCS
 * @runs_always: MMCR0[FC1-4WAIT] does not freeze the counter's event
 *
 * Returns: a set of modes as ppc_vpmu_mode() numbers them.
 */
PmuModes ppc_vpmu_freeze_modes(const PpcVPmuFreeze *freeze, unsigned pmc,
                               bool runs_always);

/**
 * ppc_vpmu_bhrb_modes - the privilege states in which branches are recorded
 * @freeze: the state
 *
 * Power ISA 3.1B, book III, MMCR0: FCS, FCP and FCH freeze the BHRB as well
 * as the counters; the other bits do not.
 */
PmuModes ppc_vpmu_bhrb_modes(const PpcVPmuFreeze *freeze);

/**
 * ppc_vpmu_is_outside - whether PMC5 and PMC6 are outside the facility
 * @mmcr0: MMCR0
 * @pmc: 1 to PPC_VPMU_NR_PMCS
 *
 * With MMCR0[PMCC] = 0b11, PMC5 and PMC6 count while the run latch is set,
 * whatever else MMCR0 says, and raise no condition.
 */
bool ppc_vpmu_is_outside(uint64_t mmcr0, unsigned pmc);

#endif /* PPC_VPMU_FREEZE_H */
