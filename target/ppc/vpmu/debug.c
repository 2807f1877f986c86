/*
 * Power virtual PMU: access by debuggers and the monitor
 *
 * They use the numbers of registers, and privileges do not matter.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/pmu-guest.h"
#include "internal.h"

/**
 * struct DebugAccess - one access, to be carried out by the vCPU's thread
 * @v: the PMU
 * @sprn: the number used
 * @val: the value that was read, or is to be written
 */
typedef struct DebugAccess {
    PpcVPmu *v;
    unsigned sprn;
    uint64_t val;
} DebugAccess;

static bool is_of_pmu(unsigned reg)
{
    return (reg >= SPR_POWER_SIER && reg <= SPR_POWER_MMCR1)
           || (reg >= SPR_POWER_SIER2 && reg <= SPR_POWER_MMCR3);
}

/* The register of a number: many have another number for problem state. */
static unsigned register_of(unsigned sprn)
{
    switch (sprn) {
    case SPR_BESCRS:
    case SPR_BESCRSU:
    case SPR_BESCRR:
    case SPR_BESCRRU:
        return SPR_BESCR;
    case SPR_UCTRL:
        return SPR_CTRL;
    default:
        return is_of_pmu(sprn | SPR_PROBLEM) ? sprn | SPR_PROBLEM : sprn;
    }
}

/* The position in the register of the value's lower half */
static unsigned shift_of(unsigned sprn)
{
    return sprn == SPR_BESCRSU || sprn == SPR_BESCRRU ? 32 : 0;
}

static uint64_t value_to_store(unsigned sprn, uint64_t old, uint64_t val)
{
    switch (sprn) {
    case SPR_BESCRS:
    case SPR_BESCRSU:
        return old | val << shift_of(sprn);
    case SPR_BESCRR:
    case SPR_BESCRRU:
        return old & ~(val << shift_of(sprn));
    default:
        return val;
    }
}

static void read_on_cpu(CPUState *cs, run_on_cpu_data data)
{
    DebugAccess *a = data.host_ptr;

    a->val = ppc_vpmu_peek(a->v, register_of(a->sprn)) >> shift_of(a->sprn);
}

static void write_on_cpu(CPUState *cs, run_on_cpu_data data)
{
    const DebugAccess *a = data.host_ptr;
    CPUPPCState *env = &a->v->cpu->env;
    unsigned reg = register_of(a->sprn);

    if (is_of_pmu(reg)) {
        ppc_vpmu_write_whole(a->v, reg, a->val);
        return;
    }
    env->spr[reg] = value_to_store(a->sprn, env->spr[reg], a->val);
    if (reg == SPR_BESCR) {
        ppc_vpmu_update_ebb(env);
    } else if (reg == SPR_CTRL) {
        ppc_vpmu_state_changed(env);
    }
}

uint64_t ppc_vpmu_debug_read(CPUPPCState *env, unsigned sprn)
{
    DebugAccess a = { .v = env_archcpu(env)->vpmu, .sprn = sprn };

    if (!a.v) {
        return env->spr[sprn];
    }
    /* A vCPU that is being unplugged has nothing to show any more. */
    pmu_guest_run(env_cpu(env), read_on_cpu, &a, NULL);
    return a.val;
}

void ppc_vpmu_debug_write(CPUPPCState *env, unsigned sprn, uint64_t val)
{
    DebugAccess a = { env_archcpu(env)->vpmu, sprn, val };

    if (!a.v) {
        env->spr[sprn] = val;
        return;
    }
    pmu_guest_run(env_cpu(env), write_on_cpu, &a, NULL);
}
