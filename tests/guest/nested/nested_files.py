# SPDX-License-Identifier: GPL-2.0-or-later
"""What the first guest has beside Linux and QEMU: programs for both guests,
and what small second guests execute, rom.S with other macros each.
"""

import functools
import pathlib
import re
import subprocess
import sys

import harness
from harness import ARCH, BUILD, PROGRAMS, ROOT, locked

HERE = pathlib.Path(__file__).resolve().parent
MADE = BUILD / 'tests' / 'guest' / 'nested'

# Of AMD's selectors: counts, in the kernel and in user mode; once per cycle;
# and where that is not so.
COUNT = 0x430000
ONCE = 1 << 24
INVERTED = 1 << 23
INSTRUCTIONS, CYCLES = 0xc0, 0x76

# Second guests: what they do, and what their counters count meanwhile.
ROMS = {
    'halted': ('HALT', COUNT | INSTRUCTIONS, COUNT | CYCLES),
    'running': ('LOOP', COUNT | INSTRUCTIONS | ONCE,
                COUNT | CYCLES | ONCE | INVERTED),
    # Each way of counting is another event of KVM's; both count all the time.
    # (Writing a register is an instruction that KVM counts by itself.)
    'programming': (f'AGAIN={ONCE}', COUNT | CYCLES, 0),
    # Each overflow is a sample of the host's kernel.
    'sampling': ('RELOAD=100000', COUNT | INSTRUCTIONS, 0),
    'endless': ('LOOP',),
    'ending': ('END',),
    # The port is that of a device of QEMU's, not of KVM's.
    'ports': ('PORT=0x71',),
}

# The program of tests/guest/bare that fills all of AMD's registers.
BARE = ROOT / 'tests' / 'guest' / 'bare'
BARE_MADE = BUILD / 'tests' / 'guest' / 'bare' / 'x86'


def replace(target, make):
    """A file, if what make(PATH) makes differs from it."""
    part = target.with_suffix('.part')
    make(part)
    if target.exists() and target.read_bytes() == part.read_bytes():
        part.unlink()
    else:
        part.replace(target)
    return target, f'/{target.name}'


def make_rom(name):
    macro, *selectors = ROMS[name]
    macros = [f'-DCTL{i}={value:#x}' for i, value in enumerate(selectors)]
    part = MADE / f'{name}.o'
    subprocess.run(['cc', '-c', '-m32', f'-D{macro}', *macros, '-o', part,
                    HERE / 'rom.S'], check=True)
    return replace(MADE / f'{name}.bin', lambda path: subprocess.run(
        ['ld', '-m', 'elf_i386', '-e', '0', '-Ttext=0', '--oformat', 'binary',
         '-o', path, part], check=True))


def symbols_of_rom(name):
    """By their names."""
    named = subprocess.run(['nm', MADE / f'{name}.o'], check=True, text=True,
                           capture_output=True).stdout
    return {symbol: int(address, 16) for address, symbol
            in re.findall(r'^(\w+) \w (\w+)$', named, re.M)}


def files_of_x86():
    yield replace(MADE / 'other-host.so', lambda path: subprocess.run(
        ['cc', '-O2', '-shared', '-fPIC', '-o', path, HERE / 'other-host.c'],
        check=True))
    yield from map(make_rom, ROMS)
    subprocess.run(['make', '-s', '-C', BARE, 'ARCH=x86_64',
                    f'PROGRAMS={BARE_MADE}'], check=True)
    yield BARE_MADE / 'rom.bin', '/rom.bin'


def files_of_power():
    sys.path.insert(0, str(HERE.parent / 'compat'))
    # pylint: disable=import-outside-toplevel
    from nested_peers import images
    for name, image in images().items():
        yield replace(MADE / f'{name}.bin',
                      lambda path, image=image: path.write_bytes(image))


@functools.lru_cache
def files():
    """Pairs of source and path; programs are found by either guest."""
    MADE.mkdir(parents=True, exist_ok=True)
    with locked(MADE / 'lock'):
        made = [*{'x86_64': files_of_x86, 'ppc64': files_of_power}[ARCH]()]
    return [*made, (HERE / 'nested.sh', '/tests/nested.sh'),
            (harness.HERE / 'guest.sh', '/tests/guest.sh'),
            *((PROGRAMS / name, f'/l2/files/usr/bin/{name}')
              for name in harness.build_programs())]
