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

/**
 * struct RefEvent - what a code counts
 * @code: unit mask and event select, as in bits 15 to 0 of a selector
 * @ext: bits 35 to 32
 * @tallies: a set of PmuTally; 0 if it is not counted
 */
typedef struct RefEvent {
    uint16_t code;
    uint8_t ext;
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
 * @events: what codes count, ended by one that is 0
 * @denied: what is not counted, likewise; NULL if everything is
 * @fixed_denied: fixed counters that do not count
 * @lbrs: branch records, the most of them; 0 if there are none
 * @lbr_format: of IA32_PERF_CAPABILITIES; those of 0x3f are architectural
 * @unfiltered: they are in Core's registers, and nothing selects them
 * @pebs: the format of its PEBS; 0 if it has none
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
} RefX86;

/*
 * DS save areas in memory, whose buffers have no room.  One never says that its
 * buffer is full, the other always.  Counters are loaded from them, the N-th
 * slot has -(N + 2).
 */
#define REF_DS_NEVER_FULL 0x10000u
#define REF_DS_FULL       0x11000u
#define REF_DS_NR_SLOTS   12

/* IA32_LBR_CTL */
#define REF_LBR_CTL 0x14ceu

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
 *             wait for the end of SMM
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
