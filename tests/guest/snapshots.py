# SPDX-License-Identifier: GPL-2.0-or-later
"""Snapshots of machines whose guest has booted and waits for a job.

Each is the file of its memory and that of its devices' state, in a directory
of BUILD/snapshots that is named by what it depends on.  A guest that goes on
has the former as a private view, so that many can do so at once.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading

from linux_guest import BUILD, READY
from qmp import Failure, Monitor

DIRECTORY = BUILD / 'snapshots'
GOOD_END = '<<< exit 0 >>>'
# Each has some hundred MB.  So many are kept, which is more than a check of all
# needs, as long as so much of the disk is free, and a few in any case.
KEPT = 50
FEW = 6
FREE = 2 << 30
BOOT_SECONDS = 1800 * int(os.environ.get('SLOWNESS', '1'))

# How TCG executes, and who looks on, which no guest sees; and a filter, which
# changes counts alone.
HIDDEN = re.compile(
    r'(?<=^tcg),(thread|one-insn-per-tb|tb-size|pmu-filter)=[^,]*')
ONLOOKERS = ('-plugin', '-trace', '-d', '-D')


def saved_words(words):
    """QEMU's words, as far as they matter for what is saved.

    Profiles do not: but a port of the guest's needs its chardev.
    """
    saved = []
    ports = set(re.findall(r'chardev=([^,\s]*)', ' '.join(words)))
    rest = iter(words)
    for word in rest:
        value = next(rest) if word in ('-object', *ONLOOKERS) else ''
        if word in ONLOOKERS or 'kvm-pmu-filter' in value:
            continue
        if value.startswith('pmu-profile,'):
            name = re.search(r'id=([^,]*)', value)[1]
            if name in ports:
                saved += [word, f'pmu-profile,id={name},chardev={name}']
        else:
            saved += [HIDDEN.sub('', word), *filter(None, [value])]
    return saved


def value_of(words, option):
    """The last one, which QEMU takes."""
    return words[len(words) - words[::-1].index(option)]


def memory_of(machine):
    """The name of its memory in streams, so that a guest can migrate to a
    machine that was started in the usual way; None if it cannot be saved."""
    if machine.startswith('pseries'):
        return 'ppc_spapr.ram'
    return 'pc.ram' if re.match('(pc|q35)', machine) else None


def identity(path):
    about = os.stat(path)
    return str(path), about.st_size, about.st_mtime_ns


def snapshot_of(words, prepare=''):
    """That of a machine that these start, and whose guest has run a script, or
    None if it cannot be saved."""
    memory = memory_of(value_of(words, '-machine'))
    if not memory or '-S' in words or not value_of(
            words, '-accel').startswith('tcg'):
        return None
    return Snapshot(saved_words(words), memory, prepare)


def memory_options(words, name, path, how):
    """The machine's memory as a file."""
    machine = words.index('-machine') + 1
    return [*words[:machine], f'{words[machine]},memory-backend={name}',
            *words[machine + 1:], '-object',
            f'memory-backend-file,id={name},mem-path={path},'
            f'size={re.sub("(?<=[0-9])$", "M", value_of(words, "-m"))},{how},'
            'x-use-canonical-path-for-ramblock-id=off']


def ignore_memory(monitor, state):
    monitor.command('migrate-set-capabilities', capabilities=[
        {'capability': 'x-ignore-shared', 'state': state}])


def wait_for_migration(monitor, what):
    def is_over():
        about = monitor.command('query-migrate')
        if about.get('status') == 'failed':
            raise Failure(f'{what}: {about.get("error-desc")}')
        return about.get('status') == 'completed'

    monitor.wait(what, is_over)


def load(monitor, state):
    """Into a QEMU that was started with -incoming defer."""
    ignore_memory(monitor, True)
    monitor.command('migrate-incoming', uri=f'file:{state}')
    wait_for_migration(monitor, 'loading a snapshot')
    # The guest may migrate with all of its memory.
    ignore_memory(monitor, False)


class Snapshot:
    """One, whether or not it has been made."""

    def __init__(self, words, memory, prepare):
        self.words = words
        self.memory = memory
        self.prepare = prepare
        depends = [identity(value_of(words, option))
                   for option in ('-kernel', '-initrd')]
        name = hashlib.sha256(repr(
            [words, identity(words[0]), depends,
             *filter(None, [prepare])]).encode()).hexdigest()[:24]
        self.path = DIRECTORY / name
        self.state = self.path / 'state'

    @contextlib.contextmanager
    def kept(self):
        """The snapshot is there, and stays."""
        DIRECTORY.mkdir(parents=True, exist_ok=True)
        with open(self.path.with_suffix('.lock'), 'w') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self.state.exists():
                make_room()
                self._make()
            os.utime(self.path)
            fcntl.flock(lock, fcntl.LOCK_SH)
            yield

    def machine(self, words, how='share=off,readonly=on,rom=off'):
        """Words of a machine, with its memory."""
        return memory_options(words, self.memory, self.path / 'memory', how)

    def _make(self):
        shutil.rmtree(self.path, ignore_errors=True)
        part = self.path.with_suffix('.part')
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        try:
            self._boot(part)
            part.rename(self.path)
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def _boot(self, part):
        words = memory_options(self.words, self.memory, part / 'memory',
                               'share=on')
        with tempfile.TemporaryDirectory() as directory, \
                tempfile.TemporaryFile('w+') as errors, subprocess.Popen(
                    [*words, '-qmp',
                     f'unix:{directory}/qmp,server=on,wait=off'],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    stderr=errors, text=True, errors='replace') as process:
            late = threading.Timer(BOOT_SECONDS, process.kill)
            late.start()
            try:
                self._await(READY, process, errors)
                if self.prepare:
                    give_job(process.stdin, self.prepare)
                    self._await(GOOD_END, process, errors)
                    self._await(READY, process, errors)
                monitor = Monitor.at(f'{directory}/qmp')
                ignore_memory(monitor, True)
                monitor.command('migrate', uri=f'file:{part}/state')
                wait_for_migration(monitor, 'saving a snapshot')
                monitor.close()
            finally:
                late.cancel()
                process.kill()

    def _await(self, what, process, errors):
        said = []
        for line in process.stdout:
            said.append(line.rstrip())
            if what in line:
                return
        errors.seek(0)
        raise Failure(f'the guest did not print "{what}": '
                      + '; '.join([*said[-20:], errors.read()]))


def give_job(stdin, job):
    """To a guest that takes jobs."""
    stdin.write(f'{len(job.encode())}\n{job}')
    stdin.flush()


def used_at(path):
    """When; another process may have removed it."""
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_mtime
    return 0


def make_room():
    """Remove the snapshots that were used longest ago."""
    found = sorted((path for path in DIRECTORY.iterdir() if path.is_dir()),
                   key=used_at)
    for n, path in enumerate(found[:-FEW]):
        if (len(found) - n < KEPT
                and shutil.disk_usage(DIRECTORY).free > FREE):
            break
        with open(path.with_suffix('.lock'), 'w') as lock, \
                contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
