/*
 * Power's CPUs that are no servers: interrupts of all kinds, and returns from them
 *
 * An endless loop.  At a label that begins with "at_", execution goes to the
 * label with the same end that begins with "to_".
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifdef BOOKE
#define IVPR    63
#define IVOR6   406
#define IVOR8   408
#define CSRR0   58
#else
#define EVPR    982
#define CSRR0   990                     /* SRR2 of the 40x */
#endif
#define SRR0    26
#define MCSRR0  570
#define DSRR0   574

/* The register after the one with the address is copied to MSR. */
.macro  return what, instruction, save
        lis     3, to_\what@ha
        addi    3, 3, to_\what@l
        mtspr   \save, 3
        mtspr   \save + 1, 4
at_\what:
        \instruction
        trap
to_\what:
.endm

        .machine any
        .section .text
        .org    0x700
to_program:
        mfspr   5, SRR0                 /* of the instruction itself */
        addi    5, 5, 4
        mtspr   SRR0, 5
at_program_end:
        rfi

        .org    0xc00
to_system_call:
at_system_call_end:
        rfi

        .org    0x1000
        .globl  _start
_start:
        li      5, 0
#if defined(BOOKE)
        mtspr   IVPR, 5
        li      5, 0x700
        mtspr   IVOR6, 5
        li      5, 0xc00
        mtspr   IVOR8, 5
#elif defined(RFCI)
        mtspr   EVPR, 5
#endif
        mfmsr   4
        rlwinm  4, 4, 0, ~0x40          /* vectors begin at 0 */
        mtmsr   4
        isync
to_loop:
        return  rfi, rfi, SRR0
#ifdef RFCI
        return  rfci, rfci, CSRR0
#endif
#ifdef RFDI
        return  rfdi, rfdi, DSRR0
#endif
#ifdef RFMCI
        return  rfmci, rfmci, MCSRR0
#endif
at_system_call:
        sc
to_system_call_end:
at_program:
        trap
to_program_end:
at_loop:
        b       to_loop
