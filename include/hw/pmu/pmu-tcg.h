/*
 * Performance monitoring unit: the engine that counts in translated code
 *
 * One inline subtraction per translation block counts its instructions in a
 * cell chosen by the mode in which the block runs, so filter and freeze bits
 * never touch translated code.  When a block is left early, the instructions
 * that it did not finish are given back.  Cells count down: a block that would
 * reach the deadline is not entered.  Instead, the instructions before the one
 * that reaches it run as a shorter block, and then that one alone; then the
 * model folds.  So an overflow is seen right after its instruction, whatever
 * that does.
 *
 * The two blocks have to be translated, for each place anew, which costs more
 * than the rest of a sample.  If only an observer waits for events in a block,
 * and needs to know only which instruction caused them, the block is executed
 * as it is, and checked afterwards.
 *
 * Branches are counted where they leave their block, reads and writes of
 * memory at the end of their instruction, which then is the last of its
 * block; both only while a counter needs them.
 *
 * For faces, helpers and observers, in code that is compiled per target.  The
 * execution loop has pmu-tcg-exec.h, and front ends pmu-tcg-translate.h.
 *
 * Threads: the vCPU's own, or, with the big lock, any while the vCPU is at
 * rest; creation and release as for its CPU.  A vCPU may fold only between
 * instructions: at the end of the last instruction of a block, or outside
 * translated code.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_TCG_H
#define HW_PMU_PMU_TCG_H

#include "hw/core/cpu.h"
#include "hw/pmu/pmu-cycles.h"
#include "hw/pmu/pmu-core-model.h"
#include "hw/pmu/pmu-share.h"
#include "hw/pmu/pmu-tcg-cells.h"

/**
 * pmu_tcg_ops - the operations, for pmu_share_new(); the state is a PmuTcg
 */
extern const PmuEngineOps pmu_tcg_ops;

/**
 * vmstate_pmu_tcg - the tallies, for migration
 *
 * To be loaded before pmu_rebase() is called for each Pmu.
 */
extern const VMStateDescription vmstate_pmu_tcg;

/**
 * pmu_tcg_has_fractions - whether tallies are more precise than counters
 * @engine: the engine
 *
 * Counters hold whole cycles.  Unless each instruction takes one cycle, a part
 * of the next cycle may have passed as soon as something has been counted.
 */
bool pmu_tcg_has_fractions(const PmuTcg *engine);

/**
 * struct PmuTcgConfig - the configuration of an engine
 * @cycles: the definition of cycles
 * @core: the model of the vCPU's core, copied; or NULL.  All vCPUs of a machine
 *        have the same, as they share translated code.
 * @recorder: the last branches, while the guest's PMU records them
 * @outside: all of the last branches, while an observer asks for them
 */
typedef struct PmuTcgConfig {
    PmuCycleModel cycles;
    const PmuCoreModel *core;
    PmuRecorder *recorder;
    PmuRecorder *outside;
} PmuTcgConfig;

/**
 * pmu_tcg_new - create the engine of a vCPU
 * @cpu: the vCPU
 * @config: the configuration; copied
 */
PmuTcg *pmu_tcg_new(CPUState *cpu, const PmuTcgConfig *config);

/**
 * pmu_tcg_set_share - connect an engine with those who use it
 * @engine: the engine, before the vCPU executes anything
 * @share: its share, with pmu_tcg_ops
 */
void pmu_tcg_set_share(PmuTcg *engine, PmuShare *share);

/**
 * pmu_tcg_free - release an engine, after its Pmu and with the vCPU stopped
 * @engine: the engine or NULL
 */
void pmu_tcg_free(PmuTcg *engine);

/**
 * pmu_tcg_reset - handle a reset of the vCPU, which may halt it
 * @engine: the engine, whose vCPU is stopped
 */
void pmu_tcg_reset(PmuTcg *engine);

/**
 * pmu_tcg_machine_stopped - handle a stop of the machine, or a suspend to RAM
 * @engine: the engine, whose vCPU is stopped
 *
 * Before the vCPU executes anything again, virtual time may jump, if a state is
 * loaded, and it goes on for suspended machines and for vCPUs that a debugger
 * does not run.  Cycles that follow time must do neither.  To be called after a
 * fold of all counters.
 */
void pmu_tcg_machine_stopped(PmuTcg *engine);

/**
 * pmu_tcg_before_insn - take back the instruction that is being executed
 * @cpu: the vCPU, in a helper of the last instruction of a block
 *
 * A read now returns the count before this instruction.  To be followed by
 * pmu_tcg_after_insn(), or by pmu_tcg_retire() if the mode may change
 * meanwhile; by neither if the instruction does not retire, and then its state
 * must not be restored, which would take it back again.
 */
void pmu_tcg_before_insn(CPUState *cpu);

/**
 * pmu_tcg_after_insn - count the instruction again
 * @cpu: the vCPU, as in pmu_tcg_before_insn()
 *
 * Or count one that retires without having been executed, because a hypervisor
 * has emulated it; an overflow is noticed before the next.
 */
void pmu_tcg_after_insn(CPUState *cpu);

/**
 * pmu_tcg_retire - count the instruction again, in the mode it had
 * @cpu: the vCPU, as in pmu_tcg_before_insn(), but perhaps in another mode
 * @mode: the mode it was in then
 */
void pmu_tcg_retire(CPUState *cpu, unsigned mode);

/**
 * pmu_tcg_site - the instruction after which counters are being folded
 * @cpu: the vCPU, in a handler of overflow (PmuOverflowFn)
 * @pc: set to its address
 * @mode: set to the mode it was executed in
 *
 * By the time an overflow is handled, the instruction may have gone elsewhere
 * and changed the mode.  Not for targets whose code is compiled relative to
 * the program counter (CF_PCREL).
 *
 * Returns: false if no single instruction is the cause: an event outside
 * translated code, or time.
 */
bool pmu_tcg_site(CPUState *cpu, uint64_t *pc, unsigned *mode);

/**
 * pmu_tcg_where - where a vCPU is, as far as counters are concerned
 * @cpu: the vCPU, between instructions
 * @pc: set as by pmu_tcg_site(), or to the address of the instruction that
 *      comes next
 * @mode: set to the mode of that
 */
void pmu_tcg_where(CPUState *cpu, uint64_t *pc, unsigned *mode);

/**
 * pmu_tcg_is_late - whether a whole block was executed around an overflow
 * @cpu: the vCPU
 *
 * Returns: whether pmu_tcg_where() returns an instruction of that block; true
 * only in the call of the observer for which the block was executed.
 */
bool pmu_tcg_is_late(const CPUState *cpu);

/**
 * pmu_tcg_mode - the mode in which a vCPU goes on
 * @cpu: the vCPU, between instructions
 */
unsigned pmu_tcg_mode(CPUState *cpu);

/**
 * pmu_tcg_is_exact - whether an overflow can be attributed to one instruction
 * @cpu: a vCPU
 * @event: the event that overflows
 *
 * In any thread.
 *
 * Returns: whether pmu_tcg_where() returns it for all of these events.
 */
bool pmu_tcg_is_exact(const CPUState *cpu, PmuEvent event);

/**
 * pmu_tcg_note_addresses - note the addresses of data that instructions access
 * @engine: the engine of a vCPU
 * @note: whether to, for as long as anything is counted; slows down accesses
 *
 * In a transaction of the guest's counters (pmu_begin()).
 */
void pmu_tcg_note_addresses(PmuTcg *engine, bool note);

/**
 * pmu_tcg_note_addresses_outside - the same for an observer
 * @engine: the engine of a vCPU, in its thread between instructions
 * @note: whether to note them
 */
void pmu_tcg_note_addresses_outside(PmuTcg *engine, bool note);

/**
 * pmu_tcg_can_note_addresses - whether noted addresses find their instruction
 * @cpu: a vCPU, realized
 */
bool pmu_tcg_can_note_addresses(const CPUState *cpu);

/**
 * enum PmuTcgRecord - the extent to which branches are recorded
 * @PMU_TCG_RECORD_NONE: not at all
 * @PMU_TCG_RECORD_BRANCHES: the branches
 * @PMU_TCG_RECORD_TIME: and the time between them, for which instructions are
 *                       counted
 */
typedef enum PmuTcgRecord {
    PMU_TCG_RECORD_NONE,
    PMU_TCG_RECORD_BRANCHES,
    PMU_TCG_RECORD_TIME,
} PmuTcgRecord;

/**
 * pmu_tcg_record - record the branches that the guest's recorder wants
 * @engine: the engine of a vCPU
 * @record: to which extent; slows down branches
 *
 * For PmuTcgConfig.recorder, from the next block on.  Between instructions, or
 * in a helper of the last one of a block.
 */
void pmu_tcg_record(PmuTcg *engine, PmuTcgRecord record);

/**
 * pmu_tcg_record_outside - record branches of all kinds for observers
 * @engine: the engine of a vCPU
 * @modes: record branches that end in these modes; if empty, the records are
 *         forgotten
 *
 * For PmuTcgConfig.outside, which does not affect the guest's own records.  As
 * pmu_tcg_record().
 */
void pmu_tcg_record_outside(PmuTcg *engine, PmuModes modes);

/**
 * pmu_tcg_see_branches - let the recorders read the log
 * @cpu: a vCPU
 *
 * Call this before reading or changing one of the recorders of PmuTcgConfig, or
 * its filters; and before the mode changes, if the user reads one of the values
 * named at struct PmuBranchLog (pmu_tcg_far_branch() does this, too).  In the
 * vCPU's own thread, or any while it is stopped.
 */
void pmu_tcg_see_branches(CPUState *cpu);

/**
 * pmu_tcg_cycles - the cycles of the time between branches
 * @engine: the engine of a vCPU
 * @time: the time (PmuRecorder)
 * @cycles: set to how many cycles that is, rounded down
 *
 * Returns: false if cycles follow the clock, and are not known.
 */
bool pmu_tcg_cycles(const PmuTcg *engine, uint64_t time, uint64_t *cycles);

/**
 * pmu_tcg_address - where a vCPU goes on, as an address in branch records
 * @cpu: the vCPU, in the state it has there
 *
 * On x86 this is the linear address.
 */
uint64_t pmu_tcg_address(CPUState *cpu);

/**
 * pmu_tcg_far_branch - record an interrupt, an exception, or the like
 * @cpu: the vCPU, which goes on at the branch's target, in the state it has
 *       there
 * @from: where it comes from
 * @shown: the address in the guest's own record, in place of @from
 */
void pmu_tcg_far_branch(CPUState *cpu, uint64_t from, uint64_t shown);

/**
 * pmu_tcg_far_branch_outside - record a far branch for observers only
 * @cpu: as pmu_tcg_far_branch()
 * @from: the address of the branch
 *
 * A nested guest, or the mode in which SMIs are handled, is entered or left: no
 * guest has that among its own records, but code does not go straight on.
 * Before the mode changes, the caller calls pmu_tcg_see_branches().
 */
void pmu_tcg_far_branch_outside(CPUState *cpu, uint64_t from);

/**
 * pmu_tcg_data_address - the address of the data that an instruction accessed
 * @cpu: the vCPU, as in pmu_tcg_site()
 * @pc: the instruction's address
 * @address: set to the first address that it accessed
 *
 * Returns: false if it accessed none, or did so in a helper, or addresses are
 * not noted.
 */
bool pmu_tcg_data_address(CPUState *cpu, uint64_t pc, uint64_t *address);

/**
 * pmu_tcg_data_entry - the access that pmu_tcg_data_address() has found, as a
 *                      model of the core has seen it
 * @cpu: the vCPU, while counters are being folded
 *
 * Returns: the entry of the core's log, which stays until the vCPU goes on;
 * NULL without a model of the core, or if the access is not known.
 */
const PmuCoreEntry *pmu_tcg_data_entry(const CPUState *cpu);

/**
 * pmu_tcg_count - count an event that QEMU handles outside translated code
 * @cpu: the vCPU
 * @tally: the kind of event; it counts in the mode the vCPU is in now
 *
 * May be called at any time; an overflow is noticed at the end of the block.
 */

/**
 * pmu_tcg_count_tlb_miss - count an access that missed the softmmu's TLB
 * @cpu: the vCPU, as for pmu_tcg_count()
 * @access: the kind of access
 */

/**
 * pmu_tcg_take_back - take back an event that was counted in translated code
 * @cpu: the vCPU, still in the mode in which the event was counted
 * @tally: the kind of event, which does not happen after all
 */

/**
 * pmu_tcg_accessed - show the model of the core what a helper has accessed
 * @cpu: the vCPU
 * @address: the lowest virtual address
 * @bytes: how many bytes, 1 to PMU_CORE_MOST_BYTES
 * @store: whether it has written them; otherwise it has read them
 */
#ifdef CONFIG_USER_ONLY
static inline void pmu_tcg_accessed(CPUState *cpu, uint64_t address,
                                    unsigned bytes, bool store)
{
    /* User-mode emulation has no PMU. */
}

static inline void pmu_tcg_count(CPUState *cpu, PmuTally tally)
{
    /* User-mode emulation has no PMU. */
}

static inline void pmu_tcg_take_back(CPUState *cpu, PmuTally tally)
{
    /* User-mode emulation has no PMU. */
}
#else
void pmu_tcg_count(CPUState *cpu, PmuTally tally);
void pmu_tcg_count_tlb_miss(CPUState *cpu, MMUAccessType access);
void pmu_tcg_take_back(CPUState *cpu, PmuTally tally);
void pmu_tcg_core_accessed(CPUState *cpu, uint64_t address, unsigned bytes,
                           bool store);

static inline void pmu_tcg_accessed(CPUState *cpu, uint64_t address,
                                    unsigned bytes, bool store)
{
    if (unlikely(cpu->pmu_sees_accesses)) {
        pmu_tcg_core_accessed(cpu, address, bytes, store);
    }
}
#endif

/**
 * pmu_tcg_note_time - note the instruction to which the time due is charged
 * @cpu: the vCPU
 * @host_pc: the return address of the helper that took the time
 */
void pmu_tcg_note_time(CPUState *cpu, uintptr_t host_pc);

/**
 * pmu_tcg_device_done - note that an instruction has accessed a device
 * @cpu: the vCPU
 * @host_pc: the return address of the helper that accessed it
 *
 * If a clock has asked for a sample meanwhile (pmu-clock.h), its time is
 * charged to this instruction, and not to the next.
 */
static inline void pmu_tcg_device_done(CPUState *cpu, uintptr_t host_pc)
{
    if (unlikely(qatomic_read(&cpu->pmu_clock_due))) {
        pmu_tcg_note_time(cpu, host_pc);
    }
}

/**
 * pmu_tcg_core_left - note that an interrupt or an exception is delivered next
 * @cpu: the vCPU
 *
 * What it accesses belongs to the mode that it leads to.
 */
void pmu_tcg_core_left(CPUState *cpu);

#endif /* HW_PMU_PMU_TCG_H */
