/*
 * Bare-metal test guest: branch records
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "lbr.h"

#define INFO_TYPE_SHIFT 56
#define INFO_VALID      BIT(60)

uint32_t lbr_switch;
uint32_t lbr_on;

unsigned lbr_format(void)
{
    return pmu_is_intel() ? rdmsr(MSR_PERF_CAP) & PERF_CAP_LBR_FORMAT : 0;
}

bool lbr_is_arch(void)
{
    return lbr_format() == FORMAT_ARCH;
}

bool lbr_has_tos(void)
{
    return pmu_is_intel() && !lbr_is_arch();
}

/* Keep the value: reading an option is slow, and each register needs this. */
static unsigned depth_with_tos(void)
{
    static unsigned depth;

    if (!depth) {
        depth = option("depth", 32);
    }
    return depth;
}

unsigned lbr_depth(void)
{
    return !pmu_is_intel() ? cpuid(LEAF_AMD_PMU, 0).b >> 4 & 0x3f
           : lbr_is_arch() ? rdmsr(MSR_ARCH_DEPTH) : depth_with_tos();
}

/* Translate the exclusions of MSR_LBR_SELECT for MSR_ARCH_CTL. */
static uint32_t arch_select(uint64_t select)
{
    static const struct {
        uint64_t without;
        uint32_t with;
    } bits[] = {
        { NO_RING_0, CTL_OS }, { NO_RING_3, CTL_USR },
        { NO_COND, BIT(16) }, { NO_JUMP, BIT(17) }, { NO_IND_JUMP, BIT(18) },
        { NO_CALL, BIT(19) }, { NO_IND_CALL, BIT(20) }, { NO_RETURN, BIT(21) },
        { NO_FAR, BIT(22) },
    };
    uint32_t ctl = CTL_LBREN | (select & CALL_STACK ? CTL_CALL_STACK : 0);

    for (unsigned i = 0; i < ARRAY_SIZE(bits); i++) {
        ctl |= select & bits[i].without ? 0 : bits[i].with;
    }
    return ctl;
}

void lbr_choose(uint64_t select)
{
    if (lbr_is_arch()) {
        lbr_switch = MSR_ARCH_CTL;
        lbr_on = arch_select(select);
        return;
    }
    wrmsr(MSR_LBR_SELECT, select);
    lbr_switch = pmu_is_intel() ? MSR_DEBUGCTL : MSR_DBG_EXTN_CFG;
    lbr_on = pmu_is_intel() ? DEBUGCTL_LBR : DBG_EXTN_LBR;
}

/* The number of the registers with the @age-th record before the newest */
static unsigned number(unsigned age)
{
    return lbr_has_tos() ? (rdmsr(MSR_LBR_TOS) - age) & (lbr_depth() - 1) : age;
}

uint64_t lbr_from(unsigned age)
{
    return rdmsr(MSR_LBR_FROM(number(age)));
}

uint64_t lbr_to(unsigned age)
{
    uint64_t to = rdmsr(MSR_LBR_TO(number(age)));

    if (lbr_format() == FORMAT_TIME) {
        return (int64_t)(to << 16) >> 16;
    }
    if (pmu_is_intel() || !to) {
        return to;
    }
    expect(to >> 61, AMD_TO_VALID >> 61, "flags of TO");
    return (int64_t)(to << 3) >> 3;
}

uint64_t lbr_cycles(unsigned age)
{
    return lbr_format() == FORMAT_TIME
           ? rdmsr(MSR_LBR_TO(number(age))) >> 48
           : rdmsr(MSR_LBR_INFO(number(age))) & INFO_CYCLES;
}

uint64_t lbr_info(unsigned age)
{
    return rdmsr(MSR_LBR_INFO(number(age))) & ~INFO_CYCLES;
}

uint64_t lbr_info_of(uint64_t type)
{
    return lbr_is_arch() ? INFO_VALID | type << INFO_TYPE_SHIFT : 0;
}
