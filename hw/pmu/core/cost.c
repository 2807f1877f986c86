/*
 * Performance monitoring unit: the cost of a core's misses
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/pmu-core.h"

static void set_each(PmuCoreWeights *w, PmuCoreTally first, uint32_t weight)
{
    for (unsigned i = 0; i < PMU_CORE_ACCESSES; i++) {
        w->of[first + i] = weight;
    }
}

PmuCoreWeights pmu_core_cycles(const PmuCorePenalties *penalties)
{
    PmuCoreWeights cycles = { .of[PMU_CORE_FETCHES] = penalties->insn };

    set_each(&cycles, PMU_CORE_FETCH_L1_MISSES, penalties->l1);
    set_each(&cycles, PMU_CORE_FETCH_LAST_MISSES, penalties->last);
    set_each(&cycles, PMU_CORE_FETCH_TLB_MISSES, penalties->tlb);
    set_each(&cycles, PMU_CORE_NOT_TAKEN_MISSES, penalties->branch);
    return cycles;
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
