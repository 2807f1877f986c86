# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU, ours or Debian's: start it, look at its guest, migrate it to a file.
"""

import contextlib
import os
import pathlib
import re
import subprocess
import tempfile
import time

import pytest

from linux_guest import BUILD, qemu_of
from qmp import Closed, Failure, Monitor

ARCH = os.environ.get('ARCH', 'x86_64')
FIRMWARE = BUILD / 'firmware' / 'usr' / 'share'

# Stock is of 10.0, and ours may be of a later series.
IS_LATER = os.environ.get('QEMU_SERIES', '10.0') != '10.0'
# The newest types that both have.
NEWEST = {'pc': 'pc-i440fx-10.0', 'q35': 'pc-q35-10.0',
          'pseries': 'pseries-10.0'}

# A guest that makes no progress fails its test; not one on a busy host.
SECONDS = 600

# What QEMU says of a subsection of a CPU's state that it does not know.
NOT_KNOWN = "error while loading state for instance 0x0 of device 'cpu'"


class Refused(Exception):
    """QEMU has ended; what it said."""


def refused(message):
    """Return a context in which QEMU has to end with this message."""
    return pytest.raises(Refused, match=re.escape(message))


def until(done):
    """Look at a guest until done() is true."""
    end = time.monotonic() + SECONDS
    while not done():
        if time.monotonic() > end:
            raise Failure(f'the guest does not come so far in {SECONDS} s')


class Which:
    """One of the two, by name."""

    def __init__(self, name, path):
        self.name = name
        self.path = str(path)

    def __str__(self):
        return self.name


OURS = Which('ours', os.environ.get('QEMU') or qemu_of(ARCH))
STOCK = Which('stock', BUILD / f'stock-{ARCH}' / 'qemu')
# QEMU of a later series without anything of ours: of the same series as ours,
# see conftest.py, or that of another directory
PEER = os.environ.get('PEER')
LATER = Which('later', pathlib.Path(PEER or BUILD / 'qemu-stock',
                                    f'qemu-system-{ARCH}'))
STOCKS = [STOCK, LATER] if IS_LATER or PEER else [STOCK]


class Qemu:
    """A QEMU with a guest that is stopped, and its monitor."""

    def __init__(self, which, *options):
        command = [which.path, '-nodefaults', '-display', 'none', '-S',
                   '-L', FIRMWARE / 'qemu', '-L', FIRMWARE / 'seabios',
                   '-qmp', 'stdio', *options]
        self.said = tempfile.TemporaryFile(mode='w+', errors='replace')
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.said, text=True)

    def __enter__(self):
        try:
            with self._may_refuse():
                self.monitor = Monitor(self.process.stdout, self.process.stdin)
            self.command('migrate-set-capabilities', capabilities=[
                {'capability': 'events', 'state': True}])
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """End it, whatever it does."""
        self.process.kill()
        self.process.communicate()
        self.said.close()

    def errors(self):
        """What it has said on standard error, but for warnings."""
        self.said.seek(0)
        return ''.join(line for line in self.said if ': warning: ' not in line)

    @contextlib.contextmanager
    def _may_refuse(self):
        """What ends QEMU raises Refused."""
        try:
            yield
        except Closed:
            self.process.wait()
            raise Refused(self.errors()) from None

    def command(self, name, **arguments):
        """A command of QMP; its answer."""
        with self._may_refuse():
            return self.monitor.command(name, **arguments)

    def human(self, line):
        """A command of the other monitor; what it prints."""
        with self._may_refuse():
            return self.monitor.human(line)

    def register(self, name):
        return int(self.human(f'p/x ${name}'), 16)

    def memory(self, address, size):
        """What the guest's memory holds."""
        with tempfile.NamedTemporaryFile() as file:
            self.command('pmemsave', val=address, size=size,
                         filename=file.name)
            return pathlib.Path(file.name).read_bytes()

    def number(self, address):
        """An 8-byte number in the guest's memory."""
        return int.from_bytes(self.memory(address, 8),
                              'big' if ARCH == 'ppc64' else 'little')

    def _migration_ends(self):
        """Wait for that, or for the end of QEMU."""
        status = None
        while status not in ('completed', 'failed'):
            with self._may_refuse():
                event = self.monitor.event()
            if event['event'] == 'MIGRATION':
                status = event['data']['status']
        return status

    def leave(self, path):
        """Stop the guest and migrate it to a file."""
        self.command('stop')
        self.monitor.events.clear()
        self.command('migrate', uri=f'file:{path}')
        status = self._migration_ends()
        if status != 'completed':
            raise Failure(f'leaving: {status}: {self.errors()}')
        # Only then could the guest go on here.
        self.monitor.wait('the end of a migration', lambda: self.command(
            'query-status')['status'] == 'postmigrate')

    def arrive(self, path):
        """Load it in a machine that was started with INCOMING."""
        self.command('migrate-incoming', uri=f'file:{path}')
        self._migration_ends()


INCOMING = ['-incoming', 'defer']


class Bare:
    """A program in the place of firmware, and a file for a machine's state."""

    def __init__(self, image):
        self.bios = tempfile.NamedTemporaryFile(suffix='.bin')
        self.bios.write(image)
        self.bios.flush()
        self.state = tempfile.NamedTemporaryFile()

    def start(self, which, machine, *options):
        qemu = Qemu(which, *machine, '-bios', self.bios.name, *options)
        qemu.program = self             # which its file must not outlive
        return qemu
