/*
 * Accesses to a device, by a port
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "program.inc"

/*
 * About a second: on a busy host, a process that measures time may be delayed.
 */
#define N 6000000
#define SYS_iopl 172
#define PORT_B 0x61

_start:
        mov $3, %edi
        call_kernel SYS_iopl
        mov $N, %ebx
loop:   nop
        nop
access: inb $PORT_B, %al
        nop
        dec %ebx
        jnz loop
loop_end:
        quit

        .globl loop, access, loop_end
        expect loads, 0
        expect stores, 0
