/*
 * Suite branch: branches of each kind, and taken branches
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

#define TURNS 20

/* The code around the branch is the same for each kind. */
CODE("branch_b:\n"              /* 2 */
     "    b 1f\n"
     "    nop\n"
     "1:  blr\n"
     "branch_taken:\n"          /* 2 */
     "    cmpd r3, r3\n"
     "    beq 1f\n"
     "    nop\n"
     "1:  blr\n"
     "branch_not_taken:\n"      /* 2, 1 taken */
     "    cmpd r3, r3\n"
     "    bne 1f\n"
     "    nop\n"
     "1:  blr\n"
     "branch_bdnz:\n"           /* r3 + 1, r3 taken */
     "    mtctr r3\n"
     "1:  bdnz 1b\n"
     "    blr\n"
     "branch_call:\n"           /* 3 */
     "    mflr r12\n"
     "    bl 1f\n"
     "    mtlr r12\n"
     "    blr\n"
     "1:  blr\n"
     "branch_always:\n"         /* bc that always branches: 2 */
     "    bc 20, 0, 1f\n"
     "    nop\n"
     "1:  blr\n"
     "branch_returns:\n"        /* 3, 1 taken */
     "    cmpd r3, r3\n"
     "    bnelr\n"
     "    bgtlr\n"
     "    beqlr\n"
     "    nop\n"
     "branch_none:\n"           /* traps and system calls do not count: 1 */
     "    li r0, 0x7e59\n"
     "    twi 4, r3, 0\n"
     "    isync\n"
     "    sc\n"
     "    blr\n"
     "branch_indirect:\n"       /* 4 */
     "    mflr r12\n"
     "    bcl 20, 31, branch_indirect_here\n"
     "branch_indirect_here:\n"
     "    mflr r5\n"
     "    addi r6, r5, branch_indirect_to - branch_indirect_here\n"
     "    mtctr r6\n"
     "    bctr\n"
     "    nop\n"
     "branch_indirect_to:\n"
     "    addi r6, r5, branch_indirect_tar - branch_indirect_here\n"
     "    mtspr 815, r6\n"
     "    bctar 20, 0\n"
     "    nop\n"
     "branch_indirect_tar:\n"
     "    mtlr r12\n"
     "    blr\n"
     "branch_conditional_bctr:\n"   /* 3, 2 taken */
     "    mflr r12\n"
     "    mtctr r12\n"
     "    cmpd r3, r3\n"
     "    bnectr\n"
     "    nop\n"
     "    b 1f\n"
     "1:  bctr\n");
code_fn branch_b, branch_taken, branch_not_taken, branch_bdnz, branch_call,
    branch_always, branch_returns, branch_none, branch_indirect,
    branch_conditional_bctr;

static const struct {
    const char *name;
    code_fn *fn;
    unsigned branches, taken;
} kinds[] = {
    { "b", branch_b, 2, 2 },
    { "taken", branch_taken, 2, 2 },
    { "not taken", branch_not_taken, 2, 1 },
    { "bdnz", branch_bdnz, TURNS + 1, TURNS },
    { "call", branch_call, 3, 3 },
    { "bc always", branch_always, 2, 2 },
    { "returns", branch_returns, 3, 1 },
    { "none", branch_none, 1, 1 },
    { "indirect", branch_indirect, 4, 4 },
    { "conditional bctr", branch_conditional_bctr, 3, 2 },
};

static const uint64_t states[] = {
    STATE_PROBLEM, STATE_HV_PROBLEM, STATE_PRIV,
};

TEST(branch, kinds)
{
    mtspr(SPR_MMCR1, EV_BRANCHES_1 | EV_TAKEN_2 | EV_INSNS(3)
                     | EV_BRANCHES_4);
    for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
        for (unsigned s = 0; s < ARRAY_SIZE(states); s++) {
            for (unsigned pmc = 1; pmc <= 4; pmc++) {
                write_pmc(pmc, 0);
            }
            /* The test's own branches are the hypervisor's. */
            run(MMCR0_FCH | (states[s] & MSR_PR ? MMCR0_FCS : 0), states[s],
                kinds[i].fn, TURNS);
            /* "sc" of the privileged state is handled in it: b, bne, bne. */
            uint64_t own = kinds[i].fn == branch_none
                           && states[s] == STATE_PRIV ? 3 : 0;

            expect(read_pmc(1), kinds[i].branches + own, "%s, state %u",
                   kinds[i].name, s);
            expect(read_pmc(4), kinds[i].branches + own,
                   "%s, state %u, PMC4", kinds[i].name, s);
            expect(read_pmc(2), kinds[i].taken + (own ? 2 : 0),
                   "%s, state %u, taken", kinds[i].name, s);
        }
    }
}

/* A loop with a conditional branch, taken and not taken, many times */
CODE("branch_mixed:\n"
     "    mtctr r3\n"
     "1:  andi. r0, r3, 1\n"
     "    addi r3, r3, -1\n"
     "    beq 2f\n"
     "    b 3f\n"
     "2:  nop\n"
     "3:  bdnz 1b\n"
     "    blr\n");
code_fn branch_mixed;

TEST(branch, loop)
{
    const unsigned n = 1000;

    mtspr(SPR_MMCR1, EV_BRANCHES_1 | EV_TAKEN_2);
    run(MMCR0_FCH, STATE_PROBLEM, branch_mixed, n);
    expect(read_pmc(1), 2 * n + n / 2 + 1, "branches");
    expect(read_pmc(2), n / 2 + n / 2 + n - 1 + 1, "taken");
}

/* A counter of branches overflows at the exact branch; turns alternate. */
TEST(branch, overflow)
{
    static const unsigned place[] = { 3, 4, 6, 3, 6 };

    mtspr(SPR_MMCR1, EV_BRANCHES_1);
    for (unsigned n = 1; n <= 60; n++) {
        write_pmc(1, PMC_NEGATIVE - n);
        sample();
        run(MMCR0_FCH | MMCR0_ALERT | MMCR0_FCECE, STATE_PROBLEM,
            branch_mixed, 101);
        expect(sample_count, 1, "branch %u: samples", n);
        expect(samples[0].siar,
               (uint64_t)branch_mixed + 4 * place[(n - 1) % 5],
               "branch %u: SIAR", n);
        expect(samples[0].pmc[0], PMC_NEGATIVE, "branch %u: PMC1", n);
    }
}
