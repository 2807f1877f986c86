# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that perf writes."""

import contextlib
import os
import shutil

from .errors import Failure

# What the guest has of its own, below the root.
GUESTS = ('dev', 'proc', 'sys')


def is_guests(path):
    """Whether the guest has something else at a path without links."""
    return path.split('/')[1] in GUESTS


def is_device(name):
    """Whether a name stands for the same in the guest, as /dev/stdout does."""
    where = os.path.realpath(os.path.dirname(os.path.abspath(name)))
    return where in ('/dev', '/dev/pts') and os.path.exists(name) \
        or where.startswith('/proc/')


class Output:
    """A file that perf writes; the guest gets just this one."""

    def __init__(self, name, keeps_old):
        self.path = os.path.realpath(name)
        if keeps_old:
            # Not what a link names becomes the old one, but the link.
            self.path = os.path.join(
                os.path.realpath(os.path.dirname(name) or '.'),
                os.path.basename(name))
        self.old = None
        if os.path.exists(self.path) and not os.path.isfile(self.path):
            raise Failure(f'{name} is no regular file, which perf could write '
                          'in the guest')
        if is_guests(self.path):
            raise Failure(f'{name} would be a file of the guest, and lost; '
                          'name one elsewhere')
        try:
            if keeps_old and os.path.getsize(self.path):
                # perf would do so, but the directory is not its.
                os.replace(self.path, self.path + '.old')
                self.old = self.path + '.old'
        except FileNotFoundError:
            pass
        except OSError as e:
            raise Failure(f'{name} cannot become {name}.old: '
                          f'{e.strerror}') from None
        try:
            self.is_new = not os.path.exists(self.path)
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o666))
        except OSError as e:
            raise Failure(f'{name} cannot be written: {e.strerror}') from None
        self.directory, self.name = os.path.split(self.path)
        self.is_alone = False
        self._be_alone()

    def _be_alone(self):
        """Have a directory with just this file, if the host allows it."""
        import tempfile
        with contextlib.suppress(OSError):
            where = tempfile.mkdtemp(prefix='.vpmu-perf-', dir=self.directory)
            try:
                os.link(self.path, os.path.join(where, 'file'))
            except OSError:
                os.rmdir(where)
                raise
            self.directory, self.name, self.is_alone = where, 'file', True

    def close(self):
        """Restore or remove the file if perf did not write it."""
        if self.is_alone:
            shutil.rmtree(self.directory, ignore_errors=True)
        with contextlib.suppress(OSError):
            if not os.path.getsize(self.path):
                if self.old:
                    os.replace(self.old, self.path)
                elif self.is_new:
                    os.unlink(self.path)


def close_all(outputs):
    while outputs:
        outputs.pop().close()
