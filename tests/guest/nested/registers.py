# SPDX-License-Identifier: GPL-2.0-or-later
"""The registers of AMD's PMU under KVM: reset, migrated to and from, and what
QEMU refuses.

This is the part of the registers' tests that needs KVM.  There is that of
tests/qtest, whose commands read and write what KVM keeps; and a second guest,
suite "state" of tests/guest/bare on the bare machine, which reads as a guest
does, and counts.  To compare, the latter is run with Debian's QEMU, too.
"""

import subprocess

from harness import BUILD, ROOT
from l1 import differs
from phases import Phases

BARE = ROOT / 'tests' / 'guest' / 'bare'
PROGRAMS = BUILD / 'tests' / 'guest' / 'bare' / 'x86'

OURS = 'qemu-system-x86_64'
STOCK = '/stock/qemu'
KVM = '-accel kvm -cpu host'
TCG = '-accel tcg -cpu EPYC-Genoa,pmu=on'

# What the program does when it is to be migrated, and has been.
USED, UNUSED, ARRIVED = 1, 2, 3

# Linux as the second guest, for as long as it is let.
LINUX_JOB = 'while echo @ l2 alive; do sleep 1; done'

FUNCTIONS = """
# lines: add what is read, to the second guest's
lines() {
    while IFS= read -r line; do echo "@ l2 $line"; done >> /tmp/l2.out
}
# Of a type that ours and stock both have
machine=pc-i440fx-10.0
# bare QEMU OPTION...: run the program
bare() {
    timeout 600 "$@" -L /usr/share/qemu -nodefaults -display none \
        -machine $machine -m 32 -bios /rom.bin \
        -global apic-common.vapic=off -serial stdio \
        -device isa-debug-exit,iobase=0xf4,iosize=0x4 < /dev/null 2>&1 | lines
}
# leave FILE QEMU OPTION...: until it is to be migrated; migrate it there
leave() {
    file=$1
    shift
    bare "$@" $monitor 9<> /tmp/monitor & l2=$!
    until_l2 'ready to leave'
    save_l2 $file
}
"""


# The registers that the program fills: PerfMonV2's, the six counters and their
# selectors, and the first four by their old names.
REGISTERS = {f'{number:x}' for number in (
    0xc0000300, 0xc0000301, *range(0xc0010200, 0xc001020c),
    *range(0xc0010000, 0xc0010008))}


class Bare(Phases):
    """Tests that run that program."""

    def files(self):
        subprocess.run(['make', '-s', '-C', BARE, 'ARCH=x86_64',
                        f'PROGRAMS={PROGRAMS}'], check=True)
        return [(PROGRAMS / 'rom.bin', '/rom.bin')]


def fw_cfg(**options):
    return ' '.join(f'-fw_cfg name=opt/vpmu/{name},string={value}'
                    for name, value in options.items())


SUITE = fw_cfg(suite='state')


def program(task):
    """The case that is about that, and not the first."""
    return fw_cfg(suite='state', skip=1, migration=task)


def arrival(state):
    return f'{program(ARRIVED)} -incoming file:/tmp/{state}'


# What is refused, of a state that is loaded and of a CPU; part of the message.
REFUSALS = {
    'state_of_kvm_by_tcg': (
        f'{OURS} {TCG} {arrival("ours")}', 'the same accelerator'),
    'state_of_tcg_by_kvm': (
        f'{OURS} {KVM} {arrival("tcg")}', 'the same accelerator'),
    'state_of_perfmon_v2_without_it': (
        f'{OURS} {KVM},perfmon-v2=off {arrival("ours")}',
        'the same pmu-version, or perfmon-v2'),
    'state_of_pmu_without_it': (
        f'{OURS} {KVM},pmu=off {arrival("ours")}',
        "The source's CPU has a PMU and this one has none"),
    'state_of_pmu_by_stock': (
        f'{STOCK} {KVM} {arrival("ours")}', "of device 'cpu'"),
    'more_counters_than_the_host_has': (
        f'{OURS} {KVM},pmu=on,pmu-gp-counters=8', 'Allowed: 6'),
    'version_of_another_vendor': (
        f'{OURS} {KVM},pmu=on,pmu-version=2', 'only for Intel CPUs'),
    'pmu_of_another_vendor': (
        f'{OURS} {KVM},pmu=on,vendor=GenuineIntel,enforce',
        "the host's KVM has no PMU for guests"),
    'pmu_for_some_cpus': (
        f'{OURS} {KVM},pmu=off -smp 1,maxcpus=2 -device '
        'host-x86_64-cpu,pmu=on,socket-id=0,core-id=1,thread-id=0',
        'another CPU of this machine has pmu=off'),
    'no_pmu_for_some_cpus': (
        f'{OURS} {KVM} -smp 1,maxcpus=2 -device '
        'host-x86_64-cpu,pmu=off,socket-id=0,core-id=1,thread-id=0',
        'another CPU of this machine has a PMU'),
    'host_perf_without_kvm': (
        f'{OURS} {TCG},pmu-host-perf=on', 'pmu-host-perf is only for KVM'),
    'priority_without_kvm': (
        f'{OURS} {TCG},pmu-priority=guest', 'pmu-priority is only for KVM'),
    'host_counters_without_kvm': (
        f'{OURS} {TCG},pmu-host-counters=1',
        'pmu-host-counters is only for KVM'),
    'priority_of_nobody': (
        f'{OURS} {KVM},pmu-priority=nobody', 'Allowed: guest or host'),
    'all_counters_for_the_host': (
        f'{OURS} {KVM},pmu=on,pmu-host-counters=6', 'Allowed: up to 5'),
    'host_counters_without_perfmon_v2': (
        f'{OURS} {KVM},pmu=on,perfmon-v2=off,pmu-host-counters=2',
        'perfctr-core=off leaves four'),
    'host_counters_without_pmu': (
        f'{OURS} {KVM},pmu=off,pmu-host-counters=2', 'Add pmu=on'),
}


# The cases of tests/qtest/vpmu-test-kvm.c.
QTESTS = ['registers', 'reset', 'migration', 'not-asked-for', 'leftovers',
          'two-cpus', 'host-counters']

# How many of the programs below end by themselves.
ENDS = 5


def script():
    yield FUNCTIONS
    for name, qemu in ('ours', OURS), ('stock', STOCK):
        yield f'phase {name}/reset; bare {qemu} {KVM} {SUITE}'
        yield f'phase {name}/leave'
        yield f'leave /tmp/{name} {qemu} {KVM} {program(USED)}'
        yield f'phase {name}/arrive; bare {qemu} {KVM} {arrival(name)}'
    yield f'phase tcg/leave; leave /tmp/tcg {OURS} {TCG} {program(USED)}'
    yield 'phase unused/leave'
    yield f'leave /tmp/unused {OURS} {KVM} {program(UNUSED)}'
    yield f'phase unused/arrive; bare {STOCK} {KVM} {arrival("unused")}'
    yield from linux_to_stock()
    for name, (options, _) in REFUSALS.items():
        yield f'phase refused/{name}; bare {options}'
    yield 'phase qtest'
    yield (f'export VPMU_TEST_KVM=1 QTEST_QEMU_BINARY=/usr/bin/{OURS} '
           'G_TEST_DBUS_DAEMON=/bin/true')
    yield ('timeout 600 vpmu-test --tap -p /x86_64/vpmu/kvm 2>&1 | '
           'sed "s/^/@ l2 /" >> /tmp/l2.out')
    # A program that has not ended has halted for good.
    yield f'[ $(grep -c "^@ l2 end" /tmp/l2.phases) -lt {ENDS} ] || phase end'
    yield 'cat /tmp/l2.phases /tmp/l2.out'


def linux_to_stock():
    yield f"phase linux; echo '{LINUX_JOB}' > /tmp/job"
    yield 'l2 /tmp/job $monitor >> /tmp/l2.out 9<> /tmp/monitor & l2=$!'
    yield 'until_l2 "^@ l2 alive"; save_l2 /tmp/linux; phase linux/stock'
    yield (f'L2_QEMU={STOCK} l2 /tmp/job -L /usr/share/qemu $monitor '
           '-incoming file:/tmp/linux >> /tmp/l2.out 9<> /tmp/monitor & '
           'l2=$!')
    yield 'until_l2 "^@ l2 alive"; tell_l2 quit; wait $l2'


class Registers(Bare):
    def script(self):
        return script()

    def results_of_phases(self):
        yield ('l2/reset_clears_amd_registers',
               self.verdict('ours/reset', 'state/reset'))
        yield ('l2/migration_keeps_amd_registers',
               self.verdict('ours/arrive', 'state/migration'))
        yield from self.results_of_stock()
        yield ('l2/unused_pmu_goes_to_stock',
               self.verdict('unused/arrive', 'state/unused'))
        yield ('l2/linux_goes_to_stock',
               None if ['alive'] in self.printed['linux/stock']
               else repr(self.printed['linux/stock'][-3:]))
        yield from self.results_of_qtest()
        for name, (_, message) in REFUSALS.items():
            said = '\n'.join(map(' '.join, self.printed[f'refused/{name}']))
            yield f'kvm/refuses/{name}', None if message in said \
                else f'QEMU said: {said!r}'

    def results_of_qtest(self):
        passed = {words[-1] for words in self.printed['qtest']
                  if words[0] == 'ok'}
        for name in QTESTS:
            has_passed = f'/x86_64/vpmu/kvm/{name}' in passed
            yield f'qtest/{name}', None if has_passed \
                else repr(self.printed['qtest'][-3:])

    def results_of_stock(self):
        """Stock QEMU does not know these registers."""
        reset = self.values('stock/reset', 'reset')
        moved = self.values('stock/arrive', 'migration')
        for register, (before, after) in reset.items():
            arrived = moved.get(register, [before, before])[1]
            print(f'# stock: 0x{register} is 0x{before}, after a reset '
                  f'0x{after}, after migration 0x{arrived}')
        yield 'stock/reset_leaves_amd_registers', differs(
            {register for register, (before, after) in reset.items()
             if after == before}, REGISTERS)
        yield 'stock/migration_loses_amd_registers', differs(
            {register for register, (before, after) in moved.items()
             if after != before}, REGISTERS)
