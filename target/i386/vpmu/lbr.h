/*
 * x86 virtual PMU: last branch records
 *
 * Intel's are those of the SDM, volume 3B, "Last Branch, Interrupt, and
 * Exception Recording": a ring of registers whose numbers, and what they hold
 * besides addresses, depend on the CPU model.  AMD's are those of the APM,
 * volume 2, "Last Branch Stack Registers": the records move from register to
 * register.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef I386_VPMU_LBR_H
#define I386_VPMU_LBR_H

#include "internal.h"

/**
 * struct X86VPmuLbr - the records of some CPU models
 * @depth: how many there are
 * @format: of IA32_PERF_CAPABILITIES: what is told of a branch, and where;
 *          Intel's
 * @call_stack: returns can take calls away
 * @newest_is_first: a register's number is how many branches are newer, and
 *                   SAMP_BR_TO tells whether it has one; AMD's
 */
struct X86VPmuLbr {
    unsigned depth;
    unsigned format;
    bool call_stack;
    bool newest_is_first;
};

/**
 * Generations: Nehalem to Ivy Bridge, Haswell and Broadwell, Skylake to Ice
 * Lake; Zen 4 and later.
 */
extern const X86VPmuLbr lbr_of_nehalem, lbr_of_haswell, lbr_of_skylake,
                        lbr_of_zen4;

/**
 * lbr_reset - no branches, nothing selected
 * @v: the PMU
 */
void lbr_reset(X86VPmu *v);

/**
 * lbr_update - record, or do not
 * @v: the PMU, in a transaction
 * @record: whether registers other than that of the filters say so
 */
void lbr_update(X86VPmu *v, bool record);

/**
 * lbr_is_used - whether there is something that a stream should have
 * @v: the PMU
 */
bool lbr_is_used(const X86VPmu *v);

/*
 * For the table of registers.
 */
unsigned lbr_count_one(const X86VPmu *v);
unsigned lbr_count(const X86VPmu *v);
unsigned lbr_count_info(const X86VPmu *v);
unsigned lbr_count_none(const X86VPmu *v);
uint64_t lbr_select_bits(const X86VPmu *v);
uint64_t lbr_read_select(X86VPmu *v, unsigned i);
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

#endif /* I386_VPMU_LBR_H */
