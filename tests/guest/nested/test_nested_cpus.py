# SPDX-License-Identifier: GPL-2.0-or-later
"""CPUs under KVM: which there can be, and what they say of their PMU; beside
Debian's QEMU.
"""

import pytest

from nested_bare import (FUNCTIONS, KVM, OURS, STOCK, fw_cfg,
                         require_passed)

pytestmark = pytest.mark.more

# CPUs that start with stock QEMU, and what of them is warned of here.
NOTHING = None
HAS_NO_EFFECT = 'pmu=on has no effect'
STARTS = {
    'host': NOTHING,
    'host,pmu=off': NOTHING,
    'host,pmu=off -smp 2': NOTHING,
    'host,migratable=off': NOTHING,
    'EPYC-Genoa': NOTHING,
    'EPYC-Genoa,perfmon-v2=on': NOTHING,
    'EPYC-Genoa,perfmon-v2=on,pmu=on,xlevel=0x80000021': NOTHING,
    'EPYC-Genoa,pmu=on,perfctr-core=off': NOTHING,
    'kvm32,pmu=on': NOTHING,
    'qemu32,pmu=on': NOTHING,
    'pentium3,pmu=on': NOTHING,
    'Dhyana,pmu=on': NOTHING,
    'YongFeng,pmu=on,vendor=CentaurHauls': HAS_NO_EFFECT,
    'host,pmu=on,vendor=GenuineIntel': HAS_NO_EFFECT,
    'kvm32,pmu=on,vendor=GenuineIntel': HAS_NO_EFFECT,
}

# The program with CPUs that have pmu=off: QEMU, and the type of the machine.
WITHOUT_PMU = {
    'off/ours': (OURS, 'pc'),
    'off/ours-9.2': (OURS, 'pc-i440fx-9.2'),
    'off/stock-9.2': (STOCK, 'pc-i440fx-9.2'),
}

START = """
# starts QEMU OPTION...: whether there can be such a CPU
starts() {
    { echo quit | timeout 600 "$@" -L /usr/share/qemu -nodefaults \
        -display none -m 32 -S -monitor stdio; echo "status $?"; } 2>&1 | lines
}
"""


def phase_of(cpu, qemu):
    """It is one word."""
    return f'{cpu}/{qemu}'.replace(' ', '')


def script(_):
    yield FUNCTIONS + START
    for name, (qemu, machine) in WITHOUT_PMU.items():
        # Other cases of this suite are about registers of TCG's.
        yield f'phase {name}; machine={machine}'
        yield f'bare {qemu} {KVM},pmu=off {fw_cfg(suite="nopmu")}'
    for name, qemu in ('ours', OURS), ('stock', STOCK):
        for cpu in STARTS:
            yield f'phase {phase_of(cpu, name)}'
            yield f'starts {qemu} -accel kvm -cpu {cpu}'
    yield 'phase end; cat /tmp/l2.phases'


def promises(lines):
    return [words for words in lines if words[:2] == ['~', 'promises']]


def test_ends(output):
    output.require(('l1', 'end'))


def test_no_rdpmc_without_pmu(phases):
    require_passed(phases['off/ours'], 'nopmu/rdpmc')


@pytest.mark.parametrize('run', WITHOUT_PMU)
def test_promises(phases, run):
    """What CPUID promises is there."""
    require_passed(phases[run], 'nopmu/promises')


def test_promises_nothing(phases):
    assert {words[-1] for words in promises(phases['off/ours'])} == {'0'}


def test_promises_what_stock_does(phases):
    assert promises(phases['off/ours-9.2']) \
        == promises(phases['off/stock-9.2'])


@pytest.mark.parametrize('qemu', ['ours', 'stock'])
@pytest.mark.parametrize('cpu', STARTS)
def test_starts(phases, cpu, qemu):
    lines = phases[phase_of(cpu, qemu)]
    said = '\n'.join(map(' '.join, lines))
    assert ['status', '0'] in lines, said
    warning = STARTS[cpu] if qemu == 'ours' else NOTHING
    assert warning in said if warning else 'PMU' not in said
