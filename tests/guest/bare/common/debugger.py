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


class Program:
    """The guest's, and what is to be known of its processor.

    @counter is the number of the program counter among gdb's registers.
    """

    def __init__(self, elf, nm, counter, order):
        self.elf = elf
        self.nm = nm
        self.counter = counter
        self.order = order

    def symbols(self):
        """Addresses by name."""
        lines = subprocess.run([self.nm, self.elf], capture_output=True,
                               text=True, check=True).stdout.splitlines()
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

    def place(self, program):
        """Where the CPU that stopped stands."""
        value = bytes.fromhex(self.ask(f'p{program.counter:x}'))
        return int.from_bytes(value, program.order)

    def store(self, address, value, order):
        """Write a variable of 8 bytes."""
        data = value.to_bytes(8, order).hex()
        if self.ask(f'M{address:x},8:{data}') != 'OK':
            raise EOFError('QEMU does not write to memory')

    def stop_after(self, seconds):
        """Resume, and stop the machine wherever it is then."""
        self.send('c')
        time.sleep(seconds)
        self.socket.sendall(b'\x03')
        self.receive()

    def running(self, text):
        """Resume, until the machine stops; false if it has ended."""
        return self.ask(text)[0] in 'TS'


def interfere(path, program, timeout, beginnings, stored):
    """
    Stop at @beginnings, those of everything that is counted, and take steps
    from there; then stop at every store to @stored; and let go in the end.
    """
    address = program.symbols()
    places = [address[name] for name in beginnings]
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
        stub.point('Z', WRITE_WATCHPOINT, address[stored], 8)
        for _ in range(30):
            if not stub.running('c'):
                return
        stub.point('z', WRITE_WATCHPOINT, address[stored], 8)
        stub.send('D')
    except (EOFError, ConnectionError):
        # The guest came to its end first.
        pass
    finally:
        stub.close()


def steps_stuck(stub, program, steps):
    """Take steps; returns where one did not move, or None."""
    before = stub.place(program)
    for _ in range(steps):
        stub.running('s')
        after = stub.place(program)
        if after == before:
            return f'a step at {before:#x} does not move'
        before = after
    return None


def wrong_step_of_nops(stub, program, stops):
    """
    Stop the suite "step" in the midst of its nops, and take a step from there;
    returns which of them is not one instruction, or that there were none, or
    None.
    """
    address = program.symbols()
    inside = range(address['step_nops'], address['step_nops_end'])
    stub.point('Z', BREAKPOINT, address['step_stopped'])
    if not stub.running('c'):
        raise EOFError('step_stopped is not reached')
    stub.point('z', BREAKPOINT, address['step_stopped'])
    stub.ask(f'Qqemu.sstep={STEP_MASKED}')
    stub.store(address['step_waits'], 1, program.order)
    steps = 0
    wrong = None
    for _ in range(stops):
        stub.stop_after(0.002)
        before = stub.place(program)
        stub.running('s')
        after = stub.place(program)
        steps += before in inside
        if before in inside and after != before + 1:
            wrong = wrong or f'a step at {before:#x} ends at {after:#x}'
    stub.store(address['step_waits'], 0, program.order)
    return wrong if steps else 'no stop was among the nops'


def step_through(path, program, timeout, complain):
    """
    Stop in each loop of the suite "step", time and again, and take steps from
    there; call @complain if one does not move.
    """
    labels = [(address, name) for name, address in program.symbols().items()
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
                stuck = steps_stuck(stub, program, 61)
                if stuck:
                    complain(f'{name}: {stuck}')
                    break
            stub.point('z', BREAKPOINT, address)
        wrong = wrong_step_of_nops(stub, program, stops=200)
        if wrong:
            complain(wrong)
        stub.send('D')
    except (EOFError, ConnectionError) as error:
        complain(str(error))
    finally:
        stub.close()
