/*
 * Performance monitoring unit: events, thresholds, inversion and edges
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "pmu-rig.h"

#define T(name) BIT64(PMU_TALLY_##name)

/* Each tally grows by its own power of two, so sums identify them. */
static const uint64_t events[PMU_EVENT__MAX] = {
    [PMU_EVENT_CYCLES]            = T(CYCLES),
    [PMU_EVENT_REF_CYCLES]        = T(REF_CYCLES),
    [PMU_EVENT_INSNS]             = T(INSNS),
    [PMU_EVENT_BRANCHES]          = T(COND_TAKEN) | T(COND_NOT_TAKEN)
                                    | T(JUMPS) | T(INDIRECT_JUMPS)
                                    | T(CALLS) | T(INDIRECT_CALLS)
                                    | T(RETURNS) | T(FAR_BRANCHES),
    [PMU_EVENT_COND_BRANCHES]     = T(COND_TAKEN) | T(COND_NOT_TAKEN),
    [PMU_EVENT_COND_TAKEN]        = T(COND_TAKEN),
    [PMU_EVENT_COND_NOT_TAKEN]    = T(COND_NOT_TAKEN),
    [PMU_EVENT_TAKEN_BRANCHES]    = T(COND_TAKEN)
                                    | T(JUMPS) | T(INDIRECT_JUMPS)
                                    | T(CALLS) | T(INDIRECT_CALLS)
                                    | T(RETURNS) | T(FAR_BRANCHES),
    [PMU_EVENT_NEAR_TAKEN]        = T(COND_TAKEN)
                                    | T(JUMPS) | T(INDIRECT_JUMPS)
                                    | T(CALLS) | T(INDIRECT_CALLS)
                                    | T(RETURNS),
    [PMU_EVENT_CALLS]             = T(CALLS) | T(INDIRECT_CALLS),
    [PMU_EVENT_RETURNS]           = T(RETURNS),
    [PMU_EVENT_INDIRECT_BRANCHES] = T(INDIRECT_JUMPS) | T(INDIRECT_CALLS),
    [PMU_EVENT_DIRECT_CALLS]      = T(CALLS),
    [PMU_EVENT_INDIRECT_CALLS]    = T(INDIRECT_CALLS),
    [PMU_EVENT_FAR_BRANCHES]      = T(FAR_BRANCHES),
    [PMU_EVENT_LOADS]             = T(LOADS),
    [PMU_EVENT_STORES]            = T(STORES),
    [PMU_EVENT_ACCESSES]          = T(LOADS) | T(STORES),
    [PMU_EVENT_INTERRUPTS]        = T(INTERRUPTS),
    [PMU_EVENT_EXCEPTIONS]        = T(EXCEPTIONS),
    [PMU_EVENT_DTLB_LOAD_MISSES]  = T(DTLB_LOAD_MISSES),
    [PMU_EVENT_DTLB_STORE_MISSES] = T(DTLB_STORE_MISSES),
    [PMU_EVENT_DTLB_MISSES]       = T(DTLB_LOAD_MISSES)
                                    | T(DTLB_STORE_MISSES),
    [PMU_EVENT_ITLB_MISSES]       = T(ITLB_MISSES),
    [PMU_EVENT_FAILED_STORES]     = T(FAILED_STORES),
    [PMU_EVENT_L1D_MISSES]        = T(L1D_MISSES),
    [PMU_EVENT_L1D_LOAD_MISSES]   = T(L1D_LOAD_MISSES),
    [PMU_EVENT_L1D_STORE_MISSES]  = T(L1D_STORE_MISSES),
    [PMU_EVENT_L1D_LOAD_HITS]     = T(L1D_LOAD_HITS),
    [PMU_EVENT_L1I_MISSES]        = T(L1I_MISSES),
    [PMU_EVENT_LLC_REFS]          = T(LLC_REFS),
    [PMU_EVENT_LLC_MISSES]        = T(LLC_MISSES),
    [PMU_EVENT_LLC_LOAD_HITS]     = T(LLC_LOAD_HITS),
    [PMU_EVENT_LLC_LOAD_MISSES]   = T(LLC_LOAD_MISSES),
    [PMU_EVENT_LLC_STORE_MISSES]  = T(LLC_STORE_MISSES),
    [PMU_EVENT_LLC_FETCH_MISSES]  = T(LLC_FETCH_MISSES),
    [PMU_EVENT_BRANCH_MISSES]     = T(BRANCH_MISSES),
    [PMU_EVENT_COND_MISSES]       = T(COND_MISSES),
    [PMU_EVENT_INDIRECT_MISSES]   = T(INDIRECT_MISSES),
    [PMU_EVENT_RETURN_MISSES]     = T(RETURN_MISSES),
    [PMU_EVENT_SPECULATION_CYCLES] = T(SPECULATION_CYCLES),
    [PMU_EVENT_FRONTEND_CYCLES]   = T(FRONTEND_CYCLES),
    [PMU_EVENT_BACKEND_CYCLES]    = T(BACKEND_CYCLES),
    [PMU_EVENT_RETIRING_CYCLES]   = T(RETIRING_CYCLES),
};

static void test_events(Rig *rig)
{
    PmuEvent event;
    PmuTally t;

    for (event = 0; event < PMU_EVENT__MAX; event++) {
        g_assert_cmphex(pmu_event_tallies(event), ==, events[event]);
        rig_start(rig, 0, event, ALL_MODES);
        rig_write(rig, 0, 0);
        for (t = 0; t < PMU_TALLY__MAX; t++) {
            rig_count(rig, t, t % PMU_MAX_MODES, BIT64(t));
        }
        rig_assert_value(rig, 0, events[event]);
    }
}

/*
 * An imaginary stretch of execution.  At most one instruction retires per
 * cycle, and each event of one kind belongs to another instruction.
 */
#define CYCLES 1000
#define REFS   900
#define INSNS  700
#define LOADS  30
#define WAKES  4

static const struct {
    PmuEvent event;
    uint8_t threshold;
    bool invert, edge;
    uint64_t expected;
} options[] = {
    { PMU_EVENT_INSNS,      0, false, false, INSNS },
    { PMU_EVENT_INSNS,      1, false, false, INSNS },
    { PMU_EVENT_INSNS,      2, false, false, 0 },
    { PMU_EVENT_INSNS,    255, false, false, 0 },
    { PMU_EVENT_INSNS,      0, true,  false, INSNS },
    { PMU_EVENT_INSNS,      1, true,  false, CYCLES - INSNS },
    { PMU_EVENT_INSNS,      2, true,  false, CYCLES },
    { PMU_EVENT_INSNS,    255, true,  false, CYCLES },
    { PMU_EVENT_INSNS,      0, false, true,  INSNS },
    { PMU_EVENT_INSNS,      1, false, true,  INSNS },
    { PMU_EVENT_INSNS,      2, false, true,  0 },
    { PMU_EVENT_INSNS,      0, true,  true,  INSNS },
    { PMU_EVENT_INSNS,      1, true,  true,  INSNS },
    { PMU_EVENT_INSNS,      2, true,  true,  WAKES },
    { PMU_EVENT_LOADS,      1, true,  false, CYCLES - LOADS },
    { PMU_EVENT_LOADS,      1, false, true,  LOADS },
    { PMU_EVENT_CYCLES,     0, false, false, CYCLES },
    { PMU_EVENT_CYCLES,     1, false, false, CYCLES },
    { PMU_EVENT_CYCLES,     2, false, false, 0 },
    { PMU_EVENT_CYCLES,     0, true,  false, CYCLES },
    { PMU_EVENT_CYCLES,     1, true,  false, 0 },
    { PMU_EVENT_CYCLES,     2, true,  false, CYCLES },
    { PMU_EVENT_CYCLES,     0, false, true,  WAKES },
    { PMU_EVENT_CYCLES,     1, false, true,  WAKES },
    { PMU_EVENT_CYCLES,     1, true,  true,  0 },
    { PMU_EVENT_CYCLES,     2, false, true,  0 },
    { PMU_EVENT_CYCLES,     2, true,  true,  WAKES },
    { PMU_EVENT_REF_CYCLES, 0, false, false, REFS },
    { PMU_EVENT_REF_CYCLES, 1, true,  false, 0 },
    { PMU_EVENT_REF_CYCLES, 1, false, true,  WAKES },
    { PMU_EVENT_NONE,       0, false, false, 0 },
    { PMU_EVENT_NONE,       1, true,  false, 0 },
    { PMU_EVENT_NONE,       2, true,  true,  0 },
};

static void test_options(Rig *rig)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(options); i++) {
        PmuSelect select = {
            .event = options[i].event,
            .modes = ALL_MODES,
            .threshold = options[i].threshold,
            .invert = options[i].invert,
            .edge = options[i].edge,
        };

        pmu_begin(rig->pmu);
        pmu_select(rig->pmu, 0, &select);
        pmu_write(rig->pmu, 0, 0);
        pmu_run(rig->pmu, 0, true);
        pmu_commit(rig->pmu);
        rig_count(rig, PMU_TALLY_CYCLES, USER, CYCLES);
        rig_count(rig, PMU_TALLY_REF_CYCLES, USER, REFS);
        rig_count(rig, PMU_TALLY_INSNS, USER, INSNS);
        rig_count(rig, PMU_TALLY_LOADS, USER, LOADS);
        rig_count(rig, PMU_TALLY_WAKEUPS, USER, WAKES);
        g_test_message("row %u", i);
        rig_assert_value(rig, 0, options[i].expected);
    }
}

/* An event that counts several overflows in the event that passes the limit. */
static void test_each(Rig *rig)
{
    const PmuSelect select = {
        .event = PMU_EVENT_FRONTEND_CYCLES, .modes = ALL_MODES, .each = 4,
    };

    pmu_begin(rig->pmu);
    pmu_select(rig->pmu, 0, &select);
    pmu_run(rig->pmu, 0, true);
    pmu_commit(rig->pmu);
    rig_arm(rig, 0, 10);
    rig_count(rig, PMU_TALLY_FRONTEND_CYCLES, USER, 2);
    g_assert_cmpuint(rig->log->len, ==, 0);
    rig_count(rig, PMU_TALLY_FRONTEND_CYCLES, KERNEL, 5);
    g_assert_cmpuint(rig->log->len, ==, 1);
    rig_assert_overflow(rig, 0, 1, 3);
    rig_assert_value(rig, 0, 7 * 4 - 10);
}

/* Its overflow is planned for that event, and no later one. */
static void test_each_is_planned(Rig *rig)
{
    const PmuSelect select = {
        .event = PMU_EVENT_FRONTEND_CYCLES, .modes = BIT64(USER), .each = 4,
    };
    const uint64_t *budget = rig->engine.budgets[PMU_TALLY_FRONTEND_CYCLES];

    pmu_begin(rig->pmu);
    pmu_select(rig->pmu, 0, &select);
    pmu_run(rig->pmu, 0, true);
    pmu_commit(rig->pmu);
    for (unsigned distance = 1; distance <= 9; distance++) {
        rig_arm(rig, 0, distance);
        g_assert_cmpuint(budget[USER], ==, (distance + 3) / 4);
    }
}

/* Cycles without the event. */
static void select_inverted(Rig *rig, unsigned counter, PmuEvent event)
{
    PmuSelect select = {
        .event = event,
        .modes = BIT64(USER),
        .threshold = 1,
        .invert = true,
    };

    pmu_begin(rig->pmu);
    pmu_select(rig->pmu, counter, &select);
    pmu_run(rig->pmu, counter, true);
    pmu_commit(rig->pmu);
}

static void select_stalls(Rig *rig, unsigned counter)
{
    select_inverted(rig, counter, PMU_EVENT_INSNS);
}

/* Stalls are counted in the modes of the counter only. */
static void test_inverted_modes(Rig *rig)
{
    select_stalls(rig, 0);
    rig_count(rig, PMU_TALLY_CYCLES, USER, 50);
    rig_count(rig, PMU_TALLY_INSNS, USER, 20);
    rig_count(rig, PMU_TALLY_CYCLES, KERNEL, 1000);
    rig_count(rig, PMU_TALLY_INSNS, KERNEL, 400);
    rig_assert_value(rig, 0, 30);
}

/* An instruction retires together with its cycle. */
static void one_cycle(Rig *rig, bool stalled)
{
    rig->engine.tallies[PMU_TALLY_INSNS][USER] += !stalled;
    rig_count(rig, PMU_TALLY_CYCLES, USER, 1);
}

static void test_inverted_overflow(Rig *rig)
{
    unsigned i;

    select_stalls(rig, 0);
    rig_arm(rig, 0, 50);
    for (i = 1; i <= 100; i++) {
        one_cycle(rig, false);
        one_cycle(rig, false);
        g_assert_cmpuint(rig->log->len, ==, i <= 50 ? 0 : 1);
        one_cycle(rig, true);
        g_assert_cmpuint(rig->log->len, ==, i < 50 ? 0 : 1);
    }
    rig_assert_value(rig, 0, 50);
}

/* Cycles that follow a clock can lag, and catch up later. */
static void test_inverted_is_never_negative(Rig *rig)
{
    select_stalls(rig, 0);
    rig_count(rig, PMU_TALLY_CYCLES, USER, 50);
    rig_count(rig, PMU_TALLY_INSNS, USER, 70);
    rig_assert_value(rig, 0, 0);
    rig_count(rig, PMU_TALLY_CYCLES, USER, 9);
    rig_assert_value(rig, 0, 0);
    rig_count(rig, PMU_TALLY_CYCLES, USER, 20);
    rig_assert_value(rig, 0, 9);
}

/*
 * Compare with a counter that looks at each cycle.  An instruction's event
 * belongs to the cycle of that instruction, any other event to the next cycle.
 * Reading the counters in between changes nothing.
 */
static void expect_inverted(Rig *rig, GRand *rand, unsigned reads)
{
    uint64_t no_load = 0, no_interrupt = 0, taken = 0;
    unsigned i;

    for (i = 0; i < 5000; i++) {
        bool load = g_rand_boolean(rand);
        bool interrupt = g_rand_int_range(rand, 0, 100) < 30;

        if (interrupt) {
            rig_count(rig, PMU_TALLY_INTERRUPTS, USER, 1);
            taken++;
        }
        if (g_rand_boolean(rand)) {
            rig->engine.tallies[PMU_TALLY_LOADS][USER] += load;
            rig_count(rig, PMU_TALLY_CYCLES, USER, 1);
            no_load += !load;
            no_interrupt += !taken;
            taken -= taken > 0;
        }
        if (reads && i % reads == 0) {
            rig_assert_value(rig, 0, no_load);
            rig_assert_value(rig, 1, no_interrupt);
        }
    }
    rig_assert_value(rig, 0, no_load);
    rig_assert_value(rig, 1, no_interrupt);
}

static void test_inverted_does_not_depend_on_reads(Rig *rig)
{
    static const unsigned reads[] = { 0, 1, 2, 7, 100 };
    g_autoptr(GRand) rand = g_rand_new_with_seed(4711);
    unsigned i;

    select_inverted(rig, 0, PMU_EVENT_LOADS);
    select_inverted(rig, 1, PMU_EVENT_INTERRUPTS);
    for (i = 0; i < G_N_ELEMENTS(reads); i++) {
        rig_write(rig, 0, 0);
        rig_write(rig, 1, 0);
        expect_inverted(rig, rand, reads[i]);
    }
}

/* Each event has its own name. */
static void test_names(void)
{
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);

    g_assert_null(pmu_event_name(PMU_EVENT_NONE));
    for (PmuEvent e = PMU_EVENT_NONE + 1; e < PMU_EVENT__MAX; e++) {
        g_assert_nonnull(pmu_event_name(e));
        g_assert_true(g_hash_table_add(names, (char *)pmu_event_name(e)));
    }
}

int main(int argc, char *argv[])
{
    g_test_init(&argc, &argv, NULL);
    rig_add("/pmu/select/events", test_events);
    g_test_add_func("/pmu/select/names", test_names);
    rig_add("/pmu/select/options", test_options);
    rig_add("/pmu/select/each", test_each);
    rig_add("/pmu/select/each/plan", test_each_is_planned);
    rig_add("/pmu/select/inverted/modes", test_inverted_modes);
    rig_add("/pmu/select/inverted/overflow", test_inverted_overflow);
    rig_add("/pmu/select/inverted/never-negative",
            test_inverted_is_never_negative);
    rig_add("/pmu/select/inverted/reads",
            test_inverted_does_not_depend_on_reads);
    return g_test_run();
}
