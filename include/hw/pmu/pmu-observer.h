/*
 * Performance monitoring unit: counters that the guest cannot see
 *
 * An observer counts an event of a vCPU in some modes, for whoever looks at the
 * guest from outside, and calls back once a period.  It is as exact as the
 * guest's own counters and has no skid.  No register shows it, nothing of the
 * guest's freezes or resets it, and it does not migrate.  The guest counts the
 * same, and is interrupted at the same instructions, with it and without.
 *
 * There are observers on every vCPU whose architecture tells of its guests
 * (hw/pmu/pmu-guest.h), with a PMU or without, if the PMU is emulated.
 *
 * Where the guest's cycles follow time (pmu-cycles=time), they are attributed
 * to modes whenever somebody looks at them, and an observer of cycles looks
 * more often.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_OBSERVER_H
#define HW_PMU_PMU_OBSERVER_H

#include "hw/core/cpu.h"
#include "hw/pmu/pmu.h"
#include "hw/pmu/pmu-recorder.h"

/**
 * PMU_MAX_OBSERVERS - the most observers that a vCPU can have
 */
#define PMU_MAX_OBSERVERS 32

/**
 * typedef PmuObserver - a counter that the guest cannot see
 */
typedef struct PmuObserver PmuObserver;

/**
 * typedef PmuObserverFn - what is done once a period
 * @opaque: as configured
 * @observer: the observer, which pmu_observer_new() may not have returned yet
 * @events: how many events this call is for: the period, or several periods
 *          where a single instruction is so many events
 *
 * Called in the vCPU's thread behind the instruction of the last event, or
 * behind the rest of its block (PmuObserverConfig.in_place); pmu_tcg_where()
 * tells which instruction that is.  May change its own period, and must not add
 * or remove observers.
 */
typedef void PmuObserverFn(void *opaque, PmuObserver *observer,
                           uint64_t events);

/**
 * typedef PmuObserverPrepareFn - a period ends in the block that comes next
 * @opaque: as configured
 *
 * Called in the vCPU's thread between instructions, where a block is going to
 * be executed to its end, which may be a switch to another address space: who
 * executes it can be seen now.  PmuObserverFn follows behind the block
 * (pmu_observer_is_late()), unless that is left before.
 */
typedef void PmuObserverPrepareFn(void *opaque);

/**
 * typedef PmuObserverGoneFn - the vCPU is unplugged
 * @opaque: as configured
 *
 * The observer is released when this returns.  Called with the big lock held,
 * and not before pmu_observer_new() has returned the observer.
 */
typedef void PmuObserverGoneFn(void *opaque);

/**
 * struct PmuObserverConfig - what an observer is to do
 * @owner: who looks, for query-pmu; outlives the observer
 * @event: what it counts
 * @modes: in which modes
 * @period: after how many events it calls @overflow, at least 1
 * @branches: pmu_observer_branches() is asked for what led there
 * @overflow: called once a period
 * @in_place: @overflow has to see the vCPU as the instruction has left it.
 *            Otherwise up to a block more may have been executed: then no block
 *            is cut at the instruction, and none translated for it.
 * @prepare: called ahead of such a block; may be NULL
 * @gone: called when the vCPU is unplugged
 * @opaque: their argument
 */
typedef struct PmuObserverConfig {
    const char *owner;
    PmuEvent event;
    PmuModes modes;
    uint64_t period;
    bool branches;
    PmuObserverFn *overflow;
    bool in_place;
    PmuObserverPrepareFn *prepare;
    PmuObserverGoneFn *gone;
    void *opaque;
} PmuObserverConfig;

/**
 * pmu_observer_new - begin to observe a vCPU
 * @cpu: the vCPU, which is realized
 * @config: what to do; copied
 * @errp: why it cannot be observed
 *
 * In any thread that holds the big lock, which is given up meanwhile; the vCPU
 * does it between two instructions.
 *
 * Returns: NULL with @errp set if this vCPU cannot be observed, or not by so
 * many, or has been unplugged meanwhile.
 */
PmuObserver *pmu_observer_new(CPUState *cpu, const PmuObserverConfig *config,
                              Error **errp);

/**
 * pmu_observer_free - end to observe
 * @observer: the observer or NULL
 *
 * In any thread that holds the big lock, which is given up meanwhile.  If the
 * vCPU is just being unplugged, this waits for that, and @gone is called.
 */
void pmu_observer_free(PmuObserver *observer);

/**
 * pmu_observer_is_late - whether the block of a period's end has been executed
 * @observer: the observer, in PmuObserverConfig.overflow
 *
 * Returns: whether PmuObserverConfig.prepare was called for this period.
 */
bool pmu_observer_is_late(const PmuObserver *observer);

/**
 * pmu_observer_count - how many events there have been
 * @observer: the observer
 *
 * In the vCPU's thread between instructions, or in any that holds the big lock
 * while the vCPU is stopped.
 *
 * Returns: the events since pmu_observer_new().
 */
uint64_t pmu_observer_count(const PmuObserver *observer);

/**
 * pmu_observer_config - what an observer does
 * @observer: the observer
 *
 * In any thread that holds the big lock.
 */
const PmuObserverConfig *pmu_observer_config(const PmuObserver *observer);

/**
 * pmu_observer_branches - the branches that were taken last
 * @cpu: a vCPU with an observer that asks for them, in its thread between
 *       instructions
 * @branches: set to them, the newest first
 * @max: how many there is room for
 *
 * They are of the modes of all observers that ask for branches.  What the guest
 * records itself is not touched.
 *
 * Returns: how many there are.
 */
unsigned pmu_observer_branches(CPUState *cpu, PmuBranch *branches,
                               unsigned max);

/**
 * pmu_observer_forget_branches - nothing leads from them to what comes
 * @cpu: a vCPU that is being reset, or loaded
 */
void pmu_observer_forget_branches(CPUState *cpu);

/**
 * pmu_observer_set_period - count another period
 * @observer: the observer
 * @period: the period, at least 1; that which has begun is as long already
 *
 * In the vCPU's thread.
 */
void pmu_observer_set_period(PmuObserver *observer, uint64_t period);

/**
 * pmu_observer_next - the observers of a vCPU, one after the other
 * @cpu: the vCPU
 * @observer: the one before, or NULL for the first
 *
 * In any thread that holds the big lock.
 *
 * Returns: NULL after the last.
 */
PmuObserver *pmu_observer_next(CPUState *cpu, const PmuObserver *observer);

#endif /* HW_PMU_PMU_OBSERVER_H */
