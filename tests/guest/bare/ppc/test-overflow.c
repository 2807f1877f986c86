/*
 * Suite overflow: the interrupt comes right after the instruction that makes a
 * counter negative, and SIAR is that instruction
 *
 * Single steps of the same code provide the expected addresses.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

/* A bit of everything: 75 instructions. */
CODE("overflow_mix:\n"
     "    mflr r12\n"
     "    li r4, 5\n"
     "    mtctr r4\n"
     "1:  nop\n"
     "    bl 4f\n"
     "    bdnz 1b\n"
     "    bcl 20, 31, overflow_mix_here\n"
     "overflow_mix_here:\n"
     "    mflr r5\n"
     "    addi r6, r5, overflow_mix_there - overflow_mix_here\n"
     "    mtctr r6\n"
     "    bctr\n"
     "    trap\n"
     "overflow_mix_there:\n"
     "    lis r6, overflow_buffer@ha\n"
     "    addi r6, r6, overflow_buffer@l\n"
     "    std r4, 0(r6)\n"
     "    ld r4, 0(r6)\n"
     "    stmw r28, 16(r6)\n"
     "    lmw r28, 16(r6)\n"
     "    lwarx r4, 0, r6\n"   /* interrupts end the reservation */
     "    addi r4, r4, 1\n"
     "    stwcx. r4, 0, r6\n"
     "    nop\n"
     "    dcbz 0, r6\n"
     "    sync\n"
     "    isync\n"
     "    mftb r7\n"
     "    mfcr r8\n"
     "    mtcrf 0x80, r8\n"
     "    divd r7, r7, r12\n"
     "    mulld r7, r7, r7\n"
     "    mfxer r9\n"
     "    mtxer r9\n"
     "    cmpd r3, r3\n"
     "    beq 3f\n"
     "    trap\n"
     "3:  nop\n"
     "    nop\n"
     "    nop\n"
     "    mtlr r12\n"
     "    blr\n"
     "4:  andi. r4, r3, 1\n"
     "    addi r3, r3, 1\n"
     "    beq 5f\n"
     "    nop\n"
     "5:  blr\n");
code_fn overflow_mix;
uint8_t overflow_buffer[256] __attribute__((aligned(128)));

/* A loop of any length: 3 instructions a turn, and 2 more. */
CODE("overflow_loop:\n"
     "    mtctr r3\n"
     "1:  nop\n"
     "    nop\n"
     "    bdnz 1b\n"
     "    blr\n");
code_fn overflow_loop;

static const struct {
    const char *name;
    uint64_t msr, filter, sier;
} states[] = {
    { "problem", STATE_PROBLEM, MMCR0_FCH | MMCR0_FCS, SIER_SIPR },
    { "HV problem", STATE_HV_PROBLEM, MMCR0_FCH | MMCR0_FCS,
      SIER_SIPR | SIER_SIHV },
    { "privileged", STATE_PRIV | MSR_EE, MMCR0_FCH, 0 },
    { "HV", STATE_HV | MSR_EE, 0, SIER_SIHV },
};

#define SIER_STATE (SIER_SIPR | SIER_SIHV | SIER_SIAR_VALID)

/* The address of the @n-th instruction (from 1) of a stepped function */
static uint64_t address_of(code_fn *fn, uint64_t n)
{
    return n == 1 ? (uint64_t)fn : step_trace[n - 2];
}

/*
 * Make counter @pmc negative at each distance from the function's beginning. In
 * the hypervisor's state, hrfid is the first counted instruction.
 */
static void expect_each_address(unsigned pmc, unsigned s)
{
    uint64_t total = count_steps(states[s].msr & ~MSR_EE, overflow_mix, 0);
    unsigned before = states[s].filter ? 0 : 1;

    expect(total >= 64 && total < MAX_TRACE, true, "enough steps");
    mtspr(SPR_MMCR1, EV_INSNS_ALL);
    for (uint64_t n = 1; n <= total; n++) {
        for (unsigned i = 1; i <= NR_PMCS; i++) {
            write_pmc(i, 0);
        }
        write_pmc(pmc, PMC_NEGATIVE - n - before);
        sample();
        run(states[s].filter | MMCR0_ALERT | MMCR0_FCECE, states[s].msr,
            overflow_mix, 0);
        expect(sample_count, 1, "%s, PMC%u, instruction %lu: samples",
               states[s].name, pmc, n);
        expect(samples[0].siar, address_of(overflow_mix, n),
               "%s, PMC%u, instruction %lu: SIAR", states[s].name, pmc, n);
        expect(samples[0].nip, address_of(overflow_mix, n + 1),
               "%s, PMC%u, instruction %lu: SRR0", states[s].name, pmc, n);
        expect(samples[0].sier & SIER_STATE,
               SIER_SIAR_VALID | states[s].sier,
               "%s, PMC%u, instruction %lu: SIER", states[s].name, pmc, n);
        expect(samples[0].pmc[pmc - 1], PMC_NEGATIVE,
               "%s, PMC%u, instruction %lu: its value", states[s].name, pmc,
               n);
        expect(samples[0].pmc[pmc % 5], n + before,
               "%s, PMC%u, instruction %lu: another's value",
               states[s].name, pmc, n);
        expect(samples[0].mmcr0 & (MMCR0_FC | MMCR0_PMAO | MMCR0_PMAE),
               MMCR0_FC | MMCR0_PMAO, "MMCR0");
    }
}

TEST(overflow, every_distance)
{
    for (unsigned s = 0; s < ARRAY_SIZE(states); s++) {
        expect_each_address(5, s);
    }
}

TEST(overflow, every_counter)
{
    for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
        expect_each_address(pmc, 0);
    }
}

/* The hypervisor's first instruction is hrfid: it is the sample. */
TEST(overflow, return_from_interrupt)
{
    write_pmc(5, PMC_NEGATIVE - 1);
    sample();
    run(MMCR0_ALERT | MMCR0_FCECE, STATE_PROBLEM, overflow_loop, 3);
    expect(sample_count, 1, "samples");
    expect(samples[0].nip, (uint64_t)overflow_loop, "SRR0");
    expect(samples[0].siar, (uint64_t)run_return - 4, "SIAR");
    expect(samples[0].sier & SIER_STATE, SIER_SIAR_VALID | SIER_SIHV, "SIER");
}

/* sc makes it negative: the interrupt stays pending in the hypervisor. */
TEST(overflow, at_system_call)
{
    write_pmc(5, PMC_NEGATIVE - 5 - RUN_STATE_OVERHEAD);
    sample();
    run(MMCR0_ALERT | MMCR0_FCECE | MMCR0_FCH, STATE_PROBLEM, overflow_loop,
        1);
    expect(sample_count, 0, "samples");
    expect(run_mmcr0 & (MMCR0_FC | MMCR0_PMAO), MMCR0_FC | MMCR0_PMAO,
           "MMCR0");
    expect(mfspr(SPR_SIAR), (uint64_t)run_return + 4, "SIAR");
    expect(mfspr(SPR_SIER) & SIER_STATE, SIER_SIAR_VALID | SIER_SIPR, "SIER");
}

/* Sample a stepped function in problem state every @period instructions. */
static void expect_samples(code_fn *fn, uint64_t arg, uint64_t total,
                           unsigned pmc, unsigned period)
{
    mtspr(SPR_MMCR1, EV_INSNS_ALL);
    for (unsigned i = 1; i <= NR_PMCS; i++) {
        write_pmc(i, 0);
    }
    write_pmc(pmc, PMC_NEGATIVE - period);
    sample();
    sample_reload(pmc, period);
    run(MMCR0_FCH | MMCR0_FCS | MMCR0_ALERT | MMCR0_FCECE, STATE_PROBLEM, fn,
        arg);
    /* The first of the two that leave can be sampled, too. */
    expect(sample_count, (total + 1) / period, "period %u: samples", period);
    for (unsigned i = 0; i < total / period && i < MAX_SAMPLES; i++) {
        expect(samples[i].siar, address_of(fn, (i + 1) * period),
               "period %u, sample %u: SIAR", period, i);
        expect(samples[i].nip, address_of(fn, (i + 1) * period + 1),
               "period %u, sample %u: SRR0", period, i);
    }
    pmu_reset();
}

TEST(overflow, periods)
{
    uint64_t total = count_steps(STATE_PROBLEM, overflow_mix, 0);

    for (unsigned period = 1; period <= total; period++) {
        expect_samples(overflow_mix, 0, total, 1 + period % NR_PMCS, period);
    }
}

TEST(overflow, loop)
{
    static const unsigned periods[] = { 1, 3, 7, 10, 100, 101, 511, 513 };
    const uint64_t turns = 300, total = 3 * turns + 2;

    expect(count_steps(STATE_PROBLEM, overflow_loop, turns), total, "steps");
    for (unsigned i = 0; i < ARRAY_SIZE(periods); i++) {
        expect_samples(overflow_loop, turns, total, 5, periods[i]);
    }
}

TEST(overflow, long_period)
{
    const uint64_t period = 100003, turns = 200000;

    write_pmc(5, PMC_NEGATIVE - period);
    sample();
    sample_reload(5, period);
    run(MMCR0_FCH | MMCR0_FCS | MMCR0_ALERT | MMCR0_FCECE, STATE_PROBLEM,
        overflow_loop, turns);
    expect(sample_count, (3 * turns + 3) / period, "samples");
    for (unsigned i = 0; i < sample_count; i++) {
        uint64_t n = (i + 1) * period - 2;

        expect(samples[i].siar, (uint64_t)overflow_loop + 4 + n % 3 * 4,
               "sample %u: SIAR", i);
    }
}

/* Six counters, each with its own period */
TEST(overflow, several_counters)
{
    static const unsigned periods[NR_PMCS] = { 7, 11, 13, 17, 5, 19 };
    const uint64_t turns = 100, total = 3 * turns + 2;
    unsigned i = 0;

    expect(count_steps(STATE_PROBLEM, overflow_loop, turns), total, "steps");
    mtspr(SPR_MMCR1, EV_INSNS(1) | EV_CYCLES(2) | EV_INSNS(3) | EV_CYCLES(4));
    sample();
    for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
        write_pmc(pmc, PMC_NEGATIVE - periods[pmc - 1]);
        sample_reload(pmc, periods[pmc - 1]);
    }
    run(MMCR0_FCH | MMCR0_FCS | MMCR0_ALERT | MMCR0_FCECE, STATE_PROBLEM,
        overflow_loop, turns);
    /* The first of the two that leave can be sampled, too. */
    for (uint64_t n = 1; n <= total + 1; n++) {
        bool any = false;

        for (unsigned p = 0; p < NR_PMCS; p++) {
            any |= n % periods[p] == 0;
        }
        if (!any) {
            continue;
        }
        expect(samples[i].siar, address_of(overflow_loop, n),
               "instruction %lu: SIAR", n);
        for (unsigned p = 0; p < NR_PMCS; p++) {
            expect(samples[i].pmc[p],
                   PMC_NEGATIVE - (periods[p] - 1 - (n - 1) % periods[p]),
                   "instruction %lu: PMC%u", n, p + 1);
        }
        i++;
    }
    expect(sample_count, i, "samples");
}

/* Without an alert or freeze, counters go on and wrap. */
TEST(overflow, wraps)
{
    static const uint64_t from[] = {
        0x7ffffff0, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff,
    };
    const uint64_t turns = 1000, total = 3 * turns + 2;

    mtspr(SPR_MMCR1, EV_INSNS_ALL);
    for (unsigned i = 0; i < ARRAY_SIZE(from); i++) {
        for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
            write_pmc(pmc, from[i]);
        }
        run(0, STATE_PROBLEM, overflow_loop, turns);
        for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
            expect(read_pmc(pmc),
                   (uint32_t)(from[i] + total + RUN_OVERHEAD),
                   "PMC%u from %lx", pmc, from[i]);
        }
    }
}

/* With an alert but no freeze, counters also go on, with only one alert. */
TEST(overflow, goes_on)
{
    const uint64_t turns = 1000, total = 3 * turns + 2;

    write_pmc(5, 0x7fffff00);
    run(MMCR0_ALERT, STATE_HV, overflow_loop, turns);
    expect(read_pmc(5), 0x7fffff00 + total + RUN_OVERHEAD, "PMC5");
    expect(run_mmcr0 & (MMCR0_FC | MMCR0_PMAO | MMCR0_PMAE), MMCR0_PMAO,
           "MMCR0");
    write_pmc(5, 0xffffff00);
    mtspr(SPR_MMCR0, MMCR0_FC);
    run(MMCR0_ALERT, STATE_HV, overflow_loop, turns);
    expect(read_pmc(5), (uint32_t)(0xffffff00 + total + RUN_OVERHEAD),
           "PMC5, wrapped");
}

/* Counters are 32 bits wide. */
TEST(overflow, width)
{
    for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
        write_pmc(pmc, 0x123456789abcdef0);
        expect(read_pmc(pmc), 0x9abcdef0, "PMC%u", pmc);
    }
}
