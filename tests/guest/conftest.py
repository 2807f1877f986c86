# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests as fixtures, and the machines on which a test runs."""

import inspect
import shutil

import pytest

from harness import ARCH, Guest

# Of records that one architecture alone has.
collect_ignore = [f'linux/test_{name}.py' for name in {
    'x86_64': ['power'],
    'ppc64': ['api', 'branches', 'kvm', 'pebs', 'perf_test', 'records_life'],
}[ARCH]]

FIXTURES = {'guest', 'start', 'tmp_path'}


def cases(mark, number):
    """The parameters for which a mark wants a test."""
    machines, more = mark.kwargs['machines'], mark.kwargs['more']
    # One that is in both lists is so once.
    for machine in filter(None, dict.fromkeys([*machines, *more])):
        usual = machine in machines and machine.usual
        for values in mark.kwargs['each']:
            values = values if isinstance(values, tuple) else (values,)
            yield pytest.param(
                *(machine, *values)[:number],
                id='-'.join([str(machine), *map(str, values)]),
                marks=[] if usual else pytest.mark.more)


def pytest_generate_tests(metafunc):
    marks = list(metafunc.definition.iter_markers('on'))
    if marks:
        names = [name for name in
                 inspect.signature(metafunc.function).parameters
                 if name not in FIXTURES]
        found = [case for mark in reversed(marks)
                 for case in cases(mark, len(names))]
        # A test of which all machines are another architecture's.
        none = pytest.param(*[None] * len(names),
                            marks=pytest.mark.arch('another'))
        metafunc.parametrize(names, found or [none])


def pytest_collection_modifyitems(items):
    """Tests of one guest follow one another."""
    def key(item):
        shares = 'guest' in item.fixturenames
        return (str(item.path), shares,
                str(item.callspec.params['machine']) if shares else '')

    items.sort(key=key)


class Shared:
    """The guest that tests share, one after the other's."""

    def __init__(self, directory):
        self.directory = directory
        self.guest = None

    def of(self, machine):
        if self.guest and (self.guest.machine is not machine
                           or self.guest.process.poll() is not None):
            self.leave()
        if not self.guest:
            guest = Guest(self.directory, machine)
            try:
                guest.connect()
                guest.begin()
                guest.run('guest_setup')
            except BaseException:
                guest.close()
                raise
            self.guest = guest
        return self.guest

    def leave(self):
        """It has nothing to complain of, and ends well."""
        guest, self.guest = self.guest, None
        try:
            if guest.process.poll() is None:
                assert not guest.run('complaints').strip()
                guest.give('exit 0')
                guest.rest()
            assert not guest.errors()
        finally:
            guest.close()


@pytest.fixture(scope='module')
def shared(tmp_path_factory):
    all_tests = Shared(tmp_path_factory.mktemp('shared'))
    yield all_tests
    if all_tests.guest:
        all_tests.leave()


@pytest.fixture
def guest(shared, machine):
    """A guest of a machine, which takes scripts."""
    one = shared.of(machine)
    yield one
    if one.status != 0:
        # It may be in the midst of a script.
        shared.guest = None
        one.close()


@pytest.fixture
def start(tmp_path):
    """Starts guests, with the arguments of Guest but the first."""
    guests = []

    def start_one(*args, **kwargs):
        one = Guest(tmp_path, *args, **kwargs)
        guests.append(one)
        one.connect()
        one.begin()
        return one

    yield start_one
    for one in guests:
        one.close()
    errors = list(filter(None, (one.errors() for one in guests)))
    for one in guests:
        print(*one.log[-20:], sep='\n')
    # pytest would keep disk images and profiles.
    shutil.rmtree(tmp_path)
    assert not errors, f'QEMU said: {errors}'
