/*
 * A loop of instructions of all sorts, for samples: the addresses of its
 * instructions in the order in which they are executed are `step_0` and so on.
 * It begins after `expect before` instructions, and is executed `expect rounds`
 * times; the steps after it end the program.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define N 1000

_start:
        mov $N, %r12d
again:
        step nop
        step lea buffer(%rip), %rdi
        step mov $100, %ecx
        step rep stosb                  /* one instruction */
        step push %rax
        step pop %rax
        step jmp over
        ud2
over:
        step call function
        .set after_call, next_step      /* function comes first */
        .set next_step, next_step + 3
        step test %eax, %eax
        step jz not_taken
        step lock incl buffer(%rip)
        step rdtsc
        step xor %eax, %eax
        step cpuid                      /* ends a block */
        step lea indirect(%rip), %rax
        step jmp *%rax
        ud2
indirect:
        step mov $4, %ecx
        name_step %next_step
        .set next_step, next_step + 4
        loop .                          /* 4 times */
        step dec %r12d
        step jnz again
        .set steps, next_step
        step xor %edi, %edi
        step mov $SYS_exit_group, %eax
        step syscall

function:
        .set next_step, after_call
        step nopw (%rax, %rax)
        step mov $1, %eax
        step ret

not_taken:
        ud2

        .bss
buffer: .skip 128

        expect before, 1
        expect rounds, N
        expect steps, steps
        expect instructions, 1 + N * steps + 3
