/*
 * A program that moves to another CPU now and then, where there is one
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define N 200
#define K 1000

_start:
        step mov $N, %ebx
again:
        step xorq $3, mask(%rip)        /* CPU 0 or CPU 1 */
        step xor %edi, %edi
        step mov $8, %esi
        step lea mask(%rip), %rdx
        step mov $SYS_sched_setaffinity, %eax
        step syscall
        step mov $K, %ecx
inner:
        step dec %ecx
        step jnz inner
        step dec %ebx
        step jnz again
        quit

        .data
        .balign 8
mask:   .quad 1

        expect rounds, N
        expect inner_rounds, K
        expect instructions, 1 + N * (6 + 1 + 2 * K + 2) + QUIT
        expect branches, N * (1 + K + 1) + 1
        expect conditional, N * (K + 1)
        expect taken, N * (K - 1 + 1) - 1
        expect not_taken, N + 1
        expect far, N + 1
        expect loads, N
        expect stores, N
