# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs for Power that state what they count, and how to ask for it."""

import collections
import os
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
BUILD = pathlib.Path(os.environ.get('BUILD', ROOT / 'build'))
PROGRAMS = BUILD / 'tests' / 'guest' / 'power'
TOOLS = 'powerpc64le-linux-gnu-'

# What the processors call what the programs state.
EVENTS = {
    8: {'branches': 'r40060', 'loads': 'r1002e', 'stores': 'r20016'},
    9: {'branches': 'r4d05e', 'loads': 'r4003e', 'stores': 'r200f0'},
    10: {'branches': 'r2f04a', 'loads': 'r4003e', 'stores': 'r200f0'},
}
COMMON = {'instructions': 'instructions', 'taken': 'r200fa',
          'failed': 'r1e058'}
# These use instructions of POWER9.
SINCE_POWER9 = ['memory', 'vectored']

Program = collections.namedtuple('Program', 'name path expected symbols')


def build(source):
    path = PROGRAMS / source.stem
    subprocess.run([f'{TOOLS}gcc', '-mcpu=power9', '-nostdlib', '-static',
                    '-I', source.parent, '-o', path, source], check=True)
    listing = subprocess.run([f'{TOOLS}nm', path], check=True, text=True,
                             capture_output=True).stdout
    symbols = {name: int(value, 16) for value, _, name in
               (line.split() for line in listing.splitlines())}
    expected = {name.removeprefix('expect_'): value
                for name, value in symbols.items()
                if name.startswith('expect_')}
    return Program(source.stem, path, expected, symbols)


def build_all():
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    return [build(source)
            for source in sorted((HERE / 'programs').glob('*.S'))]
