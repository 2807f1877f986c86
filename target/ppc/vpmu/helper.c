/*
 * Power virtual PMU: helpers for translated code
 *
 * Each is called with nip at its instruction, which is the last of its block;
 * except for BESCR, where an enabled branch waits for the end of the block.
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
