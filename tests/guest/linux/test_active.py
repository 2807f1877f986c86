# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles that the guest itself reads, with its own perf."""

import collections
import os
import pathlib
import re
import time

import pytest

from harness import expectations, on, require, require_equal
from machines import (GENOA, POWER8, POWER10, SMP, UP, UP_OF_POWER, UP_OF_X86,
                      loop_address)
from test_lifecycle import (go_back, long_address, move_away, move_in,
                            save_machine)
from test_profile import driver, values_of


def port(**properties):
    """A port of the guest's, with a profile behind it."""
    given = ''.join(f',{name}={value}' for name, value in properties.items())
    return ['-device', 'virtio-serial',
            '-object', f'pmu-profile,id=p0,chardev=p0{given}',
            '-device', 'virtserialport,chardev=p0,name=org.qemu.pmu.0']


# Where there is no udev, ports have no names in /dev.
SETUP = '''
. /tests/guest.sh
guest_setup
find_port()
{
    echo "/dev/$(basename "$(dirname \
        "$(grep -l "$1" /sys/class/virtio-ports/*/name)")")"
}
magic()
{
    echo "@@@ magic $(head -c 8 "$port")"
}
# An agent that reads its port holds signals back: INT, TERM and CHLD.
await_agent()
{
    while [ -d "/proc/$1" ] &&
        ! grep -q 'SigBlk:.*14002$' "/proc/$1/status"; do :; done
}
port=$(find_port org.qemu.pmu.0)
'''


def run(start, machine, job, **properties):
    """The lines of a job for a guest with a port."""
    guest = start(machine, SETUP + job, extra=port(**properties))
    return guest.rest()


@on(UP_OF_X86, more=(UP, POWER10, GENOA, POWER8))
def test_guest_reads_its_kernel(start, machine):
    """perf finds the kernel's functions, with nothing but the port."""
    lines = run(start, machine, '''
dd if=/dev/urandom of=/dev/null bs=64k & busy=$!
head -c 200000 "$port" | perf report -i - --stdio -q --sort sym 2> /dev/null |
    sed 's/^/@@@ found /'
kill $busy
''', modes='k')
    found = [words.split() for words in values_of(lines, 'found') if words]
    _, kind, name = found[0]
    require_equal(kind, '[k]', 'whose the first function is')
    # Random numbers are made by this cipher.
    require('chacha' in name, f'the first function is {name}')


@on(UP_OF_X86, more=(UP, POWER10))
def test_guest_opens_its_port_again(start, machine):
    """A stream begins whenever the port is opened; what nobody reads is lost,
    and waits for nobody."""
    guest = start(machine, SETUP + '''
magic
magic
exec 4< "$port"
wait_for_test
loop
wait_for_test
exec 4<&-
magic
wait_for_test
''', boots=True,
                  extra=port(modes='u', period=3, enabled='off'))

    def take(value):
        guest.monitor.command('qom-set', path='/objects/p0',
                              property='enabled', value=value)

    guest.lines_until('@@@ ready')
    take(True)
    guest.go()
    guest.lines_until('@@@ ready')
    take(False)
    lost = guest.monitor.command('qom-get', path='/objects/p0',
                                 property='lost')
    require(lost > 0, 'nothing is lost')
    guest.go()
    guest.lines_until('@@@ ready')
    guest.monitor.command('set-action', reboot='reset')
    guest.monitor.command('system_reset')
    guest.lines_until('@@@ ready')
    require_equal(values_of(guest.log, 'magic'), ['PERFILE2'] * 5,
                  'how the streams begin')
    guest.go()
    guest.lines_until('@@@ ready')
    guest.go()
    guest.lines_until('@@@ ready')
    guest.go()
    guest.rest()


PERIOD = 1000003

# The profile is of all that the CPU executes.  Each time that others run, as
# the agent does to pass the stream on, one begins a period and the other ends
# it: a sample more or less falls into the loop.  They run some times meanwhile,
# and what is more evens out with what is less.
SWITCHES = 20

# The shell becomes the program, whose pid it knows.  It takes seconds, so that
# the agent can be late.
RECORD = '''
vpmu-agent "$port" sh -c 'echo "@@@ pid $$"; exec long' 2>&1 > /tmp/data
'''
SHOW = '''
perf script -i - -F comm,pid,tid,ip,sym,dso < /tmp/data | sed 's/^/@@@ sample /'
perf report -i - --stdio -q --sort comm,dso,sym < /tmp/data 2> /dev/null |
    sed 's/^/@@@ found /'
'''


def samples_of(lines):
    """Of each: the name, numbers of process and thread, address, symbol, and
    file."""
    samples = [re.fullmatch(r'\s*(.+?)\s+(\d+)/(\d+)\s+([0-9a-f]+) (.+) '
                            r'\((.+)\)', line)
               for line in values_of(lines, 'sample')]
    require(all(samples), 'not all samples are understood')
    return [sample.groups() for sample in samples]


def of_program(samples):
    """Those of the hot loop of `long`, wherever it is shown to come from."""
    # Some instructions in its middle, of which all others are copies.
    addresses = {long_address(nth) for nth in range(10, 16)}
    return [sample for sample in samples
            if int(sample[3], 16) in addresses and sample[0] == 'long']


def require_number(samples, runs):
    """Of the program, that so many runs of it have."""
    want = runs * expectations('long')['instructions'] // PERIOD
    require(abs(len(samples) - want) <= SWITCHES,
            f'{len(samples)} samples, not {want}')


def require_file(samples, file):
    """Samples of a process show the file that it executes.

    On a busy host the agent may say late what the process has mapped: until
    then, samples are shown by what was there before.
    """
    files = [sample[5] for sample in samples]
    require(file in files, f'no sample is of {file}, but of {set(files)}')
    require_equal(set(files[files.index(file):]), {file},
                  'where, once it is known')


def check_program(lines):
    """The hot loop is where it is, of its process, every sample of it."""
    pid, = values_of(lines, 'pid')
    samples = of_program(samples_of(lines))
    require_number(samples, 1)
    require_equal({(process, thread) for _, process, thread, *_ in samples},
                  {(pid, pid)}, 'of which task')
    require_file(samples, '/usr/bin/long')
    found = [words.split() for words in values_of(lines, 'found') if words]
    require(any(words[1:4] == ['long', 'long', '[.]'] for words in found),
            f'perf report shows {found[:5]}')


@on(UP_OF_X86 and SMP, more=(SMP, UP, POWER10, GENOA))
def test_guest_reads_its_programs(start, machine):
    """A guest that says where its tasks are sees them, and its programs."""
    lines = run(start, machine, RECORD + SHOW,
                modes='u', period=PERIOD)
    check_program(lines)


@on(UP_OF_POWER, more=(UP,))
def test_guest_maps_lines(start, machine):
    """A program's name can be two lines; the agent does not say the second."""
    lines = run(start, machine, '''
odd="$(printf '/tmp/busybox\\nflush')"
cp /bin/busybox "$odd"
vpmu-agent "$port" sh -c '"$0" true; echo "@@@ pid $$"; exec long' "$odd" \
    2>&1 > /tmp/data
perf script -i - --show-mmap-events < /tmp/data |
    grep PERF_RECORD_MMAP | grep -o '/tmp/busybox.*' | sort -u |
    sed 's/^/@@@ mapped /'
''' + SHOW.replace('script -i - -F', 'script -i - --comm long -F'),
                modes='u', period=PERIOD)
    require_equal(values_of(lines, 'mapped'), ['/tmp/busybox?flush'],
                  'as what the name is shown')
    check_program(lines)


THREE = UP.variant('three', smp=3)


@on(more=(THREE,))
def test_guest_reads_with_cpu_offline(start, machine):
    """The numbers of its CPUs have a gap."""
    lines = run(start, machine, '''
echo 0 > /sys/devices/system/cpu/cpu1/online
''' + RECORD + SHOW, modes='u', period=PERIOD)
    check_program(lines)


# Between two looks of QEMU at its samples, the shell becomes a program on the
# last CPU, which then moves to the first, whose samples QEMU takes first.
MOVES = 12
# The shell is sampled on the first CPU alone.
SELDOM = 200003
MOVER = '''
echo "@@@ pid $$"
taskset -p 1 $$
i=0
while [ $i -lt 2000 ]; do
    i=$((i + 1))
done
(sleep 0.01; taskset -p 1 $$) &
taskset -p 4 $$
exec loop
'''


@on(more=(THREE,))
def test_guest_reads_who_moves(start, machine):
    """A program has its own name from its first instruction on."""
    lines = run(start, machine, f'''
cat > /tmp/mover << 'end'
{MOVER}
end
vpmu-agent "$port" sh -c 'for turn in $(seq {MOVES}); do
    sh /tmp/mover
done' 2>&1 > /tmp/data
{SHOW}''', modes='u', period=SELDOM)
    pids = values_of(lines, 'pid')
    loop = {loop_address(nth) for nth in range(10, 16)}
    its = [sample[0] for sample in samples_of(lines)
           if sample[1] in pids and int(sample[3], 16) in loop]
    require_equal(set(its), {'loop'}, 'what the program is called')
    want = MOVES * expectations('loop')['instructions'] // SELDOM
    # Each run may begin and end in the midst of a period: one more, or less.
    require(abs(len(its) - want) <= MOVES + SWITCHES,
            f'{len(its)} samples, not {want}')


@on(UP_OF_X86, more=(UP, POWER10))
def test_guest_reads_its_processes(start, machine):
    """A process that begins without a program of its own has its parent's."""
    lines = run(start, machine, '''
vpmu-agent "$port" sh -c 'i=0; while [ $i -lt 10000 ]; do i=$((i+1)); done &
    echo "@@@ child $!"; wait' 2>&1 > /tmp/data
''' + SHOW, modes='u', period=10007)
    child, = values_of(lines, 'child')
    samples = samples_of(lines)
    most, _ = collections.Counter(
        (comm, process) for comm, process, *_ in samples).most_common(1)[0]
    require_equal(most, ('sh', child), 'the task with most samples')
    its = [sample for sample in samples if sample[1] == child]
    shells = {sample[5] for sample in its if sample[5].endswith('busybox')}
    require_equal(len(shells), 1, f'names of the shell: {shells}')
    require_file(its, *shells)


@on(UP_OF_POWER, more=(UP, POWER10))
def test_guest_speaks_nonsense(start, machine):
    """It is told so, and has wrong pids at worst; then it says it right."""
    lines = run(start, machine, f'''
exec 4<> "$port"
echo giraffe >&4
echo task 8 4 4 4 >&4
echo task 0xc000000000000000 0 4 8 >&4
echo task 0xffffffff81000000 0 65532 65532 >&4
head -c 65536 /dev/urandom >&4
long
head -c 50000 <&4 > /tmp/data
exec 4<&-
grep -ao 'pmu-profile: [a-z, ]*' /tmp/data | sort -u | sed 's/^/@@@ said /'
perf report -i - --stdio < /tmp/data > /dev/null 2>&1 || echo @@@ failed
{RECORD}{SHOW}''', modes='u', period=PERIOD)
    require('pmu-profile: neither task, map, fork nor flush'
            in values_of(lines, 'said'), 'the guest was not told')
    require('@@@ failed' not in lines, 'perf cannot read the answer')
    check_program(lines)


# In the order in which they need each other
USB = ['common/usb-common', 'core/usbcore', 'host/xhci-hcd',
       'host/xhci-pci-renesas', 'host/xhci-pci', 'serial/usbserial',
       'serial/ftdi_sio']


@pytest.mark.arch('x86_64')
@on(UP_OF_X86)
def test_guest_reads_by_usb(start, tmp_path, machine):
    """A device that does not say that it can take more has all of a stream."""
    files = [driver(tmp_path, f'usb/{name}') for name in USB]
    load = '; '.join(f'insmod {path}' for _, path in files)
    guest = start(machine, f'''
. /tests/guest.sh
{load}
until [ -c /dev/ttyUSB0 ]; do sleep 0.1; done
stty -F /dev/ttyUSB0 raw -echo
exec 4< /dev/ttyUSB0
wait_for_test
loop
wait_for_test
echo "@@@ size $(timeout 20 head -c 50000 <&4 | wc -c)"
''', adds=files, extra=[
        '-device', 'qemu-xhci',
        '-object', 'pmu-profile,id=p0,chardev=p0,modes=u,'
        'period=1009,enabled=off',
        '-device', 'usb-serial,chardev=p0'])
    guest.lines_until('@@@ ready')
    for enabled in True, False:
        guest.monitor.command('qom-set', path='/objects/p0',
                              property='enabled', value=enabled)
        guest.go()
        guest.lines_until('@@@ (ready|size)')
    require_equal(values_of(guest.log, 'size'), ['50000'], 'what was read')
    guest.rest()


# Each line is a sentence, and nobody reads what QEMU answers.
FLOOD = SETUP + """
yes '' | head -c 4194304 > /tmp/lines
(while :; do
    dd if=/tmp/lines of="$port" bs=32k count=1
    echo @@@ wrote > /dev/console
    dd if=/tmp/lines of="$port" bs=32k
done) > /dev/null 2>&1 &
wait_for_test
"""


def seconds_of_main_loop(process):
    """How long the first thread of a process has executed."""
    stat = pathlib.Path(f'/proc/{process.pid}/task/{process.pid}/stat')
    times = stat.read_text().rpartition(')')[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf('SC_CLK_TCK')


@on(UP_OF_X86 and SMP, more=(SMP,))
def test_guest_speaks_without_end(start, machine):
    """However much it writes, QEMU has time for others."""
    guest = start(machine, FLOOD, extra=port(enabled='off'))
    guest.lines_until('@@@ ready')
    guest.lines_until('@@@ wrote')
    begin = answered = time.monotonic()
    used = seconds_of_main_loop(guest.process)
    longest = 0
    for _ in range(20):
        guest.monitor.command('query-status')
        longest = max(longest, time.monotonic() - answered)
        time.sleep(0.1)
        answered = time.monotonic()
    share = ((seconds_of_main_loop(guest.process) - used)
             / (time.monotonic() - begin))
    require(longest < 1, f'the monitor is silent for {longest:.1f} s')
    require(share < 0.5, f'{share:.0%} of the main loop are for the guest')
    guest.leave()


@on(UP_OF_POWER, more=(UP, POWER10))
def test_guest_reads_to_the_end(start, machine):
    """A profile that has ended has an end, and nothing more, to its reader."""
    lines = run(start, machine, '''
cat "$port" > /tmp/data & reader=$!
until [ "$(wc -c < /tmp/data)" -ge 50000 ]; do
    loop
done
wait $reader
perf report -i - --stdio < /tmp/data > /dev/null 2>&1 || echo @@@ failed
echo "@@@ sizes $(wc -c < /tmp/data) $(cat "$port" | wc -c)"
vpmu-agent "$port" 2>&1 > /dev/null | sed 's/^/@@@ said /'
''', period=1009, **{'max-size': 50000})
    require('@@@ failed' not in lines, 'perf cannot read it')
    size, more = map(int, values_of(lines, 'sizes')[0].split())
    require(size >= 50000, f'the profile has {size} bytes')
    require_equal(more, 0, 'what comes behind the end')
    require_equal(values_of(lines, 'said'),
                  ['vpmu-agent: QEMU has closed the port'],
                  'what the agent says')


@on(UP_OF_X86, more=(UP, POWER10))
def test_guest_goes_back(start, tmp_path, machine):
    """In a snapshot, an open port has a stream that ends; the next begins."""
    guest = start(machine, SETUP + '''
vpmu-agent "$port" 2> /tmp/said > /tmp/data & agent=$!
await_agent $agent
wait_for_test
wait $agent
sed 's/^/@@@ said /' /tmp/said
grep -ac PERFILE2 /tmp/data | sed 's/^/@@@ streams /'
magic
''', extra=port(period=100003))
    guest.lines_until('@@@ ready')
    save_machine(guest.monitor, tmp_path / 'image')
    go_back(guest.monitor)
    guest.go()
    lines = guest.rest()
    require_equal(values_of(lines, 'said'),
                  ['vpmu-agent: QEMU has closed the port'],
                  'what the agent says')
    require_equal(values_of(lines, 'streams'), ['1'], 'streams in one')
    require_equal(values_of(lines, 'magic'), ['PERFILE2'],
                  'how the next one begins')


@on(UP_OF_POWER, more=(UP,))
def test_guest_gets_no_answer(start, machine):
    """An agent at a port without a profile ends, by itself or when told to."""
    lines = start(machine, SETUP + '''
port=$(find_port other)
vpmu-agent "$port" true 2>&1 > /dev/null | sed 's/^/@@@ said /'
vpmu-agent "$port" 2> /tmp/said & agent=$!
await_agent $agent
kill -INT $agent
kill -TERM $agent
wait $agent
sed 's/^/@@@ said /' /tmp/said
''', extra=[
        '-device', 'virtio-serial', '-chardev', 'ringbuf,id=n0',
        '-device', 'virtserialport,chardev=n0,name=other']).rest()
    require_equal(values_of(lines, 'said'),
                  ['vpmu-agent: QEMU does not answer'] * 2,
                  'what the agent says')


#
# The machine stops, and goes back to its past, while the port is open
#

TWICE = """
vpmu-agent "$port" sh -c '. /tests/guest.sh; long; wait_for_test; long' \\
    2>&1 > /tmp/data
"""


@on(UP_OF_POWER, more=(UP, POWER10))
def test_guest_reads_on(start, tmp_path, machine):
    """Its stream goes on when the machine does, that was stopped and saved."""
    guest = start(machine, SETUP + TWICE + SHOW,
                  extra=port(modes='u', period=PERIOD))
    guest.lines_until('@@@ ready')
    monitor = guest.monitor
    monitor.command('stop')
    monitor.command('cont')
    save_machine(monitor, tmp_path / 'image')
    guest.go()
    samples = of_program(samples_of(guest.rest()))
    require_number(samples, 2)
    processes = {sample[1] for sample in samples}
    require_equal(len(processes), 2, 'processes')
    for process in processes:
        require_file([sample for sample in samples if sample[1] == process],
                     '/usr/bin/long')


# Waits before, with, and behind the port that it has open.
HELD_OPEN = SETUP + """
exec 4< "$port"
cat <&4 > /tmp/data & reader=$!
until [ -s /tmp/data ]; do
    sleep 0.1
done
wait_for_test
loop
wait_for_test
kill $reader
wait $reader
exec 4<&-
echo "@@@ old $(grep -ao PERFILE2 /tmp/data | wc -l)"
echo "@@@ magic $(head -c 8 "$port")"
wait_for_test
"""


def start_held_open(start, machine, **more):
    return start(machine, HELD_OPEN, extra=port(modes='u', period=10007),
                 **more)


def written(guest):
    """So many samples have been written to the guest, so far; when the
    machine stops, all that there are."""
    guest.monitor.command('stop')
    number = guest.monitor.command('qom-get', path='/objects/p0',
                                   property='samples')
    guest.monitor.command('cont')
    return number


def check_held_open(guest):
    """Of a guest that waits behind the opening of its port, in a machine that
    was loaded: nothing is written to that port until it is opened again."""
    before = written(guest)
    guest.go()
    guest.lines_until('@@@ ready')
    require_equal(written(guest), before, 'samples written')
    guest.go()
    lines = guest.lines_until('@@@ ready')
    require_equal(values_of(lines, 'old'), ['1'], 'streams in the old port')
    require_equal(values_of(lines, 'magic'), ['PERFILE2'],
                  'how the next stream begins')


@on(UP_OF_POWER, more=(UP, POWER10))
def test_guest_port_goes_back(start, tmp_path, machine):
    """The stream ends when a snapshot is loaded whose port is open, whether it
    was still open or not."""
    guest = start_held_open(start, machine)
    guest.lines_until('@@@ ready')
    monitor = guest.monitor
    save_machine(monitor, tmp_path / 'image')
    guest.go()
    guest.lines_until('@@@ ready')
    require(written(guest), 'there are no samples')
    for _ in 'open', 'closed':
        go_back(monitor)
        check_held_open(guest)
    guest.go()
    guest.rest()


@on(UP_OF_X86, more=(UP, POWER10))
def test_guest_port_moves(start, tmp_path, machine):
    """The stream ends with a migration whose port is open."""
    state = tmp_path / 'state'
    source = start_held_open(start, machine)
    source.lines_until('@@@ ready')
    move_away(source, state)
    target = start_held_open(start, machine, incoming=state)
    move_in(target)
    check_held_open(target)
    target.go()
    target.rest()
