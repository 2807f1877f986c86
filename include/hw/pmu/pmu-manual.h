/*
 * Performance monitoring unit: an engine that is driven by hand
 *
 * For unit tests, and for accelerators that run no guest code in QEMU.  Under
 * qtest, a test says what has happened.  Under KVM nobody does: the kernel
 * counts, and the model holds what was last read from it, with counters that
 * stand still.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_MANUAL_H
#define HW_PMU_PMU_MANUAL_H

#include "hw/pmu/pmu-share.h"

/**
 * struct PmuManual - events that somebody says have happened
 * @share: the share that it is the engine of
 * @tallies: what has happened so far
 * @budgets: what the model allowed at its last plan
 * @used: what has been used of that
 * @wanted: which tallies the model reads
 * @timed: those that grow with time, as tests have it
 * @plans: how often the model has planned
 */
typedef struct PmuManual {
    PmuShare *share;
    uint64_t tallies[PMU_TALLY__MAX][PMU_MAX_MODES];
    PmuBudgets budgets;
    uint64_t used[PMU_TALLY__MAX][PMU_MAX_MODES];
    PmuTallies wanted;
    PmuTallies timed;
    uint64_t plans;
} PmuManual;

/**
 * pmu_manual_ops - the operations, for pmu_share_new(); the state is a
 *                  PmuManual
 */
extern const PmuEngineOps pmu_manual_ops;

/**
 * pmu_manual_count - let events happen
 * @m: the engine
 * @tally: which
 * @mode: in which mode
 * @count: how many
 *
 * Keeps the engine's promise: whenever a budget is used up the model folds,
 * so an overflow is signalled at the very event.
 */
void pmu_manual_count(PmuManual *m, PmuTally tally, unsigned mode,
                      uint64_t count);

#endif /* HW_PMU_PMU_MANUAL_H */
