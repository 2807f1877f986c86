# SPDX-License-Identifier: GPL-2.0-or-later
"""The two accountings: what a guest executes, and what is done for it."""

import collections
import re

from harness import only, require, scenario_of, symbols
from machines import UP
from test_profile import profiled


@only('x86_64')
@scenario_of(UP)
def time_of_device_accesses(start, directory, machine):
    """Time is charged to the very instruction that accesses a device."""
    profile, _ = profiled(start, directory, machine, '''
wait_for_test
ports
echo @@@ end''', ['ports'], {'accounting': 'vcpu', 'modes': 'u',
                             'period': 100000})
    names = symbols('ports')
    samples = collections.Counter(
        ip for ip in (int(word, 16) for word in re.findall(
            r'^\s*([0-9a-f]+)', profile.script('ip'), re.M))
        if names['loop'] <= ip < names['loop_end'])
    # One instruction of six takes more time than the others together: it
    # leaves translated code, and takes a lock.
    require(samples[names['access']] > samples.total() / 2,
            f'{samples[names["access"]]} of {samples.total()} samples')
