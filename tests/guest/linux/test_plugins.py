# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's own plugins as an oracle of what the PMU counts.

A plugin counts instructions that begin, and each access to memory.  The PMU
counts instructions that retire, and those that load or store.  An instruction
that faults begins once more than it retires; one of x86's that is repeated
begins as often as it accesses memory.  Where no instruction does so, the two
are equal: tests/guest/compat/test_plugins_bare.py.

Power has no test of libinsn: as a vCPU begins, that reads all registers, and
QEMU 10.0 reads the decrementer of a machine that has no clock yet.
"""

import pathlib
import re

import pytest

from harness import QEMU, on, require, require_equal
from machines import SMP, UP

PLUGINS = pathlib.Path(QEMU).parent / 'tests' / 'tcg' / 'plugins'
EVENTS = ['instructions', 'loads', 'stores', 'exceptions']
JOB = '''
. /tests/guest.sh
echo '@@@ begin'
for program in syscalls mixed; do
    $program
done
wait_for_test
'''


def attached(log, plugin, options):
    """QEMU's words for a plugin, and for observers of the same."""
    words = ['-plugin', f'{PLUGINS}/lib{plugin}.so,{options}',
             '-d', 'plugin', '-D', str(log)]
    for event in EVENTS:
        words += ['-object', f'pmu-profile,id={event},event={event},'
                  'period=1000000000000000,file=/dev/null']
    return words


def observed(cpu):
    """What the observers of a CPU have counted."""
    return {one['owner']: one['count'] for one in cpu['observers']}


def numbers(log, pattern):
    return [int(number) for number in re.findall(pattern, log.read_text())]


def counted(start, machine, log, plugin, options):
    """What the PMU has counted on each CPU when the machine has stopped; the
    plugin's counts are in the log then."""
    guest = start(machine, JOB, extra=attached(log, plugin, options))
    guest.lines_until('@@@ ready')
    guest.monitor.command('stop')
    counts = [observed(cpu) for cpu in guest.monitor.command('query-pmu')]
    guest.leave()
    return counts


@pytest.mark.arch('x86_64')
@on(SMP, each=['inline=on', 'inline=off'], more=[UP])
def test_instructions_that_begin(start, tmp_path, machine, how):
    """On each CPU, as many as have retired, and those that faulted or were
    repeated."""
    counts = counted(start, machine, tmp_path / 'log', 'insn', how)
    begun = numbers(tmp_path / 'log', r'cpu \d+ insns: (\d+)')
    require_equal(len(begun), machine.smp, 'CPUs')
    for count, began in zip(counts, begun):
        require(count['instructions'] > 1000000, f'only {count}')
        more = began - count['instructions']
        most = count['exceptions'] + count['loads'] + count['stores']
        require(0 <= more <= most, f'{began} began; retired {count}')


@pytest.mark.arch('ppc64')
@on(UP)
def test_accesses_to_memory(start, tmp_path, machine):
    """One for each load or store, and more for those of several words."""
    count, = counted(start, machine, tmp_path / 'log', 'mem', 'inline=on')
    accesses, = numbers(tmp_path / 'log', r'mem accesses: (\d+)')
    least = count['loads'] + count['stores']
    require(0 < least <= accesses <= 1.1 * least, f'{accesses}; {count}')
