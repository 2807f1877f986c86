# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/devel/vpmu-compat.rst, tested with Debian's own QEMU 10.0 on the other
side.
"""

import subprocess

import pytest

from linux_guest import ROOT

pytest.register_assert_rewrite('observers')


@pytest.fixture(scope='session', autouse=True)
def stock():
    subprocess.run([ROOT / 'scripts' / 'fetch-stock'], check=True,
                   stdout=subprocess.DEVNULL)
