# SPDX-License-Identifier: GPL-2.0-or-later
"""The machines of the guest's architecture, and what tests have to know of it.

What one architecture has and another has not is None there: such a machine
has no tests.
"""

# pylint: disable=wildcard-import,unused-wildcard-import
from harness import ARCH

if ARCH == 'x86_64':
    from machines_x86_64 import *       # noqa: F401,F403
else:
    from machines_ppc64 import *        # noqa: F401,F403
