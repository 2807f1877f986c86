/*
 * Reads that miss a first level of 32 KiB with lines of 128 bytes
 *
 * Twice as many lines as it holds are read three times, in their order: each is
 * gone when it is read again.  A last level of some MiB misses the first time,
 * and a TLB once for each page of 64 KiB.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define TURNS 3
#define LINES 512

_start:
        li 3, TURNS
turn:   lis 4, area@ha
        addi 4, 4, area@l
        li 5, LINES
        mtctr 5
line:   ld 6, 0(4)
        addi 4, 4, 128
        bdnz line
        addic. 3, 3, -1
        bne turn
        quit

        .globl line
        .local area
        .comm area, LINES * 128, 65536

        expect instructions, 1 + TURNS * (4 + 3 * LINES + 2) + QUIT
        expect loads, TURNS * LINES
        expect first_misses, TURNS * LINES
        expect last_misses, LINES
        expect last_hits, (TURNS - 1) * LINES
        expect pages, LINES * 128 / 65536
