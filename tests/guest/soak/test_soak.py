# SPDX-License-Identifier: GPL-2.0-or-later
"""What takes long: the same again and again, until something rare happens.

Each test has a short length, which `make check` has, and one that takes hours,
in `make soak`.
"""

import re
import time

import pytest

from harness import ARCH, expectations, require, require_equal, symbols
from machines import PLUGGABLE, SMP, UP
from test_counting import parse, perf_event
from test_lifecycle import make_image, record_and_replay
from test_sampling import (ADDRESSES, PINNED, RECORD, addresses, check_loop,
                           check_samples)

# A day, in which each part has come to an end or never will.
SECONDS = 24 * 3600

# How long a guest runs on between two snapshots.  Nothing depends on it.
MOMENT = 0.03


def lengths(short, long, usual=ARCH == 'x86_64'):
    """A test has both of these; a usual check has the short one, or not.

    It has it on one architecture, as no part is about another's code.
    """
    marks = [] if usual else [pytest.mark.more]
    return pytest.mark.parametrize(
        'length', [pytest.param(short, marks=marks),
                   pytest.param(long, marks=pytest.mark.soak)])


def counted(length):
    """So many turns, with a word now and then of how many it were."""
    for number in range(length):
        if number and number % 50 == 0:
            print(f'# {number} of {length}', flush=True)
        yield number


def start_soaking(start, machine, job, **more):
    return start(machine, f'. /tests/guest.sh\nguest_setup\n{job}\n'
                 'echo @@@ complaints\ncomplaints\n', seconds=SECONDS, **more)


def require_quiet(guest, but=None):
    """The kernel has nothing to complain of in the end, but of that."""
    complaints = [line for line in filter(None, guest.rest())
                  if not (but and but in line)]
    require(not complaints, '; '.join(complaints))


#
# The whole machine goes back to its past, in the middle of counting
#

class Rounds:
    """What `rounds` counts, which depends on when it was told to end."""

    def __init__(self, rounds):
        self.stated = expectations('rounds')
        self.rounds = rounds
        names = symbols('rounds')
        self.steps = [names[f'step_{number}']
                      for number in range(self.stated['steps'])]

    def total(self, event):
        return (self.stated[f'around_{event}']
                + self.rounds * self.stated[f'round_{event}'])

    def address(self, nth):
        """Where it is behind so many instructions."""
        stated = self.stated
        step = (nth - stated['before']) % stated['round_instructions']
        loop = stated['loop_steps']
        if step > 0:
            # The loop's steps come again; what is behind it follows once.
            again = (stated['loop_rounds'] - 1) * loop
            step = (step - again if step > again + loop
                    else (step - 1) % loop + 1)
        return self.steps[step]


EVENTS = ['instructions', 'branches']
SNAPSHOT_PERIOD = 10000019

SNAPSHOTS = f'''
{PINNED} -e instructions:u -c {SNAPSHOT_PERIOD} rounds > /tmp/sampled &
sampler=$!
until pidof rounds > /dev/null; do
    sleep 0.1
done
count {','.join(perf_event(SMP, event) for event in EVENTS)} \\
    rounds > /tmp/counted &
counter=$!
noise
announce 2 rounds
wait_for_test
touch /tmp/stop
hush
wait $sampler $counter
for file in /tmp/sampled /tmp/counted; do
    hexdump -n 4 -e '1/4 "%u\\n"' $file
done
tail -c +5 /tmp/counted
echo @@@ samples
{ADDRESSES}
'''


def check_rounds(lines):
    sampled, counted = (Rounds(int(line)) for line in lines[:2])
    counts = parse('\n'.join(lines[2:]))
    for event in EVENTS:
        require_equal(counts[perf_event(SMP, event)], [counted.total(event)],
                      event)
    return sampled


@lengths(2, 1000)
def test_snapshots(start, tmp_path, length):
    """So many are saved, and loaded."""
    guest = start_soaking(start, SMP, SNAPSHOTS, extra=['-m', '512'])
    guest.lines_until('@@@ ready')
    guest.lines_until('@@@ begin')
    make_image(guest.monitor, tmp_path / 'image')
    for _ in counted(length):
        guest.monitor.human('savevm past')
        time.sleep(MOMENT)
        guest.monitor.human('loadvm past')
        time.sleep(MOMENT)
    guest.go()
    sampled = check_rounds(guest.lines_until('@@@ samples')[:-1])
    samples = guest.lines_until('@@@ complaints')[:-1]
    # With more busy programs than CPUs, 11 of 138 came after another interrupt.
    check_samples(addresses('\n'.join(samples)), SNAPSHOT_PERIOD,
                  sampled.total('instructions'), sampled.address, seldom=5)
    require_quiet(guest)


#
# Recordings while CPUs are wanted by others
#

RECORDING_PERIOD = 50021
CPUS = 4
# So many at the same time, two on a CPU: each is the others' load.
RECORDERS = 2 * CPUS


def recorder(number, length):
    """A script that makes its share of the recordings, one after the other."""
    data = f'/tmp/{number}'
    # What so many buffers may have of the guest's memory.
    record = RECORD.replace('/tmp/data', data).replace('16M', '1M')
    return f'''
for turn in $(seq {number} {RECORDERS} {length - 1}); do
    taskset {1 << number % CPUS:x} {record} -e instructions:u \\
        -c {RECORDING_PERIOD} loop
    {ADDRESSES.replace('/tmp/data', data)} > {data}.samples
    echo @@@ recorded >> {data}.samples
    until mkdir /tmp/printing 2> /dev/null; do
        sleep 0.05
    done
    cat {data}.samples
    rmdir /tmp/printing
done &'''


@lengths(RECORDERS, 1000)
def test_recordings(start, length):
    """None of them is a sample short, or has one in a wrong place.

    The guest boots, as TSan is not to see a snapshot: QEMU loads it in a
    coroutine, which TSan takes for another thread than the one that locked.
    """
    job = '\n'.join(recorder(number, length) for number in range(RECORDERS))
    guest = start_soaking(start, SMP.variant('four', smp=CPUS),
                          f'{job}\nwait', boots=True)
    wrong = []
    for _ in counted(length):
        lines = guest.lines_until('@@@ recorded')[:-1]
        try:
            check_loop('\n'.join(lines), RECORDING_PERIOD)
        except AssertionError as why:
            wrong.append(str(why))
    require(not wrong, f'{len(wrong)} of {length}: {"; ".join(wrong)}')
    guest.lines_until('@@@ complaints')
    require_quiet(guest)


#
# CPUs that go and come
#

HOTPLUG_PERIOD = 100003
# Linux warns of a CPU that was not vacated when it went off, once in some
# minutes if CPUs of the host are short: with Debian's QEMU as well, where
# nobody counts.
NOT_VACATED = 'sched_cpu_dying'

# QEMU has a translator's context for so many threads of CPUs, and gets none
# back from those that end (tcg_register_thread(), also without our patches).
STAY = 6
MORE = 2
MOST = 126
TURN_SECONDS = 10

# Who records all CPUs opens an event on each that was there a moment ago, and
# ends without a recording if one has gone since.  The program that is recorded
# on the first CPU is the only one of its name.
#
# Those that are plugged in count a program to its end, and are taken away from
# another one.
HOTPLUG = f'''
cpus=/sys/devices/system/cpu
cp /usr/bin/loop /tmp/elsewhere

over()
{{
    [ -e /tmp/over ]
}}

switch_cpus()
{{
    local state number

    until over; do
        for state in 0 1; do
            for number in $(seq {STAY - 1}); do
                echo $state > $cpus/cpu$number/online
            done
        done 2> /dev/null
        echo switched
    done
}}

record_all()
{{
    until over; do
        if {RECORD.replace('16M', '1M')} -a -e instructions:u \\
            -c {HOTPLUG_PERIOD} busybox time -v taskset 1 loop \\
            2> /tmp/said; then
            echo samples $(samples comm,cpu |
                           grep -c '^ *loop *\\[000\\] *$') \\
                 $(sed -n 's/.*context switches: //p' /tmp/said)
        fi
    done
}}

count_one()
{{
    until over; do
        count instructions:u /tmp/elsewhere
    done
}}

is_there()
{{
    local range

    for range in $(tr , ' ' < $cpus/present); do
        [ $1 -lt ${{range%-*}} ] || [ $1 -gt ${{range#*-}} ] || return 0
    done
    return 1
}}

count_on()
{{
    taskset $(printf %x $((1 << $1))) perf stat -x , -o /tmp/stat$1 \\
        -e instructions:u /tmp/elsewhere || return
    grep , /tmp/stat$1
}}

use_plugged()
{{
    until over; do
        sleep 0.1
        is_there $1 || continue
        echo 1 2> /dev/null > $cpus/cpu$1/online
        count_on $1 2> /dev/null || continue
        echo used $1
        count_on $1
        while is_there $1; do
            sleep 0.1
        done
        echo gone $1
    done
}}

echo possible $(cat $cpus/possible)
switch_cpus & jobs=$!
record_all & jobs="$jobs $!"
count_one & jobs="$jobs $!"
for number in $(seq {STAY} {STAY + MORE - 1}); do
    use_plugged $number & jobs="$jobs $!"
done
wait_for_test
touch /tmp/over
wait $jobs
'''


def plug(guest, turn):
    """Plug in some CPUs, and out again when the guest has used them and lets
    them go."""
    def absent():
        return [cpu for cpu in guest.monitor.command('query-hotpluggable-cpus')
                if 'qom-path' not in cpu]

    before = absent()
    for number, cpu in enumerate(before[-MORE:]):
        guest.monitor.command('device_add', driver=cpu['type'],
                              id=f'more{turn}-{number}', **cpu['props'])
    for number in range(MORE):
        guest.lines_until('^used ')
    for number in range(MORE):
        guest.monitor.command('device_del', id=f'more{turn}-{number}')
    for number in range(MORE):
        guest.lines_until('^gone ')
    guest.monitor.wait('unplugging', lambda: len(absent()) == len(before))


def is_wrong(total, samples, *switches):
    """
    The counter, which counts what others execute, too, is somewhere in its
    period when the program begins, and whenever it goes on.
    """
    return abs(samples - total / HOTPLUG_PERIOD) >= 1 + sum(switches)


# A usual check has CPUs that go and come, and replays, in other tests.
@lengths(1, 60, usual=False)
def test_cpus(start, length):
    """Eight, of which only the first stays: what is counted there is exact,
    while others are plugged in and out so many times."""
    machine = PLUGGABLE.variant('eight',
                                smp=f'{STAY},sockets={MOST},maxcpus={MOST}')
    guest = start_soaking(start, machine, HOTPLUG)
    guest.lines_until('@@@ ready')
    require(f'possible 0-{MOST - 1}' in guest.log, 'the guest expects no more '
            'CPUs: ' + '; '.join(guest.log[:1]))
    require(length * MORE <= MOST - STAY, 'QEMU has no room for so many')
    begin = time.monotonic()
    for turn in range(length):
        plug(guest, turn)
        while time.monotonic() < begin + TURN_SECONDS * turn:
            time.sleep(MOMENT)
    # That of all CPUs is tried until none has gone meanwhile.
    while not any(line.startswith('samples ') for line in guest.log):
        guest.lines_until('^samples ')
    guest.go()
    guest.lines_until('@@@ complaints')
    lines = '\n'.join(guest.log)
    total = expectations('loop')['instructions']
    counts = parse(lines).get('instructions:u')
    samples = [tuple(map(int, words)) for words in re.findall(
        r'^samples (\d+) (\d+) (\d+)$', lines, re.M)]
    switched = lines.count('switched')
    require(counts and switched and samples, 'not all of it has happened')
    print(f'{length * MORE} CPUs plugged in, used and plugged out, {switched} '
          f'times all switched off and on, {len(counts)} counts, '
          f'{len(samples)} recordings', flush=True)
    require_equal(set(counts), {total}, 'counts')
    wrong = [words for words in samples if is_wrong(total, *words)]
    require(not wrong, f'samples, and switches of tasks: {wrong}')
    require_quiet(guest, but=NOT_VACATED)


#
# Replays
#

@lengths(1, 20, usual=False)
def test_replays(start, tmp_path, length):
    """Each prints what its recording did."""
    for number in counted(length):
        path = tmp_path / str(number)
        path.mkdir()
        record_and_replay(start, path, UP)
