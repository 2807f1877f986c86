# SPDX-License-Identifier: GPL-2.0-or-later
"""Our files and patches are in the style of their language.

C and patches: QEMU's own scripts/checkpatch.pl.  Shell: shellcheck.  Python:
flake8 and pylint -E.  Patches apply, and are what scripts/patches would write,
for each QEMU whose source is there; scripts/series can write what is here; and
faults for scripts/mutants are of this code.
"""

import functools
import hashlib
import os
import re
import subprocess

import pytest

from linux_guest import BUILD, ROOT
from tree import our_files

CHECKPATCH = BUILD / 'qemu-pristine' / 'scripts' / 'checkpatch.pl'

# What checkpatch.pl is wrong about.  A list of properties, or of rows, cannot
# be put in parentheses; programs on the bare machine share variables with
# interrupt handlers, and name labels of assembly; programs of the Linux guest
# have no QEMU to help them.  10.2's asks of each patch that adds or removes a
# file whether MAINTAINERS is right: it names their directory.
MISTAKEN = re.compile(
    r'added, moved or deleted file\(s\):$|'
    r'(vpmu/props\.h|pmu-cycles\.h|vpmu-test-ppc\.c):.*'
    r'Macros with complex values|'
    r'vpmu-fuzz/(ppc|x86)\.c:.*Macros with (complex values|multiple state'
    r'ments)|'
    r'guest/bare/(x86|i386)/.*Use of volatile|'
    r'guest/bare/.*externs should be avoided|'
    r'guest/linux/.*in preference to strto')

# pylint finds modules where pytest and QEMU do.
PYTHONPATH = ':'.join(map(str, [
    *(ROOT / 'tests' / name for name in (
        'consumers', 'fuzz', 'guest', 'guest/linux', 'guest/nested',
        'guest/bare/common', 'style')),
    ROOT / 'scripts', BUILD / 'qemu-src/tests/functional',
    BUILD / 'qemu-src/python']))


def language_of(path):
    """What a file, by its path below ROOT, is written in; None if no style is
    known for it."""
    top = path.split('/')[0]
    if top in ('hw', 'include', 'target', 'tests') and path.endswith(
            ('.c', '.h')):
        return 'C'
    text = (ROOT / path).read_text(errors='replace')
    if top == 'patches':
        # Some only say which of our files come.
        return 'patch' if '\ndiff ' in text and path.endswith(
            '.patch') else None
    if top in ('.ci', 'contrib', 'scripts', 'tests'):
        first = text.partition('\n')[0]
        if path.endswith('.py') or re.match('#!.*python3', first):
            return 'Python'
        if path.endswith(('.sh', '/demo/job')) or re.match('#!.*sh$', first):
            return 'shell'
    return None


FILES = {'C': [], 'patch': [], 'Python': [], 'shell': []}
for name in our_files():
    FILES.get(language_of(name), []).append(name)


def output_of(*command):
    """All that it prints, whatever its status."""
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | {'PYTHONPATH': PYTHONPATH},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False).stdout


def findings(text, paths):
    """What tools complain of, by path; what is of no file has the path ''."""
    found = {}
    for line in dict.fromkeys(text.splitlines()):
        path = line.partition(':')[0]
        found.setdefault(path if path in paths else '', []).append(line)
    return found


class Clean:
    """Files in which checkpatch.pl has found nothing, by what is in them: it
    is slow, and does not look at them again."""

    def __init__(self):
        state = CHECKPATCH.read_bytes() + MISTAKEN.pattern.encode()
        self.path = BUILD / 'style' / hashlib.sha256(state).hexdigest()[:16]
        self.path.parent.mkdir(exist_ok=True)
        self.path.touch()
        self.known = set(self.path.read_text().split())

    @staticmethod
    def digest(path):
        return hashlib.sha256((ROOT / path).read_bytes()).hexdigest()

    def unknown(self, paths):
        return [path for path in paths if self.digest(path) not in self.known]

    def add(self, paths):
        with open(self.path, 'a') as file:
            file.writelines(f'{self.digest(path)}\n' for path in paths)


def checkpatch(paths, *options):
    clean = Clean()
    paths = clean.unknown(paths)
    text = output_of('perl', CHECKPATCH, '--no-tree', '--no-signoff', '--terse',
                     '--strict', *options, *paths) if paths else ''
    found = findings('\n'.join(
        line for line in text.splitlines()
        if not line.startswith('total: ') and not MISTAKEN.search(line)), paths)
    clean.add(path for path in paths if path not in found)
    return found


def lint(paths):
    # Lines may be as long as in C.
    text = output_of('flake8', '--isolated', '--max-line-length=80', *paths) \
        + output_of('pylint', '--errors-only',
                    '--msg-template={path}:{line}: {msg_id} {msg}', *paths)
    return findings(re.sub(r'(?m)^\*.*\n', '', text), paths)


def shellcheck(paths):
    return findings(output_of(
        'shellcheck', '--external-sources', '--source-path=SCRIPTDIR',
        '--format=gcc', *paths), paths)


TOOLS = {'C': lambda paths: checkpatch(paths, '-f'), 'patch': checkpatch,
         'Python': lint, 'shell': shellcheck}


@pytest.fixture(scope='session')
def complaints(request):
    """What the tool of a language finds in the files that are selected."""
    selected = {language: [] for language in FILES}
    for item in request.session.items:
        if item.originalname == 'test_style_of':
            about = item.callspec.params
            selected[about['language']].append(about['path'])

    @functools.lru_cache
    def of_language(language):
        paths = selected[language]
        return TOOLS[language](paths) if paths else {}

    return of_language


@pytest.mark.parametrize('language, path', [
    pytest.param(language, path, id=path)
    for language, paths in FILES.items() for path in paths])
def test_style_of(complaints, language, path):
    found = complaints(language).get(path, [])
    assert not found, '\n'.join(found)


@pytest.mark.parametrize('language', FILES)
def test_tools(complaints, language):
    """They have nothing to say of themselves."""
    found = complaints(language).get('', [])
    assert not found, '\n'.join(found)


# Steps and faults are those of 10.0.
@pytest.mark.parametrize('command', [
    'patches check',
    *(['series --check', 'mutants --check']
      if os.environ.get('QEMU_SERIES', '10.0') == '10.0' else [])])
def test_command(command):
    name, *options = command.split()
    done = subprocess.run([ROOT / 'scripts' / name, *options], text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
