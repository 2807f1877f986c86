/*
 * Performance monitoring unit: the prediction of branches
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "entry.h"
#include "predictor.h"

/* Distances from a kind of branch to its tallies */
#define BRANCHES    (PMU_CORE_BRANCHES_NOT_TAKEN - PMU_CORE_NOT_TAKEN)
#define MISPREDICTS (PMU_CORE_NOT_TAKEN_MISSES - PMU_CORE_NOT_TAKEN)

/*
 * Conditional branches
 */

/**
 * struct Conditions - the state of conditional branches while some are read
 * @counters: as in PmuCorePredictor
 * @history: likewise, with all bits that it was ever given
 * @history_mask: those that select a counter
 * @places: by how many bits of an address they are followed
 * @taken: how many branches were taken
 * @wrong: how many were predicted wrong
 * @taken_wrong: how many of these were taken
 */
typedef struct Conditions {
    uint8_t *counters;
    uint64_t history;
    uint64_t history_mask;
    uint32_t places;
    uint32_t taken;
    uint32_t wrong;
    uint32_t taken_wrong;
} Conditions;

/* What follows a counter from 0 to 3; index: twice that, and 1 if taken */
static const uint8_t next_counter[] = { 0, 1, 0, 2, 1, 3, 2, 3 };

/*
 * Without a branch of the host's, which would be as hard to foresee.
 *
 * Returns: whether the prediction was wrong.
 */
static inline bool condition(Conditions *c, uint32_t from, bool taken)
{
    uint32_t index = (c->history & c->history_mask) << c->places
                     | (from & ((1u << c->places) - 1));
    unsigned counter = c->counters[index];
    bool wrong = counter >> 1 ^ taken;

    c->counters[index] = next_counter[(counter << 1 | taken) & 7];
    c->history = c->history << 1 | taken;
    c->taken += taken;
    c->wrong += wrong;
    c->taken_wrong += wrong & taken;
    return wrong;
}

/* @count: how many conditional branches there were */
static void end_conditions(const Conditions *c, const PmuCorePredictor *p,
                           uint32_t count, uint64_t *tallies)
{
    *p->history = c->history;
    tallies[PMU_CORE_BRANCHES_NOT_TAKEN] += count - c->taken;
    tallies[PMU_CORE_BRANCHES_TAKEN] += c->taken;
    tallies[PMU_CORE_NOT_TAKEN_MISSES] += c->wrong - c->taken_wrong;
    tallies[PMU_CORE_TAKEN_MISSES] += c->taken_wrong;
}

/*
 * Other branches
 */

static bool indirect(const PmuCorePredictor *p, const PmuCoreEntry *entry)
{
    uint32_t index = entry->from >> p->shift & (p->geometry->targets - 1);
    bool wrong = p->targets[index] != entry->address;

    p->targets[index] = entry->address;
    return wrong;
}

/* A call replaces the oldest one if the ring is full. */
static void call(const PmuCorePredictor *p, uint64_t after)
{
    unsigned depth = p->geometry->returns;

    if (depth) {
        p->returns[*p->next] = after;
        *p->next = (*p->next + 1) % depth;
        *p->held += *p->held < depth;
    }
}

static bool goes_back(const PmuCorePredictor *p, uint64_t to)
{
    unsigned depth = p->geometry->returns;

    if (!depth) {
        return false;
    }
    if (!*p->held) {
        return true;
    }
    --*p->held;
    *p->next = (*p->next + depth - 1) % depth;
    return p->returns[*p->next] != to;
}

static void other(const PmuCorePredictor *p, PmuCoreKind kind,
                  PmuCoreEntry *entry, uint64_t *tallies)
{
    bool wrong;

    if (kind == PMU_CORE_CALL) {
        call(p, entry->address);
        return;
    }
    wrong = kind == PMU_CORE_RETURN ? goes_back(p, entry->address)
                                    : indirect(p, entry);
    tallies[kind + BRANCHES]++;
    tallies[kind + MISPREDICTS] += wrong;
    entry->from = wrong ? PMU_CORE_MISPREDICTED : 0;
}

PmuCoreEntry *pmu_core_learn(const PmuCorePredictor *p, PmuCoreEntry *entry,
                             const PmuCoreEntry *end, uint64_t *tallies)
{
    Conditions c = {
        .counters = p->counters,
        .history = *p->history,
        .history_mask = (1u << p->geometry->history) - 1,
        .places = p->geometry->places,
    };
    uint32_t conditions = 0;

    for (; entry < end && pmu_core_is_branch(entry); entry++) {
        PmuCoreKind kind = pmu_core_kind_of(entry);

        if (G_LIKELY(kind <= PMU_CORE_TAKEN)) {
            entry->from = condition(&c, entry->from >> p->shift,
                                    kind == PMU_CORE_TAKEN)
                          * PMU_CORE_MISPREDICTED;
            conditions++;
        } else {
            other(p, kind, entry, tallies);
        }
    }
    end_conditions(&c, p, conditions, tallies);
    return entry;
}
