/*
 * Performance monitoring unit: counting in translated code
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "cpu.h"
#include "exec/translation-block.h"
#include "tcg/tcg-op-common.h"
#include "tcg/tcg-temp-internal.h"
#include "hw/pmu/pmu-tcg-census.h"
#include "accel/tcg/cpu-ops.h"
#include "pmu-tcg-internal.h"
#include "pmu-tcg-translate-internal.h"

#define HELPER_H "hw/pmu/pmu-tcg-helper.h"
#include "exec/helper-proto.h.inc"
#include "exec/helper-gen.h.inc"
#include "exec/helper-info.c.inc"
#undef HELPER_H

unsigned pmu_block_mode(DisasContextBase *db)
{
    return pmu_tcg_mode_of(tcg_ctx->cpu, db->tb->flags);
}

static tcg_target_long cell_offset(DisasContextBase *db, PmuTally tally)
{
    return PMU_CELLS_OFFSET(left)
           + (tally - PMU_TCG_FIRST) * sizeof(PmuTcgRow)
           + pmu_block_mode(db) * sizeof(int64_t);
}

/* Change the cell of instructions, even if nothing is left of it. */
static void gen_adjust_insns(DisasContextBase *db, int by)
{
    tcg_target_long offset = cell_offset(db, PMU_TALLY_INSNS);
    TCGv_i64 left = tcg_temp_ebb_new_i64();

    tcg_gen_ld_i64(left, tcg_env, offset);
    tcg_gen_addi_i64(left, left, by);
    tcg_gen_st_i64(left, tcg_env, offset);
}

/* Remember the last instruction as the one that overflowed. */
static void gen_note_site(DisasContextBase *db)
{
    if (tb_cflags(db->tb) & CF_PCREL) {
        return;
    }
    tcg_gen_st_i64(
        tcg_constant_i64(tcg_get_insn_start_param(db->insn_start, 0)),
        tcg_env, PMU_CELLS_OFFSET(site_pc));
    tcg_gen_st8_i32(tcg_constant_i32(pmu_block_mode(db)), tcg_env,
                    PMU_CELLS_OFFSET(site_mode));
    tcg_gen_st8_i32(tcg_constant_i32(true), tcg_env,
                    PMU_CELLS_OFFSET(site_known));
}

/* Ask for a fold before the block that follows, as an interrupt would. */
static void gen_request_fold(DisasContextBase *db, const PmuFold *fold)
{
    gen_note_site(db);
    tcg_gen_st8_i32(tcg_constant_i32(true), tcg_env,
                    PMU_CPU_OFFSET(pmu_fold_pending));
    tcg_gen_st16_i32(tcg_constant_i32(-1), tcg_env,
                     PMU_CPU_OFFSET(neg.icount_decr.u16.high));
}

void HELPER(pmu_see_branches)(CPUArchState *env)
{
    pmu_tcg_see_branches(env_cpu(env));
}

/* Let the recorders read the log. */
static void gen_see_branches(DisasContextBase *db, const PmuFold *fold)
{
    gen_helper_pmu_see_branches(tcg_env);
}

PmuFold *pmu_new_fold(DisasContextBase *db,
                      void (*gen)(DisasContextBase *db, const PmuFold *fold))
{
    PmuFold *fold = tcg_malloc(sizeof(PmuFold));

    fold->begin = gen_new_label();
    fold->end = gen_new_label();
    fold->gen = gen;
    fold->next = db->pmu_folds;
    db->pmu_folds = fold;
    return fold;
}

/* Count a variable of env down, and branch if 0 or less is left. */
static void gen_count_down(tcg_target_long offset, int by, TCGLabel *used_up)
{
    TCGv_i64 left = tcg_temp_ebb_new_i64();

    tcg_gen_ld_i64(left, tcg_env, offset);
    tcg_gen_subi_i64(left, left, by);
    tcg_gen_st_i64(left, tcg_env, offset);
    tcg_gen_brcondi_i64(TCG_COND_LE, left, 0, used_up);
    tcg_temp_free_i64(left);
}

/* Count down, and execute the code that @used_up generates at zero. */
static void gen_countdown(DisasContextBase *db, tcg_target_long offset, int by,
                          void (*used_up)(DisasContextBase *db,
                                          const PmuFold *fold))
{
    PmuFold *fold = pmu_new_fold(db, used_up);

    gen_count_down(offset, by, fold->begin);
    gen_set_label(fold->end);
}

static void gen_count_one(DisasContextBase *db, PmuTally tally)
{
    gen_countdown(db, cell_offset(db, tally), 1, gen_request_fold);
}

void pmu_gen_folds(DisasContextBase *db)
{
    PmuFold *fold;

    for (fold = db->pmu_folds; fold; fold = fold->next) {
        if (QSIMPLEQ_EMPTY(&fold->begin->branches)) {
            /* The front end has taken the instruction back. */
            continue;
        }
        gen_set_label(fold->begin);
        fold->gen(db, fold);
        tcg_gen_br(fold->end);
    }
}

void pmu_gen_insns(DisasContextBase *db)
{
    if (!(tb_cflags(db->tb) & CF_PMU_INSNS)) {
        return;
    }
    pmu_core_gen_last_fetch(db);
    tcg_ctx->emit_before_op = QTAILQ_FIRST(&tcg_ctx->ops);
    if (pmu_census_on) {
        pmu_census_gen(db);
    }
    if (tcg_ctx->exitreq_label) {
        gen_count_down(cell_offset(db, PMU_TALLY_INSNS), db->num_insns,
                       tcg_ctx->exitreq_label);
    } else {
        gen_adjust_insns(db, -db->num_insns);
    }
    pmu_core_gen_room(db);
    tcg_ctx->emit_before_op = NULL;
}

void pmu_translate_again(DisasContextBase *db)
{
    bool note = tb_cflags(db->tb) & CF_PMU_ADDRESSES;

    tcg_ctx->insn_note_offset = note ? PMU_CELLS_OFFSET(access) : 0;
}

void pmu_translate_insn_start(DisasContextBase *db)
{
    tcg_ctx->insn_accesses = 0;
    tcg_ctx->insn_note_pc = tcg_get_insn_start_param(db->insn_start, 0);
    if (pmu_census_on) {
        pmu_census_insn_start(db);
    }
    pmu_translate_again(db);
    pmu_core_translate_insn_start(db);
}

void pmu_translate_insn_end(DisasContextBase *db)
{
    if (db->is_jmp != DISAS_NORETURN) {
        pmu_gen_accesses(db);
    }
    pmu_core_translate_insn_end(db);
}

static void gen_count_accesses(DisasContextBase *db, TCGBar accesses)
{
    if (accesses & TCG_MO_LD_LD) {
        gen_count_one(db, PMU_TALLY_LOADS);
    }
    if (accesses & TCG_MO_ST_ST) {
        gen_count_one(db, PMU_TALLY_STORES);
    }

    /* An overflow must be noticed after this instruction. */
    if (accesses && db->is_jmp == DISAS_NEXT) {
        db->is_jmp = DISAS_TOO_MANY;
    }
}

void pmu_gen_accesses(DisasContextBase *db)
{
    TCGBar accesses = tcg_ctx->insn_accesses;

    if (tb_cflags(db->tb) & CF_PMU_ACCESSES) {
        gen_count_accesses(db, accesses);
    }
    tcg_ctx->insn_accesses = 0;
}

void pmu_gen_branch(DisasContextBase *db, PmuTally kind)
{
    pmu_gen_accesses(db);
    if (kind == PMU_TALLY_COND_NOT_TAKEN) {
        pmu_core_gen_not_taken(db);
    }
    if (tb_cflags(db->tb) & CF_PMU_BRANCHES) {
        gen_count_one(db, kind);
    }
}

static PmuTally tally_of(PmuBranchKind kind)
{
    static const PmuTally tallies[] = {
        [PMU_BRANCH_JUMP] = PMU_TALLY_JUMPS,
        [PMU_BRANCH_INDIRECT_JUMP] = PMU_TALLY_INDIRECT_JUMPS,
        [PMU_BRANCH_CALL] = PMU_TALLY_CALLS,
        [PMU_BRANCH_INDIRECT_CALL] = PMU_TALLY_INDIRECT_CALLS,
        [PMU_BRANCH_RETURN] = PMU_TALLY_RETURNS,
        [PMU_BRANCH_CALL_NEXT] = PMU_TALLY_CALLS,
    };

    return kind & PMU_BRANCH_CONDITIONAL ? PMU_TALLY_COND_TAKEN : tallies[kind];
}

/*
 * Without @distance, the branch comes from @from.  A full log is read at once:
 * there is no room for another branch.
 */
static void gen_log(DisasContextBase *db, PmuBranchKind kind, TCGv_i64 from,
                    TCGv_i64 to, int32_t distance)
{
    uint32_t what = pmu_logged_what(kind, pmu_block_mode(db), distance);
    TCGv_i64 room = tcg_temp_ebb_new_i64();
    TCGv_ptr end = tcg_temp_ebb_new_ptr();
    TCGv_ptr branches = tcg_temp_ebb_new_ptr();

    tcg_gen_ld_i64(room, tcg_env, PMU_CELLS_OFFSET(log.room));
    tcg_gen_trunc_i64_ptr(end, room);
    tcg_gen_ld_ptr(branches, tcg_env, PMU_CELLS_OFFSET(log.branches));
    tcg_gen_add_ptr(end, end, branches);
    if (!distance) {
        tcg_gen_st_i64(from, end, PMU_LOGGED(from));
    }
    tcg_gen_st_i64(to, end, PMU_LOGGED(to));
    tcg_gen_st_i32(tcg_constant_i32(what), end, PMU_LOGGED(what));
    if (tb_cflags(db->tb) & CF_PMU_INSNS) {
        TCGv_i64 left = tcg_temp_ebb_new_i64();

        tcg_gen_ld_i64(left, tcg_env, cell_offset(db, PMU_TALLY_INSNS));
        tcg_gen_st32_i64(left, end, PMU_LOGGED(left));
        pmu_core_gen_place(db, end);
    }
    gen_countdown(db, PMU_CELLS_OFFSET(log.room), sizeof(PmuLoggedBranch),
                  gen_see_branches);
}

/*
 * The log of a core comes first, and has the branch that the other one gives a
 * place there.
 *
 * If the branch turns out never to be taken, the code after the label of a fold
 * is not dropped, because a branch leads back to it: that code must not need
 * temporaries that were set before the label.
 */
void pmu_gen_taken(DisasContextBase *db, PmuBranchKind kind, TCGv_i64 from,
                   TCGv_i64 to)
{
    pmu_core_gen_taken(db, kind, to);
    if (tb_cflags(db->tb) & CF_PMU_RECORD) {
        gen_log(db, kind, from, to, 0);
    }
    pmu_gen_branch(db, tally_of(kind));
}

/* Values known at translation need not be stored during execution. */
void pmu_gen_taken_by(DisasContextBase *db, PmuBranchKind kind, TCGv_i64 to,
                      int64_t distance)
{
    if (!pmu_logged_fits(distance)) {
        TCGv_i64 from = tcg_temp_ebb_new_i64();

        tcg_gen_subi_i64(from, to, distance);
        pmu_gen_taken(db, kind, from, to);
        return;
    }
    pmu_core_gen_taken(db, kind, to);
    if (tb_cflags(db->tb) & CF_PMU_RECORD) {
        gen_log(db, kind, NULL, to, distance);
    }
    pmu_gen_branch(db, tally_of(kind));
}

void pmu_gen_failed_store(DisasContextBase *db)
{
    if (tb_cflags(db->tb) & CF_PMU_ADDRESSES) {
        tcg_gen_st_i64(tcg_constant_i64(PMU_TCG_NO_INSN), tcg_env,
                       PMU_CELLS_OFFSET(access.pc));
    }
    if (tb_cflags(db->tb) & CF_PMU_ACCESSES) {
        gen_count_one(db, PMU_TALLY_FAILED_STORES);
    }
}

void pmu_gen_repeat(DisasContextBase *db)
{
    if (tb_cflags(db->tb) & CF_PMU_INSNS) {
        gen_adjust_insns(db, 1);
        if (pmu_census_on) {
            pmu_census_gen_repeat(db);
        }
    }
}
