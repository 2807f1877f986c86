/*
 * A loop that takes a while, for what is to happen in its middle
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

#define N 600000000

_start:
        mov $N, %ecx
1:      nop
        dec %ecx
        jnz 1b
        quit

        expect instructions, 1 + 3 * N + QUIT
        expect branches, N + 1
        expect conditional, N
