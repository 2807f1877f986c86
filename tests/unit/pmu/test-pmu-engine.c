/*
 * Performance monitoring unit: the contract between the model and engines
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "pmu-rig.h"

#define WANTED(name) BIT64(PMU_TALLY_##name)

static void test_wanted(Rig *rig)
{
    g_assert_cmphex(rig->engine.wanted, ==, 0);
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    g_assert_cmphex(rig->engine.wanted, ==, WANTED(INSNS));
    rig_start(rig, 1, PMU_EVENT_COND_BRANCHES, BIT64(USER));
    g_assert_cmphex(rig->engine.wanted, ==, WANTED(INSNS) | WANTED(COND_TAKEN)
                                            | WANTED(COND_NOT_TAKEN));
    rig_run(rig, BIT64(0), false);
    g_assert_cmphex(rig->engine.wanted, ==, WANTED(COND_TAKEN)
                                            | WANTED(COND_NOT_TAKEN));
    rig_start(rig, 1, PMU_EVENT_NONE, ALL_MODES);
    g_assert_cmphex(rig->engine.wanted, ==, 0);
}

static void test_modes(Rig *rig)
{
    rig_start(rig, 0, PMU_EVENT_INSNS, BIT64(USER));
    g_assert_cmphex(rig->engine.modes, ==, BIT64(USER));
    rig_start(rig, 1, PMU_EVENT_STORES, BIT64(USER) | BIT64(KERNEL));
    g_assert_cmphex(rig->engine.modes, ==, BIT64(USER) | BIT64(KERNEL));
    rig_start(rig, 2, PMU_EVENT_NONE, ALL_MODES);
    rig_run(rig, BIT64(1), false);
    g_assert_cmphex(rig->engine.modes, ==, BIT64(USER));
    rig_run(rig, BIT64(0), false);
    g_assert_cmphex(rig->engine.modes, ==, 0);
}

static void test_nothing_wanted_without_modes(Rig *rig)
{
    rig_start(rig, 0, PMU_EVENT_INSNS, 0);
    rig_arm(rig, 0, 1);
    g_assert_cmphex(rig->engine.wanted, ==, 0);
    rig_count(rig, PMU_TALLY_INSNS, USER, 10);
    g_assert_cmpuint(rig->log->len, ==, 0);
}

static void test_inverted_wants_both(Rig *rig)
{
    PmuSelect select = {
        .event = PMU_EVENT_LOADS, .modes = ALL_MODES,
        .threshold = 1, .invert = true,
    };

    pmu_begin(rig->pmu);
    pmu_select(rig->pmu, 0, &select);
    pmu_run(rig->pmu, 0, true);
    pmu_commit(rig->pmu);
    g_assert_cmphex(rig->engine.wanted, ==, WANTED(CYCLES) | WANTED(LOADS));
}

static void test_no_deadline_without_alert(Rig *rig)
{
    unsigned mode;

    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_write(rig, 0, LOW_BITS(48));
    for (mode = 0; mode < PMU_MAX_MODES; mode++) {
        g_assert_cmpuint(rig->engine.budgets[PMU_TALLY_INSNS][mode], ==,
                         PMU_NO_DEADLINE);
    }
}

static void test_quiet(Rig *rig)
{
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    g_assert_true(pmu_is_quiet(rig->pmu, LOW_BITS(62)));
    rig_arm(rig, 0, 1000);
    g_assert_true(pmu_is_quiet(rig->pmu, 999));
    g_assert_false(pmu_is_quiet(rig->pmu, 1000));
    rig_run(rig, BIT64(0), false);
    g_assert_true(pmu_is_quiet(rig->pmu, 1000));

    /* This overflow is not reported, but it stops other counters. */
    rig_start(rig, 1, PMU_EVENT_BRANCHES, BIT64(USER));
    rig_write(rig, 1, LOW_BITS(48));
    g_assert_true(pmu_is_quiet(rig->pmu, 1));
    pmu_begin(rig->pmu);
    pmu_set_freeze(rig->pmu, BIT64(1), BIT64(0));
    pmu_commit(rig->pmu);
    g_assert_false(pmu_is_quiet(rig->pmu, 1));
}

static void test_deadline_of_one_mode(Rig *rig)
{
    const uint64_t *budget = rig->engine.budgets[PMU_TALLY_INSNS];

    rig_start(rig, 0, PMU_EVENT_INSNS, BIT64(KERNEL));
    rig_arm(rig, 0, 1234);
    g_assert_cmpuint(budget[KERNEL], ==, 1234);
    g_assert_cmpuint(budget[USER], ==, PMU_NO_DEADLINE);
    rig_start(rig, 1, PMU_EVENT_INSNS, BIT64(KERNEL));
    rig_arm(rig, 1, 1233);
    g_assert_cmpuint(budget[KERNEL], ==, 1233);
    rig_run(rig, BIT64(0) | BIT64(1), false);
    rig_run(rig, BIT64(0), true);
    g_assert_cmpuint(budget[KERNEL], ==, 1234);
}

/*
 * The most events that can happen before a budget is used up.  This must not
 * exceed the distance to the overflow, and need not be less.
 */
static uint64_t most_before_a_fold(const Rig *rig, PmuModes modes)
{
    uint64_t sum = 1;
    unsigned t, m;

    for (t = PMU_TALLY_COND_TAKEN; t <= PMU_TALLY_FAR_BRANCHES; t++) {
        for (m = 0; m < PMU_MAX_MODES; m++) {
            sum += modes & BIT64(m) ? rig->engine.budgets[t][m] - 1 : 0;
        }
    }
    return sum;
}

static void test_shares(Rig *rig)
{
    uint64_t distance;
    unsigned modes;

    for (modes = 1; modes <= ALL_MODES; modes = 2 * modes + 1) {
        rig_start(rig, 0, PMU_EVENT_BRANCHES, modes);
        distance = 1;
        while (distance < BIT64(47)) {
            rig_arm(rig, 0, distance);
            g_assert_cmpuint(most_before_a_fold(rig, modes), ==, distance);
            distance += distance / 3 + 1;
        }
    }
}

/* After a change, the guess at growth ignores tallies no longer counted. */
static void test_shares_after_a_change(Rig *rig)
{
    rig_start(rig, 0, PMU_EVENT_INSNS, BIT64(USER) | BIT64(KERNEL));
    rig_count(rig, PMU_TALLY_INSNS, USER, 1000);
    rig_start(rig, 0, PMU_EVENT_BRANCHES, 0xf0);
    rig_arm(rig, 0, 1234567);
    g_assert_cmpuint(most_before_a_fold(rig, 0xf0), ==, 1234567);
}

/* Tallies that grow together cause a few folds a period, not one per event. */
static void reload_branches(Rig *rig, uint64_t counters G_GNUC_UNUSED)
{
    rig_arm(rig, 0, 20011);
}

static void test_few_folds(Rig *rig)
{
    static const PmuTally mix[] = {
        PMU_TALLY_COND_TAKEN, PMU_TALLY_COND_NOT_TAKEN, PMU_TALLY_COND_TAKEN,
        PMU_TALLY_CALLS, PMU_TALLY_COND_TAKEN, PMU_TALLY_RETURNS,
    };
    const unsigned periods = 20;
    unsigned i;

    rig->handler = reload_branches;
    rig_start(rig, 0, PMU_EVENT_BRANCHES, ALL_MODES);
    rig_arm(rig, 0, 20011);
    for (i = 0; i < periods * 20011; i++) {
        rig_count(rig, mix[i % G_N_ELEMENTS(mix)],
                  i % 1000 < 300 ? KERNEL : USER, 1);
    }
    g_assert_cmpuint(rig->log->len, ==, periods);
    /* Each fold leaves a 16th of the distance, or more as modes change. */
    g_assert_cmpuint(rig->engine.plans, <, 24 * periods);
}

/*
 * A timed tally grows in one mode at a time, so modes do not share its budget.
 */
static void test_timed(Rig *rig)
{
    uint64_t plans;
    unsigned m;

    rig->engine.timed = WANTED(CYCLES);
    rig_start(rig, 0, PMU_EVENT_CYCLES, ALL_MODES);
    rig_arm(rig, 0, 1000);
    plans = rig->engine.plans;
    for (m = 0; m < pmu_nr_modes(rig->pmu); m++) {
        g_assert_cmpuint(rig->engine.budgets[PMU_TALLY_CYCLES][m], ==, 1000);
    }
    for (m = 0; m < pmu_nr_modes(rig->pmu); m++) {
        rig_count(rig, PMU_TALLY_CYCLES, m, 124);
    }
    g_assert_cmpuint(rig->engine.plans, ==, plans);
    rig_count(rig, PMU_TALLY_CYCLES, 0, 8);
    rig_assert_overflow(rig, 0, BIT64(0), 1000);
    g_assert_cmpuint(rig->engine.plans, ==, plans + 1);
}

/* An early fold changes no counter. */
static void test_folding_early(Rig *rig)
{
    unsigned i;

    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_arm(rig, 0, 100);
    for (i = 0; i < 99; i++) {
        rig_count(rig, PMU_TALLY_INSNS, i % 3, 1);
        pmu_fold(rig->pmu);
    }
    g_assert_cmpuint(rig->log->len, ==, 0);
    rig_count(rig, PMU_TALLY_INSNS, USER, 1);
    rig_assert_overflow(rig, 0, BIT64(0), 100);
}

/* An instruction that was counted when the counter was read can still fault. */
static void test_taken_back(Rig *rig)
{
    uint64_t *tally = &rig->engine.tallies[PMU_TALLY_INSNS][USER];

    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_count(rig, PMU_TALLY_INSNS, USER, 10);
    rig_assert_value(rig, 0, 10);
    *tally -= 2;
    rig_assert_value(rig, 0, 10);
    g_assert_cmpuint(pmu_peek(rig->pmu, 0), ==, 10);
    *tally += 2;
    rig_assert_value(rig, 0, 10);
    *tally += 3;
    rig_assert_value(rig, 0, 13);
}

static uint64_t jump_to;

/*
 * A tally that is not wanted may stand still, or jump when it is wanted again.
 */
static void jump(PmuManual *m, PmuTallies wanted)
{
    PmuTallies fresh = wanted & ~m->wanted;
    unsigned t;

    for (t = 0; t < PMU_TALLY__MAX; t++) {
        if (fresh & BIT64(t)) {
            m->tallies[t][USER] = jump_to;
        }
    }
}

static void test_standing_still(Rig *rig)
{
    rig->plan = jump;
    for (jump_to = 1000; jump_to > 0; jump_to -= 100) {
        rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
        rig_arm(rig, 0, 5);
        rig_count(rig, PMU_TALLY_INSNS, USER, 4);
        rig_run(rig, BIT64(0), false);
        rig_assert_value(rig, 0, LOW_BITS(48));
    }
    g_assert_cmpuint(rig->log->len, ==, 0);
}

/* A clock that advances each time it is read. */
static void tick(PmuManual *m)
{
    m->tallies[PMU_TALLY_CYCLES][USER] += 10;
    m->tallies[PMU_TALLY_CYCLES][KERNEL] += 1;
}

static void test_one_time_per_fold(Rig *rig)
{
    unsigned i;

    rig->sync = tick;
    pmu_begin(rig->pmu);
    for (i = 0; i < 3; i++) {
        rig_start(rig, i, PMU_EVENT_CYCLES, i ? ALL_MODES : BIT64(KERNEL));
    }
    pmu_commit(rig->pmu);
    for (i = 1; i < 10; i++) {
        pmu_begin(rig->pmu);
        rig_assert_value(rig, 0, i);
        rig_assert_value(rig, 1, 11 * i);
        rig_assert_value(rig, 2, 11 * i);
        pmu_commit(rig->pmu);
    }
    g_assert_cmpuint(pmu_peek(rig->pmu, 1), ==, 11 * i);
}

static void test_freed_wants_nothing(void)
{
    Rig rig;

    rig_init(&rig, PMU_MAX_COUNTERS, 1);
    rig_start(&rig, PMU_MAX_COUNTERS - 1, PMU_EVENT_STORES, 1);
    g_assert_cmphex(rig.engine.wanted, ==, WANTED(STORES));
    rig_cleanup(&rig);
    pmu_free(NULL);
}

int main(int argc, char *argv[])
{
    g_test_init(&argc, &argv, NULL);
    rig_add("/pmu/engine/wanted", test_wanted);
    rig_add("/pmu/engine/modes", test_modes);
    rig_add("/pmu/engine/no-modes", test_nothing_wanted_without_modes);
    rig_add("/pmu/engine/inverted", test_inverted_wants_both);
    rig_add("/pmu/engine/no-deadline", test_no_deadline_without_alert);
    rig_add("/pmu/engine/quiet", test_quiet);
    rig_add("/pmu/engine/deadline-of-one-mode", test_deadline_of_one_mode);
    rig_add("/pmu/engine/shares", test_shares);
    rig_add("/pmu/engine/few-folds", test_few_folds);
    rig_add("/pmu/engine/shares-after-a-change", test_shares_after_a_change);
    rig_add("/pmu/engine/timed", test_timed);
    rig_add("/pmu/engine/folding-early", test_folding_early);
    rig_add("/pmu/engine/taken-back", test_taken_back);
    rig_add("/pmu/engine/standing-still", test_standing_still);
    rig_add("/pmu/engine/one-time-per-fold", test_one_time_per_fold);
    g_test_add_func("/pmu/engine/freed", test_freed_wants_nothing);
    return g_test_run();
}
