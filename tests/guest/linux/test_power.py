# SPDX-License-Identifier: GPL-2.0-or-later
"""What only Power has: streams of a QEMU whose PMU was another, branches that
are recorded, events by their names."""

import re
import subprocess

from harness import (ROOT, expectations, require, require_equal, scenario,
                     symbols, test)
from machines import OFF, POWER8, POWER10, UP, loop_address
from test_counting import check_counts, parse
from test_lifecycle import adds, events_of_long, leave
from test_sampling import ADDRESSES, PINNED, addresses, check_samples

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
    guest = start(machine, job, ['long', 'loop'], adds(), monitored=True,
                  qemu=source)
    guest.lines_until('@@@ begin')
    guest.monitor.command('stop')
    guest.monitor.command('migrate', uri=f'file:{state}')
    guest.monitor.wait('migration', lambda: guest.monitor.command(
        'query-migrate').get('status') == 'completed')
    leave(guest)

    guest = start(machine, job, ['long', 'loop'], adds(), monitored=True,
                  extra=['-incoming', f'file:{state}'], verbose=True,
                  qemu=target)
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


@scenario
def stream_to_stock(start, directory):
    """A machine, in the midst of counting, goes on with stock QEMU."""
    target = moved(start, directory, XIVE, AND_BACK, target=stock())
    require_begun(target)
    complaints = ''.join(target.rest())
    require(not complaints, complaints)


@scenario
def stream_of_stock(start, directory):
    """A machine of stock QEMU, in the midst of counting, goes on with ours."""
    target = moved(start, directory, PEER, ACROSS, source=stock())
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

@test(UP, POWER8, POWER10)
def branches_by_name(machine):
    """Linux's own code for branches is one that counts."""
    event = 'branches:u'
    counts = parse((yield f"COUNT='perf stat'; count {event} loop"))
    require_equal(counts[event], [expectations('loop')['branches']], event)


@test(POWER8)
def memory_accesses(machine):
    """POWER8's one event for loads and stores, which marks instructions."""
    event, period = 'mem_access:u', 1009
    expected = expectations('accesses')
    happens = expected['loads'] + expected['stores']
    output = yield f'''
        COUNT='perf stat'
        count {event} accesses
        echo @@@ samples
        {PINNED} -e {event} -c {period} accesses
        {ADDRESSES}'''
    counts, samples = output.split('@@@ samples\n')
    require_equal(parse(counts)[event], [happens], event)
    require_equal(len(addresses(samples)), happens // period,
                  f'samples of {event}')


@test(OFF)
def no_pmu(machine):
    """Linux drives what it knows of the processor; it is not there."""
    output = yield '''
        perf stat -x , -o /tmp/stat -e instructions,cycles,task-clock loop
        grep , /tmp/stat'''
    counts = {line.split(',')[2]: line.split(',')[0]
              for line in output.splitlines()}
    require(float(counts.pop('task-clock')) > 0, 'no time has passed')
    require_equal(counts, {'instructions': '0', 'cycles': '0'}, 'counts')


#
# Where samples are
#

def edges():
    """The branches that `mixed` takes in a round: from where to where."""
    names = symbols('mixed')
    step = [names.get(f'step_{number}') for number in range(31)]
    for number in 23, 24, 25:
        step[number] = step[22]
    return [(step[number], step[(number + 1) % 30])
            for number in (4, 5, 8, 19, 22, 23, 24, 29)]


def is_in_order(stack, edges_of_round):
    """Whether these branches, the newest first, follow each other there."""
    rounds = edges_of_round[::-1] * (len(stack) // len(edges_of_round) + 2)
    return any(rounds[first:first + len(stack)] == stack
               for first in range(len(edges_of_round)))


@test(UP, POWER10)
def branch_stack(machine):
    """The branches that are recorded are the program's, in their order."""
    output = yield f'''
        {PINNED} -b -e instructions:u -c 1009 mixed
        perf script -i /tmp/data -F brstack'''
    round_ = edges()
    wanted = set(round_)
    seen = set()
    stacks = [re.findall(r'0x([0-9a-f]+)/0x([0-9a-f]+)/', line)
              for line in output.splitlines()]
    require_equal(len(stacks), expectations('mixed')['instructions'] // 1009,
                  'samples')
    # Linux forgets all branches when it switches tasks.  The next is some
    # instructions away, and samples are 1009 apart: two come hardly so soon.
    require(stacks.count([]) <= 1, f'{stacks.count([])} have no branches')
    stacks = [[(int(source, 16), int(target, 16)) for source, target in stack]
              for stack in stacks if stack]
    for stack in stacks:
        if stack[-1][0] == 0:
            # The buffer has had no room for where this one was.
            require(stack.pop()[1] in {target for _, target in wanted},
                    'the oldest branch led nowhere')
        require(is_in_order(stack, round_), f'{stack} is no part of a round')
        seen |= set(stack)
    require_equal(seen, wanted, 'branches seen')
