# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors of programs, of the cache, of files and of options."""

import os
import re
import resource
import signal
import subprocess
import textwrap

import pytest

from installed import ARCH, KNOWN, KNOWN_COUNT, on_x86
from linux_guest import ROOT

EATER = r'''
#include <stdlib.h>
#include <string.h>

int main(void)
{
    for (;;) {
        char *part = malloc(1 << 24);

        if (!part) {
            return 9;
        }
        memset(part, 1, 1 << 24);
    }
}
'''


@on_x86
def test_missing_program(place):
    status, _, err = place.run('stat', './missing')
    assert status == 255 and 'No such file' in err, err


@on_x86
def test_program_without_permission(place):
    (place.work / 'plain').write_text('text')
    status, _, err = place.run('stat', './plain')
    assert status == 255 and 'Permission denied' in err, err


@on_x86
def test_program_that_is_killed(place):
    """perf does not say so by its status."""
    status, _, err = place.run('stat', 'sh', '-c', 'kill -9 $$')
    assert status == 128 + 9 and 'sh: Killed' in err, err
    # perf has done that.
    status, _, err = place.run('stat', '--timeout', 100, 'sleep', 100)
    assert status == 0 and 'Terminated' in err, err


@on_x86
def test_recipe_for_a_program_that_crashes(place):
    """That of the documentation, for a program with an instruction too new."""
    page = (ROOT / 'docs' / 'system' / 'vpmu-perf.rst').read_text()
    recipe = textwrap.dedent(re.search(
        r'( +#!/bin/sh\n +# count-instructions.*?)\n\n``', page, re.S)[1])
    program = place.assemble('benchmark', '.globl _start\n_start: ud2\n')
    directory = program.parent
    (directory / 'instructions.txt').write_text('1000000\n')
    place.give(directory)
    status, _, err = place.run_in_shell(recipe, cwd=directory)
    assert status == 128 + signal.SIGILL, err
    assert 'that the CPU of the guest does not have' in err


def test_program_of_another_architecture(place):
    other, number = {'x86_64': ('ppc64', 21), 'ppc64': ('x86_64', 62)}[ARCH]
    path = place.assemble('other', KNOWN)
    image = bytearray(path.read_bytes())
    image[18] = number
    path.write_bytes(image)
    status, _, err = place.run('--arch', ARCH, 'stat', path)
    # perf tries a shell, as natively; where that is not of this
    # architecture, either, it gives up.
    assert status != 0, err
    assert err.endswith(f'{path} is a program for {other}: '
                        f'use --arch {other}\n')


@pytest.mark.more
@on_x86
def test_program_without_memory(place):
    _, _, err = place.run('--memory', '512M', 'stat',
                          place.compile('eater', EATER))
    assert 'vpmu-perf: the guest ran out of memory (512M)' in err


@on_x86
def test_cache_without_room(place):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    status, _, err = place.run('--memory', '768M', 'stat', 'true',
                               preexec_fn=limit)
    assert status == 125, err
    assert err.splitlines()[-1].startswith('vpmu-perf: ')


@on_x86
def test_cache_that_cannot_be_written(place):
    status, _, err = place.run('stat', 'true', env={
        **place.environment, 'XDG_CACHE_HOME': '/proc/none'})
    assert status == 125 and err.count('\n') == 1, err


@pytest.mark.more
@on_x86
def test_cache_of_others(place):
    """What they have put there is not run."""
    cache = place.top / 'home' / 'shared' / 'vpmu-perf'
    cache.mkdir(parents=True)
    environment = {**place.environment, 'XDG_CACHE_HOME': str(cache.parent)}
    for mode in 0o777, 0o770:
        place.give(cache)
        cache.chmod(mode)
        status, _, err = place.run('stat', 'true', env=environment)
        assert status == 125 and 'not yours alone' in err, \
            f'{mode:o}: {err}'
        assert not list(cache.iterdir())
    cache.chmod(0o700)
    unfinished = '0123456789abcdef01234567.part'
    for name in 'x86_64', unfinished:
        (cache / name).mkdir()
        place.give(cache / name)
    status, _, err = place.run('stat', 'true', env=environment)
    assert status == 0, err
    assert (cache / 'x86_64').is_dir(), 'what is not its own was removed'
    assert not (cache / unfinished).exists()


@on_x86
def test_places_that_are_the_guests(place):
    for words in (['--write-to', '/', 'stat'], ['--write-to', '/proc', 'stat'],
                  ['stat', '-o', '/dev/shm/vpmu-perf-test'],
                  ['stat', '-o', '/dev/vpmu-perf-test']):
        status, _, err = place.run(*words, 'true')
        assert status == 125 and 'guest' in err, f'{words}: {err}'
    assert not os.path.exists('/dev/shm/vpmu-perf-test'), 'is on the host'
    # A device is the same there.
    status, _, err = place.run('stat', '-o', '/dev/null', 'true')
    assert status == 0, err


@on_x86
def test_output_that_cannot_be_kept(place):
    """The file may be written, and the directory may not."""
    directory = place.top / 'programs' / 'closed'
    directory.mkdir()
    (directory / 'perf.data').write_text('text')
    place.give(directory / 'perf.data')
    if os.getuid() != 0:
        directory.chmod(0o555)
    status, _, err = place.run('record', 'true', cwd=directory,
                               stdout=subprocess.DEVNULL)
    assert status == 125 and err.count('\n') == 1, err
    assert (directory / 'perf.data').read_text() == 'text'


@on_x86
def test_surroundings_that_are_missing(place):
    gone = place.work / 'gone'
    gone.mkdir()
    status, _, err = place.run('stat', 'true', cwd=gone,
                               preexec_fn=gone.rmdir)
    assert status == 125 and 'is gone' in err, err
    environment = {name: value for name, value in place.environment.items()
                   if name not in ('HOME', 'XDG_CACHE_HOME')}
    status, _, err = place.run('stat', 'true', env={
        **environment, 'HOME': 'relative'})
    assert status == 125 and 'no place for a cache' in err, err


@on_x86
def test_python_of_the_programs(place):
    """What a program's Python is told is not for ours."""
    (place.work / 'socket.py').write_text('raise SystemExit(1)')
    status, out, err = place.run(
        'stat', 'sh', '-c', 'echo $PYTHONPATH', env={
            **place.environment, 'PYTHONPATH': '.', 'PYTHONHOME': '/none'})
    assert (status, out) == (0, b'.\n'), err


@pytest.mark.more
@on_x86
def test_saved_guest_that_is_damaged(place):
    environment = {**place.environment,
                   'XDG_CACHE_HOME': str(place.top / 'home' / 'damaged')}
    status, _, err = place.run('--prepare', env=environment)
    assert status == 0, err
    state, = (place.top / 'home' / 'damaged' / 'vpmu-perf').glob('*/state')
    os.truncate(state, 1000)
    status, _, err = place.run('stat', 'true', env=environment)
    assert status == 125 and err.endswith('was removed: call again\n'), \
        err
    status, _, err = place.run('stat', 'true', env=environment)
    assert status == 0, err


@on_x86
def test_bad_options(place):
    for words in (['--memory', '1'], ['--cpus', '0'], ['--arch', 'none'], []):
        status, _, err = place.run(*words)
        assert status == 2, f'{words}: {err}'
    status, _, err = place.run('--cpu', 'none', 'stat', 'true')
    assert status == 125 and "'none'" in err, err


@on_x86
def test_hints(place):
    """What perf and QEMU do not say."""
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))

    status, _, err = place.run('stat', 'true', preexec_fn=limit)
    assert status == 125 and 'the limit of open files is 20' in err, err
    status, _, err = place.run('stat', '-ae', 'instructions', 'true')
    assert status == 0 and 'none of the host' in err, err
    log = place.work / 'log'
    log.write_text('kept')
    with open(log, 'a', encoding='utf-8') as f:
        place.run('--verbose', 'stat', 'true', stderr=f)
    assert log.read_text().startswith('kept')
    with open(log, 'w', encoding='utf-8') as f:
        status, *_ = place.run('--verbose', '--cpu', 'none', 'run', 'true',
                               stderr=f)
    assert status == 125
    assert re.fullmatch(r"vpmu-perf: prep.*\n.*model 'none'\n"
                        r'vpmu-perf: QEMU has .*', log.read_text().strip())
    status, out, _ = place.run('--version')
    assert status == 0 and re.search(rb'version 10.*\n.*Linux: 6\.', out), out


@on_x86
def test_completion(place):
    script = place.prefix / 'share/bash-completion/completions/vpmu-perf'

    def complete(*words):
        return subprocess.run(
            ['bash', '-c', f'. "{script}"; COMP_WORDS=("$@"); '
             'COMP_CWORD=$(($# - 1)); _vpmu_perf; echo "${COMPREPLY[@]}"', '-',
             'vpmu-perf', *words], check=True, text=True,
            capture_output=True).stdout

    assert complete('--vers') == '--version\n'
    assert complete('--arch', 'p') == 'ppc64\n'
    assert complete('re') == 'record report\n'
    assert complete('stat', '--w') == '\n'
    assert complete('compare', '--b') == '--baseline\n'
    assert complete('--cpus', '1', 'diff', '--h') == '--help --html\n'


@on_x86
def test_action_for_ci(place):
    """The script that the others run; whose words are those of the forges."""
    ci = ROOT / 'contrib' / 'ci'
    for name in 'action.yml', 'gitlab.yml', 'Dockerfile':
        assert 'count-instructions' in (ci / name).read_text()
    program = place.assemble('counted', KNOWN.replace('$7', '$0'))
    allowed = place.top / 'programs' / 'allowed'
    for text, wanted in (('', 0), (KNOWN_COUNT, 0), (KNOWN_COUNT // 2, 1)):
        allowed.write_text(str(text))
        status, out, err = place.run_in_shell(
            f'{ci}/count-instructions {allowed} {program}')
        assert (status, f'instructions: {KNOWN_COUNT}' in out.decode()) == (
            wanted, True), err


@on_x86
def test_standard_output_takes_nothing(place):
    """The program does not notice, as it writes to a pipe."""
    status, _, err = place.run_in_shell('vpmu-perf run echo words >/dev/full')
    assert status == 125
    assert 'vpmu-perf: standard output: No space left on device' in err


@on_x86
@pytest.mark.parametrize('error', ['2>&-', '2>/dev/full'])
def test_standard_error_takes_nothing(place, error):
    """It does not go elsewhere, and the status stays."""
    status, out, _ = place.run_in_shell(
        f'vpmu-perf --write-to /missing run true {error}; exit $?')
    assert (status, out) == (125, b'')
    status, out, _ = place.run_in_shell(
        f'vpmu-perf --cpus 999 run true {error}; exit $?')
    assert (status, out) == (2, b'')


@on_x86
@pytest.mark.parametrize('closed', ['<&-', '<&- >&-'])
def test_commands_without_streams(place, closed):
    """Of those that call vpmu-perf again."""
    status, _, err = place.run_in_shell(
        f'vpmu-perf stat --calls malloc true {closed}; exit $?')
    assert status == 0, err


@on_x86
def test_messages_without_input(place):
    """What QEMU says is in the first file that is opened."""
    _, _, err = place.run_in_shell(
        'vpmu-perf stat --topdown true <&-; exit $?')
    assert '(Skylake) is not counted and reads 0\n' in err


@on_x86
def test_caller_ignores_children_and_limits_files(place):
    """QEMU may open more files than the program."""
    def begin():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (1000, most))

    status, out, err = place.run('run', 'sh', '-c', 'ulimit -n',
                                 preexec_fn=begin)
    assert (status, out) == (0, b'1000\n'), err


@on_x86
def test_libraries_are_the_programs(place):
    """QEMU would not start with this one."""
    other = place.compile('libslirp.so.0', 'int nothing;', '-shared', '-fPIC')
    env = {**place.environment, 'LD_LIBRARY_PATH': str(other.parent)}
    status, out, err = place.run('run', 'echo', 'words', env=env)
    assert (status, out) == (0, b'words\n'), err
    status, _, err = place.run('--version', env=env)
    assert status == 0, err


@on_x86
def test_locale_is_the_callers(place):
    """Python chooses another one for itself."""
    env = {name: value for name, value in place.environment.items()
           if not name.startswith(('LANG', 'LC_'))}
    for wanted in ([], ['LC_CTYPE=POSIX']):
        status, out, err = place.run('run', 'env', env={
            **env, 'LANG': 'C', **dict(one.split('=') for one in wanted)})
        assert status == 0, err
        assert [line for line in out.decode().splitlines()
                if line.startswith('LC_')] == wanted
