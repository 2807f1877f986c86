# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/devel/vpmu-compat.rst, tested with Debian's own QEMU 10.0 on the other
side; and if ours is of a later series, also with that series' own, or with
that of the directory PEER.
"""

import subprocess

import pytest

from linux_guest import ROOT
from qemus import IS_LATER, PEER

pytest.register_assert_rewrite('observers')


@pytest.fixture(scope='session', autouse=True)
def stock():
    subprocess.run([ROOT / 'scripts' / 'fetch-stock'], check=True,
                   stdout=subprocess.DEVNULL)
    if IS_LATER and not PEER:
        subprocess.run([ROOT / 'scripts' / 'build-qemu', '--variant', 'stock'],
                       check=True, stdout=subprocess.DEVNULL)
