/*
 * Unit test: a core's counts of programs whose misses are known on paper
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/pmu-core.h"

#define KiB 1024

/**
 * struct Run - a program that is executed
 * @core: the core that executes it
 * @tallies: the core's counts since the last assert_adds()
 */
typedef struct Run {
    PmuCore *core;
    uint64_t tallies[PMU_CORE_TALLIES];
} Run;

/* 64 sets of 8 lines of 64 bytes; 1024 sets of 16; pages of 4 KiB */
static const PmuCoreGeometry geometry = {
    .l1i = { 32 * KiB, 8, 64 },
    .l1d = { 32 * KiB, 8, 64 },
    .last = { 1024 * KiB, 16, 64 },
    .itlb = { 32, 4 },
    .dtlb = { 64, 4 },
    .page = 4096,
    .history = 7,
    .places = 7,
    .targets = 512,
    .returns = 16,
    .align = 1,
};

#define LINES    512
#define WAY_SIZE 4096

static void begin(Run *run)
{
    *run = (Run) { .core = pmu_core_new(&geometry) };
}

static void end(Run *run)
{
    pmu_core_free(run->core);
}

static void log_one(Run *run, PmuCoreKind kind, uint64_t address,
                    unsigned bytes, uint32_t from)
{
    PmuCoreEntry entry = {
        .address = address,
        .what = pmu_core_what(kind, bytes, bytes ? 1 : 0),
        .from = from,
    };

    pmu_core_see(run->core, &entry, 1, run->tallies);
}

static void load(Run *run, uint64_t address)
{
    log_one(run, PMU_CORE_LOAD, address, 8, 0);
}

/* Since the last time, this much was added to a tally; begin again. */
static void assert_adds(Run *run, PmuCoreTally tally, uint64_t want)
{
    g_assert_cmpuint(run->tallies[tally], ==, want);
    run->tallies[tally] = 0;
}

static void load_all(Run *run, uint64_t size, unsigned stride)
{
    for (uint64_t at = 0; at < size; at += stride) {
        load(run, 0x100000 + at);
    }
}

/* A state that is loaded, and a reset, replace all that the core has seen. */
static void test_forgotten(void)
{
    PmuCore *empty = pmu_core_new(&geometry);
    size_t size = pmu_core_state_size(empty);
    g_autofree uint8_t *state = g_malloc(size);
    Run run;

    pmu_core_save(empty, state);
    begin(&run);
    load(&run, 0);
    load(&run, 0);
    assert_adds(&run, PMU_CORE_LOAD_L1_MISSES, 1);
    g_assert_true(pmu_core_load(run.core, state, size));
    load(&run, 0);
    load(&run, 0);
    assert_adds(&run, PMU_CORE_LOAD_L1_MISSES, 1);
    pmu_core_reset(run.core);
    load(&run, 0);
    assert_adds(&run, PMU_CORE_LOAD_L1_MISSES, 1);
    pmu_core_free(empty);
    end(&run);
}

/* Every line misses once; as long as all fit, never again. */
static void test_strides(void)
{
    for (unsigned stride = 8; stride <= 4096; stride *= 2) {
        unsigned lines = 32 * KiB / MAX(stride, 64);
        Run run;

        begin(&run);
        load_all(&run, 32 * KiB, stride);
        assert_adds(&run, PMU_CORE_LOADS, 32 * KiB / stride);
        assert_adds(&run, PMU_CORE_LOAD_L1_MISSES, lines);
        assert_adds(&run, PMU_CORE_LOAD_LAST_MISSES, lines);
        assert_adds(&run, PMU_CORE_LOAD_TLB_MISSES, 8);
        load_all(&run, 32 * KiB, stride);
        assert_adds(&run, PMU_CORE_LOAD_L1_MISSES, 0);
        assert_adds(&run, PMU_CORE_LOAD_LAST_MISSES, 0);
        assert_adds(&run, PMU_CORE_LOAD_TLB_MISSES, 0);
        end(&run);
    }
}

/* Twice as much as fits, in turns, misses always: LRU keeps the wrong half. */
static void test_working_sets(void)
{
    Run run;

    begin(&run);
    load_all(&run, 64 * KiB, 64);
    assert_adds(&run, PMU_CORE_LOAD_L1_MISSES, 2 * LINES);
    assert_adds(&run, PMU_CORE_LOAD_LAST_MISSES, 2 * LINES);
    load_all(&run, 64 * KiB, 64);
    assert_adds(&run, PMU_CORE_LOAD_L1_MISSES, 2 * LINES);
    assert_adds(&run, PMU_CORE_LOAD_LAST_MISSES, 0);

    /* 512 pages, where there is room for 64; the last level is too small. */
    load_all(&run, 2048 * KiB, 64);
    run.tallies[PMU_CORE_LOAD_LAST_MISSES] = 0;
    run.tallies[PMU_CORE_LOAD_TLB_MISSES] = 0;
    load_all(&run, 2048 * KiB, 64);
    assert_adds(&run, PMU_CORE_LOAD_LAST_MISSES, 32 * KiB);
    assert_adds(&run, PMU_CORE_LOAD_TLB_MISSES, 512);
    end(&run);
}

/* Lines that are a way's size apart are of one set. */
static void test_conflicts(void)
{
    Run run;

    for (unsigned lines = 7; lines <= 9; lines++) {
        begin(&run);
        load_all(&run, lines * WAY_SIZE, WAY_SIZE);
        assert_adds(&run, PMU_CORE_LOAD_L1_MISSES, lines);
        load_all(&run, lines * WAY_SIZE, WAY_SIZE);
        assert_adds(&run, PMU_CORE_LOAD_L1_MISSES, lines > 8 ? lines : 0);
        assert_adds(&run, PMU_CORE_LOAD_LAST_MISSES, lines);
        end(&run);
    }
}

/* A new line replaces the line whose last use is the oldest. */
static void test_order(void)
{
    Run run;

    begin(&run);
    load_all(&run, 8 * WAY_SIZE, WAY_SIZE);
    load(&run, 0x100000);
    load(&run, 0x100000 + 8 * WAY_SIZE);
    assert_adds(&run, PMU_CORE_LOAD_L1_MISSES, 9);
    load(&run, 0x100000);
    assert_adds(&run, PMU_CORE_LOAD_L1_MISSES, 0);
    load(&run, 0x100000 + WAY_SIZE);
    assert_adds(&run, PMU_CORE_LOAD_L1_MISSES, 1);
    end(&run);
}

/* An access of two lines, or pages, is one reference, and one miss at most. */
static void test_crossing(void)
{
    Run run;

    begin(&run);
    load(&run, 0x2ffc);
    assert_adds(&run, PMU_CORE_LOADS, 1);
    assert_adds(&run, PMU_CORE_LOAD_L1_MISSES, 1);
    assert_adds(&run, PMU_CORE_LOAD_LAST_MISSES, 1);
    assert_adds(&run, PMU_CORE_LOAD_TLB_MISSES, 1);
    load(&run, 0x2fc0);
    load(&run, 0x3000);
    assert_adds(&run, PMU_CORE_LOAD_L1_MISSES, 0);
    assert_adds(&run, PMU_CORE_LOAD_TLB_MISSES, 0);

    /* Here the first line is there, and the second one is missing. */
    load(&run, 0x303c);
    assert_adds(&run, PMU_CORE_LOAD_L1_MISSES, 1);
    load(&run, 0x3040);
    assert_adds(&run, PMU_CORE_LOAD_L1_MISSES, 0);
    end(&run);
}

/* Kinds share the caches of their side, and both sides the last level. */
static void test_kinds(void)
{
    Run run;

    begin(&run);
    log_one(&run, PMU_CORE_STORE, 0x5000, 8, 0);
    assert_adds(&run, PMU_CORE_STORE_L1_MISSES, 1);
    assert_adds(&run, PMU_CORE_STORE_LAST_MISSES, 1);
    assert_adds(&run, PMU_CORE_STORE_TLB_MISSES, 1);
    log_one(&run, PMU_CORE_MODIFY, 0x5008, 8, 0);
    load(&run, 0x5010);
    log_one(&run, PMU_CORE_FETCH, 0x5020, 4, 0);
    assert_adds(&run, PMU_CORE_MODIFIES, 1);
    assert_adds(&run, PMU_CORE_MODIFY_L1_MISSES, 0);
    assert_adds(&run, PMU_CORE_LOADS, 1);
    assert_adds(&run, PMU_CORE_LOAD_L1_MISSES, 0);
    assert_adds(&run, PMU_CORE_FETCHES, 1);
    assert_adds(&run, PMU_CORE_FETCH_L1_MISSES, 1);
    assert_adds(&run, PMU_CORE_FETCH_LAST_MISSES, 0);
    assert_adds(&run, PMU_CORE_FETCH_TLB_MISSES, 1);
    end(&run);
}

/*
 * Branches
 */

/* The outcomes of a branch, 't' or 'n', so many times */
static void take(Run *run, const char *outcomes, unsigned times)
{
    while (times--) {
        for (const char *c = outcomes; *c; c++) {
            log_one(run, *c == 't' ? PMU_CORE_TAKEN : PMU_CORE_NOT_TAKEN, 0,
                    0, 0x4000);
        }
    }
}

/*
 * With seven outcomes as history, a branch that is always taken is wrong for
 * each of the seven histories on the way, and twice for the one that stays;
 * one that alternates finds the history that stays at its fourth time.
 */
static void test_patterns(void)
{
    static const struct {
        const char *outcomes;
        unsigned taken_misses;
        unsigned not_taken_misses;
    } patterns[] = {
        { "t", 9, 0 },
        { "n", 0, 0 },
        { "tn", 5, 0 },
    };
    Run run;

    for (unsigned i = 0; i < G_N_ELEMENTS(patterns); i++) {
        begin(&run);
        take(&run, patterns[i].outcomes, 100);
        assert_adds(&run, PMU_CORE_TAKEN_MISSES, patterns[i].taken_misses);
        assert_adds(&run, PMU_CORE_NOT_TAKEN_MISSES,
                    patterns[i].not_taken_misses);
        end(&run);
    }
}

/* A period that the history covers is learned, a longer run of one is not. */
static void test_periods(void)
{
    Run run;

    begin(&run);
    take(&run, "ttttttn", 4);
    run.tallies[PMU_CORE_TAKEN_MISSES] = 0;
    run.tallies[PMU_CORE_NOT_TAKEN_MISSES] = 0;
    take(&run, "ttttttn", 100);
    assert_adds(&run, PMU_CORE_BRANCHES_TAKEN, 624);
    assert_adds(&run, PMU_CORE_BRANCHES_NOT_TAKEN, 104);
    assert_adds(&run, PMU_CORE_TAKEN_MISSES, 0);
    assert_adds(&run, PMU_CORE_NOT_TAKEN_MISSES, 0);

    take(&run, "tttttttttn", 4);
    run.tallies[PMU_CORE_TAKEN_MISSES] = 0;
    run.tallies[PMU_CORE_NOT_TAKEN_MISSES] = 0;
    take(&run, "tttttttttn", 100);
    assert_adds(&run, PMU_CORE_TAKEN_MISSES, 0);
    assert_adds(&run, PMU_CORE_NOT_TAKEN_MISSES, 100);
    end(&run);
}

static void test_random_outcomes(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    uint64_t wrong;
    Run run;

    begin(&run);
    for (unsigned i = 0; i < 10000; i++) {
        take(&run, g_rand_boolean(rand) ? "t" : "n", 1);
    }
    wrong = run.tallies[PMU_CORE_TAKEN_MISSES]
            + run.tallies[PMU_CORE_NOT_TAKEN_MISSES];
    g_assert_cmpuint(wrong, >, 4800);
    g_assert_cmpuint(wrong, <, 5200);
    end(&run);
}

static void test_targets(void)
{
    Run run;

    begin(&run);
    for (unsigned i = 0; i < 100; i++) {
        log_one(&run, PMU_CORE_INDIRECT, 0x8000, 0, 0x4000);
    }
    assert_adds(&run, PMU_CORE_BRANCHES_INDIRECT, 100);
    assert_adds(&run, PMU_CORE_INDIRECT_MISSES, 1);
    for (unsigned i = 0; i < 100; i++) {
        log_one(&run, PMU_CORE_INDIRECT, 0x9000 + i % 2, 0, 0x4000);
    }
    assert_adds(&run, PMU_CORE_INDIRECT_MISSES, 100);

    /* Two branches that share a place, and two that do not */
    for (unsigned i = 0; i < 100; i++) {
        log_one(&run, PMU_CORE_INDIRECT, 0xa000 + i % 2, 0,
                0x4010 + i % 2 * 512);
    }
    assert_adds(&run, PMU_CORE_INDIRECT_MISSES, 100);
    for (unsigned i = 0; i < 100; i++) {
        log_one(&run, PMU_CORE_INDIRECT, 0xb000 + i % 2, 0, 0x4020 + i % 2);
    }
    assert_adds(&run, PMU_CORE_INDIRECT_MISSES, 2);
    end(&run);
}

static void recurse(Run *run, unsigned depth)
{
    for (unsigned i = 0; i < depth; i++) {
        log_one(run, PMU_CORE_CALL, 0x4000 + i, 0, 0);
    }
    for (unsigned i = depth; i-- > 0;) {
        log_one(run, PMU_CORE_RETURN, 0x4000 + i, 0, 0);
    }
}

/* If calls are nested deeper than 16, returns of the oldest ones are wrong. */
static void test_depths(void)
{
    Run run;

    for (unsigned depth = 1; depth <= 40; depth++) {
        begin(&run);
        recurse(&run, depth);
        assert_adds(&run, PMU_CORE_BRANCHES_RETURN, depth);
        assert_adds(&run, PMU_CORE_RETURN_MISSES, MAX(depth, 16) - 16);
        end(&run);
    }
}

/*
 * One turn of core-branches.S.  Bits of @random decide; @left turns are left,
 * this one included.
 */
static void turn_branches(Run *run, uint64_t random, unsigned left)
{
    log_one(run, random >> 40 & 1 ? PMU_CORE_TAKEN : PMU_CORE_NOT_TAKEN, 0, 0,
            0x401040);
    log_one(run, left % 8 ? PMU_CORE_NOT_TAKEN : PMU_CORE_TAKEN, 0, 0,
            0x401060);
    log_one(run, PMU_CORE_INDIRECT, 0x4010a0 + (random >> 50 & 3), 0,
            0x401080);
    log_one(run, left > 1 ? PMU_CORE_TAKEN : PMU_CORE_NOT_TAKEN, 0, 0,
            0x4010c0);
}

/* The same numbers as Cachegrind's, of Valgrind 3.19 */
static void test_cachegrind(void)
{
    uint64_t random = 1;
    Run run;

    begin(&run);
    for (unsigned left = 100000; left; left--) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        turn_branches(&run, random, left);
    }
    g_assert_cmpuint(run.tallies[PMU_CORE_TAKEN_MISSES]
                     + run.tallies[PMU_CORE_NOT_TAKEN_MISSES], ==, 64039);
    assert_adds(&run, PMU_CORE_BRANCHES_INDIRECT, 100000);
    assert_adds(&run, PMU_CORE_INDIRECT_MISSES, 75159);
    end(&run);
}

/*
 * Costs and sizes
 */

/* 3 instructions, one fetch and two loads that miss everything, a branch */
static void test_cycles(void)
{
    const PmuCorePenalties penalties = {
        .insn = 2, .l1 = 10, .last = 100, .tlb = 1000, .branch = 10000,
    };
    const PmuCoreWeights cycles = pmu_core_cycles(&penalties);
    PmuCoreEntry fetch = {
        .address = 0x4000, .what = pmu_core_what(PMU_CORE_FETCH, 4, 3),
    };
    Run run;

    begin(&run);
    pmu_core_see(run.core, &fetch, 1, run.tallies);
    load(&run, 0x8000);
    load(&run, 0x8008);
    load(&run, 0xa000);
    take(&run, "t", 1);
    g_assert_cmpuint(pmu_core_weigh(&cycles, run.tallies), ==,
                     3 * 2 + 3 * (10 + 100 + 1000) + 10000);
    end(&run);
}

static void assert_refused(const PmuCoreGeometry *g, const char *why)
{
    g_autofree char *message = pmu_core_refuse(g);

    g_assert_cmpstr(message, ==, why);
}

#define REFUSED(field, value, why)              \
    do {                                        \
        PmuCoreGeometry bad = geometry;         \
                                                \
        bad.field = value;                      \
        assert_refused(&bad, why);              \
    } while (0)

/* The causes of cycles, and the instructions' own, are all cycles. */
static void test_stalls(void)
{
    const PmuCorePenalties penalties = {
        .insn = 3, .l1 = 5, .last = 7, .tlb = 11, .branch = 13,
    };
    PmuCoreWeights sum = { .of[PMU_CORE_FETCHES] = penalties.insn };
    const PmuCoreWeights all = pmu_core_cycles(&penalties);

    for (unsigned stall = 0; stall < PMU_CORE_STALLS; stall++) {
        const PmuCoreWeights of = pmu_core_stalled_cycles(&penalties, stall);

        for (unsigned t = 0; t < PMU_CORE_TALLIES; t++) {
            g_assert_true(!of.of[t] || !sum.of[t]);
            sum.of[t] += of.of[t];
        }
    }
    g_assert_cmpmem(&sum, sizeof(sum), &all, sizeof(all));
}

static void test_refused_caches(void)
{
    assert_refused(&geometry, NULL);
    REFUSED(l1i.line, 48, "the line of l1i is 48, and has to be a power of "
                          "two from 16 to 4096");
    REFUSED(l1i.line, 0, "the line of l1i is 0, and has to be a power of two "
                         "from 16 to 4096");
    REFUSED(l1d.line, 8192, "the line of l1d is 8192, and has to be a power "
                            "of two from 16 to 4096");
    REFUSED(l1d.size, 32 * KiB + 32, "the size of l1d is 32800, which is no "
                                     "multiple of its line of 64");
    REFUSED(l1d.size, 0, "l1d has 0 lines, which have to be a power of two "
                         "of sets of 8");
    REFUSED(l1d.size, 24 * KiB, "l1d has 384 lines, which have to be a power "
                                "of two of sets of 8");
    REFUSED(l1d.ways, 0, "l1d has 0 ways, and has to have 1 to 64");
    REFUSED(l1d.ways, 65, "l1d has 65 ways, and has to have 1 to 64");
    REFUSED(l1d.ways, 7, "l1d has 512 lines, which have to be a power of two "
                         "of sets of 7");
    REFUSED(last.size, 1ull << 31, "the size of the last level is "
                                   "2147483648, and has to be 1073741824 at "
                                   "most");
}

static void test_refused_others(void)
{
    REFUSED(page, 2048, "the size of pages is 2048, and has to be a power of "
                        "two from 4096 to 1073741824");
    REFUSED(itlb.entries, 100, "itlb has 100 entries, which have to be a "
                               "power of two of sets of 4");
    REFUSED(dtlb.entries, 1 << 17, "dtlb is 131072, and has to be 65536 at "
                                   "most");
    REFUSED(history, 14, "the sum of bits of history and address is 21, and "
                         "has to be 20 at most");
    REFUSED(places, UINT32_MAX, "the sum of bits of history and address is "
                                "4294967302, and has to be 20 at most");
    REFUSED(targets, 0, "the number of targets is 0, and has to be a power "
                        "of two from 1 to 65536");
    REFUSED(returns, 1025, "the number of returns is 1025, and has to be "
                           "1024 at most");
    REFUSED(align, 3, "the alignment of instructions is 3, and has to be a "
                      "power of two from 1 to 16");
}

/* Any number of ways will do, if the sets are a power of two. */
static void test_presets(void)
{
    const PmuCorePreset *preset;
    unsigned i;

    for (i = 0; (preset = pmu_core_preset(i)); i++) {
        g_assert_null(pmu_core_refuse(&preset->geometry));
        g_assert_true(pmu_core_find_preset(preset->name) == preset);
    }
    g_assert_cmpuint(i, ==, 3);
    g_assert_null(pmu_core_find_preset("skylak"));
    g_assert_cmpuint(pmu_core_find_preset("power9")->geometry.last.ways, ==,
                     20);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pmu/core/known/forgotten", test_forgotten);
    g_test_add_func("/pmu/core/known/strides", test_strides);
    g_test_add_func("/pmu/core/known/working-sets", test_working_sets);
    g_test_add_func("/pmu/core/known/conflicts", test_conflicts);
    g_test_add_func("/pmu/core/known/order", test_order);
    g_test_add_func("/pmu/core/known/crossing", test_crossing);
    g_test_add_func("/pmu/core/known/kinds", test_kinds);
    g_test_add_func("/pmu/core/known/patterns", test_patterns);
    g_test_add_func("/pmu/core/known/periods", test_periods);
    g_test_add_func("/pmu/core/known/random-outcomes", test_random_outcomes);
    g_test_add_func("/pmu/core/known/targets", test_targets);
    g_test_add_func("/pmu/core/known/depths", test_depths);
    g_test_add_func("/pmu/core/known/cachegrind", test_cachegrind);
    g_test_add_func("/pmu/core/known/cycles", test_cycles);
    g_test_add_func("/pmu/core/known/stalls", test_stalls);
    g_test_add_func("/pmu/core/known/refused/caches", test_refused_caches);
    g_test_add_func("/pmu/core/known/refused/others", test_refused_others);
    g_test_add_func("/pmu/core/known/presets", test_presets);
    return g_test_run();
}
