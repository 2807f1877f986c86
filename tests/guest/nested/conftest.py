# SPDX-License-Identifier: GPL-2.0-or-later
"""First guests, and what they print, as fixtures."""

import os

import pytest

from harness import ARCH
from nested_l1 import L1S, run

# Of x86's registers and profiles, and of Power's entry to guests.
collect_ignore = [f'test_nested_{name}.py' for name in {
    'x86_64': ['entry', 'peers'],
    'ppc64': ['cpus', 'host', 'priorities', 'profiles', 'profiles_of_linux',
              'registers', 'watch'],
}[ARCH]]
# A later series has a QEMU of its own that is not ours; or PEER names a
# directory with one.
if ARCH != 'x86_64' or not os.environ.get('PEER') \
        and os.environ.get('QEMU_SERIES', '10.0') in ('10.0', '10.2'):
    collect_ignore.append('test_nested_later.py')


@pytest.fixture(scope='module', params=[
    pytest.param(l1, id=str(l1), marks=[] if l1.usual else pytest.mark.more)
    for l1 in L1S])
def l1(request):
    """The machine of a first guest."""
    return request.param


@pytest.fixture(scope='module')
def output(request, l1, tmp_path_factory):
    """What is printed while the first guest runs the module's script."""
    return run(tmp_path_factory.mktemp('l1'), l1, request.module.script(l1))


@pytest.fixture(scope='module')
def phases(output):
    """What is printed in each phase of the module's script."""
    return output.phases()
