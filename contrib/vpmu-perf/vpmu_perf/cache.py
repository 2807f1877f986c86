# SPDX-License-Identifier: GPL-2.0-or-later
"""The directory of prepared guests."""

import contextlib
import fcntl
import os
import re
import shutil
import stat
import time

try:
    # hashlib loads OpenSSL, which takes longer than all other modules.
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

from .errors import Failure, say
from .machine import machine_options, shared

# Changes whenever the format of the saved cache changes.
FORMAT = 5
# How many prepared guests are kept.
KEPT = 6
# How a prepared guest's directory is called, and one that is not finished.
ENTRY = re.compile(r'[0-9a-f]{24}(\.part)?')
# What a prepared guest takes in the cache, and a little more.
CACHE_MB = 500


def read_lines(*names):
    with contextlib.suppress(OSError):
        with open(os.path.join(*names), encoding='ascii',
                  errors='replace') as f:
            return set(f.read().split('\n'))
    return set()


class Cache:
    """Prepared guests: each a directory with its memory and its state."""

    def __init__(self):
        top = os.environ.get('XDG_CACHE_HOME') or \
            os.path.expanduser('~/.cache')
        if not os.path.isabs(top):
            raise Failure(f'{top} is no place for a cache: HOME or '
                          'XDG_CACHE_HOME has to name one')
        self.path = os.path.join(top, 'vpmu-perf')
        try:
            os.makedirs(self.path, mode=0o700, exist_ok=True)
            self.require_private(os.stat(self.path))
            self.lock = open(os.path.join(self.path, 'lock'), 'w',
                             encoding='utf-8')
        except OSError as e:
            raise Failure(f'{self.path} cannot be written: {e.strerror}; '
                          'XDG_CACHE_HOME names another place') from None

    def require_private(self, about):
        """Whoever can write guests here decides what ours do with our files."""
        if about.st_uid != os.geteuid() or \
                about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise Failure(f'{self.path} is not yours alone to write: '
                          'XDG_CACHE_HOME names another place')

    def entry(self, args, there):
        words = [FORMAT, *machine_options(args, there, shared(''), True),
                 *there.identity()]
        name = blake2b(repr(words).encode(), digest_size=12).hexdigest()
        return os.path.join(self.path, name)

    @staticmethod
    def is_ready(entry):
        return os.path.exists(os.path.join(entry, 'state'))

    def _lock(self, how):
        try:
            fcntl.flock(self.lock, how | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False

    @contextlib.contextmanager
    def locked(self, how):
        # In a call that waits for the lock, nothing would come of a signal that
        # is right before it.
        tries = 0
        while not self._lock(how):
            tries += 1
            if tries == 40:
                say('waiting for another call, which prepares a guest')
            time.sleep(0.05)
        try:
            yield
        finally:
            fcntl.flock(self.lock, fcntl.LOCK_UN)

    @contextlib.contextmanager
    def locked_soon(self):
        """For this call alone, if no others go on to use it: yields whether."""
        tries = 0
        while not (is_mine := self._lock(fcntl.LOCK_EX)) and tries < 40:
            tries += 1
            time.sleep(0.05)
        try:
            yield is_mine
        finally:
            fcntl.flock(self.lock, fcntl.LOCK_UN)

    @staticmethod
    def remove_unfinished(entry):
        """What nobody makes any more."""
        with contextlib.suppress(OSError), \
                open(os.path.join(entry, 'lock'), 'w') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(os.path.join(entry, 'kept.part'))

    def make_room(self):
        """Remove entries used longest ago, and unfinished ones."""
        entries = []
        for name in os.listdir(self.path):
            path = os.path.join(self.path, name)
            # Others may keep something here, as an installation does.
            if not ENTRY.fullmatch(name) or not os.path.isdir(path):
                continue
            if self.is_ready(path):
                entries.append((os.path.getmtime(path), path))
                self.remove_unfinished(path)
            else:
                shutil.rmtree(path, ignore_errors=True)
        for _, path in sorted(entries)[:-(KEPT - 1)]:
            shutil.rmtree(path, ignore_errors=True)
        free = shutil.disk_usage(self.path).free >> 20
        if free < CACHE_MB:
            raise Failure(f'{self.path} has {free} MB of room, and a guest '
                          f'needs {CACHE_MB} MB; XDG_CACHE_HOME names another '
                          'place')
