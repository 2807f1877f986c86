# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles of a Linux under KVM, from outside and by its own perf, of the same
programs: in both accountings.
"""

import collections

import pytest

from harness import symbols
from nested_l1 import UNTHROTTLED, job

pytestmark = pytest.mark.more

PERIOD = 100003
PERIOD_NS = 200000
# The program loops in five functions for the same time each.
RUNS = 4
LOOPS = ['good', 'circular', 'unmapped', 'kernels', 'odd']
# Those who have called a loop, the innermost first.
CALLERS = {'good': ['behind_good_1', 'behind_good_2', 'behind_good_3'],
           'circular': ['behind_circle_1'], 'unmapped': []}
# By which the shares of a function may differ.  It has 160 samples, of which
# some are lost when KVM has left the guest; and of time, which is the host's
# affair, at least 25.
APART = {'guest': 0.02, 'vcpu': 0.15}
# Of all samples, those that are lost in this way.  None of 800 was; how many
# are goes by how often timers and devices make KVM leave the guest.
LOST_SHARE = 0.1

FUNCTIONS = r"""
# stacks LEVEL WHAT: of what perf script prints, a line for each that is in the
# program, with its number
stacks() {
    awk 'NF { stack = stack $1 " "; next } { print stack; stack = "" }' |
        sort | uniq -c | grep "^ *[0-9]* 40[0-9a-f]* " | sed "s/^/@ $1 $2 /"
}
"""
# From the beginning of the second guest; addresses of others are others'.
PROFILES = {
    'guest': f'period={PERIOD}',
    'vcpu': f'accounting=vcpu,callchain=8,period={PERIOD_NS}',
}


def script(_):
    yield FUNCTIONS
    yield from UNTHROTTLED
    yield job(
        FUNCTIONS, *UNTHROTTLED,
        f'perf record -q -o /tmp/d -e instructions:u -c {PERIOD} sh -c '
        f"'for i in $(seq {RUNS}); do chain; done'",
        'perf script -i /tmp/d -F ip | sed G | stacks l2 inside')
    objects = ' '.join(
        f'-object pmu-profile,id={name},modes=u,file=/tmp/{name}.data,'
        f'{properties}' for name, properties in PROFILES.items())
    yield f'l2 --saved /tmp/job -cpu host,pmu=on {objects}'
    yield 'perf script -i /tmp/guest.data -F ip | sed G | stacks l1 guest'
    yield 'perf script -i /tmp/vcpu.data -F ip | stacks l1 vcpu'
    yield 'echo @ l1 end'


@pytest.fixture(scope='module')
def stacks(output):
    """By what took them: how many there are of each, the innermost first."""
    found = collections.defaultdict(collections.Counter)
    for _, what, values in output.lines:
        if what != 'end':
            stack = tuple(int(address, 16) for address in values[1:])
            found[what][stack] += int(values[0])
    return found


def is_in(address, loop):
    names = symbols('chain')
    return names[loop] <= address < names[f'{loop}_end']


def numbers(stacks, what):
    """Of samples, by loops."""
    return {loop: sum(n for stack, n in stacks[what].items()
                      if is_in(stack[0], loop)) for loop in LOOPS}


def shares(stacks, what):
    samples = numbers(stacks, what)
    return {loop: n / sum(samples.values()) for loop, n in samples.items()}


def test_ends(output):
    assert output.lines[-1] == ('l1', 'end', [])


@pytest.mark.parametrize('accounting', PROFILES)
def test_shares(stacks, accounting):
    """The loops have those that they have from inside."""
    inside, outside = shares(stacks, 'inside'), shares(stacks, accounting)
    for loop in LOOPS:
        assert abs(outside[loop] - inside[loop]) <= APART[accounting], loop


def test_number(stacks):
    """Both take a sample of each period, and lose few."""
    inside, outside = (sum(numbers(stacks, what).values())
                       for what in ('inside', 'guest'))
    assert abs(inside - outside) <= LOST_SHARE * inside


@pytest.mark.parametrize('loop', CALLERS)
def test_callers(stacks, loop):
    assert {stack[1:] for stack in stacks['vcpu'] if is_in(stack[0], loop)} \
        == {tuple(symbols('chain')[f'expect_{caller}']
                  for caller in CALLERS[loop])}
