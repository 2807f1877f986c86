# SPDX-License-Identifier: GPL-2.0-or-later
"""What a guest is told to do."""

import contextlib
import os
import resource
import shutil
import signal
import stat
import time

from .errors import Failure
from .machine import EXPORTS
from .outputs import is_guests
from .qemu import unescaped

# Linux's limit is 4096, with the directory below which the guest has them.
LONGEST_PATH = 4000
# The environment of programs is as long as a multiple of this.
ENVIRONMENT = 16 << 10
# A variable that perf sets, also if it is set already
OF_PERF = 'PERF_BUILDID_DIR'


def directories_to_write(args):
    names = list(args.write_to)
    if args.write:
        names.append(os.getcwd())
    for name in names:
        if not os.path.isdir(name):
            raise Failure(f'{name} is not a directory')
    paths = sorted({os.path.realpath(name) for name in names})
    paths = [path for path in paths
             if not any(path != other and path.startswith(
                 os.path.join(other, '')) for other in paths)]
    if len(paths) >= EXPORTS:
        raise Failure(f'a program may write to {EXPORTS - 1} directories, and '
                      'what is in them')
    for path in paths:
        if path == '/' or is_guests(path):
            raise Failure(f'{path} contains directories of the guest\'s own; '
                          'name directories of the host\'s files')
    return paths


def exported(directories, outputs):
    """What QEMU may write."""
    return directories + [output.directory for output in outputs]


def is_opened_again(path, about):
    """Whether the guest can open a file, and it is the one with that status."""
    return os.path.samestat(about, os.stat(path)) and \
        os.access(path, os.R_OK) and '\n' not in path and not is_guests(path)


def is_output(about):
    """Whether standard output is that file, and a relay carries it."""
    with contextlib.suppress(OSError):
        return os.path.samestat(about, os.fstat(1)) and \
            kind_of(1).startswith('pipe')
    return False


def kind_of(fd):
    """What a standard stream is, as the guest's own is to be."""
    try:
        about = os.fstat(fd)
    except OSError:
        return 'closed 0'
    if os.isatty(fd):
        return 'tty 0'
    if fd == 2 and is_output(about):
        # In the order in which it is written.
        return 'same 0'
    if stat.S_ISCHR(about.st_mode) and about.st_rdev == os.makedev(1, 3):
        return 'null 0'
    if fd == 0 and stat.S_ISREG(about.st_mode):
        path = os.readlink('/proc/self/fd/0')
        with contextlib.suppress(OSError):
            if is_opened_again(path, about):
                return f'path {os.lseek(0, 0, os.SEEK_CUR)} {path}'
    return 'pipe 0'


def window():
    """The rows and columns of the terminal, if there is one."""
    for fd in range(3):
        with contextlib.suppress(OSError):
            lines = os.get_terminal_size(fd)
            return f'{lines.lines} {lines.columns}'
    return '24 80'


LIMITS = ('STACK', 'CORE', 'CPU', 'FSIZE', 'DATA', 'AS', 'NOFILE')


def ignored_signals():
    """The numbers of those that the caller ignores.

    Python ignores two by itself.
    """
    return sorted(int(number) for number in signal.valid_signals()
                  - {signal.SIGPIPE, signal.SIGXFSZ}
                  if signal.getsignal(number) == signal.SIG_IGN)


def fields_of_user():
    yield 'uid', os.getuid()
    yield 'gid', os.getgid()
    for group in os.getgroups():
        yield 'group', group
    mask = os.umask(0)
    os.umask(mask)
    yield 'umask', f'{mask:o}'
    for number in ignored_signals():
        yield 'ignored', number
    for name in LIMITS:
        which = getattr(resource, f'RLIMIT_{name}')
        soft, hard = (value & (1 << 64) - 1
                      for value in resource.getrlimit(which))
        yield 'limit', f'{which} {soft} {hard}'


def strings_on_stack(variables, command, has_perf):
    """As far as they are known: the program's path and arguments without perf,
    and with it what perf sets.
    """
    if has_perf:
        others = (one for one in variables if not one.startswith(f'{OF_PERF}='))
        return [*others, f'{OF_PERF}={os.environ.get("HOME", "")}/.debug']
    program = command.words[0]
    path = program if '/' in program else shutil.which(program) or program
    return [path, *command.words, *variables]


def padding(strings):
    """Variables with which the stack begins at the same address in each run.

    Above it, Linux puts all strings, and then their addresses, whose number is
    even, or it would leave eight bytes more or less.
    """
    names = ['VPMU_PERF_PADDING=']
    if len(strings) % 2 == 0:
        names.append('VPMU_PERF_EVEN=')
    used = sum(len(os.fsencode(one)) + 1 + 8 for one in strings + names)
    names[0] += '.' * (-used % ENVIRONMENT)
    return names


def job(args, command, kinds, outputs, directories, changes):
    """What the guest is told to do, as it reads it."""
    fields = [
        *(('forget', unescaped(path)) for _, path in changes),
        ('time', f'{time.time():.6f}'),
        ('host', os.uname().nodename),
        ('directory', os.getcwd()),
        ('window', window()),
        *fields_of_user(),
    ]
    if args.run:
        fields.append(('run', '1'))
    if args.aslr:
        fields.append(('aslr', '1'))
    if args.maps:
        fields.append(('maps', '1'))
    if args.seed is not None:
        fields.append(('seed', args.seed))
    if args.region:
        fields.append(('region', '1'))
    fields += [('count', event) for event in args.count]
    fields += [('stream', f'{fd} {kind}') for fd, kind in enumerate(kinds)]
    fields.append(('exports', len(exported(directories, outputs))))
    for i, path in enumerate(directories):
        fields += [('from', f'{i}'), ('write', path)]
    for i, output in enumerate(outputs, len(directories)):
        fields += [('from', f'{i}/{output.name}'), ('write', output.path)]
    words = command.words if args.run else ['perf', *command.words]
    fields += [('argument', word) for word in words]
    variables = [f'{name}={value}' for name, value in os.environ.items()]
    strings = strings_on_stack(variables, command, not args.run)
    fields += [('environment', variable)
               for variable in variables + padding(strings)]
    text = b''.join(os.fsencode(f'{key}={value}') + b'\0'
                    for key, value in fields)
    return b'%d\n' % len(text) + text


def give_job(qemu, text):
    try:
        qemu.sockets['control'].sendall(text)
    except OSError:
        raise Failure(qemu.complaint()) from None
