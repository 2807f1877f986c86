/*
 * Firmware for two CPUs, whose page tables are in ROM, where no bit is set
 *
 * Each CPU changes a function, which begins at the end of a page, and calls it:
 * while QEMU translates the function, it walks the page tables for the second
 * page, and wants to set a bit in them.  The CPUs count their turns at COUNTERS.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#define BASE        0xf0000
#define TABLES      0x8000
#define COUNTERS    0x40000
#define APIC        0xfee00000
/* Large pages: present, writable, and neither accessed nor dirty */
#define LARGE       0x83

        .globl _start
        .code16
/* Both CPUs begin here: the second one by the interrupt that starts it. */
_start: cli
        mov %cs, %ax
        mov %ax, %ds
        lgdtl descriptors - _start
        mov %cr0, %eax
        or $1, %eax
        mov %eax, %cr0
        ljmpl $8, $BASE + protected - _start

        .code32
protected:
        mov $16, %eax
        mov %eax, %ds
        mov %eax, %es
        mov %eax, %ss
        mov $0x1b, %ecx
        rdmsr
        test $0x100, %eax
        jz second

        mov $0x18000, %esp
        mov $0x20000, %ebx
        mov $COUNTERS, %edi
        movl $0x1ff, APIC + 0xf0
        movl $0xc4500, APIC + 0x300     /* INIT to all others */
        mov $1000000, %ecx
1:      loop 1b
        movl $0xc46f0, APIC + 0x300     /* and start at BASE */
        jmp paging

second: mov $0x1c000, %esp
        mov $0x30000, %ebx
        mov $COUNTERS + 4, %edi

paging: mov %cr4, %eax
        or $0x10, %eax                  /* PSE */
        mov %eax, %cr4
        mov $BASE + TABLES, %eax
        mov %eax, %cr3
        mov %cr0, %eax
        or $0x80000000, %eax
        mov %eax, %cr0

        /* The function: mov $NUMBER, %eax; ret */
        lea 0xffc(%ebx), %esi
        movb $0xb8, (%esi)
        movl $0, 1(%esi)
        movb $0xc3, 5(%esi)
2:      incl 1(%esi)
        incl (%edi)
        mov $BASE + TABLES, %eax
        mov %eax, %cr3
        call *%esi
        jmp 2b

        .balign 8
table:  .quad 0, 0x00cf9a000000ffff, 0x00cf92000000ffff
descriptors:
        .word . - table - 1
        .long BASE + table - _start

        .org TABLES
        .long LARGE
        .fill 1023, 4, 0

        .org 0xfff0
        .code16
        ljmp $BASE >> 4, $0
        .org 0x10000
