/*
 * Power virtual PMU: the counters' settings, for TCG and KVM
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "cpu.h"
#include "internal.h"

/* Processors, the latest first, and the features that distinguish them */
static const struct {
    uint64_t flag;
    const PpcVPmuModel *model;
} models[] = {
    { PPC2_ISA310,    &ppc_vpmu_power10 },
    { PPC2_ISA300,    &ppc_vpmu_power9 },
    { PPC2_ISA207S,   &ppc_vpmu_power8 },
    { PPC2_PM_ISA206, &ppc_vpmu_power7 },
};

const PpcVPmuModel *ppc_vpmu_model(const PowerPCCPU *cpu)
{
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(models); i++) {
        if (cpu->env.insns_flags2 & models[i].flag) {
            return models[i].model;
        }
    }
    return NULL;
}

/* The threads of its core, as CTRL_TS() has them; nr_threads may be fewer. */
static unsigned threads_of_core(const PpcVPmu *v)
{
    CPUState *cs = CPU(v->cpu), *sibling;
    unsigned threads = 0;

    THREAD_SIBLING_FOREACH(cs, sibling) {
        threads |= 1u << cpu_env(sibling)->spr[SPR_TIR];
    }
    return threads;
}

/* QEMU does not know the latches of a vCPU under KVM: take them to be set. */
static bool knows_latches(const PpcVPmu *v)
{
    return v->unit;
}

/*
 * CTRL shows the latches of all threads if they share a partition;
 * otherwise a thread sees only its own.
 */
bool ppc_vpmu_latch_is_set(const PpcVPmu *v, PpcVPmuLatch latch)
{
    bool shared = v->cpu->env.flags & POWERPC_FLAG_SMT_1LPAR;
    uint64_t ctrl = v->cpu->env.spr[SPR_CTRL];

    if (!knows_latches(v)) {
        return true;
    } else if (latch == PPC_VPMU_LATCH_ANY && shared) {
        return CTRL_TS(ctrl);
    } else if (latch == PPC_VPMU_LATCH_ALL && shared) {
        return CTRL_TS(ctrl) == threads_of_core(v);
    }
    return latch == PPC_VPMU_LATCH_NONE || ctrl & CTRL_RUN;
}

PpcVPmuFreeze ppc_vpmu_freeze_state(const PpcVPmu *v)
{
    const CPUPPCState *env = &v->cpu->env;

    return (PpcVPmuFreeze) {
        .mmcr0 = env->spr[SPR_POWER_MMCR0],
        .mmcr2 = env->spr[SPR_POWER_MMCR2],
        .pmm = FIELD_EX64(env->msr, MSR, PMM),
        .run = !knows_latches(v) || env->spr[SPR_CTRL] & CTRL_RUN,
    };
}

uint32_t ppc_vpmu_code_of(const PpcVPmu *v, unsigned pmc)
{
    return ppc_vpmu_event_code(pmc, v->cpu->env.spr[SPR_POWER_MMCR1]);
}

PmuModes ppc_vpmu_count_modes(const PpcVPmu *v, unsigned pmc,
                              const PpcVPmuEvent *event)
{
    const PpcVPmuFreeze freeze = ppc_vpmu_freeze_state(v);
    PmuModes modes;

    if (!ppc_vpmu_latch_is_set(v, event->latch)
        || !ppc_vpmu_filter_allows(v->filter, ppc_vpmu_code_of(v, pmc))) {
        return 0;
    }
    modes = ppc_vpmu_freeze_modes(&freeze, pmc, event->runs_always);
    return event->states ? modes & event->states : modes;
}

bool ppc_vpmu_is_condition(uint64_t mmcr0, unsigned pmc)
{
    return mmcr0 & (pmc == 1 ? MMCR0_PMC1CE : MMCR0_PMCJCE)
           && !ppc_vpmu_is_outside(mmcr0, pmc);
}

const PmuCounterShape ppc_vpmu_shape = {
    .width = 32,
    .overflow_at = PMC_NEGATIVE,
};
