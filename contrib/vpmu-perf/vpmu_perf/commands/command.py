# SPDX-License-Identifier: GPL-2.0-or-later
"""Find the command among the arguments, and run it."""

import importlib
import signal
import sys

# Options of vpmu-perf that take the word after them.
WITH_VALUE = {'--arch', '--cpu', '--core', '--cpus', '--memory', '--seed',
              '--write-to'}
# Each is a module, which is loaded when it is called.
COMMANDS = ('compare', 'diff', 'flamegraph')


def split(words):
    """The options of vpmu-perf; and the command with its arguments."""
    at = 0
    while at < len(words) and words[at].startswith('-') and words[at] != '--':
        at += 2 if words[at] in WITH_VALUE else 1
    return words[:at], words[at:]


def run(script, words):
    """Returns the status; None if the command is perf's."""
    options, rest = split(words)
    counts_calls = rest[:1] == ['stat'] and any(
        word.startswith('--calls') for word in rest)
    if not counts_calls and (not rest or rest[0] not in COMMANDS):
        return None
    return run_module('calls' if counts_calls else rest[0], script, options,
                      rest)


def end_by_signal(number, _):
    sys.exit(128 + number)


def run_module(name, script, options, rest):
    module = importlib.import_module(f'.{name}', __package__)
    from .guest import Guest, Failure
    # A guest that runs is ended, and what is temporary is removed.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, end_by_signal)
    try:
        return module.main(Guest(script, options), rest[1:])
    except Failure as e:
        print(f'vpmu-perf {rest[0]}: {e}', file=sys.stderr)
        return e.status
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        return 130
