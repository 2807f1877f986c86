# SPDX-License-Identifier: GPL-2.0-or-later
"""Who looks at a guest from outside, from its beginning on: a profile, and
query-stats, which has what that counts.
"""

import pathlib
import struct
import tempfile

from qemus import OURS

# The guest runs freely while QEMU, which writes the samples, may be held up by
# the disk: it has room for those of several seconds.
PERIOD = 100003

# perf's pipes: the magic with the size of the header, and records that begin
# with their type, something else, and their size.
HEADER = b'PERFILE2' + struct.pack('=Q', 16)
RECORD = struct.Struct('=IHH')
SAMPLE = 9


def count_samples(stream):
    """In a stream that ends with a whole record."""
    assert stream[:len(HEADER)] == HEADER
    at = len(HEADER)
    samples = 0
    while at < len(stream):
        kind, _, size = RECORD.unpack_from(stream, at)
        samples += kind == SAMPLE
        at += size
    assert at == len(stream)
    return samples


class Observers:
    """Those of a machine, which is given the options."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.directory.name, 'data')
        self.options = ['-object', f'pmu-profile,id=p0,period={PERIOD},'
                        f'callchain=4,file={self.path}']

    def instructions(self, qemu):
        """So many since the profile began."""
        result, = qemu.command(
            'query-stats', target='vm',
            providers=[{'provider': 'pmu', 'names': ['instructions']}])
        return result['stats'][0]['value']

    def check(self, qemu):
        """Of a machine that is stopped: none has missed anything."""
        lost, samples = (qemu.command('qom-get', path='/objects/p0',
                                      property=name)
                         for name in ('lost', 'samples'))
        assert lost == 0
        assert samples == self.instructions(qemu) // PERIOD
        return samples

    def end(self, qemu):
        """The profile is whole."""
        samples = self.check(qemu)
        qemu.command('object-del', id='p0')
        assert count_samples(self.path.read_bytes()) == samples


def leave_observed(bare, machine, go_on):
    """What observes is at the source as it was before, and goes on there.

    go_on() lets the guest do so many rounds.
    """
    observers = Observers()
    with bare.start(OURS, machine, *observers.options) as qemu:
        assert observers.instructions(qemu) == 0
        go_on(qemu, 1000)
        qemu.leave(bare.state.name)
        before = observers.check(qemu)
        # Of two instructions or more, so that there is a sample among them.
        go_on(qemu, PERIOD)
        qemu.command('stop')
        assert observers.check(qemu) > before, 'the profile has ended'
        observers.end(qemu)
