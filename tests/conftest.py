# SPDX-License-Identifier: GPL-2.0-or-later
"""What all tests in Python share.

ARCH names the architecture of the guests, x86_64 or ppc64; QEMU the binary,
if it is not the one in BUILD.  `pytest -m 'not more'` selects what
`make check` runs.
"""

import os
import signal
import sys

import pytest

# Several checks may run from one source tree, which may be read-only.
sys.dont_write_bytecode = True

ARCH = os.environ.get('ARCH', 'x86_64')


def pytest_sessionstart():
    """A signal ends the tests as Ctrl-C does, with what they have started."""
    def end(number, _):
        for other in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            signal.signal(other, signal.SIG_IGN)
        pytest.exit(f'ended by signal {number}', 128 + number)

    # A shell that runs pytest in the background has these ignored, and so
    # would be all that tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    # nohup has a hangup ignored.
    for number in signal.SIGTERM, signal.SIGHUP:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, end)


def pytest_collection_modifyitems(config, items):
    """Deselect the tests of other architectures."""
    others = [item for item in items
              if any(ARCH not in mark.args
                     for mark in item.iter_markers('arch'))]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item not in others]
