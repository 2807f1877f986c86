# SPDX-License-Identifier: GPL-2.0-or-later
"""KVM of this very machine, where it has one; tests/guest/nested needs none."""

import os
import pathlib
import re

import pytest

from harness import ARCH, Machine, expectations, require, require_equal

NO_PMU = "the host's KVM has no PMU for guests"
WITH_PMU = Machine('kvm', cpu='host,pmu=on,enforce', accel='kvm')
WITHOUT_PMU = Machine('kvm without PMU', cpu='host,pmu=off', accel='kvm')
JOB = '''
perf stat -x , -o /tmp/stat -e instructions:u loop
grep , /tmp/stat
'''


def missing():
    """What is missing to run Linux with KVM, by the processor's own means."""
    flags = re.search(r'^flags\s*:(.*)$',
                      pathlib.Path('/proc/cpuinfo').read_text(), re.MULTILINE)
    if ARCH != os.uname().machine:
        return f'the host is no {ARCH}'
    if flags is None or not {'vmx', 'svm'} & {*flags[1].split()}:
        return 'the processor does not show VMX or SVM'
    if not os.access('/dev/kvm', os.R_OK | os.W_OK):
        return '/dev/kvm cannot be opened'
    return None


def test_direct(start):
    """The host's PMU counts for the guest, or QEMU says that there is none."""
    if missing():
        pytest.skip(missing())
    counting = start(WITH_PMU, JOB)
    said = counting.refusal()
    lines = counting.log
    if NO_PMU in said:
        lines = start(WITHOUT_PMU, JOB).rest()
        require_equal(lines[-1].split(',')[0], '<not supported>',
                      'instructions without a PMU')
        return
    require_equal(said, '', 'QEMU')
    # Processors may count an interrupt as an instruction of what it interrupts.
    # How many come is the host's affair, and no such host was at hand.  A
    # thousandth is 15,000 of them.  The kernel's instructions would be more.
    stated = expectations('loop')['instructions']
    counted = int(lines[-1].split(',')[0])
    require(stated <= counted <= stated * 1.001,
            f'{counted} instructions, not {stated}')
