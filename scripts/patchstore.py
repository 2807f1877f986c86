# SPDX-License-Identifier: GPL-2.0-or-later
"""The patches to QEMU's own files, for scripts/patches and scripts/series.

The files of patches/ that have a number are for QEMU 10.0, in that order.  The
file port.patch of a directory such as patches/10.2 is for the QEMU that the
directory is named after: it changes what a three-way merge makes of 10.0, 10.0
with the patches, and that QEMU.  Where both have changed the same lines, the
merge leaves those of the other QEMU, and after them, between markers, what the
patches do there.  The port replaces both, so that it does not apply any more
when one of them has changed.
"""

import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BASE = '10.0'
PATCHES = ROOT / 'patches'
BUILD = pathlib.Path(os.path.abspath(os.environ.get('BUILD') or ROOT / 'build'))
# As scripts/lib.sh has it: another QEMU's directory has its name.
RELEASE = os.environ.get('QEMU_SERIES') or (
    BUILD.name if re.fullmatch(r'\d+(\.\d+)+', BUILD.name) else BASE)
COMMON = BUILD.parent if BUILD.name == RELEASE else BUILD

KEYS = ['files', 'unit', 'qtest']
# What a merge could not do, as a diff between two lines.
BEGIN = b'<<<<<<< what the patches do to 10.0'
END = b'>>>>>>> what the patches do to 10.0'
MARKER = re.compile(rb'^(<<<<<<<|>>>>>>>) what the patches ', re.M)
# git's marks before the other QEMU's text, 10.0's, the patched, and after it.
SIDES = [mark * 32 for mark in [b'<', b'|', b'=', b'>']]


def die(message, hint=None):
    print(f'error: {message}', file=sys.stderr)
    if hint:
        print(f'hint: {hint}', file=sys.stderr)
    sys.exit(1)


def say(message):
    print(f'==> {message}', file=sys.stderr)


def build_of(release):
    return COMMON if release == BASE else COMMON / release


def pristine_of(release):
    return build_of(release) / 'qemu-pristine'


def has_source(release):
    return (build_of(release) / 'qemu-pristine.stamp').is_file()


def ports():
    return sorted(path.name for path in PATCHES.iterdir() if path.is_dir())


class Patch:
    """A message, what scripts/series is to know, and changes by file."""

    def __init__(self, name, text):
        self.name = name
        head, _, rest = text.partition('\n---\n')
        self.subject, _, body = head.removeprefix(
            'Subject: [PATCH] ').partition('\n')
        self.body = body.strip('\n')
        notes, *parts = re.split(r'^(?=diff --git )', rest, flags=re.M)
        self.notes = notes.strip('\n')
        self.words = words_of(name, self.notes)
        self.parts = {re.match(r'diff --git a/(\S+) ', part)[1]: part
                      for part in parts}

    @property
    def message(self):
        """That of its commit, with all that pack has to find there."""
        return '\n\n'.join(filter(None, [
            self.subject, self.body, self.notes and f'---\n{self.notes}']))

    def removed(self):
        """Files that it removes; a patch does not repeat what they held."""
        return [path for path, part in self.parts.items()
                if '\ndeleted file mode ' in part and '\n@@ ' not in part]

    def changes(self):
        """What git can apply."""
        removed = self.removed()
        return ''.join(part for path, part in self.parts.items()
                       if path not in removed)


def words_of(name, notes):
    words = {key: [] for key in KEYS}
    key = None
    for line in notes.split('\n'):
        if line and not line.startswith(' '):
            key, _, line = line.partition(':')
            if key not in KEYS:
                die(f'patches/{name}: {key} is no key',
                    f"there are {', '.join(KEYS)}")
        if key:
            words[key] += line.split()
    return words


def paths_of(release):
    """The patches to a QEMU, in their order."""
    return sorted(PATCHES.glob(f'{"[0-9]" * 4}-*.patch') if release == BASE
                  else (PATCHES / release).glob('port.patch'))


def read_patches(release):
    return [Patch(path.name, path.read_text(errors='surrogateescape'))
            for path in paths_of(release)]


def files_of(patches):
    return sorted({path for patch in patches for path in patch.parts})


class Repository:
    """Files of a QEMU in git; commits after "base" are patches."""

    def __init__(self, directory):
        self.directory = directory

    def run(self, *args, data=None, **environment):
        """What git returns; neither its user nor its settings matter."""
        return subprocess.run(
            ['git', '-c', 'user.name=vpmu', '-c', 'user.email=vpmu@localhost',
             '-c', 'core.hooksPath=/dev/null', '-c', 'core.autocrlf=false',
             '-c', 'gc.auto=0', '-C', self.directory, *args],
            input=data, capture_output=True, check=False,
            env={**os.environ, 'LC_ALL': 'C', 'GIT_CONFIG_GLOBAL': '/dev/null',
                 'GIT_CONFIG_NOSYSTEM': '1',
                 'GIT_CEILING_DIRECTORIES': str(self.directory.parent),
                 **environment})

    def git(self, *args, data=None, **environment):
        done = self.run(*args, data=data, **environment)
        if done.returncode:
            die(f'git {args[0]} fails in {self.directory}: '
                f'{done.stderr.decode().strip()}')
        return done.stdout.decode(errors='surrogateescape').rstrip('\n')

    def begin(self, release, files):
        """The commit of these files, as QEMU has them."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self.git('init', '-q')
        self.git('config', 'vpmu.release', release)
        # It tells git where the names of functions are.
        for path in ['.gitattributes', *files]:
            source = pristine_of(release) / path
            if source.is_file():
                copy(source, self.directory / path)
        return self.commit_all(f'QEMU {release}')

    def commit_all(self, message):
        self.git('add', '-A', '-f')
        self.git('commit', '-q', '--allow-empty', '-m', message)
        return self.git('rev-parse', 'HEAD')

    def commit_patches(self, patches):
        """On top of "base"; returns the patch that does not apply, or None."""
        index = {'GIT_INDEX_FILE': str(self.directory / '.git/index.patches')}
        commit = self.git('rev-parse', 'base')
        self.git('read-tree', commit, **index)
        refused = None
        for patch in patches:
            if not self.apply(patch, index):
                refused = patch
                break
            tree = self.git('write-tree', **index)
            commit = self.git('commit-tree', '-p', commit, tree,
                              data=encode(patch.message))
        self.git('reset', '-q', '--hard', commit)
        return refused

    def apply(self, patch, index):
        if patch.removed():
            self.git('update-index', '--force-remove', '--', *patch.removed(),
                     **index)
        return not patch.changes() or self.run(
            'apply', '--cached', '--whitespace=nowarn',
            data=encode(patch.changes()), **index).returncode == 0


def encode(text):
    return text.encode(errors='surrogateescape')


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


def put(file, found):
    """Make a file what get() has found; one that is so keeps its time."""
    if not found:
        file.unlink(missing_ok=True)
        return
    mode, data = found
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.is_file() or file.read_bytes() != data:
        file.write_bytes(data)
    file.chmod(int(mode[-3:], 8))


def get(file):
    if not file.is_file():
        return None
    return ('100755' if os.access(file, os.X_OK) else '100644',
            file.read_bytes())


def need_sources(*releases):
    for release in releases:
        if not has_source(release):
            die(f'there is no source of QEMU {release}',
                f"try 'make source QEMU_SERIES={release}'")


def start_base(directory, patches, more=()):
    """A repository of 10.0 with its patches."""
    need_sources(BASE)
    repository = Repository(directory)
    repository.begin(BASE, [*files_of(patches), *more])
    repository.git('tag', 'base')
    refused = repository.commit_patches(patches)
    if refused:
        die(f'patches/{refused.name} does not apply to QEMU {BASE}',
            f'the commits in {directory} are those before it')
    return repository


def start_port(directory, release, patches, more=()):
    """A repository of another QEMU, in which "base" is the merge.

    The port is not committed; where it does not apply is FILE.rej.
    """
    merged = merged_files(release)
    repository = Repository(directory)
    repository.begin(release, [*merged, *files_of(patches), *more])
    repository.git('tag', 'pristine')
    for path, found in merged.items():
        put(directory / path, found)
    repository.commit_all(f'QEMU {release}, merged with the patches')
    repository.git('tag', 'base')
    for patch in patches:
        repository.run('apply', '--reject', '--whitespace=nowarn',
                       data=encode(patch.changes()))
    return repository


def patched_files(release):
    """{path: (mode, bytes)}, None for one that is removed, of changed files.

    Returns them, and those in which the patches do not apply.
    """
    patches = read_patches(release)
    need_sources(release)
    contents = {path: get(pristine_of(release) / path)
                for path in files_of(patches)}
    if release != BASE:
        contents |= merged_files(release)
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch)
        for path, found in contents.items():
            put(directory / path, found)
        done = apply_to(directory, patches)
        contents = {path: get(directory / path) for path in contents}
    refused = re.findall(r'^error: (?:patch failed: )?(\S+?):',
                         done.stderr.decode(), re.M) if done.returncode else []
    noted_in = [path for path, found in contents.items()
                if found and MARKER.search(found[1])]
    # A port that is refused is not applied anywhere.
    return contents, sorted(set(refused or noted_in))


def apply_to(directory, patches):
    """To files that are in no repository; returns what git says of it."""
    changes = ''.join(patch.changes() for patch in patches)
    done = Repository(directory).run(
        'apply', '--whitespace=nowarn', data=encode(changes)
    ) if changes else subprocess.CompletedProcess([], 0, b'', b'')
    for patch in patches:
        for path in patch.removed():
            (directory / path).unlink()
    return done


def merged_files(release):
    """What a merge makes of the files that the patches to 10.0 change."""
    need_sources(BASE, release)
    contents, refused = patched_files(BASE)
    if refused:
        die(f'the patches do not apply to QEMU {BASE}: ' + ' '.join(refused))
    return {path: merge(path, found, release)
            for path, found in contents.items()}


def merge(path, wanted, release):
    """Another QEMU's file, with what the patches do, "wanted" of 10.0."""
    old, there = (get(pristine_of(of) / path) for of in [BASE, release])
    if wanted == old:
        return there
    if not wanted or not old or there == old:
        return wanted
    if not there:
        return ('100644', noted(old[1], wanted[1]))
    with tempfile.TemporaryDirectory() as scratch:
        names = [os.path.join(scratch, name) for name in ['to', 'of', 'from']]
        for name, (_, data) in zip(names, [there, old, wanted]):
            pathlib.Path(name).write_bytes(data)
        done = Repository(pathlib.Path(scratch)).run(
            'merge-file', '-p', '--diff3', f'--marker-size={len(SIDES[0])}',
            *names)
    return (there[0], with_notes(done.stdout))


def with_notes(merged):
    """The other QEMU's text, then a note, where git leaves three texts."""
    lines = []
    sides = []
    for line in merged.splitlines(True):
        mark = next((n for n, side in enumerate(SIDES)
                     if line.startswith(side)), None)
        if mark == 3:
            there, old, new = (b''.join(text) for text in sides)
            lines += [there, noted(old, new)]
            sides = []
        elif mark is not None:
            sides.append([])
        else:
            (sides[-1] if sides else lines).append(line)
    return b''.join(lines)


def noted(old, new):
    """What the patches do to 10.0's text, and could not be merged."""
    lines = difflib.unified_diff(*(
        data.decode(errors='surrogateescape').splitlines(True)
        for data in [old, new]), n=1)
    # Lines in a part of a file have numbers that say nothing.
    return b'%s\n%s%s\n' % (BEGIN, encode(''.join(
        '@@\n' if line.startswith('@@ ') else line
        for line in list(lines)[2:])), END)


def unresolved(repository):
    """Files in which markers are left."""
    return [path for path in repository.git('ls-files').split('\n')
            if MARKER.search((get(repository.directory / path) or [0, b''])[1])]


def formatted(repository):
    """Commits as [(subject, text of the patch)], alike for all users."""
    # Names of contents change with each earlier patch.
    log = without_index(repository.git(
        'log', '--reverse', '--format=%x01%B%x02', '-p', '--no-renames', '-D',
        'base..HEAD'))
    found = []
    for commit in log.split('\1')[1:]:
        message, _, diff = commit.partition('\2')
        head, _, notes = message.partition('\n---\n')
        found.append((head.partition('\n')[0],
                      text_of(head.strip('\n'), notes.strip('\n'), diff)))
    return found


def formatted_port(repository, release):
    """All that differs from the merge; its places are found by its markers."""
    repository.git('add', '-A', '-f')
    diff = repository.git('diff', '--cached', '--no-renames', '-U1', 'base')
    old = [patch.message for patch in read_patches(release)]
    return text_of(*old or [f'port to QEMU {release}'], '', without_index(diff))


def without_index(diff):
    return re.sub(r'^index [0-9a-f]+\.\.[0-9a-f]+( \d+)?\n', '', diff,
                  flags=re.M)


def text_of(head, notes, diff):
    parts = filter(None, [f'---\n{notes}'.rstrip('\n'), diff.strip('\n')])
    return f'Subject: [PATCH] {head}\n' + '\n\n'.join(parts) + '\n'
