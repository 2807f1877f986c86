# SPDX-License-Identifier: GPL-2.0-or-later
"""As much of pycotap as QEMU's functional tests use.

QEMU fetches it from PyPI, and Debian does not have it.
"""

import enum
import sys
import unittest


class LogMode(enum.Enum):
    """Where to what tests print goes; always to standard error, here."""
    LogToError = enum.auto()


class TAPTestResult(unittest.TestResult):
    """Prints a line of TAP for each test."""

    told = None

    def report(self, test, good, note=''):
        # Once, though what clears up behind a failure fails as well.
        if test is self.told:
            return
        self.told = test
        print('ok' if good else 'not ok', self.testsRun, test.id() + note,
              flush=True)

    def fail(self, test, what):
        self.report(test, False, f' # {what[0].__name__}: {what[1]}')

    def addSuccess(self, test):
        super().addSuccess(test)
        self.report(test, True)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.report(test, True, f' # SKIP {reason}')

    def addError(self, test, err):
        super().addError(test, err)
        self.fail(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.fail(test, err)


class TAPTestRunner:
    """What unittest.main() calls."""

    def __init__(self, message_log, test_output_log):
        assert {message_log, test_output_log} == {LogMode.LogToError}

    def run(self, test):
        result = TAPTestResult()
        print(f'1..{test.countTestCases()}', flush=True)
        test(result)
        for _, trace in result.errors + result.failures:
            print(trace, file=sys.stderr)
        return result
