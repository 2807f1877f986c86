/*
 * System calls, by SYSCALL and by a software interrupt
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define N 20000
#define GETPID_OF_I386 20

_start:
        mov $N, %ebx
1:      call_kernel SYS_getpid
        mov $GETPID_OF_I386, %eax
        int $0x80
        dec %ebx
        jnz 1b
        quit

        expect instructions, 1 + N * 6 + QUIT
        expect branches, N * 3 + 1
        expect conditional, N
        expect taken, N - 1
        expect not_taken, 1
        expect far, N * 2 + 1
        expect loads, 0
