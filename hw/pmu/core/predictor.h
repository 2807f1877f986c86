/*
 * Performance monitoring unit: how branches are predicted
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_CORE_PREDICTOR_H
#define HW_PMU_CORE_PREDICTOR_H

#include "hw/pmu/pmu-core.h"

/**
 * struct PmuCorePredictor - all predictors of a core
 * @counters: 0 to 3 each; from 2 on, a branch is predicted to be taken.  Which
 *            one it has, the history says with the upper bits of its number,
 *            and the address with the lower ones.
 * @targets: where indirect branches went last, by their address
 * @returns: a ring of where calls want to be returned to
 * @history: bit 0 is the last conditional branch: whether it was taken
 * @next: where in the ring the next call will be
 * @held: how many calls it has
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
 * pmu_core_predict - predict a branch, and learn from it
 * @p: the predictors
 * @kind: what it is, or a call, which is not predicted
 * @entry: the branch
 *
 * Returns: whether the prediction was wrong.
 */
bool pmu_core_predict(const PmuCorePredictor *p, PmuCoreKind kind,
                      const PmuCoreEntry *entry);

#endif /* HW_PMU_CORE_PREDICTOR_H */
