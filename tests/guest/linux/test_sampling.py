# SPDX-License-Identifier: GPL-2.0-or-later
"""perf record: as many samples as there have to be, and where."""

import re

import pytest

from harness import (ARCH, KERNEL, expectations, on, require, require_equal,
                     symbols)
from machines import (CLOCK, EPYC, EVENTS_OF, GENOA, GENOA_SMP, ICELAKE,
                      ICOUNT, OBSERVED, OPTERON, POWER8, POWER10, POWER11,
                      POWERNV9, POWERNV10, SAMPLED_TOGETHER, SINGLE, SMP,
                      STEPS, UP, UP_OF_X86, loop_address)
from test_counting import perf_event

# perf opens an event per CPU, each of which counts its own period.  On one
# CPU there is one such event; --per-thread has one that moves with the task.
RECORD = 'perf record -q -T -m 16M --switch-events -o /tmp/data'
PINNED = f'taskset 1 {RECORD}'
SWITCH = 'PERF_RECORD_SWITCH'
ADDRESSES = "samples ip /tmp/data | awk '{ print $1 }'"

# What prints what most_interrupted() wants, once before and once after.
INTERRUPTS = """awk '/LOC:/ { n += $2 } END { print "interrupts", n }' \
    /proc/interrupts"""


def most_interrupted(output, events, period):
    """How many interrupts may be within so many events before a sample.

    They come at any time, and so it is that share of them.  As they are up to
    chance, there is room for three times as many, and six.
    """
    before, after = map(int, re.findall(r'^interrupts (\d+)$', output, re.M))
    return 6 + 3 * (after - before) * events // period


class Samples(list):
    """What each has, and the numbers of those that follow a switch of tasks."""

    def __init__(self):
        super().__init__()
        self.after_switch = set()
        self.switches = 0

    def switch(self):
        """Away from the task, or back to it: each is seen twice."""
        self.after_switch.add(len(self) + 1)
        self.switches += 1


class Addresses(Samples):
    """Of samples."""

    def add(self, word):
        """An address, or a switch, as perf script prints it."""
        if word == SWITCH:
            self.switch()
        else:
            address = int(word, 16)
            self.append(address if address < 1 << 63 else KERNEL)


def addresses(output):
    """What perf script -F ip printed."""
    found = Addresses()
    for word in output.split():
        found.add(word)
    return found


def check_samples(got, period, total, address_of, event='event', itself=None,
                  seldom=20):
    """Number and place of the samples of an event that happens @total times.

    address_of(N) is where the program is behind the Nth of these; there its
    sample has to be.  It may be elsewhere only by what Linux does:

    * on x86 it may be late by one event if the task was switched since the last
      sample: if a single one is left of a period then, Linux makes two of it;
      the next sample is on time again;
    * on Power it may be on the instruction itself, itself(N): if another
      interrupt comes first, Linux takes its address from SIAR.  How often that
      happens is up to the host: a timer may expire while the CPU's thread waits
      to raise the interrupt.  It is at most one of @seldom samples.
    """
    itself = itself or (lambda nth: address_of(nth - 1))
    few = 0
    for number, address in enumerate(got, 1):
        nth = number * period
        require(nth <= total, f'{len(got)} samples of {event}, all of them in '
                f'their places, not {total // period}')
        if address == address_of(nth):
            continue
        late = number in got.after_switch and nth < total
        require(address == (itself(nth) if ARCH == 'ppc64'
                            else late and address_of(nth + 1)),
                f'sample {number} of {len(got)}, not {total // period}, of '
                f'{event} is at {address:#x}, not {address_of(nth):#x}')
        few += 1
    require_equal(len(got), total // period, f'samples of {event}')
    require(ARCH != 'ppc64' or few <= 1 + len(got) // seldom,
            f'{few} of {len(got)} samples are not where they should be')


#
# A tight loop
#

OTHERS = [SMP, SINGLE, OBSERVED, ICELAKE, GENOA, GENOA_SMP, OPTERON, POWER10,
          POWER11, POWERNV10]


def check_loop(output, period):
    check_samples(addresses(output), period,
                  expectations('loop')['instructions'], loop_address)


@on(UP, each=[10007], more=[EPYC, POWER8, POWERNV9, *OTHERS])
@on(*OTHERS, each=[100003], more=[UP, EPYC, POWER8, POWERNV9])
@on(more=(UP, POWER10, SMP, GENOA, POWER8), each=[4999, 1000003])
def test_samples_of_loop(guest, machine, period):
    """Number and place of each sample of a loop of few instructions."""
    check_loop(guest.run(f'''
        {PINNED} -e instructions:u -c {period} loop
        {ADDRESSES}'''), period)


@on(SMP, more=(UP,))
def test_samples_with_noise(guest, machine):
    """The same, on a CPU that others want too."""
    period = 10007
    check_loop(guest.run(f'''
        noise
        {PINNED} -e instructions:u -c {period} loop
        hush
        {ADDRESSES}'''), period)


@on(SMP, POWERNV10)
def test_samples_of_cpus(guest, machine):
    """What is sampled on all CPUs, whoever runs there."""
    period = 100003
    output = guest.run(f'''
        {RECORD} -a -e instructions:u -c {period} fifo taskset 1 loop
        samples comm,cpu,ip''')
    got = re.findall(r'loop +\[(\d+)\] +([0-9a-f]+)', output)
    total = expectations('loop')['instructions']
    # The counter was somewhere in its period when the program began.
    require(len(got) in (total // period, total // period + 1),
            f'{len(got)} samples, not {total // period}')
    require({cpu for cpu, _ in got} == {'000'}, 'another CPU has samples')
    names = symbols('loop')
    outside = [address for address in addresses(' '.join(ip for _, ip in got))
               if not names['_start'] <= address < names['_end']]
    # The program makes one system call, its last: a sample of that is in the
    # kernel.
    require(len(outside) <= 1, f'samples at {outside}')


@on(SMP, SINGLE)
def test_samples_of_thread(guest, machine):
    """An event that goes with the task to any CPU."""
    period = 10007
    check_loop(guest.run(f'''
        {RECORD} --per-thread -e instructions:u -c {period} loop
        {ADDRESSES}'''), period)


@on(UP, UP_OF_X86 and CLOCK, more=(CLOCK, GENOA))
def test_samples_by_frequency(guest, machine):
    """
    Linux adapts the period itself, which is perf's default.

    How many samples that makes depends on the time that the program takes.
    """
    got = addresses(guest.run(f'''
        {PINNED} -e cycles:u -F 1000 long
        {ADDRESSES}'''))
    names = symbols('long')
    require(len(got) >= 2, f'{len(got)} samples')
    for address in got:
        require(names['_start'] <= address < names['_end']
                or address == KERNEL, f'a sample is at {address:#x}')


@on(UP, GENOA, more=(SMP, EPYC, OPTERON))
def test_samples_of_kernel(guest, machine):
    """Samples where interrupts are off, too."""
    got = addresses(guest.run(f'''
        {PINNED} -e instructions:k -c 5003 syscalls
        {ADDRESSES}'''))
    # Nobody knows how many instructions a system call is; it is 50 at least.
    # The program has less than six for each.
    calls = expectations('syscalls')['instructions'] // 6
    require(len(got) >= calls * 50 // 5003, f'{len(got)} samples')
    # The kernel's last instruction is followed by one in user mode.  A call
    # has 50 or more: so these are a fiftieth, or somewhat more if the period
    # happens to meet the last one often.
    users = [address for address in got if address != KERNEL]
    require(len(users) <= len(got) // 20, f'{len(users)} are in user mode')


@on(SMP, GENOA_SMP, POWER10)
def test_records_of_processes(guest, machine):
    """Each process begins and ends once, on whatever CPU, with its counter."""
    children = 20
    output = guest.run(f'''
        {RECORD} -e cycles:u -c 1009 sh -c '{"busybox true;" * children} :'
        perf script -i /tmp/data --show-task-events''')
    for event, want in (('FORK', children), ('EXIT', children + 1)):
        got = output.count(f'PERF_RECORD_{event}')
        require_equal(got, want, f'records of {event}')
    sampled = re.findall(r'(\d+) +[\d.]+: +1009 cycles:u:', output)
    require_equal(len(set(sampled)), children + 1, 'processes with samples')


@on(UP, POWER10, more=(GENOA, POWER8))
def test_groups_stop_at_overflow(guest, machine):
    """When one counter interrupts, all of its group stand still together."""
    output = guest.run(f'''
        {PINNED} -e '{{instructions,instructions}}:S' -c 10007 syscalls
        perf script -i /tmp/data -F event,period | awk '{{ print $1 }}'
        ''')
    periods = list(map(int, output.split()))
    require(len(periods) >= 200, f'{len(periods)} counts')
    differ = [pair for pair in zip(periods[::2], periods[1::2])
              if pair[0] != pair[1]]
    require(not differ, f'{len(differ)} differ: {differ[:3]}')


#
# Instructions of all sorts
#

class Mixed:
    """The addresses of the instructions of `mixed`."""

    def __init__(self):
        names = symbols('mixed')
        self.start = names['_start']
        self.before = names['expect_before']
        self.steps = names['expect_steps']
        self.end = names['expect_rounds'] * self.steps
        self.addresses = []
        for number in range(self.steps + 3):
            # A loop that jumps to itself has several steps, and one name.
            self.addresses.append(names.get(f'step_{number}')
                                  or self.addresses[-1])
        # Behind the last system call.
        self.addresses.append(KERNEL)

    def step(self, index):
        """The number of the step that comes behind so many instructions."""
        index -= self.before
        if index >= self.end:
            return self.steps + index - self.end
        return index % self.steps if index >= 0 else None

    def __call__(self, index):
        if index < self.before:
            # Instructions of four bytes, or a single one.
            return self.start + 4 * index
        return self.addresses[self.step(index)]


def check_mixed(event, got, period):
    mixed = Mixed()
    steps = STEPS[event]
    where = [index for index in range(expectations('mixed')['instructions'])
             if steps is None or mixed.step(index) in steps]
    check_samples(got, period, len(where),
                  lambda nth: mixed(where[nth - 1] + 1), event,
                  lambda nth: mixed(where[nth - 1]))


@on(UP, ICOUNT, each=[7, 26], more=(GENOA, EPYC))
@on(more=(UP, ICOUNT, GENOA, EPYC), each=[3, 101, 1009])
def test_samples_of_mixed(guest, machine, period):
    """Short periods, and instructions that are special in some way."""
    got = addresses(guest.run(f'''
        {PINNED} -e instructions:u -c {period} mixed
        {ADDRESSES}'''))
    check_mixed('instructions', got, period)


@on(UP, ICOUNT, each=[event for event in STEPS if event[0] != 'i'])
@on(GENOA, each=['branches', 'cycles'])
@on(more=[GENOA], each=[event for event in STEPS
    if event in EVENTS_OF.get(GENOA, ()) and event != 'branches'])
def test_samples_of_event(guest, machine, event):
    """Counters of other events interrupt as exactly."""
    period = 11
    got = addresses(guest.run(f'''
        {PINNED} -e {perf_event(machine, event)} -c {period} mixed
        {ADDRESSES}'''))
    check_mixed(event, got, period)


@on(SMP, GENOA, more=(UP, GENOA_SMP))
def test_samples_of_many_events(guest, machine):
    """Counters do not disturb each other, even if they overflow together."""
    period = 23
    names = {perf_event(machine, event): event for event in SAMPLED_TOGETHER}
    got = {name: Addresses() for name in names}
    output = guest.run(f'''
        {PINNED} -e {','.join(got)} -c {period} mixed
        samples event,ip''')
    for switch, event, address in re.findall(
            rf'({SWITCH})|(\S+:u): +([0-9a-f]+)', output):
        for name in got if switch else [event]:
            got[name].add(switch or address)
    for name, found in got.items():
        check_mixed(names[name], found, period)


#
# A task that moves
#

def affinity_traces():
    """What follows each instruction of `affinity`: a list for each CPU.

    The few that end the program are left out; no sample is there.
    """
    names = symbols('affinity')
    step = [names[f'step_{number}'] for number in range(12)]
    spin = step[8:10] * names['expect_inner_rounds']
    traces = [step[1:2], []]
    cpu = 0
    for _ in range(names['expect_rounds']):
        # It leaves in a system call, and is not seen in user mode after it.
        traces[cpu] += [*step[2:7], KERNEL]
        cpu = 1 - cpu
        traces[cpu] += [*spin, *step[10:12], step[1]]
    return traces


@pytest.mark.arch('x86_64')
@on(SMP)
def test_samples_of_migrating_task(guest, machine):
    """perf has an event on each CPU, and both are exact."""
    period = 1009
    output = guest.run(f'''
        {PINNED} --sample-cpu -e instructions:u -c {period} affinity
        samples cpu,ip''')
    for cpu, trace in enumerate(affinity_traces()):
        got = re.findall(rf'\[00{cpu}\]\s+([0-9a-f]+)', output)
        got = addresses(' '.join(got))
        # It is switched in each round, and has many in a period.
        got.after_switch.update(range(1, len(got) + 1))
        check_samples(got, period, len(trace),
                      lambda nth, trace=trace: trace[nth - 1],
                      f'instructions on CPU {cpu}')
