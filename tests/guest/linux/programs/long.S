/*
 * A loop that takes a while, for tests that need time in its middle
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#ifndef N
#define N 500000000
#endif

_start:
        mov $N, %ecx
again:
        step nop
        step incl value(%rip)
        step dec %ecx
        step jnz again
        quit

        .bss
        .balign 4
value:  .skip 4

        expect before, 1
        expect steps, next_step
        expect instructions, 1 + N * next_step + QUIT
        expect branches, N + 1
        expect conditional, N
        expect loads, N
        expect stores, N
