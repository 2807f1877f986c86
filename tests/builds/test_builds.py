# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMUs that are built in another way: whether they start, and what they have.

scripts/check-elsewhere builds them, and names in VARIANT which one it is, and
in QEMU a program beside all others.
"""

import os
import pathlib
import re
import subprocess

import pytest

from linux_guest import BUILD, ROOT, qemu_of

VARIANT = os.environ.get('VARIANT', '')
QEMUS = pathlib.Path(os.environ.get('QEMU') or qemu_of('x86_64')).parent

# A vCPU has its PMU without a board, too, where QEMU has no APIC to give to it.
CPUS = {
    'x86_64': 'Skylake-Client-v1,pmu=on,-apic,apic-id=0',
    'ppc64': 'power9',
    'ppc': 'g4',
    'm68k': 'm68040',
    'aarch64': 'max',
}
STARTS = {'no-tcg': ['x86_64'], 'clang': ['x86_64', 'ppc64'],
          'least': ['x86_64', 'ppc64', 'ppc', 'm68k'],
          'default': ['x86_64', 'ppc64', 'aarch64']}.get(VARIANT, [])

# Programs of the Linux guests.
USER = {
    ('x86_64', 'gcc', 'programs'): ['mixed', 'faults', 'fork', 'signals',
                                    'smc', 'syscalls', 'threads'],
    ('ppc64le', 'powerpc64le-linux-gnu-gcc', 'programs-ppc64'): [
        'mixed', 'faults', 'memory', 'syscalls', 'traps'],
}


@pytest.mark.parametrize('target', STARTS)
def test_starts(target):
    """There is a machine then, and an end when QEMU is asked for it."""
    accel = 'qtest' if VARIANT == 'no-tcg' else 'tcg'
    done = subprocess.run(
        [QEMUS / f'qemu-system-{target}', '-M', 'none', '-cpu', CPUS[target],
         '-accel', accel, '-S', '-nodefaults', '-display', 'none',
         '-monitor', 'stdio'], input='quit\n', text=True, capture_output=True)
    said = [line for line in done.stderr.splitlines()
            if 'warning:' not in line.lower()]
    assert (done.returncode, said) == (0, [])


@pytest.mark.skipif(VARIANT not in ('least', 'default'),
                    reason='another QEMU runs programs')
@pytest.mark.parametrize('how, name', [
    pytest.param(how, name, id=f'{how[0]}-{name}')
    for how, names in USER.items() for name in names])
def test_user_program(tmp_path, how, name):
    """It ends with 0."""
    target, compiler, directory = how
    program = tmp_path / name
    subprocess.run(
        [compiler, '-static', '-nostdlib', '-Wl,--no-warn-rwx-segments', '-o',
         program, ROOT / 'tests/guest/linux' / directory / f'{name}.S'],
        check=True)
    subprocess.run([QEMUS / f'qemu-{target}', program], check=True,
                   stdout=subprocess.DEVNULL)


@pytest.mark.skipif(VARIANT != 'default', reason='another QEMU has unit tests')
def test_unit_tests():
    """QEMU's build of the model's tests: they pass there, too."""
    sources = (ROOT / 'tests' / 'unit' / 'pmu').glob('test-*.c')
    targets = [f'tests/unit/pmu/{source.stem}' for source in sources]
    subprocess.run([ROOT / 'scripts' / 'build-qemu', '--variant', 'default',
                    *targets], check=True)
    for target in targets:
        subprocess.run([BUILD / 'qemu-default' / target, '--tap'], check=True)


@pytest.mark.skipif(VARIANT != 'least', reason='another QEMU has documents')
def test_documents():
    """Sphinx has nothing to say of our pages; QEMU's own are not ours."""
    docs = BUILD / 'qemu-least' / 'docs'
    # Sphinx says nothing of pages that it has read before.
    for name in 'docs.stamp', 'manual.p':
        subprocess.run(['rm', '-rf', docs / name], check=True)
    said = subprocess.run(
        [ROOT / 'scripts' / 'build-qemu', '--variant', 'least',
         'docs/docs.stamp'], check=True, text=True, errors='replace',
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    findings = [line for line in said.splitlines()
                if re.search('(WARNING|ERROR|warning|error):', line)
                and re.search('vpmu|hw/pmu|qapi/pmu', line)]
    assert findings == []
