/*
 * Bare-metal test guest: its PMU
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"
#include "runner.h"

struct sample samples[MAX_SAMPLES];
volatile unsigned sample_count; /* by the handler */

static uint32_t reload[NR_PMCS];

void pmu_reset(void)
{
    mtspr(SPR_MMCR0, MMCR0_FC);
    mtspr(SPR_MMCR1, 0);
    mtspr(SPR_MMCR2, 0);
    mtspr(SPR_MMCRA, 0);
    for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
        write_pmc(pmc, 0);
    }
    sample_count = 0;
}

/* Without a PMU its registers exist, too, and hold 0. */
void prepare_pmu(const char *suite)
{
    (void)suite;
    pmu_reset();
}

uint64_t read_pmc(unsigned pmc)
{
    switch (pmc) {
    case 1:
        return mfspr(SPR_PMC1);
    case 2:
        return mfspr(SPR_PMC2);
    case 3:
        return mfspr(SPR_PMC3);
    case 4:
        return mfspr(SPR_PMC4);
    case 5:
        return mfspr(SPR_PMC5);
    default:
        return mfspr(SPR_PMC6);
    }
}

void write_pmc(unsigned pmc, uint64_t value)
{
    switch (pmc) {
    case 1:
        mtspr(SPR_PMC1, value);
        break;
    case 2:
        mtspr(SPR_PMC2, value);
        break;
    case 3:
        mtspr(SPR_PMC3, value);
        break;
    case 4:
        mtspr(SPR_PMC4, value);
        break;
    case 5:
        mtspr(SPR_PMC5, value);
        break;
    default:
        mtspr(SPR_PMC6, value);
        break;
    }
}

/* ---- What freezes --------------------------------------------------- */

/* Power ISA 3.1B, book III, MMCR0. */
bool frozen_by_mmcr0(uint64_t bits, unsigned pmc, struct state s)
{
    bool fcp = bits & MMCR0_FCP, fcpc = bits & MMCR0_FCPC;

    if (pmc >= 5 && !s.run && !(bits & MMCR0_CC56RUN)) {
        return true;
    }
    if (s.problem && ((fcpc && fcp == s.hv) || (fcp && !fcpc))) {
        return true;
    }
    return (bits & MMCR0_FC)
           || (bits & MMCR0_FCS && !s.hv && !s.problem)
           || (bits & MMCR0_FCH && s.hv && !s.problem)
           || (bits & MMCR0_FCM1 && s.pmm)
           || (bits & MMCR0_FCM0 && !s.pmm)
           || (bits & MMCR0_FC14 && pmc <= 4)
           || (bits & MMCR0_FC56 && pmc >= 5)
           || (bits & MMCR0_FC14WAIT && pmc <= 4 && !s.run);
}

bool frozen_by_mmcr2(unsigned n, struct state s)
{
    switch (n) {
    case 0:
        return !s.hv && !s.problem;
    case 1:
        return s.problem;
    case 2:
        return s.problem && s.hv;
    case 3:
        return s.pmm;
    case 4:
        return !s.pmm;
    case 5:
        return !s.run;
    case 6:
        return s.hv && !s.problem;
    default:
        return false;
    }
}

bool frozen(uint64_t mmcr0, uint64_t mmcr2, unsigned pmc, struct state s)
{
    for (unsigned n = 0; n <= 6; n++) {
        if (mmcr2 & MMCR2_FIELD(n, pmc) && frozen_by_mmcr2(n, s)) {
            return true;
        }
    }
    return frozen_by_mmcr0(mmcr0, pmc, s);
}

/* ---- Counts --------------------------------------------------------- */

struct counts measure(uint64_t msr, code_fn *fn, uint64_t arg)
{
    struct counts c;

    mtspr(SPR_MMCR1, EV_INSNS_ALL);
    mtspr(SPR_MMCR2, MMCR2_FIELD(FCNS, 1) | MMCR2_FIELD(FCNP0, 1)
                     | MMCR2_FIELD(FCNH, 2) | MMCR2_FIELD(FCNP0, 2)
                     | MMCR2_FIELD(FCNH, 3) | MMCR2_FIELD(FCNS, 3));
    for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
        write_pmc(pmc, 0);
    }
    c.result = run(0, msr, fn, arg);
    c.hv = read_pmc(1) - RUN_HV_OVERHEAD;
    c.priv = read_pmc(2);
    c.problem = read_pmc(3);
    c.all = read_pmc(5) - RUN_OVERHEAD;
    c.cycles = read_pmc(6) - RUN_OVERHEAD;
    expect(read_pmc(4), read_pmc(5), "PMC4 against PMC5");
    if (msr & MSR_PR) {
        c.problem -= RUN_STATE_OVERHEAD;
    } else if (msr & MSR_HV) {
        c.hv -= RUN_STATE_OVERHEAD;
    } else {
        c.priv -= RUN_STATE_OVERHEAD;
    }
    return c;
}

void expect_counts(const char *what, struct counts c, uint64_t hv,
                   uint64_t priv, uint64_t problem)
{
    expect(c.hv, hv, "%s: instructions of the hypervisor", what);
    expect(c.priv, priv, "%s: privileged instructions", what);
    expect(c.problem, problem, "%s: instructions in problem state", what);
    expect(c.all, hv + priv + problem, "%s: all instructions", what);
    expect(c.cycles, c.all, "%s: cycles", what);
}

/* A step takes microseconds, so longer functions are not stepped. */
#define MAX_STEPS 5000

void expect_everywhere(const char *what, code_fn *fn, uint64_t arg,
                       uint64_t count)
{
    if (count <= MAX_STEPS) {
        expect(count_steps(STATE_PROBLEM, fn, arg), count, "%s: single steps",
               what);
    }
    expect_counts(what, measure(STATE_HV, fn, arg), count, 0, 0);
    expect_counts(what, measure(STATE_PRIV, fn, arg), 0, count, 0);
    expect_counts(what, measure(STATE_PROBLEM, fn, arg), 0, 0, count);
    expect_counts(what, measure(STATE_HV_PROBLEM, fn, arg), 0, 0, count);
}

/* ---- Sampling ------------------------------------------------------- */

static void on_pmi(struct regs *regs)
{
    uint64_t mmcr0 = mfspr(SPR_MMCR0);
    struct sample s = {
        .nip = regs->nip,
        .msr = regs->msr,
        .siar = mfspr(SPR_SIAR),
        .sdar = mfspr(SPR_SDAR),
        .sier = mfspr(SPR_SIER),
        .mmcr0 = mmcr0,
    };
    bool go_on = true;

    mtspr(SPR_MMCR0, (mmcr0 & ~MMCR0_PMAO) | MMCR0_FC);
    for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
        s.pmc[pmc - 1] = read_pmc(pmc);
        if (s.pmc[pmc - 1] >= PMC_NEGATIVE) {
            go_on = go_on && reload[pmc - 1];
            write_pmc(pmc, PMC_NEGATIVE - reload[pmc - 1]);
        }
    }
    if (sample_count < MAX_SAMPLES) {
        samples[sample_count] = s;
    }
    sample_count++;
    if (go_on) {
        mtspr(SPR_MMCR0, (mmcr0 & ~(MMCR0_PMAO | MMCR0_FC)) | MMCR0_PMAE);
    }
}

void sample(void)
{
    memset(reload, 0, sizeof(reload));
    sample_count = 0;
    on_trap(VEC_PERFM, on_pmi);
}

void sample_reload(unsigned pmc, uint32_t period)
{
    reload[pmc - 1] = period;
}
