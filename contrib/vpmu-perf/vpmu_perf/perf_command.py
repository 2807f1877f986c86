# SPDX-License-Identifier: GPL-2.0-or-later
"""perf's arguments, and what perf would conclude from files that are others."""

import re

from .errors import Failure

# Options of `perf stat` and `perf record` that take the word after them.
WITH_VALUE = {
    '-e', '-p', '-t', '-C', '-c', '-F', '-D', '-G', '-I', '-j', '-k', '-m',
    '-M', '-o', '-r', '-u', '-x',
    '--affinity', '--call-graph', '--cgroup', '--clockid', '--control',
    '--count', '--cpu', '--cputype', '--delay', '--event', '--field-separator',
    '--filter', '--for-each-cgroup', '--freq', '--interval-count',
    '--interval-print', '--log-fd', '--max-size', '--metrics', '--mmap-flush',
    '--mmap-pages', '--num-thread-synthesize', '--output', '--pid', '--post',
    '--pre', '--proc-map-timeout', '--realtime', '--repeat',
    '--switch-max-files', '--switch-output-event', '--synth', '--td-level',
    '--tid', '--timeout', '--uid',
}
# Some are other ones of some commands: `perf record -I` may have a value, but
# not in a word of its own, as -S.
WITHOUT_VALUE = {'stat': {'-c', '-j', '-k', '-m', '-F', '-u'},
                 'record': {'-I', '-M', '-x'}}
ATTACHED = {'-I', '-S', '-z'}
# `perf inject -i` has one, which for the others is --no-inherit.
INJECT_WITH = {'-i', '--input'}
# Subcommands that have a `record` of their own, which is the same.
RECORDERS = {'c2c', 'iostat', 'kmem', 'kwork', 'lock', 'mem', 'sched', 'script',
             'stat', 'timechart', 'trace'}


class Command:
    """perf's arguments: its command, and where it writes."""

    def __init__(self, words, is_program):
        self.words = list(words)
        self.begin = 1
        self.records = words[:1] == ['record']
        if words[:1] and words[0] in RECORDERS and words[1:2] == ['record']:
            self.records = True
            self.begin = 2
            if words[0] == 'script' and not words[2:3] == ['--']:
                # Its options come after the script's name.
                self.begin = 3
        # Names of options, and where their values are
        self.options = []
        self.program = None
        self.program_at = len(self.words)
        if is_program:
            self.records = False
            self.program, self.program_at = words[0], 0
        elif words[:1] == ['stat'] and words[1:2] != ['report']:
            self._look(WITH_VALUE - WITHOUT_VALUE['stat'])
        elif self.records:
            self._look(WITH_VALUE - WITHOUT_VALUE['record'])
        elif words[:1] == ['inject']:
            self._look(WITH_VALUE | INJECT_WITH)
        elif words[:1] and words[0] in {'trace', 'ftrace'}:
            self._look(WITH_VALUE)
        self.output = self.value_of('-o', '--output')

    def _look(self, with_value):
        at = self.begin
        while at < len(self.words):
            word = self.words[at]
            if word == '--' or not word.startswith('-'):
                rest = self.words[at + (word == '--'):]
                self.program = rest[0] if rest else None
                self.program_at = at
                return
            if word.startswith('--'):
                at = self._look_at_long(at, with_value)
            else:
                at = self._look_at_letters(at, with_value)

    def _look_at_long(self, at, with_value):
        """An option with two dashes; returns where the next one is."""
        name, equals, _ = self.words[at].partition('=')
        if equals:
            self.options.append((name, at, len(name) + 1))
        elif name in with_value:
            at += 1
            self.options.append((name, at, 0))
        else:
            self.options.append((name, None, 0))
        return at + 1

    def _look_at_letters(self, at, with_value):
        """One or several with one dash."""
        word = self.words[at]
        for i, letter in enumerate(word[1:], 1):
            name = '-' + letter
            if name in with_value:
                where = (at, i + 1) if word[i + 1:] else (at + 1, 0)
                self.options.append((name, *where))
                return where[0] + 1
            self.options.append((name, None, 0))
            if name in ATTACHED:
                break
        return at + 1

    def has(self, *names):
        return any(name in names for name, _, _ in self.options)

    def value_of(self, *names):
        """The last one that is given."""
        for name, at, start in reversed(self.options):
            if name in names and at is not None and at < len(self.words):
                return self.words[at][start:] or None
        return None

    def complete(self, has_pipe):
        """Say what perf would conclude from files that are other ones here."""
        self._count_programs()
        if not self.records:
            return
        extra = []
        if not self.output and not has_pipe:
            self.output = 'perf.data'
            extra = ['-o', self.output]
        if self.words[0] == 'record' and not self.has('-N'):
            # ~/.debug is the host's.
            extra.append('-N')
        if self.words[0] == 'timechart' and extra:
            # It has no such option, and passes on what stands before PROGRAM.
            at = self.program_at
            is_there = self.words[at:at + 1] == ['--']
            self.words[at:at + is_there] = ['--', *extra]
        else:
            self.words[self.begin:self.begin] = extra

    def count_region(self):
        """Have perf wait until the guest's first process has it count."""
        if not self.program or self.words[0] not in ('stat', 'record') \
                or not self.program_at:
            raise Failure('--region is for programs that are run by stat, '
                          'record, compare, diff or flamegraph')
        if self.has('-D', '--delay', '--control'):
            raise Failure('--region says when to count; so do --delay and '
                          '--control')
        self.words[self.begin:self.begin] = ['-D', '-1', '--control', REGION]

    def require_known_files(self):
        """The guest has no other open files than the standard ones."""
        number = self.value_of('--log-fd')
        if self.words[:1] == ['stat'] and number not in (None, '1', '2'):
            raise Failure(f'--log-fd {number}: the guest has only the standard '
                          'streams; -o names a file')

    def _count_programs(self):
        """Have events counted in user mode unless others are asked for.

        So do processors for users that are not the superuser.
        """
        if self.words[:1] not in (['stat'], ['record']) or \
                self.words[1:2] == ['report'] or self.has(*WHOLE_SYSTEM):
            return
        events = [(at, start) for name, at, start in self.options
                  if name in ('-e', '--event')]
        for at, start in events:
            if at < len(self.words):
                text = self.words[at]
                self.words[at] = text[:start] + of_user_mode(text[start:])
        if events:
            return
        if self.words[0] == 'stat' and not self.has(*EVENTS_OF_STAT):
            self.words[self.begin:self.begin] = ['-e', EVENTS]
        else:
            self.words[self.begin:self.begin] = ['--all-user']


# Where the guest's first process tells perf to count (vpmu-perf-measure.h)
REGION = 'fifo:/dev/vpmu-perf/commands,/dev/vpmu-perf/answers'
# With these, perf stat and perf record look at more than their program.
WHOLE_SYSTEM = {'-a', '--all-cpus', '-C', '--cpu', '-p', '--pid', '-t', '--tid',
                '--all-kernel', '--all-user', '-G', '--cgroup', '-b', '-j',
                '--for-each-cgroup', '-u', '--uid'}
SYSTEM_WIDE = {'-a', '--all-cpus', '-p', '--pid', '-t', '--tid'}
# What perf stat counts by itself, and with which options it is something else.
EVENTS = ('task-clock,context-switches,cpu-migrations,page-faults,cycles:u,'
          'instructions:u,branches:u,branch-misses:u')
EVENTS_OF_STAT = {'-d', '--detailed', '-M', '--metrics', '--topdown', '-T',
                  '--transaction', '--smi-cost'}
# Events that a PMU counts, if nothing says in which mode
MODELESS = re.compile(r'''(?<![\w:./=-])(?P<event>
    (?:cpu-)?cycles | ref-cycles | bus-cycles | instructions | branches |
    branch-(?:instructions|loads|load-misses|misses) |
    cache-(?:references|misses) | stalled-cycles-(?:front|back)end |
    (?:L1-[di]cache|LLC|[di]TLB|node)-[a-z-]+ | r[0-9a-f]{2,} | pm_\w+ |
    [a-z]\w*\.[\w.]+ | (?P<slashes>cpu/[^/]*/) )
    (?![\w:./=-])''', re.IGNORECASE | re.VERBOSE)


def of_user_mode(events):
    """A list of events, those without a modifier in user mode."""
    if '}:' in events:
        return events
    return MODELESS.sub(lambda found: found['event'] + (
        'u' if found['slashes'] else ':u'), events)


def takes_memory(words):
    """Whether perf samples accesses, which is by PEBS."""
    return words[:1] in (['mem'], ['c2c']) and \
        bool({'record', 'rec'} & {*words})
