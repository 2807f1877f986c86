# SPDX-License-Identifier: GPL-2.0-or-later
"""Second guests of Power without Linux: the program of tests/guest/compat.

It sets MSR[PMM] and has nothing else counted: the first guest's kernel is in
the same privilege state, and what of it is between the switch of the PMU and
that of the guest would count, too.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'compat'))
import program_ppc64 as program         # noqa: E402

# What the program does before it counts, by what there is to be moved.
TASKS = {
    'unused': [],
    'used': [program.write('ctrl', 1),
             program.write('mmcr1', program.INSTRUCTIONS),
             program.write('mmcra', 0),
             program.write('pmc1', 0x12345), program.write('pmc2', 0x7000),
             program.write('pmc5', 0),
             program.write('mmcr0', program.MMCR0_FCM0), program.mark()],
}


def images():
    """What is executed as firmware, by name."""
    return {name: program.image(*parts) for name, parts in TASKS.items()}
