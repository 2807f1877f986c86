# SPDX-License-Identifier: GPL-2.0-or-later
"""AMD's PMU under KVM, and a stock QEMU that migrates it itself: as QEMU 11.0
does, which does not load registers from where it has stored them.

This QEMU and that one are of the same series, or this one is of an earlier one,
which has only older machine types.  See docs/devel/vpmu-compat.rst.
"""

import os

import pytest

from nested_bare import (FUNCTIONS, OURS, REGISTERS, UNUSED, USED, arrival,
                         program, require_passed, values)

PEER = '/peer/qemu-system-x86_64'
GLOBAL_CONTROL = 'c0000301'
NAMES = {'ours': OURS, 'peer': PEER}
KVM = '-accel kvm -cpu host,pmu=on'
# The newest type; and one of QEMU 10.0, which does not have such a state.
TYPES = {'new': 'pc', 'old': 'pc-i440fx-10.0'}

# By name: the QEMUs in which the guest is, one after the other.
WAYS = {
    'ours/peer': 'new', 'peer/ours': 'new', 'peer/peer': 'new',
    'peer/ours/old': 'old', 'ours/peer/old': 'old',
    'ours/peer/ours': 'new',
}
if os.environ.get('QEMU_SERIES', '10.0') in ('10.0', '10.2'):
    WAYS = {name: machine for name, machine in WAYS.items()
            if machine == 'old'}
only_new = pytest.mark.skipif('peer/peer' not in WAYS,
                              reason='this QEMU has no such machine type')

# All programs end by themselves, but for one that is refused.
ENDS = 2 * len(WAYS) - 1


def way(name, task):
    """From each to the next, until it ends in the last one."""
    first, *others = [NAMES[one] for one in name.split('/') if one in NAMES]
    yield f'machine={TYPES[WAYS[name]]}'
    yield f'phase {name}/{task}/leave'
    yield f'leave /tmp/state {first} {KVM} {program(task)}'
    for other in others[:-1]:
        yield f'pass_on /tmp/state {other} {KVM} {program(task)}'
    yield f'phase {name}/{task}'
    yield f'bare {others[-1]} {KVM} {arrival("state")}'


PASS_ON = """
# pass_on FILE QEMU OPTION...: load it, and migrate it there again
pass_on() {
    file=$1
    shift
    bare "$@" -incoming file:$file $monitor 9<> /tmp/monitor & l2=$!
    ask_l2 'info status' 'status: running'
    save_l2 $file
}
"""


def script(_):
    yield FUNCTIONS
    yield PASS_ON
    for name in WAYS:
        for task in USED, UNUSED:
            yield from way(name, task)
    yield 'phase ends'
    # A program that has not ended has halted for good.
    yield f'[ $(grep -c "^@ l2 end" /tmp/l2.phases) -lt {ENDS} ] || phase end'
    yield 'cat /tmp/l2.phases /tmp/l2.out'


def test_ends(output):
    output.require(('l1', 'end'))


@pytest.mark.parametrize('name', sorted(WAYS.keys() - {'peer/ours/old'}))
def test_unused_pmu_moves(phases, name):
    require_passed(phases[f'{name}/{UNUSED}'], 'state/unused')


def test_unused_pmu_of_old_type_has_been_reset(phases):
    """The peer's differs in one register; QEMU 10.0's does not."""
    lines = phases[f'peer/ours/old/{UNUSED}']
    assert {register: after for register, (before, after)
            in values(lines, 'migration').items() if before != after} \
        == {GLOBAL_CONTROL: '3f'}


@pytest.mark.parametrize('name', sorted({
    'ours/peer', 'peer/ours', 'peer/ours/old', 'ours/peer/ours'}
    & WAYS.keys()))
def test_used_pmu_moves(phases, name):
    assert values(phases[f'{name}/{USED}'], 'migration').keys() == REGISTERS
    require_passed(phases[f'{name}/{USED}'], 'state/migration')


@only_new
def test_peer_does_not_load_what_it_stores(phases):
    """If it does one day, vpmu-compat.rst has to say so."""
    assert ['ok', 'state/migration'] not in phases[f'peer/peer/{USED}']


def test_used_pmu_of_old_type_is_refused(phases):
    """A QEMU without such a state would lose it."""
    said = '\n'.join(map(' '.join, phases[f'ours/peer/old/{USED}']))
    assert "of device 'cpu'" in said
