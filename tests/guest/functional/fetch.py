# SPDX-License-Identifier: GPL-2.0-or-later
"""Fetch what the functional tests put into their guests, once and for all, from
the mirror that MIRROR names: they know but one, and skip what they cannot get.
"""

import os

from qemu_test import Asset
import test_vpmu
import vpmu


for tests in vars(test_vpmu).values():
    if not isinstance(tests, type):
        continue
    for asset in vars(tests).values():
        if isinstance(asset, Asset):
            asset.url = asset.url.replace(
                vpmu.DEBIAN, os.environ['MIRROR'] + '/pool/main/')
            asset.fetch()
