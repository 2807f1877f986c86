# Bare-metal test guest: a debugger that does what the guest asks for
#
# It sits at QEMU's gdb stub. Where the suite debugger stops (test-debugger.c),
# r3 has the address of a request: a register is read or written, or the
# monitor is asked for it.
#
# SPDX-License-Identifier: GPL-2.0-or-later

import re
import struct

from debugger import BREAKPOINT, Stub

READ, WRITE, ASK_MONITOR = range(3)


class Assistant(Stub):
    """A connection that knows the registers' names."""

    def __init__(self, path, timeout):
        super().__init__(path, timeout)
        self.numbers = {}
        number = -1
        for xml in re.findall(r'href="(.*?)"', self.feature('target.xml')):
            for tag in re.findall(r'<reg .*?>', self.feature(xml)):
                given = re.search(r'regnum="(\d+)"', tag)
                number = int(given[1]) if given else number + 1
                self.numbers[re.search(r'name="(.*?)"', tag)[1]] = number

    def feature(self, name):
        text = ''
        while True:
            part = self.ask(
                f'qXfer:features:read:{name}:{len(text):x},800')
            text += part[1:]
            if part[0] != 'm':
                return text

    def register(self, name):
        return int(self.ask(f'p{self.numbers[name]:x}'), 16)

    def set_register(self, name, value):
        if self.ask(f'P{self.numbers[name]:x}={value:016x}') != 'OK':
            raise EOFError(f'QEMU refused to write {name}')

    def memory(self, address, size):
        return bytes.fromhex(self.ask(f'm{address:x},{size:x}'))

    def set_memory(self, address, data):
        self.ask(f'M{address:x},{len(data):x}:{data.hex()}')

    def monitor(self, command):
        text = ''
        reply = self.ask('qRcmd,' + command.encode().hex())
        while reply[0] == 'O' and reply != 'OK':
            text += bytes.fromhex(reply[1:]).decode()
            reply = self.receive()
        return text

    def serve(self):
        """
        Do what the guest asks for, where it has stopped; then skip the
        instruction, which would stop it again.
        """
        self.set_register('pc', self.register('pc') + 4)
        request = self.register('r3')
        address, how, value = struct.unpack('>3Q', self.memory(request, 24))
        name = self.memory(address, 16).split(b'\0')[0].decode()
        if how == WRITE:
            self.set_register(name, value)
            return
        value = (self.register(name) if how == READ
                 else int(self.monitor(f'print/x ${name}'), 0))
        self.set_memory(request + 16, struct.pack('>Q', value))


def assist(path, program, timeout):
    """Serve until the machine ends."""
    address = program.symbols()
    stub = Assistant(path, timeout)
    try:
        for place in ('debugger_stop', 'debugger_stop_problem'):
            stub.point('Z', BREAKPOINT, address[place], 4)
        while stub.running('c'):
            stub.serve()
    except (EOFError, ConnectionError):
        # The guest came to its end.
        pass
    finally:
        stub.close()
