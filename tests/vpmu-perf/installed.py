# SPDX-License-Identifier: GPL-2.0-or-later
"""vpmu-perf as it is installed, in a tree that has moved since, and programs.

vpmu-perf runs as an ordinary user, with a home and a cache of its own, also if
the superuser runs the tests.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading

import pytest

from linux_guest import BUILD, ROOT

ARCH = os.environ.get('ARCH', 'x86_64')
COMPILER = {'x86_64': 'gcc', 'ppc64': 'powerpc64le-linux-gnu-gcc'}[ARCH]
# Debian's nobody: no test runs as root.
USER = 65534
# No command takes a minute even where all is slow; a hang is to be noticed.
PATIENCE = 600

# One architecture is enough for a test that does not depend on it.
on_x86 = pytest.mark.arch('x86_64')

# What draws pages is fetched from npm, where the build has that.
drawn = pytest.mark.skipif(
    not (BUILD / 'vpmu-perf' / 'flamegraph' / 'stamp').exists(),
    reason='npm had no d3-flame-graph for the build')


def usual_first(values):
    """The first one in a usual check, the others in `make check-more`."""
    first, *others = values
    return [first, *(pytest.param(other, marks=pytest.mark.more)
                     for other in others)]


@contextlib.contextmanager
def busy_host():
    """Others want the CPUs, too."""
    busy = [subprocess.Popen([sys.executable, '-c', 'while True: pass'])
            for _ in range(os.cpu_count() + 1)]
    try:
        yield
    finally:
        for one in busy:
            one.kill()
            one.wait()


LOOPS = 1000003
# A program that ends with status 7, and how many instructions it executes.
KNOWN_COUNT, KNOWN = {
    'x86_64': (2 * LOOPS + 4, '''
        .globl _start
_start: mov $%d, %%ecx
1:      dec %%ecx
        jnz 1b
        mov $60, %%eax
        mov $7, %%edi
        syscall
''' % LOOPS),
    'ppc64': (LOOPS + 6, '''
        .abiversion 2
        .globl _start
_start: lis 4, %d
        ori 4, 4, %d
        mtctr 4
1:      bdnz 1b
        li 3, 7
        li 0, 1
        sc
''' % (LOOPS >> 16, LOOPS & 0xffff)),
}[ARCH]


def install(top):
    """Install, uninstall and install again, and move the tree elsewhere."""
    environment = {**os.environ, 'DESTDIR': str(top / 'destination'),
                   'PREFIX': '/usr/some', 'ARCHES': ARCH}
    script = [ROOT / 'scripts' / 'install']
    subprocess.run(script, env=environment, check=True)
    subprocess.run([*script, '--uninstall'], env=environment, check=True)
    left = [path for path in (top / 'destination').rglob('*')
            if not path.is_dir()]
    assert not left, f'make uninstall left {left}'
    subprocess.run(script, env=environment, check=True)
    shutil.move(top / 'destination' / 'usr' / 'some', top / 'elsewhere')
    shutil.rmtree(top / 'destination')


class Place:
    """The installed tree, and a directory in which its user works."""

    def __init__(self, top):
        self.top = top
        self.prefix = top / 'elsewhere'
        self.work = top / 'work directory'
        self.program = self.prefix / 'bin' / 'vpmu-perf'
        for path in (self.work, top / 'home', top / 'programs'):
            path.mkdir()
            self.give(path)
        self.environment = {
            'PATH': '/usr/bin:/bin', 'HOME': str(top / 'home'),
            'XDG_CACHE_HOME': str(top / 'home' / 'cache'), 'LANG': 'C.UTF-8',
            'TEST': 'with \n a line',
        }

    def give(self, path):
        if os.getuid() == 0:
            os.chown(path, USER, USER)

    def compile(self, name, text, *options, suffix='c'):
        """Make a program; returns its path."""
        source = self.top / 'programs' / f'{name}.{suffix}'
        source.write_text(text)
        path = self.top / 'programs' / name
        subprocess.run([COMPILER, '-O1', '-g', *options, '-o', path, source],
                       check=True)
        return path

    def assemble(self, name, text):
        """Make a program without the C library; returns its path."""
        return self.compile(name, text, '-nostdlib', '-static', suffix='S')

    @contextlib.contextmanager
    def started(self, *words, **options):
        """vpmu-perf: ended if it hangs, and gone after this in any case."""
        process = self.start(*words, **options)
        late = threading.Timer(PATIENCE, process.kill)
        late.start()
        try:
            yield process
        finally:
            late.cancel()
            process.kill()
            process.wait()

    def start(self, *words, **options):
        user = {'user': USER, 'group': USER, 'extra_groups': []} \
            if os.getuid() == 0 else {}
        options = {'stdin': subprocess.DEVNULL, 'stdout': subprocess.PIPE,
                   'stderr': subprocess.PIPE, 'cwd': self.work,
                   'env': self.environment, **options}
        program = options.pop('program', [self.program])
        return subprocess.Popen([*program, *map(str, words)], **user,
                                start_new_session=True, **options)

    def run(self, *words, data=None, **options):
        """Run vpmu-perf; returns its status, and what it printed."""
        if data is not None:
            options['stdin'] = subprocess.PIPE
        with self.started(*words, **options) as process:
            out, err = process.communicate(data)
        assert process.returncode != -signal.SIGKILL, f'{words} did not end'
        return process.returncode, out, (err or b'').decode(errors='replace')

    def run_in_shell(self, script, **options):
        """Run a script that finds vpmu-perf by its name."""
        path = f'{self.program.parent}:{self.environment["PATH"]}'
        return self.run('-c', script, program=['sh'],
                        env={**self.environment, 'PATH': path}, **options)

    def count(self, *command, status, options=()):
        """How many instructions a program executes that ends with @status."""
        ended, _, err = self.run(*options, 'stat', '-x,', '-e',
                                 'instructions:u', *command)
        assert ended == status, err
        found = re.search(r'^(\d+),,instructions:u,', err, re.M)
        assert found, f'no count in: {err}'
        return int(found[1])
