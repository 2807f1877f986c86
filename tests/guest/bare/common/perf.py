# SPDX-License-Identifier: GPL-2.0-or-later
"""What this machine's perf shows of a profile."""

import os
import re
import subprocess


def shown_by_perf(*words):
    return subprocess.run(['perf', *words], check=True, text=True,
                          capture_output=True,
                          env={**os.environ, 'PERF_CONFIG': '/dev/null'}).stdout


def branch_stacks(file):
    """Of each sample, its branches from and to, the oldest first."""
    return [[(int(source, 16), int(target, 16))
             for source, target in reversed(
                 re.findall('0x([0-9a-f]+)/0x([0-9a-f]+)/', line))]
            for line in shown_by_perf('script', '-i', file, '-F',
                                      'brstack').splitlines()]
