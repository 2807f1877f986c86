# SPDX-License-Identifier: GPL-2.0-or-later
"""A modelled core, compared with Cachegrind, which has the same definition.

The programs are without a C library, whose functions depend on the CPU, and
have a stack of their own, as the kernel's place for it differs from Valgrind's.
Cachegrind predicts every return.  As a locked instruction is a loop to
Valgrind, it counts a conditional branch: no program here has one.
"""

import re
import subprocess

import pytest

from installed import busy_host, on_x86, usual_first

# In front of each program's work().
BEGIN = r'''
static char stack[65536] __attribute__((aligned(4096), used));
asm(".globl _start\n"
    "_start: lea stack + 65536(%rip), %rsp\n"
    "        call work\n"
    "        mov $60, %eax\n"
    "        xor %edi, %edi\n"
    "        syscall\n");
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

# Bytes that are crossed out, and branches that become rarer.  Where nothing is
# stored between two tests with the same target, as in "if (a && b)", Valgrind
# makes one of them, and Cachegrind counts the second where it is not executed.
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
OPTIONS = ['-O2', '-nostdlib', '-static', '-fno-pic', '-no-pie',
           '-fno-builtin', '-fno-stack-protector',
           '-fno-asynchronous-unwind-tables']

# perf's codes of Skylake's events, by what Cachegrind calls them
COUNTED = {
    'instructions': 'instructions:u',
    'I1': 'r0283:u',
    'D1': 'r0151:u',
    'D1 reads': 'r08d1:u',
    'LL': 'r412e:u',
    'LL reads': 'r20d1:u',
    'mispredicted': 'r00c5:u',
    'conditions': 'r01c5:u',
}
# Four counters at a time, so that none has to wait.
GROUPS = [list(COUNTED)[:5], ['instructions', *list(COUNTED)[5:]]]
CORE = ('--core', 'skylake,branch-returns=0')


def modelled(place, program):
    found = {}
    for group in GROUPS:
        events = ','.join(COUNTED[name] for name in group)
        status, _, err = place.run(*CORE, 'stat', '-x,', '-e', events, program)
        assert status == 0, err
        for name in group:
            found[name] = int(re.search(rf'^(\d+),,{COUNTED[name]},', err,
                                        re.M)[1])
    return found


def cachegrinds(program, tmp_path):
    out = tmp_path / 'out'
    subprocess.run(['valgrind', '--tool=cachegrind', '--cache-sim=yes',
                    '--branch-sim=yes', '--I1=32768,8,64', '--D1=32768,8,64',
                    '--LL=8388608,16,64', f'--cachegrind-out-file={out}',
                    program], check=True, capture_output=True)
    text = out.read_text()
    names = re.search(r'^events: (.*)', text, re.M)[1].split()
    values = map(int, re.search(r'^summary: (.*)', text, re.M)[1].split())
    of = dict(zip(names, values))
    return {
        'instructions': of['Ir'],
        'I1': of['I1mr'],
        'D1': of['D1mr'] + of['D1mw'],
        'D1 reads': of['D1mr'],
        'LL': of['ILmr'] + of['DLmr'] + of['DLmw'],
        'LL reads': of['DLmr'],
        'mispredicted': of['Bcm'] + of['Bim'],
        'conditions': of['Bcm'],
    }


@on_x86
@pytest.mark.parametrize('name', usual_first(PROGRAMS))
def test_misses_are_cachegrinds(place, tmp_path, name):
    program = place.compile(name, PROGRAMS[name], *OPTIONS)
    assert modelled(place, program) == cachegrinds(program, tmp_path)


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
