/*
 * Performance monitoring unit: perf's names of events
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_PERF_EVENTS_H
#define HW_PMU_PROFILE_PERF_EVENTS_H

#include "hw/pmu/pmu.h"

/* The type of events that are selected by a code */
#define PMU_PERF_TYPE_RAW 4

/**
 * pmu_perf_event - find perf's type and config of an event
 * @event: the event
 * @type: is set to the type of struct perf_event_attr
 * @config: is set to its config
 *
 * Returns: false if perf has no name for it.
 */
bool pmu_perf_event(PmuEvent event, uint32_t *type, uint64_t *config);

#endif /* HW_PMU_PROFILE_PERF_EVENTS_H */
