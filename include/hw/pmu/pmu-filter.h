/*
 * Performance monitoring unit: what a guest may count
 *
 * A filter is an object of the user's, with the properties of
 * KvmPmuFilterProperties in qapi/pmu.json.  The accelerator's property
 * pmu-filter names the one of the machine.  KVM is given it, and otherwise the
 * faces ask it whenever a counter's event is selected: what is not allowed
 * counts nothing, as PMU_EVENT_NONE, and is otherwise no different.
 *
 * This is the object and its list.  What the code of an event means is known
 * to the face.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_FILTER_H
#define HW_PMU_PMU_FILTER_H

#include "qapi/qapi-types-pmu.h"
#include "qom/object.h"

#define TYPE_PMU_FILTER "kvm-pmu-filter"
OBJECT_DECLARE_SIMPLE_TYPE(PmuFilter, PMU_FILTER)

/**
 * PMU_FILTER_MAX_EVENTS - the most entries of a filter; KVM takes no more
 */
#define PMU_FILTER_MAX_EVENTS 300

/**
 * PMU_FILTER_MAX_X86_SELECT - the highest event select; AMD's have 12 bits
 */
#define PMU_FILTER_MAX_X86_SELECT 0xfff

/**
 * struct PmuFilter - what a guest may count
 * @action: whether what is listed is allowed or denied
 * @fixed: bit mask of the x86 fixed-function counters in the list
 * @events: the events in the list; checked as far as they can be without
 *          knowing the machine
 * @in_use: a machine has taken it; it does not change any more
 */
struct PmuFilter {
    Object parent_obj;
    KvmPmuFilterAction action;
    uint32_t fixed;
    KvmPmuFilterEventList *events;
    bool in_use;
};

/**
 * PmuFilterCheckFn - does an entry make sense for this architecture?
 * @entry: the entry
 * @errp: why it does not, and what is allowed
 *
 * Returns: false with @errp set if it does not.
 */
typedef bool PmuFilterCheckFn(const KvmPmuFilterEvent *entry, Error **errp);

/**
 * PmuFilterMatchFn - does an entry name this event?
 * @entry: the entry; PmuFilterCheckFn has found it good
 * @code: the event's code, as the caller of pmu_filter_allows() has it
 */
typedef bool PmuFilterMatchFn(const KvmPmuFilterEvent *entry, uint64_t code);

/**
 * pmu_filter_add_property - let an accelerator have a filter
 * @accel: the class of an accelerator, whose instances begin with AccelState
 *
 * Where no PMU is built in there is no property either.
 */
void pmu_filter_add_property(ObjectClass *accel);

/**
 * pmu_filter_take - the filter of the machine, for good
 * @filter: is set to it, and to NULL if there is none
 * @check: is asked for each entry
 * @errp: what is wrong with one
 *
 * Called while CPUs are created, with the big lock held.  From then on the
 * filter cannot be changed or removed.
 *
 * Returns: false with @errp set if an entry does not make sense here.
 */
bool pmu_filter_take(const PmuFilter **filter, PmuFilterCheckFn *check,
                     Error **errp);

/**
 * pmu_filter_allows - may this event be counted?
 * @filter: the filter; NULL allows everything
 * @matches: does an entry name it?
 * @code: its code, for @matches
 *
 * It is in the list if an entry names it and no entry excludes it.  Any thread.
 */
bool pmu_filter_allows(const PmuFilter *filter, PmuFilterMatchFn *matches,
                       uint64_t code);

/**
 * pmu_filter_allows_fixed - may this x86 fixed-function counter count?
 * @filter: the filter; NULL allows everything
 * @i: the counter, 0 to 31
 *
 * Any thread.
 */
bool pmu_filter_allows_fixed(const PmuFilter *filter, unsigned i);

#endif /* HW_PMU_PMU_FILTER_H */
