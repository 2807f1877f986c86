/*
 * x86 virtual PMU: AMD's registers in a subsection of QEMU without this PMU
 *
 * cpu/msr_architectural_pmu has an array of counters and one of selectors,
 * which are for Intel's registers under KVM.  QEMU 11.0 has AMD's in them, too.
 * Until then, QEMU did not know AMD's, and left a stream's values there alone.
 *
 * A straight array has counter or selector n in element n.  So QEMU 11.0 loads
 * it, and with four counters it also saves it so.  But of the six counters of
 * PerfCtrExtCore, each has the number after that of its selector, and QEMU 11.0
 * saves each register in the element of its distance from the first one:
 * selector n in element 2n, counter n in element 2n + 1.  Here this is called
 * shifted.  The other elements keep what was loaded into them.
 *
 * This QEMU sends straight arrays and two marks, which are greater than any
 * counter.  One is in the last element that is saved shifted, which no QEMU
 * loads into a register: it stays as long as the arrays are straight.  The
 * other is in an element that no QEMU uses for AMD's registers: if only this
 * one is left, the guest has been in QEMU 11.0, and the arrays are shifted.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef I386_VPMU_AMD_STOCK_H
#define I386_VPMU_AMD_STOCK_H

#include "cpu.h"

/* "vPMUvPMU", which has more bits than a counter */
#define X86_VPMU_MARK 0x76504d5576504d55ull

/*
 * The element with the mark of all vendors: no CPU has so many counters, and
 * QEMU's arrays may become shorter, but not as short as that.
 */
#define X86_VPMU_MARKED 12
QEMU_BUILD_BUG_ON(X86_VPMU_MARKED >= MAX_GP_COUNTERS);

/**
 * amd_stock_mark - mark the arrays as straight
 * @env: the CPU's state with the arrays
 * @nr: how many counters the CPU has
 */
void amd_stock_mark(CPUX86State *env, unsigned nr);

/**
 * amd_stock_straighten - make arrays straight that were loaded
 * @env: the CPU's state with the arrays; the marks are removed
 * @nr: how many counters the CPU has
 * @core: whether they have the numbers of PerfCtrExtCore
 *
 * Returns: false if it is not certain how the arrays have been saved.  Then
 * they are as they were, but for the marks.
 */
bool amd_stock_straighten(CPUX86State *env, unsigned nr, bool core);

#endif /* I386_VPMU_AMD_STOCK_H */
