# SPDX-License-Identifier: GPL-2.0-or-later
"""A process of QEMU."""

import contextlib
import fcntl
import os
import re
import resource
import signal
import socket
import time

from .errors import ENDING, Failure
from .machine import device_options

# How it has ended, if it says nothing.
ENDED = 'QEMU has ended, with status '
ENDED_BY_SIGNAL = ENDED + '-'
# How it begins to say that an event is not counted.
REPORT = 'vPMU: '


# The kernel ends QEMU with us, unless we have ended before it knew of that.  A
# guest that runs notices by itself; one that is not loaded yet cannot.
WITH_PARENT = ('/usr/bin/setpriv', '--pdeathsig', 'KILL',
               '/bin/sh', '-c', '[ "$PPID" = "$0" ] && exec "$@"')


def environment_of_qemu():
    """The program's libraries are not QEMU's.

    Huge pages for QEMU's heap spare it thousands of page faults.
    """
    return {**{name: value for name, value in os.environ.items()
               if not name.startswith(('LD_', 'GLIBC_', 'MALLOC_'))},
            'GLIBC_TUNABLES': 'glibc.malloc.hugetlb=1:'
                              f'glibc.malloc.top_pad={8 << 20}'}


@contextlib.contextmanager
def more_files():
    """What begins here may open as many as one may; we, as before."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def close_on_exec(kept):
    """All files that we were given are for us alone, but these."""
    for name in os.listdir('/proc/self/fd'):
        if int(name) > 2 and int(name) not in kept:
            with contextlib.suppress(OSError):
                os.set_inheritable(int(name), False)


class Process:
    """A QEMU.  Python's subprocess would copy all page tables of this one."""

    def __init__(self, words, output, fds):
        close_on_exec(fds)
        words = [*WITH_PARENT, str(os.getpid()), *words]
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        # Our output may be number 0, if we were given none.
        files = [(os.POSIX_SPAWN_DUP2, output, 1),
                 (os.POSIX_SPAWN_DUP2, output, 2),
                 (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
        with more_files():
            # What a terminal sends is for perf alone: this has its own session.
            self.pid = os.posix_spawn(
                words[0], words, environment_of_qemu(), file_actions=files,
                setsid=True, setsigmask=mask - {*ENDING},
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ])
        self.status = None

    def poll(self, options=os.WNOHANG):
        """The status, below 0 for a signal; None if it has not ended."""
        if self.status is None:
            try:
                pid, status = os.waitpid(self.pid, options)
            except ChildProcessError:
                # Who called us ignores SIGCHLD: nobody knows the status.
                pid, status = self.pid, 0
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status

    def kill(self):
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self):
        return self.poll(0)


class Qemu:
    """A QEMU with sockets to its monitor and to ports of its guest."""

    def __init__(self, words, names, paths, log, console):
        self.log = log
        self.events = set()
        self.sockets = {}
        fds = {}
        for name in ('monitor', *names):
            self.sockets[name], other = socket.socketpair()
            with other:
                fds[name] = fcntl.fcntl(other, fcntl.F_DUPFD, 3)
        words = [*words, *device_options(fds, paths), '-serial', console]
        self.process = Process(words, log.fileno() if log else 2,
                               fds.values())
        for fd in fds.values():
            os.close(fd)
        self.monitor = self.sockets['monitor'].makefile('rw', encoding='utf-8')

    def command(self, name, **arguments):
        """Run a command of QEMU's monitor; return its answer."""
        import json
        request = {'execute': name}
        if arguments:
            request['arguments'] = arguments
        try:
            self.monitor.write(json.dumps(request) + '\n')
            self.monitor.flush()
            for line in self.monitor:
                answer = json.loads(line)
                if 'error' in answer:
                    raise Failure(f'QEMU: {answer["error"]["desc"]}')
                if 'return' in answer:
                    return answer['return']
                self.events.add(answer.get('event'))
        except OSError:
            pass
        raise Failure(self.complaint())

    def wait_until_it_runs(self):
        """Until all of a saved guest has been loaded."""
        import json
        with contextlib.suppress(OSError):
            while 'RESUME' not in self.events:
                if not (line := self.monitor.readline()):
                    break
                self.events.add(json.loads(line).get('event'))
        if 'RESUME' not in self.events:
            raise Failure(self.complaint())

    def files(self, which):
        """A list of lines about the files that its guest knows."""
        return self.command('qom-get', property=which,
                            path='/machine/peripheral/files/virtio-backend')

    def complaint(self):
        """Why QEMU has ended."""
        self.process.kill()
        status = self.process.wait()
        lines = [line for line in self.messages()
                 if 'warning:' not in line and not line.startswith(REPORT)]
        if lines:
            return lines[-1].replace('qemu-system-', 'QEMU: qemu-system-', 1)
        return f'{ENDED}{status}'

    def messages(self):
        """QEMU's lines; none with --verbose, as the user has seen them."""
        if not self.log:
            return []
        self.log.seek(0)
        return self.log.read().decode(errors='replace').strip().splitlines()

    def reports(self):
        """What the PMU does not count and was asked for."""
        for line in self.messages():
            if line.startswith(REPORT):
                yield line[len(REPORT):]

    def lacks(self):
        """The features of a CPU that TCG does not have."""
        return re.findall(r"TCG doesn't support requested feature: \S*?"
                          r"\.(\S+) \[", '\n'.join(self.messages()))

    def close(self):
        self.process.kill()
        self.process.wait()
        for one in self.sockets.values():
            one.close()


def temporary_log():
    """A file without a name, also where no directory may be written."""
    return open(os.memfd_create('vpmu-perf'), 'w+b')


def read_line(qemu, seconds):
    """What the guest says first."""
    control = qemu.sockets['control']
    control.settimeout(seconds)
    text = b''
    try:
        while not text.endswith(b'\n'):
            part = control.recv(4096)
            if not part:
                raise Failure(qemu.complaint())
            text += part
    except socket.timeout:
        raise Failure(f'the guest did not start within {seconds} s') from None
    except OSError:
        raise Failure(qemu.complaint()) from None
    return text.decode(errors='replace').strip()


def save(qemu, path):
    """Write a guest's state; its memory is in its file already.

    It is not stopped before, or it would be stopped when it is to go on.
    """
    qemu.command('migrate', uri=f'file:{path}')
    while True:
        status = qemu.command('query-migrate')
        if status.get('status') == 'completed':
            return
        if status.get('status') == 'failed':
            raise Failure('the guest cannot be saved: '
                          + status.get('error-desc', 'QEMU does not say why'))
        time.sleep(0.02)


def ignore_memory(qemu):
    qemu.command('qmp_capabilities')
    qemu.command('migrate-set-capabilities', capabilities=[
        {'capability': 'x-ignore-shared', 'state': True}])


# What QEMU needs no more when it has begun
SANDBOX = ['-sandbox', 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,'
           'resourcecontrol=deny']


def has_sandbox(there):
    """Whether this QEMU, on this kernel, can refuse itself system calls."""
    import subprocess
    return subprocess.run([there.qemu, *SANDBOX, '-version'],
                          stdin=subprocess.DEVNULL, capture_output=True,
                          env=environment_of_qemu(),
                          check=False).returncode == 0


def unescaped(path):
    if '%' not in path:
        return path
    from urllib.parse import unquote_to_bytes
    return os.fsdecode(unquote_to_bytes(path))
