# SPDX-License-Identifier: GPL-2.0-or-later
"""vpmu-perf flamegraph: a profile of a program as a page."""

import argparse
import os
import re
import shlex
import tempfile

from ..errors import say
from . import page
from .guest import CANNOT_RUN, Failure
from .options import parse, parser

EPILOG = """\
Examples:
  vpmu-perf flamegraph ./program argument
  vpmu-perf flamegraph -c 1009 -o profile.html -- ./program --option
  vpmu-perf flamegraph -i guest.perf.data
"""


def number(text):
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"'{text}' is no number of events")
    return int(text)


def arguments(words):
    p = parser('flamegraph',
               'vpmu-perf flamegraph [OPTION...] [--] PROGRAM [ARGUMENT...]\n'
               '       vpmu-perf flamegraph [OPTION...] -i FILE',
               'Sample a program, and draw its stacks as a page.', EPILOG)
    p.add_argument('-o', '--output', default='flamegraph.html', metavar='FILE',
                   help='the page (flamegraph.html)')
    p.add_argument('-i', '--input', metavar='FILE',
                   help='draw this profile, of perf record or of a pmu-profile')
    p.add_argument('-e', '--event', default='instructions:u',
                   help='of perf (instructions:u)')
    p.add_argument('-c', '--count', type=number, default=10007, metavar='N',
                   help='events from one sample to the next (10007)')
    p.add_argument('--call-graph', choices=('lbr', 'fp', 'dwarf'),
                   help='how callers are found: by the CPU\'s branch records '
                        '(lbr, of the last 32 calls; on x86, unless this says '
                        'otherwise), by frame pointers, or by debugging '
                        'information')
    args = parse(p, words)
    if bool(args.program) == bool(args.input):
        p.error('either a program or -i FILE is to be drawn')
    return args


def add_properties(guest, args):
    """The CPU has branch records if callers are found by them."""
    if not args.call_graph:
        args.call_graph = 'fp' if 'ppc64' in guest.options else 'lbr'
    if args.call_graph == 'lbr' and not args.input:
        guest.options += ['--cpu-properties', ',lbr=on']


def name_of(line):
    """The name in a line of perf script: ADDRESS NAME (FILE)."""
    found = re.match(r'\s*[0-9a-f]+ (.*) \((.*)\)$', line)
    if not found:
        return line.strip()
    name, path = found.groups()
    name = name.partition('@@')[0]
    return name if name != '[unknown]' else f'[{os.path.basename(path)}]'


def read_samples(text):
    """The command, the stack from its beginning, and the events of each.

    A sample without callers is one line; otherwise a line for each follows.
    """
    command, events, stack = '', 0, []
    for line in (*text.splitlines(), ''):
        if line.startswith('\t'):
            stack.insert(0, name_of(line))
            continue
        if stack:
            yield command, stack, events
        head = re.match(r'\s*(.*?)\s+(\d+)(?:\s+(\S.*))?\s*$', line)
        stack = []
        if head:
            command, events = head[1], int(head[2])
            stack = [name_of(head[3])] if head[3] else []


def tree(samples):
    """All stacks together; and how many samples there are."""
    root, n = page.node('all'), 0
    for command, stack, events in samples:
        at = root
        for name in (command, *stack):
            for child in at['children']:
                if child['name'] == name:
                    break
            else:
                child = page.node(name)
                at['children'].append(child)
            at = child
        at['value'] += events
        n += 1
    return root, n


def record(guest, args, path):
    status = guest.run(['record', '-e', args.event, '-c', str(args.count),
                        '--call-graph', args.call_graph, '-o', path, '--',
                        *args.program])
    if not os.path.exists(path):
        raise Failure('perf has recorded nothing', CANNOT_RUN)
    if status < 0:
        status = 128 - status
    if status:
        say(f'warning: {args.program[0]} has failed, with status {status}')
    return status


def main(guest, words):
    args = arguments(words)
    add_properties(guest, args)
    page.read_parts(guest)
    status = 0
    with tempfile.TemporaryDirectory(prefix='vpmu-perf-') as directory:
        path = args.input or os.path.join(directory, 'perf.data')
        if not args.input:
            status = record(guest, args, path)
        elif not os.path.isfile(path):
            raise Failure(f'{path} is no file; "perf record" makes one')
        # Where names of inlined functions are looked up, it takes minutes.
        text = guest.output(['script', '--no-inline', '-i', path, '-F',
                             'comm,period,ip,sym,dso'])
    root, n = tree(read_samples(text))
    if not n:
        raise Failure('there are no samples; a program that is so short needs '
                      'more of them: -c 101', CANNOT_RUN)
    what = shlex.join(args.program) if args.program else args.input
    about = (f'{n:,} samples, one in {args.count:,} of {args.event}'
             if args.program else f'{n:,} samples')
    page.write(guest, args.output, what, about + '.', root)
    say(f'{args.output}: {about}')
    return status
