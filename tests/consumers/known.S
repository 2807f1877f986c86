/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What all harnesses count: 2,000,008 instructions, 1,000,004 of them branches. */
        .globl known
        .type known, @function
known:  mov $1000003, %ecx
1:      dec %ecx
        jnz 1b
        ret
        .section .note.GNU-stack, "", @progbits
