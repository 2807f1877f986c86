/*
 * Suite count: instructions of straight lines, loops, calls and pages
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

/* Jump to the nth nop from the end: n + 1 instructions. */
CODE("count_line:\n"
     "    .rept 64\n"
     "    nop\n"
     "    .endr\n"
     "count_line_end:\n"
     "    blr\n");
LABEL(count_line_end);

TEST(count, straight_line)
{
    for (unsigned n = 0; n <= 64; n++) {
        code_fn *fn = (code_fn *)(count_line_end - 4 * n);

        expect_everywhere("line", fn, 0, n + 1);
    }
}

CODE("count_bdnz:\n"
     "    mtctr r3\n"
     "1:  bdnz 1b\n"
     "    blr\n"
     "count_loop:\n"
     "    mtctr r3\n"
     "1:  addi r4, r4, 1\n"
     "    nop\n"
     "    bdnz 1b\n"
     "    blr\n"
     "count_branchy:\n"
     "1:  andi. r0, r3, 1\n"
     "    beq 2f\n"
     "    nop\n"
     "2:  b 3f\n"
     "    nop\n"
     "3:  addic. r3, r3, -1\n"
     "    bne 1b\n"
     "    blr\n");
code_fn count_bdnz, count_loop, count_branchy;

TEST(count, loops)
{
    static const unsigned turns[] = { 1, 2, 3, 10, 100, 999 };

    for (unsigned i = 0; i < ARRAY_SIZE(turns); i++) {
        unsigned n = turns[i];

        expect_everywhere("bdnz", count_bdnz, n, n + 2);
        expect_everywhere("loop", count_loop, n, 3 * n + 2);
        expect_everywhere("branchy", count_branchy, n,
                          5 * n + (n + 1) / 2 + 1);
    }
    expect_everywhere("long loop", count_loop, 300000, 900002);
}

/* A call a turn by each kind of branch. */
CODE("count_calls:\n"
     "    mflr r12\n"
     "    mr r5, r3\n"
     "    bl count_calls_here\n"
     "count_calls_here:\n"
     "    mflr r6\n"
     "    addi r7, r6, count_calls_leaf - count_calls_here\n"
     "    addi r8, r6, count_calls_jump - count_calls_here\n"
     "1:  bl count_calls_leaf\n"    /* 2 with its return */
     "    mtctr r7\n"
     "    bctrl\n"              /* 3 */
     "    mtctr r8\n"
     "    bctr\n"               /* 2 */
     "    nop\n"
     "count_calls_jump:\n"
     "    mtspr 815, r7\n"
     "    bctarl 20, 0\n"       /* 3 */
     "    addic. r5, r5, -1\n"
     "    bne 1b\n"             /* 2 */
     "    mtlr r12\n"
     "    blr\n"
     "count_calls_leaf:\n"
     "    blr\n");
code_fn count_calls;

TEST(count, calls)
{
    expect_everywhere("calls", count_calls, 1, 6 + 12 + 2);
    expect_everywhere("calls", count_calls, 100, 6 + 1200 + 2);
}

/* A loop over a chain of blr, none of which the translator can chain. */
CODE("count_returns:\n"
     "    mflr r12\n"
     "    mtctr r3\n"
     "1:  bcl 20, 31, 2f\n"
     "    nop\n"
     "    bdnz 1b\n"
     "    mtlr r12\n"
     "    blr\n"
     "2:  nop\n"
     "    beqlr cr1\n"
     "    blr\n");
code_fn count_returns;

TEST(count, returns)
{
    uint64_t steps = count_steps(STATE_PROBLEM, count_returns, 50);

    expect(steps, 2 + 6 * 50 + 2 - (steps == 5 * 50 + 4 ? 50 : 0), "steps");
    expect_everywhere("returns", count_returns, 50, steps);
}

/* Blocks that end at a page's end, and loops across one. */
CODE("    .balign 0x10000\n"
     "    .space 0xff0\n"
     "count_pages:\n"
     "    mtctr r3\n"
     "1:  nop\n"
     "    nop\n"
     "    nop\n"
     "    nop\n"                /* the next page */
     "    b 2f\n"
     "    .space 0x1ff0\n"
     "2:  bdnz 1b\n"
     "    blr\n");
code_fn count_pages;

TEST(count, pages)
{
    expect_everywhere("pages", count_pages, 1, 8);
    expect_everywhere("pages", count_pages, 200, 2 + 6 * 200);
}

/* Lots of blocks, so that they do not all stay in the jump cache. */
CODE("count_blocks:\n"
     "    .rept 600\n"
     "    nop\n"
     "    b 1f\n"
     "    nop\n"
     "1:\n"
     "    .endr\n"
     "    blr\n");
code_fn count_blocks;

TEST(count, many_blocks)
{
    for (unsigned i = 0; i < 3; i++) {
        expect_everywhere("blocks", count_blocks, 0, 1201);
    }
}

/* Multiple and string accesses, each of which is one instruction. */
CODE("count_multiple:\n"
     "    stmw r14, 0(r3)\n"
     "    lmw r14, 0(r3)\n"
     "    stmw r31, 4(r3)\n"
     "    lmw r31, 4(r3)\n"
     "    stswi r5, r3, 13\n"
     "    lswi r5, r3, 13\n"
     "    li r4, 9\n"
     "    mtxer r4\n"
     "    lswx r6, 0, r3\n"
     "    stswx r6, 0, r3\n"
     "    dcbz 0, r3\n"
     "    lq r6, 0(r3)\n"
     "    stq r6, 0(r3)\n"
     "    blr\n");
code_fn count_multiple;

static uint8_t buffer[256] __attribute__((aligned(128)));

TEST(count, multiple_accesses)
{
    expect_everywhere("multiple", count_multiple, (uint64_t)buffer, 14);
}

/* A read of a counter sees all earlier instructions. */
CODE("count_reading:\n"
     "    mfspr r4, 791\n"      /* hrfid came before */
     "    mfspr r5, 791\n"
     "    nop\n"
     "    nop\n"
     "    mfspr r6, 791\n"
     "    mfspr r7, 792\n"
     "    mfspr r8, 787\n"
     "    b 1f\n"
     "1:  mfspr r9, 791\n"
     "    std r4, 0(r3)\n"
     "    std r5, 8(r3)\n"
     "    std r6, 16(r3)\n"
     "    std r7, 24(r3)\n"
     "    std r8, 32(r3)\n"
     "    std r9, 40(r3)\n"
     "    blr\n");
code_fn count_reading;

static void expect_readings(uint64_t msr, unsigned first, const char *what)
{
    static uint64_t read[6];
    static const unsigned behind[] = { 0, 1, 4, 5, 6, 8 };

    mtspr(SPR_MMCR1, EV_INSNS_ALL);
    mtspr(SPR_MMCR0, MMCR0_FC);
    for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
        write_pmc(pmc, 0);
    }
    run(0, msr, count_reading, (uint64_t)read);
    for (unsigned i = 0; i < ARRAY_SIZE(read); i++) {
        expect(read[i], first + behind[i], "%s: read %u", what, i);
    }
}

TEST(count, reads)
{
    expect_readings(STATE_HV, 1, "hypervisor");
    expect_readings(STATE_PRIV, 1, "privileged");
}

/* The write that stops counting is counted, the one that starts it is not. */
CODE("count_stopping:\n"
     "    mfspr r4, 795\n"
     "    oris r5, r4, 0x8000\n"
     "    mtspr 791, r3\n"      /* 1000: itself is counted then */
     "    nop\n"
     "    mtspr 795, r5\n"
     "    nop\n"
     "    nop\n"
     "    mfspr r3, 791\n"
     "    mtspr 795, r4\n"
     "    nop\n"
     "    mtspr 795, r5\n"
     "    mfspr r6, 791\n"
     "    subf r3, r3, r6\n"
     "    mulli r6, r6, 16\n"
     "    or r3, r3, r6\n"
     "    blr\n");
code_fn count_stopping;

TEST(count, writes)
{
    static const uint64_t states[] = { STATE_HV, STATE_PRIV };

    for (unsigned i = 0; i < ARRAY_SIZE(states); i++) {
        uint64_t r = run(0, states[i], count_stopping, 1000);

        expect(r & 15, 2, "state %u: between start and stop", i);
        expect(r >> 4, 1000 + 2 + 2, "state %u: behind a write", i);
    }
}
