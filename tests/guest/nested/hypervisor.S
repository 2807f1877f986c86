/*
 * A first guest of a few instructions, on the bare pseries machine of Power: it
 * enters second guests, and notes how they leave
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 *
 * It takes the place of firmware.  Each of `cases` is a second guest, of one
 * instruction and a hypercall, or one that spins; test_nested_entry.py reads
 * the results.
 */

#define ENTRY           0x100

/*
 * For test_nested_entry.py: two numbers for each case, and the number of cases
 */
#define RESULTS         0x8000
#define DONE            0x7ff8

/* Addresses of its tables */
#define PARTITIONS      0x10000
#define ROOT            0x20000
#define LEVEL           0x30000
#define STATE           0x40000
#define REGS            0x41000

/* A radix tree of 52 bits, that maps the first GiB to itself. */
#define RADIX           0x8000000000000000
#define TREE            (RADIX | 0x40000000000000a0 | ROOT | 13)
#define LEVEL_ENTRY     (0x8000000000000000 | LEVEL | 9)
#define LEAF            (0xc000000000000000 | 0x180 | 7)

/* Hypercalls */
#define H_CPPR                  0x68
#define H_IPI                   0x6c
#define H_SET_PARTITION_TABLE   0xf800
#define H_ENTER_NESTED          0xf804

/* Offsets in struct kvmppc_hv_guest_state and kvmppc_pt_regs */
#define STATE_VERSION   0
#define STATE_LPID      8
#define STATE_HFSCR     48
#define STATE_HDEC      88
#define REGS_NIP        256
#define REGS_MSR        264

#define SPR_BESCR       806
#define SPR_MMCR0       795
#define SPR_MMCR1       798
#define SPR_PMC2        788
#define MMCR0_FC        0x80000000

#define MSR             0x8000000000001000
#define MSR_EE          0x8000

#define HFSCR_ALL       0x00ffffffffffffff
#define HFSCR_PM        (1 << 3)
#define HFSCR_BHRB      (1 << 4)
#define HFSCR_EBB       (1 << 7)

/* Ticks: never, in a fifth of a millisecond, and some time ago. */
#define NEVER           (1 << 40)
#define SOON            100000
#define OVER            -100000

/* PMC2 counts external interrupts. */
#define INTERRUPTS      (0xf8 << 16)

        .machine power9
        .text
        .org    ENTRY

.macro set register, value
        lis     \register, (\value) >> 48 & 0xffff
        ori     \register, \register, (\value) >> 32 & 0xffff
        rldicr  \register, \register, 32, 31
        oris    \register, \register, (\value) >> 16 & 0xffff
        ori     \register, \register, (\value) & 0xffff
.endm

/* Store a table's number, in the guest's byte order. */
.macro put value, address
        set     4, \value
        set     5, \address
        std     4, 0(5)
.endm

/* Store a number in the byte order of QEMU's host, which is little-endian. */
.macro give register, base, offset
        li      5, \offset
        stdbrx  \register, \base, 5
.endm

.macro call number
        li      3, (\number) & 0x7fff
        .if     (\number) & 0x8000
        ori     3, 3, 0x8000
        .endif
        sc      1
.endm

        put     RADIX | TREE, PARTITIONS + 16
        put     0, PARTITIONS + 24
        put     LEVEL_ENTRY, ROOT
        put     LEAF, LEVEL
        set     4, PARTITIONS
        call    H_SET_PARTITION_TABLE

        bcl     20, 31, here
here:   mflr    31
        addi    31, 31, cases - here
        li      30, 0                   /* cases */
        set     29, RESULTS
        set     28, STATE
        set     27, REGS

next:   ld      4, 0(31)
        cmpdi   4, 0
        beq     done
        give    4, 27, REGS_NIP
        ld      4, 8(31)
        give    4, 27, REGS_MSR
        ld      4, 16(31)
        give    4, 28, STATE_HFSCR
        li      4, 1
        give    4, 28, STATE_VERSION
        li      5, STATE_LPID
        stwbrx  4, 28, 5

        /* If the guest takes interrupts, make one of our own pending. */
        ld      4, 8(31)
        andi.   4, 4, MSR_EE
        beq     1f
        li      4, 0xff
        call    H_CPPR
        li      4, 0
        li      5, 0
        call    H_IPI
1:
        li      4, 0
        mtspr   SPR_PMC2, 4
        set     4, INTERRUPTS
        mtspr   SPR_MMCR1, 4
        li      4, 0
        mtspr   SPR_MMCR0, 4

        mftb    4
        ld      5, 24(31)
        add     4, 4, 5
        give    4, 28, STATE_HDEC
        mr      4, 28
        mr      5, 27
        call    H_ENTER_NESTED

        set     4, MMCR0_FC
        mtspr   SPR_MMCR0, 4
        mfspr   4, SPR_PMC2
        std     3, 0(29)
        std     4, 8(29)
        addi    29, 29, 16
        addi    30, 30, 1
        addi    31, 31, 32
        b       next

done:   set     4, DONE
        std     30, 0(4)
        b       .

/* Second guests */

spin:   b       .
events: mfspr   5, SPR_BESCR
        sc      1
branches:
        clrbhrb
        sc      1
counters:
        mfspr   5, SPR_MMCR0
        sc      1

.macro case address, msr, hfscr, ticks
        .quad   \address, \msr, \hfscr, \ticks
.endm

        .balign 8
cases:
        case    spin, MSR, HFSCR_ALL, SOON
        case    spin, MSR, HFSCR_ALL, OVER
        case    spin, MSR, HFSCR_ALL, OVER
        case    events, MSR, HFSCR_ALL, NEVER
        case    events, MSR, HFSCR_ALL & ~HFSCR_EBB, NEVER
        case    branches, MSR, HFSCR_ALL, NEVER
        case    branches, MSR, HFSCR_ALL & ~HFSCR_BHRB, NEVER
        case    counters, MSR, HFSCR_ALL, NEVER
        case    counters, MSR, HFSCR_ALL & ~HFSCR_PM, NEVER
        case    spin, MSR | MSR_EE, HFSCR_ALL, NEVER
        .quad   0

        .section .note.GNU-stack, "", @progbits
