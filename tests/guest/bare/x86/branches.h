/*
 * Bare-metal test guest: random programs of branches
 *
 * Programs have functions that call each other and loop, with near branches of
 * all kinds, instructions that fault, and interrupts that switch the recording
 * on and off.  A walk over such a program in C, which does not execute it,
 * finds the branches that it has to take.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef BARE_BRANCHES_H
#define BARE_BRANCHES_H

#include "lbr.h"

/* Kinds of struct passed that are writes of lbr_switch, not branches */
#define SWITCHED_ON         BIT(32)
#define SWITCHED_OFF        BIT(33)

/**
 * struct passed - a branch, or switch of recording, in a walk
 * @from: the address of a taken branch
 * @to: its target
 * @kind: the bit of MSR_LBR_SELECT that excludes it, or a SWITCHED_
 * @insns: the number of instructions so far, including this one
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
 * @kernel: it runs in ring 0
 * @count: set to the number of elements
 *
 * Returns: branches and switches, in their order.
 */
const struct passed *branches_walk(bool kernel, unsigned *count);

/* Check that single steps through the program agree with the last walk. */
void branches_expect_steps(bool kernel);

#endif /* BARE_BRANCHES_H */
