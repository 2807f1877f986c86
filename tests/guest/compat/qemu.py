# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU, ours or Debian's: start it, look at its guest, migrate it to a file.
"""

import json
import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
BUILD = pathlib.Path(os.environ.get('BUILD', ROOT / 'build'))
ARCH = os.environ.get('ARCH', 'x86_64')
FIRMWARE = BUILD / 'firmware' / 'usr' / 'share'

# A guest that makes no progress fails its test.
SECONDS = 60


class Refused(Exception):
    """QEMU has ended; what it said."""


class Failure(Exception):
    """A test that is not as it has to be."""


class Which:
    """One of the two, by name."""

    def __init__(self, name, path):
        self.name = name
        self.path = str(path)

    def __str__(self):
        return self.name


OURS = Which('ours', os.environ.get('QEMU',
                                    BUILD / 'qemu' / f'qemu-system-{ARCH}'))
STOCK = Which('stock', BUILD / f'stock-{ARCH}' / 'qemu')


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
        self.events = []

    def __enter__(self):
        try:
            self._message()
            self.command('qmp_capabilities')
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

    def _message(self):
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            raise Refused(self.errors())
        return json.loads(line)

    def command(self, name, **arguments):
        """A command of QMP; its answer."""
        try:
            json.dump({'execute': name, 'arguments': arguments},
                      self.process.stdin)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass                        # its answer is the end
        while True:
            answer = self._message()
            if 'event' in answer:
                self.events.append(answer)
            elif 'error' in answer:
                raise Failure(f"{name}: {answer['error']['desc']}")
            else:
                return answer['return']

    def human(self, line):
        """A command of the other monitor; what it prints."""
        return self.command('human-monitor-command', **{'command-line': line})

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
        while True:
            for event in self.events:
                if event['event'] == 'MIGRATION' \
                        and event['data']['status'] in ('completed', 'failed'):
                    return event['data']['status']
            self.events = [self._message()]

    def leave(self, path):
        """Stop the guest and migrate it to a file."""
        self.command('stop')
        self.events = []
        self.command('migrate', uri=f'file:{path}')
        status = self._migration_ends()
        if status != 'completed':
            raise Failure(f'leaving: {status}: {self.errors()}')

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
