/*
 * Performance monitoring unit: an engine that is driven by hand
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/pmu-manual.h"

static uint64_t manual_tally(void *engine, PmuTally tally, unsigned mode)
{
    PmuManual *m = engine;

    return m->tallies[tally][mode];
}

static PmuTallies manual_timed(void *engine)
{
    const PmuManual *m = engine;

    return m->timed;
}

static void manual_plan(void *engine, PmuTallies wanted, PmuModes modes,
                        const PmuBudgets budgets)
{
    PmuManual *m = engine;

    m->wanted = wanted;
    m->modes = modes;
    memcpy(m->budgets, budgets, sizeof(m->budgets));
    memset(m->used, 0, sizeof(m->used));
    m->plans++;
}

const PmuEngineOps pmu_manual_ops = {
    .tally = manual_tally,
    .timed = manual_timed,
    .plan = manual_plan,
};

static void fold(PmuManual *m, bool timed)
{
    if (timed) {
        pmu_share_fold_all(m->share);
    } else {
        pmu_share_fold(m->share, 0);
    }
}

void pmu_manual_count(PmuManual *m, PmuTally tally, unsigned mode,
                      uint64_t count)
{
    bool timed = m->timed >> tally & 1;
    bool stands_still = !timed && m->wanted && !(m->modes >> mode & 1);
    uint64_t *used = &m->used[tally][timed ? 0 : mode];

    while (count > 0) {
        bool wanted = m->wanted & PMU_TALLY_BIT(tally);
        uint64_t budget = m->budgets[tally][mode];
        /* A timed tally may have used up more in another mode. */
        uint64_t left = budget > *used ? budget - *used : 0;
        uint64_t step = wanted ? MIN(count, left) : count;

        m->events += step;
        m->tallies[tally][mode] += stands_still ? 0 : step;
        *used += step;
        count -= step;
        if (wanted && step == left) {
            fold(m, timed);
        }
    }
}
