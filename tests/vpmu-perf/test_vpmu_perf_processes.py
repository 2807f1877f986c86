# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions and lines, also of several processes, which share addresses."""

import json

import pytest

from installed import ARCH, on_x86, usual_first

# Two programs have different code at the same addresses.
WORKER = '''
#include <stdlib.h>
#ifdef PAD
int pad(int n)
{
    return n + 1;
}
#endif

__attribute__((noinline)) void NAME(void)
{
    free(malloc(1));
}

int main(void)
{
    int i;

    for (i = 0; i < TIMES; i++) {
        NAME();
    }
    return 0;
}
'''

# Executes other programs, one after the other.
STARTER = '''
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int i;

    for (i = 1; i < argc; i++) {
        if (!fork()) {
            execl(argv[i], argv[i], NULL);
            _exit(1);
        }
        wait(NULL);
    }
    return 0;
}
'''


@pytest.fixture(name='command', scope='module')
def _command(place):
    one = place.compile('one', WORKER, '-DNAME=one', '-DTIMES=7',
                        '-fno-builtin')
    # One library more, so that the C library is elsewhere.
    two = place.compile('two', WORKER, '-DNAME=two', '-DTIMES=30', '-DPAD',
                        '-fno-builtin', '-Wl,--no-as-needed', '-lm')
    return [place.compile('starter', STARTER), one, two, one]


def test_calls_are_those_of_each_process(place, command):
    status, _, err = place.run(
        '--arch', ARCH, 'stat', '-x,', '-e', 'instructions:u',
        '--calls', 'one,two,malloc,free', *command)
    assert status == 0
    assert err.endswith('\n14,,calls:one\n30,,calls:two\n44,,calls:malloc\n'
                        '44,,calls:free\n')


def test_lines_of_a_function(place, command):
    """Calls from its own file enter Power's functions after their beginning."""
    more = place.compile('more', WORKER, '-DNAME=one', '-DTIMES=9',
                         '-fno-builtin')
    status, out, err = place.run('--arch', ARCH, 'diff', '--json', '-',
                                 command[1], more)
    assert status == 0, err
    row, = [row for row in json.loads(out)['functions']
            if row['function'] == 'one']
    assert (row['calls-before'], row['calls-now']) == (7, 9)
    assert 'free(malloc(1));' in [line['text'] for line in row['lines']]


# On Power, what a lock is tried again is a difference.
@on_x86
@pytest.mark.parametrize('options', usual_first([[], ['--cpus', '2']]))
def test_processes_differ_in_nothing_from_themselves(place, command, options):
    status, out, err = place.run(
        '--arch', ARCH, *options, 'diff', '--json', '-',
        command[0], command[0], '--', *command[1:])
    assert status == 0, err
    assert not json.loads(out)['functions']
