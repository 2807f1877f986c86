/*
 * Suite nopmu: a CPU without a PMU, whose registers exist and do nothing
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

TEST(nopmu, registers)
{
    mtspr(SPR_MMCR0, MMCR0_ALERT);
    mtspr(SPR_MMCR1, EV_INSNS_ALL);
    mtspr(SPR_MMCR2, -1ull);
    mtspr(SPR_MMCRA, -1ull);
    mtspr(SPR_SIAR, 1);
    for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
        write_pmc(pmc, PMC_NEGATIVE);
        expect(read_pmc(pmc), 0, "PMC%u", pmc);
    }
    expect(mfspr(SPR_MMCR0), 0, "MMCR0");
    expect(mfspr(SPR_MMCR1), 0, "MMCR1");
    expect(mfspr(SPR_MMCR2), 0, "MMCR2");
    expect(mfspr(SPR_MMCRA), 0, "MMCRA");
    expect(mfspr(SPR_SIAR), 0, "SIAR");
}

CODE("nopmu_accesses:\n"
     "    mfspr r4, 779\n"
     "    mtspr 779, r4\n"
     "    mfspr r4, 771\n"
     "    mtspr 771, r4\n"
     "    mfspr r4, 780\n"
     "    nop\n"
     "    blr\n");
code_fn nopmu_accesses;

static unsigned refused;

static void refuse(struct regs *regs)
{
    expect(FSCR_CAUSE(mfspr(SPR_FSCR)), CAUSE_PM, "cause");
    refused++;
    skip_insn(regs);
}

/* Registers are refused in problem state, even after a write of MMCR0[PMCC]. */
TEST(nopmu, problem_state)
{
    on_trap(VEC_FACILITY, refuse);
    for (unsigned pmcc = 0; pmcc <= 3; pmcc++) {
        refused = 0;
        run(MMCR0_PMCC(pmcc), STATE_PROBLEM, nopmu_accesses, 0);
        expect(refused, 5, "PMCC %u: refused", pmcc);
    }
}

/* A negative counter causes no alert. */
TEST(nopmu, alerts)
{
    sample();
    for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
        write_pmc(pmc, PMC_NEGATIVE);
    }
    run(MMCR0_ALERT | MMCR0_PMAO, STATE_PRIV | MSR_EE, nopmu_accesses, 0);
    expect(sample_count, 0, "alerts");
    expect(run_mmcr0, 0, "MMCR0");
}
