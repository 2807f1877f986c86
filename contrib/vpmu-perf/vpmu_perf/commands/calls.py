# SPDX-License-Identifier: GPL-2.0-or-later
"""vpmu-perf stat --calls: how often functions are entered."""

import json
import os
import sys

from ..errors import say
from .census import Census
from .guest import CANNOT_RUN, Failure, Measurement


def names(text):
    found = [name.strip() for name in text.split(',') if name.strip()]
    if not found:
        raise Failure('--calls: names of functions are missing, such as '
                      'malloc,free')
    return found


def count(census, wanted):
    """The calls of each function."""
    found = {}
    for name in wanted:
        found[name] = census.calls(name)
        if found[name] is None:
            raise Failure(f'neither the program nor its libraries have a '
                          f'function {name}; "nm" shows the names in a file')
        if census.is_chosen(name):
            say(f'warning: {name} has variants, of which one is chosen when '
                'the program starts: these are the calls of what chooses; '
                'name a variant')
    return found


def take(words):
    """The value of --calls before perf's program; and the other words."""
    rest, value = list(words), None
    for at, word in enumerate(words):
        if word == '--' or at and not word.startswith('-') and \
                not words[at - 1].startswith('-'):
            break
        if word == '--calls':
            if at + 1 == len(words):
                raise Failure('--calls: names of functions are missing')
            value, rest = words[at + 1], words[:at] + words[at + 2:]
            break
        if word.startswith('--calls='):
            value, rest = word[8:], words[:at] + words[at + 1:]
            break
    return value, rest


def output_of(words):
    """Where perf stat writes, and in which format: '', 'json' or a separator.

    Options of the program come after it, and are not looked at.
    """
    path, form = None, ''
    at = 1
    while at < len(words) and words[at].startswith('-') and words[at] != '--':
        word, follows = words[at], words[at + 1:at + 2]
        if word in ('-j', '--json-output'):
            form = 'json'
        elif word in ('-x', '--field-separator'):
            form = follows[0] if follows else ''
        elif word.startswith('-x'):
            form = word[2:]
        elif word in ('-o', '--output'):
            path = follows[0] if follows else None
        at += 1 + (word in WITH_VALUE)
    return path, form


# Options of perf stat that take the word after them, of those that matter here
WITH_VALUE = {'-e', '--event', '-x', '--field-separator', '-o', '--output',
              '-r', '--repeat', '-C', '--cpu', '-M', '--metrics', '-D',
              '--delay', '-I', '--interval-print', '--timeout', '--control'}


def lines(found, form):
    if form == 'json':
        return [json.dumps({'counter-value': str(number), 'unit': '',
                            'event': f'calls:{name}'})
                for name, number in found.items()]
    if form:
        return [form.join((str(number), '', f'calls:{name}'))
                for name, number in found.items()]
    return ['', *(f'{number:18,}      calls:{name}'
                  for name, number in found.items()), '']


def main(guest, words):
    """Returns the status; None if the calls are an option of the program."""
    wanted, words = take(['stat', *words])
    if wanted is None:
        return None
    status, result, census = guest.perf(words)
    taken = Census(Measurement([], words, result, census))
    if not taken.total:
        raise Failure('calls are counted while instructions are: add '
                      'instructions:u to the events', CANNOT_RUN)
    path, form = output_of(words)
    text = '\n'.join(lines(count(taken, names(wanted)), form)) + '\n'
    if path and os.path.isfile(path):
        with open(path, 'a', encoding='utf-8') as f:
            f.write(text)
    else:
        sys.stderr.write(text)
    return status
