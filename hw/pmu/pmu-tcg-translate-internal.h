/*
 * Performance monitoring unit: what the files that emit code share
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_TCG_TRANSLATE_INTERNAL_H
#define HW_PMU_PMU_TCG_TRANSLATE_INTERNAL_H

#include "hw/pmu/pmu-tcg-translate.h"

/**
 * PMU_CELLS_OFFSET - the offset from env of a field of the cells
 */
#define PMU_CELLS_OFFSET(field) \
    ((tcg_target_long)offsetof(CPUArchState, pmu_cells.field))

/**
 * PMU_LOGGED - the offset of a field of the next branch in the recorders' log,
 *              from the end of the part that is not in use
 */
#define PMU_LOGGED(field)                              \
    ((tcg_target_long)offsetof(PmuLoggedBranch, field) \
     - (tcg_target_long)sizeof(PmuLoggedBranch))

/**
 * PMU_CPU_OFFSET - the offset from env of a field of CPUState, before it
 */
#define PMU_CPU_OFFSET(field) \
    ((tcg_target_long)offsetof(CPUState, field) \
     - (tcg_target_long)offsetof(ArchCPU, env))

/**
 * struct PmuFold - rarely executed code, which is placed after the block
 * @begin: where that code begins
 * @end: where it goes back to
 * @gen: emits it
 * @address, @what: of a fetch that this code shows to a core
 * @next: the next such code
 */
typedef struct PmuFold {
    TCGLabel *begin;
    TCGLabel *end;
    void (*gen)(DisasContextBase *db, const struct PmuFold *fold);
    uint64_t address;
    uint32_t what;
    struct PmuFold *next;
} PmuFold;

/**
 * pmu_new_fold - place code after the block
 * @db: the block
 * @gen: emits the code; must not need temporaries set before
 */
PmuFold *pmu_new_fold(DisasContextBase *db,
                      void (*gen)(DisasContextBase *db, const PmuFold *fold));

/**
 * pmu_block_mode - the mode of a block
 * @db: the block
 */
unsigned pmu_block_mode(DisasContextBase *db);

/**
 * pmu_core_translate_insn_start - begin an instruction, for a core
 * @db: the block
 */
void pmu_core_translate_insn_start(DisasContextBase *db);

/**
 * pmu_core_translate_insn_end - show a core the fetch of an instruction
 * @db: the block, of which the instruction is the last one now
 */
void pmu_core_translate_insn_end(DisasContextBase *db);

/**
 * pmu_core_gen_not_taken, pmu_core_gen_taken - show a core a branch
 * @db: the block, where the instruction can no longer fault
 * @kind: its kind
 * @to: where it goes
 */
void pmu_core_gen_not_taken(DisasContextBase *db);
void pmu_core_gen_taken(DisasContextBase *db, PmuBranchKind kind, TCGv_i64 to);

/**
 * pmu_core_gen_place - note the place of a recorded branch in a core's log
 * @db: the block, after pmu_core_gen_taken()
 * @end: what PMU_LOGGED() is relative to
 */
void pmu_core_gen_place(DisasContextBase *db, TCGv_ptr end);

/**
 * pmu_core_gen_last_fetch - show a core the last fetch of a block
 * @db: the block, complete
 */
void pmu_core_gen_last_fetch(DisasContextBase *db);

/**
 * pmu_core_gen_room - enter a block only if the log has room for it
 * @db: the block, complete; the code goes where new operations go now
 */
void pmu_core_gen_room(DisasContextBase *db);

#endif /* HW_PMU_PMU_TCG_TRANSLATE_INTERNAL_H */
