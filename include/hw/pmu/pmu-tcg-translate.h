/*
 * Performance monitoring unit: counting in translated code, for translators
 *
 * Front ends report what an instruction is at the point where it can no longer
 * fail; instructions are counted without their help.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_TCG_TRANSLATE_H
#define HW_PMU_PMU_TCG_TRANSLATE_H

#include "exec/translator.h"
#include "hw/pmu/pmu-engine.h"
#include "hw/pmu/pmu-recorder.h"
#include "tcg/tcg.h"

#ifdef CONFIG_USER_ONLY

/* User-mode emulation has no PMU. */

static inline void pmu_gen_insns(DisasContextBase *db)
{
}

static inline void pmu_gen_folds(DisasContextBase *db)
{
}

static inline void pmu_gen_branch(DisasContextBase *db, PmuTally kind)
{
}

static inline void pmu_gen_taken(DisasContextBase *db, PmuBranchKind kind,
                                 TCGv_i64 from, TCGv_i64 to)
{
}

static inline void pmu_gen_taken_by(DisasContextBase *db, PmuBranchKind kind,
                                    TCGv_i64 to, int64_t distance)
{
}

static inline void pmu_translate_insn_start(DisasContextBase *db)
{
}

static inline void pmu_translate_insn_end(DisasContextBase *db)
{
}

static inline void pmu_translate_again(DisasContextBase *db)
{
}

static inline void pmu_gen_iteration(DisasContextBase *db)
{
}

static inline void pmu_gen_stored(TCGv_i64 address, unsigned bytes)
{
}

static inline void pmu_gen_flush(DisasContextBase *db)
{
}

static inline void pmu_gen_accesses(DisasContextBase *db)
{
}

static inline void pmu_gen_failed_store(DisasContextBase *db)
{
}

static inline void pmu_gen_repeat(DisasContextBase *db)
{
}

#else

/**
 * pmu_gen_insns - count the instructions of a block, before all others
 * @db: the block, complete except for the PMU's code
 *
 * Emits a test that leaves the block by its exit label if it would reach the
 * deadline, unless the block cannot be interrupted (CF_NOIRQ).  Whenever the
 * block is left there, for whatever reason, the count has to be given back
 * (pmu_tcg_give_back()), because nothing has been executed.
 */
void pmu_gen_insns(DisasContextBase *db);

/**
 * pmu_gen_folds - emit the code that is executed when cells are used up
 * @db: the block, complete
 */
void pmu_gen_folds(DisasContextBase *db);

/**
 * pmu_gen_branch - count a branch
 * @db: the block, which ends with this instruction
 * @kind: one of the tallies of branches
 *
 * To be called on every way out of the block, after the last point where the
 * instruction can fault.  Counts the instruction's accesses to memory, too.
 */
void pmu_gen_branch(DisasContextBase *db, PmuTally kind);

/**
 * pmu_gen_taken - count a branch that is taken, and record it
 * @db: the block, as for pmu_gen_branch()
 * @kind: its kind
 * @from: its address
 * @to: where it goes
 *
 * The code to work out @from and @to is dropped if nothing is recorded.
 */
void pmu_gen_taken(DisasContextBase *db, PmuBranchKind kind, TCGv_i64 from,
                   TCGv_i64 to);

/**
 * pmu_gen_taken_by - count and record a branch whose distance is known
 * @db: the block, as for pmu_gen_branch()
 * @kind: its kind
 * @to: where it goes
 * @distance: @to less the address of the branch
 *
 * Costs less than pmu_gen_taken().
 */
void pmu_gen_taken_by(DisasContextBase *db, PmuBranchKind kind, TCGv_i64 to,
                      int64_t distance);

/**
 * pmu_translate_insn_start - begin the translation of an instruction
 * @db: the block
 *
 * The code that it then emits to access memory also notes the address, if
 * addresses are noted (pmu_tcg_note_addresses()).
 */
void pmu_translate_insn_start(DisasContextBase *db);

/**
 * pmu_translate_again - begin a second translation of the same instruction, for
 *                       another way to execute it
 * @db: the block
 *
 * The second translation notes the address of its first access, too.
 */
void pmu_translate_again(DisasContextBase *db);

/**
 * pmu_translate_insn_end - end the translation of an instruction
 * @db: the block
 *
 * If the vCPU has a model of its core, emits the code that shows it the fetch,
 * where the instruction begins.  May end the block.
 */
void pmu_translate_insn_end(DisasContextBase *db);

/**
 * pmu_gen_accesses - count an instruction's accesses to memory
 * @db: the block
 *
 * pmu_translate_insn_end() does this for each instruction that goes on to the
 * next or to tb_stop; front ends have to do it for instructions that leave the
 * block by themselves.
 * Counts the accesses that the instruction has emitted, and the accesses that
 * pmu_note_access() has reported.
 */
void pmu_gen_accesses(DisasContextBase *db);

/**
 * pmu_gen_failed_store - count a conditional store that does not store
 * @db: the block
 *
 * To be called where it is known that the store fails.
 */
void pmu_gen_failed_store(DisasContextBase *db);

/**
 * pmu_gen_iteration - prepare for an iteration of an instruction that repeats
 *                     in its block
 * @db: the block
 *
 * To be called where the loop begins, before its accesses.
 */
void pmu_gen_iteration(DisasContextBase *db);

/**
 * pmu_gen_stored - show a core a store that has happened
 * @address: the lowest address
 * @bytes: how many bytes
 *
 * Only if pmu_shows_core().  To be emitted where it is known that the
 * instruction has stored.
 */
void pmu_gen_stored(TCGv_i64 address, unsigned bytes);

/**
 * pmu_gen_flush - show a core an instruction that empties all caches
 * @db: the block, which ends with this instruction
 */
void pmu_gen_flush(DisasContextBase *db);

/**
 * pmu_gen_repeat - take back an instruction that starts over
 * @db: the block
 *
 * To be called where an instruction leaves its block to be executed again, as
 * a repeated string instruction does in order to take interrupts: it is not
 * retired yet.
 */
void pmu_gen_repeat(DisasContextBase *db);

#endif /* CONFIG_USER_ONLY */

/**
 * pmu_shows_core - whether this block shows a core what it does
 */
static inline bool pmu_shows_core(void)
{
    return tcg_ctx->log.next;
}

/**
 * pmu_mute - begin or end code whose accesses a core does not see
 * @mute: whether that begins
 */
static inline void pmu_mute(bool mute)
{
    tcg_ctx->log.muted = mute;
}

/**
 * pmu_note_access - note that the instruction accesses memory in a helper
 * @store: whether it writes; otherwise it reads
 */
static inline void pmu_note_access(bool store)
{
    tcg_ctx->insn_accesses |= store ? TCG_MO_ST_ST : TCG_MO_LD_LD;
    tcg_ctx->log.by_helper = true;
}

/**
 * pmu_note_table - note that the instruction accesses a table in a helper
 *
 * Such as one of descriptors: a core sees these accesses, but they are no loads
 * or stores of the instruction's own.
 */
static inline void pmu_note_table(void)
{
    tcg_ctx->log.by_helper = true;
}

/**
 * pmu_note_only_store - note that the instruction writes memory only
 *
 * Overrides the operations that were emitted: a conditional store is made of an
 * atomic exchange, which also reads.
 */
static inline void pmu_note_only_store(void)
{
    tcg_ctx->insn_accesses = TCG_MO_ST_ST;
}

#endif /* HW_PMU_PMU_TCG_TRANSLATE_H */
