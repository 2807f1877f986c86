# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles of machines that do not stay as they are: CPUs come and go, the
machine goes back to its past or moves, and the guest notices nothing."""

import re

from harness import expectations, require, require_equal, scenario_of, symbols
from machines import SMP
from test_lifecycle import adds
from test_profile import Profile, values_of

#
# A CPU that goes
#

PERIOD = 100003

# No other program runs while `long` does, so that all samples of user mode are
# its own, wherever it is.
UNPLUGGED = '''
. /tests/guest.sh
wait_for_test
echo @@@ begin
taskset 2 long
echo "@@@ left $(cat /sys/devices/system/cpu/online)"
'''


def absent_cpus(monitor):
    return [cpu for cpu in monitor.command('query-hotpluggable-cpus')
            if 'qom-path' not in cpu]


def samples_taken(monitor, name):
    return monitor.command('qom-get', path=f'/objects/{name}',
                           property='samples')


def longest_run_by_cpu(profile, program):
    """The CPUs of samples in a row that are of one process, and a program."""
    names = symbols(program)
    runs = [[]]
    of = None
    for pid, cpu, ip in re.findall(r'(\d+) +\[(\d+)\] +([0-9a-f]+)',
                                   profile.script('pid,cpu,ip')):
        if not names['_start'] <= int(ip, 16) < names['_end']:
            of = None
        elif pid == of:
            runs[-1].append(int(cpu))
        else:
            of = pid
            runs.append([int(cpu)])
    return max(runs, key=len)


@scenario_of(SMP)
def profile_of_unplugged_cpu(start, directory, machine):
    """A CPU is unplugged while it executes a program: the profile has all that
    it has executed, and goes on with the other one."""
    machine = machine.variant(machine.name, smp='1,sockets=2,maxcpus=2')
    guest = start(machine, UNPLUGGED, ['long'], adds(), monitored=True,
                  extra=['-S'])
    monitor = guest.monitor
    # Linux on x86 has no CPU that was not there when it was booted.
    cpu, = absent_cpus(monitor)
    monitor.command('device_add', driver=cpu['type'], id='more',
                    **cpu['props'])
    monitor.command('cont')
    guest.lines_until('@@@ ready')
    profile = Profile(monitor, directory, modes='u', period=PERIOD)
    guest.go()
    guest.lines_until('@@@ begin')
    enough = samples_taken(monitor, 'p0') + 100
    monitor.wait('sampling',
                 lambda: samples_taken(monitor, 'p0') > enough)
    monitor.command('device_del', id='more')
    monitor.wait('unplugging', lambda: absent_cpus(monitor))
    require(guest.lines.empty(), 'the program ended before the CPU was gone')
    guest.lines_until('@@@ left')
    profile.end()
    guest.rest()
    require_equal(values_of(guest.log, 'left'), ['0'], 'CPUs that are left')
    cpus = longest_run_by_cpu(profile, 'long')
    require_equal(sorted(set(cpus)), [0, 1], 'CPUs of the program')
    require_equal(cpus, sorted(cpus, reverse=True), 'CPUs, one after the other')
    # Each of the two counters was somewhere in its period when it began.
    few = expectations('long')['instructions'] // PERIOD
    require(few - 1 <= len(cpus) <= few + 2,
            f'{len(cpus)} samples, not {few}')
