# SPDX-License-Identifier: GPL-2.0-or-later
"""A modelled core, compared with Cachegrind, which has the same definition.

The programs are without a C library, whose functions depend on the CPU, and
have a stack of their own, as the kernel's place for it differs from Valgrind's.
Cachegrind predicts every return.  As a locked instruction is a loop to
Valgrind, it counts a conditional branch: no program here has one.
"""

import functools
import json
import re
import shutil
import subprocess

import pytest

from installed import ARCH, busy_host, on_x86, usual_first
from linux_guest import ROOT

# Calls work() with the stack, and exits.
START = {
    'x86_64': 'lea stack + 65536(%rip), %rsp;'
              'call work; mov $60, %eax; xor %edi, %edi; syscall',
    # A function may store up to 32 bytes above its stack pointer.
    'ppc64': 'lis 2, .TOC.@ha; addi 2, 2, .TOC.@l;'
             'lis 1, stack + 65504@ha; addi 1, 1, stack + 65504@l;'
             'bl work; nop; li 0, 1; li 3, 0; sc',
}[ARCH]

# In front of each program's work().
BEGIN = f'''
static char stack[65536] __attribute__((aligned(4096), used));
asm(".globl _start; _start: {START}");
''' + r'''
static unsigned seed = 1;
static unsigned next(void)
{
    return seed = seed * 1103515245 + 12345;
}
'''

# What sorts and searches: reads, writes, branches at random.
SORT = BEGIN + r'''
#define N 10000
static unsigned numbers[N];
static void sort(int low, int high)
{
    int i = low, j = high;
    unsigned middle = numbers[(low + high) / 2];

    while (i <= j) {
        while (numbers[i] < middle)
            i++;
        while (numbers[j] > middle)
            j--;
        if (i <= j) {
            unsigned other = numbers[i];

            numbers[i++] = numbers[j];
            numbers[j--] = other;
        }
    }
    if (low < j)
        sort(low, j);
    if (i < high)
        sort(i, high);
}
__attribute__((used)) void work(void)
{
    for (int i = 0; i < N; i++)
        numbers[i] = next();
    sort(0, N - 1);
}
'''

# Unaligned places all over 8 MiB, changed in place, and calls by a table.
SCATTER = BEGIN + r'''
static char area[8 << 20];
static void add(unsigned long *p)     { *p += 3; }
static void flip(unsigned long *p)    { *p ^= 5; }
static void count(unsigned long *p)   { p[0]--; }
static void copy(unsigned long *p)    { p[1] = p[0]; }
static void (*volatile table[])(unsigned long *) = { add, flip, count, copy };
__attribute__((used)) void work(void)
{
    for (int i = 0; i < 100000; i++) {
        unsigned where = next() >> 8;

        table[where >> 20 & 3](
            (void *)(area + (where & 0x7fffe0) + where % 29));
    }
}
'''

# Walks over 1 MiB by strides below a line, of a line, of a page, and of a set.
STRIDES = BEGIN + r'''
static char area[1 << 20];
__attribute__((used)) void work(void)
{
    static const int strides[] = { 4, 24, 64, 72, 4096, 4160, 32768 };

    for (unsigned s = 0; s < sizeof(strides) / sizeof(strides[0]); s++)
        for (int round = 0; round < 3; round++)
            for (int i = 0; i < (int)sizeof(area); i += strides[s])
                area[i] += round;
}
'''

# Matrices of whole numbers, as they are defined: one is read by columns.
MATRIX = BEGIN + r'''
#define N 96
static int a[N][N], b[N][N], c[N][N];
__attribute__((used)) void work(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            a[i][j] = b[j][i] = next() >> 16;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int k = 0; k < N; k++)
                c[i][j] += a[i][k] * b[k][j];
}
'''

# A list of 4 MiB whose elements follow each other at random.
LIST = BEGIN + r'''
#define N 65536
static struct { unsigned next, value[15]; } list[N];
__attribute__((used)) void work(void)
{
    unsigned at = 0, sum = 0;

    for (unsigned i = 0; i < N; i++)
        list[i].next = i;
    for (unsigned i = N - 1; i > 0; i--) {
        unsigned j = (next() >> 8) % i, other = list[i].next;

        list[i].next = list[j].next;
        list[j].next = other;
    }
    for (int i = 0; i < 200000; i++) {
        at = list[at].next;
        sum += list[at].value[i % 15]++;
    }
    list[0].value[0] = sum;
}
'''

# Code that is read: an indirect jump for each of its instructions.
INTERPRETER = BEGIN + r'''
static unsigned char code[4096];
static unsigned registers[16];
__attribute__((used)) void work(void)
{
    static const void *const table[] = {
        &&add, &&sub, &&shift, &&load, &&store, &&skip, &&turn, &&mix };
    unsigned at = 0, left = 300000, r = 0;

    for (unsigned i = 0; i < sizeof(code); i++)
        code[i] = next() >> 20;
#define STEP do {                                                \
        if (!--left)                                             \
            return;                                              \
        r = code[at] >> 4;                                       \
        at = (at + 1) % sizeof(code);                            \
        goto *table[code[at] & 7];                               \
    } while (0)
    STEP;
add:   registers[r] += registers[r ^ 1]; STEP;
sub:   registers[r] -= registers[r ^ 5]; STEP;
shift: registers[r] = registers[r] << 3 | registers[r] >> 29; STEP;
load:  registers[r] = code[registers[r ^ 3] % sizeof(code)]; STEP;
store: code[(at + 64) % sizeof(code)] = registers[r]; STEP;
skip:  at = (at + (registers[r] & 15)) % sizeof(code); STEP;
turn:  registers[r] = ~registers[r]; STEP;
mix:   registers[r] ^= registers[r ^ 7] + at; STEP;
}
'''

# Calls within calls, deeper than a return stack.
RECURSION = BEGIN + r'''
static int __attribute__((noinline)) ways(int n, int most)
{
    int sum = 0;

    if (n == 0)
        return 1;
    for (int part = most < n ? most : n; part > 0; part--)
        sum += ways(n - part, part);
    return sum;
}
static int volatile result;
__attribute__((used)) void work(void)
{
    result = ways(40, 40);
}
'''

# Bytes that are crossed out, and branches that become rarer.
SIEVE = BEGIN + r'''
static char crossed[300000];
static volatile int primes;
__attribute__((used)) void work(void)
{
    for (int i = 2; i < (int)sizeof(crossed); i++)
        if (!crossed[i]) {
            primes++;
            for (int j = 2 * i; j < (int)sizeof(crossed); j += i)
                crossed[j] = 1;
        }
}
'''

PROGRAMS = {'sort': SORT, 'scatter': SCATTER, 'strides': STRIDES,
            'matrix': MATRIX, 'list': LIST, 'interpreter': INTERPRETER,
            'recursion': RECURSION, 'sieve': SIEVE}

# For Power: loads of 16 bytes, 8 from the end of a line and 8 from the next;
# and stores, as Valgrind leaves out loads whose result is not used.
COPIES = 4096
VECTORS = BEGIN + r'''
static char area[1 << 20] __attribute__((aligned(4096))), to[16];
__attribute__((used)) void work(void)
{
    for (unsigned i = 120; i < sizeof(area); i += 256)
        asm volatile("lxvd2x 0, 0, %0; stxvd2x 0, 0, %1"
                     : : "r"(area + i), "r"(to) : "memory", "fr0");
}
'''

OPTIONS = ['-O2', '-nostdlib', '-static', '-fno-pic', '-no-pie',
           '-fno-builtin', '-fno-stack-protector',
           '-fno-asynchronous-unwind-tables',
           # Valgrind accesses other bytes than VSX's loads: see test_vectors.
           *{'x86_64': [], 'ppc64': ['-mno-vsx']}[ARCH]]

# perf's codes of events, by Cachegrind's names of what each is the sum of, in
# groups that have to wait for no counter
GROUPS = {
    'x86_64': [
        {'Ir': 'instructions:u', 'I1mr': 'r0283:u', 'D1mr+D1mw': 'r0151:u',
         'D1mr': 'r08d1:u', 'ILmr+DLmr+DLmw': 'r412e:u'},
        {'DLmr': 'r20d1:u', 'Bcm+Bim': 'r00c5:u', 'Bcm': 'r01c5:u'},
    ],
    # With the penalties below, misses of the last level are the cycles, and
    # those of fetches the ones that the frontend waits.
    'ppc64': [
        {'Ir': 'instructions:u', 'ILmr+DLmr+DLmw': 'cycles:u', 'Dr': 'r100fc:u',
         'I1mr': 'r200fd:u', 'D1mw': 'r300f0:u', 'D1mr': 'r400f0:u'},
        {'ILmr': 'r100f8:u', 'Dw': 'r200f0:u', 'DLmr': 'r300fe:u',
         'Bcm+Bim': 'r400f6:u'},
    ],
}[ARCH]
CORE = {
    'x86_64': ['--core', 'skylake,branch-returns=0'],
    # No program is larger than a last level of 10 MiB.
    'ppc64': ['--arch', 'ppc64', '--core', 'power9,branch-returns=0,'
              'llc-size=2560k,insn-cycles=0,l1-cycles=0,llc-cycles=1,'
              'tlb-cycles=0,branch-cycles=0'],
}[ARCH]
GEOMETRY = {
    'x86_64': ['--I1=32768,8,64', '--D1=32768,8,64', '--LL=8388608,16,64'],
    'ppc64': ['--I1=32768,8,128', '--D1=32768,8,128', '--LL=2621440,20,128'],
}[ARCH]


def modelled(place, program):
    found = {}
    path = place.work / f'{program.name}.json'
    for group in GROUPS:
        status, _, err = place.run(*CORE, 'compare', '--baseline', path,
                                   '--update', '-e', ','.join(group.values()),
                                   program)
        assert status == 0, err
        one, = json.loads(path.read_text())['programs'].values()
        found.update((names, one['counts'][event])
                     for names, event in group.items())
    return found


@functools.lru_cache
def powers_cachegrind(place):
    """Debian's program for Power, where vpmu-perf may read it."""
    path = subprocess.run([ROOT / 'scripts' / 'fetch-valgrind'], check=True,
                          text=True, stdout=subprocess.PIPE).stdout.strip()
    return shutil.copy(path, place.top / 'programs' / 'cachegrind')


def cachegrinds(place, program):
    """What Cachegrind writes, on Power in a guest."""
    # Where Valgrind follows jumps, it makes one branch of two in "if (a && b)",
    # and leaves out branches whose conditions it can compute.
    words = ['--tool=cachegrind', '--cache-sim=yes', '--branch-sim=yes',
             '--vex-guest-chase=no', '--cachegrind-out-file=/dev/stdout',
             *GEOMETRY, program]
    if ARCH == 'x86_64':
        text = subprocess.run(['valgrind', *words], check=True, text=True,
                              capture_output=True).stdout
    else:
        tool = powers_cachegrind(place)
        # As its launcher would set them
        variables = {'VALGRIND_LAUNCHER': tool, 'VALGRIND_LIB': tool.parent}
        status, out, err = place.run(*CORE, 'run', tool, *words,
                                     env={**place.environment, **variables})
        assert status == 0, err
        text = out.decode()
    names = re.search(r'^events: (.*)', text, re.M)[1].split()
    values = map(int, re.search(r'^summary: (.*)', text, re.M)[1].split())
    return dict(zip(names, values))


def both(place, name, source):
    """The model's counts, and Cachegrind's of the same."""
    program = place.compile(name, source, *OPTIONS)
    found = modelled(place, program)
    counts = cachegrinds(place, program)
    return found, {names: sum(counts[one] for one in names.split('+'))
                   for names in found}


@pytest.mark.parametrize('name', usual_first(PROGRAMS))
def test_misses_are_cachegrinds(place, name):
    found, counts = both(place, name, PROGRAMS[name])
    assert found == counts


@pytest.mark.more
@pytest.mark.arch('ppc64')
def test_vectors(place):
    """Loads and stores of two halves are two references each, where the PMU
    counts instructions; but Valgrind loads all of a vector twice, and misses
    both lines at once.
    """
    found, counts = both(place, 'vectors', VECTORS)
    assert found['D1mr'] == found['DLmr'] == 2 * COPIES
    more = {'Dr': COPIES, 'Dw': COPIES, 'D1mr': -COPIES, 'DLmr': -COPIES,
            'ILmr+DLmr+DLmw': -COPIES}
    assert counts == {names: count + more.get(names, 0)
                      for names, count in found.items()}


@pytest.mark.more
@on_x86
@pytest.mark.parametrize('name', PROGRAMS)
def test_ten_runs_are_the_same(place, name):
    """Five alone, and five beside others: misses and cycles, to the digit."""
    program = place.compile(name, PROGRAMS[name], *OPTIONS)
    events = 'cycles:u,r0151:u,r412e:u,r00c5:u'

    def counts():
        status, _, err = place.run('--core', 'skylake', 'stat', '-x,', '-e',
                                   events, program)
        assert status == 0, err
        return re.findall(r'^(\d+),,(\S+:u)', err, re.M)

    runs = [counts() for _ in range(5)]
    with busy_host():
        runs += [counts() for _ in range(5)]
    assert len(runs[0]) == 4 and all(run == runs[0] for run in runs), runs
