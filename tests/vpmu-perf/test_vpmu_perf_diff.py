# SPDX-License-Identifier: GPL-2.0-or-later
"""What two builds execute, and how often functions are entered."""

import json
import re
import shutil
import subprocess

import pytest

from installed import drawn, on_x86

pytestmark = on_x86

OLD = '''
#include <stdio.h>
#include <stdlib.h>

static __attribute__((noinline)) int twice(int n)
{
    return n * 2;
}

int main(int argc, char **argv)
{
    int i, sum = 0;

    for (i = 0; i < 100; i++) {
        char *text = malloc(i + 1);

        text[0] = i;
        sum += twice(text[0]);
        free(text);
    }
    printf("%d\\n", sum);
    return argc > 2;
}
'''
# A line is added, and one executes more.
NEW = OLD.replace('    int i, sum = 0;\n', '''    int i, sum = 0;

    asm volatile("nop; nop; nop");
''').replace('return n * 2;', 'asm volatile("nop"); return n * 2;')


@pytest.fixture(name='builds')
def _builds(place):
    options = ('-fno-builtin', '-O1')
    return (place.compile('old', OLD, *options),
            place.compile('new', NEW, *options))


def test_difference_is_exact(place, builds):
    status, out, err = place.run('diff', '--json', '-', *builds)
    assert status == 0, err
    found = json.loads(out)
    assert found['change'] == 103 == found['now'] - found['before']
    rows = {row['function']: row for row in found['functions']}
    assert set(rows) == {'twice', 'main'}
    assert rows['twice']['change'] == 100
    assert rows['twice']['calls-before'] == rows['twice']['calls-now'] == 100
    assert rows['main']['change'] == 3
    # Nothing but the lines that were changed, although all others have moved.
    lines = [(line['change'], line['text']) for row in found['functions']
             for line in row['lines']]
    assert all('nop' in text for change, text in lines if change > 0)


def test_same_build_has_no_difference(place, builds):
    """Under another name, which is longer."""
    other = place.top / 'programs' / 'another-name'
    shutil.copy(builds[0], other)
    status, out, err = place.run('diff', builds[0], other, '--', 'word')
    assert status == 0, err
    assert re.search(r'^ +\+0 +([\d,]+) +\1  all$', out.decode(), re.M)
    assert len(out.splitlines()) == 2


@pytest.mark.parametrize('words, status, said', [
    (['/bin/true'], 2, 'the following arguments are required'),
    (['/bin/true', '/nowhere'], 3, '/nowhere ended with status 127'),
    (['/bin/true', '/bin/false'], 3, '/bin/false ended with status 1'),
])
def test_failures_are_named(place, words, status, said):
    ended, _, err = place.run('diff', *words)
    assert ended == status and said in err


def find_browser():
    return shutil.which('chromium-headless-shell') or shutil.which('chromium')


def draw(path):
    """The page as a browser has drawn it."""
    return subprocess.run(
        [find_browser(), '--headless', '--no-sandbox', '--disable-gpu',
         '--virtual-time-budget=4000', '--dump-dom', f'file://{path}'],
        check=True, capture_output=True, text=True, timeout=120).stdout


@drawn
@pytest.mark.more
def test_page_is_drawn_by_a_browser(place, builds):
    path = place.work / 'difference.html'
    status, _, err = place.run('--write', 'diff', '--html', path, *builds)
    assert status == 0, err
    text = path.read_text()
    assert not re.search(r'<(script|link|img)[^>]*(src|href)=', text)
    if not find_browser():
        pytest.skip('there is no Chromium')
    drawn = draw(path)
    for name in ('[program]', 'twice', 'libc.so.6'):
        assert re.search(rf'<title>{re.escape(name)}: ', drawn), name


def test_calls_are_counted_and_change_nothing(place, builds):
    program = builds[0]
    counted = place.count(program, status=0)
    status, _, err = place.run('stat', '-x,', '-e', 'instructions:u',
                               '--calls', 'malloc,free,twice,main', program)
    assert status == 0
    assert f'{counted},,instructions:u' in err
    assert '\n100,,calls:free\n100,,calls:twice\n1,,calls:main\n' in err
    # The C library's own, of its buffer for standard output.
    assert '\n101,,calls:malloc\n' in err


def test_calls_are_written_as_json_and_to_a_file(place, builds):
    path = place.work / 'counts'
    status, _, err = place.run('stat', '-j', '-e', 'instructions:u', '-o', path,
                               '--calls=twice', '--', builds[0], 'one', 'two')
    assert status == 1 and err == ''
    last = json.loads(path.read_text().splitlines()[-1])
    assert (last['event'], last['counter-value']) == ('calls:twice', '100')


def test_calls_of_the_program_are_its_own(place):
    """An option of the program is not taken."""
    status, out, _ = place.run('stat', '-e', 'instructions:u', 'echo',
                               '--calls', 'x')
    assert status == 0 and out == b'--calls x\n'


def test_calls_are_compared(place, builds):
    path = place.work / 'calls.json'
    status, _, err = place.run('compare', '--baseline', path, '--update',
                               '--calls', 'malloc', '--', builds[0])
    assert status == 0, err
    counts = json.loads(path.read_text())['programs'][str(builds[0])]['counts']
    assert counts['calls:malloc'] == 101
    place.run('compare', '--baseline', path, '--update', '--', builds[0])
    again = json.loads(path.read_text())['programs'][str(builds[0])]['counts']
    assert again['instructions:u'] == counts['instructions:u']


@pytest.mark.parametrize('words, said', [
    (['--calls', 'none', '--', '/bin/true'], 'have a function none'),
    (['-e', 'branches:u', '--calls', 'main', '/bin/true'],
     'add instructions:u to the events'),
    (['--calls'], 'names of functions are missing'),
])
def test_calls_that_cannot_be_counted_are_refused(place, words, said):
    status, _, err = place.run('stat', *words)
    assert status and said in err


@pytest.mark.more
def test_sum_is_the_count_for_all_kinds_of_code(place):
    """Page faults, REP, several processes: diff itself compares the sums."""
    script = 'x=$(head -c 200000 /dev/zero | tr "\\0" a); ls / | cat; (exit 0)'
    shell = shutil.which('dash') or '/bin/sh'
    status, _, err = place.run('diff', shell, shell, '--', '-c', script)
    assert status == 0, err


# Instructions that fail, of two bytes each.
FAILING = '''
#define _GNU_SOURCE
#include <signal.h>
#include <ucontext.h>

static void skip(int number, siginfo_t *info, void *context)
{
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = skip, .sa_flags = SA_SIGINFO };

    sigaction(SIGILL, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    asm volatile("ud2");
    asm volatile("int $5");
    asm volatile("movb (%0), %%al" : : "r" (0L) : "rax");
    return 0;
}
'''


def test_instructions_that_fail_are_not_counted(place):
    """diff itself compares the sums; none of these has executed."""
    program = place.compile('failing', FAILING)
    status, out, err = place.run('diff', '--calls', 'skip', program, program)
    assert status == 0, err
    assert re.search(r'^ +\+0 +3 +3  calls of skip$', out.decode(), re.M)
