# SPDX-License-Identifier: GPL-2.0-or-later
"""Counting goes on over migration, from a snapshot, and in a replay."""

import contextlib

import pytest

from harness import (ARCH, SKYLAKE, expectations, in_time, on, require,
                     require_equal, symbols)
from qmp import Failure
from machines import (GENOA, OF_LONG, POWER8, POWER10_BOTH, REPLAYED, SMP, UP,
                      UP_OF_X86)
from test_counting import check_counts, perf_event
from test_sampling import ADDRESSES, RECORD, addresses, check_samples


def events_of_long(machine):
    """What is counted of it, as perf's -e wants it."""
    return ','.join(perf_event(machine, name) for name in OF_LONG)


def count_long(machine):
    """Says when it has begun, and what it has counted in the end."""
    return f'''
. /tests/guest.sh
announce 1 long
count {events_of_long(machine)} long
echo @@@ end
'''


# Two programs in their middle: one is sampled, and one counted.  perf record
# tries some events before it starts its program; these need counters, too.
PERIOD = 10000019
COUNT_AND_RECORD = f'''
. /tests/guest.sh
guest_setup
# What perf executes is translated by then, and the first program does not end
# before the second has begun.
count {events_of_long(UP)} true > /dev/null
{RECORD} -e instructions:u -c {PERIOD} long & record=$!
until pidof long > /dev/null; do
    sleep 0.1
done
announce 2 long 1 '@@@ begin' 20 '@@@ later'
count {events_of_long(UP)} long
wait $record
echo @@@ samples
{ADDRESSES}
echo @@@ complaints
complaints
'''


def counted(lines):
    """What was printed when the program had ended."""
    return '\n'.join(line for line in lines if line.count(',') >= 4)


def migrated(monitor):
    return monitor.command('query-migrate').get('status') == 'completed'


def move_away(guest, state):
    """Stop a guest, migrate it to a file, and end its QEMU."""
    monitor = guest.monitor
    monitor.command('stop')
    monitor.command('migrate', uri=f'file:{state}')
    monitor.wait('migration', lambda: migrated(monitor))
    guest.leave()


def move_in(guest):
    """Let a guest go on that was started with -incoming."""
    monitor = guest.monitor
    monitor.wait('loading', lambda: migrated(monitor))
    monitor.command('cont')


@on(GENOA, POWER10_BOTH, more=(UP, POWER8))
def test_migration(start, tmp_path, machine):
    """A program counts the same though its machine moves in its middle."""
    state = tmp_path / 'state'
    source = start(machine, count_long(machine))
    source.lines_until('@@@ begin')
    move_away(source, state)
    in_time(not counted(source.log),
            'the program had ended before its machine moved')

    target = start(machine, incoming=state)
    move_in(target)
    check_counts(machine, 'long', counted(target.rest()))


@on(UP_OF_X86, POWER10_BOTH, more=(UP, GENOA, POWER8))
def test_reset(start, machine):
    """A machine that is reset while it counts begins anew, and counts right."""
    guest = start(machine, count_long(machine), boots=True)
    guest.lines_until('@@@ begin')
    guest.monitor.command('set-action', reboot='reset')
    guest.monitor.command('system_reset')
    guest.lines_until('@@@ begin')
    in_time(not counted(guest.log), 'the program had ended before the reset')
    check_counts(machine, 'long', counted(guest.rest()))


@pytest.mark.arch('x86_64')
def test_migration_refused(start, tmp_path):
    """A machine whose PMU is of another shape says so, and does not start."""
    state = tmp_path / 'state'
    source = start(UP, count_long(UP))
    source.lines_until('@@@ begin')
    move_away(source, state)

    target = start(UP.variant('8', cpu=f'{SKYLAKE},pmu-gp-counters=8'),
                   incoming=state)
    said = target.refusal()
    require('pmu-gp-counters' in said, f'QEMU only said: {said}')


def make_image(monitor, path):
    """A disk image to which the whole machine can be saved, as `image`."""
    size = 2 << 30
    path.touch()
    monitor.command('blockdev-add', driver='file', filename=str(path),
                    **{'node-name': 'file'})
    monitor.job('blockdev-create', options={
        'driver': 'qcow2', 'file': 'file', 'size': size})
    monitor.command('blockdev-add', driver='qcow2', file='file',
                    **{'node-name': 'image'})


PAST = {'tag': 'past', 'vmstate': 'image', 'devices': ['image']}


def save_machine(monitor, path):
    """To a disk image that is made at a path, however long that takes."""
    monitor.command('stop')
    make_image(monitor, path)
    monitor.job('snapshot-save', **PAST)
    monitor.command('cont')


def go_back(monitor):
    """The machine is as it was when it was saved."""
    monitor.job('snapshot-load', **PAST)


def long_address(nth):
    """Where `long` is behind so many instructions."""
    names = symbols('long')
    nth -= names['expect_before']
    return names[f"step_{nth % names['expect_steps']}"]


def test_snapshot(start, tmp_path):
    """A machine that goes back to its own past counts and samples the same."""
    guest = start(UP, COUNT_AND_RECORD)
    guest.lines_until('@@@ begin')
    monitor = guest.monitor
    save_machine(monitor, tmp_path / 'image')
    guest.lines_until('@@@ later')
    go_back(monitor)
    in_time(not counted(guest.lines_until('@@@ later')),
            'the program had ended too early')
    check_counts(UP, 'long', counted(guest.lines_until('@@@ samples')))
    samples = guest.lines_until('@@@ complaints')[:-1]
    check_samples(addresses('\n'.join(samples)), PERIOD,
                  expectations('long')['instructions'], long_address)
    complaints = ''.join(guest.rest())
    require(not complaints, complaints)


RECORD_ON_CPU_1 = f'''
. /tests/guest.sh
guest_setup
announce 1 long
taskset 2 {RECORD} -e instructions:u -c {PERIOD} long
echo @@@ samples
{ADDRESSES}
echo @@@ complaints
complaints
'''


@on(SMP)
def test_snapshot_of_cpus(start, tmp_path, machine):
    """On each CPU of a machine that goes back, the PMU still interrupts."""
    guest = start(machine, RECORD_ON_CPU_1)
    guest.lines_until('@@@ begin')
    monitor = guest.monitor
    save_machine(monitor, tmp_path / 'image')
    go_back(monitor)
    guest.lines_until('@@@ samples')
    samples = guest.lines_until('@@@ complaints')[:-1]
    check_samples(addresses('\n'.join(samples)), PERIOD,
                  expectations('long')['instructions'], long_address)
    complaints = ''.join(guest.rest())
    require(not complaints, complaints)


REPLAYED_JOB = f'''
. /tests/guest.sh
guest_setup
count {REPLAYED[0]} loop
count {REPLAYED[1]} loop
perf record -q -o /tmp/data -e instructions:u -c 100003 loop
perf script -i /tmp/data -F ip
'''


def start_replayed(start, machine, directory, what):
    """A guest that is recorded, or is its replay."""
    return start(machine, REPLAYED_JOB, boots=True, extra=[
        '-icount', f'shift=auto,rr={what},rrfile={directory}/log'])


def record_and_replay(start, directory, machine):
    """A replay prints what was recorded, counts and samples and all."""
    printed = {what: start_replayed(start, machine, directory, what).rest()
               for what in ('record', 'replay')}
    require(len(printed['record'])
            > expectations('loop')['instructions'] // 100003,
            'not all was printed')
    require_equal(printed['replay'], printed['record'], 'the replay')


@on(more=(UP,))
def test_record_replay(start, tmp_path, machine):
    record_and_replay(start, tmp_path, machine)


def look_at(monitor):
    """In every way that there is; what has overflowed so far."""
    cpu, = monitor.command('query-pmu')
    monitor.human('info pmu')
    monitor.command('query-stats', target='vcpu',
                    providers=[{'provider': 'pmu'}])
    if ARCH == 'ppc64':
        monitor.human('print $lpcr')
    return sum(counter['overflows'] for counter in cpu['pmu']['counters'])


@on(more=(UP,))
def test_replay_is_looked_at(start, tmp_path, machine):
    """Nothing differs where somebody asks the monitor in its middle."""
    recorded = start_replayed(start, machine, tmp_path, 'record')
    recorded.line()
    look_at(recorded.monitor)
    look_at(recorded.monitor)
    recorded.rest()
    replayed = start_replayed(start, machine, tmp_path, 'replay')
    seen = set()
    replayed.line()
    with contextlib.suppress(Failure):
        while True:
            seen.add(look_at(replayed.monitor))
    replayed.rest()
    require_equal(replayed.log, recorded.log, 'the replay')
    # perf's samples have not all been taken at the same time.
    require(len(seen) > 1, f'overflows seen: {seen}')
