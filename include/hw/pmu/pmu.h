/*
 * Performance monitoring unit: the model of architectural counters
 *
 * A Pmu is the set of counters of one virtual CPU.  It knows what a counter
 * is (a width, an event, the modes in which it counts, whether it runs, its
 * value and what overflow means) and nothing about registers, translated code
 * or host hardware:
 *
 *   face    decodes guest registers into the verbs of this header and turns
 *           an overflow back into status bits and an interrupt
 *   model   this header
 *   engine  supplies tallies and is given the distance to the next overflow
 *           (hw/pmu/pmu-engine.h)
 *
 * Three index spaces meet here and are never mixed:
 *
 *   counter  0 .. pmu_nr_counters() - 1, given out by the face
 *   tally    PmuTally, the kinds of events that an engine counts
 *   mode     0 .. pmu_nr_modes() - 1, one per privilege state that a filter bit
 *            of the architecture can tell apart, numbered by the face
 *
 * Threads: a Pmu belongs to its vCPU.  Every function here is called from the
 * vCPU's own thread, or from any thread that holds the big lock while the
 * vCPU is stopped (reset, migration, monitor commands that stop it).
 *
 * These functions assert their contracts: a counter that is named exists, and
 * is changed in a transaction only.  A face checks what the guest gives it
 * before it calls them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_H
#define HW_PMU_PMU_H

#include "hw/pmu/pmu-engine.h"

/**
 * PMU_MAX_COUNTERS - the most counters a Pmu can have
 *
 * Sets of counters are passed as uint64_t bit masks, bit n for counter n.
 */
#define PMU_MAX_COUNTERS 64

/**
 * enum PmuEvent - the events that a counter can count
 *
 * The events that the faces' tables name.  Each is a sum of tallies; see
 * pmu_event_tallies().
 *
 * @PMU_EVENT_NONE: an event that this PMU does not count; the counter stands
 * @PMU_EVENT_CYCLES: core cycles, none while halted
 * @PMU_EVENT_REF_CYCLES: cycles at the reference rate, none while halted
 * @PMU_EVENT_INSNS: instructions retired
 * @PMU_EVENT_BRANCHES: branch instructions retired, of all kinds
 * @PMU_EVENT_COND_BRANCHES: conditional branches, taken or not
 * @PMU_EVENT_COND_TAKEN: conditional branches that were taken
 * @PMU_EVENT_COND_NOT_TAKEN: conditional branches that fell through
 * @PMU_EVENT_TAKEN_BRANCHES: branches that changed the flow
 * @PMU_EVENT_NEAR_TAKEN: taken branches other than far branches
 * @PMU_EVENT_CALLS: near calls, direct and indirect
 * @PMU_EVENT_RETURNS: near returns
 * @PMU_EVENT_INDIRECT_BRANCHES: indirect jumps and calls, not returns
 * @PMU_EVENT_DIRECT_CALLS: near calls of a fixed target
 * @PMU_EVENT_INDIRECT_CALLS: indirect calls
 * @PMU_EVENT_FAR_BRANCHES: far jumps, calls, returns and interrupt returns
 * @PMU_EVENT_LOADS: instructions retired that read memory
 * @PMU_EVENT_STORES: instructions retired that wrote memory
 * @PMU_EVENT_ACCESSES: loads plus stores: an instruction that does both is two
 * @PMU_EVENT_INTERRUPTS: hardware interrupts taken
 * @PMU_EVENT_EXCEPTIONS: faults and traps delivered
 * @PMU_EVENT_DTLB_LOAD_MISSES: reads that missed the softmmu's TLB
 * @PMU_EVENT_DTLB_STORE_MISSES: writes that missed the softmmu's TLB
 * @PMU_EVENT_DTLB_MISSES: reads and writes that missed it
 * @PMU_EVENT_ITLB_MISSES: fetches that missed the softmmu's TLB
 * @PMU_EVENT_FAILED_STORES: conditional stores that did not store
 * @PMU_EVENT_L1D_MISSES: and those after it: the tally of the same name, which
 *                        only a vCPU with a model of its core has
 */
typedef enum PmuEvent {
    PMU_EVENT_NONE,
    PMU_EVENT_CYCLES,
    PMU_EVENT_REF_CYCLES,
    PMU_EVENT_INSNS,
    PMU_EVENT_BRANCHES,
    PMU_EVENT_COND_BRANCHES,
    PMU_EVENT_COND_TAKEN,
    PMU_EVENT_COND_NOT_TAKEN,
    PMU_EVENT_TAKEN_BRANCHES,
    PMU_EVENT_NEAR_TAKEN,
    PMU_EVENT_CALLS,
    PMU_EVENT_RETURNS,
    PMU_EVENT_INDIRECT_BRANCHES,
    PMU_EVENT_DIRECT_CALLS,
    PMU_EVENT_INDIRECT_CALLS,
    PMU_EVENT_FAR_BRANCHES,
    PMU_EVENT_LOADS,
    PMU_EVENT_STORES,
    PMU_EVENT_ACCESSES,
    PMU_EVENT_INTERRUPTS,
    PMU_EVENT_EXCEPTIONS,
    PMU_EVENT_DTLB_LOAD_MISSES,
    PMU_EVENT_DTLB_STORE_MISSES,
    PMU_EVENT_DTLB_MISSES,
    PMU_EVENT_ITLB_MISSES,
    PMU_EVENT_FAILED_STORES,
    PMU_EVENT_L1D_MISSES,
    PMU_EVENT_L1D_LOAD_MISSES,
    PMU_EVENT_L1D_STORE_MISSES,
    PMU_EVENT_L1D_LOAD_HITS,
    PMU_EVENT_L1I_MISSES,
    PMU_EVENT_LLC_REFS,
    PMU_EVENT_LLC_MISSES,
    PMU_EVENT_LLC_LOAD_HITS,
    PMU_EVENT_LLC_LOAD_MISSES,
    PMU_EVENT_LLC_STORE_MISSES,
    PMU_EVENT_LLC_FETCH_MISSES,
    PMU_EVENT_BRANCH_MISSES,
    PMU_EVENT_COND_MISSES,
    PMU_EVENT_INDIRECT_MISSES,
    PMU_EVENT_RETURN_MISSES,
    PMU_EVENT_SPECULATION_CYCLES,
    PMU_EVENT_FRONTEND_CYCLES,
    PMU_EVENT_BACKEND_CYCLES,
    PMU_EVENT_RETIRING_CYCLES,
    PMU_EVENT__MAX
} PmuEvent;

/**
 * struct PmuSelect - the event selection of a counter
 * @event: the event
 * @modes: bit mask of the modes in which it counts
 * @threshold: 0 or 1 count events; n > 1 counts the cycles in which at least
 *             n events happened.  The cycle model retires at most one
 *             instruction a cycle, so nothing happens twice in a cycle and
 *             such a counter stands still (or, inverted, counts every cycle).
 * @invert: count the cycles in which fewer than @threshold events happened;
 *          has no meaning, and is ignored, when @threshold is 0 (Intel SDM
 *          vol. 3B, "IA32_PERFEVTSELx MSRs", INV).  An event outside of
 *          instructions, such as an interrupt, is in the cycle that follows.
 * @edge: count how often the condition becomes true, not how long it holds.
 *        Two events in adjacent cycles count as two.  A condition that holds
 *        in every cycle becomes true whenever the CPU leaves a halt.
 * @each: what the counter grows by with each of these; 0 stands for 1
 */
typedef struct PmuSelect {
    PmuEvent event;
    PmuModes modes;
    uint8_t threshold;
    bool invert;
    bool edge;
    uint8_t each;
} PmuSelect;

/**
 * struct PmuCounterShape - the fixed properties of a counter
 * @width: number of bits, 1 to 64
 * @overflow_at: the value that, when counted up to, signals overflow:
 *               0 means 2^@width, that is, wrapping to zero (x86); Power's
 *               counters signal when they turn negative, at 2^31, and count on
 */
typedef struct PmuCounterShape {
    uint8_t width;
    uint64_t overflow_at;
} PmuCounterShape;

/**
 * typedef PmuOverflowFn - the face's handler of overflow
 * @opaque: as given to pmu_new()
 * @counters: the counters that overflowed since the last call
 *
 * Called at the end of a fold, in the caller's thread, with every counter up
 * to date; the counters named by the freeze mask (pmu_set_freeze()) are
 * stopped already.  The handler may read, write, start and stop counters
 * (in a pmu_begin()/pmu_commit() pair of its own) and raise interrupts.
 */
typedef void PmuOverflowFn(void *opaque, uint64_t counters);

/**
 * typedef Pmu - the counters of one vCPU; private to the model
 */
typedef struct Pmu Pmu;

/**
 * pmu_new - create the counters of a vCPU
 * @nr_counters: 1 to PMU_MAX_COUNTERS
 * @nr_modes: 1 to PMU_MAX_MODES
 * @ops: the engine's operations, which must outlive the Pmu
 * @engine: the engine's state, passed to each operation
 * @overflow: called when counters overflow
 * @opaque: passed to @overflow
 *
 * All counters are 48 bits wide, stopped, zero and count nothing.
 *
 * Returns: the Pmu, to be released with pmu_free().
 */
Pmu *pmu_new(unsigned nr_counters, unsigned nr_modes,
             const PmuEngineOps *ops, void *engine,
             PmuOverflowFn *overflow, void *opaque);

/**
 * pmu_free - release a Pmu
 * @pmu: a Pmu or NULL
 *
 * Tells the engine that no tallies are wanted any more; does not release the
 * engine.
 */
void pmu_free(Pmu *pmu);

/**
 * pmu_nr_counters - how many counters there are
 * @pmu: the Pmu
 */
unsigned pmu_nr_counters(const Pmu *pmu);

/**
 * pmu_nr_modes - how many modes the face tells apart
 * @pmu: the Pmu
 */
unsigned pmu_nr_modes(const Pmu *pmu);

/**
 * pmu_reset - stop and clear every counter
 * @pmu: the Pmu
 *
 * Shapes stay.  Overflow that is still to be folded is dropped.
 */
void pmu_reset(Pmu *pmu);

/**
 * pmu_set_shape - say how wide a counter is and where it overflows
 * @pmu: the Pmu
 * @counter: which counter
 * @shape: width and point of overflow
 *
 * The counter must not be running.  Bits of its value beyond the new width
 * are dropped.
 */
void pmu_set_shape(Pmu *pmu, unsigned counter, PmuCounterShape shape);

/**
 * pmu_begin - open a transaction
 * @pmu: the Pmu
 *
 * Brings every counter up to date, calling the overflow handler if need be;
 * then any number of counters can be changed as if at one instant, until
 * pmu_commit().  Every verb below that changes a counter must stand between
 * the two.  Pairs nest; the outermost counts.
 */
void pmu_begin(Pmu *pmu);

/**
 * pmu_commit - close a transaction
 * @pmu: the Pmu
 *
 * Tells the engine which tallies are wanted now and how far they may grow.
 */
void pmu_commit(Pmu *pmu);

/**
 * pmu_in_transaction - whether a transaction is open
 * @pmu: the Pmu
 */
bool pmu_in_transaction(const Pmu *pmu);

/**
 * pmu_select - select the event that a counter counts
 * @pmu: the Pmu, in a transaction
 * @counter: which counter
 * @select: the event, its modes and its threshold
 */
void pmu_select(Pmu *pmu, unsigned counter, const PmuSelect *select);

/**
 * pmu_selected - the event selection of a counter
 * @pmu: the Pmu
 * @counter: which counter
 *
 * Returns: as given to pmu_select(), without modes that do not exist.
 */
const PmuSelect *pmu_selected(const Pmu *pmu, unsigned counter);

/**
 * pmu_run - start or stop a counter
 * @pmu: the Pmu, in a transaction
 * @counter: which counter
 * @running: whether it counts from now on
 */
void pmu_run(Pmu *pmu, unsigned counter, bool running);

/**
 * pmu_set_alert - say whether a counter's overflow must be noticed at once
 * @pmu: the Pmu, in a transaction
 * @counter: which counter
 * @alert: true if the overflow interrupts or freezes, so that the engine has
 *         to stop at the very event; false if it may be found by a later fold
 */
void pmu_set_alert(Pmu *pmu, unsigned counter, bool alert);

/**
 * pmu_set_freeze - say which counters stop when a counter overflows
 * @pmu: the Pmu, in a transaction
 * @by: counters whose overflow has this effect; their overflow is noticed at
 *      once, as if pmu_set_alert() had been called
 * @frozen: counters that stop, at the boundary of the overflowing event
 *
 * A frozen counter is a stopped one: pmu_is_running() says so and pmu_run()
 * starts it again.
 */
void pmu_set_freeze(Pmu *pmu, uint64_t by, uint64_t frozen);

/**
 * pmu_read - the value of a counter, as of now
 * @pmu: the Pmu
 * @counter: which counter
 *
 * Folds first, so the overflow handler may run.
 *
 * Returns: the value, below 2^width.
 */
uint64_t pmu_read(Pmu *pmu, unsigned counter);

/**
 * pmu_peek - the value of a counter, as of now, without consequences
 * @pmu: the Pmu
 * @counter: which counter
 *
 * For monitors and tests: nothing is folded and no overflow is signalled.
 *
 * Returns: the value that pmu_read() would return.
 */
uint64_t pmu_peek(const Pmu *pmu, unsigned counter);

/**
 * pmu_write - set the value of a counter
 * @pmu: the Pmu, in a transaction
 * @counter: which counter
 * @value: the value; bits beyond the width are dropped
 *
 * A running counter goes on from @value.  Writing never overflows.
 */
void pmu_write(Pmu *pmu, unsigned counter, uint64_t value);

/**
 * pmu_is_running - whether a counter counts
 * @pmu: the Pmu
 * @counter: which counter
 */
bool pmu_is_running(const Pmu *pmu, unsigned counter);

/**
 * pmu_is_quiet - whether no overflow is near
 * @pmu: the counters, directly after a fold
 * @events: the number of events of each kind that may happen
 *
 * Returns: whether no counter that the engine has to stop for overflows within
 * that many events.
 */
bool pmu_is_quiet(const Pmu *pmu, uint64_t events);

/**
 * pmu_distance - events until a counter overflows
 * @pmu: the Pmu
 * @counter: which counter
 *
 * Returns: at least 1; G_MAXUINT64 for a 64-bit counter that overflows at
 * 2^64 and stands at 0, whose true distance does not fit.
 */
uint64_t pmu_distance(const Pmu *pmu, unsigned counter);

/**
 * pmu_overflows - how often a counter has overflowed, as of now
 * @pmu: the Pmu
 * @counter: which counter
 *
 * For monitors: since the Pmu was created, across resets and loaded states.
 * Each time is counted, even if a counter has overflowed repeatedly before a
 * fold, except for overflow that a reset drops.  Nothing is folded.  Does not
 * migrate.
 */
uint64_t pmu_overflows(const Pmu *pmu, unsigned counter);

/**
 * pmu_folds - how often counters have been folded since the Pmu was created
 * @pmu: the Pmu
 *
 * A transaction folds once.  Does not migrate.
 */
uint64_t pmu_folds(const Pmu *pmu);

/**
 * pmu_width - the bits of a counter
 * @pmu: the Pmu
 * @counter: which counter
 */
unsigned pmu_width(const Pmu *pmu, unsigned counter);

/**
 * pmu_fold - bring all counters up to date with their tallies
 * @pmu: the Pmu
 *
 * The only place where a counter overflows.  Afterwards the engine has fresh
 * deadlines.  Called by an engine when a deadline is reached, and before the
 * mode changes in a way that the engine cannot see.
 */
void pmu_fold(Pmu *pmu);

/**
 * pmu_rebase - take the engine's tallies as they are now as the starting point
 * @pmu: the Pmu
 *
 * For incoming migration: the engine's tallies were loaded, and the counters
 * include them already.
 */
void pmu_rebase(Pmu *pmu);

/**
 * pmu_event_tallies - the tallies that make up an event
 * @event: the event
 *
 * Returns: a bit mask; 0 for PMU_EVENT_NONE.
 */
PmuTallies pmu_event_tallies(PmuEvent event);

/**
 * pmu_event_needs_core - whether only a model of the core counts an event
 * @event: the event
 */
bool pmu_event_needs_core(PmuEvent event);

/**
 * pmu_event_name - the name of an event for users
 * @event: the event
 *
 * Returns: NULL for PMU_EVENT_NONE.
 */
const char *pmu_event_name(PmuEvent event);

#endif /* HW_PMU_PMU_H */
