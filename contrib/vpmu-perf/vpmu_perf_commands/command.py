# SPDX-License-Identifier: GPL-2.0-or-later
"""Find the command among the arguments, and run it."""

import sys

from . import calls, compare, diff, flamegraph
from .guest import Guest, Failure

# Options of vpmu-perf that take the word after them.
WITH_VALUE = {'--arch', '--cpu', '--core', '--cpus', '--memory', '--write-to',
              '--seed'}
COMMANDS = {
    'compare': compare.main,
    'diff': diff.main,
    'flamegraph': flamegraph.main,
}


def split(words):
    """The options of vpmu-perf; and the command with its arguments."""
    at = 0
    while at < len(words) and words[at].startswith('-') and words[at] != '--':
        at += 2 if words[at] in WITH_VALUE else 1
    return words[:at], words[at:]


def run(script, words):
    """Returns the status; None if the command is perf's."""
    options, rest = split(words)
    wanted = None
    try:
        if rest[:1] == ['stat']:
            wanted, rest = calls.take(rest)
        if wanted is not None:
            return calls.main(Guest(script, options), rest, wanted)
        if not rest or rest[0] not in COMMANDS:
            return None
        return COMMANDS[rest[0]](Guest(script, options), rest[1:])
    except Failure as e:
        print(f'vpmu-perf {rest[0]}: {e}', file=sys.stderr)
        return e.status
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        return 130
