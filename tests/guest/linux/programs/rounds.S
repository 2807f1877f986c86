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
#define SYS_write       1
#define SYS_access      21

_start:
        xor %ebx, %ebx
round:
        step mov $N, %ecx
again:
        step nop
        step dec %ecx
        step jnz again
        step inc %ebx
        step mov $stop, %edi
        step xor %esi, %esi
        step mov $SYS_access, %eax
        step syscall
        step test %eax, %eax
        step jnz round

        push %rbx
        mov $1, %edi
        mov %rsp, %rsi
        mov $4, %edx
        call_kernel SYS_write
        quit

        .section .rodata
stop:   .asciz "/tmp/stop"

        expect loop_rounds, N
        expect loop_steps, 3
        expect steps, next_step
        expect before, 1
        expect round_instructions, 3 * (N - 1) + next_step
        expect round_branches, N + 2
        expect around_instructions, 1 + 4 + 2 + QUIT
        expect around_branches, 2
