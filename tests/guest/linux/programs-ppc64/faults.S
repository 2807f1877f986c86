/*
 * Page faults, on loads and on stores
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define P 65536
#define N 300
_start: lis 4,buf@ha
        addi 4,4,buf@l
        li 5,N
        mtctr 5
        lis 6,1         # 64K pages
        li 7,1
1:      stdx 7,0,4
        lbz 8,9(4)
        add 4,4,6
        bdnz 1b
        lis 4,rd@ha
        addi 4,4,rd@l
        li 5,N
        mtctr 5
1:      lbz 8,9(4)
        std 8,8(4)
        add 4,4,6
        bdnz 1b
        quit
        .bss
        .balign P
buf:    .skip (N+1)*P
rd:     .skip (N+1)*P
        expect instructions, 6+4*N+4+4*N+QUIT
        expect loads, 2*N
        expect stores, 2*N
        expect branches, 2*N
