/*
 * A loop that takes a while, for tests that need time in its middle
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define N 1000000000
_start: lis 4,N>>16
        ori 4,4,N&0xffff
        mtctr 4
1:      step nop
        step addi 5,5,1
        step std 5,-8(1)
        step bdnz 1b
        quit
        expect before, 3
        expect steps, next_step
        expect instructions, 3+4*N+QUIT
        expect branches, N
        expect taken, N-1
