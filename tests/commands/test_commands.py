# SPDX-License-Identifier: GPL-2.0-or-later
"""The shortest form of each command that takes long otherwise.

What `make fuzz` and `make soak` run has short lengths in `make check` anyway.
Of the tests that need another build of QEMU, pytest only has to find some.
"""

import base64
import contextlib
import functools
import json
import os
import re
import subprocess

import pytest

from harness import Guest
from linux_guest import BUILD, ROOT
from machines import UP
from test_consumers import PERIOD, Workplace, check_calls, edges_of
from test_profile import profiled

PAGES = ROOT / 'docs' / 'system'


def run(*words, **environment):
    done = subprocess.run(
        words, cwd=ROOT, env={**os.environ, 'BUILD': str(BUILD),
                              **environment},
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout[-2000:]
    return done.stdout


def script(name, *words, **environment):
    """What a script prints; it writes no page."""
    before = {path: path.read_bytes() for path in PAGES.iterdir()}
    said = run(f'scripts/{name}', *words, **environment)
    assert {path: path.read_bytes() for path in PAGES.iterdir()} == before
    return said


def test_mutants(tmp_path):
    """One fault, which the model's own tests notice."""
    said = script('mutants', '--in', str(tmp_path / 'copy'),
                  'overflow-one-late')
    assert re.search('^ok overflow-one-late # noticed by unit ', said, re.M)
    assert said.endswith('# 1 noticed, 0 not\n')


def test_conformance():
    """One row, on one machine."""
    said = script('conformance', '--column', 'TCG Intel', 'count')
    assert re.search('^count  same$', said, re.M)


def test_bench():
    """One row of one program."""
    said = script('bench', '--rounds', '1', '--turns', '1', '--rows',
                  'branches', '--program', 'table', 'x86_64')
    assert re.search(r'^branches  -?\d+\.\d +-?\d+\.\d$', said, re.M)


def test_experiment():
    """A guest that receives little, by one device."""
    said = script('experiment', '1000000', 'virtio-net', ARCH='x86_64')
    assert len(re.findall(r'^\w+ +\w+( +\d+\.\d%){2}$', said, re.M)) >= 10


def test_consumers(tmp_path):
    """One profile of what is known, of which perf shows as much; without the
    compilers that read it."""
    place = Workplace(tmp_path, compiler='gcc')
    program = base64.encodebytes((tmp_path / 'steps').read_bytes()).decode()
    job = f"""
base64 -d > /tmp/steps << END
{program}END
chmod +x /tmp/steps
wait_for_test
/tmp/steps
echo @@@ end
"""
    with contextlib.ExitStack() as guests:
        def start(machine, job, **options):
            guest = guests.enter_context(contextlib.closing(
                Guest(tmp_path, machine, job, **options)))
            guest.connect()
            guest.begin()
            return guest

        profile, _ = profiled(start, tmp_path, UP, job, {
            'event': 'taken-branches', 'modes': 'u', 'period': PERIOD,
            'branch-stack': True})
    check_calls(edges_of(place, profile.script('brstack')))


@functools.lru_cache
def meson_tests():
    """By name; those of the directory that is tested, or of a new one."""
    directory = BUILD / 'check'
    if not (directory / 'build.ninja').exists():
        directory = BUILD / 'tests' / 'commands'
        if not (directory / 'build.ninja').exists():
            run('meson', 'setup', str(directory), str(ROOT),
                f'-Dqemu={BUILD}/qemu')
    found = json.loads(run('meson', 'introspect', '--tests', str(directory)))
    return {test['name']: test for test in found}


@pytest.mark.parametrize('name', [
    'build-x86_64', 'reports-x86_64', 'sanitized-linux-x86_64',
    'sanitized-linux-ppc64', 'threads-linux-x86_64', 'threads-linux-ppc64'])
def test_selects(name):
    """What a command selects is there."""
    test = meson_tests()[name]
    words = [word for word in test['cmd'] if 'junitxml' not in word]
    run(*words, '--collect-only', VARIANT='least', **test['env'])


@pytest.mark.parametrize('directory', ['consumers', 'deb'])
def test_has_tests(directory):
    run('/usr/bin/python3', '-m', 'pytest', '--collect-only',
        f'tests/{directory}', ARCH='x86_64')


def test_suites_of_other_qemus():
    """So are the suites that scripts/check-elsewhere names."""
    suites = {suite.partition(':')[2] for test in meson_tests().values()
              for suite in test['suite']}
    text = (ROOT / 'scripts' / 'check-elsewhere').read_text()
    named = {word for words in re.findall(r'suites=\((.*?)\)', text)
             for word in words.split()}
    assert named and named <= suites
