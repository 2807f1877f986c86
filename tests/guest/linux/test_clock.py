# SPDX-License-Identifier: GPL-2.0-or-later
"""Cycles that follow the clock, seen from outside: they neither jump with it
nor pass in CPUs that sleep."""

import time

import pytest

from harness import ARCH, in_time, on, require, require_equal
from machines import CLOCK, FREQUENCY, UP_OF_X86
from test_lifecycle import go_back, save_machine

TWO = CLOCK.variant('clock two', smp=2)


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
WORK = '''
. /tests/guest.sh
(while :; do :; done) &
wait_for_test
# What it had begun to say ends here.
echo
cat /proc/uptime
loop
cat /proc/uptime
# Not again, in the time to which the clock goes back.
for _ in 1 2 3 4 5; do
    loop
done
echo @@@ worked
wait_for_test
'''


def uptime(guest):
    """What the guest says of it, in s."""
    return float(guest.lines_until(r'^[0-9.]+ [0-9.]+$')[-1].split()[0])


@on(UP_OF_X86 and CLOCK, more=(CLOCK,))
def test_clock_goes_back(start, tmp_path, machine):
    """When an earlier state is loaded, cycles go on from where they were."""
    guest = start(machine, WORK)
    monitor = guest.monitor
    guest.lines_until('@@@ ready')
    save_machine(monitor, tmp_path / 'image')
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
    least = -uptime(guest)
    # It is said in hundredths of a second.
    least = (least + uptime(guest) - 0.01) * FREQUENCY
    monitor.command('stop')
    more = cycles(monitor)[0] - before
    most = cycles_since(began)
    require(least < more < most,
            f'{more} cycles where {least:.0f} to {most} could be')
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


@on(SLEEPS)
def test_cycles_of_sleeping_cpu(start, machine):
    """None pass in a CPU that nobody has started since it was reset; firmware
    may have, for a moment."""
    guest = start(machine, START_OTHER_CPU, boots=True, extra=['-S'])
    monitor = guest.monitor
    count_cycles(monitor)
    monitor.command('cont')
    guest.lines_until('@@@ ready')
    before = cycles(monitor)[1]
    began = time.monotonic_ns()
    guest.go()
    slept = uptime(guest)
    guest.lines_until('@@@ ready')
    monitor.command('stop')
    more = cycles(monitor)[1] - before
    most = cycles_since(began)
    require(0 < more < most,
            f'{more} cycles after {slept} s of sleep, where {most} could be')
    monitor.command('cont')
    guest.go()
    guest.rest()


def wait_for_event(monitor, name):
    while monitor.event()['event'] != name:
        pass


def wait_for_sleep(monitor):
    """Until CPU 0 sleeps, and a second more, which is much beside what comes
    after it."""
    looks = [-1]

    def has_stood_still():
        looks.append(cycles(monitor)[0])
        return looks[-1] == looks[-2]

    monitor.wait('the last cycle', has_stood_still)
    time.sleep(1)
    return cycles(monitor)[0]


def check_first_cycles(monitor, before, began):
    """The first ones behind a sleep, up to now."""
    monitor.wait('a cycle', lambda: cycles(monitor)[0] != before)
    monitor.command('stop')
    more = cycles(monitor)[0] - before
    most = cycles_since(began)
    require(more < most, f'{more} cycles where {most} could be')


# The boot CPU, whose sleep only a reset ends.
FALL_ASLEEP = {
    'x86_64': 'halt -f',
    'ppc64': 'echo 0 > /sys/devices/system/cpu/cpu0/online',
}
RESET = f'''
. /tests/guest.sh
wait_for_test
{FALL_ASLEEP[ARCH]}
wait_for_test
'''


@on(UP_OF_X86 and TWO, more=(TWO,))
def test_cycles_of_reset_cpu(start, machine):
    """The time that a CPU slept before a reset is none of its cycles, whether
    the machine runs when it is reset or not."""
    guest = start(machine, RESET, boots=True)
    monitor = guest.monitor
    monitor.command('set-action', reboot='reset')
    guest.lines_until('@@@ ready')
    count_cycles(monitor)
    for running in (True, False):
        guest.go()
        before = wait_for_sleep(monitor)
        began = time.monotonic_ns()
        if not running:
            monitor.command('stop')
        monitor.command('system_reset')
        wait_for_event(monitor, 'RESET')
        monitor.command('cont')
        check_first_cycles(monitor, before, began)
        monitor.command('cont')
        guest.lines_until('@@@ ready')
    guest.leave()


BUSY = '''
. /tests/guest.sh
(while :; do :; done) &
(while :; do :; done) &
wait_for_test
'''


@pytest.mark.arch('ppc64')
@on(UP_OF_X86 and TWO, more=(TWO,))
def test_cycles_of_cpu_that_reset_halts(start, machine):
    """It has none behind the reset.  (On x86 firmware starts all CPUs.)"""
    guest = start(machine, BUSY, boots=True)
    monitor = guest.monitor
    monitor.command('set-action', reboot='reset')
    guest.lines_until('@@@ ready')
    count_cycles(monitor)
    monitor.wait('a cycle', lambda: cycles(monitor)[1])
    began = time.monotonic_ns()
    before = cycles(monitor)[1]
    monitor.command('system_reset')
    wait_for_event(monitor, 'RESET')
    most = cycles_since(began)
    time.sleep(1)
    more = cycles(monitor)[1] - before
    in_time(cycles_since(began) < most + 2 * FREQUENCY,
            'Linux may have started the CPU')
    require(more < most, f'{more} cycles where {most} could be')
    guest.leave()


SUSPEND = '''
. /tests/guest.sh
wait_for_test
echo mem > /sys/power/state
echo @@@ woken
wait_for_test
'''


@pytest.mark.arch('x86_64')
@on(CLOCK)
def test_cycles_of_suspended_machine(start, machine):
    """None pass while a machine is suspended to RAM, even if it is stopped and
    goes on meanwhile."""
    # A kernel that QEMU has put into memory itself is there anew afterwards.
    guest = start(machine, SUSPEND, boots=True, moves=True)
    monitor = guest.monitor
    guest.lines_until('@@@ ready')
    count_cycles(monitor)
    guest.go()
    wait_for_event(monitor, 'SUSPEND')
    before = wait_for_sleep(monitor)
    for _ in range(2):
        monitor.command('stop')
        monitor.command('cont')
        require_equal(wait_for_sleep(monitor), before,
                      'cycles of a stopped sleep')
    began = time.monotonic_ns()
    monitor.command('system_wakeup')
    check_first_cycles(monitor, before, began)
    monitor.command('cont')
    guest.lines_until('@@@ woken')
    guest.finish()
