/*
 * Performance monitoring unit: how often each instruction was executed
 *
 * A census counts every block of translated code by itself, while a counter of
 * the guest's PMU counts instructions in the block's mode.  The census takes
 * back what that counter takes back, because an instruction did not retire: the
 * sum over all instructions is what the counter has counted.  Neither the
 * counters nor the guest notice.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_TCG_CENSUS_H
#define HW_PMU_PMU_TCG_CENSUS_H

#include "hw/core/cpu.h"
#include "hw/pmu/pmu-share.h"

struct DisasContextBase;
struct TranslationBlock;

/**
 * pmu_census_on - whether there is a census
 *
 * Set before any vCPU executes anything, and never reset.
 */
extern bool pmu_census_on;

/**
 * pmu_census_plan - see which modes a vCPU's counters count instructions in
 * @cpu: the vCPU, in its thread between instructions, or while it is stopped
 * @share: the counters
 */
void pmu_census_plan(CPUState *cpu, const PmuShare *share);

/**
 * pmu_census_insn_start - begin the translation of an instruction
 * @db: its block
 */
void pmu_census_insn_start(const struct DisasContextBase *db);

/**
 * pmu_census_gen - count the executions of a block
 * @db: the block, complete; the code goes where new operations go now, and is
 *      executed whether or not the block is then entered
 */
void pmu_census_gen(const struct DisasContextBase *db);

/**
 * pmu_census_gen_repeat - do not count an instruction that will be entered anew
 * @db: the block, whose last instruction it is
 */
void pmu_census_gen_repeat(const struct DisasContextBase *db);

/**
 * pmu_census_give_back - take back instructions that a block did not finish
 * @cpu: the vCPU
 * @tb: the block
 * @mode: its mode
 * @insns: how many, from the end of the block
 */
void pmu_census_give_back(CPUState *cpu, const struct TranslationBlock *tb,
                          unsigned mode, int insns);

/**
 * pmu_census_take_back - take back the last instruction of the block that began
 *                        last
 * @cpu: the vCPU
 * @mode: the block's mode
 * @times: 1, or -1 to count it again
 */
void pmu_census_take_back(CPUState *cpu, unsigned mode, int times);

/**
 * pmu_census_start - start a census
 * @errp: why there is none, with a hint
 */
void pmu_census_start(Error **errp);

/**
 * pmu_census_save - write how often each instruction retired
 * @file: the name of the file, which is replaced; QMP's pmu-census-save has its
 *        format
 * @errp: why it was not written
 */
void pmu_census_save(const char *file, Error **errp);

#endif /* HW_PMU_PMU_TCG_CENSUS_H */
