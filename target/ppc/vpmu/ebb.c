/*
 * Power virtual PMU: event-based branches
 *
 * Power ISA 3.1B, book II, "Event-Based Branch Facility": exceptions are
 * enabled (PME) until one occurs, which is remembered (PMEO) and pending for
 * as long as event-based branches are enabled (GE).  An alert while they are
 * disabled is not lost: MMCR0[PMAO] stays 1.  Whether a branch can be taken
 * (in problem state, and with the facility available) is checked together with
 * interrupts.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/ppc/ppc.h"
#include "internal.h"

static bool has_alert(uint64_t mmcr0)
{
    return mmcr0 & MMCR0_EBE && mmcr0 & MMCR0_PMAO;
}

static bool is_pending(uint64_t bescr)
{
    return bescr & BESCR_GE && bescr & (BESCR_PMEO | BESCR_EEO);
}

/* Before POWER8 there are no such branches, but a stream can hold BESCR. */
void ppc_vpmu_update_ebb(CPUPPCState *env)
{
    target_ulong *bescr = &env->spr[SPR_BESCR];

    if (!(env->insns_flags2 & PPC2_ISA207S)) {
        return;
    }
    if (*bescr & BESCR_PME && has_alert(env->spr[SPR_POWER_MMCR0])) {
        *bescr &= ~BESCR_PME;
        *bescr |= BESCR_PMEO;
    }
    ppc_set_irq(env_archcpu(env), PPC_INTERRUPT_EBB, is_pending(*bescr));
}
