# SPDX-License-Identifier: GPL-2.0-or-later
"""What a second guest counts, and the first beside it and around it."""

import json

import pytest

import machines
from harness import ARCH, expectations, symbols
from nested_l1 import (EVENTS, UNTHROTTLED, event_of, job, stat,
                       stat_in_turns)

PERIOD = 1000003
# What the second guest executes without counting it, more than QEMU itself
# does in user mode to run it; and how often the first counts meanwhile.
UNCOUNTED = 'long'
BESIDE = 3
# So many events more than there are counters.
MORE = 2
# That can be counted at the same time: on Power, those by turns; on x86,
# those that L1's watchdog and its own count leave.
COUNTERS = {'x86_64': 6, 'ppc64': 1}[ARCH]
TOGETHER = {'x86_64': 3, 'ppc64': 1}[ARCH]
LOOP = expectations('loop')['instructions']

PROGRAMS = {'x86_64': ['loop', 'calls', 'faults', 'strings'],
            'ppc64': machines.PROGRAMS}[ARCH]
# H_GUEST_RUN_VCPU fails for a guest that executes what is no instruction.
BEYOND = {'POWER10': ['traps']}


def stated_by(program):
    return [name for name in EVENTS if name in expectations(program)]


CHECKS = [(program, name) for program in PROGRAMS
          for name in stated_by(program)]

# Of the processor: what perf counts around the second guest.
AROUND = {'x86_64': 'instructions:uH,instructions:uG',
          'ppc64': 'instructions:u'}[ARCH]
# All the counters there are.
HOGS = ','.join(['cycles:D'] * 6)
LOST = 'has taken performance counters away'
# All instructions, whatever their unit mask, but no branches.
FILTER = {
    'qom-type': 'kvm-pmu-filter', 'id': 'f', 'action': 'deny', 'events': [
        {'format': 'x86-masked-entry', 'select': 0xc0, 'mask': 0, 'match': 0,
         'exclude': False},
        {'format': 'x86-select-umask', 'select': 0xc2, 'umask': 1}]}
NO_PMU = "the host's KVM has no PMU for guests"
# Profiles that KVM on Power cannot have, and what QEMU says of them.
REFUSED_ON_POWER = {
    'guest': "KVM's guests cannot be sampled here",
    'vcpu': "accounting=vcpu is not available for KVM's guests on ppc64",
}


def options():
    return {'x86_64': '-cpu host,pmu=on,pmu-host-perf=on',
            'ppc64': '-cpu host,pmu-host-perf=on'}[ARCH]


def programs(l1):
    return [program for program in PROGRAMS
            if program not in BEYOND.get(str(l1), ())]


def counts(l1):
    """Of each program, by so many counters at a time."""
    for program in programs(l1):
        names = stated_by(program)
        for first in range(0, len(names), TOGETHER):
            events = [event_of(l1, name)
                      for name in names[first:first + TOGETHER]]
            yield stat('l2', f'{program}/{first}', program, ','.join(events),
                       'tally')


def in_turns(l1):
    """More events than counters, and all of them the same."""
    return stat_in_turns('turns', 'loop', event_of(l1, machines.IN_TURNS),
                         COUNTERS + MORE)


def job_of(l1):
    yield from UNTHROTTLED
    yield 'echo @ l2 up'
    yield from counts(l1)
    yield stat('l2', 'shares', 'loop',
               '{instructions:u,instructions:k,instructions}')
    yield stat('l2', 'together', 'faults',
               '{instructions:k,instructions:k,instructions:k}')
    yield f'perf record -q -o /tmp/d -e instructions:u -c {PERIOD} loop'
    yield 'echo @ l2 samples $(perf script -i /tmp/d -F ip)'
    yield ("perf record -q -o /tmp/d -e '{instructions,instructions}:S' "
           f'-c {PERIOD} loop')
    yield ('echo @ l2 stopped '
           "$(perf script -i /tmp/d -F period | sed 's/[^0-9]//g')")
    yield UNCOUNTED
    if ARCH == 'ppc64':
        yield in_turns(l1)
    else:
        # Until the first guest says that it has taken the counters away.
        yield 'echo @ l2 contend'
        yield ("perf stat -a -e instructions,cycles -o /tmp/o sh -c "
               "'while :; do loop; done & read -r _ <&3; kill $!'")
    yield 'echo @ l2 end'


def script(l1):
    yield from UNTHROTTLED
    yield job(*job_of(l1))
    yield (f"perf stat -x , -o /tmp/around -e '{AROUND}' "
           f'l2 --saved /tmp/job {options()} | tee /tmp/l2.out &')
    yield 'l2=$!; until_l2 "@ l2 up"'
    for i in range(BESIDE):
        yield stat('l1', f'beside{i}', 'loop', 'instructions:u')
    if ARCH == 'x86_64':
        yield from contention()
    yield 'wait'
    yield 'echo @ l1 around $(grep , /tmp/around | cut -d , -f 1)'
    if ARCH == 'x86_64':
        yield from with_filter(l1)
        yield from without_pmu()
    else:
        yield from profiles_of_power()
    yield 'echo @ l1 end'


def contention():
    yield 'until_l2 "@ l2 contend"'
    yield f'perf stat -a -e {HOGS} -o /tmp/hogs sleep 1000 & hog=$!'
    yield f'until_l2 "{LOST}"'
    yield 'kill $hog; echo > /tmp/l2.in'
    yield f'echo @ l1 lost $(grep -c "{LOST}" /tmp/l2.out)'


def with_filter(l1):
    """And with all counters, one of which L1's watchdog had.

    Linux has none of its own in guests of KVM.
    """
    yield job(stat('l2', 'filtered', 'loop', 'instructions:u,branches:u'),
              in_turns(l1))
    yield 'echo 0 > /proc/sys/kernel/nmi_watchdog'
    yield ('L2_ACCEL=kvm,pmu-filter=f l2 --saved /tmp/job -cpu host,pmu=on '
           f"-object '{json.dumps(FILTER)}'")


def without_pmu():
    yield 'reload_kvm enable_pmu=0'
    for options in 'pmu=on,enforce', 'pmu=on':
        yield ('echo quit | qemu-system-x86_64 -S -accel kvm -display none '
               f'-vga none -nic none -monitor stdio -cpu host,{options} '
               f'> /tmp/said 2>&1 && echo @ l2 runs {options}; cat /tmp/said')


def profiles_of_power():
    """For QEMU's profiles there is none."""
    for accounting in REFUSED_ON_POWER:
        yield (f'l2 /tmp/job {options()} -object pmu-profile,id=p,'
               f'accounting={accounting},file=/tmp/profile')


@pytest.fixture(scope='module')
def printed(output):
    return output.values()


@pytest.mark.parametrize('level', ['l2', 'l1'])
def test_ends(output, level):
    output.require((level, 'end'))


@pytest.mark.parametrize('program, name', CHECKS)
def test_counts_of(l1, printed, program, name):
    if program not in programs(l1):
        pytest.skip(f'{program} cannot be executed')
    stated = stated_by(program)
    index = stated.index(name)
    first = index - index % TOGETHER
    counted = printed['l2', f'{program}/{first}']
    assert len(counted) == len(stated[first:first + TOGETHER])
    assert int(counted[index - first]) == expectations(program)[name]


def test_shares(printed):
    user, kernel, both = map(int, printed['l2', 'shares'])
    assert user + kernel == both


def test_together(printed):
    """Counters that one write starts, and another stops."""
    counted = printed['l2', 'together']
    assert len(counted) == 3 and len(set(counted)) == 1


def test_samples(printed):
    """KVM's interrupts on x86 are late, and some are lost."""
    addresses = printed['l2', 'samples']
    names = symbols('loop')
    assert all(names['_start'] <= int(address, 16) < names['_end']
               for address in addresses)
    if ARCH == 'ppc64':
        assert len(addresses) == LOOP // PERIOD
    else:
        assert 0 < len(addresses) <= LOOP // PERIOD


def test_groups_stop_at_overflow(printed):
    """Counters of a group, by turns, at each overflow of its first."""
    periods = printed['l2', 'stopped']
    pairs = list(zip(periods[::2], periods[1::2]))
    assert pairs and all(first == second for first, second in pairs)


def test_multiplexed(printed):
    """All counters counted all the time, whichever events had them."""
    turns = printed['l2', 'turns']
    assert len(turns) == COUNTERS + MORE
    assert sum(map(int, turns)) \
        == COUNTERS * expectations('loop')[machines.IN_TURNS]


def test_counts_beside_l2(printed):
    assert [printed['l1', f'beside{i}'] for i in range(BESIDE)] \
        == [[str(LOOP)]] * BESIDE


def test_counts_around_l2(printed):
    """perf on x86 can tell the two apart; on Power, what ran in the guest is
    none of the hypervisor's."""
    limit = expectations(UNCOUNTED)['instructions']
    host, *guest = map(int, printed['l1', 'around'])
    assert 0 < host < limit
    assert len(guest) == (ARCH == 'x86_64')
    assert all(limit < number for number in guest)


@pytest.mark.arch('x86_64')
def test_filtered(printed):
    assert printed['l2', 'filtered'] == [
        '0', str(expectations('loop')['branches'])]


@pytest.mark.arch('x86_64')
def test_lost_counters_are_reported(printed):
    assert printed['l1', 'lost'] == ['1']


@pytest.mark.arch('x86_64')
def test_no_pmu_is_refused(output):
    assert NO_PMU in output.text


@pytest.mark.arch('x86_64')
def test_runs_without_pmu(printed):
    """Unless it has to be there."""
    assert printed['l2', 'runs'] == ['pmu=on']


@pytest.mark.arch('ppc64')
@pytest.mark.parametrize('accounting', REFUSED_ON_POWER)
def test_profile_is_refused(output, accounting):
    assert REFUSED_ON_POWER[accounting] in output.text
