/*
 * Performance monitoring unit: the state of the model
 *
 * For the model and its migration alone.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_INTERNAL_H
#define HW_PMU_PMU_INTERNAL_H

#include "hw/pmu/pmu.h"

/**
 * struct PmuCounter - one counter
 * @shape: width and point of overflow
 * @select: as given by pmu_select()
 * @plus: tallies that are added
 * @minus: tallies that are subtracted (inverted thresholds)
 * @owed: events of @minus that were in no cycle yet, and take one to come
 * @value: the value at the last fold, below 2^width
 * @overflows: how often it had overflowed by then
 * @running: counts now
 * @alert: its overflow must be noticed at once, not at the next fold
 */
typedef struct PmuCounter {
    PmuCounterShape shape;
    PmuSelect select;
    PmuTallies plus;
    PmuTallies minus;
    uint64_t owed;
    uint64_t value;
    uint64_t overflows;
    bool running;
    bool alert;
} PmuCounter;

/**
 * struct Pmu - the counters of one vCPU
 * @nr_counters: how many counters there are
 * @nr_modes: how many modes the face tells apart
 * @counters: the counters
 * @ops: the engine's operations
 * @engine: the engine's state
 * @overflow: the face's handler
 * @opaque: its argument
 * @freeze: counters that stop when any counter that may freeze overflows
 * @freeze_by: counters whose overflow freezes
 * @last: the tallies at the last fold
 * @recent: how much they have grown lately, to estimate how they will grow
 * @wanted: tallies that some running counter reads
 * @budgets: how far they may grow, as given to the engine last
 * @folds: how many there have been
 * @depth: nesting of pmu_begin()
 */
struct Pmu {
    unsigned nr_counters;
    unsigned nr_modes;
    PmuCounter counters[PMU_MAX_COUNTERS];
    const PmuEngineOps *ops;
    void *engine;
    PmuOverflowFn *overflow;
    void *opaque;
    uint64_t freeze;
    uint64_t freeze_by;
    uint64_t last[PMU_TALLY__MAX][PMU_MAX_MODES];
    uint64_t recent[PMU_TALLY__MAX][PMU_MAX_MODES];
    PmuTallies wanted;
    PmuBudgets budgets;
    uint64_t folds;
    unsigned depth;
};

#endif /* HW_PMU_PMU_INTERNAL_H */
