# SPDX-License-Identifier: GPL-2.0-or-later
"""Random programs on the PMUs of all faces, see tests/qtest/vpmu-fuzz.

The programs that have failed once are run first; then, on each face, programs,
and those whose state is saved, changed and loaded.  FUZZ_SEED and FUZZ_LIMIT,
which scripts/fuzz sets, make them others or more.  The program that fails is
made smaller and written to build/logs.
"""

import os
import pathlib
import subprocess

import pytest

from faces import face_of, fuzzers_in
from linux_guest import BUILD, ROOT, qemu_of

FUZZERS = fuzzers_in(
    pathlib.Path(os.environ.get('QEMU') or qemu_of('x86_64')).parent)
SEED = os.environ.get('FUZZ_SEED', '1')
LIMIT = os.environ.get('FUZZ_LIMIT', '--programs 200').split()


def run(*command):
    """All that it prints."""
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    # TCG complains about CPU models.
    lines = [line for line in done.stdout.splitlines()
             if 'warning: TCG' not in line]
    assert done.returncode == 0, '\n'.join(
        [*lines, f'seed {SEED}, status {done.returncode}'])
    return lines


KEPT = sorted((ROOT / 'tests/qtest/vpmu-fuzz/programs').iterdir())


@pytest.mark.parametrize('path', KEPT, ids=lambda path: path.name)
def test_kept(path):
    face = face_of(path)
    run(FUZZERS[face], face, '--replay', path)


@pytest.mark.parametrize('how', ['programs', 'streams'])
@pytest.mark.parametrize('face', FUZZERS)
def test_face(face, how, capsys):
    options = ['--streams'] if how == 'streams' else []
    keep = BUILD / 'logs' / f'fuzz-{face}{"-streams" if options else ""}'
    keep.parent.mkdir(exist_ok=True)
    keep.unlink(missing_ok=True)
    lines = run(FUZZERS[face], face, '--seed', SEED, '--keep', keep,
                *options, *LIMIT)
    with capsys.disabled():
        print(f'\n{lines[-1]}', end='', flush=True)
