/*
 * Performance monitoring unit: the model of a vCPU's core, and its log
 *
 * Translated code writes what it fetches, accesses and branches to a log.  A
 * core reads it when it is full, when its mode ends, and before anybody reads a
 * tally.  A block is entered only if all that it writes finds room, which is
 * also how a deadline is met: the log is made so short that nothing in it can
 * reach the deadline.
 *
 * All entries of a log are of one mode.  No other mode has any room: so the
 * first block of another one is left before it has begun, and the log is read.
 *
 * For the engine (pmu-tcg.c).  Threads: as there.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_TCG_CORE_H
#define HW_PMU_PMU_TCG_CORE_H

#include "migration/vmstate.h"
#include "hw/core/cpu.h"
#include "hw/pmu/pmu-core-model.h"
#include "hw/pmu/pmu-engine.h"

/**
 * PMU_TCG_TLB_TALLIES - the tallies of a TLB: of softmmu's, or of a core's
 */
#define PMU_TCG_TLB_TALLIES                             \
    (PMU_TALLY_BIT(PMU_TALLY_DTLB_LOAD_MISSES)          \
     | PMU_TALLY_BIT(PMU_TALLY_DTLB_STORE_MISSES)       \
     | PMU_TALLY_BIT(PMU_TALLY_ITLB_MISSES))

/**
 * PMU_TCG_CORE_LOG - how many entries a log takes before it is full
 */
#define PMU_TCG_CORE_LOG 1024

/**
 * PMU_TCG_CORE_BLOCK - how many entries a block may write before it ends with
 *                      the instruction that does so
 */
#define PMU_TCG_CORE_BLOCK 256

/**
 * PMU_TCG_CORE_HELPER - how many entries an instruction may write in a helper
 *                       beside those that its block counts
 */
#define PMU_TCG_CORE_HELPER 32

/**
 * PMU_TCG_CORE_SIZE - how many entries the log has memory for
 *
 * When helpers have filled the log, the rest of the block must still find room.
 */
#define PMU_TCG_CORE_SIZE (PMU_TCG_CORE_LOG + 2 * PMU_TCG_CORE_BLOCK)

/**
 * PMU_TCG_CORE_BRANCHES - how far behind the limit the next branch is written
 *
 * Branches are apart from accesses, the last one first: it makes no difference
 * whether a core sees the ones or the others first.  Each takes one entry from
 * the limit.
 */
#define PMU_TCG_CORE_BRANCHES (PMU_TCG_CORE_SIZE + PMU_TCG_CORE_BLOCK)

/**
 * typedef PmuTcgCore - the cores of a vCPU, of which one is in use at a time
 */
typedef struct PmuTcgCore PmuTcgCore;

/**
 * pmu_tcg_core_new - create the cores of a vCPU, which remember nothing
 * @cpu: the vCPU
 * @model: what they are like; copied
 */
PmuTcgCore *pmu_tcg_core_new(CPUState *cpu, const PmuCoreModel *model);

/**
 * pmu_tcg_core_free - free them
 * @c: the cores, or NULL
 */
void pmu_tcg_core_free(PmuTcgCore *c);

/**
 * pmu_tcg_core_reset - empty them, as at a reset of the machine
 * @c: the cores; tallies stay
 */
void pmu_tcg_core_reset(PmuTcgCore *c);

/**
 * pmu_tcg_core_model - what they are like
 * @c: the cores
 */
const PmuCoreModel *pmu_tcg_core_model(const PmuTcgCore *c);

/**
 * pmu_tcg_core_see - read the log
 * @c: the cores
 */
void pmu_tcg_core_see(PmuTcgCore *c);

/**
 * pmu_tcg_core_entry - find the last access to data at an address
 * @c: the cores
 * @address: the lowest address that was accessed
 *
 * Returns: the entry, in the log that was read last; NULL if the access is not
 * among the last ones there.
 */
const PmuCoreEntry *pmu_tcg_core_entry(const PmuTcgCore *c, uint64_t address);

/**
 * pmu_tcg_core_flush - empty the caches of all cores
 * @c: the cores, after the last access before that
 */
void pmu_tcg_core_flush(PmuTcgCore *c);

/**
 * pmu_tcg_core_leave - read the log, as what follows may be of another mode
 * @c: the cores
 *
 * Entries from now on are of the mode of the next block.
 */
void pmu_tcg_core_leave(PmuTcgCore *c);

/**
 * pmu_tcg_core_make_room - prepare for a block that was not entered
 * @c: the cores
 * @mode: the mode of the block
 *
 * Returns: whether anything changed by that.  If not, the log is empty, and a
 * deadline is so near that the block may reach it.
 */
bool pmu_tcg_core_make_room(PmuTcgCore *c, unsigned mode);

/**
 * pmu_tcg_core_room - how many entries the log may take now
 * @c: the cores
 */
unsigned pmu_tcg_core_room(const PmuTcgCore *c);

/**
 * pmu_tcg_core_is_past_limit - whether a helper may have reached a deadline
 * @c: the cores
 */
bool pmu_tcg_core_is_past_limit(const PmuTcgCore *c);

/**
 * pmu_tcg_core_is_due - whether a budget is used up
 * @c: the cores, whose log has been read
 */
bool pmu_tcg_core_is_due(const PmuTcgCore *c);

/**
 * pmu_tcg_core_most - how many cycles a block can be, as a rule
 * @c: the cores
 */
uint64_t pmu_tcg_core_most(const PmuTcgCore *c);

/**
 * pmu_tcg_core_note - write to the log what a helper has accessed
 * @c: the cores
 * @kind: the kind of access
 * @address: the lowest address
 * @bytes: how many bytes, at least 1
 */
void pmu_tcg_core_note(PmuTcgCore *c, PmuCoreKind kind, uint64_t address,
                       unsigned bytes);

/**
 * pmu_tcg_core_note_fetch - write a fetch to the log
 * @c: the cores
 * @address: PmuCoreEntry.address
 * @what: PmuCoreEntry.what
 *
 * Not needed if all lines are in their places in PmuTcgCells.core_lines.
 */
void pmu_tcg_core_note_fetch(PmuTcgCore *c, uint64_t address, uint32_t what);

/**
 * pmu_tcg_core_line - the number of the line of instructions at an address
 * @c: the cores
 * @address: the address
 */
uint64_t pmu_tcg_core_line(const PmuTcgCore *c, uint64_t address);

/**
 * pmu_tcg_core_place - the place of a line in PmuTcgCells.core_lines
 * @c: the cores
 * @line: its number
 */
unsigned pmu_tcg_core_place(const PmuTcgCore *c, uint64_t line);

/**
 * PMU_TCG_CORE_TALLIES - the tallies that cores supply
 *
 * Beside cycles, which also depend on instructions, and those of instructions.
 */
#define PMU_TCG_CORE_TALLIES                            \
    (PMU_TCG_TLB_TALLIES                                \
     | MAKE_64BIT_MASK(PMU_TALLY_CORE_FIRST,            \
                       PMU_TALLY_RETIRING_CYCLES - PMU_TALLY_CORE_FIRST))

/**
 * pmu_tcg_core_tally - a tally of theirs
 * @c: the cores
 * @tally: which one; for PMU_TALLY_CYCLES, all but the instructions' own
 * @mode: the mode
 */
uint64_t pmu_tcg_core_tally(PmuTcgCore *c, PmuTally tally, unsigned mode);

/**
 * pmu_tcg_core_sum - what cores have counted in all modes
 * @c: the cores, whose vCPU is between instructions
 * @tallies: set to the sums, indexed by PmuCoreTally
 */
void pmu_tcg_core_sum(PmuTcgCore *c, uint64_t *tallies);

/**
 * pmu_tcg_core_insns - how many instructions a budget of cycles is good for
 * @c: the cores
 * @cycles: the budget; the rest of it is for the misses of the instructions
 *
 * Returns: at least 1.
 */
uint64_t pmu_tcg_core_insns(const PmuTcgCore *c, uint64_t cycles);

/**
 * pmu_tcg_core_plan - take the budgets of an engine's plan
 * @c: the cores
 * @wanted: those of its tallies, and of cycles, that have budgets
 * @budgets: the budgets; of cycles, the part that pmu_tcg_core_insns() gives
 *           instructions is left to these
 */
void pmu_tcg_core_plan(PmuTcgCore *c, PmuTallies wanted,
                       const PmuBudgets budgets);

/**
 * pmu_tcg_get_count - load a count
 * @f: the stream
 * @count: the count; stays as it was if that of the stream is refused
 * @taken_back: so many events may be taken back before they are counted
 * @limit: no count is as high
 *
 * What follows in the stream can be refused, and the CPU go on with this count.
 *
 * Returns: 0, or -EINVAL after it has reported that the count is too high.
 */
int pmu_tcg_get_count(QEMUFile *f, uint64_t *count, uint64_t taken_back,
                      uint64_t limit);

/**
 * pmu_tcg_put_count - save a count, as VMStateInfo.put asks for it
 * @f: the stream
 * @pv: the count
 * @size: not used
 * @field: not used
 * @vmdesc: not used
 *
 * Returns: 0
 */
int pmu_tcg_put_count(QEMUFile *f, void *pv, size_t size,
                      const VMStateField *field, JSONWriter *vmdesc);

/**
 * vmstate_pmu_tcg_core - the tallies, and what cores remember, for migration
 */
extern const VMStateDescription vmstate_pmu_tcg_core;

#endif /* HW_PMU_PMU_TCG_CORE_H */
