# SPDX-License-Identifier: GPL-2.0-or-later
"""Cycles that follow the clock, seen from outside: they neither jump with it
nor pass in CPUs that sleep."""

import time

from harness import require, require_equal, scenario_of
from machines import CLOCK, FREQUENCY
from test_lifecycle import adds, go_back, save_machine


def count_cycles(monitor):
    """From outside, for a profile that is not looked at."""
    monitor.command('object-add', **{
        'qom-type': 'pmu-profile', 'id': 'p0', 'event': 'cycles',
        'period': 10 ** 12, 'file': '/dev/null'})


def cycles(monitor):
    """What has been counted, by CPU."""
    return [cpu['observers'][0]['count']
            for cpu in monitor.command('query-pmu')]


def cycles_since(began):
    """The most that can have passed, as guests' time is the host's."""
    return (time.monotonic_ns() - began) * FREQUENCY // 10 ** 9


# The CPU does not sleep in between, where time does not matter.
WORK_TWICE = '''
. /tests/guest.sh
(while :; do :; done) &
wait_for_test
# Longer than what is done in the time to which the clock goes back.
for _ in 1 2 3 4 5; do
    loop
done
echo @@@ worked
wait_for_test
loop
echo @@@ worked
'''


@scenario_of(CLOCK)
def clock_goes_back(start, directory, machine):
    """When an earlier state is loaded, cycles go on from where they were."""
    guest = start(machine, WORK_TWICE, ['loop'], adds(), monitored=True)
    monitor = guest.monitor
    guest.lines_until('@@@ ready')
    save_machine(monitor, directory / 'image')
    count_cycles(monitor)
    guest.go()
    guest.lines_until('@@@ worked')
    monitor.command('stop')
    before, = cycles(monitor)
    began = time.monotonic_ns()
    go_back(monitor)
    require_equal(cycles(monitor), [before], 'cycles of what was loaded')
    monitor.command('cont')
    guest.go()
    guest.lines_until('@@@ worked')
    monitor.command('stop')
    more = cycles(monitor)[0] - before
    most = cycles_since(began)
    require(0 < more < most, f'{more} cycles where {most} could be')
    monitor.command('cont')
    guest.finish()


START_OTHER_CPU = '''
. /tests/guest.sh
wait_for_test
cat /proc/uptime
echo 1 > /sys/devices/system/cpu/cpu1/online
wait_for_test
'''
SLEEPS = CLOCK.variant('clock smp', smp=2, append='maxcpus=1')


@scenario_of(SLEEPS)
def cycles_of_sleeping_cpu(start, directory, machine):
    """None pass in a CPU that nobody has started since it was reset; firmware
    may have, for a moment."""
    guest = start(machine, START_OTHER_CPU, [], adds(), monitored=True,
                  extra=['-S'])
    monitor = guest.monitor
    count_cycles(monitor)
    monitor.command('cont')
    guest.lines_until('@@@ ready')
    before = cycles(monitor)[1]
    began = time.monotonic_ns()
    guest.go()
    slept = float(guest.lines_until(r'^[0-9.]+ [0-9.]+$')[-1].split()[0])
    guest.lines_until('@@@ ready')
    monitor.command('stop')
    more = cycles(monitor)[1] - before
    most = cycles_since(began)
    require(0 < more < most,
            f'{more} cycles after {slept} s of sleep, where {most} could be')
    monitor.command('cont')
    guest.go()
    guest.rest()
