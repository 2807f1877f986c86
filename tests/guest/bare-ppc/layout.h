/*
 * Bare-metal test guest for Power: numbers that C and assembly share
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef BARE_PPC_LAYOUT_H
#define BARE_PPC_LAYOUT_H

#define STACK_SIZE      0x8000

/* What r0 says at "sc 1" to the hypervisor, which is the test. */
#define CALL_EXIT       0x7e57  /* the code under test has returned */
#define CALL_RESUME     0x7e58  /* go on with the test at a checkpoint */
#define CALL_NOTHING    0x7e59  /* "sc" of any level returns at once */

/* Offsets in struct regs; lib.c asserts them. */
#define REGS_GPR        0
#define REGS_NIP        256
#define REGS_MSR        264
#define REGS_CR         272
#define REGS_LR         280
#define REGS_CTR        288
#define REGS_XER        296
#define REGS_VECTOR     304
#define REGS_SIZE       320

#define SPR_CTR         9
#define SPR_CTRL_WRITE  152
#define SPR_HSRR0       314
#define SPR_HSRR1       315
#define SPR_MMCR0       795

#endif /* BARE_PPC_LAYOUT_H */
