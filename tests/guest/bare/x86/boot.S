/*
 * Bare-metal test guest: from 32-bit protected mode to C, on every CPU
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "layout.h"

#define CR0_PE          (1 << 0)
#define CR0_MP          (1 << 1)
#define CR0_NE          (1 << 5)
#define CR0_WP          (1 << 16)
#define CR0_PG          (1 << 31)
#define CR4_PAE         (1 << 5)
#define CR4_OSFXSR      (1 << 9)
#define CR4_OSXMMEXCPT  (1 << 10)
#define MSR_EFER        0xc0000080
#define EFER_SCE        (1 << 0)
#define EFER_LME        (1 << 8)

#define PTE_P           1
#define PTE_W           2
#define PTE_U           4
#define PTE_LARGE       0x80

/*
 * The ROM jumps here on the boot CPU, the trampoline on other CPUs. Each takes
 * the next index, which selects its stack.
 */
        .section .text.start, "ax"
        .code32
        .globl  _start
_start:
        mov     $KERNEL_DS, %eax
        mov     %eax, %ds
        mov     %eax, %es
        mov     %eax, %ss
        mov     $1, %ebx
        lock xadd %ebx, cpus_started
        imul    $STACK_SIZE, %ebx, %esp
        add     $stacks + STACK_SIZE, %esp

        mov     $CR4_PAE | CR4_OSFXSR | CR4_OSXMMEXCPT, %eax
        mov     %eax, %cr4
        mov     $pml4, %eax
        mov     %eax, %cr3
        mov     $MSR_EFER, %ecx
        rdmsr
        or      $EFER_LME | EFER_SCE, %eax
        wrmsr
        mov     $CR0_PG | CR0_WP | CR0_NE | CR0_MP | CR0_PE, %eax
        mov     %eax, %cr0
        lgdt    gdt_pointer
        ljmp    $KERNEL_CS, $start64

        .code64
start64:
        mov     $KERNEL_DS, %eax
        mov     %eax, %ds
        mov     %eax, %es
        mov     %eax, %ss
        mov     %ebx, %edi
        call    cpu_main
1:      hlt
        jmp     1b

/*
 * Copied to TRAMPOLINE_BASE, where CPUs start after INIT and SIPI, in real
 * mode.
 */
        .code16
        .globl  trampoline, trampoline_end
trampoline:
        cli
        xor     %ax, %ax
        mov     %ax, %ds
        lgdtl   TRAMPOLINE_BASE + (gdt_pointer_copy - trampoline)
        mov     %cr0, %eax
        and     $~(CR0_PG | 0x60000000), %eax
        or      $CR0_PE, %eax
        mov     %eax, %cr0
        ljmpl   $BOOT_CS32, $_start
        .balign 4
gdt_pointer_copy:
        .word   gdt_end - gdt - 1
        .long   gdt
trampoline_end:

        .data
        .balign 8
        .globl  gdt
gdt:
        .quad   0
        .quad   0x00af9b000000ffff      /* KERNEL_CS */
        .quad   0x00cf93000000ffff      /* KERNEL_DS */
        .quad   0x00cf9b000000ffff      /* BOOT_CS32 */
        .quad   0x00cff3000000ffff      /* USER_DS */
        .quad   0x00affb000000ffff      /* USER_CS */
        .fill   2 * MAX_CPUS, 8, 0      /* task states, made by lib.c */
gdt_end:
        .word   0
gdt_pointer:
        .word   gdt_end - gdt - 1
        .quad   gdt

        .balign 4
        .globl  cpus_started
cpus_started:
        .long   0

/*
 * The first 4 GiB one to one in 2 MiB pages, for user mode as well, except for
 * the window of small pages.
 */
        .balign 4096
pml4:   .quad   pdpt + (PTE_P | PTE_W | PTE_U)
        .fill   511, 8, 0
pdpt:
        .set    i, 0
        .rept   4
        .quad   page_directory + i * 4096 + (PTE_P | PTE_W | PTE_U)
        .set    i, i + 1
        .endr
        .fill   508, 8, 0
page_directory:
        .set    i, 0
        .rept   2048
        .if     i * 0x200000 == WINDOW_BASE
        .quad   window + (PTE_P | PTE_W | PTE_U)
        .else
        .quad   i * 0x200000 + (PTE_P | PTE_W | PTE_U | PTE_LARGE)
        .endif
        .set    i, i + 1
        .endr

        .bss
        .balign 4096
        .globl  window
window: .skip   WINDOW_PAGES * 8
        .balign 16
stacks: .skip   MAX_CPUS * STACK_SIZE

        .section .note.GNU-stack, "", @progbits
