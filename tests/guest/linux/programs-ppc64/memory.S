/*
 * Instructions that access memory, inline and in helpers
 *
 * Conditional stores here have no reservation and always fail: an interrupt
 * could make others fail, which would change counts.  ../../bare/ppc has the
 * others.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define N 20000
_start: lis 4,buf@ha
        addi 4,4,buf@l
        li 5,N
        mtctr 5
        li 6,16
        li 9,8
        sldi 9,9,56
        li 11,0
        mr 10,4
1:      ld 3,0(4)       # L
        std 3,8(4)      # S
        lvx 0,0,4       # L
        stvx 0,6,4      # S
        lvebx 1,0,4     # L helper
        stvewx 1,0,4    # S helper
        lxvl 34,4,9     # L helper
        stxvl 34,4,9    # S helper
        lxvd2x 35,0,4   # L
        stxvd2x 35,0,4  # S
        lq 12,0(4)      # L
        stq 12,0(4)     # S
        stdcx. 7,0,4    # S fails
        dcbz 0,4        # S
        dcbst 0,4
        icbi 0,4
        lfd 1,0(4)      # L
        stfd 1,0(4)     # S
        ldu 8,0(10)     # L
        ldx 8,4,11      # L
        sync
        bdnz 1b
        quit
        .bss
        .balign 128
buf:    .skip 256
        expect instructions, 9+N*22+QUIT
        expect loads, N*9
        expect stores, N*9
        expect failed, N
