# SPDX-License-Identifier: GPL-2.0-or-later
"""Counting goes on over migration."""

import time

from harness import require, scenario
from machines import SKYLAKE, UP
from test_counting import check_counts

COUNT_LONG = '''
. /tests/guest.sh
echo @@@ begin
count instructions:u,branches:u,r01c4:u long
echo @@@ end
'''


def adds():
    """The shell functions that scripts use."""
    from harness import HERE
    return [(HERE / 'guest.sh', '/tests/guest.sh')]


def counted(lines):
    """What was printed when the program had ended."""
    return '\n'.join(line for line in lines if line.count(',') >= 4)


def leave(guest):
    """End a guest in its middle, which guest-run has something to say of."""
    guest.close()
    guest.errors_path.write_text('')


@scenario
def migration(start, directory):
    """A program counts the same though its machine moves in its middle."""
    state = directory / 'state'
    source = start(UP, COUNT_LONG, ['long'], adds(), monitored=True)
    source.lines_until('@@@ begin')
    time.sleep(0.5)
    monitor = source.monitor
    monitor.command('stop')
    monitor.command('migrate', uri=f'file:{state}')
    monitor.wait('migration', lambda: monitor.command('query-migrate')
                 .get('status') == 'completed')
    leave(source)
    require(not any(line.count(',') >= 4 for line in source.log),
            'the program had ended before its machine moved')

    target = start(UP, COUNT_LONG, ['long'], adds(), monitored=True,
                   extra=['-incoming', f'file:{state}'], verbose=True)
    target.monitor.wait('loading', lambda: target.monitor.command(
        'query-migrate').get('status') == 'completed')
    target.monitor.command('cont')
    check_counts(UP, 'long', counted(target.rest()))


@scenario
def migration_refused(start, directory):
    """A machine whose PMU is of another shape says so, and does not start."""
    state = directory / 'state'
    source = start(UP, COUNT_LONG, ['long'], adds(), monitored=True)
    source.lines_until('@@@ begin')
    source.monitor.command('stop')
    source.monitor.command('migrate', uri=f'file:{state}')
    source.monitor.wait('migration', lambda: source.monitor.command(
        'query-migrate').get('status') == 'completed')
    leave(source)

    target = start(UP.variant('8', cpu=f'{SKYLAKE},pmu-gp-counters=8'),
                   COUNT_LONG, ['long'], adds(),
                   extra=['-incoming', f'file:{state}'], verbose=True)
    while target.line() is not None:
        pass
    target.process.wait()
    errors = target.errors()
    require('pmu-gp-counters' in errors, f'QEMU only said: {errors}')
    # What QEMU said is what was asked for.
    target.errors_path.write_text('')
