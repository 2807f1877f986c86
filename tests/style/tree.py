# SPDX-License-Identifier: GPL-2.0-or-later
"""The files of this repository."""

import subprocess

from linux_guest import ROOT


def our_files(*patterns):
    """Paths below ROOT of all that match, but for what is made."""
    names = subprocess.run(
        ['git', '-C', ROOT, 'ls-files', '-co', '--exclude-standard', *patterns],
        check=True, text=True, capture_output=True).stdout.splitlines()
    return [name for name in sorted(names) if (ROOT / name).is_file()]
