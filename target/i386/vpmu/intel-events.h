/*
 * x86 virtual PMU: codes of events on Intel CPUs
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef I386_VPMU_INTEL_EVENTS_H
#define I386_VPMU_INTEL_EVENTS_H

#include "events.h"

/**
 * struct IntelModel - the properties of some of Intel's CPU models
 * @vpmu: their name and codes
 * @family: their display family; 0 for family 6, which nearly all are of
 * @numbers: their display models in it, ended by 0
 * @version: of the architecture, by default; 0 for one that depends on features
 * @extended: whether CPUID leaf 0x23 describes their PMU
 * @told_slots: the number of slots in a cycle, in this leaf
 * @gp_counters: how many general-purpose counters they have by default
 * @slots: how many micro-operations they issue in a cycle; 0 if they have no
 *         events of slots
 * @metrics: whether they have a fixed counter of slots, and MSR_PERF_METRICS
 * @two_levels: whether that has metrics of the second level
 * @lbr: their last branch records; NULL without these
 * @pebs: their event based sampling; NULL without it
 * @offcore: their registers about requests to the last level; NULL without
 *           these, or if they are not modelled
 */
typedef struct IntelModel {
    X86VPmuModel vpmu;
    unsigned family;
    const uint8_t *numbers;
    unsigned version;
    bool extended;
    unsigned told_slots;
    unsigned gp_counters;
    unsigned slots;
    bool metrics;
    bool two_levels;
    const struct X86VPmuLbr *lbr;
    const struct X86VPmuPebs *pebs;
    const struct X86VPmuOffcore *offcore;
} IntelModel;

/**
 * intel_model - find the properties of a CPU model
 * @signature: CPUID leaf 1, EAX
 *
 * Returns: never NULL; a CPU model that is not in the table has the
 * architectural events only.
 */
const IntelModel *intel_model(uint32_t signature);

/**
 * intel_uncounted_events - the architectural events that are not counted
 *                          without a model of the core
 *
 * Returns: the bits for EBX of CPUID leaf 0xA, of which there are
 * INTEL_NR_ARCH_EVENTS.
 */
uint32_t intel_uncounted_events(void);

#define INTEL_NR_ARCH_EVENTS 7

/* The fixed-function counters of all CPUs, and the one after these, of slots */
#define INTEL_NR_FIXED    3
#define INTEL_FIXED_SLOTS 3

/**
 * intel_fixed_events - the events of the fixed-function counters
 */
extern const PmuEvent intel_fixed_events[INTEL_FIXED_SLOTS + 1];

#endif /* I386_VPMU_INTEL_EVENTS_H */
