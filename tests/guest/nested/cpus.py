# SPDX-License-Identifier: GPL-2.0-or-later
"""CPUs under KVM: which there can be, and what they say of their PMU; beside
Debian's QEMU.
"""

from l1 import differs
from registers import FUNCTIONS, KVM, OURS, STOCK, Bare, fw_cfg

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


def name_of_start(qemu, cpu):
    """It is one word."""
    return f'starts/{cpu}/{qemu}'.replace(' ', '')


def script():
    yield FUNCTIONS + START
    for name, (qemu, machine) in WITHOUT_PMU.items():
        # Other cases of this suite are about registers of TCG's.
        yield f'phase {name}; machine={machine}'
        yield f'bare {qemu} {KVM},pmu=off {fw_cfg(suite="nopmu")}'
    for name, qemu in ('ours', OURS), ('stock', STOCK):
        for cpu in STARTS:
            yield f'phase {name_of_start(name, cpu)}'
            yield f'starts {qemu} -accel kvm -cpu {cpu}'
    yield 'phase end; cat /tmp/l2.phases'


class Cpus(Bare):
    def script(self):
        return script()

    def results_of_phases(self):
        yield 'l2/no_rdpmc_without_pmu', self.verdict('off/ours',
                                                      'nopmu/rdpmc')
        yield from self.results_of_off()
        yield from self.results_of_starts()

    def results_of_off(self):
        """What CPUID promises is there."""
        for run in WITHOUT_PMU:
            yield f'l2/promises/{run}', self.verdict(run, 'nopmu/promises')
        yield 'l2/promises_nothing', differs(
            {words[-1] for words in self.promises('off/ours')}, {'0'})
        yield 'l2/promises_what_stock_does', differs(
            self.promises('off/ours-9.2'), self.promises('off/stock-9.2'))

    def promises(self, run):
        return [words for words in self.printed[run]
                if words[:2] == ['~', 'promises']]

    def results_of_starts(self):
        for cpu, warning in STARTS.items():
            for name in 'ours', 'stock':
                yield f'kvm/{name_of_start(name, cpu)}', self.wrong_start(
                    self.printed[name_of_start(name, cpu)],
                    warning if name == 'ours' else NOTHING)

    def wrong_start(self, printed, warning):
        said = '\n'.join(map(' '.join, printed))
        if ['status', '0'] not in printed:
            return f'it does not start: {said!r}'
        return None if (warning in said if warning else 'PMU' not in said) \
            else f'QEMU said: {said!r}'
