/*
 * Calls and returns, direct, indirect and recursive
 *
 * Each round of the loop takes the branches that have labels, in this order.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#ifndef N
#define N 200000
#endif
#define DEPTH 1000

_start:
        mov $N, %ebx
        lea leaf(%rip), %rbp
call:   call leaf               /* 2 with its return */
indirect_call:
        call *%rbp              /* 2 */
call_by_memory:
        call *pointer(%rip)     /* 2 */
behind_calls:
        push %rbp
        pop %rax
        lea jump(%rip), %rax
indirect_jump:
        jmp *%rax
jump:   jmp condition
condition:
        dec %ebx
conditional:
        jnz call

        mov $DEPTH, %ecx
        call recurse
        quit

leaf:   ret

recurse:
        dec %ecx
        jz 1f
        call recurse
1:      ret

        .data
pointer:
        .quad leaf

#define RECURSE_INSNS   (DEPTH * 4 - 1)

        expect rounds, N
        expect instructions, 2 + N * 13 + 2 + RECURSE_INSNS + QUIT
        expect branches, N * 9 + 1 + RECURSE_INSNS - DEPTH + 1
        expect conditional, N + DEPTH
        expect taken, N * 9 - 1 + DEPTH + DEPTH + 1
        expect not_taken, 1 + DEPTH - 1
        expect calls, N * 3 + DEPTH
        expect returns, N * 3 + DEPTH
        expect far, 1
        expect loads, N * 5 + DEPTH
        expect stores, N * 4 + DEPTH
