/*
 * Power virtual PMU: migration state
 *
 * The registers are part of every CPU's state, also in streams that QEMU wrote
 * before it had this PMU.  They determine the state of the counters, even in
 * the midst of counting, so that QEMU without this PMU can go on.  Additional
 * state is sent only if it does not follow from them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "migration/vmstate.h"
#include "system/kvm.h"
#include "internal.h"

static const VMStateDescription vmstate_tallies = {
    .name = "cpu/vpmu/tallies",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(unit, PpcVPmu, vmstate_pmu_engine, PmuCpu),
        VMSTATE_END_OF_LIST()
    }
};

/*
 * Whether the guest has events counted, or its PMU is to interrupt.  PMC5 and
 * PMC6 do not matter: kernels leave them running.  Before POWER7, registers
 * keep the values written to them without a PMU, too.
 */
static bool counts_events(const PowerPCCPU *cpu)
{
    const CPUPPCState *env = &cpu->env;

    return ppc_vpmu_model(cpu)
           && (env->spr[SPR_POWER_MMCR1]
               || env->spr[SPR_POWER_MMCR0] & (MMCR0_PMAE | MMCR0_PMAO));
}

static bool vpmu_needed(void *opaque)
{
    PowerPCCPU *cpu = opaque;
    const PpcVPmu *v = cpu->vpmu;

    return v && v->unit->tcg
           && (pmu_tcg_has_fractions(v->unit->tcg)
               || (cpu->pmu_core_model && counts_events(cpu)));
}

static int vpmu_pre_load(void *opaque)
{
    PowerPCCPU *cpu = opaque;

    return pmu_cpu_check_load(cpu->vpmu && cpu->vpmu->unit->tcg);
}

const VMStateDescription vmstate_ppc_vpmu = {
    .name = "cpu/vpmu",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = vpmu_needed,
    .pre_load = vpmu_pre_load,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(vpmu, PowerPCCPU, vmstate_tallies, PpcVPmu),
        VMSTATE_END_OF_LIST()
    }
};

bool ppc_vpmu_post_load(PowerPCCPU *cpu, Error **errp)
{
    ERRP_GUARD();
    CPUPPCState *env = &cpu->env;

    /* Under KVM the registers are the kernel's, whatever "pmu" says. */
    if (!cpu->has_pmu && !kvm_enabled() && counts_events(cpu)) {
        error_setg(errp, "The source's CPU has a PMU and this one does not");
        error_append_hint(errp, "Add pmu=on.\n");
        return false;
    }
    if (cpu->vpmu && ppc_vpmu_bhrb_is_used(env)) {
        cpu->vpmu->bhrb_unread = 0;
    }
    ppc_vpmu_load(env);
    return true;
}
