# SPDX-License-Identifier: GPL-2.0-or-later
"""perf's own tests, as far as they need hardware counters.

These need them too, and do not run in a guest that has busybox and perf:

* "Object code reading" needs objdump;
* "PERF_RECORD_* events & perf_sample fields" needs a `sleep` that is linked
  with shared libraries;
* "Setup struct perf_event_attr", "perf metrics value validation" and "perf
  stat JSON output linter" need Python;
* "perf record tests", "perf pipe recording and injection test", "perf stat
  STD output linter", "perf all metrics test" and others need bash, and some
  of them a perf with symbols; the CSV linter and "perf diff tests" need
  another mktemp;
* "perf all PMU test" and the metrics of "PMU JSON event tests" pass, but take
  minutes: they look at each event that perf knows.

These are about what is not there:

* "Event groups" and "perf all metricgroups test" need uncore events;
* "Check branch stack sampling" and "perf record LBR tests" need LBR, "Test
  data symbol" and "test Intel TPEBS counting mode" PEBS, "Intel PT" is Intel
  PT.
"""

import re

from harness import require, require_equal, test
from machines import SMP

ENTRIES = [
    'mmap interface tests',
    'Parse event definition strings',
    'Sysfs PMU tests',
    'Roundtrip evsel->name',
    'Number of exit events of a simple workload',
    'Use a dummy software event to keep tracking',
    'Track with sched_switch',
    'Event times',
    'Convert perf time to TSC',
    'perf stat csv summary test',
    'perf stat metrics (shadow stat) test',
    'perf stat tests',
]

# Subtests that may skip: the PMU's directory in sysfs names no aliases.
SKIPPED = {'Parsing of aliased events from sysfs'}


@test(SMP, each=ENTRIES)
def perf_test(machine, entry):
    """All of an entry says Ok, and more than nothing does."""
    output = yield f"perf_test '{entry}'"
    # Entry and subtests, of which an entry's name may have no result.
    found = dict(re.findall(r'^ *[\d.]+: (.*?) *: (\S+)', output, re.M))
    require(found, 'no result')
    for name in SKIPPED & set(found):
        require_equal(found.pop(name), 'Skip', name)
    for name, result in found.items():
        require_equal(result, 'Ok', name)
