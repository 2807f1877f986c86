/*
 * Performance monitoring unit: the counters of translated code
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_TCG_CELLS_H
#define HW_PMU_PMU_TCG_CELLS_H

#include "hw/pmu/pmu-core.h"
#include "hw/pmu/pmu-engine.h"
#include "hw/pmu/pmu-recorder.h"

/**
 * PMU_TCG_NO_INSN - an address that stands for no instruction
 */
#define PMU_TCG_NO_INSN UINT64_MAX

/**
 * struct PmuTcgAccess - an access to memory, as translated code notes it
 * @pc: address of the instruction, or PMU_TCG_NO_INSN
 * @address: the first address that it accessed
 */
typedef struct PmuTcgAccess {
    uint64_t pc;
    uint64_t address;
} PmuTcgAccess;

/**
 * typedef PmuTcgRow - the cells of a tally, one per mode
 *
 * How many events may still happen before the engine has to look.  Always
 * loaded and stored as 64 bits, so that a load that follows a store closely is
 * not held up.
 */
typedef int64_t PmuTcgRow[PMU_MAX_MODES];

/**
 * PMU_TCG_FIRST - the first tally that has cells
 *
 * Cycles have no cells: they follow the instructions, or the clock.
 */
#define PMU_TCG_FIRST PMU_TALLY_INSNS

/**
 * PMU_TCG_ROWS - the number of tallies that have cells
 *
 * A model of the core counts the others.
 */
#define PMU_TCG_ROWS (PMU_TALLY_CORE_FIRST - PMU_TCG_FIRST)

/**
 * PMU_TCG_CORE_RECENT - how many lines, or pages, are remembered as recent, at
 *                       most; a power of two
 */
#define PMU_TCG_CORE_RECENT 64

/**
 * typedef PmuTcg - the engine of a vCPU (hw/pmu/pmu-tcg.h)
 */
typedef struct PmuTcg PmuTcg;

/**
 * struct PmuTcgCells - the part of a vCPU in which translated code counts
 * @left: the cells of each tally that has some, from PMU_TCG_FIRST on
 * @log: branches that neither recorder has read; empty while nothing is
 *       recorded, except for blocks that were translated before and still
 *       write to it
 * @core_next: where the next entry of the log of a core goes; NULL without one
 * @core_limit: for each mode, how far the blocks that are entered in it may
 *              write that log; NULL unless all of the log is of that mode
 * @core_lines: numbers of lines from which a core would fetch again without any
 *              effect, or UINT64_MAX; the place of a line in this array is the
 *              lowest bits of its number
 * @site_pc: address of the instruction for which CPUState.pmu_fold_pending was
 *           set
 * @access: the last access to memory, while addresses are noted
 * @site_mode: the mode in which the instruction at @site_pc was executed
 * @site_known: whether it was an instruction at all
 * @clock_pc_known: whether @clock_pc is known
 * @clock_pc: address of the instruction that took the time
 * @engine: the engine, which counts with these cells; or NULL
 *
 * Is in CPUArchState of the targets that have a PMU, where translated code
 * reaches it from env.  Private to the vCPU's thread.
 */
typedef struct PmuTcgCells {
    PmuTcgRow left[PMU_TCG_ROWS];
    PmuBranchLog log;
    PmuCoreEntry *core_next;
    PmuCoreEntry *core_limit[PMU_MAX_MODES];
    uint64_t core_lines[PMU_TCG_CORE_RECENT];
    uint64_t site_pc;
    PmuTcgAccess access;
    uint8_t site_mode;
    bool site_known;
    bool clock_pc_known;
    uint64_t clock_pc;
    PmuTcg *engine;
} PmuTcgCells;

#endif /* HW_PMU_PMU_TCG_CELLS_H */
