/*
 * A program that changes the code that it executes next
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define N 2000

_start:
        jmp writable

        .section .written, "awx", @progbits
writable:
        mov $N, %ecx
        xor %edx, %edx
1:      mov %cl, 2f + 1(%rip)   /* in the block that is running */
2:      mov $0, %al
        sub %cl, %al
        or %al, %dl             /* stays 0 if the right value was loaded */
        mov %cl, 3f + 1(%rip)   /* in the block after it */
        jmp 3f
3:      mov $0, %al
        sub %cl, %al
        or %al, %dl
        dec %ecx
        jnz 1b
        movzx %dl, %edi
        call_kernel SYS_exit_group

        expect instructions, 1 + 2 + N * 11 + 3
        expect branches, 1 + N * 2 + 1
        expect conditional, N
        expect taken, 1 + N + N - 1
        expect not_taken, 1
        expect far, 1
        expect loads, 0
        expect stores, N * 2
