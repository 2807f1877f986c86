/*
 * Power virtual PMU: the branch history rolling buffer
 *
 * Translated code writes the entries, while branches are recorded and as far
 * as they pass the filter.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "cpu.h"
#include "freeze.h"
#include "helper_regs.h"
#include "internal.h"

static uint64_t filter(const CPUPPCState *env)
{
    static const uint64_t types[] = {
        [IFM_ALL]         = ~(uint64_t)BHRB_TYPE_NORECORD,
        [IFM_CALLS]       = BHRB_TYPE_CALL,
        [IFM_INDIRECT]    = BHRB_TYPE_INDIRECT,
        [IFM_CONDITIONAL] = BHRB_TYPE_COND,
    };

    return types[extract64(env->spr[SPR_POWER_MMCRA], MMCRA_IFM_SHIFT, 2)];
}

void ppc_vpmu_bhrb_update(PpcVPmu *v)
{
    v->cpu->env.bhrb_filter = filter(&v->cpu->env);
}

/*
 * Linux clears the buffer before it uses it, and reads it at each alert.  The
 * architecture does not say where the first entry goes: an offset other than
 * the one after a reset says that the guest uses the buffer; as the offset is
 * migrated, this is, too.
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
        hreg_update_pmu_hflags(env);
    }
}

/*
 * Entries are written only while alerts are enabled: what led to an alert is
 * still there when it is handled.  POWER8 and POWER9 then record whether or
 * not somebody will read, which costs too much where translated code does it.
 */
bool ppc_vpmu_bhrb_recording(CPUPPCState *env)
{
    const PpcVPmu *v = env_archcpu(env)->vpmu;
    const PpcVPmuFreeze freeze = { .mmcr0 = env->spr[SPR_POWER_MMCR0] };
    unsigned mode = (FIELD_EX64(env->msr, MSR, PR)
                     ? 0 : PPC_VPMU_MODE_PRIVILEGED)
                    | (FIELD_EX64(env->msr, MSR, HV) ? PPC_VPMU_MODE_HV : 0);

    if (!v || !(freeze.mmcr0 & MMCR0_PMAE)
        || v->bhrb_unread == PPC_VPMU_BHRB_UNUSED) {
        return false;
    }
    if (!v->model->records_kernel
        && (mode & PPC_VPMU_MODE_PRIVILEGED
            || env->spr[SPR_POWER_MMCRA] & MMCRA_BHRBRD)) {
        return false;
    }
    return ppc_vpmu_bhrb_modes(&freeze) >> mode & 1;
}
