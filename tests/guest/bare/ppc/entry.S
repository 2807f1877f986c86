/*
 * Bare-metal test guest: interrupt vectors, and the ways into and
 * out of the code under test
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "layout.h"
#include "regs.inc"

    .machine power10

/* An address below 2 GiB. */
.macro load_address reg, symbol
    lis \reg, \symbol@ha
    addi \reg, \reg, \symbol@l
.endm

/*
 * Each vector is a branch, which set_vector() may direct elsewhere; by
 * default, to a stub that calls trap().
 */
.macro vector address, returns=rfid
    .org \address
    .globl vector_\address
vector_\address:
    b stub_\address
    .pushsection .text, "ax"
stub_\address:
    mtsprg 0, r1
    mtsprg 1, r0
    mflr r0
    mtsprg 2, r0
    li r0, \address
    .ifc \returns, rfid
    bl trap_common
    .else
    bl trap_hv_common
    .endif
    .popsection
.endm

    .section .vectors, "ax"
    .globl _start
_start:
    b boot
    .org 0x10
    b boot

    vector 0x100
    vector 0x200
    vector 0x300
    vector 0x380
    vector 0x400
    vector 0x480
    vector 0x500
    vector 0x600
    vector 0x700
    vector 0x800
    vector 0x900
    vector 0x980, hrfid
    vector 0xa00
    .org 0xc00
    b syscall_vector
    vector 0xd00
    vector 0xe00, hrfid
    vector 0xe20, hrfid
    vector 0xe40, hrfid
    vector 0xe60, hrfid
    vector 0xe80, hrfid
    vector 0xea0, hrfid
    vector 0xf00
    vector 0xf20
    vector 0xf40
    vector 0xf60
    vector 0xf80, hrfid
    .org 0x1000

    .text

/* All processors begin here; all but the first wait for work. */
boot:
    mfspr r4, SPR_PIR
    cmpdi r4, 0
    bne wait_for_work
    mr r31, r3
    load_address r4, bss_begin
    load_address r5, bss_end
    li r0, 0
1:  std r0, 0(r4)
    addi r4, r4, 8
    cmpld r4, r5
    blt 1b
    load_address r1, stack + STACK_SIZE - 64
    lis r2, .TOC.@ha
    addi r2, r2, .TOC.@l
    mr r3, r31
    bl start_machine
2:  b 2b

/*
 * Each processor takes the next index, which selects its stack.  work is in
 * .data, as the first processor clears .bss meanwhile.
 */
wait_for_work:
    load_address r31, others_started
1:  lwarx r30, 0, r31
    addi r4, r30, 1
    stwcx. r4, 0, r31
    bne- 1b
    sldi r4, r4, STACK_SIZE_LOG
    load_address r1, other_stacks - 64
    add r1, r1, r4
    lis r2, .TOC.@ha
    addi r2, r2, .TOC.@l
    load_address r31, work
    sldi r4, r30, 3
    add r31, r31, r4
1:  or r27, r27, r27        /* yield */
    ld r12, 0(r31)
    cmpdi r12, 0
    beq 1b
    isync
    mtctr r12
    mr r3, r30
    bctrl
    lwsync
    li r12, 0
    std r12, 0(r31)
    b 1b

    .data
    .balign 8
    .globl work
work:
    .fill MAX_OTHERS, 8, 0
others_started:
    .long 0
    .text

/*
 * uint64_t run(uint64_t mmcr0, uint64_t msr, code_fn *fn, uint64_t arg)
 *
 * Instructions between the two writes of MMCR0 are the overhead in machine.h.
 */
    .globl run
run:
    mflr r0
    std r0, 16(r1)
    mfcr r0
    std r0, 8(r1)
    stdu r1, -512(r1)
    std r2, 24(r1)
    gprs std, 14, r1
    load_address r7, run_stack
    std r1, 0(r7)
    mtspr SPR_HSRR0, r5
    mtspr SPR_HSRR1, r4
    load_address r7, run_return
    mtlr r7
    mr r12, r5
    mr r4, r3
    mr r3, r6
    mtspr SPR_MMCR0, r4
    hrfid

    .globl run_return
run_return:
    li r0, CALL_EXIT
    sc 1

    .globl run_exit
    .globl syscall_vector
syscall_vector:
    cmpdi cr7, r0, CALL_EXIT
    bne cr7, 1f
run_exit:
    mfspr r4, SPR_MMCR0
    oris r5, r4, 0x8000
    mtspr SPR_MMCR0, r5
    load_address r5, run_mmcr0
    std r4, 0(r5)
    load_address r5, run_stack
    ld r1, 0(r5)
    ld r2, 24(r1)
    gprs ld, 14, r1
    addi r1, r1, 512
    ld r0, 8(r1)
    mtcr r0
    ld r0, 16(r1)
    mtlr r0
    blr
1:
    .globl nothing_vector
nothing_vector:
    cmpdi cr7, r0, CALL_NOTHING
    bne cr7, 1f
    rfid
1:  cmpdi cr7, r0, CALL_RESUME
    beq cr7, resume_here
    mtsprg 0, r1
    mtsprg 1, r0
    mflr r0
    mtsprg 2, r0
    li r0, 0xc00
    bl trap_common

    .bss
    .balign 16
    .globl stack
stack:
    .space STACK_SIZE
trap_stack:
    .space STACK_SIZE
other_stacks:
    .space MAX_OTHERS * STACK_SIZE
    .globl run_mmcr0
run_mmcr0:
    .space 8
run_stack:
    .space 8

    .text

/* Fill a struct regs, except for the members that trap_common sets. */
.macro save_regs srr0, srr1
    load_address r1, trap_stack + STACK_SIZE - REGS_SIZE
    std r0, REGS_VECTOR(r1)
    gprs std, 2, r1
    mfsprg r3, 0
    std r3, REGS_GPR+8*1(r1)
    mfsprg r3, 1
    std r3, REGS_GPR(r1)
    mfsprg r3, 2
    std r3, REGS_LR(r1)
    save_special r1, \srr0, \srr1
.endm

call_trap:
    mflr r31
    lis r2, .TOC.@ha
    addi r2, r2, .TOC.@l
    mr r3, r1
    mr r30, r1
    stdu r1, -128(r1)
    bl trap
    mr r1, r30
    mtlr r31
    blr

trap_common:
    save_regs 26, 27
    bl call_trap
    restore_regs 26, 27
    rfid

trap_hv_common:
    save_regs SPR_HSRR0, SPR_HSRR1
    bl call_trap
    restore_regs SPR_HSRR0, SPR_HSRR1
    hrfid

/* int checkpoint(struct checkpoint *cp) */
    .globl checkpoint
checkpoint:
    mflr r0
    std r0, 0(r3)
    mfcr r0
    std r0, 8(r3)
    std r1, 16(r3)
    std r2, 24(r3)
    .irp n, 14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    std \n, 32+8*(\n-14)(r3)
    .endr
    li r3, 0
    blr

/* void resume(struct checkpoint *cp), from any state */
    .globl resume
resume:
    li r0, CALL_RESUME
    sc 1

resume_here:
    ld r0, 0(r3)
    mtlr r0
    ld r0, 8(r3)
    mtcr r0
    ld r1, 16(r3)
    ld r2, 24(r3)
    .irp n, 14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    ld \n, 32+8*(\n-14)(r3)
    .endr
    li r3, 1
    blr

/* void stop_machine(void), with attn enabled: QEMU ends */
    .globl stop_machine
stop_machine:
    .long 0x200
    b stop_machine
