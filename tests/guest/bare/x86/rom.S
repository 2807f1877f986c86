/*
 * Bare-metal test guest: the ROM
 *
 * Takes the place of the BIOS (-bios): the processor starts at the reset
 * vector, 16 bytes below 4 GiB, switches to protected mode, copies the
 * kernel to RAM and jumps to it. No firmware is needed.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "layout.h"

        .section .text
        .code32
rom:
        .incbin "kernel.bin"
        .balign 4
rom_kernel_end:

/* The processor begins with a code segment at 4 GiB - 64 KiB. */
#define SEGMENT_OFFSET(sym) (sym - rom - (ROM_SIZE - 0x10000))

        .org    ROM_SIZE - 0x100
        .code16
enter_protected_mode:
        cli
        lgdtl   %cs:SEGMENT_OFFSET(gdt_pointer)
        mov     %cr0, %eax
        or      $1, %al
        mov     %eax, %cr0
        ljmpl   $BOOT_CS32, $copy_kernel

        .code32
copy_kernel:
        mov     $KERNEL_DS, %eax
        mov     %eax, %ds
        mov     %eax, %es
        mov     %eax, %ss
        mov     $rom, %esi
        mov     $KERNEL_BASE, %edi
        mov     $(rom_kernel_end - rom) / 4, %ecx
        rep movsl
        mov     $KERNEL_BASE, %eax
        jmp     *%eax

        .balign 8
gdt:
        .quad   0
        .quad   0                       /* KERNEL_CS: not needed yet */
        .quad   0x00cf93000000ffff      /* KERNEL_DS */
        .quad   0x00cf9b000000ffff      /* BOOT_CS32 */
gdt_end:
gdt_pointer:
        .word   gdt_end - gdt - 1
        .long   gdt

        .org    ROM_SIZE - 16
        .code16
reset_vector:
        jmp     enter_protected_mode
        .org    ROM_SIZE

        .section .note.GNU-stack, "", @progbits
