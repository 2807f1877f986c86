# SPDX-License-Identifier: GPL-2.0-or-later
"""perf stat: programs whose counts are known by construction."""

import re

from harness import expectations, require, require_equal, test
from machines import (EPYC, GENOA, GENOA_SMP, ICELAKE, ICOUNT, INTEL_MAX,
                      ONE_INSN, OPTERON, SINGLE, SMP, UP)

# What the programs call an event, and perf.
EVENTS = {
    'instructions': 'instructions:u',
    'branches': 'branches:u',
    'conditional': 'r01c4:u',
    'not_taken': 'r10c4:u',
    'taken': 'r20c4:u',
    'calls': 'r02c4:u',
    'returns': 'r08c4:u',
    'far': 'r40c4:u',
    'loads': 'r81d0:u',
    'stores': 'r82d0:u',
}
K10 = {
    'instructions': 'instructions:u',
    'branches': 'branches:u',
    'returns': 'rc8:u',
    'far': 'rc6:u',
}
ZEN = {**K10, 'conditional': 'rd1:u', 'loads': 'r129:u', 'stores': 'r229:u'}
EVENTS_OF = {ICELAKE: {**EVENTS, 'conditional': 'r11c4:u'},
             GENOA: ZEN, GENOA_SMP: ZEN, EPYC: ZEN, OPTERON: K10}

# No more than that at a time, so that all are counted all the time, beside
# instructions, which have a counter of their own on Intel's, and the watchdog.
TOGETHER = 4
TOGETHER_ON = {OPTERON: 2}


def perf_event(machine, name):
    """How perf is asked for an event; as it is if a program does not state it."""
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


PROGRAMS = ['loop', 'calls', 'faults', 'strings', 'syscalls', 'signals',
            'special', 'fork', 'exec', 'threads', 'smc', 'pages', 'affinity']


# What executes no instruction that is younger than an Opteron.
OLD = [program for program in PROGRAMS if program != 'special']

# What does not take long even with a block for each instruction.
QUICK = ['calls', 'strings', 'special', 'fork', 'exec', 'threads', 'smc',
         'affinity']


@test(UP, SMP, SINGLE, ICOUNT, ICELAKE, GENOA, GENOA_SMP, EPYC, each=PROGRAMS)
@test(OPTERON, each=OLD)
@test(ONE_INSN, each=QUICK)
def counts_of(machine, program):
    """Every event that a program states."""
    output = yield '\n'.join(f"count '{events}' {program}"
                             for events in groups(machine, program))
    check_counts(machine, program, output)


# What Linux says of the PMU that it has found.
DRIVERS = {
    UP: 'Skylake events, full-width counters, Intel PMU driver.',
    GENOA: 'Fam17h+ core perfctr, AMD PMU driver.',
    EPYC: 'Fam17h+ core perfctr, AMD PMU driver.',
    OPTERON: 'Performance Events: AMD PMU driver.',
}
SHAPES = {UP: (2, 4), GENOA: (2, 6), EPYC: (0, 6), OPTERON: (0, 4)}


@test(*DRIVERS)
def driver(machine):
    """Linux finds the PMU, of its version and with all its counters."""
    output = yield "dmesg | grep -A 9 'Performance Events'"
    require(DRIVERS[machine] in output, output)
    shape = re.findall(r'(?:version|generic registers): +(\d+)', output)
    require_equal(tuple(map(int, shape)), SHAPES[machine],
                  'version and counters')


@test(INTEL_MAX)
def architectural_events(machine):
    """A model that Linux does not know has the architecture's events."""
    output = yield '''
        dmesg | grep 'Performance Events'
        count instructions:u,branches:u loop'''
    require('generic architected perfmon' in output, output)
    counts = parse(output)
    want = expectations('loop')
    for event in 'instructions', 'branches':
        require_equal(counts[f'{event}:u'], [want[event]], event)
