/*
 * Fuzzer of the virtual PMU: what x86's registers must hold
 *
 * The registers by the manuals' words, and counters that take one event at a
 * time.  Nothing is shared with the PMU but the numbers of tallies and of kinds
 * of branches.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef VPMU_FUZZ_X86_REFERENCE_H
#define VPMU_FUZZ_X86_REFERENCE_H

#include "hw/pmu/pmu-engine.h"
#include "hw/pmu/pmu-recorder.h"
#include "tests/qtest/vpmu-codes.h"

/**
 * struct RefEvent - what a code counts
 * @code: unit mask and event select, as in bits 35 to 32 and 15 to 0 of a
 *        selector
 * @tallies: a set of PmuTally; 0 if it is not counted
 */
typedef struct RefEvent {
    uint64_t code;
    PmuTallies tallies;
} RefEvent;

/**
 * struct RefX86 - a PMU
 * @amd: AMD's registers, otherwise Intel's
 * @version: of the architecture; AMD's is 2 with the global registers
 * @nr_gp: general-purpose counters
 * @nr_fixed: fixed-function counters
 * @select_ext: AMD's selectors have more than 32 bits
 * @cpi: cycles of 1000 instructions
 * @events: what codes count, ended by a code that is 0
 * @denied: what is not counted, likewise; NULL if everything is
 * @fixed_denied: fixed counters that do not count
 * @lbrs: branch records, the most of them; 0 if there are none
 * @lbr_format: of IA32_PERF_CAPABILITIES; those of 0x3f are architectural
 * @unfiltered: they are in Core's registers, and nothing selects them
 * @pebs: the format of its PEBS; 0 if it has none
 * @precise_store: bit 63 of IA32_PEBS_ENABLE can be set
 * @both_latencies: its records of accesses have two, in one word
 * @la57: addresses have 57 bits
 * @no_capabilities: nor what IA32_PERF_CAPABILITIES would tell of
 * @kvm: its state goes where KVM's does
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
} RefX86;

/*
 * What records have of a CPU that executes nothing: it is as after a reset, but
 * for registers by their numbers, flags, and the time, which stands still.
 */
#define REF_IP    0xfffffff0u
#define REF_FLAGS 0x47u
#define REF_TIME  0x123456789abull

#define REF_GPR(n) (0x0101010101010101ull * ((n) + 1))
#define REF_XMM(n) (0xf00000000000000full + ((uint64_t)(n) << 32))

/**
 * enum RefAccess - what becomes of an access
 */
typedef enum RefAccess {
    REF_NOT_MINE,
    REF_DONE,
    REF_FAULT,
} RefAccess;

/**
 * struct RefX86State - what the guest sees of it besides
 * @lvtpc: the local APIC's entry
 * @nmi: an NMI is pending
 * @svme: EFER.SVME
 * @smm: it is in SMM
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
 * ref_init - the reference is to be this PMU; NULL if there is none
 */
void ref_init(const RefX86 *pmu);

/**
 * ref_reset - what RESET does to it
 */
void ref_reset(void);

/**
 * ref_init_signal - what INIT does to it: PEBS ends, and so does SMM
 */
void ref_init_signal(void);

/**
 * ref_has - whether there is such a register, whatever other registers hold
 */
bool ref_has(uint32_t msr);

/**
 * ref_read - what RDMSR does
 */
RefAccess ref_read(uint32_t msr, uint64_t *val);

/**
 * ref_write - what WRMSR does
 */
RefAccess ref_write(uint32_t msr, uint64_t val);

/**
 * ref_rdpmc - what RDPMC does; false if it faults
 */
bool ref_rdpmc(uint32_t index, uint64_t *val);

/**
 * ref_happen - let events happen, one of each, at the same time
 *
 * Instructions take their cycles along.
 */
void ref_happen(PmuTallies events, unsigned mode);

/**
 * ref_branch - let a branch be taken that ends in a mode
 */
void ref_branch(const PmuBranch *branch, unsigned mode);

/**
 * ref_event - let an interrupt or an exception be delivered, which has not been
 *             recorded yet
 */
void ref_event(void);

/**
 * ref_pc, ref_data - where the instruction is that these events are of, and the
 *                    data that it accesses in a mode
 */
uint64_t ref_pc(PmuTallies events);
uint64_t ref_data(PmuTallies events, unsigned mode);

/**
 * ref_ds_field - the address of a field of the DS save area; false if the guest
 *                cannot write it
 * @offset: the field's
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
 * ref_is_used - whether there is more in it than values that were left behind
 */
bool ref_is_used(void);

/**
 * ref_begin_cycle - no part of a cycle has gone by
 */
void ref_begin_cycle(void);

/**
 * ref_moved - it has been loaded: nothing is known any more of counters that
 *             wait for the end of SMM, nor of what KVM does not keep
 */
void ref_moved(void);

/**
 * ref_remember, ref_recall - take a copy of all that, and use it
 */
void ref_remember(void);
void ref_recall(void);

/**
 * ref_writable - the bits that a register can hold
 */
uint64_t ref_writable(uint32_t msr);

/**
 * ref_unknown - the bits of a register that the reference knows nothing of
 */
uint64_t ref_unknown(uint32_t msr);

#endif /* VPMU_FUZZ_X86_REFERENCE_H */
