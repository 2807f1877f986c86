/*
 * Performance monitoring unit: services for the execution loop
 *
 * For accel/tcg, also where it is compiled once for all targets.  A CPU without
 * observers and PMU (CPUState.pmu) costs a test each time.  User-mode
 * emulation has no PMU.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_TCG_EXEC_H
#define HW_PMU_PMU_TCG_EXEC_H

#include "exec/translation-block.h"
#include "hw/core/cpu.h"
#include "accel/tcg/cpu-ops.h"

#define CF_PMU_MASK \
    (CF_PMU_INSNS | CF_PMU_BRANCHES | CF_PMU_ACCESSES | CF_PMU_ADDRESSES \
     | CF_PMU_RECORD)

/**
 * pmu_tcg_mode_of - the mode in which a block's instructions are counted
 * @cpu: the vCPU, of any target: those without a PMU have one mode
 * @flags: the block's flags
 */
static inline unsigned pmu_tcg_mode_of(const CPUState *cpu, uint32_t flags)
{
    return pmu_mode_of_flags(cpu->cc->tcg_ops->pmu_mode_flags, flags);
}

#ifdef CONFIG_USER_ONLY

static inline uint32_t pmu_tcg_cflags(const CPUState *cpu, uint32_t flags,
                                      uint32_t cflags)
{
    return cflags;
}

static inline bool pmu_tcg_is_current(const CPUState *cpu,
                                      const TranslationBlock *tb)
{
    return tb_cflags(tb) == cpu->tcg_cflags;
}

static inline void pmu_tcg_give_back(CPUState *cpu, const TranslationBlock *tb,
                                     int insns)
{
}

static inline bool pmu_tcg_expired(CPUState *cpu, const TranslationBlock *tb)
{
    return false;
}

static inline void pmu_tcg_step(CPUState *cpu, const TranslationBlock *tb)
{
}

static inline bool pmu_tcg_is_prepared(const CPUState *cpu)
{
    return false;
}

static inline bool pmu_tcg_service(CPUState *cpu)
{
    return false;
}

#else

/*
 * The functions of the engine, for CPUs with blocks that count, or of which
 * something is counted
 */
void pmu_tcg_give_insns_back(CPUState *cpu, const TranslationBlock *tb,
                             int insns);
bool pmu_tcg_block_expired(CPUState *cpu, const TranslationBlock *tb);
void pmu_tcg_step_counting(CPUState *cpu, const TranslationBlock *tb);
bool pmu_tcg_has_prepared(const CPUState *cpu);
bool pmu_tcg_fold_or_sample(CPUState *cpu);
void pmu_tcg_note_halt(CPUState *cpu);
void pmu_tcg_note_wakeup(CPUState *cpu);
void pmu_tcg_note_entry(CPUState *cpu);

/**
 * pmu_tcg_counts_in - whether blocks of a mode count, as they are asked to
 * @cpu: the vCPU
 * @mode: the mode
 *
 * Most users count their programs alone: the kernel then executes the blocks
 * that it has without any counter.  Not while a fold is pending: after a block
 * that was run late, the next one is left at its beginning because it counts.
 */
static inline bool pmu_tcg_counts_in(const CPUState *cpu, unsigned mode)
{
    return cpu->pmu_fold_pending || !(cpu->pmu_uncounted >> mode & 1);
}

/**
 * pmu_tcg_cflags - the cflags of a block, which counts only where that is asked
 * @cpu: the vCPU
 * @flags: the flags of the block, which have its mode
 * @cflags: its cflags, for the PMU as for any block: CPUState.cflags_next_tb
 *          may have been made for another mode, before an interrupt
 */
static inline uint32_t pmu_tcg_cflags(const CPUState *cpu, uint32_t flags,
                                      uint32_t cflags)
{
    uint32_t counting = cpu->tcg_cflags & CF_PMU_MASK;

    if (cpu->pmu_uncounted
        && !pmu_tcg_counts_in(cpu, pmu_tcg_mode_of(cpu, flags))) {
        counting = 0;
    }
    return (cflags & ~CF_PMU_MASK) | counting;
}

/**
 * pmu_tcg_is_current - whether a block has the cflags that one has by default
 * @cpu: the vCPU
 * @tb: the block
 *
 * Returns: whether they are pmu_tcg_cflags() for the block's flags, and for
 * CPUState.tcg_cflags.  Each indirect jump asks.
 */
static inline bool pmu_tcg_is_current(const CPUState *cpu,
                                      const TranslationBlock *tb)
{
    uint32_t off = pmu_tcg_counts_in(cpu, tb->pmu_mode) ? 0 : CF_PMU_MASK;

    return tb_cflags(tb) == (cpu->tcg_cflags & ~off);
}

/**
 * pmu_tcg_give_back - take back instructions that a block did not finish
 * @cpu: the vCPU
 * @tb: the block, which was left in its middle, or where it begins
 * @insns: how many, with the one that was left
 */
static inline void pmu_tcg_give_back(CPUState *cpu, const TranslationBlock *tb,
                                     int insns)
{
    if (tb_cflags(tb) & CF_PMU_INSNS) {
        pmu_tcg_give_insns_back(cpu, tb, insns);
    }
}

/**
 * pmu_tcg_expired - handle a block that was not entered, if for its deadline
 * @cpu: the vCPU
 * @tb: the block
 *
 * If so, folds if that helps, or arranges for the instructions up to the
 * deadline to be executed next (CPUState.cflags_next_tb).
 *
 * Returns: false if the block was left for some other reason.
 */
static inline bool pmu_tcg_expired(CPUState *cpu, const TranslationBlock *tb)
{
    return (tb_cflags(tb) & CF_PMU_INSNS) && pmu_tcg_block_expired(cpu, tb);
}

/**
 * pmu_tcg_step - execute an instruction by itself, whatever its deadline
 * @cpu: the vCPU, outside its loop
 * @tb: the block of that one instruction, uninterrupted
 *
 * An overflow is then noticed after it, before any interrupt.
 */
static inline void pmu_tcg_step(CPUState *cpu, const TranslationBlock *tb)
{
    if (tb_cflags(tb) & CF_PMU_INSNS) {
        pmu_tcg_step_counting(cpu, tb);
    }
}

/**
 * pmu_tcg_is_prepared - whether no interrupt comes before the next block
 * @cpu: the vCPU
 *
 * Returns: whether pmu_tcg_expired() has prepared everything for this block.
 */
static inline bool pmu_tcg_is_prepared(const CPUState *cpu)
{
    return cpu->pmu && pmu_tcg_has_prepared(cpu);
}

/**
 * pmu_tcg_service - fold if that is pending, and sample time if that is due
 * @cpu: the vCPU, between instructions, without the big lock
 *
 * May raise an interrupt, and may change the flags of the blocks to come: the
 * block before must not be chained to the next.
 *
 * Returns: whether it folded.
 */
static inline bool pmu_tcg_service(CPUState *cpu)
{
    return unlikely(cpu->pmu_fold_pending | qatomic_read(&cpu->pmu_clock_due))
           && pmu_tcg_fold_or_sample(cpu);
}

/**
 * pmu_tcg_halted - note that the vCPU halts
 * @cpu: the vCPU
 */
static inline void pmu_tcg_halted(CPUState *cpu)
{
    if (cpu->pmu) {
        pmu_tcg_note_halt(cpu);
    }
}

/**
 * pmu_tcg_woken - note that the vCPU goes on after a halt
 * @cpu: the vCPU
 */
static inline void pmu_tcg_woken(CPUState *cpu)
{
    if (cpu->pmu) {
        pmu_tcg_note_wakeup(cpu);
    }
}

/**
 * pmu_tcg_running - note that the vCPU is not halted
 * @cpu: the vCPU, about to execute
 *
 * Some devices start a halted CPU by themselves.  Cycles that follow the clock
 * go on if the machine had stopped.  If a debugger steps, the next block is one
 * instruction, even if another was prepared.
 */
static inline void pmu_tcg_running(CPUState *cpu)
{
    if (cpu->pmu) {
        pmu_tcg_note_entry(cpu);
    }
}

#endif /* CONFIG_USER_ONLY */

#endif /* HW_PMU_PMU_TCG_EXEC_H */
