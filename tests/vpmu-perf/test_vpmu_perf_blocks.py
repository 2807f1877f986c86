# SPDX-License-Identifier: GPL-2.0-or-later
"""The blocks of code that QEMU has translated, which later calls use."""

import collections
import json
import pathlib
import re
import struct
import subprocess
import time
import zlib

import pytest

from installed import ARCH, on_x86

# Floating point, system calls, and a lot of the C library, but nothing that
# locks: on Power, an interrupt in the middle of a lock costs instructions.
PROGRAM = r'''
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static double numbers[500];

static int compare(const void *one, const void *other)
{
    double difference = *(const double *)one - *(const double *)other;

    return difference < 0 ? -1 : difference > 0;
}

int main(int argc, char **argv)
{
    char *text = strdup(argv[0]), line[64];
    int i;

    for (i = 0; i < 500; i++) {
        numbers[i] = sin(i) * sqrt(i + argc);
    }
    qsort(numbers, 500, sizeof(numbers[0]), compare);
    for (i = 0; i < 500; i += 50) {
        snprintf(line, sizeof(line), "%.9f %zu\n", numbers[i], strlen(text));
        write(1, line, strlen(line));
    }
    free(text);
    _exit(7);
}
'''
# At least so many blocks are executed by a guest that goes on, and perf.
MANY = 10000
COUNTED = {
    'exact': [],
    'cpus': ['--cpus', '2'],
    'core': ['--core', 'skylake' if ARCH == 'x86_64' else 'power9'],
}
EVENTS = {'exact': 'instructions:u,branches:u',
          'cpus': 'instructions:u,branches:u',
          'core': 'instructions:u,cycles:u,branch-misses:u,'
                  'L1-dcache-load-misses:u'}


class Guest:
    """A guest of vpmu-perf, and the blocks in its cache."""

    def __init__(self, place, kind='exact'):
        self.place = place
        self.kind = kind
        self.program = place.compile('blocks', PROGRAM,
                                     '-Wl,--no-as-needed', '-lm')

    def call(self, *options):
        """The counts, and how many blocks were translated and taken."""
        status, out, err = self.place.run(
            '--arch', ARCH, *COUNTED[self.kind], '--verbose', *options,
            'stat', '-x,', '-e', EVENTS[self.kind], self.program)
        assert status == 7, err
        counts = re.findall(r'^(\d+),,([\w-]+)', err, re.M)
        assert len(counts) == EVENTS[self.kind].count(',') + 1, err
        found = re.search(r'(\d+) blocks of code were translated, and (\d+) ',
                          err)
        assert found, err
        return (out, counts), int(found[1]), int(found[2])

    @property
    def blocks(self):
        """The file of the guest that was used last."""
        cache = self.place.top / 'home' / 'cache' / 'vpmu-perf'
        return max(cache.glob('*/memory'),
                   key=lambda path: path.parent.stat().st_mtime).with_name(
                       'blocks')

    def begin(self):
        """Counts of a call that begins without blocks, and keeps its own."""
        self.call()
        self.blocks.unlink(missing_ok=True)
        counts, translated, taken = self.call()
        assert translated > MANY and not taken
        assert self.blocks.exists()
        return counts


@pytest.fixture
def guest(place):
    return Guest(place)


@pytest.mark.parametrize('kind', COUNTED)
def test_counts_are_the_same(place, kind):
    guest = Guest(place, kind)
    counts = guest.begin()
    for _ in range(3):
        again, translated, taken = guest.call()
        assert again == counts
    assert translated < taken / 10


# As in accel/tcg/kept/file.c and internal.h; sizes are of 32 bits.
HEADER = struct.Struct('8s32s6I')
BLOCK = struct.Struct('5I')
CALLS = 2048
PAGE = 4096
# Of the translated code, what has a checksum of its own
PART = 65536


class File:
    """The blocks of a file: (guest code, translated code and its place)."""

    def __init__(self, path):
        data = path.read_bytes()
        _, _, _, nr_lists, self.nr, code_size, size, _ = \
            HEADER.unpack_from(data)
        self.calls = struct.unpack_from(f'<{CALLS}Q', data, HEADER.size)
        self.begin = begin = self.pages(HEADER.size + 8 * CALLS)
        self.translated = data[begin:begin + size]
        self.index = begin + size
        at = self.index + size // PART * 4 + 4 * nr_lists
        self.code = code = data[at + BLOCK.size * self.nr:]
        assert len(code) == code_size
        blocks = list(BLOCK.iter_unpack(data[at:at + BLOCK.size * self.nr]))
        ends = [block[2] for block in blocks[1:]] + [code_size]
        self.header = self.size_of_header(blocks)
        self.blocks = collections.defaultdict(list)
        self.places = [tb for tb, *_ in blocks]
        for (tb, length, place, found_by, _), end in zip(blocks, ends):
            self.blocks[found_by, code[place:end]].append(
                (tb + self.header, tb + length))

    @staticmethod
    def pages(size):
        return -(-size // PAGE) * PAGE

    def size_of_header(self, blocks):
        """A TranslationBlock has the place of its code, right after it."""
        for field in range(0, 160, 8):
            sizes = {struct.unpack_from('<Q', self.translated, tb + field)[0]
                     - tb for tb, *_ in blocks[:100]}
            if len(sizes) == 1:
                return sizes.pop()
        raise AssertionError('no place of code')

    def target(self, at):
        """Where a distance of 32 bits leads to; the table is before 0."""
        return at + 4 + struct.unpack_from('<i', self.translated, at)[0]

    def where(self, at, first_slot):
        """Other code, or a function."""
        to = self.target(at)
        slot = (to - first_slot) // 8
        if self.translated[at - 2] == 0xff and \
                self.translated[at - 1] in (0x15, 0x25) and 0 <= slot < CALLS:
            return 'function', self.calls[slot]
        return 'code', to

    def first_slot(self):
        """The first place in the table of functions, which all blocks share."""
        return min(to for match in re.finditer(rb'\xff[\x15\x25](?=...\xff)',
                                               self.translated, re.S)
                   if -self.pages(8 * CALLS + PAGE)
                   < (to := self.target(match.end())) < 0)


def differences(one, code, other, as_other):
    """Where the same block is not the same in two files.

    The last block of a file has no bytes that align the next one.
    """
    a, b = code[0], as_other[0]
    size = min(code[1] - a, as_other[1] - b)
    slots = one.first, other.first
    n = 0
    while n < size:
        if one.translated[a + n] == other.translated[b + n]:
            n += 1
            continue
        for back in range(4):
            if one.where(a + n - back, slots[0]) == \
                    other.where(b + n - back, slots[1]):
                n += 4 - back
                break
        else:
            yield n
            n += 1


def test_blocks_are_of_no_process(guest):
    """Two processes, at other addresses, translate the same code alike."""
    files = []
    for _ in range(2):
        guest.begin()
        files.append(File(guest.blocks))
    one, other = files
    for file in files:
        file.first = file.first_slot()
    common = one.blocks.keys() & other.blocks.keys()
    assert len(common) > MANY
    for key in sorted(common)[::10]:
        code, as_other = one.blocks[key][0], other.blocks[key][0]
        assert not list(differences(one, code, other, as_other)), key


@on_x86
@pytest.mark.parametrize('what', ['all', 'header', 'code', 'index', 'short'])
def test_file_is_damaged(guest, what):
    counts = guest.begin()
    data = bytearray(guest.blocks.read_bytes())
    size = len(data)
    parts = {'all': range(0, size, 1001), 'header': range(100, 20000, 1001),
             'code': range(32768, size // 2, 501),
             'index': range(size - (1 << 20), size, 101), 'short': []}
    for at in parts[what]:
        data[at] ^= 0xff
    if what == 'short':
        del data[size // 2:]
    guest.blocks.write_bytes(data)
    assert guest.call()[0] == counts
    assert guest.call()[0] == counts


def invalid(path):
    """A file of blocks that are invalid instructions, but whole."""
    file = File(path)
    data = bytearray(path.read_bytes())
    for place in file.places:
        at = file.begin + place + file.header
        data[at:at + 2] = b'\x0f\x0b'
    for n, at in enumerate(range(file.begin, file.index, PART)):
        struct.pack_into('<I', data, file.index + 4 * n,
                         zlib.crc32(data[at:at + PART]))
    checksum = HEADER.size - 4
    data[checksum:HEADER.size] = bytes(4)
    whole = zlib.crc32(data[:HEADER.size + 8 * CALLS])
    whole = zlib.crc32(data[file.index:], whole)
    struct.pack_into('<I', data, checksum, whole)
    path.write_bytes(data)


@on_x86
def test_blocks_crash(guest):
    """QEMU crashes once, and not in each call from now on."""
    counts = guest.begin()
    invalid(guest.blocks)
    status, _, err = guest.place.run('stat', guest.program)
    assert status == 125
    assert 'QEMU has ended, with status -' in err
    assert 'the translated code that was kept is removed: call again' in err
    assert guest.call()[0] == counts


# A thousand functions, each in a page, which return a number, and then another.
CHANGES = r'''
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define FUNCTIONS 1000
#define PAGE 4096

int main(void)
{
    unsigned char code[] = { 0xb8, 0, 0, 0, 0, 0xc3 };
    unsigned char *pages = mmap(NULL, FUNCTIONS * PAGE,
                                PROT_READ | PROT_WRITE | PROT_EXEC,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned long sum = 0;
    int round, i;

    for (round = 0; round < 2; round++) {
        for (i = 0; i < FUNCTIONS; i++) {
            int number = i + round * FUNCTIONS;

            memcpy(code + 1, &number, sizeof(number));
            memcpy(pages + i * PAGE, code, sizeof(code));
            sum = sum * 3 + ((int (*)(void))(pages + i * PAGE))();
        }
    }
    printf("%lu\n", sum);
    return 0;
}
'''


@on_x86
def test_code_changes(place):
    """A block is kept for the code that it was translated from."""
    program = place.compile('changes', CHANGES)
    here = subprocess.run([program], check=True, capture_output=True).stdout
    for _ in range(3):
        status, out, err = place.run('run', program)
        assert (status, out) == (0, here), err


@on_x86
def test_file_cannot_be_written(guest):
    """What exists in its place stays, and the program's end is reported."""
    guest.begin()
    blocks = guest.blocks
    blocks.unlink()
    (blocks / 'something').mkdir(parents=True)
    status, _, err = guest.place.run('--verbose', 'run', guest.program)
    assert status == 7
    assert 'blocks are not kept for the next call: QEMU: The blocks' in err
    assert [path.name for path in blocks.parent.glob('blocks*')] == ['blocks']
    (blocks / 'something').rmdir()
    blocks.rmdir()


@on_x86
def test_file_of_another_cpu(guest):
    """A CPU's features decide what its code is translated to."""
    guest.begin()
    blocks = guest.blocks
    other = '--cpu', 'EPYC-v1'
    guest.call(*other)
    assert guest.blocks != blocks
    guest.blocks.write_bytes(blocks.read_bytes())
    _, translated, taken = guest.call(*other)
    assert translated > MANY and not taken
    assert guest.call(*other)[2] > MANY


class Machine:
    """A machine with blocks, without Linux, and its monitor."""

    def __init__(self, place, *words):
        self.process = subprocess.Popen(
            [place.prefix / 'bin' / 'qemu-system-x86_64', '-nodefaults',
             '-display', 'none', '-qmp', 'stdio', *map(str, words)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.command('qmp_capabilities')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def ask(self, name, **arguments):
        print(json.dumps({'execute': name, 'arguments': arguments}),
              file=self.process.stdin, flush=True)

    def answer(self):
        return next(one['return']
                    for one in map(json.loads, self.process.stdout)
                    if 'return' in one or 'error' in one)

    def command(self, name, **arguments):
        self.ask(name, **arguments)
        return self.answer()


@on_x86
@pytest.mark.parametrize('cpus', [1, 2])
def test_process_goes_on_after_a_flush(place, tmp_path, cpus):
    """What is written is flushed, and then taken by the same process."""
    with Machine(place, '-machine', 'q35', '-smp', cpus, '-accel',
                 f'tcg,blocks={tmp_path / "blocks"}') as machine:
        # The firmware translates some thousand blocks.
        while not machine.command('tcg-keep-blocks')['written']:
            time.sleep(0.1)
        machine.command('system_reset')
        while not machine.command('tcg-keep-blocks')['taken']:
            time.sleep(0.1)
        # Each may flush while the next one looks at the blocks.
        for _ in range(5):
            machine.command('system_reset')
            time.sleep(0.2)
            machine.command('stop')
            for _ in range(4):
                machine.ask('tcg-keep-blocks')
            for _ in range(4):
                machine.answer()
            machine.command('cont')


@on_x86
def test_page_tables_in_rom(place, tmp_path):
    """A CPU that translates does not wait for one that waits to translate."""
    firmware = tmp_path / 'firmware'
    code = place.top / 'programs' / 'tables.o'
    subprocess.run(['gcc', '-c', '-o', code,
                    pathlib.Path(__file__).with_name('tables-in-rom.S')],
                   check=True)
    subprocess.run(['objcopy', '-O', 'binary', code, firmware], check=True)
    with Machine(place, '-machine', 'pc', '-smp', 2, '-bios', firmware,
                 '-accel', f'tcg,blocks={tmp_path / "blocks"}') as machine:
        def turns():
            text = machine.command('human-monitor-command',
                                   **{'command-line': 'xp /2wd 0x40000'})
            return [int(word) for word in text.split()[1:]]

        while min(turns()) < 1000:
            time.sleep(0.1)
        before = turns()
        while any(now < old + 1000 for now, old in zip(turns(), before)):
            time.sleep(0.1)
        machine.command('stop')
