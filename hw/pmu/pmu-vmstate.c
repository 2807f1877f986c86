/*
 * Performance monitoring unit: the migration state of the model
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "hw/pmu/pmu-vmstate.h"
#include "pmu-internal.h"

/* A stream may hold any value; a counter has only so many bits. */
static int cut_value(void *opaque, int version_id)
{
    PmuCounter *c = opaque;

    c->value &= MAKE_64BIT_MASK(0, c->shape.width);
    return 0;
}

static bool owes(void *opaque)
{
    const PmuCounter *c = opaque;

    return c->owed;
}

static const VMStateDescription vmstate_pmu_counter_owed = {
    .name = "pmu/counter/owed",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = owes,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(owed, PmuCounter),
        VMSTATE_END_OF_LIST()
    }
};

static const VMStateDescription vmstate_pmu_counter = {
    .name = "pmu/counter",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = cut_value,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(value, PmuCounter),
        VMSTATE_END_OF_LIST()
    },
    .subsections = (const VMStateDescription * const []) {
        &vmstate_pmu_counter_owed,
        NULL
    }
};

const VMStateDescription vmstate_pmu = {
    .name = "pmu",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32_EQUAL(nr_counters, Pmu,
                             "The PMUs of source and destination differ in "
                             "their number of counters."),
        VMSTATE_STRUCT_VARRAY_UINT32(counters, Pmu, nr_counters, 1,
                                     vmstate_pmu_counter, PmuCounter),
        VMSTATE_END_OF_LIST()
    }
};
