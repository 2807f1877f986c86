# SPDX-License-Identifier: GPL-2.0-or-later
"""A job while it runs: its streams, and its end."""

import contextlib
import errno
import os
import select
import signal
import socket

from .errors import ENDING, Failure, say
from .job import window
from .terminal import Terminal

FORWARDED = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP,
             signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT, signal.SIGTSTP)
# What the guest may say of a job before it says how perf ended.
NOTES = ('crashed', 'lost', 'multiplexed', 'offset')
# And what it has measured, for commands that are not perf's
MEASURED = ('count', 'map', 'unmapped')


class Session:
    """A running job: carries its streams and signals until it ends."""

    def __init__(self, qemu, kinds):
        self.qemu = qemu
        self.control = qemu.sockets['control']
        self.outputs = {qemu.sockets['stdout']: 1, qemu.sockets['stderr']: 2}
        self.received = {1: 0, 2: 0}
        self.closed = set()
        self.has_lost = False
        self.input = qemu.sockets['stdin']
        self.pending = b''
        # Nothing is read before the guest's processes want it, or a terminal's
        # keys are for them alone.
        self.has_terminal = kinds[0].startswith('tty')
        self.wants = self.has_terminal and kinds[1].startswith('tty')
        self.reads = False
        self.lines = b''
        # What the guest has said of the job, by its first word
        self.notes = {}
        self.measured = []
        # Whether the user has sent a signal that ends programs
        self.is_ended = False
        self.end = None
        if not self.has_terminal and not kinds[0].startswith('pipe'):
            self.input.shutdown(socket.SHUT_WR)
        self.terminal = Terminal()
        # Python notes a signal that comes right before a call that waits, and
        # waits; so a byte comes here, too.
        self.awake, self.waker = socket.socketpair()
        for one in (self.awake, self.waker):
            one.setblocking(False)
        signal.set_wakeup_fd(self.waker.fileno(), warn_on_full_buffer=False)
        for number in FORWARDED:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._forward)
        signal.signal(signal.SIGWINCH, lambda *_: self.tell(
            f'window {window()}'))

    def _forward(self, number, _):
        self.is_ended |= number in (*ENDING, signal.SIGQUIT)
        self.tell(f'signal {int(number)}')

    def tell(self, line):
        with contextlib.suppress(OSError):
            self.control.sendall(line.encode() + b'\n')

    def run(self):
        """Returns how the guest's perf ended: two words and three numbers."""
        try:
            self._begin_to_read()
            for one in (*self.outputs, self.input, self.control):
                one.setblocking(False)
            while not self._is_over():
                self._turn()
        finally:
            signal.set_wakeup_fd(-1)
            self.terminal.leave()
        return self.end

    def _is_over(self):
        return self.end and all(self.received[fd] >= int(self.end[fd + 1])
                                for fd in (1, 2))

    def _wait(self, readable, writable):
        """What of that is ready; maybe nothing, if there was a signal."""
        # Nobody says that the terminal is free.
        limit = 0.2 if self.wants else None
        ready, writable, _ = select.select([self.awake, *readable], writable,
                                           [], limit)
        if self.awake in ready:
            self.awake.recv(4096)
            ready.remove(self.awake)
        return ready, writable

    def _begin_to_read(self):
        """If it is wanted, and another job does not have the terminal."""
        if self.wants and (not self.has_terminal or self.terminal.enter()):
            self.reads = True
            self.wants = False

    def _turn(self):
        self._begin_to_read()
        wanted = [self.control, *self.outputs]
        if self.reads and not self.pending:
            wanted.append(0)
        readable, writable = self._wait(
            wanted, [self.input] if self.pending else [])
        for one in readable:
            if one == 0:
                self._read_input()
            elif one is self.control:
                self._listen()
            else:
                self._write_output(one)
        if writable:
            self._send_input()

    def _read_input(self):
        try:
            self.pending = os.read(0, 65536)
        except OSError:
            self.pending = b''
        if not self.pending:
            self.reads = False
            self.input.shutdown(socket.SHUT_WR)

    def _send_input(self):
        try:
            self.pending = self.pending[self.input.send(self.pending):]
        except BlockingIOError:
            pass
        except OSError:
            self.pending = b''
            self.reads = False

    def _write_output(self, one):
        data = self._receive(one)
        fd = self.outputs[one]
        self.received[fd] += len(data)
        while data and fd not in self.closed:
            try:
                data = data[os.write(fd, data):]
            except BlockingIOError:
                self._wait([], [fd])
            except OSError as e:
                # Whoever reads has had enough: perf is to know.
                self.closed.add(fd)
                self.tell(f'closed {fd}')
                if e.errno != errno.EPIPE:
                    self.has_lost = True
                    say(f'standard {"output" if fd == 1 else "error"}: '
                        f'{e.strerror}')

    def _receive(self, one):
        try:
            data = one.recv(65536)
        except BlockingIOError:
            return b''
        except OSError:
            data = b''
        if not data:
            self.terminal.leave()
            raise Failure(self.qemu.complaint())
        return data

    def _listen(self):
        self.lines += self._receive(self.control)
        *lines, self.lines = self.lines.split(b'\n')
        for line in lines:
            words = line.decode(errors='replace').split()
            if words[:1] == ['error']:
                raise Failure(' '.join(words[1:]))
            if words[:1] == ['stopped']:
                self._stop()
            elif words[:1] == ['wants']:
                self.wants = not self.reads
            elif words and words[0] in NOTES:
                self.notes[words[0]] = ' '.join(words[1:])
            elif words and words[0] in MEASURED:
                self.measured.append(words)
            elif len(words) == 5:
                self.end = words

    def _stop(self):
        """perf is stopped, so its user has his shell again.

        A key of the terminal stops all of the pipeline.
        """
        if self.terminal.saved:
            self.terminal.leave()
            handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            os.kill(0, signal.SIGTSTP)
            signal.signal(signal.SIGTSTP, handler)
            self.reads = False
            self.wants = True
        else:
            os.kill(os.getpid(), signal.SIGSTOP)
        self.tell(f'signal {int(signal.SIGCONT)}')
