/*
 * Performance monitoring unit: one engine for several Pmus
 *
 * The guest's counters are one Pmu; the counters of observers outside are
 * another.  They share the engine's tallies and nothing else.  Tallies only
 * grow, so reading them takes nothing from the other Pmu.  Each Pmu has a port,
 * which acts as its engine.  The share gives the real engine the union of the
 * tallies that the Pmus want, and the nearest of their deadlines; when that is
 * reached, only those Pmus fold whose own budget is used up.  So a Pmu counts,
 * and signals overflow, as if it were alone.
 *
 * While it is alone, a Pmu's plans go straight to the engine.
 *
 * Threads: as for struct Pmu.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_SHARE_H
#define HW_PMU_PMU_SHARE_H

#include "hw/pmu/pmu.h"

/**
 * PMU_SHARE_MAX - the most Pmus that can share an engine
 */
#define PMU_SHARE_MAX 2

/**
 * typedef PmuShare - an engine and the Pmus on it
 */
typedef struct PmuShare PmuShare;

/**
 * pmu_share_new - share an engine
 * @nr_modes: the number of modes the engine distinguishes, 1 to PMU_MAX_MODES
 * @ops: its operations, which must outlive the share
 * @engine: its state, likewise
 *
 * Where PmuEngineOps asks for pmu_fold(), the engine calls pmu_share_fold() or
 * pmu_share_fold_all().
 *
 * Returns: a share without Pmus, to be released with pmu_share_free().
 */
PmuShare *pmu_share_new(unsigned nr_modes, const PmuEngineOps *ops,
                        void *engine);

/**
 * pmu_share_free - release a share whose Pmus have left it
 * @share: the share or NULL
 */
void pmu_share_free(PmuShare *share);

/**
 * pmu_share_join - create a Pmu on a shared engine
 * @share: the share, which has fewer than PMU_SHARE_MAX Pmus
 * @nr_counters: as for pmu_new()
 * @overflow: likewise
 * @opaque: likewise
 *
 * Folds the Pmus that are there.
 *
 * Returns: the Pmu, to be released with pmu_share_leave().
 */
Pmu *pmu_share_join(PmuShare *share, unsigned nr_counters,
                    PmuOverflowFn *overflow, void *opaque);

/**
 * pmu_share_leave - release a Pmu
 * @share: the share
 * @pmu: the Pmu, made by pmu_share_join(), or NULL
 */
void pmu_share_leave(PmuShare *share, Pmu *pmu);

/**
 * pmu_share_fold - fold the Pmus whose budgets are used up
 * @share: the share
 * @within: or have at most this many events left; 0 for used-up budgets alone
 *
 * Budgets of timed tallies (PmuEngineOps.timed) are not looked at: reading
 * these can change how they are attributed to modes.
 */
void pmu_share_fold(PmuShare *share, uint64_t within);

/**
 * pmu_share_fold_all - fold all Pmus
 * @share: the share
 *
 * For changes that concern time: the end of a timed tally's budget, and the
 * stop and start of the clock.
 */
void pmu_share_fold_all(PmuShare *share);

#endif /* HW_PMU_PMU_SHARE_H */
