# SPDX-License-Identifier: GPL-2.0-or-later
"""What a count depends on.

Each dependency has a name, for files and for people.  The order is the one in
which they are looked at when a count has changed: what is common to all
programs comes first.
"""

import os

from .elf import identity

MACHINE = ('architecture', 'cpu', 'core', 'cpus', 'memory', 'qemu', 'kernel')
NAMES = {
    'architecture': 'the architecture', 'cpu': 'the CPU model',
    'core': 'the modelled core', 'cpus': 'the number of CPUs',
    'memory': 'the size of the memory', 'qemu': "QEMU's build",
    'kernel': "the guest's kernel", 'aslr': '--aslr', 'seed': '--seed',
    'region': '--region', 'ignored': 'the numbers of ignored signals',
    'program': 'the program', 'libraries': 'the libraries',
    'arguments': 'the arguments', 'environment': 'the environment',
}


def is_file(path):
    return path.startswith('/') and not path.startswith(
        ('//', '/dev/', '/memfd:', '/SYSV')) and os.path.isfile(path)


def of(measurement):
    """What a measurement's counts depend on."""
    machine = measurement.machine
    files = []
    for *_, path in measurement.maps:
        if is_file(path) and path not in files:
            files.append(path)
    program, *libraries = files or [measurement.words[0]]
    return {
        **{name: machine[name] for name in MACHINE
           if name not in ('qemu', 'kernel')},
        'qemu': identity(machine['qemu']),
        'kernel': identity(machine['kernel']),
        'aslr': machine['aslr'],
        'seed': machine['seed'],
        'region': machine['region'],
        'ignored': machine['ignored'],
        'libraries': {path: identity(path) for path in libraries},
        'program': {os.path.basename(program): identity(program)},
        'arguments': measurement.words,
        'environment': machine['environment'],
    }


def show(name, value):
    """A value in a few words."""
    if value is None:
        return 'not given'
    if name == 'program' and isinstance(value, dict):
        return ' '.join(f'{key} {one[:16] if one else one}'
                        for key, one in value.items())
    if isinstance(value, list):
        return ' '.join(map(str, value))
    if name == 'environment' and isinstance(value, dict):
        return f'{value.get("variables")} variables of ' \
               f'{value.get("bytes")} bytes'
    return str(value)


def differing_libraries(before, now):
    for path in dict.fromkeys((*before, *now)):
        if before.get(path) != now.get(path):
            had = before.get(path) or 'absent'
            has = now.get(path) or 'absent'
            return f'{path} was {had[:16]} and is {has[:16]}'
    return 'their order'


def differences(before, now):
    """What differs, as (name, description), the first that matters first."""
    found = []
    for name in NAMES:
        if before.get(name) == now.get(name):
            continue
        if name == 'libraries':
            text = differing_libraries(before.get(name) or {},
                                       now.get(name) or {})
        else:
            text = (f'was {show(name, before.get(name))} and is '
                    f'{show(name, now.get(name))}')
        found.append((name, f'{NAMES[name]}: {text}'))
    return found
