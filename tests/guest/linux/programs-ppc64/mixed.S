/*
 * A loop of instructions of all sorts, for samples: the addresses of its
 * instructions in the order in which they are executed are `step_0` and so on.
 * It begins after `expect before` instructions, and is executed `expect rounds`
 * times; the steps after it end the program.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define N 1000
_start: lis 4,buffer@ha
        addi 4,4,buffer@l
        li 14,N
again:
        step nop
        step addi 5,4,64
        step std 5,0(4)         # 2: store
        step ld 6,0(4)          # 3: load
        step b over             # 4: branch
        trap
over:
        step bl function        # 5: branch, to 3 more
        .set after_call, next_step
        .set next_step, next_step+3
        step cmpdi 3,2          # 9
        step beq not_taken      # 10: not taken
        step lwarx 7,0,4        # 11: load
        step stwcx. 7,0,4       # 12: store
        step mftb 8
        step dcbz 0,5           # 14: store
        step sync
        step mflr 9
        step addi 9,9,indirect-after_bl
        step mtctr 9
        step bctr               # 19: branch
        trap
indirect:
        step li 10,4
        step mtctr 10
        name_step %next_step    # 22 to 25: 4 branches, 3 of which are taken
        .set next_step, next_step+4
        bdnz .
        step lhbrx 6,0,4         # 26: load
        step addi 14,14,-1
        step cmpdi 14,0
        step bne again          # 29: branch
        .set steps, next_step
        step li 3,0
        step li 0,234
        step sc
        .set after_bl, step_9

function:
        .set next_step, after_call
        step nop
        step li 3,1
        step blr                # 8: branch

not_taken:
        trap

        .bss
        .balign 128
buffer: .skip 256

        expect before, 3
        expect rounds, N
        expect steps, steps
        expect instructions, 3+N*steps+3
