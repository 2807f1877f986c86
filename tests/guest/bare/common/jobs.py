# SPDX-License-Identifier: GPL-2.0-or-later
"""Bare-metal test guests: suites on a machine, in a mode, and what comes out.
"""

import os
import re
import subprocess
import tempfile

import straight
from machine import LATE_OBSERVER, MODES, OBSERVERS
from perf import shown_by_perf

SKIPPED = object()


class Results:
    """Prints and counts cases as they end."""

    def __init__(self):
        self.passed = 0
        self.failed = 0
        self.skipped = 0

    def case(self, name, label, verdict=None):
        """@verdict: None if it has passed, SKIPPED, or what is wrong."""
        line = f'{name} [{label}]'
        if verdict is None:
            self.passed += 1
            print(f'ok {line}', flush=True)
        elif verdict is SKIPPED:
            self.skipped += 1
            print(f'ok {line} # skip', flush=True)
        else:
            self.failed += 1
            print(f'not ok {line} # {verdict}', flush=True)


def difference(got, want):
    got, want = got or [], want or []
    return '; '.join(f'{g} but {w}' for g, w in zip(got, want) if g != w) \
        or f'{len(got)} lines but {len(want)}'


class Job:
    """Cases of some suites on one machine in one mode, in as few boots as it
    takes."""

    def __init__(self, machine, mode, cases, args=(), options=None,
                 asserts=True):
        self.label = ' '.join(filter(None, [mode, machine.name]))
        self.machine = machine
        self.cases = cases
        self.args = [*MODES.get(mode, ()), *args]
        self.options = options or {}    # of the guest
        self.asserts = asserts          # or the cases just print
        self.outcomes = []              # of each case: its name, the verdict
        self.compare = {}               # lines for comparison, by case

    def boot(self, skip, timeout, args=(), meddle=None):
        suites = dict.fromkeys(case.split('/')[0] for case in self.cases)
        options = {'suite': ','.join(suites), 'skip': skip, **self.options}
        return self.machine.boot([*self.args, *args], options, timeout, meddle)

    def run(self, timeout):
        while len(self.outcomes) < len(self.cases):
            lines, complaint = self.boot(len(self.outcomes), timeout)
            self.take(lines)
            left = self.cases[len(self.outcomes):]
            if 'end' in lines:
                self.outcomes += [(case, 'it was not run') for case in left]
                left = []
            if complaint:
                self.outcomes.append((left[0] if left else 'end', complaint))

    def take(self, lines):
        """What a boot has printed."""
        for line in lines:
            match = re.match(r'(ok|not ok|skip) (\S+)(?: # (.*))?$', line)
            if match:
                verdict = {'ok': None, 'skip': SKIPPED,
                           'not ok': match[3] or 'no reason given'}[match[1]]
                self.outcomes.append((match[2], verdict))
            elif line.startswith('= '):
                case = self.cases[len(self.outcomes)]
                self.compare.setdefault(case, []).append(line[2:])

    def planned(self):
        """How many lines there have to be."""
        return len(self.cases) if self.asserts else 0

    def report(self, results):
        for name, verdict in self.outcomes:
            # That it has printed something is no success yet.
            if self.asserts or verdict is not None:
                results.case(name, self.label, verdict)


class Debugged(Job):
    """With a debugger: @meddle is called with the path of QEMU's stub."""

    def __init__(self, meddle, *args, **more):
        super().__init__(*args, **more)
        self.meddle = meddle

    def boot(self, skip, timeout, args=(), meddle=None):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'gdb')
            return super().boot(
                skip, timeout,
                ['-S', '-gdb', f'unix:{path},server=on,wait=off', *args],
                lambda: self.meddle(path, timeout))


class Stepped(Debugged):
    """With a debugger that takes steps, each of which has to move.

    @step is called like what meddles, and with what takes complaints.
    """

    def __init__(self, step, *args, **more):
        super().__init__(
            lambda path, timeout: step(path, timeout, self.stuck.append),
            *args, **more)
        self.stuck = []

    def run(self, timeout):
        super().run(timeout)
        suite = self.cases[0].split('/')[0]
        self.outcomes.append((f'{suite}/moves', '; '.join(self.stuck) or None))

    def planned(self):
        return super().planned() + 1


class Profiled(Job):
    """While a profile is taken, in which blocks are executed whole."""

    PROPERTIES = 'period=11'

    def look(self, file):
        """Take what perf shows of a profile."""
        raise NotImplementedError

    def verdict(self):
        """None, or what is wrong with what was taken."""
        raise NotImplementedError

    def boot(self, skip, timeout, args=(), meddle=None):
        with tempfile.TemporaryDirectory() as directory:
            file = os.path.join(directory, 'data')
            ended = super().boot(
                skip, timeout,
                ['-object',
                 f'pmu-profile,id=profile,{self.PROPERTIES},file={file}',
                 *args], meddle)
            self.look(file)
        return ended

    def run(self, timeout):
        super().run(timeout)
        suite = self.cases[0].split('/')[0]
        self.outcomes.append((f'{suite}/profile', self.verdict()))

    def planned(self):
        return super().planned() + 1


def symbols(program):
    return {name: int(value, 16) for value, _, name in (
        line.split() for line in subprocess.run(
            ['nm', program], check=True, text=True,
            capture_output=True).stdout.splitlines())}


def spaces_of_code(file, begin, end):
    """The address spaces in which perf shows some code of a profile."""
    return {space for space, ip in re.findall(
        r'^\s*(\S.*?)\s+([0-9a-f]+)\s*$',
        shown_by_perf('script', '-i', file, '-F', 'comm,ip'), re.MULTILINE)
        if begin <= int(ip, 16) < end}


class NestedApart(Profiled):
    """The guest's guests are told apart from itself; code between two labels is
    executed by them alone."""

    def __init__(self, program, begin, end, *args, **more):
        super().__init__(*args, **more)
        self.code = symbols(program)[begin], symbols(program)[end]
        self.owners = set()             # of that code
        self.shown = set()              # address spaces, and what runs there

    def look(self, file):
        lines = shown_by_perf('report', '-i', file, '--stdio', '-q', '-t', ';',
                              '--sort', 'comm,dso').splitlines()
        self.shown |= {tuple(word.strip() for word in line.split(';')[1:])
                       for line in lines if line}
        self.owners |= spaces_of_code(file, *self.code)

    def verdict(self):
        nested = {space.startswith('guest=') for space, _ in self.shown}
        apart = all(space.startswith('guest=') == (what == '[nested-guest]')
                    for space, what in self.shown)
        owned = {space.startswith('guest=') for space in self.owners}
        return None if apart and nested == {False, True} and owned == {True} \
            else f'perf shows {sorted(self.shown)}, and {self.owners}'


class SpacesApart(Profiled):
    """What runs in one address space is in no other: code between a label and
    that with "_end"."""

    def __init__(self, program, names, *args, **more):
        super().__init__(*args, **more)
        self.symbols = symbols(program)
        self.shown = {name: set() for name in names}

    def look(self, file):
        for name, spaces in self.shown.items():
            spaces |= spaces_of_code(file, self.symbols[name],
                                     self.symbols[f'{name}_end'])

    def verdict(self):
        one_each = all(len(spaces) == 1 for spaces in self.shown.values())
        return None if one_each and not set.intersection(*self.shown.values()) \
            else f'perf shows {self.shown}'


class StraightCode(Profiled):
    """From where a branch goes, code goes straight on to the next branch.

    From one sample to the next there are fewer branches than a sample has; what
    comes when the file is full, in the loops of some suites, is not looked at.
    """

    PROPERTIES = f'{straight.BRANCHES},period=17,max-size={1 << 23}'

    def __init__(self, listing, *args, **more):
        """@listing returns that of the program, once it is built."""
        super().__init__(*args, **more)
        self.listing = listing
        self.passages = set()

    def look(self, file):
        self.passages |= straight.passages(file)

    def verdict(self):
        return self.listing().obstacles(self.passages)


def split_by_case(lines):
    cases = {}
    name = None
    for line in lines:
        if line.startswith('run '):
            name = line[4:]
        cases.setdefault(name, []).append(line)
    return cases


class Replayed(Job):
    """A run is recorded and replayed, also while others look: every line comes
    again."""

    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.label = 'replay = record'

    def run(self, timeout):
        with tempfile.TemporaryDirectory() as directory:
            record = self.run_as('record', directory, timeout)
            replays = [self.run_as('replay', directory, timeout, more)
                       for more in ((), OBSERVERS, LATE_OBSERVER)]
        self.outcomes += [(case, self.first_verdict(record, replays, case))
                          for case in self.cases]

    def first_verdict(self, record, replays, case):
        """On the first replay that is not as the recording."""
        verdicts = [self.verdict(record.get(case), replay.get(case), case)
                    for replay in replays]
        return next((verdict for verdict in verdicts if verdict), None)

    def run_as(self, what, directory, timeout, more=()):
        """Returns the lines of each case."""
        file = os.path.join(directory, 'rr')
        lines, complaint = self.boot(
            0, timeout, ['-accel', 'tcg', '-icount',
                         f'shift=auto,rr={what},rrfile={file}', *more])
        if complaint:
            suite = self.cases[0].split('/')[0]
            self.outcomes.append((f'{suite}/end of {what}', complaint))
        return split_by_case(lines)

    def verdict(self, want, got, case):
        if not got or got != want:
            return difference(got, want)
        if f'skip {case}' in got:
            return SKIPPED
        return next((line for line in got if line.startswith('not ok')), None)

    def planned(self):
        # What just prints is compared here.
        return len(self.cases)

    def report(self, results):
        for name, verdict in self.outcomes:
            results.case(name, self.label, verdict)


class Group:
    """Jobs with the same cases, and those that print what has to agree."""

    def __init__(self, jobs, compared=()):
        self.jobs = jobs
        self.compared = compared

    def planned(self):
        return sum(job.planned() for job in self.jobs) \
            + (len(self.jobs) - 1) * len(self.compared)

    def check_agreement(self, results):
        first = self.jobs[0]
        for job in self.jobs[1:]:
            for case in self.compared:
                want, got = first.compare.get(case), job.compare.get(case)
                results.case(case, f'{job.label} = {first.label}',
                             None if got and got == want
                             else difference(got, want))


def agreeing(job, modes, cases, compared):
    """A group of what job(mode, cases) makes.

    What is compared is so with the usual mode, whose part of that is executed
    if it is none of these.
    """
    suites = {case.split('/')[0] for case in compared}
    jobs = [job(mode, cases) for mode in modes]
    if compared and 'multi' not in modes:
        jobs.insert(0, job('multi', [case for case in cases
                                     if case.split('/')[0] in suites]))
    return Group(jobs, compared)
