# SPDX-License-Identifier: GPL-2.0-or-later
"""The machines on which tests run."""

from harness import LEFT_OUT, SKYLAKE, Machine

# Perf is Debian's on these two; on those that only compare ways of execution,
# a small program counts, which takes less time.
UP = Machine('up')
SMP = Machine('smp', smp=2)

OURS = 'COUNT=tally'
SINGLE = Machine('single', smp=2, accel='tcg,thread=single', setup=OURS)
ICOUNT = Machine('icount', extra=['-icount', 'shift=0'], setup=OURS)
ONE_INSN = Machine('one-insn-per-tb', monitor=['one-insn-per-tb on'],
                   setup=OURS, slowness=4)

# Another microarchitecture, with other codes and 8 counters.
ICELAKE = Machine('icelake', setup=OURS, cpu=(
    f'Icelake-Server-v5,pmu=on,{LEFT_OUT},-avx512f,-avx512dq,-avx512ifma,'
    '-avx512cd,-avx512bw,-avx512vl,-avx512vbmi,-avx512vbmi2,-gfni,'
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
GENOA_SMP = GENOA.variant('genoa-smp', smp=2)
EPYC = Machine('epyc', setup=OURS, cpu=(
    'EPYC-v1,pmu=on,-fxsr-opt,-misalignsse,-osvw,-topoext,-nrip-save,-xsavec'))
OPTERON = Machine('opteron', setup=OURS,
                  cpu='Opteron_G3-v1,pmu=on,-misalignsse')

# Other cycles.
CPI_2 = Machine('cpi=2', cpu=f'{SKYLAKE},pmu-cpi=2000')
FREQUENCY = 1000000000
CLOCK = Machine('clock',
                cpu=f'{SKYLAKE},pmu-cycles=time,pmu-frequency={FREQUENCY}')

# No PMU, because it is not wanted or not asked for.
OFF = Machine('pmu=off', cpu=SKYLAKE.replace('pmu=on', 'pmu=off'))
MAX = Machine('max', cpu='max')
QEMU64 = Machine('qemu64', cpu='qemu64')

# What TCG has of everything, under Intel's name.
INTEL_MAX = Machine('max-intel', cpu='max,vendor=GenuineIntel', setup=OURS)
