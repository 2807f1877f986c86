# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that use perf_event_open(2) themselves."""

from harness import on, require_equal
from machines import (EPYC, GENOA, GENOA_SMP, ICELAKE, ICOUNT, LBR_SAPPHIRE,
                      SINGLE, SMP, UP)

MACHINES = UP, SMP, SINGLE, ICOUNT, ICELAKE, GENOA, GENOA_SMP, EPYC

# Conditional branches as rr has them: with bits that Linux sets itself.
CONDITIONAL = {ICELAKE: '0x5111c4', GENOA: '0x5100d1', GENOA_SMP: '0x5100d1',
               EPYC: '0x5100d1'}


def conditional(machine):
    return CONDITIONAL.get(machine, '0x5101c4')


def lines_of(output):
    """Lists of words, by their first one."""
    found = {}
    for line in output.splitlines():
        if line:
            name, *words = line.split()
            found.setdefault(name, []).append(words)
    return found


@on(*MACHINES)
def test_user_space_reads(guest, machine):
    """RDPMC and the page that perf maps give what read(2) gives."""
    found = lines_of(guest.run(f'readpmc {conditional(machine)}'))
    require_equal(found['width'], [['48']], 'width')
    # The program has 3 instructions and 1000 pairs of them between two
    # RDPMCs, and 8 from RDPMC to the system call's end.
    for event, loop, read in (('instructions', '2003', '8'),
                              ('cycles', '2003', '8'),
                              ('conditional', '1000', '0')):
        require_equal(found[event], [['loop', loop, loop, 'read', read, read]],
                      event)
    require_equal(found['faults'], [['1', '0', '1']], 'exceptions')


@on(*MACHINES)
def test_signals_at_counts(guest, machine):
    """A signal comes behind the very branch that it is asked for."""
    found = lines_of(guest.run(f'debugger {conditional(machine)}'))
    require_equal(found['counted'], [[n, n] for n in ('1', '500', '1000000')],
                  'branches, and what was counted')
    require_equal(found['ready'], [['1']], 'poll')
    require_equal(len(found['signal']), 9, 'periods')
    for words in found['signal']:
        period, count, left, place, code, signals = map(int, words)
        require_equal(count, period, 'count')
        require_equal(left, period // 2, f'branches left of {period}')
        require_equal(place, 0, f'distance from the loop with {period}')
        require_equal((code, signals), (1, 1), 'si_code and signals')


# How many there are: in all of the loop, where its five branches go, and where
# the call of it has gone.
STEPS = {'branches': [3499, 500, 999, 999, 999, 1],
         'instructions': [7496, 999, 999, 999, 1000, 1]}


@on(UP, each=STEPS, more=(GENOA, LBR_SAPPHIRE, EPYC))
def test_debugger_steps(guest, machine, what):
    """A debugger steps from branch to branch, or through instructions."""
    found = lines_of(guest.run(f'blocks {what}'))
    require_equal(found['stops'], [[str(n) for n in STEPS[what]]], 'stops')
