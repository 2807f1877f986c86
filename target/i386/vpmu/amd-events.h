/*
 * x86 virtual PMU: AMD's CPU models and codes of events
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef I386_VPMU_AMD_EVENTS_H
#define I386_VPMU_AMD_EVENTS_H

#include "events.h"

/**
 * struct AmdRange - a range of CPU models, in the order of their numbers
 * @first: family << 8 | model of the first
 * @last: the same of the last; 0 ends a list
 */
typedef struct AmdRange {
    uint16_t first, last;
} AmdRange;

/**
 * struct AmdModel - the properties of a microarchitecture
 * @vpmu: its name and codes
 * @ranges: its CPU models
 * @select_ext: PERF_CTL has the upper bits of an event's number, and GuestOnly
 *              and HostOnly
 * @core_ext: there are six counters, with registers of their own
 *            (PerfCtrExtCore)
 * @global: there are PerfCntrGlobal* registers (PerfMonV2)
 * @lbr: its branch records (LbrExtV2); NULL without these
 */
typedef struct AmdModel {
    X86VPmuModel vpmu;
    const AmdRange *ranges;
    bool select_ext;
    bool core_ext;
    bool global;
    const struct X86VPmuLbr *lbr;
} AmdModel;

/**
 * amd_model - find the microarchitecture of a CPU model
 * @signature: CPUID leaf 1, EAX
 *
 * Returns: never NULL.
 */
const AmdModel *amd_model(uint32_t signature);

#endif /* I386_VPMU_AMD_EVENTS_H */
