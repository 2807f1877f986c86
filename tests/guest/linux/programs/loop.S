/*
 * A tight loop
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define N 5000000

_start:
        mov $N, %ecx
loop:   nop
        dec %ecx
        jnz loop
        quit

        .globl loop
        expect instructions, 1 + 3 * N + QUIT
        expect branches, N + 1
        expect conditional, N
        expect taken, N - 1
        expect not_taken, 1
        expect calls, 0
        expect returns, 0
        expect far, 1
        expect loads, 0
        expect stores, 0
