# SPDX-License-Identifier: GPL-2.0-or-later
"""The machines of Power on which tests run."""

from codes import of_programs
from harness import Machine, filtered, observed, symbols, with_core

# Perf is Debian's on the first of these; on those that only compare models or
# ways of execution, a small program counts, which takes less time.
OURS = 'COUNT=tally'
UP = Machine('POWER9')
SMP = Machine('POWER9 smp', smp=2)
# What is the same code on any architecture, a usual check runs on one.
UP_OF_X86, UP_OF_POWER = None, UP
# Linux expects CPUs to be plugged in as it is.
PLUGGABLE = SMP
POWER8 = Machine('POWER8', cpu='POWER8')
POWER10 = Machine('POWER10', cpu='POWER10')
# Counts branches with a code of another counter than that of taken ones.
POWER10_BOTH = POWER10.variant('POWER10')
POWER11 = Machine('POWER11', cpu='POWER11', setup=OURS, usual=False)
POWERNV8 = Machine('powernv8', machine='powernv8', cpu=None, usual=False)
POWERNV9 = Machine('powernv9', machine='powernv9', cpu=None, setup=OURS)
POWERNV10 = Machine('powernv10', machine='powernv10', cpu=None, setup=OURS,
                    usual=False)

SINGLE = Machine('single', smp=2, accel='tcg,thread=single', setup=OURS,
                 usual=False)
ICOUNT = Machine('icount', extra=['-icount', 'shift=2'], setup=OURS,
                 usual=False)
ONE_INSN = Machine('one-insn-per-tb', monitor=['one-insn-per-tb on'],
                   setup=OURS, usual=False)

# Where somebody looks from outside.
OBSERVED = observed('observed', SMP)

# With a modelled core; and what of `misses` they count by which code.
CORE_UP = CORE_ICELAKE = CORE_SAPPHIRE = None
CORE_GENOA = CORE_EPYC = CORE_ROME = CORE_MILAN = CORE_OPTERON = None
CORE_PEBS_HASWELL = CORE_PEBS_SKYLAKE = CORE_PEBS_ICELAKE = None
CORE_PEBS_SAPPHIRE = CORE_LBR_HASWELL = CORE_LBR_SKYLAKE = None
CORE_LBR_GENOA = None
CORE_POWER8 = with_core(POWER8, 'power9')
CORE_POWER9 = with_core(UP, 'power9')
CORE_POWER10 = with_core(POWER10, 'power9')
OF_POWER = {'r400f0:u': 'first_misses', 'r300fe:u': 'last_misses',
            'r4c042:u': 'last_hits'}
CORE_EVENTS = {CORE_POWER8: OF_POWER, CORE_POWER9: OF_POWER,
               # Linux says in MMCR3 where the data come from.
               CORE_POWER10: {**OF_POWER, 'LLC-loads:u': 'last_hits'}}
# What perf stat -ddd asks for, and what the page about cores says of it: the
# kernel has no code for it, or the core has nothing of the kind.
NO_CODE, NOTHING = '<not supported>', '0'
OF_POWER9 = {'dTLB-loads': NO_CODE, 'iTLB-loads': NO_CODE,
             'L1-dcache-prefetches': NOTHING,
             'L1-dcache-prefetch-misses': NO_CODE}
UNUSUAL = {
    CORE_POWER8: OF_POWER9,
    CORE_POWER9: OF_POWER9,
    CORE_POWER10: {**OF_POWER9,
                   'stalled-cycles-frontend': NO_CODE,
                   'stalled-cycles-backend': NO_CODE},
}

# Other cycles.
CPI_2 = Machine('cpi=2', cpu='POWER9,pmu-cpi=2000')
FREQUENCY = 1000000000
CLOCK = Machine('clock',
                cpu=f'POWER9,pmu-cycles=time,pmu-frequency={FREQUENCY}')

# What may be counted: not these, and only these.  Linux may count
# instructions in any counter.
DENIES = filtered('denies', UP, action='deny', events=[
    {'format': 'raw', 'code': 0x500fa},
    {'format': 'raw', 'code': 0x2},
    {'format': 'raw', 'code': 0x4d05e},
])
DENIES_OTHERS = [
    filtered(f'denies {machine.name}', machine, action='deny', events=[
        {'format': 'raw', 'code': 0x500fa},
        {'format': 'raw', 'code': 0x2},
    ]) for machine in (POWER8, POWER10)]
ALLOWS = filtered('allows', UP, action='allow', events=[
    {'format': 'raw', 'code': 0x500fa},
    {'format': 'raw', 'code': 0x2},
    {'format': 'raw', 'code': 0x4003e},
])
DENIED = {
    DENIES: {'instructions', 'branches'},
    **dict.fromkeys(DENIES_OTHERS, {'instructions'}),
    # Selector 0xfa is instructions in PMC5, and taken branches in PMC2.
    ALLOWS: {'branches', 'taken', 'stores', 'failed'},
}

# What is no filter, and what QEMU says of it.
MALFORMED = [
    ({'action': 'deny', 'events': [{'format': 'raw', 'code': 0x700fa}]},
     '0x700fa is not the raw code', 'the counter, or 0 for any'),
    ({'action': 'deny', 'events': [{'format': 'x86-select-umask', 'select': 1,
                                    'umask': 0}]},
     'x86-select-umask is for x86', 'Use format raw'),
    ({'action': 'deny', 'x86-fixed-counter': 1},
     'x86-fixed-counter', 'PMC5 counts event 0x500fa'),
]

OFF = Machine('pmu=off', cpu='POWER9,pmu=off')
OFF_NV = Machine('powernv9 pmu=off', machine='powernv9', cpu='POWER9,pmu=off',
                 usual=False)

# One core.
THREADS = Machine('POWER9 threads', smp='2,threads=2')

# Those of x86-64.
ICELAKE = INTEL_MAX = MAX = QEMU64 = None
GENOA = GENOA_SMP = EPYC = OPTERON = PEBS_SKYLAKE = PEBS_ICELAKE = None

#
# Events
#


def events(model, branches, loads):
    """What the programs call an event, and perf; by PMCs, where some differ."""
    return {
        'instructions': 'instructions:u',
        'branches': of_programs(model, 'branches', branches),
        'taken': of_programs(model, 'all_taken'),
        'loads': of_programs(model, 'loads', loads),
        'stores': of_programs(model, 'stores'),
        'failed': of_programs(model, 'failed_stores'),
        # Where programs do not state how many.
        'finished': of_programs('common', 'branches'),
    }


EVENTS = events('power9', branches=4, loads=4)
EVENTS_OF = dict.fromkeys([POWER8, POWERNV8],
                          events('power8', branches=4, loads=1))
SINCE_POWER10 = events('power10', branches=2, loads=4)
EVENTS_OF.update(dict.fromkeys([POWER10, POWER11, POWERNV10], SINCE_POWER10))
EVENTS_OF.update(zip(DENIES_OTHERS, (EVENTS_OF[POWER8], SINCE_POWER10)))

# Events that perf offers and that read 0, and where they are documented.
VENDOR, VENDOR_OF = 'Power', {}
UNCOUNTED_SINCE_POWER8 = [
    'cache-misses', 'branch-misses', 'L1-dcache-load-misses',
    'L1-dcache-prefetches', 'L1-icache-loads', 'L1-icache-load-misses',
    'LLC-loads', 'LLC-load-misses']
STALLED = ['stalled-cycles-frontend', 'stalled-cycles-backend']
UNCOUNTED = {
    POWER8: UNCOUNTED_SINCE_POWER8 + STALLED,
    UP: UNCOUNTED_SINCE_POWER8 + STALLED,
    POWER10: UNCOUNTED_SINCE_POWER8,
}

# Most have one counter only; instructions have one of their own.
TOGETHER = 1
TOGETHER_ON = {}

# What can be counted in three modes at the same time.
IN_MODES = ['instructions', 'cycles']

# An event that takes turns with itself, and in how many counters.
IN_TURNS = 'taken'
COUNTERS = {}
ALL_COUNTERS = 1

# What takes all the counters, one each; and what `loop` states of it.
ALL_AT_ONCE = {
    UP: {EVENTS['finished']: 'branches', EVENTS['taken']: 'taken',
         of_programs('power9', 'insns', 3): 'instructions',
         EVENTS['branches']: 'branches',
         'r500fa:u': 'instructions', 'r600f4:u': 'instructions'},
}

# Something else that `loop` does.
OF_LOOP = 'taken'

# What is counted of `long`; the kernel's beside it is replayed, too.
OF_LONG = ['instructions', 'branches', 'taken']
REPLAYED = ['instructions:u,instructions:k,r4003e', 'r4d05e,r200fa']

#
# Programs
#

PROGRAMS = ['loop', 'branches', 'faults', 'memory', 'syscalls', 'traps',
            'vectored', 'mixed']

# The fewest in which all events happen.  They are enough for another model,
# whose codes differ; what counts is the same.
EACH_EVENT = ['branches', 'faults', 'memory']

# What does not take long even with a block for each instruction.
QUICK = ['branches', 'memory', 'syscalls', 'traps', 'vectored', 'mixed']

# What an Opteron can execute.
ON_OPTERON = []

# What POWER8 can execute.
ON_POWER8 = ['loop', 'branches', 'faults', 'syscalls', 'traps']


def loop_address(index):
    """The address of the instruction that follows so many of `loop`."""
    names = symbols('loop')
    return names[f"step_{(index - names['expect_before']) % 2}"]


# The steps of `mixed` that are, or do, something; None is for all.
TAKEN = {4, 5, 8, 19, 22, 23, 24, 29}
STEPS = {
    'finished': TAKEN | {10, 25},
    'taken': TAKEN,
    'loads': {3, 11, 26},
    'stores': {2, 12, 14},
    'cycles': None,
    'instructions': None,
}

SAMPLED_TOGETHER = ['finished', 'taken', 'loads', 'instructions']
