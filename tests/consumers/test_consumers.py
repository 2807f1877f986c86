# SPDX-License-Identifier: GPL-2.0-or-later
"""Optimizing compilers and profiles of guests: AutoFDO with GCC, and BOLT.

The program steps.c states how often it does what.  It is sampled with its last
branches: by a guest's own perf, with the branch records of several CPUs, and
from outside of a guest that has no PMU.  The tools have to read the stated
numbers in these profiles, and the programs that they make have to take fewer
branches, which are counted exactly.

scripts/build-consumers and scripts/build-vpmu-perf make what is needed.
"""

import base64
import collections
import contextlib
import gzip
import os
import pathlib
import re
import signal
import subprocess
import tempfile

import pytest

from harness import Guest
from linux_guest import BUILD, ROOT
from machines import OFF
from test_active import SETUP, port

pytestmark = pytest.mark.arch('x86_64')

TREE = BUILD / 'consumers'
VPMU_PERF = ROOT / 'contrib' / 'vpmu-perf' / 'vpmu-perf'
SOURCE = pathlib.Path(__file__).resolve().parent / 'steps.c'

# The loop repeats itself after so many rounds.  The branches that it takes in
# them: calls and returns, of `choose` a jump, of `leaf` 24, of the loop one.
CYCLE = 16
TAKEN = 16 * 2 + 32 * 2 + 16 + 24 + 16
PERIOD = 10007
# So many rounds have two samples of each taken branch of a cycle, as PERIOD
# and TAKEN have no factor in common: all branches are in as many stacks.
ROUNDS = 2 * CYCLE * PERIOD + CYCLE
# But a guest's interrupts cut stacks, and other tasks make them short.
TOLERANCE = 0.2

TOOLS = {'create_gcov': 'usr/bin', 'dump_gcov': 'usr/bin',
         'perf2bolt': 'usr/lib/llvm-16/bin',
         'llvm-bolt': 'usr/lib/llvm-16/bin'}

# No start files, so that all branches are the program's own; BOLT wants to
# know what to relocate, and these tools do not read DWARF 5.
FLAGS = ['-O2', '-gdwarf-4', '-static', '-nostdlib', '-no-pie', '-fno-pie',
         '-fcf-protection=none', '-Wl,--emit-relocs', f'-DROUNDS={ROUNDS}']

# Whose profiles, and the event that is a taken branch
INSIDE = {
    'Skylake-Client': 'r20c4:u',
    'SapphireRapids': 'r20c4:u',
    'EPYC-Genoa': 'rc4:u',
}


class Workplace:
    """A directory with the program, its profiles, and what is made of it."""

    def __init__(self, directory, compiler=TREE / 'usr' / 'bin' / 'gcc-11'):
        self.directory = directory
        self.compiler = compiler
        self.environment = {
            **os.environ, 'XDG_CACHE_HOME': str(directory / 'cache'),
            'PATH': f'{directory}/bin:{os.environ["PATH"]}'}
        # perf2bolt runs perf; that of the host may be too old for the guest's
        # files, and sees nothing in one that has the form of a pipe's.
        (directory / 'bin').mkdir()
        perf = directory / 'bin' / 'perf'
        perf.write_text(f'#!/bin/sh\nexec {VPMU_PERF} "$@"\n')
        perf.chmod(0o755)
        self.compile('steps')
        self.result = subprocess.run([directory / 'steps'],
                                     check=False).returncode

    def run(self, *words, status=0):
        """What a command says; it has to end so."""
        with subprocess.Popen(
                [str(word) for word in words], cwd=self.directory,
                env=self.environment, text=True, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT) as process:
            try:
                said, _ = process.communicate()
            finally:
                # With what it has started, as perf2bolt does perf.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        assert process.returncode == status, \
            f'{" ".join(map(str, words))}: {said[-300:]}'
        return said

    def tool(self, name, *words):
        """What one of Debian's tools says, with the libraries beside it.

        perf2bolt is the same program as llvm-bolt, and knows it by its name.
        """
        loader = TREE / 'lib' / 'x86_64-linux-gnu' / 'ld-linux-x86-64.so.2'
        libraries = ':'.join(str(TREE / where / 'x86_64-linux-gnu')
                             for where in ('lib', 'usr/lib'))
        return self.run(loader, '--argv0', name, '--library-path', libraries,
                        TREE / TOOLS[name] / name, *words)

    def compile(self, name, *flags):
        self.run(self.compiler, *FLAGS, *flags, '-o', name, SOURCE)

    def vpmu_perf(self, *words, **expected):
        return self.run(VPMU_PERF, *words, **expected)

    def taken(self, program):
        """How many branches a program takes that computes the same."""
        said = self.vpmu_perf('stat', '-x,', '-e', 'r20c4:u', f'./{program}',
                              status=self.result)
        return int(re.search(r'^(\d+),,r20c4:u,\d+,100\.00', said,
                             re.M).group(1))


@pytest.fixture(scope='module')
def place():
    with tempfile.TemporaryDirectory(prefix='consumers-') as directory:
        yield Workplace(pathlib.Path(directory))


def sample_inside(place, name):
    """With perf and branch records of a guest's."""
    place.vpmu_perf('--cpu', f'{name},lbr=on', 'record', '-q', '-j', 'any,u',
                    '-e', INSIDE[name], '-c', PERIOD, '-o', f'{name}.data',
                    './steps', status=place.result)


def sample_outside(place):
    """With QEMU's eyes; the guest says what its addresses mean."""
    machine = OFF.variant('outside', extra=port(**{
        'event': 'taken-branches', 'modes': 'u', 'period': PERIOD,
        'branch-stack': 'on'}))
    guest = Guest(place.directory, machine, SETUP + '''
vpmu-agent "$port" steps > /tmp/data
echo @@@ data
gzip -c /tmp/data | base64
''', adds=[(place.directory / 'steps', '/usr/bin/steps')])
    try:
        lines = guest.rest()
    finally:
        guest.close()
    data = ''.join(lines[lines.index('@@@ data') + 1:])
    (place.directory / 'stream').write_bytes(
        gzip.decompress(base64.b64decode(data)))
    place.vpmu_perf('inject', '-i', 'stream', '-o', 'outside.data')


@pytest.fixture(scope='module', params=[*INSIDE, 'outside'])
def profile(request, place):
    """A profile's name, and that of its file without .data."""
    if request.param in INSIDE:
        sample_inside(place, request.param)
    else:
        sample_outside(place)
    return request.param


@pytest.fixture(scope='module')
def gcov(place, profile):
    """The file that AutoFDO makes of a profile."""
    place.tool('create_gcov', '--binary=steps', f'--profile={profile}.data',
               f'--gcov={profile}.gcov', '--gcov_version=1')
    return f'{profile}.gcov'


@pytest.fixture(scope='module')
def fdata(place, profile):
    """The file that BOLT makes of a profile, and what it says of that."""
    said = place.tool('perf2bolt', '-p', f'{profile}.data', '-o',
                      f'{profile}.fdata', 'steps')
    return f'{profile}.fdata', said


def check_near(got, want, what):
    assert abs(got - want) <= TOLERANCE * want, \
        f'{what}: {got:.2f} in a cycle of the loop, not {want}'


def check_optimized(place, program):
    before = place.taken('steps')
    assert before == ROUNDS // CYCLE * TAKEN - 1
    after = place.taken(program)
    print(f'{program}: {after} of {before} taken branches are left')
    assert after < before


def test_record(place, profile):
    assert (place.directory / f'{profile}.data').stat().st_size > 0


#
# AutoFDO
#

def stated_lines():
    """What the source says of its lines: by function and by the distance from
    it, how often the line is executed in a cycle."""
    stated = {}
    for number, line in enumerate(SOURCE.read_text().splitlines()):
        begin = re.match(r'Word (\w+)\(', line)
        count = re.search(r'/\* (\d+) \*/$', line)
        if begin:
            function, first = begin.group(1), number
        elif count:
            stated[function, number - first] = int(count.group(1))
    return stated


def dumped_lines(output):
    """What dump_gcov prints of functions and their lines."""
    found = {}
    for line in output.splitlines():
        begin = re.match(r'(\w+) total:', line)
        count = re.match(r'  (\d+): (\d+)', line)
        if begin:
            function = begin.group(1)
        elif count:
            found[function, int(count.group(1))] = int(count.group(2))
    return found


def test_create_gcov(place, gcov):
    """A profile has each line as often as it is executed."""
    found = dumped_lines(place.tool('dump_gcov', '--gcov_version=1', gcov))
    stated = stated_lines()
    assert stated.keys() <= found.keys()
    cycles = sum(found[line] for line in stated) / sum(stated.values())
    for line, count in stated.items():
        check_near(found[line] / cycles, count, f'{line[0]}, line {line[1]}')


def test_gcc(place, profile, gcov):
    program = f'steps-gcc-{profile}'
    place.compile(program, f'-fauto-profile={gcov}')
    check_optimized(place, program)


#
# BOLT
#

def functions(place):
    """Of the program: where they begin, how long they are, and their names."""
    found = re.findall(r'^([0-9a-f]+) ([0-9a-f]+) T (\w+)$',
                       place.run('nm', '-S', 'steps'), re.M)
    return [(int(start, 16), int(size, 16), name)
            for start, size, name in found]


def edges_of(place, output):
    """How often each branch of the program's is in the records, as perf shows
    them: its ends by function and distance."""
    known = functions(place)

    def named(address):
        for start, size, function in known:
            if start <= address < start + size:
                return function, address - start
        return None

    edges = collections.Counter()
    for ends in re.findall(r'0x([0-9a-f]+)/0x([0-9a-f]+)/', output):
        source, target = (named(int(end, 16)) for end in ends)
        if source and target:
            edges[source, target] += 1
    return edges


def aggregated_edges(path):
    """The same, and those of branches that were not taken, for BOLT."""
    edges = {}
    for line in path.read_text().splitlines():
        _, source, at, _, target, to, missed, count = line.split()
        assert missed == '0', f'mispredictions in {line}'
        edges[(source, int(at, 16)), (target, int(to, 16))] = int(count)
    return edges


def counts_between(edges, source, target):
    """Those of the edges from one function to another, or within one."""
    return sorted(count for ((one, _), (other, _)), count in edges.items()
                  if (one, other) == (source, target))


def check_calls(edges):
    """Calls and returns are as often as they are; in so many cycles."""
    calls = {('_start', 'choose'): 16, ('choose', '_start'): 16,
             ('_start', 'leaf'): 32, ('leaf', '_start'): 32}
    found = {call: sum(counts_between(edges, *call)) for call in calls}
    cycles = sum(found.values()) / sum(calls.values())
    for call, count in calls.items():
        check_near(found[call] / cycles, count, ' to '.join(call))
    return cycles


def check_known_edges(edges):
    """Calls, returns, and each way out of a branch, as often as they are."""
    cycles = check_calls(edges)
    # A condition that is mostly so; the comparison before a table of jumps,
    # and the entries of that.
    ways = {'leaf': [8, 24], 'choose': [1, 1, 1, 1, 1, 5, 11]}
    for function, wanted in ways.items():
        # What another program did at the same address is rare.
        counts = [count for count in counts_between(edges, function, function)
                  if count > cycles / 4]
        assert len(counts) == len(wanted), f'branches in {function}'
        for count, want in zip(counts, wanted):
            check_near(count / cycles, want, f'a branch in {function}')


def test_perf2bolt(place, profile, fdata):
    """A profile has each branch as often as it was recorded, and between any
    two of them there is code.

    Outside, what other programs did before a switch is in the stacks, too.
    """
    name, said = fdata
    edges = aggregated_edges(place.directory / name)
    if profile in INSIDE:
        for wrong in ('traces mismatching disassembled function contents',
                      'out of range traces involving unknown regions'):
            assert f'{wrong}: 0 (0.0%)' in said
        recorded = place.vpmu_perf('script', '-i', f'{profile}.data', '-F',
                                   'brstack')
        for edge, count in edges_of(place, recorded).items():
            assert edges.get(edge) == count, f'branch {edge}'
    check_known_edges(edges)


def test_llvm_bolt(place, profile, fdata):
    program = f'steps-bolt-{profile}'
    place.tool('llvm-bolt', 'steps', '-o', program, f'-data={fdata[0]}',
               '-reorder-blocks=ext-tsp', '-reorder-functions=hfsort')
    check_optimized(place, program)
