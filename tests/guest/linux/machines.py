# SPDX-License-Identifier: GPL-2.0-or-later
"""The machines of the guest's architecture, and what tests have to know of it.

What one architecture has and another has not is None there: such a machine
has no tests.
"""

import importlib
import sys

from harness import ARCH

sys.modules[__name__] = importlib.import_module(f'machines_{ARCH}')
