/*
 * Loops at the end of chains of calls, with frame pointers as compilers make
 * them, and with some that lead nowhere; and a function without a loop, `leaf`,
 * whose frame is gone by the end of its only block.  Return addresses have
 * symbols, with the loop's name and a number, the innermost first.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define N 2000000

        .macro named name
        .globl expect_\name
expect_\name:
        .endm

        .macro enter
        push %rbp
        mov %rsp, %rbp
        .endm

        .macro spin name
        .globl \name, \name\()_end
\name:  mov $N, %ecx
1:      dec %ecx
        jnz 1b
\name\()_end:
        nop
        .endm

_start:
        xor %ebp, %ebp
        sub $64, %rsp
        call outer
named behind_good_3
        call circle
named behind_circle_1
        call often
named behind_leaf_2
        mov %rsp, %rbx
        mov $0x10000, %esp              /* nothing is there */
        mov %rsp, %rbp
        spin unmapped
        mov $-0x20000000000, %rsp       /* the kernel's, for it has its IDT */
        mov %rsp, %rbp
        spin kernels
        mov %rbx, %rsp
        lea 1(%rsp), %rbp
        spin odd
        quit

outer:
        enter
        call middle
named behind_good_2
        leave
        ret

middle:
        enter
        call inner
named behind_good_1
        leave
        ret

inner:
        enter
        spin good
        leave
        ret

often:
        enter
        mov $N / 8, %ecx
1:      call short
named behind_leaf_1
        dec %ecx
        jnz 1b
        leave
        ret

/* All but the instructions that make and remove the frame */
short:
        enter
        .globl leaf, leaf_end
leaf:   nop
        nop
        nop
        nop
leaf_end:
        leave
        ret

/* A frame whose caller is itself */
circle:
        push %rsp
        mov %rsp, %rbp
        mov %rbp, (%rbp)
        spin circular
        pop %rbp
        ret

/* From the start to the end of the loop `good` */
        expect insns_in_good, 12 + N * 2
