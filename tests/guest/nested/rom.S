/*
 * A second guest of a few instructions: counts, and halts or runs on, or ends
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * It begins in real mode, as a BIOS does.  CTL0 and CTL1 are what is written to
 * the selectors of AMD's first two counters, if that is defined; with HALT it
 * then halts for good, with END it ends QEMU.  With AGAIN it writes the first
 * selector again and again, with that bit inverted each time.  With RELOAD it
 * loads the first counter again and again, so many events from its overflow.
 * With PORT it reads that port again and again.
 */

#define PERF_CTL0       0xc0010200
#define PERF_CTR0       0xc0010201
#define SERIAL          0x3f8
/* The port of QEMU's device isa-debug-exit */
#define DEBUG_EXIT      0xf4

        .code16
        .text
start:
#ifdef CTL0
        xor     %edx, %edx
        mov     $PERF_CTL0, %ecx
        mov     $CTL0, %eax
        wrmsr
        mov     $PERF_CTL0 + 2, %ecx
        mov     $CTL1, %eax
        wrmsr
#endif
        mov     $SERIAL, %dx
        mov     $'!', %al
        out     %al, %dx
#ifdef END
        out     %al, $DEBUG_EXIT
#endif
        cli
#ifdef AGAIN
        mov     $CTL0, %edi
#endif
loop:
#ifdef HALT
        hlt
#endif
#ifdef AGAIN
        xor     $AGAIN, %edi
        mov     %edi, %eax
        xor     %edx, %edx
        mov     $PERF_CTL0, %ecx
        wrmsr
        mov     $1000000, %ecx
2:      dec     %ecx
        jnz     2b
#endif
#ifdef RELOAD
        mov     $-RELOAD, %eax
        mov     $0xffff, %edx
        mov     $PERF_CTR0, %ecx
        wrmsr
        mov     $1000000, %ecx
3:      dec     %ecx
        jnz     3b
#endif
#ifdef PORT
        .rept   10
        nop
        .endr
access: in      $PORT, %al
behind:
#endif
        jmp     loop
loop_end:

        .org    0xfff0
        jmp     start
        .org    0x10000, 0

        .section .note.GNU-stack, "", @progbits
