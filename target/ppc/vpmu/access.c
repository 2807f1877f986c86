/*
 * Power virtual PMU: access to registers in problem state
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "cpu.h"
#include "access.h"
#include "regs.h"

/*
 * Group A of the architecture: registers that a program can be allowed to
 * control.  The rest, group B, describes samples and cannot be written in
 * problem state whatever MMCR0 says.
 */
static bool is_group_a(unsigned reg)
{
    return reg == SPR_POWER_MMCR0 || reg == SPR_POWER_MMCR2
           || reg == SPR_POWER_MMCRA
           || (reg >= SPR_POWER_PMC1 && reg <= SPR_POWER_PMC6);
}

PpcVPmuAccess ppc_vpmu_access(uint64_t mmcr0, unsigned reg, bool write)
{
    unsigned pmcc = extract64(mmcr0, MMCR0_PMCC_SHIFT, 2);

    if (pmcc == PMCC_NONE) {
        return PPC_VPMU_UNAVAILABLE;
    }
    if (pmcc == PMCC_PMC1_TO_4
        && (reg == SPR_POWER_PMC5 || reg == SPR_POWER_PMC6)) {
        return PPC_VPMU_UNAVAILABLE;
    }
    if (write) {
        return is_group_a(reg) && pmcc != PMCC_READ_ONLY
               ? PPC_VPMU_ALLOWED : PPC_VPMU_ILLEGAL;
    }
    if (!is_group_a(reg) && pmcc == PMCC_READ_ONLY && mmcr0 & MMCR0_PMCCEXT) {
        return PPC_VPMU_UNAVAILABLE;
    }
    return PPC_VPMU_ALLOWED;
}

bool ppc_vpmu_is_writable(unsigned sprn)
{
    return sprn & SPR_PROBLEM || is_group_a(sprn | SPR_PROBLEM);
}

uint64_t ppc_vpmu_visible_bits(unsigned reg)
{
    switch (reg) {
    case SPR_POWER_MMCR0:
        return MMCR0_FC | MMCR0_PMAE | MMCR0_PMAO;
    case SPR_POWER_MMCR2:
        return MMCR2_FCP0_ALL;
    case SPR_POWER_SIER:
        return SIER_PROBLEM;
    default:
        return UINT64_MAX;
    }
}
