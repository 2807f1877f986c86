# SPDX-License-Identifier: GPL-2.0-or-later
"""In the place of a module that QEMU's functional tests import, and that pytest
needs no more: QEMU fetches it from PyPI, and Debian does not have it.
"""
