# SPDX-License-Identifier: GPL-2.0-or-later
"""vpmu-perf diff: what another build executes more or less, exactly."""

import collections
import difflib
import os

from ..errors import say
from . import calls, page
from .census import Census, symbols
from .compare import write_json
from .guest import PROGRAM_FAILED, Failure
from .options import add_results, names, parser

PROGRAM = '[program]'

EPILOG = """\
Examples:
  vpmu-perf diff old/benchmark new/benchmark -- --size 10
  vpmu-perf diff --html difference.html old/benchmark new/benchmark

Status: 0, also if there are differences; 2 for bad input; 3 if a program
failed; 125 if none could be run.
"""


def arguments(words):
    p = parser('diff', 'vpmu-perf diff [OPTION...] A B [-- ARGUMENT...]',
               'Run two builds of a program, and show by function and by line '
               'what B executes more or less than A.', EPILOG)
    p.add_argument('--calls', type=names, default=[], metavar='NAME[,...]',
                   help='show how often these functions are entered, also if '
                        'nothing has changed')
    p.add_argument('--html', metavar='FILE',
                   help='write a page with a flame graph of the difference')
    add_results(p, 'difference')
    p.add_argument('programs', nargs=2, metavar='PROGRAM',
                   help='the two builds')
    before, after = words, []
    if '--' in words:
        at = words.index('--')
        before, after = words[:at], words[at + 1:]
    args = p.parse_args(before)
    args.arguments = after
    return args


#
# Measuring
#

def named(program):
    """A program in the working directory need not be called with ./"""
    if '/' not in program and os.path.isfile(program):
        return os.path.join('.', program)
    return program


class Build:
    """A build, and what each of its instructions was executed."""

    def __init__(self, guest, program, words):
        measured = guest.measure(['instructions:u'], [program, *words],
                                 census=True)
        if failure := measured.failure():
            raise Failure(f'{program} {failure}', PROGRAM_FAILED)
        self.program = program
        self.census = Census(measured)
        self.functions = collections.defaultdict(dict)
        self.calls = collections.Counter()
        for (path, name, start), counts in self.census.functions().items():
            key = self._name_of(path), name
            self.functions[key].update(
                ((path, address), count) for address, count in counts.items())
            if start is not None:
                self.calls[key] += self.census.entries(path, start)

    def _name_of(self, path):
        return PROGRAM if path == self.census.program() \
            else os.path.basename(path)

    def count(self, key):
        return sum(self.functions.get(key, {}).values())

    def shape(self, key):
        """The counts of a function, wherever it is."""
        counts = self.functions.get(key, {})
        first = min((address for _, address in counts), default=0)
        return {address - first: count
                for (_, address), count in counts.items() if count}

    def lines(self, key):
        """The counts of a function by file and line."""
        by_path = collections.defaultdict(list)
        for path, address in self.functions.get(key, {}):
            by_path[path].append(address)
        counts = collections.Counter()
        for path, addresses in by_path.items():
            known = symbols(path).lines(addresses) \
                if os.path.isfile(path) else {}
            for address in addresses:
                counts[known.get(address)] += self.functions[key][path, address]
        return counts


#
# Lines of two sources
#

def source(path, cache={}):
    """The lines of a source file; none if it is not here."""
    if path not in cache:
        try:
            with open(path, encoding='utf-8', errors='replace') as f:
                cache[path] = f.read().splitlines()
        except OSError:
            cache[path] = []
    return cache[path]


def corresponding(old, new, cache={}):
    """For each line of the old file, the one of the new that it became."""
    if (old, new) not in cache:
        matcher = difflib.SequenceMatcher(None, source(old), source(new),
                                          autojunk=False)
        cache[old, new] = {
            a + i + 1: b + i + 1
            for a, b, size in matcher.get_matching_blocks()
            for i in range(size)}
    return cache[old, new]


def is_like(old, new):
    """Whether a source of another name may be the same one, changed."""
    matcher = difflib.SequenceMatcher(None, source(old), source(new))
    return bool(source(old)) and matcher.quick_ratio() > 0.5


def same_sources(a, b):
    """For each source of a build, the one of the other build."""
    olds, news = ({place[0] for place in lines if place} for lines in (a, b))
    found = {}
    for old in olds:
        by_name = [new for new in news
                   if os.path.basename(new) == os.path.basename(old)]
        found[old] = old if old in news else by_name[0] if by_name else None
    for old in (old for old in olds if not found[old]):
        left = sorted(news - set(found.values()))
        found[old] = next((new for new in left if is_like(old, new)), None)
    return found


def merge_lines(a, b):
    """Rows (old line, new line, count before, count now), of two builds."""
    sources = same_sources(a, b)
    became = {}
    for place in a:
        new = place and sources[place[0]]
        if not place or not new:
            became[place] = None if place else place
        elif new == place[0] or not source(place[0]) or not source(new):
            became[place] = (new, place[1])
        else:
            number = corresponding(place[0], new).get(place[1])
            became[place] = number and (new, number)
    rows = collections.defaultdict(lambda: [None, None, 0, 0])
    for place, count in a.items():
        to = became[place]
        row = rows['new', to] if to or not place else rows['old', place]
        row[0], row[2] = place, row[2] + count
    for place, count in b.items():
        row = rows['new', place]
        row[1], row[3] = place, row[3] + count
    return list(rows.values())


#
# The difference
#

def line_rows(a, b, key):
    """The lines of a function whose counts differ."""
    rows = []
    for old, new, before, now in merge_lines(a.lines(key), b.lines(key)):
        if before == now:
            continue
        path, number = new or old or (None, None)
        text = source(path)[number - 1:number] if path else []
        rows.append({
            'file': path, 'line': number, 'old-line': old and old[1],
            'new-line': new and new[1], 'text': text[0].strip() if text else '',
            'before': before, 'now': now, 'change': now - before})
    return sorted(rows, key=lambda row: (-abs(row['change']),
                                         row['line'] or 0))


def function_rows(a, b):
    """The functions whose counts differ, with their lines."""
    rows = []
    for key in {*a.functions, *b.functions}:
        before, now = a.count(key), b.count(key)
        lines = [] if a.shape(key) == b.shape(key) else line_rows(a, b, key)
        if before != now or lines or a.calls[key] != b.calls[key]:
            rows.append({
                'object': key[0], 'function': key[1],
                'before': before, 'now': now, 'change': now - before,
                'calls-before': a.calls[key], 'calls-now': b.calls[key],
                'lines': lines})
    return sorted(rows, key=lambda row: (-abs(row['change']), row['object'],
                                         row['function']))


def warn_of_sources(a, b):
    """Lines that have moved since a build are not found."""
    times = [os.path.getmtime(build.census.program()) for build in (a, b)]
    paths = {place[0] for key in a.functions if key[0] == PROGRAM
             for place in a.lines(key) if place}
    for path in sorted(paths):
        if os.path.exists(path) and os.path.getmtime(path) > min(times):
            say(f'warning: {path} has changed since a build; keep the old '
                'source where it was built, or its lines may be other ones')
            return


def show_row(row):
    calls = ''
    if row['calls-before'] != row['calls-now']:
        calls = f'  calls {row["calls-before"]:,} -> {row["calls-now"]:,}'
    print(f'{row["change"]:>+15,}  {row["before"]:>15,}  {row["now"]:>15,}  '
          f'{row["function"]}  {row["object"]}{calls}')
    for line in row['lines']:
        place = f'{os.path.basename(line["file"])}:{line["line"]}' \
            if line['file'] else 'no line known'
        text = f'  {line["text"]}' if line['text'] else ''
        print(f'{line["change"]:>+15,}  {line["before"]:>15,}  '
              f'{line["now"]:>15,}      {place}{text}')


def calls_rows(a, b, wanted):
    before = calls.count(a.census, wanted)
    now = calls.count(b.census, wanted)
    return {name: {'before': before[name], 'now': now[name],
                   'change': now[name] - before[name]} for name in wanted}


def show(difference):
    print(f'{"difference":>15}  {"before":>15}  {"now":>15}')
    print(f'{difference["change"]:>+15,}  {difference["before"]:>15,}  '
          f'{difference["now"]:>15,}  all')
    for name, row in difference['calls'].items():
        print(f'{row["change"]:>+15,}  {row["before"]:>15,}  '
              f'{row["now"]:>15,}  calls of {name}')
    for row in difference['functions']:
        show_row(row)


def main(guest, words):
    args = arguments(words)
    a, b = (Build(guest, program, args.arguments)
            for program in map(named, args.programs))
    difference = {
        'version': 1, 'programs': args.programs, 'arguments': args.arguments,
        'before': a.census.total, 'now': b.census.total,
        'change': b.census.total - a.census.total,
        'calls': calls_rows(a, b, args.calls),
        'functions': function_rows(a, b)}
    warn_of_sources(a, b)
    if args.json:
        write_json(args.json, difference)
    if args.json != '-':
        show(difference)
    if args.html:
        page.write_difference(guest, args.html, difference, a, b)
    return 0
