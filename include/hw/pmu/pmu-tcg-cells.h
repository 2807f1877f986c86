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
 * struct PmuTcgCells - the part of a vCPU in which translated code counts
 * @log: branches that neither recorder has read; empty while nothing is
 *       recorded, except for blocks that were translated before and still
 *       write to it
 * @left: the cells of each tally that has some, from PMU_TCG_FIRST on
 * @core_next: where the next entry of the log of a core goes; NULL without one
 * @core_limit: for each mode, how far the blocks that are entered in it may
 *              write that log; NULL unless all of the log is of that mode
 * @core_lines: numbers of lines from which a core would fetch again without any
 *              effect, or UINT64_MAX; the place of a line in this array is the
 *              lowest bits of its number
 * @site_pc: address of the instruction for which @fold_pending was set
 * @site_mode: and the mode it was executed in
 * @site_known: whether it was an instruction at all
 * @late: the block that was entered last may end an observer's period, which is
 *        checked after the block; set until then
 * @late_next: that block is the next to be looked up; no interrupt comes before
 * @late_mode: the mode of that block
 * @late_pc: address of its instruction that ends the period, or PMU_TCG_NO_INSN
 *           if none does
 * @access: the last access to memory, while addresses are noted
 * @fold_pending: the engine has to look before the next instruction; the code
 *                that sets this also asks the vCPU to leave translated code
 * @clock_due: the same for time, in pmu-clock.h; set in any thread
 * @clock_pc: address of the instruction that took the time
 * @clock_pc_known: whether that address is known
 *
 * Lies in CPUNegativeOffsetState, before the TLB: fields closer to env take
 * room that hosts with short displacements need to reach the TLB.  Private to
 * the vCPU's thread, except @clock_due.
 */
typedef struct PmuTcgCells {
    PmuBranchLog log;
    PmuTcgRow left[PMU_TCG_ROWS];
    PmuCoreEntry *core_next;
    PmuCoreEntry *core_limit[PMU_MAX_MODES];
    uint64_t core_lines[PMU_TCG_CORE_RECENT];
    uint64_t site_pc;
    uint64_t late_pc;
    PmuTcgAccess access;
    uint8_t site_mode;
    uint8_t late_mode;
    bool late;
    bool late_next;
    bool site_known;
    bool fold_pending;
    bool clock_due;
    bool clock_pc_known;
    uint64_t clock_pc;
} PmuTcgCells;

#endif /* HW_PMU_PMU_TCG_CELLS_H */
