# SPDX-License-Identifier: GPL-2.0-or-later
"""What the arguments of several commands have in common."""

import argparse


def parser(command, usage, description, epilog):
    return argparse.ArgumentParser(
        prog=f'vpmu-perf {command}', usage=usage, description=description,
        epilog=epilog, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)


def names(text):
    found = [name for name in text.split(',') if name]
    if not found:
        raise argparse.ArgumentTypeError('names are missing')
    return found


def add_results(p, what):
    """What is counted, and where it is written."""
    p.add_argument('--json', metavar='FILE',
                   help=f'write the {what} to this file, - for standard '
                        'output in place of the table')


def parse(p, words):
    """Options, and a program with its arguments, if there is one."""
    p.add_argument('program', nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    args = p.parse_args(words)
    if args.program[:1] == ['--']:
        del args.program[0]
    return args
