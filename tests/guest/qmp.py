# SPDX-License-Identifier: GPL-2.0-or-later
"""QMP, the monitor of QEMU: a client, for all that starts guests."""

import contextlib
import json
import socket
import time


class Failure(Exception):
    """A test that did not get as far as asserting something."""


class Closed(Failure):
    """QEMU has closed its monitor: it has ended."""


class Monitor:
    """A connection, by the files of which one reads and one writes."""

    def __init__(self, reader, writer, closed=Closed):
        """@closed: makes the exception that says that QEMU has closed it."""
        self.closed = closed
        self.reader = reader
        self.writer = writer
        self.events = []                # that came while others were awaited
        self._message()
        self.command('qmp_capabilities')

    @classmethod
    def at(cls, path, **options):
        """The one that listens at a socket."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(600)
            connection.connect(str(path))
            # Keeps the connection.
            file = connection.makefile('rw', encoding='utf-8')
        return cls(file, file, **options)

    def close(self):
        # What could not be written then is of no interest now.
        with contextlib.suppress(OSError):
            self.writer.close()
        self.reader.close()

    def _message(self):
        try:
            line = self.reader.readline()
        except ConnectionError:
            line = ''
        if not line:
            raise self.closed('QEMU has closed its monitor')
        return json.loads(line)

    def command(self, name, **arguments):
        """A command; its answer."""
        # Where nobody reads any more, there is no answer either.
        with contextlib.suppress(BrokenPipeError):
            json.dump({'execute': name, 'arguments': arguments}, self.writer)
            self.writer.flush()
        while True:
            answer = self._message()
            if 'event' in answer:
                self.events.append(answer)
            elif 'error' in answer:
                raise Failure(f"{name}: {answer['error']['desc']}")
            else:
                return answer['return']

    def event(self):
        """The next event."""
        return self.events.pop(0) if self.events else self._message()

    def human(self, line):
        """A command of the other monitor; what it prints."""
        return self.command('human-monitor-command', **{'command-line': line})

    def job(self, name, **arguments):
        """A command that goes on behind its answer: wait for its end."""
        self.command(name, **{'job-id': name}, **arguments)
        jobs = []

        def concluded():
            jobs[:] = self.command('query-jobs')
            return jobs[0]['status'] == 'concluded'

        self.wait(name, concluded)
        self.command('job-dismiss', id=name)
        if 'error' in jobs[0]:
            raise Failure(f"{name}: {jobs[0]['error']}")

    def wait(self, what, done, seconds=1800):
        """Poll until done() is true."""
        end = time.monotonic() + seconds
        while not done():
            if time.monotonic() > end:
                raise Failure(f'{what} takes more than {seconds} s')
            time.sleep(0.02)
