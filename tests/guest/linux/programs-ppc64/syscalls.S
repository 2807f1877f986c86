/*
 * System calls
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define N 20000
_start: lis 31,N>>16
        ori 31,31,N&0xffff
1:      li 0,20
        sc
        addi 31,31,-1
        cmpdi 31,0
        bne 1b
        quit
        expect instructions, 2+5*N+QUIT
