/*
 * Performance monitoring unit: the migration state of the model
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/pmu-vmstate.h"

static const VMStateDescription vmstate_pmu_counter = {
    .name = "pmu/counter",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(value, PmuCounter),
        VMSTATE_END_OF_LIST()
    }
};

/* A stream may hold anything; a counter no more than its bits. */
static int cut_values(void *opaque, int version_id)
{
    Pmu *pmu = opaque;
    unsigned i;

    for (i = 0; i < pmu->nr_counters; i++) {
        pmu_write(pmu, i, pmu->counters[i].value);
    }
    return 0;
}

const VMStateDescription vmstate_pmu = {
    .name = "pmu",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = cut_values,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32_EQUAL(nr_counters, Pmu,
                             "The PMUs of source and destination differ in "
                             "their number of counters."),
        VMSTATE_STRUCT_VARRAY_UINT32(counters, Pmu, nr_counters, 1,
                                     vmstate_pmu_counter, PmuCounter),
        VMSTATE_END_OF_LIST()
    }
};
