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
 * lbr_reset - forget all branches, and clear the filter
 * @v: the PMU
 */
void lbr_reset(X86VPmu *v);

/**
 * lbr_update - start or stop recording
 * @v: the PMU, in a transaction
 * @record: whether other registers than the filter's enable it
 */
void lbr_update(X86VPmu *v, bool record);

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
 * lbr_is_used - whether there is state that a stream should have
 * @v: the PMU
 */
bool lbr_is_used(const X86VPmu *v);

/*
 * For the table of registers.
 */
unsigned lbr_count_one(const X86VPmu *v);
unsigned lbr_count(const X86VPmu *v);
unsigned lbr_count_info(const X86VPmu *v);
uint64_t lbr_select_bits(const X86VPmu *v);
uint64_t lbr_read_select(X86VPmu *v, unsigned i);
unsigned lbr_count_legacy_one(const X86VPmu *v);
unsigned lbr_count_select(const X86VPmu *v);
unsigned lbr_count_legacy(const X86VPmu *v);
unsigned lbr_count_unfiltered(const X86VPmu *v);
uint64_t lbr_config_bits(const X86VPmu *v);
uint64_t lbr_read_config(X86VPmu *v, unsigned i);
uint64_t lbr_tos_bits(const X86VPmu *v);
uint64_t lbr_read_tos(X86VPmu *v, unsigned i);
void lbr_write_tos(X86VPmu *v, unsigned i, uint64_t val);
uint64_t lbr_read_from(X86VPmu *v, unsigned i);
void lbr_write_from(X86VPmu *v, unsigned i, uint64_t val);
uint64_t lbr_read_to(X86VPmu *v, unsigned i);
void lbr_write_to(X86VPmu *v, unsigned i, uint64_t val);
uint64_t lbr_info_bits(const X86VPmu *v);
uint64_t lbr_read_info(X86VPmu *v, unsigned i);
void lbr_write_info(X86VPmu *v, unsigned i, uint64_t val);

/**
 * vmstate_x86_vpmu_lbr - a subsection of the PMU's state
 */
extern const VMStateDescription vmstate_x86_vpmu_lbr;

/*
 * Architectural branch records.  Each of these does nothing for a PMU without
 * them.
 */

/**
 * arch_lbr_reset - reset the registers as RESET does
 * @v: the PMU
 */
void arch_lbr_reset(X86VPmu *v);

/**
 * arch_lbr_update - make the recorder follow the registers
 * @v: the PMU, in a transaction
 * @frozen: record nothing
 */
void arch_lbr_update(X86VPmu *v, bool frozen);

/**
 * arch_lbr_hides - whether records do not say where a branch comes from
 * @v: the PMU
 * @mode: in which it is there
 *
 * The record of a branch from a mode that is filtered out has all ones there.
 */
bool arch_lbr_hides(const X86VPmu *v, unsigned mode);

/**
 * arch_lbr_is_enabled, arch_lbr_enable - IA32_LBR_CTL.LBREn
 * @v: the PMU, in a transaction; to be followed by arch_lbr_update()
 * @enable: the new value
 */
bool arch_lbr_is_enabled(const X86VPmu *v);
void arch_lbr_enable(X86VPmu *v, bool enable);

/**
 * arch_lbr_note_event - save the last branch before an event
 * @v: the PMU, whose CPU delivers an interrupt or an exception
 */
void arch_lbr_note_event(X86VPmu *v);

/**
 * arch_lbr_is_used - whether a register differs from its value after RESET
 * @v: the PMU
 */
bool arch_lbr_is_used(const X86VPmu *v);

/**
 * arch_lbr_cpuid - fill in leaf 0x1C
 * @v: the PMU
 */
void arch_lbr_cpuid(const X86VPmu *v, uint32_t *eax, uint32_t *ebx,
                    uint32_t *ecx);

/*
 * For the table of registers.
 */
unsigned arch_lbr_count_one(const X86VPmu *v);
unsigned arch_lbr_count(const X86VPmu *v);
uint64_t arch_lbr_ctl_bits(const X86VPmu *v);
uint64_t arch_lbr_read_ctl(X86VPmu *v, unsigned i);
bool arch_lbr_depth_is_valid(const X86VPmu *v, uint64_t val);
uint64_t arch_lbr_read_depth(X86VPmu *v, unsigned i);
void arch_lbr_write_depth(X86VPmu *v, unsigned i, uint64_t val);
uint64_t arch_lbr_read_ler(X86VPmu *v, unsigned i);
void arch_lbr_write_ler(X86VPmu *v, unsigned i, uint64_t val);
uint64_t arch_lbr_read_ler_info(X86VPmu *v, unsigned i);
void arch_lbr_write_ler_info(X86VPmu *v, unsigned i, uint64_t val);

/**
 * vmstate_x86_vpmu_arch_lbr - a subsection of the records' state
 */
extern const VMStateDescription vmstate_x86_vpmu_arch_lbr;

#endif /* I386_VPMU_LBR_H */
