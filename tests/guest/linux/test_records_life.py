# SPDX-License-Identifier: GPL-2.0-or-later
"""Branch records and precise samples go on over migration, from a snapshot,
and in a replay."""

from harness import expectations, in_time, on, require, require_equal, symbols
from machines import (LBR_GENOA, LBR_SAPPHIRE, LBR_SKYLAKE, PEBS_HASWELL,
                      PEBS_ICELAKE, PEBS_SAPPHIRE, PEBS_SKYLAKE)
from test_branches import (DEPTHS, FILTERS, STACKS, check_depth, check_places,
                           hidden_returns, is_last_taken, stacks)
from test_lifecycle import go_back, move_away, move_in, save_machine
from test_pebs import (check_late, check_with_registers, least_rest,
                       precise_with_registers)
from test_sampling import INTERRUPTS, PINNED, most_interrupted

PROGRAM = 'longcalls'
PERIOD = 1000003

# Of instructions; and for a buffer that is full in the middle of the program.
PRECISE_PERIOD = 10000019


def job(record, script, program):
    """Says when the program is in its middle, then what was recorded."""
    return f'''
. /tests/guest.sh
guest_setup
announce 1 {program} 30 '@@@ middle' 60 '@@@ later'
{record} {program}
echo @@@ samples
{script}
echo @@@ complaints
complaints
'''


def branches(event):
    """A job that records branches before samples of branches."""
    return job(f'''
before=$({INTERRUPTS})
{PINNED} -j any,u -e branches:{event} -c {PERIOD}''', f'''
echo "$before"
{INTERRUPTS}
{STACKS}''', PROGRAM)


def precise():
    """A job whose samples the CPU writes."""
    return job(*precise_with_registers(PRECISE_PERIOD), 'long')


def code_of(program):
    """Where everything is.  Two programs may differ in how long they run."""
    return {name: where for name, where in symbols(program).items()
            if not name.startswith('expect_')}


def stacks_in_loop(lines):
    """Behind it there are others, a few thousands, which may come to one more
    sample; or the last is lost, if Linux has delayed it beyond the end."""
    require_equal(code_of(PROGRAM), code_of('calls'), 'addresses')
    found = stacks('\n'.join(lines))
    rounds = expectations(PROGRAM)['taken'] // PERIOD
    require(rounds - 1 <= len(found) <= rounds + 1, f'{len(found)} samples')
    del found[rounds - 1:]
    return found


def check_depth_of_long(machine, found, lines):
    depth = DEPTHS[machine]
    check_depth(found, depth, most_interrupted('\n'.join(lines), depth, PERIOD),
                hidden_returns(machine))


def check_branches(machine, lines):
    found = stacks_in_loop(lines)
    check_places(found, PERIOD, FILTERS['any'], least_rest(machine))
    check_depth_of_long(machine, found, lines)


def check_precise_branches(machine, lines):
    found = stacks_in_loop(lines)
    check_late(found, PERIOD, least_rest(machine, 3), is_last_taken)
    check_depth_of_long(machine, found, lines)


def check_instructions(machine, lines):
    check_with_registers(machine, '\n'.join(lines), PRECISE_PERIOD, 'long')


# What each machine records, and how that is checked.
RECORDED = {
    LBR_SKYLAKE: (branches('u'), check_branches),
    LBR_GENOA: (branches('u'), check_branches),
    LBR_SAPPHIRE: (branches('u'), check_branches),
    PEBS_SAPPHIRE: (branches('uppp'), check_precise_branches),
    PEBS_SKYLAKE: (precise(), check_instructions),
    PEBS_HASWELL: (precise(), check_instructions),
}
PROGRAMS = [PROGRAM, 'long']


def check_recorded(machine, guest):
    """What the guest prints behind "@@@ samples" is right, and all it says."""
    samples = guest.lines_until('@@@ complaints')[:-1]
    RECORDED[machine][1](machine, samples)
    complaints = ''.join(guest.rest())
    require(not complaints, complaints)


@on(PEBS_SAPPHIRE, more=(
    LBR_SAPPHIRE, LBR_GENOA, LBR_SKYLAKE, PEBS_SKYLAKE, PEBS_HASWELL))
def test_records_migrate(start, tmp_path, machine):
    """What was recorded before the machine moved is in the samples behind."""
    state = tmp_path / 'state'
    source = start(machine, RECORDED[machine][0])
    source.lines_until('@@@ middle')
    move_away(source, state)
    in_time('@@@ samples' not in source.log, 'the program had ended too early')
    target = start(machine, incoming=state)
    move_in(target)
    target.lines_until('@@@ samples')
    check_recorded(machine, target)


@on(LBR_SKYLAKE,
    more=(LBR_GENOA, LBR_SAPPHIRE, PEBS_SKYLAKE, PEBS_SAPPHIRE, PEBS_HASWELL))
def test_records_of_snapshot(start, tmp_path, machine):
    """A machine that goes back to its own past records the same again."""
    guest = start(machine, RECORDED[machine][0])
    guest.lines_until('@@@ middle')
    monitor = guest.monitor
    save_machine(monitor, tmp_path / 'image')
    guest.lines_until('@@@ later')
    go_back(monitor)
    in_time('@@@ samples' not in guest.lines_until('@@@ later'),
            'the program had ended too early')
    guest.lines_until('@@@ samples')
    check_recorded(machine, guest)


REPLAYED_JOB = '''
. /tests/guest.sh
guest_setup
perf record -q -o /tmp/data -j any -e branches:u -c 20011 calls
perf script -i /tmp/data -F ip,brstack
'''
PRECISELY_TOO = '''
perf record -q -o /tmp/data -e instructions:uppp -c 100003 loop
perf script -i /tmp/data -F ip
'''


def replayed(start, directory, machine, what):
    """What a guest prints that is recorded, or that is its replay."""
    script = REPLAYED_JOB + (PRECISELY_TOO if 'pebs=on' in machine.cpu else '')
    guest = start(machine, script, boots=True, extra=[
        '-icount', f'shift=auto,rr={what},rrfile={directory}/log'])
    return guest.rest()


@on(more=(PEBS_SAPPHIRE, LBR_SKYLAKE, LBR_GENOA, PEBS_ICELAKE))
def test_records_are_replayed(start, tmp_path, machine):
    """Each branch, and how long it took, is that of the recording."""
    recorded = replayed(start, tmp_path, machine, 'record')
    require(len(recorded) > 50, f'only {len(recorded)} lines')
    require(any('/P/' in line for line in recorded), 'no branches')
    require_equal(replayed(start, tmp_path, machine, 'replay'), recorded,
                  'the replay')
