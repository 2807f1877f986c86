/*
 * Performance monitoring unit: a model of a core's caches and predictors
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "entry.h"
#include "predictor.h"
#include "sets.h"

/* Fetches use one side of a core, and accesses to data the other one. */
enum { INSTRUCTIONS, DATA, SIDES };

/*
 * How many lines each side remembers as recent, at most, and for how many sets
 * of the TLB it notes which these are: powers of two, at most 64
 */
#define RECENT 64

/* The number of no line */
#define NO_LINE UINT64_MAX

/**
 * struct Side - the parts that only fetches use, or only accesses to data
 * @l1: the first level
 * @tlb: the TLB
 * @recent: lines that their sets used last, and whose pages the TLB's sets used
 *          last, or NO_LINE.  All lines of a set have one place here, which
 *          is the lowest bits of their number.
 * @places: for the TLB's sets whose numbers have the same lowest bits, a set of
 *          the places of @recent that may have lines of their pages
 *
 * An access to a recent line misses nothing and changes nothing.  Most accesses
 * are of this kind, and look nowhere else.  This is no state of its own:
 * nothing changes if a line is forgotten.
 */
typedef struct Side {
    PmuCoreSets l1;
    PmuCoreSets tlb;
    uint64_t recent[RECENT];
    uint64_t places[RECENT];
} Side;

/**
 * struct PmuCore - a core
 * @sides: the first level, and the TLB, of instructions and of data
 * @recent_mask: the bits of a line's number that are its place in Side.recent
 * @geometry: its sizes
 * @words: all of its state, followed by the counters of branches
 * @nr_words: how many words there are before the counters
 * @nr_counters: how many counters there are
 * @last: the last level
 * @predictor: of branches
 *
 * All arrays of the caches, TLBs and predictors are parts of @words, except for
 * the counters.
 */
struct PmuCore {
    Side sides[SIDES];
    uint64_t recent_mask;
    PmuCoreGeometry geometry;
    uint64_t *words;
    size_t nr_words;
    size_t nr_counters;
    PmuCoreSets last;
    PmuCorePredictor predictor;
};

/* Distances from the tally of a kind of access to the tallies of its misses */
#define L1_MISSES   (PMU_CORE_FETCH_L1_MISSES - PMU_CORE_FETCHES)
#define LAST_MISSES (PMU_CORE_FETCH_LAST_MISSES - PMU_CORE_FETCHES)
#define TLB_MISSES  (PMU_CORE_FETCH_TLB_MISSES - PMU_CORE_FETCHES)

static uint64_t *take_words(PmuCore *core, size_t count)
{
    uint64_t *words = core->words ? core->words + core->nr_words : NULL;

    core->nr_words += count;
    return words;
}

static void lay_cache(PmuCore *core, PmuCoreSets *laid,
                      const PmuCoreCache *cache)
{
    uint64_t sets = pmu_core_sets(cache);

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
    lay_cache(core, &core->sides[INSTRUCTIONS].l1, &g->l1i);
    lay_cache(core, &core->sides[DATA].l1, &g->l1d);
    lay_tlb(core, &core->sides[INSTRUCTIONS].tlb, &g->itlb);
    lay_tlb(core, &core->sides[DATA].tlb, &g->dtlb);
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

static void forget_recent(Side *side)
{
    memset(side->recent, 0xff, sizeof(side->recent));
    memset(side->places, 0, sizeof(side->places));
}

static void begin_recent(PmuCore *core)
{
    core->recent_mask = RECENT - 1;
    for (unsigned i = 0; i < SIDES; i++) {
        core->recent_mask &= core->sides[i].l1.mask;
        forget_recent(&core->sides[i]);
    }
}

PmuCore *pmu_core_new(const PmuCoreGeometry *geometry)
{
    PmuCore *core = g_new0(PmuCore, 1);

    core->geometry = *geometry;
    lay_out(core);
    core->words = g_malloc0(pmu_core_state_size(core));
    lay_out(core);
    begin_recent(core);
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
    begin_recent(core);
}

static void empty(const PmuCoreSets *sets)
{
    size_t words = sets->mask + 1;

    memset(sets->first, 0, words * sizeof(*sets->first));
    memset(sets->others, 0, words * (sets->ways - 1) * sizeof(*sets->others));
}

void pmu_core_flush(PmuCore *core)
{
    for (unsigned i = 0; i < SIDES; i++) {
        empty(&core->sides[i].l1);
    }
    empty(&core->last);
    begin_recent(core);
}

/*
 * The log
 */

static uint64_t *places_of_page(Side *side, uint64_t page)
{
    return &side->places[page & side->tlb.mask & (RECENT - 1)];
}

static void note_recent_line(const PmuCore *core, Side *side, uint64_t line,
                             uint64_t *places)
{
    unsigned place = line & core->recent_mask;

    side->recent[place] = line;
    *places |= 1ull << place;
}

/* All of the access is in one page, which its set used last. */
static void note_recent(const PmuCore *core, Side *side,
                        const PmuCoreEntry *entry)
{
    uint64_t last = pmu_core_line(&side->l1, pmu_core_last_byte(entry));
    uint64_t line = pmu_core_line(&side->l1, entry->address);
    uint64_t *places =
        places_of_page(side, pmu_core_line(&side->tlb, entry->address));

    note_recent_line(core, side, line, places);
    while (line != last) {
        line = pmu_core_next_line(&side->l1, line);
        note_recent_line(core, side, line, places);
    }
}

/* A set of the TLB comes to use another page last. */
static void forget_recent_of_set(Side *side, uint64_t page)
{
    uint64_t *places = places_of_page(side, page);

    for (uint64_t rest = *places; rest; rest &= rest - 1) {
        side->recent[__builtin_ctzll(rest)] = NO_LINE;
    }
    *places = 0;
}

/* Returns: whether a page was missing. */
static bool access_pages(const PmuCore *core, Side *side,
                         const PmuCoreEntry *entry)
{
    uint64_t page = pmu_core_line(&side->tlb, entry->address);
    unsigned bytes = pmu_core_bytes_of(entry);
    bool missing = false;

    if (G_UNLIKELY(!pmu_core_in_line(&side->tlb, entry->address, bytes))) {
        forget_recent(side);
        return pmu_core_touch_lines(&side->tlb, entry->address, bytes);
    }
    if (!pmu_core_is_first(&side->tlb, entry->address)) {
        forget_recent_of_set(side, page);
        missing = pmu_core_touch_line(&side->tlb, page);
    }
    note_recent(core, side, entry);
    return missing;
}

/* The last level sees only accesses that miss the first level. */
static void access_memory(PmuCore *core, Side *side, PmuCoreEntry *entry,
                          uint64_t *tally)
{
    unsigned bytes = pmu_core_bytes_of(entry);

    if (pmu_core_touch(&side->l1, entry->address, bytes)) {
        tally[L1_MISSES]++;
        entry->from |= PMU_CORE_L1_MISSED;
        if (pmu_core_touch(&core->last, entry->address, bytes)) {
            tally[LAST_MISSES]++;
            entry->from |= PMU_CORE_LAST_MISSED;
        }
    }
    if (access_pages(core, side, entry)) {
        tally[TLB_MISSES]++;
        entry->from |= PMU_CORE_TLB_MISSED;
    }
}

static inline bool is_recent(const PmuCore *core, const Side *side,
                             const PmuCoreEntry *entry, unsigned bits)
{
    uint64_t line = entry->address >> bits;
    uint64_t last = pmu_core_last_byte(entry) >> bits;
    uint64_t recent = side->recent[line & core->recent_mask];

    return !((recent ^ line) | (last ^ line));
}

/*
 * Numbers of accesses to data, in 16 bits each: an addition to a tally in
 * memory would have to wait for the previous one.
 */
static const uint64_t one_of[1 << PMU_CORE_SIZE] = {
    [PMU_CORE_LOAD] = 1ull << 0,
    [PMU_CORE_STORE] = 1ull << 16,
    [PMU_CORE_MODIFY] = 1ull << 32,
};

/* @insns: how many all entries stand for, which is 1 for an access to data */
static void add_references(uint64_t *tallies, uint64_t insns,
                           uint64_t references)
{
    uint64_t loads = extract64(references, 0, 16);
    uint64_t stores = extract64(references, 16, 16);
    uint64_t modifies = extract64(references, 32, 16);

    tallies[PMU_CORE_FETCHES] += insns - loads - stores - modifies;
    tallies[PMU_CORE_LOADS] += loads;
    tallies[PMU_CORE_STORES] += stores;
    tallies[PMU_CORE_MODIFIES] += modifies;
}

/*
 * Read accesses up to the next branch, or to the end.  The kinds of accesses
 * are as hard to foresee as the program itself: so the only branch here is for
 * lines that are not recent.
 */
static inline __attribute__((always_inline))
PmuCoreEntry *see_lines(PmuCore *core, PmuCoreEntry *entry,
                        const PmuCoreEntry *end, uint64_t *tallies,
                        unsigned bits)
{
    uint64_t insns = 0, references = 0;

    for (; entry < end && !pmu_core_is_branch(entry); entry++) {
        PmuCoreKind kind = pmu_core_kind_of(entry);
        Side *side = &core->sides[kind != PMU_CORE_FETCH];

        references += one_of[kind];
        insns += pmu_core_count_of(entry);
        if (G_UNLIKELY(!is_recent(core, side, entry,
                                  bits ?: side->l1.bits))) {
            access_memory(core, side, entry, &tallies[kind]);
        }
    }
    add_references(tallies, insns, references);
    return entry;
}

/* For lines of usual sizes, there is code that knows the size. */
static PmuCoreEntry *see_accesses(PmuCore *core, PmuCoreEntry *entry,
                                  const PmuCoreEntry *end, uint64_t *tallies)
{
    unsigned bits = core->sides[DATA].l1.bits;

    if (bits != core->sides[INSTRUCTIONS].l1.bits) {
        bits = 0;
    }
    switch (bits) {
    case 6:
        return see_lines(core, entry, end, tallies, 6);
    case 7:
        return see_lines(core, entry, end, tallies, 7);
    default:
        return see_lines(core, entry, end, tallies, bits);
    }
}

void pmu_core_see(PmuCore *core, PmuCoreEntry *entries, size_t count,
                  uint64_t *tallies)
{
    PmuCoreEntry *entry = entries, *end = entries + count;

    while (entry < end) {
        PmuCoreEntry *until = entry + MIN(end - entry, UINT16_MAX);

        entry = pmu_core_is_branch(entry)
                ? pmu_core_learn(&core->predictor, entry, until, tallies)
                : see_accesses(core, entry, until, tallies);
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
    begin_recent(core);
    return true;
}
