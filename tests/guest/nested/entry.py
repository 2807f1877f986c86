# SPDX-License-Identifier: GPL-2.0-or-later
"""How second guests of Power leave, which a first one of a few instructions has
entered: hypervisor.S.  There is no Linux in this.
"""

import subprocess
import sys

from harness import BUILD
from l1 import HERE, differs

sys.path.insert(0, str(HERE.parent / 'compat'))
from qemu import OURS, Qemu                                 # noqa: E402
from results import until                                   # noqa: E402

CROSS = 'powerpc64le-linux-gnu-'
PROGRAMS = BUILD / 'tests' / 'guest' / 'nested'

RESULTS, DONE = 0x8000, 0x7ff8

HDEC, CALL, UNAVAILABLE, VIRTUAL = 0x980, 0xc00, 0xf80, 0xea0
# In the order of the program: what has them leave.
CASES = {
    'time_that_will_be_over': HDEC,
    'time_that_is_over': HDEC,
    'time_that_is_over_again': HDEC,
    'event_based_branches': CALL,
    'event_based_branches_refused': UNAVAILABLE,
    'recorded_branches': CALL,
    'recorded_branches_refused': UNAVAILABLE,
    'counters': CALL,
    'counters_refused': UNAVAILABLE,
    'interrupt_of_the_first_guest': VIRTUAL,
}


def build_program():
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    part = PROGRAMS / 'hypervisor.o'
    image = PROGRAMS / 'hypervisor.bin'
    subprocess.run([f'{CROSS}gcc', '-c', '-mbig-endian', '-o', part,
                    HERE / 'hypervisor.S'], check=True)
    subprocess.run([f'{CROSS}ld', '-EB', '-m', 'elf64ppc', '-e', '0',
                    '-Ttext=0', '--oformat', 'binary', '-o', image, part],
                   check=True)
    return image


class Entry:
    """None of these has executed what PMC2 counts, interrupts of its own."""

    def __init__(self, cpu):
        self.cpu = cpu

    def results(self):
        """Names of tests, and what is wrong or None."""
        options = ['-bios', build_program(), '-cpu', self.cpu, '-m', '256',
                   '-machine', 'pseries,ic-mode=xics,cap-nested-hv=on,'
                   'cap-cfpc=broken,cap-ibs=broken,cap-ccf-assist=off']
        with Qemu(OURS, *options) as qemu:
            qemu.command('cont')
            until(lambda: qemu.number(DONE) == len(CASES))
            numbers = [qemu.number(RESULTS + 8 * i)
                       for i in range(2 * len(CASES))]
        for (name, vector), left, counted in zip(CASES.items(), numbers[::2],
                                                 numbers[1::2]):
            yield f'entry/{name}', differs(hex(left), hex(vector)) \
                or differs(counted, 0)
