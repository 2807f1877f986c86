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
#include "hw/pmu/pmu-tcg.h"
#include "hw/pmu/pmu-tcg-translate.h"
#include "accel/tcg/cpu-ops.h"

/* Offset from env of a field of CPUState that lies before it. */
#define ENV_OFFSET(field) \
    (offsetof(ArchCPU, parent_obj.neg.field) - offsetof(ArchCPU, env))

static unsigned block_mode(DisasContextBase *db)
{
    return tcg_ctx->cpu->cc->tcg_ops->pmu_mode(db->tb->flags);
}

static tcg_target_long cell_offset(DisasContextBase *db, PmuTally tally)
{
    tcg_target_long row = tally == PMU_TALLY_INSNS
                          ? ENV_OFFSET(pmu_insns)
                          : ENV_OFFSET(pmu.left)
                            + pmu_tcg_row(tally) * sizeof(PmuTcgRow);

    return row + block_mode(db) * sizeof(int64_t);
}

static void gen_add(tcg_target_long offset, int by)
{
    TCGv_i64 sum = tcg_temp_ebb_new_i64();

    tcg_gen_ld_i64(sum, tcg_env, offset);
    tcg_gen_addi_i64(sum, sum, by);
    tcg_gen_st_i64(sum, tcg_env, offset);
}

/* Count whatever is left. */
static void gen_adjust_insns(DisasContextBase *db, int by)
{
    gen_add(cell_offset(db, PMU_TALLY_INSNS), by);
}

/* Those between branches, which have no deadline. */
static void gen_note_insns(DisasContextBase *db, int by)
{
    if (pmu_tcg_notes_insns(tb_cflags(db->tb))) {
        gen_add(ENV_OFFSET(pmu.recorder.since), by);
    }
}

/* Remember the last instruction as the one that overflowed. */
static void gen_note_site(DisasContextBase *db)
{
    if (tb_cflags(db->tb) & CF_PCREL) {
        return;
    }
    tcg_gen_st_i64(
        tcg_constant_i64(tcg_get_insn_start_param(db->insn_start, 0)),
        tcg_env, ENV_OFFSET(pmu.site_pc));
    tcg_gen_st8_i32(tcg_constant_i32(block_mode(db)), tcg_env,
                    ENV_OFFSET(pmu.site_mode));
    tcg_gen_st8_i32(tcg_constant_i32(true), tcg_env,
                    ENV_OFFSET(pmu.site_known));
}

/* What is used up is seen by the block that follows, like an interrupt. */
static void gen_request_fold(DisasContextBase *db)
{
    gen_note_site(db);
    tcg_gen_st8_i32(tcg_constant_i32(true), tcg_env,
                    ENV_OFFSET(pmu.fold_pending));
    tcg_gen_st16_i32(tcg_constant_i32(-1), tcg_env,
                     ENV_OFFSET(icount_decr.u16.high));
}

/*
 * What a block does where it has used up a cell, which is rare: its code lies
 * behind the block, out of the way of what is executed.
 */
typedef struct PmuFold {
    TCGLabel *begin;
    TCGLabel *end;
    struct PmuFold *next;
} PmuFold;

static PmuFold *new_fold(DisasContextBase *db)
{
    PmuFold *fold = tcg_malloc(sizeof(PmuFold));

    fold->begin = gen_new_label();
    fold->end = gen_new_label();
    fold->next = db->pmu_folds;
    db->pmu_folds = fold;
    return fold;
}

static void gen_count_one(DisasContextBase *db, PmuTally tally)
{
    PmuFold *fold = new_fold(db);

    tcg_gen_countdown_i64(tcg_env, cell_offset(db, tally), 1, fold->begin);
    gen_set_label(fold->end);
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
        gen_request_fold(db);
        tcg_gen_br(fold->end);
    }
}

void pmu_gen_insns(DisasContextBase *db)
{
    if (!(tb_cflags(db->tb) & CF_PMU_INSNS)) {
        return;
    }
    tcg_ctx->emit_before_op = QTAILQ_FIRST(&tcg_ctx->ops);
    gen_note_insns(db, db->num_insns);
    if (tcg_ctx->exitreq_label) {
        tcg_gen_countdown_i64(tcg_env, cell_offset(db, PMU_TALLY_INSNS),
                              db->num_insns, tcg_ctx->exitreq_label);
    } else {
        gen_adjust_insns(db, -db->num_insns);
    }
    tcg_ctx->emit_before_op = NULL;
}

void pmu_translate_insn_start(DisasContextBase *db)
{
    bool note = tb_cflags(db->tb) & CF_PMU_ADDRESSES;

    tcg_ctx->insn_accesses = 0;
    tcg_ctx->insn_note_offset = note ? ENV_OFFSET(pmu.access) : 0;
    tcg_ctx->insn_note_pc = tcg_get_insn_start_param(db->insn_start, 0);
}

static void gen_count_accesses(DisasContextBase *db, TCGBar accesses)
{
    if (accesses & TCG_MO_LD_LD) {
        gen_count_one(db, PMU_TALLY_LOADS);
    }
    if (accesses & TCG_MO_ST_ST) {
        gen_count_one(db, PMU_TALLY_STORES);
    }

    /* An overflow is to be noticed behind this instruction. */
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

/**
 * struct Branch - a branch that is being translated
 * @kind: what it is
 * @from: its address
 * @to: where it goes
 * @insns: the instructions between branches are counted
 */
typedef struct Branch {
    PmuBranchKind kind;
    TCGv_i64 from;
    TCGv_i64 to;
    bool insns;
} Branch;

/* A field of one of the recorders. */
#define RECORDER(recorder, field) ((recorder) + offsetof(PmuRecorder, field))

/* What pmu_recorder_push() does. */
static void gen_push(tcg_target_long recorder, const Branch *branch)
{
    TCGv_i32 next = tcg_temp_ebb_new_i32(), last = tcg_temp_ebb_new_i32();
    TCGv_ptr slot = tcg_temp_ebb_new_ptr();

    tcg_gen_ld_i32(next, tcg_env, RECORDER(recorder, next));
    tcg_gen_ext_i32_ptr(slot, next);
    tcg_gen_add_ptr(slot, slot, tcg_env);
    tcg_gen_st_i64(branch->from, slot, RECORDER(recorder, from));
    tcg_gen_st_i64(branch->to, slot, RECORDER(recorder, to));
    tcg_gen_st_i64(tcg_constant_i64(branch->kind), slot,
                   RECORDER(recorder, kind));
    if (branch->insns) {
        TCGv_i64 since = tcg_temp_ebb_new_i64();

        tcg_gen_ld_i64(since, tcg_env, RECORDER(recorder, since));
        tcg_gen_st_i64(since, slot, RECORDER(recorder, insns));
        tcg_gen_st_i64(tcg_constant_i64(0), tcg_env,
                       RECORDER(recorder, since));
    }
    tcg_gen_ld_i32(last, tcg_env, RECORDER(recorder, last));
    tcg_gen_addi_i32(next, next, sizeof(uint64_t));
    tcg_gen_and_i32(next, next, last);
    tcg_gen_st_i32(next, tcg_env, RECORDER(recorder, next));
}

/* What a return does that takes its call away. */
static void gen_pop(void)
{
    TCGv_i32 next = tcg_temp_ebb_new_i32(), last = tcg_temp_ebb_new_i32();
    TCGv_i64 zero = tcg_constant_i64(0);
    TCGv_ptr slot = tcg_temp_ebb_new_ptr();

    tcg_gen_ld_i32(next, tcg_env, ENV_OFFSET(pmu.recorder.next));
    tcg_gen_ld_i32(last, tcg_env, ENV_OFFSET(pmu.recorder.last));
    tcg_gen_subi_i32(next, next, sizeof(uint64_t));
    tcg_gen_and_i32(next, next, last);
    tcg_gen_st_i32(next, tcg_env, ENV_OFFSET(pmu.recorder.next));
    tcg_gen_ext_i32_ptr(slot, next);
    tcg_gen_add_ptr(slot, slot, tcg_env);
    tcg_gen_st_i64(zero, slot, ENV_OFFSET(pmu.recorder.from));
    tcg_gen_st_i64(zero, slot, ENV_OFFSET(pmu.recorder.to));
    tcg_gen_st_i64(zero, slot, ENV_OFFSET(pmu.recorder.kind));
    tcg_gen_st_i64(zero, slot, ENV_OFFSET(pmu.recorder.insns));
    tcg_gen_st_i64(zero, tcg_env, ENV_OFFSET(pmu.recorder.since));
}

static void gen_return(const Branch *branch)
{
    TCGv_i32 call_stack = tcg_temp_ebb_new_i32();
    TCGLabel *push = gen_new_label(), *end = gen_new_label();

    tcg_gen_ld_i32(call_stack, tcg_env, ENV_OFFSET(pmu.recorder.call_stack));
    tcg_gen_brcondi_i32(TCG_COND_EQ, call_stack, 0, push);
    gen_pop();
    tcg_gen_br(end);
    gen_set_label(push);
    gen_push(ENV_OFFSET(pmu.recorder), branch);
    gen_set_label(end);
}

/* Skip what follows unless the recorder wants the branch. */
static void gen_unless_wanted(DisasContextBase *db, tcg_target_long recorder,
                              PmuBranchKind kind, TCGLabel *unwanted)
{
    TCGv_i32 wanted = tcg_temp_ebb_new_i32();

    tcg_gen_ld_i32(wanted, tcg_env, RECORDER(recorder, wanted)
                                    + block_mode(db) * sizeof(PmuBranchKinds));
    tcg_gen_brcondi_i32(TCG_COND_TSTEQ, wanted, 1u << kind, unwanted);
}

static void gen_record(DisasContextBase *db, const Branch *branch)
{
    TCGLabel *unwanted = gen_new_label();

    gen_unless_wanted(db, ENV_OFFSET(pmu.recorder), branch->kind, unwanted);
    if (PMU_BRANCHES_OF(PMU_BRANCH_RETURN) >> branch->kind & 1) {
        gen_return(branch);
    } else {
        gen_push(ENV_OFFSET(pmu.recorder), branch);
    }
    gen_set_label(unwanted);
}

/* All of them, and nothing but where they lead. */
static void gen_record_outside(DisasContextBase *db, const Branch *branch)
{
    const Branch plain = { branch->kind, branch->from, branch->to };
    TCGLabel *unwanted = gen_new_label();

    gen_unless_wanted(db, ENV_OFFSET(pmu.outside), branch->kind, unwanted);
    gen_push(ENV_OFFSET(pmu.outside), &plain);
    gen_set_label(unwanted);
}

/*
 * If it turns out that the branch is never taken, what is behind the label of a
 * fold is not dropped, because a branch leads back to there: there must not be
 * anything left that needs temporaries from ahead of it.
 */
void pmu_gen_taken(DisasContextBase *db, PmuBranchKind kind, TCGv_i64 from,
                   TCGv_i64 to)
{
    if (tb_cflags(db->tb) & CF_PMU_RECORD) {
        const Branch branch = {
            kind, from, to, pmu_tcg_notes_insns(tb_cflags(db->tb)),
        };

        gen_record(db, &branch);
        gen_record_outside(db, &branch);
    }
    pmu_gen_branch(db, tally_of(kind));
}

void pmu_gen_failed_store(DisasContextBase *db)
{
    if (tb_cflags(db->tb) & CF_PMU_ADDRESSES) {
        tcg_gen_st_i64(tcg_constant_i64(PMU_TCG_NO_INSN), tcg_env,
                       ENV_OFFSET(pmu.access.pc));
    }
    if (tb_cflags(db->tb) & CF_PMU_ACCESSES) {
        gen_count_one(db, PMU_TALLY_FAILED_STORES);
    }
}

void pmu_gen_repeat(DisasContextBase *db)
{
    if (tb_cflags(db->tb) & CF_PMU_INSNS) {
        gen_adjust_insns(db, 1);
        gen_note_insns(db, -1);
    }
}
