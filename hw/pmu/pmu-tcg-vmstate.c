/*
 * Performance monitoring unit: the state of the engine in streams
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/error-report.h"
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

/* Check that cycles computed from the tallies do not wrap. */
static bool is_plausible(const PmuTcg *e)
{
    uint64_t most = 0, most_ns = 0;
    unsigned t, m;

    for (m = 0; m < PMU_MAX_MODES; m++) {
        most_ns |= e->mode_ns[m];
        for (t = 0; t < PMU_TALLY_CORE_FIRST; t++) {
            most |= e->total[t][m] + MAX_TAKEN_BACK;
        }
    }
    return most < MAX_TOTAL && most_ns < MAX_NS;
}

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

    if (!is_plausible(e)) {
        memset(e->total, 0, sizeof(e->total));
        memset(e->mode_ns, 0, sizeof(e->mode_ns));
        error_report("The source's PMU has impossibly high counts.");
        return -EINVAL;
    }
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
        VMSTATE_UINT64_2DARRAY(total, PmuTcg, PMU_TALLY_CORE_FIRST,
                               PMU_MAX_MODES),
        VMSTATE_UINT64_ARRAY(mode_ns, PmuTcg, PMU_MAX_MODES),
        VMSTATE_BOOL(halted, PmuTcg),
        VMSTATE_END_OF_LIST()
    },
    .subsections = (const VMStateDescription *const []) {
        &vmstate_core,
        NULL
    }
};
