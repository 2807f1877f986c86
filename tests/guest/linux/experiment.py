# SPDX-License-Identifier: GPL-2.0-or-later
"""The packet-receive experiment of guest-wide profiling.

A guest receives a stream over TCP, and its kernel is profiled from outside in
both accountings at the same time: what it executes, and the time of its vCPU's
thread, with what QEMU does for it.  After Du, Sehrawat and Zwaenepoel,
"Performance Profiling of Virtual Machines" (VEE 2011), where the first is
called CPU switch and the second domain switch.

    experiment.py [BYTES [DEVICE...]]     prints a table for each device
"""

import bisect
import collections
import contextlib
import lzma
import pathlib
import re
import socket
import sys
import tempfile
import threading

from harness import ARCH, BUILD, Guest, require
from machines import UP
from test_profile import Profile

MODULES = BUILD / 'download' / f'guest-{ARCH}' / 'lib' / 'modules'
# What the guest has to load, in this order.
DRIVERS = {
    'e1000': ['e1000'],
    'virtio-net': ['failover', 'net_failover', 'virtio_net'],
}
# By accounting: of the kernel, so that both have some ten thousand samples.
PROFILES = {
    'guest': {'event': 'instructions', 'modes': 'k', 'period': 10007},
    'vcpu': {'event': 'cpu-clock', 'modes': 'k', 'period': 250000},
}
END = 'end'

# The functions and where they are go the other way before.  The kernel's own
# list has them: the one that guest-init keeps is older than the modules.
RECEIVE = '''
. /tests/guest.sh
guest_setup
for module in {modules}; do
    insmod "/$module.ko"
done
ip addr add 10.0.2.15/24 dev eth0
ip link set eth0 up
umount /proc/kallsyms
(grep -E '^[0-9a-f]+ [tTwW] ' /proc/kallsyms; echo {END}) | nc 10.0.2.2 {port}
wait_for_test
receive 10.0.2.2 {port}
wait_for_test
'''


class Sender:
    """Receives what the guest says of its symbols, and then sends."""

    def __init__(self, size):
        self.size = size
        self.symbols = ''
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with self.listener:
            with self.listener.accept()[0] as connection, \
                    connection.makefile() as lines:
                self.symbols = ''.join(iter(lines.readline, f'{END}\n'))
            with self.listener.accept()[0] as connection:
                connection.sendall(bytes(self.size))


class Symbols:
    """The functions of a kernel and its modules, as kallsyms has them."""

    def __init__(self, text):
        found = sorted(
            (int(address, 16), name, module) for address, name, module in
            re.findall(r'^(\w+) \w (\S+)(?:\t\[(\w+)\])?$', text, re.M))
        self.addresses = [address for address, _, _ in found]
        self.names = [(name, module) for _, name, module in found]

    def __call__(self, address):
        """The function, and the module that has it, if one does."""
        here = bisect.bisect_right(self.addresses, address) - 1
        return self.names[here] if here >= 0 else (hex(address), '')


def modules(directory, device):
    """The drivers of a device, as files that go into the guest."""
    for name in DRIVERS[device]:
        packed, = MODULES.glob(f'*/kernel/**/{name}.ko.xz')
        module = directory / f'{name}.ko'
        module.write_bytes(lzma.decompress(packed.read_bytes()))
        yield module, f'/{module.name}'


def network(device):
    """What QEMU is told: a host on the other side."""
    model = 'virtio-net-pci' if device == 'virtio-net' else device
    return ['-netdev', 'user,id=net', '-device',
            f'{model},netdev=net,romfile=']


def shares(profile, symbols):
    """Of each function, its part of a profile."""
    found = collections.Counter()
    for period, address in re.findall(r'(\d+) +([0-9a-f]+)',
                                      profile.script('period,ip')):
        found[symbols(int(address, 16))] += int(period)
    total = found.total()
    require(total, 'the profile is empty')
    return collections.Counter({function: part / total
                                for function, part in found.items()})


def receive(start, directory, machine, device, size):
    """Let a guest receive so many bytes; by accounting, the shares."""
    sender = Sender(size)
    job = RECEIVE.format(modules=' '.join(DRIVERS[device]), port=sender.port,
                         END=END)
    guest = start(machine, job, adds=modules(directory, device),
                  extra=network(device))
    guest.lines_until('@@@ ready')
    profiles = {
        accounting: Profile(guest.monitor, directory, name=accounting,
                            accounting=accounting, **properties)
        for accounting, properties in PROFILES.items()}
    guest.go()
    line = guest.lines_until('@@@ received')[-1]
    require(line.split()[-1] == str(size), f'{line}, not {size}')
    for profile in profiles.values():
        profile.end()
    guest.finish()
    symbols = Symbols(sender.symbols)
    return {accounting: shares(profile, symbols)
            for accounting, profile in profiles.items()}


#
# The tables
#

# So many of the functions that lead, in each accounting.
TOP = 10
SIZE = 64 << 20
NAMES = {'x86_64': 'x86', 'ppc64': 'Power'}


def rows(found):
    """Of the functions that lead in either accounting, their shares."""
    leading = {function for shares in found.values()
               for function, _ in shares.most_common(TOP)}
    order = sorted(leading, key=lambda function: -found['vcpu'][function])
    for name, module in order:
        yield (name, module or 'kernel',
               *(f'{found[accounting][name, module]:.1%}'
                 for accounting in PROFILES))


def table(device, found):
    """The lines of a section."""
    lines = [('Function', 'Module', *PROFILES), *rows(found)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    rule = '  '.join('=' * width for width in widths)
    head, *body = ('  '.join(word.ljust(width) for word, width in
                             zip(line, widths)).rstrip() for line in lines)
    title = f'{NAMES[ARCH]}, {device}'
    return [title, '-' * len(title), '', rule, head, rule, *body, rule, '']


def main(size=SIZE, *devices):
    with tempfile.TemporaryDirectory(prefix='experiment-') as directory, \
            contextlib.ExitStack() as guests:
        def start(*args, **kwargs):
            guest = guests.enter_context(
                contextlib.closing(Guest(directory, *args, **kwargs)))
            guest.connect()
            guest.begin()
            return guest

        for device in devices or DRIVERS:
            own = pathlib.Path(directory, device)
            own.mkdir()
            found = receive(start, own, UP, device, int(size))
            print(*table(device, found), sep='\n', flush=True)


if __name__ == '__main__':
    main(*sys.argv[1:])
