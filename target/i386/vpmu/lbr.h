/*
 * x86 virtual PMU: last branch records
 *
 * Intel has two kinds.  The older one is in the SDM, volume 3B, "Last Branch,
 * Interrupt, and Exception Recording": a ring of registers whose numbers, and
 * whose contents besides addresses, depend on the CPU model.  Later CPUs have
 * the architectural kind, in "Last Branch Records".  AMD's kind is in the APM,
 * volume 2, "Last Branch Stack Registers".  In the last two, the records move
 * from register to register.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef I386_VPMU_LBR_H
#define I386_VPMU_LBR_H

#include "internal.h"

/**
 * struct X86VPmuLbr - the records of some CPU models
 * @depth: how many there are, or can be
 * @depths: EAX of CPUID leaf 0x1C: how many there can be
 * @format: of IA32_PERF_CAPABILITIES: which facts about a branch are recorded,
 *          and where; Intel's
 * @call_stack: returns can take calls away
 * @unfiltered: there is no MSR_LBR_SELECT, and the records are in the registers
 *              that Core's CPUs have for them
 * @newest_is_first: a register's number is how many branches are newer
 * @valid_in_to: SAMP_BR_TO has a bit for a valid record; AMD's
 * @architectural: IA32_LBR_CTL controls them
 */
struct X86VPmuLbr {
    uint32_t depth;
    unsigned depths;
    uint32_t format;
    bool call_stack;
    bool unfiltered;
    bool newest_is_first;
    bool valid_in_to;
    bool architectural;
};

/**
 * Generations: Core; Bonnell; Knights Landing and Mill; Nehalem to Ivy Bridge;
 * Haswell and Broadwell; Skylake to Ice Lake; Goldmont; Tremont; Sapphire
 * Rapids and later; Zen 4 and later.
 */
extern const X86VPmuLbr lbr_of_core, lbr_of_bonnell, lbr_of_knights,
                        lbr_of_nehalem, lbr_of_haswell, lbr_of_skylake,
                        lbr_of_goldmont, lbr_of_tremont,
                        lbr_of_sapphire_rapids, lbr_of_zen4;

/**
 * struct LbrWanted - the branches to record, according to registers
 * @kinds: branches of these kinds
 * @modes: that end in one of these modes
 * @call_stack: and returns take calls away
 */
typedef struct LbrWanted {
    PmuBranchKinds kinds;
    PmuModes modes;
    bool call_stack;
} LbrWanted;

/**
 * The records of Intel's CPUs, with the registers that only architectural ones
 * have in arch_lbr, and the records of AMD's
 */
extern const X86VPmuFeature intel_lbr, arch_lbr, amd_lbr;

/**
 * lbr_record - start or stop recording with a given filter
 * @v: the PMU, in a transaction; it has records
 * @wanted: what to record; NULL to record nothing
 */
void lbr_record(X86VPmu *v, const LbrWanted *wanted);

/**
 * lbr_is_recording - whether branches of the current mode are recorded
 * @v: the PMU
 */
bool lbr_is_recording(const X86VPmu *v);

/**
 * lbr_is_timed - whether the cycles between two branches are recorded
 * @v: the PMU
 */
bool lbr_is_timed(const X86VPmu *v);

/**
 * lbr_clear - forget all records
 * @v: the PMU, in a transaction
 * @depth: how many there are from now on
 */
void lbr_clear(X86VPmu *v, unsigned depth);

/**
 * lbr_set_depth - set the number of records, and keep their contents
 * @v: the PMU
 * @depth: the number
 */
void lbr_set_depth(X86VPmu *v, unsigned depth);

/**
 * lbr_read - read the registers of a record
 * @v: the PMU
 * @age: how many branches are newer
 * @record: in the order of their numbers; 0 if there is no such register
 *
 * Returns: false if there is no such record, or registers do not enable them.
 */
bool lbr_read(const X86VPmu *v, unsigned age,
              uint64_t record[X86_VPMU_LER__MAX]);

/**
 * lbr_info_bits - the bits of a register with what else is known of a branch
 * @v: the PMU
 */
uint64_t lbr_info_bits(const X86VPmu *v);

/**
 * vmstate_x86_vpmu_lbr - a subsection of the PMU's state
 */
extern const VMStateDescription vmstate_x86_vpmu_lbr;

/*
 * Architectural branch records.  Each of these does nothing for a PMU without
 * them.
 */

/**
 * arch_lbr_is_there - whether a CPU has them
 * @v: the PMU
 */
static inline bool arch_lbr_is_there(const X86VPmu *v)
{
    return v->lbr && v->lbr->architectural;
}

/**
 * lbr_is_frozen - whether a bit of the global status stops the recording
 * @v: the PMU
 */
static inline bool lbr_is_frozen(const X86VPmu *v)
{
    return v->global_status & X86_STATUS_LBRS_FROZEN;
}

/**
 * arch_lbr_is_enabled, arch_lbr_enable - IA32_LBR_CTL.LBREn
 * @v: the PMU, in a transaction; to be followed by an update
 * @enable: the new value
 */
bool arch_lbr_is_enabled(const X86VPmu *v);
void arch_lbr_enable(X86VPmu *v, bool enable);

/**
 * arch_lbr_is_used - whether a register differs from its value after RESET
 * @v: the PMU
 */
bool arch_lbr_is_used(const X86VPmu *v);

/**
 * vmstate_x86_vpmu_arch_lbr - a subsection of the records' state
 */
extern const VMStateDescription vmstate_x86_vpmu_arch_lbr;

#endif /* I386_VPMU_LBR_H */
