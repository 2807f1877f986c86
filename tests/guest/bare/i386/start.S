/*
 * Guest of 32 bits: start after reset, traps, and code to count
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "layout.h"

        .section .text
        .code32
enter:
        mov     $KERNEL_DS, %eax
        mov     %eax, %ss
        mov     $USER_DS, %eax          /* IRET would void the kernel's */
        mov     %eax, %ds
        mov     %eax, %es
        mov     $STACK_TOP, %esp
        call    main

/*
 * OVERHEAD instructions are counted in addition to @fn.
 *
 * void run(uint32_t global_ctrl, uint32_t mask, void (*fn)(void))
 */
        .globl  run
run:
        mov     4(%esp), %ecx
        mov     8(%esp), %eax
        push    %ebx
        push    %esi
        push    %edi
        mov     %ecx, %ebx
        mov     24(%esp), %edx
        mov     28(%esp), %esi
        wrmsr
        call    *%esi
stop:
        mov     %ebx, %ecx
        xor     %eax, %eax
        xor     %edx, %edx
        wrmsr
        sti                             /* INT has cleared it */
        pop     %edi
        pop     %esi
        pop     %ebx
        ret

/* The same for @fn in user mode, which returns by INT. */
        .globl  run_user
run_user:
        mov     4(%esp), %ecx
        mov     8(%esp), %eax
        push    %ebx
        push    %esi
        push    %edi
        mov     %ecx, %ebx
        mov     24(%esp), %edx
        mov     28(%esp), %esi
        mov     %esp, task + 4          /* where INT begins */
        push    $USER_DS
        push    $USER_STACK_TOP
        push    $0x202
        push    $USER_CS
        push    %esi
        wrmsr
        iret

        .globl  on_leave
on_leave:
        add     $20, %esp
        jmp     stop

/* UD2 has two bytes. */
        .globl  on_ud
on_ud:
        addl    $2, (%esp)
        iret

        .globl  on_pmi
on_pmi:
        pushal
        mov     32(%esp), %eax
        push    %eax
        call    pmi
        pop     %eax
        popal
        iret

        .globl  nops
nops:
        .fill   NR_NOPS, 1, 0x90
        ret

        .globl  loop_of_100
loop_of_100:
        mov     $100, %ecx
1:
        dec     %ecx
        jnz     1b
        ret

        .globl  string
string:
        mov     $100, %ecx
        mov     $buffer, %edi
        rep stosb
        ret

        .globl  undefined
undefined:
        ud2
        nop
        ret

        .globl  accesses
accesses:
        .rept   10
        mov     buffer, %eax
        .endr
        .rept   7
        mov     %eax, buffer
        .endr
        ret

        .globl  user_nops
user_nops:
        .fill   NR_NOPS, 1, 0x90
        int     $VECTOR_LEAVE

        .section .reset, "ax"
        .code16
reach_protected_mode:
        cli
        lgdtl   %cs:RESET_OFFSET + gdt_pointer - reach_protected_mode
        mov     %cr0, %eax
        or      $1, %al
        mov     %eax, %cr0
        ljmpl   $KERNEL_CS, $enter
        .balign 4
gdt_pointer:
        .word   0x2f
        .long   gdt_in_rom
        .globl  gdt_in_rom
        .balign 8
gdt_in_rom:
        .quad   0
        .quad   0x00cf9b000000ffff
        .quad   0x00cf93000000ffff
        .quad   0x00cffb000000ffff
        .quad   0x00cff3000000ffff
        .quad   0                       /* TASK: needs an address in RAM */
        .org    0xf0
        jmp     reach_protected_mode
        .org    0x100

        .section .note.GNU-stack, "", @progbits
