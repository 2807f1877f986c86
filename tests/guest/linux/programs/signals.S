/*
 * Signals that an instruction causes
 *
 * A trap comes after its instruction, which has retired; a fault instead of
 * it.  The handlers of faults skip the instruction.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define N 500

#define SIGILL  4
#define SIGTRAP 5
#define SIGFPE  8
#define SIGUSR1 10
#define SIGSEGV 11

#define SA_RESTORER 0x04000000
#define UCONTEXT_RIP 168

/* All handlers end like this: 3 instructions, 1 near and 1 far branch */
#define RETURN 3

        .macro handle signal, handler
        lea \handler(%rip), %rax
        mov %rax, action(%rip)
        mov $\signal, %edi
        lea action(%rip), %rsi
        xor %edx, %edx
        mov $8, %r10d
        call_kernel SYS_rt_sigaction
        .endm
#define HANDLE 8

_start:
        handle SIGUSR1, nothing
        handle SIGTRAP, nothing
        handle SIGILL, skip2
        handle SIGFPE, skip2
        handle SIGSEGV, skip2
        call_kernel SYS_getpid
        mov %eax, %ebp
        mov $N, %ebx

        /* 4, and the handler */
1:      mov %ebp, %edi
        mov $SIGUSR1, %esi
        call_kernel SYS_kill

        /* 1, and the handler */
        int3

        /* Only the handler */
        ud2

        /* 1, and the handler */
        xor %ecx, %ecx
        div %ecx

        /* 1, and the handler */
        xor %eax, %eax
        mov (%rax), %eax

        /* 10, with the handler for the last 7: they run with TF set */
        pushf
        orl $0x100, (%rsp)
        popf
        nop
        nop
        nop
        nop
        pushf
        andl $~0x100, (%rsp)
        popf

        dec %ebx
        jnz 1b
        quit

skip2:  addq $2, UCONTEXT_RIP(%rdx)
nothing:
        ret
restore:
        call_kernel SYS_rt_sigreturn

        .data
        .balign 8
action: .quad 0, SA_RESTORER, restore, 0

#define SIGNALS (1 + 1 + 1 + 1 + 1 + 7)

        expect instructions, HANDLE * 5 + 4 + N * (4 + 1 + 1 + 1 + 10 + 2 + SIGNALS * RETURN + 3) + QUIT
        expect conditional, N
        expect not_taken, 1
        expect taken, N - 1 + N * SIGNALS
        expect returns, N * SIGNALS
        expect calls, 0
        expect far, 5 + 1 + N * (1 + 1 + SIGNALS) + 1
        expect branches, 5 + 1 + N * (1 + 1 + SIGNALS) + 1 + N + N * SIGNALS
