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

# Another microarchitecture, with other codes and 8 counters.
ICELAKE = Machine('icelake', setup=OURS, cpu=(
    f'Icelake-Server-v5,pmu=on,{LEFT_OUT},-avx512f,-avx512dq,-avx512ifma,'
    '-avx512cd,-avx512bw,-avx512vl,-avx512vbmi,-avx512vbmi2,-gfni,'
    '-vpclmulqdq,-avx512vnni,-avx512bitalg,-avx512-vpopcntdq,-spec-ctrl,'
    '-arch-capabilities,-ssbd,-xsaves'))
