# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests of Linux guests need: machines, guests, a monitor, results.

A test is one of two kinds:

* `@test(MACHINE...)` marks a generator that yields a script for the guest's
  shell, is given what the script printed, and asserts what it has to be:

      @test(UP, SMP, each=['loop', 'calls'])
      def returns(machine, program):
          output = yield f'count r08c4:u {program}'
          require_equal(parse(output)['r08c4:u'], ...)

  All tests of a machine run in one boot of it, in the order of the modules;
  `each` makes several of one, and machines in `more` have a test in
  `make check-more` alone.  The script has the functions of guest.sh and
  the programs of programs/, or programs-ppc64/, which state in symbols what
  they count, see program.inc.  Machines are in machines_*.py, with what
  else depends on the architecture.
* `@scenario` marks a function that starts guests itself, and asserts.

No test may depend on how fast the host is, or on how long something takes.  A
scenario that has to do something while a guest executes a program says so with
in_time(): it is tried again if the guest was faster.
"""

import contextlib
import functools
import itertools
import json
import os
import pathlib
import queue
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))

from qmp import Closed, Failure, Monitor                    # noqa: E402

ROOT = HERE.parent.parent.parent
BUILD = pathlib.Path(os.environ.get('BUILD', ROOT / 'build'))
ARCH = os.environ.get('ARCH', 'x86_64')

# The default of guest-run, with what TCG lacks left out to avoid warnings.
LEFT_OUT = '-pcid,-tsc-deadline,-hle,-rtm,-invpcid,-xsavec'
SKYLAKE = f'Skylake-Client-v1,pmu=on,{LEFT_OUT}'


class Architecture:
    """What depends on the guest's."""

    def __init__(self, suffix, cpu, append='', tools='', flags=()):
        self.directory = HERE / f'programs{suffix}'
        self.sources = sorted({*self.directory.glob('*.[cS]'),
                               HERE / 'programs' / 'fifo.c',
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
    'x86_64': Architecture('', SKYLAKE, append='tsc=reliable'),
    'ppc64': Architecture('-ppc64', 'POWER9', tools='powerpc64le-linux-gnu-',
                          flags=['-mcpu=power9']),
}[ARCH]
PROGRAMS = GUEST.programs

# An address anywhere in the kernel.
KERNEL = -1

# How many times as slow the QEMU is as ours; Linux is not to complain of that.
SLOWNESS = int(os.environ.get('SLOWNESS', '1'))
PATIENCE = 'nowatchdog' if SLOWNESS > 1 else ''

# What one script may take, the kernel and the leaving of a guest, and all that
# a scenario does with one.  Only what hangs is to come that far: on a host that
# is busy with something else all takes many times as long.
SCRIPT_SECONDS = 600 * SLOWNESS
BOOT_SECONDS = 600 * SLOWNESS
TEST_SECONDS = 90 * SLOWNESS
SCENARIO_SECONDS = 1200 * SLOWNESS
# For QEMU to leave when its monitor has gone.
GOODBYE_SECONDS = 60
# Of a scenario that comes too late for its guest.
TRIES = 3


class Skip(Exception):
    """A scenario that is not for this host, and why."""


class TooLate(Failure):
    """A guest was done with its program before a scenario did its part."""


def require(condition, why):
    """An assertion that says what is wrong."""
    if not condition:
        raise AssertionError(why)


def in_time(condition, why):
    """Or the scenario is to be tried again."""
    if not condition:
        raise TooLate(why)


def require_equal(got, want, what):
    require(got == want, f'{what}: {got}, not {want}')


#
# Signals
#

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def ignore_signals():
    """A second one is not to keep us from ending what we have started."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def end_by_signals():
    """What ends this program ends what it has started, too."""
    def end(number, _):
        ignore_signals()
        sys.exit(128 + number)

    for number in ENDING:
        # A shell has Ctrl-C ignored by what it runs in the background, and so
        # would be all that is started here; who uses nohup wants a hangup so.
        if number == signal.SIGINT or \
                signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, end)


#
# Programs
#

def build_programs():
    """Compile what has changed; return the names of all programs.

    Others may do the same at the same time, and never see half of one.
    """
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    # Some include another.
    changed = max(source.stat().st_mtime for source in
                  [GUEST.directory / 'program.inc', *GUEST.sources])
    names = []
    for source in GUEST.sources:
        target = PROGRAMS / source.stem
        names.append(source.stem)
        if target.exists() and target.stat().st_mtime > changed:
            continue
        if source.suffix == '.S':
            flags = ['-nostdlib', '-Wl,--no-warn-rwx-segments']
        else:
            flags = ['-O2', '-Wall', '-pthread']
        with tempfile.TemporaryDirectory(dir=PROGRAMS) as directory:
            made = pathlib.Path(directory) / source.stem
            subprocess.run([f'{GUEST.tools}gcc', '-static', *GUEST.flags,
                            *flags, '-o', made, source], check=True)
            made.replace(target)
    return names


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
    return {name.removeprefix('expect_'): value
            for name, value in symbols(program).items()
            if name.startswith('expect_')}


#
# Machines
#

class Machine:
    """A way to start QEMU."""

    def __init__(self, name, cpu=GUEST.cpu, smp=1, accel='tcg', append='',
                 extra=(), monitor=(), setup='', slowness=1, machine=None,
                 usual=True):
        self.name = name
        self.machine = machine          # if none: guest-run's own
        self.cpu = cpu                  # if none: the machine's own
        self.smp = smp
        self.accel = accel
        self.append = append
        self.extra = list(extra)
        self.monitor = list(monitor)    # commands before the first test
        self.setup = setup              # script before each test
        self.slowness = slowness        # more time is given
        self.usual = usual              # or for `make check-more`

    def variant(self, name, **changes):
        """A machine that differs in what is named."""
        other = Machine(name)
        other.__dict__.update(self.__dict__, name=name, **changes)
        return other


def observed(name, machine):
    """A machine of which profiles are taken from outside, at the same time as
    its guest uses its PMU."""
    profiles = [('instructions', 10007), ('branches', 20011),
                ('accesses', 30011), ('exceptions', 1)]
    return machine.variant(name, extra=[
        word for n, (event, period) in enumerate(profiles)
        for word in ('-object', f'pmu-profile,id=observer{n},event={event},'
                     f'period={period},callchain=8,file=/dev/null')])


def filtered(name, machine, **properties):
    """A machine whose guests may not count everything."""
    what = {'qom-type': 'kvm-pmu-filter', 'id': 'filter', **properties}
    return machine.variant(name, accel='tcg,pmu-filter=filter',
                           extra=['-object', json.dumps(what)])


class Guest:
    """A running guest: scripts/guest-run, with a monitor if asked for.

    The second serial port lets the guest wait for the test: it reads a line
    there that `go()` writes.  Firmware that takes that port for its console
    has a guest that cannot wait.
    """

    started = []                        # all of them; none once that is over
    lock = threading.Lock()

    def __init__(self, directory, machine, job, programs=(), adds=(),
                 monitored=False, can_wait=True, extra=(), verbose=False,
                 seconds=SCENARIO_SECONDS, qemu=None):
        self.directory = pathlib.Path(tempfile.mkdtemp(dir=directory))
        self.errors_path = self.directory / 'errors'
        self.monitor_path = self.directory / 'qmp'
        self.port_path = self.directory / 'port'
        self.monitor = None
        self.port = None
        extra = [*machine.extra, *extra]
        if monitored:
            extra += ['-qmp', f'unix:{self.monitor_path},server=on,wait=off']
        if monitored and can_wait:
            extra += ['-serial', f'unix:{self.port_path},server=on,wait=off']
        command = [ROOT / 'scripts' / 'guest-run', '--arch', ARCH,
                   '--timeout', str(seconds), '--smp', str(machine.smp),
                   '--accel', machine.accel,
                   '--append', f'{GUEST.append} {PATIENCE} {machine.append}']
        for option, value in (('--machine', machine.machine),
                              ('--cpu', machine.cpu), ('--qemu', qemu)):
            command += [option, value] if value else []
        command += [f'--extra={word}' for word in extra]
        for source, path in adds:
            command += ['--add', f'{source}:{path}']
        for name in programs:
            command += ['--add', f'{PROGRAMS / name}:/usr/bin/{name}']
        if verbose:
            command.append('--verbose')
        job_path = self.directory / 'job'
        job_path.write_text(job)
        # What guest-run leaves behind when it is ended is removed with ours.
        environment = {**os.environ, 'TMPDIR': str(self.directory)}
        with open(self.errors_path, 'w', encoding='utf-8') as errors, \
                Guest.lock:
            require(Guest.started is not None, 'the tests are to end')
            self.process = subprocess.Popen(
                [*command, job_path], stdout=subprocess.PIPE, stderr=errors,
                text=True, env=environment, start_new_session=True)
            Guest.started.append(self.process)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.log = []
        self.monitored = monitored
        self.can_wait = can_wait

    @staticmethod
    def end_all():
        """Whoever waits for one sees it end, and can start no other."""
        with Guest.lock:
            for process in Guest.started:
                if process.poll() is None:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGTERM)
            Guest.started = None

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip('\n'))
        self.lines.put(None)

    def connect(self):
        """To its monitor, if it has one, and the port."""
        while self.monitored:
            try:
                self.monitor = Monitor.at(self.monitor_path)
                if self.can_wait:
                    self.port = socket.socket(socket.AF_UNIX)
                    self.port.connect(str(self.port_path))
                return
            except (FileNotFoundError, ConnectionRefusedError):
                if self.process.poll() is not None:
                    raise Failure(self.errors() or 'QEMU ended') from None
                time.sleep(0.05)

    def go(self):
        """Let the guest go on that waits on its second serial port."""
        require(self.can_wait, 'this guest waits for nobody')
        self.port.send(b'go\n')

    def line(self, seconds=None):
        """The next line, within so many seconds if given; None at the end."""
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            raise Failure(f'the guest is silent for {seconds} s') from None
        if line is not None:
            self.log.append(line)
        return line

    def lines_until(self, pattern):
        """The lines up to one that matches, which is the last."""
        found = []
        while True:
            line = self.line()
            if line is None:
                why = TooLate if self.has_ended_well() else Failure
                raise why(f'the guest ended without "{pattern}": '
                          + (self.errors() or '; '.join(found[-3:])))
            found.append(line)
            if re.search(pattern, line):
                return found

    def expect_silence(self, why):
        """in_time(), as long as the guest has not printed what comes next."""
        if not self.lines.empty():
            require(self.lines.queue[0] is not None or self.has_ended_well(),
                    f'QEMU ended: {self.errors()}')
            raise TooLate(why)

    def rest(self):
        """What is printed until the end, which has to be a good one."""
        found = list(iter(self.line, None))
        status = self.process.wait()
        require(status == 0, f'guest-run ended with status {status}: '
                + (self.errors() or '; '.join(found[-3:])))
        return found

    def finish(self):
        """The rest, of a job that waits for the test with its last command.

        Without that, QEMU leaves with its monitor when the job has printed its
        last line, or soon.
        """
        found = self.lines_until('@@@ ready')[:-1]
        self.go()
        return found + self.rest()

    def refusal(self):
        """What QEMU says when it is not to run a guest, and ends."""
        while self.line() is not None:
            pass
        self.process.wait()
        said = self.errors()
        self.errors_path.write_text('')
        return said

    def errors(self):
        return self.errors_path.read_text(errors='replace').strip()

    def has_ended_well(self):
        """Whether the job has come to its end, and with it QEMU."""
        try:
            return self.process.wait(GOODBYE_SECONDS) == 0
        except subprocess.TimeoutExpired:
            return False

    def close(self):
        """End the guest, if it has not ended."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        for connection in (self.port, self.monitor):
            if connection:
                connection.close()


#
# Tests
#

class Test:
    """A script for a machine, and what is asserted about it."""

    def __init__(self, entry):
        self.label = entry.label
        self.generator = entry.function(entry.machine, *entry.arguments)
        self.script = next(self.generator)
        self.files = getattr(entry.function, 'files', tuple)()

    def judge(self, output, status):
        """Raises if the output is not as it has to be."""
        try:
            require(status == 0, f'the script ended with status {status}')
            self.generator.send(output)
        except StopIteration:
            return
        raise Failure('the test yielded twice')


TESTS = []
SCENARIOS = []


class Entry:
    """A test with its arguments, or a scenario, and on which machine."""

    def __init__(self, function, machine=None, arguments=(), usual=True):
        self.function = function
        self.machine = machine          # of some scenarios there is none
        self.arguments = arguments
        self.name = '/'.join([function.__name__, *map(str, arguments)])
        self.label = f'{self.name} [{machine.name}]' if machine else self.name
        # If not, just `make check-more` runs it.
        self.usual = usual and (not machine or machine.usual)


def entries(function, machines, more, each=((),)):
    """For each machine of two lists, and each of some arguments."""
    # One that is in both lists is so once.
    for machine, arguments in itertools.product(
            dict.fromkeys([*machines, *more]), each):
        if machine:
            yield Entry(function, machine, arguments
                        if isinstance(arguments, tuple) else (arguments,),
                        usual=machine in machines)


def test(*machines, more=(), each=((),)):
    """A test on each of the machines, and for each of some arguments; and on
    more of them, which only `make check-more` runs.

    A machine that is None is another architecture's.
    """
    def register(function):
        TESTS.extend(entries(function, machines, more, each))
        return function
    return register


def with_files(files):
    """A test whose guest has the files that this function returns: pairs of
    source and path."""
    def add(function):
        function.files = files
        return function
    return add


def scenario(function):
    """A function of a directory that starts guests itself."""
    SCENARIOS.append(Entry(function))
    return function


def scenario_of(*machines, more=()):
    """A function of a directory and of a machine, for each that there is, and
    for more, in `make check-more`."""
    def add(function):
        SCENARIOS.extend(entries(function, machines, more))
        return function
    return add


def only(architecture):
    """A test or scenario that only one of them has; above its other marks."""
    def keep(function):
        if architecture != ARCH:
            for registered in TESTS, SCENARIOS:
                registered[:] = [one for one in registered
                                 if one.function is not function]
        return function
    return keep


def in_one_line(why):
    return ' '.join(str(why).split())


class Results:
    """Prints and counts tests as they end."""

    def __init__(self, timed=False):
        self.failed = 0
        self.timed = timed
        self.lock = threading.Lock()

    def skip(self, label, why):
        with self.lock:
            print(f'ok {label} # SKIP {why}', flush=True)

    def again(self, label, why):
        with self.lock:
            print(f'# {label}: again, as {in_one_line(why)}', flush=True)

    def report(self, label, why=None, log=(), seconds=None):
        with self.lock:
            if why is None:
                if seconds and self.timed:
                    label += f'    ({seconds:.1f} s)'
                print(f'ok {label}', flush=True)
                return
            self.failed += 1
            print(f'not ok {label} # {in_one_line(why)}', flush=True)
            for line in log:
                print(f'    {line[:500]}', flush=True)


def job_of(machine):
    """The job that runs the scripts, and says where each begins and ends."""
    wait = 'wait_for_test' if machine.monitor else ''
    seconds = SCRIPT_SECONDS * machine.slowness
    return f'''
. /tests/guest.sh
guest_setup
{wait}
for script in /tests/*.test; do
    echo "@@@ begin"
    timeout -k 5 {seconds} sh "$script" 2>&1
    status=$?
    echo
    echo "@@@ end $status"
done
complaints
'''


def follow(guest, left, results, silence):
    """Judge the tests as they end, and take them out of those that are left.

    Raises if a guest says nothing for longer than a script may take.
    """
    output = []
    while left:
        line = guest.line(silence)
        if line is None:
            return
        end = re.match(r'@@@ end (\d+)', line)
        if line == '@@@ begin':
            output = []
            begun = time.monotonic()
        elif end:
            current = left.pop(0)
            text = '\n'.join(output)
            try:
                current.judge(text, int(end.group(1)))
            except (AssertionError, Failure, LookupError, ValueError) as wrong:
                results.report(current.label,
                               str(wrong) or repr(wrong), output[-40:])
            else:
                results.report(current.label,
                               seconds=time.monotonic() - begun)
        else:
            output.append(line)


def last_words(log):
    """What a kernel says when it ends, with the place."""
    return [line for line in log
            if re.search(r'Kernel panic|BUG:|Oops|\] RIP: |\] NIP ', line)]


def run_tests(directory, machine, tests, programs, results):
    """Boot a machine, and run its tests."""
    directory = pathlib.Path(tempfile.mkdtemp(dir=directory))
    adds = [(HERE / 'guest.sh', '/tests/guest.sh')]
    for number, one in enumerate(tests):
        path = directory / f'{number:03}.test'
        path.write_text(f'. /tests/guest.sh\n{machine.setup}\n{one.script}\n')
        adds.append((path, f'/tests/{path.name}'))
    adds += {pair for one in tests for pair in one.files}
    left = list(tests)
    guest = Guest(directory, machine, job_of(machine), programs, adds,
                  monitored=bool(machine.monitor),
                  seconds=machine.slowness * (
                      BOOT_SECONDS + TEST_SECONDS * len(tests)))
    try:
        guest.connect()
        if machine.monitor:
            guest.lines_until('@@@ ready')
            for command in machine.monitor:
                said = guest.monitor.human(command).strip()
                require(not said, f'{command}: {said}')
            guest.go()
        follow(guest, left, results, machine.slowness * (
            BOOT_SECONDS + SCRIPT_SECONDS))
        complaints = [] if left else list(filter(None, guest.rest()))
        why = '; '.join(filter(None, [guest.errors(), *complaints]))
    except (AssertionError, Failure, OSError) as wrong:
        why = str(wrong)
    finally:
        guest.close()
    for one in left:
        results.report(one.label, f'not run: {why}', guest.log[-20:])
    if left:
        why = '; '.join([why, *last_words(guest.log)])
    # QEMU, guest-run and the kernel have nothing to say if all is well.
    results.report(f'quiet [{machine.name}]', why or None)


def attempt(entry, directory, guests):
    """Raises what is wrong.  Guests that it starts are added to those."""
    def start(*args, **kwargs):
        guests.append(Guest(directory, *args, **kwargs))
        guests[-1].connect()
        return guests[-1]

    try:
        entry.function(start, directory, *filter(None, [entry.machine]))
    except (Closed, ConnectionError):
        # The last one is who was spoken to: the others were left.
        in_time(not guests or not guests[-1].has_ended_well(),
                'the guest had ended before the test')
        raise
    for guest in guests:
        require(not guest.errors(), f'QEMU said: {guest.errors()}')


def try_scenario(directory, entry, results, is_last):
    """Returns: whether that is its result."""
    directory = pathlib.Path(tempfile.mkdtemp(dir=directory))
    guests = []
    begun = time.monotonic()
    try:
        attempt(entry, directory, guests)
    except Skip as why:
        results.skip(entry.label, why)
    except (AssertionError, Failure, LookupError, ValueError, OSError) as wrong:
        if isinstance(wrong, TooLate) and not is_last:
            results.again(entry.label, wrong)
            return False
        log = [line for guest in guests for line in guest.log[-20:]]
        results.report(entry.label, str(wrong) or repr(wrong), log)
    else:
        results.report(entry.label, seconds=time.monotonic() - begun)
    finally:
        for guest in guests:
            guest.close()
        shutil.rmtree(directory)
    return True


def run_scenario(directory, entry, results):
    """Again, if a busy host has kept the test from its part."""
    tries = 1
    while not try_scenario(directory, entry, results, tries == TRIES):
        tries += 1
