# SPDX-License-Identifier: GPL-2.0-or-later
"""Flattened device trees."""

import struct

BEGIN_NODE, END_NODE, PROPERTY, NOP, END = 1, 2, 3, 4, 9
WORD = struct.Struct('>I')


def parse(blob):
    """A dictionary: the values of properties, by PATH/PROPERTY."""
    words = struct.unpack_from('>IIII', blob)
    at, strings = words[2], words[3]
    path, properties = [], {}

    def word():
        nonlocal at
        at += WORD.size
        return WORD.unpack_from(blob, at - WORD.size)[0]

    def text(offset):
        return blob[offset:blob.index(b'\0', offset)].decode()

    while (token := word()) != END:
        if token == BEGIN_NODE:
            path.append(text(at))
            at += len(path[-1]) + 1
        elif token == END_NODE:
            path.pop()
        elif token == PROPERTY:
            size, name = word(), text(strings + word())
            properties['/'.join([*path, name])] = blob[at:at + size]
            at += size
        at = (at + 3) & ~3
    return properties
