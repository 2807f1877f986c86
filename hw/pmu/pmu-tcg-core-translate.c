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
#include "pmu-tcg-internal.h"
#include "pmu-tcg-translate-internal.h"

#define HELPER_H "hw/pmu/pmu-tcg-core-helper.h"
#include "exec/helper-proto.h.inc"
#include "exec/helper-gen.h.inc"
#include "exec/helper-info.c.inc"
#undef HELPER_H

/* What an iteration of a string instruction writes, at most */
#define ITERATION 4

void HELPER(pmu_core_fetched)(CPUArchState *env, uint64_t address,
                              uint32_t what)
{
    pmu_tcg_core_fetched(env_cpu(env), address, what);
}

void HELPER(pmu_core_enter)(CPUArchState *env, uint32_t mode)
{
    pmu_tcg_core_enter(env_cpu(env), mode);
}

void HELPER(pmu_core_flush)(CPUArchState *env)
{
    pmu_tcg_core_flush(pmu_tcg_core_of(env_cpu(env)));
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

        tcg_ctx->log.next = core ? PMU_CELLS_OFFSET(core_next) : 0;
        tcg_ctx->log.entries = 0;
        /* The last translation may have been given up where it was muted. */
        tcg_ctx->log.muted = false;
        tcg_ctx->log.fetch = (TCGLogFetch) { };
    }
    tcg_ctx->log.load_ends = NULL;
    tcg_ctx->log.by_helper = false;
    tcg_ctx->log.call = NULL;
    tcg_ctx->log.pc = db->pc_next;
}

/*
 * Fetches: instructions whose last bytes are in one line are one entry, which
 * is emitted when it is known how many these are.  It is written only if one of
 * its lines is not recent; most are.
 */

static const PmuTcgCore *core_of_block(void)
{
    return pmu_tcg_core_of(tcg_ctx->cpu);
}

static uint64_t line_of(uint64_t address)
{
    return pmu_tcg_core_line(core_of_block(), address);
}

static void gen_fetched(DisasContextBase *db, const PmuFold *fold)
{
    gen_helper_pmu_core_fetched(tcg_env, tcg_constant_i64(fold->address),
                                tcg_constant_i32(fold->what));
}

static void gen_check_line(uint64_t line, TCGLabel *not_recent)
{
    unsigned place = pmu_tcg_core_place(core_of_block(), line);
    TCGv_i64 recent = tcg_temp_ebb_new_i64();

    tcg_gen_ld_i64(recent, tcg_env, PMU_CELLS_OFFSET(core_lines)
                   + place * sizeof(uint64_t));
    tcg_gen_brcondi_i64(TCG_COND_NE, recent, line, not_recent);
    tcg_temp_free_i64(recent);
}

static void gen_fetch(DisasContextBase *db)
{
    const TCGLogFetch *fetch = &tcg_ctx->log.fetch;
    PmuFold *fold;

    if (!fetch->count) {
        return;
    }
    fold = pmu_new_fold(db, gen_fetched);
    fold->address = fetch->address;
    fold->what = pmu_core_what(PMU_CORE_FETCH, fetch->bytes, fetch->count);
    tcg_ctx->emit_before_op = QTAILQ_NEXT(fetch->insn_start, link);
    for (uint64_t line = line_of(fetch->address); line <= fetch->line; line++) {
        gen_check_line(line, fold->begin);
    }
    gen_set_label(fold->end);
    tcg_ctx->emit_before_op = NULL;
    tcg_ctx->log.entries++;
}

void pmu_core_gen_last_fetch(DisasContextBase *db)
{
    if (pmu_shows_core()) {
        gen_fetch(db);
    }
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
    gen_fetch(db);
    *fetch = (TCGLogFetch) {
        .insn_start = db->insn_start,
        .address = address,
        .bytes = db->pc_next - address,
        .count = 1,
        .line = line,
    };
}

void pmu_gen_stored(TCGv_i64 address, unsigned bytes)
{
    tcg_gen_log(address,
                pmu_core_facts(pmu_core_what(PMU_CORE_STORE, bytes, 1), 0));
}

/* Instructions in the same line fetch it anew: they are of another block. */
void pmu_gen_flush(DisasContextBase *db)
{
    if (pmu_shows_core()) {
        gen_helper_pmu_core_flush(tcg_env);
        if (db->is_jmp == DISAS_NEXT) {
            db->is_jmp = DISAS_TOO_MANY;
        }
    }
}

/*
 * Branches
 */

static tcg_target_long limit_offset(DisasContextBase *db)
{
    return PMU_CELLS_OFFSET(core_limit)
           + pmu_block_mode(db) * sizeof(PmuCoreEntry *);
}

/* Without an address, the entry keeps that of another one. */
static void gen_log_branch(DisasContextBase *db, PmuCoreKind kind,
                           TCGv_i64 address)
{
    const tcg_target_long branch = PMU_TCG_CORE_BRANCHES * sizeof(PmuCoreEntry);
    uint64_t facts = pmu_core_facts(pmu_core_what(kind, 0, 0), insn_pc(db));
    TCGv_ptr limit = tcg_temp_ebb_new_ptr();

    tcg_gen_ld_ptr(limit, tcg_env, limit_offset(db));
    tcg_gen_addi_ptr(limit, limit, -(tcg_target_long)sizeof(PmuCoreEntry));
    tcg_gen_st_i64(tcg_constant_i64(facts), limit,
                   branch + offsetof(PmuCoreEntry, what));
    if (address) {
        tcg_gen_st_i64(address, limit,
                       branch + offsetof(PmuCoreEntry, address));
    }
    tcg_gen_st_ptr(limit, tcg_env, limit_offset(db));
    tcg_temp_free_ptr(limit);
    tcg_ctx->log.entries++;
}

/* Now it is known where the instruction after a call is. */
static void gen_call(DisasContextBase *db)
{
    tcg_ctx->emit_before_op = QTAILQ_NEXT(tcg_ctx->log.call, link);
    gen_log_branch(db, PMU_CORE_CALL, tcg_constant_i64(db->pc_next));
    tcg_ctx->emit_before_op = NULL;
}

void pmu_core_gen_not_taken(DisasContextBase *db)
{
    if (pmu_shows_core()) {
        gen_log_branch(db, PMU_CORE_NOT_TAKEN, NULL);
    }
}

void pmu_core_gen_taken(DisasContextBase *db, PmuBranchKind kind, TCGv_i64 to)
{
    if (!pmu_shows_core()) {
        return;
    }
    if (kind & PMU_BRANCH_CONDITIONAL) {
        gen_log_branch(db, PMU_CORE_TAKEN, NULL);
    }
    switch (kind & ~PMU_BRANCH_CONDITIONAL) {
    case PMU_BRANCH_RETURN:
        gen_log_branch(db, PMU_CORE_RETURN, to);
        break;
    case PMU_BRANCH_INDIRECT_JUMP:
        gen_log_branch(db, PMU_CORE_INDIRECT, to);
        break;
    case PMU_BRANCH_INDIRECT_CALL:
        gen_log_branch(db, PMU_CORE_INDIRECT, to);
        /* fall through */
    case PMU_BRANCH_CALL:
        tcg_ctx->log.call = tcg_last_op();
        break;
    default:
        break;
    }
}

static void gen_copy_lower_half(tcg_target_long from, TCGv_ptr end,
                                tcg_target_long to)
{
    const unsigned upper = HOST_BIG_ENDIAN ? sizeof(void *) - 4 : 0;
    TCGv_i32 half = tcg_temp_ebb_new_i32();

    tcg_gen_ld_i32(half, tcg_env, from + upper);
    tcg_gen_st_i32(half, end, to);
    tcg_temp_free_i32(half);
}

void pmu_core_gen_place(DisasContextBase *db, TCGv_ptr end)
{
    if (pmu_shows_core()) {
        gen_copy_lower_half(PMU_CELLS_OFFSET(core_next), end,
                            PMU_LOGGED(accesses));
        gen_copy_lower_half(limit_offset(db), end, PMU_LOGGED(branches));
    }
}

/* The front end may have taken the instruction back: it did not fit. */
void pmu_core_translate_insn_end(DisasContextBase *db)
{
    if (!pmu_shows_core() || db->pc_next == tcg_ctx->log.pc) {
        return;
    }
    note_fetch(db);
    if (tcg_ctx->log.call) {
        gen_call(db);
    }
    if (tcg_ctx->log.by_helper) {
        tcg_ctx->log.entries += PMU_TCG_CORE_HELPER;
    }
    if (tcg_ctx->log.entries > PMU_TCG_CORE_BLOCK
        && db->is_jmp == DISAS_NEXT) {
        db->is_jmp = DISAS_TOO_MANY;
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

    tcg_gen_ld_ptr(end, tcg_env, PMU_CELLS_OFFSET(core_next));
    tcg_gen_addi_ptr(end, end, entries * sizeof(PmuCoreEntry));
    tcg_gen_ld_ptr(limit, tcg_env, limit_offset(db));
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

static void gen_repeat(DisasContextBase *db, const PmuFold *fold)
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
