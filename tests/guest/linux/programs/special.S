/*
 * Instructions that QEMU treats specially, as they end a block, read a clock,
 * are atomic, or loop
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define N 2000

_start:
        and $~15, %rsp
        mov $N, %ebp

1:      xor %ecx, %ecx
        xor %eax, %eax
        cpuid                   /* writes EBX too */
        rdtsc
        rdtscp
        xor %ecx, %ecx
        xgetbv
        pause
        mfence
        lfence
        sfence                  /* 11 */

        lock incl word(%rip)
        lock xadd %eax, word(%rip)
        xchg %eax, word(%rip)
        lock cmpxchg %ecx, word(%rip)
        lock cmpxchg16b pair(%rip)
        clflush word(%rip)      /* 6 */

        pushf
        popf
        enter $16, $0
        leave
        std
        cld                     /* 6 */

        fld1
        fstps word(%rip)
        movaps pair(%rip), %xmm0
        movaps %xmm0, pair(%rip)
        ldmxcsr mxcsr(%rip)
        stmxcsr mxcsr(%rip)     /* 6 */

        mov $10, %ecx
2:      loop 2b                 /* 10 times */
        jrcxz 3f                /* taken */
3:      mov $1, %ecx
        jrcxz 4f                /* not taken */
4:      loopne 4b               /* 1 time; ends as ECX is 0 */

        dec %ebp
        jnz 1b
        quit

        .data
        .balign 16
pair:   .quad 0, 0
word:   .long 0
mxcsr:  .long 0x1f80

        expect instructions, 2 + N * (11 + 6 + 6 + 6 + 1 + 10 + 4 + 2) + QUIT
        expect branches, N * (10 + 3 + 1) + 1
        expect conditional, N * (10 + 3 + 1)
        expect taken, N * (9 + 1 + 1) - 1
        expect not_taken, N * (1 + 1 + 1) + 1
        expect calls, 0
        expect returns, 0
        expect far, 1
