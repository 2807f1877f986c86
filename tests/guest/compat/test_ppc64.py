# SPDX-License-Identifier: GPL-2.0-or-later
"""Power: what older machine types show, and guests that go to and come from
Debian's QEMU.
"""

import pathlib
import tempfile

import devicetree
import program_ppc64 as program
import stream
from observers import leave_observed
from qemu import INCOMING, IS_LATER, NEWEST, OURS, STOCK, Bare, Qemu
from results import NOT_KNOWN, differs, refused, require, test, until

CPUS = ['POWER8', 'POWER9', 'POWER10']

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


@test(each=[('pseries-9.2', cpu) for cpu in CPUS]
      + [('pseries-9.2', 'POWER7'), ('pseries-8.2', 'POWER9'),
         ('pseries-6.2', 'POWER9'),
         ('powernv8', None), ('powernv9', None), ('powernv10', None)])
def same_device_tree(machine, cpu):
    require(differs(differences(machine, cpu), {}))


@test(each=[('pseries', cpu) for cpu in CPUS])
def device_tree_tells_of_pmu(machine, cpu):
    """And of nothing else that stock's does not."""
    found = differences(machine, cpu)
    names = sorted(path.rpartition('/')[2] for path in found)
    require(differs(names, ['ibm,hypertas-functions', MONITOR]))
    for path, (stock, ours) in found.items():
        if path.endswith(MONITOR):
            require(differs((stock, ours), (None, b'\0\0\0\0\0\0\0\1')))
        else:
            require(differs(ours.replace(CALL, b''), stock))


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
    name = NEWEST.get(name, name)
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
    require(differs(qemu.number(program.EXCESS), excess))


def move(bare, source, target, machine, there=None):
    """From one to the other, where the registers are the same."""
    with bare.start(source, machine) as qemu:
        go_on(qemu)
        qemu.leave(bare.state.name)
        left = registers(qemu)
    with bare.start(target, there or machine, *INCOMING) as qemu:
        qemu.arrive(bare.state.name)
        arrived = registers(qemu)
        if source is STOCK:
            for name in PMCS:
                left[name] &= PMC_BITS
        require(differs(arrived, left))
        if target is OURS and not arrived['mmcr0'] & program.MMCR0_FC:
            check_exact(qemu)
        go_on(qemu)


TYPES = ['pseries', 'pseries-9.2']
# From, to, machine, CPU
MOVES = [(source, target, machine, cpu)
         for source, target in ((OURS, STOCK), (STOCK, OURS), (OURS, OURS))
         for machine in TYPES for cpu in CPUS
         if target is not STOCK or cpu != 'POWER8']


@test(each=MOVES)
def unused_pmu_moves(source, target, machine, cpu):
    move(bare_with(UNUSED), source, target, machine_of(machine, cpu))


@test(each=MOVES)
def counting_pmu_moves(source, target, machine, cpu):
    """In the midst of counting, H_PERFMON called."""
    move(bare_with(USED), source, target, machine_of(machine, cpu))


@test(each=[moved for moved in MOVES if moved[2] == 'pseries'])
def recorded_branches_move(source, target, machine, cpu):
    move(bare_with(BRANCHES), source, target, machine_of(machine, cpu))


# In a stream the BHRB's offset, of 8 bytes, is behind its subsection's name and
# version.
OFFSET_BEHIND = b'cpu/bhrb\0\0\0\1'
BRANCHES_SIZE = 32 * 8


def offset_in(data):
    at = data.index(OFFSET_BEHIND) + len(OFFSET_BEHIND)
    return slice(at, at + 8)


@test(each=[('POWER8', BRANCHES_SIZE), ('POWER9', 1 << 40), ('POWER10', 12)])
def offset_of_branches_is_cut(cpu, offset):
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
    require(differs(loaded, offset % BRANCHES_SIZE // 8 * 8))


def parts(which, machine, program_parts):
    """The states and subsections that it sends of its CPU."""
    bare = bare_with(program_parts)
    with bare.start(which, machine) as qemu:
        go_on(qemu)
        qemu.leave(bare.state.name)
    return stream.parts(bare.state.name, ('cpu', 'spapr_cpu'))


@test(each=[(machine, cpu) for machine in TYPES for cpu in CPUS])
def stream_is_as_that_of_stock(machine, cpu):
    """But that unused buffers of branches are left out."""
    machine = machine_of(machine, cpu)
    stock = parts(STOCK, machine, UNUSED) - {'cpu/bhrb'}
    require(differs(parts(OURS, machine, UNUSED), stock))
    require(differs(parts(OURS, machine, USED), stock))


@test(each=[(target, machine, cpu) for target in (OURS, STOCK)
            for machine in TYPES for cpu in CPUS[1:]])
def observed_guest_counts_on(target, machine, cpu):
    """In the midst of counting; nothing in the stream tells of who observes."""
    bare = bare_with(USED)
    machine = machine_of(machine, cpu)
    sent = parts(OURS, machine, USED)
    leave_observed(bare, machine, go_on)
    require(differs(stream.parts(bare.state.name, ('cpu', 'spapr_cpu')), sent))
    with bare.start(target, machine, *INCOMING) as qemu:
        qemu.arrive(bare.state.name)
        if target is OURS:
            check_exact(qemu)
        go_on(qemu)


@test(each=[('unused', UNUSED), ('used', USED)])
def power8_stops_at_its_interrupt_controller(_, program_parts):
    """That of the CPU has been loaded then."""
    require(refused(XICS, lambda: move(
        bare_with(program_parts), OURS, STOCK,
        machine_of('pseries', 'POWER8'))))


@test(each=CPUS[1:])
def there_and_back(cpu):
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


@test(each=[(OURS, 'pseries'), (OURS, 'pseries-9.2'), (STOCK, 'pseries')])
def perfmon_answers(which, machine):
    """Stock refuses H_PERFMON, which leaves its arguments alone."""
    shown = which is OURS and machine == 'pseries'
    bare = bare_with(USED)
    with bare.start(which, machine_of(machine, 'POWER9')) as qemu:
        go_on(qemu)
        require(differs((qemu.number(program.RESULT),
                         qemu.number(program.MODES)),
                        (0 if shown else program.H_FUNCTION, program.ENABLE)))


#
# What is refused
#

@test(each=[('time', 'pmu-cycles=time'), ('cpi', 'pmu-cpi=1500')])
def other_cycles_are_refused(_, option):
    """Stock cannot hold a part of a cycle; of a PMU that was used."""
    machine = machine_of('pseries', f'POWER9,{option}')
    stock = machine_of('pseries', 'POWER9')
    move(bare_with(UNUSED), OURS, STOCK, machine, stock)
    require(refused(NOT_KNOWN, lambda: move(
        bare_with(USED), OURS, STOCK, machine, stock)))


@test(each=[OURS, STOCK])
def used_pmu_without_one_is_refused(source):
    machine = machine_of('pseries', 'POWER9')
    none = machine_of('pseries', 'POWER9,pmu=off')
    require(refused("The source's CPU has a PMU and this one has none",
                    lambda: move(bare_with(USED), source, OURS, machine,
                                 none)))


@test()
def unused_pmu_goes_where_there_is_none():
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


@test(each=LINES)
def line_starts(machine, cpu):
    for which in STOCK, OURS:
        with Qemu(which, '-machine', machine, '-cpu', cpu):
            pass
