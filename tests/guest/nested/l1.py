# SPDX-License-Identifier: GPL-2.0-or-later
"""The first guest (L1): boot it with a script for its shell, read what it and
the second print, which is lines of "@ LEVEL WHAT VALUE...".
"""

import pathlib
import re
import subprocess

import harness

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
# The slowest part takes a sixteenth of it on an idle machine of two CPUs.  Less
# than a stage may take: what the others have said is to be read.
SECONDS = 2400

# The second guest appends to /tmp/l2.out, and $l2 is its process; its QEMU
# takes commands if it is given the options in $monitor, and has /tmp/monitor
# open for itself: a FIFO has an end as soon as nobody is left who may write.
# What it says goes to a file, as nobody reads it who would empty a pipe.
START = """
sh /modules/load
PATH=$PATH:/l2/files/usr/bin
touch /tmp/l2.out /tmp/l2.phases
mkfifo /tmp/monitor
monitor='-mon monitor -chardev file,id=monitor,path=/tmp/monitor.log'
monitor=$monitor,input-path=/tmp/monitor
# phase NAME [VALUE]: what the second guest prints from now on belongs to that;
# it may have stopped in the middle of a line
phase() {
    { cat /tmp/l2.out; printf '\\n@ l1 %s\\n' "$*"; } >> /tmp/l2.phases
    : > /tmp/l2.out
}
# until_l2 WHAT: until it has printed that in this phase, or is no more
until_l2() {
    until grep -q "$1" /tmp/l2.out || ! kill -0 $l2 2> /dev/null; do
        sleep 0.2
    done
}
# tell_l2 COMMAND...: to its QEMU, which may be no more
tell_l2() {
    for command; do echo "$command"; done 1<> /tmp/monitor
}
# ask_l2 COMMAND ANSWER: until its QEMU has said that
ask_l2() {
    until grep -qs "$2" /tmp/monitor.log || ! kill -0 $l2 2> /dev/null; do
        tell_l2 "$1"; sleep 0.2
    done
}
# save_l2 FILE: migrate it to a file, and end its QEMU
save_l2() {
    tell_l2 "migrate -d file:$1"
    ask_l2 'info migrate' 'tatus:[[:space:]]*completed'
    tell_l2 quit
    wait $l2
    mv /tmp/monitor.log /tmp/monitor.log.old
}
# arrive_l2: wait until it has been loaded as it was saved, stopped; let it run
arrive_l2() {
    ask_l2 'info status' 'status: paused[^ ]*$'
    tell_l2 cont
}
"""

# In either guest: a kernel that finds that it spends too much time on samples
# stops a counter until its next tick, and those of KVM's guests alike.  In this
# order, as the rate is fixed once the limit of time is off.
UNTHROTTLED = ['echo 100000000 > /proc/sys/kernel/perf_event_max_sample_rate',
               'echo 0 > /proc/sys/kernel/perf_cpu_time_max_percent']


def boot(options, script, adds=()):
    """What is printed, as (LEVEL, WHAT, [VALUE...]); and all of the output."""
    command = [ROOT / 'scripts' / 'guest-run', '--guest', 'nested',
               '--memory', '2G', '--timeout', str(SECONDS), *options]
    for source, path in adds:
        command += ['--add', f'{source}:{path}']
    guest = subprocess.run([*command, '-'], input='\n'.join([START, *script]),
                           capture_output=True, text=True)
    lines = (re.match(r'@ (l[12]) (\S+) ?(.*)', line)
             for line in guest.stdout.splitlines())
    return ([(line[1], line[2], line[3].split()) for line in lines if line],
            guest.stdout + guest.stderr)


def programs(*names):
    """To be added for the second guest, and for the first."""
    return [(harness.PROGRAMS / name, f'/l2/files/usr/bin/{name}')
            for name in sorted(set(names))]


def stat(level, what, program, events):
    return (f"perf stat -x , -o /tmp/o -e '{events}' {program}; "
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


def differs(got, want):
    return None if got == want else f'{got}, not {want}'
