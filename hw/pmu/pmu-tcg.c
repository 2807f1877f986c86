/*
 * Performance monitoring unit: the engine that counts in translated code
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "system/cpu-timers.h"
#include "system/runstate.h"
#include "hw/pmu/compat.h"
#include "hw/pmu/pmu-tcg-census.h"
#include "pmu-tcg-internal.h"
#include "trace.h"

/*
 * How long blocks that count are kept in use after the last counter has
 * stopped.  Linux stops and starts its counters around each context switch;
 * two sets of blocks would then evict each other from the jump cache.
 */
#define LINGER_MS 100

#define BRANCH_TALLIES                                              \
    (TALLY(COND_TAKEN) | TALLY(COND_NOT_TAKEN) | TALLY(JUMPS)       \
     | TALLY(INDIRECT_JUMPS) | TALLY(CALLS) | TALLY(INDIRECT_CALLS) \
     | TALLY(RETURNS) | TALLY(FAR_BRANCHES))
#define ACCESS_TALLIES \
    (TALLY(LOADS) | TALLY(STORES) | TALLY(FAILED_STORES))

uint64_t pmu_tcg_all_insns(const PmuTcg *e)
{
    uint64_t insns = 0;

    for (unsigned m = 0; m < PMU_MAX_MODES; m++) {
        insns += pmu_tcg_cell_tally(e, PMU_TALLY_INSNS, m);
    }
    return insns;
}

/* Whether a core defines cycles: as a sum of instructions and of misses */
static bool has_cycles_of_core(const PmuTcg *e)
{
    return e->core && !e->model.from_clock;
}

/* The tallies that no cell has */
static PmuTallies tallies_of_core(const PmuTcg *e)
{
    return e->core ? PMU_TCG_CORE_TALLIES : 0;
}

/* Tallies whose cells move; cycles follow the cells of instructions. */
static PmuTallies cells_in_use(const PmuTcg *e, PmuTallies wanted)
{
    if (wanted & (CYCLE_TALLIES | TALLY(RETIRING_CYCLES))) {
        wanted |= TALLY(INSNS);
    }
    return wanted & ~(CYCLE_TALLIES | tallies_of_core(e));
}

void pmu_tcg_load_cell(PmuTcg *e, unsigned t, unsigned m, uint64_t budget)
{
    int64_t load = MIN(budget, INT64_MAX);

    e->total[t][m] = pmu_tcg_cell_tally(e, t, m);
    e->loaded[t][m] = load;
    *pmu_tcg_cell(e->cpu, t, m) = load;
}

uint64_t pmu_tcg_events_of_insns(const PmuTcg *e, uint64_t insns)
{
    return e->core ? pmu_tcg_core_most(e->core)
           : insns * MAX(1, DIV_ROUND_UP(e->model.cpi, PMU_CPI_ONE));
}

/*
 * Folds
 */

void pmu_tcg_request_fold(CPUState *cpu)
{
    cpu->pmu_fold_pending = true;
    qatomic_set(&cpu->neg.icount_decr.u16.high, -1);
}

/* A fold that is traced, with where it is */
typedef struct TracedFold {
    int cpu_index;
    const char *why;
    uint64_t pc;
    unsigned mode;
} TracedFold;

static void trace_counter(void *opaque, unsigned counter, uint64_t value)
{
    const TracedFold *f = opaque;

    trace_pmu_tcg_fold(f->cpu_index, f->why, counter, value, f->pc, f->mode);
}

static void trace_fold(const PmuTcg *e, const char *why)
{
    TracedFold f = { .cpu_index = e->cpu->cpu_index, .why = why };

    if (trace_event_get_state_backends(TRACE_PMU_TCG_FOLD)) {
        pmu_tcg_where(e->cpu, &f.pc, &f.mode);
        pmu_share_show_guest(e->share, trace_counter, &f);
    }
}

void pmu_tcg_fold_used_up(PmuTcg *e, unsigned insns, const char *why)
{
    pmu_share_fold(e->share, pmu_tcg_events_of_insns(e, insns));
    trace_fold(e, why);
}

void pmu_tcg_fold_all(PmuTcg *e, const char *why)
{
    pmu_share_fold_all(e->share);
    trace_fold(e, why);
}

/*
 * Flags of blocks
 */

uint32_t pmu_tcg_flags_for(PmuTallies wanted)
{
    return (wanted & (TALLY(INSNS) | CYCLE_TALLIES) ? CF_PMU_INSNS : 0)
           | (wanted & BRANCH_TALLIES ? CF_PMU_BRANCHES : 0)
           | (wanted & ACCESS_TALLIES ? CF_PMU_ACCESSES : 0);
}

static uint32_t needed_flags(const PmuTcg *e)
{
    bool note = e->wanted && (e->note_addresses || e->note_outside);

    return pmu_tcg_flags_for(e->wanted) | (note ? CF_PMU_ADDRESSES : 0)
           | (e->record || e->outside ? CF_PMU_RECORD : 0)
           | (e->core || e->record == PMU_TCG_RECORD_TIME ? CF_PMU_INSNS : 0);
}

/*
 * The modes whose blocks need no flags: a core and a record of branches see all
 * modes, and the clock's time is attributed by the instructions of each.
 */
static uint8_t needless_modes(const PmuTcg *e)
{
    bool all = e->core || e->record || e->outside
               || (e->model.from_clock && (e->wanted & CYCLE_TALLIES));

    return all ? 0 : ~e->modes;
}

static void set_flags(PmuTcg *e, uint32_t flags, uint8_t uncounted)
{
    uint32_t now = e->cpu->tcg_cflags & CF_PMU_MASK;

    if (flags != now || uncounted != e->cpu->pmu_uncounted) {
        trace_pmu_tcg_flags(e->cpu->cpu_index, flags, uncounted);
        e->cpu->tcg_cflags = (e->cpu->tcg_cflags & ~CF_PMU_MASK) | flags;
        e->cpu->pmu_uncounted = uncounted;
    }
}

static void linger_on_cpu(CPUState *cpu, run_on_cpu_data data)
{
    PmuTcg *e = pmu_tcg_engine(cpu);

    if (e) {
        e->lingering = false;
        set_flags(e, needed_flags(e), needless_modes(e));
    }
}

static void linger_over(void *opaque)
{
    PmuTcg *e = opaque;

    async_run_on_cpu(e->cpu, linger_on_cpu, RUN_ON_CPU_NULL);
}

/*
 * More is counted at once; less only if it stays so for a while.  Under icount
 * less at once, too: a replay is to run the same blocks as its recording.
 */
void pmu_tcg_adapt_flags(PmuTcg *e)
{
    uint32_t now = e->cpu->tcg_cflags & CF_PMU_MASK;
    uint32_t need = needed_flags(e);
    uint8_t uncounted = e->cpu->pmu_uncounted;
    uint8_t needless = needless_modes(e);

    if (icount_enabled()) {
        set_flags(e, need, needless);
    } else if (need & ~now || uncounted & ~needless) {
        set_flags(e, now | need, uncounted & needless);
    } else if ((need != now || needless != uncounted) && !e->lingering) {
        e->lingering = true;
        timer_mod(e->linger,
                  qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + LINGER_MS);
    }
}

/*
 * The operations of an engine
 */

static void tcg_sync(void *engine)
{
    PmuTcg *e = engine;

    if (e->model.from_clock && !e->halted && !e->stopped
        && (e->wanted & CYCLE_TALLIES)) {
        pmu_tcg_clock_attribute(e);
    }
}

unsigned pmu_tcg_core_insn_cycles(const PmuTcg *e)
{
    return e->core ? pmu_tcg_core_model(e->core)->penalties.insn : 0;
}

static uint64_t retiring_cycles(const PmuTcg *e, unsigned mode)
{
    return pmu_tcg_core_insn_cycles(e)
           * pmu_tcg_cell_tally(e, PMU_TALLY_INSNS, mode);
}

uint64_t pmu_tcg_core_cycles(const PmuTcg *e, unsigned mode)
{
    return retiring_cycles(e, mode)
           + pmu_tcg_core_tally(e->core, PMU_TALLY_CYCLES, mode);
}

static uint64_t cycles_in(const PmuTcg *e, unsigned mode)
{
    return has_cycles_of_core(e) ? pmu_tcg_core_cycles(e, mode)
           : pmu_tcg_cycles_of(e, mode);
}

static uint64_t tcg_tally(void *engine, PmuTally tally, unsigned mode)
{
    const PmuTcg *e = engine;

    if (CYCLE_TALLIES & PMU_TALLY_BIT(tally)) {
        return cycles_in(e, mode);
    }
    if (tallies_of_core(e) & PMU_TALLY_BIT(tally)) {
        return pmu_tcg_core_tally(e->core, tally, mode);
    }
    if (tally == PMU_TALLY_RETIRING_CYCLES) {
        return retiring_cycles(e, mode);
    }
    return tally < PMU_TALLY_CORE_FIRST ? pmu_tcg_cell_tally(e, tally, mode)
           : 0;
}

/* How many instructions may be executed within a budget of cycles */
static uint64_t insns_within(const PmuTcg *e, unsigned mode, uint64_t cycles)
{
    return e->core ? pmu_tcg_core_insns(e->core, cycles)
           : pmu_tcg_insns_for(e, mode, cycles);
}

/* How many instructions take so many cycles themselves */
static uint64_t insns_retiring(const PmuTcg *e, uint64_t cycles)
{
    unsigned each = pmu_tcg_core_insn_cycles(e);

    return cycles == PMU_NO_DEADLINE || !each ? PMU_NO_DEADLINE
           : cycles / each + (cycles % each != 0);
}

static uint64_t insn_budget(const PmuTcg *e, unsigned mode, PmuTallies wanted,
                            const PmuBudgets budgets)
{
    uint64_t least = PMU_NO_DEADLINE;
    unsigned t;

    if (wanted & TALLY(INSNS)) {
        least = budgets[PMU_TALLY_INSNS][mode];
    }
    for (t = PMU_TALLY_CYCLES; t <= PMU_TALLY_REF_CYCLES; t++) {
        if ((wanted & PMU_TALLY_BIT(t)) && !e->model.from_clock) {
            least = MIN(least, insns_within(e, mode, budgets[t][mode]));
        }
    }
    if (wanted & TALLY(RETIRING_CYCLES)) {
        least = MIN(least, insns_retiring(e, budgets[PMU_TALLY_RETIRING_CYCLES]
                                             [mode]));
    }
    return least;
}

static PmuTallies tcg_timed(void *engine)
{
    const PmuTcg *e = engine;

    return e->model.from_clock ? CYCLE_TALLIES : 0;
}

/* The tallies whose budgets limit the log of a core */
static PmuTallies budgets_of_core(const PmuTcg *e)
{
    return tallies_of_core(e) | (has_cycles_of_core(e) ? CYCLE_TALLIES : 0);
}

static void tcg_plan(void *engine, PmuTallies wanted, PmuModes modes,
                     const PmuBudgets budgets)
{
    PmuTcg *e = engine;
    PmuTallies cells = cells_in_use(e, wanted | e->wanted);
    unsigned t, m;

    pmu_tcg_see_branches(e->cpu);
    if (e->model.from_clock && (wanted & CYCLE_TALLIES)
        && !(e->wanted & CYCLE_TALLIES)) {
        pmu_tcg_clock_start(e);
    }
    for (t = 0; t < PMU_TALLY_CORE_FIRST; t++) {
        for (m = 0; m < PMU_MAX_MODES && (cells & PMU_TALLY_BIT(t)); m++) {
            uint64_t budget = PMU_NO_DEADLINE;

            if (t == PMU_TALLY_INSNS) {
                budget = insn_budget(e, m, wanted, budgets);
            } else if (wanted & PMU_TALLY_BIT(t)) {
                budget = budgets[t][m];
            }
            pmu_tcg_load_cell(e, t, m, budget);
        }
    }
    e->wanted = wanted;
    e->modes = modes;
    if (e->core) {
        pmu_tcg_core_plan(e->core, wanted & budgets_of_core(e), budgets);
    }
    if (e->model.from_clock) {
        pmu_tcg_clock_arm(e, wanted, budgets);
    }
    if (pmu_census_on) {
        pmu_census_plan(e->cpu, e->share);
    }
    pmu_tcg_adapt_flags(e);
}

const PmuEngineOps pmu_tcg_ops = {
    .sync = tcg_sync,
    .tally = tcg_tally,
    .timed = tcg_timed,
    .plan = tcg_plan,
};

/*
 * Life
 */

static void fill_cells(PmuTcg *e)
{
    for (unsigned t = PMU_TCG_FIRST; t < PMU_TALLY_CORE_FIRST; t++) {
        for (unsigned m = 0; m < PMU_MAX_MODES; m++) {
            e->loaded[t][m] = INT64_MAX;
            *pmu_tcg_cell(e->cpu, t, m) = INT64_MAX;
        }
    }
}

/*
 * A core sees all that is executed, whether or not anybody counts, and wants to
 * know where that is.
 */
static void show_all_to_core(CPUState *cpu)
{
    cpu->tcg_cflags |= CF_PMU_INSNS;
    cpu->tcg_cflags &= ~CF_PCREL;
    cpu->pmu_sees_accesses = true;
}

PmuTcg *pmu_tcg_new(CPUState *cpu, const PmuTcgConfig *config)
{
    PmuTcgCells *cells = pmu_tcg_cells(cpu);
    PmuTcg *e = g_new0(PmuTcg, 1);

    e->cpu = cpu;
    e->recorder = config->recorder;
    e->recorder_outside = config->outside;
    e->model = config->cycles;
    e->halted = e->model.from_clock;
    e->stopped = e->model.from_clock && !runstate_is_running();
    e->core = config->core ? pmu_tcg_core_new(cpu, config->core) : NULL;
    e->linger = timer_new_ms(QEMU_CLOCK_REALTIME, linger_over, e);
    pmu_tcg_clock_create(e);
    fill_cells(e);
    pmu_branch_log_init(&cells->log);
    cells->engine = e;
    cpu->pmu_uncounted = needless_modes(e);
    if (e->core) {
        show_all_to_core(cpu);
    }
    return e;
}

void pmu_tcg_set_share(PmuTcg *engine, PmuShare *share)
{
    engine->share = share;
}

void pmu_tcg_free(PmuTcg *e)
{
    if (e) {
        PmuTcgCells *cells = pmu_tcg_cells(e->cpu);

        /* The vCPU may go on without an engine, and must not call it. */
        set_flags(e, 0, 0);
        cells->engine = NULL;
        e->cpu->pmu_fold_pending = false;
        e->cpu->pmu_sees_accesses = false;
        timer_free(e->linger);
        timer_free(e->deadline);
        pmu_tcg_core_free(e->core);
        pmu_branch_log_free(&cells->log);
        g_free(e);
    }
}
