/*
 * Bare-metal test guest: random programs of branches
 *
 * Functions of near branches of all kinds, which call each other and go back,
 * of instructions that fault, and of interrupts that switch the recording on
 * and off.  A walk over such a program in C, which executes none of it, tells
 * which branches it has to take.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef BARE_BRANCHES_H
#define BARE_BRANCHES_H

#include "lbr.h"

/* Of struct passed: no branch, but where lbr_switch is written. */
#define SWITCHED_ON         BIT(32)
#define SWITCHED_OFF        BIT(33)

/**
 * struct passed - what a program comes by
 * @from: the address of a branch that is taken
 * @to: where it goes
 * @kind: the bit of MSR_LBR_SELECT that leaves it out, or a SWITCHED_
 * @insns: how many instructions there have been, with it
 * @kernel: it goes to ring 0
 */
struct passed {
    uint64_t from, to, kind, insns;
    bool kernel;
};

/* Map the pages of programs, and set their gates; once in a test. */
void branches_prepare(void);

/**
 * branches_generate - write the next random program
 *
 * Returns: the program, which runs in either ring.  Its recording, by
 * lbr_switch, begins and ends within.
 */
code_fn *branches_generate(void);

/**
 * branches_walk - follow the program without executing it
 * @kernel: it is one of ring 0
 * @count: of what it comes by, set here
 *
 * Returns: that, in its order.
 */
const struct passed *branches_walk(bool kernel, unsigned *count);

/* Single steps through the program go where the last walk went. */
void branches_expect_steps(bool kernel);

#endif /* BARE_BRANCHES_H */
