/*
 * Signals of a timer, at any point of the program
 *
 * It writes a character per signal, so that the signals' counts can be added:
 * `expect signal_EVENT` states the count of one signal.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define N 30000000

#define SIGALRM 14
#define SA_RESTORER 0x04000000

_start:
        mov $SIGALRM, %edi
        lea action(%rip), %rsi
        xor %edx, %edx
        mov $8, %r10d
        call_kernel SYS_rt_sigaction
        xor %edi, %edi
        lea interval(%rip), %rsi
        xor %edx, %edx
        call_kernel SYS_setitimer
        mov $N, %ecx
1:      dec %ecx
        jnz 1b
        quit

handler:
        mov $1, %edi
        lea handler(%rip), %rsi
        mov $1, %edx
        mov $1, %eax            /* write */
        syscall
        ret
restore:
        call_kernel SYS_rt_sigreturn

        .data
        .balign 8
action: .quad handler, SA_RESTORER, restore, 0
interval:
        .quad 0, 2000, 0, 2000  /* 2 ms */

        expect instructions, 11 + 1 + 2 * N + QUIT
        expect signal_instructions, 8
        expect branches, 2 + N + 1
        expect signal_branches, 3
        expect conditional, N
        expect signal_conditional, 0
        expect taken, N - 1
        expect signal_taken, 1
        expect returns, 0
        expect signal_returns, 1
        expect far, 3
        expect signal_far, 2
