# SPDX-License-Identifier: GPL-2.0-or-later
"""What QEMU's monitor shows of counters while Linux uses them."""

from harness import expectations, on, require, require_equal
from machines import GENOA, POWER8, POWER10_BOTH, UP
from test_counting import check_counts
from test_lifecycle import count_long, counted

USER_MODES = {'user', 'problem', 'hypervisor-problem', 'guest-user',
              'smm-user', 'guest-smm-user'}


def running(monitor):
    """The counters that run, on all CPUs."""
    return [counter for cpu in monitor.command('query-pmu')
            for counter in cpu['pmu']['counters'] if counter['running']]


def of_programs(counters):
    """Those of them that count what programs execute."""
    return [counter['value'] for counter in counters
            if counter.get('event') == 'instructions'
            and set(counter['modes']) <= USER_MODES]


def see_move(monitor, guest):
    """Look until what programs have executed has grown."""
    seen = set()
    while len(seen) < 2:
        values = of_programs(running(monitor))
        seen.update([tuple(values)] if values else [])
        guest.expect_silence(f'the program ended; seen: {seen}')


def text(monitor, line):
    return monitor.command('human-monitor-command',
                           **{'command-line': line})


@on(UP, GENOA, POWER10_BOTH, more=[POWER8])
def test_monitor_shows_counters(start, machine):
    """query-pmu sees what perf stat counts, and changes nothing of it."""
    guest = start(machine, count_long(machine))
    guest.lines_until('@@@ begin')
    see_move(guest.monitor, guest)
    table = text(guest.monitor, 'info pmu')
    require(all(len(line) <= 80 for line in table.splitlines()), table)
    require('counts in:' in table or 'stopped by:' in table, table)
    check_counts(machine, 'long', counted(guest.rest()))


def instructions(monitor, target):
    """What query-stats has of them."""
    (result,) = monitor.command(
        'query-stats', target=target,
        providers=[{'provider': 'pmu', 'names': ['instructions']}])
    (stat,) = result['stats']
    return stat['value']


@on(UP, POWER10_BOTH)
def test_monitor_adds_up(start, machine):
    """query-stats has what a profile counts, whatever perf does."""
    guest = start(machine, count_long(machine) + 'wait_for_test\n')
    monitor = guest.monitor
    monitor.command('stop')
    monitor.command('object-add', id='count', period=10 ** 15, file='/dev/null',
                    **{'qom-type': 'pmu-profile'})
    require_equal(instructions(monitor, 'vm'), 0, 'instructions at first')
    monitor.command('cont')
    guest.lines_until('@@@ begin')
    before = instructions(monitor, 'vm')
    guest.lines_until('@@@ end')
    monitor.command('stop')
    after = instructions(monitor, 'vm')
    require_equal(instructions(monitor, 'vcpu'), after, 'of the only CPU')
    want = expectations('long')['instructions']
    require(before < after and after > want, f'{before}, {after}')
    monitor.command('cont')
    guest.finish()
    check_counts(machine, 'long', counted(guest.log))
