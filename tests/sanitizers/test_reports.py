# SPDX-License-Identifier: GPL-2.0-or-later
"""What sanitizers have reported in tests that ran before, in files of REPORTS.
"""

import collections
import os
import pathlib


def test_no_report():
    found = collections.Counter(
        line for path in pathlib.Path(os.environ['REPORTS']).iterdir()
        for line in path.read_text(errors='replace').splitlines()
        if line.startswith('SUMMARY: '))
    assert not found
