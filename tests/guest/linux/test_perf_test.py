# SPDX-License-Identifier: GPL-2.0-or-later
"""perf's own tests, as far as they need hardware counters.

These do, too, and pass in guests that have more than busybox and perf:

* "Object code reading" needs objdump, and "PERF_RECORD_* events & perf_sample
  fields" a `sleep` that is linked with shared libraries;
* "Setup struct perf_event_attr", "perf metrics value validation" and "perf
  stat JSON output linter" need Python;
* "perf stat CSV output linter", "perf stat STD output linter" and "Zstd
  perf.data compression/decompression" need bash and its usual company;
* "perf all PMU test" and "PMU JSON event tests" need nothing more, but take
  minutes: they look at each event that perf knows.

Debian's perf has no symbols, for want of which "perf record tests", "perf
pipe recording and injection test" and "perf diff tests" skip, whether or not
there are branch records and PEBS.  "Check branch stack sampling" and "Test data
symbol" are given them, see perf_symbols.py.

These are tests of the host's speed.  They give another process 1,000 turns of
a loop, or a moment's sleep, and a host that runs other programs in between
fails them however often they are tried.  Tests of ours look for the same, and
wait as long as it takes:

* "Number of exit events of a simple workload": test_records_of_processes;
* "Track with switches" of the scheduler: samples_of_loop and others that record
  switches.

"perf record LBR tests" needs bash and a kernel without retpolines
(spectre_v2=off): of its samples of a loop of two threads, at most 2 % may have
no indirect call.  Only the kernel makes some, at each tick, and Linux forgets
them when it switches tasks.  With four CPUs, icount (shift=4) and 100 samples a
second none of 240 was without; but its last part is a race.  Nine recordings at
once have different filters, of which a CPU has one; Linux prefers the two of
the whole system, and one that lies within them has no sample and fails.  The
test passed two of three times, in 3 to 5 minutes.  test_branches_before
and test_callers_by_branches look at every stack.

These are about what is not there:

* "Event groups" and "perf all metricgroups test" need uncore events;
* "test Intel TPEBS counting mode" samples cache-misses, which are not counted,
  and wants a perf that begins within some seconds;
* "Intel PT" is Intel PT.
"""

import re

from harness import on, require, require_equal
from machines import GENOA_SMP, LBR_SKYLAKE, PEBS_ICOUNT, SMP
from perf_symbols import TREE, perf_symbols

ENTRIES = [
    'mmap interface tests',
    'Parse event definition strings',
    'Sysfs PMU tests',
    'Roundtrip evsel->name',
    'Use a dummy software event to keep tracking',
    'Event times',
    'Convert perf time to TSC',
    'perf stat csv summary test',
    'perf stat metrics (shadow stat) test',
    'perf stat tests',
]

# Subtests that may skip: the PMU's directory in sysfs names no aliases.
SKIPPED = {'Parsing of aliased events from sysfs'}


def check_result(output):
    """All of an entry says Ok, and more than nothing does."""
    # Entry and subtests, of which an entry's name may have no result.  Failures
    # are in red.
    found = dict(re.findall(r'^ *[\d.]+: (.*?) *:(?:\x1b\[\d+m)? +(\w+)',
                            output, re.M))
    require(found, f'no result in {output!r}')
    for name in SKIPPED & set(found):
        require_equal(found.pop(name), 'Skip', name)
    for name, result in found.items():
        require_equal(result, 'Ok', name)


@on(SMP, GENOA_SMP, each=ENTRIES)
def test_perf_test(guest, machine, entry):
    """What needs busybox and counters alone."""
    check_result(guest.run(f"perf_test '{entry}'"))


def files_of_scripts():
    """What the scripts of entries need: bash, some options that busybox's
    programs lack, and the symbols of perf's workloads."""
    return [(TREE / 'bin' / 'bash-static', '/bin/bash'),
            (TREE / 'bin' / 'date', '/usr/bin/date'),
            (TREE / 'bin' / 'mktemp', '/usr/bin/mktemp'), *perf_symbols()]


# Scripts that look at each branch of each sample, and start a program for it:
# few samples have each kind of branch already.
FEW = 25
# Of a second
MANY = 1000


@on(more=(LBR_SKYLAKE,), each=[('Check branch stack sampling', FEW)])
@on(PEBS_ICOUNT, each=[('Test data symbol', MANY)])
def test_perf_test_of_records(start, machine, entry, rate):
    """What needs branch records, or PEBS; it takes long on any machine."""
    guest = start(machine, f'''
. /tests/guest.sh
sampled_at {rate} 50
perf_test '{entry}'
''', adds=files_of_scripts())
    check_result('\n'.join(guest.rest()))
