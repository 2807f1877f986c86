/*
 * Page faults on data: an instruction that faults does not retire, and is
 * executed again
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define PAGES 500
#define PAGE 4096

_start:
        /* Each store faults on two fresh pages, one after the other. */
        lea written + PAGE - 2(%rip), %rdi
        mov $PAGES / 2, %ecx
1:      movl $1, (%rdi)
        add $2 * PAGE, %rdi
        dec %ecx
        jnz 1b

        /* A load maps the page of zeros, which a store then replaces. */
        lea read(%rip), %rdi
        mov $PAGES, %ecx
1:      mov (%rdi), %al
        incb (%rdi)
        add $PAGE, %rdi
        dec %ecx
        jnz 1b

        /* The stack grows. */
        mov $PAGES, %ecx
1:      push %rcx
        sub $PAGE - 8, %rsp
        dec %ecx
        jnz 1b
        quit

        .bss
        .balign PAGE
written:
        .skip (PAGES + 1) * PAGE
read:   .skip PAGES * PAGE

        expect instructions, 2 + 4 * PAGES / 2 + 2 + 5 * PAGES + 1 + 4 * PAGES + QUIT
        expect branches, PAGES / 2 + PAGES + PAGES + 1
        expect conditional, PAGES / 2 + PAGES + PAGES
        expect not_taken, 3
        expect far, 1
        expect loads, 2 * PAGES
        expect stores, PAGES / 2 + PAGES + PAGES
