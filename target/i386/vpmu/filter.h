/*
 * x86 virtual PMU: the events that a guest may count
 *
 * hw/pmu/pmu-filter.h for the codes of x86.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef I386_VPMU_FILTER_H
#define I386_VPMU_FILTER_H

#include "hw/pmu/pmu-filter.h"
#include "events.h"

/**
 * struct X86VPmuFilterEntry - an entry, converted from any format
 * @select: the event select
 * @match: the value of the unit mask in the bits of @mask
 * @mask: those bits
 * @exclude: the entry removes events from the list
 */
typedef struct X86VPmuFilterEntry {
    uint16_t select;
    uint8_t match;
    uint8_t mask;
    bool exclude;
} X86VPmuFilterEntry;

/**
 * x86_vpmu_filter_entry - the events that an entry names
 * @entry: the entry, in any format
 */
X86VPmuFilterEntry x86_vpmu_filter_entry(const KvmPmuFilterEvent *entry);

/**
 * x86_vpmu_take_filter - get the filter of the machine's CPUs
 * @filter: set to the filter, or to NULL if the machine has no filter
 * @errp: the error in it
 *
 * As pmu_filter_take().
 */
bool x86_vpmu_take_filter(const PmuFilter **filter, Error **errp);

/**
 * x86_vpmu_filter_allows - whether this event may be counted
 * @filter: x86_vpmu_take_filter()
 * @code: X86_VPMU_CODE()
 */
bool x86_vpmu_filter_allows(const PmuFilter *filter, uint32_t code);

#endif /* I386_VPMU_FILTER_H */
