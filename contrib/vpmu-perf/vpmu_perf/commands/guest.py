# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that are measured in a guest, without perf."""

import contextlib
import json
import os
import signal
import sys
import tempfile
import traceback

BAD_INPUT = 2
PROGRAM_FAILED = 3
CANNOT_RUN = 125

# perf's names of events, as perf_event_open() has them: type, and config
EVENTS = {
    'cycles': (0, 0), 'cpu-cycles': (0, 0), 'instructions': (0, 1),
    'cache-references': (0, 2), 'cache-misses': (0, 3),
    'branches': (0, 4), 'branch-instructions': (0, 4),
    'branch-misses': (0, 5),
}


# Where the guest has files of a cross compiler, and where they are here
MULTIARCH = '/usr/lib/powerpc64le-linux-gnu/'
CROSS = '/usr/powerpc64le-linux-gnu/lib/'


class Failure(Exception):
    """What ends a command, with a line that says why."""

    def __init__(self, text, status=BAD_INPUT):
        super().__init__(text)
        self.status = status


def event_field(name):
    """A field of the guest's job."""
    event, _, modifier = name.partition(':')
    if event in EVENTS:
        kind, config = EVENTS[event]
    elif event[:1] == 'r' and event[1:]:
        try:
            kind, config = 4, int(event[1:], 16)
        except ValueError:
            kind = None
    else:
        kind = None
    if kind is None:
        raise Failure(f"'{name}' is no event that can be compared; there are: "
                      f'{", ".join(EVENTS)}, and codes such as r00c4')
    if modifier != 'u':
        raise Failure(f"'{name}' also counts the kernel, which is never the "
                      f'same; count {event}:u')
    return f'{kind} {config:x} 1'


def path_here(path):
    """Where the host has a file of the guest's."""
    if path.startswith(MULTIARCH) and not os.path.exists(path):
        return path.replace(MULTIARCH, CROSS, 1)
    return path


class Measurement:
    """What a run has shown."""

    def __init__(self, events, words, result, census):
        self.words = words
        self.machine = result['machine']
        self.counts = {}
        self.maps = []
        self.census = census
        how, number, *_ = result['end']
        self.status = int(number) if how == 'exited' else None
        self.signal = int(number) if how == 'signaled' else None
        counted = iter(events)
        mapped = []
        for line in result['measured']:
            if line[0] == 'count':
                self._take_count(next(counted), *map(int, line[1:]))
            elif line[0] == 'map':
                mapped.append((int(line[1], 16), line[2:]))
            else:
                raise Failure('the program maps more files than can be '
                              'followed', CANNOT_RUN)
        for _, words in sorted(mapped):
            self._take_map(*words)

    def _take_count(self, event, value, enabled, running):
        if running < enabled:
            raise Failure(f'there are not enough counters to count {event} all '
                          'of the time; name fewer events', BAD_INPUT)
        self.counts[event] = value

    def _take_map(self, start, length, offset, path=''):
        one = (int(start, 16), int(length, 16), int(offset, 16),
               path_here(os.fsdecode(bytes.fromhex(path))))
        if one not in self.maps:
            self.maps.append(one)

    def failure(self):
        """How the program has failed, or None."""
        if self.signal is not None:
            try:
                name = signal.Signals(self.signal).name
            except ValueError:
                name = f'signal {self.signal}'
            hint = ('; it may have instructions that the guest\'s CPU lacks, '
                    'such as AVX-512: --cpu names another'
                    if self.signal == signal.SIGILL else '')
            return f'was ended by {name}{hint}'
        if self.status:
            return f'ended with status {self.status}'
        return None


class Guest:
    """Where programs are measured: vpmu-perf with some options."""

    def __init__(self, script, options):
        self.script = script
        self.options = options

    def drawing(self):
        """Where the program is that draws flame graphs."""
        here = os.path.dirname(self.script)
        if os.path.basename(here) == 'bin':
            share = os.path.join(os.path.dirname(here), 'share/vpmu-perf')
        else:
            root = os.path.dirname(os.path.dirname(here))
            share = os.path.join(os.environ.get('BUILD') or
                                 os.path.join(root, 'build'), 'vpmu-perf')
        return os.path.join(share, 'flamegraph')

    def _in_child(self, words, stdin, stdout):
        """A new process ends with the status of a call."""
        from ..main import call
        status = CANNOT_RUN
        try:
            # They may be closed if they stay as they are.
            for fd, other in enumerate((stdin, stdout)):
                if other != fd:
                    os.dup2(other, fd)
            status = call(self.script, [*self.options, *words])
        except SystemExit as e:
            status = e.code
        except BaseException:  # pylint: disable=broad-except
            traceback.print_exc()
        finally:
            # Standard output may be closed, or full.
            with contextlib.suppress(Exception):
                sys.stdout.flush()
            os._exit(status)

    def _call(self, words, stdin=0, stdout=1):
        """Call vpmu-perf; returns its status.

        A new process of this one need not load all modules again.
        """
        child = os.fork()
        if not child:
            self._in_child(words, stdin, stdout)
        try:
            _, status = os.waitpid(child, 0)
        except BaseException:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise
        return os.waitstatus_to_exitcode(status)

    def run(self, words):
        """Run perf; returns its status."""
        status = self._call(words)
        if status in (CANNOT_RUN, -signal.SIGINT):
            raise Failure('perf was not run', CANNOT_RUN)
        return status

    def output(self, words):
        """What perf prints."""
        with open(os.devnull, 'rb') as null, \
                open(os.memfd_create('output'), 'w+b') as output:
            if self._call(words, null.fileno(), output.fileno()):
                raise Failure(f'perf {words[0]} has failed', CANNOT_RUN)
            output.seek(0)
            return output.read().decode(errors='replace')

    def _measured(self, words, with_census, stdin=0, stdout=1):
        """The status, the result and the census of a call; the latter two are
        None if there are none.
        """
        with tempfile.TemporaryDirectory(prefix='vpmu-perf-') as directory:
            result, census = (os.path.join(directory, name)
                              for name in ('result', 'census'))
            options = ['--maps', '--result', result]
            if with_census:
                options += ['--census', census]
            status = self._call([*options, *words], stdin, stdout)
            if not os.path.exists(result):
                return status, None, None
            with open(result, encoding='utf-8') as f:
                measured = json.load(f)
            if not with_census:
                return status, measured, None
            with open(census, encoding='ascii') as f:
                return status, measured, f.read()

    def perf(self, words):
        """Run perf; returns its status, the result, and the census."""
        status, result, census = self._measured(words, True)
        if not result:
            raise Failure('perf was not run', abs(status))
        return status, result, census

    def measure(self, events, words, census=False):
        """Run a program, whose output is lost, and return a Measurement."""
        call = [word for event in events
                for word in ('--count', event_field(event))]
        with open(os.devnull, 'r+b', buffering=0) as null:
            status, result, text = self._measured(
                [*call, 'run', '--', *words], census, null.fileno(),
                null.fileno())
        if not result:
            if status < 0:
                raise Failure('interrupted', 128 - status)
            raise Failure(f'{words[0]} was not measured', status)
        return Measurement(events, words, result, text)
