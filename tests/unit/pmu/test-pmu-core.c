/*
 * Unit test: a core's caches and predictors, against lists
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/pmu-core.h"

#define GEOMETRIES 40
#define LOGS       12
#define MOST_LOG   300
#define MOST_HISTORY 20

/*
 * The reference
 */

/**
 * struct Reference - a slow and simple core
 * @g: its sizes
 * @l1i, @l1d, @last, @itlb, @dtlb: numbers of lines or pages of all sets, the
 *                                  one that was used last first
 * @counters: by the history as text, and the branch
 * @targets: by the branch
 * @history: of all conditional branches; before the first one, none was taken
 * @returns: the last call first
 * @tallies: PMU_CORE_TALLIES of them
 */
typedef struct Reference {
    const PmuCoreGeometry *g;
    GSList *l1i;
    GSList *l1d;
    GSList *last;
    GSList *itlb;
    GSList *dtlb;
    GHashTable *counters;
    GHashTable *targets;
    GString *history;
    GSList *returns;
    uint64_t tallies[PMU_CORE_TALLIES];
} Reference;

static gint is_not(gconstpointer a, gconstpointer b)
{
    return *(const uint64_t *)a != *(const uint64_t *)b;
}

static void put_first(GSList **list, uint64_t number)
{
    *list = g_slist_prepend(*list, g_memdup2(&number, sizeof(number)));
}

static void take_out(GSList **list, GSList *link)
{
    g_free(link->data);
    *list = g_slist_delete_link(*list, link);
}

/* No set has more than its ways. */
static void forget_oldest(GSList **list, uint64_t set, uint64_t sets,
                          unsigned ways)
{
    GSList *oldest = NULL;
    unsigned count = 0;

    for (GSList *link = *list; link; link = link->next) {
        if (*(uint64_t *)link->data % sets == set) {
            count++;
            oldest = link;
        }
    }
    if (count > ways) {
        take_out(list, oldest);
    }
}

static bool touch_line(GSList **list, uint64_t number, uint64_t sets,
                       unsigned ways)
{
    GSList *found = g_slist_find_custom(*list, &number, is_not);

    if (found) {
        take_out(list, found);
    }
    put_first(list, number);
    forget_oldest(list, number % sets, sets, ways);
    return !found;
}

/* Byte by byte, which is all that lines and their order are about. */
static bool touch(GSList **list, const PmuCoreCache *cache, uint64_t address,
                  unsigned bytes)
{
    uint64_t sets = cache->size / cache->line / cache->ways;
    bool missed = false;

    for (unsigned i = 0; i < bytes; i++) {
        missed |= touch_line(list, (address + i) / cache->line, sets,
                             cache->ways);
    }
    return missed;
}

static bool touch_page(Reference *ref, GSList **list, const PmuCoreTlb *tlb,
                       uint64_t address, unsigned bytes)
{
    const PmuCoreCache pages = {
        .size = (uint64_t)tlb->entries * ref->g->page, .ways = tlb->ways,
        .line = ref->g->page,
    };

    return touch(list, &pages, address, bytes);
}

static unsigned step_access(Reference *ref, PmuCoreKind kind, uint64_t address,
                            unsigned bytes, unsigned count)
{
    unsigned outcome = 0;
    bool fetch = kind == PMU_CORE_FETCH;
    GSList **l1 = fetch ? &ref->l1i : &ref->l1d;
    GSList **tlb = fetch ? &ref->itlb : &ref->dtlb;

    ref->tallies[PMU_CORE_FETCHES + kind] += count;
    if (touch_page(ref, tlb, fetch ? &ref->g->itlb : &ref->g->dtlb, address,
                   bytes)) {
        ref->tallies[PMU_CORE_FETCH_TLB_MISSES + kind]++;
        outcome |= PMU_CORE_TLB_MISSED;
    }
    if (touch(l1, fetch ? &ref->g->l1i : &ref->g->l1d, address, bytes)) {
        ref->tallies[PMU_CORE_FETCH_L1_MISSES + kind]++;
        outcome |= PMU_CORE_L1_MISSED;
        if (touch(&ref->last, &ref->g->last, address, bytes)) {
            ref->tallies[PMU_CORE_FETCH_LAST_MISSES + kind]++;
            outcome |= PMU_CORE_LAST_MISSED;
        }
    }
    return outcome;
}

static bool wrong_outcome(Reference *ref, uint32_t from, bool taken)
{
    const char *recent = ref->history->str + ref->history->len
                         - ref->g->history;
    char *key = g_strdup_printf("%s %u", recent, from / ref->g->align
                                                 % (1u << ref->g->places));
    int counter = GPOINTER_TO_INT(g_hash_table_lookup(ref->counters, key));
    bool predicted = counter >= 2;

    counter = CLAMP(counter + (taken ? 1 : -1), 0, 3);
    g_hash_table_insert(ref->counters, key, GINT_TO_POINTER(counter));
    g_string_append_c(ref->history, taken ? 't' : 'n');
    return predicted != taken;
}

static bool wrong_target(Reference *ref, uint32_t from, uint64_t to)
{
    gpointer key = GUINT_TO_POINTER(from / ref->g->align % ref->g->targets);
    uint64_t *target = g_hash_table_lookup(ref->targets, key);
    bool wrong = to != (target ? *target : 0);

    g_hash_table_insert(ref->targets, key, g_memdup2(&to, sizeof(to)));
    return wrong;
}

static void step_call(Reference *ref, uint64_t after)
{
    put_first(&ref->returns, after);
    if (g_slist_length(ref->returns) > ref->g->returns) {
        take_out(&ref->returns, g_slist_last(ref->returns));
    }
}

static bool wrong_return(Reference *ref, uint64_t to)
{
    bool wrong = ref->g->returns;

    if (ref->returns) {
        wrong = *(uint64_t *)ref->returns->data != to;
        take_out(&ref->returns, ref->returns);
    }
    return wrong;
}

static unsigned step_branch(Reference *ref, PmuCoreTally branches, bool wrong)
{
    unsigned misses = PMU_CORE_NOT_TAKEN_MISSES - PMU_CORE_BRANCHES_NOT_TAKEN;

    ref->tallies[branches]++;
    ref->tallies[branches + misses] += wrong;
    return wrong ? PMU_CORE_MISPREDICTED : 0;
}

/* Returns: a set of PmuCoreOutcome. */
static unsigned step(Reference *ref, const PmuCoreEntry *e)
{
    switch (e->what % 16) {
    case PMU_CORE_NOT_TAKEN:
        return step_branch(ref, PMU_CORE_BRANCHES_NOT_TAKEN,
                           wrong_outcome(ref, e->from, 0));
    case PMU_CORE_TAKEN:
        return step_branch(ref, PMU_CORE_BRANCHES_TAKEN,
                           wrong_outcome(ref, e->from, 1));
    case PMU_CORE_INDIRECT:
        return step_branch(ref, PMU_CORE_BRANCHES_INDIRECT,
                           wrong_target(ref, e->from, e->address));
    case PMU_CORE_RETURN:
        return step_branch(ref, PMU_CORE_BRANCHES_RETURN,
                           wrong_return(ref, e->address));
    case PMU_CORE_CALL:
        step_call(ref, e->address);
        return 0;
    default:
        return step_access(ref, e->what % 16, e->address, e->what / 16 % 4096,
                           e->what / 65536);
    }
}

static void free_all(GSList **list)
{
    g_slist_free_full(*list, g_free);
    *list = NULL;
}

static void forget_caches(Reference *ref)
{
    free_all(&ref->l1i);
    free_all(&ref->l1d);
    free_all(&ref->last);
}

static void forget(Reference *ref)
{
    forget_caches(ref);
    free_all(&ref->itlb);
    free_all(&ref->dtlb);
    free_all(&ref->returns);
    g_hash_table_remove_all(ref->counters);
    g_hash_table_remove_all(ref->targets);
    g_string_truncate(ref->history, 0);
    for (unsigned i = 0; i < MOST_HISTORY; i++) {
        g_string_append_c(ref->history, 'n');
    }
}

static void begin(Reference *ref, const PmuCoreGeometry *g)
{
    *ref = (Reference) {
        .g = g,
        .counters = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                          NULL),
        .targets = g_hash_table_new_full(NULL, NULL, NULL, g_free),
        .history = g_string_new(NULL),
    };
    forget(ref);
}

static void end(Reference *ref)
{
    forget(ref);
    g_hash_table_unref(ref->counters);
    g_hash_table_unref(ref->targets);
    g_string_free(ref->history, true);
}

/*
 * Random programs
 */

static uint32_t power(GRand *rand, unsigned least, unsigned most)
{
    return 1u << g_rand_int_range(rand, least, most + 1);
}

static PmuCoreCache some_cache(GRand *rand)
{
    PmuCoreCache cache = {
        .ways = g_rand_int_range(rand, 1, 6), .line = power(rand, 4, 7),
    };

    cache.size = cache.line * cache.ways * power(rand, 0, 4);
    return cache;
}

static PmuCoreTlb some_tlb(GRand *rand)
{
    unsigned ways = g_rand_int_range(rand, 1, 4);

    return (PmuCoreTlb) { .entries = ways * power(rand, 0, 2), .ways = ways };
}

/* Small ones, of which all parts are full soon */
static PmuCoreGeometry some_geometry(GRand *rand)
{
    return (PmuCoreGeometry) {
        .l1i = some_cache(rand), .l1d = some_cache(rand),
        .last = some_cache(rand), .itlb = some_tlb(rand),
        .dtlb = some_tlb(rand), .page = 4096,
        .history = g_rand_int_range(rand, 0, 5),
        .places = g_rand_int_range(rand, 0, 5),
        .targets = power(rand, 0, 3),
        .returns = g_rand_int_range(rand, 0, 5), .align = power(rand, 0, 2),
    };
}

/* Of few lines in few pages; the first and the last of all are among them. */
static uint64_t some_address(GRand *rand)
{
    static const uint64_t bases[] = { 0, 0x7000, 0x1234567000, -1024ull };
    uint64_t base = bases[g_rand_int_range(rand, 0, G_N_ELEMENTS(bases))];

    return base + g_rand_int_range(rand, 0, 2048)
           + 4096 * g_rand_int_range(rand, 0, 3);
}

static unsigned some_bytes(GRand *rand)
{
    switch (g_rand_int_range(rand, 0, 50)) {
    case 0:
        return g_rand_int_range(rand, 1, PMU_CORE_MOST_BYTES + 1);
    case 1 ... 9:
        return g_rand_int_range(rand, 1, 150);
    default:
        return power(rand, 0, 4);
    }
}

/* Calls and returns have few addresses, so that some match. */
static PmuCoreEntry some_entry(GRand *rand)
{
    PmuCoreKind kind = g_rand_int_range(rand, 0, PMU_CORE_CALL + 1);
    unsigned count = kind ? 1 : g_rand_int_range(rand, 1, 600);
    bool accesses = kind < PMU_CORE_ACCESSES;

    return (PmuCoreEntry) {
        .what = pmu_core_what(kind, accesses ? some_bytes(rand) : 0,
                              accesses ? count : 0),
        .address = accesses ? some_address(rand)
                            : (uint64_t)g_rand_int_range(rand, 0, 3),
        .from = accesses ? 0 : g_rand_int_range(rand, 0, 64),
    };
}

static unsigned write_log(PmuCoreEntry *log, GRand *rand)
{
    unsigned count = g_rand_int_range(rand, 0, MOST_LOG + 1);

    for (unsigned i = 0; i < count; i++) {
        log[i] = some_entry(rand);
    }
    return count;
}

static void assert_tallies(const uint64_t *is, const uint64_t *want)
{
    for (unsigned i = 0; i < PMU_CORE_TALLIES; i++) {
        g_assert_cmpuint(is[i], ==, want[i]);
    }
}

/* Replaces a core by a new one that loads its state */
static PmuCore *move(PmuCore *core, const PmuCoreGeometry *g)
{
    size_t size = pmu_core_state_size(core);
    g_autofree uint8_t *state = g_malloc(size);
    PmuCore *other = pmu_core_new(g);

    pmu_core_save(core, state);
    pmu_core_free(core);
    g_assert_false(pmu_core_load(other, state, size - 1));
    g_assert_true(pmu_core_load(other, state, size));
    return other;
}

static void run_program(const PmuCoreGeometry *g, GRand *rand)
{
    uint64_t tallies[PMU_CORE_TALLIES] = {};
    PmuCore *core = pmu_core_new(g);
    PmuCoreEntry log[MOST_LOG], seen[MOST_LOG];
    Reference ref;

    begin(&ref, g);
    for (unsigned i = 0; i < LOGS; i++) {
        unsigned count = write_log(log, rand);

        memcpy(seen, log, count * sizeof(log[0]));
        pmu_core_see(core, seen, count, tallies);
        for (unsigned j = 0; j < count; j++) {
            unsigned outcome = step(&ref, &log[j]);

            g_assert_true(log[j].what % 16 == PMU_CORE_CALL
                          || seen[j].from == outcome);
        }
        assert_tallies(tallies, ref.tallies);
        if (i % 3 == 1) {
            core = move(core, g);
        }
        if (i == LOGS / 4) {
            pmu_core_flush(core);
            forget_caches(&ref);
        }
        if (i == LOGS / 2) {
            pmu_core_reset(core);
            forget(&ref);
        }
    }
    end(&ref);
    pmu_core_free(core);
}

static void test_random(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(41);

    for (unsigned i = 0; i < GEOMETRIES; i++) {
        PmuCoreGeometry g = some_geometry(rand);

        g_assert_null(pmu_core_refuse(&g));
        run_program(&g, rand);
    }
}

/* The counts within a log do not overflow, however long the log is. */
static void test_long(void)
{
    const PmuCorePreset *preset = pmu_core_find_preset("skylake");
    PmuCore *core = pmu_core_new(&preset->geometry);
    uint64_t tallies[PMU_CORE_TALLIES] = {};
    unsigned count = 200000;
    g_autofree PmuCoreEntry *log = g_new(PmuCoreEntry, count);

    for (unsigned i = 0; i < count; i++) {
        log[i] = (PmuCoreEntry) {
            .what = i < 1000 ? pmu_core_what(PMU_CORE_FETCH, 1,
                                             PMU_CORE_MOST_INSNS)
                             : pmu_core_what(PMU_CORE_MODIFY, 8, 1),
        };
    }
    pmu_core_see(core, log, count, tallies);
    g_assert_cmpuint(tallies[PMU_CORE_FETCHES], ==,
                     1000 * PMU_CORE_MOST_INSNS);
    g_assert_cmpuint(tallies[PMU_CORE_MODIFIES], ==, count - 1000);
    g_assert_cmpuint(tallies[PMU_CORE_LOADS], ==, 0);
    g_assert_cmpuint(tallies[PMU_CORE_STORES], ==, 0);
    pmu_core_free(core);
}

/* A state has the same bytes on every host: tags, targets, calls, counters. */
static void test_state(void)
{
    static const PmuCoreGeometry g = {
        .l1i = { 64, 1, 64 }, .l1d = { 64, 1, 64 }, .last = { 64, 1, 64 },
        .itlb = { 1, 1 }, .dtlb = { 1, 1 }, .page = 4096, .targets = 1,
        .returns = 1, .align = 1,
    };
    PmuCoreEntry log[] = {
        { .address = 0x12340, .what = 8 << PMU_CORE_SIZE | PMU_CORE_LOAD },
        { .address = 0x5678, .what = PMU_CORE_INDIRECT },
        { .address = 0x9abc, .what = PMU_CORE_CALL },
        { .what = PMU_CORE_TAKEN },
    };
    static const uint8_t want[] = {
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x04, 0x8e,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x13,
        0, 0, 0, 0, 0, 0, 0x04, 0x8e, 0, 0, 0, 0, 0, 0, 0x56, 0x78,
        0, 0, 0, 0, 0, 0, 0x9a, 0xbc, 0, 0, 0, 0, 0, 0, 0, 1,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1,
    };
    uint64_t tallies[PMU_CORE_TALLIES] = {};
    PmuCore *core = pmu_core_new(&g);
    uint8_t state[sizeof(want)];

    g_assert_cmpuint(pmu_core_state_size(core), ==, sizeof(want));
    pmu_core_see(core, log, G_N_ELEMENTS(log), tallies);
    pmu_core_save(core, state);
    g_assert_cmpmem(state, sizeof(state), want, sizeof(want));
    pmu_core_free(core);
}

/* With any state from a stream, a core goes on, and its counts are bounded. */
static void test_hostile(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(42);

    for (unsigned i = 0; i < GEOMETRIES; i++) {
        PmuCoreGeometry g = some_geometry(rand);
        PmuCore *core = pmu_core_new(&g);
        size_t size = pmu_core_state_size(core);
        g_autofree uint8_t *state = g_malloc(size);
        uint64_t tallies[PMU_CORE_TALLIES] = {};
        PmuCoreEntry log[MOST_LOG];

        for (size_t j = 0; j < size; j++) {
            state[j] = g_rand_int(rand);
        }
        g_assert_true(pmu_core_load(core, state, size));
        pmu_core_see(core, log, write_log(log, rand), tallies);
        g_assert_cmpuint(tallies[PMU_CORE_LOAD_L1_MISSES], <=,
                         tallies[PMU_CORE_LOADS]);
        g_assert_cmpuint(tallies[PMU_CORE_TAKEN_MISSES], <=,
                         tallies[PMU_CORE_BRANCHES_TAKEN]);
        pmu_core_free(core);
    }
}

/*
 * Costs
 */

static PmuCoreWeights some_weights(GRand *rand)
{
    PmuCoreWeights weights;

    for (unsigned i = 0; i < PMU_CORE_TALLIES; i++) {
        weights.of[i] = g_rand_boolean(rand) ? g_rand_int_range(rand, 0, 300)
                                             : 0;
    }
    return weights;
}

/* As many entries as are safe never reach the deadline. */
static void test_safe(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(43);
    PmuCoreEntry log[MOST_LOG];

    for (unsigned i = 0; i < GEOMETRIES; i++) {
        const PmuCoreGeometry g = some_geometry(rand);
        const PmuCoreWeights weights = some_weights(rand);
        uint64_t distance = g_rand_int_range(rand, 1, 10000000);
        uint64_t safe = pmu_core_safe_entries(&weights, 600, distance);
        uint64_t tallies[PMU_CORE_TALLIES] = {};
        PmuCore *core = pmu_core_new(&g);
        uint64_t count = write_log(log, rand);

        pmu_core_see(core, log, MIN(count, safe), tallies);
        g_assert_cmpuint(pmu_core_weigh(&weights, tallies), <, distance);
        pmu_core_free(core);
    }
}

/* One more of the worst does. */
static void test_worst(void)
{
    const PmuCorePreset *preset = pmu_core_find_preset("power9");
    const PmuCoreWeights cycles = pmu_core_cycles(&preset->penalties);
    uint64_t safe = pmu_core_safe_entries(&cycles, 1, 100000);
    uint64_t tallies[PMU_CORE_TALLIES] = {};
    PmuCore *core = pmu_core_new(&preset->geometry);

    for (uint64_t i = 0; i <= safe; i++) {
        PmuCoreEntry fetch = {
            .address = i * preset->geometry.page,
            .what = pmu_core_what(PMU_CORE_FETCH, 4, 1),
        };

        g_assert_cmpuint(pmu_core_weigh(&cycles, tallies), <, 100000);
        pmu_core_see(core, &fetch, 1, tallies);
    }
    g_assert_cmpuint(pmu_core_weigh(&cycles, tallies), >=, 100000);
    pmu_core_free(core);
}

static void test_no_deadline(void)
{
    const PmuCoreWeights none = {};
    const PmuCoreWeights loads = { .of[PMU_CORE_LOADS] = 1 };
    const PmuCoreWeights insns = { .of[PMU_CORE_FETCHES] = 1 };

    g_assert_cmpuint(pmu_core_safe_entries(&none, 600, 1), ==, UINT64_MAX);
    g_assert_cmpuint(pmu_core_safe_entries(&none, 600, 0), ==, 0);
    g_assert_cmpuint(pmu_core_safe_entries(&loads, 600, 0), ==, 0);
    g_assert_cmpuint(pmu_core_safe_entries(&loads, 600, 1), ==, 0);
    g_assert_cmpuint(pmu_core_safe_entries(&loads, 600, 100), ==, 99);
    g_assert_cmpuint(pmu_core_safe_entries(&insns, 600, 600), ==, 0);
    g_assert_cmpuint(pmu_core_safe_entries(&insns, 600, 601), ==, 1);
}

/* What the entries of a log have cost is the cycles of all misses. */
static void test_sum(void)
{
    const PmuCorePenalties penalties = { 0, 3, 50, 700, 11000 };
    const PmuCoreWeights cycles = pmu_core_cycles(&penalties);
    g_autoptr(GRand) rand = g_rand_new_with_seed(44);
    PmuCoreEntry log[MOST_LOG];

    for (unsigned i = 0; i < GEOMETRIES; i++) {
        const PmuCoreGeometry g = some_geometry(rand);
        uint64_t tallies[PMU_CORE_TALLIES] = {}, sum = 0;
        PmuCore *core = pmu_core_new(&g);
        unsigned count = write_log(log, rand);

        pmu_core_see(core, log, count, tallies);
        for (unsigned j = 0; j < count; j++) {
            sum += pmu_core_cost(&penalties, &log[j]);
        }
        g_assert_cmpuint(sum, ==, pmu_core_weigh(&cycles, tallies));
        pmu_core_free(core);
    }
}

/* A hit takes a few cycles; walks of page tables are not part of a latency. */
static void test_latency(void)
{
    const PmuCorePenalties *p = &pmu_core_find_preset("skylake")->penalties;

    g_assert_cmpuint(pmu_core_latency(p, 0), ==, 4);
    g_assert_cmpuint(pmu_core_latency(p, PMU_CORE_TLB_MISSED), ==, 4);
    g_assert_cmpuint(pmu_core_latency(p, PMU_CORE_L1_MISSED), ==, 44);
    g_assert_cmpuint(pmu_core_latency(p, PMU_CORE_L1_MISSED
                                         | PMU_CORE_LAST_MISSED), ==, 244);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pmu/core/random", test_random);
    g_test_add_func("/pmu/core/long", test_long);
    g_test_add_func("/pmu/core/state", test_state);
    g_test_add_func("/pmu/core/hostile", test_hostile);
    g_test_add_func("/pmu/core/cost/safe", test_safe);
    g_test_add_func("/pmu/core/cost/worst", test_worst);
    g_test_add_func("/pmu/core/cost/no-deadline", test_no_deadline);
    g_test_add_func("/pmu/core/cost/sum", test_sum);
    g_test_add_func("/pmu/core/cost/latency", test_latency);
    return g_test_run();
}
