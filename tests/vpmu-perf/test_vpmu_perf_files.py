# SPDX-License-Identifier: GPL-2.0-or-later
"""Status, streams and files of programs under vpmu-perf."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

import pytest

from installed import USER, on_x86, usual_first

pytestmark = on_x86

WAITS = '''
import os, select, sys

if sys.argv[1] == "select":
    select.select([0], [], [])
else:
    waits = getattr(select, sys.argv[1])()
    waits.register(0, select.POLLIN)
    waits.poll()
print(os.read(0, 100))
'''

# It writes to memory that is 3 MB of a file; these are on the disk later.
SHARED = r'''
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void)
{
    int fd = open("shared", O_RDWR | O_CREAT, 0600);
    char *text;

    if (fd < 0 || ftruncate(fd, 3 << 20) < 0)
        return 1;
    text = mmap(NULL, 3 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (text == MAP_FAILED)
        return 2;
    memset(text, 'a', 3 << 20);
    return 0;
}
'''


# A library that says by which programs it is loaded.
TELLS = r'''
#include <stdio.h>
#include <sys/prctl.h>

static __attribute__((constructor)) void tell(void)
{
    char name[16];

    prctl(PR_GET_NAME, name);
    puts(name);
    fflush(stdout);
}
'''


def test_status_is_the_programs(place):
    for status in 0, 1, 42:
        found, _, err = place.run('stat', 'sh', '-c', f'exit {status}')
        assert found == status, err


def test_data_is_carried_whole(place):
    data = os.urandom(3 << 20)
    status, out, err = place.run('stat', 'cat', data=data)
    # pytest would show how megabytes differ.
    whole = out == data
    assert whole, f'{len(out)} bytes of {len(data)}; {err}'
    (place.work / 'data').write_bytes(data)
    with open(place.work / 'data', 'rb') as f:
        f.seek(1 << 20)
        _, out, err = place.run('stat', 'cat', stdin=f)
    whole = out == data[1 << 20:]
    assert whole, f'{len(out)} bytes of a file; {err}'


def test_input_is_the_callers_file(place):
    """Also if the guest has one of that name, or no user may open it."""
    closed = place.work / 'closed'
    closed.write_text('closed')
    with tempfile.NamedTemporaryFile('w+', dir='/dev/shm') as shared, \
            open('/proc/sys/kernel/random/boot_id') as guests, \
            open(closed) as unreadable:
        shared.write('shared')
        os.fchmod(shared.fileno(), 0o644)
        closed.chmod(0)
        for file in shared, guests, unreadable:
            file.seek(0)
            data = file.read()
            file.seek(0)
            status, out, err = place.run('stat', 'cat', stdin=file)
            assert (status, out.decode()) == (0, data), f'{file.name}: {err}'


def test_input_is_left_to_others(place):
    """What no program wanted, and what comes after its part of a file."""
    _, out, err = place.run_in_shell(
        'while read x; do vpmu-perf stat echo item $x; done', data=b'1\n2\n')
    assert out == b'item 1\nitem 2\n', err
    (place.work / 'lines').write_text('1\n2\n')
    with open(place.work / 'lines') as lines:
        _, out, err = place.run_in_shell(
            "vpmu-perf stat sh -c 'read x; echo got $x'; cat", stdin=lines)
    assert out == b'got 1\n2\n', err


@pytest.mark.parametrize('how', usual_first(['poll', 'epoll', 'select']))
def test_input_for_those_who_wait_otherwise(place, how):
    """They do not read before they know that there is something."""
    _, out, err = place.run('stat', 'python3', '-c', WAITS, how, data=b'data')
    assert out == b"b'data'\n", err


def test_output_and_errors_are_in_order(place):
    """Where they are the same."""
    _, out, _ = place.run('stat', 'sh', '-c', 'for i in 1 2 3 4; do '
                          'echo out $i; echo error $i >&2; done',
                          stderr=subprocess.STDOUT)
    wanted = ''.join(f'out {i}\nerror {i}\n' for i in range(1, 5)).encode()
    assert out.startswith(wanted), out


def test_reader_may_leave(place):
    with place.started('stat', 'yes') as process:
        process.stdout.read(100000)
        process.stdout.close()
        process.stderr.read()
        process.wait()
    assert process.returncode != -signal.SIGKILL, 'it did not end'


def test_surroundings_are_the_callers(place):
    _, out, err = place.run('stat', 'sh', '-c',
                            'id -u; pwd; umask; echo "$TEST"; '
                            'uname -n; date +%Y', umask=0o27)
    uid = USER if os.getuid() == 0 else os.getuid()
    assert out.decode().split('\n')[:-1] == [
        str(uid), str(place.work), '0027', 'with ', ' a line',
        os.uname().nodename, time.strftime('%Y')], err


def test_long_arguments_and_variables(place):
    environment = {**place.environment, 'LONG': 'x' * 120000}
    _, out, err = place.run('run', 'sh', '-c', 'echo $# ${#LONG}', 'sh',
                            *['word'] * 30000, env=environment)
    assert out == b'30000 120000\n', err


def test_preloaded_library_is_the_programs(place):
    library = place.compile('tells.so', TELLS, '-shared', '-fPIC')
    _, out, err = place.run('stat', 'true', env={**place.environment,
                                                 'LD_PRELOAD': str(library)})
    assert 'true' in out.decode().split(), err
    # perf is loaded by ld.so, before there is a job.
    assert 'ld.so' not in out.decode().split()


def test_files_are_read_only_unless_asked(place):
    words = 'stat', 'sh', '-c', 'echo text > written; test -s written'
    status, _, err = place.run(*words)
    assert status != 0 and 'Read-only' in err, err
    assert not (place.work / 'written').exists()
    status, _, err = place.run('--write', *words)
    assert status == 0, err
    assert (place.work / 'written').read_text() == 'text\n'
    # /tmp is the guest's own to write.
    status, _, err = place.run('stat', 'sh', '-c',
                               'echo > /tmp/vpmu-perf-test')
    assert status == 0, err
    assert not os.path.exists('/tmp/vpmu-perf-test'), 'is on the host'


def test_output_of_perf_is_on_the_host(place):
    status, _, err = place.run('stat', '-o', 'counts', '-x,', 'true')
    assert status == 0, err
    assert 'instructions' in (place.work / 'counts').read_text()
    status, _, err = place.run('stat', '-o', '/no/counts', 'true')
    assert (status, err) == (125, 'vpmu-perf: /no/counts cannot be written: '
                             'No such file or directory\n')
    # What perf reads stands before what it writes.
    place.run('record', '-o', 'one', '-e', 'instructions:u', 'true')
    status, _, err = place.run('inject', '-i', 'one', '-o', 'other')
    assert status == 0, err
    assert (place.work / 'other').stat().st_size > 100, err


def writable_exports(place):
    """What a QEMU of ours may write, by its command line."""
    for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
        with contextlib.suppress(OSError):
            words = path.read_text().split('\0')
            if words[0].startswith(str(place.prefix)):
                return [re.search(',path=([^,]*)', word)[1] for word in words
                        if ',path=' in word and 'readonly=on' not in word
                        and word.startswith('local,')]
    return None


def test_only_what_is_named_is_exported(place):
    """And of an output file, not its directory."""
    directory = place.work / 'sub'
    directory.mkdir()
    place.give(directory)
    with place.started('--write-to', 'sub', 'stat', '-o', 'named', 'sh', '-c',
                       'echo text > sub/made; echo begun; read x',
                       stdin=subprocess.PIPE) as process:
        assert process.stdout.readline() == b'begun\n'
        named, alone = writable_exports(place)
        assert named == str(directory)
        assert os.listdir(alone) == ['file']
        process.communicate(b'\n')
    assert (directory / 'made').read_text() == 'text\n'
    assert 'instructions' in (place.work / 'named').read_text()
    assert not list(place.work.glob('.vpmu-perf-*'))


def test_qemu_is_in_a_sandbox(place):
    """It refuses itself system calls that it needs no more."""
    with place.started('run', 'sh', '-c', 'echo begun; read x',
                       stdin=subprocess.PIPE) as process:
        assert process.stdout.readline() == b'begun\n'
        children = pathlib.Path(
            f'/proc/{process.pid}/task/{process.pid}/children').read_text()
        status, = (pathlib.Path(f'/proc/{child}/status').read_text()
                   for child in children.split())
        process.communicate(b'\n')
    assert re.search(r'^Name:\s+qemu-system', status, re.M)
    assert re.search(r'^Seccomp:\s+2$', status, re.M)


def test_old_output_that_is_a_link(place):
    """It is the link that becomes the old one."""
    (place.work / 'target').write_text('text')
    (place.work / 'link').symlink_to('target')
    place.give(place.work / 'target')
    place.run('record', '-o', 'link', 'true', stdout=subprocess.DEVNULL)
    assert (place.work / 'target').read_text() == 'text'
    assert (place.work / 'link.old').is_symlink()
    assert (place.work / 'link').stat().st_size > 100


def test_outputs_of_other_commands(place):
    """What has no -o, and what is not one."""
    status, _, err = place.run('timechart', 'record', 'true',
                               stdout=subprocess.DEVNULL)
    assert status == 0 and (place.work / 'perf.data').stat().st_size, err
    status, _, err = place.run('stat', '-ao', 'all', 'true')
    assert status == 0 and (place.work / 'all').stat().st_size, err
    os.mkfifo(place.work / 'fifo')
    for words in ('-o', 'fifo'), ('--log-fd', '3'):
        status, _, err = place.run('stat', *words, 'true')
        assert status == 125 and err.count('\n') == 1, err


@pytest.fixture
def small(place):
    """A directory on a disk that is full with a megabyte."""
    if os.getuid() != 0:
        pytest.skip('only root can mount one')
    path = place.work / 'small'
    path.mkdir()
    subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size=1M,uid={USER}', 'none',
                    path], check=True)
    yield path
    subprocess.run(['umount', '-l', path], check=True)


def test_disk_that_is_full(place, small):
    """The program finds out, perf does, and so do we."""
    status, out, err = place.run(
        '--write', 'stat', 'sh', '-c', 'head -c 3000000 /dev/zero > zeros && '
        'echo written', cwd=small)
    assert (status, out) == (1, b'') and 'No space left' in err, err
    (small / 'zeros').unlink()
    status, _, err = place.run(
        'record', '-e', 'instructions:u', '-c', '5', 'ls', cwd=small,
        stdout=subprocess.DEVNULL)
    assert status == 255 and 'No space left' in err, err
    (small / 'perf.data').unlink()
    program = place.compile('shared', SHARED)
    status, _, err = place.run('--write', 'stat', program, cwd=small)
    assert (status, err.splitlines()[-1]) == (
        125, 'vpmu-perf: not all that was written is on the host: '
        'No space left on device'), err
