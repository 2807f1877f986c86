/*
 * Performance monitoring unit: the interface between a model and its engine
 *
 * An engine supplies tallies (the number of events of a kind in each mode) and
 * is given budgets (how far each tally may grow before the model must fold).
 * It knows neither counters nor registers.  One engine is translated code
 * (hw/pmu/pmu-tcg.h),
 * another is driven by hand (hw/pmu/pmu-manual.h).  Where several Pmus share
 * one of these, each has a port of it, which is its engine
 * (hw/pmu/pmu-share.h).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_ENGINE_H
#define HW_PMU_PMU_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

/**
 * PMU_MAX_MODES - the most modes an architecture can tell apart
 */
#define PMU_MAX_MODES 8

/**
 * typedef PmuModeFlags - what an architecture tells its modes apart by
 *
 * A mode is a sum of bits; bit i is set where a CPU's flags, or the flags of a
 * block of translated code, have one of the element i.
 */
typedef uint32_t PmuModeFlags[3];

/**
 * pmu_mode_of_flags - the mode in which instructions are counted
 * @modes: the architecture's
 * @flags: the flags of a CPU, or of a block
 *
 * Returns: below PMU_MAX_MODES.
 */
static inline unsigned pmu_mode_of_flags(const PmuModeFlags modes,
                                         uint32_t flags)
{
    return (flags & modes[0] ? 1 : 0) | (flags & modes[1] ? 2 : 0)
           | (flags & modes[2] ? 4 : 0);
}

/**
 * typedef PmuModes - a set of modes, bit n for mode n
 */
typedef uint32_t PmuModes;

/**
 * enum PmuTally - the kinds of events that an engine counts
 *
 * The kinds of branch are disjoint: each retired branch belongs to one.
 *
 * @PMU_TALLY_CYCLES: core cycles
 * @PMU_TALLY_REF_CYCLES: reference cycles
 * @PMU_TALLY_INSNS: instructions retired
 * @PMU_TALLY_COND_TAKEN: conditional branches taken
 * @PMU_TALLY_COND_NOT_TAKEN: conditional branches not taken
 * @PMU_TALLY_JUMPS: direct unconditional jumps
 * @PMU_TALLY_INDIRECT_JUMPS: indirect jumps
 * @PMU_TALLY_CALLS: direct calls
 * @PMU_TALLY_INDIRECT_CALLS: indirect calls
 * @PMU_TALLY_RETURNS: near returns
 * @PMU_TALLY_FAR_BRANCHES: transfers to another segment or privilege
 * @PMU_TALLY_LOADS: instructions that read memory
 * @PMU_TALLY_STORES: instructions that wrote memory
 * @PMU_TALLY_INTERRUPTS: hardware interrupts taken
 * @PMU_TALLY_EXCEPTIONS: faults and traps delivered
 * @PMU_TALLY_DTLB_LOAD_MISSES: reads that missed the TLB
 * @PMU_TALLY_DTLB_STORE_MISSES: writes that missed the TLB
 * @PMU_TALLY_ITLB_MISSES: fetches that missed the TLB
 * @PMU_TALLY_WAKEUPS: times that the CPU left a halt
 * @PMU_TALLY_FAILED_STORES: conditional stores that did not store
 *
 * From here on, only where the vCPU has a model of its core
 * (hw/pmu/pmu-tcg-core.h), which defines them:
 * @PMU_TALLY_L1D_MISSES: accesses to data that missed the first level
 * @PMU_TALLY_L1D_LOAD_MISSES: those that read
 * @PMU_TALLY_L1D_STORE_MISSES: those that only wrote
 * @PMU_TALLY_L1D_LOAD_HITS: accesses that read, and did not miss it
 * @PMU_TALLY_L1I_MISSES: fetches that missed the first level
 * @PMU_TALLY_LLC_REFS: accesses and fetches that missed the first level
 * @PMU_TALLY_LLC_MISSES: accesses and fetches that missed the last level
 * @PMU_TALLY_LLC_LOAD_HITS: accesses that read, and missed only the first level
 * @PMU_TALLY_LLC_LOAD_MISSES: accesses that read, and missed the last level
 * @PMU_TALLY_LLC_STORE_MISSES: accesses that only wrote, and missed it
 * @PMU_TALLY_LLC_FETCH_MISSES: fetches that missed it
 * @PMU_TALLY_BRANCH_MISSES: mispredicted branches
 * @PMU_TALLY_COND_MISSES: mispredicted conditions
 * @PMU_TALLY_INDIRECT_MISSES: mispredicted targets of indirect branches
 * @PMU_TALLY_RETURN_MISSES: mispredicted returns
 *
 * The cycles of the core, by their cause; the sum of these four is all of them:
 * @PMU_TALLY_SPECULATION_CYCLES: cycles that mispredicted branches cost
 * @PMU_TALLY_FRONTEND_CYCLES: cycles that misses of fetches cost
 * @PMU_TALLY_BACKEND_CYCLES: cycles that misses of loads and stores cost
 * @PMU_TALLY_RETIRING_CYCLES: cycles of the instructions themselves
 */
typedef enum PmuTally {
    PMU_TALLY_CYCLES,
    PMU_TALLY_REF_CYCLES,
    PMU_TALLY_INSNS,
    PMU_TALLY_COND_TAKEN,
    PMU_TALLY_COND_NOT_TAKEN,
    PMU_TALLY_JUMPS,
    PMU_TALLY_INDIRECT_JUMPS,
    PMU_TALLY_CALLS,
    PMU_TALLY_INDIRECT_CALLS,
    PMU_TALLY_RETURNS,
    PMU_TALLY_FAR_BRANCHES,
    PMU_TALLY_LOADS,
    PMU_TALLY_STORES,
    PMU_TALLY_INTERRUPTS,
    PMU_TALLY_EXCEPTIONS,
    PMU_TALLY_DTLB_LOAD_MISSES,
    PMU_TALLY_DTLB_STORE_MISSES,
    PMU_TALLY_ITLB_MISSES,
    PMU_TALLY_WAKEUPS,
    PMU_TALLY_FAILED_STORES,
    PMU_TALLY_L1D_MISSES,
    PMU_TALLY_L1D_LOAD_MISSES,
    PMU_TALLY_L1D_STORE_MISSES,
    PMU_TALLY_L1D_LOAD_HITS,
    PMU_TALLY_L1I_MISSES,
    PMU_TALLY_LLC_REFS,
    PMU_TALLY_LLC_MISSES,
    PMU_TALLY_LLC_LOAD_HITS,
    PMU_TALLY_LLC_LOAD_MISSES,
    PMU_TALLY_LLC_STORE_MISSES,
    PMU_TALLY_LLC_FETCH_MISSES,
    PMU_TALLY_BRANCH_MISSES,
    PMU_TALLY_COND_MISSES,
    PMU_TALLY_INDIRECT_MISSES,
    PMU_TALLY_RETURN_MISSES,
    PMU_TALLY_SPECULATION_CYCLES,
    PMU_TALLY_FRONTEND_CYCLES,
    PMU_TALLY_BACKEND_CYCLES,
    PMU_TALLY_RETIRING_CYCLES,
    PMU_TALLY__MAX
} PmuTally;

/**
 * PMU_TALLY_CORE_FIRST - the first tally that only a model of the core has
 */
#define PMU_TALLY_CORE_FIRST PMU_TALLY_L1D_MISSES

/**
 * typedef PmuTallies - a set of tallies, bit n for PmuTally n
 */
typedef uint64_t PmuTallies;

/**
 * PMU_TALLY_BIT - the set of one tally
 * @tally: which one
 */
#define PMU_TALLY_BIT(tally) ((PmuTallies)1 << (tally))

/**
 * PMU_NO_DEADLINE - a budget that is never used up
 */
#define PMU_NO_DEADLINE UINT64_MAX

/**
 * typedef PmuBudgets - how far each tally may grow before the next fold
 *
 * Indexed by tally and mode; at least 1, or PMU_NO_DEADLINE.  Only the rows
 * of wanted tallies are defined.
 */
typedef uint64_t PmuBudgets[PMU_TALLY__MAX][PMU_MAX_MODES];

/**
 * struct PmuEngineOps - the operations of an engine
 *
 * All are called in the thread that calls the Pmu's function (hw/pmu/pmu.h).
 *
 * @sync: read the time: called once before a series of calls of @tally that
 *        must be consistent with each other.  May be NULL.
 * @tally: the events of kind @tally that have happened in @mode.  Never
 *         decreases, except that the engine may take back events between two
 *         calls (the model then waits until the tally has caught up).
 *         Defined only for tallies and modes that the last @plan wanted;
 *         others may stand still.
 * @timed: the tallies that grow with time, whatever is executed, and thus in
 *         one mode at a time: such a tally has one budget for all its modes.
 *         May be NULL if there are none.
 * @plan: the model has folded.  @wanted are the tallies that are read from
 *        now on, @modes the modes in which they are, and there is none without
 *        the other.  The engine must call pmu_fold() when any tally has grown
 *        by its budget since this call: not later than the event after which
 *        it has done so, and at that boundary.  Calling earlier is allowed.
 *        Where several Pmus share the engine (hw/pmu/pmu-share.h), it calls
 *        pmu_share_fold() instead.
 */
typedef struct PmuEngineOps {
    void (*sync)(void *engine);
    uint64_t (*tally)(void *engine, PmuTally tally, unsigned mode);
    PmuTallies (*timed)(void *engine);
    void (*plan)(void *engine, PmuTallies wanted, PmuModes modes,
                 const PmuBudgets budgets);
} PmuEngineOps;

#endif /* HW_PMU_PMU_ENGINE_H */
