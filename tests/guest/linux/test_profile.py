# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles that are taken from outside of the guest, as perf shows them."""

import collections
import itertools
import lzma
import math
import os
import re
import subprocess

import pytest

from harness import (ARCH, BUILD, QEMU, Failure, expectations, on, require,
                     require_equal, symbols)
from machines import (ALL_AT_ONCE, GENOA, ICOUNT, ONE_INSN, POWER8, POWER10,
                      POWERNV9, SINGLE, SMP, UP, loop_address)
from test_counting import parse
from test_sampling import ADDRESSES, PINNED, Mixed, check_loop


def perf(*words):
    """What perf prints on the host, without settings of the user's."""
    environment = {**os.environ, 'PERF_CONFIG': '/dev/null',
                   'PERF_BUILDID_DIR': '/nonexistent'}
    return subprocess.run(['perf', *map(str, words)], env=environment,
                          check=True, text=True, capture_output=True).stdout


class Profile:
    """A profile of a guest that is under way."""

    def __init__(self, monitor, directory, name='p0', **properties):
        self.monitor = monitor
        self.name = name
        self.path = directory / f'{name}.perf.data'
        monitor.command('object-add', **{
            'qom-type': 'pmu-profile', 'id': name, 'file': str(self.path),
            **properties})

    def enable(self, value=True):
        self.monitor.command('qom-set', path=f'/objects/{self.name}',
                             property='enabled', value=value)

    def end_with_losses(self):
        """All that it has sampled is in the file then; how many it has lost."""
        self.enable(False)
        lost = self.monitor.command('qom-get', path=f'/objects/{self.name}',
                                    property='lost')
        self.monitor.command('object-del', id=self.name)
        return lost

    def end(self):
        """The same, and nothing is lost."""
        require_equal(self.end_with_losses(), 0, 'lost samples')
        return self

    def script(self, fields, *words):
        return perf('script', '-i', self.path, '-F', fields, *words)


def profiled(start, directory, machine, job, properties, extra=(), files=(),
             end=Profile.end):
    """Profile a job up to its line `@@@ end`; the profile, and the lines."""
    guest = start(machine, f'''
. /tests/guest.sh
guest_setup
{job}
wait_for_test
''', adds=files, extra=extra)
    lines = guest.lines_until('@@@ ready')
    if callable(properties):
        properties = properties(lines)
    profile = Profile(guest.monitor, directory, **properties)
    guest.go()
    lines += guest.lines_until('@@@ end')
    end(profile)
    lines += guest.finish()
    return profile, lines


#
# Where samples are
#

def contains(whole, part):
    """Whether a list is in another, without anything between."""
    return any(whole[start:start + len(part)] == part
               for start, first in enumerate(whole) if first == part[0])


def check_profile_of_mixed(profile, period):
    got = [int(ip, 16) for ip in
           re.findall(r'^\s*([0-9a-f]+)',
                      profile.script('ip', '--hide-call-graph'), re.M)]
    mixed = Mixed()
    total = expectations('mixed')['instructions']

    def expected(first):
        return [mixed(nth) for nth in range(first, total, period)]

    # The counter was somewhere in its period when the program began.
    require(any(contains(got, expected(first)) for first in range(period)),
            f'among {len(got)} samples there are not {total // period} of the '
            f'program, {period} instructions from one to the next')


@pytest.mark.arch('x86_64')
def test_no_addresses_of_data(start):
    """They are not known where samples are of the next instruction."""
    profile = 'pmu-profile,id=p0,file=/dev/null,data-address=on'
    said = start(UP, '', boots=True, extra=['-object', profile]).refusal()
    require('not known exactly' in said and 'pmu-core' in said, said)


@pytest.mark.arch('ppc64')
def test_addresses_of_data_without_pmu(tmp_path):
    """A CPU without a PMU has no core either, before it is observed, too."""
    file = tmp_path / 'p0.perf.data'
    subprocess.run(
        [QEMU, '-M', 'none', '-cpu', 'power9,pmu=off', '-S', '-nodefaults',
         '-display', 'none', '-monitor', 'stdio', '-object',
         f'pmu-profile,id=p0,file={file},enabled=off,data-address=on'],
        input='quit\n', text=True, check=True, stdout=subprocess.DEVNULL)


@on(UP, POWER10, more=(GENOA, POWER8))
def test_profile_of_mixed(start, tmp_path, machine):
    """Every sample is of the very instruction, whatever that does.

    Blocks are executed whole where no period can end twice in them, and are
    cut where they have callers or a second profile to serve.
    """
    # A shell that has just forked may still be on its way to wait when its
    # child is in the program, and would be sampled in between: the child waits
    # for the test.
    guest = start(machine, '''
. /tests/guest.sh
guest_setup
(wait_for_test; exec mixed)
echo @@@ next
(wait_for_test; exec mixed)
echo @@@ end
wait_for_test''')
    properties = {'modes': 'u'}
    guest.lines_until('@@@ ready')
    whole = Profile(guest.monitor, tmp_path, 'whole', period=101, **properties)
    guest.go()
    guest.lines_until('@@@ ready')
    whole.end()
    cut = [Profile(guest.monitor, tmp_path, f'cut{period}', period=period,
                   callchain=chain, **properties)
           for period, chain in ((7, 0), (103, 3))]
    guest.go()
    guest.lines_until('@@@ end')
    for profile in cut:
        profile.end()
    guest.finish()
    for profile, period in zip([whole, *cut], (101, 7, 103)):
        check_profile_of_mixed(profile, period)


def places_with_losses(profile):
    """Each sample's address, by how many were taken or lost before it; and how
    many there were in all."""
    places = {}
    nth = 0
    for ip, lost in re.findall(
            r'^\s*([0-9a-f]+)|PERF_RECORD_LOST lost (\d+)',
            profile.script('ip', '--show-lost-events'), re.M):
        if ip:
            places[nth] = int(ip, 16)
        nth += int(lost or 1)
    return places, nth


def check_loop_with_losses(places):
    """All that is there of `loop` is where it has to be."""
    entry = symbols('loop')['_start']
    expected = expectations('loop')
    begin = min((nth for nth, ip in places.items() if ip == entry),
                default=None)
    require(begin is not None, 'where it begins is lost')
    end = begin + expected['instructions']
    found = [(nth - begin, ip) for nth, ip in places.items()
             if begin + expected.get('before', 1) <= nth < end]
    wrong = [(nth, f'{ip:x}') for nth, ip in found if ip != loop_address(nth)]
    require(found and not wrong, f'{len(wrong)} of {len(found)} samples are at '
            f'wrong places, such as {wrong[:3]}')


def wait_for_events(monitor, events):
    """Wait until a profile of one vCPU has seen so many, sampled or not."""
    def seen():
        cpu, = monitor.command('query-pmu')
        return sum(observer['count'] for observer in cpu['observers'])

    try:
        # Before the guest itself is taken to hang.
        monitor.wait(f'{events} events', lambda: seen() > events, seconds=600)
    except Failure as wrong:
        raise Failure(f"{wrong}: {monitor.command('query-pmu')}, "
                      f"{monitor.human('info registers')}") from wrong


# Samples, more than what waits for a reader at most; and bytes, of some more
MANY = 1000000
MANY_BYTES = 80 << 20


@on(UP, more=(POWER10,))
def test_profile_that_loses(start, tmp_path, machine):
    """It says how many samples are missing, and where."""
    guest = start(machine, '''
. /tests/guest.sh
guest_setup
(wait_for_test; exec loop)
echo @@@ end
wait_for_test''')
    guest.lines_until('@@@ ready')
    pipe = tmp_path / 'pipe'
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    profile = Profile(guest.monitor, tmp_path, file=str(pipe), modes='u',
                      period=1, **{'branch-stack': True,
                                   'max-size': MANY_BYTES})
    guest.go()
    wait_for_events(guest.monitor, MANY)
    os.set_blocking(reader, True)
    with open(profile.path, 'wb') as file, \
            subprocess.Popen(['timeout', '600', 'cat'], stdin=reader,
                             stdout=file):
        os.close(reader)
        guest.monitor.wait(
            'what it may write',
            lambda: profile.path.stat().st_size >= MANY_BYTES, seconds=300)
        lost = profile.end_with_losses()
    guest.lines_until('@@@ end')
    guest.finish()
    places, all_of_them = places_with_losses(profile)
    require(lost, 'nothing is lost')
    require_equal(all_of_them - len(places), lost, 'lost samples')
    check_loop_with_losses(places)


def longest_run(profile, program):
    """Samples in a row of a CPU that are of one process, and of a program.

    Other programs are at the same addresses, but at others, too.  Who starts
    the program has to wait by then, see fifo.c: what it executes in between
    would be sampled, too.  On a busy host, so is what other CPUs execute.
    """
    names = symbols(program)
    found = sorted(re.findall(r'(\d+) +\[(\d+)\] +([0-9a-f]+)',
                              profile.script('pid,cpu,ip')),
                   key=lambda sample: sample[1])
    runs = []
    for _, run in itertools.groupby(found, key=lambda sample: sample[:2]):
        run = [int(ip, 16) for *_, ip in run]
        if all(names['_start'] <= ip < names['_end'] for ip in run):
            runs.append(run)
    return max(runs, key=len, default=[])


@on(SMP)
def test_profile_beside_perf(start, tmp_path, machine):
    """The same program from inside and from outside, at the same time."""
    period = 10007
    profile, lines = profiled(start, tmp_path, machine, f'''
wait_for_test
fifo {PINNED} -e instructions:u -c {period} loop
echo @@@ end
{ADDRESSES}''', {'modes': 'u', 'period': period})
    printed = '\n'.join(lines[lines.index('@@@ end') + 1:])
    check_loop(printed, period)
    got = longest_run(profile, 'loop')
    total = expectations('loop')['instructions']
    require(len(got) in (total // period, total // period + 1),
            f'{len(got)} samples, not {total // period}')
    # Both have as many of each instruction: they differ by where they began.
    # Not what was printed, in which Linux has some on Power somewhere else.
    inside = [loop_address(nth)
              for nth in range(period, total + 1, period)]
    for address in set(got):
        few = abs(got.count(address) - inside.count(address))
        require(few <= 2, f'{got.count(address)} samples are at {address:#x} '
                f'outside, and {inside.count(address)} inside')


#
# Who gets the counters
#

# What is sampled from outside at the same time, what `loop` states of it, and
# how often: three that are there from the start, and one more.
AT_ONCE = [('instructions', 'instructions', 10007),
           ('branches', 'branches', 4999),
           ('cycles', 'instructions', 30011)]
ONE_MORE = {'event': 'taken-branches', 'modes': 'u', 'period': 7001}
WATCHDOG = '/proc/sys/kernel/nmi_watchdog'


def require_all_samples(profile, event, period):
    """Of what the program states."""
    got = len(longest_run(profile, 'loop'))
    total = expectations('loop')[event]
    require(got in (total // period, total // period + 1),
            f'{got} samples of {event}, not {total // period}')


@on(*ALL_AT_ONCE)
def test_nobody_competes(start, tmp_path, machine):
    """All counters of a guest, its watchdog, and four profiles: all exact."""
    events = ALL_AT_ONCE[machine]
    paths = [tmp_path / f'{event}.perf.data' for event, *_ in AT_ONCE]
    extra = [word for path, (event, _, period) in zip(paths, AT_ONCE)
             for word in ('-object', f'pmu-profile,id={event},event={event},'
                          f'modes=u,period={period},file={path}')]
    profile, lines = profiled(start, tmp_path, machine, f'''
echo "@@@ watchdog $(cat {WATCHDOG})"
wait_for_test
COUNT='fifo perf stat'
count {','.join(events)} loop
echo @@@ end''', ONE_MORE, extra)
    # That of Power takes no counter.
    require_equal(values_of(lines, 'watchdog'), ['1'], 'the watchdog')
    # Whoever had to wait for a counter would have less than 100.00 %.
    stated = expectations('loop')
    require_equal(parse('\n'.join(lines[lines.index('@@@ ready'):])),
                  {perf_name: [stated[name]]
                   for perf_name, name in events.items()}, 'counts')
    require_all_samples(profile, 'taken', ONE_MORE['period'])
    for path, (_, event, period) in zip(paths, AT_ONCE):
        profile.path = path
        require_all_samples(profile, event, period)


#
# Who called what
#

def chains(profile):
    """Of each sample, its address and those of its callers."""
    return [tuple(int(line.split()[0], 16) for line in group.splitlines())
            for group in re.split(r'\n\s*\n', profile.script('ip').strip())]


# Power's link register counts as a caller, whatever it holds: where a function
# that has no frame was called from.  After `good` it says nothing more.
CHAINS = {
    'good': ['good_1', 'good_2', 'good_3'],
    'circular': ['circle_1'],
    'unmapped': [],
    'kernels': [],
    'odd': [],
}
if ARCH == 'x86_64':
    # Behind the block, the first of these would be missing.
    CHAINS['leaf'] = ['leaf_1', 'leaf_2']


def check_text(profile):
    """Programs such as FlameGraph and speedscope know the lines of perf script
    by these expressions: each name goes with one pid, and is whole."""
    text = perf('script', '-i', profile.path)
    found = {re.match(r'(\S.+?)\s+(\d+)\s', line).groups()
             for line in text.splitlines() if line[:1].strip()}
    pids = set(profile.script('pid', '--hide-call-graph').split())
    require_equal({pid for _, pid in found}, pids, 'the pids')
    require_equal(len({name for name, _ in found}), len(pids), 'names')
    frames = [line for line in text.splitlines() if line[:1].isspace()]
    require(all(re.match(r'\s*(\w+)\s*(.+) \((\S*)\)$', frame)
                for frame in frames), text)


@on(UP, POWER10, more=(GENOA, POWER8))
def test_profile_of_chain(start, tmp_path, machine):
    """Callchains by frame pointers, and what is made of those that are bad."""
    profile, _ = profiled(start, tmp_path, machine, '''
wait_for_test
chain
echo @@@ end''', {'modes': 'u', 'period': 50021, 'callchain': 9})
    names = symbols('chain')
    found = chains(profile)
    for loop, callers in CHAINS.items():
        got = {chain[1:] for chain in found
               if names[loop] <= chain[0] < names[f'{loop}_end']}
        want = tuple(names[f'expect_behind_{caller}'] for caller in callers)
        require_equal(got, {want}, f'callers of the loop {loop}')
    check_text(profile)


@on(UP)
def test_profile_of_short_chains(start, tmp_path, machine):
    """No more callers than were asked for, the innermost."""
    profile, _ = profiled(start, tmp_path, machine, '''
wait_for_test
chain
echo @@@ end''', {'modes': 'u', 'period': 50021, 'callchain': 2})
    names = symbols('chain')
    got = {chain[1:] for chain in chains(profile)
           if names['good'] <= chain[0] < names['good_end']}
    require_equal(got, {(names['expect_behind_good_1'],
                         names['expect_behind_good_2'])}, 'callers')


#
# The kernel
#

# On x86 the guest tells of its kernel, once it has loaded a module for that.
TELL = 'insmod /qemu_fw_cfg.ko'
# With 2003, samples on Genoa come to few places of the loop.
PERIOD_OF_KERNEL = 2503
USER = '(user)'

# On Power, Linux freezes its counters from an overflow until it takes the
# interrupt: where interrupts are off, it misses what happens, and where they
# are on again it has too many samples.  Only outside are shares as they should
# be, and of those inside only the largest says anything.
HOTTEST = 1 if ARCH == 'ppc64' else 5

# First from inside: there, perf's interrupts are counted, too, which makes
# more samples but leaves the shares.  The functions with the most samples are
# printed as kallsyms has them, with those behind: a function ends where the
# next begins.
SYSCALLS = f'''
{TELL if ARCH == 'x86_64' else ':'}
echo "@@@ notes $(od -An -v -tx1 /sys/kernel/notes | tr -d ' \\n')"
echo "@@@ text $(grep -w _stext /proc/kallsyms)"
perf record -q -m 16M -o /tmp/data -e instructions:k \
    -c {PERIOD_OF_KERNEL} syscalls
grep -E '^[0-9a-f]+ [tTwW] ' /proc/kallsyms | sort > /tmp/symbols
perf script -i /tmp/data -F ip,sym | awk '{{ n[$2]++ }}
    END {{ for (s in n) print n[s], s }}' | sort -nr > /tmp/found
while read -r n name; do
    echo "@@@ inside $n $name"
done < /tmp/found
head -n {HOTTEST} /tmp/found | while read -r n name; do
    grep -A 9 -w "$name" /tmp/symbols
done
wait_for_test
syscalls
echo @@@ end
'''


def values_of(lines, key):
    """What the guest has said behind a word, each time."""
    return [line.split(' ', 2)[2] for line in lines
            if line.startswith(f'@@@ {key} ')]


def build_id_of(lines):
    """Of the kernel: behind the header of an ELF note of GNU's, of type 3."""
    notes, = values_of(lines, 'notes')
    return re.search('14000000' '03000000' '474e5500' '([0-9a-f]{40})',
                     notes).group(1)


def text_of(lines):
    """Where the kernel is."""
    text, = values_of(lines, 'text')
    return int(text.split()[0], 16)


def kernel_properties(lines):
    """On Power, the user says which kernel the guest runs."""
    properties = {'period': PERIOD_OF_KERNEL}
    if ARCH == 'ppc64':
        properties.update({'kernel-text': text_of(lines),
                           'build-id': build_id_of(lines)})
    return properties


def inside_shares(lines):
    """Of each function of the kernel, the samples that perf record has."""
    return collections.Counter({
        name: int(number) for number, name in
        (words.split() for words in values_of(lines, 'inside'))})


def known_symbols(lines):
    """The kernel's, as far as the guest has printed them: address and name."""
    found = re.findall(r'^([0-9a-f]{16}) [tTwW] (\S+)$',
                       '\n'.join([*values_of(lines, 'text'), *lines]), re.M)
    return [(int(address, 16), name) for address, name in found]


def outside_samples(profile, known, directory):
    """Of each process, the functions of its samples in the kernel."""
    kallsyms = directory / 'kallsyms'
    kallsyms.write_text(''.join(f'{address:016x} T {name}\n'
                                for address, name in known))
    samples = collections.defaultdict(collections.Counter)
    for pid, ip, name in re.findall(
            r'(\d+) +([0-9a-f]+) (\S+)',
            profile.script('pid,ip,sym', '--kallsyms', kallsyms)):
        samples[pid][name if int(ip, 16) >> 63 else USER] += 1
    return samples


def aliases(known, name):
    """All names of a function; perf takes any of them."""
    here = {address for address, other in known if other == name}
    return {other for address, other in known if address in here}


def driver(directory, name):
    """A module of Debian's kernel on x86, and where the guest has it."""
    packed, = (BUILD / 'download' / 'guest-x86_64').glob(
        f'lib/modules/*/kernel/drivers/{name}.ko.xz')
    module = directory / packed.stem
    module.write_bytes(lzma.decompress(packed.read_bytes()))
    return module, f'/{module.name}'


def modules(directory):
    """What the guest has to load."""
    return ([driver(directory, 'firmware/qemu_fw_cfg')]
            if ARCH == 'x86_64' else [])


@on(UP, more=(POWER10, GENOA, POWER8))
def test_profile_of_kernel(start, tmp_path, machine):
    """Symbols of the guest's kernel, wherever that is; one pid a process."""
    extra = ['-device', 'vmcoreinfo'] if ARCH == 'x86_64' else []
    profile, lines = profiled(
        start, tmp_path, machine, SYSCALLS, kernel_properties,
        extra, modules(tmp_path))
    require_equal(perf('buildid-list', '-i', profile.path).split()[0],
                  build_id_of(lines), 'the build id')
    maps = profile.script('ip', '--show-mmap-events')
    require(f'[{text_of(lines):#x}(' in maps
            and '[kernel.kallsyms]_stext' in maps, 'no map of the kernel')

    known = known_symbols(lines)
    inside = inside_shares(lines)
    outside = max(outside_samples(profile, known, tmp_path).values(),
                  key=lambda samples: samples.total())
    # The program's own instructions, of which there are few.
    require(outside.pop(USER, 0), 'the kernel is a process of its own')
    for name, number in inside.most_common(HOTTEST):
        share = number / inside.total()
        other = (sum(outside[alias] for alias in aliases(known, name))
                 / outside.total())
        # Both are estimates; ten times what such a difference is in the mean,
        # as samples of a loop at equal distances are not independent.
        allowed = 10 * math.sqrt(
            share * (1 - share) * (1 / inside.total() + 1 / outside.total()))
        agree = other if ARCH == 'ppc64' else abs(share - other) <= allowed
        require(agree, f'{name} has {share:.1%} of the samples inside, and '
                f'{other:.1%} outside')


#
# What led to a sample
#

# No code is longer without a branch.
STRAIGHT = 1 << 16


def branch_stacks(profile):
    """Of each sample, its branches from and to, the oldest first."""
    samples = [re.findall(r'0x([0-9a-f]+)/0x([0-9a-f]+)/', line)
               for line in profile.script('brstack').splitlines()]
    return [[(int(source, 16), int(target, 16))
             for source, target in reversed(sample)] for sample in samples]


def check_straight(stacks):
    """Where one branch went, code goes straight on to the next: interrupts and
    exceptions are among them."""
    pairs = [pair for stack in stacks for pair in zip(stack, stack[1:])]
    require(pairs, 'no branch follows another')
    for (source, target), (following, _) in pairs:
        require(0 <= following - target < STRAIGHT,
                f'{source:x} to {target:x}, and then {following:x}')


def check_code_between_branches(stacks):
    """It is straight, into the kernel and back."""
    check_straight(stacks)
    branches = list(itertools.chain.from_iterable(stacks))
    into = sum(source >> 63 < target >> 63 for source, target in branches)
    back = sum(source >> 63 > target >> 63 for source, target in branches)
    require(into > 10 and back > 10, f'{into} ways into the kernel, and '
            f'{back} out of it')


@on(UP, POWER10, more=(GENOA, POWER8, SINGLE, ICOUNT, ONE_INSN))
def test_code_between_branches_outside(start, tmp_path, machine):
    properties = {'event': 'branches', 'period': 5003, 'branch-stack': True}
    profile, _ = profiled(start, tmp_path, machine, '''
wait_for_test
syscalls
echo @@@ end''', properties)
    check_code_between_branches(branch_stacks(profile))


# Bytes, of some hundreds of samples
ENOUGH = 1 << 20


def stacks_when_full(guest, profile):
    """Those of a profile with ENOUGH; the guest ends with it."""
    guest.monitor.wait('some hundreds of samples',
                       lambda: profile.path.stat().st_size >= ENOUGH)
    profile.end()
    guest.leave()
    return branch_stacks(profile)


@on(POWERNV9)
def test_code_between_branches_of_a_host(start, tmp_path, machine):
    """Its kernel returns by hrfid, too, such as from illegal instructions."""
    guest = start(machine, 'echo @@@ ready; while :; do traps; done')
    guest.lines_until('@@@ ready')
    profile = Profile(guest.monitor, tmp_path, event='branches', period=5003,
                      **{'branch-stack': True, 'max-size': ENOUGH})
    stacks = stacks_when_full(guest, profile)
    check_code_between_branches(stacks)
    branches = set(itertools.chain.from_iterable(stacks))
    leave_kernel = {source for source, target in branches
                    if source >> 63 > target >> 63}
    stay = {source for source, target in branches
            if source >> 63 == target >> 63}
    require(len(leave_kernel) > 1, 'rfid alone has left the kernel')
    require(not leave_kernel & stay, 'a branch within the kernel has left it')


# Each branch is in a sample with the one before it: from one sample to the next
# there are fewer than a stack has.
OVERLAPPING = {'event': 'branches', 'period': 29, 'branch-stack': True}

RESET_VECTOR = 0x100


@on(POWER10, more=(POWER8,))
def test_code_between_branches_to_a_reset(start, tmp_path, machine):
    """A system reset goes by its vector to what the kernel has registered."""
    # Of so few samples none is lost: a vCPU's ring holds twice as many.
    guest = start(machine, 'echo @@@ ready; while :; do sleep 0.1; done')
    guest.lines_until('@@@ ready')
    guest.monitor.command('stop')
    profile = Profile(guest.monitor, tmp_path,
                      **OVERLAPPING, **{'max-size': ENOUGH})
    guest.monitor.command('inject-nmi')
    guest.monitor.command('cont')
    stacks = stacks_when_full(guest, profile)
    check_straight(stacks)
    behind = {branch for stack in stacks
              for (_, target), branch in zip(stack, stack[1:])
              if target == RESET_VECTOR}
    require_equal({source for source, _ in behind}, {RESET_VECTOR},
                  'where the code of the vector ends')


# Below it there is what a CPU starts with, without translation, and no program.
START = {'x86_64': 1 << 20, 'ppc64': 1 << 25}[ARCH]


@on(SMP)
def test_code_between_branches_of_cpu_that_comes(start, tmp_path, machine):
    """A CPU goes on elsewhere than where it was stopped."""
    # Before it comes all is written: of what follows, the first is not lost.
    profile, _ = profiled(start, tmp_path, machine, '''
wait_for_test
echo 0 > /sys/devices/system/cpu/cpu1/online
sleep 1
echo 1 > /sys/devices/system/cpu/cpu1/online
echo @@@ end''', {**OVERLAPPING, 'vcpus': [1]},
                          end=Profile.end_with_losses)
    stacks = branch_stacks(profile)
    check_straight(stacks)
    require(any(source < START for stack in stacks for source, _ in stack),
            'the CPU has not come')
