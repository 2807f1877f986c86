# SPDX-License-Identifier: GPL-2.0-or-later
"""What is needed of ELF files: their segments, and their build ids."""

import functools
import hashlib
import os
import struct
import zlib

PAGE = 4096
# How much is read at once, and how long notes may be
PART = MOST_NOTES = 1 << 20
PT_LOAD = 1
PT_NOTE = 4
NT_GNU_BUILD_ID = 3
# e_machine of Power, and where it is
PPC64 = 21
MACHINE = 18
# For each class: the place of e_phoff, and of e_phentsize; and how to read
# p_type, p_offset, p_vaddr and p_filesz
CLASSES = {
    1: ('<I', 28, 42, lambda t, o, v, p, f, *_: (t, o, v, f), '<8I'),
    2: ('<Q', 32, 54, lambda t, flags, o, v, p, f, *_: (t, o, v, f),
        '<2I6Q'),
}


@functools.lru_cache(maxsize=64)
def opened(path):
    return open(path, 'rb', buffering=0)


def part(path, offset, size):
    """Some of a file's bytes, as far as they can be read."""
    try:
        return os.pread(opened(path).fileno(), size, offset)
    except (OSError, OverflowError):
        return b''


def page_checksum(path, offset):
    """That of a page of a file, as it is in memory: zeros follow the file."""
    return zlib.crc32(part(path, offset, PAGE).ljust(PAGE, b'\0'))


@functools.lru_cache(maxsize=None)
def segments(path):
    """The type, offset, address and length in the file of each segment."""
    data = part(path, 0, PAGE)
    if data[:4] != b'\x7fELF' or data[4] not in CLASSES or data[5] != 1:
        return []
    word, where, sizes, pick, header = CLASSES[data[4]]
    offset, = struct.unpack_from(word, data, where)
    size, count = struct.unpack_from('<2H', data, sizes)
    table = part(path, offset, size * count)
    return [pick(*struct.unpack_from(header, table, i * size))
            for i in range(count)]


def machine(path):
    """The architecture of a file, as its header has it; None without one."""
    data = part(path, 0, PAGE)
    if data[:4] != b'\x7fELF' or len(data) < MACHINE + 2:
        return None
    return struct.unpack_from('<H', data, MACHINE)[0]


def notes(data):
    """The name, type and content of each note."""
    at = 0
    while at + 12 <= len(data):
        names, size, kind = struct.unpack_from('<3I', data, at)
        at += 12
        name = data[at:at + names].rstrip(b'\0')
        at += (names + 3) & -4
        yield name, kind, data[at:at + size]
        at += (size + 3) & -4


def build_id(path):
    """The build id of a file, or None."""
    try:
        for kind, offset, _, length in segments(path):
            if kind != PT_NOTE:
                continue
            for name, what, found in notes(part(path, offset,
                                                min(length, MOST_NOTES))):
                if name == b'GNU' and what == NT_GNU_BUILD_ID:
                    return found.hex()
    except (IndexError, struct.error):
        pass
    return None


def checksum(path):
    """A hash of a file's content; None if it is empty, or gone."""
    found = hashlib.sha256()
    at = 0
    while data := part(path, at, PART):
        found.update(data)
        at += len(data)
    return f'sha256:{found.hexdigest()}' if at else None


@functools.lru_cache(maxsize=None)
def identity(path):
    """A file's build id, or a hash of its content; None if it is gone."""
    return build_id(path) or checksum(path)


def loads(path):
    """The offset, address and length of what is loaded."""
    try:
        return [one[1:] for one in segments(path) if one[0] == PT_LOAD]
    except (IndexError, struct.error):
        return []


def address_of(path, offset):
    """The address in the file, as its symbols have it, of an offset."""
    for begin, address, length in loads(path):
        if begin <= offset < begin + length:
            return offset - begin + address
    return offset
