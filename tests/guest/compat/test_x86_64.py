# SPDX-License-Identifier: GPL-2.0-or-later
"""x86: what CPUs show on older machine types and without pmu=on, guests that
go to and come from Debian's QEMU, and command lines; all under TCG.  With
KVM, tests/guest/nested does so.
"""

import struct

import program_x86_64 as program
import stream
from observers import Observers, leave_observed
from qemu import INCOMING, IS_LATER, NEWEST, OURS, STOCK, Bare, Qemu
from results import NOT_KNOWN, differs, refused, require, test, until


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
             'pc-i440fx-5.0' if IS_LATER else 'pc-i440fx-4.2']
# The newest, where only who asks for a PMU has one.
TYPES = ['pc', 'q35']
INTEL = ['Skylake-Client', 'SapphireRapids', 'core2duo', 'qemu32',
         'max,vendor=GenuineIntel']
OTHERS = ['qemu64', 'kvm64', 'EPYC-Genoa', 'EPYC', 'Opteron_G3', 'athlon',
          'Dhyana', 'YongFeng', 'max']


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


@test(each=[(machine, cpu) for machine in OLD_TYPES
            for cpu in [*INTEL, *OTHERS, 'Skylake-Client,pmu=on',
                        'EPYC-Genoa,pmu=on', 'EPYC,pmu=off']]
      + [(machine, cpu) for machine in TYPES
         for cpu in [*INTEL[:-1], *OTHERS, 'Skylake-Client,pmu=off',
                     'EPYC-Genoa,pmu=off', 'max,pmu=off',
                     'max,vendor=GenuineIntel,pmu=off']])
def same_cpuid(machine, cpu):
    require(differs(differences(machine, cpu), {}))


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
        require(differs(qemu.number(program.EXCESS), excess))


# Those of older machine types never have a PMU.
@test(each=[(source, target, machine, pmu)
            for source, target in ((OURS, STOCK), (STOCK, OURS), (OURS, OURS))
            for machine in ('pc', 'pc-i440fx-9.2') for pmu in PMUS])
def unused_pmu_moves(source, target, machine, pmu):
    bare = pmu.unused()
    machine = machine_of(machine, pmu.cpu)
    leave(bare, source, machine)
    pass_through(bare, target, machine)


@test(each=PMUS)
def value_that_was_left_moves(pmu):
    """To stock, which makes nothing of it, and back."""
    bare = pmu.left()
    machine = machine_of('pc', pmu.cpu)
    leave(bare, OURS, machine)
    pass_through(bare, STOCK, machine)
    with bare.start(OURS, machine, *INCOMING) as qemu:
        qemu.arrive(bare.state.name)
        go_on(qemu)
        require(differs(qemu.number(program.VALUE), LEFT))


@test(each=PMUS)
def counting_pmu_is_refused_by_stock(pmu):
    bare = pmu.used()
    machine = machine_of('pc', pmu.cpu)
    leave(bare, OURS, machine)
    require(refused(NOT_KNOWN, lambda: pass_through(bare, STOCK, machine)))


@test(each=PMUS)
def counting_pmu_moves(pmu):
    bare = pmu.used()
    machine = machine_of('pc', pmu.cpu)
    leave(bare, OURS, machine)
    check_exact(bare, machine)


@test(each=[(which, pmu) for which in (OURS, STOCK) for pmu in PMUS])
def old_type_has_no_pmu(which, pmu):
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
        self.used = Bare(program.image([program.write(msr, value)]))

    def __str__(self):
        return self.name


RECORDINGS = [
    Recording('lbr', 'Skylake-Client-v1,pmu=on', 'lbr=on', 0x1c8, 0x101),
    Recording('arch-lbr', 'SapphireRapids-v1,pmu=on', 'lbr=on', 0x14ce,
              0x7f0006, ',lbr=off,pmu-version=5'),
    Recording('amd-lbr', 'EPYC-Genoa-v1,pmu=on', 'lbr=on', 0xc000010e, 0x101),
    Recording('pebs', 'Skylake-Client-v1,pmu=on', 'pebs=on', 0x600, 0x123450),
]


@test(each=RECORDINGS)
def unused_records_move(recording):
    """To stock and back."""
    bare = Bare(program.image())
    leave(bare, OURS, recording.machine)
    pass_through(bare, STOCK, recording.stock)
    pass_through(bare, OURS, recording.machine)


@test(each=RECORDINGS)
def used_records_are_refused(recording):
    """By stock, and by who is told which property is missing."""
    bare = recording.used
    leave(bare, OURS, recording.machine)
    require(refused(NOT_KNOWN,
                    lambda: pass_through(bare, STOCK, recording.stock)))
    require(refused(f'add {recording.extra}',
                    lambda: pass_through(bare, OURS, recording.plain)))
    pass_through(bare, OURS, recording.machine)


@test(each=RECORDINGS)
def stock_has_no_records(recording):
    """Its user finds no such property."""
    name = recording.extra.removesuffix('=on')
    require(refused(f".{name}' not found",
                    Qemu(STOCK, *recording.machine).__enter__))


class Timed:
    """Records that tell how long a branch took: what is written to record,
    where it is told of the first, and how long that one takes."""

    def __init__(self, name, cpu, start, info, cycles):
        self.name = name
        self.cycles = cycles
        self.machine = machine_of('pc', cpu)
        self.bare = Bare(program.image([
            program.use_keyboard(), *(program.write(*pair) for pair in start),
            7 * program.NOP, program.sleep_until_key(), program.JUMP,
            program.read(info, program.VALUE)]))

    def __str__(self):
        return self.name


# The interrupt, or the near jump behind it.
AT_KEY, AT_JUMP = 7 + 3, 7 + 4 + 1


# In one, nothing else of the records is not as after a reset.
@test(each=[
    Timed('lbr', 'Skylake-Client-v1,pmu=on', [(0x1c8, 0x100), (0x1d9, 1)],
          0xdc1, AT_JUMP),
    Timed('lbr-all', 'Skylake-Client-v1,pmu=on', [(0x1d9, 1)], 0xdc1, AT_KEY),
    Timed('arch-lbr', 'SapphireRapids-v1,pmu=on', [(0x14ce, 0x20007)], 0x1200,
          AT_JUMP),
])
def time_of_a_branch_moves(timed):
    """Of which a part has gone by."""
    bare = timed.bare
    with bare.start(OURS, timed.machine) as qemu:
        qemu.command('cont')
        until(lambda: qemu.number(program.EXCESS))
        qemu.leave(bare.state.name)
    with bare.start(OURS, timed.machine, *INCOMING) as qemu:
        qemu.arrive(bare.state.name)
        qemu.command('cont')
        qemu.command('send-key', keys=[{'type': 'qcode', 'data': 'a'}])
        go_on(qemu)
        require(differs(qemu.number(program.VALUE) & 0xffff, timed.cycles))


#
# While somebody looks from outside
#

def parts_sent(bare):
    return stream.parts(bare.state.name, ('cpu', 'cpu_common'))


# Those that are not used go anywhere.
@test(each=[(machine, pmu) for machine in ('pc', 'pc-i440fx-9.2')
            for pmu in PMUS])
def observed_guest_goes_to_stock(machine, pmu):
    """Nothing in the stream tells of it."""
    bare = pmu.unused()
    machine = machine_of(machine, pmu.cpu)
    leave(bare, OURS, machine)
    sent = parts_sent(bare)
    leave_observed(bare, machine, go_on)
    require(differs(parts_sent(bare), sent))
    pass_through(bare, STOCK, machine)


@test(each=PMUS)
def observed_guest_counts_on(pmu):
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


@test(each=[(cpu, machine) for cpu in LINES for machine in ('pc', 'q35')]
      + [('Skylake-Client,pmu=on', machine) for machine in OLD_TYPES]
      + [('EPYC-Genoa,pmu=on', machine) for machine in OLD_TYPES])
def line_starts(cpu, machine):
    for which in STOCK, OURS:
        with Qemu(which, *machine_of(machine, cpu)):
            pass


@test(each=[('', 'the guest reads'), (',chardev=c', 'goes to a chardev')])
def recorded_profile_needs_a_file(goes, message):
    options = ['-chardev', 'null,id=c', '-object', f'pmu-profile,id=p{goes}',
               '-icount', 'shift=auto,rr=record,rrfile=/dev/null']
    require(refused(message, Qemu(OURS, *options).__enter__))


@test(each=[('pc', 'CPUs of this vendor'),
            ('pc-i440fx-9.2', 'this machine type has no PMU')])
def enforce_needs_pmu(machine, message):
    """The one thing that stock does not refuse."""
    machine = machine_of(machine, 'qemu64,pmu=on,enforce,vendor=UnheardOfCPU')
    with Qemu(STOCK, *machine):
        pass
    require(refused(message, Qemu(OURS, *machine).__enter__))
