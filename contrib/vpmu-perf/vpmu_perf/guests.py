# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that are prepared once, and go on from there in each call."""

import collections
import contextlib
import fcntl
import os
import shutil

from .cache import Cache, read_lines
from .errors import Failure, say, signals_wait
from .machine import PORTS, machine_options, private, quote, shared
from .qemu import (
    ENDED_BY_SIGNAL, SANDBOX, Qemu, has_sandbox, ignore_memory, read_line,
    save, temporary_log)

# How long a guest may take to start, on a machine that has much else to do.
BOOT_SECONDS = 300
# With less, a disk is full.
FULL = 16 << 20
# So many files that have changed are rather fetched anew, all of them.
MANY_CHANGES = 500
# Where guests have something of their own, which nothing can take the place of.
MOUNTED = ('/dev', '/proc', '/sys', '/tmp', '/var/tmp')
# What QEMU says of a saved guest that is damaged.
DAMAGED = ('load of migration failed', 'ram backing store size')


def prepare(args, there, cache, entry):
    """Boot a guest, and save it when it waits for a job."""
    cache.make_room()
    say(f'preparing a guest of {args.arch}, once; this takes some seconds')
    part = entry + '.part'
    qemu = None
    try:
        os.makedirs(part)
        if has_sandbox(there):
            open(os.path.join(part, 'sandbox'), 'w', encoding='utf-8').close()
        with temporary_log() as log:
            console = 'stdio' if args.verbose else 'null'
            with signals_wait():
                qemu = Qemu([*machine_options(args, there, shared(part), True),
                             '-accel', 'tcg'], ['control'], [],
                            None if args.verbose else log, console)
            ignore_memory(qemu)
            line = read_line(qemu, BOOT_SECONDS)
            if line != 'ready':
                raise Failure(f'the guest: {line}')
            save(qemu, os.path.join(part, 'state'))
        qemu.close()
        os.rename(part, entry)
    except Failure:
        if shutil.disk_usage(part).free < FULL:
            raise Failure(f'the disk of {part} is full') from None
        raise
    except OSError as e:
        raise Failure(f'{part}: {e.strerror}') from None
    finally:
        if qemu:
            qemu.close()
        shutil.rmtree(part, ignore_errors=True)


def load(args, there, place, ram, ports, paths, log, keeps=False,
         accelerator='tcg'):
    """A guest that was saved in a place.

    Returns it, and what has changed of the files that it keeps.
    """
    words = machine_options(args, there, ram, False)
    words += ['-accel', accelerator]
    if keeps:
        words += ['-global', 'virtio-files-device.keeps=on']
    if os.path.exists(os.path.join(place, 'sandbox')):
        words += SANDBOX
    if args.seed is not None:
        # Of the CPU's own instruction, which Power's programs may use
        words += ['-seed', str(args.seed)]
    qemu = Qemu([*words, '-incoming', 'defer', '-d', 'unimp'], ports, paths,
                None if args.verbose else log,
                'stdio' if args.verbose else 'null')
    try:
        ignore_memory(qemu)
        if args.census:
            qemu.command('pmu-census-start')
        qemu.command('migrate-incoming', uri=f'file:{place}/state')
        qemu.wait_until_it_runs()
        return qemu, [line.split(' ') for line in qemu.files('changes')]
    except BaseException:
        qemu.close()
        raise


def is_damaged(failure):
    return any(words in str(failure) for words in DAMAGED)


# A guest that waits for its job: its QEMU, the directory of its kind in the
# cache, the place there from which it goes on, and what has changed since.
Guest = collections.namedtuple('Guest', 'qemu entry place changes')


def is_useful(changes):
    """Whether a guest that keeps files can go on, if these have changed."""
    replaced = {path for how, path in changes if how == 'replaced'}
    return len(changes) < MANY_CHANGES and '/' not in replaced and not any(
        f'{os.path.realpath(place)}/'.startswith(f'{path}/')
        for place in MOUNTED for path in replaced)


def escaped(program):
    return os.fsencode(program or '').hex()


def resume(args, there, entry, paths, log, program):
    """A guest that waits for its job.

    The one that keeps files is for programs that read many: for others, looking
    at all of them takes longer than it saves.
    """
    place = os.path.join(entry, 'kept')
    accel = f'tcg,blocks={quote(os.path.join(entry, "blocks"))}'
    if Cache.is_ready(place) and \
            escaped(program) in read_lines(entry, 'readers'):
        try:
            qemu, changes = load(args, there, place, private(place), PORTS,
                                 paths, log, accelerator=accel)
            if is_useful(changes):
                return Guest(qemu, entry, place, changes)
            qemu.close()
        except Failure as e:
            if not is_damaged(e) and os.path.exists(f'{place}/memory'):
                raise
        shutil.rmtree(place, ignore_errors=True)
        log.truncate(0)
        log.seek(0)
    qemu, _ = load(args, there, entry, private(entry), PORTS, paths, log,
                   accelerator=accel)
    return Guest(qemu, entry, entry, [])


def start(args, there, paths, log, program=None):
    """A guest for a program from the cache, where it is put if it is not there.
    """
    cache = Cache()
    entry = cache.entry(args, there)
    with cache.locked(fcntl.LOCK_SH):
        if cache.is_ready(entry) and not args.prepare:
            os.utime(entry)
            return resume(args, there, entry, paths, log, program)
    with cache.locked(fcntl.LOCK_EX):
        if not cache.is_ready(entry):
            prepare(args, there, cache, entry)
        if args.prepare:
            return None
        return resume(args, there, entry, paths, log, program)


def forget_if_damaged(args, there, failure):
    """A saved guest that cannot be loaded is not tried again, and neither are
    blocks with which QEMU has crashed.
    """
    entry = Cache().entry(args, there)
    if is_damaged(failure):
        shutil.rmtree(entry, ignore_errors=True)
        raise Failure(f'{failure}; the saved guest is damaged and was '
                      'removed: call again') from None
    if ENDED_BY_SIGNAL in str(failure):
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(entry, 'blocks'))
            raise Failure(f'{failure}; the translated code that was kept is '
                          'removed: call again') from None
