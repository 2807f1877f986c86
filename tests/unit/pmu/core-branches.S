# What Cachegrind counts of these branches, test-pmu-core-known.c expects
#
#   gcc -nostdlib -static -Wl,-Ttext=0x401000 core-branches.S -o core-branches
#   valgrind --tool=cachegrind --branch-sim=yes ./core-branches
#
# A branch on a random bit, one with a period of 8, a jump to one of four
# places at random, and the loop's own.  They are at addresses that are known.
#
# SPDX-License-Identifier: GPL-2.0-or-later

        .globl _start
        .text
_start:
        mov     $1, %rax
        mov     $100000, %ecx
        movabs  $6364136223846793005, %r8
        movabs  $1442695040888963407, %r9
loop:
        imul    %r8, %rax
        add     %r9, %rax
        bt      $40, %rax
        .org    0x40, 0x90
        jc      1f
        nop
1:
        test    $7, %ecx
        .org    0x60, 0x90
        jz      2f
        nop
2:
        mov     %rax, %rdx
        shr     $50, %rdx
        and     $3, %edx
        .org    0x80, 0x90
        jmp     *targets(, %rdx, 8)
        .org    0xa0, 0x90
        nop
        nop
        nop
        dec     %ecx
        .org    0xc0, 0x90
        jnz     loop
        mov     $60, %eax
        xor     %edi, %edi
        syscall
        .data
targets:
        .quad   0x4010a0, 0x4010a1, 0x4010a2, 0x4010a3
