# SPDX-License-Identifier: GPL-2.0-or-later
"""The tree that all tests of vpmu-perf share."""

import pathlib
import tempfile

import pytest

from installed import Place, install


@pytest.fixture(scope='session')
def place():
    # pytest's own directories are closed to other users.
    with tempfile.TemporaryDirectory(prefix='vpmu-perf-') as directory:
        top = pathlib.Path(directory)
        top.chmod(0o755)
        install(top)
        yield Place(top)
