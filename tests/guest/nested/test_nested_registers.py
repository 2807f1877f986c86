# SPDX-License-Identifier: GPL-2.0-or-later
"""The registers of AMD's PMU under KVM: reset, migrated to and from, and what
QEMU refuses.

This is the part of the registers' tests that needs KVM.  There is that of
tests/qtest, whose commands read and write what KVM keeps; and there are second
guests on the bare machine, of which some come from Debian's QEMU, which does
not send these registers, or go there.
"""

import os

import pytest

from nested_bare import (FUNCTIONS, KVM, OURS, REGISTERS, STOCK, TCG, UNUSED,
                         USED, arrival, fw_cfg, program, require_passed, values)
from nested_l1 import job

# After a reset, all others are 0.
AFTER_RESET = {'c0000301': '3f'}

SUITE = fw_cfg(suite='state')


# What is refused, of a state that is loaded and of a CPU; part of the message.
REFUSALS = {
    'state_of_kvm_by_tcg': (
        f'{OURS} {TCG} {arrival("ours")}', 'the same accelerator'),
    'state_of_tcg_by_kvm': (
        f'{OURS} {KVM} {arrival("tcg")}', 'the same accelerator'),
    'state_of_perfmon_v2_without_it': (
        f'{OURS} {KVM},perfmon-v2=off {arrival("ours")}',
        'the same pmu-version (AMD: perfmon-v2).'),
    'state_of_pmu_without_it': (
        f'{OURS} {KVM},pmu=off {arrival("ours")}',
        "The source's CPU has a PMU and this one does not"),
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
    'host_counters_without_perfcore': (
        f'{OURS} {KVM},pmu=on,perfctr-core=off,pmu-host-counters=2',
        'only PerfMonV2 can tell a guest of AMD'),
    'perfmon_v2_without_perfcore': (
        f'{OURS} {KVM},pmu=on,perfctr-core=off,perfmon-v2=on,enforce',
        'This feature depends on other features'),
    'perfcore_without_pmu': (
        f'{OURS} {KVM},pmu=off,perfctr-core=on,enforce',
        'pmu=off excludes this feature'),
    'host_counters_without_pmu': (
        f'{OURS} {KVM},pmu=off,pmu-host-counters=2', 'Add pmu=on'),
}

# The cases of tests/qtest/vpmu-test-kvm.c.
QTESTS = ['registers', 'reset', 'migration', 'leftovers', 'two-cpus',
          'host-counters']
# Since QEMU 11.0, only pmu=on gives a CPU the kernel's PMU.
SERIES = os.environ.get('QEMU_SERIES', '10.0')
ONLY_IF_ASKED_FOR = SERIES not in ('10.0', '10.2')
NOT_ASKED_FOR = '/x86_64/vpmu/kvm/not-asked-for'
if not ONLY_IF_ASKED_FOR:
    QTESTS.append('not-asked-for')

# How many of the programs below end by themselves.
ENDS = 7


def script(_):
    yield FUNCTIONS
    for name, qemu in ('ours', OURS), ('stock', STOCK):
        yield f'phase {name}/reset; bare {qemu} {KVM} {SUITE}'
        yield f'phase {name}/leave'
        yield f'leave /tmp/{name} {qemu} {KVM} {program(USED)}'
        yield f'phase {name}/arrive; bare {qemu} {KVM} {arrival(name)}'
    yield f'phase stock/ours; bare {OURS} {KVM} {arrival("stock")}'
    yield f'phase tcg/leave; leave /tmp/tcg {OURS} {TCG} {program(USED)}'
    for source, target in (OURS, STOCK), (STOCK, OURS):
        yield 'phase unused/leave'
        yield f'leave /tmp/unused {source} {KVM} {program(UNUSED)}'
        yield f'phase unused/{target}'
        yield f'bare {target} {KVM} {arrival("unused")}'
    yield from linux_to_stock()
    for name, (options, _) in REFUSALS.items():
        yield f'phase refused/{name}; bare {options}'
    yield 'phase qtest'
    yield (f'export VPMU_TEST_KVM=1 QTEST_QEMU_BINARY=/usr/bin/{OURS} '
           'G_TEST_DBUS_DAEMON=/bin/true')
    skipped = f'-s {NOT_ASKED_FOR}' if ONLY_IF_ASKED_FOR else ''
    yield (f'timeout 600 vpmu-test --tap -p /x86_64/vpmu/kvm {skipped} 2>&1 | '
           'sed "s/^/@ l2 /" >> /tmp/l2.out')
    # A program that has not ended has halted for good.
    yield f'[ $(grep -c "^@ l2 end" /tmp/l2.phases) -lt {ENDS} ] || phase end'
    yield 'cat /tmp/l2.phases /tmp/l2.out'


def linux_to_stock():
    """Linux, for as long as it is let."""
    yield 'phase linux'
    yield job('while echo @ l2 alive; do sleep 1; done')
    yield ('l2 --saved /tmp/job $monitor >> /tmp/l2.out 9<> /tmp/monitor & '
           'l2=$!')
    yield 'until_l2 "^@ l2 alive"; save_l2 /tmp/linux; phase linux/stock'
    yield (f'L2_QEMU={STOCK} l2 /tmp/job -L /usr/share/qemu $monitor '
           '-trace vmstate_subsection_load_bad '
           '-incoming file:/tmp/linux >> /tmp/l2.out 9<> /tmp/monitor & '
           'l2=$!')
    yield 'until_l2 "^@ l2 alive"; tell_l2 quit; wait $l2'
    yield ('unknown=$(sed -n "s/^l2: vmstate_subsection_load_bad cpu:/'
           '@ l2 unknown/p" /tmp/l2.out); echo "$unknown" >> /tmp/l2.out')


def test_ends(output):
    output.require(('l1', 'end'))


def test_reset_clears_amd_registers(phases):
    require_passed(phases['ours/reset'], 'state/reset')


def test_migration_keeps_amd_registers(phases):
    require_passed(phases['ours/arrive'], 'state/migration')


def test_reset_by_stock_leaves_amd_registers(phases):
    """Stock QEMU does not know these registers."""
    assert {register for register, (before, after)
            in values(phases['stock/reset'], 'reset').items()
            if after == before} == REGISTERS


def test_migration_by_stock_loses_amd_registers(phases):
    assert {register for register, (before, after)
            in values(phases['stock/arrive'], 'migration').items()
            if after != before} == REGISTERS


def test_unused_pmu_goes_to_stock(phases):
    require_passed(phases[f'unused/{STOCK}'], 'state/unused')


def test_unused_pmu_comes_from_stock(phases):
    require_passed(phases[f'unused/{OURS}'], 'state/unused')


def test_used_pmu_is_reset_by_stock(phases):
    assert {register: after for register, (_, after)
            in values(phases['stock/ours'], 'migration').items()} \
        == {register: AFTER_RESET.get(register, '0') for register in REGISTERS}


def test_linux_goes_to_stock(phases):
    """From QEMU 10.2 on, stock sends the error code of the last exception
    that KVM has injected, which 10.0 does not know.
    """
    unknown = [words[1:] for words in phases['linux/stock']
               if words[0] == 'unknown']
    if SERIES == '10.0' or not unknown:
        assert ['alive'] in phases['linux/stock']
    else:
        assert unknown == [['cpu/error_code/(lookup)']]


@pytest.mark.parametrize('name', QTESTS)
def test_of_qtest(phases, name):
    passed = {words[-1] for words in phases['qtest'] if words[0] == 'ok'}
    assert f'/x86_64/vpmu/kvm/{name}' in passed, phases['qtest'][-3:]


@pytest.mark.parametrize('name', REFUSALS)
def test_refuses(phases, name):
    said = '\n'.join(map(' '.join, phases[f'refused/{name}']))
    assert REFUSALS[name][1] in said
