/*
 * Performance monitoring unit: Pmus that share an engine
 *
 * The same random history is given to a Pmu that is alone and to one that
 * shares its engine: both count the same and signal overflow at the same
 * events.  The other Pmu comes and goes, and overflows exactly where its
 * events, counted one by one, make up its periods.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "pmu-rig.h"

#define NR_COUNTERS 5
#define NR_OTHERS 4
#define NR_SEEDS 60
#define NR_STEPS 1200

/**
 * struct Other - a counter of the other Pmu
 * @tallies: the tallies that it counts
 * @modes: the modes in which it counts
 * @period: the number of events after which it overflows
 * @left: events left until then
 * @expected: the number of overflows that should have been signalled
 * @seen: the number of overflows that were
 */
typedef struct Other {
    PmuTallies tallies;
    PmuModes modes;
    uint64_t period;
    uint64_t left;
    uint64_t expected;
    uint64_t seen;
} Other;

static Rig alone, sharing;
static Pmu *other_pmu;
static Other others[NR_OTHERS];
static GRand *rnd;

static unsigned below(unsigned n)
{
    return g_rand_int_range(rnd, 0, n);
}

static PmuSelect random_select(void)
{
    static const PmuEvent events[] = {
        PMU_EVENT_CYCLES, PMU_EVENT_INSNS, PMU_EVENT_BRANCHES,
        PMU_EVENT_CALLS, PMU_EVENT_LOADS, PMU_EVENT_ACCESSES,
    };

    return (PmuSelect) {
        .event = events[below(G_N_ELEMENTS(events))],
        .modes = 1 + below(ALL_MODES),
    };
}

/*
 * The other Pmu
 */

static void load_other(unsigned i)
{
    pmu_begin(other_pmu);
    pmu_write(other_pmu, i, -others[i].left);
    pmu_commit(other_pmu);
}

static void other_overflow(void *opaque G_GNUC_UNUSED, uint64_t counters)
{
    unsigned i;

    for (i = 0; i < NR_OTHERS; i++) {
        if (counters & BIT64(i)) {
            others[i].seen++;
            load_other(i);
        }
    }
}

static void start_other(unsigned i)
{
    const PmuSelect select = random_select();
    Other *o = &others[i];

    *o = (Other) {
        .tallies = pmu_event_tallies(select.event),
        .modes = select.modes,
        .period = 1 + below(1 << below(12)),
    };
    o->left = o->period;
    pmu_begin(other_pmu);
    pmu_run(other_pmu, i, false);
    pmu_commit(other_pmu);
    pmu_set_shape(other_pmu, i, (PmuCounterShape) { .width = 64 });
    pmu_begin(other_pmu);
    pmu_select(other_pmu, i, &select);
    pmu_write(other_pmu, i, -o->left);
    pmu_set_alert(other_pmu, i, true);
    pmu_run(other_pmu, i, true);
    pmu_commit(other_pmu);
}

static void join(void)
{
    unsigned i;

    other_pmu = pmu_share_join(sharing.engine.share, NR_OTHERS, other_overflow,
                               NULL);
    for (i = 0; i < NR_OTHERS; i++) {
        start_other(i);
    }
}

static void leave(void)
{
    pmu_share_leave(sharing.engine.share, other_pmu);
    other_pmu = NULL;
}

/* Call this before the event, as the handler begins the next period. */
static void expect_of_others(PmuTally t, unsigned m)
{
    unsigned i;

    for (i = 0; other_pmu && i < NR_OTHERS; i++) {
        Other *o = &others[i];

        if (o->tallies & BIT64(t) && o->modes & BIT64(m) && --o->left == 0) {
            o->left = o->period;
            o->expected++;
        }
    }
}

static void check_others(void)
{
    unsigned i;

    for (i = 0; other_pmu && i < NR_OTHERS; i++) {
        g_assert_cmpuint(others[i].seen, ==, others[i].expected);
        g_assert_cmphex(pmu_peek(other_pmu, i), ==, -others[i].left);
    }
}

/*
 * The two Pmus that must agree
 */

static void reload(Rig *rig, uint64_t counters)
{
    unsigned i;

    pmu_begin(rig->pmu);
    for (i = 0; i < NR_COUNTERS; i++) {
        if (counters & BIT64(i)) {
            pmu_write(rig->pmu, i, -(uint64_t)(100 * i + 7));
        }
    }
    pmu_commit(rig->pmu);
}

static void change(Rig *rig, unsigned i, const PmuSelect *select,
                   uint64_t distance, uint32_t bits)
{
    pmu_begin(rig->pmu);
    pmu_select(rig->pmu, i, select);
    pmu_write(rig->pmu, i, -distance);
    /* Otherwise the fold at a join or leave could find an overflow. */
    pmu_set_alert(rig->pmu, i, true);
    pmu_run(rig->pmu, i, bits & 6);
    pmu_set_freeze(rig->pmu, bits >> 8 & bits >> 16 & LOW_BITS(NR_COUNTERS),
                   bits >> 24);
    pmu_commit(rig->pmu);
}

static void change_both(void)
{
    const PmuSelect select = random_select();
    unsigned i = below(NR_COUNTERS);
    uint64_t distance = 1 + below(1 << below(12));
    uint32_t bits = g_rand_int(rnd);

    change(&alone, i, &select, distance, bits);
    change(&sharing, i, &select, distance, bits);
}

static void count_both(void)
{
    static const PmuTally tallies[] = {
        PMU_TALLY_CYCLES, PMU_TALLY_INSNS, PMU_TALLY_INSNS,
        PMU_TALLY_COND_TAKEN, PMU_TALLY_CALLS, PMU_TALLY_LOADS,
    };
    PmuTally t = tallies[below(G_N_ELEMENTS(tallies))];
    unsigned m = below(PMU_MAX_MODES);
    unsigned n = 1 + below(1 << below(9));

    while (n-- > 0) {
        expect_of_others(t, m);
        rig_count(&alone, t, m, 1);
        rig_count(&sharing, t, m, 1);
        check_others();
    }
}

static void compare(void)
{
    unsigned i;

    g_assert_cmpuint(alone.log->len, ==, sharing.log->len);
    for (i = 0; i < alone.log->len; i++) {
        g_assert_cmphex(rig_overflow(&alone, i)->counters, ==,
                        rig_overflow(&sharing, i)->counters);
        g_assert_cmpuint(rig_overflow(&alone, i)->at, ==,
                         rig_overflow(&sharing, i)->at);
    }
    for (i = 0; i < NR_COUNTERS; i++) {
        g_assert_cmphex(pmu_peek(alone.pmu, i), ==, pmu_peek(sharing.pmu, i));
        g_assert_cmpint(pmu_is_running(alone.pmu, i), ==,
                        pmu_is_running(sharing.pmu, i));
    }
}

static void step(void)
{
    unsigned what = below(40);

    if (what == 0) {
        other_pmu ? leave() : join();
    } else if (what == 1 && other_pmu) {
        start_other(below(NR_OTHERS));
    } else if (what < 10) {
        change_both();
        compare();
    } else {
        count_both();
    }
}

static void run_history(uint32_t seed, PmuTallies timed)
{
    int steps = NR_STEPS;

    rnd = g_rand_new_with_seed(seed);
    rig_init(&alone, NR_COUNTERS, PMU_MAX_MODES);
    rig_init(&sharing, NR_COUNTERS, PMU_MAX_MODES);
    alone.handler = sharing.handler = reload;
    alone.engine.timed = sharing.engine.timed = timed;
    while (steps-- > 0) {
        step();
    }
    leave();
    rig_cleanup(&alone);
    rig_cleanup(&sharing);
    g_rand_free(rnd);
}

static void test_random(void)
{
    for (uint32_t seed = 1; seed <= NR_SEEDS; seed++) {
        run_history(seed, 0);
    }
}

static void test_random_timed(void)
{
    for (uint32_t seed = 1; seed <= NR_SEEDS; seed++) {
        run_history(seed, BIT64(PMU_TALLY_CYCLES));
    }
}

/* A Pmu without timed events does not read the clock. */
static unsigned syncs;

static void note_sync(PmuManual *engine G_GNUC_UNUSED)
{
    syncs++;
}

static void test_leaves_the_clock_alone(Rig *rig)
{
    const PmuSelect insns = { PMU_EVENT_INSNS, .modes = ALL_MODES };

    rig->sync = note_sync;
    rig->engine.timed = BIT64(PMU_TALLY_CYCLES);
    rig_start(rig, 0, PMU_EVENT_CYCLES, ALL_MODES);
    other_pmu = pmu_share_join(rig->engine.share, 1, other_overflow, NULL);
    syncs = 0;
    pmu_begin(other_pmu);
    pmu_select(other_pmu, 0, &insns);
    pmu_run(other_pmu, 0, true);
    pmu_commit(other_pmu);
    pmu_fold(other_pmu);
    g_assert_cmpuint(syncs, ==, 0);
    pmu_fold(rig->pmu);
    g_assert_cmpuint(syncs, ==, 1);
    pmu_share_leave(rig->engine.share, other_pmu);
}

/*
 * A Pmu with at most so many events left is folded before they happen; if all
 * have more, the engine gets a plan all the same.
 */
static void test_folds_before(Rig *rig)
{
    PmuShare *share = rig->engine.share;
    uint64_t folds, others_folds, plans;

    other_pmu = pmu_share_join(share, 1, other_overflow, NULL);
    rig_start(rig, 0, PMU_EVENT_INSNS, BIT64(USER));
    rig_arm(rig, 0, 100);
    rig_count(rig, PMU_TALLY_INSNS, USER, 90);
    folds = pmu_folds(rig->pmu);
    others_folds = pmu_folds(other_pmu);
    plans = rig->engine.plans;
    pmu_share_fold(share, 9);
    g_assert_cmpuint(pmu_folds(rig->pmu), ==, folds);
    g_assert_cmpuint(rig->engine.plans, ==, plans + 1);
    g_assert_cmpuint(rig->engine.budgets[PMU_TALLY_INSNS][USER], ==, 10);
    pmu_share_fold(share, 10);
    g_assert_cmpuint(pmu_folds(rig->pmu), ==, folds + 1);
    g_assert_cmpuint(pmu_folds(other_pmu), ==, others_folds);
    pmu_share_leave(share, other_pmu);
}

/* A Pmu whose counters may overflow late */
static bool can_wait;
static const void *prepared, *called;

static bool wait_for_late(void *opaque, unsigned mode, uint64_t events,
                          PmuLate *late)
{
    *late = (PmuLate) { .owner = opaque, .distance = events - mode };
    return can_wait;
}

static void prepare(const void *owner)
{
    prepared = owner;
}

static const void *called_now(void *opaque G_GNUC_UNUSED)
{
    return called;
}

static const PmuLateOps late_ops = {
    .can_wait = wait_for_late,
    .prepare = prepare,
    .called = called_now,
};

static void test_late(Rig *rig)
{
    PmuShare *share = rig->engine.share;
    PmuLate late;

    rig_start(rig, 0, PMU_EVENT_INSNS, BIT64(USER));
    rig_arm(rig, 0, 100);
    g_assert_true(pmu_share_can_be_late(share, KERNEL, 99, &late));
    g_assert_null(late.owner);
    g_assert_false(pmu_share_is_calling(share, &late));
    other_pmu = pmu_share_join_late(share, 1, other_overflow, &late_ops, rig);
    can_wait = true;
    g_assert_false(pmu_share_can_be_late(share, KERNEL, 100, &late));
    g_assert_true(pmu_share_can_be_late(share, KERNEL, 99, &late));
    g_assert_true(late.owner == rig);
    g_assert_cmpuint(late.distance, ==, 99 - KERNEL);
    pmu_share_prepare_late(share, &late);
    g_assert_true(prepared == rig);
    g_assert_false(pmu_share_is_calling(share, &late));
    called = rig;
    g_assert_true(pmu_share_is_calling(share, &late));
    can_wait = false;
    g_assert_false(pmu_share_can_be_late(share, KERNEL, 99, &late));
    pmu_share_leave(share, other_pmu);
}

static void show(void *opaque, unsigned counter, uint64_t value)
{
    uint64_t *shown = opaque;

    g_assert_cmpuint(counter, ==, 3);
    *shown += value;
}

/* The engine hears of the guest's counters alone. */
static void test_shows_the_guest(Rig *rig)
{
    const PmuSelect insns = { PMU_EVENT_INSNS, .modes = ALL_MODES };
    PmuShare *share = rig->engine.share;
    uint64_t shown = 0;

    other_pmu = pmu_share_join_late(share, 1, other_overflow, &late_ops, rig);
    g_assert_false(pmu_share_in_transaction(share));
    pmu_begin(other_pmu);
    g_assert_true(pmu_share_in_transaction(share));
    pmu_select(other_pmu, 0, &insns);
    pmu_run(other_pmu, 0, true);
    pmu_commit(other_pmu);
    rig_start(rig, 3, PMU_EVENT_INSNS, BIT64(USER));
    rig_start(rig, 2, PMU_EVENT_INSNS, BIT64(KERNEL));
    rig_run(rig, BIT64(2), false);
    rig_count(rig, PMU_TALLY_INSNS, USER, 5);
    g_assert_cmphex(pmu_share_guest_modes(share, PMU_EVENT_INSNS), ==,
                    BIT64(USER));
    g_assert_cmphex(pmu_share_guest_modes(share, PMU_EVENT_CYCLES), ==, 0);
    pmu_share_show_guest(share, show, &shown);
    g_assert_cmpuint(shown, ==, 5);
    pmu_share_leave(share, other_pmu);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pmu/share/random", test_random);
    g_test_add_func("/pmu/share/random-timed", test_random_timed);
    rig_add("/pmu/share/folds-before", test_folds_before);
    rig_add("/pmu/share/leaves-the-clock-alone", test_leaves_the_clock_alone);
    rig_add("/pmu/share/late", test_late);
    rig_add("/pmu/share/shows-the-guest", test_shows_the_guest);
    return g_test_run();
}
