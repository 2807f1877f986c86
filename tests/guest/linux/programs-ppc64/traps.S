/*
 * Instructions that fail, 13 kinds of them, with a handler of signals
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define N 1000
        .macro sigaction sig
        li 3,\sig
        lis 4,act@ha
        addi 4,4,act@l
        li 5,0
        li 6,8
        li 0,173
        sc
        .endm
#define SA 7
#define SIG 9
handler:
        ld 6,224(5)
        ld 7,256(6)
        addi 7,7,4
        std 7,256(6)
        blr
_start: sigaction 5
        sigaction 4
        sigaction 11
        sigaction 7
        li 31,N
1:      tw 31,0,0
        twi 4,31,N      # traps once
        tdi 6,31,N      # (unsigned less, or equal)  traps N times
        tweqi 31,0      # never
        .long 0
        mfmsr 3
        mtspr 779,31    # PMCC 0: emulation assist
        mtspr 795,31    # privileged
        rfid
        hrfid
        mfspr 3,48      # privileged
        lbz 3,0(0)      # segv
        std 3,0(0)
        li 4,3
        lwarx 3,0,4     # segv or alignment
        mfspr 5,769     # allowed
        tlbie 3,4
        addi 31,31,-1
        cmpdi 31,0
        bne 1b
        quit
        .data
        .balign 8
act:    .quad handler,4,0,0
        expect instructions, 4*SA+1 + N*6+N-1 + (13*N+1)*SIG + QUIT
