/*
 * Performance monitoring unit: what translated code counts in
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_TCG_CELLS_H
#define HW_PMU_PMU_TCG_CELLS_H

#include "hw/pmu/pmu-engine.h"
#include "hw/pmu/pmu-recorder.h"

/**
 * PMU_TCG_NO_INSN - where there is no instruction
 */
#define PMU_TCG_NO_INSN UINT64_MAX

/**
 * struct PmuTcgAccess - an access to memory, as translated code notes it
 * @pc: address of the instruction, or PMU_TCG_NO_INSN
 * @address: what it accessed first
 */
typedef struct PmuTcgAccess {
    uint64_t pc;
    uint64_t address;
} PmuTcgAccess;

/**
 * typedef PmuTcgRow - the cells of a tally, one a mode
 *
 * How many events may still happen before the engine has to look.  Always
 * loaded and stored as 64 bits, so that a load that follows a store closely is
 * not held up.
 */
typedef int64_t PmuTcgRow[PMU_MAX_MODES];

/**
 * PMU_TCG_FIRST - the first tally that has cells
 *
 * Cycles have none: they follow the instructions, or the clock.
 */
#define PMU_TCG_FIRST PMU_TALLY_INSNS

/**
 * PMU_TCG_ROWS - the number of tallies that have cells
 */
#define PMU_TCG_ROWS (PMU_TALLY__MAX - PMU_TCG_FIRST)

/**
 * struct PmuTcgCells - the part of a vCPU that translated code counts in
 * @log: branches that neither recorder has seen; empty while nobody asks, but
 *       for blocks that were translated before and still write to it
 * @recorder: the last branches, while the guest asks for them
 * @outside: all of the last branches, while somebody outside asks for them
 * @left: the cells of each tally that has some, from PMU_TCG_FIRST on
 * @site_pc: address of the instruction for which @fold_pending was set
 * @site_mode: and the mode it was executed in
 * @site_known: whether it was an instruction at all
 * @late: the block that was entered last may end an observer's period, which is
 *        looked at behind it; set until then
 * @late_next: that block is the next to be looked up; no interrupt comes before
 * @late_mode: the mode of that block
 * @late_pc: address of its instruction that ends the period, or PMU_TCG_NO_INSN
 *           if none does
 * @access: the last access to memory, while somebody asks for it
 * @fold_pending: the engine has to look before the next instruction; whoever
 *                sets this also asks the vCPU to leave translated code
 * @clock_due: the same for time, in pmu-clock.h; set in any thread
 * @clock_pc: address of the instruction that took the time
 * @clock_pc_known: whether that is known
 *
 * Lies in CPUNegativeOffsetState, ahead of the TLB: what is closer to env takes
 * room that hosts with short displacements need to reach the TLB.  Private to
 * the vCPU's thread, but for @clock_due.
 */
typedef struct PmuTcgCells {
    PmuBranchLog log;
    PmuRecorder recorder;
    PmuRecorder outside;
    PmuTcgRow left[PMU_TCG_ROWS];
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
