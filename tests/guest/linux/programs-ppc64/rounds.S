/*
 * A loop that goes on until there is a file /tmp/stop
 *
 * It is for tests that need any amount of time in its middle.  It writes the
 * number of its rounds, 4 bytes; counts are that number times a round's, plus
 * the code around the rounds.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define N 1000000
#define SYS_write       4
#define SYS_access      33

_start: lis 29,N>>16
        ori 29,29,N&0xffff
        lis 30,stop@h
        ori 30,30,stop@l
        li 31,0
round:  step mtctr 29
again:  step nop
        step addi 5,5,1
        step bdnz again
        step addi 31,31,1
        step mr 3,30
        step li 4,0
        step li 0,SYS_access
        step sc
        step bso round
        stw 31,-8(1)
        li 3,1
        addi 4,1,-8
        li 5,4
        li 0,SYS_write
        sc
        quit

        .section .rodata
stop:   .asciz "/tmp/stop"

        expect loop_rounds, N
        expect loop_steps, 3
        expect steps, next_step
        expect before, 5
        expect round_instructions, 3*(N-1)+next_step
        expect round_branches, N+1
        expect around_instructions, 5+6+QUIT
        expect around_branches, 0
