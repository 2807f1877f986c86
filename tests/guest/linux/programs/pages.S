/*
 * Page faults on code: each instruction at the end of a page reaches into the
 * next one, which is still untouched
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define PAGES 200
#define PAGE 4096

        .balign PAGE
first:
        .skip PAGE - 2
_start:
        .set n, 1
        .rept PAGES
        movabs $0x123456789abcdef, %rax
        jmp 1f
        .set n, n + 1
        .org first + PAGE * n - 2
1:
        .endr
        quit

        expect instructions, PAGES * 2 + QUIT
        expect branches, PAGES + 1
        expect conditional, 0
        expect taken, PAGES
        expect not_taken, 0
        expect calls, 0
        expect far, 1
        expect loads, 0
        expect stores, 0
