/*
 * x86 virtual PMU: processor event based sampling (PEBS)
 *
 * As in the SDM, volume 3B, "Processor Event Based Sampling": when a counter
 * overflows, a record of the CPU's state is written to a buffer in the guest's
 * memory, and the counter is loaded anew, both without an interrupt.  A record
 * belongs to the very instruction that overflowed.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef I386_VPMU_PEBS_H
#define I386_VPMU_PEBS_H

#include "internal.h"

#define MSR_IA32_PEBS_ENABLE 0x3f1

/**
 * struct X86VPmuPebs - the PEBS of some CPU models
 * @format: of records, as in IA32_PERF_CAPABILITIES
 * @baseline: fixed counters have it, too, and MSR_PEBS_DATA_CFG chooses the
 *            groups of a record
 * @counters: general-purpose counters that have it, as in IA32_PEBS_ENABLE
 * @other_enables: bits that can be set there, besides counters
 * @load_latency: the code of the event that samples loads; 0 without one
 * @store_sample: likewise of stores
 * @tells_both_latencies: the memory group has the latency of the access as well
 *                        as the instruction's
 * @uops: the code of the event with which Linux samples cycles; 0 if it uses
 *        instructions
 */
struct X86VPmuPebs {
    unsigned format;
    bool baseline;
    uint64_t counters;
    uint64_t other_enables;
    uint32_t load_latency;
    uint32_t store_sample;
    bool tells_both_latencies;
    uint32_t uops;
};

/**
 * Generations: Nehalem, Sandy Bridge and Ivy Bridge, Haswell and Broadwell,
 * Skylake, Ice Lake, Golden Cove.
 */
extern const X86VPmuPebs pebs_of_nehalem, pebs_of_sandy_bridge,
                         pebs_of_haswell, pebs_of_skylake, pebs_of_ice_lake,
                         pebs_of_golden_cove;

/**
 * pebs_capabilities - the bits of PEBS in IA32_PERF_CAPABILITIES
 * @pebs: the PEBS of the CPU model
 */
uint64_t pebs_capabilities(const X86VPmuPebs *pebs);

/**
 * pebs_is_shown - whether the guest of KVM finds PEBS
 * @cpu: the CPU, whose features are known
 *
 * KVM has it if the host has, and a guest that finds its format and its buffer
 * in CPUID may use it.
 */
bool pebs_is_shown(const X86CPU *cpu);

/**
 * The feature of Intel's CPUs
 */
extern const X86VPmuFeature intel_pebs;

/**
 * vmstate_x86_vpmu_pebs - a subsection of the PMU's state
 */
extern const VMStateDescription vmstate_x86_vpmu_pebs;

#endif /* I386_VPMU_PEBS_H */
