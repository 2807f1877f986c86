/*
 * Reads that miss a first level of 32 KiB with lines of 64 bytes
 *
 * Twice as many lines as it holds are read three times, in their order: each is
 * gone when it is read again.  A last level of some MiB misses the first time,
 * and a TLB once for each page of 4 KiB.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define TURNS 3
#define LINES 1024

_start:
        mov $TURNS, %ecx
turn:   mov $area, %eax
        mov $LINES, %edx
line:   mov (%rax), %rsi
        add $64, %rax
        dec %edx
        jnz line
        dec %ecx
        jnz turn
        quit

        .globl line
        .local area
        .comm area, LINES * 64, 4096

        expect instructions, 1 + TURNS * (2 + 4 * LINES + 2) + QUIT
        expect loads, TURNS * LINES
        expect first_misses, TURNS * LINES
        expect last_misses, LINES
        expect last_hits, (TURNS - 1) * LINES
        expect pages, LINES / 64
