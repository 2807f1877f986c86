/*
 * Performance monitoring unit: the engine of TCG, for its own files
 *
 * pmu-tcg.c has the engine's operations and its life, pmu-tcg-cycles.c cycles,
 * pmu-tcg-report.c reports of faces and helpers, pmu-tcg-branches.c records of
 * branches, pmu-tcg-exec.c reports of the execution loop, pmu-tcg-vmstate.c
 * migration.  None of them knows a counter: pmu-share.h knows who uses the
 * engine.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_TCG_INTERNAL_H
#define HW_PMU_PMU_TCG_INTERNAL_H

#include "cpu.h"
#include "exec/translation-block.h"
#include "accel/tcg/cpu-ops.h"
#include "hw/pmu/pmu-share.h"
#include "hw/pmu/pmu-tcg.h"
#include "hw/pmu/pmu-tcg-exec.h"
#include "pmu-tcg-core.h"

#define TALLY(name) PMU_TALLY_BIT(PMU_TALLY_##name)

#define CYCLE_TALLIES (TALLY(CYCLES) | TALLY(REF_CYCLES))

/**
 * struct PmuTcg - the engine of one vCPU
 * @cpu: the vCPU
 * @share: the Pmus that use the engine
 * @recorder: as configured
 * @recorder_outside: likewise
 * @model: the definition of a cycle
 * @core: the model of its core, or NULL; defines cycles, unless these follow
 *        the clock
 * @wanted: the tallies that the model reads
 * @modes: in which modes
 * @total: per tally and mode, the events up to the last plan; later events are
 *         in the cells, as @loaded less the cell
 * @loaded: the values that were loaded into the cells
 * @mode_ns: time that has been attributed to modes, where cycles follow the
 *           clock
 * @clock_insns: instructions at that time
 * @clock_ns: and the virtual time of it; not valid while halted or stopped
 * @rest_ns: time that was left for later when the machine stopped
 * @halted: the vCPU sleeps, or did not execute anything yet
 * @stopped: it did not execute anything since the machine stopped
 * @note_addresses: note the addresses of data that instructions access, for
 *                  the guest's PMU
 * @note_outside: likewise, for an observer
 * @record: to which extent the guest's PMU records taken branches
 * @time_seen: the time of recorders when the log of branches was read, if
 *             @record includes that
 * @outside: an observer asks for branches
 * @time_is_up: the budget of cycles has ended, and there was no fold yet
 * @late: the block that was entered last may contain an overflow that is
 *        handled after it; set until then
 * @late_next: that block is the next to be looked up; no interrupt comes before
 * @late_mode: the mode of that block
 * @late_pc: address of its instruction that overflows, or PMU_TCG_NO_INSN if
 *           none does
 * @due: the overflow at @late_pc
 * @deadline: ends the budget of cycles, where they follow the clock
 * @linger: ends the use of blocks that count
 * @lingering: that will happen; the timer itself is the main loop's as well
 */
struct PmuTcg {
    CPUState *cpu;
    PmuShare *share;
    PmuRecorder *recorder;
    PmuRecorder *recorder_outside;
    PmuCycleModel model;
    PmuTcgCore *core;
    PmuTallies wanted;
    PmuModes modes;
    uint64_t total[PMU_TALLY_CORE_FIRST][PMU_MAX_MODES];
    int64_t loaded[PMU_TALLY_CORE_FIRST][PMU_MAX_MODES];
    uint64_t mode_ns[PMU_MAX_MODES];
    uint64_t clock_insns[PMU_MAX_MODES];
    int64_t clock_ns;
    uint64_t rest_ns;
    bool halted;
    bool stopped;
    bool note_addresses;
    bool note_outside;
    PmuTcgRecord record;
    uint64_t time_seen;
    bool outside;
    bool time_is_up;
    bool late;
    bool late_next;
    uint8_t late_mode;
    uint64_t late_pc;
    PmuLate due;
    QEMUTimer *deadline;
    QEMUTimer *linger;
    bool lingering;
};

/**
 * pmu_tcg_cells - the cells of a vCPU
 * @cpu: the vCPU
 */
static inline PmuTcgCells *pmu_tcg_cells(const CPUState *cpu)
{
    return &cpu_env((CPUState *)cpu)->pmu_cells;
}

/**
 * pmu_tcg_engine - the engine of a vCPU
 * @cpu: the vCPU
 *
 * Returns: NULL if nothing is counted.
 */
static inline PmuTcg *pmu_tcg_engine(const CPUState *cpu)
{
    return pmu_tcg_cells(cpu)->engine;
}

/**
 * pmu_tcg_cell - the cell in which events of a kind are counted down
 * @cpu: the vCPU
 * @tally: the kind, not before PMU_TCG_FIRST
 * @mode: the mode in which they happen
 */
static inline int64_t *pmu_tcg_cell(CPUState *cpu, PmuTally tally,
                                    unsigned mode)
{
    return &pmu_tcg_cells(cpu)->left[tally - PMU_TCG_FIRST][mode];
}

/**
 * pmu_tcg_cell_tally - the events that a cell and the plans before have counted
 * @e: the engine
 * @t: the tally, not before PMU_TCG_FIRST
 * @m: the mode
 */
static inline uint64_t pmu_tcg_cell_tally(const PmuTcg *e, unsigned t,
                                          unsigned m)
{
    return e->total[t][m] + (e->loaded[t][m] - *pmu_tcg_cell(e->cpu, t, m));
}

/*
 * pmu-tcg.c
 */

/**
 * pmu_tcg_all_insns - the instructions in all modes
 * @e: the engine
 */
uint64_t pmu_tcg_all_insns(const PmuTcg *e);

/**
 * pmu_tcg_events_of_insns - the most events of a kind in some instructions
 * @e: the engine
 * @insns: how many instructions
 */
uint64_t pmu_tcg_events_of_insns(const PmuTcg *e, uint64_t insns);

/**
 * pmu_tcg_load_cell - begin to count a budget down
 * @e: the engine
 * @t: the tally, not before PMU_TCG_FIRST
 * @m: the mode
 * @budget: the budget
 */
void pmu_tcg_load_cell(PmuTcg *e, unsigned t, unsigned m, uint64_t budget);

/**
 * pmu_tcg_flags_for - the flags of blocks that count
 * @wanted: the tallies that they count
 */
uint32_t pmu_tcg_flags_for(PmuTallies wanted);

/**
 * pmu_tcg_adapt_flags - let the blocks to come count, and note addresses
 * @e: the engine
 */
void pmu_tcg_adapt_flags(PmuTcg *e);

/**
 * pmu_tcg_request_fold - leave translated code at the end of this block, and
 *                        fold then
 * @cpu: the vCPU
 */
void pmu_tcg_request_fold(CPUState *cpu);

/**
 * pmu_tcg_fold_used_up - fold where a budget is used up, or will be
 * @e: the engine
 * @insns: in so many instructions
 * @why: for the trace
 */
void pmu_tcg_fold_used_up(PmuTcg *e, unsigned insns, const char *why);

/**
 * pmu_tcg_fold_all - fold all Pmus, because of the time
 * @e: the engine
 * @why: for the trace
 */
void pmu_tcg_fold_all(PmuTcg *e, const char *why);

/**
 * pmu_tcg_core_insn_cycles - the cycles of an instruction that misses nothing
 * @e: the engine
 *
 * Returns: 0 without a core.
 */
unsigned pmu_tcg_core_insn_cycles(const PmuTcg *e);

/**
 * pmu_tcg_core_cycles - the cycles in a mode, as the core defines them
 * @e: the engine, which has a core
 * @mode: the mode
 */
uint64_t pmu_tcg_core_cycles(const PmuTcg *e, unsigned mode);

/*
 * pmu-tcg-cycles.c
 */

/**
 * pmu_tcg_cycles_of - the cycles in a mode, where no core defines them
 * @e: the engine
 * @mode: the mode
 */
uint64_t pmu_tcg_cycles_of(const PmuTcg *e, unsigned mode);

/**
 * pmu_tcg_insns_for - how many more instructions take so many more cycles
 * @e: the engine, whose cycles follow the instructions
 * @mode: the mode of the instructions
 * @cycles: the cycles
 *
 * Returns: the fewest that do, or PMU_NO_DEADLINE.
 */
uint64_t pmu_tcg_insns_for(const PmuTcg *e, unsigned mode, uint64_t cycles);

/**
 * pmu_tcg_clock_attribute - attribute the time that has passed to modes
 * @e: the engine, whose cycles follow the clock, of a vCPU that executes
 */
void pmu_tcg_clock_attribute(PmuTcg *e);

/**
 * pmu_tcg_clock_start - attribute time from now on
 * @e: the engine
 */
void pmu_tcg_clock_start(PmuTcg *e);

/**
 * pmu_tcg_clock_restart - go on with the time after the machine has stopped
 * @e: the engine
 */
void pmu_tcg_clock_restart(PmuTcg *e);

/**
 * pmu_tcg_clock_arm - wait for the end of the nearest budget of cycles
 * @e: the engine, whose cycles follow the clock
 * @wanted: as PmuEngineOps.plan
 * @budgets: likewise
 */
void pmu_tcg_clock_arm(PmuTcg *e, PmuTallies wanted, const PmuBudgets budgets);

/**
 * pmu_tcg_clock_create - create the timer of budgets of cycles
 * @e: the engine
 */
void pmu_tcg_clock_create(PmuTcg *e);

/*
 * pmu-tcg-branches.c
 */

/**
 * pmu_tcg_all_time - what recorders measure time by
 * @e: the engine
 *
 * Returns: the cycles in all modes, or without a core the instructions.
 */
uint64_t pmu_tcg_all_time(const PmuTcg *e);

/*
 * pmu-tcg-exec.c
 */

/**
 * pmu_tcg_look_early - handle an early exit of a block that is checked late
 * @e: the engine
 *
 * It may not have reached the end of a period: look before anything else.
 */
void pmu_tcg_look_early(PmuTcg *e);

/*
 * pmu-tcg-report.c, for code that writes the log of a core
 */

/**
 * pmu_tcg_core_of - the model of a vCPU's core, for translators
 * @cpu: the vCPU
 *
 * Returns: NULL for a vCPU without a core.
 */
struct PmuTcgCore *pmu_tcg_core_of(const CPUState *cpu);

/**
 * pmu_tcg_core_fetched - show a core a fetch that may have an effect
 * @cpu: the vCPU, which has a core
 * @address: PmuCoreEntry.address
 * @what: PmuCoreEntry.what
 */
void pmu_tcg_core_fetched(CPUState *cpu, uint64_t address, uint32_t what);

/**
 * pmu_tcg_core_enter - make room in the log for a block that cannot be left
 * @cpu: the vCPU, which has a core
 * @mode: the mode of the block
 */
void pmu_tcg_core_enter(CPUState *cpu, unsigned mode);

/**
 * pmu_tcg_core_repeat - make room for more of an instruction that repeats
 * @cpu: the vCPU, which has a core
 * @pc: the instruction's address
 * @mode: its mode
 */
void pmu_tcg_core_repeat(CPUState *cpu, uint64_t pc, unsigned mode);

#endif /* HW_PMU_PMU_TCG_INTERNAL_H */
