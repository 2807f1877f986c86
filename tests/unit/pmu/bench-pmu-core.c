/*
 * Benchmark: the time in which a core sees an entry of its log
 *
 * For each pattern of entries, this writes logs as long as the logs of
 * translated code, and shows them to a core again and again.  Only the latter
 * is timed, and the median of the logs is used.  Each round has all patterns,
 * as a busy host is slow for seconds.  The output has the nanoseconds for each
 * entry in the best round and in the worst one; then how many of the entries
 * missed the first level, the last level and the TLB, or were predicted wrong.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include <stdlib.h>
#include <time.h>
#include "hw/pmu/pmu-core.h"

#define LOG     512
#define LOGS    4001
#define ROUNDS  10

static PmuCoreEntry access_to(PmuCoreKind kind, uint64_t address)
{
    return (PmuCoreEntry) {
        .address = address, .what = pmu_core_what(kind, 8, 1),
    };
}

static PmuCoreEntry branch(bool taken, uint32_t from)
{
    return (PmuCoreEntry) {
        .what = pmu_core_what(taken ? PMU_CORE_TAKEN : PMU_CORE_NOT_TAKEN,
                              0, 0),
        .from = from,
    };
}

/* Some number for each n, always the same */
static uint64_t scattered(uint64_t n)
{
    for (unsigned i = 0; i < 3; i++) {
        n = (n ^ n >> 31) * 0x9e3779b97f4a7c15 + 1;
    }
    return n >> 8;
}

/* Each line eight times: one access of eight is not to the last used line. */
static PmuCoreEntry walk(uint64_t n)
{
    return access_to(PMU_CORE_LOAD, n * 8 % 16384);
}

static PmuCoreEntry same(uint64_t n)
{
    return access_to(PMU_CORE_LOAD, n % 8 * 8);
}

/* Two lines of a set, in turns: each access is to the second last used line. */
static PmuCoreEntry second(uint64_t n)
{
    return access_to(PMU_CORE_LOAD, n % 2 * 4096);
}

/* Eight lines of a set, in turns: each access is to the oldest line. */
static PmuCoreEntry eighth(uint64_t n)
{
    return access_to(PMU_CORE_LOAD, n % 8 * 4096);
}

static PmuCoreEntry miss_first(uint64_t n)
{
    return access_to(PMU_CORE_LOAD, n * 64 % (1 << 20));
}

static PmuCoreEntry miss_last(uint64_t n)
{
    return access_to(PMU_CORE_LOAD, n * 64 % (1 << 28));
}

static PmuCoreEntry miss_scattered(uint64_t n)
{
    return access_to(PMU_CORE_LOAD, scattered(n) % (1 << 28));
}

/* A loop: a block's fetch, two loads, a store, its branch */
static PmuCoreEntry loop(uint64_t n)
{
    uint64_t turn = n / 5;

    switch (n % 5) {
    case 0:
        return (PmuCoreEntry) {
            .address = 0x400010, .what = pmu_core_what(PMU_CORE_FETCH, 4, 8),
        };
    case 1:
        return access_to(PMU_CORE_LOAD, 0x600000 + turn * 8 % 8192);
    case 2:
        return access_to(PMU_CORE_LOAD, 0x7ffff0);
    case 3:
        return access_to(PMU_CORE_STORE, 0x610400 + turn * 8 % 8192);
    default:
        return branch(turn % 1000, 0x40002e);
    }
}

static PmuCoreEntry predicted(uint64_t n)
{
    return branch(n % 7, 0x40002e);
}

static PmuCoreEntry unpredictable(uint64_t n)
{
    return branch(scattered(n) & 1, 0x40002e);
}

static struct {
    const char *name;
    PmuCoreEntry (*entry)(uint64_t n);
    double best;
    double worst;
    uint64_t tallies[PMU_CORE_TALLIES];
} patterns[] = {
    { .name = "hit, same line", .entry = same },
    { .name = "hit, 8 bytes on", .entry = walk },
    { .name = "hit, second of set", .entry = second },
    { .name = "hit, eighth of set", .entry = eighth },
    { .name = "loop of 5 entries", .entry = loop },
    { .name = "miss L1, 64 bytes on", .entry = miss_first },
    { .name = "miss all, 64 bytes on", .entry = miss_last },
    { .name = "miss all, scattered", .entry = miss_scattered },
    { .name = "branch, period 7", .entry = predicted },
    { .name = "branch, random", .entry = unpredictable },
};

static int compare(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;

    return one < other ? -1 : one > other;
}

static int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

/* Returns: nanoseconds for each entry. */
static double show_logs(PmuCore *core, unsigned pattern)
{
    static int64_t times[LOGS];
    PmuCoreEntry log[LOG];
    uint64_t n = 0;

    for (unsigned i = 0; i < LOGS; i++) {
        int64_t from;

        for (unsigned j = 0; j < LOG; j++) {
            log[j] = patterns[pattern].entry(n++);
        }
        from = now();
        pmu_core_see(core, log, LOG, patterns[pattern].tallies);
        times[i] = now() - from;
    }
    qsort(times, LOGS, sizeof(times[0]), compare);
    return (double)times[LOGS / 2] / LOG;
}

static void measure(const PmuCoreGeometry *geometry, unsigned pattern)
{
    PmuCore *core = pmu_core_new(geometry);
    double ns = show_logs(core, pattern);
    double best = patterns[pattern].best;

    patterns[pattern].best = best ? MIN(best, ns) : ns;
    patterns[pattern].worst = MAX(patterns[pattern].worst, ns);
    pmu_core_free(core);
}

static double percent(unsigned pattern, PmuCoreTally tally)
{
    return 100.0 * patterns[pattern].tallies[tally]
           / ((double)LOG * LOGS * ROUNDS);
}

static void print(unsigned i)
{
    g_print("%-23s %6.2f %6.2f %7.1f %7.1f %7.1f %7.1f\n", patterns[i].name,
            patterns[i].best, patterns[i].worst,
            percent(i, PMU_CORE_LOAD_L1_MISSES),
            percent(i, PMU_CORE_LOAD_LAST_MISSES),
            percent(i, PMU_CORE_LOAD_TLB_MISSES),
            percent(i, PMU_CORE_NOT_TAKEN_MISSES)
            + percent(i, PMU_CORE_TAKEN_MISSES));
}

int main(int argc, char **argv)
{
    const PmuCorePreset *preset;

    preset = pmu_core_find_preset(argc > 1 ? argv[1] : "skylake");
    if (!preset) {
        g_printerr("Usage: %s [PRESET]\n", argv[0]);
        return 1;
    }
    for (unsigned i = 0; i < ROUNDS * G_N_ELEMENTS(patterns); i++) {
        measure(&preset->geometry, i % G_N_ELEMENTS(patterns));
    }
    g_print("%-23s %6s %6s %7s %7s %7s %7s\n", preset->name, "ns", "worst",
            "L1 %", "last %", "TLB %", "wrong %");
    for (unsigned i = 0; i < G_N_ELEMENTS(patterns); i++) {
        print(i);
    }
    return 0;
}
