/*
 * Fuzzer of the virtual PMU: a reference of a modelled core
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "core-reference.h"

#define LINE 64
#define PAGE 4096

#define L1_CYCLES     3
#define LAST_CYCLES   7
#define TLB_CYCLES    2
#define BRANCH_CYCLES 5

/* A line or page, and the time when it was used last, from 1 on */
typedef struct Place {
    uint64_t number, used;
} Place;

/* Eight sets of four places, or fewer of either */
typedef struct Cache {
    Place places[8][4];
} Cache;

typedef struct Core {
    Cache l1i, l1d, last, itlb, dtlb;
    uint64_t now;
    unsigned counters[4][4], history;
    uint64_t targets[4], returns[2];
    unsigned held;
} Core;

static Core cores[2], remembered[2];

static bool touch_one(Core *c, Cache *cache, unsigned sets, unsigned ways,
                      uint64_t number)
{
    Place *set = cache->places[number % sets], *place = set;
    bool found = false;

    for (unsigned way = 0; way < ways && !found; way++) {
        found = set[way].used && set[way].number == number;
        if (found || set[way].used < place->used) {
            place = &set[way];
        }
    }
    *place = (Place) { number, ++c->now };
    return !found;
}

static bool touch(Core *c, Cache *cache, unsigned sets, unsigned ways,
                  uint64_t address, unsigned bytes, unsigned size)
{
    bool missed = false;

    for (uint64_t n = address / size; n <= (address + bytes - 1) / size; n++) {
        missed |= touch_one(c, cache, sets, ways, n);
    }
    return missed;
}

/* The tallies of misses of a kind of access; modifies are loads. */
typedef struct Misses {
    PmuTally tlb, l1, last;
} Misses;

static const Misses misses_of[] = {
    [PMU_CORE_FETCH] = { PMU_TALLY_ITLB_MISSES, PMU_TALLY_L1I_MISSES,
                         PMU_TALLY_LLC_FETCH_MISSES },
    [PMU_CORE_LOAD] = { PMU_TALLY_DTLB_LOAD_MISSES, PMU_TALLY_L1D_LOAD_MISSES,
                        PMU_TALLY_LLC_LOAD_MISSES },
    [PMU_CORE_STORE] = { PMU_TALLY_DTLB_STORE_MISSES,
                         PMU_TALLY_L1D_STORE_MISSES,
                         PMU_TALLY_LLC_STORE_MISSES },
};

static void stall(RefTimes *t, PmuTally cause, unsigned cycles)
{
    t->of[cause] += cycles;
    t->of[PMU_TALLY_CYCLES] += cycles;
    t->of[PMU_TALLY_REF_CYCLES] += cycles;
}

static void access_last(Core *c, RefTimes *t, PmuCoreKind kind,
                        uint64_t address, unsigned bytes, PmuTally cause)
{
    t->of[PMU_TALLY_LLC_REFS]++;
    if (touch(c, &c->last, 8, 4, address, bytes, LINE)) {
        t->of[PMU_TALLY_LLC_MISSES]++;
        t->of[misses_of[kind].last]++;
        stall(t, cause, LAST_CYCLES);
    } else if (kind == PMU_CORE_LOAD) {
        t->of[PMU_TALLY_LLC_LOAD_HITS]++;
    }
}

static void access_memory(Core *c, RefTimes *t, PmuCoreKind kind,
                          uint64_t address, unsigned bytes)
{
    bool fetch = kind == PMU_CORE_FETCH;
    PmuTally cause = fetch ? PMU_TALLY_FRONTEND_CYCLES
                           : PMU_TALLY_BACKEND_CYCLES;

    if (touch(c, fetch ? &c->itlb : &c->dtlb, fetch ? 1 : 2, 2, address, bytes,
              PAGE)) {
        t->of[misses_of[kind].tlb]++;
        stall(t, cause, TLB_CYCLES);
    }
    if (touch(c, fetch ? &c->l1i : &c->l1d, 4, 2, address, bytes, LINE)) {
        t->of[misses_of[kind].l1]++;
        t->of[PMU_TALLY_L1D_MISSES] += !fetch;
        stall(t, cause, L1_CYCLES);
        access_last(c, t, kind, address, bytes, cause);
    } else if (kind == PMU_CORE_LOAD) {
        t->of[PMU_TALLY_L1D_LOAD_HITS]++;
    }
}

static bool wrong_condition(Core *c, uint64_t from, bool taken)
{
    unsigned *counter = &c->counters[c->history & 3][from & 3];
    bool wrong = (*counter >= 2) != taken;

    if (taken) {
        *counter = MIN(*counter + 1, 3);
    } else {
        *counter -= *counter > 0;
    }
    c->history = c->history << 1 | taken;
    return wrong;
}

static bool wrong_target(Core *c, uint64_t from, uint64_t to)
{
    bool wrong = c->targets[from & 3] != to;

    c->targets[from & 3] = to;
    return wrong;
}

static void call(Core *c, uint64_t after)
{
    c->returns[1] = c->returns[0];
    c->returns[0] = after;
    c->held = MIN(c->held + 1, 2);
}

static bool wrong_return(Core *c, uint64_t to)
{
    bool wrong = !c->held || c->returns[0] != to;

    c->returns[0] = c->returns[1];
    c->held -= c->held > 0;
    return wrong;
}

static void branch(Core *c, RefTimes *t, const FuzzInsn *insn)
{
    PmuTally what;
    bool wrong;

    switch (insn->branch) {
    case PMU_CORE_NOT_TAKEN:
    case PMU_CORE_TAKEN:
        what = PMU_TALLY_COND_MISSES;
        wrong = wrong_condition(c, insn->pc, insn->branch == PMU_CORE_TAKEN);
        break;
    case PMU_CORE_INDIRECT:
        what = PMU_TALLY_INDIRECT_MISSES;
        wrong = wrong_target(c, insn->pc, insn->to);
        break;
    case PMU_CORE_RETURN:
        what = PMU_TALLY_RETURN_MISSES;
        wrong = wrong_return(c, insn->to);
        break;
    case PMU_CORE_CALL:
        call(c, insn->to);
        return;
    default:
        return;
    }
    t->of[what] += wrong;
    t->of[PMU_TALLY_BRANCH_MISSES] += wrong;
    stall(t, PMU_TALLY_SPECULATION_CYCLES, wrong * BRANCH_CYCLES);
}

RefTimes ref_core_step(unsigned core, const FuzzInsn *insn)
{
    Core *c = &cores[core];
    RefTimes t = { };

    access_memory(c, &t, PMU_CORE_FETCH, insn->pc, FUZZ_INSN_BYTES);
    if (insn->access != PMU_CORE_FETCH) {
        access_memory(c, &t, insn->access == PMU_CORE_STORE ? PMU_CORE_STORE
                                                            : PMU_CORE_LOAD,
                      insn->data, FUZZ_DATA_BYTES);
    }
    branch(c, &t, insn);
    return t;
}

void ref_core_reset(void)
{
    memset(cores, 0, sizeof(cores));
}

void ref_core_remember(void)
{
    memcpy(remembered, cores, sizeof(cores));
}

void ref_core_recall(void)
{
    memcpy(cores, remembered, sizeof(cores));
}
