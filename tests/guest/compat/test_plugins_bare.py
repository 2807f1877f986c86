# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's own plugins as an oracle: of a program without faults and repeated
instructions, they count what the PMU does, to the last one.
"""

import pathlib
import re

import pytest

import program_x86_64 as program
from qemus import OURS, Bare, until

PLUGINS = pathlib.Path(OURS.path).parent / 'tests' / 'tcg' / 'plugins'
MACHINE = ['-machine', 'q35', '-cpu', 'Skylake-Client-v1,pmu=on', '-m', '32',
           '-global', 'apic-common.vapic=off']

pytestmark = pytest.mark.arch('x86_64')


def counted(log, plugin, options):
    """What observers count of some rounds of a program; the plugin's count is
    in the log then."""
    words = ['-plugin', f'{PLUGINS}/lib{plugin}.so,{options}',
             '-d', 'plugin', '-D', str(log)]
    for event in 'instructions', 'loads', 'stores':
        words += ['-object', f'pmu-profile,id={event},event={event},'
                  'period=1000000000000000,file=/dev/null']
    with Bare(program.image()).start(OURS, MACHINE, *words) as qemu:
        qemu.command('cont')
        until(lambda: qemu.number(program.ROUNDS) > 1000)
        qemu.command('stop')
        cpu, = qemu.command('query-pmu')
        qemu.command('quit')
        qemu.process.wait()
    return {one['owner']: one['count'] for one in cpu['observers']}


def number(log, pattern):
    return int(re.search(pattern, log.read_text())[1])


@pytest.mark.parametrize('how', ['inline=on', 'inline=off'])
def test_instructions(tmp_path, how):
    count = counted(tmp_path / 'log', 'insn', how)
    assert count['instructions'] > 2000
    assert number(tmp_path / 'log', r'cpu 0 insns: (\d+)') \
        == count['instructions']


@pytest.mark.parametrize('how', ['inline=on', 'callback=on'])
def test_accesses(tmp_path, how):
    count = counted(tmp_path / 'log', 'mem', how)
    assert count['loads'] > 1000
    assert number(tmp_path / 'log', r'mem accesses: (\d+)') \
        == count['loads'] + count['stores']
