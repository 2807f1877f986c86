/*
 * Power virtual PMU: what translated code calls
 *
 * Each is called in the last instruction of its block, with nip at it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "cpu.h"
#include "exec/helper-proto.h"
#include "hw/pmu/compat.h"
#include "vpmu.h"

target_ulong helper_vpmu_mfspr(CPUPPCState *env, uint32_t sprn)
{
    return ppc_vpmu_mfspr(env, sprn, GETPC());
}

void helper_vpmu_mtspr(CPUPPCState *env, uint32_t sprn, target_ulong val)
{
    ppc_vpmu_mtspr(env, sprn, val, GETPC());
}

void helper_vpmu_state_changed(CPUPPCState *env)
{
    ppc_vpmu_state_changed(env);
}

void helper_store_bescr(CPUPPCState *env, target_ulong val)
{
    env->spr[SPR_BESCR] = val;
    ppc_vpmu_update_ebb(env);
}
