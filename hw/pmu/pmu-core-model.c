/*
 * Performance monitoring unit: the object that describes a model of a core
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-builtin-visit.h"
#include "qapi/qapi-types-pmu.h"
#include "qom/object_interfaces.h"
#include "hw/pmu/compat.h"
#include "hw/pmu/pmu-core-model.h"

OBJECT_DECLARE_SIMPLE_TYPE(PmuCoreObject, PMU_CORE)

/* A size or a cost that the user may give in place of the preset's */
typedef struct Number {
    const char *name;
    size_t offset;
    bool is_wide;
    bool is_size;
    const char *description;
} Number;

#define FIELD(field) offsetof(PmuCoreModel, field)
#define SIZE(name, field, what) { name, FIELD(field), true, true, what }
#define BYTES(name, field, what) { name, FIELD(field), false, true, what }
#define COUNT(name, field, what) { name, FIELD(field), false, false, what }

static const Number numbers[] = {
    SIZE("l1i-size", geometry.l1i.size, "Size of the cache"),
    COUNT("l1i-ways", geometry.l1i.ways, "Lines of each set"),
    BYTES("l1i-line", geometry.l1i.line, "Size of each line"),
    SIZE("l1d-size", geometry.l1d.size, "Size of the cache"),
    COUNT("l1d-ways", geometry.l1d.ways, "Lines of each set"),
    BYTES("l1d-line", geometry.l1d.line, "Size of each line"),
    SIZE("llc-size", geometry.last.size, "Size of the cache"),
    COUNT("llc-ways", geometry.last.ways, "Lines of each set"),
    BYTES("llc-line", geometry.last.line, "Size of each line"),
    COUNT("itlb-entries", geometry.itlb.entries, "Number of pages"),
    COUNT("itlb-ways", geometry.itlb.ways, "Entries of each set"),
    COUNT("dtlb-entries", geometry.dtlb.entries, "Number of pages"),
    COUNT("dtlb-ways", geometry.dtlb.ways, "Entries of each set"),
    BYTES("page-size", geometry.page, "Size of all pages"),
    COUNT("branch-history", geometry.history,
          "Outcomes that select a prediction"),
    COUNT("branch-address", geometry.places,
          "Bits of an address that select a prediction"),
    COUNT("branch-targets", geometry.targets,
          "Indirect branches that are remembered"),
    COUNT("branch-returns", geometry.returns,
          "Calls that are remembered, or 0"),
    COUNT("insn-cycles", penalties.insn, "Cycles of each instruction"),
    COUNT("l1-cycles", penalties.l1, "Cycles of a first-level miss"),
    COUNT("llc-cycles", penalties.last,
          "Further cycles of a last-level miss"),
    COUNT("tlb-cycles", penalties.tlb, "Further cycles of a TLB miss"),
    COUNT("branch-cycles", penalties.branch, "Cycles of a wrong prediction"),
};

/**
 * struct PmuCoreObject - the object
 * @preset: the name of the preset, as given
 * @state: whose the contents are
 * @given: which of @numbers the user has given
 * @values: and their values
 * @complete: whether @model is valid; then nothing can be changed
 * @in_use: whether a CPU has named it
 * @model: the result
 */
struct PmuCoreObject {
    Object parent_obj;
    char *preset;
    PmuCoreState state;
    uint64_t given;
    uint64_t values[ARRAY_SIZE(numbers)];
    bool complete;
    bool in_use;
    PmuCoreModel model;
};

static bool may_change(const PmuCoreObject *o, Error **errp)
{
    if (o->complete) {
        error_setg(errp, "A pmu-core cannot be changed any more");
    }
    return !o->complete;
}

/*
 * Numbers
 */

static uint64_t get_field(const PmuCoreModel *model, const Number *n)
{
    const void *field = (const char *)model + n->offset;

    return n->is_wide ? *(const uint64_t *)field : *(const uint32_t *)field;
}

static void set_field(PmuCoreModel *model, const Number *n, uint64_t value)
{
    void *field = (char *)model + n->offset;

    if (n->is_wide) {
        *(uint64_t *)field = value;
    } else {
        *(uint32_t *)field = value;
    }
}

static void get_number(Object *obj, Visitor *v, const char *name, void *opaque,
                       Error **errp)
{
    const PmuCoreObject *o = PMU_CORE(obj);
    const Number *n = opaque;
    uint64_t value = o->complete ? get_field(&o->model, n)
                                 : o->values[n - numbers];

    visit_type_uint64(v, name, &value, errp);
}

static void set_number(Object *obj, Visitor *v, const char *name, void *opaque,
                       Error **errp)
{
    PmuCoreObject *o = PMU_CORE(obj);
    const Number *n = opaque;
    uint64_t value;

    if (!(n->is_size ? visit_type_size : visit_type_uint64)(v, name, &value,
                                                            errp)
        || !may_change(o, errp)) {
        return;
    }
    if (!n->is_wide && value > UINT32_MAX) {
        error_setg(errp, "%s=%" PRIu64 " is too large", name, value);
        return;
    }
    o->given |= 1ull << (n - numbers);
    o->values[n - numbers] = value;
}

/*
 * Other properties
 */

static char *get_preset(Object *obj, Error **errp)
{
    return g_strdup(PMU_CORE(obj)->preset ?: "");
}

static void set_preset(Object *obj, const char *value, Error **errp)
{
    PmuCoreObject *o = PMU_CORE(obj);

    if (may_change(o, errp)) {
        g_free(o->preset);
        o->preset = g_strdup(value);
    }
}

static int get_state(Object *obj, Error **errp)
{
    return PMU_CORE(obj)->state;
}

static void set_state(Object *obj, int value, Error **errp)
{
    PmuCoreObject *o = PMU_CORE(obj);

    if (may_change(o, errp)) {
        o->state = value;
    }
}

/*
 * Completion
 */

static void append_presets(Error *const *errp)
{
    const PmuCorePreset *preset;
    GString *names = g_string_new(NULL);

    for (unsigned i = 0; (preset = pmu_core_preset(i)); i++) {
        g_string_append_printf(names, "%s%s", i ? ", " : "", preset->name);
    }
    error_append_hint(errp, "Available: %s.\n", names->str);
    g_string_free(names, true);
}

static const PmuCorePreset *find_preset(const PmuCoreObject *o, Error **errp)
{
    ERRP_GUARD();
    const PmuCorePreset *preset = pmu_core_find_preset(o->preset ?: "");

    if (preset) {
        return preset;
    }
    if (o->preset) {
        error_setg(errp, "pmu-core has no preset '%s'", o->preset);
    } else {
        error_setg(errp, "pmu-core needs a preset");
    }
    append_presets(errp);
    return NULL;
}

static void pmu_core_complete(UserCreatable *uc, Error **errp)
{
    PmuCoreObject *o = PMU_CORE(uc);
    const PmuCorePreset *preset = find_preset(o, errp);
    g_autofree char *why = NULL;

    if (!preset) {
        return;
    }
    o->model = (PmuCoreModel) {
        .geometry = preset->geometry,
        .penalties = preset->penalties,
        .is_shared = o->state == PMU_CORE_STATE_SHARED,
    };
    for (unsigned i = 0; i < ARRAY_SIZE(numbers); i++) {
        if (o->given >> i & 1) {
            set_field(&o->model, &numbers[i], o->values[i]);
        }
    }
    why = pmu_core_refuse(&o->model.geometry);
    if (why) {
        error_setg(errp, "No core can be like that: %s", why);
        return;
    }
    o->complete = true;
}

const PmuCoreModel *pmu_core_model_find(const char *id, Error **errp)
{
    ERRP_GUARD();
    Object *obj = object_resolve_path_component(object_get_objects_root(), id);
    PmuCoreObject *o = (PmuCoreObject *)object_dynamic_cast(obj, TYPE_PMU_CORE);

    if (!o) {
        error_setg(errp, "There is no pmu-core '%s'", id);
        error_append_hint(errp, "Add -object pmu-core,id=%s,preset=NAME.\n",
                          id);
        return NULL;
    }
    /* CPUs have a copy, but whoever asks for the object still finds it. */
    o->in_use = true;
    return &o->model;
}

QDict *pmu_core_model_properties(const PmuCoreModel *model)
{
    const PmuCoreObject *o = container_of(model, PmuCoreObject, model);
    QDict *dict = qdict_new();

    qdict_put_str(dict, "id", object_get_canonical_path_component(OBJECT(o)));
    qdict_put_str(dict, "preset", o->preset);
    qdict_put_str(dict, "state", PmuCoreState_str(o->state));
    for (unsigned i = 0; i < ARRAY_SIZE(numbers); i++) {
        qdict_put_int(dict, numbers[i].name, get_field(model, &numbers[i]));
    }
    return dict;
}

/*
 * Class
 */

static bool can_be_deleted(UserCreatable *uc)
{
    return !PMU_CORE(uc)->in_use;
}

static void pmu_core_finalize(Object *obj)
{
    g_free(PMU_CORE(obj)->preset);
}

static void pmu_core_class_init(ObjectClass *oc, ClassData *data)
{
    UserCreatableClass *ucc = USER_CREATABLE_CLASS(oc);

    ucc->complete = pmu_core_complete;
    ucc->can_be_deleted = can_be_deleted;
    object_class_property_add_str(oc, "preset", get_preset, set_preset);
    object_class_property_set_description(oc, "preset",
        "The processor whose sizes and cycles are not given");
    object_class_property_add_enum(oc, "state", "PmuCoreState",
                                   &PmuCoreState_lookup, get_state, set_state);
    object_class_property_set_description(oc, "state",
        "Whose the contents of caches are: private or shared");
    for (unsigned i = 0; i < ARRAY_SIZE(numbers); i++) {
        const Number *n = &numbers[i];

        object_class_property_add(oc, n->name, n->is_size ? "size" : "uint32",
                                  get_number, set_number, NULL, (void *)n);
        object_class_property_set_description(oc, n->name, n->description);
    }
}

static const TypeInfo pmu_core_type = {
    .name = TYPE_PMU_CORE,
    .parent = TYPE_OBJECT,
    .instance_size = sizeof(PmuCoreObject),
    .instance_finalize = pmu_core_finalize,
    .class_init = pmu_core_class_init,
    .interfaces = (InterfaceInfo[]) {
        { TYPE_USER_CREATABLE },
        { }
    }
};

static void register_type(void)
{
    type_register_static(&pmu_core_type);
}

type_init(register_type)
