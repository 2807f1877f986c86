# SPDX-License-Identifier: GPL-2.0-or-later
"""A modelled core: what perf stat counts of it, and what Linux finds of it."""

import re

import pytest

from harness import expectations, on, require, require_equal, symbols
from machines import (CORE_EPYC, CORE_EVENTS, CORE_GENOA, CORE_ICELAKE,
                      CORE_LBR_GENOA, CORE_LBR_HASWELL, CORE_LBR_SKYLAKE,
                      CORE_MILAN, CORE_OPTERON, CORE_PEBS_HASWELL,
                      CORE_PEBS_ICELAKE, CORE_PEBS_SAPPHIRE, CORE_PEBS_SKYLAKE,
                      CORE_POWER8, CORE_POWER9, CORE_POWER10, CORE_ROME,
                      CORE_SAPPHIRE, CORE_UP, UNUSUAL)
from test_counting import parse
from test_profile import perf, profiled

USUAL = [CORE_UP, CORE_GENOA, CORE_POWER9]
OTHERS = [CORE_ICELAKE, CORE_SAPPHIRE, CORE_EPYC, CORE_ROME, CORE_MILAN,
          CORE_OPTERON, CORE_POWER8, CORE_POWER10]


@on(*USUAL, more=OTHERS)
def test_misses(guest, machine):
    """A program whose misses are known by construction, event by event."""
    want = expectations('misses')
    events = CORE_EVENTS[machine]
    counts = parse(guest.run('\n'.join(
        f'count instructions:u,{event} misses' for event in events)))
    # perf leaves the mode out of some names.
    require_equal({event: counts.get(event) or counts[event.removesuffix(':u')]
                   for event in events},
                  {event: [want[name] if name else 0]
                   for event, name in events.items()}, 'misses')


# Events take turns, and a program misses the TLB for its code as it begins:
# many begin while each event counts.
STAT = '''
    perf stat -x , -o /tmp/stat -ddd -e stalled-cycles-frontend \
        -e stalled-cycles-backend -- \
        sh -c 'for turn in $(seq 20); do
                   ls -R /sys/devices/system/cpu > /dev/null
               done'
    cut -d , -f 1,3 /tmp/stat | grep ,'''


def not_counted(guest):
    """The events without a count in what perf stat -ddd shows."""
    lines = [line.split(',') for line in guest.run(STAT).splitlines()]
    require(len(lines) > 10, str(lines))
    return {re.sub(':[ukh]+$', '', event): value for value, event in lines
            if event not in IN_SOFTWARE and not re.match('[1-9]', value)}


@on(*USUAL, more=OTHERS)
def test_every_line_counts(guest, machine):
    """What perf stat -ddd shows is counted, or documented with the reason.

    On a busy host an event may miss its turn, so some are looked for again.
    """
    unusual = not_counted(guest)
    for _ in range(3):
        if unusual.keys() <= UNUSUAL[machine].keys():
            break
        again = not_counted(guest)
        unusual = {event: value for event, value in unusual.items()
                   if event in again}
    require_equal(unusual, UNUSUAL[machine], 'what is not counted')


IN_SOFTWARE = ['context-switches', 'cpu-migrations', 'page-faults']


# UOPS_RETIRED.RETIRE_SLOTS, IDQ_UOPS_NOT_DELIVERED.CORE, UOPS_ISSUED.ANY and
# INT_MISC.RECOVERY_CYCLES; all but the last are in slots.
RETIRED, BUBBLES, ISSUED, RECOVERY = 'r02c2:u', 'r019c:u', 'r010e:u', 'r010d:u'
SLOTS = {CORE_UP: 4, CORE_ICELAKE: 5, CORE_SAPPHIRE: 6}
# Cycles of a miss of the first level, further ones of the last, and of a TLB
PENALTIES = {'first_misses': 40, 'last_misses': 200, 'pages': 30}


@pytest.mark.arch('x86_64')
@on(CORE_UP, more=[CORE_ICELAKE, CORE_SAPPHIRE])
def test_slots(guest, machine):
    """Each slot of `misses` retires, recovers, or waits for code or data."""
    want = expectations('misses')
    slots = SLOTS[machine]
    # Linux may have taken a counter for its watchdog.
    counts = {event: values[0] for event, values in parse(guest.run(f'''
        count cycles:u,{RETIRED},{BUBBLES} misses
        count {ISSUED},{RECOVERY} misses''')).items()}
    waits = sum(want[what] * each for what, each in PENALTIES.items())
    require_equal(counts[RETIRED], slots * want['instructions'], 'retired')
    require_equal(counts[ISSUED], counts[RETIRED], 'issued')
    require(counts[BUBBLES] and counts[RECOVERY], str(counts))
    require_equal(slots * counts['cycles:u'],
                  counts[RETIRED] + counts[BUBBLES]
                  + slots * (counts[RECOVERY] + waits), 'all slots')


@pytest.mark.arch('x86_64')
@on(CORE_UP, more=[CORE_ICELAKE, CORE_SAPPHIRE])
def test_topdown(guest, machine):
    """perf's first level of these: nearly all of `loop` retires."""
    output = guest.run('''
        echo 0 > /proc/sys/kernel/nmi_watchdog
        perf stat -o /tmp/stat -M TopdownL1 -- \\
            sh -c 'for i in 1 2 3 4 5 6 7 8; do loop; done'
        cat /tmp/stat
        echo 1 > /proc/sys/kernel/nmi_watchdog''')
    # The events take turns in the counters.
    parts = {name: float(share) for share, name in
             re.findall(r'(-?[\d.]+) +% +tma_(\w+)', output)}
    require_equal(sorted(parts), ['backend_bound', 'bad_speculation',
                                  'frontend_bound', 'retiring'], 'parts')
    require(abs(sum(parts.values()) - 100) < 5, str(parts))
    require(parts['retiring'] > 80, f'{machine}: {parts}')


# The metrics of the second level, and those of the first that they are equal to
SECOND_LEVEL = {'topdown-heavy-ops:u': None,
                'topdown-br-mispredict:u': 'topdown-bad-spec:u',
                'topdown-fetch-lat:u': 'topdown-fe-bound:u',
                'topdown-mem-bound:u': 'topdown-be-bound:u'}
FIRST_LEVEL = ['topdown-retiring:u', *filter(None, SECOND_LEVEL.values())]


@pytest.mark.arch('x86_64')
@on(CORE_ICELAKE, more=[CORE_SAPPHIRE])
def test_metrics(guest, machine):
    """The counter of slots, and the register of what became of them."""
    second = SECOND_LEVEL if machine is CORE_SAPPHIRE else {}
    group = ','.join(['slots:u', *FIRST_LEVEL, *second])
    output = guest.run(f"""
        perf stat -x , -o /tmp/stat -e '{{{group}}},cycles:u,instructions:u' \
            -- misses
        cut -d , -f 1,3 /tmp/stat | grep ,""")
    counts = {event: int(value) for value, event in
              (line.split(',') for line in output.splitlines())}
    slots = counts['slots:u']
    require_equal(slots, SLOTS[machine] * counts['cycles:u'], 'slots')
    # Linux keeps what was a share once, although it is less than one later.
    rest = slots - sum(counts[part] for part in FIRST_LEVEL)
    require(abs(rest) <= slots / 100, str(counts))
    wrong = (counts['topdown-retiring:u']
             - SLOTS[machine] * counts['instructions:u'])
    require(abs(wrong) <= slots / 255, str(counts))
    require_equal({event: counts[event] for event in second},
                  {event: counts.get(part, 0)
                   for event, part in second.items()}, 'the second level')


def caches(output):
    """Pairs of a cache's type and level, and what else Linux says of it."""
    words = [line.split() for line in output.splitlines()]
    return {(kind, int(level)): (size, int(line), int(ways))
            for kind, level, size, line, ways in words}


SHOW = '''
    cd /sys/devices/system/cpu/cpu0/cache
    for i in index*; do
        echo $(cat $i/type $i/level $i/size $i/coherency_line_size \
                   $i/ways_of_associativity)
    done'''


@pytest.mark.arch('x86_64')
@on(CORE_UP, CORE_GENOA)
def test_caches(guest, machine):
    """Linux finds the caches of the core, and no others."""
    last = {CORE_UP: '8192K', CORE_GENOA: '32768K'}[machine]
    # Without leaf 0x8000001D, it takes the 8 ways of leaf 0x80000005 for a code
    # of leaf 0x80000006.
    ways = {CORE_UP: 8, CORE_GENOA: 16}[machine]
    require_equal(caches(guest.run(SHOW)), {
        ('Data', 1): ('32K', 64, ways),
        ('Instruction', 1): ('32K', 64, ways),
        ('Unified', 2): (last, 64, 16)}, 'caches')


SHOW_ON_POWER = '''
    cd /proc/device-tree/cpus/PowerPC*
    for i in d i; do
        for what in size line-size sets; do
            echo $((0x$(od -A n -t x1 $i-cache-$what | tr -d ' ')))
        done
    done'''


@pytest.mark.arch('ppc64')
@on(CORE_POWER9, more=[CORE_POWER10])
def test_caches_on_power(guest, machine):
    """So it does in the device tree."""
    require_equal(guest.run(SHOW_ON_POWER).split(),
                  2 * ['32768', '128', '32'], f'caches of {machine}')


#
# Samples
#

@on(*USUAL, more=OTHERS)
def test_locality(guest, machine):
    """A program that measures itself: random reads miss, linear ones hit."""
    found = {way: (int(reads), int(misses)) for way, reads, misses in
             re.findall(r'(\w+) (\d+) (\d+)', guest.run('locality'))}
    require_equal(sorted(found), ['linear', 'random'], str(machine))
    for reads, _ in found.values():
        require(reads >= 1 << 16, f'{found}')
    # A line has 8 or 16 words; a first level holds 1/256 of them.
    require(found['linear'][1] <= found['linear'][0] / 8 + 100, f'{found}')
    require(found['random'][1] >= (1 << 16) * 0.98, f'{found}')


# What perf calls the level that had the data, and how long that took
LEVELS = {'L3 hit': 44, 'RAM hit': 244, 'Local RAM hit': 244}
LEADER = {CORE_PEBS_SAPPHIRE: '{{cpu/mem-loads-aux/u,{}}}:S'}


# Of so many loads one is recorded.
EACH = 101


def levels(guest, machine, event):
    """The levels that had the data of samples, and their latencies."""
    output = guest.run(f"""
        perf record -q -o /tmp/data -d -W -c {EACH} \
            -e '{LEADER.get(machine, '{}').format(event)}' misses
        perf script -i /tmp/data -F ip,weight,data_src""")
    found = re.findall(r'LVL ([^|]+?) *\|.*?(\d+) +([0-9a-f]+) *$', output,
                       re.M)
    line = symbols('misses')['line']
    return [(level, int(latency)) for level, latency, ip in found
            if int(ip, 16) == line]


def check_levels(found, want):
    """Which levels had the data, as often as they should."""
    require_equal([latency for _, latency in found],
                  [LEVELS[level] for level, _ in found], 'latencies')
    counts = [sum('RAM' in level for level, _ in found),
              sum('RAM' not in level for level, _ in found)]
    # Linux may lengthen a period when it switches tasks.
    require(all(abs(count - number // EACH) <= 2
                for count, number in zip(counts, want)),
            f'{counts}, not {want} / {EACH}')


@pytest.mark.arch('x86_64')
@on(CORE_PEBS_ICELAKE, more=[CORE_PEBS_HASWELL, CORE_PEBS_SKYLAKE,
                             CORE_PEBS_SAPPHIRE])
def test_latencies(guest, machine):
    """Loads by the level that had their data, and those above a latency."""
    want = expectations('misses')
    check_levels(levels(guest, machine, 'cpu/mem-loads,ldlat=30/uP'),
                 [want['last_misses'], want['last_hits']])
    check_levels(levels(guest, machine, 'cpu/mem-loads,ldlat=44/uP'),
                 [want['last_misses'], 0])
    require_equal(levels(guest, machine, 'cpu/mem-loads,ldlat=244/uP'), [],
                  'loads that take longer than memory')


@pytest.mark.arch('ppc64')
@on(CORE_POWER9, more=[CORE_POWER10])
def test_latencies_on_power(guest, machine):
    """Loads by the level that had their data."""
    want = expectations('misses')
    check_levels(levels(guest, machine, 'cpu/mem-loads/u'),
                 [want['last_misses'], want['last_hits']])


@on(CORE_PEBS_ICELAKE, CORE_POWER9, more=[CORE_PEBS_SKYLAKE, CORE_POWER10])
def test_memory_by_level(guest, machine):
    """perf mem does it all by itself."""
    output = guest.run("""
        cd /tmp
        perf mem record -t load --all-user -c 31 misses > /dev/null 2>&1
        perf mem report --stdio --sort mem,symbol 2>&1""")
    require(re.search(r'L3 hit .*line', output)
            and re.search(r'RAM hit .*line', output), f'{machine}: {output}')


@on(CORE_PEBS_ICELAKE, CORE_POWER9, more=[
    CORE_LBR_HASWELL, CORE_LBR_SKYLAKE, CORE_SAPPHIRE, CORE_LBR_GENOA])
def test_mispredictions(guest, machine):
    """At each wrong prediction, the newest record says so, if it was taken."""
    # With a period of 1, Linux records no branches; on Haswell it takes none
    # below 32.
    record = ('-c 32 locality' if machine is CORE_LBR_HASWELL
              else '-c 2 misses')
    output = guest.run(f"""
        perf record -q -o /tmp/data -b -e branch-misses:u {record}
        perf script -i /tmp/data -F ip,brstack""")
    newest = re.findall(r'^ *[0-9a-f]+ +0x[0-9a-f]+/0x[0-9a-f]+/([MP-])/',
                        output, re.M)
    wrong = newest.count('M')
    # The others are the ends of loops.
    require(wrong and 0 < len(newest) - wrong <= 8, f'{machine}: {output}')


# The program `misses`: the size of a line, and how often it reads each
LINE = {CORE_UP: 64, CORE_POWER9: 128}
TURNS = 3


@on(CORE_UP)
def test_deadlines_beside_a_profile(start, tmp_path, machine):
    """Instructions have a part of what is left to an overflow of cycles; when
    that is used up, they get another one, and do not go on one by one."""
    period = 1000003
    log = tmp_path / 'log'
    guest = start(machine, f"""
. /tests/guest.sh
guest_setup
echo 0 > /proc/sys/kernel/nmi_watchdog
perf record -q -o /tmp/data -e cycles:u -c {period} loop
perf script -i /tmp/data -F ip""", extra=[
        '-trace', 'pmu_tcg_fold', '-D', str(log), '-object',
        'pmu-profile,id=p0,file=/dev/null,event=l1d-misses,'
        'period=1000000000000'])
    samples = len(guest.rest())
    require(samples >= expectations('loop')['instructions'] // period,
            f'{samples} samples')
    folds = log.read_text().count('pmu_tcg_fold')
    require(folds < 20000 * samples, f'{folds} folds for {samples} samples')


@on(CORE_UP, CORE_POWER9)
def test_profile_of_misses(start, tmp_path, machine):
    """Without the guest's knowledge: each sample is the read that missed, with
    the address of the line, and where the line was."""
    period = 64
    want = expectations('misses')
    names = symbols('misses')
    profile, _ = profiled(start, tmp_path, machine, '''
        wait_for_test
        misses
        echo @@@ end''', {'event': 'l1d-load-misses', 'period': period,
                          'modes': 'u', 'data-address': True})
    found = re.findall(r'^ *([0-9a-f]+) .*OP LOAD\|LVL ([^|]+?) *\|.*?(\d+) +'
                       fr'{names["line"]:x} *$',
                       profile.script('ip,addr,weight,data_src'), re.M)
    addresses = [int(address, 16) for address, _, _ in found]
    expected = want['first_misses'] // period
    require(expected - 1 <= len(found) <= expected + 1,
            f'{len(found)} samples, not {expected}')
    size = LINE[machine] * want['first_misses'] // TURNS
    require_equal(addresses, [names['area']
                              + (addresses[0] - names['area']
                                 + nth * period * LINE[machine]) % size
                              for nth in range(len(found))], 'addresses')
    turn = want['first_misses'] // TURNS // period
    require_equal([(level.split(' or ')[-1], int(latency))
                   for _, level, latency in found],
                  [('RAM hit', 244)] * turn
                  + [('L3 hit', 44)] * (len(found) - turn), 'levels')


@on(CORE_UP, CORE_POWER9)
def test_memory_from_outside(start, tmp_path, machine):
    """perf mem report sorts such a profile by level."""
    profile, _ = profiled(start, tmp_path, machine, '''
        wait_for_test
        misses
        echo @@@ end''', {'event': 'loads', 'period': 7, 'modes': 'u',
                          'data-address': True})
    output = perf('mem', '-i', profile.path, 'report', '--stdio',
                  '--sort', 'mem,symbol')
    want = expectations('misses')
    for level, number in [('RAM', 'last_misses'), ('L3', 'last_hits')]:
        found = re.search(fr'(\d+) +(?:.* or )?{level} hit .*'
                          fr'{symbols("misses")["line"]:x}\b', output)
        require(found and abs(int(found[1]) - want[number] // 7) <= 1,
                f'{level}, not {want[number]} / 7: {output}')
