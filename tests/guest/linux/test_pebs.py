# SPDX-License-Identifier: GPL-2.0-or-later
"""perf record with PEBS: the very instruction, and what it accessed."""

import re

from harness import expectations, on, require, require_equal, symbols
from machines import (EVENTS, LBR_HASWELL, LBR_NEHALEM, PEBS_BROADWELL,
                      PEBS_HASWELL, PEBS_ICELAKE, PEBS_IVY, PEBS_NEHALEM,
                      PEBS_SANDY, PEBS_SAPPHIRE, PEBS_SKYLAKE, STEPS,
                      loop_address)
from test_sampling import (ADDRESSES, PINNED, SWITCH, Addresses, Mixed,
                           Samples, addresses)

# What the kernel says it has found.
FOUND = {
    PEBS_NEHALEM: 'PEBS fmt1+',
    PEBS_SANDY: 'PEBS fmt1+',
    PEBS_IVY: 'PEBS fmt1+',
    PEBS_BROADWELL: 'PEBS fmt2+',
    PEBS_HASWELL: 'PEBS fmt2+',
    PEBS_SKYLAKE: 'PEBS fmt3+',
    PEBS_ICELAKE: 'PEBS fmt4+-baseline',
    PEBS_SAPPHIRE: 'PEBS fmt4+-baseline',
}
# As precise as Linux has it there.
PRECISE = {PEBS_NEHALEM: 'pp', PEBS_SANDY: 'pp'}


def most_precise(machine):
    return len(PRECISE.get(machine, 'ppp'))


@on(*FOUND)
def test_pebs_is_found(guest, machine):
    """Linux has all of it, and no complaints."""
    output = guest.run('''
        dmesg | grep -e 'Performance Events' -e PEBS
        cat /sys/bus/event_source/devices/cpu/caps/max_precise
        dmesg | grep -e 'unchecked MSR' -e 'WARNING: CPU' || :''')
    require(f'{FOUND[machine]},' in output, output)
    require(re.search(rf'^{most_precise(machine)}$', output, re.M),
            f'max_precise: {output}')
    require('MSR' not in output and 'WARNING' not in output, output)


def least_rest(machine, precision=2):
    """The fewest events that Linux lets a counter count before a sample.

    If fewer are left of a period when the task is switched, it makes so many of
    them (arch/x86/events/intel/core.c, where periods are limited; what has 128
    there on Haswell is none of the events that we sample).
    """
    if machine is PEBS_SAPPHIRE and precision == 3:
        return 128
    return 32 if machine in [LBR_NEHALEM, PEBS_NEHALEM,
                             LBR_HASWELL, PEBS_HASWELL] else 2


def check_late(got, period, least, is_at):
    """Each sample is the instruction of an event; returns how late the last is.

    is_at(SAMPLE, N) is whether a sample can be that of the Nth event.  As the
    CPU begins each period where the last has ended, all samples are late from
    one on whose rest Linux has made longer.  That is seldom: there is a bound,
    in which there is room for chance.  What is returned has all the numbers of
    events that are possible, if there are several.
    """
    most = 3 + 2 * got.switches * (least - 1) // period
    # With how many rests that were made longer.
    late = {0: 0}
    for number, sample in enumerate(got, 1):
        if number in got.after_switch:
            for events, rests in sorted(late.items(), key=lambda item: item[1]):
                for more in range(1, least) if rests < most else ():
                    late[events + more] = min(
                        rests + 1, late.get(events + more, most))
        late = {events: rests for events, rests in late.items()
                if is_at(sample, number * period + events)}
        require(late, f'sample {number} of {len(got)} is elsewhere: {sample}')
    return set(late)


def check_precise(got, period, where, least):
    """Number and place of the samples.

    where(N) is the instruction of the Nth event, None if there are not so many.
    """
    late = check_late(got, period, least,
                      lambda address, nth: where(nth) == address)
    behind = (len(got) + 1) * period
    require(any(where(behind + events) is None for events in late),
            f'{len(got)} samples, and not one of {behind}')


def nth_of(places):
    """The function that check_precise() wants."""
    return lambda nth: places[nth - 1] if nth <= len(places) else None


@on(PEBS_SKYLAKE, each=[4999])
@on(more=(PEBS_SKYLAKE, PEBS_ICELAKE), each=[1000003])
@on(more=[PEBS_ICELAKE], each=[4999])
@on(PEBS_ICELAKE, PEBS_HASWELL, PEBS_BROADWELL, PEBS_SAPPHIRE, each=[10007],
    more=[PEBS_SKYLAKE])
def test_precise_samples_of_loop(guest, machine, period):
    """Each sample is the instruction that is a multiple of the period."""
    got = addresses(guest.run(f'''
        {PINNED} -e instructions:uppp -c {period} loop
        {ADDRESSES}'''))
    total = expectations('loop')['instructions']
    check_precise(got, period, lambda nth: loop_address(nth - 1)
                  if nth <= total else None, least_rest(machine, 3))


def instructions_of(event):
    """Of `mixed`: the addresses at which an event happens, in order."""
    mixed = Mixed()
    steps = STEPS[event]
    total = expectations('mixed')['instructions']
    return [mixed(index) for index in range(total)
            if steps is None or mixed.step(index) in steps]


@on(PEBS_SKYLAKE, PEBS_ICELAKE, each=[26])
@on(more=(PEBS_SKYLAKE, PEBS_ICELAKE), each=[3, 1009])
def test_precise_samples_of_mixed(guest, machine, period):
    """Short periods, and instructions that are special in some way."""
    got = addresses(guest.run(f'''
        {PINNED} -e instructions:uppp -c {period} mixed
        {ADDRESSES}'''))
    check_precise(got, period, nth_of(instructions_of('instructions')),
                  least_rest(machine, 3))


@on(PEBS_SKYLAKE, each=['branches', 'loads'])
@on(more=[PEBS_SKYLAKE], each=['conditional'])
@on(PEBS_SKYLAKE, PEBS_HASWELL, each=['calls', 'cycles'])
@on(PEBS_ICELAKE, PEBS_SAPPHIRE, each=['branches', 'stores'])
def test_precise_samples_of_event(guest, machine, event):
    """Other events are as precise, and so are cycles."""
    period = 131
    got = addresses(guest.run(f'''
        {PINNED} -e {EVENTS.get(event, 'cycles:u')}pp -c {period} mixed
        {ADDRESSES}'''))
    check_precise(got, period, nth_of(instructions_of(event)),
                  least_rest(machine))


@on(PEBS_ICELAKE, more=[PEBS_SKYLAKE])
def test_precise_samples_of_many_events(guest, machine):
    """Counters whose buffer is the same do not disturb each other."""
    period = 23
    events = ['instructions', 'branches', 'loads', 'stores']
    names = {f'{EVENTS[event]}pp': event for event in events}
    got = {name: Addresses() for name in names}
    output = guest.run(f'''
        {PINNED} -e {','.join(names)} -c {period} mixed
        samples event,ip''')
    for switch, name, address in re.findall(
            rf'({SWITCH})|(\S+:upp): +([0-9a-f]+)', output):
        for each in got if switch else [name]:
            got[each].add(switch or address)
    for name, found in got.items():
        check_precise(found, period, nth_of(instructions_of(names[name])),
                      least_rest(machine))


@on(PEBS_NEHALEM, PEBS_SANDY, PEBS_IVY)
def test_samples_behind(guest, machine):
    """The oldest format has the instruction that comes next, as :p has."""
    period = 10007
    got = addresses(guest.run(f'''
        {PINNED} -e instructions:up -c {period} loop
        {ADDRESSES}'''))
    total = expectations('loop')['instructions']
    check_precise(got, period,
                  lambda nth: loop_address(nth) if nth <= total else None,
                  least_rest(machine))


@on(PEBS_SKYLAKE, more=[machine for machine in FOUND
    if machine is not PEBS_SKYLAKE])
def test_default_is_precise(guest, machine):
    """perf asks for precise cycles by itself, and finds the program's.

    How many there are by its frequency depends on the time that the program
    takes; by a period, the kernel's cycles are counted beside the program's,
    which make some more.
    """
    period = 1000003
    output = guest.run(f'''
        for option in '' '-c {period}'; do
            perf record -q $option -o /tmp/data word
            perf evlist -v -i /tmp/data
            echo "samples $(perf script -i /tmp/data -F comm | grep -c word)"
        done''')
    precise = re.findall(r'precise_ip: (\d)', output)
    require_equal(precise, 2 * [str(most_precise(machine))], 'precise_ip')
    by_frequency, by_period = map(int, re.findall(r'samples (\d+)', output))
    least = expectations('word')['instructions'] // period
    require(by_frequency >= 2 and by_period >= least,
            f'{by_frequency} samples, and {by_period}, not {least} or more')


#
# What is accessed
#

# No cache, and so always the same latency.
LATENCY = 32
LOADS = 'cpu/mem-loads,ldlat=30/u'
LOADS_ON = {PEBS_SAPPHIRE: f'{{cpu/mem-loads-aux/u,{LOADS}P}}:S'}


def accesses(output):
    """What perf script -F addr,weight,ip printed."""
    return [(int(ip, 16), int(address, 16), int(weight))
            for address, weight, ip in re.findall(
                r'^ *([0-9a-f]+) +(\d+) +([0-9a-f]+) *$', output, re.M)]


def check_accesses(found, buffers):
    """Instructions access the buffer or, which is one address, the stack."""
    stack = set()
    start = symbols('mixed')['buffer']
    for place, address, _ in found:
        if place in buffers:
            require(start <= address < start + 128,
                    f'{place:#x} accesses {address:#x}')
        else:
            stack.add(address)
    require_equal(len(stack), 1, 'places in the stack')
    require(stack.pop() > 1 << 46, 'it is no stack')


@on(PEBS_HASWELL, PEBS_ICELAKE, more=(PEBS_SKYLAKE, PEBS_SAPPHIRE))
def test_addresses_of_loads(guest, machine):
    """Each sample of a load tells what it loaded, and how long it took."""
    names = symbols('mixed')
    output = guest.run(f'''
        {PINNED} -d -W -e {LOADS_ON.get(machine, LOADS + 'P')} -c 131 mixed
        perf script -i /tmp/data -F addr,weight,ip''')
    found = accesses(output)
    # The last is not lost: behind it there are more loads than the few rests
    # can be that Linux has made longer (check_late()).
    total = expectations('mixed')['rounds'] * len(STEPS['loads'])
    require_equal(len(found), total // 131, 'samples')
    require_equal({weight for *_, weight in found}, {LATENCY}, 'latencies')
    check_accesses(found, {names['step_13']})


@on(PEBS_HASWELL, PEBS_SAPPHIRE, more=(PEBS_SKYLAKE, PEBS_ICELAKE))
def test_addresses_of_stores(guest, machine):
    """Each sample of a store tells where it stored."""
    # Far more than Linux makes of a rest of it.
    period = 509
    names = symbols('mixed')
    found = accesses(guest.run(f'''
        {PINNED} -d -W -e cpu/mem-stores/uP -c {period} mixed
        perf script -i /tmp/data -F addr,weight,ip'''))
    total = expectations('mixed')['rounds'] * len(STEPS['stores'])
    require_equal(len(found), total // period, 'samples')
    check_accesses(found, {names['step_3'], names['step_13']})


@on(*FOUND)
def test_memory_is_recorded(guest, machine):
    """perf mem does it all by itself, of loads and of stores: the one
    instruction that accesses anything, and what it accesses."""
    names = symbols('word')
    # Linux knows no event of stores there.
    only = '-t load' if machine is PEBS_NEHALEM else ''
    output = guest.run(f'''
        cd /tmp
        perf mem record {only} word > /dev/null 2>&1
        perf mem report --stdio --sort mem,dso 2>&1
        perf script -F event,addr,ip''')
    require(re.search('L1 hit +word', output), output)
    found = {kind: {(int(ip, 16), int(address, 16))
                    for event, address, ip in re.findall(
                        r'(\S+): +([0-9a-f]+) +([0-9a-f]+)', output)
                    if kind in event and int(ip, 16) >> 63 == 0}
             for kind in ('mem-loads', 'mem-stores')[:1 if only else 2]}
    wanted = names['step_1'], names['value']
    for kind, places in found.items():
        require_equal(places, {wanted}, kind)


#
# Registers: in a loop that counts down they tell how far it is
#

def precise_with_registers(period):
    """What records a program, and what prints its samples."""
    return (f'{PINNED} --intr-regs=cx -e instructions:uppp -c {period}',
            'samples ip,iregs')


def check_with_registers(machine, output, period, program):
    """Each sample is of the very instruction, with what that left in ECX, of
    `long` or `word`."""
    names = symbols(program)
    steps = [names[f'step_{number}'] for number in range(4)]
    expected = expectations(program)

    def after(nth):
        """Behind so many instructions, of which one is before the loop."""
        done, step = divmod(nth - 2, len(steps))
        return steps[step], expected['loads'] - done - (step >= 2)

    got = Samples()
    for switch, address, count in re.findall(
            rf'({SWITCH})|([0-9a-f]+) +ABI:\d+ +CX:0x([0-9a-f]+)', output):
        if switch:
            got.switch()
        else:
            got.append((int(address, 16), int(count, 16)))
    require_equal(len(got), expected['instructions'] // period, 'samples')
    check_late(got, period, least_rest(machine, 3),
               lambda sample, nth: sample == after(nth))


@on(PEBS_HASWELL, PEBS_SKYLAKE, more=(PEBS_ICELAKE, PEBS_SAPPHIRE))
def test_registers_are_recorded(guest, machine):
    """As many, and as exact, as samples that have none."""
    period = 1000003
    record, script = precise_with_registers(period)
    check_with_registers(machine, guest.run(f'''
        {record} word
        {script}'''), period, 'word')
