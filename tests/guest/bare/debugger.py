# Bare-metal test guest: a debugger that gets in the way
#
# Speaks gdb's remote protocol with QEMU's stub, just enough to stop, to step
# and to watch. What it does must not change a single count.
#
# SPDX-License-Identifier: GPL-2.0-or-later

import itertools
import re
import socket
import subprocess
import time

BREAKPOINT, WRITE_WATCHPOINT = 1, 2

# What a step leaves out (QEMU's SSTEP_*): nothing, or interrupts and timers.
STEP, STEP_MASKED = 1, 7

# The number of RIP among the registers of gdb's amd64.
RIP = 16


def symbols(elf, nm='nm'):
    """Addresses of the symbols in an ELF file, by name."""
    lines = subprocess.run([nm, elf], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    fields = (line.split() for line in lines)
    return {f[2]: int(f[0], 16) for f in fields if len(f) == 3}


class Stub:
    """A connection to QEMU's gdb stub."""

    def __init__(self, path, timeout):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        deadline = time.monotonic() + timeout
        while self.socket.connect_ex(path):
            if time.monotonic() > deadline:
                raise TimeoutError
            time.sleep(0.01)

    def close(self):
        self.socket.close()

    def read_byte(self):
        byte = self.socket.recv(1)
        if not byte:
            raise EOFError('QEMU closed the connection')
        return byte

    def send(self, text):
        data = text.encode()
        self.socket.sendall(b'$%s#%02x' % (data, sum(data) & 0xff))

    def receive(self):
        """The next packet, acknowledged."""
        while self.read_byte() != b'$':
            pass
        text = b''.join(iter(self.read_byte, b'#'))
        self.read_byte()
        self.read_byte()
        self.socket.sendall(b'+')
        return text.decode()

    def ask(self, text):
        self.send(text)
        return self.receive()

    def point(self, action, kind, address, length=1):
        if self.ask(f'{action}{kind},{address:x},{length:x}') != 'OK':
            raise EOFError(f'QEMU refused {action}{kind}')

    def rip(self):
        """Where the CPU that stopped stands."""
        return int.from_bytes(bytes.fromhex(self.ask(f'p{RIP:x}')), 'little')

    def running(self, text):
        """Resume, until the machine stops; false if it has ended."""
        return self.ask(text)[0] in 'TS'


def interfere(path, elf, timeout):
    """
    Stop at the beginning of everything that is counted and take steps from
    there; then stop at every store to a variable that tests store to; and
    let go in the end.
    """
    address = symbols(elf)
    places = [address['run_kernel'], address['run_user']]
    stub = Stub(path, timeout)
    try:
        # Interrupts and timers go on while stepping, the PMU's with them.
        stub.ask(f'Qqemu.sstep={STEP}')
        for place in places:
            stub.point('Z', BREAKPOINT, place)
        for length in itertools.islice(itertools.cycle((30, 75, 400)), 60):
            if not stub.running('c'):
                return
            for _ in range(length):
                stub.running('s')
        for place in places:
            stub.point('z', BREAKPOINT, place)
        stub.point('Z', WRITE_WATCHPOINT, address['spare'], 8)
        for _ in range(30):
            if not stub.running('c'):
                return
        stub.point('z', WRITE_WATCHPOINT, address['spare'], 8)
        stub.send('D')
    except (EOFError, ConnectionError):
        # The guest came to its end first.
        pass
    finally:
        stub.close()


def steps_stuck(stub, steps):
    """Take steps; returns where one did not move, or None."""
    before = stub.rip()
    for _ in range(steps):
        stub.running('s')
        after = stub.rip()
        if after == before:
            return f'a step at {before:#x} does not move'
        before = after
    return None


def step_through(path, elf, timeout, complain):
    """
    Stop in each loop of the suite "step", time and again, and take steps from
    there; call @complain if one does not move.
    """
    labels = [(address, name) for name, address in symbols(elf).items()
              if re.fullmatch(r'step_.*_here', name)]
    stub = Stub(path, timeout)
    try:
        for address, name in sorted(labels):
            masked = '_masked_' in name
            stub.ask(f'Qqemu.sstep={STEP_MASKED if masked else STEP}')
            stub.point('Z', BREAKPOINT, address)
            for _ in range(12):
                if not stub.running('c'):
                    raise EOFError(f'{name} is not reached')
                stuck = steps_stuck(stub, 61)
                if stuck:
                    complain(f'{name}: {stuck}')
                    break
            stub.point('z', BREAKPOINT, address)
        stub.send('D')
    except (EOFError, ConnectionError) as error:
        complain(str(error))
    finally:
        stub.close()
