/*
 * Instructions that access memory, of any processor
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define N 50000
_start: lis 4,buf@ha
        addi 4,4,buf@l
        lis 5,N>>16
        ori 5,5,N&0xffff
        mtctr 5
1:      ld 3,0(4)       # L
        addi 3,3,1
        std 3,8(4)      # S
        lbz 3,0(4)      # L
        stw 3,4(4)      # S
        bdnz 1b
        quit
        .bss
        .balign 128
buf:    .skip 256
        expect instructions, 5+N*6+QUIT
        expect loads, N*2
        expect stores, N*2
