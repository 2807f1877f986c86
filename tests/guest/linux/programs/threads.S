/*
 * Threads that run at the same time, where there are CPUs for them
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define THREADS 4
#define K 500000

/* CLONE_VM, FS, FILES, SIGHAND, THREAD, PARENT_SETTID and CHILD_CLEARTID */
#define FLAGS (0x100 + 0x200 + 0x400 + 0x800 + 0x10000 + 0x100000 + 0x200000)
#define FUTEX_WAIT 0

_start:
        lea ids(%rip), %rbx
        lea threads(%rip), %r12
        mov $THREADS, %ebp
1:      mov $FLAGS, %edi
        lea stack(%rip), %rsi
        mov %rbx, %rdx          /* where the kernel writes the number */
        mov %rbx, %r10          /* and clears it in the end */
        xor %r8d, %r8d
        call_kernel SYS_clone
        test %eax, %eax
        jz thread
        mov %eax, (%r12)
        add $4, %rbx
        add $4, %r12
        dec %ebp
        jnz 1b

        /* Returns at once for a thread that has ended already. */
        mov $THREADS, %ebp
1:      sub $4, %rbx
        sub $4, %r12
        mov %rbx, %rdi
        mov $FUTEX_WAIT, %esi
        mov (%r12), %edx
        xor %r10d, %r10d
        call_kernel SYS_futex
        dec %ebp
        jnz 1b
        quit

thread: mov $K, %ecx
1:      dec %ecx
        jnz 1b
        xor %edi, %edi
        call_kernel SYS_exit

        .bss
        .balign 16
ids:    .skip 4 * THREADS
threads:
        .skip 4 * THREADS
        .skip 256
stack:

#define MAIN_INSNS (3 + THREADS * 14 + 1 + THREADS * 10 + QUIT)
#define THREAD_INSNS (2 + 1 + 2 * K + 3)

        expect instructions, MAIN_INSNS + THREADS * THREAD_INSNS
        expect conditional, THREADS * 3 + THREADS * (1 + K)
        expect not_taken, THREADS + 2 + THREADS
        expect taken, (THREADS - 1) * 2 + THREADS * (1 + K - 1)
        expect far, THREADS * 2 + 1 + THREADS
        expect branches, THREADS * 3 + THREADS * (1 + K) + THREADS * 2 + 1 + THREADS
        expect calls, 0
        expect loads, THREADS
        expect stores, THREADS
