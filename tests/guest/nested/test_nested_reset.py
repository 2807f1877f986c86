# SPDX-License-Identifier: GPL-2.0-or-later
"""A second guest that is reset in mid-count, and boots anew."""

import pytest

from test_nested_moving import begin, lines_of, stated

pytestmark = pytest.mark.more


def script(l1):
    yield from begin(l1, '-action reboot=reset')
    yield 'stop_in_count; phase reset $n; tell_l2 system_reset cont'
    yield "until_l2 '^@ l2 counted1 '; kill -0 $l2 && phase end $n"
    yield 'tell_l2 quit; wait; cat /tmp/l2.phases /tmp/l2.out'


@pytest.fixture(scope='module')
def phases(output):
    return lines_of(output)


def test_counts_after_reset(phases):
    assert phases['reset']['counted1'] == stated()


@pytest.mark.arch('x86_64')
def test_reset_stops_counters(phases):
    assert phases['reset']['running'] == ['0']
