/*
 * Bare-metal test guest: traps, user mode, and the two routines that count
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "layout.h"

        .text
        .code64

/*
 * One stub of 16 bytes a vector: makes the frame of struct regs and calls
 * trap(). Vectors with an error code: 8, 10 to 14, 17, 21, 29, 30.
 */
        .balign 16
        .globl  trap_stubs
trap_stubs:
        .set    vector, 0
        .rept   256
        .balign 16
        .if     vector >= 32 || !((0x60227d00 >> (vector & 31)) & 1)
        push    $0
        .endif
        push    $vector
        jmp     trap_common
        .set    vector, vector + 1
        .endr

trap_common:
        push    %r15
        push    %r14
        push    %r13
        push    %r12
        push    %r11
        push    %r10
        push    %r9
        push    %r8
        push    %rdi
        push    %rsi
        push    %rbp
        push    %rdx
        push    %rcx
        push    %rbx
        push    %rax
        cld
        mov     %rsp, %rdi
        call    trap
        pop     %rax
        pop     %rbx
        pop     %rcx
        pop     %rdx
        pop     %rbp
        pop     %rsi
        pop     %rdi
        pop     %r8
        pop     %r9
        pop     %r10
        pop     %r11
        pop     %r12
        pop     %r13
        pop     %r14
        pop     %r15
        add     $16, %rsp
        iretq

        .macro  save_callee
        push    %rbx
        push    %rbp
        push    %r12
        push    %r13
        push    %r14
        push    %r15
        .endm

        .macro  restore_callee
        pop     %r15
        pop     %r14
        pop     %r13
        pop     %r12
        pop     %rbp
        pop     %rbx
        .endm

/* Load the number of GLOBAL_CTRL, as MOV_PMU() in pmu.h does. */
        .macro  load_global_ctrl
        mov     $MSR_GLOBAL_CTRL, %ecx
9:
        .pushsection pmu_sites, "a"
        .quad   9b
        .popsection
        .endm

/* Write %rdi to GLOBAL_CTRL; @fn in %rsi and @arg in %rdx move away. */
        .macro  enable_counters
        mov     %rsi, %rbx
        mov     %rdi, %rax
        mov     %rdx, %rdi
        mov     %rax, %rdx
        shr     $32, %rdx
        load_global_ctrl
        wrmsr
        .endm

/* Four instructions, all of them counted. */
        .macro  disable_counters
        load_global_ctrl
        xor     %eax, %eax
        xor     %edx, %edx
        wrmsr
        .endm

/*
 * uint64_t run_kernel(uint64_t ctrl, code_fn *fn, uint64_t arg)
 *
 * Counted in addition to @fn: RUN_KERNEL_OVERHEAD = 6 instructions of the
 * kernel.
 */
        .globl  run_kernel
run_kernel:
        save_callee
        enable_counters
        call    *%rbx
        mov     %rax, %rbx
        disable_counters
        mov     %rbx, %rax
        restore_callee
        ret

/*
 * uint64_t run_user(uint64_t ctrl, code_fn *fn, uint64_t arg)
 *
 * @fn runs in user mode with interrupts enabled. Counted in addition:
 * RUN_USER_OVERHEAD = 1 instruction of the user (INT) and RUN_KERNEL_OVERHEAD =
 * 6 of the kernel.
 */
        .globl  run_user
run_user:
        save_callee
        sub     $8, %rsp                /* a trap aligns the stack to 16 */
        mov     %rsp, %gs:PERCPU_RSP0
        mov     %gs:PERCPU_USTACK, %r8
        sub     $16, %r8
        movq    $user_exit, (%r8)
        push    $USER_DS
        push    %r8
        push    $0x202
        push    $USER_CS
        push    %rsi
        enable_counters
        iretq

        .globl  user_exit
user_exit:
        int     $VEC_USER_EXIT

/*
 * The gate of VEC_USER_EXIT: the stack has the registers that run_user() saved.
 */
        .globl  user_exit_gate
user_exit_gate:
        mov     %rax, %gs:PERCPU_RESULT
        disable_counters
        add     $40 + 8, %rsp
        mov     %gs:PERCPU_RESULT, %rax
        restore_callee
        ret

/*
 * For count_steps(): call 0(%rdi) with 8(%rdi) under TF. The
 * CALL traps first; the handler clears TF at stepped_return.
 */
        .globl  stepped_call, stepped_return
stepped_call:
        mov     (%rdi), %rax
        mov     8(%rdi), %rdi
        pushfq
        orq     $0x100, (%rsp)
        popfq
        call    *%rax
stepped_return:
        ret

/*
 * int checkpoint(struct checkpoint *cp), void resume(struct checkpoint *cp):
 * setjmp() and longjmp(). resume() leaves by IRET, as the trap which it
 * abandons may have been an NMI.
 */
        .globl  checkpoint
checkpoint:
        mov     (%rsp), %rax
        mov     %rax, (%rdi)
        lea     8(%rsp), %rax
        mov     %rax, 8(%rdi)
        mov     %rbx, 16(%rdi)
        mov     %rbp, 24(%rdi)
        mov     %r12, 32(%rdi)
        mov     %r13, 40(%rdi)
        mov     %r14, 48(%rdi)
        mov     %r15, 56(%rdi)
        xor     %eax, %eax
        ret

        .globl  resume
resume:
        mov     16(%rdi), %rbx
        mov     24(%rdi), %rbp
        mov     32(%rdi), %r12
        mov     40(%rdi), %r13
        mov     48(%rdi), %r14
        mov     56(%rdi), %r15
        mov     $1, %eax
        push    $KERNEL_DS
        push    8(%rdi)
        push    $2
        push    $KERNEL_CS
        push    (%rdi)
        iretq

        .section .note.GNU-stack, "", @progbits
