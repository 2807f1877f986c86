# SPDX-License-Identifier: GPL-2.0-or-later
"""Filters: what a guest may not count stands still, and all else counts."""

from harness import (ARCH, Failure, expectations, filtered, on, require,
                     require_equal)
from machines import (ALLOWS, DENIED, DENIES, DENIES_OTHERS, EACH_EVENT,
                      MALFORMED, QUICK, UP)
from test_counting import groups, parse, perf_event
from test_sampling import PINNED

# No machine has such an event.
NOWHERE = {'format': 'x86-select-umask', 'select': 0x1000, 'umask': 0}


@on(ALLOWS, DENIES, each=EACH_EVENT)
@on(more=(ALLOWS, DENIES), each=[
    program for program in QUICK if program not in EACH_EVENT])
@on(more=DENIES_OTHERS, each=['branches'])
def test_filtered_counts(guest, machine, program):
    """Counters of denied events are there, and read 0."""
    counts = parse(guest.run('\n'.join(
        f"count '{events}' {program}" for events in groups(machine, program))))
    stated = expectations(program)
    for name in stated:
        event = perf_event(machine, name)
        if event in counts:
            want = 0 if name in DENIED[machine] else stated[name]
            require_equal(set(counts[event]), {want}, name)


@on(DENIES)
def test_filtered_samples(guest, machine):
    """No interrupt comes of a denied event, and others' do."""
    program = 'loop' if ARCH == 'x86_64' else 'mixed'
    output = guest.run('\n'.join(
        f'''
        {PINNED} -e {perf_event(machine, name)} -c 1009 {program}
        samples ip | grep -vc SWITCH'''
        for name in ('instructions', 'cycles')))
    denied, allowed = map(int, output.split())
    require_equal(denied, 0, 'samples of instructions')
    want = expectations(program)['instructions'] // 1009
    require_equal(allowed, want, 'samples of cycles')


def refusal(start, **properties):
    """What QEMU says of a filter, instead of starting."""
    return start(filtered('malformed', UP, **properties), boots=True).refusal()


def test_filters_refused(start):
    """What makes no sense is said, with what would."""
    for properties, wrong, allowed in MALFORMED:
        said = refusal(start, **properties)
        require(wrong in said and allowed in said, f'{properties}: {said}')
    too_many = [{'format': 'raw', 'code': n % 256} for n in range(301)]
    said = refusal(start, action='deny', events=too_many)
    require('at most 300' in said, said)
    said = refusal(start, action='sometimes')
    require('sometimes' in said, said)


def fails(monitor, name, **arguments):
    """What the monitor says of a command that it refuses."""
    try:
        monitor.command(name, **arguments)
    except Failure as failure:
        return str(failure)
    return 'nothing'


def test_filter_stays(start):
    """A machine's filter is not changed under it, and another one is free."""
    guest = start(DENIES, 'true', boots=True, extra=['-S'])
    monitor = guest.monitor
    said = fails(monitor, 'qom-set', path='/objects/filter', value='allow',
                 property='action')
    require('in use' in said, said)
    said = fails(monitor, 'object-del', id='filter')
    require('in use' in said, said)
    other = {'qom-type': 'kvm-pmu-filter', 'id': 'other', 'action': 'deny'}
    monitor.command('object-add', **other)
    monitor.command('object-del', id='other')
    said = fails(monitor, 'object-add', **other, events=[NOWHERE])
    require('select 0x1000' in said, said)
    monitor.command('cont')
    guest.rest()


def test_filter_missing(start):
    """The name of a filter that does not exist is an error."""
    missing = UP.variant('missing', accel='tcg,pmu-filter=nowhere')
    said = start(missing, boots=True).refusal()
    require('nowhere' in said, said)
