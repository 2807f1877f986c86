# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles of a Linux under KVM, from outside and by its own perf, of the same
programs: in both accountings.
"""

import collections

import harness
from l1 import UNTHROTTLED, boot, differs, programs

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


class ProfilesOfLinux:
    def __init__(self, options):
        self.options = options

    def script(self):
        yield FUNCTIONS
        yield from UNTHROTTLED
        yield "cat > /tmp/job << 'END'"
        yield FUNCTIONS
        yield from UNTHROTTLED
        yield (f'perf record -q -o /tmp/d -e instructions:u -c {PERIOD} sh -c '
               f"'for i in $(seq {RUNS}); do chain; done'")
        yield 'perf script -i /tmp/d -F ip | sed G | stacks l2 inside'
        yield 'END'
        objects = ' '.join(
            f'-object pmu-profile,id={name},modes=u,file=/tmp/{name}.data,'
            f'{properties}' for name, properties in PROFILES.items())
        yield f'l2 /tmp/job -cpu host,pmu=on {objects}'
        yield ('perf script -i /tmp/guest.data -F ip | sed G | '
               'stacks l1 guest')
        yield 'perf script -i /tmp/vcpu.data -F ip | stacks l1 vcpu'
        yield 'echo @ l1 end'

    def results(self):
        """Names of tests, and what is wrong or None."""
        lines, output = boot(self.options, self.script(), programs('chain'))
        self.stacks = collections.defaultdict(collections.Counter)
        for _, what, values in lines:
            if what != 'end':
                stack = tuple(int(address, 16) for address in values[1:])
                self.stacks[what][stack] += int(values[0])
        ended = ['end'] == [what for _, what, _ in lines][-1:]
        yield 'profiles_of_linux/ends', None if ended \
            else 'it did not: ' + repr(output[-700:])
        if ended:
            self.names = harness.symbols('chain')
            for accounting in PROFILES:
                yield (f'profiles_of_linux/shares/{accounting}',
                       self.wrong_shares(accounting))
            yield 'profiles_of_linux/number', self.wrong_number()
            for loop, callers in CALLERS.items():
                yield (f'profiles_of_linux/callers/{loop}',
                       self.wrong_callers(loop, callers))

    def is_in(self, address, loop):
        return self.names[loop] <= address < self.names[f'{loop}_end']

    def numbers(self, what):
        """Of samples, by loops."""
        return {loop: sum(n for stack, n in self.stacks[what].items()
                          if self.is_in(stack[0], loop)) for loop in LOOPS}

    def wrong_number(self):
        """Both take a sample of each period, and lose few."""
        inside, outside = (sum(self.numbers(what).values())
                           for what in ('inside', 'guest'))
        return None if abs(inside - outside) <= LOST_SHARE * inside \
            else f'{outside}, and {inside} inside'

    def shares(self, what):
        numbers = self.numbers(what)
        return {loop: n / sum(numbers.values())
                for loop, n in numbers.items()}

    def wrong_shares(self, accounting):
        """The loops have those that they have from inside."""
        inside, outside = self.shares('inside'), self.shares(accounting)
        apart = {loop: f'{outside[loop]:.1%}, and {inside[loop]:.1%} inside'
                 for loop in LOOPS
                 if abs(outside[loop] - inside[loop]) > APART[accounting]}
        return differs(apart, {})

    def wrong_callers(self, loop, callers):
        got = {stack[1:] for stack in self.stacks['vcpu']
               if self.is_in(stack[0], loop)}
        return differs(got, {tuple(self.names[f'expect_{caller}']
                                   for caller in callers)})
