/*
 * A program that executes itself, with one more argument each time
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define ARGUMENTS 10

_start:
        mov (%rsp), %rax        /* number of arguments */
        cmp $ARGUMENTS, %rax
        je 1f
        lea last(%rip), %rsi
        shl $3, %eax
        sub %rax, %rsi
        lea path(%rip), %rdi
        xor %edx, %edx
        call_kernel SYS_execve
1:      quit

        .data
        .balign 8
arguments:
        .rept ARGUMENTS
        .quad name
        .endr
        .set last, . - 8
        .quad 0
path:   .asciz "/proc/self/exe"
name:   .asciz "exec"

        expect instructions, (ARGUMENTS - 1) * 10 + 3 + QUIT
        expect branches, (ARGUMENTS - 1) * 2 + 1 + 1
        expect conditional, ARGUMENTS
        expect taken, 1
        expect not_taken, ARGUMENTS - 1
        expect far, ARGUMENTS
        expect loads, ARGUMENTS
        expect stores, 0
