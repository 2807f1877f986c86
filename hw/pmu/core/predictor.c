/*
 * Performance monitoring unit: the prediction of branches
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "predictor.h"

static uint32_t low_bits(uint64_t value, unsigned bits)
{
    return value & ((1u << bits) - 1);
}

static bool condition(const PmuCorePredictor *p, uint32_t from, bool taken)
{
    const PmuCoreGeometry *g = p->geometry;
    uint32_t index = low_bits(*p->history, g->history) << g->places
                     | low_bits(from >> p->shift, g->places);
    uint8_t *counter = &p->counters[index];
    bool wrong = (*counter >= 2) != taken;

    if (taken) {
        *counter += *counter < 3;
    } else {
        *counter -= *counter > 0;
    }
    *p->history = *p->history << 1 | taken;
    return wrong;
}

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

bool pmu_core_predict(const PmuCorePredictor *p, PmuCoreKind kind,
                      const PmuCoreEntry *entry)
{
    switch (kind) {
    case PMU_CORE_NOT_TAKEN:
    case PMU_CORE_TAKEN:
        return condition(p, entry->from, kind == PMU_CORE_TAKEN);
    case PMU_CORE_INDIRECT:
        return indirect(p, entry);
    case PMU_CORE_RETURN:
        return goes_back(p, entry->address);
    default:
        call(p, entry->address);
        return false;
    }
}
