/*
 * Performance monitoring unit: the observers of a vCPU
 *
 * For the code that gives a vCPU its counters (pmu-cpu.c).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_OBSERVER_INTERNAL_H
#define HW_PMU_PMU_OBSERVER_INTERNAL_H

#include "hw/pmu/pmu-observer.h"
#include "hw/pmu/pmu-share.h"

typedef struct PmuObservers PmuObservers;

/**
 * pmu_observers_new - make room for observers
 * @share: the vCPU's engine
 */
PmuObservers *pmu_observers_new(PmuShare *share);

/**
 * pmu_observers_free - release all, and tell those who look
 * @all: the observers or NULL
 */
void pmu_observers_free(PmuObservers *all);

/**
 * pmu_observers_rebase - tallies were loaded, see pmu_rebase()
 * @all: the observers or NULL
 */
void pmu_observers_rebase(PmuObservers *all);

/**
 * pmu_observers_can_wait - whether a block can be executed as it is
 * @all: the observers, directly behind a fold
 * @mode: the mode of the block
 * @events: the most events of a kind in it
 * @due: set to the observer whose period may end in it, or to NULL if none does
 *
 * Returns: false if one has to be called within the block, or more than one
 * would have to be behind it, or one more than once.
 */
bool pmu_observers_can_wait(const PmuObservers *all, unsigned mode,
                            uint64_t events, const PmuObserver **due);

/**
 * pmu_observers_called - which observer is being called
 * @all: the observers, in the vCPU's thread, or NULL
 *
 * Returns: NULL if none is.
 */
const PmuObserver *pmu_observers_called(const PmuObservers *all);

/**
 * pmu_observer_prepare - a block comes next that is executed to its end
 * @observer: the observer whose period ends in it
 *
 * In the vCPU's thread.
 */
void pmu_observer_prepare(const PmuObserver *observer);

/**
 * pmu_observer_distance - how many events are left of its period
 * @observer: the observer, which has one
 *
 * In the vCPU's thread.
 */
uint64_t pmu_observer_distance(const PmuObserver *observer);

#endif /* HW_PMU_PMU_OBSERVER_INTERNAL_H */
