/*
 * Performance monitoring unit: the cost of a core's misses
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/pmu-core.h"

/* Of the kinds of access from @from to before @to */
static void set_accesses(PmuCoreWeights *w, unsigned from, unsigned to,
                         const PmuCorePenalties *penalties)
{
    for (unsigned kind = from; kind < to; kind++) {
        w->of[PMU_CORE_FETCH_L1_MISSES + kind] = penalties->l1;
        w->of[PMU_CORE_FETCH_LAST_MISSES + kind] = penalties->last;
        w->of[PMU_CORE_FETCH_TLB_MISSES + kind] = penalties->tlb;
    }
}

static void set_branches(PmuCoreWeights *w, const PmuCorePenalties *penalties)
{
    for (unsigned t = PMU_CORE_NOT_TAKEN_MISSES; t < PMU_CORE_TALLIES; t++) {
        w->of[t] = penalties->branch;
    }
}

PmuCoreWeights pmu_core_cycles(const PmuCorePenalties *penalties)
{
    PmuCoreWeights cycles = { .of[PMU_CORE_FETCHES] = penalties->insn };

    set_accesses(&cycles, PMU_CORE_FETCH, PMU_CORE_ACCESSES, penalties);
    set_branches(&cycles, penalties);
    return cycles;
}

PmuCoreWeights pmu_core_stalled_cycles(const PmuCorePenalties *penalties,
                                       PmuCoreStall stall)
{
    PmuCoreWeights cycles = { };

    switch (stall) {
    case PMU_CORE_SPECULATION:
        set_branches(&cycles, penalties);
        break;
    case PMU_CORE_FRONTEND:
        set_accesses(&cycles, PMU_CORE_FETCH, PMU_CORE_LOAD, penalties);
        break;
    default:
        set_accesses(&cycles, PMU_CORE_LOAD, PMU_CORE_ACCESSES, penalties);
        break;
    }
    return cycles;
}

#define LATENCY_OF_HIT 4

static uint64_t cost_of_caches(const PmuCorePenalties *penalties,
                               uint32_t outcome)
{
    return (outcome & PMU_CORE_L1_MISSED ? (uint64_t)penalties->l1 : 0)
           + (outcome & PMU_CORE_LAST_MISSED ? penalties->last : 0);
}

uint64_t pmu_core_latency(const PmuCorePenalties *penalties, uint32_t outcome)
{
    return LATENCY_OF_HIT + cost_of_caches(penalties, outcome);
}

/* A call is never predicted wrong, and is left as it was. */
uint64_t pmu_core_cost(const PmuCorePenalties *penalties,
                       const PmuCoreEntry *entry)
{
    bool is_call = pmu_core_kind_of(entry) == PMU_CORE_CALL;
    uint32_t outcome = is_call ? 0 : entry->from;

    return cost_of_caches(penalties, outcome)
           + (outcome & PMU_CORE_TLB_MISSED ? penalties->tlb : 0)
           + (outcome & PMU_CORE_MISPREDICTED ? penalties->branch : 0);
}

uint64_t pmu_core_weigh(const PmuCoreWeights *weights, const uint64_t *tallies)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < PMU_CORE_TALLIES; i++) {
        sum += weights->of[i] * tallies[i];
    }
    return sum;
}

/* An access of a kind adds most if it misses everything. */
static uint64_t most_of_access(const PmuCoreWeights *w, unsigned kind,
                               unsigned count)
{
    return (uint64_t)w->of[PMU_CORE_FETCHES + kind] * count
           + w->of[PMU_CORE_FETCH_L1_MISSES + kind]
           + w->of[PMU_CORE_FETCH_LAST_MISSES + kind]
           + w->of[PMU_CORE_FETCH_TLB_MISSES + kind];
}

static uint64_t most_of_branch(const PmuCoreWeights *w, unsigned kind)
{
    return (uint64_t)w->of[PMU_CORE_BRANCHES_NOT_TAKEN + kind]
           + w->of[PMU_CORE_NOT_TAKEN_MISSES + kind];
}

uint64_t pmu_core_safe_entries(const PmuCoreWeights *weights, unsigned insns,
                               uint64_t distance)
{
    uint64_t most = 0;

    for (unsigned kind = 0; kind < PMU_CORE_ACCESSES; kind++) {
        unsigned count = kind == PMU_CORE_FETCH ? insns : 1;

        most = MAX(most, most_of_access(weights, kind, count));
        most = MAX(most, most_of_branch(weights, kind));
    }
    if (!distance) {
        return 0;
    }
    return most ? (distance - 1) / most : UINT64_MAX;
}
