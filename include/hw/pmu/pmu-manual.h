/*
 * Performance monitoring unit: an engine that is driven by hand
 *
 * For unit tests, and for accelerators that run no guest code in QEMU.  Under
 * qtest, a test says which events have happened.  Under KVM nothing drives the
 * engine, because the kernel counts: the model holds the values last read from
 * the kernel, and its counters do not advance.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_MANUAL_H
#define HW_PMU_PMU_MANUAL_H

#include "hw/pmu/pmu-share.h"

/**
 * struct PmuManual - an engine that is driven by pmu_manual_count()
 * @share: the share that it is the engine of
 * @tallies: the events so far; they stand still where the model reads none
 * @events: how many that were, of any kind and in any mode
 * @budgets: as given by the model's last plan
 * @used: how much of each budget is used up
 * @wanted: which tallies the model reads
 * @modes: in which modes
 * @timed: the tallies that grow with time; set by tests
 * @plans: how often the model has planned
 */
typedef struct PmuManual {
    PmuShare *share;
    uint64_t tallies[PMU_TALLY__MAX][PMU_MAX_MODES];
    uint64_t events;
    PmuBudgets budgets;
    uint64_t used[PMU_TALLY__MAX][PMU_MAX_MODES];
    PmuTallies wanted;
    PmuModes modes;
    PmuTallies timed;
    uint64_t plans;
} PmuManual;

/**
 * pmu_manual_ops - the operations, for pmu_share_new(); the state is a
 *                  PmuManual
 */
extern const PmuEngineOps pmu_manual_ops;

/**
 * pmu_manual_count - count events
 * @m: the engine
 * @tally: the kind of event
 * @mode: in which mode
 * @count: how many
 *
 * Keeps the engine's promise: whenever a budget is used up the model folds,
 * so an overflow is signalled at the very event.
 */
void pmu_manual_count(PmuManual *m, PmuTally tally, unsigned mode,
                      uint64_t count);

#endif /* HW_PMU_PMU_MANUAL_H */
