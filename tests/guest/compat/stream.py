# SPDX-License-Identifier: GPL-2.0-or-later
"""Migration streams: what is in them, by the description at their end."""

import json
import pathlib

DESCRIPTION = b'\x06'


def description(path):
    """QEMU_VM_VMDESCRIPTION, its size, and so much of JSON."""
    data = pathlib.Path(path).read_bytes()
    at = len(data)
    while (at := data.rindex(DESCRIPTION, 0, at)) >= 0:
        size = int.from_bytes(data[at + 1:at + 5], 'big')
        if at + 5 + size == len(data):
            return json.loads(data[at + 5:])


def _names(state):
    yield state['vmsd_name']
    for one in state.get('subsections', ()):
        yield from _names(one)


def parts(path, devices):
    """The names of the states of these devices, and of their subsections."""
    return {name for device in description(path)['devices']
            if device['name'] in devices for name in _names(device)}
