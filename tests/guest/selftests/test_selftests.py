# SPDX-License-Identifier: GPL-2.0-or-later
"""Linux's own tests of Power's PMU in Linux guests.

Each ends as docs/system/vpmu-selftests.rst says: this module reads its tables.
Tests that take much time are marked `soak`, the others `more`.
"""

import os
import re
import subprocess

import pytest

from harness import BUILD, HERE as LINUX, ROOT, Guest
from machines import UP

PROGRAMS = BUILD / 'tests' / 'selftests' / 'programs'
TABLE = ROOT / 'docs' / 'system' / 'vpmu-selftests.rst'

# The longest ones first.
CPUS = ['POWER9', 'POWER10', 'POWER8']

# Many tests wait for 2^30 cycles, again and again.  With eight cycles for each
# instruction that takes about as long as it does on a processor.
CPU_OPTIONS = 'pmu-cpi=8000'

GUEST_SECONDS = 3 * 3600

# What the tests find in the guest.  They may be paranoid: where they ask for
# less, they mean more.  Samples are not to be given up because TCG is slow.
# Linux stops and starts the PMU to multiplex events; if it does between an
# event based branch and the handler's write of the counter, it wrongly takes
# the event for one that interrupts, and the program is killed.
SETUP = '''
cd /proc/sys/kernel
echo 1 > perf_event_paranoid
echo 0 > perf_cpu_time_max_percent
echo 100000 > perf_event_max_sample_rate
echo 10000 > /sys/bus/event_source/devices/cpu/perf_event_mux_interval_ms
'''

# This one shares a CPU and yields it 50 million times, often for as long as
# Linux's ticks are apart.
SHORT_SLICES = '''
mount -t debugfs debug /sys/kernel/debug
echo HRTICK > /sys/kernel/debug/sched/features
echo 100000 > /sys/kernel/debug/sched/base_slice_ns
'''
PREPARATION = {'ebb/lost_exception_test': SHORT_SLICES}

# What the tests' harness says if an assertion fails, and if a signal ends a
# test: that is no failure that has to be.
ASSERTED = '[FAIL] Test FAILED on line'
KILLED = 'child died by signal'


class Table:
    """What the document says of each test."""

    def __init__(self, text):
        self.rows = {}
        self.notes = {}
        cell = 'passes|fails|skipped|long'
        for line in text.splitlines():
            row = re.fullmatch(rf'(\S+)((?: +(?:{cell})){{3}})(?: +(\S+))?',
                               line)
            if row:
                cells = dict(zip(('POWER8', 'POWER9', 'POWER10'),
                                 row[2].split()))
                self.rows[row[1]] = (cells, row[3])
        for name, body in re.findall(r'^(\S+)\n((?:   .*\n)+)', text, re.M):
            self.notes[name] = ' '.join(body.split())
        for name, (_, note) in self.rows.items():
            if note and note not in self.notes:
                raise LookupError(f'{TABLE.name} has no note "{note}", which '
                                  f'it names for {name}')

    def expected(self, name, cpu):
        """What becomes of a test, and what the document says about it."""
        cells, note = self.rows[name]
        return cells[cpu], self.notes.get(note, '')


def job_for(names):
    """A script for the guest's shell that runs tests."""
    lines = [SETUP]
    for name in names:
        directory, program = os.path.split(f'/selftests/{name}')
        lines += [f'echo "@@@ begin {name}"', PREPARATION.get(name, ''),
                  f'cd {directory}; ./{program} 2>&1; status=$?',
                  f'echo; echo "@@@ end {name} $status"']
    return '\n'.join(lines)


def outcome(output, status):
    """What a test's harness says has become of it."""
    words = re.findall(r'^(success|failure|skip|error):', output, re.M)
    if status == 0 and words == ['success']:
        return 'passes'
    if status == 0 and words == ['skip']:
        return 'skipped'
    if words == ['failure'] and ASSERTED in output and KILLED not in output:
        return 'fails'
    return 'crashes'


TESTS = Table(TABLE.read_text())

pytestmark = pytest.mark.arch('ppc64')


def cases():
    for cpu in CPUS:
        for name in TESTS.rows:
            is_long = TESTS.expected(name, cpu)[0] == 'long'
            yield pytest.param(
                cpu, name, id=f'{cpu}-{name}',
                marks=pytest.mark.soak if is_long else pytest.mark.more)


@pytest.fixture(scope='module')
def programs():
    subprocess.run([LINUX.parent / 'selftests' / 'build'], check=True)
    return PROGRAMS


@pytest.fixture(scope='module')
def outcomes(request, programs, tmp_path_factory):
    """Of a CPU's tests that are selected, in one guest: what has become of
    each, and what it has printed."""
    found = {}

    def of(cpu):
        if cpu not in found:
            names = [item.callspec.params['name']
                     for item in request.session.items
                     if item.function is test_of_linux
                     and item.callspec.params['cpu'] == cpu]
            found[cpu] = run_all(tmp_path_factory.mktemp(cpu), cpu, names)
        return found[cpu]

    return of


def run_all(directory, cpu, names):
    machine = UP.variant(cpu, cpu=f'{cpu},{CPU_OPTIONS}')
    guest = Guest(directory, machine, job_for(names), boots=True,
                  adds=[(PROGRAMS / name, f'/selftests/{name}')
                        for name in names], seconds=GUEST_SECONDS)
    try:
        guest.connect()
        lines = '\n'.join(guest.rest())
        assert not guest.errors()
    finally:
        guest.close()
    return {name: (outcome(output, int(status)), output)
            for name, output, status in re.findall(
                r'^@@@ begin (\S+)$(.*?)^@@@ end \S+ (\d+)$', lines,
                re.M | re.S)}


@pytest.mark.parametrize('cpu, name', cases())
def test_of_linux(outcomes, cpu, name):
    expected, note = TESTS.expected(name, cpu)
    got, output = outcomes(cpu)[name]
    print(output[-4000:])
    assert got == ('passes' if expected == 'long' else expected), note
    if got != 'passes':
        pytest.skip(f'{got}; {note}')


@pytest.mark.more
def test_table_is_whole(programs):
    """All tests are in the document, and it has no others."""
    there = {str(path.relative_to(programs)) for path in programs.rglob('*')
             if path.is_file()}
    assert there == set(TESTS.rows)
