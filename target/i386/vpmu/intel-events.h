/*
 * x86 virtual PMU: which codes stand for which events on Intel CPUs
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef I386_VPMU_INTEL_EVENTS_H
#define I386_VPMU_INTEL_EVENTS_H

#include "hw/pmu/pmu.h"

/**
 * struct IntelEvent - a code and what it counts
 * @code: unit mask << 8 | event select; 0 ends a table
 * @event: the event
 */
typedef struct IntelEvent {
    uint16_t code;
    PmuEvent event;
} IntelEvent;

/**
 * struct IntelModel - what is particular to some CPU models
 * @name: of the microarchitecture
 * @numbers: their display models in family 6, ended by 0
 * @events: their tables of codes, besides the architectural one
 * @gp_counters: how many general-purpose counters they have by default
 */
typedef struct IntelModel {
    const char *name;
    const uint8_t *numbers;
    const IntelEvent *const *events;
    unsigned gp_counters;
} IntelModel;

/**
 * intel_model - what is known about a CPU model
 * @signature: CPUID leaf 1, EAX
 *
 * Returns: never NULL; a CPU about which nothing is known has the
 * architectural events only.
 */
const IntelModel *intel_model(uint32_t signature);

/**
 * intel_event - what a code counts
 * @model: on which CPU
 * @code: unit mask << 8 | event select
 *
 * Returns: the event, or PMU_EVENT_NONE.
 */
PmuEvent intel_event(const IntelModel *model, uint16_t code);

/**
 * intel_unavailable_events - the architectural events that are not counted
 *
 * Returns: the bits for EBX of CPUID leaf 0xA, of which there are
 * INTEL_NR_ARCH_EVENTS.
 */
uint32_t intel_unavailable_events(void);

#define INTEL_NR_ARCH_EVENTS 7

/**
 * intel_fixed_events - what the fixed-function counters count
 */
#define INTEL_NR_FIXED 3
extern const PmuEvent intel_fixed_events[INTEL_NR_FIXED];

#endif /* I386_VPMU_INTEL_EVENTS_H */
