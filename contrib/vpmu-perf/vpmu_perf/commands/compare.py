# SPDX-License-Identifier: GPL-2.0-or-later
"""vpmu-perf compare: counts now beside counts that are kept in a file."""

import argparse
import contextlib
import json
import os
import shlex
import sys

from ..errors import say
from . import calls, contract
from .census import Census
from .guest import PROGRAM_FAILED, Failure
from .options import add_results, names, parse, parser

VERSION = 1
REGRESSION = 1

EPILOG = """\
Examples:
  vpmu-perf compare --baseline counts.json --update -- ./benchmark
  vpmu-perf compare --baseline counts.json --limit 0.1% -- ./benchmark
  vpmu-perf compare --baseline counts.json --list benchmarks.txt --repeat 3

Status: 0 if no count is higher by more than the limit; 1 if one is, or is not
in the file; 2 for bad input; 3 if a program failed; 125 if none could be run.
"""


def limit(text):
    """A fraction, of per cent or of a plain number."""
    digits = text.removesuffix('%')
    try:
        value = float(digits) / (100 if text.endswith('%') else 1)
    except ValueError:
        value = -1
    if not 0 <= value < 100:
        raise argparse.ArgumentTypeError(f"'{text}' is no limit, as 0.1% or 0")
    return value


def times(text):
    if not text.isdigit() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError('a program runs 1 to 1000 times')
    return int(text)


def arguments(words):
    p = parser('compare', 'vpmu-perf compare --baseline FILE [OPTION...] [--] '
               '[PROGRAM [ARGUMENT...]]',
               'Count, and compare with the counts in a file.', EPILOG)
    p.add_argument('--baseline', required=True, metavar='FILE',
                   help='the counts to compare with, in JSON')
    p.add_argument('--limit', type=limit, default='0.1%', metavar='N%',
                   help='by how much a count may be higher (0.1%%)')
    p.add_argument('--list', metavar='FILE',
                   help='programs: on each line a command as for a shell, with '
                        'a NAME: before it if it is to have another')
    p.add_argument('-e', '--event', type=names, default='instructions:u',
                   metavar='EVENT[,...]', help='count these (instructions:u)')
    p.add_argument('--calls', type=names, default=[], metavar='NAME[,...]',
                   help='count how often these functions are entered, too')
    p.add_argument('--repeat', type=times, default=1, metavar='N',
                   help='run each program N times, and say whether its counts '
                        'are the same')
    p.add_argument('--update', action='store_true',
                   help='write the counts to the file')
    add_results(p, 'comparison')
    args = parse(p, words)
    if not args.program and not args.list:
        p.error('a program is missing, such as: -- ./benchmark; or --list FILE')
    return args


#
# Files
#

def programs(args):
    """The commands by their names."""
    found = {}
    if args.program:
        found[shlex.join(args.program)] = args.program
    if args.list:
        try:
            with open(args.list, encoding='utf-8') as f:
                lines = f.read().splitlines()
        except (OSError, UnicodeDecodeError) as e:
            raise Failure(f'{args.list} cannot be read: {e}') from None
        for number, line in enumerate(lines, 1):
            add_line(found, f'{args.list}:{number}', line.strip())
    if not found:
        raise Failure(f'{args.list} has no programs')
    return found


def add_line(found, where, line):
    if not line or line.startswith('#'):
        return
    name, colon, rest = line.partition(': ')
    if not colon or ' ' in name:
        name, rest = None, line
    try:
        words = shlex.split(rest)
    except ValueError as e:
        raise Failure(f'{where}: {e}') from None
    if not words:
        raise Failure(f'{where}: a program is missing')
    name = name or shlex.join(words)
    if name in found:
        raise Failure(f'{where}: there is another {name}; give it a name: '
                      f'other: {rest}')
    found[name] = words


def read_baseline(args):
    try:
        with open(args.baseline, encoding='utf-8') as f:
            baseline = json.load(f)
        if baseline['version'] != VERSION:
            raise Failure(f'{args.baseline} is of another version of '
                          'vpmu-perf; write it anew: --update')
        for entry in baseline['programs'].values():
            dict.items(entry['counts'])
            dict.items(entry['depends'])
        return baseline
    except FileNotFoundError:
        if args.update:
            return {'version': VERSION, 'programs': {}}
        raise Failure(f'{args.baseline} does not exist; --update writes '
                      'it') from None
    except OSError as e:
        raise Failure(f'{args.baseline} cannot be read: '
                      f'{e.strerror}') from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Failure(f'{args.baseline} is not a file of vpmu-perf compare; '
                      'remove it, and --update writes it anew') from None


def write_json(path, what):
    text = json.dumps(what, indent=2, ensure_ascii=False) + '\n'
    if path == '-':
        sys.stdout.write(text)
        return
    try:
        with open(path + '.part', 'w', encoding='utf-8') as f:
            f.write(text)
        os.replace(path + '.part', path)
    except OSError as e:
        with contextlib.suppress(OSError):
            os.unlink(path + '.part')
        raise Failure(f'{path} cannot be written: {e.strerror}') from None


#
# Counting
#

class Run:
    """The counts of a program."""

    def __init__(self, guest, args, name, words):
        self.name = name
        self.words = words
        self.guest = guest
        self.args = args
        self.all = []
        self.depends = None
        self.failure = None
        for _ in range(args.repeat):
            if not self.failure:
                self.count()

    def count(self):
        wanted = self.args.calls
        events = self.args.event
        if wanted and 'instructions:u' not in events:
            # Calls are counted while instructions are.
            events = [*events, 'instructions:u']
        measured = self.guest.measure(events, self.words, bool(wanted))
        self.failure = measured.failure()
        self.depends = contract.of(measured)
        counts = {event: measured.counts[event] for event in self.args.event}
        if wanted and not self.failure:
            found = calls.count(Census(measured), wanted)
            counts.update((f'calls:{name}', n) for name, n in found.items())
        self.all.append(counts)

    @property
    def counts(self):
        """The least of each: what disturbs a count adds to it."""
        return {event: min(counts[event] for counts in self.all)
                for event in self.all[0]}

    def repeats(self):
        """Whether it does; None if nobody has tried."""
        if len(self.all) < 2:
            return None
        return all(counts == self.all[0] for counts in self.all)

    def entry(self):
        """What is kept in the file."""
        return {'counts': self.counts, 'repeats': self.repeats(),
                'depends': self.depends}


def try_again(run):
    """Whether a program repeats, if need be by another run."""
    if run.repeats() is None:
        run.count()
    return run.repeats()


def explain(run, old):
    """Why a count is another one, in one line."""
    found = contract.differences(old['depends'], run.depends)
    if found:
        more = f' (and {len(found) - 1} more)' if len(found) > 1 else ''
        return found[0][1] + more
    if not try_again(run):
        return 'nothing differs that a count depends on: the program does ' \
               'not repeat'
    return 'nothing differs that is recorded, and the program repeats: its ' \
           'input may have changed'


def compare_count(run, old, event, args):
    """A row of the table."""
    now = run.counts[event]
    before = old['counts'].get(event) if old else None
    row = {'program': run.name, 'event': event, 'before': before, 'now': now,
           'change': None, 'result': 'new'}
    if before is not None:
        change = now - before
        row['change'] = change / before if before else float(change > 0)
        row['result'] = (
            'same' if not change else
            'more' if change > before * args.limit else
            'less' if -change > before * args.limit else 'within')
    return row


def compare(run, old, args):
    """The rows of a program, with reasons."""
    if run.failure:
        return [{'program': run.name, 'event': None, 'before': None,
                 'now': None, 'change': None, 'result': 'failed',
                 'why': f'the program {run.failure}'}]
    rows = [compare_count(run, old, event, args) for event in run.counts]
    if any(row['before'] not in (None, row['now']) for row in rows):
        why = explain(run, old)
        for row in rows:
            if row['before'] not in (None, row['now']):
                row['why'] = why
    return rows


def warn_of_machines(runs, baseline):
    """Counts of another machine say nothing about a program."""
    for run in runs:
        old = baseline['programs'].get(run.name)
        if not old or not run.depends:
            continue
        for name, text in contract.differences(old['depends'], run.depends):
            if name in contract.MACHINE:
                say(f'warning: the counts in the file are of another machine: '
                    f'{text}')
                return


#
# Results
#

MARKS = {'same': '', 'within': '', 'more': 'MORE', 'less': 'less',
         'new': 'new', 'failed': 'FAILED'}


def percent(change):
    if change is None:
        return ''
    text = f'{change * 100:+.2f}%'
    return text if change == 0 or float(text[:-1]) else f'{change * 100:+.1g}%'


def columns(row):
    def number(value):
        return '' if value is None else f'{value:,}'

    return (row['program'], row['event'] or '', number(row['before']),
            number(row['now']), percent(row['change']), MARKS[row['result']])


def show(rows):
    lines = [('program', 'event', 'before', 'now', 'change', '')]
    lines += [columns(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines)]
    for line, row in zip(lines, [None, *rows]):
        cells = [cell.rjust(width) if 2 <= i <= 4 else cell.ljust(width)
                 for i, (cell, width) in enumerate(zip(line, widths))]
        print('  '.join(cells).rstrip())
        if row and row.get('why'):
            print(f'    {row["why"]}')


def show_repeats(runs):
    for run in runs:
        if run.repeats() is False and not run.failure:
            spread = {event: sorted({counts[event] for counts in run.all})
                      for event in run.counts}
            for event, values in spread.items():
                if len(values) > 1:
                    say(f'{run.name} does not repeat: {event} from '
                        f'{values[0]:,} to {values[-1]:,} in {len(run.all)} '
                        'runs')
        elif run.repeats():
            say(f'{run.name} repeats: the same in {len(run.all)} runs')


def status_of(rows, args):
    results = {row['result'] for row in rows}
    if 'failed' in results:
        return PROGRAM_FAILED
    if {'more', 'new'} & results and not args.update:
        return REGRESSION
    return 0


def update(args, baseline, runs):
    for run in runs:
        if run.failure:
            raise Failure(f'{args.baseline} stays as it is: {run.name} '
                          f'{run.failure}', PROGRAM_FAILED)
        baseline['programs'][run.name] = run.entry()
    write_json(args.baseline, baseline)


def main(guest, words):
    args = arguments(words)
    todo = programs(args)
    baseline = read_baseline(args)
    runs = [Run(guest, args, name, words) for name, words in todo.items()]
    warn_of_machines(runs, baseline)
    rows = [row for run in runs
            for row in compare(run, baseline['programs'].get(run.name), args)]
    status = status_of(rows, args)
    if args.json:
        write_json(args.json, {
            'version': VERSION, 'status': status, 'rows': rows,
            'programs': {run.name: run.entry() for run in runs
                         if not run.failure}})
    if args.json != '-':
        show(rows)
    if args.repeat > 1:
        show_repeats(runs)
    if args.update:
        update(args, baseline, runs)
    elif any(row['result'] == 'new' for row in rows):
        say(f'{args.baseline} has no count of some; --update adds it')
    return status
