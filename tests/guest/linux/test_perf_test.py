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
pipe recording and injection test", "perf diff tests", "Check branch stack
sampling" and "Test data symbol" skip, whether or not there are branch records
and PEBS.  Tests of ours look for what the last two do: branches_before and
types_of_branches, and those of test_pebs.py.

These are tests of the host's speed.  They give another process 1,000 turns of
a loop, or a moment's sleep, and a host that runs other programs in between
fails them however often they are tried.  Tests of ours look for the same, and
wait as long as it takes:

* "Number of exit events of a simple workload": records_of_processes;
* "Track with switches" of the scheduler: samples_of_loop and others that record
  switches.

"perf record LBR tests" needs bash, too.  It allows for some empty stacks among
the samples of a second, nineteen times; how many there are depends on the host.
branches_before and callers_by_branches look at every stack.

These are about what is not there:

* "Event groups" and "perf all metricgroups test" need uncore events;
* "test Intel TPEBS counting mode" wants the latency of retirement, which no
  PEBS record of these CPUs has, and a perf that begins within some seconds;
* "Intel PT" is Intel PT.
"""

import re

from harness import require, require_equal, test
from machines import GENOA_SMP, SMP

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


@test(SMP, GENOA_SMP, each=ENTRIES)
def perf_test(machine, entry):
    """All of an entry says Ok, and more than nothing does."""
    output = yield f"perf_test '{entry}'"
    # Entry and subtests, of which an entry's name may have no result.  Failures
    # are in red.
    found = dict(re.findall(r'^ *[\d.]+: (.*?) *:(?:\x1b\[\d+m)? +(\w+)',
                            output, re.M))
    require(found, f'no result in {output!r}')
    for name in SKIPPED & set(found):
        require_equal(found.pop(name), 'Skip', name)
    for name, result in found.items():
        require_equal(result, 'Ok', name)
