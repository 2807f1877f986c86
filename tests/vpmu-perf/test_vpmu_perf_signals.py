# SPDX-License-Identifier: GPL-2.0-or-later
"""Signals to vpmu-perf, and terminals."""

import contextlib
import fcntl
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import termios
import time

import pytest

from installed import ARCH, PATIENCE, on_x86
from linux_guest import ROOT

pytestmark = on_x86

# What is preloaded so that signals come right before their process waits.
LATE = r'''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/select.h>
#include <time.h>

int select(int n, fd_set *readable, fd_set *writable, fd_set *others,
           struct timeval *limit)
{
    const struct timespec delay = { .tv_sec = 1 };
    int (*wait)(int, fd_set *, fd_set *, fd_set *, struct timeval *) =
        dlsym(RTLD_NEXT, "select");

    nanosleep(&delay, NULL);
    return wait(n, readable, writable, others, limit);
}
'''


def signalled(place, number, **options):
    """The status of vpmu-perf that gets a signal when its program has begun,
    and what it printed.
    """
    with place.started('stat', '-e', 'instructions:u', 'sh', '-c',
                       'echo begun; exec sleep 1000', **options) as process:
        assert process.stdout.readline() == b'begun\n'
        process.send_signal(number)
        _, err = process.communicate()
    return process.returncode, err.decode(errors='replace')


def test_interrupt_ends_the_program(place):
    status, err = signalled(place, signal.SIGINT)
    assert 'instructions:u' in err, status


def is_running(program):
    for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
        with contextlib.suppress(OSError):
            if path.read_bytes().startswith(os.fsencode(program) + b'\0'):
                return True
    return False


def wait_for_qemu(place, is_there):
    end = time.monotonic() + PATIENCE
    while is_running(place.prefix / 'bin' / f'qemu-system-{ARCH}') != is_there:
        assert time.monotonic() < end, 'QEMU has not begun, or is left'
        time.sleep(0.1)


def test_signal_ends_the_guest_of_a_command(place):
    """It comes to the process alone that has called vpmu-perf again."""
    words = 'compare', '--baseline', place.work / 'counts.json', '--update'
    place.run(*words, '--', 'true')
    with place.started(*words, '--', 'sleep', '1000') as process:
        wait_for_qemu(place, True)
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    wait_for_qemu(place, False)


def test_signal_before_perf_begins(place):
    place.run('stat', 'true')
    for seconds in 0.2, 0.4, 0.6:
        with place.started('stat', 'sleep', '1000') as process:
            time.sleep(seconds)
            process.send_signal(signal.SIGTERM)
            process.communicate()
        assert process.returncode == -signal.SIGTERM
    wait_for_qemu(place, False)


# A process whose parent is the one that it should be, or not, as that has ended
CHILD = '''
import os
from vpmu_perf.qemu import WITH_PARENT
os.execv(WITH_PARENT[0], [*WITH_PARENT, str(os.{parent}()), 'echo', 'begun'])
'''


def test_signal_before_qemu_begins():
    """On a busy host, the command can have ended before its child runs."""
    for parent, status, text in ('getppid', 0, b'begun\n'), ('getpid', 1, b''):
        done = subprocess.run(
            [sys.executable, '-c', CHILD.format(parent=parent)], check=False,
            cwd=ROOT / 'contrib' / 'vpmu-perf', capture_output=True)
        assert (done.returncode, done.stdout) == (status, text), done.stderr


def test_signal_while_the_guest_is_made(place):
    """Nothing is left of it, and what was recorded before is still there."""
    data, cache = place.work / 'perf.data', place.top / 'home' / 'other'
    data.write_text('text')
    place.give(data)
    environment = {**place.environment, 'XDG_CACHE_HOME': str(cache)}
    with place.started('record', 'true', env=environment) as process:
        assert b'preparing' in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode == -signal.SIGTERM
    left = sorted(path.name for path in (cache / 'vpmu-perf').iterdir())
    assert left == ['lock']
    assert data.read_text() == 'text'
    data.unlink()


def test_signal_that_ends_perf_ends_us(place):
    status, err = signalled(place, signal.SIGTERM)
    assert status == -signal.SIGTERM, err


def test_signal_right_before_waiting(place):
    """Python has noted it, and nothing else would end what it waits for."""
    late = place.compile('late.so', LATE, '-shared', '-fPIC')
    status, err = signalled(place, signal.SIGTERM, env={
        **place.environment, 'LD_PRELOAD': str(late)})
    assert status == -signal.SIGTERM, err
    assert 'cannot be preloaded' not in err


class Terminal:
    """A terminal at which a shell with job control runs some commands."""

    def __init__(self, place, script):
        self.ours, theirs = pty.openpty()
        self.before = termios.tcgetattr(self.ours)
        self.text = b''
        path = f'{place.program.parent}:{place.environment["PATH"]}'
        self.process = place.start(
            '-c', 'set -m; ' + script, program=['bash', '--norc'],
            stdin=theirs, stdout=theirs, stderr=theirs,
            env={**place.environment, 'PATH': path},
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(theirs)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.ours)

    def type(self, what):
        os.write(self.ours, what)

    def read_until(self, what):
        while what not in self.text:
            assert select.select([self.ours], [], [], PATIENCE)[0], \
                f'hangs after {self.text}'
            try:
                self.text += os.read(self.ours, 4096)
            except OSError:
                pytest.fail(f'no {what} in {self.text}')
        _, self.text = self.text.split(what, 1)

    def is_as_before(self):
        return termios.tcgetattr(self.ours) == self.before


def test_terminal_is_one(place):
    # perf ends by SIGINT, unless the guest's Linux delivers SIGCHLD after it.
    # When it does, bash ends by SIGINT, too, and runs no command after it.
    with Terminal(place, 'trap "echo ended" EXIT; vpmu-perf stat sh -c \''
                  'tty && echo begun; read x; echo "<$x>"; read y\''
                  ) as terminal:
        terminal.read_until(b'begun\r')
        terminal.type(b'some words\r')
        terminal.read_until(b'<some words>')
        terminal.type(b'\x03')
        terminal.read_until(b'seconds time elapsed')
        terminal.read_until(b'ended\r')
        assert terminal.is_as_before(), 'the terminal is left raw'


def test_terminal_is_the_sessions(place):
    """A program opens it by name, and a shell has jobs there."""
    asks = 'import os; print(os.tcgetpgrp(0) == os.getpgrp())'
    with Terminal(place, f'vpmu-perf run python3 -c "{asks}"; vpmu-perf run '
                  'bash -c "set -m; sleep 0 & wait; echo there > /dev/tty"'
                  ) as terminal:
        terminal.read_until(b'True\r')
        terminal.read_until(b'there\r')


def test_there_is_no_terminal(place):
    status, _, err = place.run('run', 'sh', '-c', 'exec 9< /dev/tty')
    assert status == 2
    assert 'No such device' in err


# The last one is the C library's own.
@pytest.mark.parametrize('number', [signal.SIGKILL, 33])
def test_program_is_killed(place, number):
    status, _, err = place.run_in_shell(
        f"vpmu-perf run sh -c 'kill -{int(number)} $$'; exit $?")
    assert status == 128 + number
    assert 'the host' not in err


def test_signal_is_ignored(place):
    """As after nohup, the program begins with what its caller ignores."""
    status, out, err = place.run_in_shell(
        "trap '' HUP USR1; vpmu-perf run sh -c "
        "'kill -HUP $$; kill -USR1 $$; echo survived; kill -TERM $$'; exit $?")
    assert (status, out) == (128 + signal.SIGTERM, b'survived\n'), err


def test_parent_is_stopped(place):
    status, _, _ = place.run('run', 'sh', '-c', 'kill -STOP $PPID; exit 3')
    assert status == 3


def test_key_stops_the_job(place):
    with Terminal(place, 'vpmu-perf stat sh -c \'echo begun; read x; '
                  'echo "<$x>"\'; echo stopped $?; fg; echo ended') as terminal:
        terminal.read_until(b'begun\r')
        terminal.type(b'\x1a')
        terminal.read_until(b'stopped 148\r')
        terminal.type(b'words\r')
        terminal.read_until(b'<words>')
        terminal.read_until(b'ended\r')


def test_job_comes_from_the_background(place):
    with Terminal(place, 'vpmu-perf stat sh -c \'echo begun; read x; '
                  'echo "<$x>"\' & sleep 1; fg; echo ended') as terminal:
        terminal.read_until(b'begun')
        terminal.type(b'words\r')
        terminal.read_until(b'<words>')
        terminal.read_until(b'ended\r')


def test_terminal_is_another_programs(place):
    """One that reads our output, and may restore the terminal before us."""
    with Terminal(place, 'vpmu-perf stat sh -c "echo begun; sleep 1" | '
                  '(read x; stty -echo; sleep 0.5; stty echo; cat); '
                  'echo ended') as terminal:
        terminal.read_until(b'ended\r')
        assert terminal.is_as_before(), 'the terminal is left raw'
