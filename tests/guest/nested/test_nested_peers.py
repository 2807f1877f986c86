# SPDX-License-Identifier: GPL-2.0-or-later
"""Power's PMU under KVM, which has the registers: second guests that this QEMU
and Debian's give each other.
"""

import pytest

from nested_peers import TASKS, program

QEMUS = {'ours': 'qemu-system-ppc64', 'stock': '/stock/qemu'}
# Of a type that ours and stock both have
MACHINE = ('pseries-10.0,ic-mode=xive,cap-cfpc=broken,cap-ibs=broken,'
           'cap-ccf-assist=off,cap-hpt-max-page-size=4096')

CELLS = [(source, target, task) for source, target
         in (('ours', 'stock'), ('stock', 'ours')) for task in TASKS]
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


def script(_):
    yield FUNCTIONS
    for source, target, task in CELLS:
        yield f'phase {source}/{target}/{task}'
        yield f'bare {QEMUS[source]} /{task}.bin'
        yield 'go_on 0; report left; save_l2 /tmp/state'
        yield (f'bare {QEMUS[target]} /{task}.bin '
               '-incoming file:/tmp/state')
        yield "ask_l2 'info status' 'status: paused[^ ]*$'; report arrived"
        yield f'tell_l2 cont; go_on $((rounds + {MORE})); report went_on'
        yield 'tell_l2 quit; wait $l2; rm /tmp/monitor.log'
    yield 'phase end; cat /tmp/l2.phases'


def test_ends(output):
    output.require(('l1', 'end'))


@pytest.mark.parametrize('source, target, task', CELLS)
def test_pmu_goes(phases, source, target, task):
    """From one QEMU to the other."""
    printed = {words[0]: words[1:] for words
               in phases[f'{source}/{target}/{task}']}
    assert 'went_on' in printed, f'it does not go on: {printed}'
    assert printed['arrived'] == printed['left']
    if task == 'used':
        require_counts(printed)


def require_counts(printed):
    """PMC1 counts as PMC5 does, both as the program has rounds."""
    before, after = (
        dict(zip([*REGISTERS, 'excess'], (int(word, 0) for word in words)))
        for words in (printed['arrived'], printed['went_on']))
    grown = {name: (after[name] - before[name]) % PMC for name in before}
    assert grown['excess'] == 0
    assert grown['pmc1'] == grown['pmc5'] != 0
