# SPDX-License-Identifier: GPL-2.0-or-later
"""How second guests of Power leave, which a first one of a few instructions has
entered: hypervisor.S.  There is no Linux in this.
"""

import re
import subprocess
import sys

import pytest

from nested_files import HERE, MADE

sys.path.insert(0, str(HERE.parent / 'compat'))
from qemus import OURS, Qemu, until                        # noqa: E402
sys.path.insert(0, str(HERE.parent / 'bare' / 'common'))
from straight import BRANCHES, Listing, passages            # noqa: E402

CROSS = 'powerpc64le-linux-gnu-'

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


# What never lets code go straight on; hypercalls do.
LEAVING = re.compile(r'b\s')


def build_program():
    """The program, and what is executed as firmware."""
    MADE.mkdir(parents=True, exist_ok=True)
    part = MADE / 'hypervisor.o'
    program = MADE / 'hypervisor.elf'
    image = MADE / 'hypervisor.bin'
    subprocess.run([f'{CROSS}gcc', '-c', '-mbig-endian', '-o', part,
                    HERE / 'hypervisor.S'], check=True)
    subprocess.run([f'{CROSS}ld', '-EB', '-m', 'elf64ppc', '-e', '0',
                    '-Ttext=0', '-o', program, part], check=True)
    subprocess.run([f'{CROSS}objcopy', '-O', 'binary', program, image],
                   check=True)
    return program, image


def wrong_passages(program, profile):
    """None, or where code does not go straight on between branches."""
    return Listing(f'{CROSS}objdump', program, LEAVING).obstacles(
        passages(profile))


@pytest.fixture(scope='module', params=[
    'POWER9', pytest.param('POWER10', marks=pytest.mark.more)])
def entered(request, tmp_path_factory):
    """By case, the vector and the number; what is wrong with branches."""
    program, image = build_program()
    data = tmp_path_factory.mktemp('entry') / 'data'
    options = ['-bios', image, '-cpu', request.param, '-m', '256',
               '-machine', 'pseries,ic-mode=xics,cap-nested-hv=on,'
               'cap-cfpc=broken,cap-ibs=broken,cap-ccf-assist=off']
    with Qemu(OURS, *options, '-object',
              f'pmu-profile,id=profile,{BRANCHES},period=17,'
              # The guest ends in a branch to itself.
              f'max-size={1 << 25},file={data}') as qemu:
        qemu.command('cont')
        until(lambda: qemu.number(DONE) == len(CASES))
        qemu.command('object-del', id='profile')
        numbers = [qemu.number(RESULTS + 8 * i)
                   for i in range(2 * len(CASES))]
    return (dict(zip(CASES, zip(numbers[::2], numbers[1::2]))),
            wrong_passages(program, data))


def test_code_between_branches(entered):
    assert entered[1] is None


@pytest.mark.parametrize('name', CASES)
def test_entry(entered, name):
    """It has executed none of what PMC2 counts, interrupts of its own."""
    left, counted = entered[0][name]
    assert hex(left) == hex(CASES[name])
    assert counted == 0
