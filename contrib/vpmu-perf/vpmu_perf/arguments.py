# SPDX-License-Identifier: GPL-2.0-or-later
"""What the user wants."""

import argparse

from .machine import MACHINES

EPILOG = """\
Commands that are not perf's, each with a --help of its own:
  compare     count programs, and compare with the counts in a file
  diff        show by function and line what another build executes
  flamegraph  draw the stacks of a program as a page
  run         run a program without perf, with counters that it may use itself
And stat --calls FUNCTION[,...] reports how often functions are entered.

Examples:
  vpmu-perf stat ./program
  vpmu-perf stat -e instructions:u,branches:u -- make test
  vpmu-perf record -c 100003 ./program && vpmu-perf report
"""


def size(text):
    """Bytes of a number with a suffix as in QEMU; M without a suffix."""
    factors = {'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30, 'T': 1 << 40}
    digits, suffix = text, 'M'
    if text[-1:].upper() in factors:
        digits, suffix = text[:-1], text[-1].upper()
    if not digits.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' is no size, as 512M or 2G")
    value = int(digits) * factors[suffix]
    if value < 256 << 20:
        raise argparse.ArgumentTypeError('a guest needs 256M at least')
    return value


def number_of_cpus(text):
    if not text.isdigit() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError('there can be 1 to 64 CPUs')
    return int(text)


def seed(text):
    if not text.isdigit() or int(text) >= 1 << 64:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no seed: a number from 0 to {(1 << 64) - 1}")
    return int(text)


def arguments(words):
    p = argparse.ArgumentParser(
        prog='vpmu-perf', epilog=EPILOG, allow_abbrev=False,
        usage='vpmu-perf [OPTION...] PERF-COMMAND [ARGUMENT...]',
        description='Run perf, with exact counts, without a PMU.',
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--arch', choices=MACHINES, default='x86_64',
                   help='of the program; ppc64 runs little-endian ones')
    p.add_argument('--cpu', help='the CPU model, and its properties, as QEMU '
                                 'names them')
    p.add_argument('--core', metavar='PRESET[,...]',
                   help='model the caches and branch prediction of a processor:'
                        ' skylake, zen4 or power9, and sizes as in QEMU\'s '
                        'pmu-core')
    p.add_argument('--cpus', type=number_of_cpus, default=1, metavar='N',
                   help='how many there are (1)')
    p.add_argument('--memory', type=size, default='2G', metavar='SIZE',
                   help='of the guest (2G)')
    p.add_argument('-w', '--write', action='store_true',
                   help='the program may write to the working directory')
    p.add_argument('--write-to', action='append', default=[], metavar='DIR',
                   help='the program may write to this directory, too')
    p.add_argument('--aslr', action='store_true',
                   help='let Linux choose addresses at random')
    p.add_argument('--seed', type=seed, metavar='N',
                   help='what Linux and the CPU hand out as random is the same '
                        'in each run, and depends on N')
    p.add_argument('--region', action='store_true',
                   help='count only what is between vpmu_perf_start() and '
                        'vpmu_perf_stop() of vpmu-perf.h')
    p.add_argument('--prepare', action='store_true',
                   help='only prepare the guest, if it has not been')
    p.add_argument('--version', action='store_true',
                   help='show the versions of QEMU, and of perf in the guest')
    p.add_argument('--verbose', action='store_true',
                   help='show what the guest and QEMU say')
    # What the other commands ask this program for: events to count without
    # perf, and files for how it ended, and for how often code was executed.
    p.add_argument('--count', action='append', default=[],
                   help=argparse.SUPPRESS)
    p.add_argument('--result', help=argparse.SUPPRESS)
    p.add_argument('--census', help=argparse.SUPPRESS)
    p.add_argument('--maps', action='store_true', help=argparse.SUPPRESS)
    p.add_argument('--cpu-properties', default='', help=argparse.SUPPRESS)
    p.add_argument('perf', nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    args = p.parse_args(words)
    if args.perf[:1] == ['--']:
        del args.perf[0]
    if not args.perf and not args.prepare and not args.version:
        p.error('a command of perf is missing, such as: stat ./program')
    args.run = args.perf[:1] == ['run']
    if args.run:
        del args.perf[0]
        if args.perf[:1] == ['--']:
            del args.perf[0]
        if not args.perf:
            p.error('a program to run is missing, such as: run ./program')
    return args
