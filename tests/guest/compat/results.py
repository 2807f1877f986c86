# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests, and what they find."""

import time

from qemu import SECONDS, Failure, Refused

# What QEMU says of a subsection of a CPU's state that it does not know.
NOT_KNOWN = "error while loading state for instance 0x0 of device 'cpu'"

TESTS = []


def test(each=((),)):
    """A test, or one for each of some arguments."""
    def register(function):
        for arguments in each:
            if not isinstance(arguments, tuple):
                arguments = (arguments,)
            TESTS.append((function, arguments))
        return function
    return register


def label(function, arguments):
    words = (str(one)
             for one in arguments if not isinstance(one, (list, type(None))))
    return '/'.join([function.__name__, *words])


def require(why):
    """An assertion: that nothing is wrong."""
    if why is not None:
        raise Failure(why)


def differs(got, want):
    return None if got == want else f'{got}, not {want}'


def refused(message, function):
    """What is wrong, if QEMU does not end with that."""
    try:
        function()
    except Refused as refusal:
        said = str(refusal)
        return None if message in said else f'QEMU said: {said!r}'
    return f'QEMU did not refuse: {message}'


def until(done):
    """Look at a guest until it has come so far."""
    end = time.monotonic() + SECONDS
    while not done():
        if time.monotonic() > end:
            raise Failure(f'the guest does not come so far in {SECONDS} s')


def run(wanted):
    """Run the tests whose names contain one of these; did all pass?"""
    chosen = [one for one in TESTS
              if not wanted or any(word in label(*one) for word in wanted)]
    print(f'1..{len(chosen)}')
    failed = False
    for function, arguments in chosen:
        why = None
        try:
            function(*arguments)
        except (Failure, Refused) as failure:
            why = ' '.join(str(failure).split()) or 'QEMU has ended'
        failed = failed or why is not None
        print(('not ok ' if why else 'ok ') + label(function, arguments)
              + (f' # {why}' if why else ''), flush=True)
    return not failed
