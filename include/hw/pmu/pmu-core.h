/*
 * Performance monitoring unit: a model of a core's caches and predictors
 *
 * What a program would miss in caches, TLBs and branch predictors of stated
 * sizes, and what that costs in cycles.  docs/devel/vpmu-core.rst defines what
 * is counted; this is how it is computed.
 *
 * Whoever executes a program writes to a log, in program order, what it
 * fetches, which addresses it accesses, and how its branches go.  A core sees
 * the log later, and adds to tallies.  All that it knows between two logs is
 * its state, which can be saved.
 *
 * Plain C on GLib.  Threads: one at a time for each core.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_CORE_H
#define HW_PMU_PMU_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Geometry
 */

/**
 * struct PmuCoreCache - a cache
 * @size: in bytes: a power of two of sets
 * @ways: how many lines a set has, any number up to 64
 * @line: in bytes, a power of two from 16 to 4096
 */
typedef struct PmuCoreCache {
    uint64_t size;
    uint32_t ways;
    uint32_t line;
} PmuCoreCache;

/**
 * struct PmuCoreTlb - a TLB
 * @entries: how many pages it knows: a power of two of sets
 * @ways: how many entries a set has, any number up to 64
 */
typedef struct PmuCoreTlb {
    uint32_t entries;
    uint32_t ways;
} PmuCoreTlb;

/**
 * struct PmuCoreGeometry - the sizes of all parts of a core
 * @l1i: the first level, for instructions
 * @l1d: the first level, for data
 * @last: the last level, for both
 * @itlb: for instructions
 * @dtlb: for data
 * @page: the size of all pages, in bytes, a power of two
 * @history: of so many conditional branches the outcome chooses among the
 *           counters of a branch
 * @places: so many bits of a branch's address do, too; all these bits are 20
 *          at most
 * @targets: how many indirect branches have a target that is remembered, a
 *           power of two
 * @returns: how many calls are remembered; with 0, each return is predicted
 * @align: of instructions, in bytes, a power of two: bits of their addresses
 *         that are always 0 choose nothing
 */
typedef struct PmuCoreGeometry {
    PmuCoreCache l1i;
    PmuCoreCache l1d;
    PmuCoreCache last;
    PmuCoreTlb itlb;
    PmuCoreTlb dtlb;
    uint32_t page;
    uint32_t history;
    uint32_t places;
    uint32_t targets;
    uint32_t returns;
    uint32_t align;
} PmuCoreGeometry;

/**
 * pmu_core_refuse - why there cannot be a core of these sizes
 * @geometry: the sizes
 *
 * Returns: a message for the user, to be freed with g_free(); NULL if there
 * can be one.
 */
char *pmu_core_refuse(const PmuCoreGeometry *geometry);

/*
 * What is counted
 */

/**
 * enum PmuCoreKind - what an entry of a log is
 *
 * The first four access memory.  Of an instruction that is a branch, the
 * entries are in the order in which they are listed here.
 *
 * @PMU_CORE_FETCH: instructions were executed
 * @PMU_CORE_LOAD: a place was read
 * @PMU_CORE_STORE: a place was written
 * @PMU_CORE_MODIFY: an instruction read a place and wrote the same one
 * @PMU_CORE_NOT_TAKEN: a conditional branch was not taken
 * @PMU_CORE_TAKEN: a conditional branch was taken
 * @PMU_CORE_INDIRECT: a branch went where a register or memory says
 * @PMU_CORE_RETURN: a branch went back behind a call
 * @PMU_CORE_CALL: a branch left the address behind it for a return
 */
typedef enum PmuCoreKind {
    PMU_CORE_FETCH,
    PMU_CORE_LOAD,
    PMU_CORE_STORE,
    PMU_CORE_MODIFY,
    PMU_CORE_NOT_TAKEN,
    PMU_CORE_TAKEN,
    PMU_CORE_INDIRECT,
    PMU_CORE_RETURN,
    PMU_CORE_CALL,
} PmuCoreKind;

/**
 * PMU_CORE_ACCESSES - how many kinds access memory
 */
#define PMU_CORE_ACCESSES 4

/**
 * enum PmuCoreTally - what a core counts
 *
 * For each kind of access, in the order of PmuCoreKind: how many there were,
 * and how many of these missed the first level, the last level and the TLB.
 * Each fetched instruction is a reference.  For each kind of branch that is
 * predicted, likewise: how many there were, and how many were predicted wrong.
 */
typedef enum PmuCoreTally {
    PMU_CORE_FETCHES,
    PMU_CORE_LOADS,
    PMU_CORE_STORES,
    PMU_CORE_MODIFIES,
    PMU_CORE_FETCH_L1_MISSES,
    PMU_CORE_LOAD_L1_MISSES,
    PMU_CORE_STORE_L1_MISSES,
    PMU_CORE_MODIFY_L1_MISSES,
    PMU_CORE_FETCH_LAST_MISSES,
    PMU_CORE_LOAD_LAST_MISSES,
    PMU_CORE_STORE_LAST_MISSES,
    PMU_CORE_MODIFY_LAST_MISSES,
    PMU_CORE_FETCH_TLB_MISSES,
    PMU_CORE_LOAD_TLB_MISSES,
    PMU_CORE_STORE_TLB_MISSES,
    PMU_CORE_MODIFY_TLB_MISSES,
    PMU_CORE_BRANCHES_NOT_TAKEN,
    PMU_CORE_BRANCHES_TAKEN,
    PMU_CORE_BRANCHES_INDIRECT,
    PMU_CORE_BRANCHES_RETURN,
    PMU_CORE_NOT_TAKEN_MISSES,
    PMU_CORE_TAKEN_MISSES,
    PMU_CORE_INDIRECT_MISSES,
    PMU_CORE_RETURN_MISSES,
    PMU_CORE_TALLIES,
} PmuCoreTally;

/*
 * The log
 */

/**
 * PMU_CORE_SIZE, PMU_CORE_COUNT - where parts of PmuCoreEntry.what begin;
 * below is the PmuCoreKind
 */
#define PMU_CORE_SIZE  4
#define PMU_CORE_COUNT 16

/**
 * PMU_CORE_MOST_BYTES, PMU_CORE_MOST_INSNS - what PmuCoreEntry.what has room
 * for
 */
#define PMU_CORE_MOST_BYTES ((1u << (PMU_CORE_COUNT - PMU_CORE_SIZE)) - 1)
#define PMU_CORE_MOST_INSNS ((1u << (32 - PMU_CORE_COUNT)) - 1)

/**
 * struct PmuCoreEntry - something that the program has done
 * @address: of a fetch, the first instruction's; of another access, the lowest
 *           that it reads or writes; of an indirect branch or a return, where
 *           it went; of a call, where its return will go; of other branches
 *           not looked at
 * @what: its kind; of accesses, too, how many bytes, at least 1, of a fetch the
 *        bytes of its first instruction; and how many instructions a fetch
 *        stands for: all others lie in the last line and page that the first
 *        one reaches; 1 for other accesses
 * @from: of a conditional or an indirect branch, the lower half of its address;
 *        otherwise not looked at
 */
typedef struct PmuCoreEntry {
    uint64_t address;
    uint32_t what;
    uint32_t from;
} PmuCoreEntry;

/**
 * pmu_core_what - PmuCoreEntry.what
 * @kind: what the entry is
 * @bytes: of an access; 0 otherwise
 * @count: how many instructions a fetch stands for; 1 for another access; 0
 *         otherwise
 */
static inline uint32_t pmu_core_what(PmuCoreKind kind, unsigned bytes,
                                     unsigned count)
{
    return kind | bytes << PMU_CORE_SIZE | count << PMU_CORE_COUNT;
}

/*
 * The core
 */

/**
 * typedef PmuCore - caches, TLBs and predictors with what they remember
 */
typedef struct PmuCore PmuCore;

/**
 * pmu_core_new - make a core that remembers nothing
 * @geometry: its sizes, which pmu_core_refuse() does not refuse; copied
 *
 * Memory that it has not used yet costs nothing but addresses.
 */
PmuCore *pmu_core_new(const PmuCoreGeometry *geometry);

/**
 * pmu_core_free - free a core
 * @core: the core, or NULL
 */
void pmu_core_free(PmuCore *core);

/**
 * pmu_core_reset - forget everything, as at a reset of the machine
 * @core: the core
 */
void pmu_core_reset(PmuCore *core);

/**
 * pmu_core_see - all that is in a log has happened
 * @core: where it has happened
 * @entries: the log, in program order
 * @count: how many entries it has
 * @tallies: PMU_CORE_TALLIES of them, to which is added what has happened.
 *           They belong to whoever asks, who has one set for each mode that is
 *           to be told apart, and shows the core its log before the mode
 *           changes.
 */
void pmu_core_see(PmuCore *core, const PmuCoreEntry *entries, size_t count,
                  uint64_t *tallies);

/**
 * pmu_core_state_size - how many bytes a state has
 * @core: the core; with the same geometry it is the same
 */
size_t pmu_core_state_size(const PmuCore *core);

/**
 * pmu_core_save - write down what a core remembers
 * @core: the core
 * @state: pmu_core_state_size() bytes, which are the same on every host
 */
void pmu_core_save(const PmuCore *core, uint8_t *state);

/**
 * pmu_core_load - remember what another core did
 * @core: the core; what it remembers is forgotten
 * @state: what pmu_core_save() has written, or anything else, which can make no
 *         more than numbers wrong
 * @size: of @state
 *
 * Returns: whether @size is that of a state of this core; if not, nothing
 * has changed.
 */
bool pmu_core_load(PmuCore *core, const uint8_t *state, size_t size);

/*
 * What it costs
 */

/**
 * struct PmuCorePenalties - cycles
 * @insn: for each instruction
 * @l1: for each access that misses the first level
 * @last: for each that misses the last level, too, beside @l1
 * @tlb: for each that misses the TLB
 * @branch: for each wrong prediction
 */
typedef struct PmuCorePenalties {
    uint32_t insn;
    uint32_t l1;
    uint32_t last;
    uint32_t tlb;
    uint32_t branch;
} PmuCorePenalties;

/**
 * struct PmuCoreWeights - a sum of tallies
 * @of: by what each is multiplied; an event that counts some of them has 1 for
 *      those
 */
typedef struct PmuCoreWeights {
    uint32_t of[PMU_CORE_TALLIES];
} PmuCoreWeights;

/**
 * pmu_core_cycles - the sum of tallies that are a core's cycles
 * @penalties: what they cost
 */
PmuCoreWeights pmu_core_cycles(const PmuCorePenalties *penalties);

/**
 * pmu_core_weigh - a sum of tallies
 * @weights: which
 * @tallies: PMU_CORE_TALLIES of them
 *
 * Returns: the sum, modulo 2^64 as that of other tallies.
 */
uint64_t pmu_core_weigh(const PmuCoreWeights *weights,
                        const uint64_t *tallies);

/**
 * pmu_core_safe_entries - how long a log may be
 * @weights: of a sum
 * @insns: no fetch in the log stands for more instructions
 * @distance: so far is the sum from a deadline
 *
 * Returns: the most entries that cannot make the sum grow by @distance,
 * whatever they are and whatever the core remembers.
 */
uint64_t pmu_core_safe_entries(const PmuCoreWeights *weights, unsigned insns,
                               uint64_t distance);

/*
 * Cores that there are
 */

/**
 * struct PmuCorePreset - sizes and penalties after a processor
 * @name: what users call it
 * @geometry: its sizes
 * @penalties: what they cost
 */
typedef struct PmuCorePreset {
    const char *name;
    PmuCoreGeometry geometry;
    PmuCorePenalties penalties;
} PmuCorePreset;

/**
 * pmu_core_preset - one of the cores that have a name
 * @index: which, from 0
 *
 * Returns: the preset, NULL behind the last.
 */
const PmuCorePreset *pmu_core_preset(unsigned index);

/**
 * pmu_core_find_preset - the core of a name
 * @name: its name
 *
 * Returns: the preset, NULL if no core has that name.
 */
const PmuCorePreset *pmu_core_find_preset(const char *name);

#endif /* HW_PMU_PMU_CORE_H */
