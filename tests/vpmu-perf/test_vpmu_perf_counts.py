# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts and samples that are known, or the same again."""

import contextlib
import re
import subprocess

import pytest

from installed import (ARCH, KNOWN, KNOWN_COUNT, LOOPS, busy_host, on_x86,
                       usual_first)

# Of programs in which locks are taken: on a busy host, one count of six has
# tried a lock again.
TRIES = {'x86_64': 1, 'ppc64': 10}[ARCH]

PROGRAM = r'''
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *work(void *arg)
{
    char *text = malloc(100000);
    long i;

    for (i = 0; i < 100; i++) {
        memset(text, (int)i, 100000);
        *(long *)arg += text[i * 1000];
    }
    free(text);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[4];
    long sums[4] = { 0 };
    int i, n = argc > 1 ? atoi(argv[1]) : 0;

    work(&sums[0]);
    for (i = 0; i < n; i++) {
        pthread_create(&threads[i], NULL, work, &sums[i]);
    }
    for (i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("%ld\n", sums[0] + sums[1] + sums[2] + sums[3]);
    return 3;
}
'''

# Each call of `step` executes three instructions between two branches.
BRANCHES = '''
        .globl _start
        .type _start, @function
_start: mov $100000, %ecx
1:      call step
        dec %ecx
        jnz 1b
        mov $60, %eax
        xor %edi, %edi
        syscall
        .size _start, . - _start
        .type step, @function
step:   nop
        nop
        ret
        .size step, . - step
'''


def test_count_is_known(place):
    counted = place.count(place.assemble('known', KNOWN), status=7,
                          options=('--arch', ARCH))
    assert counted == KNOWN_COUNT


def count_of(event, err):
    found = re.search(rf'^(\d+),,{event},', err, re.M)
    assert found, f'no {event} in: {err}'
    return int(found[1])


@on_x86
def test_programs_are_counted_unless_the_kernel_is_named(place):
    program = place.assemble('plain', KNOWN)
    _, _, err = place.run('stat', '-x,', program)
    assert count_of('instructions:u', err) == KNOWN_COUNT
    assert 'context-switches,' in err
    _, _, err = place.run('stat', '-x,', '-e', '{instructions,branches},'
                          'r00c0,instructions:uk,cpu/event=0xc0/', program)
    for event in 'instructions:u', 'r00c0:u', 'cpu/event=0xc0/u':
        assert count_of(event, err) == KNOWN_COUNT
    assert count_of('instructions:uk', err) > KNOWN_COUNT


# What perf is asked for and nobody counts, and how that is reported.
UNCOUNTED = 'L1-dcache-load-misses'
REPORTED = 'event 0x51, unit mask 0x01 (Skylake)'


@on_x86
def test_says_what_is_not_counted(place):
    """And only that, and whatever perf makes of it."""
    _, _, err = place.run('stat', '-e', UNCOUNTED, 'true')
    assert f'vpmu-perf: {REPORTED} is not counted and reads 0\n' in err
    _, _, err = place.run('stat', '-e', 'instructions:u,cycles:u', 'true')
    assert 'is not counted' not in err


@on_x86
def test_counts_are_no_estimates(place):
    """As long as each event has a counter, and else that is said."""
    program = place.assemble('several', KNOWN)
    for events, is_estimate in (8, False), (9, True):
        # Linux would not open the same event twice for different counters.
        listed = ','.join(f'r{umask:02x}c4:u' for umask in range(events))
        _, _, err = place.run('stat', '-x,', '-e', 'instructions:u,' + listed,
                              program)
        assert ('are estimates' in err) == is_estimate, err
        if not is_estimate:
            assert len(re.findall(r',100\.00,', err)) == events + 1, err


@on_x86
def test_says_of_what_metrics_are_made(place):
    _, _, err = place.run('stat', '-d', 'true')
    assert f'vpmu-perf: {REPORTED} is not counted' in err
    _, _, err = place.run('stat', '--topdown', 'true')
    assert '(Skylake) is not counted and reads 0\n' in err


@on_x86
@pytest.mark.parametrize('command', usual_first(['mem', 'c2c']))
def test_says_that_there_are_no_caches(place, command):
    status, _, err = place.run(command, 'record', '-o', 'made', 'true')
    assert status == 0 and 'vpmu-perf: there are no caches' in err, err


@on_x86
def test_users_trace(place):
    status, _, err = place.run('trace', '-e', 'openat', 'cat', '/dev/null')
    assert status == 0 and 'openat(' in err, err
    status, _, err = place.run('stat', '-x,', '-e', 'sched:sched_process_exec',
                               'true')
    assert err.startswith('1,,sched:sched_process_exec,'), err
    status, _, err = place.run('ftrace', 'true')
    assert status and 'the host needs no change' in err, err


def check_counts_the_same(place, program):
    """On an idle host and a busy one.

    An interrupt between lwarx and stwcx. has the C library try its lock again,
    which adds some instructions: on Power the least of several is compared.
    """
    def count():
        return place.count(program, status=3, options=('--arch', ARCH))

    idle, busy = [], []
    for _ in range(TRIES):
        idle.append(count())
        with busy_host():
            busy.append(count())
        if min(idle) == min(busy):
            return
    pytest.fail(f'{idle}, and on a busy host {busy}')


def test_static_program_is_the_same(place):
    check_counts_the_same(place, place.compile('static', PROGRAM, '-static',
                                               '-pthread'))


def test_dynamic_program_is_the_same(place):
    check_counts_the_same(place, place.compile('dynamic', PROGRAM, '-pthread'))


# Writes where its arguments are, at the stack's beginning.
STACK = r'''
#include <stdio.h>
int main(int argc, char **argv)
{
    printf("%p\n", (void *)argv);
    return 0;
}
'''


@on_x86
def test_stack_begins_at_the_same_address(place):
    program = place.compile('stack', STACK, '-static')
    found = set()
    for more in ({}, {'MORE': 'x' * 1001}, {'MORE': '', 'A': 'b', 'C': 'd'},
                 {'HOME': '/a/long/home'}, {'PERF_BUILDID_DIR': '/a/place'}):
        status, out, err = place.run('stat', program,
                                     env={**place.environment, **more})
        assert status == 0, err
        found.add(out)
    assert len(found) == 1, found


@on_x86
def test_stack_depends_on_no_name(place):
    """Without perf, the program's path and arguments are known."""
    programs = [place.compile(name, STACK, '-static')
                for name in ('stack', 'stack-by-a-longer-name')]
    found = {place.run('run', program, *words,
                       env={**place.environment, **more})[:2]
             for program in programs for words in ([], ['word'], ['a', 'b'])
             for more in ({}, {'PERF_BUILDID_DIR': '/a/place'})}
    assert len(found) == 1, found


@on_x86
def test_script_of_processes_is_the_same(place):
    # No directory into which packages may be installed meanwhile.
    script = ['sh', '-c', 'for i in 1 2 3; do ls / > /dev/null; done']
    first = place.count(*script, status=0)
    second = place.count(*script, status=0)
    assert first == second


@on_x86
def test_threads_run_on_several_cpus(place):
    status, out, err = place.run('--cpus', 2, 'stat', '-e', 'instructions:u',
                                 place.compile('threads', PROGRAM, '-pthread'),
                                 4)
    assert status == 3, err
    status, out, _ = place.run('--cpus', 2, 'stat', 'nproc')
    assert out == b'2\n'


@pytest.mark.more
@on_x86
def test_several_at_a_time_count_the_same(place):
    words = ('stat', '-x,', '-e', 'instructions:u',
             place.assemble('several', KNOWN))
    # Else one of them says that it prepares the guest, and others wait for it.
    place.run('--prepare')
    with contextlib.ExitStack() as stack:
        all_of_them = [stack.enter_context(place.started(*words))
                       for _ in range(3)]
        counts = {process.communicate()[1].split(b',')[0]
                  for process in all_of_them}
    assert counts == {b'%d' % KNOWN_COUNT}


@on_x86
def test_samples_are_known(place):
    program = place.assemble('sampled', KNOWN)
    (place.work / 'perf.data').unlink(missing_ok=True)
    status, _, err = place.run('record', '-e', 'instructions:u', '-c', 1009,
                               program, stdout=subprocess.DEVNULL)
    assert status == 7, err
    assert f'({KNOWN_COUNT // 1009} samples)' in err
    assert (place.work / 'perf.data').stat().st_size > 10000
    status, out, err = place.run('report', '--stdio')
    assert b'_start' in out, err
    # perf keeps the one before.
    place.run('record', '-e', 'instructions:u', '-c', 100003, program,
              stdout=subprocess.DEVNULL)
    assert (place.work / 'perf.data.old').exists()


@pytest.mark.more
@on_x86
def test_branches_tell_cycles_of_blocks(place):
    """Instructions per cycle and cycles, from branch records."""
    status, _, err = place.run('record', '-b', '-e', 'branches:u', '-c', 1009,
                               '-o', 'branches.data',
                               place.assemble('branches', BRANCHES))
    assert status == 0, err
    for function, line in (('step', rb'^ +1\.00 +3 .*\bret'),
                           ('_start', rb'\b1\.00 +2 .*\bjne')):
        status, out, err = place.run('annotate', '--stdio2',
                                     '-i', 'branches.data', function)
        assert status == 0, err
        assert re.search(line, out, re.M), err


@pytest.mark.parametrize('hint', {
    'x86_64': ['pause'], 'ppc64': ['or 1, 1, 1', 'or 27, 27, 27']}[ARCH])
def test_hints_that_a_program_waits(place, hint):
    """They end what QEMU executes at once, and are instructions like others."""
    program = place.assemble('hints', KNOWN.replace('\n1:', f'\n1: {hint}\n'))
    status, _, err = place.run('--arch', ARCH, 'stat', '-x,', '-e',
                               'instructions:u', program)
    assert status == 7
    assert f'{KNOWN_COUNT + LOOPS},,instructions:u,' in err
