/*
 * Performance monitoring unit: a model of a core's caches and predictors
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "predictor.h"
#include "sets.h"

/* The parts that only fetches use, or only accesses to data */
typedef struct Side {
    PmuCoreSets l1;
    PmuCoreSets tlb;
} Side;

/**
 * struct PmuCore - a core
 * @geometry: its sizes
 * @words: all of its state, followed by the counters of branches
 * @nr_words: how many words there are before the counters
 * @nr_counters: how many counters there are
 * @instructions, @data: the first level and the TLB of each
 * @last: the last level
 * @predictor: of branches
 *
 * All arrays of the caches, TLBs and predictors are parts of @words, except for
 * the counters.
 */
struct PmuCore {
    PmuCoreGeometry geometry;
    uint64_t *words;
    size_t nr_words;
    size_t nr_counters;
    Side instructions;
    Side data;
    PmuCoreSets last;
    PmuCorePredictor predictor;
};

/* Distances from the tally of a kind of access to the tallies of its misses */
#define L1_MISSES   (PMU_CORE_FETCH_L1_MISSES - PMU_CORE_FETCHES)
#define LAST_MISSES (PMU_CORE_FETCH_LAST_MISSES - PMU_CORE_FETCHES)
#define TLB_MISSES  (PMU_CORE_FETCH_TLB_MISSES - PMU_CORE_FETCHES)

/* Distances from a kind of branch to its tallies */
#define BRANCHES    (PMU_CORE_BRANCHES_NOT_TAKEN - PMU_CORE_NOT_TAKEN)
#define MISPREDICTS (PMU_CORE_NOT_TAKEN_MISSES - PMU_CORE_NOT_TAKEN)

static uint64_t *take_words(PmuCore *core, size_t count)
{
    uint64_t *words = core->words ? core->words + core->nr_words : NULL;

    core->nr_words += count;
    return words;
}

static void lay_cache(PmuCore *core, PmuCoreSets *laid,
                      const PmuCoreCache *cache)
{
    uint64_t sets = cache->size / cache->line / cache->ways;

    *laid = (PmuCoreSets) {
        .first = take_words(core, sets),
        .others = take_words(core, cache->size / cache->line - sets),
        .mask = sets - 1,
        .bits = __builtin_ctz(cache->line),
        .ways = cache->ways,
    };
}

static void lay_tlb(PmuCore *core, PmuCoreSets *sets, const PmuCoreTlb *tlb)
{
    const PmuCoreCache pages = {
        .size = (uint64_t)tlb->entries * core->geometry.page,
        .ways = tlb->ways,
        .line = core->geometry.page,
    };

    lay_cache(core, sets, &pages);
}

static void lay_predictor(PmuCore *core, PmuCorePredictor *p)
{
    const PmuCoreGeometry *g = &core->geometry;

    p->geometry = g;
    p->shift = __builtin_ctz(g->align);
    p->targets = take_words(core, g->targets);
    p->returns = take_words(core, g->returns);
    p->history = take_words(core, 1);
    p->next = take_words(core, 1);
    p->held = take_words(core, 1);
    core->nr_counters = 1u << (g->history + g->places);
    p->counters = (uint8_t *)take_words(core, 0);
}

/* While @words is NULL, this only counts the words and counters. */
static void lay_out(PmuCore *core)
{
    const PmuCoreGeometry *g = &core->geometry;

    core->nr_words = 0;
    lay_cache(core, &core->instructions.l1, &g->l1i);
    lay_cache(core, &core->data.l1, &g->l1d);
    lay_tlb(core, &core->instructions.tlb, &g->itlb);
    lay_tlb(core, &core->data.tlb, &g->dtlb);
    lay_cache(core, &core->last, &g->last);
    lay_predictor(core, &core->predictor);
}

static size_t bytes_of_words(const PmuCore *core)
{
    return core->nr_words * sizeof(uint64_t);
}

size_t pmu_core_state_size(const PmuCore *core)
{
    return bytes_of_words(core) + core->nr_counters;
}

PmuCore *pmu_core_new(const PmuCoreGeometry *geometry)
{
    PmuCore *core = g_new0(PmuCore, 1);

    core->geometry = *geometry;
    lay_out(core);
    core->words = g_malloc0(pmu_core_state_size(core));
    lay_out(core);
    return core;
}

void pmu_core_free(PmuCore *core)
{
    if (core) {
        g_free(core->words);
        g_free(core);
    }
}

void pmu_core_reset(PmuCore *core)
{
    memset(core->words, 0, pmu_core_state_size(core));
}

/*
 * The log
 */

static PmuCoreKind kind_of(const PmuCoreEntry *entry)
{
    return entry->what & ((1u << PMU_CORE_SIZE) - 1);
}

static unsigned bytes_of(const PmuCoreEntry *entry)
{
    return entry->what >> PMU_CORE_SIZE & PMU_CORE_MOST_BYTES;
}

static unsigned count_of(const PmuCoreEntry *entry)
{
    return entry->what >> PMU_CORE_COUNT;
}

/*
 * Most accesses are to the line, and the page, that their sets used last: they
 * miss nothing and change nothing.  No line is larger than a page.
 */
static inline bool changes_nothing(const Side *side, const PmuCoreEntry *entry)
{
    return pmu_core_is_first(&side->l1, entry->address)
           && pmu_core_is_first(&side->tlb, entry->address)
           && pmu_core_in_line(&side->l1, entry->address, bytes_of(entry));
}

/* The last level sees only accesses that miss the first level. */
static void access_memory(const Side *side, const PmuCoreSets *last,
                          const PmuCoreEntry *entry, uint64_t *tally)
{
    unsigned bytes = bytes_of(entry);

    if (pmu_core_touch(&side->tlb, entry->address, bytes)) {
        tally[TLB_MISSES]++;
    }
    if (pmu_core_touch(&side->l1, entry->address, bytes)) {
        tally[L1_MISSES]++;
        if (pmu_core_touch(last, entry->address, bytes)) {
            tally[LAST_MISSES]++;
        }
    }
}

static void branch(const PmuCorePredictor *p, const PmuCoreEntry *entry,
                   uint64_t *tallies)
{
    PmuCoreKind kind = kind_of(entry);
    bool wrong = pmu_core_predict(p, kind, entry);

    if (kind != PMU_CORE_CALL) {
        tallies[kind + BRANCHES]++;
        tallies[kind + MISPREDICTS] += wrong;
    }
}

/*
 * Accesses to data of each kind are counted in 16 bits of one number, as each
 * addition to a tally in memory would have to wait for the previous one.
 */
static void see_some(PmuCore *core, const PmuCoreEntry *entries, size_t count,
                     uint64_t *tallies)
{
    const Side instructions = core->instructions, data = core->data;
    uint64_t insns = 0, references = 0;
    const PmuCoreEntry *entry;

    for (entry = entries; entry < entries + count; entry++) {
        PmuCoreKind kind = kind_of(entry);

        if (kind >= PMU_CORE_ACCESSES) {
            branch(&core->predictor, entry, tallies);
        } else if (kind != PMU_CORE_FETCH) {
            references += 1ull << 16 * kind;
            if (!changes_nothing(&data, entry)) {
                access_memory(&data, &core->last, entry, &tallies[kind]);
            }
        } else {
            insns += count_of(entry);
            if (!changes_nothing(&instructions, entry)) {
                access_memory(&instructions, &core->last, entry, tallies);
            }
        }
    }
    tallies[PMU_CORE_FETCHES] += insns;
    tallies[PMU_CORE_LOADS] += extract64(references, 16, 16);
    tallies[PMU_CORE_STORES] += extract64(references, 32, 16);
    tallies[PMU_CORE_MODIFIES] += extract64(references, 48, 16);
}

void pmu_core_see(PmuCore *core, const PmuCoreEntry *entries, size_t count,
                  uint64_t *tallies)
{
    while (count) {
        size_t some = MIN(count, UINT16_MAX);

        see_some(core, entries, some, tallies);
        entries += some;
        count -= some;
    }
}

/*
 * State
 */

void pmu_core_save(const PmuCore *core, uint8_t *state)
{
    for (size_t i = 0; i < core->nr_words; i++) {
        uint64_t word = GUINT64_TO_BE(core->words[i]);

        memcpy(state + i * sizeof(word), &word, sizeof(word));
    }
    memcpy(state + bytes_of_words(core), core->predictor.counters,
           core->nr_counters);
}

/* All other words are only compared, so they may have any value. */
static void bound_returns(PmuCorePredictor *p)
{
    unsigned depth = p->geometry->returns;

    *p->next = depth ? *p->next % depth : 0;
    *p->held = MIN(*p->held, depth);
}

bool pmu_core_load(PmuCore *core, const uint8_t *state, size_t size)
{
    if (size != pmu_core_state_size(core)) {
        return false;
    }
    for (size_t i = 0; i < core->nr_words; i++) {
        uint64_t word;

        memcpy(&word, state + i * sizeof(word), sizeof(word));
        core->words[i] = GUINT64_FROM_BE(word);
    }
    memcpy(core->predictor.counters, state + bytes_of_words(core),
           core->nr_counters);
    bound_returns(&core->predictor);
    return true;
}
