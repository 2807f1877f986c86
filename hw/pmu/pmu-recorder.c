/*
 * Performance monitoring unit: the last branches that were taken
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/pmu-recorder.h"

#define SLOT sizeof(uint64_t)

static void set_slot(PmuRecorder *r, unsigned slot, const PmuBranch *branch)
{
    r->from[slot] = branch->from;
    r->to[slot] = branch->to;
    r->kind[slot] = branch->kind;
    r->insns[slot] = branch->insns;
}

void pmu_recorder_clear(PmuRecorder *r)
{
    const PmuBranch none = {};
    unsigned slot;

    for (slot = 0; slot < PMU_RECORDER_MAX; slot++) {
        set_slot(r, slot, &none);
    }
    r->next = 0;
    r->since = 0;
}

void pmu_recorder_init(PmuRecorder *r, unsigned depth)
{
    assert(depth && depth <= PMU_RECORDER_MAX && !(depth & (depth - 1)));
    pmu_recorder_clear(r);
    r->last = (depth - 1) * SLOT;
    memset(r->wanted, 0, sizeof(r->wanted));
    r->call_stack = false;
}

void pmu_recorder_push(PmuRecorder *r, const PmuBranch *branch)
{
    set_slot(r, r->next / SLOT, branch);
    r->next = (r->next + SLOT) & r->last;
}

static void pop(PmuRecorder *r)
{
    const PmuBranch none = {};

    r->next = (r->next - SLOT) & r->last;
    set_slot(r, r->next / SLOT, &none);
}

static bool is_return(PmuBranchKind kind)
{
    return PMU_BRANCHES_OF(PMU_BRANCH_RETURN) >> kind & 1;
}

void pmu_recorder_note(PmuRecorder *r, unsigned mode, const PmuBranch *branch)
{
    PmuBranch record = *branch;

    if (!(r->wanted[mode] >> branch->kind & 1)) {
        return;
    }
    record.insns = r->since;
    r->since = 0;
    if (r->call_stack && is_return(branch->kind)) {
        pop(r);
    } else {
        pmu_recorder_push(r, &record);
    }
}

PmuBranch pmu_recorder_get(const PmuRecorder *r, unsigned age)
{
    unsigned slot = ((r->next - (age + 1) * SLOT) & r->last) / SLOT;

    if (age > r->last / SLOT) {
        return (PmuBranch) {};
    }
    return (PmuBranch) {
        .from = r->from[slot], .to = r->to[slot], .kind = r->kind[slot],
        .insns = r->insns[slot],
    };
}
