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
#define MSR_PEBS_DATA_CFG    0x3f2
#define MSR_IA32_DS_AREA     0x600

/* IA32_PERF_CAPABILITIES: the format of records has 4 bits from this one on. */
#define PERF_CAP_PEBS_FORMAT 8

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
 * pebs_init - prepare a CPU to find the instruction that has overflowed
 * @v: the PMU, of a CPU that does not run yet
 */
void pebs_init(X86VPmu *v);

/**
 * pebs_reset - reset the registers as RESET and INIT do
 * @v: the PMU
 */
void pebs_reset(X86VPmu *v);

/**
 * pebs_capabilities - the bits of PEBS in IA32_PERF_CAPABILITIES
 * @pebs: the PEBS of the CPU model
 */
uint64_t pebs_capabilities(const X86VPmuPebs *pebs);

/**
 * pebs_counters - the set of counters that are sampled
 * @v: the PMU
 *
 * Their overflow does not interrupt by itself nor set the global status.
 */
uint64_t pebs_counters(const X86VPmu *v);

/**
 * pebs_event - the event of a code that exists for PEBS alone
 * @v: the PMU
 * @code: X86_VPMU_CODE()
 *
 * Returns: the event, or PMU_EVENT_NONE.
 */
PmuEvent pebs_event(const X86VPmu *v, uint32_t code);

/**
 * pebs_update - note addresses of data, if records are to have them
 * @v: the PMU, in a transaction
 */
void pebs_update(X86VPmu *v);

/**
 * pebs_sample - sample counters that have overflowed
 * @v: the PMU, in its handler of overflow, and in a transaction
 * @counters: a subset of pebs_counters()
 *
 * Writes records and loads the counters anew.  If an access would cause a page
 * fault, or is not to RAM, the record is lost, and the buffer's index does not
 * change.  There are no records in SMM, nor while the machine is being stopped:
 * counters are armed instead.  To be followed by another selection of their
 * events.
 *
 * Returns: whether the buffer has reached the guest's threshold.
 */
bool pebs_sample(X86VPmu *v, uint64_t counters);

/**
 * pebs_is_armed - whether a counter waits for an event that can be recorded
 * @v: the PMU
 * @counter: which counter
 *
 * It has overflowed already, and does not count in SMM.
 */
bool pebs_is_armed(const X86VPmu *v, unsigned counter);

/**
 * pebs_disarm - make counters no longer wait for an event to record
 * @v: the PMU
 * @counters: a set; to be followed by another selection of their events
 */
void pebs_disarm(X86VPmu *v, uint64_t counters);

/**
 * pebs_is_used - whether there is state that a stream should have
 * @v: the PMU
 */
bool pebs_is_used(const X86VPmu *v);

/*
 * For the table of registers.
 */
uint64_t pebs_evtsel_bits(const X86VPmu *v);
uint64_t pebs_fixed_ctrl_bits(const X86VPmu *v);
unsigned pebs_count_one(const X86VPmu *v);
unsigned pebs_count_ld_lat(const X86VPmu *v);
unsigned pebs_count_data_cfg(const X86VPmu *v);
uint64_t pebs_ds_area_bits(const X86VPmu *v);
bool pebs_is_ds_area(const X86VPmu *v, uint64_t val);
uint64_t pebs_read_ds_area(X86VPmu *v, unsigned i);
void pebs_write_ds_area(X86VPmu *v, unsigned i, uint64_t val);
uint64_t pebs_enable_bits(const X86VPmu *v);
uint64_t pebs_read_enable(X86VPmu *v, unsigned i);
uint64_t pebs_ld_lat_bits(const X86VPmu *v);
uint64_t pebs_read_ld_lat(X86VPmu *v, unsigned i);
uint64_t pebs_data_cfg_bits(const X86VPmu *v);
uint64_t pebs_read_data_cfg(X86VPmu *v, unsigned i);

/**
 * vmstate_x86_vpmu_pebs - a subsection of the PMU's state
 */
extern const VMStateDescription vmstate_x86_vpmu_pebs;

#endif /* I386_VPMU_PEBS_H */
