# SPDX-License-Identifier: GPL-2.0-or-later
"""Power's PMU under KVM, which has the registers: second guests that this QEMU
and Debian's give each other.

They are the program of tests/guest/compat.  It sets MSR[PMM] and has nothing
else counted: the first guest's kernel is in the same privilege state, and what
of it is between the switch of the PMU and that of the guest would count, too.
"""

import itertools
import sys
import tempfile

from l1 import HERE, differs
from phases import Phases

sys.path.insert(0, str(HERE.parent / 'compat'))
import program_ppc64 as program         # noqa: E402

QEMUS = {'ours': 'qemu-system-ppc64', 'stock': '/stock/qemu'}
# Of a type that ours and stock both have
MACHINE = ('pseries-10.0,ic-mode=xive,cap-cfpc=broken,cap-ibs=broken,'
           'cap-ccf-assist=off,cap-hpt-max-page-size=4096')

# What the program does before it counts, by what there is to be moved.
TASKS = {
    'unused': [],
    'used': [program.write('ctrl', 1),
             program.write('mmcr1', program.INSTRUCTIONS),
             program.write('mmcra', 0),
             program.write('pmc1', 0x12345), program.write('pmc2', 0x7000),
             program.write('pmc5', 0),
             program.write('mmcr0', program.MMCR0_FCM0), program.mark()],
}
CELLS = list(itertools.product((('ours', 'stock'), ('stock', 'ours')), TASKS))
REGISTERS = ['mmcr0', 'mmcr1', 'mmcra', *(f'pmc{n}' for n in range(1, 7))]
# How many more rounds show that it goes on.
MORE = 1000
# The excess of a round is of two numbers, the second of which has 32 bits.
PMC = 1 << 32

FUNCTIONS = f"""
# bare QEMU PROGRAM OPTION...: run it, as $l2
bare() {{
    qemu=$1 image=$2
    shift 2
    $qemu -machine {MACHINE} -accel kvm -cpu host -m 256 -nodefaults \\
        -display none -L /usr/share/qemu -bios $image $monitor "$@" \\
        9<> /tmp/monitor & l2=$!
}}
# answers PATTERN: of its monitor
answers() {{ tr -d '\\r' < /tmp/monitor.log 2> /dev/null | grep "$1"; }}
# look: ask its monitor for rounds and excess, as $rounds and $excess
# What was asked before is answered then, too: it is asked for a number as well,
# another one each time.
looks=0
look() {{
    looks=$((looks + 1))
    until [ "$(answers "^$(printf %#x $looks)$")" ]; do
        kill -0 $l2 2> /dev/null || return
        # One that has just begun may not hear it.
        tell_l2 'xp /2gx {program.ROUNDS:#x}' "p/x $looks"; sleep 0.2
    done
    set -- $(answers ^0000000000004000 | tail -n 1)
    rounds=$(($2)) excess=$3
}}
# go_on ROUNDS: until it has done so many; then stop it
go_on() {{
    rounds=-1
    until [ $rounds -gt $1 ] || ! kill -0 $l2 2> /dev/null; do look; done
    tell_l2 stop
}}
# report WHAT: what its registers hold, and its excess
report() {{
    tell_l2 {' '.join(f"'p/u ${name}'" for name in REGISTERS)}
    look
    set -- $1 $(answers '^[0-9][0-9]*$' | tail -n {len(REGISTERS)}) $excess
    echo "@ l2 $*" >> /tmp/l2.out
}}
"""


class Peers(Phases):
    def files(self):
        self.images = []
        for name, parts in TASKS.items():
            image = tempfile.NamedTemporaryFile(suffix='.bin')
            image.write(program.image(*parts))
            image.flush()
            self.images.append((image, f'/{name}.bin'))
        return [(image.name, path) for image, path in self.images]

    def script(self):
        yield FUNCTIONS
        for (source, target), task in CELLS:
            yield f'phase {source}/{target}/{task}'
            yield f'bare {QEMUS[source]} /{task}.bin'
            yield 'go_on 0; report left; save_l2 /tmp/state'
            yield (f'bare {QEMUS[target]} /{task}.bin '
                   '-incoming file:/tmp/state')
            yield "ask_l2 'info status' 'status: paused[^ ]*$'; report arrived"
            yield f'tell_l2 cont; go_on $((rounds + {MORE})); report went_on'
            yield 'tell_l2 quit; wait $l2; rm /tmp/monitor.log'
        yield 'phase end; cat /tmp/l2.phases'

    def results_of_phases(self):
        for (source, target), task in CELLS:
            printed = {words[0]: words[1:] for words
                       in self.printed[f'{source}/{target}/{task}']}
            yield (f'kvm/{task}_pmu_goes_from_{source}_to_{target}',
                   self.wrong(task, printed))

    def wrong(self, task, printed):
        if 'went_on' not in printed:
            return f'it does not go on: {printed}'
        return differs(printed['arrived'], printed['left']) \
            or (task == 'used' and self.wrong_counts(printed)) or None

    def wrong_counts(self, printed):
        """PMC1 counts as PMC5 does, both as the program has rounds."""
        before, after = (
            dict(zip([*REGISTERS, 'excess'], (int(word, 0) for word in words)))
            for words in (printed['arrived'], printed['went_on']))
        grown = {name: (after[name] - before[name]) % PMC for name in before}
        return differs(grown['excess'], 0) \
            or differs(grown['pmc1'], grown['pmc5']) \
            or (None if grown['pmc5'] else 'it does not count')
