# SPDX-License-Identifier: GPL-2.0-or-later
"""The two accountings: what a guest executes, and what is done for it."""

import collections
import re

from experiment import receive
import pytest

from harness import on, require, require_equal, symbols
from machines import UP
from test_profile import Profile, profiled


@pytest.mark.arch('x86_64')
@on(UP)
def test_time_of_device_accesses(start, tmp_path, machine):
    """Time is charged to the very instruction that accesses a device."""
    profile, _ = profiled(start, tmp_path, machine, '''
wait_for_test
ports
echo @@@ end''', {'accounting': 'vcpu', 'modes': 'u', 'period': 100000})
    names = symbols('ports')
    samples = collections.Counter(
        ip for ip in (int(word, 16) for word in re.findall(
            r'^\s*([0-9a-f]+)', profile.script('ip'), re.M))
        if names['loop'] <= ip < names['loop_end'])
    # One instruction of six takes more time than the others together: it
    # leaves translated code, and takes a lock.
    require(samples[names['access']] > samples.total() / 2,
            f'{samples[names["access"]]} of {samples.total()} samples')


@on(UP)
def test_time_in_monitor(start, tmp_path, machine):
    """query-pmu shows a profile of time, and what has been sampled so far."""
    guest = start(machine, '''
. /tests/guest.sh
wait_for_test
long
echo @@@ end
wait_for_test
''')
    guest.lines_until('@@@ ready')
    # Samples from before the file exists are counted, but not written.
    profile = Profile(guest.monitor, tmp_path, accounting='vcpu',
                      enabled=False)
    profile.enable()
    guest.go()
    guest.lines_until('@@@ end')
    guest.monitor.command('stop')
    cpu, = guest.monitor.command('query-pmu')
    shown, = cpu['observers']
    profile.end()
    guest.monitor.command('cont')
    guest.finish()
    taken = [int(ns) for ns in profile.script('period').split()]
    require(taken, 'the profile is empty')
    require_equal((shown['owner'], shown['event'], shown['count']),
                  ('p0', 'cpu-clock', sum(taken)), 'what is shown')


# Enough for some hundred samples of the functions that lead.
SIZE = 16 << 20
# Who writes the register that makes the device send, on both architectures: on
# virtio-net's behalf it is the kernel.
TOUCHES = {
    'e1000': ('e1000_xmit_frame', 'e1000'),
    'virtio-net': ('iowrite16', ''),
}


def place(shares, function):
    """The place of a function: 1 for the one with the largest share."""
    return 1 + sum(share > shares[function] for share in shares.values())


def packet_receive(start, directory, machine, device):
    """The protocol stack leads in what is executed; in what is done who
    touches the device rises, and more is charged for what it executes than for
    what the leader does.  How high it rises is the host's affair."""
    found = receive(start, directory, machine, device, SIZE)
    guest, vcpu = found['guest'], found['vcpu']
    leader = guest.most_common(1)[0][0]
    touches = TOUCHES[device]
    places = place(guest, touches), place(vcpu, touches)
    seen = (f'{touches[0]} has {guest[touches]:.1%} of what is executed and '
            f'{vcpu[touches]:.1%} of what is done; {leader[0]} has '
            f'{guest[leader]:.1%} and {vcpu[leader]:.1%}; places {places}')
    require(leader != touches, f'{leader} leads in what is executed')
    require(places[0] > places[1], seen)
    require(vcpu[touches] * guest[leader] > vcpu[leader] * guest[touches],
            seen)


@on(more=(UP,))
def test_packet_receive_by_e1000(start, tmp_path, machine):
    """The experiment of guest-wide profiling, with a device of registers."""
    packet_receive(start, tmp_path, machine, 'e1000')


@on(UP)
def test_packet_receive_by_virtio(start, tmp_path, machine):
    """The same with a device that has one."""
    packet_receive(start, tmp_path, machine, 'virtio-net')
