/*
 * Performance monitoring unit: a model of a core's caches and predictors
 *
 * The model counts the misses of a program in caches, TLBs and branch
 * predictors of given sizes, and their cost in cycles.  The numbers are defined
 * in docs/devel/vpmu-core.rst; this code computes them.
 *
 * The engine that executes a program writes its fetches, the addresses that it
 * accesses, and the outcome of its branches to a log, in program order.  A core
 * sees the log later, and adds to tallies.  Between two logs, a core keeps only
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
#include <glib.h>

/*
 * Geometry
 */

/**
 * struct PmuCoreCache - a cache
 * @size: in bytes; the number of sets is a power of two
 * @ways: how many lines a set has, any number up to 64
 * @line: in bytes, a power of two from 16 to 4096
 */
typedef struct PmuCoreCache {
    uint64_t size;
    uint32_t ways;
    uint32_t line;
} PmuCoreCache;

/**
 * pmu_core_sets - the number of a cache's sets
 * @cache: the cache
 */
static inline uint64_t pmu_core_sets(const PmuCoreCache *cache)
{
    return cache->size / cache->line / cache->ways;
}

/**
 * struct PmuCoreTlb - a TLB
 * @entries: how many pages it holds; the number of sets is a power of two
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
 * @history: how many conditional branches select, by their outcome, a counter
 *           for the prediction
 * @places: how many bits of a branch's address select it, too; together with
 *          @history at most 20
 * @targets: for how many indirect branches the target is remembered, a power of
 *           two
 * @returns: how many calls are remembered; with 0, each return is predicted
 * @align: the alignment of instructions in bytes, a power of two: the bits of
 *         addresses that are always 0 do not select anything
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
 * pmu_core_refuse - check the sizes of a core
 * @geometry: the sizes
 *
 * Returns: a message for the user that says why no core can have these sizes,
 * to be freed with g_free(); NULL if a core can have them.
 */
char *pmu_core_refuse(const PmuCoreGeometry *geometry);

/*
 * Events
 */

/**
 * enum PmuCoreKind - the kind of an entry of a log
 *
 * The first four access memory.  The entries of a branch instruction are in the
 * order of this list.
 *
 * @PMU_CORE_FETCH: instructions were executed
 * @PMU_CORE_LOAD: memory was read
 * @PMU_CORE_STORE: memory was written
 * @PMU_CORE_MODIFY: an instruction read memory and wrote to the same place
 * @PMU_CORE_NOT_TAKEN: a conditional branch was not taken
 * @PMU_CORE_TAKEN: a conditional branch was taken
 * @PMU_CORE_INDIRECT: a branch took its target from a register or from memory
 * @PMU_CORE_RETURN: a branch returned to the address after a call
 * @PMU_CORE_CALL: a branch stored the address after it for a return
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
 * enum PmuCoreTally - the numbers that a core counts
 *
 * For each kind of access, in the order of PmuCoreKind, this is the number of
 * accesses, and the numbers of those which missed the first level, the last
 * level and the TLB.  Each fetched instruction is an access.  For each kind of
 * branch that is predicted, in the same order, this is the number of branches,
 * and the number of wrong predictions.
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
 * PMU_CORE_SIZE, PMU_CORE_COUNT - the lowest bits of the number of bytes and of
 * instructions in PmuCoreEntry.what; the bits below have the PmuCoreKind
 */
#define PMU_CORE_SIZE  4
#define PMU_CORE_COUNT 16

/**
 * PMU_CORE_MOST_BYTES, PMU_CORE_MOST_INSNS - the highest numbers of bytes and
 * of instructions that fit into PmuCoreEntry.what
 */
#define PMU_CORE_MOST_BYTES ((1u << (PMU_CORE_COUNT - PMU_CORE_SIZE)) - 1)
#define PMU_CORE_MOST_INSNS ((1u << (32 - PMU_CORE_COUNT)) - 1)

/**
 * struct PmuCoreEntry - an entry of a log
 * @address: for a fetch, the address of the first instruction; for another
 *           access, the lowest address that it reads or writes; for an indirect
 *           branch or a return, its target; for a call, the target of its
 *           return; ignored for other branches
 * @what: the kind; for accesses, also the number of bytes, at least 1; for a
 *        fetch, the number of bytes of its first instruction, and the number of
 *        instructions: all but the first lie in the last line and page that the
 *        first one reaches; for other accesses, that number is 1
 * @from: for a conditional or an indirect branch, the lower half of its
 *        address; otherwise 0.  A core that has seen the entry leaves here what
 *        became of it: a set of PmuCoreOutcome.
 */
typedef struct PmuCoreEntry {
    uint64_t address;
    uint32_t what;
    uint32_t from;
} PmuCoreEntry;

/**
 * enum PmuCoreOutcome - what became of an access, or of a branch
 * @PMU_CORE_L1_MISSED: it missed the first level
 * @PMU_CORE_LAST_MISSED: it also missed the last level
 * @PMU_CORE_TLB_MISSED: it missed the TLB
 * @PMU_CORE_MISPREDICTED: it was predicted wrong
 */
typedef enum PmuCoreOutcome {
    PMU_CORE_L1_MISSED    = 1 << 0,
    PMU_CORE_LAST_MISSED  = 1 << 1,
    PMU_CORE_TLB_MISSED   = 1 << 2,
    PMU_CORE_MISPREDICTED = 1 << 3,
} PmuCoreOutcome;

/**
 * struct PmuAccess - an instruction's access to data
 * @address: the first address that it accessed
 * @kind: a load, a store, or a modify, if a model of the core has seen it;
 *        otherwise PMU_CORE_FETCH, and the rest is 0
 * @outcome: what became of it, a set of PmuCoreOutcome
 * @latency: how many cycles it took
 */
typedef struct PmuAccess {
    uint64_t address;
    PmuCoreKind kind;
    uint32_t outcome;
    uint32_t latency;
} PmuAccess;

/**
 * pmu_core_what - make PmuCoreEntry.what
 * @kind: the kind of entry
 * @bytes: the number of bytes of an access; 0 otherwise
 * @count: how many instructions a fetch stands for; 1 for another access; 0
 *         otherwise
 */
static inline uint32_t pmu_core_what(PmuCoreKind kind, unsigned bytes,
                                     unsigned count)
{
    return kind | bytes << PMU_CORE_SIZE | count << PMU_CORE_COUNT;
}

/**
 * pmu_core_kind_of - the kind of an entry
 * @entry: the entry
 */
static inline PmuCoreKind pmu_core_kind_of(const PmuCoreEntry *entry)
{
    return entry->what & ((1u << PMU_CORE_SIZE) - 1);
}

/**
 * pmu_core_facts - make PmuCoreEntry.what and PmuCoreEntry.from, as one number
 * @what: the one
 * @from: the other
 *
 * To be stored where @what begins, in the host's byte order.
 */
static inline uint64_t pmu_core_facts(uint32_t what, uint32_t from)
{
#if G_BYTE_ORDER == G_BIG_ENDIAN
    return (uint64_t)what << 32 | from;
#else
    return (uint64_t)from << 32 | what;
#endif
}

/*
 * The core
 */

/**
 * typedef PmuCore - caches, TLBs and predictors, with their contents
 */
typedef struct PmuCore PmuCore;

/**
 * pmu_core_new - create a core whose caches, TLBs and predictors are empty
 * @geometry: its sizes, which pmu_core_refuse() does not refuse; copied
 *
 * Memory that it does not use yet costs only addresses.
 */
PmuCore *pmu_core_new(const PmuCoreGeometry *geometry);

/**
 * pmu_core_free - free a core
 * @core: the core, or NULL
 */
void pmu_core_free(PmuCore *core);

/**
 * pmu_core_reset - empty a core, as at a reset of the machine
 * @core: the core
 */
void pmu_core_reset(PmuCore *core);

/**
 * pmu_core_flush - empty the caches; TLBs and predictors stay as they are
 * @core: the core
 */
void pmu_core_flush(PmuCore *core);

/**
 * pmu_core_see - show a log to a core
 * @core: the core
 * @entries: the log, in program order; this notes in each what became of it
 * @count: how many entries it has
 * @tallies: PMU_CORE_TALLIES numbers, to which this adds the events of the log.
 *           The caller owns them, and may have a set for each mode; then it has
 *           to show the log before the mode changes.
 */
void pmu_core_see(PmuCore *core, PmuCoreEntry *entries, size_t count,
                  uint64_t *tallies);

/**
 * pmu_core_state_size - the size of a saved state in bytes
 * @core: the core; the size depends on its geometry only
 */
size_t pmu_core_state_size(const PmuCore *core);

/**
 * pmu_core_save - save the state of a core
 * @core: the core
 * @state: pmu_core_state_size() bytes, which are the same on every host
 */
void pmu_core_save(const PmuCore *core, uint8_t *state);

/**
 * pmu_core_load - load the state of another core
 * @core: the core; its own state is lost
 * @state: bytes from pmu_core_save(); with other bytes, numbers become wrong,
 *         but nothing worse happens
 * @size: the size of @state
 *
 * Returns: whether @size is right for this core; if not, nothing changes.
 */
bool pmu_core_load(PmuCore *core, const uint8_t *state, size_t size);

/*
 * Cycles
 */

/**
 * struct PmuCorePenalties - the cost of events in cycles
 * @insn: for each instruction
 * @l1: for each access that misses the first level
 * @last: for each access that also misses the last level, in addition to @l1
 * @tlb: for each access that misses the TLB
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
 * struct PmuCoreWeights - a weighted sum of tallies
 * @of: the factor of each tally; for an event that counts some of the tallies,
 *      their factors are 1, and the others are 0
 */
typedef struct PmuCoreWeights {
    uint32_t of[PMU_CORE_TALLIES];
} PmuCoreWeights;

/**
 * pmu_core_cycles - the weighted sum that gives a core's cycles
 * @penalties: the cost of each event
 */
PmuCoreWeights pmu_core_cycles(const PmuCorePenalties *penalties);

/**
 * pmu_core_latency - how many cycles a load takes to get its data
 * @penalties: the cost of each event
 * @outcome: what became of it, a set of PmuCoreOutcome
 *
 * Four cycles if it hits the first level, which an instruction's own cycle does
 * not show, and what misses of caches cost, but not a walk of page tables.  So
 * a latency above a threshold is a miss of one level or of another.
 */
uint64_t pmu_core_latency(const PmuCorePenalties *penalties, uint32_t outcome);

/**
 * pmu_core_cost - the cycles of what an entry has missed
 * @penalties: the cost of each event
 * @entry: an entry that a core has seen
 *
 * The sum of these, and of the instructions' own, is pmu_core_cycles().
 */
uint64_t pmu_core_cost(const PmuCorePenalties *penalties,
                       const PmuCoreEntry *entry);

/**
 * enum PmuCoreStall - what keeps a core from retiring instructions
 * @PMU_CORE_SPECULATION: it has followed a wrong prediction
 * @PMU_CORE_FRONTEND: it waits for instructions
 * @PMU_CORE_BACKEND: it waits for data
 */
typedef enum PmuCoreStall {
    PMU_CORE_SPECULATION,
    PMU_CORE_FRONTEND,
    PMU_CORE_BACKEND,
    PMU_CORE_STALLS,
} PmuCoreStall;

/**
 * pmu_core_stalled_cycles - the weighted sum that gives the cycles of a cause
 * @penalties: the cost of each event
 * @stall: the cause
 *
 * Together, these are pmu_core_cycles() without those of instructions.
 */
PmuCoreWeights pmu_core_stalled_cycles(const PmuCorePenalties *penalties,
                                       PmuCoreStall stall);

/**
 * pmu_core_weigh - compute a weighted sum of tallies
 * @weights: the factors
 * @tallies: PMU_CORE_TALLIES numbers
 *
 * Returns: the sum, modulo 2^64, like other tallies.
 */
uint64_t pmu_core_weigh(const PmuCoreWeights *weights,
                        const uint64_t *tallies);

/**
 * pmu_core_safe_entries - how many entries a log may have before a deadline
 * @weights: the factors of a sum
 * @insns: the most instructions that a fetch in the log stands for
 * @distance: the distance of the sum from the deadline
 *
 * Returns: the highest number of entries that cannot make the sum grow by
 * @distance, for any entries and any state of the core.
 */
uint64_t pmu_core_safe_entries(const PmuCoreWeights *weights, unsigned insns,
                               uint64_t distance);

/*
 * Presets
 */

/**
 * struct PmuCorePreset - the sizes and penalties of a processor
 * @name: its name for users
 * @geometry: its sizes
 * @penalties: its penalties
 */
typedef struct PmuCorePreset {
    const char *name;
    PmuCoreGeometry geometry;
    PmuCorePenalties penalties;
} PmuCorePreset;

/**
 * pmu_core_preset - get a preset
 * @index: its index, from 0
 *
 * Returns: the preset, or NULL after the last one.
 */
const PmuCorePreset *pmu_core_preset(unsigned index);

/**
 * pmu_core_find_preset - find a preset by its name
 * @name: the name
 *
 * Returns: the preset, or NULL if no preset has that name.
 */
const PmuCorePreset *pmu_core_find_preset(const char *name);

#endif /* HW_PMU_PMU_CORE_H */
