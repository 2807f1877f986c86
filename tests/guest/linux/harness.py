# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines, programs and running guests of the Linux tests.

A test is a function of pytest.  `@on(MACHINE...)` gives it the machines on
which it runs, as its argument `machine`, and further arguments with `each`:

    @on(UP, SMP, each=['loop', 'calls'])
    def test_counts_of(guest, machine, program):
        output = guest.run(f'count r08c4:u {program}')
        assert parse(output)['r08c4:u'] == ...

The fixture `guest` is a guest of that machine, which all tests of a module
share; its scripts have the functions of guest.sh and the programs of
programs/, or programs-ppc64/, which state in symbols what they count, see
program.inc.  The fixture `start` starts guests of the test's own.  Machines in
`more` have a test in `make check-more` alone.  The modules machines_*.py have
the machines, and what else depends on the architecture.

A guest goes on from a snapshot of its machine, which snapshots.py keeps, and
boots if that cannot be.

No test may depend on how fast the host is, or on how long something takes.  A
test that has to do something while a guest executes a program says so with
in_time(): pytest runs it again if the guest was faster.
"""

import contextlib
import fcntl
import functools
import json
import os
import pathlib
import queue
import re
import subprocess
import tempfile
import threading
import time

import pytest

from linux_guest import (BEGIN, BUILD, END, JOBS, READY, ROOT, command,
                         qemu_of, write_initramfs)
from qmp import Closed, Failure, Monitor
from snapshots import give_job, load, snapshot_of

HERE = pathlib.Path(__file__).resolve().parent
ARCH = os.environ.get('ARCH', 'x86_64')
QEMU = os.environ.get('QEMU') or str(qemu_of(ARCH))

# The default of guest-run, with what TCG lacks left out to avoid warnings.
LEFT_OUT = '-pcid,-tsc-deadline,-hle,-rtm,-invpcid,-xsavec'
SKYLAKE = f'Skylake-Client-v1,pmu=on,{LEFT_OUT}'

# A guest would spend most of its time on what protects its kernel from
# programs, on keys, and on tests of ciphers.
QUICK = ('mitigations=off cryptomgr.notests initcall_blacklist='
         'crypto_kdf108_init,jent_mod_init,load_system_certificate_list,'
         'init_encrypted')
PROTECTED = 'mitigations=auto'
# Linux would clear pages by "rep stosb", of which TCG stores each byte alone.
# Programs ask CPUID, which keeps these bits.
BY_WORDS = 'clearcpuid=erms,fsrm'


class Architecture:
    """What depends on the guest's."""

    def __init__(self, suffix, cpu, append='', tools='', flags=()):
        self.directory = HERE / f'programs{suffix}'
        self.sources = sorted({*self.directory.glob('*.[cS]'),
                               HERE / 'programs' / 'fifo.c',
                               HERE / 'programs' / 'locality.c',
                               HERE / 'programs' / 'receive.c',
                               HERE / 'programs' / 'tally.c',
                               ROOT / 'contrib' / 'vpmu-agent'
                               / 'vpmu-agent.c'})
        self.programs = BUILD / 'tests' / 'guest' / f'linux{suffix}'
        self.cpu = cpu
        self.append = append
        self.tools = tools
        self.flags = list(flags)


GUEST = {
    # On a busy host Linux may find that the TSC is not stable, and say so.
    'x86_64': Architecture('', SKYLAKE,
                           append=f'tsc=reliable {BY_WORDS} {QUICK}'),
    'ppc64': Architecture('-ppc64', 'POWER9', tools='powerpc64le-linux-gnu-',
                          append=QUICK, flags=['-mcpu=power9']),
}[ARCH]
PROGRAMS = GUEST.programs

# An address anywhere in the kernel.
KERNEL = -1

# How many times as slow the QEMU is as ours; Linux is not to complain of that.
SLOWNESS = int(os.environ.get('SLOWNESS', '1'))
PATIENCE = 'nowatchdog' if SLOWNESS > 1 else ''

# The time that a guest may be silent, and that its job may take, or each of its
# scripts.  Only what hangs takes that long: on a host that is busy with
# something else all takes many times as long as usual.
SILENT_SECONDS = 600 * SLOWNESS
GUEST_SECONDS = 1200 * SLOWNESS
# For QEMU to leave when its guest or its monitor has ended.
GOODBYE_SECONDS = 60


class TooLate(Failure):
    """A guest had done with its program before the test did its part."""


def require(condition, why):
    """An assertion that says what is wrong."""
    assert condition, why


def in_time(condition, why):
    """Or pytest runs the test again."""
    if not condition:
        raise TooLate(why)


def require_equal(got, want, what):
    assert got == want, f'{what}: {got}, not {want}'


#
# Programs
#

@contextlib.contextmanager
def locked(path):
    """What one process makes at a time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, 'w', encoding='utf-8') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def compile_program(source, target):
    # Of C, all CPUs execute the code; of assembly, those that a test chooses.
    if source.suffix == '.S':
        flags = [*GUEST.flags, '-nostdlib', '-Wl,--no-warn-rwx-segments']
    else:
        flags = ['-O2', '-Wall', '-pthread']
    part = target.with_suffix('.part')
    subprocess.run([f'{GUEST.tools}gcc', '-static', *flags, '-o', part,
                    source], check=True)
    part.replace(target)


@functools.lru_cache
def build_programs():
    """Compile what has changed; return the names of all programs."""
    # Some include another.
    changed = max(source.stat().st_mtime for source in
                  [GUEST.directory / 'program.inc', *GUEST.sources])
    with locked(PROGRAMS / 'lock'):
        for source in GUEST.sources:
            target = PROGRAMS / source.stem
            if not target.exists() or target.stat().st_mtime < changed:
                compile_program(source, target)
    return [source.stem for source in GUEST.sources]


@functools.lru_cache
def symbols(program):
    """The symbols of a program, by name."""
    lines = subprocess.run([f'{GUEST.tools}nm', PROGRAMS / program],
                           check=True, text=True,
                           capture_output=True).stdout.splitlines()
    found = (line.split() for line in lines)
    return {words[2]: int(words[0], 16) for words in found if len(words) == 3}


def expectations(program):
    """What a program says that it counts: a dictionary by event."""
    build_programs()
    return {name.removeprefix('expect_'): value
            for name, value in symbols(program).items()
            if name.startswith('expect_')}


def files_of_tests():
    """What each guest has beside perf: pairs of source and path."""
    return [(HERE / 'guest.sh', '/tests/guest.sh'),
            *((PROGRAMS / name, f'/usr/bin/{name}')
              for name in build_programs())]


class System:
    """What a machine boots: a guest that scripts/build-NAME makes, with what
    files() returns."""

    def __init__(self, name, files, memory):
        self.guest = BUILD / f'{name}-{ARCH}'
        self.files = files
        self.memory = memory

    @functools.lru_cache
    def initramfs(self):
        files = self.files()
        target = PROGRAMS / f'{self.guest.name}.initrd'
        changed = max(source.stat().st_mtime for source in [
            self.guest / 'initrd', *(source for source, _ in files)])
        with locked(PROGRAMS / 'lock'):
            if not target.exists() or target.stat().st_mtime < changed:
                part = target.with_suffix('.part')
                write_initramfs(self.guest, part, files)
                part.replace(target)
        return target


LINUX = System('guest', files_of_tests, '1G')


#
# Machines
#

class Machine:
    """A way to start QEMU."""

    def __init__(self, name, cpu=GUEST.cpu, smp=1, accel='tcg', append='',
                 extra=(), monitor=(), setup='', machine=None, usual=True,
                 system=LINUX, prepare=''):
        self.name = name
        self.machine = machine          # if none: guest-run's own
        self.cpu = cpu                  # if none: the machine's own
        self.smp = smp
        self.accel = accel
        self.append = append
        self.extra = list(extra)
        self.monitor = list(monitor)    # commands before the first job
        self.setup = setup              # script before each test
        self.usual = usual              # or for `make check-more`
        self.system = system
        self.prepare = prepare          # script before its snapshot

    def variant(self, name, **changes):
        """A machine that differs in what is named."""
        other = Machine(name)
        other.__dict__.update(self.__dict__, name=name, **changes)
        return other

    def command(self, initrd, qemu=None, append='', kernel='kernel'):
        """QEMU's words for it."""
        parameters = [GUEST.append, PATIENCE, self.append, append]
        return [*command(ARCH, self.system.guest / kernel, initrd,
                         qemu=qemu or QEMU, machine=self.machine, cpu=self.cpu,
                         accel=self.accel, smp=self.smp,
                         memory=self.system.memory,
                         append=' '.join(filter(None, parameters)),
                         console='stdio,signal=off'), *self.extra]

    def __str__(self):
        return self.name.replace(' ', '-')


def on(*machines, more=(), each=((),)):
    """A mark: the machines of a test, more of them in `make check-more`, and
    each value, or tuple of values, of its further arguments.

    A machine that is None is another architecture's.
    """
    return pytest.mark.on(machines=machines, more=more, each=each)


def observed(name, machine):
    """A machine of which profiles are taken from outside, at the same time as
    its guest uses its PMU."""
    profiles = [('instructions', 10007), ('branches', 20011),
                ('accesses', 30011), ('exceptions', 1)]
    return machine.variant(name, extra=[
        word for n, (event, period) in enumerate(profiles)
        for word in ('-object', f'pmu-profile,id=observer{n},event={event},'
                     f'period={period},callchain=8,file=/dev/null')])


def with_core(machine, preset):
    """A machine whose CPUs have a model of their core, as the preset has it."""
    return machine.variant(
        f'core-{machine.name}', cpu=f'{machine.cpu},pmu-core=core0', setup='',
        extra=['-object', f'pmu-core,id=core0,preset={preset}'])


def filtered(name, machine, **properties):
    """A machine whose guests may not count everything."""
    what = {'qom-type': 'kvm-pmu-filter', 'id': 'filter', **properties}
    return machine.variant(name, accel='tcg,pmu-filter=filter',
                           extra=['-object', json.dumps(what)])


#
# Guests
#

class Guest:
    """A QEMU with the Linux guest, and its monitor.

    The guest has a job, which it runs at once, or takes jobs from run().
    Without @boots it goes on from a snapshot of its machine, if that can be
    saved.  With @boots, and with more files for it in @adds, it boots, and has
    its job in the initramfs, so that it begins anew after a reset.  With
    @moves, or with more files, Linux of x86 chooses its place.  With @incoming,
    the file of a stream, it arrives in the midst of a job.
    """

    def __init__(self, directory, machine, job=None, *, adds=(), extra=(),
                 boots=False, moves=False, incoming=None, qemu=None,
                 seconds=GUEST_SECONDS):
        self.directory = pathlib.Path(tempfile.mkdtemp(dir=directory))
        self.machine = machine
        self.errors_path = self.directory / 'errors'
        self.monitor = None
        self.log = []
        self.status = None              # of the job that has ended
        self.lines = queue.Queue()
        self.ready = threading.Event()
        self.seconds = seconds
        self.end = time.monotonic() + seconds
        self.has_own_job = boots or bool(adds) or qemu is not None
        self.arrives = incoming is not None
        self.job = job
        self.snapshot = None
        system = machine.system
        if self.has_own_job:
            initrd = self.directory / 'initrd'
            write_initramfs(system.guest, initrd, [*system.files(), *adds],
                            job)
        else:
            initrd = system.initramfs()
        # One that need not move need not unpack itself either.
        words = [*machine.command(initrd, qemu,
                                  '' if self.has_own_job else JOBS,
                                  'kernel' if moves or adds else 'unpacked'),
                 *extra]
        if self.arrives:
            words += ['-incoming', f'file:{incoming}']
        elif not self.has_own_job:
            self.snapshot = snapshot_of(words, machine.prepare)
        self._start(words)

    def _start(self, words):
        words = [*words, '-qmp',
                 f'unix:{self.directory / "qmp"},server=on,wait=off']
        with contextlib.ExitStack() as held:
            if self.snapshot:
                held.enter_context(self.snapshot.kept())
                words = [*self.snapshot.machine(words), '-incoming', 'defer']
            errors = held.enter_context(
                open(self.errors_path, 'w', encoding='utf-8'))
            self.process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=errors, text=True, errors='replace')
            threading.Thread(target=self._read, daemon=True).start()
            if self.snapshot:
                self.ready.set()
                self.connect()
                require(self.monitor, f'QEMU has ended: {self.errors()}')
                load(self.monitor, self.snapshot.state)

    def _read(self):
        """What jobs print, line by line; None after each, and in the end."""
        in_job = self.arrives
        for line in self.process.stdout:
            line = line.rstrip('\n').replace('\r', '')
            end = END.search(line)
            if end:
                # The job's last line may lack its newline.
                if end.start():
                    self.lines.put(line[:end.start()])
                self.status = int(end.group(1))
                self.lines.put(None)
                in_job = False
            elif in_job:
                self.lines.put(line)
            elif READY in line:
                self.ready.set()
            elif BEGIN in line:
                in_job = True
        self.lines.put(None)

    def connect(self):
        """To its monitor, unless QEMU ends."""
        while not self.monitor:
            try:
                self.monitor = Monitor.at(self.directory / 'qmp',
                                          closed=self._closed)
            except (FileNotFoundError, ConnectionError, Closed):
                if self.process.poll() is not None:
                    return
                time.sleep(0.01)

    def _closed(self, why):
        """What is wrong if the monitor has been closed."""
        if self.status is not None and self.has_ended_well():
            return TooLate('the guest had ended before the test')
        return Closed(why)

    def begin(self):
        """Give it its job, if it takes jobs."""
        if self.has_own_job or self.arrives:
            return
        for line in self.machine.monitor:
            said = self.monitor.human(line).strip()
            require(not said, f'{line}: {said}')
        if self.job is not None:
            self.give(self.job)

    def give(self, job):
        """A job, to a guest that waits for one, or soon will."""
        if not self.ready.wait(SILENT_SECONDS) and not self.process.poll():
            raise Failure('the guest does not wait for a job')
        self.ready.clear()
        self.status = None
        with contextlib.suppress(BrokenPipeError):
            give_job(self.process.stdin, job)

    def _write(self, text):
        # What QEMU says as it ends is better than that it has ended.
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(text)
            self.process.stdin.flush()

    def run(self, script):
        """Let it run a script; what that prints."""
        self.end = time.monotonic() + self.seconds
        self.give(f'. /tests/guest.sh\n{self.machine.setup}\n{script}\n')
        output = list(iter(lambda: self.line(SILENT_SECONDS), None))
        require(self.status == 0, f'the script ended with status {self.status}'
                f'{self.errors()}: ' + '; '.join(output[-20:]))
        return ''.join(f'{line}\n' for line in output)

    def go(self):
        """Let the guest go on that waits with wait_for_test."""
        self._write('go\n')

    def line(self, seconds=None):
        """The next line, within so many seconds if given; None at the end."""
        left = max(self.end - time.monotonic(), 0)
        try:
            line = self.lines.get(timeout=min(seconds or left, left))
        except queue.Empty:
            raise Failure('the guest is silent, after '
                          + '; '.join(self.log[-3:])) from None
        if line is not None:
            self.log.append(line)
        return line

    def lines_until(self, pattern):
        """The lines up to one that matches, which is the last."""
        found = []
        while True:
            line = self.line()
            if line is None:
                why = Failure if self.status is None else TooLate
                raise why(f'the guest ended without "{pattern}": '
                          + (self.errors() or '; '.join(found[-3:])))
            found.append(line)
            if re.search(pattern, line):
                return found

    def expect_silence(self, why):
        """in_time(), as long as the guest has not printed what comes next."""
        if not self.lines.empty():
            require(self.lines.queue[0] is not None or self.status is not None,
                    f'QEMU ended: {self.errors()}')
            raise TooLate(why)

    def rest(self):
        """What is printed until the end, which has to be a good one."""
        found = list(iter(self.line, None))
        require(self.status == 0, f'the job ended with status {self.status}: '
                + (self.errors() or '; '.join(found[-3:])))
        # An empty job ends a guest that takes jobs.
        self._write('0\n')
        require(self.has_ended_well(), 'QEMU does not end, or not well: '
                + self.errors())
        return found

    def finish(self):
        """The rest, of a job that waits for the test with its last command."""
        found = self.lines_until('@@@ ready')[:-1]
        self.go()
        return found + self.rest()

    def leave(self):
        """End QEMU in the midst of a job."""
        self.monitor.command('quit')
        ended = self.has_ended_well()
        in_time(self.status is None, 'the job had ended')
        require(ended and not self.errors(), f'QEMU said: {self.errors()}')

    def refusal(self):
        """What QEMU says when it is not to run a guest, and ends."""
        while self.line() is not None:
            pass
        require(self.status is None, 'QEMU has run the guest')
        self.process.wait()
        said = self.errors()
        self.errors_path.write_text('')
        return said

    def errors(self):
        return self.errors_path.read_text(errors='replace').strip()

    def has_ended_well(self):
        """Whether QEMU ends by itself now, and as it should."""
        try:
            return self.process.wait(GOODBYE_SECONDS) == 0
        except subprocess.TimeoutExpired:
            return False

    def close(self):
        """End the guest, if it has not ended."""
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        if self.monitor:
            self.monitor.close()
