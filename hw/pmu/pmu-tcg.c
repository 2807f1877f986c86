/*
 * Performance monitoring unit: the engine that counts in translated code
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qemu/host-utils.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "qemu/error-report.h"
#include "exec/replay-core.h"
#include "migration/vmstate.h"
#include "system/cpu-timers.h"
#include "tcg/insn-start-words.h"
#include "tcg/tcg.h"
#include "hw/pmu/pmu-cpu.h"
#include "hw/pmu/pmu-clock.h"
#include "hw/pmu/compat.h"
#include "pmu-observer-internal.h"
#include "pmu-tcg-core.h"
#include "trace.h"

/*
 * How long blocks that count are kept in use after the last counter has
 * stopped.  Linux stops and starts its counters around each context switch;
 * two sets of blocks would then evict each other from the jump cache.
 */
#define LINGER_MS 100

/*
 * No machine counts that far, and no more events than that are taken back
 * before they are counted.
 */
#define MAX_TOTAL      (1ull << 62)
#define MAX_TAKEN_BACK (1ull << 20)

/* Nine years: at no frequency does that have so many cycles. */
#define MAX_NS (1ull << 58)

/* The clock's deadline comes after so many cycles, needed or not. */
#define MAX_CLOCK_BUDGET (1ull << 40)

#define NS_PER_CYCLE_AT_1KHZ (NANOSECONDS_PER_SECOND / 1000)

#define TALLY(name) PMU_TALLY_BIT(PMU_TALLY_##name)

#define CYCLE_TALLIES (TALLY(CYCLES) | TALLY(REF_CYCLES))
#define BRANCH_TALLIES                                              \
    (TALLY(COND_TAKEN) | TALLY(COND_NOT_TAKEN) | TALLY(JUMPS)       \
     | TALLY(INDIRECT_JUMPS) | TALLY(CALLS) | TALLY(INDIRECT_CALLS) \
     | TALLY(RETURNS) | TALLY(FAR_BRANCHES))
#define ACCESS_TALLIES \
    (TALLY(LOADS) | TALLY(STORES) | TALLY(FAILED_STORES))

#define CF_PMU_MASK \
    (CF_PMU_INSNS | CF_PMU_BRANCHES | CF_PMU_ACCESSES | CF_PMU_ADDRESSES \
     | CF_PMU_RECORD)

/**
 * struct PmuTcg - the engine of one vCPU
 * @cpu: the vCPU
 * @model: the definition of a cycle
 * @core: the model of its core, or NULL; defines cycles, unless these follow
 *        the clock
 * @wanted: the tallies that the model reads
 * @total: per tally and mode, the events up to the last plan; later events are
 *         in the cells, as @loaded less the cell
 * @loaded: the values that were loaded into the cells
 * @mode_ns: time that has been attributed to modes, where cycles follow the
 *           clock
 * @clock_insns: instructions at that time
 * @clock_ns: and the virtual time of it; not valid while halted or stopped
 * @rest_ns: time that was left for later when the machine stopped
 * @halted: the vCPU sleeps, or did not execute anything yet
 * @stopped: it did not execute anything since the machine stopped
 * @note_addresses: note the addresses of data that instructions access
 * @record: to which extent the guest's PMU records taken branches
 * @time_seen: the time of recorders when the log of branches was read, if
 *             @record includes that
 * @outside: an observer asks for branches
 * @time_is_up: the budget of cycles has ended, and there was no fold yet
 * @due: the observer whose period ends at PmuTcgCells.late_pc
 * @deadline: ends the budget of cycles, where they follow the clock
 * @linger: ends the use of blocks that count
 * @lingering: that will happen; the timer itself is the main loop's as well
 */
struct PmuTcg {
    CPUState *cpu;
    PmuCycleModel model;
    PmuTcgCore *core;
    PmuTallies wanted;
    uint64_t total[PMU_TALLY_CORE_FIRST][PMU_MAX_MODES];
    int64_t loaded[PMU_TALLY_CORE_FIRST][PMU_MAX_MODES];
    uint64_t mode_ns[PMU_MAX_MODES];
    uint64_t clock_insns[PMU_MAX_MODES];
    int64_t clock_ns;
    uint64_t rest_ns;
    bool halted;
    bool stopped;
    bool note_addresses;
    PmuTcgRecord record;
    uint64_t time_seen;
    bool outside;
    bool time_is_up;
    const PmuObserver *due;
    QEMUTimer *deadline;
    QEMUTimer *linger;
    bool lingering;
};

static PmuTcg *engine_of(CPUState *cpu)
{
    return cpu->pmu->tcg;
}

unsigned pmu_tcg_mode(CPUState *cpu)
{
    return cpu->cc->tcg_ops->pmu_mode(state_of_block(cpu).flags);
}

static uint64_t cell_tally(const PmuTcg *e, unsigned t, unsigned m)
{
    return e->total[t][m] + (e->loaded[t][m] - *pmu_tcg_cell(e->cpu, t, m));
}

/* The instructions in all modes */
static uint64_t all_insns(const PmuTcg *e)
{
    uint64_t insns = 0;

    for (unsigned m = 0; m < PMU_MAX_MODES; m++) {
        insns += cell_tally(e, PMU_TALLY_INSNS, m);
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

static void load_cells(PmuTcg *e, unsigned t, unsigned m, uint64_t budget)
{
    int64_t load = MIN(budget, INT64_MAX);

    e->total[t][m] = cell_tally(e, t, m);
    e->loaded[t][m] = load;
    *pmu_tcg_cell(e->cpu, t, m) = load;
}

static void trace_fold(CPUState *cpu, const char *why)
{
    const Pmu *pmu = cpu->pmu->pmu;
    uint64_t pc;
    unsigned mode;

    pmu_tcg_where(cpu, &pc, &mode);
    for (unsigned i = 0; pmu && i < pmu_nr_counters(pmu); i++) {
        if (pmu_is_running(pmu, i)) {
            trace_pmu_tcg_fold(cpu->cpu_index, why, i, pmu_peek(pmu, i), pc,
                               mode);
        }
    }
}

/* The most events of a kind that so many instructions can be */
static uint64_t events_of_insns(const PmuTcg *e, uint64_t insns)
{
    return e->core ? pmu_tcg_core_most(e->core)
           : insns * MAX(1, DIV_ROUND_UP(e->model.cpi, PMU_CPI_ONE));
}

/*
 * A budget is used up, or will be in the next @insns instructions: fold, and
 * trace @why.
 */
static void fold(CPUState *cpu, unsigned insns, const char *why)
{
    pmu_share_fold(cpu->pmu->share, events_of_insns(engine_of(cpu), insns));
    if (trace_event_get_state_backends(TRACE_PMU_TCG_FOLD)) {
        trace_fold(cpu, why);
    }
}

/* Fold all Pmus, because of the time. */
static void fold_all(CPUState *cpu, const char *why)
{
    pmu_share_fold_all(cpu->pmu->share);
    if (trace_event_get_state_backends(TRACE_PMU_TCG_FOLD)) {
        trace_fold(cpu, why);
    }
}

/*
 * Cycles that follow the instructions
 */

static uint64_t cycles_of_insns(const PmuTcg *e, uint64_t insns)
{
    return muldiv64(insns, e->model.cpi, PMU_CPI_ONE);
}

/* The fewest further instructions that let at least @cycles more go by. */
static uint64_t insns_for_cycles(const PmuTcg *e, uint64_t insns,
                                 uint64_t cycles)
{
    uint64_t until = cycles_of_insns(e, insns) + cycles;

    if (cycles >= INT64_MAX) {
        return PMU_NO_DEADLINE;
    }
    return muldiv64_round_up(until, PMU_CPI_ONE, e->model.cpi) - insns;
}

/*
 * Cycles that follow the clock
 */

static int64_t clock_now(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

static uint64_t cycles_of_ns(const PmuTcg *e, uint64_t ns)
{
    return muldiv64(ns, e->model.khz, NS_PER_CYCLE_AT_1KHZ);
}

/* @ns * @part / @whole, where @part is not more than @whole */
static uint64_t share_of_ns(uint64_t ns, uint64_t part, uint64_t whole)
{
    uint64_t low, high;

    mulu64(&low, &high, ns, part);
    divu128(&low, &high, whole);
    return low;
}

/* 0 if the instructions counted since then have been taken back. */
static uint64_t insns_since_clock(const PmuTcg *e, unsigned m)
{
    int64_t insns = cell_tally(e, PMU_TALLY_INSNS, m) - e->clock_insns[m];

    return MAX(insns, 0);
}

/*
 * Attribute the time since the last call to the modes by the instructions that
 * were retired in each.  A fraction of a ns in some mode is left for the next
 * call: calling often rounds no more than calling once.  But the division of
 * time depends on when this is called, if instructions of this vCPU do not all
 * take the same time, or if an instruction that reads it is not counted yet.
 */
static void attribute_clock(PmuTcg *e)
{
    uint64_t insns[PMU_MAX_MODES], sum = 0, ns = clock_now() - e->clock_ns;
    unsigned m;

    for (m = 0; m < PMU_MAX_MODES; m++) {
        insns[m] = insns_since_clock(e, m);
        sum += insns[m];
    }
    if (!sum || !ns) {
        return;
    }
    for (m = 0; m < PMU_MAX_MODES; m++) {
        uint64_t part = share_of_ns(ns, insns[m], sum);

        e->mode_ns[m] += part;
        e->clock_insns[m] += insns[m];
        e->clock_ns += part;
    }
}

/* From now on, attribute time to the instructions that are executed. */
static void start_clock(PmuTcg *e)
{
    for (unsigned m = 0; m < PMU_MAX_MODES; m++) {
        e->clock_insns[m] = cell_tally(e, PMU_TALLY_INSNS, m);
    }
    e->clock_ns = clock_now();
    e->rest_ns = 0;
}

/*
 * The machine may have another time since it stopped.  A state that was loaded
 * has no @rest_ns: it has lost less than a ns of each mode, or the time of one
 * instruction.
 */
static void restart_clock(PmuTcg *e)
{
    e->clock_ns = clock_now() - e->rest_ns;
    e->stopped = false;
}

/* Leave translated code at the end of this block, and then fold. */
static void request_fold(CPUState *cpu)
{
    cpu->neg.pmu.fold_pending = true;
    qatomic_set(&cpu->neg.icount_decr.u16.high, -1);
}

/*
 * In the vCPU's loop, before its next instruction: only there a face can do all
 * that an overflow may ask for, such as a walk of the guest's page tables.
 */
static void fold_in_loop(CPUState *cpu, run_on_cpu_data data)
{
    if (cpu->pmu) {
        engine_of(cpu)->time_is_up = true;
        request_fold(cpu);
    }
}

static void clock_deadline(void *opaque)
{
    PmuTcg *e = opaque;

    async_run_on_cpu(e->cpu, fold_in_loop, RUN_ON_CPU_NULL);
}

static void arm_clock(PmuTcg *e, PmuTallies wanted, const PmuBudgets budgets)
{
    uint64_t least = PMU_NO_DEADLINE;
    unsigned t, m;

    for (t = PMU_TALLY_CYCLES; t <= PMU_TALLY_REF_CYCLES; t++) {
        for (m = 0; m < PMU_MAX_MODES && (wanted & PMU_TALLY_BIT(t)); m++) {
            least = MIN(least, budgets[t][m]);
        }
    }
    if (least >= INT64_MAX || e->halted) {
        timer_del(e->deadline);
    } else {
        timer_mod(e->deadline, clock_now()
                  + muldiv64_round_up(MIN(least, MAX_CLOCK_BUDGET),
                                      NS_PER_CYCLE_AT_1KHZ, e->model.khz));
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
        attribute_clock(e);
    }
}

/* The cycles of an instruction that misses nothing; 0 without a core */
static unsigned insn_cycles_of_core(const PmuTcg *e)
{
    return e->core ? pmu_tcg_core_model(e->core)->penalties.insn : 0;
}

static uint64_t retiring_cycles(const PmuTcg *e, unsigned mode)
{
    return cell_tally(e, PMU_TALLY_INSNS, mode) * insn_cycles_of_core(e);
}

static uint64_t cycles_of_core(const PmuTcg *e, unsigned mode)
{
    return retiring_cycles(e, mode)
           + pmu_tcg_core_tally(e->core, PMU_TALLY_CYCLES, mode);
}

static uint64_t cycles_of(const PmuTcg *e, unsigned mode)
{
    return e->model.from_clock ? cycles_of_ns(e, e->mode_ns[mode])
           : e->core ? cycles_of_core(e, mode)
           : cycles_of_insns(e, cell_tally(e, PMU_TALLY_INSNS, mode));
}

static uint64_t tcg_tally(void *engine, PmuTally tally, unsigned mode)
{
    const PmuTcg *e = engine;

    if (CYCLE_TALLIES & PMU_TALLY_BIT(tally)) {
        return cycles_of(e, mode);
    }
    if (tallies_of_core(e) & PMU_TALLY_BIT(tally)) {
        return pmu_tcg_core_tally(e->core, tally, mode);
    }
    if (tally == PMU_TALLY_RETIRING_CYCLES) {
        return retiring_cycles(e, mode);
    }
    return tally < PMU_TALLY_CORE_FIRST ? cell_tally(e, tally, mode) : 0;
}

/* How many instructions may be executed within a budget of cycles */
static uint64_t insns_within(const PmuTcg *e, unsigned mode, uint64_t cycles)
{
    uint64_t insns = cell_tally(e, PMU_TALLY_INSNS, mode);

    return e->core ? pmu_tcg_core_insns(e->core, cycles)
           : insns_for_cycles(e, insns, cycles);
}

/* How many instructions take so many cycles themselves */
static uint64_t insns_retiring(const PmuTcg *e, uint64_t cycles)
{
    unsigned each = insn_cycles_of_core(e);

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

static uint32_t flags_for(PmuTallies wanted)
{
    return (wanted & (TALLY(INSNS) | CYCLE_TALLIES) ? CF_PMU_INSNS : 0)
           | (wanted & BRANCH_TALLIES ? CF_PMU_BRANCHES : 0)
           | (wanted & ACCESS_TALLIES ? CF_PMU_ACCESSES : 0);
}

static uint32_t needed_flags(const PmuTcg *e)
{
    bool note = e->wanted && e->note_addresses;

    return flags_for(e->wanted) | (note ? CF_PMU_ADDRESSES : 0)
           | (e->record || e->outside ? CF_PMU_RECORD : 0)
           | (e->core || e->record == PMU_TCG_RECORD_TIME ? CF_PMU_INSNS : 0);
}

static void set_flags(PmuTcg *e, uint32_t flags)
{
    uint32_t now = e->cpu->tcg_cflags & CF_PMU_MASK;

    if (flags != now) {
        trace_pmu_tcg_flags(e->cpu->cpu_index, flags);
        e->cpu->tcg_cflags = (e->cpu->tcg_cflags & ~CF_PMU_MASK) | flags;
    }
    if (e->cpu->cflags_next_tb != -1) {
        /* An interrupt may have come before what run_next() asked for. */
        e->cpu->cflags_next_tb = (e->cpu->cflags_next_tb & ~CF_PMU_MASK)
                                 | flags;
    }
}

static void linger_on_cpu(CPUState *cpu, run_on_cpu_data data)
{
    if (cpu->pmu) {
        PmuTcg *e = engine_of(cpu);

        e->lingering = false;
        set_flags(e, needed_flags(e));
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
static void adapt_flags(PmuTcg *e)
{
    uint32_t now = e->cpu->tcg_cflags & CF_PMU_MASK;
    uint32_t need = needed_flags(e);

    if (icount_enabled()) {
        set_flags(e, need);
    } else if (need & ~now) {
        set_flags(e, now | need);
    } else if (need != now && !e->lingering) {
        e->lingering = true;
        timer_mod(e->linger,
                  qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + LINGER_MS);
    }
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

static void tcg_plan(void *engine, PmuTallies wanted, const PmuBudgets budgets)
{
    PmuTcg *e = engine;
    PmuTallies cells = cells_in_use(e, wanted | e->wanted);
    unsigned t, m;

    pmu_tcg_see_branches(e->cpu);
    if (e->model.from_clock && (wanted & CYCLE_TALLIES)
        && !(e->wanted & CYCLE_TALLIES)) {
        start_clock(e);
    }
    for (t = 0; t < PMU_TALLY_CORE_FIRST; t++) {
        for (m = 0; m < PMU_MAX_MODES && (cells & PMU_TALLY_BIT(t)); m++) {
            uint64_t budget = PMU_NO_DEADLINE;

            if (t == PMU_TALLY_INSNS) {
                budget = insn_budget(e, m, wanted, budgets);
            } else if (wanted & PMU_TALLY_BIT(t)) {
                budget = budgets[t][m];
            }
            load_cells(e, t, m, budget);
        }
    }
    e->wanted = wanted;
    if (e->core) {
        pmu_tcg_core_plan(e->core, wanted & budgets_of_core(e), budgets);
    }
    if (e->model.from_clock) {
        arm_clock(e, wanted, budgets);
    }
    if (pmu_census_on) {
        pmu_census_plan(e->cpu);
    }
    adapt_flags(e);
}

const PmuEngineOps pmu_tcg_ops = {
    .sync = tcg_sync,
    .tally = tcg_tally,
    .timed = tcg_timed,
    .plan = tcg_plan,
};

/*
 * Reports of faces and helpers
 */

static void take_back(CPUState *cpu, PmuTally tally, unsigned mode, int events)
{
    if (cpu->pmu && tcg_cflags_has(cpu, flags_for(PMU_TALLY_BIT(tally)))) {
        *pmu_tcg_cell(cpu, tally, mode) += events;
    }
}

void pmu_tcg_take_back(CPUState *cpu, PmuTally tally)
{
    take_back(cpu, tally, pmu_tcg_mode(cpu), 1);
}

void pmu_tcg_before_insn(CPUState *cpu)
{
    take_back(cpu, PMU_TALLY_INSNS, pmu_tcg_mode(cpu), 1);
    pmu_tcg_look_early(cpu);
}

void pmu_tcg_after_insn(CPUState *cpu)
{
    pmu_tcg_retire(cpu, pmu_tcg_mode(cpu));
}

void pmu_tcg_retire(CPUState *cpu, unsigned mode)
{
    take_back(cpu, PMU_TALLY_INSNS, mode, -1);
}

/*
 * A replay misses its TLB at other times than its recording: its size follows
 * the host's clock, and translation, too, goes through it.
 */
static bool is_reproducible(PmuTally tally)
{
    return !(PMU_TCG_TLB_TALLIES & PMU_TALLY_BIT(tally))
           || replay_mode == REPLAY_MODE_NONE;
}

void pmu_tcg_count(CPUState *cpu, PmuTally tally)
{
    const PmuTcg *e = cpu->pmu ? engine_of(cpu) : NULL;

    if (e && (e->wanted & ~tallies_of_core(e) & PMU_TALLY_BIT(tally))
        && is_reproducible(tally)
        && --*pmu_tcg_cell(cpu, tally, pmu_tcg_mode(cpu)) <= 0) {
        request_fold(cpu);
    }
}

void pmu_tcg_count_tlb_miss(CPUState *cpu, MMUAccessType access)
{
    static const PmuTally tallies[] = {
        [MMU_DATA_LOAD] = PMU_TALLY_DTLB_LOAD_MISSES,
        [MMU_DATA_STORE] = PMU_TALLY_DTLB_STORE_MISSES,
        [MMU_INST_FETCH] = PMU_TALLY_ITLB_MISSES,
    };

    pmu_tcg_count(cpu, tallies[access]);
}

bool pmu_tcg_site(CPUState *cpu, uint64_t *pc, unsigned *mode)
{
    *pc = cpu->neg.pmu.site_pc;
    *mode = cpu->neg.pmu.site_mode;
    return cpu->neg.pmu.site_known;
}

/* Other events in the block do not belong to that instruction. */
bool pmu_tcg_is_late(const CPUState *cpu)
{
    const PmuTcgCells *cells = &cpu->neg.pmu;

    return cells->late && cells->late_pc != PMU_TCG_NO_INSN
           && pmu_observers_called(cpu->pmu->observers) == cpu->pmu->tcg->due;
}

void pmu_tcg_where(CPUState *cpu, uint64_t *pc, unsigned *mode)
{
    const PmuTcgCells *cells = &cpu->neg.pmu;

    if (pmu_tcg_is_late(cpu)) {
        *pc = cells->late_pc;
        *mode = cells->late_mode;
    } else if (!pmu_tcg_site(cpu, pc, mode)) {
        *pc = pmu_tcg_address(cpu);
        *mode = pmu_tcg_mode(cpu);
    }
}

/* Whether it is an event of instructions, other than their execution */
static bool is_of_instructions(PmuEvent event)
{
    return (event >= PMU_EVENT_BRANCHES && event <= PMU_EVENT_ACCESSES)
           || event == PMU_EVENT_FAILED_STORES;
}

bool pmu_tcg_is_exact(const CPUState *cpu, PmuEvent event)
{
    switch (event) {
    case PMU_EVENT_INSNS:
        return true;
    case PMU_EVENT_CYCLES:
    case PMU_EVENT_REF_CYCLES:
        return !cpu->pmu || !cpu->pmu->tcg->model.from_clock;
    default:
        return (is_of_instructions(event) || pmu_event_needs_core(event))
               && !(cpu->tcg_cflags & CF_PCREL);
    }
}

void pmu_tcg_note_addresses(PmuTcg *engine, bool note)
{
    assert(pmu_in_transaction(engine->cpu->pmu->pmu));
    engine->note_addresses = note;
}

/* What recorders measure time by: the instructions or cycles in all modes */
static uint64_t all_time(const PmuTcg *e)
{
    uint64_t cycles = 0;

    if (!e->core) {
        return all_insns(e);
    }
    for (unsigned m = 0; m < PMU_MAX_MODES; m++) {
        cycles += cycles_of_core(e, m);
    }
    return cycles;
}

static void note_time(PmuTcg *e)
{
    uint64_t time = all_time(e);

    e->cpu->pmu->recorder.since += time - e->time_seen;
    e->time_seen = time;
}

/* With a model of the core, PmuLoggedBranch.left falls with each cycle. */
static void replace_left(const PmuTcg *e, int64_t *left)
{
    const PmuBranchLog *log = &e->cpu->neg.pmu.log;
    const unsigned t = PMU_TALLY_INSNS;

    for (PmuLoggedBranch *b = pmu_branch_log_newest(log);
         b < log->branches + PMU_BRANCH_LOG_SIZE; b++) {
        unsigned m = pmu_logged_mode(b);
        uint32_t insns = e->total[t][m] + e->loaded[t][m] - b->left;

        b->left = -(insns * insn_cycles_of_core(e) + b->accesses);
    }
    for (unsigned m = 0; m < PMU_MAX_MODES; m++) {
        left[m] = -cycles_of_core(e, m);
    }
}

/* How much is left of a number that falls with time, in each mode */
static const int64_t *time_left(const PmuTcg *e, int64_t *of_core)
{
    if (!e->core) {
        return e->cpu->neg.pmu.left[PMU_TALLY_INSNS - PMU_TCG_FIRST];
    }
    replace_left(e, of_core);
    return of_core;
}

void pmu_tcg_see_branches(CPUState *cpu)
{
    PmuTcgCells *cells = &cpu->neg.pmu;
    int64_t of_core[PMU_MAX_MODES];
    PmuCpu *unit = cpu->pmu;
    const int64_t *left = NULL;

    if (unit && unit->tcg) {
        if (unit->tcg->core) {
            pmu_tcg_core_see(unit->tcg->core);
        }
        if (unit->tcg->record == PMU_TCG_RECORD_TIME) {
            note_time(unit->tcg);
            left = time_left(unit->tcg, of_core);
        }
        pmu_recorder_see(&unit->recorder, &cells->log, left);
        pmu_recorder_see(&unit->outside, &cells->log, NULL);
        pmu_branch_log_clear(&cells->log);
    }
}

void pmu_tcg_record(PmuTcg *engine, PmuTcgRecord record)
{
    pmu_tcg_see_branches(engine->cpu);
    if (record != engine->record) {
        engine->cpu->pmu->recorder.since = 0;
        engine->time_seen = all_time(engine);
    }
    engine->record = record;
    adapt_flags(engine);
}

void pmu_tcg_record_outside(PmuTcg *engine, PmuModes modes)
{
    PmuRecorder *outside = &engine->cpu->pmu->outside;

    pmu_tcg_see_branches(engine->cpu);
    if (!engine->outside) {
        pmu_recorder_init(outside, PMU_RECORDER_MAX);
    }
    for (unsigned m = 0; m < PMU_MAX_MODES; m++) {
        outside->wanted[m] = modes >> m & 1 ? ~0u : 0;
    }
    engine->outside = modes;
    adapt_flags(engine);
}

bool pmu_tcg_cycles(const PmuTcg *engine, uint64_t time, uint64_t *cycles)
{
    bool known = !engine->model.from_clock;

    *cycles = !known ? 0 : engine->core ? time : cycles_of_insns(engine, time);
    return known;
}

uint64_t pmu_tcg_address(CPUState *cpu)
{
    return state_of_block(cpu).pc;
}

static void note_far_branch(CPUState *cpu, PmuRecorder *recorder, uint64_t from)
{
    const PmuBranch branch = { from, pmu_tcg_address(cpu), PMU_BRANCH_FAR };

    pmu_recorder_note(recorder, pmu_tcg_mode(cpu), &branch);
}

void pmu_tcg_far_branch_outside(CPUState *cpu, uint64_t from)
{
    if (tcg_cflags_has(cpu, CF_PMU_RECORD)) {
        pmu_tcg_see_branches(cpu);
        note_far_branch(cpu, &cpu->pmu->outside, from);
    }
}

void pmu_tcg_far_branch(CPUState *cpu, uint64_t from, uint64_t shown)
{
    if (tcg_cflags_has(cpu, CF_PMU_RECORD)) {
        pmu_tcg_far_branch_outside(cpu, from);
        note_far_branch(cpu, &cpu->pmu->recorder, shown);
    }
}

bool pmu_tcg_data_address(CPUState *cpu, uint64_t pc, uint64_t *address)
{
    *address = cpu->neg.pmu.access.address;
    return tcg_cflags_has(cpu, CF_PMU_ADDRESSES)
           && cpu->neg.pmu.access.pc == pc;
}

bool pmu_tcg_data_outcome(const CPUState *cpu, uint32_t *outcome)
{
    const PmuTcgCore *core = pmu_tcg_core_of(cpu);

    return core && pmu_tcg_core_outcome(core, cpu->neg.pmu.access.address,
                                        outcome);
}

/*
 * Reports for the model of a core
 */

PmuTcgCore *pmu_tcg_core_of(const CPUState *cpu)
{
    return cpu->pmu && cpu->pmu->tcg ? cpu->pmu->tcg->core : NULL;
}

void pmu_tcg_core_left(CPUState *cpu)
{
    PmuTcgCore *c = pmu_tcg_core_of(cpu);

    if (c) {
        pmu_tcg_core_leave(c);
    }
}

/*
 * The delivery of an interrupt may reach a deadline.  The overflow may be what
 * a replay is waiting for before it enters the next block.
 */
void pmu_tcg_core_accessed(CPUState *cpu, uint64_t address, unsigned bytes,
                           bool store)
{
    PmuTcgCore *c = pmu_tcg_core_of(cpu);

    pmu_tcg_core_note(c, store ? PMU_CORE_STORE : PMU_CORE_LOAD, address,
                      bytes);
    if (pmu_tcg_core_is_past_limit(c)) {
        request_fold(cpu);
    }
}

void pmu_tcg_core_fetched(CPUState *cpu, uint64_t address, uint32_t what)
{
    pmu_tcg_core_note_fetch(pmu_tcg_core_of(cpu), address, what);
}

void pmu_tcg_core_enter(CPUState *cpu, unsigned mode)
{
    pmu_tcg_core_make_room(pmu_tcg_core_of(cpu), mode);
}

/* The instructions before this one could not reach a deadline. */
void pmu_tcg_core_repeat(CPUState *cpu, uint64_t pc, unsigned mode)
{
    PmuTcgCore *c = pmu_tcg_core_of(cpu);

    pmu_tcg_core_see(c);
    if (pmu_tcg_core_is_due(c)) {
        cpu->neg.pmu.site_pc = pc;
        cpu->neg.pmu.site_mode = mode;
        cpu->neg.pmu.site_known = true;
        request_fold(cpu);
    }
}

/*
 * Reports of the execution loop
 */

/* Run the block next with @flags, which hold the number of instructions. */
static void run_next(CPUState *cpu, const TranslationBlock *tb, uint32_t flags)
{
    uint32_t same = tb_cflags(tb)
                    & ~(CF_COUNT_MASK | CF_INVALID | CF_PMU_MASK);

    cpu->cflags_next_tb = same | (cpu->tcg_cflags & CF_PMU_MASK) | flags;
}

static unsigned mode_of_block(const CPUState *cpu, const TranslationBlock *tb)
{
    return cpu->cc->tcg_ops->pmu_mode(tb->flags);
}

static int64_t insns_left(CPUState *cpu, const TranslationBlock *tb)
{
    return *pmu_tcg_cell(cpu, PMU_TALLY_INSNS, mode_of_block(cpu, tb));
}

/* Whether one instruction may reach a deadline by what it misses */
static bool core_is_near_deadline(CPUState *cpu, const TranslationBlock *tb)
{
    PmuTcgCore *c = engine_of(cpu)->core;

    if (!c) {
        return false;
    }
    pmu_tcg_core_make_room(c, mode_of_block(cpu, tb));
    return pmu_tcg_core_room(c) < 2 * PMU_TCG_CORE_HELPER;
}

/*
 * A block of one instruction, uninterrupted, is executed next: fold after it.
 * The request to leave translated code takes effect when the block after it is
 * entered.
 */
static void fold_behind(CPUState *cpu, const TranslationBlock *tb)
{
    cpu->neg.pmu.site_pc = pmu_tcg_address(cpu);
    cpu->neg.pmu.site_mode = mode_of_block(cpu, tb);
    cpu->neg.pmu.site_known = true;
    request_fold(cpu);
}

void pmu_tcg_step(CPUState *cpu, const TranslationBlock *tb)
{
    if ((tb_cflags(tb) & CF_PMU_INSNS)
        && (insns_left(cpu, tb) <= 1 || core_is_near_deadline(cpu, tb))) {
        fold_behind(cpu, tb);
    }
}

/* With CF_PCREL, only an instruction's offset in its page is recorded. */
static uint64_t pc_of_insn(CPUState *cpu, const uint64_t *insn_start)
{
    vaddr page = 0;

    if (cpu->tcg_cflags & CF_PCREL) {
        page = pmu_tcg_address(cpu) & TARGET_PAGE_MASK;
    }
    return page | insn_start[0];
}

/* The address of instruction @nth of a block, from 1; there may be fewer. */
static uint64_t pc_in_block(CPUState *cpu, const TranslationBlock *tb,
                            uint64_t nth)
{
    uint64_t data[INSN_START_WORDS];

    if (nth > tb->icount) {
        return PMU_TCG_NO_INSN;
    }
    tb_insn_start(tb, nth - 1, data);
    return pc_of_insn(cpu, data);
}

/* How many more instructions end a period of the observer in this mode */
static uint64_t insns_to_period(const PmuTcg *e, const PmuObserver *o,
                                unsigned mode)
{
    uint64_t distance = pmu_observer_distance(o);

    return pmu_observer_config(o)->event == PMU_EVENT_INSNS
           ? distance
           : insns_for_cycles(e, cell_tally(e, PMU_TALLY_INSNS, mode),
                              distance);
}

/*
 * Whether a block can be executed to its end, because only an observer waits
 * for events in it.  Not if looking at the clock would change the cycles, nor
 * if icount has to cut the block.
 */
static bool can_be_late(CPUState *cpu, const TranslationBlock *tb,
                        const PmuObserver **due)
{
    const PmuCpu *unit = cpu->pmu;
    uint64_t events = events_of_insns(unit->tcg, tb->icount);

    *due = NULL;
    return !unit->tcg->model.from_clock && !unit->tcg->core
           && (!icount_enabled()
               || cpu->neg.icount_decr.u16.low >= tb->icount)
           && (!unit->pmu || pmu_is_quiet(unit->pmu, events))
           && (!unit->observers
               || pmu_observers_can_wait(unit->observers,
                                         mode_of_block(cpu, tb), events, due));
}

/*
 * Let the block be executed, and nothing after it, in any mode: the cells are
 * set so that any other block is left at its beginning.
 */
static void run_late(CPUState *cpu, const TranslationBlock *tb,
                     const PmuObserver *due)
{
    PmuTcgCells *cells = &cpu->neg.pmu;
    PmuTcg *e = engine_of(cpu);

    cells->late = true;
    cells->late_next = true;
    cells->late_mode = mode_of_block(cpu, tb);
    cells->late_pc = PMU_TCG_NO_INSN;
    e->due = due;
    if (due) {
        cells->late_pc = pc_in_block(cpu, tb,
                                     insns_to_period(e, due,
                                                     cells->late_mode));
        pmu_observer_prepare(due);
    }
    pmu_tcg_see_branches(cpu);
    for (unsigned m = 0; m < PMU_MAX_MODES; m++) {
        load_cells(e, PMU_TALLY_INSNS, m,
                   m == cells->late_mode ? tb->icount + 1 : 1);
    }
    run_next(cpu, tb, tb_cflags(tb) & CF_COUNT_MASK);
}

/* Execute an instruction alone, as it may be the one that overflows. */
static void step(CPUState *cpu, const TranslationBlock *tb)
{
    run_next(cpu, tb, CF_NOIRQ | 1);
    fold_behind(cpu, tb);
}

/*
 * Whether a block was not entered because the log has no room for it: either
 * that is over now, or a deadline may be reached in the block.  Folds that move
 * deadlines of modes to and fro must not go on for ever.
 */
static bool core_has_no_room(CPUState *cpu, const TranslationBlock *tb)
{
    PmuTcg *e = engine_of(cpu);
    unsigned room;

    if (!e->core || (icount_enabled()
                     && cpu->neg.icount_decr.u16.low < tb->icount)) {
        return false;
    }
    if (pmu_tcg_core_make_room(e->core, mode_of_block(cpu, tb))) {
        return true;
    }
    room = pmu_tcg_core_room(e->core);
    fold(cpu, tb->icount, "budget");
    if (!qatomic_read(&cpu->neg.icount_decr.u16.high)
        && pmu_tcg_core_room(e->core) < 2 * (room + 1)) {
        step(cpu, tb);
    }
    return true;
}

bool pmu_tcg_expired(CPUState *cpu, const TranslationBlock *tb)
{
    const PmuObserver *due;
    int64_t left;

    if (!(tb_cflags(tb) & CF_PMU_INSNS)) {
        return false;
    }
    if (icount_enabled() && !cpu->neg.icount_decr.u16.low) {
        /* The budget of icount is used up: that is handled first. */
        return false;
    }
    if (insns_left(cpu, tb) > tb->icount) {
        return core_has_no_room(cpu, tb);
    }

    /* Perhaps only this mode's share is used up, and the total is not. */
    fold(cpu, tb->icount, "budget");
    if (qatomic_read(&cpu->neg.icount_decr.u16.high)) {
        /* An interrupt was raised, and comes first. */
        return true;
    }
    left = insns_left(cpu, tb);
    if (left > tb->icount) {
        return true;
    }
    if (can_be_late(cpu, tb, &due)) {
        run_late(cpu, tb, due);
    } else if (left <= 1) {
        step(cpu, tb);
    } else {
        run_next(cpu, tb, left - 1);
    }
    return true;
}

/*
 * Time that was taken
 */

void pmu_tcg_note_time(CPUState *cpu, uintptr_t host_pc)
{
    uint64_t data[INSN_START_WORDS] = { };

    cpu->neg.pmu.clock_pc_known = cpu_unwind_state_data(cpu, host_pc, data);
    cpu->neg.pmu.clock_pc = pc_of_insn(cpu, data);
}

/* If the instruction is not known, use the next one, which is close. */
static void sample_time(CPUState *cpu)
{
    PmuTcgCells *cells = &cpu->neg.pmu;

    qatomic_set(&cells->clock_due, false);
    cells->site_pc = cells->clock_pc;
    cells->site_mode = pmu_tcg_mode(cpu);
    cells->site_known = cells->clock_pc_known;
    cells->clock_pc_known = false;
    pmu_clocks_sample(cpu);
    cells->site_known = false;
}

/*
 * After a block that was run late the cells have to be loaded anew, even if it
 * did not reach the end of the observer's period.
 */
static void fold_pending(CPUState *cpu)
{
    PmuTcgCells *cells = &cpu->neg.pmu;

    cells->fold_pending = false;
    if (engine_of(cpu)->time_is_up) {
        engine_of(cpu)->time_is_up = false;
        fold_all(cpu, "time");
    } else if (cells->late) {
        fold(cpu, TCG_MAX_INSNS, "late");
    } else {
        fold(cpu, 0, cells->site_known ? "deadline" : "event");
    }
    cells->late = false;
    cells->late_next = false;
    cells->site_known = false;
}

bool pmu_tcg_service(CPUState *cpu)
{
    bool folds = cpu->neg.pmu.fold_pending || cpu->neg.pmu.late;

    if (unlikely(folds)) {
        fold_pending(cpu);
    }
    if (unlikely(qatomic_read(&cpu->neg.pmu.clock_due))) {
        sample_time(cpu);
    }
    return folds;
}

void pmu_tcg_halted(CPUState *cpu)
{
    PmuTcg *e;

    if (!cpu->pmu) {
        return;
    }
    e = engine_of(cpu);
    if (e->model.from_clock && !e->halted) {
        fold_all(cpu, "halt");
        e->halted = true;
        timer_del(e->deadline);
    }
}

void pmu_tcg_woken(CPUState *cpu)
{
    PmuTcg *e;

    if (!cpu->pmu) {
        return;
    }
    e = engine_of(cpu);
    e->halted = false;
    e->stopped = false;
    if (e->model.from_clock) {
        start_clock(e);
        fold_all(cpu, "wakeup");
    }
    pmu_tcg_count(cpu, PMU_TALLY_WAKEUPS);
}

/*
 * A debugger may have stopped the vCPU before the block that was cut for a
 * deadline.  Its next step is one instruction, and then there is another look.
 */
static void forget_cut(CPUState *cpu)
{
    if (cpu->cflags_next_tb != -1 && !(cpu->cflags_next_tb & CF_NOIRQ)) {
        cpu->cflags_next_tb = -1;
    }
}

void pmu_tcg_running(CPUState *cpu)
{
    PmuTcg *e;

    if (!cpu->pmu) {
        return;
    }
    e = engine_of(cpu);
    if (unlikely(e->halted)) {
        pmu_tcg_woken(cpu);
    } else if (unlikely(e->stopped)) {
        restart_clock(e);
        fold_all(cpu, "time");
    }
    if (unlikely(cpu->singlestep_enabled)) {
        forget_cut(cpu);
    }
}

void pmu_tcg_reset(PmuTcg *e)
{
    if (e->core) {
        pmu_tcg_core_reset(e->core);
    }
    if (e->cpu->halted) {
        pmu_tcg_halted(e->cpu);
    }
}

void pmu_tcg_machine_stopped(PmuTcg *e)
{
    if (e->model.from_clock && !e->stopped) {
        e->rest_ns = e->halted ? 0 : clock_now() - e->clock_ns;
        e->stopped = true;
    }
}

/*
 * Life
 */

PmuTcg *pmu_tcg_new(CPUState *cpu, const PmuCycleModel *model,
                    const PmuCoreModel *core)
{
    PmuTcg *e = g_new0(PmuTcg, 1);
    unsigned t, m;

    e->cpu = cpu;
    e->model = *model;
    e->halted = model->from_clock;
    e->stopped = model->from_clock && !runstate_is_running();
    pmu_branch_log_init(&cpu->neg.pmu.log);
    e->core = core ? pmu_tcg_core_new(cpu, core) : NULL;
    e->linger = timer_new_ms(QEMU_CLOCK_REALTIME, linger_over, e);
    e->deadline = timer_new_ns(QEMU_CLOCK_VIRTUAL, clock_deadline, e);
    for (t = PMU_TCG_FIRST; t < PMU_TALLY_CORE_FIRST; t++) {
        for (m = 0; m < PMU_MAX_MODES; m++) {
            e->loaded[t][m] = INT64_MAX;
            *pmu_tcg_cell(cpu, t, m) = INT64_MAX;
        }
    }
    if (core) {
        /*
         * It sees all that is executed, whether or not anybody counts, and
         * wants to know where that is.
         */
        cpu->tcg_cflags |= CF_PMU_INSNS;
        cpu->tcg_cflags &= ~CF_PCREL;
    }
    return e;
}

void pmu_tcg_free(PmuTcg *e)
{
    if (e) {
        /* The vCPU may go on without an engine, and must not call it. */
        set_flags(e, 0);
        e->cpu->neg.pmu.fold_pending = false;
        e->cpu->neg.pmu.late = false;
        e->cpu->neg.pmu.late_next = false;
        timer_free(e->linger);
        timer_free(e->deadline);
        pmu_tcg_core_free(e->core);
        pmu_branch_log_free(&e->cpu->neg.pmu.log);
        g_free(e);
    }
}

bool pmu_tcg_has_fractions(const PmuTcg *e)
{
    return all_insns(e) && (e->model.from_clock || e->model.cpi != PMU_CPI_ONE);
}

static int pmu_tcg_pre_save(void *opaque)
{
    PmuTcg *e = opaque;
    unsigned t, m;

    for (t = PMU_TCG_FIRST; t < PMU_TALLY_CORE_FIRST; t++) {
        for (m = 0; m < PMU_MAX_MODES; m++) {
            load_cells(e, t, m, *pmu_tcg_cell(e->cpu, t, m));
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
    e->time_seen = all_time(e);
    start_clock(e);
    pmu_cpu_tallies_loaded(e->cpu->pmu);
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
