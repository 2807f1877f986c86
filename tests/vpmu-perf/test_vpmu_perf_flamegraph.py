# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages with the stacks of a program, and a browser that draws them."""

import re
import shutil
import signal
import subprocess

import pytest

from installed import drawn, on_x86
from test_vpmu_perf_diff import draw, find_browser

pytestmark = [on_x86, drawn]

PROGRAM = r'''
static __attribute__((noinline)) int leaf(int n)
{
    int i, sum = 0;

    for (i = 0; i < n; i++) {
        asm volatile("" : "+r" (sum));
        sum += i;
    }
    return sum;
}

static __attribute__((noinline)) int middle(int n)
{
    return leaf(n) + 1;
}

int main(int argc, char **argv)
{
    return middle(50000) == argc;
}
'''


@pytest.fixture(name='page', scope='module')
def _page(place):
    """Without frame pointers: callers come from branch records."""
    program = place.compile('stacks', PROGRAM, '-fomit-frame-pointer')
    path = place.work / 'stacks.html'
    status, _, err = place.run('flamegraph', '-o', path, '-c', 1009, program)
    assert status == 0, err
    samples = int(re.search(r'stacks.html: (\d+) samples', err)[1])
    return path, samples


def test_program_crashes(place):
    program = place.compile('crashes', PROGRAM.replace(
        'return middle(50000)', 'middle(50000); __builtin_trap(); return 0'))
    path = place.work / 'crashes.html'
    status, _, err = place.run('flamegraph', '-o', path, '-c', 1009, program)
    assert status == 128 + signal.SIGILL, err
    assert path.exists()


def test_page_has_the_stacks(page):
    path, samples = page
    text = path.read_text()
    assert samples > 200
    assert not re.search(r'<(script|link|img)[^>]*(src|href)=', text)
    assert re.search(r'"main", "value": \d+, "delta": 0, "children": '
                     r'\[\{"name": "middle", "value": \d+, "delta": 0, '
                     r'"children": \[\{"name": "leaf"', text)


def test_browser_draws_it(page):
    if not find_browser():
        pytest.skip('there is no Chromium')
    drawn = draw(page[0])
    for name in ('main', 'middle', 'leaf'):
        assert re.search(rf'<title>{name}: [\d,]+', drawn)


def test_profile_from_outside_is_drawn(place):
    """A stream as a pmu-profile writes it: perf's format for pipes."""
    path = place.work / 'outside.perf.data'
    with open(path, 'wb') as f:
        status, _, err = place.run(
            'record', '-e', 'instructions:u', '-c', 1009, '-o', '-',
            shutil.which('true'), stdout=f)
    assert status == 0, err
    status, _, err = place.run('flamegraph', '-i', path, '-o',
                               place.work / 'outside.html')
    assert status == 0, err
    assert re.search(r'outside.html: \d+ samples', err)


@pytest.mark.parametrize('words, said', [
    ([], 'either a program or -i FILE'),
    (['-i', '/nowhere'], '/nowhere is no file'),
    (['-c', 'x', 'true'], "'x' is no number of events"),
    (['-c', '1000000000', 'true'], 'there are no samples'),
])
def test_bad_input_is_refused(place, words, said):
    status, _, err = place.run('flamegraph', *words,
                               stdout=subprocess.DEVNULL)
    assert status and said in err
