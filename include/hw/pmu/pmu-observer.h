/*
 * Performance monitoring unit: counters that the guest cannot see
 *
 * An observer counts an event of a vCPU in some modes, for a user who looks at
 * the guest from outside, and calls back once a period.  It is as exact as the
 * guest's own counters and has no skid.  No register shows it, the guest cannot
 * freeze or reset it, and it does not migrate.  The guest counts the same, and
 * is interrupted at the same instructions, with it and without.
 *
 * There can be observers on every vCPU whose architecture describes its guests
 * (hw/pmu/pmu-guest.h), with a PMU or without, if the PMU is emulated.
 *
 * Where the guest's cycles follow time (pmu-cycles=time), they are attributed
 * to modes whenever they are read, and an observer of cycles reads them more
 * often.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_OBSERVER_H
#define HW_PMU_PMU_OBSERVER_H

#include "hw/core/cpu.h"
#include "hw/pmu/pmu.h"
#include "hw/pmu/pmu-core.h"
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
 * typedef PmuObserverFn - the function that an observer calls once a period
 * @opaque: as configured
 * @observer: the observer, which pmu_observer_new() may not have returned yet
 * @events: how many events this call is for: the period, or several periods
 *          if a single instruction is that many events
 *
 * Called in the vCPU's thread after the instruction of the last event, or
 * after the rest of its block (PmuObserverConfig.in_place); pmu_tcg_where()
 * returns which instruction that is.  May change its own period; must not add
 * or remove observers.
 */
typedef void PmuObserverFn(void *opaque, PmuObserver *observer,
                           uint64_t events);

/**
 * typedef PmuObserverPrepareFn - the function called before a late period end
 * @opaque: as configured
 *
 * A period ends in the next block.  Called in the vCPU's thread between
 * instructions, before a block that is going to be executed to its end, which
 * may be a switch to another address space: read the current task now.
 * PmuObserverFn follows after the block (pmu_observer_is_late()), unless the
 * block is left before its end.
 */
typedef void PmuObserverPrepareFn(void *opaque);

/**
 * typedef PmuObserverGoneFn - the function called when the vCPU is unplugged
 * @opaque: as configured
 *
 * The observer is released when this returns.  Called with the big lock held,
 * and not before pmu_observer_new() has returned the observer.
 */
typedef void PmuObserverGoneFn(void *opaque);

/**
 * struct PmuObserverConfig - the configuration of an observer
 * @owner: the name of its user, for query-pmu; outlives the observer
 * @event: the event that it counts
 * @modes: in which modes
 * @period: after how many events it calls @overflow, at least 1
 * @branches: @overflow uses pmu_observer_branches()
 * @addresses: @overflow uses pmu_observer_access(); needs @in_place
 * @overflow: called once a period
 * @in_place: @overflow has to see the vCPU as the instruction has left it.
 *            Otherwise the rest of a block may be executed first: then no block
 *            is cut at the instruction, and none is translated for it.
 * @prepare: called before such a block; may be NULL
 * @gone: called when the vCPU is unplugged
 * @opaque: their argument
 */
typedef struct PmuObserverConfig {
    const char *owner;
    PmuEvent event;
    PmuModes modes;
    uint64_t period;
    bool branches;
    bool addresses;
    PmuObserverFn *overflow;
    bool in_place;
    PmuObserverPrepareFn *prepare;
    PmuObserverGoneFn *gone;
    void *opaque;
} PmuObserverConfig;

/**
 * pmu_observer_new - begin to observe a vCPU
 * @cpu: the vCPU, which is realized
 * @config: the configuration; copied
 * @errp: why it cannot be observed
 *
 * In any thread that holds the big lock, which is released meanwhile; the vCPU
 * adds the observer between two instructions.
 *
 * Returns: NULL with @errp set if this vCPU cannot be observed, has
 * PMU_MAX_OBSERVERS already, or has been unplugged meanwhile.
 */
PmuObserver *pmu_observer_new(CPUState *cpu, const PmuObserverConfig *config,
                              Error **errp);

/**
 * pmu_observer_free - stop observing
 * @observer: the observer or NULL
 *
 * In any thread that holds the big lock, which is released meanwhile.  If the
 * vCPU is being unplugged, this waits until it is gone, and @gone is called.
 */
void pmu_observer_free(PmuObserver *observer);

/**
 * pmu_observer_is_late - whether @overflow is called after the rest of a block
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
 * pmu_observer_config - the configuration of an observer
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
 * @max: the number of elements of @branches
 *
 * These are branches in the modes of all observers that ask for branches.  The
 * guest's own records are not touched.
 *
 * Returns: how many there are.
 */
unsigned pmu_observer_branches(CPUState *cpu, PmuBranch *branches,
                               unsigned max);

/**
 * pmu_observer_access - the access to data of the instruction that overflowed
 * @cpu: a vCPU with an observer that asks for addresses, in its overflow
 * @access: set to the access
 *
 * Returns: false if the instruction accessed no data, or did so in a helper, or
 * if it is not known.
 */
bool pmu_observer_access(CPUState *cpu, PmuAccess *access);

/**
 * pmu_observer_forget_branches - forget the branches before a jump of state
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
