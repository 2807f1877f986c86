/*
 * Performance monitoring unit: the observers of a vCPU
 *
 * For the code that gives a vCPU its counters (pmu-cpu.c).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_OBSERVER_INTERNAL_H
#define HW_PMU_PMU_OBSERVER_INTERNAL_H

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

#endif /* HW_PMU_PMU_OBSERVER_INTERNAL_H */
