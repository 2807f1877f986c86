# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts beside those of a file: `vpmu-perf compare`."""

import json
import re
import subprocess

import pytest

from installed import KNOWN, KNOWN_COUNT, LOOPS, on_x86

pytestmark = on_x86

# Ends with the status that is its number of arguments, less one.
ENDS = '''
        .globl _start
_start: mov (%rsp), %rdi
        dec %rdi
        mov $60, %eax
        syscall
'''
# As another build of a program: it executes a nop more.
LONGER = ENDS.replace('dec %rdi', 'nop\n dec %rdi')
CRASHES = '''
        .globl _start
_start: ud2
'''
# Executes as many instructions as the time says.
VARIES = '''
        .globl _start
_start: rdtsc
        shr $10, %eax
        and $0xfff, %eax
        inc %eax
1:      dec %eax
        jnz 1b
        mov $60, %eax
        xor %edi, %edi
        syscall
'''


@pytest.fixture(name='baseline')
def _baseline(place):
    path = place.work / 'counts.json'
    path.unlink(missing_ok=True)
    return path


def compare(place, baseline, *words, before=()):
    status, out, err = place.run(*before, 'compare', '--baseline', baseline,
                                 *words)
    return status, out.decode(), err


def test_count_is_kept_and_compared(place, baseline):
    program = place.assemble('ends', ENDS)
    status, _, err = compare(place, baseline, '--', program)
    assert status == 2 and '--update writes it' in err
    status, out, err = compare(place, baseline, '--update', '--', program)
    assert status == 0 and ' new' in out, err
    entry = json.loads(baseline.read_text())['programs'][str(program)]
    assert entry['counts'] == {'instructions:u': 4}
    depends = entry['depends']
    assert depends['cpu'].startswith('Skylake-Client')
    # The build id of Linux
    assert depends['qemu'] and re.fullmatch('[0-9a-f]{40}', depends['kernel'])
    assert depends['program']['ends'] and depends['arguments'] == [str(program)]
    status, out, err = compare(place, baseline, '--json', '-', '--', program)
    assert status == 0 and err == ''
    assert json.loads(out)['rows'][0]['result'] == 'same'


def test_another_build_is_more_and_named(place, baseline):
    program = place.assemble('ends', ENDS)
    compare(place, baseline, '--update', '--', program)
    place.assemble('ends', LONGER)
    status, out, err = compare(place, baseline, '--', program)
    assert status == 1, err
    assert ' 4    5  +25.00%  MORE\n    the program: was ends ' in out
    status, out, _ = compare(place, baseline, '--limit', '30%', '--', program)
    assert status == 0 and 'the program: ' in out


def test_another_machine_is_warned_of(place, baseline):
    program = place.assemble('ends', ENDS)
    compare(place, baseline, '--update', '--', program)
    text = baseline.read_text()
    baseline.write_text(text.replace('Skylake-Client', 'Snowridge'))
    status, _, err = compare(place, baseline, '--', program)
    assert status == 0 and 'warning: the counts in the file are of another ' \
        'machine: the CPU model: was Snowridge' in err
    _, out, _ = compare(place, baseline, '--', program)
    assert 'the CPU model' not in out


def test_failure_of_a_program_is_a_failure(place, baseline):
    program = place.assemble('ends', ENDS)
    crashes = place.assemble('crashes', CRASHES)
    names = place.top / 'programs' / 'list'
    names.write_text(f"# programs\n\nfine: '{program}'\nbad: '{program}' 1\n"
                     f"worse: '{crashes}'\n")
    status, out, err = compare(place, baseline, '--list', names, '--update')
    assert status == 3 and not baseline.exists()
    assert 'bad stays' not in err and 'stays as it is: bad ended' in err
    assert out.count('FAILED') == 2
    assert 'was ended by SIGILL; it may have instructions' in out


def test_program_that_does_not_repeat_is_named(place, baseline):
    program = place.assemble('varies', VARIES)
    status, _, err = compare(place, baseline, '--update', '--repeat', 3, '--',
                             program)
    assert status == 0 and 'does not repeat: instructions:u from ' in err
    counts = json.loads(baseline.read_text())
    assert counts['programs'][str(program)]['repeats'] is False
    counts['programs'][str(program)]['counts']['instructions:u'] = 1
    baseline.write_text(json.dumps(counts))
    status, out, _ = compare(place, baseline, '--', program)
    assert status == 1
    assert 'nothing differs that a count depends on: the program does not ' \
        'repeat' in out


@pytest.mark.parametrize('words, said', [
    (['--baseline', 'x'], 'a program is missing'),
    (['--baseline', 'x', '--limit', '1x', '--', 'true'], "'1x' is no limit"),
    (['--baseline', 'x', '--update', '-e', 'faults:u', '--', 'true'],
     'codes such as r00c4'),
    (['--baseline', 'x', '--update', '-e', 'branches', '--', 'true'],
     'count branches:u'),
    (['--baseline', '/etc/passwd', '--', 'true'], 'is not a file of vpmu-perf'),
    (['--baseline', 'x', '--list', '/nowhere'], 'cannot be read'),
])
def test_bad_input_is_refused(place, words, said):
    status, _, err = place.run('compare', *words)
    assert status == 2 and said in err


def test_program_runs_without_perf(place):
    status, out, _ = place.run('run', place.assemble('known', KNOWN))
    assert (status, out) == (7, b'')
    status, out, _ = place.run('run', '--', 'sh', '-c', 'cat; exit 3',
                               data=b'text')
    assert (status, out) == (3, b'text')
    status, _, err = place.run('run', './nothing')
    assert status == 127 and './nothing: No such file' in err
    status, _, err = place.run('run', stdout=subprocess.DEVNULL)
    assert status == 2 and 'a program to run is missing' in err


def test_count_is_that_of_perf(place, baseline):
    program = place.assemble('known', KNOWN.replace('$7, %edi', '$0, %edi'))
    compare(place, baseline, '--update', '-e', 'instructions:u,branches:u',
            '--', program)
    counts = json.loads(baseline.read_text())['programs'][str(program)]
    assert counts['counts']['instructions:u'] == KNOWN_COUNT
    # The system call is a branch, too.
    assert counts['counts']['branches:u'] == LOOPS + 1
