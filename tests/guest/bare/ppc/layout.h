/*
 * Bare-metal test guest: numbers that C and assembly share
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef BARE_LAYOUT_H
#define BARE_LAYOUT_H

#define STACK_SIZE_LOG  15
#define STACK_SIZE      (1 << STACK_SIZE_LOG)

/* Processors in addition to the first */
#define MAX_OTHERS      3

/* Values of r0 at "sc 1", which calls the hypervisor: the test */
#define CALL_EXIT       0x7e57  /* the code under test has returned */
#define CALL_RESUME     0x7e58  /* go on with the test at a checkpoint */
#define CALL_NOTHING    0x7e59  /* "sc" of any level returns at once */

/* Values in a domain, see hypervisor.h; r3 is an argument */
#define CALL_DOMAIN     0x7e60  /* these and above are for the hypervisor */
#define CALL_YIELD      0x7e60  /* let the other domain run */
#define CALL_PERF       0x7e61  /* use the PMU; no longer if r3 is 0 */
#define CALL_DONE       0x7e62  /* the domain has ended */

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

/* Offsets in struct domain; hypervisor.c asserts them. */
#define DOMAIN_SRR0     312
#define DOMAIN_SRR1     320
#define DOMAIN_STACK    328

/* Offsets in struct area; hypervisor.c asserts them. */
#define AREA_SAVED      0
#define AREA_RELOAD     32
#define AREA_MMCR0      40
#define AREA_COUNT      48
#define AREA_ALERTS     64
#define ALERT_SIZE_LOG  4
#define MAX_ALERTS_LOG  10

#define SPR_CTR         9
#define SPR_CTRL_WRITE  152
#define SPR_HSPRG0      304
#define SPR_HSPRG1      305
#define SPR_HSRR0       314
#define SPR_HSRR1       315
#define SPR_PMC5        791
#define SPR_MMCR0       795
#define SPR_SIAR        796

#define SPR_PIR         1023

#endif /* BARE_LAYOUT_H */
