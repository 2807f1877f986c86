# SPDX-License-Identifier: GPL-2.0-or-later
"""Who looks at a guest from outside, from its beginning on: a profile, and
query-stats.
"""

import pathlib
import struct
import tempfile

from qemu import OURS
from results import differs, require

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
    require(differs(stream[:len(HEADER)], HEADER))
    at = len(HEADER)
    samples = 0
    while at < len(stream):
        kind, _, size = RECORD.unpack_from(stream, at)
        samples += kind == SAMPLE
        at += size
    require(differs(at, len(stream)))
    return samples


class Observers:
    """Those of a machine, which is given the options."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.directory.name, 'data')
        self.options = ['-object', f'pmu-profile,id=p0,period={PERIOD},'
                        f'callchain=4,file={self.path}']

    def instructions(self, qemu):
        """So many since it was asked first."""
        result, = qemu.command(
            'query-stats', target='vm',
            providers=[{'provider': 'pmu', 'names': ['instructions']}])
        return result['stats'][0]['value']

    def check(self, qemu):
        """Of a machine that is stopped: none has missed anything."""
        lost, samples = (qemu.command('qom-get', path='/objects/p0',
                                      property=name)
                         for name in ('lost', 'samples'))
        require(differs(lost, 0))
        require(differs(samples, self.instructions(qemu) // PERIOD))
        return samples

    def end(self, qemu):
        """The profile is whole."""
        samples = self.check(qemu)
        qemu.command('object-del', id='p0')
        require(differs(count_samples(self.path.read_bytes()), samples))


def leave_observed(bare, machine, go_on):
    """What observes is at the source as it was before, and goes on there.

    go_on() lets the guest do so many rounds.
    """
    observers = Observers()
    with bare.start(OURS, machine, *observers.options) as qemu:
        require(differs(observers.instructions(qemu), 0))
        go_on(qemu, 1000)
        qemu.leave(bare.state.name)
        before = observers.check(qemu)
        # Of two instructions or more, so that there is a sample among them.
        go_on(qemu, PERIOD)
        qemu.command('stop')
        require(None if observers.check(qemu) > before
                else 'the profile has ended')
        observers.end(qemu)
