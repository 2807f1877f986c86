# SPDX-License-Identifier: GPL-2.0-or-later
"""How vpmu-perf ends early, and its messages."""

import contextlib
import os
import signal
import sys


class Failure(Exception):
    """Something that ends this program with one line."""


class Ended(BaseException):
    """A signal that ends this program before there is a perf to have it."""


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_by_signal(number, _):
    raise Ended(number)


@contextlib.contextmanager
def signals_wait():
    """What begins here is known to who has to end it, when a signal comes."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class StandardError:
    """It may be closed, or full: messages are lost then."""

    def __init__(self, is_open):
        self.is_open = is_open

    def write(self, text):
        try:
            rest = os.fsencode(text)
        except UnicodeEncodeError:
            rest = text.encode('ascii', 'backslashreplace')
        with contextlib.suppress(OSError):
            while rest and self.is_open:
                rest = rest[os.write(2, rest):]

    def flush(self):
        """Nothing is kept."""


def say(text):
    sys.stderr.write(f'vpmu-perf: {text}\n')


def restore_locale():
    """Python has set LC_CTYPE, in the locale C, for itself alone."""
    with contextlib.suppress(OSError):
        with open('/proc/self/environ', 'rb') as f:
            variables = f.read().split(b'\0')
        os.environ.pop('LC_CTYPE', None)
        for variable in variables:
            if variable.startswith(b'LC_CTYPE='):
                os.environb[b'LC_CTYPE'] = variable[len(b'LC_CTYPE='):]
