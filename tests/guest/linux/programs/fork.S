/*
 * Children: their counts are added to the parent's
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define CHILDREN 10
#define K 20000

_start:
        mov $CHILDREN, %ebx
1:      call_kernel SYS_fork
        test %eax, %eax
        jz child
        mov $-1, %rdi
        xor %esi, %esi
        xor %edx, %edx
        xor %r10d, %r10d
        call_kernel SYS_wait4
        dec %ebx
        jnz 1b
        quit

child:  mov $K, %ecx
1:      dec %ecx
        jnz 1b
        quit

#define PARENT_INSNS (1 + CHILDREN * 12 + QUIT)
#define CHILD_INSNS (2 + 1 + 2 * K + QUIT)

        expect instructions, PARENT_INSNS + CHILDREN * CHILD_INSNS
        expect conditional, CHILDREN * 2 + CHILDREN * (1 + K)
        expect taken, CHILDREN - 1 + CHILDREN * (1 + K - 1)
        expect not_taken, CHILDREN + 1 + CHILDREN
        expect far, CHILDREN * 2 + 1 + CHILDREN
        expect branches, CHILDREN * 2 + CHILDREN * (1 + K) + CHILDREN * 2 + 1 + CHILDREN
        expect loads, 0
        expect stores, 0
