# SPDX-License-Identifier: GPL-2.0-or-later
"""What is needed of ELF files: their segments, and their build ids."""

import functools
import hashlib
import struct
import zlib

PAGE = 4096
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
def content(path):
    """A file's bytes; none if it cannot be read."""
    try:
        with open(path, 'rb') as f:
            return f.read()
    except OSError:
        return b''


def page_checksum(path, offset):
    """That of a page of a file, as it is in memory: zeros follow the file."""
    return zlib.crc32(content(path)[offset:offset + PAGE].ljust(PAGE, b'\0'))


def segments(data):
    """The type, offset, address and length in the file of each segment."""
    if data[:4] != b'\x7fELF' or data[4] not in CLASSES or data[5] != 1:
        return
    word, where, sizes, pick, header = CLASSES[data[4]]
    offset, = struct.unpack_from(word, data, where)
    size, count = struct.unpack_from('<2H', data, sizes)
    for i in range(count):
        yield pick(*struct.unpack_from(header, data, offset + i * size))


def machine(path):
    """The architecture of a file, as its header has it; None without one."""
    data = content(path)
    if data[:4] != b'\x7fELF' or len(data) < MACHINE + 2:
        return None
    return struct.unpack_from('<H', data, MACHINE)[0]


def notes(data, at, end):
    """The name, type and content of each note."""
    while at + 12 <= end:
        names, size, kind = struct.unpack_from('<3I', data, at)
        at += 12
        name = data[at:at + names].rstrip(b'\0')
        at += (names + 3) & -4
        yield name, kind, data[at:at + size]
        at += (size + 3) & -4


def build_id(data):
    """The build id of a file's content, or None."""
    try:
        for kind, offset, _, length in segments(data):
            if kind != PT_NOTE:
                continue
            for name, what, found in notes(data, offset, offset + length):
                if name == b'GNU' and what == NT_GNU_BUILD_ID:
                    return found.hex()
    except struct.error:
        pass
    return None


@functools.lru_cache(maxsize=None)
def identity(path):
    """A file's build id, or a hash of its content; None if it is gone."""
    data = content(path)
    if not data:
        return None
    return build_id(data) or 'sha256:' + hashlib.sha256(data).hexdigest()


@functools.lru_cache(maxsize=None)
def loads(path):
    """The offset, address and length of what is loaded."""
    try:
        return [one[1:] for one in segments(content(path))
                if one[0] == PT_LOAD]
    except struct.error:
        return []


def address_of(path, offset):
    """The address in the file, as its symbols have it, of an offset."""
    for begin, address, length in loads(path):
        if begin <= offset < begin + length:
            return offset - begin + address
    return offset
