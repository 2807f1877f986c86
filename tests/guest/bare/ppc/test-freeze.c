/*
 * Suite freeze: every freeze bit in every state, with and without MSR[PMM] and
 * the run latch, for every counter
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

#define LINE 10

CODE("freeze_line:\n"           /* LINE */
     "    .rept 9\n"
     "    nop\n"
     "    .endr\n"
     "    blr\n");
code_fn freeze_line;

static const uint64_t privilege[] = {
    STATE_HV, STATE_PRIV, STATE_PROBLEM, STATE_HV_PROBLEM,
};

/* Call @check for all states, with the MSR that leads to each. */
static void in_all_states(void (*check)(uint64_t msr, struct state s,
                                        uint64_t arg), uint64_t arg)
{
    for (unsigned n = 0; n < 4 * ARRAY_SIZE(privilege); n++) {
        uint64_t msr = privilege[n / 4] | (n & 1 ? MSR_PMM : 0);
        struct state s = {
            .hv = msr & MSR_HV,
            .problem = msr & MSR_PR,
            .pmm = n & 1,
            .run = n & 2,
        };

        mtspr(SPR_CTRL_WRITE, s.run);
        check(msr, s, arg);
    }
    mtspr(SPR_CTRL_WRITE, 1);
}

/* The test's own instructions run in the hypervisor, without PMM. */
static struct state own_state(struct state s)
{
    return (struct state) { .hv = true, .run = s.run };
}

static uint64_t expected(bool frozen, bool frozen_own)
{
    return (frozen ? 0 : LINE + RUN_STATE_OVERHEAD)
           + (frozen_own ? 0 : RUN_HV_OVERHEAD);
}

static void clear_pmcs(void)
{
    for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
        write_pmc(pmc, 0);
    }
}

static void check_mmcr0(uint64_t msr, struct state s, uint64_t bits)
{
    clear_pmcs();
    run(bits, msr, freeze_line, 0);
    for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
        expect(read_pmc(pmc),
               expected(frozen_by_mmcr0(bits, pmc, s),
                        frozen_by_mmcr0(bits, pmc, own_state(s))),
               "MMCR0 %lx, MSR %lx, run %u: PMC%u", bits, msr, s.run, pmc);
    }
}

TEST(freeze, mmcr0)
{
    static const uint64_t bits[] = {
        0, MMCR0_FC, MMCR0_FCS, MMCR0_FCP, MMCR0_FCPC, MMCR0_FCP | MMCR0_FCPC,
        MMCR0_FCM1, MMCR0_FCM0, MMCR0_FC14, MMCR0_FC56, MMCR0_FC14WAIT,
        MMCR0_FCH, MMCR0_CC56RUN,
    };

    mtspr(SPR_MMCR1, EV_INSNS_ALL);
    for (unsigned i = 0; i < ARRAY_SIZE(bits); i++) {
        in_all_states(check_mmcr0, bits[i]);
    }
}

/* Pairs: a counter is frozen if one of them freezes it. */
TEST(freeze, mmcr0_pairs)
{
    static const uint64_t bits[] = {
        MMCR0_FCS, MMCR0_FCH, MMCR0_FCM1, MMCR0_FCM0, MMCR0_FC14WAIT,
        MMCR0_CC56RUN, MMCR0_FCP,
    };

    mtspr(SPR_MMCR1, EV_INSNS_ALL);
    for (unsigned i = 0; i < ARRAY_SIZE(bits); i++) {
        for (unsigned j = 0; j < i; j++) {
            in_all_states(check_mmcr0, bits[i] | bits[j]);
        }
    }
}

/* @arg: 8 * counter + the bit's number; all others count. */
static void check_mmcr2(uint64_t msr, struct state s, uint64_t arg)
{
    unsigned n = arg % 8, of = arg / 8;

    mtspr(SPR_MMCR2, MMCR2_FIELD(n, of));
    clear_pmcs();
    run(MMCR0_CC56RUN, msr, freeze_line, 0);
    for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
        expect(read_pmc(pmc),
               pmc == of ? expected(frozen_by_mmcr2(n, s),
                                    frozen_by_mmcr2(n, own_state(s)))
                         : expected(false, false),
               "bit %u of PMC%u, MSR %lx, run %u: PMC%u", n, of, msr, s.run,
               pmc);
    }
}

TEST(freeze, mmcr2)
{
    mtspr(SPR_MMCR1, EV_INSNS_ALL);
    for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
        for (unsigned n = 0; n <= 6; n++) {
            in_all_states(check_mmcr2, 8 * pmc + n);
        }
    }
}

/* 100f0 goes on without the run latch; 200f4 and 400fa never do. */
TEST(freeze, run_latch_events)
{
    const uint64_t all = LINE + RUN_OVERHEAD;

    mtspr(SPR_MMCR1, EVENT(1, 0, 0xf0) | EV_RUN_CYCLES_2 | EV_INSNS(3)
                     | EV_RUN_INSNS_4);
    for (unsigned wait = 0; wait < 2; wait++) {
        for (unsigned latch = 0; latch < 2; latch++) {
            clear_pmcs();
            mtspr(SPR_CTRL_WRITE, latch);
            run(wait ? MMCR0_FC14WAIT : 0, STATE_HV, freeze_line, 0);
            expect(read_pmc(1), all, "wait %u, run %u: 100f0", wait, latch);
            expect(read_pmc(2), latch ? all : 0, "wait %u, run %u: 200f4",
                   wait, latch);
            expect(read_pmc(3), latch || !wait ? all : 0,
                   "wait %u, run %u: instructions", wait, latch);
            expect(read_pmc(4), latch ? all : 0, "wait %u, run %u: 400fa",
                   wait, latch);
        }
    }
}

/* MSR[PMM] and CTRL[RUN] change while counters count. */
CODE("freeze_mtmsr:\n"
     "    mfmsr r5\n"
     "    ori r6, r5, 4\n"      /* PMM */
     "    nop\n"
     "    mtmsrd r6\n"          /* 4 so far */
     "    nop\n"
     "    nop\n"
     "    nop\n"
     "    mtmsrd r5\n"          /* 4 marked */
     "    nop\n"
     "    blr\n"                /* 2 */
     "freeze_latch:\n"
     "    li r5, 0\n"
     "    li r6, 1\n"
     "    mtspr 152, r5\n"      /* 3 so far */
     "    nop\n"
     "    nop\n"
     "    nop\n"
     "    mtspr 152, r6\n"      /* 4 without the latch */
     "    nop\n"
     "    blr\n");              /* 2 */
code_fn freeze_mtmsr, freeze_latch;

TEST(freeze, pmm_changes)
{
    static const uint64_t states[] = { STATE_HV, STATE_PRIV };

    mtspr(SPR_MMCR1, EV_INSNS_ALL);
    mtspr(SPR_MMCR2, MMCR2_FIELD(FCNM0, 1) | MMCR2_FIELD(FCNM1, 2));
    for (unsigned i = 0; i < ARRAY_SIZE(states); i++) {
        clear_pmcs();
        run(0, states[i], freeze_mtmsr, 0);
        expect(read_pmc(1), 4, "state %u: marked", i);
        expect(read_pmc(2), 6 + RUN_OVERHEAD, "state %u: not marked", i);
        expect(read_pmc(5), 10 + RUN_OVERHEAD, "state %u: all", i);
    }
}

TEST(freeze, latch_changes)
{
    mtspr(SPR_MMCR1, EV_INSNS_ALL);
    mtspr(SPR_MMCR2, MMCR2_FIELD(FCNWAIT, 1));
    run(0, STATE_HV, freeze_latch, 0);
    expect(read_pmc(1), 5 + RUN_OVERHEAD, "with the latch");
    expect(read_pmc(5), 5 + RUN_OVERHEAD, "PMC5");
    expect(read_pmc(2), 9 + RUN_OVERHEAD, "all");
    clear_pmcs();
    run(MMCR0_CC56RUN, STATE_HV, freeze_latch, 0);
    expect(read_pmc(5), 9 + RUN_OVERHEAD, "PMC5, which always counts");
}

/* An interrupt clears PMM, and the return from it sets PMM again. */
CODE("freeze_interrupted:\n"
     "    li r0, 0x7e59\n"
     "    nop\n"
     "    sc\n"
     "    nop\n"
     "    blr\n");
code_fn freeze_interrupted;

TEST(freeze, pmm_and_interrupts)
{
    mtspr(SPR_MMCR1, EV_INSNS_ALL);
    mtspr(SPR_MMCR2, MMCR2_FIELD(FCNM0, 1) | MMCR2_FIELD(FCNM1, 2));
    run(0, STATE_PRIV | MSR_PMM, freeze_interrupted, 0);
    expect(read_pmc(1), 5 + RUN_STATE_OVERHEAD, "marked");
    expect(read_pmc(2), NOTHING_INSNS + RUN_HV_OVERHEAD, "not marked");
}

/* Counters are frozen at reset, and MMCR0 keeps only the bits that it has. */
TEST(freeze, mmcr0_bits)
{
    mtspr(SPR_MMCR0, -1ull & ~(MMCR0_PMAO | MMCR0_TBEE));
    expect(mfspr(SPR_MMCR0) >> 32, 0, "upper half");
    expect(mfspr(SPR_MMCR0) & MMCR0_PMCCEXT,
           is_power10() ? MMCR0_PMCCEXT : 0, "PMCCEXT");
    expect(mfspr(SPR_MMCR0) & (MMCR0_FC | MMCR0_FCS | MMCR0_FCH),
           MMCR0_FC | MMCR0_FCS | MMCR0_FCH, "freeze bits");
}
