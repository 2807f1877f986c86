/*
 * Power virtual PMU: event-based branches
 *
 * Power ISA 3.1B, book II, "Event-Based Branch Facility": an exception is
 * remembered in BESCR and is pending for as long as BESCR enables it.  Whether
 * it can be taken (in problem state, and with the facility available) is
 * looked at where interrupts are.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/ppc/ppc.h"
#include "vpmu-internal.h"

static bool is_pending(uint64_t bescr)
{
    return bescr & BESCR_GE
           && ((bescr & BESCR_PME && bescr & BESCR_PMEO)
               || (bescr & BESCR_EE && bescr & BESCR_EEO));
}

void ppc_vpmu_update_ebb(CPUPPCState *env)
{
    ppc_set_irq(env_archcpu(env), PPC_INTERRUPT_EBB,
                is_pending(env->spr[SPR_BESCR]));
}

void ppc_vpmu_ebb_occurred(PpcVPmu *v)
{
    CPUPPCState *env = &v->cpu->env;

    env->spr[SPR_BESCR] |= BESCR_PMEO;
    ppc_vpmu_update_ebb(env);
}
