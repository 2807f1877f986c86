/*
 * Performance monitoring unit: translated code that writes the log of a core
 *
 * Accesses are written by tcg-op-ldst.c, where they are emitted.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "cpu.h"
#include "exec/translation-block.h"
#include "tcg/tcg-op-common.h"
#include "tcg/tcg-temp-internal.h"
#include "hw/pmu/pmu-tcg.h"
#include "pmu-tcg-core.h"
#include "pmu-tcg-translate-internal.h"

#define HELPER_H "hw/pmu/pmu-tcg-core-helper.h"
#include "exec/helper-proto.h.inc"
#include "exec/helper-gen.h.inc"
#include "exec/helper-info.c.inc"
#undef HELPER_H

/* What an iteration of a string instruction writes, at most */
#define ITERATION 4

void HELPER(pmu_core_enter)(CPUArchState *env, uint32_t mode)
{
    pmu_tcg_core_enter(env_cpu(env), mode);
}

void HELPER(pmu_core_repeat)(CPUArchState *env, uint64_t pc, uint32_t mode)
{
    pmu_tcg_core_repeat(env_cpu(env), pc, mode);
}

static uint64_t insn_pc(DisasContextBase *db)
{
    return tcg_get_insn_start_param(db->insn_start, 0);
}

void pmu_core_translate_insn_start(DisasContextBase *db)
{
    if (db->num_insns == 1) {
        bool core = (tb_cflags(db->tb) & CF_PMU_INSNS)
                    && pmu_tcg_core_of(tcg_ctx->cpu);

        tcg_ctx->log.next = core ? PMU_ENV_OFFSET(pmu.core_next) : 0;
        tcg_ctx->log.entries = 0;
        tcg_ctx->log.fetch = (TCGLogFetch) { };
    }
    tcg_ctx->log.load_ends = NULL;
    tcg_ctx->log.by_helper = false;
    tcg_ctx->log.call = NULL;
    tcg_ctx->log.pc = db->pc_next;
}

static void gen_constant(PmuCoreKind kind, uint64_t address, unsigned bytes,
                         unsigned count, uint32_t from)
{
    tcg_gen_log(tcg_constant_i64(address),
                pmu_core_facts(pmu_core_what(kind, bytes, count), from));
}

/*
 * Fetches: instructions whose last bytes are in one line are one entry, which
 * is emitted when it is known how many these are.
 */

static void gen_fetch(void)
{
    const TCGLogFetch *fetch = &tcg_ctx->log.fetch;

    if (fetch->count) {
        tcg_ctx->emit_before_op = QTAILQ_NEXT(fetch->insn_start, link);
        gen_constant(PMU_CORE_FETCH, fetch->address, fetch->bytes,
                     fetch->count, 0);
        tcg_ctx->emit_before_op = NULL;
    }
}

void pmu_core_gen_last_fetch(void)
{
    if (pmu_shows_core()) {
        gen_fetch();
    }
}

static uint64_t line_of(uint64_t address)
{
    const PmuCoreModel *model =
        pmu_tcg_core_model(pmu_tcg_core_of(tcg_ctx->cpu));

    return address / model->geometry.l1i.line;
}

static void note_fetch(DisasContextBase *db)
{
    TCGLogFetch *fetch = &tcg_ctx->log.fetch;
    uint64_t address = tcg_ctx->log.pc;
    uint64_t line = line_of(db->pc_next - 1);

    if (fetch->count && line_of(address) == fetch->line
        && line == fetch->line) {
        fetch->count++;
        return;
    }
    gen_fetch();
    *fetch = (TCGLogFetch) {
        .insn_start = db->insn_start,
        .address = address,
        .bytes = db->pc_next - address,
        .count = 1,
        .line = line,
    };
}

/* Now it is known where the instruction after a call is. */
static void gen_call(DisasContextBase *db)
{
    if (tcg_ctx->log.call) {
        tcg_ctx->emit_before_op = QTAILQ_NEXT(tcg_ctx->log.call, link);
        gen_constant(PMU_CORE_CALL, db->pc_next, 0, 0, 0);
        tcg_ctx->emit_before_op = NULL;
    }
}

/* The front end may have taken the instruction back: it did not fit. */
void pmu_core_translate_insn_end(DisasContextBase *db)
{
    if (!pmu_shows_core() || db->pc_next == tcg_ctx->log.pc) {
        return;
    }
    note_fetch(db);
    gen_call(db);
    if (tcg_ctx->log.by_helper) {
        tcg_ctx->log.entries += PMU_TCG_CORE_HELPER;
    }
    if (tcg_ctx->log.entries > PMU_TCG_CORE_BLOCK
        && db->is_jmp == DISAS_NEXT) {
        db->is_jmp = DISAS_TOO_MANY;
    }
}

void pmu_gen_stored(TCGv_i64 address, unsigned bytes)
{
    tcg_gen_log(address,
                pmu_core_facts(pmu_core_what(PMU_CORE_STORE, bytes, 1), 0));
}

/*
 * Branches
 */

static void gen_outcome(DisasContextBase *db, PmuCoreKind kind)
{
    gen_constant(kind, 0, 0, 0, insn_pc(db));
}

void pmu_core_gen_not_taken(DisasContextBase *db)
{
    if (pmu_shows_core()) {
        gen_outcome(db, PMU_CORE_NOT_TAKEN);
    }
}

static void gen_target(DisasContextBase *db, PmuCoreKind kind, TCGv_i64 to)
{
    tcg_gen_log(to, pmu_core_facts(pmu_core_what(kind, 0, 0), insn_pc(db)));
}

void pmu_core_gen_taken(DisasContextBase *db, PmuBranchKind kind, TCGv_i64 to)
{
    if (!pmu_shows_core()) {
        return;
    }
    if (kind & PMU_BRANCH_CONDITIONAL) {
        gen_outcome(db, PMU_CORE_TAKEN);
    }
    switch (kind & ~PMU_BRANCH_CONDITIONAL) {
    case PMU_BRANCH_RETURN:
        gen_target(db, PMU_CORE_RETURN, to);
        break;
    case PMU_BRANCH_INDIRECT_JUMP:
        gen_target(db, PMU_CORE_INDIRECT, to);
        break;
    case PMU_BRANCH_INDIRECT_CALL:
        gen_target(db, PMU_CORE_INDIRECT, to);
        /* fall through */
    case PMU_BRANCH_CALL:
        tcg_ctx->log.call = tcg_last_op();
        break;
    default:
        break;
    }
}

/*
 * Room
 */

/* Go to a label if the log has no room for so many entries. */
static void gen_check(DisasContextBase *db, unsigned entries, TCGLabel *full)
{
    TCGv_ptr end = tcg_temp_ebb_new_ptr();
    TCGv_ptr limit = tcg_temp_ebb_new_ptr();

    tcg_gen_ld_ptr(end, tcg_env, PMU_ENV_OFFSET(pmu.core_next));
    tcg_gen_addi_ptr(end, end, entries * sizeof(PmuCoreEntry));
    tcg_gen_ld_ptr(limit, tcg_env, PMU_ENV_OFFSET(pmu.core_limit)
                   + pmu_block_mode(db) * sizeof(PmuCoreEntry *));
    tcg_gen_brcond_ptr(TCG_COND_GTU, end, limit, full);
}

void pmu_core_gen_room(DisasContextBase *db)
{
    if (!pmu_shows_core()) {
        return;
    }
    if (tcg_ctx->exitreq_label) {
        gen_check(db, tcg_ctx->log.entries, tcg_ctx->exitreq_label);
    } else {
        gen_helper_pmu_core_enter(tcg_env,
                                  tcg_constant_i32(pmu_block_mode(db)));
    }
}

static void gen_repeat(DisasContextBase *db)
{
    gen_helper_pmu_core_repeat(tcg_env, tcg_constant_i64(insn_pc(db)),
                               tcg_constant_i32(pmu_block_mode(db)));
}

void pmu_gen_iteration(DisasContextBase *db)
{
    if (pmu_shows_core()) {
        PmuFold *fold = pmu_new_fold(db, gen_repeat);

        gen_check(db, ITERATION, fold->begin);
        gen_set_label(fold->end);
    }
}
