# SPDX-License-Identifier: GPL-2.0-or-later
"""Random numbers that are the same in each run: `vpmu-perf --seed`."""

import json

from installed import ARCH, on_x86
from test_vpmu_perf_counts import busy_host

# Writes what it gets, each in a line of its own: in all ways that there are, by
# children and threads, and the last bytes of what is long.
RANDOM = r'''
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void show(const char *what, const void *data, size_t n)
{
    const unsigned char *byte = data;

    printf("%s %zu:", what, n);
    for (size_t i = n > 8 ? n - 8 : 0; i < n; i++) {
        printf(" %02x", byte[i]);
    }
    putchar('\n');
    fflush(stdout);
}

static void *draw(void *to)
{
    getrandom(to, 8, 0);
    return NULL;
}

int main(void)
{
    static const size_t sizes[] = { 16, 257, 5000 };
    static const char *const devices[] = { "/dev/urandom", "/dev/random" };
    static char data[5000], drawn[4][8];
    struct iovec parts[] = { { data, 10 }, { data, 0 }, { data + 20, 5 } };
    pthread_t threads[2];
    int i, fd;

    show("AT_RANDOM", (void *)getauxval(AT_RANDOM), 16);
    for (i = 0; i < 3; i++) {
        show("getrandom", data, getrandom(data, sizes[i], 0));
    }
    for (i = 0; i < 2; i++) {
        fd = open(devices[i], O_RDONLY);
        show(devices[i], data, read(fd, data, 4321));
    }
    memset(data, 0, sizeof(data));
    if (readv(fd, parts, 3) != 15 || data[10] || data[19] || data[25]) {
        return 1;
    }
    show("readv", data + 17, 8);
    for (i = 0; i < 2; i++) {
        if (!fork()) {
            draw(drawn[0]);
            show("child", drawn[0], 8);
            _exit(0);
        }
        wait(NULL);
        pthread_create(&threads[i], NULL, draw, drawn[i + 1]);
    }
    for (i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        show("thread", drawn[i + 1], 8);
    }
    return 0;
}
'''


def test_random_bytes_are_the_seeds(place):
    def lines(seed, program):
        status, out, err = place.run('--arch', ARCH, '--seed', seed, 'run',
                                     program)
        assert status == 0, err
        return out.decode().splitlines()

    static = place.compile('random', RANDOM, '-static', '-pthread')
    first = lines(1, static)
    assert len({line.partition(':')[2] for line in first}) == 11, first
    with busy_host():
        assert lines(1, static) == first
    dynamic = place.compile('random', RANDOM, '-pthread')
    assert lines(1, dynamic)[0] == first[0]
    other = lines(2, static)
    assert not {*other} & {*first} and len(other) == len(first)


@on_x86
def test_program_with_hash_tables_repeats(place):
    baseline = place.work / 'seeds.json'
    baseline.unlink(missing_ok=True)
    words = ('compare', '--baseline', baseline, '--repeat', 2, '--', 'python3',
             '-S', '-s', '-c', 'print({str(i) for i in range(99)})')
    status, _, err = place.run('--seed', 1, *words[:-6], '--update',
                               *words[-6:])
    assert status == 0 and ' repeats: ' in err, err
    entry, = json.loads(baseline.read_text())['programs'].values()
    assert entry['repeats'] and entry['depends']['seed'] == 1
    status, out, err = place.run('--seed', 2, *words)
    assert ' repeats: ' in err
    assert b'\n    --seed: was 1 and is 2\n' in out, out


@on_x86
def test_bad_seeds_are_refused(place):
    for seed in '-1', 'x', '1.5', '', str(1 << 64):
        status, _, err = place.run('--seed', seed, 'stat', 'true')
        assert status == 2 and f"'{seed}' is no seed: a number " in err, err
