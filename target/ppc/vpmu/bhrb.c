/*
 * Power virtual PMU: the branch history rolling buffer
 *
 * A branch that the recorder remembers is one entry, its address, or two: the
 * target of an indirect branch, and then its address.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "cpu.h"
#include "system/tcg.h"
#include "freeze.h"
#include "internal.h"

/* This entry is of a branch that was predicted wrong. */
#define MISPREDICTED 1
/* This entry is the target of the branch in the next one. */
#define TARGET 2

#define PRIVILEGED \
    (1u << PPC_VPMU_MODE_PRIVILEGED \
     | 1u << (PPC_VPMU_MODE_PRIVILEGED | PPC_VPMU_MODE_HV))

#define INDIRECT \
    (PMU_BRANCHES_OF(PMU_BRANCH_INDIRECT_JUMP) \
     | PMU_BRANCHES_OF(PMU_BRANCH_INDIRECT_CALL) \
     | PMU_BRANCHES_OF(PMU_BRANCH_RETURN))

static bool has_recorder(CPUPPCState *env)
{
    return env_archcpu(env)->vpmu;
}

/* The recorder, which has read all branches up to now */
static PmuRecorder *recorder(CPUPPCState *env)
{
    if (tcg_enabled()) {
        pmu_tcg_see_branches(env_cpu(env));
    }
    return &env_cpu(env)->pmu->recorder;
}

/*
 * Filters
 */

/*
 * As Power ISA 3.1 has it.  In earlier ones, 2 and 3 were other filters, in
 * which unconditional indirect branches have no address, as
 * docs/system/vpmu-branch-records.rst describes.
 */
static PmuBranchKinds filter(const CPUPPCState *env)
{
    static const PmuBranchKinds kinds[] = {
        [IFM_ALL]         = ~PMU_BRANCHES_OF(PMU_BRANCH_FAR),
        [IFM_CALLS]       = PMU_BRANCHES_OF(PMU_BRANCH_CALL)
                            | PMU_BRANCHES_OF(PMU_BRANCH_INDIRECT_CALL),
        [IFM_INDIRECT]    = PMU_BRANCHES_OF(PMU_BRANCH_INDIRECT_JUMP)
                            | PMU_BRANCHES_OF(PMU_BRANCH_RETURN),
        [IFM_CONDITIONAL] = PMU_BRANCHES_CONDITIONAL,
    };

    return kinds[extract64(env->spr[SPR_POWER_MMCRA], MMCRA_IFM_SHIFT, 2)];
}

/*
 * Entries are written only while alerts are enabled: the branches before an
 * alert are still there when it is handled.  POWER8 and POWER9 then record even
 * if no software reads the buffer: too expensive in translated code.
 */
static PmuModes recorded_modes(const PpcVPmu *v)
{
    const CPUPPCState *env = &v->cpu->env;
    const PpcVPmuFreeze freeze = { .mmcr0 = env->spr[SPR_POWER_MMCR0] };

    if (!(freeze.mmcr0 & MMCR0_PMAE)
        || v->bhrb_unread == PPC_VPMU_BHRB_UNUSED) {
        return 0;
    }
    if (v->model->records_kernel) {
        return ppc_vpmu_bhrb_modes(&freeze);
    }
    return env->spr[SPR_POWER_MMCRA] & MMCRA_BHRBRD
           ? 0 : ppc_vpmu_bhrb_modes(&freeze) & ~PRIVILEGED;
}

void ppc_vpmu_bhrb_update(PpcVPmu *v)
{
    CPUPPCState *env = &v->cpu->env;
    PmuModes modes = recorded_modes(v);

    for (unsigned mode = 0; mode < PPC_VPMU_NR_MODES; mode++) {
        recorder(env)->wanted[mode] = modes >> mode & 1 ? filter(env) : 0;
    }
    if (v->unit->tcg) {
        pmu_tcg_record(v->unit->tcg, modes ? PMU_TCG_RECORD_BRANCHES
                                           : PMU_TCG_RECORD_NONE);
    }
}

/*
 * Linux clears the buffer before it uses it, and reads it at each alert.  The
 * architecture does not say where the first entry goes, so an offset other than
 * the one after a reset marks a buffer that the guest uses.  The offset is
 * migrated, and the mark with it.
 */
void ppc_vpmu_bhrb_used(CPUPPCState *env)
{
    PpcVPmu *v = env_archcpu(env)->vpmu;

    if (!v) {
        return;
    }
    if (!ppc_vpmu_bhrb_is_used(env)) {
        env->bhrb_offset = sizeof(env->bhrb[0]);
    }
    if (v->bhrb_unread) {
        v->bhrb_unread = 0;
        ppc_vpmu_bhrb_update(v);
    }
}

void ppc_vpmu_far_branch(CPUPPCState *env, uint64_t from)
{
    pmu_tcg_far_branch(env_cpu(env), from, from);
}

/*
 * Entries
 */

static bool is_indirect(PmuBranchKind kind)
{
    return INDIRECT >> kind & 1;
}

uint64_t ppc_vpmu_bhrb_entry(CPUPPCState *env, unsigned n)
{
    unsigned age;

    if (!has_recorder(env)) {
        return 0;
    }
    for (age = 0;; age++) {
        const PmuBranch branch = pmu_recorder_get(recorder(env), age);

        if (is_indirect(branch.kind) && n-- == 0) {
            return branch.to | TARGET
                   | (branch.mispredicted ? MISPREDICTED : 0);
        }
        if (n-- == 0) {
            return branch.from | (branch.mispredicted ? MISPREDICTED : 0);
        }
    }
}

void ppc_vpmu_bhrb_clear(CPUPPCState *env)
{
    if (has_recorder(env)) {
        pmu_recorder_clear(recorder(env));
    }
}

/*
 * Migration: all entries in a ring; bhrb_offset is after the newest one.  What
 * a CPU without a PMU has been sent, it sends on.
 */

bool ppc_vpmu_bhrb_is_used(CPUPPCState *env)
{
    return env->bhrb_offset
           || (has_recorder(env) && pmu_recorder_get(recorder(env), 0).kind);
}

/* The place of entry @n in the stream */
static uint64_t *streamed(CPUPPCState *env, unsigned n)
{
    unsigned next = env->bhrb_offset / sizeof(env->bhrb[0]);

    return &env->bhrb[(next - 1 - n) % BHRB_MAX_NUM_ENTRIES];
}

void ppc_vpmu_bhrb_store(CPUPPCState *env)
{
    for (unsigned n = 0; has_recorder(env) && n < BHRB_MAX_NUM_ENTRIES; n++) {
        *streamed(env, n) = ppc_vpmu_bhrb_entry(env, n);
    }
}

/*
 * Entries @n and @n - 1; the latter may be the target of @n.  Neither the
 * stream nor an entry has other facts about a branch.  Readers do not look at
 * entries after one that is 0.
 */
static PmuBranch loaded_branch(CPUPPCState *env, unsigned n, bool indirect)
{
    uint64_t from = n < BHRB_MAX_NUM_ENTRIES ? *streamed(env, n) : 0;
    uint64_t to = indirect ? *streamed(env, n - 1) : 0;

    return (PmuBranch) {
        .from = from & ~MISPREDICTED,
        .to = to & ~(MISPREDICTED | TARGET),
        .kind = indirect ? PMU_BRANCH_INDIRECT_JUMP : PMU_BRANCH_JUMP,
        .mispredicted = (from | to) & MISPREDICTED,
    };
}

void ppc_vpmu_bhrb_load(CPUPPCState *env)
{
    PmuBranch branches[BHRB_MAX_NUM_ENTRIES];
    unsigned n, count = 0;

    env->bhrb_offset &= (sizeof(env->bhrb) - 1) & -sizeof(env->bhrb[0]);
    if (!has_recorder(env)) {
        return;
    }
    for (n = 0; n < BHRB_MAX_NUM_ENTRIES && *streamed(env, n); n++) {
        bool indirect = *streamed(env, n) & TARGET;

        n += indirect;
        branches[count++] = loaded_branch(env, n, indirect);
    }
    pmu_recorder_clear(recorder(env));
    while (count) {
        pmu_recorder_push(recorder(env), &branches[--count]);
    }
}
