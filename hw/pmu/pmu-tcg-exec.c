/*
 * Performance monitoring unit: services for the execution loop
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "exec/cpu-common.h"
#include "system/cpu-timers.h"
#include "tcg/insn-start-words.h"
#include "tcg/tcg.h"
#include "hw/pmu/pmu-clock.h"
#include "hw/pmu/pmu-tcg-census.h"
#include "hw/pmu/pmu-tcg-exec.h"
#include "hw/pmu/compat.h"
#include "pmu-tcg-internal.h"

static int64_t insns_left(CPUState *cpu, const TranslationBlock *tb)
{
    return *pmu_tcg_cell(cpu, PMU_TALLY_INSNS, pmu_tcg_mode_of(cpu, tb->flags));
}

/*
 * Blocks that were left
 */

void pmu_tcg_look_early(PmuTcg *e)
{
    if (unlikely(e->late)) {
        e->late_next = false;
        qatomic_set(&e->cpu->neg.icount_decr.u16.high, -1);
    }
}

void pmu_tcg_give_insns_back(CPUState *cpu, const TranslationBlock *tb,
                             int insns)
{
    unsigned mode = pmu_tcg_mode_of(cpu, tb->flags);

    *pmu_tcg_cell(cpu, PMU_TALLY_INSNS, mode) += insns;
    if (unlikely(pmu_census_on)) {
        pmu_census_give_back(cpu, tb, mode, insns);
    }
    pmu_tcg_look_early(pmu_tcg_engine(cpu));
}

/*
 * Blocks of one instruction
 */

/* Run the block next with @flags, which hold the number of instructions. */
static void run_next(CPUState *cpu, const TranslationBlock *tb, uint32_t flags)
{
    uint32_t same = tb_cflags(tb) & ~(CF_COUNT_MASK | CF_INVALID);

    cpu->cflags_next_tb = same | flags;
}

/* Whether one instruction may reach a deadline by its misses */
static bool core_is_near_deadline(CPUState *cpu, const TranslationBlock *tb)
{
    PmuTcgCore *c = pmu_tcg_engine(cpu)->core;

    if (!c) {
        return false;
    }
    pmu_tcg_core_make_room(c, pmu_tcg_mode_of(cpu, tb->flags));
    return pmu_tcg_core_room(c) < 2 * PMU_TCG_CORE_HELPER;
}

/*
 * A block of one instruction, uninterrupted, is executed next: fold after it.
 * The request to leave translated code takes effect when the block after it is
 * entered.
 */
static void fold_after(CPUState *cpu, const TranslationBlock *tb)
{
    PmuTcgCells *cells = pmu_tcg_cells(cpu);

    cells->site_pc = pmu_tcg_address(cpu);
    cells->site_mode = pmu_tcg_mode_of(cpu, tb->flags);
    cells->site_known = true;
    pmu_tcg_request_fold(cpu);
}

void pmu_tcg_step_counting(CPUState *cpu, const TranslationBlock *tb)
{
    if (insns_left(cpu, tb) <= 1 || core_is_near_deadline(cpu, tb)) {
        fold_after(cpu, tb);
    }
}

/* Execute an instruction alone, as it may be the one that overflows. */
static void step_next(CPUState *cpu, const TranslationBlock *tb)
{
    run_next(cpu, tb, CF_NOIRQ | 1);
    fold_after(cpu, tb);
}

/*
 * Blocks that are executed whole, around an overflow
 */

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

/* How many more instructions of a mode make a counter overflow */
static uint64_t insns_to_overflow(const PmuTcg *e, const PmuLate *late,
                                  unsigned mode)
{
    return late->in_cycles ? pmu_tcg_insns_for(e, mode, late->distance)
           : late->distance;
}

/*
 * Whether a block can be executed to its end, because no overflow has to be
 * handled before.  Not if looking at the clock would change the cycles, nor if
 * icount has to cut the block.
 */
static bool can_be_late(const PmuTcg *e, const TranslationBlock *tb,
                        PmuLate *late)
{
    return !e->model.from_clock && !e->core
           && (!icount_enabled()
               || e->cpu->neg.icount_decr.u16.low >= tb->icount)
           && pmu_share_can_be_late(e->share,
                                    pmu_tcg_mode_of(e->cpu, tb->flags),
                                    pmu_tcg_events_of_insns(e, tb->icount),
                                    late);
}

/*
 * Let the block be executed, and nothing after it, in any mode: the cells are
 * set so that any other block is left at its beginning.
 */
static void run_late(PmuTcg *e, const TranslationBlock *tb,
                     const PmuLate *late)
{
    e->cpu->pmu_fold_pending = true;
    e->late = true;
    e->late_next = true;
    e->late_mode = pmu_tcg_mode_of(e->cpu, tb->flags);
    e->late_pc = PMU_TCG_NO_INSN;
    e->due = *late;
    if (late->owner) {
        e->late_pc = pc_in_block(e->cpu, tb,
                                 insns_to_overflow(e, late, e->late_mode));
        pmu_share_prepare_late(e->share, late);
    }
    pmu_tcg_see_branches(e->cpu);
    for (unsigned m = 0; m < PMU_MAX_MODES; m++) {
        pmu_tcg_load_cell(e, PMU_TALLY_INSNS, m,
                          m == e->late_mode ? tb->icount + 1 : 1);
    }
    run_next(e->cpu, tb, tb_cflags(tb) & CF_COUNT_MASK);
}

bool pmu_tcg_has_prepared(const CPUState *cpu)
{
    const PmuTcg *e = pmu_tcg_engine(cpu);

    return e && e->late_next;
}

/*
 * Blocks that were not entered
 */

/*
 * Whether a block was not entered because the log has no room for it: either
 * that is over now, or a deadline may be reached in the block.  Folds that move
 * deadlines of modes to and fro must not go on for ever.
 */
static bool core_has_no_room(CPUState *cpu, const TranslationBlock *tb)
{
    PmuTcg *e = pmu_tcg_engine(cpu);
    unsigned room;

    if (!e->core || (icount_enabled()
                     && cpu->neg.icount_decr.u16.low < tb->icount)) {
        return false;
    }
    if (pmu_tcg_core_make_room(e->core, pmu_tcg_mode_of(cpu, tb->flags))) {
        return true;
    }
    room = pmu_tcg_core_room(e->core);
    pmu_tcg_fold_used_up(e, tb->icount, "budget");
    if (!qatomic_read(&cpu->neg.icount_decr.u16.high)
        && pmu_tcg_core_room(e->core) < 2 * (room + 1)) {
        step_next(cpu, tb);
    }
    return true;
}

bool pmu_tcg_block_expired(CPUState *cpu, const TranslationBlock *tb)
{
    PmuTcg *e = pmu_tcg_engine(cpu);
    PmuLate late;
    int64_t left;

    if (icount_enabled() && !cpu->neg.icount_decr.u16.low) {
        /* The budget of icount is used up: that is handled first. */
        return false;
    }
    if (insns_left(cpu, tb) > tb->icount) {
        return core_has_no_room(cpu, tb);
    }

    /* Perhaps only this mode's share is used up, and the total is not. */
    pmu_tcg_fold_used_up(e, tb->icount, "budget");
    if (qatomic_read(&cpu->neg.icount_decr.u16.high)) {
        /* An interrupt was raised, and comes first. */
        return true;
    }
    left = insns_left(cpu, tb);
    if (left > tb->icount) {
        return true;
    }
    if (can_be_late(e, tb, &late)) {
        run_late(e, tb, &late);
    } else if (left <= 1) {
        step_next(cpu, tb);
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
    PmuTcgCells *cells = pmu_tcg_cells(cpu);
    uint64_t data[INSN_START_WORDS] = { };

    cells->clock_pc_known = cpu_unwind_state_data(cpu, host_pc, data);
    cells->clock_pc = pc_of_insn(cpu, data);
}

/* If the instruction is not known, use the next one, which is close. */
static void sample_time(CPUState *cpu)
{
    PmuTcgCells *cells = pmu_tcg_cells(cpu);

    qatomic_set(&cpu->pmu_clock_due, false);
    cells->site_pc = cells->clock_pc;
    cells->site_mode = pmu_tcg_mode(cpu);
    cells->site_known = cells->clock_pc_known;
    cells->clock_pc_known = false;
    pmu_clocks_sample(cpu);
    cells->site_known = false;
}

/*
 * Between two blocks
 */

/*
 * After a block that was run late the cells have to be loaded anew, even if it
 * did not reach the end of the observer's period.
 */
static void fold_pending(PmuTcg *e)
{
    PmuTcgCells *cells = pmu_tcg_cells(e->cpu);

    e->cpu->pmu_fold_pending = false;
    if (e->time_is_up) {
        e->time_is_up = false;
        pmu_tcg_fold_all(e, "time");
    } else if (e->late) {
        pmu_tcg_fold_used_up(e, TCG_MAX_INSNS, "late");
    } else {
        pmu_tcg_fold_used_up(e, 0, cells->site_known ? "deadline" : "event");
    }
    e->late = false;
    e->late_next = false;
    cells->site_known = false;
}

bool pmu_tcg_fold_or_sample(CPUState *cpu)
{
    bool folds = cpu->pmu_fold_pending;

    if (unlikely(folds)) {
        fold_pending(pmu_tcg_engine(cpu));
    }
    if (unlikely(qatomic_read(&cpu->pmu_clock_due))) {
        sample_time(cpu);
    }
    return folds;
}

/*
 * Halts
 */

void pmu_tcg_note_halt(CPUState *cpu)
{
    PmuTcg *e = pmu_tcg_engine(cpu);

    if (e->model.from_clock && !e->halted) {
        pmu_tcg_fold_all(e, "halt");
        e->halted = true;
        timer_del(e->deadline);
    }
}

void pmu_tcg_note_wakeup(CPUState *cpu)
{
    PmuTcg *e = pmu_tcg_engine(cpu);

    e->halted = false;
    e->stopped = false;
    if (e->model.from_clock) {
        pmu_tcg_clock_start(e);
        pmu_tcg_fold_all(e, "wakeup");
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

void pmu_tcg_note_entry(CPUState *cpu)
{
    PmuTcg *e = pmu_tcg_engine(cpu);

    if (unlikely(e->halted)) {
        pmu_tcg_note_wakeup(cpu);
    } else if (unlikely(e->stopped)) {
        pmu_tcg_clock_restart(e);
        pmu_tcg_fold_all(e, "time");
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
        pmu_tcg_note_halt(e->cpu);
    }
}
