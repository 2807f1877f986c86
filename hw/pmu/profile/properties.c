/*
 * Performance monitoring unit: properties of profiles
 *
 * All but one can be set only before the object is complete.  Each one is
 * stored at an offset in the object.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-builtin-visit.h"
#include "object.h"

static bool may_change(const PmuProfile *p, Error **errp)
{
    if (p->complete) {
        error_setg(errp, "A profile cannot be changed any more");
    }
    return !p->complete;
}

static void get_string(Object *obj, Visitor *v, const char *name, void *opaque,
                       Error **errp)
{
    char **field = (void *)((char *)obj + GPOINTER_TO_SIZE(opaque));
    g_autofree char *copy = g_strdup(*field ?: "");

    visit_type_str(v, name, &copy, errp);
}

static void set_string(Object *obj, Visitor *v, const char *name, void *opaque,
                       Error **errp)
{
    char **field = (void *)((char *)obj + GPOINTER_TO_SIZE(opaque));
    g_autofree char *value = NULL;

    if (visit_type_str(v, name, &value, errp)
        && may_change(PMU_PROFILE(obj), errp)) {
        g_free(*field);
        *field = g_steal_pointer(&value);
    }
}

static void get_number(Object *obj, Visitor *v, const char *name, void *opaque,
                       Error **errp)
{
    uint64_t *field = (void *)((char *)obj + GPOINTER_TO_SIZE(opaque));

    visit_type_uint64(v, name, field, errp);
}

static void set_number(Object *obj, Visitor *v, const char *name, void *opaque,
                       Error **errp)
{
    uint64_t *field = (void *)((char *)obj + GPOINTER_TO_SIZE(opaque));
    uint64_t value;

    if (visit_type_uint64(v, name, &value, errp)
        && may_change(PMU_PROFILE(obj), errp)) {
        *field = value;
    }
}

/* As set_number(), but allows suffixes, such as 64M */
static void set_size(Object *obj, Visitor *v, const char *name, void *opaque,
                     Error **errp)
{
    uint64_t *field = (void *)((char *)obj + GPOINTER_TO_SIZE(opaque));
    uint64_t value;

    if (visit_type_size(v, name, &value, errp)
        && may_change(PMU_PROFILE(obj), errp)) {
        *field = value;
    }
}

static void get_callchain(Object *obj, Visitor *v, const char *name,
                          void *opaque, Error **errp)
{
    visit_type_uint8(v, name, &PMU_PROFILE(obj)->config.asked.callchain, errp);
}

static void set_callchain(Object *obj, Visitor *v, const char *name,
                          void *opaque, Error **errp)
{
    uint8_t value;

    if (visit_type_uint8(v, name, &value, errp)
        && may_change(PMU_PROFILE(obj), errp)) {
        PMU_PROFILE(obj)->config.asked.callchain = value;
    }
}

static void get_vcpus(Object *obj, Visitor *v, const char *name, void *opaque,
                      Error **errp)
{
    visit_type_uint16List(v, name, &PMU_PROFILE(obj)->vcpus, errp);
}

static void set_vcpus(Object *obj, Visitor *v, const char *name, void *opaque,
                      Error **errp)
{
    PmuProfile *p = PMU_PROFILE(obj);
    uint16List *vcpus;

    if (!visit_type_uint16List(v, name, &vcpus, errp)) {
        return;
    }
    if (may_change(p, errp)) {
        qapi_free_uint16List(p->vcpus);
        p->vcpus = vcpus;
    } else {
        qapi_free_uint16List(vcpus);
    }
}

static int get_accounting(Object *obj, Error **errp)
{
    return PMU_PROFILE(obj)->config.asked.accounting;
}

static void set_accounting(Object *obj, int accounting, Error **errp)
{
    if (may_change(PMU_PROFILE(obj), errp)) {
        PMU_PROFILE(obj)->config.asked.accounting = accounting;
    }
}

static bool get_branch_stack(Object *obj, Error **errp)
{
    return PMU_PROFILE(obj)->config.asked.branch_stack;
}

static void set_branch_stack(Object *obj, bool value, Error **errp)
{
    if (may_change(PMU_PROFILE(obj), errp)) {
        PMU_PROFILE(obj)->config.asked.branch_stack = value;
    }
}

static bool get_data_address(Object *obj, Error **errp)
{
    return PMU_PROFILE(obj)->config.asked.data_address;
}

static void set_data_address(Object *obj, bool value, Error **errp)
{
    if (may_change(PMU_PROFILE(obj), errp)) {
        PMU_PROFILE(obj)->config.asked.data_address = value;
    }
}

/* The properties that can be set only before the object is complete */
static const struct {
    const char *name;
    const char *type;
    ObjectPropertyAccessor *get, *set;
    size_t offset;
    const char *description;
} properties[] = {
    { "event", "str", get_string, set_string,
      offsetof(PmuProfile, config.asked.event), "The event that is counted" },
    { "period", "uint64", get_number, set_number,
      offsetof(PmuProfile, config.asked.period),
      "Events from one sample to the next" },
    { "frequency", "uint64", get_number, set_number,
      offsetof(PmuProfile, config.asked.frequency),
      "Samples a second, to which the period is adapted" },
    { "modes", "str", get_string, set_string,
      offsetof(PmuProfile, config.asked.modes),
      "Modes, as letters of perf's: u, k, G, H" },
    { "vcpus", "uint16List", get_vcpus, set_vcpus, 0,
      "vCPUs by their numbers" },
    { "callchain", "uint8", get_callchain, set_callchain, 0,
      "The most callers of a sample" },
    { "max-size", "size", get_number, set_size,
      offsetof(PmuProfile, writer.max_size),
      "Where the stream ends, in bytes" },
    { "file", "str", get_string, set_string, offsetof(PmuProfile, file),
      "A new file, or a pipe" },
    { "chardev", "str", get_string, set_string, offsetof(PmuProfile, chardev),
      "The ID of a chardev; with its own ID, the profile is one" },
    { "kernel-text", "uint64", get_number, set_number,
      offsetof(PmuProfile, kernel_text),
      "Address of the guest kernel's symbol _stext" },
    { "build-id", "str", get_string, set_string,
      offsetof(PmuProfile, build_id), "Build id of the guest's kernel" },
    { "samples", "uint64", get_number, NULL,
      offsetof(PmuProfile, writer.samples),
      "Samples that were written" },
    { "lost", "uint64", get_number, NULL, offsetof(PmuProfile, writer.lost),
      "Samples for which there was no room" },
    { "throttled", "uint64", get_number, NULL,
      offsetof(PmuProfile, writer.throttled),
      "How often the host took no samples for a while" },
    { "size", "size", get_number, NULL, offsetof(PmuProfile, writer.size),
      "Bytes that were written" },
};

void pmu_profile_add_properties(ObjectClass *oc)
{
    for (unsigned i = 0; i < ARRAY_SIZE(properties); i++) {
        object_class_property_add(oc, properties[i].name, properties[i].type,
                                  properties[i].get, properties[i].set, NULL,
                                  GSIZE_TO_POINTER(properties[i].offset));
        object_class_property_set_description(oc, properties[i].name,
                                              properties[i].description);
    }
    object_class_property_add_enum(oc, "accounting", "PmuAccounting",
                                   &PmuAccounting_lookup, get_accounting,
                                   set_accounting);
    object_class_property_set_description(oc, "accounting",
        "What is counted: what the guest does, or also what is done for it");
    object_class_property_add_bool(oc, "branch-stack", get_branch_stack,
                                   set_branch_stack);
    object_class_property_set_description(oc, "branch-stack",
        "Whether samples have the branches that were taken last");
    object_class_property_add_bool(oc, "data-address", get_data_address,
                                   set_data_address);
    object_class_property_set_description(oc, "data-address",
        "Whether samples have the address of the data that was accessed");
}
