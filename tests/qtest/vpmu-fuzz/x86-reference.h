/*
 * Fuzzer of the virtual PMU: a reference of x86's registers
 *
 * Registers as the manuals describe them, and counters that take one event at a
 * time.  The reference shares only the numbers of tallies and of kinds of
 * branches with the PMU.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef VPMU_FUZZ_X86_REFERENCE_H
#define VPMU_FUZZ_X86_REFERENCE_H

#include "hw/pmu/pmu-engine.h"
#include "hw/pmu/pmu-recorder.h"
#include "fuzz.h"
#include "tests/qtest/vpmu-codes.h"

/**
 * struct RefEvent - an event code
 * @code: unit masks and event select, as in bits 35 to 32 (Intel: 47 to 40)
 *        and 15 to 0 of a selector
 * @tallies: a set of PmuTally; 0 if it is not counted
 */
typedef struct RefEvent {
    uint64_t code;
    PmuTallies tallies;
} RefEvent;

/**
 * struct RefX86 - a PMU
 * @amd: AMD's registers, otherwise Intel's
 * @version: the architecture's version; AMD's is 2 with global registers
 * @nr_gp: general-purpose counters
 * @nr_fixed: fixed-function counters
 * @select_ext: AMD's selectors have more than 32 bits
 * @cpi: cycles of 1000 instructions
 * @events: events by code, ended by a code that is 0
 * @denied: codes that are not counted, ended by 0; NULL if all are counted
 * @fixed_denied: fixed counters that do not count
 * @lbrs: the greatest number of branch records; 0 without records
 * @lbr_format: from IA32_PERF_CAPABILITIES; 0x3f means architectural records
 * @unfiltered: records are in Core's registers, and have no filter
 * @pebs: the format of its PEBS; 0 without PEBS
 * @precise_store: bit 63 of IA32_PEBS_ENABLE can be set
 * @both_latencies: its records of accesses have two latencies, in one word
 * @la57: addresses have 57 bits
 * @no_capabilities: no IA32_PERF_CAPABILITIES, nor features that it announces
 * @kvm: its state is stored as under KVM
 * @core: it has the modelled core of core-reference.h
 * @private: programs, that is user mode, have one of their own
 * @offcore: the bits of MSR_OFFCORE_RSP_x; 0 without these
 * @slots: of each cycle, which a fourth fixed counter and MSR_PERF_METRICS are
 *         about; 0 without these
 */
typedef struct RefX86 {
    bool amd;
    unsigned version;
    unsigned nr_gp, nr_fixed;
    bool select_ext;
    unsigned cpi;
    const RefEvent *events;
    const uint16_t *denied;
    unsigned fixed_denied;
    unsigned lbrs, lbr_format;
    bool unfiltered;
    unsigned pebs;
    bool precise_store, both_latencies;
    bool la57;
    bool no_capabilities;
    bool kvm;
    bool core, private;
    uint64_t offcore;
    unsigned slots;
} RefX86;

/*
 * Values in records of a CPU that executes nothing.  It is as after a reset,
 * except for registers, which hold values made from their numbers, for flags,
 * and for the time, which stands still.
 */
#define REF_IP    0xfffffff0u
#define REF_FLAGS 0x47u
#define REF_TIME  0x123456789abull

#define REF_GPR(n) (0x0101010101010101ull * ((n) + 1))
#define REF_XMM(n) (0xf00000000000000full + ((uint64_t)(n) << 32))

/**
 * enum RefAccess - result of an access
 */
typedef enum RefAccess {
    REF_NOT_MINE,
    REF_DONE,
    REF_FAULT,
} RefAccess;

/**
 * struct RefX86State - state of the CPU that the guest sees besides registers
 * @lvtpc: the local APIC's entry
 * @nmi: an NMI is pending
 * @svme: EFER.SVME
 * @smm: the CPU is in SMM
 */
typedef struct RefX86State {
    uint32_t lvtpc;
    bool nmi;
    bool svme;
    bool smm;
} RefX86State;

#define REF_LVT_NMI    0x400u
#define REF_LVT_MASKED 0x10000u

extern RefX86State ref_state;

/**
 * ref_init - become the reference of a PMU; NULL if the CPU has no PMU
 */
void ref_init(const RefX86 *pmu);

/**
 * ref_reset - do what RESET does
 */
void ref_reset(void);

/**
 * ref_init_signal - do what INIT does: end PEBS and SMM
 */
void ref_init_signal(void);

/**
 * ref_has - whether a register exists, regardless of other registers' values
 */
bool ref_has(uint32_t msr);

/**
 * ref_read - do what RDMSR does
 */
RefAccess ref_read(uint32_t msr, uint64_t *val);

/**
 * ref_write - do what WRMSR does
 */
RefAccess ref_write(uint32_t msr, uint64_t val);

/**
 * ref_rdpmc - do what RDPMC does; false if it faults
 */
bool ref_rdpmc(uint32_t index, uint64_t *val);

/**
 * ref_happen - let events happen, one of each, at the same time
 *
 * Instructions also count their cycles.
 */
void ref_happen(PmuTallies events, unsigned mode);

/**
 * ref_step - execute an instruction that a modelled core sees
 * @events: its own events, beside misses
 */
void ref_step(const FuzzInsn *insn, PmuTallies events, unsigned mode);

/**
 * ref_branch - let a branch be taken that ends in a mode
 */
void ref_branch(const PmuBranch *branch, unsigned mode);

/**
 * ref_event - let an interrupt or an exception be delivered, before it is
 *             recorded
 */
void ref_event(void);

/**
 * ref_pc, ref_data - the address of the instruction with these events, and of
 *                    the data that it accesses in a mode
 */
uint64_t ref_pc(PmuTallies events);
uint64_t ref_data(PmuTallies events, unsigned mode);

/**
 * ref_ds_field - get the address of a field of the DS save area; false if the
 *                guest cannot write to it
 * @offset: the field's offset
 */
bool ref_ds_field(unsigned offset, uint64_t *addr);

/**
 * ref_debug_exception - let #DB be delivered
 */
void ref_debug_exception(void);

/**
 * ref_smi, ref_rsm - enter SMM, and leave it
 */
void ref_smi(void);
void ref_rsm(void);

/**
 * ref_is_used - whether it holds more than leftover values
 */
bool ref_is_used(void);

/**
 * ref_begin_cycle - begin a whole cycle
 */
void ref_begin_cycle(void);

/**
 * ref_moved - a load has lost the counters that wait for the end of SMM, and
 *             registers that KVM does not save
 */
void ref_moved(void);

/**
 * ref_remember, ref_recall - save and restore a copy of the state
 */
void ref_remember(void);
void ref_recall(void);

/**
 * ref_writable - the bits that a register can hold
 */
uint64_t ref_writable(uint32_t msr);

/**
 * ref_unknown - the bits of a register that the reference cannot predict
 */
uint64_t ref_unknown(uint32_t msr);

#endif /* VPMU_FUZZ_X86_REFERENCE_H */
