# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands of the users' documents that QEMU alone can run, as they are there.

The machines do not execute anything: QEMU has to accept the words.
"""

import re
import shlex
import subprocess

import pytest

from linux_guest import ROOT, qemu_of

PAGES = [ROOT / 'README.md', *sorted((ROOT / 'docs/system').glob('vpmu*.rst'))]
BEGIN = re.compile(r'^ +(?:\$ )?(?:build/qemu/)?qemu-system-(\w+) (.*)$')
MONITOR = re.compile(r'^ +\(qemu\) (.*)$', re.M)
# The files that commands name, with contents that do not matter.
FILES = ['disk.img', 'vmlinux', 'initrd']


def words_of(text):
    """A command may go on in further lines; None if this one does."""
    try:
        return shlex.split(text.replace('\\\n', ' '))
    except ValueError:
        return None


def commands():
    """Of each command the page, the architecture and the words."""
    for page in PAGES:
        lines = iter(page.read_text().splitlines())
        for line in lines:
            begin = BEGIN.match(line)
            if not begin:
                continue
            text = begin[2]
            while words_of(text) is None:
                text += '\n' + next(lines)
            words = [word for word in words_of(text) if word != '...']
            yield pytest.param(begin[1], words,
                               id=f'{page.stem}-{" ".join(words)[:50]}')


def talk(directory, arch, words, asked):
    """What the monitor of a stopped machine prints."""
    for name in FILES:
        (directory / name).write_bytes(bytes(1 << 20))
    done = subprocess.run(
        [qemu_of(arch), *words, '-S', '-display', 'none', '-serial', 'none',
         '-monitor', 'stdio'], cwd=directory, text=True, timeout=300,
        input='\n'.join([*asked, 'quit', '']), stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize('arch, words', commands())
def test_starts(tmp_path, arch, words):
    talk(tmp_path, arch, words, [])


@pytest.mark.parametrize('page', [
    page for page in PAGES if MONITOR.search(page.read_text())],
    ids=lambda page: page.stem)
def test_monitor(tmp_path, page):
    """All commands of a page, one after the other."""
    said = talk(tmp_path, 'x86_64', ['-cpu', 'Skylake-Client-v1,pmu=on'],
                MONITOR.findall(page.read_text()))
    assert not re.search('^(Error|unknown command|Try)', said, re.M), said


def test_there_are_some():
    """The patterns still match."""
    assert len(list(commands())) >= 8
