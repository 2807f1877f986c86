/*
 * Performance monitoring unit: common code of its unit tests
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "pmu-rig.h"

static void rig_sync(void *engine)
{
    Rig *rig = engine;

    if (rig->sync) {
        rig->sync(&rig->engine);
    }
}

static uint64_t rig_tally(void *engine, PmuTally tally, unsigned mode)
{
    Rig *rig = engine;

    g_assert_cmpuint(tally, <, PMU_TALLY__MAX);
    g_assert_cmpuint(mode, <, pmu_nr_modes(rig->pmu));
    g_assert_true(rig->engine.wanted & BIT64(tally));
    return pmu_manual_ops.tally(engine, tally, mode);
}

static void rig_plan(void *engine, PmuTallies wanted, PmuModes modes,
                     const PmuBudgets budgets)
{
    Rig *rig = engine;
    unsigned t, m;

    g_assert_cmphex(wanted & ~LOW_BITS(PMU_TALLY__MAX), ==, 0);
    g_assert_cmpint(!wanted, ==, !modes);
    for (t = 0; t < PMU_TALLY__MAX; t++) {
        for (m = 0; (wanted & BIT64(t)) && m < PMU_MAX_MODES; m++) {
            g_assert_cmpuint(budgets[t][m], >=, 1);
        }
    }
    if (rig->plan) {
        rig->plan(&rig->engine, wanted);
    }
    pmu_manual_ops.plan(engine, wanted, modes, budgets);
}

static PmuTallies rig_timed(void *engine)
{
    return pmu_manual_ops.timed(engine);
}

/* The manual engine, with assertions on each call that the model makes. */
static const PmuEngineOps rig_ops = {
    .sync = rig_sync,
    .tally = rig_tally,
    .timed = rig_timed,
    .plan = rig_plan,
};

static void rig_on_overflow(void *opaque, uint64_t counters)
{
    Rig *rig = opaque;
    Overflow overflow = { .counters = counters, .at = rig_events(rig) };

    g_assert_cmphex(counters, !=, 0);
    g_array_append_val(rig->log, overflow);
    if (rig->handler) {
        rig->handler(rig, counters);
    }
}

void rig_init(Rig *rig, unsigned nr_counters, unsigned nr_modes)
{
    memset(rig, 0, sizeof(*rig));
    rig->log = g_array_new(false, false, sizeof(Overflow));
    rig->engine.share = pmu_share_new(nr_modes, &rig_ops, &rig->engine);
    rig->pmu = pmu_share_join(rig->engine.share, nr_counters, rig_on_overflow,
                              rig);
}

void rig_cleanup(Rig *rig)
{
    pmu_share_leave(rig->engine.share, rig->pmu);
    g_assert_cmphex(rig->engine.wanted, ==, 0);
    pmu_share_free(rig->engine.share);
    g_array_free(rig->log, true);
}

static void run_on_rig(gconstpointer data)
{
    void (*test)(Rig *rig) = data;
    Rig rig;

    rig_init(&rig, 8, PMU_MAX_MODES);
    test(&rig);
    rig_cleanup(&rig);
}

void rig_add(const char *path, void (*test)(Rig *rig))
{
    g_test_add_data_func(path, test, run_on_rig);
}

void rig_start(Rig *rig, unsigned counter, PmuEvent event, PmuModes modes)
{
    PmuSelect select = { .event = event, .modes = modes };

    pmu_begin(rig->pmu);
    pmu_select(rig->pmu, counter, &select);
    pmu_run(rig->pmu, counter, true);
    pmu_commit(rig->pmu);
}

void rig_arm(Rig *rig, unsigned counter, uint64_t distance)
{
    pmu_begin(rig->pmu);
    pmu_write(rig->pmu, counter, rig->overflow_at[counter] - distance);
    pmu_set_alert(rig->pmu, counter, true);
    pmu_commit(rig->pmu);
}

void rig_write(Rig *rig, unsigned counter, uint64_t value)
{
    pmu_begin(rig->pmu);
    pmu_write(rig->pmu, counter, value);
    pmu_commit(rig->pmu);
}

void rig_run(Rig *rig, uint64_t counters, bool running)
{
    unsigned i;

    pmu_begin(rig->pmu);
    for (i = 0; i < pmu_nr_counters(rig->pmu); i++) {
        if (counters & BIT64(i)) {
            pmu_run(rig->pmu, i, running);
        }
    }
    pmu_commit(rig->pmu);
}

void rig_shape(Rig *rig, unsigned counter, unsigned width,
               uint64_t overflow_at)
{
    PmuCounterShape shape = { .width = width, .overflow_at = overflow_at };

    pmu_set_shape(rig->pmu, counter, shape);
    rig->overflow_at[counter] = overflow_at;
}

void rig_count(Rig *rig, PmuTally tally, unsigned mode, uint64_t count)
{
    pmu_manual_count(&rig->engine, tally, mode, count);
}

uint64_t rig_events(const Rig *rig)
{
    return rig->engine.events;
}

const Overflow *rig_overflow(const Rig *rig, unsigned index)
{
    return &g_array_index(rig->log, Overflow, index);
}
