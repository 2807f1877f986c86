# SPDX-License-Identifier: GPL-2.0-or-later
"""What is kept for the next call.

QEMU lists what its guest has asked for: a word, an offset, a size, the time of
the file's last change, and a path, which is escaped.
"""

import argparse
import contextlib
import errno
import fcntl
import os
import shutil
import signal

from .cache import CACHE_MB, Cache, read_lines
from .errors import ENDING, Ended, Failure, say
from .guests import BOOT_SECONDS, escaped, load
from .job import LONGEST_PATH, give_job
from .machine import shared
from .qemu import read_line, save, temporary_log, unescaped

# From so many requests for files on, a guest that keeps them is worth its room.
MANY_REQUESTS = 500
# It keeps no more, as all that it keeps is looked at in each call.
MOST_REQUESTS = 32768
# Such a part of its memory they may take before a call, and by what one adds.
KEPT_PART = 4


def requests(qemu):
    """Those of a guest, each once, in their order."""
    with contextlib.suppress(Failure):
        return [*dict.fromkeys(qemu.files('asked'))]
    return []


def can_be_kept(line):
    """Not a file that has changed just now: that may happen once more."""
    _, _, _, changed, path = line.split(' ')
    return changed != '0' and len(path) < LONGEST_PATH


def open_private(path, flags):
    """Names of files may be known to their owner alone."""
    return os.open(path, flags, 0o600)


def write_lines(lines, *names):
    with open(os.path.join(*names), 'w', encoding='ascii',
              opener=open_private) as f:
        f.write('\n'.join(lines))


def size_on_disk(place):
    """The bytes that a guest's memory takes."""
    return os.stat(os.path.join(place, 'memory')).st_blocks * 512


def copy_memory(place, part):
    """Without the holes of the file."""
    with open(os.path.join(place, 'memory'), 'rb') as old, \
            open(os.path.join(part, 'memory'), 'xb') as new:
        size_of_all, at = os.fstat(old.fileno()).st_size, 0
        os.truncate(new.fileno(), size_of_all)
        while at < size_of_all:
            try:
                at = os.lseek(old.fileno(), at, os.SEEK_DATA)
            except OSError as e:
                if e.errno != errno.ENXIO:
                    raise
                return
            end = os.lseek(old.fileno(), at, os.SEEK_HOLE)
            while at < end:
                n = os.copy_file_range(old.fileno(), new.fileno(), end - at,
                                       at, at)
                if not n:
                    raise Failure(f'{place} has become shorter')
                at += n


def save_with_files(args, there, place, part, lines):
    """Save a guest like the one in a place, which has read files, too."""
    copy_memory(place, part)
    with contextlib.suppress(FileNotFoundError):
        shutil.copy(os.path.join(place, 'sandbox'), part)
    with temporary_log() as log:
        qemu, changes = load(args, there, place, shared(part), ['control'], [],
                             log, keeps=True)
        try:
            lines = [f'forget 0 0 0 {path}' for _, path in changes] + lines
            text = b''.join(os.fsencode(unescaped(line)) + b'\0'
                            for line in lines)
            give_job(qemu, b'keep %d\n' % len(text) + text)
            line = read_line(qemu, BOOT_SECONDS)
            if line != 'ready':
                raise Failure(f'the guest: {line}')
            save(qemu, os.path.join(part, 'state'))
        finally:
            qemu.close()


def make_kept(args, there, guest, lines, has):
    """Save a guest that has these files, and others from before."""
    part = os.path.join(guest.entry, 'kept.part')
    os.mkdir(part, 0o700)
    save_with_files(args, there, guest.place, part, lines)
    write_lines([*has, *lines], part, 'has')
    with Cache().locked_soon() as is_mine:
        if is_mine:
            kept = os.path.join(guest.entry, 'kept')
            shutil.rmtree(kept, ignore_errors=True)
            os.rename(part, kept)


def keep(args, there, guest, asked):
    """Save a guest with the files for which two calls have asked alike."""
    before = read_lines(guest.entry, 'asked')
    has = set()
    if guest.place != guest.entry:
        has = read_lines(guest.place, 'has')
    # A file that was asked for although the guest has it cannot be kept.
    lines = [line for line in asked
             if line in before and line not in has and can_be_kept(line)]
    write_lines(asked, guest.entry, 'asked')
    room = args.memory // KEPT_PART
    if len(has) + len(lines) > MOST_REQUESTS or size_on_disk(guest.place) > \
            size_on_disk(guest.entry) + room:
        guest, has = guest._replace(place=guest.entry), set()
    needed = size_on_disk(guest.place) + room + (CACHE_MB << 20)
    if MANY_REQUESTS <= len(lines) <= MOST_REQUESTS and \
            sum(int(line.split(' ')[2]) for line in lines) < room and \
            shutil.disk_usage(guest.entry).free > needed:
        make_kept(args, there, guest, lines, has)


class Stop:
    """A handler of signals: the first one ends what may be ended now."""

    def __init__(self):
        self.may_end = False
        for number in (*ENDING, signal.SIGQUIT):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self)
        if signal.getsignal(signal.SIGTSTP) != signal.SIG_IGN:
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)

    def __call__(self, number, _):
        if self.may_end:
            self.may_end = False
            raise Ended(number)


def try_to_keep(args, what, keep_it):
    """Nothing but time is lost if that fails, or if the user ends it."""
    stop = Stop()
    try:
        stop.may_end = True
        try:
            keep_it()
        except (Failure, OSError, ValueError) as e:
            if args.verbose:
                say(f'{what} are not kept for the next call: {e}')
        stop.may_end = False
    except Ended:
        pass


def keep_blocks(args, guest):
    """Let QEMU write what it has translated, if it is worth that."""
    if shutil.disk_usage(guest.entry).free < CACHE_MB << 20:
        raise Failure('there is too little room')
    blocks = guest.qemu.command('tcg-keep-blocks')
    if args.verbose:
        say(f'{blocks["translated"]} blocks of code were translated, and '
            f'{blocks["taken"]} taken from earlier calls')


def add_reader(guest, program):
    """This program gets the guest that keeps files from now on."""
    known = read_lines(guest.entry, 'readers')
    write_lines(known | {escaped(program)}, guest.entry, 'readers')


def keep_for_next_call(args, there, guest, asked, program):
    args = argparse.Namespace(**{**vars(args), 'census': None})

    def keep_files():
        add_reader(guest, program)
        keep(args, there, guest, asked)

    with contextlib.suppress(OSError), \
            open(os.path.join(guest.entry, 'lock'), 'w') as lock:
        # Another call may be doing this.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        part = os.path.join(guest.entry, 'kept.part')
        shutil.rmtree(part, ignore_errors=True)
        try_to_keep(args, 'the files', keep_files)
        shutil.rmtree(part, ignore_errors=True)
