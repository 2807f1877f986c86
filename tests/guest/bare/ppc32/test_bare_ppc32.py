# SPDX-License-Identifier: GPL-2.0-or-later
"""Power's CPUs that are no servers, and have no PMU: their branches, interrupts
and returns, as a profile has them, in every mode of TCG.

QEMU names the binary, QEMU_BIOS_DIR its firmware directory, and BUILD the
directory for all that is made.
"""

import functools
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'common'))

from machine import BUILD, MODES, QEMU          # noqa: E402
from perf import branch_stacks                  # noqa: E402

PROGRAMS = os.path.join(BUILD, 'tests/guest/bare/ppc32')
CROSS = 'powerpc64le-linux-gnu-'
MODES = {**{name: MODES[name] for name in ('multi', 'single', 'one-insn',
                                           'no-chain')},
         'icount': ['-accel', 'tcg', '-icount', 'shift=1']}

# What instructions it has, in the order of the loop.  Processors that have to
# have a TLB get its first entry from a machine.
BOOKE = ['-DBOOKE', '-DRFCI']
CPUS = {
    '603': ([], []),
    '7400': ([], []),
    '750': ([], []),
    '405': (['-DRFCI'], []),
    '440epb': ([*BOOKE, '-DRFMCI'], ['bamboo', '-kernel']),
    'e500v2': (BOOKE, ['ppce500', '-bios']),
    'e500mc': ([*BOOKE, '-DRFDI', '-DRFMCI'], ['ppce500', '-bios']),
    'e5500': ([*BOOKE, '-DRFDI', '-DRFMCI'], ['ppce500', '-bios']),
}
STEPS = ['rfi', 'rfci', 'rfdi', 'rfmci', 'system_call', 'system_call_end',
         'program', 'program_end', 'loop']

# Bytes, of some hundreds of samples
ENOUGH = 1 << 18
# QEMU itself may be emulated.
SECONDS = 600

pytestmark = pytest.mark.arch('ppc64')


@functools.lru_cache
def build_loop(cpu):
    """Its ELF file, and its branches, from and to, by name."""
    os.makedirs(PROGRAMS, exist_ok=True)
    path = os.path.join(PROGRAMS, f'{cpu}.elf')
    subprocess.run(
        [f'{CROSS}gcc', '-m32', '-mbig-endian', '-nostdlib', '-static',
         '-Wl,-m,elf32ppc', '-Wl,-Ttext=0', '-Wl,--build-id=none',
         *CPUS[cpu][0], '-o', path, HERE / 'loop.S'], check=True)
    listed = subprocess.run([f'{CROSS}nm', path], check=True, text=True,
                            capture_output=True).stdout
    address = {name: int(value, 16) for value, _, name in
               (line.split() for line in listed.splitlines())}
    return path, {name: (address[f'at_{name}'], address[f'to_{name}'])
                  for name in STEPS if f'at_{name}' in address}


def command(cpu, mode, elf, file):
    machine = CPUS[cpu][1]
    start = ['-machine', *machine, elf] if machine else [
        '-machine', 'none', '-device', f'loader,cpu-num=0,file={elf}']
    words = [QEMU, '-nodefaults', '-display', 'none', '-m', '64',
             '-cpu', cpu, *start, *MODES[mode], '-object',
             'pmu-profile,id=profile,event=branches,period=29,'
             f'branch-stack=on,max-size={ENOUGH},file={file}']
    # Of Bamboo's device tree.
    if os.environ.get('QEMU_BIOS_DIR'):
        words += ['-L', os.path.join(os.environ['QEMU_BIOS_DIR'], '../qemu')]
    return words


@functools.lru_cache
def profile(cpu, mode, elf):
    """The branches of each sample, the oldest first."""
    with tempfile.TemporaryDirectory() as directory:
        file = os.path.join(directory, 'data')
        with subprocess.Popen(command(cpu, mode, elf, file),
                              stderr=subprocess.DEVNULL) as guest:
            late = time.monotonic() + SECONDS
            while guest.poll() is None and time.monotonic() < late and not (
                    os.path.exists(file) and os.path.getsize(file) >= ENOUGH):
                time.sleep(0.1)
            guest.terminate()
        return branch_stacks(file)


def wrong_order(stacks, cycle):
    """None, or where a branch is followed by another than in the cycle."""
    following_one = dict(zip(cycle, cycle[1:] + cycle[:1]))
    for stack in stacks:
        for branch, following in zip(stack, stack[1:]):
            if following != following_one.get(branch):
                return ('%x to %x, and then %x to %x' % (*branch, *following))
    return None


# The steps that each CPU has, by the options of its program.
OPTIONAL = {'rfci': '-DRFCI', 'rfdi': '-DRFDI', 'rfmci': '-DRFMCI'}


def has(cpu, step):
    return step not in OPTIONAL or OPTIONAL[step] in CPUS[cpu][0]


@pytest.mark.parametrize('mode, cpu, step', [
    (mode, cpu, step) for mode in MODES for cpu in CPUS for step in STEPS
    if has(cpu, step)])
def test_branch_is_seen(mode, cpu, step):
    elf, branches = build_loop(cpu)
    assert any(branches[step] in stack for stack in profile(cpu, mode, elf))


@pytest.mark.parametrize('mode', MODES)
@pytest.mark.parametrize('cpu', CPUS)
def test_order(mode, cpu):
    elf, branches = build_loop(cpu)
    assert set(branches) == {step for step in STEPS if has(cpu, step)}
    wrong = wrong_order(profile(cpu, mode, elf), list(branches.values()))
    assert not wrong
