/*
 * Performance monitoring unit: the state of the engine in streams
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "migration/qemu-file-types.h"
#include "migration/vmstate.h"
#include "pmu-tcg-internal.h"

/*
 * No machine counts that far, and no more events than that are taken back
 * before they are counted.
 */
#define MAX_TOTAL      (1ull << 62)
#define MAX_TAKEN_BACK (1ull << 20)

/* Nine years: at no frequency does that have so many cycles. */
#define MAX_NS (1ull << 58)

static int pmu_tcg_pre_save(void *opaque)
{
    PmuTcg *e = opaque;
    unsigned t, m;

    for (t = PMU_TCG_FIRST; t < PMU_TALLY_CORE_FIRST; t++) {
        for (m = 0; m < PMU_MAX_MODES; m++) {
            pmu_tcg_load_cell(e, t, m, *pmu_tcg_cell(e->cpu, t, m));
        }
    }
    return 0;
}

int pmu_tcg_get_count(QEMUFile *f, uint64_t *count, uint64_t taken_back,
                      uint64_t limit)
{
    uint64_t loaded = qemu_get_be64(f);

    if (loaded + taken_back >= limit) {
        error_report("The source's PMU has impossibly high counts.");
        return -EINVAL;
    }
    *count = loaded;
    return 0;
}

int pmu_tcg_put_count(QEMUFile *f, void *pv, size_t size,
                      const VMStateField *field, JSONWriter *vmdesc)
{
    qemu_put_be64(f, *(uint64_t *)pv);
    return 0;
}

/* Cycles that are computed of these do not wrap. */
static int get_total(QEMUFile *f, void *pv, size_t size,
                     const VMStateField *field)
{
    return pmu_tcg_get_count(f, pv, MAX_TAKEN_BACK, MAX_TOTAL);
}

static const VMStateInfo total_info = {
    .name = "pmu-total",
    .get = get_total,
    .put = pmu_tcg_put_count,
};

static int get_ns(QEMUFile *f, void *pv, size_t size,
                  const VMStateField *field)
{
    return pmu_tcg_get_count(f, pv, 0, MAX_NS);
}

static const VMStateInfo ns_info = {
    .name = "pmu-ns",
    .get = get_ns,
    .put = pmu_tcg_put_count,
};

/* Drop the events in the cells: the loaded totals replace them. */
static void begin_cells(PmuTcg *e)
{
    unsigned t, m;

    for (t = PMU_TCG_FIRST; t < PMU_TALLY_CORE_FIRST; t++) {
        for (m = 0; m < PMU_MAX_MODES; m++) {
            e->loaded[t][m] = *pmu_tcg_cell(e->cpu, t, m);
        }
    }
}

static int pmu_tcg_post_load(void *opaque, int version_id)
{
    PmuTcg *e = opaque;

    begin_cells(e);
    e->time_seen = pmu_tcg_all_time(e);
    pmu_tcg_clock_start(e);
    return 0;
}

static bool core_needed(void *opaque)
{
    return ((PmuTcg *)opaque)->core;
}

static int core_pre_load(void *opaque)
{
    if (!core_needed(opaque)) {
        error_report("The source's CPU has a pmu-core and this one does not; "
                     "add the property pmu-core, and the object.");
        return -EINVAL;
    }
    return 0;
}

/* A source without a core leaves this one as it is after a reset. */
static const VMStateDescription vmstate_core = {
    .name = "pmu-tcg/core",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = core_needed,
    .pre_load = core_pre_load,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(core, PmuTcg, vmstate_pmu_tcg_core, PmuTcgCore),
        VMSTATE_END_OF_LIST()
    }
};

const VMStateDescription vmstate_pmu_tcg = {
    .name = "pmu-tcg",
    .version_id = 2,
    .minimum_version_id = 2,
    .pre_save = pmu_tcg_pre_save,
    .post_load = pmu_tcg_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_2DARRAY(total, PmuTcg, PMU_TALLY_CORE_FIRST, PMU_MAX_MODES, 0,
                        total_info, uint64_t),
        VMSTATE_ARRAY(mode_ns, PmuTcg, PMU_MAX_MODES, 0, ns_info, uint64_t),
        VMSTATE_BOOL(halted, PmuTcg),
        VMSTATE_END_OF_LIST()
    },
    .subsections = (const VMStateDescription *const []) {
        &vmstate_core,
        NULL
    }
};
