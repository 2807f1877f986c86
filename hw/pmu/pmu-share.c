/*
 * Performance monitoring unit: one engine for several Pmus
 *
 * A budget is how far a tally may grow from now on; only the engine that gets
 * the budget remembers the start.  With several Pmus, each port keeps its
 * budgets as positions instead, so that they hold across the plans of others.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/pmu-share.h"

/**
 * struct PmuPort - the engine of a Pmu that shares the real one
 * @share: the share
 * @pmu: the Pmu; NULL if the port is free
 * @wanted: the tallies that it reads
 * @modes: in which modes
 * @limits: where it is to be folded, as positions; not kept while it is alone
 * @late: its part in late overflows; NULL for the guest's port
 * @opaque: the argument of @late
 */
typedef struct PmuPort {
    PmuShare *share;
    Pmu *pmu;
    PmuTallies wanted;
    PmuModes modes;
    PmuBudgets limits;
    const PmuLateOps *late;
    void *opaque;
} PmuPort;

/**
 * struct PmuShare - an engine and the Pmus on it
 * @nr_modes: the number of modes it distinguishes
 * @timed: its timed tallies, as of the last look
 * @ops: its operations
 * @engine: its state
 * @ports: the ports of its Pmus
 * @budgets: the budgets given to the engine
 */
struct PmuShare {
    unsigned nr_modes;
    PmuTallies timed;
    const PmuEngineOps *ops;
    void *engine;
    PmuPort ports[PMU_SHARE_MAX];
    PmuBudgets budgets;
};

#define FOR_EACH_PORT(port, share)                              \
    for ((port) = (share)->ports;                               \
         (port) < (share)->ports + PMU_SHARE_MAX; (port)++)     \
        if ((port)->pmu)

static bool is_alone(PmuShare *s)
{
    unsigned ports = 0;
    PmuPort *p;

    FOR_EACH_PORT(p, s) {
        ports++;
    }
    return ports == 1;
}

static void look_at_time(PmuShare *s)
{
    s->timed = s->ops->timed ? s->ops->timed(s->engine) : 0;
}

static void sync_shared(const PmuShare *s)
{
    if (s->ops->sync) {
        s->ops->sync(s->engine);
    }
}

/* The position of a tally; a timed one has one position for all its modes */
static uint64_t position(const PmuShare *s, unsigned t, unsigned m)
{
    uint64_t sum = 0;

    if (!(s->timed >> t & 1)) {
        return s->ops->tally(s->engine, t, m);
    }
    for (m = 0; m < s->nr_modes; m++) {
        sum += s->ops->tally(s->engine, t, m);
    }
    return sum;
}

/*
 * A port whose budget is used up already is about to be folded.
 */
static uint64_t budget_left(const PmuPort *p, unsigned t, unsigned m)
{
    uint64_t limit = p->limits[t][m];
    uint64_t now;

    if (limit == PMU_NO_DEADLINE) {
        return PMU_NO_DEADLINE;
    }
    now = position(p->share, t, m);
    return limit > now ? limit - now : 1;
}

static void set_limits(PmuPort *p, const PmuBudgets budgets)
{
    for (unsigned t = 0; t < PMU_TALLY__MAX; t++) {
        for (unsigned m = 0; (p->wanted >> t & 1) && m < p->share->nr_modes;
             m++) {
            uint64_t now = position(p->share, t, m);

            p->limits[t][m] = budgets[t][m] < PMU_NO_DEADLINE - now
                              ? now + budgets[t][m] : PMU_NO_DEADLINE;
        }
    }
}

/* Lower the engine's budgets to the budgets left of a port. */
static void merge(PmuShare *s, const PmuPort *p, PmuTallies wanted)
{
    for (unsigned t = 0; t < PMU_TALLY__MAX; t++) {
        for (unsigned m = 0; (wanted >> t & 1) && m < s->nr_modes; m++) {
            uint64_t *budget = &s->budgets[t][m];

            *budget = MIN(*budget, budget_left(p, t, m));
        }
    }
}

/* Begin a plan for all Pmus with that of a port, whose limits are not set. */
static void begin_plan(PmuShare *s, PmuTallies wanted,
                       const PmuBudgets budgets)
{
    memset(s->budgets, 0xff, sizeof(s->budgets));
    for (unsigned t = 0; t < PMU_TALLY__MAX; t++) {
        if (wanted >> t & 1) {
            memcpy(s->budgets[t], budgets[t],
                   s->nr_modes * sizeof(budgets[t][0]));
        }
    }
}

/* Add the plans of all ports but @but. */
static void plan_for_others(PmuShare *s, const PmuPort *but,
                            PmuTallies wanted, PmuModes modes)
{
    PmuPort *p;

    FOR_EACH_PORT(p, s) {
        if (p != but) {
            merge(s, p, p->wanted);
            wanted |= p->wanted;
            modes |= p->modes;
        }
    }
    s->ops->plan(s->engine, wanted, modes, s->budgets);
}

/* Plan with the budgets that all ports have left. */
static void plan_again(PmuShare *s)
{
    look_at_time(s);
    begin_plan(s, 0, NULL);
    plan_for_others(s, NULL, 0, 0);
}

/*
 * The operations of an engine
 */

/* A Pmu without timed tallies need not look at the clock. */
static void port_sync(void *engine)
{
    const PmuPort *p = engine;

    look_at_time(p->share);
    if (is_alone(p->share) || p->wanted & p->share->timed) {
        sync_shared(p->share);
    }
}

static uint64_t port_tally(void *engine, PmuTally tally, unsigned mode)
{
    const PmuPort *p = engine;

    return p->share->ops->tally(p->share->engine, tally, mode);
}

static PmuTallies port_timed(void *engine)
{
    const PmuPort *p = engine;

    look_at_time(p->share);
    return p->share->timed;
}

static void port_plan(void *engine, PmuTallies wanted, PmuModes modes,
                      const PmuBudgets budgets)
{
    PmuPort *p = engine;
    PmuShare *s = p->share;

    look_at_time(s);
    if (wanted & ~p->wanted & s->timed) {
        /* Time that has passed until now does not count for this Pmu. */
        sync_shared(s);
    }
    p->wanted = wanted;
    p->modes = modes;
    if (is_alone(s)) {
        s->ops->plan(s->engine, wanted, modes, budgets);
    } else {
        begin_plan(s, wanted, budgets);
        plan_for_others(s, p, wanted, modes);
        set_limits(p, budgets);
    }
}

static const PmuEngineOps port_ops = {
    .sync = port_sync,
    .tally = port_tally,
    .timed = port_timed,
    .plan = port_plan,
};

/*
 * Deadlines
 */

/* Whether one of its budgets is used up, or will be within so many events */
static bool is_spent(const PmuPort *p, uint64_t within)
{
    PmuTallies looked_at = p->wanted & ~p->share->timed;

    for (unsigned t = 0; t < PMU_TALLY__MAX; t++) {
        for (unsigned m = 0; (looked_at >> t & 1) && m < p->share->nr_modes;
             m++) {
            if (p->limits[t][m] != PMU_NO_DEADLINE
                && position(p->share, t, m) + within >= p->limits[t][m]) {
                return true;
            }
        }
    }
    return false;
}

void pmu_share_fold(PmuShare *s, uint64_t within)
{
    bool alone = is_alone(s);
    bool has_folded = false;
    PmuPort *p;

    FOR_EACH_PORT(p, s) {
        if (alone || is_spent(p, within)) {
            pmu_fold(p->pmu);
            has_folded = true;
        }
    }
    if (!has_folded) {
        plan_again(s);
    }
}

void pmu_share_fold_all(PmuShare *s)
{
    PmuPort *p;

    FOR_EACH_PORT(p, s) {
        pmu_fold(p->pmu);
    }
}

/*
 * Late overflows
 */

static bool port_can_be_late(const PmuPort *p, unsigned mode, uint64_t events,
                             PmuLate *late)
{
    return p->late ? p->late->can_wait(p->opaque, mode, events, late)
           : pmu_is_quiet(p->pmu, events);
}

bool pmu_share_can_be_late(const PmuShare *s, unsigned mode, uint64_t events,
                           PmuLate *late)
{
    const PmuPort *p;

    *late = (PmuLate) { };
    FOR_EACH_PORT(p, s) {
        if (!port_can_be_late(p, mode, events, late)) {
            return false;
        }
    }
    return true;
}

void pmu_share_prepare_late(const PmuShare *s, const PmuLate *late)
{
    const PmuPort *p;

    FOR_EACH_PORT(p, s) {
        if (p->late) {
            p->late->prepare(late->owner);
        }
    }
}

bool pmu_share_is_calling(const PmuShare *s, const PmuLate *late)
{
    const PmuPort *p;

    FOR_EACH_PORT(p, s) {
        if (p->late && late->owner
            && p->late->called(p->opaque) == late->owner) {
            return true;
        }
    }
    return false;
}

/*
 * The guest's counters
 */

bool pmu_share_in_transaction(const PmuShare *s)
{
    const PmuPort *p;

    FOR_EACH_PORT(p, s) {
        if (pmu_in_transaction(p->pmu)) {
            return true;
        }
    }
    return false;
}

/* NULL if the guest has no counters */
static const Pmu *guest_pmu(const PmuShare *s)
{
    const PmuPort *p;

    FOR_EACH_PORT(p, s) {
        if (!p->late) {
            return p->pmu;
        }
    }
    return NULL;
}

PmuModes pmu_share_guest_modes(const PmuShare *s, PmuEvent event)
{
    const Pmu *pmu = guest_pmu(s);
    PmuModes modes = 0;

    for (unsigned i = 0; pmu && i < pmu_nr_counters(pmu); i++) {
        const PmuSelect *select = pmu_selected(pmu, i);

        if (pmu_is_running(pmu, i) && select->event == event) {
            modes |= select->modes;
        }
    }
    return modes;
}

void pmu_share_show_guest(const PmuShare *s, PmuShowFn *show, void *opaque)
{
    const Pmu *pmu = guest_pmu(s);

    for (unsigned i = 0; pmu && i < pmu_nr_counters(pmu); i++) {
        if (pmu_is_running(pmu, i)) {
            show(opaque, i, pmu_peek(pmu, i));
        }
    }
}

/*
 * Life
 */

static PmuPort *free_port(PmuShare *s)
{
    PmuPort *p = s->ports;

    while (p->pmu) {
        p++;
        assert(p < s->ports + PMU_SHARE_MAX);
    }
    return p;
}

Pmu *pmu_share_join_late(PmuShare *s, unsigned nr_counters,
                         PmuOverflowFn *overflow, const PmuLateOps *late,
                         void *opaque)
{
    PmuPort *p = free_port(s);
    PmuPort *other;

    p->late = late;
    p->opaque = opaque;
    p->pmu = pmu_new(nr_counters, s->nr_modes, &port_ops, p, overflow, opaque);
    FOR_EACH_PORT(other, s) {
        if (other != p) {
            /* From now on it keeps its limits. */
            pmu_fold(other->pmu);
        }
    }
    return p->pmu;
}

Pmu *pmu_share_join(PmuShare *s, unsigned nr_counters,
                    PmuOverflowFn *overflow, void *opaque)
{
    return pmu_share_join_late(s, nr_counters, overflow, NULL, opaque);
}

void pmu_share_leave(PmuShare *s, Pmu *pmu)
{
    PmuPort *p;

    FOR_EACH_PORT(p, s) {
        if (p->pmu == pmu) {
            pmu_free(pmu);
            p->pmu = NULL;
            p->wanted = 0;
        }
    }
}

PmuShare *pmu_share_new(unsigned nr_modes, const PmuEngineOps *ops,
                        void *engine)
{
    PmuShare *s = g_new0(PmuShare, 1);

    assert(nr_modes >= 1 && nr_modes <= PMU_MAX_MODES);
    s->nr_modes = nr_modes;
    s->ops = ops;
    s->engine = engine;
    for (unsigned i = 0; i < PMU_SHARE_MAX; i++) {
        s->ports[i].share = s;
    }
    return s;
}

void pmu_share_free(PmuShare *s)
{
    g_free(s);
}
