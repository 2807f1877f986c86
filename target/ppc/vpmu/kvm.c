/*
 * Power virtual PMU: under KVM
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include <linux/kvm.h>
#include "qapi/error.h"
#include "qapi/util.h"
#include "system/kvm.h"
#include "system/kvm_int.h"
#include "hw/pmu/pmu-host.h"
#include "kvm.h"

bool ppc_vpmu_kvm_configure(const PowerPCCPU *cpu, Error **errp)
{
    ERRP_GUARD();

    if (cpu->has_pmu) {
        return true;
    }
    error_setg(errp, "pmu=off is not possible: KVM gives each guest the "
               "processor's PMU, and cannot take it away");
    error_append_hint(errp, "Leave it out, or use -accel tcg.\n");
    return false;
}

/*
 * The host's accounts
 */

/*
 * The kernel accepts exclude_host and ignores it.  With kvm-hv, only the host's
 * side is counted, as a guest has the counters to itself.  With kvm-pr a guest
 * is a program like any other; only that KVM has this call.
 */
static PmuHostScope what_is_counted(void)
{
    return kvm_vm_check_extension(kvm_state, KVM_CAP_PPC_GET_PVINFO)
           ? PMU_HOST_ALL : PMU_HOST_HOST;
}

void ppc_vpmu_kvm_attach(PowerPCCPU *cpu)
{
    if (cpu->pmu_host_perf) {
        cpu->pmu_host = pmu_host_new(CPU(cpu), 1u << what_is_counted());
    }
}

void ppc_vpmu_kvm_detach(PowerPCCPU *cpu)
{
    g_clear_pointer(&cpu->pmu_host, pmu_host_free);
}

/*
 * The registers
 */

static bool read_register(PowerPCCPU *cpu, unsigned reg)
{
    const uint64_t id = cpu->env.spr_cb[reg].one_reg_id;
    union {
        uint32_t u32;
        uint64_t u64;
    } val;

    if (kvm_get_one_reg(CPU(cpu), id, &val) < 0) {
        return false;
    }
    cpu->env.spr[reg] = (id & KVM_REG_SIZE_MASK) == KVM_REG_SIZE_U32
                        ? val.u32 : val.u64;
    return true;
}

/* MSR[PMM] is needed, too. */
static void read_msr(PowerPCCPU *cpu)
{
    struct kvm_regs regs;

    if (kvm_vcpu_ioctl(CPU(cpu), KVM_GET_REGS, &regs) == 0) {
        cpu->env.msr = regs.msr;
    }
}

strList *ppc_vpmu_kvm_read(PowerPCCPU *cpu)
{
    static const unsigned regs[] = {
        SPR_POWER_MMCR0, SPR_POWER_MMCR1, SPR_POWER_MMCR2, SPR_POWER_MMCRA,
        SPR_POWER_PMC1, SPR_POWER_PMC2, SPR_POWER_PMC3, SPR_POWER_PMC4,
        SPR_POWER_PMC5, SPR_POWER_PMC6,
    };
    strList *hidden = NULL, **tail = &hidden;

    /* If QEMU has changed registers, they are about to be written. */
    if (CPU(cpu)->vcpu_dirty) {
        return NULL;
    }
    read_msr(cpu);
    for (unsigned i = 0; i < ARRAY_SIZE(regs); i++) {
        const ppc_spr_t *spr = &cpu->env.spr_cb[regs[i]];

        if (spr->one_reg_id && !read_register(cpu, regs[i])) {
            QAPI_LIST_APPEND(tail, g_strdup(spr->name));
        }
    }
    return hidden;
}
