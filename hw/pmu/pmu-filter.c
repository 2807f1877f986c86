/*
 * Performance monitoring unit: the events that a guest may count
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/accel.h"
#include "qapi/error.h"
#include "qapi/qapi-visit-pmu.h"
#include "qom/object_interfaces.h"
#include "hw/pmu/pmu-filter.h"
#include "hw/pmu/compat.h"

/*
 * The list
 */

static bool excludes(const KvmPmuFilterEvent *entry)
{
    return entry->format == KVM_PMU_EVENT_FORMAT_X86_MASKED_ENTRY
           && entry->u.x86_masked_entry.exclude;
}

static bool is_listed(const PmuFilter *filter, PmuFilterMatchFn *matches,
                      uint64_t code)
{
    bool listed = false;

    for (KvmPmuFilterEventList *e = filter->events; e; e = e->next) {
        if (matches(e->value, code)) {
            if (excludes(e->value)) {
                return false;
            }
            listed = true;
        }
    }
    return listed;
}

bool pmu_filter_allows(const PmuFilter *filter, PmuFilterMatchFn *matches,
                       uint64_t code)
{
    return !filter || is_listed(filter, matches, code)
                      == (filter->action == KVM_PMU_FILTER_ACTION_ALLOW);
}

bool pmu_filter_allows_fixed(const PmuFilter *filter, unsigned i)
{
    return !filter || (filter->fixed >> i & 1)
                      == (filter->action == KVM_PMU_FILTER_ACTION_ALLOW);
}

/*
 * The filter of the machine
 */

void pmu_filter_add_property(ObjectClass *accel)
{
    object_class_property_add_link(accel, "pmu-filter", TYPE_PMU_FILTER,
                                   offsetof(AccelState, pmu_filter),
                                   object_property_allow_set_link,
                                   OBJ_PROP_LINK_STRONG);
    object_class_property_set_description(accel, "pmu-filter",
        "What guests may count: the ID of a kvm-pmu-filter object");
}

bool pmu_filter_take(const PmuFilter **filter, PmuFilterCheckFn *check,
                     Error **errp)
{
    ERRP_GUARD();
    Object *obj = current_accel()->pmu_filter;
    PmuFilter *f = obj ? PMU_FILTER(obj) : NULL;

    *filter = f;
    if (f) {
        for (KvmPmuFilterEventList *e = f->events; e; e = e->next) {
            if (!check(e->value, errp)) {
                error_prepend(errp, "The filter %s: ",
                              object_get_canonical_path_component(obj));
                return false;
            }
        }
        f->in_use = true;
    }
    return true;
}

/*
 * The object
 */

static bool may_change(const PmuFilter *f, Error **errp)
{
    if (f->in_use) {
        error_setg(errp, "A filter that is in use cannot be changed");
    }
    return !f->in_use;
}

static int get_action(Object *obj, Error **errp)
{
    return PMU_FILTER(obj)->action;
}

static void set_action(Object *obj, int action, Error **errp)
{
    if (may_change(PMU_FILTER(obj), errp)) {
        PMU_FILTER(obj)->action = action;
    }
}

static void get_fixed(Object *obj, Visitor *v, const char *name, void *opaque,
                      Error **errp)
{
    visit_type_uint32(v, name, &PMU_FILTER(obj)->fixed, errp);
}

static void set_fixed(Object *obj, Visitor *v, const char *name, void *opaque,
                      Error **errp)
{
    uint32_t fixed;

    if (visit_type_uint32(v, name, &fixed, errp)
        && may_change(PMU_FILTER(obj), errp)) {
        PMU_FILTER(obj)->fixed = fixed;
    }
}

static void get_events(Object *obj, Visitor *v, const char *name,
                       void *opaque, Error **errp)
{
    visit_type_KvmPmuFilterEventList(v, name, &PMU_FILTER(obj)->events, errp);
}

static bool check_select(uint16_t select, Error **errp)
{
    ERRP_GUARD();

    if (select > PMU_FILTER_MAX_X86_SELECT) {
        error_setg(errp, "select 0x%x is out of range", select);
        error_append_hint(errp, "Allowed: up to 0x%x.\n",
                          PMU_FILTER_MAX_X86_SELECT);
        return false;
    }
    return true;
}

static bool check_masked(const KvmPmuX86MaskedEntry *entry, Error **errp)
{
    ERRP_GUARD();

    if (entry->match & ~entry->mask) {
        error_setg(errp, "no unit mask gives 0x%x after a logical AND with "
                   "0x%x", entry->match, entry->mask);
        error_append_hint(errp, "The bits of match must be set in mask.\n");
        return false;
    }
    return check_select(entry->select, errp);
}

/* Find errors that do not depend on the machine; PmuFilterCheckFn does more. */
static bool check_entry(const KvmPmuFilterEvent *entry, Error **errp)
{
    switch (entry->format) {
    case KVM_PMU_EVENT_FORMAT_X86_SELECT_UMASK:
        return check_select(entry->u.x86_select_umask.select, errp);
    case KVM_PMU_EVENT_FORMAT_X86_MASKED_ENTRY:
        return check_masked(&entry->u.x86_masked_entry, errp);
    default:
        return true;
    }
}

static bool check_events(const KvmPmuFilterEventList *events, Error **errp)
{
    unsigned n = 0;

    for (; events; events = events->next) {
        if (!check_entry(events->value, errp)) {
            return false;
        }
        n++;
    }
    if (n > PMU_FILTER_MAX_EVENTS) {
        error_setg(errp, "A filter has at most %d events, not %u",
                   PMU_FILTER_MAX_EVENTS, n);
    }
    return n <= PMU_FILTER_MAX_EVENTS;
}

static void set_events(Object *obj, Visitor *v, const char *name,
                       void *opaque, Error **errp)
{
    PmuFilter *f = PMU_FILTER(obj);
    KvmPmuFilterEventList *events, *unused;

    if (!visit_type_KvmPmuFilterEventList(v, name, &events, errp)) {
        return;
    }
    unused = events;
    if (check_events(events, errp) && may_change(f, errp)) {
        unused = f->events;
        f->events = events;
    }
    qapi_free_KvmPmuFilterEventList(unused);
}

static void finalize_filter(Object *obj)
{
    qapi_free_KvmPmuFilterEventList(PMU_FILTER(obj)->events);
}

static bool can_be_deleted(UserCreatable *uc)
{
    return !PMU_FILTER(uc)->in_use;
}

static void init_class(ObjectClass *oc, ClassData *data)
{
    USER_CREATABLE_CLASS(oc)->can_be_deleted = can_be_deleted;
    object_class_property_add_enum(oc, "action", "KvmPmuFilterAction",
                                   &KvmPmuFilterAction_lookup,
                                   get_action, set_action);
    object_class_property_set_description(oc, "action",
        "Whether what is listed is allowed or denied");
    object_class_property_add(oc, "x86-fixed-counter", "uint32",
                              get_fixed, set_fixed, NULL, NULL);
    object_class_property_set_description(oc, "x86-fixed-counter",
        "Bit mask of the fixed-function counters in the list");
    object_class_property_add(oc, "events", "KvmPmuFilterEvent",
                              get_events, set_events, NULL, NULL);
    object_class_property_set_description(oc, "events",
        "The events in the list");
}

static const TypeInfo filter_type = {
    .name = TYPE_PMU_FILTER,
    .parent = TYPE_OBJECT,
    .instance_size = sizeof(PmuFilter),
    .instance_finalize = finalize_filter,
    .class_init = init_class,
    .interfaces = (InterfaceInfo[]) {
        { TYPE_USER_CREATABLE },
        { }
    },
};

static void register_filter_type(void)
{
    type_register_static(&filter_type);
}

type_init(register_filter_type)
