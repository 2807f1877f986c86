/*
 * Benchmark: what a core takes to see an entry of its log
 *
 * For each pattern of entries, logs as long as those of translated code are
 * written and shown to a core again and again; only the latter is timed.  In
 * nanoseconds for each entry, the time is printed that a tenth of the logs did
 * not exceed, which a busy host does not change much, and the median; then how
 * many of the entries missed the first level, the last level and the TLB, or
 * were predicted wrong.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include <stdlib.h>
#include <time.h>
#include "hw/pmu/pmu-core.h"

#define LOG     512
#define LOGS    20001

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

/* Each line eight times: one access of eight is not of the first line. */
static PmuCoreEntry walk(uint64_t n)
{
    return access_to(PMU_CORE_LOAD, n * 8 % 16384);
}

static PmuCoreEntry same(uint64_t n)
{
    return access_to(PMU_CORE_LOAD, n % 8 * 8);
}

/* Two lines of a set, in turns: the second one is always the one. */
static PmuCoreEntry second(uint64_t n)
{
    return access_to(PMU_CORE_LOAD, n % 2 * 4096);
}

/* Eight lines of a set, in turns: always the one that was used last. */
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

static const struct {
    const char *name;
    PmuCoreEntry (*entry)(uint64_t n);
} patterns[] = {
    { "hit, same line", same },
    { "hit, 8 bytes on", walk },
    { "hit, second of set", second },
    { "hit, eighth of set", eighth },
    { "loop of 5 entries", loop },
    { "miss L1, 64 bytes on", miss_first },
    { "miss all, 64 bytes on", miss_last },
    { "miss all, scattered", miss_scattered },
    { "branch, period 7", predicted },
    { "branch, random", unpredictable },
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

/* All logs, the fastest first: LOGS times */
static const int64_t *show_logs(PmuCore *core, PmuCoreEntry (*entry)(uint64_t),
                        uint64_t *tallies)
{
    static int64_t times[LOGS];
    PmuCoreEntry log[LOG];
    uint64_t n = 0;

    for (unsigned i = 0; i < LOGS; i++) {
        int64_t from;

        for (unsigned j = 0; j < LOG; j++) {
            log[j] = entry(n++);
        }
        from = now();
        pmu_core_see(core, log, LOG, tallies);
        times[i] = now() - from;
    }
    qsort(times, LOGS, sizeof(times[0]), compare);
    return times;
}

static double percent(const uint64_t *tallies, PmuCoreTally tally)
{
    return 100.0 * tallies[tally] / ((double)LOG * LOGS);
}

static void measure(const PmuCorePreset *preset, unsigned pattern)
{
    PmuCore *core = pmu_core_new(&preset->geometry);
    uint64_t tallies[PMU_CORE_TALLIES] = {};
    const int64_t *times = show_logs(core, patterns[pattern].entry, tallies);

    g_print("%-23s %6.2f %6.2f %7.1f %7.1f %7.1f %7.1f\n",
            patterns[pattern].name,
            (double)times[LOGS / 10] / LOG, (double)times[LOGS / 2] / LOG,
            percent(tallies, PMU_CORE_LOAD_L1_MISSES),
            percent(tallies, PMU_CORE_LOAD_LAST_MISSES),
            percent(tallies, PMU_CORE_LOAD_TLB_MISSES),
            percent(tallies, PMU_CORE_NOT_TAKEN_MISSES)
            + percent(tallies, PMU_CORE_TAKEN_MISSES));
    pmu_core_free(core);
}

int main(int argc, char **argv)
{
    const PmuCorePreset *preset;

    preset = pmu_core_find_preset(argc > 1 ? argv[1] : "skylake");
    if (!preset) {
        g_printerr("Usage: %s [PRESET]\n", argv[0]);
        return 1;
    }
    g_print("%-23s %6s %6s %7s %7s %7s %7s\n", preset->name, "ns", "median",
            "L1 %", "last %", "TLB %", "wrong %");
    for (unsigned i = 0; i < G_N_ELEMENTS(patterns); i++) {
        measure(preset, i);
    }
    return 0;
}
