# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs in the place of a PC's firmware, in real mode: one writes registers
of the PMU, and reads some and counts its own rounds for ever; one notes what
CPUID says.
"""

import itertools
import struct

# Where programs leave what they have found.
ROUNDS, FAULTS, EXCESS, VALUE = 0x600, 0x608, 0x610, 0x618
# What CPUID said: four numbers of 4 bytes a leaf.
LEAVES = 0x1000

ROM_SIZE = 0x10000
SEGMENT = 0xf000
ENTRY = 0xfff0
HANDLER = 0xff00
VECTOR_KEY, VECTOR_GP = 9 * 4, 13 * 4

# By their first, the registers of Intel's, AMD's and older AMD's counters.
EVTSEL0, PMC0, GLOBAL_CTRL = 0x186, 0xc1, 0x38f
AMD_EVTSEL0, AMD_PMC0, AMD_GLOBAL_CTRL = 0xc0010200, 0xc0010201, 0xc0000301
K7_EVTSEL0, K7_PMC0 = 0xc0010000, 0xc0010004
APIC_BASE = 0x1b
# Instructions, in all modes.
COUNT_INSTRUCTIONS = 0x4300c0

# rdmsr and wrmsr that fault are passed over.
SKIP = bytes.fromhex('66ff06') + struct.pack('<H', FAULTS) \
    + bytes.fromhex('55 8bec 83460202 5d cf')
BEGIN = bytes.fromhex('6631c0 8ed8 8ed0 bc007c') + struct.pack(
    '<HHHHHH', 0x06c7, VECTOR_GP, HANDLER, 0x06c7, VECTOR_GP + 2, SEGMENT)


def _select(msr):
    return b'\x66\xb9' + struct.pack('<I', msr)         # mov ecx, MSR


def _store(opcode, address):
    return b'\x66' + bytes.fromhex(opcode) + struct.pack('<H', address)


def store_eax(address):
    return _store('a3', address)


def write(msr, value):
    return (_select(msr)
            + b'\x66\xb8' + struct.pack('<I', value & 0xffffffff)
            + b'\x66\xba' + struct.pack('<I', value >> 32) + b'\x0f\x30')


def read(msr, address):
    return _select(msr) + b'\x0f\x32' + store_eax(address) \
        + _store('8916', address + 4)


def use_keyboard():
    """Its interrupts only wake the CPU, whose APIC is off."""
    pic = ((0x20, 0x11), (0x21, 8), (0x21, 4), (0x21, 1), (0x21, 0xfd))
    handler = HANDLER + len(SKIP) - 1                       # iret
    return b''.join(bytes([0xb0, value, 0xe6, port]) for port, value in pic) \
        + write(APIC_BASE, 0xfee00100) \
        + struct.pack('<HHHHHH', 0x06c7, VECTOR_KEY, handler,
                      0x06c7, VECTOR_KEY + 2, SEGMENT)


def sleep_until_key():
    """Four instructions, one of which the handler has; EXCESS tells."""
    return b'\x66\xc7\x06' + struct.pack('<HI', EXCESS, 1) + b'\xfb\xf4'


# To the next instruction.
JUMP = b'\xeb\0'
NOP = b'\x90'


def excess(msr):
    """How far a counter is from the instructions that all rounds have."""
    length = 6 + 1                      # and those of image()
    return (_select(msr) + b'\x0f\x32'
            + b'\x66\x69\x1e' + struct.pack('<HI', ROUNDS, length)  # imul ebx
            + b'\x66\x29\xd8'                           # sub eax, ebx
            + store_eax(EXCESS))


def image(before=(), in_round=b''):
    """A file for -bios."""
    begin = BEGIN + b''.join(before)
    one = b'\x66\xff\x06' + struct.pack('<H', ROUNDS) + in_round  # inc dword
    code = begin + one + b'\xe9' + struct.pack('<h', -len(one) - 3)
    rom = bytearray(ROM_SIZE)
    rom[:len(code)] = code
    rom[HANDLER:HANDLER + len(SKIP)] = SKIP
    rom[ENTRY:ENTRY + 5] = b'\xea' + struct.pack('<HH', 0, SEGMENT)
    return bytes(rom)


ALL_LEAVES = list(itertools.product(
    [*range(0x25), *range(0x40000000, 0x40000002),
     *range(0x80000000, 0x80000027)], range(3)))


def note_cpuid(at, leaf, subleaf):
    return (b'\x66\xb8' + struct.pack('<I', leaf) + _select(subleaf)
            + b'\x0f\xa2' + store_eax(at) + _store('891e', at + 4)
            + _store('890e', at + 8) + _store('8916', at + 12))


def note_all_leaves():
    return [note_cpuid(LEAVES + 16 * i, *leaf)
            for i, leaf in enumerate(ALL_LEAVES)]
