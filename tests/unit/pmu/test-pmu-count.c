/*
 * Performance monitoring unit: values of counters
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "pmu-rig.h"

static void test_starts_empty(Rig *rig)
{
    unsigned i;

    rig_count(rig, PMU_TALLY_INSNS, USER, 100);
    for (i = 0; i < pmu_nr_counters(rig->pmu); i++) {
        g_assert_false(pmu_is_running(rig->pmu, i));
        g_assert_cmpuint(pmu_distance(rig->pmu, i), ==, BIT64(48));
        rig_assert_value(rig, i, 0);
    }
}

static void test_counts_its_event(Rig *rig)
{
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_count(rig, PMU_TALLY_INSNS, USER, 7);
    rig_count(rig, PMU_TALLY_LOADS, USER, 1000);
    rig_assert_value(rig, 0, 7);
    rig_count(rig, PMU_TALLY_INSNS, USER, 1);
    rig_assert_value(rig, 0, 8);
}

static void test_counts_its_modes(Rig *rig)
{
    unsigned mode;

    rig_start(rig, 0, PMU_EVENT_INSNS, 0x35);
    rig_start(rig, 1, PMU_EVENT_INSNS, ALL_MODES);
    rig_start(rig, 2, PMU_EVENT_INSNS, 0);
    for (mode = 0; mode < PMU_MAX_MODES; mode++) {
        rig_count(rig, PMU_TALLY_INSNS, mode, 1 << (4 * mode));
    }
    rig_assert_value(rig, 0, 0x110101);
    rig_assert_value(rig, 1, 0x11111111);
    rig_assert_value(rig, 2, 0);
}

static void test_modes_that_do_not_exist(void)
{
    Rig rig;

    rig_init(&rig, 1, 2);
    rig_start(&rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_count(&rig, PMU_TALLY_INSNS, USER, 3);
    rig_count(&rig, PMU_TALLY_INSNS, KERNEL, 5);
    rig_assert_value(&rig, 0, 8);
    rig_cleanup(&rig);
}

static void test_width(Rig *rig)
{
    const uint64_t pattern = 0xa5a5a5a5a5a5a5a5;
    unsigned width;

    for (width = 1; width <= 64; width++) {
        rig_shape(rig, 0, width, 0);
        rig_write(rig, 0, pattern);
        rig_assert_value(rig, 0, pattern & LOW_BITS(width));
        rig_write(rig, 0, ~pattern);
        rig_assert_value(rig, 0, ~pattern & LOW_BITS(width));
    }
}

static void test_wraps(Rig *rig)
{
    unsigned width;

    for (width = 1; width <= 64; width++) {
        rig_shape(rig, 0, width, 0);
        rig_write(rig, 0, UINT64_MAX);
        rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
        rig_assert_value(rig, 0, LOW_BITS(width));
        rig_count(rig, PMU_TALLY_INSNS, USER, 1);
        rig_assert_value(rig, 0, 0);
        rig_run(rig, BIT64(0), false);
    }
    g_assert_cmpuint(rig->log->len, ==, 64);
}

static void test_wraps_twice(Rig *rig)
{
    rig_shape(rig, 0, 4, 0);
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_count(rig, PMU_TALLY_INSNS, USER, 37);
    rig_assert_value(rig, 0, 5);
    rig_assert_overflow(rig, 0, BIT64(0), 37);
    g_assert_cmpuint(rig->log->len, ==, 1);
}

static void test_narrowing(Rig *rig)
{
    rig_write(rig, 0, 0xffff12345678);
    rig_shape(rig, 0, 32, 0);
    rig_assert_value(rig, 0, 0x12345678);
    rig_shape(rig, 0, 48, 0);
    rig_assert_value(rig, 0, 0x12345678);
}

static void test_writes_read_back(Rig *rig)
{
    static const uint64_t values[] = {
        0, 1, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 0x7fffffffffff,
        0x800000000000, 0xfffffffffffe, 0xffffffffffff,
    };
    unsigned i;

    rig_start(rig, 1, PMU_EVENT_INSNS, ALL_MODES);
    rig_count(rig, PMU_TALLY_INSNS, USER, 99);
    for (i = 0; i < G_N_ELEMENTS(values); i++) {
        rig_write(rig, 0, values[i]);
        rig_write(rig, 1, values[i]);
        rig_assert_value(rig, 0, values[i]);
        rig_assert_value(rig, 1, values[i]);
        rig_count(rig, PMU_TALLY_INSNS, USER, 3);
        rig_assert_value(rig, 0, values[i]);
        rig_assert_value(rig, 1, (values[i] + 3) & LOW_BITS(48));
    }
}

static void test_stop_and_go(Rig *rig)
{
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_count(rig, PMU_TALLY_INSNS, USER, 10);
    rig_run(rig, BIT64(0), false);
    g_assert_false(pmu_is_running(rig->pmu, 0));
    rig_count(rig, PMU_TALLY_INSNS, USER, 1000);
    rig_assert_value(rig, 0, 10);
    rig_run(rig, BIT64(0), true);
    g_assert_true(pmu_is_running(rig->pmu, 0));
    rig_count(rig, PMU_TALLY_INSNS, USER, 5);
    rig_assert_value(rig, 0, 15);
}

static void test_many_at_once(Rig *rig)
{
    PmuSelect select = { .event = PMU_EVENT_INSNS, .modes = ALL_MODES };
    uint64_t plans;
    unsigned i;

    for (i = 0; i < 8; i++) {
        pmu_begin(rig->pmu);
        pmu_select(rig->pmu, i, &select);
        pmu_write(rig->pmu, i, 100 * i);
        pmu_commit(rig->pmu);
    }
    plans = rig->engine.plans;
    rig_run(rig, 0xff, true);
    g_assert_cmpuint(rig->engine.plans, ==, plans + 1);
    rig_count(rig, PMU_TALLY_INSNS, USER, 12345);
    rig_run(rig, 0xff, false);
    g_assert_cmpuint(rig->engine.plans, ==, plans + 2);
    rig_count(rig, PMU_TALLY_INSNS, USER, 1);
    for (i = 0; i < 8; i++) {
        rig_assert_value(rig, i, 100 * i + 12345);
    }
}

static void test_changes_event(Rig *rig)
{
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_count(rig, PMU_TALLY_INSNS, USER, 3);
    rig_count(rig, PMU_TALLY_LOADS, USER, 1000);
    rig_start(rig, 0, PMU_EVENT_LOADS, BIT64(USER));
    rig_count(rig, PMU_TALLY_INSNS, USER, 1000);
    rig_count(rig, PMU_TALLY_LOADS, USER, 4);
    rig_count(rig, PMU_TALLY_LOADS, KERNEL, 1000);
    rig_assert_value(rig, 0, 7);
    rig_start(rig, 0, PMU_EVENT_NONE, ALL_MODES);
    rig_count(rig, PMU_TALLY_LOADS, USER, 1000);
    rig_assert_value(rig, 0, 7);
}

static void test_nested(Rig *rig)
{
    uint64_t plans;

    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    plans = rig->engine.plans;
    rig_count(rig, PMU_TALLY_INSNS, USER, 5);
    pmu_begin(rig->pmu);
    rig_start(rig, 1, PMU_EVENT_INSNS, ALL_MODES);
    rig_assert_value(rig, 0, 5);
    rig_run(rig, BIT64(0), false);
    g_assert_cmpuint(rig->engine.plans, ==, plans);
    pmu_commit(rig->pmu);
    g_assert_cmpuint(rig->engine.plans, ==, plans + 1);
    rig_count(rig, PMU_TALLY_INSNS, USER, 6);
    rig_assert_value(rig, 0, 5);
    rig_assert_value(rig, 1, 6);
}

static void test_peek(Rig *rig)
{
    uint64_t plans;

    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_write(rig, 0, LOW_BITS(48));
    rig_count(rig, PMU_TALLY_INSNS, USER, 5);
    plans = rig->engine.plans;
    g_assert_cmpuint(pmu_peek(rig->pmu, 0), ==, 4);
    g_assert_cmpuint(pmu_distance(rig->pmu, 0), ==, BIT64(48) - 4);
    g_assert_cmpuint(pmu_peek(rig->pmu, 0), ==, 4);
    g_assert_cmpuint(rig->engine.plans, ==, plans);
    g_assert_cmpuint(rig->log->len, ==, 0);
    rig_assert_value(rig, 0, 4);
    g_assert_cmpuint(rig->log->len, ==, 1);
}

/* A counter that has just been started does not count earlier events. */
static void test_peek_in_transaction(Rig *rig)
{
    PmuSelect loads = { .event = PMU_EVENT_LOADS, .modes = ALL_MODES };
    PmuSelect inverted = {
        .event = PMU_EVENT_STORES, .modes = ALL_MODES,
        .threshold = 1, .invert = true,
    };

    rig_count(rig, PMU_TALLY_LOADS, USER, 1000);
    pmu_begin(rig->pmu);
    pmu_select(rig->pmu, 0, &loads);
    pmu_select(rig->pmu, 1, &inverted);
    pmu_write(rig->pmu, 0, 7);
    pmu_run(rig->pmu, 0, true);
    pmu_run(rig->pmu, 1, true);
    g_assert_cmpuint(pmu_peek(rig->pmu, 0), ==, 7);
    g_assert_cmpuint(pmu_distance(rig->pmu, 0), ==, BIT64(48) - 7);
    g_assert_cmpuint(pmu_peek(rig->pmu, 1), ==, 0);
    pmu_commit(rig->pmu);
    rig_assert_value(rig, 0, 7);
}

static void test_reset(Rig *rig)
{
    rig_shape(rig, 0, 40, 0);
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_write(rig, 0, LOW_BITS(40));
    rig_start(rig, 1, PMU_EVENT_LOADS, ALL_MODES);
    rig_arm(rig, 1, 10);
    rig_count(rig, PMU_TALLY_INSNS, USER, 5);
    pmu_reset(rig->pmu);
    g_assert_cmphex(rig->engine.wanted, ==, 0);
    rig_count(rig, PMU_TALLY_INSNS, USER, 5);
    rig_count(rig, PMU_TALLY_LOADS, USER, 50);
    g_assert_false(pmu_is_running(rig->pmu, 0));
    rig_assert_value(rig, 0, 0);
    rig_assert_value(rig, 1, 0);
    g_assert_cmpuint(rig->log->len, ==, 0);
    g_assert_cmpuint(pmu_distance(rig->pmu, 0), ==, BIT64(40));
}

static void test_reset_thaws(Rig *rig)
{
    pmu_begin(rig->pmu);
    pmu_set_freeze(rig->pmu, BIT64(0), BIT64(1));
    pmu_commit(rig->pmu);
    pmu_reset(rig->pmu);
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_start(rig, 1, PMU_EVENT_INSNS, ALL_MODES);
    rig_arm(rig, 0, 5);
    rig_count(rig, PMU_TALLY_INSNS, USER, 20);
    g_assert_cmpuint(rig->log->len, ==, 1);
    rig_assert_value(rig, 1, 20);
}

static void test_counts_after_reset(Rig *rig)
{
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_count(rig, PMU_TALLY_INSNS, USER, 5);
    pmu_reset(rig->pmu);
    rig_count(rig, PMU_TALLY_INSNS, USER, 5);
    rig_run(rig, BIT64(0), true);
    rig_count(rig, PMU_TALLY_INSNS, USER, 5);
    rig_assert_value(rig, 0, 0);
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_count(rig, PMU_TALLY_INSNS, USER, 5);
    rig_assert_value(rig, 0, 5);
}

static void test_rebase(Rig *rig)
{
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_count(rig, PMU_TALLY_INSNS, USER, 5);
    pmu_fold(rig->pmu);
    rig->engine.tallies[PMU_TALLY_INSNS][USER] = 1000000;
    pmu_rebase(rig->pmu);
    rig_count(rig, PMU_TALLY_INSNS, USER, 2);
    rig_assert_value(rig, 0, 7);
}

/*
 * Calls that a face must not make
 */

static const PmuSelect instructions = {
    .event = PMU_EVENT_INSNS, .modes = ALL_MODES,
};

static void select_alone(Pmu *pmu)
{
    pmu_select(pmu, 0, &instructions);
}

static void run_alone(Pmu *pmu)
{
    pmu_run(pmu, 0, true);
}

static void write_alone(Pmu *pmu)
{
    pmu_write(pmu, 0, 1);
}

static void alert_alone(Pmu *pmu)
{
    pmu_set_alert(pmu, 0, true);
}

static void freeze_alone(Pmu *pmu)
{
    pmu_set_freeze(pmu, 1, 1);
}

static void write_behind_the_last(Pmu *pmu)
{
    pmu_begin(pmu);
    pmu_write(pmu, pmu_nr_counters(pmu), 1);
}

static void read_behind_the_last(Pmu *pmu)
{
    pmu_read(pmu, pmu_nr_counters(pmu));
}

static void shape_while_running(Pmu *pmu)
{
    pmu_begin(pmu);
    pmu_run(pmu, 0, true);
    pmu_set_shape(pmu, 0, (PmuCounterShape) { .width = 8 });
}

static const struct Mistake {
    const char *name;
    void (*make)(Pmu *pmu);
    const char *assertion;
} mistakes[] = {
    { "select-alone", select_alone, "*pmu_in_transaction*" },
    { "run-alone", run_alone, "*pmu_in_transaction*" },
    { "write-alone", write_alone, "*pmu_in_transaction*" },
    { "alert-alone", alert_alone, "*pmu_in_transaction*" },
    { "freeze-alone", freeze_alone, "*pmu_in_transaction*" },
    { "commit-alone", pmu_commit, "*pmu_in_transaction*" },
    { "write-behind-the-last", write_behind_the_last, "*nr_counters*" },
    { "read-behind-the-last", read_behind_the_last, "*nr_counters*" },
    { "shape-while-running", shape_while_running, "*running*" },
};

static void test_mistake(gconstpointer data)
{
    const struct Mistake *mistake = data;
    Rig rig;

    if (g_test_subprocess()) {
        rig_init(&rig, 8, PMU_MAX_MODES);
        mistake->make(rig.pmu);
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr(mistake->assertion);
}

static void add_mistakes(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(mistakes); i++) {
        char *path = g_strconcat("/pmu/mistake/", mistakes[i].name, NULL);

        g_test_add_data_func(path, &mistakes[i], test_mistake);
        g_free(path);
    }
}

int main(int argc, char *argv[])
{
    g_test_init(&argc, &argv, NULL);
    rig_add("/pmu/count/starts-empty", test_starts_empty);
    rig_add("/pmu/count/event", test_counts_its_event);
    rig_add("/pmu/count/modes", test_counts_its_modes);
    g_test_add_func("/pmu/count/no-such-mode", test_modes_that_do_not_exist);
    rig_add("/pmu/count/width", test_width);
    rig_add("/pmu/count/wraps", test_wraps);
    rig_add("/pmu/count/wraps-twice", test_wraps_twice);
    rig_add("/pmu/count/narrowing", test_narrowing);
    rig_add("/pmu/count/writes-read-back", test_writes_read_back);
    rig_add("/pmu/count/stop-and-go", test_stop_and_go);
    rig_add("/pmu/count/many-at-once", test_many_at_once);
    rig_add("/pmu/count/changes-event", test_changes_event);
    rig_add("/pmu/count/nested", test_nested);
    rig_add("/pmu/count/peek", test_peek);
    rig_add("/pmu/count/peek-in-transaction", test_peek_in_transaction);
    rig_add("/pmu/count/reset", test_reset);
    rig_add("/pmu/count/reset-thaws", test_reset_thaws);
    rig_add("/pmu/count/counts-after-reset", test_counts_after_reset);
    rig_add("/pmu/count/rebase", test_rebase);
    add_mistakes();
    return g_test_run();
}
