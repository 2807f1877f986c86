# SPDX-License-Identifier: GPL-2.0-or-later
"""What only Power has: streams of a QEMU whose PMU was another, branches that
are recorded, events by their names."""

import re
import subprocess

import pytest

from harness import (ROOT, expectations, in_time, on, require, require_equal,
                     symbols)
from machines import (OFF, OFF_NV, POWER8, POWER10, POWERNV9, STEPS, THREADS,
                      UP, loop_address)
from test_counting import check_counts, parse
from test_lifecycle import (events_of_long, go_back, move_away, move_in,
                            save_machine)
from test_sampling import (ADDRESSES, INTERRUPTS, PINNED, SWITCH, Mixed,
                           Samples, addresses, check_samples, most_interrupted)

PERIOD = 100003

#
# Streams of stock QEMU
#

# Counted by stock QEMU when it leaves, and what comes after it.
ACROSS = f'''
. /tests/guest.sh
guest_setup
announce 1 long
count instructions:u,cycles:u long
echo @@@ counts
count {events_of_long(UP)} long
echo @@@ samples
{PINNED} -e instructions:u -c {PERIOD} loop
{ADDRESSES}
echo @@@ complaints
complaints
'''


# The same, without what stock would count in the end.
AND_BACK = '''
. /tests/guest.sh
guest_setup
announce 1 long
count instructions:u,cycles:u long
echo @@@ counts
complaints
'''

# Of a type that ours and stock both have.
PEER = UP.variant('peer', machine='pseries-10.0,x-vof=on,cap-cfpc=broken,'
                                  'cap-ibs=broken,cap-ccf-assist=off')
# A later 10.0.x sends what Debian's does not know of the other one, XICS.
XIVE = PEER.variant('xive', machine=f'{PEER.machine},ic-mode=xive')


def moved(start, directory, machine, job, source=None, target=None):
    """A machine that has gone from one QEMU to another in the midst of a job;
    ours, if none is named.
    """
    state = directory / 'state'
    guest = start(machine, job, boots=True, qemu=source)
    guest.lines_until('@@@ begin')
    guest.monitor.command('stop')
    guest.monitor.command('migrate', uri=f'file:{state}')
    guest.monitor.wait('migration', lambda: guest.monitor.command(
        'query-migrate').get('status') == 'completed')
    guest.leave()

    guest = start(machine, incoming=state, qemu=target)
    guest.monitor.wait('loading', lambda: guest.monitor.command(
        'query-migrate').get('status') == 'completed')
    guest.monitor.command('cont')
    return guest


def stock():
    return subprocess.run([ROOT / 'scripts' / 'fetch-stock'], check=True,
                          text=True, stdout=subprocess.PIPE).stdout.strip()


def require_begun(guest):
    """Stock does not count right; but it counts, and nothing is lost."""
    begun = parse('\n'.join(guest.lines_until('@@@ counts')))
    require(all(begun[event][0] for event in ('instructions:u', 'cycles:u')),
            f'what had begun: {begun}')


# The tests compat-ppc64 have both directions without an operating system.
@pytest.mark.more
def test_stream_to_stock(start, tmp_path):
    """A machine, in the midst of counting, goes on with stock QEMU."""
    target = moved(start, tmp_path, XIVE, AND_BACK, target=stock())
    require_begun(target)
    complaints = ''.join(target.rest())
    require(not complaints, complaints)


@pytest.mark.more
def test_stream_of_stock(start, tmp_path):
    """A machine of stock QEMU, in the midst of counting, goes on with ours."""
    target = moved(start, tmp_path, PEER, ACROSS, source=stock())
    require_begun(target)
    check_counts(UP, 'long', '\n'.join(target.lines_until('@@@ samples')))
    samples = target.lines_until('@@@ complaints')[:-1]
    check_samples(addresses('\n'.join(samples)), PERIOD,
                  expectations('loop')['instructions'], loop_address)
    complaints = ''.join(target.rest())
    require(not complaints, complaints)


#
# Events by name
#

@on(UP, POWER8, POWER10)
def test_branches_by_name(guest, machine):
    """Linux's own code for branches is one that counts."""
    event = 'branches:u'
    counts = parse(guest.run(f"COUNT='perf stat'; count {event} loop"))
    require_equal(counts[event], [expectations('loop')['branches']], event)


@on(POWER8)
def test_memory_accesses(guest, machine):
    """POWER8's one event for loads and stores, which marks instructions."""
    event, period = 'mem_access:u', 1009
    expected = expectations('accesses')
    happens = expected['loads'] + expected['stores']
    output = guest.run(f'''
        COUNT='perf stat'
        count {event} accesses
        echo @@@ samples
        {PINNED} -e {event} -c {period} accesses
        {ADDRESSES}''')
    counts, samples = output.split('@@@ samples\n')
    require_equal(parse(counts)[event], [happens], event)
    require_equal(len(addresses(samples)), happens // period,
                  f'samples of {event}')


@on(THREADS)
def test_offline_thread(guest, machine):
    """An offline thread executes no cycles; the core has them while the other
    thread runs, and no cycle is one in which both run."""
    output = guest.run('''
        echo 0 > /sys/devices/system/cpu/cpu1/online
        sleep 1
        perf stat -x , -o /tmp/stat -e r1001e,r100fa,r2000c taskset 1 loop
        grep , /tmp/stat''')
    counts = {line.split(',')[2]: int(line.split(',')[0])
              for line in output.splitlines()}
    require(counts['r1001e'] > 0, 'no cycles')
    require(counts['r100fa'] > 0, 'no cycles in which any thread runs')
    require_equal(counts['r2000c'], 0, 'cycles in which all threads run')


@on(UP, more=(POWER8, POWERNV9))
def test_refused_writes(guest, machine):
    """What a program may not write is illegal, not privileged, on both kinds of
    machines: si_code is 1."""
    require_equal(guest.run('refused').split(), ['PMC1', '1', 'SIER', '1',
                                                 'illegal', '1'], 'si_code')


@on(OFF, OFF_NV)
def test_no_pmu(guest, machine):
    """Linux drives what it knows of the processor; it is not there."""
    output = guest.run('''
        perf stat -x , -o /tmp/stat -e instructions,cycles,task-clock loop
        grep , /tmp/stat''')
    counts = {line.split(',')[2]: line.split(',')[0]
              for line in output.splitlines()}
    require(float(counts.pop('task-clock')) > 0, 'no time has passed')
    require_equal(counts, {'instructions': '0', 'cycles': '0'}, 'counts')


#
# Where samples are
#

# By filter of POWER10, of which those before have the first two: the steps of
# `mixed` that are such branches.  "ind_call" is what the hardware has there,
# indirect branches that are not calls.
FILTERS = {'any': STEPS['taken'], 'any_call': {5}, 'ind_call': {8, 19},
           'cond': {22, 23, 24, 29}}
# Some have an entry of the 32 for the target, too.
DEPTHS = {'any': 16, 'any_call': 32, 'ind_call': 16, 'cond': 32}
# Without filters of the hardware, an interrupt may come between the branches of
# one in so many samples: any 16 are within 60 instructions of a period's
# thousand; 32 calls nearly fill it.
INTERRUPTED = {'any': 8, 'any_call': 4}


def edges():
    """The branches that `mixed` takes in a round: from where to where, by
    step."""
    names = symbols('mixed')
    step = [names.get(f'step_{number}') for number in range(31)]
    for number in 23, 24, 25:
        step[number] = step[22]
    return {number: (step[number], step[(number + 1) % 30])
            for number in sorted(STEPS['taken'])}


def last_taken(mixed, index, steps, most):
    """The last ones of these that so many instructions took, the newest
    first."""
    by_step = edges()
    found = []
    while index > 0 and len(found) < most:
        index -= 1
        if mixed.step(index) in steps:
            found.append(by_step[mixed.step(index)])
    return found


def stacks_of_branches(output):
    """What perf script -F brstack printed; without branches that Linux has
    forgotten."""
    found = Samples()
    for line in output.splitlines():
        if SWITCH in line:
            found.switch()
        elif 'interrupts' not in line:
            found.append([(int(source, 16), int(target, 16))
                          for source, target in re.findall(
                              r'0x([0-9a-f]+)/0x([0-9a-f]+)/', line)])
    return found


def check_lengths(machine, stacks, least, most):
    """Linux forgets all branches when it switches tasks.  Where the hardware
    has no filter for it, the kernel's branches, which Linux leaves, take the
    place of others; at most so many interrupts come so near."""
    short = [number for number, stack in enumerate(stacks, 1)
             if len(stack) < least and number not in stacks.after_switch]
    if machine is POWER10:
        most = 0
    require(len(short) <= most,
            f'samples {short} have not {least} branches, more than {most}')


@on(UP, each=['any', 'any_call'], more=[POWER8])
@on(POWER10, each=FILTERS)
def test_branch_stack(guest, machine, name):
    """The branches that are recorded are those that the program has taken."""
    period = 1009
    stacks = stacks_of_branches(guest.run(f'''
        {PINNED} -j {name} -e instructions:u -c {period} mixed
        samples brstack'''))
    mixed = Mixed()
    require_equal(len(stacks), expectations('mixed')['instructions'] // period,
                  'samples')
    for number, stack in enumerate(stacks, 1):
        wanted = last_taken(mixed, number * period, FILTERS[name], len(stack))
        if stack and stack[-1][0] == 0:
            # The buffer has had no room for where this one was.
            wanted[-1] = (0, wanted[-1][1])
        require_equal(stack, wanted, f'sample {number}')
    # Just behind a switch of tasks, or an interrupt, there are none yet; of the
    # samples, which are 1009 instructions apart, hardly two come there.
    require(stacks.count([]) <= 1, f'{stacks.count([])} have no branches')
    check_lengths(machine, stacks, DEPTHS[name], 0 if machine is POWER10
                  else len(stacks) // INTERRUPTED[name])


#
# Branches that are recorded while the machine moves
#

# Of instructions: some two hundred samples of `long`.
LONG_PERIOD = 10000019
RECORDING = f'''
. /tests/guest.sh
guest_setup
announce 1 long 30 '@@@ middle' 60 '@@@ later'
before=$({INTERRUPTS})
{PINNED} -j any -e instructions:u -c {LONG_PERIOD} long
echo @@@ samples
echo "$before"
{INTERRUPTS}
samples brstack
'''


def check_stacks_of_long(machine, lines):
    """Each has the one branch of its loop, as often as there is room."""
    names = symbols('long')
    branch = names['step_3'], names['step_0']
    stacks = stacks_of_branches('\n'.join(lines))
    samples = expectations('long')['instructions'] // LONG_PERIOD
    require_equal(len(stacks), samples, 'samples')
    require_equal({entry for stack in stacks for entry in stack}, {branch},
                  'branches')
    # A branch for each four instructions
    check_lengths(machine, stacks, 32, most_interrupted(
        '\n'.join(lines), 32 * 4, LONG_PERIOD))


@on(POWER10, more=[UP])
def test_records_migrate(start, tmp_path, machine):
    """The buffer goes on where the machine goes."""
    source = start(machine, RECORDING)
    source.lines_until('@@@ middle')
    move_away(source, tmp_path / 'state')
    in_time('@@@ samples' not in source.log, 'the program had ended too early')
    target = start(machine, incoming=tmp_path / 'state')
    move_in(target)
    target.lines_until('@@@ samples')
    check_stacks_of_long(machine, target.rest())


@on(more=(UP, POWER10))
def test_records_of_snapshot(start, tmp_path, machine):
    """A machine that goes back to its own past records the same again."""
    guest = start(machine, RECORDING)
    guest.lines_until('@@@ middle')
    save_machine(guest.monitor, tmp_path / 'image')
    guest.lines_until('@@@ later')
    go_back(guest.monitor)
    in_time('@@@ samples' not in guest.lines_until('@@@ later'),
            'the program had ended too early')
    guest.lines_until('@@@ samples')
    check_stacks_of_long(machine, guest.rest())


REPLAYED_JOB = '''
. /tests/guest.sh
guest_setup
perf record -q -o /tmp/data -j any -e instructions:u -c 1009 mixed
perf script -i /tmp/data -F ip,brstack
'''


def replayed(start, directory, machine, what):
    """What a guest prints that is recorded, or that is its replay."""
    guest = start(machine, REPLAYED_JOB, boots=True, extra=[
        '-icount', f'shift=auto,rr={what},rrfile={directory}/log'])
    return guest.rest()


@on(more=(UP, POWER10))
def test_records_are_replayed(start, tmp_path, machine):
    """Each branch is that of the recording."""
    recorded = replayed(start, tmp_path, machine, 'record')
    require(any('/P/' in line for line in recorded), 'no branches')
    require_equal(replayed(start, tmp_path, machine, 'replay'), recorded,
                  'the replay')
