# SPDX-License-Identifier: GPL-2.0-or-later
"""A part of a program is counted, and the rest is not."""

import json
import os
import re
import subprocess

import pytest

from installed import ARCH, KNOWN, on_x86

# A loop, what it changes, and how many instructions each turn has
LOOP, CLOBBERED, INSNS = {
    'x86_64': ('nop\\n1: dec %0\\n jnz 1b', '"cc"', 2),
    'ppc64': ('mtctr %0\\n1: bdnz 1b', '"ctr"', 1)}[ARCH]
REGION = '''
#include <vpmu-perf.h>

__attribute__((noinline)) static void work(long n)
{
    asm volatile("LOOP" : "+r" (n) : : CLOBBERED);
}

__attribute__((noinline)) static void prepare(void)
{
    work(100000);
}

int main(int argc, char **argv)
{
    prepare();
    vpmu_perf_start();
    work(1000 * argc);
    vpmu_perf_stop();
    prepare();
    return 0;
}
'''.replace('LOOP', LOOP).replace('CLOBBERED', CLOBBERED)


@pytest.fixture(name='program', scope='module')
def _program(place):
    return place.compile('region', REGION, f'-I{place.prefix}/include')


def run(place, *words):
    status, out, err = place.run('--arch', ARCH, '--region', *words)
    assert status == 0, err
    return out.decode(), err


def count(place, *command):
    _, err = run(place, 'stat', '-x,', '-e', 'instructions:u', *command)
    return int(re.search(r'^(\d+),,instructions:u,', err, re.M)[1])


def test_perf_counts_the_region(place, program):
    one, two = count(place, program), count(place, program, 'x')
    # What the calls themselves execute is the same in both.
    assert two - one == 1000 * INSNS and 1000 * INSNS < one < 4000


def test_other_commands_count_the_region(place, program):
    path = place.work / 'regions.json'
    run(place, 'compare', '--baseline', path, '--update', '--calls',
        'work,prepare', '--', program)
    entry = json.loads(path.read_text())['programs'][str(program)]
    assert 1000 * INSNS < entry['counts']['instructions:u'] < 4000
    assert entry['counts']['calls:work'] == 1
    assert entry['counts']['calls:prepare'] == 0
    assert entry['depends']['region'] is True


@on_x86
def test_perf_samples_the_region(place, program):
    run(place, '--write', 'record', '-e', 'instructions:u', '-c', '100',
        '-o', 'region.data', program, 'x', 'x')
    status, out, _ = place.run('script', '-i', 'region.data', '-F', 'ip,sym')
    found = out.decode().split()
    assert status == 0 and 60 <= found.count('work') <= 61
    assert 'prepare' not in found


@on_x86
def test_several_parts_and_processes_add_up(place, program):
    """The second begins when the first has stopped."""
    assert count(place, 'sh', '-c', f"'{program}'; '{program}'") == \
        2 * count(place, program)


@on_x86
def test_program_without_regions_counts_nothing(place):
    program = place.assemble('known', KNOWN.replace('$7, %edi', '$0, %edi'))
    _, err = run(place, 'stat', '-x,', '-e', 'instructions:u', program)
    assert err.count('<not counted>') == 1 or '\n0,,instructions:u' in err


@on_x86
def test_region_needs_a_program_and_no_other_start(place, program):
    assert subprocess.run([program], check=False).returncode == 0
    for words, said in [(['run', program], '--region is for programs'),
                        (['report'], '--region is for programs'),
                        (['stat', '-D', '5', program], 'says when to count')]:
        status, _, err = place.run('--region', *words)
        assert status == 125 and said in err


# Tells perf by its own --control
CONTROL = '''
import sys
control, answers = open(sys.argv[1], 'w'), open(sys.argv[2])
for _ in range(int(sys.argv[3])):
    for word in 'enable', 'disable':
        print(word, file=control, flush=True)
        assert 'ack' in answers.readline()
'''


@on_x86
def test_perf_is_told_to_count_by_pipes(place):
    for name in ('control', 'answers'):
        os.mkfifo(place.work / name)
        place.give(place.work / name)
    counts = []
    for times in (1, 2, 3):
        status, _, err = place.run(
            'stat', '-x,', '-D', '-1', '-e', 'instructions:u',
            '--control', 'fifo:control,answers', '/usr/bin/python3', '-c',
            CONTROL, 'control', 'answers', times)
        assert status == 0, err
        counts.append(int(re.search(r'^(\d+),', err, re.M)[1]))
    # Python's start is not counted, and is far more.
    assert 0 < counts[0] < counts[1] < counts[2] < 100000
