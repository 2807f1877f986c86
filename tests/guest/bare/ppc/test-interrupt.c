/*
 * Suite interrupt: decrementers, with handlers of known length
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

#define HANDLER_INSNS 7
#define HITS 5

/* The handlers use r10, and count in SPRG3. */
CODE("interrupt_decr:\n"
     "    mfspr r10, 275\n"
     "    addi r10, r10, 1\n"
     "    mtspr 275, r10\n"
     "    li r10, 20000\n"     /* TICKS */
     "    mtspr 22, r10\n"
     "    rfid\n"
     "interrupt_hdec:\n"
     "    mfspr r10, 275\n"
     "    addi r10, r10, 1\n"
     "    mtspr 275, r10\n"
     "    li r10, 20000\n"
     "    mtspr 310, r10\n"
     "    hrfid\n");
LABEL(interrupt_decr);
LABEL(interrupt_hdec);

/* Run until SPRG3 shows that r3 were handled; returns the turns. */
CODE("interrupt_loop:\n"
     "    mflr r12\n"
     "    li r4, 0\n"
     "1:  addi r4, r4, 1\n"
     "    bl 2f\n"
     "    mfspr r5, 259\n"
     "    cmpld r5, r3\n"
     "    blt 1b\n"
     "    mr r3, r4\n"
     "    mtlr r12\n"
     "    blr\n"
     "2:  blr\n");
code_fn interrupt_loop;

#define LOOP_INSNS(turns) (2 + 6 * (turns) + 3)

#define SPR_SPRG3 275

#define TICKS    20000
#define FAR_AWAY 0x1a000000000ull

static void set_timer(bool by_hv, uint64_t ticks)
{
    if (by_hv) {
        mtspr(SPR_HDEC, ticks);
    } else {
        mtspr(SPR_DECR, ticks);
    }
}

static void expect_interrupted(const char *what, uint64_t msr, bool by_hv)
{
    struct counts c;
    uint64_t handled, insns;
    bool in_hv = by_hv || msr & MSR_HV;
    bool hv = (msr & (MSR_HV | MSR_PR)) == MSR_HV;
    bool priv = !(msr & (MSR_HV | MSR_PR));

    mtspr(SPR_SPRG3, 0);
    set_timer(by_hv, TICKS);
    c = measure(msr | MSR_EE, interrupt_loop, HITS);
    set_timer(by_hv, FAR_AWAY);
    handled = mfspr(SPR_SPRG3) * HANDLER_INSNS;
    insns = LOOP_INSNS(c.result);
    expect_counts(what, c, (hv ? insns : 0) + (in_hv ? handled : 0),
                  (priv ? insns : 0) + (in_hv ? 0 : handled),
                  hv || priv ? 0 : insns);
}

TEST(interrupt, decrementer)
{
    set_vector(VEC_DECR, interrupt_decr);
    expect_interrupted("problem", STATE_PROBLEM, false);
    expect_interrupted("HV problem", STATE_HV_PROBLEM, false);
    expect_interrupted("privileged", STATE_PRIV, false);
    expect_interrupted("HV", STATE_HV, false);
}

TEST(interrupt, hypervisor_decrementer)
{
    set_vector(VEC_HDEC, interrupt_hdec);
    mtspr(SPR_HDEC, FAR_AWAY);
    mtspr(SPR_LPCR, mfspr(SPR_LPCR) | LPCR_HDICE);
    expect_interrupted("problem", STATE_PROBLEM, true);
    expect_interrupted("HV problem", STATE_HV_PROBLEM, true);
    expect_interrupted("privileged", STATE_PRIV, true);
    mtspr(SPR_LPCR, mfspr(SPR_LPCR) & ~LPCR_HDICE);
}

/* Many short counts, each of them interrupted or not. */
TEST(interrupt, shares)
{
    uint64_t priv = 0, problem = 0;

    set_vector(VEC_DECR, interrupt_decr);
    mtspr(SPR_SPRG3, 0);
    mtspr(SPR_DECR, TICKS);
    for (unsigned i = 0; i < 500; i++) {
        struct counts c = measure(STATE_PROBLEM, interrupt_loop, 0);

        priv += c.priv;
        problem += c.problem - LOOP_INSNS(c.result);
    }
    mtspr(SPR_DECR, FAR_AWAY);
    expect(problem, 0, "problem state, beside its own");
    expect(priv, mfspr(SPR_SPRG3) * HANDLER_INSNS, "handler");
}
