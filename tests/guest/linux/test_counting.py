# SPDX-License-Identifier: GPL-2.0-or-later
"""perf stat: programs whose counts are known by construction."""

import fnmatch
import re

import pytest

from harness import ROOT, expectations, on, require, require_equal
from machines import (EACH_EVENT, EPYC, EVENTS, EVENTS_OF, GENOA, GENOA_SMP,
                      ICELAKE, ICOUNT, INTEL_MAX, OBSERVED, ONE_INSN,
                      ON_OPTERON, ON_POWER8, OPTERON, POWER8, POWER10, POWER11,
                      POWERNV8, POWERNV9, POWERNV10, PROGRAMS, QUICK, SINGLE,
                      SMP, TOGETHER, TOGETHER_ON, UNCOUNTED, UP, VENDOR,
                      VENDOR_OF)


def perf_event(machine, name):
    """How perf is asked for an event; as it is if no program states it."""
    return EVENTS_OF.get(machine, EVENTS).get(name, f'{name}:u')


def parse(output):
    """What perf stat -x printed: numbers by event, a list each."""
    counts = {}
    for line in output.splitlines():
        fields = line.split(',')
        if len(fields) < 5:
            continue
        value, event, share = fields[0], fields[2], fields[4]
        require(value.isdigit(), f'{event} is {value}')
        require(share == '100.00', f'{event} was counted {share} % of the time')
        counts.setdefault(event, []).append(int(value))
    return counts


def groups(machine, program):
    """Events that a program states, as perf's -e wants them."""
    names = EVENTS_OF.get(machine, EVENTS)
    stated = [names[event] for event in expectations(program)
              if event in names and event != 'instructions']
    together = TOGETHER_ON.get(machine, TOGETHER)
    for first in range(0, max(len(stated), 1), together):
        yield ','.join(['instructions:u', *stated[first:first + together]])


def check_counts(machine, program, output):
    counts = parse(output)
    want = expectations(program)
    wrong = []
    for event, perf_name in EVENTS_OF.get(machine, EVENTS).items():
        if event not in want:
            continue
        for value in counts[perf_name]:
            error = value - want[event]
            if error:
                wrong.append(f'{event} {value}, {error:+} of {want[event]}')
    require(not wrong, '; '.join(wrong))


OTHERS = [ICELAKE, GENOA, GENOA_SMP, EPYC, POWER10, POWER11,
          POWERNV9, POWERNV10]


@on(SMP, SINGLE, ICOUNT, each=PROGRAMS)
@on(UP, *OTHERS, each=EACH_EVENT)
@on(OBSERVED, each=EACH_EVENT[-1:])
@on(more=[UP, *OTHERS],
    each=[program for program in PROGRAMS if program not in EACH_EVENT])
@on(more=[OBSERVED],
    each=[program for program in PROGRAMS if program != EACH_EVENT[-1]])
@on(OPTERON, each=ON_OPTERON)
@on(POWER8, POWERNV8, each=ON_POWER8)
@on(ONE_INSN, each=QUICK)
def test_counts_of(guest, machine, program):
    """Every event that a program states."""
    output = guest.run('\n'.join(
        f"count '{events}' {program}" for events in groups(machine, program)))
    check_counts(machine, program, output)


# All that perf has a name for, on whatever CPU.
NAMED = [
    'branches', 'branch-misses', 'bus-cycles', 'cache-misses',
    'cache-references', 'cycles', 'instructions', 'ref-cycles',
    'stalled-cycles-backend', 'stalled-cycles-frontend',
    *(f'{cache}-{access}' for cache in ('L1-dcache', 'LLC', 'dTLB', 'node')
      for access in ('loads', 'load-misses', 'stores', 'store-misses',
                     'prefetches', 'prefetch-misses')),
    *(f'{cache}-{access}' for cache in ('L1-icache', 'iTLB', 'branch')
      for access in ('loads', 'load-misses')),
    'L1-icache-prefetches', 'L1-icache-prefetch-misses']

# Each of them that Linux offers, and those that it names itself, one or two at
# a time; one line for each that is not refused.
READ_ALL = f"""
    own=$(cd /sys/devices/cpu/events && ls | grep -v '[.]')
    asked=$(printf -- ' -e cpu/%s/' $own)
    perf stat -x , -o /tmp/offered -e {','.join(NAMED)} $asked true
    grep , /tmp/offered | grep -v '<not supported>' | cut -d , -f 3 |
        while read -r first; do
            read -r second || second=$first
            perf stat -x , -o /tmp/stat -e "$first" -e "$second" loop \
                < /dev/null
            grep , /tmp/stat
        done"""
SECTION = re.compile(r'^Events that read 0\n-+\n(.*?)\n-+\n', re.M | re.S)
# The row of a vendor: from its name to the next one's, or to the end.
ROW = r"^{}'s (.*?)(?=^\S)"


def documented(vendor):
    """Patterns of names that are documented to read 0."""
    page = (ROOT / 'docs/system/vpmu-events.rst').read_text()
    table = SECTION.search(page).group(1)
    row = re.search(ROW.format(vendor), table, re.M | re.S).group(1)
    return re.findall('``(.*?)``', row)


@pytest.mark.arch('x86_64')
@on(UP, GENOA, more=[machine for machine in UNCOUNTED
                     if machine not in [UP, GENOA]])
def test_uncounted(guest, machine):
    """All that perf offers is counted, or refused, or documented to read 0."""
    lines = guest.run(READ_ALL).splitlines()
    zero = {line.split(',')[2].removeprefix('cpu/').removesuffix('/')
            for line in lines if not re.match('[1-9]', line)}
    require(len(lines) > len(zero), f'all read 0: {lines}')
    names = documented(VENDOR_OF.get(machine, VENDOR))
    missing = [name for name in zero
               if not any(fnmatch.fnmatch(name, each) for each in names)]
    require(not missing, f'{missing} of {sorted(zero)} are not documented')
    require_equal(sorted(zero), sorted(UNCOUNTED[machine]),
                  'events that read 0')


# Some of them, where not all are looked at.
SOME = ['cache-references', 'cache-misses', 'branch-misses',
        'stalled-cycles-frontend', 'stalled-cycles-backend',
        'L1-dcache-loads', 'L1-dcache-load-misses', 'L1-dcache-prefetches',
        'L1-icache-loads', 'L1-icache-load-misses', 'LLC-loads',
        'LLC-load-misses', 'dTLB-loads', 'iTLB-loads']


@pytest.mark.arch('ppc64')
@on(*UNCOUNTED)
def test_some_uncounted(guest, machine):
    """Of those, what reads 0 is documented."""
    output = guest.run('\n'.join(
        f'perf stat -x , -o /tmp/stat -e {first} -e {second} loop\n'
        'grep , /tmp/stat' for first, second in zip(SOME[::2], SOME[1::2])))
    zero = {line.split(',')[2] for line in output.splitlines()
            if line.startswith('0,')}
    require_equal(sorted(zero), sorted(UNCOUNTED[machine]),
                  'events that read 0')


TOGETHER_IN = {'u': 'loop', 'k': 'syscalls'}


@on(UP, GENOA, POWER8, POWER10, each=TOGETHER_IN)
def test_counted_together(guest, machine, mode):
    """Counters that one write starts and another stops have counted the same.

    In the kernel, the instructions between several writes would count.
    """
    event = f'instructions:{mode}'
    counts = parse(guest.run(f"""
        count '{{{event},{event},{event}}}' {TOGETHER_IN[mode]}"""))[event]
    require_equal(len(counts), 3, 'counters')
    require(counts[0] and len(set(counts)) == 1, f'they differ: {counts}')


# What Linux says of the PMU that it has found.
DRIVERS = {
    UP: 'Skylake events, 32-deep LBR, full-width counters, Intel PMU driver.',
    GENOA: 'Fam17h+ 16-deep LBR, core perfctr, AMD PMU driver.',
    EPYC: 'Fam17h+ core perfctr, AMD PMU driver.',
    OPTERON: 'Performance Events: AMD PMU driver.',
}
SHAPES = {UP: (2, 4), GENOA: (2, 6), EPYC: (0, 6), OPTERON: (0, 4)}


@pytest.mark.arch('x86_64')
@on(*DRIVERS)
def test_driver(guest, machine):
    """Linux finds the PMU, of its version and with all its counters."""
    output = guest.run("dmesg | grep -A 9 'Performance Events'")
    require(DRIVERS[machine] in output, output)
    shape = re.findall(r'(?:version|generic registers): +(\d+)', output)
    require_equal(tuple(map(int, shape)), SHAPES[machine],
                  'version and counters')


@on(more=[INTEL_MAX])
def test_architectural_events(guest, machine):
    """A model that Linux does not know has the architecture's events."""
    output = guest.run('''
        dmesg | grep 'Performance Events'
        count instructions:u,branches:u loop''')
    require('generic architected perfmon' in output, output)
    counts = parse(output)
    want = expectations('loop')
    for event in 'instructions', 'branches':
        require_equal(counts[f'{event}:u'], [want[event]], event)


@on(UP, SINGLE)
def test_blocks_count_where_that_is_asked(start, tmp_path, machine):
    """Neither the kernel pays for counts of programs, nor a program for its."""
    log = tmp_path / 'log'
    guest = start(machine, """
. /tests/guest.sh
guest_setup
# It counts cycles in both.
[ ! -e /proc/sys/kernel/nmi_watchdog ] || echo 0 > /proc/sys/kernel/nmi_watchdog
sleep 1
for mode in u k; do
    count instructions:$mode loop
    # Blocks that count are used for a moment longer.
    sleep 1
done""", extra=['-trace', 'pmu_tcg_flags', '-D', str(log)])
    guest.rest()
    uncounted = dict.fromkeys(int(modes, 16) for modes in re.findall(
        r'cflags 0x[1-9a-f]\w*, but not in modes 0x(\w+)', log.read_text()))
    *_, of_programs, of_kernel = uncounted
    require_equal(of_programs | of_kernel, 0xff, 'modes that one leaves out')
