# SPDX-License-Identifier: GPL-2.0-or-later
"""The package that `make deb` makes, in clean systems of Debian.

A system has nothing but apt, and Debian's own QEMU; the script `inside` runs
there, and its steps fail as one test.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

from linux_guest import BUILD, ROOT, write_initramfs
import recipes

HERE = pathlib.Path(__file__).resolve().parent
CI = ROOT / 'contrib' / 'ci'

# One run is enough: each system has guests of both architectures.
pytestmark = pytest.mark.arch('x86_64')

# Compiles the programs of an architecture, and prints one and its count.
COMPILE = '''
from harness import PROGRAMS, expectations
print(PROGRAMS / 'loop', expectations('loop')['instructions'])
'''
# Of a guest that `inside` starts without vpmu-perf.
JOB = '''
perf stat -x , -o /tmp/stat -e instructions:u loop
cat /tmp/stat
'''


def add_guest(things, arch):
    """A program, its count, and a guest that runs it."""
    program, count = subprocess.run(
        [sys.executable, '-c', COMPILE], check=True, text=True,
        stdout=subprocess.PIPE, env={**os.environ, 'ARCH': arch,
                                     'PYTHONPATH': ':'.join(sys.path)}
    ).stdout.split()
    guest = BUILD / f'guest-{arch}'
    shutil.copy(program, things / f'loop-{arch}')
    (things / f'count-{arch}').write_text(count)
    shutil.copy(guest / 'kernel', things / f'kernel-{arch}')
    write_initramfs(guest, things / f'initrd-{arch}',
                    [(program, '/usr/bin/loop')], JOB)


def add_recipes(things, package):
    """The recipes' files, and scripts of their steps."""
    for name in ('count-instructions', 'Dockerfile'):
        shutil.copy(CI / name, things)
    command = 'true | cat'
    for name, text in {
            'image': recipes.image(CI / 'Dockerfile'),
            'gitlab': recipes.gitlab_job(
                CI / 'gitlab.yml', {'COMMAND': command}, CI / 'Dockerfile'),
            'action': recipes.action(CI / 'action.yml', '/things', {
                'package': package.name, 'allowed': 'instructions.txt',
                'command': command})}.items():
        (things / f'{name}.sh').write_text(text)


@pytest.fixture(scope='module')
def things():
    """A directory for systems: the package, guests, and the script."""
    packages = [*BUILD.glob('deb/*.deb')]
    assert packages, 'there is no package: "make deb" makes it'
    with tempfile.TemporaryDirectory(dir=BUILD, prefix='deb-things-') as name:
        directory = pathlib.Path(name)
        for path in (*packages, HERE / 'inside'):
            shutil.copy(path, directory)
        add_recipes(directory, packages[0])
        add_guest(directory, 'x86_64')
        add_guest(directory, 'ppc64')
        yield directory


@pytest.mark.parametrize('suite', ['bookworm', 'trixie'])
def test_package(suite, things):
    system = subprocess.Popen([HERE / 'system', suite, things],
                              start_new_session=True)
    try:
        status = system.wait()
    finally:
        # mmdebstrap removes the system when what it runs there has ended.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(system.pid, signal.SIGTERM)
        system.wait()
    assert status == 0, 'the last step has failed, see its output'
