/*
 * x86 virtual PMU: IA32_DEBUGCTL, which is DebugCtl on AMD's CPUs
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef I386_VPMU_DEBUGCTL_H
#define I386_VPMU_DEBUGCTL_H

#include "internal.h"

#define MSR_IA32_DEBUGCTL            0x1d9

/* Its bits; the freezes are for when counters interrupt. */
#define X86_DEBUGCTL_LBR             (1ull << 0)
#define X86_DEBUGCTL_BTF             (1ull << 1)
#define X86_DEBUGCTL_FREEZE_LBRS     (1ull << 11)
#define X86_DEBUGCTL_FREEZE_COUNTERS (1ull << 12)
#define X86_DEBUGCTL_FREEZE_IN_SMM   (1ull << 14)

extern const X86VPmuFeature x86_debugctl;

/**
 * x86_debugctl_bits - the bits that it can hold
 * @v: the PMU
 */
uint64_t x86_debugctl_bits(const X86VPmu *v);

/**
 * x86_debugctl_take_back - take the state back that an SMI has put aside
 * @v: the PMU, in a transaction; to be followed by an update
 */
void x86_debugctl_take_back(X86VPmu *v);

/**
 * vmstate_x86_vpmu_smm - the state that an SMI has put aside: a subsection of
 *                        the PMU's
 */
extern const VMStateDescription vmstate_x86_vpmu_smm;

#endif /* I386_VPMU_DEBUGCTL_H */
