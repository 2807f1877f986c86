/*
 * Performance monitoring unit: the prediction of branches
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_CORE_PREDICTOR_H
#define HW_PMU_CORE_PREDICTOR_H

#include "hw/pmu/pmu-core.h"

/**
 * struct PmuCorePredictor - all predictors of a core
 * @counters: 0 to 3 each; from 2 on, a branch is predicted to be taken.  The
 *            history gives the upper bits of a counter's index, and the address
 *            of the branch the lower bits.
 * @targets: the last targets of indirect branches, by the branches' addresses
 * @returns: a ring of the addresses to which calls return
 * @history: whether the last conditional branches were taken, the newest in bit
 *           0
 * @next: the index in the ring for the next call
 * @held: how many calls the ring holds
 * @geometry: the sizes of all these
 * @shift: how many bits of an instruction's address are always 0
 */
typedef struct PmuCorePredictor {
    uint8_t *counters;
    uint64_t *targets;
    uint64_t *returns;
    uint64_t *history;
    uint64_t *next;
    uint64_t *held;
    const PmuCoreGeometry *geometry;
    uint32_t shift;
} PmuCorePredictor;

/**
 * pmu_core_learn - predict branches, and learn from them
 * @p: the predictors
 * @entry: the first branch; a call is noted, but not predicted.  Each of the
 *         others is told whether it was predicted wrong.
 * @end: where to stop, at the latest
 * @tallies: PMU_CORE_TALLIES numbers, to which the branches, and those that
 *           were predicted wrong, are added
 *
 * Returns: the first entry that is no branch, or @end.
 */
PmuCoreEntry *pmu_core_learn(const PmuCorePredictor *p, PmuCoreEntry *entry,
                             const PmuCoreEntry *end, uint64_t *tallies);

#endif /* HW_PMU_CORE_PREDICTOR_H */
