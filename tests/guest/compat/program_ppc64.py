# SPDX-License-Identifier: GPL-2.0-or-later
"""A program for the bare pseries machine, in place of its firmware: it fills
registers of the PMU, calls H_PERFMON, and counts its own rounds for ever.
"""

import struct

# Where firmware is entered, and where the program leaves what it has found.
ENTRY = 0x100
ROUNDS, EXCESS, RESULT, MODES, BRANCH, ASKED, TAKEN = range(0x4000, 0x4038, 8)
EXTERNAL = 0x500

SPRS = {'mmcr0': 795, 'mmcr1': 798, 'mmcr2': 785, 'mmcra': 786,
        'pmc1': 787, 'pmc2': 788, 'pmc3': 789, 'pmc4': 790,
        'pmc5': 791, 'pmc6': 792, 'siar': 796, 'sdar': 797, 'ctrl': 152}

MMCR0_FC, MMCR0_FCM0, MMCR0_PMAE = 1 << 31, 1 << 27, 1 << 26
MMCR0_BHRBA = 1 << 21
# Instructions completed, in all of PMC1 to PMC4.
INSTRUCTIONS = 0x02020202

H_PERFMON, H_FUNCTION = 0x7c, (1 << 64) - 2
ENABLE = 1 << 63
H_LOGICAL_CI_STORE, H_CPPR, H_IPI = 0x40, 0x68, 0x6c
# The registers of a CPU at XIVE, as an operating system sees them: the priority
# that it works at, and a request for an interrupt.
TIMA = 0x0006030203180000 + (2 << 16)
TIMA_CPPR, TIMA_SET_PENDING = TIMA + 0x11, TIMA + 0x812

CLEAR_BRANCHES = 0x7c00035c
HYPERCALL = 0x44000022


def load(register, value):
    """lis, ori, rldicr, oris, ori"""
    high, low = value >> 32, value & 0xffffffff
    return [15 << 26 | register << 21 | high >> 16,
            24 << 26 | register << 21 | register << 16 | high & 0xffff,
            30 << 26 | register << 21 | register << 16 | 0x07c6,
            25 << 26 | register << 21 | register << 16 | low >> 16,
            24 << 26 | register << 21 | register << 16 | low & 0xffff]


def _spr(operation, register, name):
    number = SPRS[name]
    return (31 << 26 | register << 21 | (number & 31) << 16
            | (number >> 5) << 11 | operation << 1)


def read(register, name):
    return _spr(339, register, name)


def write(name, value):
    return [*load(3, value), _spr(467, 3, name)]


def store(register, address):
    """std, below 0x8000"""
    return 62 << 26 | register << 21 | address


def call(number, *arguments):
    return [*load(3, number),
            *(word for register, argument in enumerate(arguments, 4)
              for word in load(register, argument)), HYPERCALL]


def call_perfmon():
    return [*call(H_PERFMON, ENABLE, 0), store(3, RESULT), store(4, MODES)]


# By the interrupt controller: have an interrupt wait at the CPU.
ASKING = {
    'xics': [*call(H_CPPR, 0xff), *call(H_IPI, 0, 5)],
    'xive': [*call(H_LOGICAL_CI_STORE, 1, TIMA_CPPR, 0xff),
             *call(H_LOGICAL_CI_STORE, 1, TIMA_SET_PENDING, 6)],
}


def ask_for_interrupt(controller):
    """And take it, as soon as a system reset enters the program once more."""
    take = [31 << 26 | 3 << 21 | 83 << 1,                   # mfmsr 3
            24 << 26 | 3 << 21 | 3 << 16 | 0x8000,          # ori 3,3,EE
            31 << 26 | 3 << 21 | 178 << 1]                  # mtmsrd 3
    ask = [14 << 26 | 3 << 21 | 1, store(3, ASKED),         # li 3,1
           *ASKING[controller],
           18 << 26 | 4 * (len(take) + 1)]                  # b
    return [58 << 26 | 3 << 21 | ASKED,                     # ld 3,ASKED
            11 << 26 | 1 << 21 | 3 << 16,                   # cmpdi 3,0
            16 << 26 | 4 << 21 | 2 << 16 | 4 * (len(ask) + 1),  # bne
            *ask, *take]


def note_interrupt():
    return [14 << 26 | 3 << 21 | 1, store(3, TAKEN), 18 << 26]  # li 3,1; b .


def read_branch(entry):
    return 31 << 26 | 6 << 21 | entry << 11 | 302 << 1


def mark():
    """Set MSR[PMM]."""
    return [31 << 26 | 3 << 21 | 83 << 1,                   # mfmsr 3
            24 << 26 | 3 << 21 | 3 << 16 | 4,               # ori 3,3,4
            31 << 26 | 3 << 21 | 178 << 1]                  # mtmsrd 3


def count_rounds():
    """Says how far PMC5 is from the instructions that all rounds have."""
    begin = [*load(5, 0)]
    rounds = [14 << 26 | 5 << 21 | 5 << 16 | 1,             # addi 5,5,1
              read(6, 'pmc5'),
              0,                                            # mulli 7,5,LENGTH
              31 << 26 | 6 << 21 | 7 << 16 | 6 << 11 | 40 << 1,  # subf 6,7,6
              store(6, EXCESS),
              store(5, ROUNDS)]
    rounds[2] = 7 << 26 | 7 << 21 | 5 << 16 | len(rounds) + 1
    back = 18 << 26 | -4 * len(rounds) & 0x3fffffc          # b
    return [*begin, *rounds, back]


def image(*parts):
    """A file for -bios: that, and then rounds for ever."""
    words = [word for part in parts for word in part] + count_rounds()
    code = struct.pack(f'>{len(words)}I', *words)
    handler = note_interrupt()
    return (bytes(ENTRY) + code).ljust(EXTERNAL, b'\0') \
        + struct.pack(f'>{len(handler)}I', *handler)
