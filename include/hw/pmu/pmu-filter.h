/*
 * Performance monitoring unit: the events that a guest may count
 *
 * A filter is an object that the user creates, with the properties of
 * KvmPmuFilterProperties in qapi/pmu.json.  The accelerator's property
 * pmu-filter names the one of the machine.  Under KVM, QEMU passes it to the
 * kernel; otherwise the faces check it whenever a counter's event is selected.
 * A counter of a denied event counts nothing, as with PMU_EVENT_NONE, and
 * otherwise behaves like any other.
 *
 * This is the object and its list.  The face interprets the codes of events.
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
 * struct PmuFilter - the events that a guest may count
 * @action: whether the listed events are allowed or denied
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
 * PmuFilterCheckFn - check that an entry makes sense for this architecture
 * @entry: the entry
 * @errp: why it does not, and the allowed values
 *
 * Returns: false with @errp set if it does not.
 */
typedef bool PmuFilterCheckFn(const KvmPmuFilterEvent *entry, Error **errp);

/**
 * PmuFilterMatchFn - whether an entry names this event
 * @entry: the entry, which PmuFilterCheckFn has accepted
 * @code: the event's code, as passed to pmu_filter_allows()
 */
typedef bool PmuFilterMatchFn(const KvmPmuFilterEvent *entry, uint64_t code);

/**
 * pmu_filter_add_property - add the property pmu-filter to an accelerator
 * @accel: the class of an accelerator, whose instances begin with AccelState
 *
 * Does nothing if no PMU is built in.
 */
void pmu_filter_add_property(ObjectClass *accel);

/**
 * pmu_filter_take - get the filter of the machine, and keep it from changing
 * @filter: set to the filter, or to NULL if the machine has no filter
 * @check: called for each entry
 * @errp: the error in an entry
 *
 * Called while CPUs are created, with the big lock held.  From then on the
 * filter cannot be changed or removed.
 *
 * Returns: false with @errp set if an entry does not make sense here.
 */
bool pmu_filter_take(const PmuFilter **filter, PmuFilterCheckFn *check,
                     Error **errp);

/**
 * pmu_filter_allows - whether this event may be counted
 * @filter: the filter; NULL allows everything
 * @matches: whether an entry names the event
 * @code: the event's code, for @matches
 *
 * It is in the list if an entry names it and no entry excludes it.  Any thread.
 */
bool pmu_filter_allows(const PmuFilter *filter, PmuFilterMatchFn *matches,
                       uint64_t code);

/**
 * pmu_filter_allows_fixed - whether this x86 fixed-function counter may count
 * @filter: the filter; NULL allows everything
 * @i: the counter, 0 to 31
 *
 * Any thread.
 */
bool pmu_filter_allows_fixed(const PmuFilter *filter, unsigned i);

#endif /* HW_PMU_PMU_FILTER_H */
