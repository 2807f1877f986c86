/*
 * A core's counts of the accesses that Valgrind's lackey prints
 *
 *   valgrind --tool=lackey --trace-mem=yes --log-fd=1 PROGRAM |
 *       replay-pmu-core PRESET
 *
 * Prints references and misses as Cachegrind does: there, modifies are reads.
 * Instructions are put together as translated code has them, into one entry
 * for each line.  The last line says how long the core took, of its thread's
 * time on a CPU.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include <stdio.h>
#include <time.h>
#include "hw/pmu/pmu-core.h"

#define LOG 512u

/**
 * struct Replay - a program that is executed
 * @line: bytes of a line of its instructions
 * @log: of PmuCoreEntry, all that it does
 * @fetch: the last of them that is a fetch
 */
typedef struct Replay {
    uint64_t line;
    GArray *log;
    guint fetch;
} Replay;

static uint64_t last_line(const Replay *r, const PmuCoreEntry *entry)
{
    unsigned bytes = entry->what >> PMU_CORE_SIZE & PMU_CORE_MOST_BYTES;

    return (entry->address + bytes - 1) / r->line;
}

/* Whether an instruction lies where the last fetch has ended */
static bool is_there(const Replay *r, const PmuCoreEntry *entry)
{
    const PmuCoreEntry *fetch = &g_array_index(r->log, PmuCoreEntry, r->fetch);

    return r->log->len && fetch->what >> PMU_CORE_COUNT < PMU_CORE_MOST_INSNS
           && entry->address / r->line == last_line(r, fetch)
           && last_line(r, entry) == last_line(r, fetch);
}

static void add(Replay *r, PmuCoreKind kind, const PmuCoreEntry *entry)
{
    if (kind == PMU_CORE_FETCH && is_there(r, entry)) {
        g_array_index(r->log, PmuCoreEntry, r->fetch).what +=
            1u << PMU_CORE_COUNT;
        return;
    }
    if (kind == PMU_CORE_FETCH) {
        r->fetch = r->log->len;
    }
    g_array_append_val(r->log, *entry);
}

static void read_line(Replay *r, const char *line)
{
    static const char kinds[] = "ILSM";
    PmuCoreEntry entry = {};
    const char *kind;
    unsigned bytes;
    char letter;

    if (sscanf(line, " %c %" SCNx64 ",%u", &letter, &entry.address,
               &bytes) != 3) {
        return;
    }
    kind = strchr(kinds, letter);
    if (kind && bytes && bytes <= PMU_CORE_MOST_BYTES) {
        entry.what = pmu_core_what(kind - kinds, bytes, 1);
        add(r, kind - kinds, &entry);
    }
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static void show_logs(const Replay *r, PmuCore *core, uint64_t *tallies)
{
    for (guint i = 0; i < r->log->len; i += LOG) {
        pmu_core_see(core, &g_array_index(r->log, PmuCoreEntry, i),
                     MIN(LOG, r->log->len - i), tallies);
    }
}

static void print(const char *what, const uint64_t *tally)
{
    g_print("%-5s I %10" PRIu64 "  D %10" PRIu64 " rd + %10" PRIu64 " wr\n",
            what, tally[PMU_CORE_FETCH],
            tally[PMU_CORE_LOAD] + tally[PMU_CORE_MODIFY],
            tally[PMU_CORE_STORE]);
}

static void replay(const Replay *r, const PmuCoreGeometry *geometry)
{
    PmuCore *core = pmu_core_new(geometry);
    uint64_t tallies[PMU_CORE_TALLIES] = {};
    double from = now(), time;

    show_logs(r, core, tallies);
    time = now() - from;
    print("refs", &tallies[PMU_CORE_FETCHES]);
    print("L1", &tallies[PMU_CORE_FETCH_L1_MISSES]);
    print("last", &tallies[PMU_CORE_FETCH_LAST_MISSES]);
    g_print("%u entries, %.2f ns each, %.2f ns for each instruction\n",
            r->log->len, time / r->log->len, time / tallies[PMU_CORE_FETCHES]);
    pmu_core_free(core);
}

int main(int argc, char **argv)
{
    const PmuCorePreset *preset = argc == 2 ? pmu_core_find_preset(argv[1])
                                            : NULL;
    Replay r = { .log = g_array_new(false, false, sizeof(PmuCoreEntry)) };
    char line[256];

    if (!preset) {
        g_printerr("Usage: %s PRESET\n", argv[0]);
        return 1;
    }
    r.line = preset->geometry.l1i.line;
    while (fgets(line, sizeof(line), stdin)) {
        read_line(&r, line);
    }
    replay(&r, &preset->geometry);
    g_array_free(r.log, true);
    return 0;
}
