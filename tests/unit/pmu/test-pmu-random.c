/*
 * Performance monitoring unit: the model against a naive one
 *
 * The naive model takes one event at a time and looks at every counter after
 * each.  Both are given the same random history; their values, overflows and
 * the exact positions of these have to agree.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "pmu-rig.h"

#define NR_COUNTERS 6
#define NR_SEEDS 40
#define NR_STEPS 1500

typedef struct NaiveCounter {
    PmuCounterShape shape;
    uint64_t value;
    PmuTallies tallies;
    PmuModes modes;
    bool running;
    bool alert;
} NaiveCounter;

/* @overflowed: counters that have overflowed since the last comparison */
typedef struct Naive {
    NaiveCounter counters[NR_COUNTERS];
    uint64_t freeze_by, freeze;
    uint64_t overflowed;
    uint64_t at;
    GArray *log;
} Naive;

/* One history, given to both models. */
typedef struct Twin {
    Rig rig;
    Naive naive;
    GRand *rand;
    uint64_t overflowed;
    uint64_t period[NR_COUNTERS];
} Twin;

static Twin twin;

static uint64_t naive_mask(const NaiveCounter *c)
{
    return LOW_BITS(c->shape.width);
}

/*
 * Counters that alert or freeze: both handlers sample on these, and thaw all.
 */
static uint64_t alerting(void)
{
    uint64_t set = twin.naive.freeze_by;
    unsigned i;

    for (i = 0; i < NR_COUNTERS; i++) {
        set |= twin.naive.counters[i].alert ? BIT64(i) : 0;
    }
    return set;
}

static uint64_t reload_value(unsigned i)
{
    return twin.naive.counters[i].shape.overflow_at - twin.period[i];
}

static void naive_handle(Naive *n, uint64_t counters)
{
    Overflow overflow = { .counters = counters, .at = n->at };
    unsigned i;

    g_array_append_val(n->log, overflow);
    for (i = 0; i < NR_COUNTERS; i++) {
        NaiveCounter *c = &n->counters[i];

        if (n->freeze & n->freeze_by & BIT64(i)) {
            c->running = true;
        }
        if (counters & BIT64(i)) {
            c->value = reload_value(i) & naive_mask(c);
        }
    }
}

static bool naive_count(NaiveCounter *c, PmuTally t, unsigned m)
{
    if (!c->running || !(c->tallies & BIT64(t)) || !(c->modes & BIT64(m))) {
        return false;
    }
    c->value = (c->value + 1) & naive_mask(c);
    return c->value == (c->shape.overflow_at & naive_mask(c));
}

static void naive_event(Naive *n, PmuTally t, unsigned m)
{
    uint64_t overflowed = 0;
    unsigned i;

    n->at++;
    for (i = 0; i < NR_COUNTERS; i++) {
        overflowed |= naive_count(&n->counters[i], t, m) ? BIT64(i) : 0;
    }
    for (i = 0; i < NR_COUNTERS; i++) {
        if (overflowed & n->freeze_by && n->freeze & BIT64(i)) {
            n->counters[i].running = false;
        }
    }
    n->overflowed |= overflowed;
    if (overflowed & alerting()) {
        naive_handle(n, overflowed & alerting());
    }
}

/* Other overflows found here had no deadline, and are compared as a set. */
static void rig_handle(Rig *rig, uint64_t counters)
{
    Overflow *last = &g_array_index(rig->log, Overflow, rig->log->len - 1);
    unsigned i;

    twin.overflowed |= counters;
    last->counters &= alerting();
    if (!last->counters) {
        g_array_set_size(rig->log, rig->log->len - 1);
        return;
    }
    pmu_begin(rig->pmu);
    for (i = 0; i < NR_COUNTERS; i++) {
        if (twin.naive.freeze & twin.naive.freeze_by & BIT64(i)) {
            pmu_run(rig->pmu, i, true);
        }
        if (last->counters & BIT64(i)) {
            pmu_write(rig->pmu, i, reload_value(i));
        }
    }
    pmu_commit(rig->pmu);
}

/* The functions below change both models alike, in a transaction. */

static void twin_select(unsigned i)
{
    static const PmuEvent events[] = {
        PMU_EVENT_NONE, PMU_EVENT_CYCLES, PMU_EVENT_INSNS, PMU_EVENT_BRANCHES,
        PMU_EVENT_TAKEN_BRANCHES, PMU_EVENT_CALLS, PMU_EVENT_LOADS,
    };
    PmuSelect select = {
        .event = events[g_rand_int_range(twin.rand, 0, G_N_ELEMENTS(events))],
        .modes = g_rand_int(twin.rand) & ALL_MODES,
    };

    pmu_select(twin.rig.pmu, i, &select);
    twin.naive.counters[i].tallies = pmu_event_tallies(select.event);
    twin.naive.counters[i].modes = select.modes;
}

static void twin_write(unsigned i)
{
    twin.period[i] = 1 + g_rand_int(twin.rand) % (1 << i * 2);
    pmu_write(twin.rig.pmu, i, reload_value(i));
    twin.naive.counters[i].value = reload_value(i)
                                   & naive_mask(&twin.naive.counters[i]);
}

static void twin_run(unsigned i)
{
    bool running = g_rand_int_range(twin.rand, 0, 4) > 0;

    pmu_run(twin.rig.pmu, i, running);
    twin.naive.counters[i].running = running;
}

static void twin_alert(unsigned i)
{
    bool alert = g_rand_boolean(twin.rand);

    pmu_set_alert(twin.rig.pmu, i, alert);
    twin.naive.counters[i].alert = alert;
}

static void twin_freeze(unsigned i)
{
    twin.naive.freeze_by ^= BIT64(i);
    twin.naive.freeze = g_rand_int(twin.rand) & LOW_BITS(NR_COUNTERS);
    pmu_set_freeze(twin.rig.pmu, twin.naive.freeze_by, twin.naive.freeze);
}

static void (*const changes[])(unsigned i) = {
    twin_select, twin_write, twin_run, twin_alert, twin_freeze,
};

static void twin_change(void)
{
    int n = g_rand_int_range(twin.rand, 0, 2 * NR_COUNTERS);

    pmu_begin(twin.rig.pmu);
    while (n-- > 0) {
        changes[g_rand_int_range(twin.rand, 0, G_N_ELEMENTS(changes))](
            g_rand_int_range(twin.rand, 0, NR_COUNTERS));
    }
    pmu_commit(twin.rig.pmu);
}

static void twin_count(void)
{
    PmuTally t = g_rand_int_range(twin.rand, 0, PMU_TALLY__MAX);
    unsigned m = g_rand_int_range(twin.rand, 0, PMU_MAX_MODES);
    int n = 1 + g_rand_int(twin.rand) % (1 << g_rand_int_range(twin.rand,
                                                               0, 10));

    rig_count(&twin.rig, t, m, n);
    while (n-- > 0) {
        naive_event(&twin.naive, t, m);
    }
}

static void twin_compare(void)
{
    GArray *log = twin.rig.log, *naive_log = twin.naive.log;
    unsigned i;

    for (i = 0; i < NR_COUNTERS; i++) {
        g_assert_cmphex(pmu_peek(twin.rig.pmu, i), ==,
                        twin.naive.counters[i].value);
        g_assert_cmpint(pmu_is_running(twin.rig.pmu, i), ==,
                        twin.naive.counters[i].running);
    }
    g_assert_cmpmem(log->data, log->len * sizeof(Overflow),
                    naive_log->data, naive_log->len * sizeof(Overflow));
}

static void twin_compare_overflowed(void)
{
    pmu_fold(twin.rig.pmu);
    g_assert_cmphex(twin.overflowed, ==, twin.naive.overflowed);
    twin.overflowed = 0;
    twin.naive.overflowed = 0;
}

static void twin_shape(unsigned i)
{
    static const uint8_t widths[] = { 3, 8, 32, 32, 48, 64 };
    uint8_t width = widths[g_rand_int_range(twin.rand, 0,
                                            G_N_ELEMENTS(widths))];
    PmuCounterShape shape = {
        .width = width,
        .overflow_at = g_rand_boolean(twin.rand) ? BIT64(width - 1) : 0,
    };

    pmu_set_shape(twin.rig.pmu, i, shape);
    twin.naive.counters[i].shape = shape;
}

static void twin_init(unsigned seed)
{
    unsigned i;

    memset(&twin, 0, sizeof(twin));
    rig_init(&twin.rig, NR_COUNTERS, PMU_MAX_MODES);
    twin.rig.handler = rig_handle;
    twin.naive.log = g_array_new(false, false, sizeof(Overflow));
    twin.rand = g_rand_new_with_seed(seed);
    for (i = 0; i < NR_COUNTERS; i++) {
        twin_shape(i);
        twin.period[i] = 1;
    }
}

static void test_seed(gconstpointer data)
{
    unsigned step;

    twin_init(GPOINTER_TO_UINT(data));
    for (step = 0; step < NR_STEPS; step++) {
        if (g_rand_int_range(twin.rand, 0, 8) == 0) {
            twin_compare_overflowed();
            twin_change();
        }
        twin_count();
        twin_compare();
    }
    g_test_message("%u overflows", twin.naive.log->len);
    g_rand_free(twin.rand);
    g_array_free(twin.naive.log, true);
    rig_cleanup(&twin.rig);
}

/*
 * The number of plans that the model makes for a counter of 64 cells (tallies
 * times modes).  It must depend only on the logarithm of the period.
 */

#define FIRST_CELL PMU_TALLY_COND_TAKEN
#define NR_CELLS 64
#define NR_PERIODS 5

static uint64_t period;

static void reload(Rig *rig, uint64_t counters)
{
    g_assert_cmphex(counters, ==, BIT64(0));
    rig_write(rig, 0, -period);
}

static void count_in_cell(Rig *rig, unsigned cell, uint64_t n)
{
    rig_count(rig, FIRST_CELL + cell / PMU_MAX_MODES, cell % PMU_MAX_MODES, n);
}

/* Programs do one thing for a while, then another. */
static void bursts(Rig *rig, GRand *rand)
{
    uint64_t length = g_rand_double_range(rand, 1, period / 4 + 2);

    count_in_cell(rig, g_rand_int_range(rand, 0, NR_CELLS), length);
}

/* The model's worst enemy uses up the smallest budget. */
static void enemy(Rig *rig, GRand *rand)
{
    const uint64_t *budgets = rig->engine.budgets[FIRST_CELL];
    unsigned least = g_rand_int_range(rand, 0, NR_CELLS);
    unsigned cell;

    for (cell = 0; cell < NR_CELLS; cell++) {
        least = budgets[cell] < budgets[least] ? cell : least;
    }
    count_in_cell(rig, least, budgets[least]);
}

/*
 * Each plan gives a 16th of the remaining distance to the 63 other cells.  The
 * enemy uses up one such share per plan, until shares are one event.
 */
static const struct Traffic {
    const char *path;
    void (*count)(Rig *rig, GRand *rand);
    unsigned plans, plans_per_bit;
} traffics[] = {
    { "/pmu/plans/bursts", bursts, 24, 1 },
    { "/pmu/plans/enemy", enemy, 16 * 63, 699 /* 16 * 63 * ln 2 */ },
};

static double plans_per_period(const struct Traffic *traffic, unsigned bits)
{
    GRand *rand = g_rand_new_with_seed(4711);
    double plans;
    Rig rig;

    rig_init(&rig, 1, PMU_MAX_MODES);
    rig.handler = reload;
    period = BIT64(bits);
    rig_start(&rig, 0, PMU_EVENT_BRANCHES, ALL_MODES);
    rig_arm(&rig, 0, period);
    while (rig.log->len < NR_PERIODS) {
        traffic->count(&rig, rand);
    }
    plans = (double)rig.engine.plans / rig.log->len;
    rig_cleanup(&rig);
    g_rand_free(rand);
    return plans;
}

static void test_plans(gconstpointer data)
{
    const struct Traffic *traffic = data;
    unsigned bits;

    for (bits = 0; bits <= 44; bits += 4) {
        double plans = plans_per_period(traffic, bits);

        g_test_message("period 2^%u: %.1f plans", bits, plans);
        g_assert_cmpfloat(plans, <,
                          traffic->plans + traffic->plans_per_bit * bits);
    }
}

int main(int argc, char *argv[])
{
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    for (i = 1; i <= NR_SEEDS; i++) {
        g_autofree char *path = g_strdup_printf("/pmu/random/%u", i);

        g_test_add_data_func(path, GUINT_TO_POINTER(i), test_seed);
    }
    for (i = 0; i < G_N_ELEMENTS(traffics); i++) {
        g_test_add_data_func(traffics[i].path, &traffics[i], test_plans);
    }
    return g_test_run();
}
