/*
 * Fuzzer of the virtual PMU: a reference of a modelled core
 *
 * As docs/devel/vpmu-core.rst defines it, one access and one branch at a time.
 * It shares only the kinds of accesses and of branches with the model.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef VPMU_FUZZ_CORE_REFERENCE_H
#define VPMU_FUZZ_CORE_REFERENCE_H

#include "hw/pmu/pmu-engine.h"
#include "fuzz.h"

/**
 * REF_CORE - the properties of the core, beside its state
 *
 * So small that all parts are full soon.
 */
#define REF_CORE                                                              \
    "preset=skylake,l1i-size=512,l1i-ways=2,l1d-size=512,l1d-ways=2,"         \
    "llc-size=2k,llc-ways=4,itlb-entries=2,itlb-ways=2,dtlb-entries=4,"       \
    "dtlb-ways=2,branch-history=2,branch-address=2,branch-targets=4,"         \
    "branch-returns=2,l1-cycles=3,llc-cycles=7,tlb-cycles=2,branch-cycles=5"

/**
 * struct RefTimes - how often events happen at the same time
 * @of: each PmuTally, beside those that the instruction counts itself; cycles
 *      without the instruction's own
 */
typedef struct RefTimes {
    unsigned of[PMU_TALLY__MAX];
} RefTimes;

/**
 * ref_core_step - execute an instruction, on one of two cores
 * @core: which one
 * @insn: the instruction
 */
RefTimes ref_core_step(unsigned core, const FuzzInsn *insn);

/**
 * ref_core_reset - empty both cores
 */
void ref_core_reset(void);

/**
 * ref_core_remember, ref_core_recall - save and restore a copy of both
 */
void ref_core_remember(void);
void ref_core_recall(void);

#endif /* VPMU_FUZZ_CORE_REFERENCE_H */
