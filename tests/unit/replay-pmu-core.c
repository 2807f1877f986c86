/*
 * What a core counts of the accesses that Valgrind's lackey prints
 *
 *   valgrind --tool=lackey --trace-mem=yes --log-fd=1 PROGRAM |
 *       replay-pmu-core PRESET
 *
 * Prints references and misses as Cachegrind does: there, modifies are reads.
 * Instructions are put together as translated code has them, into one entry
 * for each line.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include <stdio.h>
#include "hw/pmu/pmu-core.h"

#define LOG 512

/**
 * struct Replay - a program that is executed
 * @core: where
 * @line: bytes of a line of its instructions
 * @log: what @core has not seen
 * @count: how many entries that has
 * @fetch: the last of them that is a fetch, if @fetched
 * @fetched: whether instructions can be added to it
 * @tallies: what @core has counted
 */
typedef struct Replay {
    PmuCore *core;
    uint64_t line;
    PmuCoreEntry log[LOG];
    unsigned count;
    unsigned fetch;
    bool fetched;
    uint64_t tallies[PMU_CORE_TALLIES];
} Replay;

static void show_log(Replay *r)
{
    pmu_core_see(r->core, r->log, r->count, r->tallies);
    r->count = 0;
    r->fetched = false;
}

static uint64_t last_line(const Replay *r, const PmuCoreEntry *entry)
{
    unsigned bytes = entry->what >> PMU_CORE_SIZE & PMU_CORE_MOST_BYTES;

    return (entry->address + bytes - 1) / r->line;
}

/* Whether an instruction lies where the last fetch has ended */
static bool is_there(const Replay *r, const PmuCoreEntry *entry)
{
    const PmuCoreEntry *fetch = &r->log[r->fetch];

    return r->fetched && fetch->what >> PMU_CORE_COUNT < PMU_CORE_MOST_INSNS
           && entry->address / r->line == last_line(r, fetch)
           && last_line(r, entry) == last_line(r, fetch);
}

static void add(Replay *r, PmuCoreKind kind, const PmuCoreEntry *entry)
{
    if (kind == PMU_CORE_FETCH && is_there(r, entry)) {
        r->log[r->fetch].what += 1u << PMU_CORE_COUNT;
        return;
    }
    if (r->count == LOG) {
        show_log(r);
    }
    if (kind == PMU_CORE_FETCH) {
        r->fetch = r->count;
        r->fetched = true;
    }
    r->log[r->count++] = *entry;
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

static void print(const char *what, const uint64_t *tally)
{
    g_print("%-5s I %10" PRIu64 "  D %10" PRIu64 " rd + %10" PRIu64 " wr\n",
            what, tally[PMU_CORE_FETCH],
            tally[PMU_CORE_LOAD] + tally[PMU_CORE_MODIFY],
            tally[PMU_CORE_STORE]);
}

int main(int argc, char **argv)
{
    const PmuCorePreset *preset = argc == 2 ? pmu_core_find_preset(argv[1])
                                            : NULL;
    Replay r = {};
    char line[256];

    if (!preset) {
        g_printerr("Usage: %s PRESET\n", argv[0]);
        return 1;
    }
    r.core = pmu_core_new(&preset->geometry);
    r.line = preset->geometry.l1i.line;
    while (fgets(line, sizeof(line), stdin)) {
        read_line(&r, line);
    }
    show_log(&r);
    print("refs", &r.tallies[PMU_CORE_FETCHES]);
    print("L1", &r.tallies[PMU_CORE_FETCH_L1_MISSES]);
    print("last", &r.tallies[PMU_CORE_FETCH_LAST_MISSES]);
    pmu_core_free(r.core);
    return 0;
}
