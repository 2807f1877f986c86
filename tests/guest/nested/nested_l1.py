# SPDX-License-Identifier: GPL-2.0-or-later
"""The first guest (L1): its machines, and what it and the second guest (L2)
print, which is lines of "@ LEVEL WHAT VALUE...".

Each module test_nested_*.py has a script() for a machine, which that runs once
for all tests of the module.
"""

import re

import machines
from harness import ARCH, SLOWNESS, Guest, Machine, System
from nested_files import files
from test_counting import perf_event

# Only what hangs takes that long.
SECONDS = 2400 * SLOWNESS

NESTED = System('nested', files, '2G')
START = '. /tests/nested.sh\n'
SETUP = f'{START}nested_setup'


def power(cpu, nesting):
    """What Linux asks the machine by for guests of its own: of POWER10 it
    takes the later one, by which the machine switches the PMU.

    What KVM has asked it for as it was loaded is in no snapshot.
    """
    return Machine(cpu, cpu=cpu, system=NESTED, setup=SETUP, usual=False,
                   machine='pseries,x-vof=on,cap-cfpc=broken,cap-ibs=broken,'
                   f'cap-ccf-assist=off,{nesting}=on')


# Both guests have the same kernel, which is not to move: perf kvm is told the
# second one's symbols by those of the first.
L1S = {
    'x86_64': [machines.GENOA and machines.GENOA.variant(
        'EPYC-Genoa', system=NESTED, setup=START, append='nokaslr',
        prepare=f'{SETUP} && save_booted_l2')],
    'ppc64': [power('POWER9', 'cap-nested-hv'),
              power('POWER10', 'cap-nested-papr')],
}[ARCH]
# The machines of the same CPUs, as the tests of Linux know them.
KNOWN = {'EPYC-Genoa': machines.GENOA, 'POWER9': machines.UP,
         'POWER10': machines.POWER10}
# What the programs call an event, which all of these count.
EVENTS = list(machines.EVENTS_OF.get(KNOWN[str(L1S[0])], machines.EVENTS))

# In either guest: a kernel that finds that it spends too much time on samples
# stops a counter until its next tick, and those of KVM's guests alike.  In this
# order, as the rate is fixed once the limit of time is off.
UNTHROTTLED = ['echo 100000000 > /proc/sys/kernel/perf_event_max_sample_rate',
               'echo 0 > /proc/sys/kernel/perf_cpu_time_max_percent']


def event_of(l1, name):
    """How perf is asked for it in guests of that machine."""
    return perf_event(KNOWN[str(l1)], name)


class Output:
    """What L1 has printed: text, and (LEVEL, WHAT, [VALUE...]) of lines."""

    def __init__(self, lines):
        self.text = '\n'.join(lines)
        found = (re.match(r'@ (l[12]) (\S+) ?(.*)', line) for line in lines)
        self.lines = [(line[1], line[2], line[3].split())
                      for line in found if line]

    def values(self):
        """By level and name."""
        return {(level, what): values for level, what, values in self.lines}

    def phases(self):
        """By phase, the lines that were printed in it: words each."""
        phases = {}
        now = []
        for level, what, values in self.lines:
            if level == 'l1':
                now = phases[what] = []
            else:
                now.append([what, *values])
        return phases

    def require(self, *marks):
        """Pairs of level and name, which were printed in the end."""
        for mark in marks:
            assert mark in self.values(), f'no end: {self.text[-700:]}'


def run(directory, l1, script):
    """What is printed by a script in a first guest, line by line."""
    guest = Guest(directory, l1, seconds=SECONDS)
    try:
        guest.connect()
        guest.begin()
        guest.give('\n'.join(['. /tests/guest.sh', l1.setup, *script, '']))
        return Output(list(iter(guest.line, None)))
    finally:
        print(guest.errors())
        guest.close()


def job(*lines):
    """Make the file of the second guest's job."""
    return '\n'.join(["cat > /tmp/job << 'END'", *lines, 'END'])


def stat(level, what, program, events, perf='perf stat'):
    return (f"{perf} -x , -o /tmp/o -e '{events}' -- {program}; "
            f'echo @ {level} {what} $(grep , /tmp/o | cut -d , -f 1)')


def stat_in_turns(what, program, event, number):
    """Of so many events of a kind, more than there are counters; not scaled.

    Each has its turn, but for some milliseconds in which a busy host has not
    let a timer of the second guest's run: once more, then.
    """
    events = ','.join([event] * number)
    return (f'for try in $(seq 10); do '
            f"perf stat --no-scale -x , -o /tmp/o -e '{events}' {program}; "
            'grep -q "not counted" /tmp/o || break; done; '
            f'echo @ l2 {what} $(grep , /tmp/o | cut -d , -f 1)')
