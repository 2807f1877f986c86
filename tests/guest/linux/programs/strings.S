/*
 * Repeated string instructions: one instruction each, for any length, and for
 * any number of page faults and interrupts in between
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define N 20
#define SIZE 0x60000            /* more than QEMU does in one go */

        .macro both_ends
        lea from(%rip), %rsi
        lea to(%rip), %rdi
        mov $SIZE, %ecx
        .endm

_start:
        mov $N, %ebx
1:      both_ends
        rep stosb               /* on fresh pages, the first time */
        both_ends
        rep movsb               /* from fresh pages, the first time */
        both_ends
        repe cmpsb
        both_ends
        repne scasb             /* ends at the first byte */
        both_ends
        rep lodsb
        both_ends
        xor %ecx, %ecx
        rep movsb               /* does nothing */
        std
        lea from + SIZE - 8(%rip), %rsi
        lea to + SIZE - 8(%rip), %rdi
        mov $SIZE / 8, %ecx
        rep movsq
        cld
        both_ends
        movsb
        lodsb
        stosb
        dec %ebx
        jnz 1b
        quit

        .bss
        .balign 4096
from:   .skip SIZE
to:     .skip SIZE

        expect instructions, 1 + N * (5 * 4 + 5 + 6 + 8) + QUIT
        expect branches, N + 1
        expect conditional, N
        expect taken, N - 1
        expect not_taken, 1
        expect loads, N * 7
        expect stores, N * 5
