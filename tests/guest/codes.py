# SPDX-License-Identifier: GPL-2.0-or-later
"""Codes of the PMUs' events, from the lists of tests/qtest/vpmu-codes.h."""

import pathlib
import re

HEADER = pathlib.Path(__file__).parents[1] / 'qtest' / 'vpmu-codes.h'
TEXT = re.sub(r'/\*.*?\*/|\\\n', '', HEADER.read_text(), flags=re.S)
LISTS = dict(re.findall(r'^#define CODES_(\w+)\(E\)(.*)', TEXT, re.M))
# Another list, or what always counts.
ENTRY = re.compile(r'CODES_(\w+)\(E\)|E\((0x\w+), (\w+)\)')


def codes(model, counted):
    """All that count it on a model, the model's own after those of others."""
    found = []
    for other, each, what in ENTRY.findall(LISTS[model.upper()]):
        if other:
            found += codes(other, counted)
        elif what == counted.upper():
            found.append(int(each, 16))
    return found


def code(model, counted, pmc=None):
    """The last of them; on Power, of those for a counter."""
    return [each for each in codes(model, counted)
            if pmc is None or each >> 16 == pmc][-1]


def of_programs(model, counted, pmc=None):
    """How perf is asked for it, in programs."""
    return f'r{code(model, counted, pmc):04x}:u'
