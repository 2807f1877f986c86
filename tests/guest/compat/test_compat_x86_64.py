# SPDX-License-Identifier: GPL-2.0-or-later
"""x86: what CPUs show on older machine types and without pmu=on, guests that
go to and come from Debian's QEMU, and command lines; all under TCG.  With
KVM, tests/guest/nested does so.
"""

import itertools
import struct

import pytest

import program_x86_64 as program
import stream
from observers import Observers, leave_observed
from qemus import (INCOMING, IS_LATER, NEWEST, NOT_KNOWN, OURS, STOCK, STOCKS,
                   Bare, Qemu, refused, until)

pytestmark = pytest.mark.arch('x86_64')


def machine_of(name, cpu):
    return ['-machine', NEWEST.get(name, name), '-cpu', cpu, '-m', '32',
            '-global', 'apic-common.vapic=off']


def go_on(qemu, rounds=1000):
    """Let the program do so many more."""
    before = qemu.number(program.ROUNDS)
    qemu.command('cont')
    until(lambda: qemu.number(program.ROUNDS) >= before + rounds)


#
# CPUID
#

OLD_TYPES = ['pc-i440fx-9.2', 'pc-q35-9.2', 'pc-i440fx-8.2', 'pc-q35-6.2',
             'pc-i440fx-5.1' if IS_LATER else 'pc-i440fx-4.2']
# The newest, where only who asks for a PMU has one.
TYPES = ['pc', 'q35']
INTEL = ['Skylake-Client', 'SapphireRapids', 'core2duo', 'qemu32',
         'max,vendor=GenuineIntel']
OTHERS = ['qemu64', 'kvm64', 'EPYC-Genoa', 'EPYC', 'Opteron_G3', 'athlon',
          'Dhyana', 'YongFeng', 'max']
MODELS = [
    *itertools.product(OLD_TYPES, [
        *INTEL, *OTHERS, 'Skylake-Client,pmu=on', 'EPYC-Genoa,pmu=on',
        'EPYC,pmu=off']),
    *itertools.product(TYPES, [
        *INTEL[:-1], *OTHERS, 'Skylake-Client,pmu=off', 'EPYC-Genoa,pmu=off',
        'max,pmu=off', 'max,vendor=GenuineIntel,pmu=off'])]
# Of the other types, a usual check has a few of these.
USUAL = OLD_TYPES[0], OLD_TYPES[-1], 'q35'
FEW = 'Skylake-Client', 'EPYC-Genoa', 'Skylake-Client,pmu=on'


def cpuid(which, machine, cpu):
    """What each leaf and subleaf says."""
    with Bare(program.image(program.note_all_leaves())).start(
            which, machine_of(machine, cpu)) as qemu:
        go_on(qemu, 1)
        said = qemu.memory(program.LEAVES, 16 * len(program.ALL_LEAVES))
    return dict(zip(program.ALL_LEAVES, struct.iter_unpack('<IIII', said)))


# QEMU 10.2 has 0x80000021, and with it the model max all up to there.
OF_LATER = {0x80000000, *range(0x8000000b, 0x80000022)} if IS_LATER else {}


def differences(machine, cpu):
    stock, ours = (cpuid(which, machine, cpu) for which in (STOCK, OURS))
    return {f'0x{leaf[0]:x}.{leaf[1]}': tuple(
                ' '.join(f'{register:x}' for register in said[leaf])
                for said in (stock, ours))
            for leaf in program.ALL_LEAVES
            if stock[leaf] != ours[leaf] and leaf[0] not in OF_LATER}


@pytest.mark.parametrize('machine, cpu', [
    pytest.param(machine, cpu,
                 marks=[] if machine in USUAL or cpu in FEW
                 else [pytest.mark.more])
    for machine, cpu in MODELS])
def test_same_cpuid(machine, cpu):
    assert differences(machine, cpu) == {}


#
# The program, here and there
#

class Pmu:
    """A CPU, and the registers of its first counter."""

    def __init__(self, name, cpu, select, counter, start=()):
        self.name = name
        self.cpu = cpu
        self.counter = counter
        self.select = select
        self.start = list(start)

    def __str__(self):
        return self.name

    def used(self):
        """Counts its instructions."""
        return Bare(program.image(
            [program.write(self.select, program.COUNT_INSTRUCTIONS),
             *self.start], program.excess(self.counter)))

    def unused(self):
        return Bare(program.image())

    def left(self):
        """Has counted, and does not any more."""
        return Bare(program.image([program.write(self.counter, LEFT)],
                                  program.read(self.counter, program.VALUE)))


# What is left in a counter.
LEFT = 0x12345

PMUS = [
    Pmu('intel', 'Skylake-Client-v1,pmu=on', program.EVTSEL0, program.PMC0,
        [program.write(program.GLOBAL_CTRL, 1)]),
    Pmu('amd', 'EPYC-Genoa-v1,pmu=on', program.AMD_EVTSEL0, program.AMD_PMC0,
        [program.write(program.AMD_GLOBAL_CTRL, 1)]),
    Pmu('k7', 'athlon,pmu=on', program.K7_EVTSEL0, program.K7_PMC0),
]
each_pmu = pytest.mark.parametrize('pmu', PMUS, ids=str)
each_stock = pytest.mark.parametrize('stock', STOCKS, ids=str)
# Those of older machine types never have a PMU.
each_machine = pytest.mark.parametrize('machine', ['pc', 'pc-i440fx-9.2'])


def leave(bare, which, machine):
    with bare.start(which, machine) as qemu:
        go_on(qemu)
        qemu.leave(bare.state.name)


def pass_through(bare, which, machine):
    """Load it, go on, and leave again."""
    with bare.start(which, machine, *INCOMING) as qemu:
        qemu.arrive(bare.state.name)
        go_on(qemu)
        qemu.leave(bare.state.name)


def check_exact(bare, machine, options=()):
    """A round that was interrupted has its excess, those after it the same."""
    with bare.start(OURS, machine, *INCOMING, *options) as qemu:
        qemu.arrive(bare.state.name)
        go_on(qemu)
        excess = qemu.number(program.EXCESS)
        go_on(qemu)
        qemu.command('stop')
        assert qemu.number(program.EXCESS) == excess


@each_pmu
@each_machine
@pytest.mark.parametrize('source, target', [
    *((OURS, stock) for stock in STOCKS), *((stock, OURS) for stock in STOCKS),
    (OURS, OURS)], ids=str)
def test_unused_pmu_moves(source, target, machine, pmu):
    bare = pmu.unused()
    machine = machine_of(machine, pmu.cpu)
    leave(bare, source, machine)
    pass_through(bare, target, machine)


@each_pmu
@each_stock
def test_value_that_was_left_moves(pmu, stock):
    """To stock, which makes nothing of it, and back."""
    bare = pmu.left()
    machine = machine_of('pc', pmu.cpu)
    leave(bare, OURS, machine)
    pass_through(bare, stock, machine)
    with bare.start(OURS, machine, *INCOMING) as qemu:
        qemu.arrive(bare.state.name)
        go_on(qemu)
        assert qemu.number(program.VALUE) == LEFT


@each_pmu
@each_stock
def test_counting_pmu_is_refused_by_stock(pmu, stock):
    bare = pmu.used()
    machine = machine_of('pc', pmu.cpu)
    leave(bare, OURS, machine)
    with refused(NOT_KNOWN):
        pass_through(bare, stock, machine)


@each_pmu
def test_counting_pmu_moves(pmu):
    bare = pmu.used()
    machine = machine_of('pc', pmu.cpu)
    leave(bare, OURS, machine)
    check_exact(bare, machine)


@each_pmu
@pytest.mark.parametrize('which', [OURS, STOCK], ids=str)
def test_old_type_has_no_pmu(which, pmu):
    """A guest that has tried goes to where it finds the same."""
    bare = pmu.used()
    machine = machine_of('pc-i440fx-9.2', pmu.cpu)
    leave(bare, which, machine)
    pass_through(bare, OURS if which is STOCK else STOCK, machine)


#
# Branch records and precise samples, whose properties stock does not know
#

class Recording:
    """What such a property offers, and what a guest writes to use it."""

    def __init__(self, name, cpu, extra, msr, value, without=',lbr=off'):
        self.name = name
        self.stock = machine_of('pc', cpu)
        self.plain = machine_of('pc', f'{cpu}{without}')
        self.machine = machine_of('pc', f'{cpu},{extra}')
        self.extra = extra
        self.use = program.write(msr, value)

    def __str__(self):
        return self.name

    def used(self):
        return Bare(program.image([self.use]))


RECORDINGS = [
    Recording('lbr', 'Skylake-Client-v1,pmu=on', 'lbr=on', 0x1c8, 0x101),
    Recording('arch-lbr', 'SapphireRapids-v1,pmu=on', 'lbr=on', 0x14ce,
              0x7f0006, ',lbr=off,pmu-version=5'),
    Recording('amd-lbr', 'EPYC-Genoa-v1,pmu=on', 'lbr=on', 0xc000010e, 0x101),
    Recording('pebs', 'Skylake-Client-v1,pmu=on', 'pebs=on', 0x600, 0x123450),
]
each_recording = pytest.mark.parametrize('recording', RECORDINGS, ids=str)


@each_recording
def test_unused_records_move(recording):
    """To stock and back."""
    bare = Bare(program.image())
    leave(bare, OURS, recording.machine)
    pass_through(bare, STOCK, recording.stock)
    pass_through(bare, OURS, recording.machine)


@each_recording
def test_used_records_are_refused(recording):
    """By stock, and by ours, which says which property is missing."""
    bare = recording.used()
    leave(bare, OURS, recording.machine)
    with refused(NOT_KNOWN):
        pass_through(bare, STOCK, recording.stock)
    with refused(f'add {recording.extra}'):
        pass_through(bare, OURS, recording.plain)
    pass_through(bare, OURS, recording.machine)


@each_recording
def test_stock_has_no_records(recording):
    """Its user finds no such property."""
    name = recording.extra.removesuffix('=on')
    with refused(f".{name}' not found"), Qemu(STOCK, *recording.machine):
        pass


# The interrupt, or the near jump behind it.
AT_KEY, AT_JUMP = 7 + 3, 7 + 4 + 1


# In lbr-all, nothing else of the records is not as after a reset.  The guest
# writes the pairs to begin to record; info has the time of the first record.
@pytest.mark.parametrize('cpu, pairs, info, cycles', [
    pytest.param('Skylake-Client-v1,pmu=on', [(0x1c8, 0x100), (0x1d9, 1)],
                 0xdc1, AT_JUMP, id='lbr'),
    pytest.param('Skylake-Client-v1,pmu=on', [(0x1d9, 1)], 0xdc1, AT_KEY,
                 id='lbr-all'),
    pytest.param('SapphireRapids-v1,pmu=on', [(0x14ce, 0x20007)], 0x1200,
                 AT_JUMP, id='arch-lbr'),
])
def test_time_of_a_branch_moves(cpu, pairs, info, cycles):
    """Of which a part has gone by."""
    bare = Bare(program.image([
        program.use_keyboard(), *(program.write(*pair) for pair in pairs),
        7 * program.NOP, program.sleep_until_key(), program.JUMP,
        program.read(info, program.VALUE)]))
    machine = machine_of('pc', cpu)
    with bare.start(OURS, machine) as qemu:
        qemu.command('cont')
        until(lambda: qemu.number(program.EXCESS))
        qemu.leave(bare.state.name)
    with bare.start(OURS, machine, *INCOMING) as qemu:
        qemu.arrive(bare.state.name)
        qemu.command('cont')
        qemu.command('send-key', keys=[{'type': 'qcode', 'data': 'a'}])
        go_on(qemu)
        assert qemu.number(program.VALUE) & 0xffff == cycles


#
# While somebody looks from outside
#

def parts_sent(bare):
    return stream.parts(bare.state.name, ('cpu', 'cpu_common'))


# Those that are not used go anywhere.
@each_pmu
@each_machine
def test_observed_guest_goes_to_stock(machine, pmu):
    """Nothing in the stream tells of it."""
    bare = pmu.unused()
    machine = machine_of(machine, pmu.cpu)
    leave(bare, OURS, machine)
    sent = parts_sent(bare)
    leave_observed(bare, machine, go_on)
    assert parts_sent(bare) == sent
    pass_through(bare, STOCK, machine)


@each_pmu
def test_observed_guest_counts_on(pmu):
    """Where nobody looks, and where somebody else does."""
    bare = pmu.used()
    machine = machine_of('pc', pmu.cpu)
    leave_observed(bare, machine, go_on)
    check_exact(bare, machine)
    others = Observers()
    check_exact(bare, machine, others.options)


#
# Command lines that start stock QEMU
#

# UnheardOfCPU is a vendor, with a PMU that nobody knows.
LINES = [
    'Dhyana,pmu=on', 'YongFeng,pmu=on', 'qemu32,pmu=on', 'qemu64,pmu=on',
    'kvm32,pmu=on', 'kvm64,pmu=on', 'pentium3,pmu=on', 'n270,pmu=on',
    '486,pmu=on', 'athlon,pmu=on', 'max,pmu=on', 'base,pmu=on',
    'EPYC-Genoa,perfmon-v2=on', 'EPYC-Genoa,pmu=on,xlevel=0x80000021',
    'EPYC,perfmon-v2=on', 'EPYC,pmu=off,perfctr-core=on',
    'Skylake-Client,pmu=on,level=9', 'Skylake-Client,pmu=on,min-level=0xd',
    'Skylake-Client,pmu=on,vendor=AuthenticAMD',
    'EPYC,pmu=on,vendor=GenuineIntel',
    'Skylake-Client,pmu=on,vendor=UnheardOfCPU',
    'Skylake-Client,pmu=on,-pdcm', 'Skylake-Client,pmu=off,+pdcm',
    'Skylake-Client,pmu=on,hv-passthrough=off',
]


@pytest.mark.parametrize('cpu, machine', [
    *itertools.product(LINES, TYPES),
    *itertools.product(['Skylake-Client,pmu=on', 'EPYC-Genoa,pmu=on'],
                       OLD_TYPES)])
def test_line_starts(cpu, machine):
    for which in STOCK, OURS:
        with Qemu(which, *machine_of(machine, cpu)):
            pass


@pytest.mark.parametrize('goes, message', [
    ('', 'the guest reads'), (',chardev=c', 'goes to a chardev')],
    ids=['guest', 'chardev'])
def test_recorded_profile_needs_a_file(goes, message):
    options = ['-chardev', 'null,id=c', '-object', f'pmu-profile,id=p{goes}',
               '-icount', 'shift=auto,rr=record,rrfile=/dev/null']
    with refused(message), Qemu(OURS, *options):
        pass


@pytest.mark.parametrize('machine, message', [
    ('pc', 'CPUs of this vendor'),
    ('pc-i440fx-9.2', 'this machine type has no PMU')], ids=['new', 'old'])
def test_enforce_needs_pmu(machine, message):
    """The one thing that stock does not refuse."""
    machine = machine_of(machine, 'qemu64,pmu=on,enforce,vendor=UnheardOfCPU')
    with Qemu(STOCK, *machine):
        pass
    with refused(message), Qemu(OURS, *machine):
        pass
