# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests that are phases of a script for the first guest (L1), and what is
printed in each.
"""

from l1 import boot


class Phases:
    """Others have a script(), which begins each phase with "phase NAME", the
    last with "phase end", and prints /tmp/l2.phases then; and
    results_of_phases()."""

    def __init__(self, options):
        self.options = options
        # By phase, the lines that were printed: words each.
        self.printed = {}

    def files(self):
        """What the script needs: files of the host, and paths for them."""
        return []

    def results(self):
        """Names of tests, and what is wrong or None."""
        lines, output = boot(self.options, self.script(), self.files())
        for level, what, values in lines:
            if level == 'l1':
                now = self.printed[what] = []
            else:
                now.append([what, *values])
        ended = 'end' in self.printed
        yield (f'{type(self).__name__.lower()}/ends',
               None if ended else 'it did not: ' + repr(output[-700:]))
        if ended:
            yield from self.results_of_phases()

    def values(self, run, event):
        """Per register, its value before and after the event."""
        return {words[2]: words[3:] for words in self.printed[run]
                if words[:2] == ['~', event]}

    def verdict(self, run, case):
        """What is wrong with a case of a program, or None."""
        for words in self.printed[run]:
            if words == ['ok', case]:
                return None
            if words[:3] == ['not', 'ok', case]:
                return ' '.join(words[4:])
        return 'it has not ended: ' + repr(self.printed[run][-3:])
