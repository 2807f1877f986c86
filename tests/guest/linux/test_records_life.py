# SPDX-License-Identifier: GPL-2.0-or-later
"""Branch records and precise samples go on over migration, from a snapshot,
and in a replay."""

from harness import (expectations, in_time, require, require_equal,
                     scenario_of, symbols)
from machines import (LBR_GENOA, LBR_SAPPHIRE, LBR_SKYLAKE, PEBS_HASWELL,
                      PEBS_ICELAKE, PEBS_SAPPHIRE, PEBS_SKYLAKE)
from test_branches import DEPTHS, FILTERS, last_taken, stacks
from test_lifecycle import adds, go_back, long_address, move_away, move_in, \
    save_machine
from test_pebs import LEAST_INSTRUCTIONS, check_precise
from test_sampling import ADDRESSES, PINNED, addresses

PROGRAM = 'longcalls'
PERIOD = 1000003
DEPTH = {**DEPTHS, PEBS_SAPPHIRE: 32}

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
    return job(f'{PINNED} -j any,u -e branches:{event} -c {PERIOD}',
               'perf script -i /tmp/data -F brstack', PROGRAM)


def precise():
    """A job whose samples the CPU writes."""
    return job(f'{PINNED} -e instructions:uppp -c {PRECISE_PERIOD}', ADDRESSES,
               'long')


def code_of(program):
    """Where everything is.  Two programs may differ in how long they run."""
    return {name: where for name, where in symbols(program).items()
            if not name.startswith('expect_')}


def is_at(stack, nth, late):
    """Whether the records are those of the Nth branch, or of one behind it."""
    return stack in [last_taken(nth + more, FILTERS['any'], len(stack))
                     for more in range(late + 1)]


def check_branches(machine, lines, late):
    """Linux may be late by so many branches, see test_branches."""
    require_equal(code_of(PROGRAM), code_of('calls'), 'addresses')
    found = list(stacks('\n'.join(lines)))
    rounds = expectations(PROGRAM)['taken'] // PERIOD
    require(rounds - 1 <= len(found) <= rounds + 1, f'{len(found)} samples')
    # Behind the loop there are others, a few thousands.
    in_loop = found[:rounds - 1]
    for number, stack in enumerate(in_loop, 1):
        require(is_at(stack, number * PERIOD, late),
                f'sample {number}: {stack}')
    full = sum(len(stack) == DEPTH[machine] for stack in in_loop)
    require(full >= len(in_loop) * 9 // 10, f'{full} of {len(found)} are full')


def check_instructions(machine, lines, _):
    """Each is the very instruction."""
    total = expectations('long')['instructions']
    check_precise(addresses('\n'.join(lines)), PRECISE_PERIOD,
                  lambda nth: long_address(nth - 1) if nth <= total else None,
                  LEAST_INSTRUCTIONS.get(machine, 2))


# What each machine records, how that is checked, and how late Linux may be.
RECORDED = {
    LBR_SKYLAKE: (branches('u'), check_branches, 1),
    LBR_GENOA: (branches('u'), check_branches, 1),
    LBR_SAPPHIRE: (branches('u'), check_branches, 1),
    PEBS_SAPPHIRE: (branches('uppp'), check_branches, 8),
    PEBS_SKYLAKE: (precise(), check_instructions, 0),
    PEBS_HASWELL: (precise(), check_instructions, 0),
}
PROGRAMS = [PROGRAM, 'long']


def check_recorded(machine, guest):
    """What the guest prints behind "@@@ samples" is right, and all it says."""
    _, check, late = RECORDED[machine]
    samples = guest.lines_until('@@@ complaints')[:-1]
    check(machine, samples, late)
    complaints = ''.join(guest.rest())
    require(not complaints, complaints)


def started(start, machine, **more):
    """A guest that records, with a monitor."""
    return start(machine, RECORDED[machine][0], PROGRAMS, adds(),
                 monitored=True, **more)


@scenario_of(*RECORDED)
def records_migrate(start, directory, machine):
    """What was recorded before the machine moved is in the samples behind."""
    state = directory / 'state'
    source = started(start, machine)
    source.lines_until('@@@ middle')
    move_away(source, state)
    in_time('@@@ samples' not in source.log, 'the program had ended too early')
    target = started(start, machine, extra=['-incoming', f'file:{state}'],
                     verbose=True)
    move_in(target)
    target.lines_until('@@@ samples')
    check_recorded(machine, target)


@scenario_of(*RECORDED)
def records_of_snapshot(start, directory, machine):
    """A machine that goes back to its own past records the same again."""
    guest = started(start, machine)
    guest.lines_until('@@@ middle')
    monitor = guest.monitor
    save_machine(monitor, directory / 'image')
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
    guest = start(machine, script, ['calls', 'loop'], adds(), extra=[
        '-icount', f'shift=auto,rr={what},rrfile={directory}/log'])
    return guest.rest()


@scenario_of(LBR_GENOA, PEBS_ICELAKE, PEBS_SAPPHIRE)
def records_are_replayed(start, directory, machine):
    """Each branch, and how long it took, is that of the recording."""
    recorded = replayed(start, directory, machine, 'record')
    require(len(recorded) > 50, f'only {len(recorded)} lines')
    require(any('/P/' in line for line in recorded), 'no branches')
    require_equal(replayed(start, directory, machine, 'replay'), recorded,
                  'the replay')
