# SPDX-License-Identifier: GPL-2.0-or-later
"""The saved guest that keeps the files which two calls have asked for."""

import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from installed import ARCH, on_x86

# With fewer, vpmu-perf does not keep them.
FILES = 1100
DIRECTORIES = 10
# A program that shows the contents of files, and their inodes.  Where Power's C
# library has a lock, as in readdir() and printf(), an interrupt may cost five
# instructions.
WALKS = r'''
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void show(int directory, const struct dirent64 *entry)
{
    char text[64] = "";
    struct stat st;
    int fd = openat(directory, entry->d_name, O_RDONLY | O_NOFOLLOW);

    fstatat(directory, entry->d_name, &st, AT_SYMLINK_NOFOLLOW);
    read(fd, text, sizeof(text));
    close(fd);
    write(1, entry->d_name, strlen(entry->d_name));
    write(1, &st.st_ino, sizeof(st.st_ino));
    write(1, &st.st_dev, sizeof(st.st_dev));
    write(1, text, sizeof(text));
}

static void walk(int directory, const char *name)
{
    int fd = openat(directory, name, O_RDONLY | O_DIRECTORY);
    char data[32768];
    long n, at;

    while ((n = syscall(SYS_getdents64, fd, data, sizeof(data))) > 0) {
        for (at = 0; at < n; ) {
            struct dirent64 *entry = (struct dirent64 *)(data + at);

            at += entry->d_reclen;
            if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
                walk(fd, entry->d_name);
            }
            show(fd, entry);
        }
    }
    close(fd);
}

int main(void)
{
    walk(AT_FDCWD, ".");
    return 0;
}
'''
# All that a file is like, but for what directories take on the host
LIST = ['find', '.', '-printf', r'%p %y %m %U %T@ %C@ %l\n']


class Tree:
    """A directory of files, which programs read in a guest."""

    def __init__(self, place):
        self.place = place
        self.path = place.work / 'a tree of %'
        self.path.mkdir()
        for i in range(FILES):
            self.write(f'{i % DIRECTORIES}/{i}', f'{i:05}\n')
        os.symlink('0/0', self.path / 'link')
        self.program = place.compile('walks', WALKS, '-static')

    def write(self, name, text):
        path = self.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def read(self):
        """What all files have, and the counts in user mode and of Linux."""
        status, out, err = self.place.run(
            '--arch', ARCH, 'stat', '-x,', '-e',
            'instructions:u,instructions:k', self.program, cwd=self.path)
        assert status == 0, err
        user, kernel = re.findall(r'^(\d+),,instructions', err, re.M)
        return out, int(user), int(kernel)

    def assert_is_as_here(self):
        """Also if a program looks only at some of it."""
        for words in LIST, ['grep', '-r', '', '.'], ['cat', 'link']:
            _, here, _ = self.place.run(*words[1:], program=words[:1],
                                        cwd=self.path)
            _, there, err = self.place.run('run', *words, cwd=self.path)
            assert sorted(there.split(b'\n')) == sorted(here.split(b'\n')), err

    def entry(self):
        """The guest that was used last."""
        cache = self.place.top / 'home' / 'cache' / 'vpmu-perf'
        return max(cache.glob('*/memory'),
                   key=lambda path: path.parent.stat().st_mtime).parent

    def kept(self):
        """The guest that keeps the files, after some calls.

        It is for all programs here, although they do not read many.
        """
        self.read()
        with open(self.entry() / 'readers', 'a', encoding='ascii') as f:
            f.writelines(f'\n{os.fsencode(program).hex()}'
                         for program in ('find', 'grep', 'cat', 'true'))
        kept = self.entry() / 'kept'
        for _ in range(5):
            if (kept / 'state').exists():
                break
            self.read()
        assert (kept / 'state').exists()
        return kept


@pytest.fixture(scope='module')
def tree(place):
    tree = Tree(place)
    yield tree
    shutil.rmtree(tree.path)


def test_counts_are_the_same(tree):
    """With the files fetched, and kept by a guest that was saved with them."""
    first, second = tree.read(), tree.read()
    tree.kept()
    third, fourth = tree.read(), tree.read()
    assert all(f'{i:05}\n'.encode() in first[0] for i in range(FILES))
    for one in second, third, fourth:
        assert one[:2] == first[:2]
    for one in third, fourth:
        assert one[2] < first[2] * 3 / 4


@on_x86
def test_other_programs_have_a_guest_without_files(tree):
    """One that keeps files takes longer to start."""
    entry = tree.kept().parent
    shutil.move(entry / 'kept' / 'state', entry / 'kept' / 'other')
    open(entry / 'kept' / 'state', 'wb').close()
    status, out, err = tree.place.run('run', 'echo', 'words')
    assert (status, out) == (0, b'words\n'), err
    assert (entry / 'kept' / 'other').exists()
    shutil.move(entry / 'kept' / 'other', entry / 'kept' / 'state')


def change(path):
    """Everything that can happen to a file."""
    # Other contents of the same size and time
    about = os.stat(path / '0/0')
    (path / '0/0').write_text('other')
    os.utime(path / '0/0', ns=(about.st_atime_ns, about.st_mtime_ns))
    # A file that is gone, a new one, and others that take a file's place
    (path / '1/1').unlink()
    (path / '1/new').write_text('new')
    (path / 'new').write_text('22222\n')
    (path / 'new').rename(path / '2/2')
    (path / '3/3').unlink()
    (path / '3/3').symlink_to('13')
    (path / '3/13').unlink()
    (path / '3/13').mkdir()
    (path / '3/13/new').write_text('new')
    # Directories
    shutil.copytree(path / '4', path / 'copy')
    (path / 'copy/4').write_text('other')
    shutil.rmtree(path / '4')
    (path / 'copy').rename(path / '4')
    shutil.rmtree(path / '5')
    shutil.rmtree(path / '6')
    (path / '6').symlink_to('7')
    (path / '8').rename(path / '7/8')
    (path / '7/7').chmod(0o604)
    (path / '7').chmod(0o555)
    (path / '7/17').rename(path / '9/17')
    # A directory with the time that it had before
    about = os.stat(path / '9')
    (path / '9/9').unlink()
    (path / '9/new').write_text('new')
    os.utime(path / '9', ns=(about.st_atime_ns, about.st_mtime_ns))
    (path / 'link').unlink()
    (path / 'link').symlink_to('1/new')


@on_x86
def test_host_changes_files(tree):
    """While a guest that keeps them is saved."""
    tree.assert_is_as_here()
    kept = tree.kept()
    change(tree.path)
    tree.assert_is_as_here()
    assert (kept / 'state').exists()
    one, other = tree.read(), tree.read()
    assert one[:2] == other[:2]


@on_x86
def test_files_change_always(tree):
    """A guest that keeps them would be of no use."""
    kept = tree.kept()
    shutil.rmtree(kept)
    for _ in range(3):
        for path in tree.path.rglob('*'):
            if path.is_file() and not path.is_symlink():
                path.write_text('once more\n')
        tree.read()
        assert not kept.exists()


@on_x86
def test_cache_is_damaged(tree):
    kept = tree.kept()
    (kept.parent / 'asked').write_bytes(b'\xff\n \n')
    tree.read()
    os.truncate(kept / 'state', 1000)
    status, _, err = tree.place.run('run', 'true')
    assert (status, err) == (0, '')
    assert not kept.exists()


@on_x86
def test_user_does_not_wait(tree):
    """The files need not be kept, and the program's end is reported."""
    entry = tree.kept().parent
    shutil.rmtree(entry / 'kept')
    with tree.place.started('stat', tree.program, cwd=tree.path,
                            stdout=subprocess.DEVNULL) as process:
        while not list(entry.glob('kept*')) and process.poll() is None:
            time.sleep(0.01)
        for _ in range(3):
            process.send_signal(signal.SIGINT)
            time.sleep(0.02)
        process.communicate()
    assert process.returncode == 0
    assert not list(entry.glob('kept*'))


@on_x86
def test_calls_at_once(tree):
    """One of them saves the guest."""
    shutil.rmtree(tree.kept())
    with tree.place.started('stat', tree.program, cwd=tree.path) as one, \
            tree.place.started('stat', tree.program, cwd=tree.path) as other:
        assert one.communicate()[0] == other.communicate()[0]
    assert (one.returncode, other.returncode) == (0, 0)
    assert [path.name for path in tree.entry().glob('kept*')] == ['kept']
