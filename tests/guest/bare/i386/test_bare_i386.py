# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest of 32 bits, in every mode of TCG and on the PMUs of both vendors.

QEMU names the binary, which may be qemu-system-i386, QEMU_BIOS_DIR its
firmware directory, and BUILD the directory for all that is made.
"""

import functools
import os
import pathlib
import re
import subprocess

import pytest

from linux_guest import BUILD, qemu_of

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = BUILD.resolve() / 'tests/guest/bare/i386'
QEMU = os.environ.get('QEMU') or str(qemu_of('x86_64'))

MODES = {
    'multi': ['-accel', 'tcg,thread=multi'],
    'single': ['-accel', 'tcg,thread=single'],
    'one-insn': ['-accel', 'tcg,one-insn-per-tb=on'],
    # Nothing chained, and so little room that it is flushed often.
    'no-chain': ['-accel', 'tcg,tb-size=1', '-d', 'nochain'],
    'icount': ['-accel', 'tcg', '-icount', 'shift=0'],
}

# Those of AMD have no events of loads and of stores, and no PEBS.
CPUS = {
    'Intel': 'Skylake-Client-v1,pmu=on,pebs=on,-lm',
    'AMD': 'EPYC-Genoa-v1,pmu=on,-lm',
}
CASES = [
    'count/nops', 'count/loop', 'count/string', 'count/undefined',
    'branch/loop', 'memory/loads', 'memory/stores',
    'mode/user', 'mode/kernel', 'mode/both', 'overflow/periods',
    'pebs/index', 'pebs/record', 'pebs/address',
]

# The guest writes 0 to isa-debug-exit, or 1 if a case has failed.
ENDED_WELL, ENDED_WITH_FAILURE = 1, 3
# QEMU itself may be emulated.
SECONDS = 600

pytestmark = pytest.mark.arch('x86_64')


def has(vendor, case):
    return vendor == 'Intel' or not case.startswith(('memory/', 'pebs/'))


@functools.lru_cache
def build():
    subprocess.run(['make', '-s', '-C', HERE, f'PROGRAMS={PROGRAMS}'],
                   check=True)
    return PROGRAMS / 'rom.bin'


@functools.lru_cache
def boot(mode, vendor):
    """The guest's lines, and what was wrong with QEMU's end, if anything."""
    command = [
        QEMU, '-nodefaults', '-no-reboot', '-display', 'none',
        '-serial', 'stdio', '-monitor', 'none', '-machine', 'pc', '-m', '32',
        '-cpu', CPUS[vendor], '-bios', build(),
        '-global', 'apic-common.vapic=off',
        '-device', 'isa-debug-exit,iobase=0xf4,iosize=0x4', *MODES[mode],
    ]
    if os.environ.get('QEMU_BIOS_DIR'):
        command += ['-L', os.environ['QEMU_BIOS_DIR']]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, timeout=SECONDS,
                              errors='replace')
    except subprocess.TimeoutExpired:
        return [], f'no end after {SECONDS} s'
    lines = done.stdout.splitlines()
    # Of features that TCG lacks.
    errors = [line for line in done.stderr.splitlines()
              if 'warning:' not in line]
    failed = any(line.startswith('not ok ') for line in lines)
    if done.returncode == (ENDED_WITH_FAILURE if failed else ENDED_WELL) \
            and lines[-1:] == ['end'] and not errors:
        return lines, None
    return lines, ': '.join([f'QEMU ended with status {done.returncode}',
                             *errors[-1:]])


@pytest.mark.parametrize('mode, vendor, case', [
    (mode, vendor, case) for mode in MODES for vendor in CPUS
    for case in CASES if has(vendor, case)])
def test_case(mode, vendor, case):
    lines, complaint = boot(mode, vendor)
    assert not complaint
    result, = [line for line in lines
               if re.match(rf'(not )?ok {case}( #|$)', line)]
    assert result == f'ok {case}'
