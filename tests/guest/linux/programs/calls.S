/*
 * Calls and returns, direct, indirect and recursive
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define N 200000
#define DEPTH 1000

_start:
        mov $N, %ebx
        lea leaf(%rip), %rbp
1:      call leaf               /* 2 with its return */
        call *%rbp              /* 2 */
        call *pointer(%rip)     /* 2 */
        push %rbp
        pop %rax
        lea 2f(%rip), %rax
        jmp *%rax
2:      jmp 3f
3:      dec %ebx
        jnz 1b

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
