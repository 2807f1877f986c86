# SPDX-License-Identifier: GPL-2.0-or-later
"""perf record: as many samples as there have to be, and where."""

import re

from harness import expectations, require, require_equal, symbols, test
from machines import UP

# perf opens an event per CPU, each of which counts its own period.  On one
# CPU there is one such event.
PINNED = 'taskset 1 perf record -q -m 4096 -o /tmp/data'
ADDRESSES = "perf script -i /tmp/data -F ip | awk '{ print $1 }'"

# Any address of the kernel.
KERNEL = -1


def loop_address(index):
    """The address of the instruction that follows so many of `loop`."""
    first = symbols('loop')['loop']
    return first + (0, 1, 3)[(index - 1) % 3]       # nop, dec, jnz


class Mixed:
    """The addresses of the instructions of `mixed`."""

    def __init__(self):
        names = symbols('mixed')
        self.before = names['expect_before']
        self.steps = names['expect_steps']
        self.end = names['expect_rounds'] * self.steps
        self.addresses = []
        for number in range(self.steps + 3):
            # A LOOP that jumps to itself has several steps, and one name.
            self.addresses.append(names.get(f'step_{number}')
                                  or self.addresses[-1])
        # Behind the last SYSCALL.
        self.addresses.append(KERNEL)

    def __call__(self, index):
        index -= self.before
        if index >= self.end:
            return self.addresses[self.steps + index - self.end]
        return self.addresses[index % self.steps]


def check_addresses(got, period, address_of, late=0):
    """Each sample is at the instruction behind the overflowing one.

    Up to @late samples may be one instruction late: if a single instruction
    is left of a period when the task is preempted, Linux makes two of it.
    """
    allowed = late
    for number, address in enumerate(got, 1):
        if address == address_of(number * period):
            continue
        require(allowed and address == address_of(number * period + 1),
                f'sample {number} of {len(got)} is at {address:#x}, '
                f'not {address_of(number * period):#x}')
        allowed -= 1


def addresses(output):
    found = (int(line, 16) for line in output.split())
    return [address if address < 1 << 63 else KERNEL for address in found]


@test(UP, each=[1000003, 100003, 10007])
def samples_of_loop(machine, period):
    """Number and place of each sample of a loop of three instructions."""
    got = addresses((yield f'''
        {PINNED} -e instructions:u -c {period} loop
        {ADDRESSES}'''))
    require_equal(len(got), expectations('loop')['instructions'] // period,
                  'samples')
    check_addresses(got, period, loop_address, late=1)


# Linux lets no counter run with one event left, so that a switch of tasks can
# make a sample late; with these periods that is rare.
@test(UP, each=[1009])
def samples_of_mixed(machine, period):
    """Short periods, and instructions that are special in some way."""
    got = addresses((yield f'''
        {PINNED} -e instructions:u -c {period} mixed
        {ADDRESSES}'''))
    require_equal(len(got), expectations('mixed')['instructions'] // period,
                  'samples')
    check_addresses(got, period, Mixed(), late=1)
