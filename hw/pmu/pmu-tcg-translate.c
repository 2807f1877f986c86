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
                          : ENV_OFFSET(pmu.left) + tally * sizeof(PmuTcgRow);

    return row + block_mode(db) * sizeof(int64_t);
}

static TCGv_i64 gen_load_cell(DisasContextBase *db, PmuTally tally)
{
    TCGv_i64 left = tcg_temp_ebb_new_i64();

    tcg_gen_ld_i64(left, tcg_env, cell_offset(db, tally));
    return left;
}

static void gen_store_cell(DisasContextBase *db, PmuTally tally, TCGv_i64 left)
{
    tcg_gen_st_i64(left, tcg_env, cell_offset(db, tally));
}

/* Remember the current instruction as the one that overflowed. */
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

static void gen_count_one(DisasContextBase *db, PmuTally tally)
{
    TCGLabel *go_on = gen_new_label();
    TCGv_i64 left = gen_load_cell(db, tally);

    tcg_gen_subi_i64(left, left, 1);
    gen_store_cell(db, tally, left);
    tcg_gen_brcondi_i64(TCG_COND_GT, left, 0, go_on);
    gen_request_fold(db);
    gen_set_label(go_on);
}

void pmu_gen_insns(DisasContextBase *db, TCGOp *before)
{
    TCGv_i64 left;

    if (!(tb_cflags(db->tb) & CF_PMU_INSNS)) {
        return;
    }
    tcg_ctx->emit_before_op = before;
    left = gen_load_cell(db, PMU_TALLY_INSNS);
    tcg_gen_subi_i64(left, left, db->num_insns);
    if (tcg_ctx->exitreq_label) {
        tcg_gen_brcondi_i64(TCG_COND_LE, left, 0, tcg_ctx->exitreq_label);
    }
    gen_store_cell(db, PMU_TALLY_INSNS, left);
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
    TCGv_i64 left;

    if (tb_cflags(db->tb) & CF_PMU_INSNS) {
        left = gen_load_cell(db, PMU_TALLY_INSNS);
        tcg_gen_addi_i64(left, left, 1);
        gen_store_cell(db, PMU_TALLY_INSNS, left);
    }
}
