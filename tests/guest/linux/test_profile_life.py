# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles of machines that do not stay as they are: CPUs come and go, the
machine goes back to its past or moves, and the guest notices nothing."""

import re

import pytest

from harness import ARCH, expectations, on, require, require_equal, symbols
from machines import SINGLE, SMP, UP, UP_OF_X86
from test_lifecycle import go_back, save_machine
from test_profile import (TELL, Profile, build_id_of, modules, text_of,
                          values_of)

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
wait_for_test
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


@on(SMP, SINGLE)
def test_profile_of_unplugged_cpu(start, tmp_path, machine):
    """A CPU is unplugged while it executes a program: the profile has all that
    it has executed, and goes on with the other one."""
    machine = machine.variant(machine.name, smp='1,sockets=2,maxcpus=2')
    guest = start(machine, UNPLUGGED, extra=['-S'], boots=True)
    monitor = guest.monitor
    # Linux on x86 has no CPU that was not there when it was booted.
    cpu, = absent_cpus(monitor)
    monitor.command('device_add', driver=cpu['type'], id='more',
                    **cpu['props'])
    monitor.command('cont')
    guest.lines_until('@@@ ready')
    profile = Profile(monitor, tmp_path, modes='u', period=PERIOD)
    guest.go()
    guest.lines_until('@@@ begin')
    enough = samples_taken(monitor, 'p0') + 100

    def has_enough():
        guest.expect_silence('the program ended before the CPU is gone')
        return samples_taken(monitor, 'p0') > enough

    monitor.wait('sampling', has_enough)
    monitor.command('device_del', id='more')
    monitor.wait('unplugging', lambda: absent_cpus(monitor))
    guest.expect_silence('the program ended before the CPU was gone')
    guest.lines_until('@@@ left')
    # It begins again with the CPUs that are left.
    for enabled in False, True:
        monitor.command('qom-set', path='/objects/p0', property='enabled',
                        value=enabled)
    profile.end()
    guest.finish()
    require_equal(values_of(guest.log, 'left'), ['0'], 'CPUs that are left')
    cpus = longest_run_by_cpu(profile, 'long')
    require_equal(sorted(set(cpus)), [0, 1], 'CPUs of the program')
    require_equal(cpus, sorted(cpus, reverse=True), 'CPUs, one after the other')
    # Each of the two counters was somewhere in its period when it began.
    few = expectations('long')['instructions'] // PERIOD
    require(few - 1 <= len(cpus) <= few + 2,
            f'{len(cpus)} samples, not {few}')


#
# A guest that goes back to another kernel
#

# Says where the kernel is, once QEMU knows, and lets it do something.
KERNEL = f'''
. /tests/guest.sh
{TELL if ARCH == 'x86_64' else ':'}
echo "@@@ notes $(od -An -v -tx1 /sys/kernel/notes | tr -d ' \\n')"
echo "@@@ text $(grep -w _stext /proc/kallsyms)"
wait_for_test
syscalls
wait_for_test
'''


def start_kernel(start, directory, machine):
    extra = ['-device', 'vmcoreinfo'] if ARCH == 'x86_64' else []
    return start(machine, KERNEL, adds=modules(directory), extra=extra,
                 boots=True)


def boot_again(guest):
    """What the guest says then."""
    guest.monitor.command('set-action', reboot='reset')
    guest.monitor.command('system_reset')
    return guest.lines_until('@@@ ready')


def execute_syscalls(guest):
    guest.go()
    guest.lines_until('@@@ ready')


def why_stopped(monitor):
    """The reasons of profiles that have ended by themselves."""
    monitor.command('query-status')
    events = [event['data'] for event in monitor.events
              if event['event'] == 'PMU_PROFILE_STOPPED']
    monitor.events.clear()
    return {event['id']: event['reason'] for event in events}


def kernels_of(profile):
    """Where it says that kernels are."""
    return {int(start, 16) for start in re.findall(
        r'\[(0x[0-9a-f]+)\(.*\[kernel\.kallsyms\]_stext',
        profile.script('ip', '--show-mmap-events'))}


@pytest.mark.arch('x86_64')
@on(UP_OF_X86 and SMP, more=(SMP,))
def test_profile_goes_back_to_other_kernel(start, tmp_path, machine):
    """A profile has one kernel: it ends when a snapshot is loaded that has it
    elsewhere, and goes on when one is loaded that has it there."""
    guest = start_kernel(start, tmp_path, machine)
    monitor = guest.monitor
    past = text_of(guest.lines_until('@@@ ready'))
    save_machine(monitor, tmp_path / 'image')
    # Linux chooses a place each time, among some hundreds.
    now = past
    while now == past:
        now = text_of(boot_again(guest))

    other = Profile(monitor, tmp_path, 'other', modes='k')
    execute_syscalls(guest)
    go_back(monitor)
    require_equal(why_stopped(monitor), {'other': 'snapshot-loaded'},
                  'what has ended')
    taken = samples_taken(monitor, 'other')

    same = Profile(monitor, tmp_path, 'same', modes='k')
    execute_syscalls(guest)
    go_back(monitor)
    execute_syscalls(guest)
    require_equal(why_stopped(monitor), {}, 'what has ended')
    require_equal(samples_taken(monitor, 'other'), taken,
                  'samples of the one that has ended')
    require_equal(kernels_of(other.end()), {now}, 'the kernel before')
    require_equal(kernels_of(same.end()), {past}, 'the kernel behind')
    guest.go()
    guest.rest()


@on(more=(UP,))
def test_profile_of_given_kernel_ends(start, tmp_path, machine):
    """Where the user says which kernel runs, it may be another one after a
    reset, and in another snapshot."""
    guest = start_kernel(start, tmp_path, machine)
    monitor = guest.monitor
    lines = guest.lines_until('@@@ ready')
    given = {'kernel-text': text_of(lines), 'build-id': build_id_of(lines)}
    save_machine(monitor, tmp_path / 'image')

    before = Profile(monitor, tmp_path, 'before', **given)
    execute_syscalls(guest)
    monitor.command('stop')
    monitor.command('cont')
    require_equal(why_stopped(monitor), {}, 'what has ended')
    go_back(monitor)
    require_equal(why_stopped(monitor), {'before': 'snapshot-loaded'},
                  'what has ended')
    behind = Profile(monitor, tmp_path, 'behind', **given)
    execute_syscalls(guest)
    boot_again(guest)
    require_equal(why_stopped(monitor), {'behind': 'guest-reset'},
                  'what has ended')
    for profile in before, behind:
        require(profile.end().script('ip'), 'the profile is empty')
    execute_syscalls(guest)
    guest.go()
    guest.rest()


#
# Branches of a past
#

BRANCHES = '''
. /tests/guest.sh
wait_for_test
loop
wait_for_test
echo @@@ here
wait_for_test
'''


def first_stack(profile):
    """How many branches the first sample has."""
    profile.monitor.command('object-del', id=profile.name)
    first = profile.script('brstack').strip().splitlines()[0]
    return len(re.findall('0x[0-9a-f]+/0x[0-9a-f]+/', first))


@on(UP)
def test_branches_of_past_are_forgotten(start, tmp_path, machine):
    """What was taken before a snapshot is loaded leads nowhere behind that."""
    guest = start(machine, BRANCHES)
    monitor = guest.monitor
    guest.lines_until('@@@ ready')
    save_machine(monitor, tmp_path / 'image')
    properties = {'event': 'branches', 'modes': 'u', 'branch-stack': True}
    # Has them recorded all the time, and takes no sample.
    always = Profile(monitor, tmp_path, 'always', period=1 << 40, **properties)
    guest.go()
    guest.lines_until('@@@ ready')
    going_on = Profile(monitor, tmp_path, 'going-on', period=5, **properties)
    guest.go()
    guest.lines_until('@@@ ready')
    require_equal(first_stack(going_on), 32, 'branches of who goes on')
    # It does not go on before the profile begins: when it was saved, it may
    # have been on its way to where it waits.
    monitor.command('stop')
    go_back(monitor)
    # Only its first sample is looked at.
    back = Profile(monitor, tmp_path, 'back', **{'max-size': 100000}, period=5,
                   **properties)
    monitor.command('cont')
    guest.go()
    guest.lines_until('@@@ ready')
    # The period's, and what comes between by interrupts.
    require(first_stack(back) < 20, 'there are branches of the past')
    always.end()
    guest.go()
    guest.finish()
