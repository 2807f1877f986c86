# SPDX-License-Identifier: GPL-2.0-or-later
"""How often each instruction was executed, by file and by function.

QEMU counts by addresses of the guest.  What was mapped at an address is known
from the kernel; if that were several files, or several places of one file, in
several processes, a checksum of the page says which it was.
"""

import bisect
import collections
import functools
import os
import re
import shutil
import subprocess

from . import elf
from .guest import CANNOT_RUN, Failure

UNKNOWN = '[unknown]'
# Types of symbols, as nm shows them: functions, also weak and local ones, and
# those whose variant is chosen at run time.
FUNCTIONS = 'TtWwi'
CHOSEN = 'i'
# A symbol of a function for Power, as readelf shows it
LOCAL_ENTRY = re.compile(r'^ *\d+: ([0-9a-f]+) .*<localentry>: (\d+)\]', re.M)


def run_tool(words, text=None):
    """The output of a program of binutils; empty if it fails."""
    if not shutil.which(words[0]):
        raise Failure(f'{words[0]} is missing; Debian\'s package binutils has '
                      'it', CANNOT_RUN)
    return subprocess.run(words, input=text, capture_output=True, text=True,
                          errors='replace', check=False).stdout


class Symbols:
    """The functions of a file."""

    def __init__(self, path):
        self.path = path
        self.debug = self._debug_file()
        self.chosen = set()
        self.by_name = collections.defaultdict(set)
        found = {}
        for options in (['-D'], []):
            for name in {path, self.debug}:
                self._read(run_tool(['nm', '--defined-only', '-S', *options,
                                     name]), found)
        self.starts = sorted(found)
        self.found = [found[start] for start in self.starts]
        self.local = self._local_entries()
        self._demangle()

    def _local_entries(self):
        """How far from its start a function of Power's is entered from its own
        file; whoever comes from elsewhere executes what is before, too.
        """
        if elf.machine(self.path) != elf.PPC64:
            return {}
        # A distance of 1 stands for none.
        return {int(start, 16): int(distance) & -4
                for start, distance in LOCAL_ENTRY.findall(
                    run_tool(['readelf', '-sW', self.debug]))}

    def entry(self, start):
        """The first instruction that all callers of a function execute."""
        return start + self.local.get(start, 0)

    def _debug_file(self):
        """Where Debian's packages of symbols have them, if one is there."""
        build_id = elf.build_id(self.path)
        if build_id:
            name = f'/usr/lib/debug/.build-id/{build_id[:2]}/' \
                   f'{build_id[2:]}.debug'
            if os.path.exists(name):
                return name
        return self.path

    def _read(self, text, found):
        for line in text.splitlines():
            words = line.split(None, 3)
            if len(words) == 3 or len(words[1]) == 1:
                words = [words[0], '0', words[1], ' '.join(words[2:])]
            start, size, kind, name = words
            if kind not in FUNCTIONS:
                continue
            name = name.partition('@')[0]
            at = int(start, 16)
            self.by_name[name].add(at)
            if kind == CHOSEN:
                self.chosen.add(name)
            new = (name.startswith('_'), len(name), name, int(size, 16))
            found[at] = min(found.get(at, new), new)

    def _demangle(self):
        """Names as in the source; the others are known, too."""
        mangled = [one[2] for one in self.found if one[2].startswith('_Z')]
        names = dict(zip(mangled, run_tool(
            ['c++filt'], '\n'.join(mangled)).splitlines())) if mangled else {}
        for name, shown in names.items():
            self.by_name[shown] |= self.by_name[name]
        self.found = [(names.get(name, name), size)
                      for _, _, name, size in self.found]

    def at(self, address):
        """The function with an address: its name and where it begins."""
        i = bisect.bisect_right(self.starts, address) - 1
        if i >= 0:
            name, size = self.found[i]
            if not size or address < self.starts[i] + size:
                return name, self.starts[i]
        return None, None

    def lines(self, addresses):
        """The file and line of each address, as far as known."""
        addresses = sorted(addresses)
        text = run_tool(['addr2line', '-e', self.debug],
                        '\n'.join(f'{one:x}' for one in addresses) + '\n')
        found = {}
        for address, line in zip(addresses, text.splitlines()):
            path, _, number = line.partition(' (')[0].rpartition(':')
            if number.isdigit() and int(number) and path != '??':
                found[address] = (os.path.normpath(path), int(number))
        return found


@functools.lru_cache(maxsize=None)
def symbols(path):
    return Symbols(path)


class Census:
    """The executions of each instruction of a run."""

    def __init__(self, measurement):
        self.maps = [one for one in measurement.maps
                     if not one[3].startswith('/dev/vpmu-perf')]
        self.files = list(dict.fromkeys(
            path for *_, path in self.maps if os.path.isfile(path)))
        self.counts = collections.Counter()
        self.pages = {}
        for line in measurement.census.splitlines():
            self._take(line.split())
        self.total = sum(self.counts.values())
        counted = measurement.counts.get('instructions:u')
        if counted not in (None, self.total):
            raise Failure(f'QEMU has attributed {self.total:,} instructions, '
                          f'and counted {counted:,}: this is a bug; please '
                          'report it', CANNOT_RUN)

    def _find_map(self, page, checksum):
        """What was mapped at a page where the code was; None if unknown."""
        maps = [one for one in self.maps if one[0] <= page < one[0] + one[1]]
        if len(maps) > 1:
            same = [one for one in maps
                    if elf.page_checksum(one[3], page - one[0] + one[2])
                    == checksum]
            maps = same or [one for one in maps if one[3] not in self.files]
        # Copies of a file are the same: let it be one of them in each run.
        return min(maps, default=None,
                   key=lambda one: (one[3] != self.program(), one[3], one))

    def _where(self, address, checksum):
        """The file with some code, and the address in it."""
        page = address & -elf.PAGE
        if (page, checksum) not in self.pages:
            self.pages[page, checksum] = self._find_map(page, checksum)
        found = self.pages[page, checksum]
        if not found:
            return UNKNOWN, address
        start, _, offset, path = found
        if not path.startswith('/'):
            return path, address - start
        return path, elf.address_of(path, address - start + offset)

    def _take(self, words):
        path, at = self._where(int(words[0], 16), int(words[1], 16))
        for word in words[2:]:
            length, _, count = word.partition(':')
            self.counts[path, at] += int(count)
            at += int(length)

    def program(self):
        """The program's file, which was mapped first."""
        return self.files[0] if self.files else UNKNOWN

    def functions(self):
        """By file and function: its address, and counts by address."""
        found = collections.defaultdict(dict)
        for (path, address), count in self.counts.items():
            name, start = (symbols(path).at(address)
                           if os.path.isfile(path) else (None, None))
            found[path, name or '[unknown]', start][address] = count
        return found

    def calls(self, name):
        """How often functions of that name are entered; None if none is."""
        entries = None
        for path in self.files:
            for start in symbols(path).by_name.get(name, ()):
                entries = (entries or 0) + self.entries(path, start)
        return entries

    def entries(self, path, start):
        """How often the function that begins there is entered."""
        return self.counts[path, symbols(path).entry(start)]

    def is_chosen(self, name):
        """Whether the variant of a function is chosen at run time."""
        return any(name in symbols(path).chosen for path in self.files)
