/*
 * Performance monitoring unit: branch records of translated code
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "pmu-tcg-internal.h"

uint64_t pmu_tcg_all_time(const PmuTcg *e)
{
    uint64_t cycles = 0;

    if (!e->core) {
        return pmu_tcg_all_insns(e);
    }
    for (unsigned m = 0; m < PMU_MAX_MODES; m++) {
        cycles += pmu_tcg_core_cycles(e, m);
    }
    return cycles;
}

static void note_time(PmuTcg *e)
{
    uint64_t time = pmu_tcg_all_time(e);

    e->recorder->since += time - e->time_seen;
    e->time_seen = time;
}

/* With a model of the core, PmuLoggedBranch.left falls with each cycle. */
static void replace_left(const PmuTcg *e, int64_t *left)
{
    const PmuBranchLog *log = &pmu_tcg_cells(e->cpu)->log;
    const unsigned t = PMU_TALLY_INSNS;

    for (PmuLoggedBranch *b = pmu_branch_log_newest(log);
         b < log->branches + PMU_BRANCH_LOG_SIZE; b++) {
        unsigned m = pmu_logged_mode(b);
        uint32_t insns = e->total[t][m] + e->loaded[t][m] - b->left;

        b->left = -(insns * pmu_tcg_core_insn_cycles(e) + b->accesses);
    }
    for (unsigned m = 0; m < PMU_MAX_MODES; m++) {
        left[m] = -pmu_tcg_core_cycles(e, m);
    }
}

/* How much is left of a number that falls with time, in each mode */
static const int64_t *time_left(const PmuTcg *e, int64_t *of_core)
{
    if (!e->core) {
        return pmu_tcg_cells(e->cpu)->left[PMU_TALLY_INSNS - PMU_TCG_FIRST];
    }
    replace_left(e, of_core);
    return of_core;
}

void pmu_tcg_see_branches(CPUState *cpu)
{
    PmuTcgCells *cells = pmu_tcg_cells(cpu);
    PmuTcg *e = cells->engine;
    int64_t of_core[PMU_MAX_MODES];
    const int64_t *left = NULL;

    if (e) {
        if (e->core) {
            pmu_tcg_core_see(e->core);
        }
        if (e->record == PMU_TCG_RECORD_TIME) {
            note_time(e);
            left = time_left(e, of_core);
        }
        pmu_recorder_see(e->recorder, &cells->log, left);
        pmu_recorder_see(e->recorder_outside, &cells->log, NULL);
        pmu_branch_log_clear(&cells->log);
    }
}

void pmu_tcg_record(PmuTcg *engine, PmuTcgRecord record)
{
    pmu_tcg_see_branches(engine->cpu);
    if (record != engine->record) {
        engine->recorder->since = 0;
        engine->time_seen = pmu_tcg_all_time(engine);
    }
    engine->record = record;
    pmu_tcg_adapt_flags(engine);
}

void pmu_tcg_record_outside(PmuTcg *engine, PmuModes modes)
{
    PmuRecorder *outside = engine->recorder_outside;

    pmu_tcg_see_branches(engine->cpu);
    if (!engine->outside) {
        pmu_recorder_init(outside, PMU_RECORDER_MAX);
    }
    for (unsigned m = 0; m < PMU_MAX_MODES; m++) {
        outside->wanted[m] = modes >> m & 1 ? ~0u : 0;
    }
    engine->outside = modes;
    pmu_tcg_adapt_flags(engine);
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
        note_far_branch(cpu, pmu_tcg_engine(cpu)->recorder_outside, from);
    }
}

void pmu_tcg_far_branch(CPUState *cpu, uint64_t from, uint64_t shown)
{
    if (tcg_cflags_has(cpu, CF_PMU_RECORD)) {
        pmu_tcg_far_branch_outside(cpu, from);
        note_far_branch(cpu, pmu_tcg_engine(cpu)->recorder, shown);
    }
}
