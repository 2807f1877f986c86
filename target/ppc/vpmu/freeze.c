/*
 * Power virtual PMU: when a counter counts
 *
 * Power ISA 3.1B, book III, "Monitor Mode Control Register 0" and "2".
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "freeze.h"
#include "modes.h"
#include "regs.h"

#define MODE(name) (1u << PPC_VPMU_MODE_##name)

/* The four privilege states; MSR[HV PR] is 0b01, 0b00, 0b11, 0b10. */
#define PROBLEM       (1u << 0)
#define PRIVILEGED    MODE(PRIVILEGED)
#define PROBLEM_OF_HV MODE(HV)
#define HYPERVISOR    (1u << (PPC_VPMU_MODE_HV | PPC_VPMU_MODE_PRIVILEGED))
#define ALL_STATES    (PROBLEM | PRIVILEGED | PROBLEM_OF_HV | HYPERVISOR)

bool ppc_vpmu_is_outside(uint64_t mmcr0, unsigned pmc)
{
    return pmc >= 5 && extract64(mmcr0, MMCR0_PMCC_SHIFT, 2) == PMCC_PMC1_TO_4;
}

/* With FCPC, FCP selects which of the two problem states is frozen. */
static PmuModes frozen_problem_states(uint64_t mmcr0)
{
    bool fcp = mmcr0 & MMCR0_FCP;

    if (mmcr0 & MMCR0_FCPC) {
        return fcp ? PROBLEM_OF_HV : PROBLEM;
    }
    return fcp ? PROBLEM | PROBLEM_OF_HV : 0;
}

static PmuModes frozen_by_mmcr0(uint64_t mmcr0)
{
    return (mmcr0 & MMCR0_FCS ? PRIVILEGED : 0)
           | (mmcr0 & MMCR0_FCH ? HYPERVISOR : 0)
           | frozen_problem_states(mmcr0);
}

/*
 * Linux on bare metal, whose programs have MSR[HV] = 1, freezes them with
 * FCnP0; so do programs that monitor themselves, which have no other bit.
 */
static PmuModes frozen_by_mmcr2(uint64_t mmcr2, unsigned pmc)
{
    return (mmcr2 & MMCR2_FCS(pmc) ? PRIVILEGED : 0)
           | (mmcr2 & MMCR2_FCH(pmc) ? HYPERVISOR : 0)
           | (mmcr2 & MMCR2_FCP0(pmc) ? PROBLEM | PROBLEM_OF_HV : 0)
           | (mmcr2 & MMCR2_FCP1(pmc) ? PROBLEM_OF_HV : 0);
}

/* Whether a counter is frozen in every privilege state */
static bool is_frozen(const PpcVPmuFreeze *f, unsigned pmc, bool runs_always)
{
    if ((f->mmcr0 & MMCR0_FC)
        || (f->mmcr0 & (f->pmm ? MMCR0_FCM1 : MMCR0_FCM0))
        || (f->mmcr2 & (f->pmm ? MMCR2_FCM1(pmc) : MMCR2_FCM0(pmc)))
        || (pmc > 1 && f->mmcr0 & MMCR0_TRIGGER)) {
        return true;
    }
    if (!f->run && f->mmcr2 & MMCR2_FCWAIT(pmc)) {
        return true;
    }
    if (pmc >= 5) {
        return (f->mmcr0 & MMCR0_FC56)
               || (!f->run && !(f->mmcr0 & MMCR0_CC56RUN));
    }
    return (f->mmcr0 & MMCR0_FC14)
           || (!f->run && !runs_always && f->mmcr0 & MMCR0_FC14WAIT);
}

PmuModes ppc_vpmu_freeze_modes(const PpcVPmuFreeze *f, unsigned pmc,
                               bool runs_always)
{
    if (ppc_vpmu_is_outside(f->mmcr0, pmc)) {
        return f->run ? ALL_STATES : 0;
    }
    if (is_frozen(f, pmc, runs_always)) {
        return 0;
    }
    return ALL_STATES & ~frozen_by_mmcr0(f->mmcr0)
           & ~frozen_by_mmcr2(f->mmcr2, pmc);
}

PmuModes ppc_vpmu_bhrb_modes(const PpcVPmuFreeze *f)
{
    return ALL_STATES & ~frozen_by_mmcr0(f->mmcr0);
}
