# SPDX-License-Identifier: GPL-2.0-or-later
"""Status, streams and files of programs under vpmu-perf."""

import os
import signal
import tempfile
import time

from installed import USER, on_x86

pytestmark = on_x86


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
