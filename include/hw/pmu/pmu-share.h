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
 * The engine asks the share about counters: whether some may overflow late, and
 * which of the guest's run.
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
 * struct PmuLate - an overflow that is handled late
 * @owner: whose overflow it is; NULL if none comes
 * @distance: how many more events lead to it
 * @in_cycles: these are cycles; otherwise instructions
 *
 * Late is after the rest of the block that contains the instruction that
 * overflows.
 */
typedef struct PmuLate {
    const void *owner;
    uint64_t distance;
    bool in_cycles;
} PmuLate;

/**
 * struct PmuLateOps - the operations of a Pmu whose counters may overflow late
 * @can_wait: whether no counter has to be handled within a block of @mode with
 *            up to @events events of a kind; directly after a fold.  @late,
 *            whose owner is NULL, is set to the overflow that may come.  False
 *            if there could be more than one.
 * @prepare: such a block is executed next
 * @called: the owner whose overflow is being handled, or NULL
 */
typedef struct PmuLateOps {
    bool (*can_wait)(void *opaque, unsigned mode, uint64_t events,
                     PmuLate *late);
    void (*prepare)(const void *owner);
    const void *(*called)(void *opaque);
} PmuLateOps;

/**
 * pmu_share_join_late - create a Pmu of observers, whose counters may overflow
 *                       late
 * @share: as for pmu_share_join()
 * @nr_counters: likewise
 * @overflow: likewise
 * @late: the operations
 * @opaque: the argument of @overflow and of the operations
 */
Pmu *pmu_share_join_late(PmuShare *share, unsigned nr_counters,
                         PmuOverflowFn *overflow, const PmuLateOps *late,
                         void *opaque);

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
 *
 * If there is no such Pmu, the engine gets a plan of the budgets that are left,
 * as it does after a fold: of a budget of cycles it may have used up the part
 * for instructions, but not that for misses.
 */
void pmu_share_fold(PmuShare *share, uint64_t within);

/**
 * pmu_share_can_be_late - whether a block can be executed to its end
 * @share: the share, directly after a fold
 * @mode: the mode of the block
 * @events: the most events of a kind in it
 * @late: set to the overflow that may come in it; without an owner if none does
 *
 * Returns: false if an overflow has to be handled within the block.
 */
bool pmu_share_can_be_late(const PmuShare *share, unsigned mode,
                           uint64_t events, PmuLate *late);

/**
 * pmu_share_prepare_late - prepare for a block that is executed to its end
 * @share: the share
 * @late: the overflow in it
 */
void pmu_share_prepare_late(const PmuShare *share, const PmuLate *late);

/**
 * pmu_share_is_calling - whether an overflow is being handled
 * @share: the share
 * @late: the overflow
 */
bool pmu_share_is_calling(const PmuShare *share, const PmuLate *late);

/**
 * pmu_share_in_transaction - whether a plan follows
 * @share: the share
 */
bool pmu_share_in_transaction(const PmuShare *share);

/**
 * pmu_share_guest_modes - the modes in which the guest counts an event
 * @share: the share
 * @event: the event
 */
PmuModes pmu_share_guest_modes(const PmuShare *share, PmuEvent event);

/**
 * typedef PmuShowFn - show a counter that runs
 * @opaque: as given
 * @counter: the counter
 * @value: its value
 */
typedef void PmuShowFn(void *opaque, unsigned counter, uint64_t value);

/**
 * pmu_share_show_guest - show the running counters of the guest
 * @share: the share
 * @show: called for each
 * @opaque: its argument
 */
void pmu_share_show_guest(const PmuShare *share, PmuShowFn *show,
                          void *opaque);

/**
 * pmu_share_fold_all - fold all Pmus
 * @share: the share
 *
 * For changes that concern time: the end of a timed tally's budget, and the
 * stop and start of the clock.
 */
void pmu_share_fold_all(PmuShare *share);

#endif /* HW_PMU_PMU_SHARE_H */
