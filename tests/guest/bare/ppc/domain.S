/*
 * Bare-metal test guest: the way into a domain and out of it, and
 * the domains' kernel
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "layout.h"
#include "regs.inc"

    .machine power10
    .text

/*
 * void domain_enter(struct domain *domain)
 *
 * HSPRG0 is the domain's address as long as it runs.
 */
    .globl domain_enter
domain_enter:
    mflr r0
    std r0, 16(r1)
    mfcr r0
    std r0, 8(r1)
    stdu r1, -512(r1)
    std r2, 24(r1)
    gprs std, 14, r1
    std r1, DOMAIN_STACK(r3)
    mtspr SPR_HSPRG0, r3
    mr r1, r3
    ld r3, DOMAIN_SRR0(r1)
    mtsrr0 r3
    ld r3, DOMAIN_SRR1(r1)
    mtsrr1 r3
    restore_regs SPR_HSRR0, SPR_HSRR1
    hrfid

/* An interrupt to the hypervisor: domain_enter() returns. */
.macro leave vector, srr0, srr1
    mtspr SPR_HSPRG1, r1
    mfspr r1, SPR_HSPRG0
    std r0, REGS_GPR(r1)
    gprs std, 2, r1
    mfspr r3, SPR_HSPRG1
    std r3, REGS_GPR+8*1(r1)
    mflr r3
    std r3, REGS_LR(r1)
    li r3, \vector
    std r3, REGS_VECTOR(r1)
    save_special r1, \srr0, \srr1
    b domain_left
.endm

    .globl domain_hdec
domain_hdec:
    leave 0x980, SPR_HSRR0, SPR_HSRR1

    .globl domain_refused
domain_refused:
    leave 0xf80, SPR_HSRR0, SPR_HSRR1

/* "sc" of any level; numbers below CALL_DOMAIN are not for the hypervisor. */
    .globl domain_call
domain_call:
    cmpldi cr7, r0, CALL_DOMAIN
    blt cr7, syscall_vector
    leave 0xc00, 26, 27

domain_left:
    mfsrr0 r3
    std r3, DOMAIN_SRR0(r1)
    mfsrr1 r3
    std r3, DOMAIN_SRR1(r1)
    ld r1, DOMAIN_STACK(r1)
    ld r2, 24(r1)
    gprs ld, 14, r1
    addi r1, r1, 512
    ld r0, 8(r1)
    mtcr r0
    ld r0, 16(r1)
    mtlr r0
    blr

/*
 * The domains' handler of performance monitor interrupts, on the domain's
 * struct area at r13.  Counters are frozen in it by FCECE until it writes
 * MMCR0.
 */
    .globl domain_alert
domain_alert:
    std r20, AREA_SAVED(r13)
    std r21, AREA_SAVED+8(r13)
    std r22, AREA_SAVED+16(r13)
    ld r20, AREA_COUNT(r13)
    addi r21, r20, 1
    std r21, AREA_COUNT(r13)
    clrlsldi r20, r20, 64 - MAX_ALERTS_LOG, ALERT_SIZE_LOG
    add r20, r20, r13
    mfspr r21, SPR_SIAR
    std r21, AREA_ALERTS(r20)
    mfsrr0 r21
    std r21, AREA_ALERTS+8(r20)
    ld r21, AREA_RELOAD(r13)
    mtspr SPR_PMC5, r21
    ld r22, AREA_MMCR0(r13)
    mtspr SPR_MMCR0, r22
    ld r20, AREA_SAVED(r13)
    ld r21, AREA_SAVED+8(r13)
    ld r22, AREA_SAVED+16(r13)
    rfid
