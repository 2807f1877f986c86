# SPDX-License-Identifier: GPL-2.0-or-later
"""Code between branches, as a profile from outside has them: from where one of
them goes, it goes straight on to where the next one is.
"""

import bisect
import re
import subprocess

from perf import branch_stacks

# Properties of such a profile
BRANCHES = 'event=branches,branch-stack=on'

# No code is longer without a branch.
LONGEST = 1 << 16


def passages(file):
    """All code that a profile has passed: where it begins, and the branch that
    it comes to."""
    return {(target, source) for stack in branch_stacks(file)
            for (_, target), (source, _) in zip(stack, stack[1:])}


class Listing:
    """The code of a program: addresses of instructions, and what they are."""

    def __init__(self, objdump, program, leaving, but=()):
        """@leaving: matches instructions that never let code go straight on;
        @but: labels of what objdump misunderstands."""
        listed = subprocess.run(
            [objdump, '-d', '--no-show-raw-insn', program], check=True,
            text=True, capture_output=True).stdout
        self.words = dict(
            (int(address, 16), word)
            for name, code in re.findall(
                r'^[0-9a-f]+ <(.*)>:\n((?:.+\n)*)', listed, re.MULTILINE)
            if name not in but for address, word in re.findall(
                r'^\s*([0-9a-f]+):\t(\S.*)$', code, re.MULTILINE))
        self.addresses = sorted(self.words)
        self.leaving = leaving

    def obstacle(self, begin, end):
        """None, or what is between two addresses."""
        if not begin <= end < begin + LONGEST:
            return 'no way'
        if begin not in self.words:
            return None         # the program has made it
        if end not in self.words:
            return 'no instruction at the end'
        between = self.addresses[bisect.bisect_left(self.addresses, begin):
                                 bisect.bisect_left(self.addresses, end)]
        return next((self.words[address] for address in between
                     if self.leaving.match(self.words[address])), None)

    def obstacles(self, found):
        """None, or what there is in passages; that there are none is wrong."""
        if not found:
            return 'no branch follows another'
        return '; '.join(f'from {begin:x} to {end:x} there is {what}'
                         for begin, end in sorted(found)
                         for what in [self.obstacle(begin, end)]
                         if what) or None
