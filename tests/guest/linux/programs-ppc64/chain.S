/*
 * Loops at the end of chains of calls, with back chains as compilers make them,
 * and with some that lead nowhere.  Return addresses have symbols, with the
 * loop's name and a number, the innermost first.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define N 2000000

        .macro named name
        .globl expect_\name
expect_\name:
        .endm

        .macro enter
        mflr 0
        std 0, 16(1)
        stdu 1, -32(1)
        .endm

        .macro leave
        addi 1, 1, 32
        ld 0, 16(1)
        mtlr 0
        .endm

        .macro spin name
        .globl \name, \name\()_end
\name:  lis 4, N >> 16
        ori 4, 4, N & 0xffff
        mtctr 4
1:      nop
        bdnz 1b
\name\()_end:
        nop
        .endm

/* If the link register has no caller, only the frames count. */
_start:
        mr 31, 1
        li 0, 0
        stdu 0, -64(1)
        bl outer
named behind_good_3
        bl circle
named behind_circle_1
        li 0, 0
        mtlr 0
        lis 1, 0x7000                   /* nothing is there */
        spin unmapped
        li 1, -1                        /* the kernel's: its first code */
        sldi 1, 1, 62
        spin kernels
        addi 1, 31, -63
        spin odd
        mr 1, 31
        quit

outer:
        enter
        bl middle
named behind_good_2
        leave
        blr

middle:
        enter
        bl inner
named behind_good_1
        leave
        blr

/* This calls no function, and so has no frame. */
inner:
        spin good
        blr

/* A frame whose caller is, or seems to be, itself */
circle:
        mr 5, 1
        std 1, 0(1)
        spin circular
        li 0, 0
        std 0, 0(5)
        blr
