# SPDX-License-Identifier: GPL-2.0-or-later
"""Power: what older machine types show, and guests that go to and come from
Debian's QEMU.
"""

import pathlib
import tempfile

import pytest

import devicetree
import program_ppc64 as program
import stream
from observers import leave_observed
from qemus import (INCOMING, IS_LATER, LATER, NEWEST, NOT_KNOWN, OURS, STOCK,
                   STOCKS, Bare, Qemu, refused, until)

pytestmark = pytest.mark.arch('ppc64')

CPUS = ['POWER8', 'POWER9', 'POWER10']
each_cpu = pytest.mark.parametrize('cpu', CPUS)

#
# Device trees
#

# What ours says of the PMU.
MONITOR, CALL = 'performance-monitor', b'hcall-perfmon\0'
# What differs between two runs, and between Debian's 10.0.2 and later 10.0.x.
VARIES = ('rng-seed', 'ibm,lrdr-capacity')
# QEMU 10.2 dumps kernels.
OF_LATER = ('ibm,configure-kernel-dump',) if IS_LATER else ()


def tree(which, machine, cpu):
    options = ['-machine', NEWEST.get(machine, machine), '-uuid',
               '12345678-1234-1234-1234-123456789abc']
    with Qemu(which, *options, *(['-cpu', cpu] if cpu else [])) as qemu, \
            tempfile.NamedTemporaryFile() as file:
        qemu.command('dumpdtb', filename=file.name)
        found = devicetree.parse(pathlib.Path(file.name).read_bytes())
    return {path: value for path, value in found.items()
            if not path.endswith(VARIES)
            and not path.rpartition('/')[2].startswith(OF_LATER)}


def differences(machine, cpu):
    """Of properties: stock's value and ours, None where there is none."""
    stock, ours = (tree(which, machine, cpu) for which in (STOCK, OURS))
    return {path: (stock.get(path), ours.get(path))
            for path in {*stock, *ours} if stock.get(path) != ours.get(path)}


@pytest.mark.parametrize('machine, cpu', [
    *(('pseries-9.2', cpu) for cpu in [*CPUS, 'POWER7']),
    ('pseries-8.2', 'POWER9'), ('pseries-6.2', 'POWER9'),
    ('powernv8', None), ('powernv9', None), ('powernv10', None)])
def test_same_device_tree(machine, cpu):
    assert differences(machine, cpu) == {}


@each_cpu
def test_device_tree_tells_of_pmu(cpu):
    """And of nothing else that stock's does not."""
    found = differences('pseries', cpu)
    names = sorted(path.rpartition('/')[2] for path in found)
    assert names == ['ibm,hypertas-functions', MONITOR]
    for path, (stock, ours) in found.items():
        if path.endswith(MONITOR):
            assert (stock, ours) == (None, b'\0\0\0\0\0\0\0\1')
        else:
            assert ours.replace(CALL, b'') == stock


#
# The program, here and there
#

# Registers that both have, as the monitor calls them.
REGISTERS = ['mmcr0', 'mmcr1', 'mmcra', *(f'pmc{n}' for n in range(1, 7))]
PMCS = REGISTERS[3:]
# Counted by stock, which keeps 64 bits of them.
PMC_BITS = (1 << 32) - 1

UNUSED = []
# What the program leaves in PMC1 and 2, and what counts meanwhile.
USED = [program.call_perfmon(), program.write('ctrl', 1),
        program.write('mmcr1', program.INSTRUCTIONS),
        program.write('mmcra', 0),
        program.write('pmc1', 0x12345), program.write('pmc2', 0x7000),
        program.write('pmc5', 0), program.write('mmcr0', 0)]
# Branches are recorded until the alerts are disabled.
BRANCHES = [program.write('ctrl', 1), program.write('mmcra', 0),
            [program.CLEAR_BRANCHES],
            program.write('mmcr0', program.MMCR0_PMAE)]


# QEMU 10.0.13 sends what Debian's 10.0.2 does not know yet, of an interrupt
# controller; POWER8 has no other one.
XICS = "Unknown savevm section or instance 'icp/server'"


def machine_of(name, cpu):
    name = 'pseries' if name == OF_LATER_ONLY else NEWEST.get(name, name)
    if not cpu.startswith('POWER8'):
        name += ',ic-mode=xive'
    return ['-machine', name, '-cpu', cpu, '-m', '256']


def bare_with(parts):
    return Bare(program.image(*parts))


def go_on(qemu, rounds=1000):
    """Let the program do so many more; all that it has done then."""
    before = qemu.number(program.ROUNDS)
    qemu.command('cont')
    until(lambda: qemu.number(program.ROUNDS) >= before + rounds)
    return qemu.number(program.ROUNDS)


def registers(qemu):
    return {name: qemu.register(name) for name in REGISTERS}


def check_exact(qemu):
    """A round that was interrupted has its excess, those after it the same."""
    go_on(qemu)
    excess = qemu.number(program.EXCESS)
    go_on(qemu)
    qemu.command('stop')
    assert qemu.number(program.EXCESS) == excess


def move(bare, source, target, machine, there=None):
    """From one to the other, where the registers are the same."""
    with bare.start(source, machine) as qemu:
        go_on(qemu)
        qemu.leave(bare.state.name)
        left = registers(qemu)
    with bare.start(target, there or machine, *INCOMING) as qemu:
        qemu.arrive(bare.state.name)
        arrived = registers(qemu)
        if source is not OURS:
            for name in PMCS:
                left[name] &= PMC_BITS
        assert arrived == left
        if target is OURS and not arrived['mmcr0'] & program.MMCR0_FC:
            check_exact(qemu)
        go_on(qemu)


TYPES = ['pseries', 'pseries-9.2']
# The newest of a later series
OF_LATER_ONLY = 'newest'
each_type = pytest.mark.parametrize('machine', TYPES)
MOVES = [(source, target, machine, cpu)
         for source, target in (*((OURS, stock) for stock in STOCKS),
                                *((stock, OURS) for stock in STOCKS),
                                (OURS, OURS))
         for machine in ([OF_LATER_ONLY, *TYPES]
                         if IS_LATER and LATER in (source, target)
                         else TYPES) for cpu in CPUS
         if target is not STOCK or cpu != 'POWER8']


def each_move(moves):
    return pytest.mark.parametrize('source, target, machine, cpu', moves,
                                   ids=str)


@each_move(MOVES)
def test_unused_pmu_moves(source, target, machine, cpu):
    move(bare_with(UNUSED), source, target, machine_of(machine, cpu))


@each_move(MOVES)
def test_counting_pmu_moves(source, target, machine, cpu):
    """In the midst of counting, H_PERFMON called."""
    move(bare_with(USED), source, target, machine_of(machine, cpu))


@each_move([one for one in MOVES if one[2] == 'pseries'])
def test_recorded_branches_move(source, target, machine, cpu):
    move(bare_with(BRANCHES), source, target, machine_of(machine, cpu))


# In a stream the BHRB's offset, of 8 bytes, comes after its subsection's name
# and version.
BEFORE_OFFSET = b'cpu/bhrb\0\0\0\1'
BRANCHES_SIZE = 32 * 8


def offset_in(data):
    at = data.index(BEFORE_OFFSET) + len(BEFORE_OFFSET)
    return slice(at, at + 8)


@pytest.mark.parametrize('cpu, offset', [
    ('POWER8', BRANCHES_SIZE), ('POWER9', 1 << 40), ('POWER10', 12)])
def test_offset_of_branches_is_cut(cpu, offset):
    """It is an index: a stream may say anything."""
    bare = bare_with(BRANCHES)
    machine = machine_of('pseries', cpu)
    state = pathlib.Path(bare.state.name)
    with bare.start(OURS, machine) as qemu:
        go_on(qemu)
        qemu.leave(state)
    data = bytearray(state.read_bytes())
    data[offset_in(data)] = offset.to_bytes(8, 'big')
    state.write_bytes(data)
    with bare.start(OURS, machine, *INCOMING) as qemu:
        qemu.arrive(state)
        qemu.leave(state)
    data = state.read_bytes()
    loaded = int.from_bytes(data[offset_in(data)], 'big')
    assert loaded == offset % BRANCHES_SIZE // 8 * 8


def parts(which, machine, program_parts):
    """The states and subsections that it sends of its CPU."""
    bare = bare_with(program_parts)
    with bare.start(which, machine) as qemu:
        go_on(qemu)
        qemu.leave(bare.state.name)
    return stream.parts(bare.state.name, ('cpu', 'spapr_cpu'))


@each_cpu
@each_type
def test_stream_is_as_that_of_stock(machine, cpu):
    """But that unused buffers of branches are left out."""
    machine = machine_of(machine, cpu)
    stock = parts(STOCK, machine, UNUSED) - {'cpu/bhrb'}
    assert parts(OURS, machine, UNUSED) == stock
    assert parts(OURS, machine, USED) == stock


@pytest.mark.parametrize('cpu', CPUS[1:])
@each_type
@pytest.mark.parametrize('target', [OURS, STOCK], ids=str)
def test_observed_guest_counts_on(target, machine, cpu):
    """In the midst of counting; nothing in the stream tells of observers."""
    bare = bare_with(USED)
    machine = machine_of(machine, cpu)
    sent = parts(OURS, machine, USED)
    leave_observed(bare, machine, go_on)
    assert stream.parts(bare.state.name, ('cpu', 'spapr_cpu')) == sent
    with bare.start(target, machine, *INCOMING) as qemu:
        qemu.arrive(bare.state.name)
        if target is OURS:
            check_exact(qemu)
        go_on(qemu)


@pytest.mark.parametrize('program_parts', [UNUSED, USED],
                         ids=['unused', 'used'])
def test_power8_stops_at_its_interrupt_controller(program_parts):
    """That of the CPU has been loaded then."""
    with refused(XICS):
        move(bare_with(program_parts), OURS, STOCK,
             machine_of('pseries', 'POWER8'))


@pytest.mark.parametrize('cpu', CPUS[1:])
def test_there_and_back(cpu):
    """The state of ours, loaded and saved by stock, is loaded."""
    bare = bare_with(USED)
    machine = machine_of('pseries', cpu)
    move(bare, OURS, STOCK, machine)
    with bare.start(STOCK, machine, *INCOMING) as qemu:
        qemu.arrive(bare.state.name)
        go_on(qemu)
        qemu.leave(bare.state.name)
    with bare.start(OURS, machine, *INCOMING) as qemu:
        qemu.arrive(bare.state.name)
        check_exact(qemu)


@pytest.mark.parametrize('which, machine', [
    (OURS, 'pseries'), (OURS, 'pseries-9.2'), (STOCK, 'pseries')], ids=str)
def test_perfmon_answers(which, machine):
    """Stock refuses H_PERFMON, which leaves its arguments alone."""
    shown = which is OURS and machine == 'pseries'
    bare = bare_with(USED)
    with bare.start(which, machine_of(machine, 'POWER9')) as qemu:
        go_on(qemu)
        assert qemu.number(program.RESULT) == (
            0 if shown else program.H_FUNCTION)
        assert qemu.number(program.MODES) == program.ENABLE


@pytest.mark.parametrize('controller', program.ASKING)
def test_interrupt_waits_in_a_stream(controller):
    """One that the CPU has not taken is taken where it has moved to."""
    bare = bare_with([program.ask_for_interrupt(controller)])
    machine = ['-machine', f'pseries,ic-mode={controller}', '-cpu', 'POWER9',
               '-m', '256']
    with bare.start(OURS, machine) as qemu:
        go_on(qemu)
        qemu.leave(bare.state.name)
    with bare.start(OURS, machine, *INCOMING) as qemu:
        qemu.arrive(bare.state.name)
        go_on(qemu)
        assert not qemu.number(program.TAKEN)
        qemu.command('inject-nmi')
        until(lambda: qemu.number(program.TAKEN))


#
# What is refused
#

@pytest.mark.parametrize('target', STOCKS, ids=str)
@pytest.mark.parametrize('option', ['pmu-cycles=time', 'pmu-cpi=1500'])
def test_other_cycles_are_refused(option, target):
    """Stock cannot hold a part of a cycle; of a PMU that was used."""
    machine = machine_of('pseries', f'POWER9,{option}')
    stock = machine_of('pseries', 'POWER9')
    move(bare_with(UNUSED), OURS, target, machine, stock)
    with refused(NOT_KNOWN):
        move(bare_with(USED), OURS, target, machine, stock)


@pytest.mark.parametrize('source', [OURS, *STOCKS], ids=str)
def test_used_pmu_without_one_is_refused(source):
    machine = machine_of('pseries', 'POWER9')
    none = machine_of('pseries', 'POWER9,pmu=off')
    with refused("The source's CPU has a PMU and this one does not"):
        move(bare_with(USED), source, OURS, machine, none)


def test_unused_pmu_goes_where_there_is_none():
    bare = bare_with(UNUSED)
    machine = machine_of('pseries', 'POWER9')
    with bare.start(OURS, machine) as qemu:
        go_on(qemu)
        qemu.leave(bare.state.name)
    with bare.start(OURS, machine_of('pseries', 'POWER9,pmu=off'),
                    *INCOMING) as qemu:
        qemu.arrive(bare.state.name)
        go_on(qemu)


#
# Command lines that start stock QEMU
#

LINES = [('pseries', cpu) for cpu in [*CPUS, 'POWER7', 'POWER5+', '970mp']] \
    + [('pseries-9.2', cpu) for cpu in [*CPUS, 'POWER7']] \
    + [('powernv8', 'POWER8'), ('powernv9', 'POWER9'),
       ('powernv10', 'POWER10'), ('mac99', '970fx')]


@pytest.mark.parametrize('machine, cpu', LINES)
def test_line_starts(machine, cpu):
    for which in STOCK, OURS:
        with Qemu(which, '-machine', machine, '-cpu', cpu):
            pass
