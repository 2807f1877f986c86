# SPDX-License-Identifier: GPL-2.0-or-later
"""The machines of x86-64 on which tests run."""

from codes import of_programs
from harness import (LEFT_OUT, PROTECTED, SKYLAKE, Machine, filtered,
                     observed, symbols, with_core)

# Perf is Debian's on these two; on those that only compare ways of execution,
# a small program counts, which takes less time.
UP = Machine('up')
SMP = Machine('smp', smp=2)
# What is the same code on any architecture, a usual check runs on one.
UP_OF_X86, UP_OF_POWER = UP, None

OURS = 'COUNT=tally'
SINGLE = Machine('single', smp=2, accel='tcg,thread=single', setup=OURS,
                 usual=False)
ICOUNT = Machine('icount', extra=['-icount', 'shift=0'], setup=OURS,
                 usual=False)
ONE_INSN = Machine('one-insn-per-tb', monitor=['one-insn-per-tb on'],
                   setup=OURS, usual=False)

# Where somebody looks from outside.
OBSERVED = observed('observed', SMP)

# Another microarchitecture, with other codes and 8 counters, which Linux finds
# by the numbers that their registers have since version 6.
ICELAKE = Machine('icelake', setup=OURS, usual=False, cpu=(
    f'Icelake-Server-v5,pmu=on,pmu-version=6,{LEFT_OUT},-avx512f,-avx512dq,'
    '-avx512ifma,-avx512cd,-avx512bw,-avx512vl,-avx512vbmi,-avx512vbmi2,-gfni,'
    '-vpclmulqdq,-avx512vnni,-avx512bitalg,-avx512-vpopcntdq,-spec-ctrl,'
    '-arch-capabilities,-ssbd,-xsaves'))

# AMD's: with global registers, with six counters but without these, and with
# the four that there always were.
GENOA = Machine('genoa', cpu=(
    'EPYC-Genoa-v1,pmu=on,-pcid,-invpcid,-avx512f,-avx512dq,-avx512ifma,'
    '-avx512cd,-avx512bw,-avx512vl,-avx512vbmi,-avx512vbmi2,-gfni,-vpclmulqdq,'
    '-avx512vnni,-avx512bitalg,-avx512-vpopcntdq,-avx512-bf16,-fxsr-opt,'
    '-misalignsse,-osvw,-topoext,-clzero,-ibpb,-ibrs,-amd-stibp,'
    '-stibp-always-on,-amd-ssbd,-amd-psfd,-no-nested-data-bp,'
    '-lfence-always-serializing,-null-sel-clr-base,-auto-ibrs,-nrip-save,'
    '-vnmi,-xsavec,-xsaves'))
GENOA_SMP = GENOA.variant('genoa-smp', smp=2, usual=False)
EPYC = Machine('epyc', setup=OURS, cpu=(
    'EPYC-v1,pmu=on,-fxsr-opt,-misalignsse,-osvw,-topoext,-nrip-save,-xsavec'))
# Zen 2 and Zen 3, whose events Linux knows by another list than Zen's
LATER_ZEN = '-clzero,-ibpb,-amd-stibp,-fxsr-opt,-misalignsse,-osvw,-topoext,' \
    '-nrip-save,-xsavec,-xsaves'
ROME = Machine('rome', setup=OURS, usual=False,
               cpu=f'EPYC-Rome-v1,pmu=on,{LATER_ZEN}')
MILAN = Machine('milan', setup=OURS, usual=False, cpu=(
    f'EPYC-Milan-v1,pmu=on,{LATER_ZEN},-pcid,-invpcid,-ibrs,-amd-ssbd'))
OPTERON = Machine('opteron', setup=OURS, usual=False,
                  cpu='Opteron_G3-v1,pmu=on,-misalignsse')

# With branch records; one of a kernel that protects itself by calls that return
# elsewhere.
LBR_SKYLAKE = Machine('lbr-skylake', cpu=f'{SKYLAKE},lbr=on',
                      append=PROTECTED)
LBR_HASWELL = Machine('lbr-haswell', cpu=(
    f'Haswell-v2,pmu=on,lbr=on,{LEFT_OUT}'), usual=False)
LBR_NEHALEM = Machine('lbr-nehalem', cpu='Nehalem-v1,pmu=on,lbr=on',
                      usual=False)
LBR_PENRYN = Machine('lbr-penryn', cpu='Penryn-v1,pmu=on,lbr=on',
                     usual=False)
LBR_KNIGHTS = Machine('lbr-knights', usual=False, cpu=(
    'KnightsMill-v1,pmu=on,lbr=on,-tsc-deadline,-avx512f,-avx512pf,-avx512er,'
    '-avx512cd,-avx512-vpopcntdq,-avx512-4vnniw,-avx512-4fmaps'))
LBR_DENVERTON = Machine('lbr-denverton', usual=False, cpu=(
    'Denverton-v1,pmu=on,lbr=on,-tsc-deadline,-spec-ctrl,-arch-capabilities,'
    '-ssbd,-xsavec'))
LBR_SNOWRIDGE = Machine('lbr-snowridge', usual=False, cpu=(
    'Snowridge-v1,pmu=on,lbr=on,-tsc-deadline,-spec-ctrl,-arch-capabilities,'
    '-ssbd,-xsavec,-gfni,-cldemote,-movdiri,-movdir64b,-core-capability,'
    '-split-lock-detect,-mpx'))
LBR_GENOA = Machine('lbr-genoa', cpu=f'{GENOA.cpu},lbr=on')
LBR_SAPPHIRE = Machine('lbr-sapphire', cpu=(
    f'SapphireRapids-v1,pmu=on,lbr=on,{LEFT_OUT},-avx-vnni,-avx512-bf16,'
    '-avx512bw,-avx512cd,-avx512dq,-avx512f,-avx512ifma,-avx512vl,'
    '-avx512-vpopcntdq,-avx512bitalg,-avx512vbmi,-avx512vbmi2,-avx512vnni,'
    '-bus-lock-detect,-gfni,-vpclmulqdq,-amx-bf16,-amx-int8,-amx-tile,'
    '-arch-capabilities,-avx512-fp16,-serialize,-spec-ctrl,-ssbd,-tsx-ldtrk,'
    '-xfd,-xsaves'))

# Linux expects CPUs to be plugged in only on hardware that says so better than
# QEMU's tables do, and in hypervisors that it knows.  TCG is none of them: this
# looks like another, and like a CPU of which Linux believes that it has branch
# records.
PLUGGABLE = Machine('pluggable', machine='q35,vmport=on',
                    cpu=f'{LBR_SKYLAKE.cpu},-hypervisor',
                    extra=['-smbios', 'type=1,serial=VMware-1'])

# With PEBS, in each of its formats, which the bare suites see field by field.
PEBS_NEHALEM = Machine('pebs-nehalem', cpu='Nehalem-v1,pmu=on,pebs=on',
                       usual=False)
# Linux looks for the microcode that repaired PEBS there.
PEBS_SANDY = Machine('pebs-sandy', usual=False, cpu=(
    'SandyBridge-v1,pmu=on,pebs=on,stepping=7,ucode-rev=0x2800000000,'
    '-tsc-deadline'))
PEBS_IVY = Machine('pebs-ivy', usual=False, cpu=(
    'IvyBridge-v1,pmu=on,pebs=on,-tsc-deadline'))
PEBS_BROADWELL = Machine('pebs-broadwell', usual=False, cpu=(
    f'Broadwell-v2,pmu=on,pebs=on,{LEFT_OUT}'))
PEBS_HASWELL = Machine('pebs-haswell', usual=False, cpu=(
    f'Haswell-v2,pmu=on,pebs=on,{LEFT_OUT}'))
PEBS_SKYLAKE = Machine('pebs-skylake', cpu=f'{SKYLAKE},pebs=on')
# And with both.
PEBS_ICELAKE = Machine('pebs-icelake', cpu=(
    f'{ICELAKE.cpu},pmu-version=5,pebs=on,lbr=on'))
PEBS_SAPPHIRE = Machine('pebs-sapphire', cpu=f'{LBR_SAPPHIRE.cpu},pebs=on')

# Where a program that gives another some seconds gives it so many instructions.
PEBS_ICOUNT = PEBS_SKYLAKE.variant('pebs-icount', usual=False,
                                   extra=['-icount', 'shift=0'])

# With a modelled core; and what of `misses` they count by which code.
CORE_UP = with_core(UP, 'skylake')
CORE_ICELAKE = with_core(ICELAKE, 'skylake')
CORE_SAPPHIRE = with_core(LBR_SAPPHIRE, 'skylake')
CORE_PEBS_HASWELL = with_core(PEBS_HASWELL, 'skylake')
CORE_PEBS_SKYLAKE = with_core(PEBS_SKYLAKE, 'skylake')
CORE_PEBS_ICELAKE = with_core(PEBS_ICELAKE, 'skylake')
CORE_PEBS_SAPPHIRE = with_core(PEBS_SAPPHIRE, 'skylake')
CORE_LBR_HASWELL = with_core(LBR_HASWELL, 'skylake')
CORE_LBR_SKYLAKE = with_core(LBR_SKYLAKE, 'skylake')
CORE_LBR_GENOA = with_core(LBR_GENOA, 'zen4')
CORE_GENOA = with_core(GENOA, 'zen4')
CORE_EPYC = with_core(EPYC, 'zen4')
CORE_ROME = with_core(ROME, 'zen4')
CORE_MILAN = with_core(MILAN, 'zen4')
CORE_OPTERON = with_core(OPTERON, 'zen4')
CORE_POWER8 = CORE_POWER9 = CORE_POWER10 = None
OF_INTEL = {'L1-dcache-load-misses:u': 'first_misses',
            'r08d1:u': 'first_misses', 'r20d1:u': 'last_misses',
            'r04d1:u': 'last_hits',
            'dTLB-load-misses:u': 'pages', 'LLC-loads:u': 'first_misses',
            'LLC-load-misses:u': 'last_misses', 'node-loads:u': 'last_misses',
            'node-load-misses:u': None, 'LLC-store-misses:u': None}
OF_ZEN = {'L1-dcache-load-misses:u': 'first_misses'}
CORE_EVENTS = {
    CORE_UP: OF_INTEL,
    CORE_ICELAKE: OF_INTEL,
    CORE_SAPPHIRE: OF_INTEL,
    CORE_GENOA: OF_ZEN,
    CORE_EPYC: OF_ZEN,
    CORE_ROME: OF_ZEN,
    CORE_MILAN: OF_ZEN,
    CORE_OPTERON: {'r0141:u': 'first_misses', 'dTLB-load-misses:u': 'pages'},
}
# What perf stat -ddd asks for, and what the page about cores says of it: the
# kernel has no code for it, or the core has nothing of the kind.
NO_CODE, NOTHING = '<not supported>', '0'
NO_PREFETCHES = {'L1-dcache-prefetches': NO_CODE,
                 'L1-dcache-prefetch-misses': NO_CODE}
OF_SKYLAKE = {**NO_PREFETCHES, 'L1-icache-loads': NO_CODE,
              'stalled-cycles-frontend': NO_CODE,
              'stalled-cycles-backend': NO_CODE, 'iTLB-loads': NOTHING}
SINCE_ICELAKE = {**OF_SKYLAKE, 'iTLB-loads': NO_CODE}
SINCE_ZEN = {'LLC-loads': NO_CODE, 'LLC-load-misses': NO_CODE,
             'L1-dcache-prefetches': NOTHING,
             'L1-dcache-prefetch-misses': NO_CODE, 'iTLB-loads': NOTHING}
SINCE_ZEN2 = {**SINCE_ZEN, 'stalled-cycles-backend': NO_CODE}
UNUSUAL = {
    CORE_UP: OF_SKYLAKE,
    CORE_ICELAKE: SINCE_ICELAKE,
    CORE_SAPPHIRE: SINCE_ICELAKE,
    CORE_GENOA: SINCE_ZEN2,
    CORE_EPYC: SINCE_ZEN,
    CORE_ROME: SINCE_ZEN2,
    CORE_MILAN: SINCE_ZEN2,
    CORE_OPTERON: {'L1-dcache-prefetches': NOTHING,
                   'L1-dcache-prefetch-misses': NOTHING},
}

# Other cycles.
CPI_2 = Machine('cpi=2', cpu=f'{SKYLAKE},pmu-cpi=2000')
FREQUENCY = 1000000000
CLOCK = Machine('clock',
                cpu=f'{SKYLAKE},pmu-cycles=time,pmu-frequency={FREQUENCY}')

# What may be counted: not these, and only these.  Linux counts instructions in
# a fixed counter if there is one.
DENIES = filtered('denies', UP, action='deny', **{
    'x86-fixed-counter': 1,
    'events': [
        {'format': 'raw', 'code': 0xc0},
        {'format': 'raw', 'code': 0x01c4},
        {'format': 'x86-select-umask', 'select': 0xd0, 'umask': 0x82},
    ]})
DENIES_OTHERS = []
ALLOWS = filtered('allows', GENOA, action='allow', events=[
    {'format': 'raw', 'code': 0xd1},
    {'format': 'x86-select-umask', 'select': 0xc2, 'umask': 0},
    {'format': 'x86-masked-entry', 'select': 0x29, 'mask': 0x02, 'match': 0,
     'exclude': False},
    {'format': 'x86-masked-entry', 'select': 0xc0, 'mask': 0, 'match': 0,
     'exclude': False},
    {'format': 'x86-masked-entry', 'select': 0xc0, 'mask': 0xff, 'match': 0,
     'exclude': True},
])
DENIED = {
    DENIES: {'instructions', 'conditional', 'stores'},
    ALLOWS: {'instructions', 'stores', 'returns', 'far'},
}

# What is no filter, and what QEMU says of it.
MALFORMED = [
    ({'action': 'deny', 'events': [{'format': 'raw', 'code': 1 << 20}]},
     '0x100000 is not the raw code', 'Bits 0 to 15 and 32 to 35'),
    ({'action': 'deny', 'events': [{'format': 'x86-select-umask',
                                    'select': 0x1000, 'umask': 0}]},
     'select 0x1000', 'Allowed: up to 0xfff'),
    ({'action': 'deny', 'events': [{'format': 'x86-masked-entry', 'select': 1,
                                    'mask': 1, 'match': 2, 'exclude': False}]},
     'gives 0x2', 'must be set in mask'),
]

# No PMU, because it is not wanted or not asked for.
OFF = Machine('pmu=off', cpu=SKYLAKE.replace('pmu=on', 'pmu=off'))
MAX = Machine('max', cpu='max')
QEMU64 = Machine('qemu64', cpu='qemu64')

# What TCG has of everything, under Intel's name.
INTEL_MAX = Machine('max-intel', cpu='max,vendor=GenuineIntel', setup=OURS)

# Those of Power.
POWER8 = POWER10 = POWER10_BOTH = POWER11 = None
POWERNV8 = POWERNV9 = POWERNV10 = THREADS = OFF_NV = None

#
# Events
#


def events(model, *names):
    """What the programs call an event, and perf."""
    return {'instructions': 'instructions:u', 'branches': 'branches:u',
            **{name: of_programs(model, name) for name in names}}


OF_INTEL = ['conditional', 'not_taken', 'taken', 'calls', 'returns', 'far',
            'loads', 'stores']
EVENTS = events('skylake', *OF_INTEL)
ZEN = events('zen', 'returns', 'far', 'conditional', 'loads', 'stores')
EVENTS_OF = {ICELAKE: events('ice_lake', *OF_INTEL),
             GENOA: ZEN, GENOA_SMP: ZEN, ALLOWS: ZEN, EPYC: ZEN,
             OPTERON: events('k10', 'returns', 'far')}

# Events that perf offers and that read 0.  What Intel's CPUID says not to be
# there is refused.  Whose row they are in, where they are documented.
VENDOR = 'Intel'
VENDOR_OF = dict.fromkeys([GENOA, EPYC, OPTERON], 'AMD')
UNCOUNTED_ON_INTEL = ['L1-dcache-load-misses', 'L1-icache-load-misses',
                      'branch-load-misses']
UNCOUNTED_UNTIL_SKYLAKE = [
    *UNCOUNTED_ON_INTEL, 'iTLB-loads', 'topdown-fetch-bubbles',
    'topdown-recovery-bubbles', 'topdown-slots-issued', 'topdown-slots-retired']
UNCOUNTED_ON_AMD = [
    'cache-references', 'cache-misses', 'branch-misses', 'branch-load-misses',
    'stalled-cycles-frontend', 'L1-dcache-load-misses',
    'L1-dcache-prefetches', 'L1-icache-loads', 'L1-icache-load-misses',
    'iTLB-loads']
UNCOUNTED = {
    LBR_PENRYN: [*UNCOUNTED_ON_INTEL, 'L1-dcache-prefetches',
                 'L1-dcache-store-misses', 'L1-icache-loads', 'LLC-loads',
                 'LLC-load-misses', 'LLC-stores', 'LLC-store-misses'],
    LBR_NEHALEM: [*UNCOUNTED_ON_INTEL, 'L1-dcache-prefetches',
                  'L1-dcache-prefetch-misses', 'L1-dcache-store-misses',
                  'L1-icache-loads', 'branch-misses', 'stalled-cycles-frontend',
                  'stalled-cycles-backend'],
    LBR_HASWELL: UNCOUNTED_UNTIL_SKYLAKE,
    UP: UNCOUNTED_UNTIL_SKYLAKE,
    ICELAKE: UNCOUNTED_ON_INTEL,
    LBR_SAPPHIRE: [*UNCOUNTED_ON_INTEL, 'mem-loads-aux'],
    LBR_SNOWRIDGE: ['L1-icache-loads', 'L1-icache-load-misses',
                    'branch-load-misses', 'topdown-bad-spec',
                    'topdown-be-bound', 'topdown-fe-bound', 'topdown-retiring'],
    GENOA: UNCOUNTED_ON_AMD,
    EPYC: [*UNCOUNTED_ON_AMD, 'stalled-cycles-backend'],
    OPTERON: [*UNCOUNTED_ON_AMD, 'stalled-cycles-backend', 'LLC-loads',
              'LLC-load-misses', 'LLC-stores', 'node-loads', 'node-load-misses',
              'L1-dcache-prefetch-misses', 'L1-icache-prefetches'],
}

# No more than that at a time, so that all are counted all the time, beside
# instructions, which have a counter of their own on Intel's, and the watchdog.
TOGETHER = 4
TOGETHER_ON = {OPTERON: 2}

# What can be counted in three modes at the same time.
IN_MODES = ['instructions', 'cycles', 'branches']

# An event that takes turns with itself, and in how many counters.
IN_TURNS = 'branches'
# On AMD's, the watchdog takes one.
COUNTERS = {ICELAKE: 8, GENOA: 5, EPYC: 5, OPTERON: 3}
ALL_COUNTERS = 4

# What takes all the counters, beside the watchdog; what `loop` states of it.
ALL_AT_ONCE = {
    UP: {'instructions:u': 'instructions', 'ref-cycles:u': 'instructions',
         'branches:u': 'branches',
         **{EVENTS[name]: name
            for name in ['conditional', 'taken', 'not_taken']}},
    GENOA: {ZEN[name]: name for name in ['instructions', 'branches',
                                         'conditional', 'far', 'returns']},
}

# Something else that `loop` does.
OF_LOOP = 'conditional'

# What is counted of `long`; the kernel's beside it is replayed, too.
OF_LONG = ['instructions', 'branches', 'conditional', 'loads', 'stores']
REPLAYED = ['instructions:u,instructions:k,r81d0', 'branches,r82d0']

#
# Programs
#

PROGRAMS = ['loop', 'calls', 'faults', 'strings', 'syscalls', 'signals',
            'special', 'fork', 'exec', 'threads', 'smc', 'pages', 'affinity']

# The fewest in which all events happen.  They are enough for another model,
# whose codes differ; what counts is the same.
EACH_EVENT = ['calls', 'exec']

# What does not take long even with a block for each instruction.
QUICK = ['calls', 'strings', 'special', 'fork', 'exec', 'threads', 'smc',
         'affinity']

# What executes no instruction that is younger than an Opteron.
ON_OPTERON = [program for program in PROGRAMS if program != 'special']

# What POWER8 can execute.
ON_POWER8 = []


def loop_address(index):
    """The address of the instruction that follows so many of `loop`."""
    first = symbols('loop')['loop']
    return first + (0, 1, 3)[(index - 1) % 3]       # nop, dec, jnz


# The steps of `mixed` that are, or do, something; None is for all.
CONDITIONAL = {12, 20, 21, 22, 23, 25}
STEPS = {
    'conditional': CONDITIONAL,
    'branches': CONDITIONAL | {6, 7, 10, 18, 28},
    'calls': {7},
    'loads': {5, 10, 13},
    'stores': {3, 4, 7, 13},
    'cycles': None,
    'instructions': None,
}

# Intel has four general counters, and the fixed one of instructions.
SAMPLED_TOGETHER = ['conditional', 'branches', 'loads', 'stores',
                    'instructions']
