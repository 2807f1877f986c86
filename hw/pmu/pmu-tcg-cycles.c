/*
 * Performance monitoring unit: the cycles of translated code
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/host-utils.h"
#include "qemu/timer.h"
#include "pmu-tcg-internal.h"

/* The clock's deadline comes after so many cycles, needed or not. */
#define MAX_CLOCK_BUDGET (1ull << 40)

#define NS_PER_CYCLE_AT_1KHZ (NANOSECONDS_PER_SECOND / 1000)

/*
 * Cycles that follow the instructions
 */

static uint64_t cycles_of_insns(const PmuTcg *e, uint64_t insns)
{
    return muldiv64(insns, e->model.cpi, PMU_CPI_ONE);
}

uint64_t pmu_tcg_insns_for(const PmuTcg *e, unsigned mode, uint64_t cycles)
{
    uint64_t insns = pmu_tcg_cell_tally(e, PMU_TALLY_INSNS, mode);
    uint64_t until = cycles_of_insns(e, insns) + cycles;

    if (cycles >= INT64_MAX) {
        return PMU_NO_DEADLINE;
    }
    return muldiv64_round_up(until, PMU_CPI_ONE, e->model.cpi) - insns;
}

bool pmu_tcg_cycles(const PmuTcg *engine, uint64_t time, uint64_t *cycles)
{
    bool known = !engine->model.from_clock;

    *cycles = !known ? 0 : engine->core ? time : cycles_of_insns(engine, time);
    return known;
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
    uint64_t now = pmu_tcg_cell_tally(e, PMU_TALLY_INSNS, m);
    int64_t insns = now - e->clock_insns[m];

    return MAX(insns, 0);
}

/*
 * The time since the last call is attributed to modes by the instructions that
 * were retired in each.  A fraction of a ns in some mode is left for the next
 * call: calling often rounds no more than calling once.  But the division of
 * time depends on when this is called, if instructions of this vCPU do not all
 * take the same time, or if an instruction that reads it is not counted yet.
 */
void pmu_tcg_clock_attribute(PmuTcg *e)
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

void pmu_tcg_clock_start(PmuTcg *e)
{
    for (unsigned m = 0; m < PMU_MAX_MODES; m++) {
        e->clock_insns[m] = pmu_tcg_cell_tally(e, PMU_TALLY_INSNS, m);
    }
    e->clock_ns = clock_now();
    e->rest_ns = 0;
}

/*
 * The machine may have another time since it stopped.  A state that was loaded
 * has no @rest_ns: it has lost less than a ns of each mode, or the time of one
 * instruction.
 */
void pmu_tcg_clock_restart(PmuTcg *e)
{
    e->clock_ns = clock_now() - e->rest_ns;
    e->stopped = false;
}

/*
 * In the vCPU's loop, before its next instruction: only there a face can do all
 * that an overflow may ask for, such as a walk of the guest's page tables.
 */
static void fold_in_loop(CPUState *cpu, run_on_cpu_data data)
{
    PmuTcg *e = pmu_tcg_engine(cpu);

    if (e) {
        e->time_is_up = true;
        pmu_tcg_request_fold(cpu);
    }
}

static void clock_deadline(void *opaque)
{
    PmuTcg *e = opaque;

    async_run_on_cpu(e->cpu, fold_in_loop, RUN_ON_CPU_NULL);
}

void pmu_tcg_clock_arm(PmuTcg *e, PmuTallies wanted, const PmuBudgets budgets)
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

void pmu_tcg_clock_create(PmuTcg *e)
{
    e->deadline = timer_new_ns(QEMU_CLOCK_VIRTUAL, clock_deadline, e);
}

uint64_t pmu_tcg_cycles_of(const PmuTcg *e, unsigned mode)
{
    return e->model.from_clock ? cycles_of_ns(e, e->mode_ns[mode])
           : cycles_of_insns(e, pmu_tcg_cell_tally(e, PMU_TALLY_INSNS, mode));
}

bool pmu_tcg_has_fractions(const PmuTcg *e)
{
    return pmu_tcg_all_insns(e)
           && (e->model.from_clock || e->model.cpi != PMU_CPI_ONE);
}

void pmu_tcg_machine_stopped(PmuTcg *e)
{
    if (e->model.from_clock && !e->stopped) {
        e->rest_ns = e->halted ? 0 : clock_now() - e->clock_ns;
        e->stopped = true;
    }
}
