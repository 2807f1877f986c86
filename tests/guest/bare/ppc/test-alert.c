/*
 * Suite alert: effects of a negative counter, besides further counting
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

#define LINE 20

CODE("alert_line:\n"            /* LINE */
     "    .rept 19\n"
     "    nop\n"
     "    .endr\n"
     "    blr\n");
code_fn alert_line;

/* Instructions of run() before the line's first */
#define BEFORE 1

#define VISIBLE (MMCR0_FC | MMCR0_PMAO | MMCR0_PMAE | MMCR0_TRIGGER)

/* FCECE freezes at the exact instruction, with or without an alert. */
TEST(alert, freeze)
{
    mtspr(SPR_MMCR1, EV_INSNS_ALL);
    for (unsigned n = 1; n <= LINE; n++) {
        for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
            write_pmc(pmc, 100 * pmc);
        }
        write_pmc(2, PMC_NEGATIVE - n);
        run(MMCR0_FCECE | MMCR0_PMCJCE, STATE_HV, alert_line, 0);
        expect(run_mmcr0 & VISIBLE, MMCR0_FC, "%u: MMCR0", n);
        expect(read_pmc(2), PMC_NEGATIVE, "%u: PMC2", n);
        expect(read_pmc(1), 100 + n, "%u: PMC1", n);
        expect(read_pmc(5), 500 + n, "%u: PMC5", n);
        expect(read_pmc(6), 600 + n, "%u: PMC6", n);
    }
}

/* Enables of the conditions of PMC1 and of other counters */
TEST(alert, conditions)
{
    static const uint64_t enabled[] = {
        0, MMCR0_PMC1CE, MMCR0_PMCJCE, MMCR0_PMC1CE | MMCR0_PMCJCE,
    };

    mtspr(SPR_MMCR1, EV_INSNS_ALL);
    for (unsigned i = 0; i < ARRAY_SIZE(enabled); i++) {
        for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
            bool due = enabled[i] & (pmc == 1 ? MMCR0_PMC1CE : MMCR0_PMCJCE);

            for (unsigned other = 1; other <= NR_PMCS; other++) {
                write_pmc(other, 0);
            }
            write_pmc(pmc, PMC_NEGATIVE - 9);
            run(MMCR0_FCECE | MMCR0_PMAE | enabled[i], STATE_HV, alert_line,
                0);
            expect(run_mmcr0 & VISIBLE,
                   due ? MMCR0_FC | MMCR0_PMAO : MMCR0_PMAE,
                   "enabled %lx, PMC%u: MMCR0", enabled[i], pmc);
            expect(read_pmc(pmc),
                   PMC_NEGATIVE - 9 + (due ? 9 : LINE + RUN_OVERHEAD),
                   "enabled %lx, PMC%u", enabled[i], pmc);
        }
    }
}

/* A counter that is negative is a condition as soon as that is enabled. */
TEST(alert, already_negative)
{
    write_pmc(3, PMC_NEGATIVE + 5);
    mtspr(SPR_MMCR0, MMCR0_FC | MMCR0_PMAE);
    expect(mfspr(SPR_MMCR0) & VISIBLE, MMCR0_FC | MMCR0_PMAE, "not enabled");
    mtspr(SPR_MMCR0, MMCR0_FC | MMCR0_PMAE | MMCR0_PMCJCE);
    expect(mfspr(SPR_MMCR0) & VISIBLE, MMCR0_FC | MMCR0_PMAO, "enabled");
    mtspr(SPR_MMCR0, MMCR0_FCECE | MMCR0_PMCJCE);
    expect(mfspr(SPR_MMCR0) & VISIBLE, MMCR0_FC, "freeze");
    mtspr(SPR_MMCR0, MMCR0_FC | MMCR0_PMAE | MMCR0_PMC1CE);
    write_pmc(1, PMC_NEGATIVE);
    expect(mfspr(SPR_MMCR0) & VISIBLE, MMCR0_FC | MMCR0_PMAO, "write");
}

/* The other counters wait for PMC1; FCECE does not freeze then. */
TEST(alert, trigger)
{
    static const uint64_t with[] = {
        0, MMCR0_PMC1CE, MMCR0_PMC1CE | MMCR0_FCECE,
        MMCR0_PMC1CE | MMCR0_PMAE,
    };

    mtspr(SPR_MMCR1, EV_INSNS_ALL);
    for (unsigned i = 0; i < ARRAY_SIZE(with); i++) {
        for (unsigned pmc = 2; pmc <= NR_PMCS; pmc++) {
            write_pmc(pmc, 0);
        }
        write_pmc(1, PMC_NEGATIVE - 7);
        run(MMCR0_TRIGGER | with[i], STATE_HV, alert_line, 0);
        expect(run_mmcr0 & VISIBLE, with[i] & MMCR0_PMAE ? MMCR0_PMAO : 0,
               "%lx: MMCR0", with[i]);
        for (unsigned pmc = 2; pmc <= NR_PMCS; pmc++) {
            expect(read_pmc(pmc), LINE + RUN_OVERHEAD - 7, "%lx: PMC%u",
                   with[i], pmc);
        }
        expect(read_pmc(1), PMC_NEGATIVE - 7 + LINE + RUN_OVERHEAD,
               "%lx: PMC1", with[i]);
    }
}

/*
 * PMC1 stays negative, and that is no condition that occurs again: whatever is
 * written meanwhile, the counters go on, until PMC2 turns negative.
 */
CODE("alert_spent:\n"           /* LINE */
     "    li r3, 0\n"
     "    .rept 9\n"
     "    nop\n"
     "    .endr\n"
     "    mtspr 797, r3\n"      /* SDAR */
     "    mtspr 785, r3\n"      /* MMCR2 */
     "    mtspr 773, r3\n"      /* PMC3 */
     "    .rept 6\n"
     "    nop\n"
     "    .endr\n"
     "    blr\n");
code_fn alert_spent;

TEST(alert, trigger_spent)
{
    const uint64_t with = MMCR0_PMC1CE | MMCR0_PMCJCE | MMCR0_FCECE;

    mtspr(SPR_MMCR1, EV_INSNS_ALL);
    for (unsigned n = 1; n <= 10; n++) {
        write_pmc(2, 0);
        write_pmc(1, PMC_NEGATIVE - 7);
        run(MMCR0_TRIGGER | with, STATE_HV, alert_spent, 0);
        expect(run_mmcr0 & VISIBLE, 0, "%u: MMCR0", n);
        expect(read_pmc(2), LINE + RUN_OVERHEAD - 7, "%u: PMC2", n);

        write_pmc(2, PMC_NEGATIVE - n);
        write_pmc(1, PMC_NEGATIVE - 7);
        run(MMCR0_TRIGGER | with, STATE_HV, alert_spent, 0);
        expect(run_mmcr0 & VISIBLE, MMCR0_FC, "%u: MMCR0 in the end", n);
        expect(read_pmc(2), PMC_NEGATIVE, "%u: PMC2 in the end", n);
        expect(read_pmc(1), PMC_NEGATIVE + n, "%u: PMC1 in the end", n);
    }
}

/* Never met, they never count. */
TEST(alert, trigger_waits)
{
    mtspr(SPR_MMCR1, EV_INSNS_ALL);
    run(MMCR0_TRIGGER | MMCR0_PMC1CE, STATE_HV, alert_line, 0);
    expect(read_pmc(1), LINE + RUN_OVERHEAD, "PMC1");
    for (unsigned pmc = 2; pmc <= NR_PMCS; pmc++) {
        expect(read_pmc(pmc), 0, "PMC%u", pmc);
    }
    expect(run_mmcr0 & VISIBLE, MMCR0_TRIGGER, "MMCR0");
}

/* Software sets PMAO: the interrupt comes as soon as it can. */
TEST(alert, by_software)
{
    static const uint64_t states[] = {
        STATE_PROBLEM, STATE_HV_PROBLEM, STATE_PRIV | MSR_EE,
        STATE_HV | MSR_EE,
    };

    for (unsigned i = 0; i < ARRAY_SIZE(states); i++) {
        sample();
        mtspr(SPR_MMCR0, MMCR0_FC | MMCR0_PMAO);
        run(MMCR0_FC | MMCR0_PMAO, states[i], alert_line, 0);
        expect(sample_count, 1, "state %u: samples", i);
        expect(samples[0].nip, (uint64_t)alert_line, "state %u: SRR0", i);
        expect(samples[0].msr & (MSR_HV | MSR_PR | MSR_EE),
               states[i] & (MSR_HV | MSR_PR | MSR_EE), "state %u: SRR1", i);
    }
}

/* The interrupt follows a level: if PMAO is cleared in time, none comes. */
TEST(alert, taken_back)
{
    sample();
    mtspr(SPR_MMCR0, MMCR0_FC | MMCR0_PMAO);
    mtspr(SPR_MMCR0, MMCR0_FC);
    run(MMCR0_FC, STATE_PROBLEM, alert_line, 0);
    expect(sample_count, 0, "samples");
}

static unsigned handled;
static uint64_t handled_at[8];

static void clear_at_third(struct regs *regs)
{
    if (handled < ARRAY_SIZE(handled_at)) {
        handled_at[handled] = regs->nip;
    }
    if (++handled == 3) {
        mtspr(SPR_MMCR0, MMCR0_FC);
    }
}

TEST(alert, level)
{
    handled = 0;
    on_trap(VEC_PERFM, clear_at_third);
    run(MMCR0_FC | MMCR0_PMAO, STATE_PROBLEM, alert_line, 0);
    expect(handled, 3, "interrupts");
    expect(handled_at[2], (uint64_t)alert_line, "SRR0");
}

/* While interrupts are disabled, the alert is pending. */
CODE("alert_masked:\n"
     "    mfmsr r5\n"
     "    ori r6, r5, 0x8000\n"
     "    nop\n"
     "    nop\n"
     "alert_masked_at:\n"
     "    nop\n"                /* the fifth */
     "    nop\n"
     "    mtmsrd r6\n"
     "alert_enabled:\n"
     "    nop\n"
     "    mtmsrd r5\n"
     "    blr\n");
code_fn alert_masked;
LABEL(alert_masked_at);
LABEL(alert_enabled);

TEST(alert, masked)
{
    static const uint64_t states[] = { STATE_PRIV, STATE_HV };

    for (unsigned i = 0; i < ARRAY_SIZE(states); i++) {
        write_pmc(5, PMC_NEGATIVE - BEFORE - 5);
        sample();
        run(MMCR0_ALERT | MMCR0_FCECE, states[i], alert_masked, 0);
        expect(sample_count, 1, "state %u: samples", i);
        expect(samples[0].siar, (uint64_t)alert_masked_at, "state %u: SIAR",
               i);
        expect(samples[0].nip, (uint64_t)alert_enabled, "state %u: SRR0", i);
    }
}

/*
 * With PMCC = 3, PMC5 and PMC6 are outside the facility: they count, and cause
 * no alerts.  Bits that freeze other counters do not freeze them.  Both go on
 * until PMCC changes, and also count code of the compiler's, equally.
 */
CODE("alert_outside:\n"         /* OUTSIDE before the first read */
     "    .rept 20\n"
     "    nop\n"
     "    .endr\n"
     "    mfspr r3, 791\n"
     "    mfspr r4, 792\n"
     "    sldi r3, r3, 32\n"
     "    or r3, r3, r4\n"
     "    blr\n");
code_fn alert_outside;

#define OUTSIDE (BEFORE + 20)

TEST(alert, outside)
{
    uint64_t inside;

    mtspr(SPR_MMCR1, EV_INSNS_ALL);
    write_pmc(5, PMC_NEGATIVE - 3);
    write_pmc(6, 0);
    inside = run(MMCR0_PMCC(3) | MMCR0_ALERT | MMCR0_FCECE | MMCR0_FCH,
                 STATE_HV, alert_outside, 0);
    expect(inside >> 32, PMC_NEGATIVE - 3 + OUTSIDE, "PMC5 inside");
    expect((uint32_t)inside, OUTSIDE + 1, "PMC6 inside");
    expect(run_mmcr0 & VISIBLE, MMCR0_PMAE, "MMCR0");
    expect(read_pmc(1), 0, "PMC1");
    mtspr(SPR_MMCR0, MMCR0_FC);
    expect(read_pmc(6) >= OUTSIDE + 5 + RUN_OVERHEAD - BEFORE, true, "PMC6");
    expect(read_pmc(5), PMC_NEGATIVE - 3 + read_pmc(6), "PMC5");
}

/* Transitions of the time base are events. */
TEST(alert, time_base)
{
    for (unsigned bit = 0; bit < 4; bit++) {
        mtspr(SPR_MMCR0, MMCR0_PMAE | MMCR0_FCECE | MMCR0_TBEE
                         | MMCR0_TBSEL(bit));
        expect(spin_until(mfspr(SPR_MMCR0) & MMCR0_PMAO), true,
               "TBSEL %u: alert", bit);
        expect(mfspr(SPR_MMCR0) & VISIBLE, MMCR0_FC | MMCR0_PMAO,
               "TBSEL %u: MMCR0", bit);
        mtspr(SPR_MMCR0, MMCR0_FC);
    }
}

#define TRANSITION 0x10000 /* of the bit that TBSEL 0 selects */

/*
 * Set the time base back whenever it is half way to the transition, for about
 * ten times the time until the transition.
 *
 * Returns: whether there was an alert
 */
static bool alerts_without_transition(void)
{
    mtspr(SPR_TBL_WRITE, 0);
    mtspr(SPR_MMCR0, MMCR0_PMAE | MMCR0_TBEE | MMCR0_TBSEL(0));
    for (unsigned i = 0; i < 20; i++) {
        spin_until((uint32_t)mfspr(SPR_TBL) >= TRANSITION / 2);
        mtspr(SPR_TBL_WRITE, 0);
    }
    return mfspr(SPR_MMCR0) & MMCR0_PMAO;
}

/*
 * Events follow writes of the time base.  If the host delays the CPU, the time
 * base passes the transition, and the trial proves nothing.  Under icount there
 * are no delays, and the first trial decides.
 */
TEST(alert, time_base_written)
{
    bool alerts = true;

    for (unsigned trial = 0; alerts && trial < 200; trial++) {
        alerts = alerts_without_transition();
        mtspr(SPR_MMCR0, MMCR0_FC);
    }
    expect(alerts, false, "alerts in all of 200 trials");
    mtspr(SPR_TBL_WRITE, 0);
    mtspr(SPR_MMCR0, MMCR0_PMAE | MMCR0_TBEE | MMCR0_TBSEL(0));
    mtspr(SPR_TBL_WRITE, TRANSITION - 1);
    expect(spin_until(mfspr(SPR_MMCR0) & MMCR0_PMAO), true, "alert");
}

#define SPR_PSSCR 855
#define PSSCR_EC  BIT(43)

CODE("alert_wait:\n"
     "    .long 0x7c00003c\n"  /* wait */
     "alert_waited:\n"
     "    blr\n");
code_fn alert_wait;
LABEL(alert_waited);

/* In ticks of the decrementer, which are 2 ns long */
#define A_SECOND 500000000

#define TB_ALERT (MMCR0_PMAE | MMCR0_TBEE | MMCR0_TBSEL(0))

/* One that comes before the instruction is of no use: there is a next one. */
static void until_waited(struct regs *regs)
{
    handled_at[0] = regs->nip;
    mtspr(SPR_MMCR0, regs->nip == (uint64_t)alert_waited ? MMCR0_FC : TB_ALERT);
}

/* An alert ends "wait", whatever PSSCR[EC] says, which is about "stop". */
TEST(alert, wait)
{
    static const uint64_t states[] = {
        STATE_PROBLEM, STATE_HV_PROBLEM, STATE_PRIV | MSR_EE,
        STATE_HV | MSR_EE,
    };

    on_trap(VEC_PERFM, until_waited);
    for (unsigned i = 0; i < ARRAY_SIZE(states); i++) {
        for (unsigned ec = 0; ec <= 1; ec++) {
            mtspr(SPR_PSSCR, ec ? PSSCR_EC : 0);
            handled_at[0] = 0;
            run(TB_ALERT, states[i], alert_wait, 0);
            expect(handled_at[0], (uint64_t)alert_waited,
                   "state %u, EC %u: SRR0", i, ec);
        }
    }
    mtspr(SPR_PSSCR, 0);
}

/* One that is pending, and not taken as MSR[EE] is 0, ends "wait" at once. */
TEST(alert, wait_pending)
{
    static const uint64_t states[] = { STATE_PRIV, STATE_HV };

    for (unsigned i = 0; i < ARRAY_SIZE(states); i++) {
        mtspr(SPR_DECR, A_SECOND);
        run(MMCR0_FC | MMCR0_PMAO, states[i], alert_wait, 0);
        expect((int64_t)mfspr(SPR_DECR) > 0, true,
               "state %u: ended before the decrementer ended it", i);
        mtspr(SPR_MMCR0, MMCR0_FC);
    }
}

/* An alert is enabled without a cause, and none comes. */
TEST(alert, none)
{
    sample();
    run(MMCR0_ALERT | MMCR0_FCECE, STATE_PROBLEM, alert_line, 0);
    expect(sample_count, 0, "samples");
    expect(run_mmcr0 & VISIBLE, MMCR0_PMAE, "MMCR0");
}

/* A running counter that is written causes no alert by its old value. */
TEST(alert, rewritten)
{
    for (unsigned i = 0; i < 20; i++) {
        write_pmc(6, PMC_NEGATIVE - 30);
        mtspr(SPR_MMCR0, MMCR0_ALERT | MMCR0_FCECE);
        write_pmc(6, 0);
        for (unsigned n = 0; n < 100; n++) {
            asm volatile("nop");
        }
        expect(mfspr(SPR_MMCR0) & VISIBLE, MMCR0_PMAE, "MMCR0");
        mtspr(SPR_MMCR0, MMCR0_FC);
    }
}
