# SPDX-License-Identifier: GPL-2.0-or-later
"""The faces of PMUs that the fuzzer has."""

import subprocess


def fuzzers_in(directory):
    """The program that has a face, by the face's name."""
    paths = [directory / f'vpmu-fuzz-{arch}' for arch in ('x86_64', 'ppc64')]
    return {face: path for path in paths for face in subprocess.run(
        [path, '--list'], check=True, text=True,
        capture_output=True).stdout.split()}


def face_of(path):
    """The face of a program that is kept: its first line names it."""
    return path.read_text().partition('\n')[0].removeprefix('# ')
