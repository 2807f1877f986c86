/*
 * Performance monitoring unit: the observers of a vCPU
 *
 * For the code that creates a vCPU's counters (pmu-cpu.c).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_OBSERVER_INTERNAL_H
#define HW_PMU_PMU_OBSERVER_INTERNAL_H

#include "hw/pmu/pmu-observer.h"
#include "hw/pmu/pmu-share.h"

typedef struct PmuObservers PmuObservers;

/**
 * pmu_observers_new - create a set of observers, empty
 * @share: the vCPU's engine
 */
PmuObservers *pmu_observers_new(PmuShare *share);

/**
 * pmu_observers_free - release all observers, and call their gone functions
 * @all: the observers or NULL
 */
void pmu_observers_free(PmuObservers *all);

/**
 * pmu_observers_rebase - call pmu_rebase() after tallies were loaded
 * @all: the observers or NULL
 */
void pmu_observers_rebase(PmuObservers *all);

/**
 * pmu_observers_can_wait - whether a block can be executed as it is
 * @all: the observers, directly after a fold
 * @mode: the mode of the block
 * @events: the most events of a kind in it
 * @due: set to the observer whose period may end in it, or to NULL if none does
 *
 * Returns: false if one has to be called within the block, or if more than one
 * would have to be called after the block, or one more than once.
 */
bool pmu_observers_can_wait(const PmuObservers *all, unsigned mode,
                            uint64_t events, const PmuObserver **due);

/**
 * pmu_observers_called - the observer that is being called
 * @all: the observers, in the vCPU's thread, or NULL
 *
 * Returns: NULL while no observer is being called.
 */
const PmuObserver *pmu_observers_called(const PmuObservers *all);

/**
 * pmu_observer_prepare - call PmuObserverConfig.prepare before a block
 * @observer: the observer whose period ends in it
 *
 * In the vCPU's thread.
 */
void pmu_observer_prepare(const PmuObserver *observer);

/**
 * pmu_observer_distance - the number of events left of a period
 * @observer: the observer
 *
 * In the vCPU's thread.
 */
uint64_t pmu_observer_distance(const PmuObserver *observer);

#endif /* HW_PMU_PMU_OBSERVER_INTERNAL_H */
