/*
 * Performance monitoring unit: the model of architectural counters
 *
 * The contract is in the header.  The idea: a counter is a view on tallies
 * that only ever grow, so starting, stopping and filtering cost nothing where
 * events happen.  pmu_begin() adds their growth since the last time,
 * pmu_commit() sets the engine's budgets until the next.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "pmu-internal.h"

#define TALLY(name) PMU_TALLY_BIT(PMU_TALLY_##name)

#define COND_TALLIES (TALLY(COND_TAKEN) | TALLY(COND_NOT_TAKEN))
#define CALL_TALLIES (TALLY(CALLS) | TALLY(INDIRECT_CALLS))
#define NEAR_TAKEN_TALLIES                                           \
    (TALLY(COND_TAKEN) | TALLY(JUMPS) | TALLY(INDIRECT_JUMPS)         \
     | CALL_TALLIES | TALLY(RETURNS))
#define TAKEN_TALLIES (NEAR_TAKEN_TALLIES | TALLY(FAR_BRANCHES))

/* So that a 256th of it can be taken without an overflow. */
#define MAX_RECENT (1ull << 40)

/* All but the misses of TLBs, which also occur without a model of the core */
#define CORE_TALLIES \
    ((1ull << PMU_TALLY__MAX) - (1ull << PMU_TALLY_CORE_FIRST))

/*
 * Tallies of instructions that retire, and thus take a cycle of their own: if
 * they are subtracted from cycles, both are known at the same time.
 */
#define RETIRED_TALLIES                                              \
    (TALLY(INSNS) | TALLY(COND_NOT_TAKEN) | TAKEN_TALLIES            \
     | TALLY(LOADS) | TALLY(STORES) | TALLY(FAILED_STORES)           \
     | CORE_TALLIES)

static const PmuTallies event_tallies[PMU_EVENT__MAX] = {
    [PMU_EVENT_CYCLES]            = TALLY(CYCLES),
    [PMU_EVENT_REF_CYCLES]        = TALLY(REF_CYCLES),
    [PMU_EVENT_INSNS]             = TALLY(INSNS),
    [PMU_EVENT_BRANCHES]          = TALLY(COND_NOT_TAKEN) | TAKEN_TALLIES,
    [PMU_EVENT_COND_BRANCHES]     = COND_TALLIES,
    [PMU_EVENT_COND_TAKEN]        = TALLY(COND_TAKEN),
    [PMU_EVENT_COND_NOT_TAKEN]    = TALLY(COND_NOT_TAKEN),
    [PMU_EVENT_TAKEN_BRANCHES]    = TAKEN_TALLIES,
    [PMU_EVENT_NEAR_TAKEN]        = NEAR_TAKEN_TALLIES,
    [PMU_EVENT_CALLS]             = CALL_TALLIES,
    [PMU_EVENT_RETURNS]           = TALLY(RETURNS),
    [PMU_EVENT_INDIRECT_BRANCHES] = TALLY(INDIRECT_JUMPS)
                                    | TALLY(INDIRECT_CALLS),
    [PMU_EVENT_DIRECT_CALLS]      = TALLY(CALLS),
    [PMU_EVENT_INDIRECT_CALLS]    = TALLY(INDIRECT_CALLS),
    [PMU_EVENT_FAR_BRANCHES]      = TALLY(FAR_BRANCHES),
    [PMU_EVENT_LOADS]             = TALLY(LOADS),
    [PMU_EVENT_STORES]            = TALLY(STORES),
    [PMU_EVENT_ACCESSES]          = TALLY(LOADS) | TALLY(STORES),
    [PMU_EVENT_INTERRUPTS]        = TALLY(INTERRUPTS),
    [PMU_EVENT_EXCEPTIONS]        = TALLY(EXCEPTIONS),
    [PMU_EVENT_DTLB_LOAD_MISSES]  = TALLY(DTLB_LOAD_MISSES),
    [PMU_EVENT_DTLB_STORE_MISSES] = TALLY(DTLB_STORE_MISSES),
    [PMU_EVENT_DTLB_MISSES]       = TALLY(DTLB_LOAD_MISSES)
                                    | TALLY(DTLB_STORE_MISSES),
    [PMU_EVENT_ITLB_MISSES]       = TALLY(ITLB_MISSES),
    [PMU_EVENT_FAILED_STORES]     = TALLY(FAILED_STORES),
    [PMU_EVENT_L1D_MISSES]        = TALLY(L1D_MISSES),
    [PMU_EVENT_L1D_LOAD_MISSES]   = TALLY(L1D_LOAD_MISSES),
    [PMU_EVENT_L1D_STORE_MISSES]  = TALLY(L1D_STORE_MISSES),
    [PMU_EVENT_L1D_LOAD_HITS]     = TALLY(L1D_LOAD_HITS),
    [PMU_EVENT_L1I_MISSES]        = TALLY(L1I_MISSES),
    [PMU_EVENT_LLC_REFS]          = TALLY(LLC_REFS),
    [PMU_EVENT_LLC_MISSES]        = TALLY(LLC_MISSES),
    [PMU_EVENT_LLC_LOAD_HITS]     = TALLY(LLC_LOAD_HITS),
    [PMU_EVENT_LLC_LOAD_MISSES]   = TALLY(LLC_LOAD_MISSES),
    [PMU_EVENT_LLC_STORE_MISSES]  = TALLY(LLC_STORE_MISSES),
    [PMU_EVENT_LLC_FETCH_MISSES]  = TALLY(LLC_FETCH_MISSES),
    [PMU_EVENT_BRANCH_MISSES]     = TALLY(BRANCH_MISSES),
    [PMU_EVENT_COND_MISSES]       = TALLY(COND_MISSES),
    [PMU_EVENT_INDIRECT_MISSES]   = TALLY(INDIRECT_MISSES),
    [PMU_EVENT_RETURN_MISSES]     = TALLY(RETURN_MISSES),
    [PMU_EVENT_SPECULATION_CYCLES] = TALLY(SPECULATION_CYCLES),
    [PMU_EVENT_FRONTEND_CYCLES]   = TALLY(FRONTEND_CYCLES),
    [PMU_EVENT_BACKEND_CYCLES]    = TALLY(BACKEND_CYCLES),
    [PMU_EVENT_RETIRING_CYCLES]   = TALLY(RETIRING_CYCLES),
};

PmuTallies pmu_event_tallies(PmuEvent event)
{
    return event_tallies[event];
}

bool pmu_event_needs_core(PmuEvent event)
{
    return event_tallies[event] >> PMU_TALLY_CORE_FIRST;
}

/* The lowest member of a set that is at least @from; 64 without one */
static unsigned next_in_set(uint64_t set, unsigned from)
{
    uint64_t rest = from < 64 ? set >> from << from : 0;

    return rest ? __builtin_ctzll(rest) : 64;
}

#define FOR_EACH_IN_SET(n, set)                      \
    for ((n) = next_in_set(set, 0); (n) < 64;        \
         (n) = next_in_set(set, (n) + 1))

static const PmuCounter *counter_at(const Pmu *pmu, unsigned counter)
{
    assert(counter < pmu->nr_counters);
    return &pmu->counters[counter];
}

static PmuCounter *counter_to_change(Pmu *pmu, unsigned counter)
{
    assert(pmu_in_transaction(pmu));
    assert(counter < pmu->nr_counters);
    return &pmu->counters[counter];
}

static uint64_t counter_mask(const PmuCounter *c)
{
    return UINT64_MAX >> (64 - c->shape.width);
}

static PmuModes all_modes(const Pmu *pmu)
{
    return (1u << pmu->nr_modes) - 1;
}

/* 0 stands for 2^64, a distance that only a counter of 64 bits can have. */
static uint64_t counter_distance(const PmuCounter *c)
{
    uint64_t beyond = c->shape.overflow_at - c->value - 1;

    return (beyond & counter_mask(c)) + 1;
}

static void sync_engine(const Pmu *pmu)
{
    if (pmu->ops->sync) {
        pmu->ops->sync(pmu->engine);
    }
}

/*
 * A tally can shrink: an instruction is counted before it is executed, and
 * taken back if it faults.  That is no growth until the tally has caught up.
 */
static uint64_t tally_growth(const Pmu *pmu, unsigned t, unsigned m)
{
    uint64_t now = pmu->ops->tally(pmu->engine, t, m);

    return now > pmu->last[t][m] ? now - pmu->last[t][m] : 0;
}

/* How much the given tallies have grown in the given modes since the fold. */
static uint64_t growth(const Pmu *pmu, PmuTallies tallies, PmuModes modes)
{
    uint64_t sum = 0;
    unsigned t, m;

    FOR_EACH_IN_SET(t, tallies) {
        FOR_EACH_IN_SET(m, modes) {
            sum += tally_growth(pmu, t, m);
        }
    }
    return sum;
}

static unsigned each_adds(const PmuCounter *c)
{
    return MAX(c->select.each, 1);
}

/*
 * How much the counter has grown since the fold, less the events owed: events
 * that are not in a cycle of their own have to wait for one.  For a tally that
 * is first wanted in this transaction, @last of the Pmu is not valid.
 */
static uint64_t take_growth(const Pmu *pmu, PmuCounter *c)
{
    PmuTallies minus = c->minus & pmu->wanted;
    uint64_t plus, gone;

    if (!c->running) {
        return 0;
    }
    plus = growth(pmu, c->plus & pmu->wanted, c->select.modes);
    gone = c->owed + growth(pmu, minus & RETIRED_TALLIES, c->select.modes);
    c->owed = (gone > plus ? gone - plus : 0)
              + growth(pmu, minus & ~RETIRED_TALLIES, c->select.modes);
    return plus > gone ? (plus - gone) * each_adds(c) : 0;
}

/* How often a counter overflows in @by events: once, and then in each round */
static uint64_t overflows_within(const PmuCounter *c, uint64_t by)
{
    uint64_t distance = counter_distance(c);

    if (distance == 0 || by < distance) {
        return 0;
    }
    return 1 + (c->shape.width < 64 ? (by - distance) >> c->shape.width : 0);
}

/* Returns whether the counter overflowed. */
static bool counter_advance(PmuCounter *c, uint64_t by)
{
    uint64_t overflows = overflows_within(c, by);

    c->overflows += overflows;
    c->value = (c->value + by) & counter_mask(c);
    return overflows;
}

static void take_snapshot(Pmu *pmu, PmuTallies tallies)
{
    unsigned t, m;

    FOR_EACH_IN_SET(t, tallies) {
        FOR_EACH_IN_SET(m, all_modes(pmu)) {
            pmu->last[t][m] = pmu->ops->tally(pmu->engine, t, m);
        }
    }
}

/* Take the tallies as read, and remember how they grow. */
static void note_growth(Pmu *pmu)
{
    unsigned t, m;

    FOR_EACH_IN_SET(t, pmu->wanted) {
        FOR_EACH_IN_SET(m, all_modes(pmu)) {
            uint64_t grown = tally_growth(pmu, t, m);
            uint64_t recent = pmu->recent[t][m] / 2 + grown;

            pmu->last[t][m] += grown;
            pmu->recent[t][m] = MIN(recent, MAX_RECENT);
        }
    }
}

/* Returns the counters that overflowed. */
static uint64_t advance_counters(Pmu *pmu)
{
    uint64_t overflowed = 0;
    unsigned i;

    for (i = 0; i < pmu->nr_counters; i++) {
        PmuCounter *c = &pmu->counters[i];
        uint64_t by = take_growth(pmu, c);

        if (by) {
            overflowed |= (uint64_t)counter_advance(c, by) << i;
        }
    }
    note_growth(pmu);
    return overflowed;
}

static void stop_counters(Pmu *pmu, uint64_t counters)
{
    unsigned i;

    FOR_EACH_IN_SET(i, counters) {
        pmu->counters[i].running = false;
    }
}

bool pmu_in_transaction(const Pmu *pmu)
{
    return pmu->depth > 0;
}

void pmu_begin(Pmu *pmu)
{
    uint64_t overflowed;

    if (pmu->depth++ > 0) {
        return;
    }
    pmu->folds++;
    sync_engine(pmu);
    overflowed = advance_counters(pmu);
    if (overflowed & pmu->freeze_by) {
        stop_counters(pmu, pmu->freeze);
    }
    if (overflowed) {
        pmu->overflow(pmu->opaque, overflowed);
    }
}

static bool counter_stops_engine(const Pmu *pmu, unsigned i)
{
    const PmuCounter *c = &pmu->counters[i];

    return c->running && (c->alert || (pmu->freeze_by >> i & 1));
}

/* Whether the modes of a counter's only tally share one budget */
static bool grows_in_turn(const Pmu *pmu, const PmuCounter *c)
{
    return pmu->ops->timed && __builtin_popcountll(c->plus) == 1
           && !(c->plus & ~pmu->ops->timed(pmu->engine));
}

static void lower_budget(Pmu *pmu, unsigned t, unsigned m, uint64_t budget)
{
    pmu->budgets[t][m] = MIN(pmu->budgets[t][m], budget);
}

/* A counter of one tally and mode, or with one budget, needs no shares. */
static void give_all(Pmu *pmu, const PmuCounter *c, uint64_t distance)
{
    unsigned t, m;

    FOR_EACH_IN_SET(t, c->plus) {
        FOR_EACH_IN_SET(m, c->select.modes) {
            lower_budget(pmu, t, m, distance);
        }
    }
}

/* The recent growth, and the tally and mode that have most of it */
static uint64_t recent_growth(const Pmu *pmu, const PmuCounter *c,
                              unsigned *tally, unsigned *mode)
{
    uint64_t sum = 0, most = 0;
    unsigned t, m;

    *tally = __builtin_ctzll(c->plus);
    *mode = __builtin_ctz(c->select.modes);
    FOR_EACH_IN_SET(t, c->plus) {
        FOR_EACH_IN_SET(m, c->select.modes) {
            sum += pmu->recent[t][m];
            if (pmu->recent[t][m] > most) {
                most = pmu->recent[t][m];
                *tally = t;
                *mode = m;
            }
        }
    }
    return sum;
}

/* Part @i of @total, in steps of a 256th so that nothing overflows. */
static uint64_t proportion(uint64_t of, uint64_t i, uint64_t total)
{
    uint64_t part = total ? i * 256 / total : 0;

    return of / 256 * part + of % 256 * part / 256;
}

/*
 * Divide a counter's distance among the tallies and modes that it spans.
 * Whichever uses up its share first, the sum must not have passed the
 * overflow: the shares, less one event each, stay below the distance.  A
 * 16th is divided equally, as any may begin to grow; the rest in proportion to
 * recent growth, so that they are used up at about the same time.  The next
 * fold divides the remaining distance anew.
 */
static void share_out(Pmu *pmu, const PmuCounter *c, uint64_t distance)
{
    unsigned shares = __builtin_popcountll(c->plus)
                      * __builtin_popcount(c->select.modes);
    uint64_t alike = (distance - 1) / 16 / shares;
    uint64_t rest = distance - 1 - alike * shares;
    uint64_t left = rest;
    unsigned t, m, most_t, most_m;
    uint64_t total = recent_growth(pmu, c, &most_t, &most_m);

    FOR_EACH_IN_SET(t, c->plus) {
        FOR_EACH_IN_SET(m, c->select.modes) {
            uint64_t part = proportion(rest, pmu->recent[t][m], total);

            if (t != most_t || m != most_m) {
                lower_budget(pmu, t, m, 1 + alike + part);
                left -= part;
            }
        }
    }
    lower_budget(pmu, most_t, most_m, 1 + alike + left);
}

/* 0 stands for 2^64, as in counter_distance(). */
static uint64_t events_until(const PmuCounter *c)
{
    uint64_t distance = counter_distance(c);
    unsigned each = each_adds(c);

    return distance / each + (distance % each != 0);
}

static void set_deadline(Pmu *pmu, const PmuCounter *c)
{
    uint64_t distance = events_until(c) ?: PMU_NO_DEADLINE;
    bool is_one = __builtin_popcountll(c->plus) == 1
                  && __builtin_popcount(c->select.modes) == 1;

    if (is_one || grows_in_turn(pmu, c)) {
        give_all(pmu, c, distance);
    } else {
        share_out(pmu, c, distance);
    }
}

/* If the order of events and cycles matters, fold after each event. */
static void stop_at_each(Pmu *pmu, const PmuCounter *c)
{
    unsigned t, m;

    FOR_EACH_IN_SET(t, c->minus & ~RETIRED_TALLIES) {
        FOR_EACH_IN_SET(m, c->select.modes) {
            pmu->budgets[t][m] = 1;
        }
    }
}

static PmuTallies tallies_in_use(const Pmu *pmu, PmuModes *modes)
{
    PmuTallies used = 0;
    unsigned i;

    *modes = 0;
    for (i = 0; i < pmu->nr_counters; i++) {
        const PmuCounter *c = &pmu->counters[i];

        if (c->running && c->select.modes && (c->plus | c->minus)) {
            used |= c->plus | c->minus;
            *modes |= c->select.modes;
        }
    }
    return used;
}

static void clear_budgets(Pmu *pmu, PmuTallies tallies)
{
    unsigned t, m;

    FOR_EACH_IN_SET(t, tallies) {
        for (m = 0; m < PMU_MAX_MODES; m++) {
            pmu->budgets[t][m] = PMU_NO_DEADLINE;
        }
    }
}

void pmu_commit(Pmu *pmu)
{
    PmuTallies before = pmu->wanted;
    PmuModes modes;
    unsigned i;

    assert(pmu_in_transaction(pmu));
    if (--pmu->depth > 0) {
        return;
    }
    pmu->wanted = tallies_in_use(pmu, &modes);
    clear_budgets(pmu, pmu->wanted);
    for (i = 0; i < pmu->nr_counters; i++) {
        const PmuCounter *c = &pmu->counters[i];

        if (counter_stops_engine(pmu, i) && c->plus && c->select.modes) {
            set_deadline(pmu, c);
        }
        if (c->running) {
            stop_at_each(pmu, c);
        }
    }
    pmu->ops->plan(pmu->engine, pmu->wanted, modes, pmu->budgets);

    /* Tallies that are new may not have moved until the engine planned. */
    take_snapshot(pmu, pmu->wanted & ~before);
}

void pmu_fold(Pmu *pmu)
{
    pmu_begin(pmu);
    pmu_commit(pmu);
}

/* Express threshold, inversion and edge as tallies to add and to subtract. */
static void resolve_select(PmuCounter *c)
{
    const PmuSelect *s = &c->select;
    PmuTallies events = pmu_event_tallies(s->event);
    bool every_cycle = s->event == PMU_EVENT_CYCLES
                       || s->event == PMU_EVENT_REF_CYCLES;
    bool invert = s->invert && s->threshold > 0;

    c->plus = 0;
    c->minus = 0;
    if (!events) {
        return;
    }
    if (s->threshold > 1 || (invert && every_cycle)) {
        /* Holds in every cycle or in none. */
        if (invert && s->threshold > 1) {
            c->plus = s->edge ? TALLY(WAKEUPS) : TALLY(CYCLES);
        }
    } else if (s->edge) {
        c->plus = every_cycle ? TALLY(WAKEUPS) : events;
    } else if (invert) {
        c->plus = TALLY(CYCLES);
        c->minus = events;
    } else {
        c->plus = events;
    }
}

void pmu_select(Pmu *pmu, unsigned counter, const PmuSelect *select)
{
    PmuCounter *c = counter_to_change(pmu, counter);
    PmuTallies minus = c->minus;

    c->select = *select;
    c->select.modes &= all_modes(pmu);
    resolve_select(c);
    /* The debt belongs to another event, unless it has just been loaded. */
    if (minus && c->minus != minus) {
        c->owed = 0;
    }
}

const PmuSelect *pmu_selected(const Pmu *pmu, unsigned counter)
{
    return &counter_at(pmu, counter)->select;
}

void pmu_run(Pmu *pmu, unsigned counter, bool running)
{
    counter_to_change(pmu, counter)->running = running;
}

void pmu_set_alert(Pmu *pmu, unsigned counter, bool alert)
{
    counter_to_change(pmu, counter)->alert = alert;
}

void pmu_set_freeze(Pmu *pmu, uint64_t by, uint64_t frozen)
{
    assert(pmu_in_transaction(pmu));
    pmu->freeze_by = by;
    pmu->freeze = frozen;
}

uint64_t pmu_read(Pmu *pmu, unsigned counter)
{
    pmu_fold(pmu);
    return counter_at(pmu, counter)->value;
}

/* The counter as a fold would leave it. */
static PmuCounter counter_now(const Pmu *pmu, unsigned counter)
{
    PmuCounter c = *counter_at(pmu, counter);

    sync_engine(pmu);
    counter_advance(&c, take_growth(pmu, &c));
    return c;
}

uint64_t pmu_peek(const Pmu *pmu, unsigned counter)
{
    return counter_now(pmu, counter).value;
}

void pmu_write(Pmu *pmu, unsigned counter, uint64_t value)
{
    PmuCounter *c = counter_to_change(pmu, counter);

    c->value = value & counter_mask(c);
    c->owed = 0;
}

bool pmu_is_running(const Pmu *pmu, unsigned counter)
{
    return counter_at(pmu, counter)->running;
}

uint64_t pmu_distance(const Pmu *pmu, unsigned counter)
{
    const PmuCounter c = counter_now(pmu, counter);

    return counter_distance(&c) ?: UINT64_MAX;
}

bool pmu_is_quiet(const Pmu *pmu, uint64_t events)
{
    for (unsigned i = 0; i < pmu->nr_counters; i++) {
        if (counter_stops_engine(pmu, i)
            && overflows_within(&pmu->counters[i],
                                events * each_adds(&pmu->counters[i]))) {
            return false;
        }
    }
    return true;
}

uint64_t pmu_overflows(const Pmu *pmu, unsigned counter)
{
    return counter_now(pmu, counter).overflows;
}

uint64_t pmu_folds(const Pmu *pmu)
{
    return pmu->folds;
}

unsigned pmu_width(const Pmu *pmu, unsigned counter)
{
    return counter_at(pmu, counter)->shape.width;
}

void pmu_set_shape(Pmu *pmu, unsigned counter, PmuCounterShape shape)
{
    PmuCounter *c = &pmu->counters[counter];

    assert(counter < pmu->nr_counters && !c->running);
    assert(shape.width >= 1 && shape.width <= 64);
    c->shape = shape;
    c->value &= counter_mask(c);
}

void pmu_rebase(Pmu *pmu)
{
    take_snapshot(pmu, pmu->wanted);
}

void pmu_reset(Pmu *pmu)
{
    unsigned i;

    for (i = 0; i < pmu->nr_counters; i++) {
        PmuCounter *c = &pmu->counters[i];

        *c = (PmuCounter) { .shape = c->shape, .overflows = c->overflows };
    }
    pmu->freeze = 0;
    pmu->freeze_by = 0;
    pmu_fold(pmu);
}

unsigned pmu_nr_counters(const Pmu *pmu)
{
    return pmu->nr_counters;
}

unsigned pmu_nr_modes(const Pmu *pmu)
{
    return pmu->nr_modes;
}

Pmu *pmu_new(unsigned nr_counters, unsigned nr_modes,
             const PmuEngineOps *ops, void *engine,
             PmuOverflowFn *overflow, void *opaque)
{
    Pmu *pmu = g_new0(Pmu, 1);
    unsigned i;

    assert(nr_counters >= 1 && nr_counters <= PMU_MAX_COUNTERS);
    assert(nr_modes >= 1 && nr_modes <= PMU_MAX_MODES);
    pmu->nr_counters = nr_counters;
    pmu->nr_modes = nr_modes;
    pmu->ops = ops;
    pmu->engine = engine;
    pmu->overflow = overflow;
    pmu->opaque = opaque;
    for (i = 0; i < nr_counters; i++) {
        pmu->counters[i].shape.width = 48;
    }
    return pmu;
}

void pmu_free(Pmu *pmu)
{
    if (pmu) {
        pmu_reset(pmu);
        g_free(pmu);
    }
}
