# SPDX-License-Identifier: GPL-2.0-or-later
"""perf record with PEBS: the very instruction, and what it accessed."""

import re

from harness import expectations, require, require_equal, symbols, test
from machines import (EVENTS, PEBS_HASWELL, PEBS_ICELAKE, PEBS_NEHALEM,
                      PEBS_SAPPHIRE, PEBS_SKYLAKE, STEPS, loop_address)
from test_sampling import (ADDRESSES, PINNED, SCRIPT, SWITCH, Addresses, Mixed,
                           addresses)

# What the kernel says it has found.
FOUND = {
    PEBS_NEHALEM: 'PEBS fmt1+',
    PEBS_HASWELL: 'PEBS fmt2+',
    PEBS_SKYLAKE: 'PEBS fmt3+',
    PEBS_ICELAKE: 'PEBS fmt4+-baseline',
    PEBS_SAPPHIRE: 'PEBS fmt4+-baseline',
}
# As precise as Linux has it there.
PRECISE = {PEBS_NEHALEM: 'pp'}


@test(*FOUND)
def pebs_is_found(machine):
    """Linux has all of it, and no complaints."""
    output = yield '''
        dmesg | grep -e 'Performance Events' -e PEBS
        cat /sys/bus/event_source/devices/cpu/caps/max_precise
        dmesg | grep -e 'unchecked MSR' -e 'WARNING: CPU' || :'''
    require(f'{FOUND[machine]},' in output, output)
    require(re.search(rf'^{len(PRECISE.get(machine, "ppp"))}$', output, re.M),
            f'max_precise: {output}')
    require('MSR' not in output and 'WARNING' not in output, output)


# Linux makes so many of the events that are left of a period when the task is
# switched, if there are fewer: 2, and more on these, of instructions with the
# highest precision and of others (its arch/x86/events/intel/core.c, where
# periods are limited).
LEAST_INSTRUCTIONS = {PEBS_NEHALEM: 32, PEBS_HASWELL: 128, PEBS_SAPPHIRE: 128}
LEAST_OTHERS = {PEBS_HASWELL: 32}


def check_precise(got, period, where, least):
    """Number and place of the samples, each the instruction of an event.

    where(N) is the instruction of the Nth event, None if there are not so many.
    If fewer events than the least are left of a period when the task is
    switched, Linux makes that of them; as the CPU begins each period where the
    last has ended, it is so late from then on.
    """
    late = {0}
    for number, address in enumerate(got, 1):
        if number in got.after_switch:
            late |= {events + more for events in late
                     for more in range(1, least)}
        late = {events for events in late
                if where(number * period + events) == address}
        require(late, f'sample {number} of {len(got)} is at {address:#x}, not '
                f'{where(number * period):#x}')
    behind = (len(got) + 1) * period
    require(any(where(behind + events) is None for events in late),
            f'{len(got)} samples, and not one of {behind}')


def nth_of(places):
    """The function that check_precise() wants."""
    return lambda nth: places[nth - 1] if nth <= len(places) else None


@test(PEBS_SKYLAKE, PEBS_ICELAKE, each=[1000003, 10007, 4999])
@test(PEBS_HASWELL, PEBS_SAPPHIRE, each=[10007])
def precise_samples_of_loop(machine, period):
    """Each sample is the instruction that is a multiple of the period."""
    got = addresses((yield f'''
        {PINNED} -e instructions:uppp -c {period} loop
        {ADDRESSES}'''))
    total = expectations('loop')['instructions']
    check_precise(got, period, lambda nth: loop_address(nth - 1)
                  if nth <= total else None,
                  LEAST_INSTRUCTIONS.get(machine, 2))


def instructions_of(event):
    """Of `mixed`: the addresses at which an event happens, in order."""
    mixed = Mixed()
    steps = STEPS[event]
    total = expectations('mixed')['instructions']
    return [mixed(index) for index in range(total)
            if steps is None or mixed.step(index) in steps]


@test(PEBS_SKYLAKE, PEBS_ICELAKE, each=[3, 26, 1009])
def precise_samples_of_mixed(machine, period):
    """Short periods, and instructions that are special in some way."""
    got = addresses((yield f'''
        {PINNED} -e instructions:uppp -c {period} mixed
        {ADDRESSES}'''))
    check_precise(got, period, nth_of(instructions_of('instructions')),
                  LEAST_INSTRUCTIONS.get(machine, 2))


@test(PEBS_SKYLAKE, each=['branches', 'conditional', 'loads'])
@test(PEBS_SKYLAKE, PEBS_HASWELL, each=['calls', 'cycles'])
@test(PEBS_ICELAKE, PEBS_SAPPHIRE, each=['branches', 'stores'])
def precise_samples_of_event(machine, event):
    """Other events are as precise, and so are cycles."""
    # On Haswell, Linux has no period below 128.
    period = 131
    got = addresses((yield f'''
        {PINNED} -e {EVENTS.get(event, 'cycles:u')}pp -c {period} mixed
        {ADDRESSES}'''))
    check_precise(got, period, nth_of(instructions_of(event)),
                  LEAST_OTHERS.get(machine, 2))


@test(PEBS_SKYLAKE, PEBS_ICELAKE)
def precise_samples_of_many_events(machine):
    """Counters whose buffer is the same do not disturb each other."""
    period = 23
    events = ['instructions', 'branches', 'loads', 'stores']
    names = {f'{EVENTS[event]}pp': event for event in events}
    got = {name: Addresses() for name in names}
    output = yield f'''
        {PINNED} -e {','.join(names)} -c {period} mixed
        {SCRIPT} -F event,ip'''
    for switch, name, address in re.findall(
            rf'({SWITCH})|(\S+:upp): +([0-9a-f]+)', output):
        for each in got if switch else [name]:
            got[each].add(switch or address)
    for name, found in got.items():
        check_precise(found, period, nth_of(instructions_of(names[name])),
                      LEAST_OTHERS.get(machine, 2))


@test(PEBS_NEHALEM)
def samples_behind(machine):
    """The oldest format has the instruction that comes next, as :p has."""
    period = 10007
    got = addresses((yield f'''
        {PINNED} -e instructions:up -c {period} loop
        {ADDRESSES}'''))
    total = expectations('loop')['instructions']
    check_precise(got, period,
                  lambda nth: loop_address(nth) if nth <= total else None,
                  LEAST_INSTRUCTIONS.get(machine, 2))


@test(*FOUND)
def default_is_precise(machine):
    """perf asks for precise cycles by itself, and finds the program's."""
    output = yield '''
        perf record -q -o /tmp/data long
        perf evlist -v -i /tmp/data
        perf script -i /tmp/data -F comm | grep -c long || :'''
    require(re.search(r'precise_ip: [123]', output), output)
    require(int(output.split()[-1]) >= 2, output)


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


@test(PEBS_HASWELL, PEBS_SKYLAKE, PEBS_ICELAKE)
def addresses_of_loads(machine):
    """Each sample of a load tells what it loaded, and how long it took."""
    names = symbols('mixed')
    output = yield f'''
        {PINNED} -d -W -e {LOADS_ON.get(machine, LOADS + 'P')} -c 131 mixed
        perf script -i /tmp/data -F addr,weight,ip'''
    found = accesses(output)
    total = expectations('mixed')['rounds'] * len(STEPS['loads'])
    require(len(found) in (total // 131 - 1, total // 131),
            f'{len(found)} samples')
    require_equal({weight for *_, weight in found}, {LATENCY}, 'latencies')
    check_accesses(found, {names['step_13']})


@test(PEBS_HASWELL, PEBS_SKYLAKE, PEBS_ICELAKE, PEBS_SAPPHIRE)
def addresses_of_stores(machine):
    """Each sample of a store tells where it stored."""
    names = symbols('mixed')
    found = accesses((yield f'''
        {PINNED} -d -W -e cpu/mem-stores/uP -c 131 mixed
        perf script -i /tmp/data -F addr,weight,ip'''))
    total = expectations('mixed')['rounds'] * len(STEPS['stores'])
    require(len(found) in (total // 131 - 1, total // 131),
            f'{len(found)} samples')
    check_accesses(found, {names['step_3'], names['step_13']})


@test(PEBS_SKYLAKE, PEBS_ICELAKE)
def memory_is_recorded(machine):
    """perf mem does it all by itself."""
    output = yield '''
        cd /tmp
        perf mem record long > /dev/null 2>&1
        perf mem report --stdio --sort mem,dso 2>&1'''
    require(re.search('L1 hit +long', output), output)


@test(PEBS_SKYLAKE, PEBS_ICELAKE)
def registers_are_recorded(machine):
    """A loop that counts down: how far it was, as the instruction left it."""
    period = 1000003
    names = symbols('long')
    steps = [names[f'step_{number}'] for number in range(4)]
    rounds = expectations('long')['loads']

    def after(nth):
        """Behind so many instructions, of which one is before the loop."""
        done, step = divmod(nth - 2, len(steps))
        return steps[step], rounds - done - (step >= 2)

    output = yield f'''
        {PINNED} --intr-regs=cx -e instructions:uppp -c {period} long
        perf script -i /tmp/data -F ip,iregs'''
    samples = re.findall(r'([0-9a-f]+) +ABI:\d+ +CX:0x([0-9a-f]+)', output)
    require_equal(len(samples), expectations('long')['instructions'] // period,
                  'samples')
    for number, (address, count) in enumerate(samples, 1):
        # It may be late, see check_precise().
        require((int(address, 16), int(count, 16))
                in (after(number * period), after(number * period + 1)),
                f'sample {number}: {address}, {count}')
