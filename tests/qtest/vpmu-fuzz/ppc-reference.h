/*
 * Fuzzer of the virtual PMU: what Power's registers must hold
 *
 * The registers by the architecture's words, bits numbered as there, and
 * counters that take one event at a time.  Nothing is shared with the PMU but
 * the numbers of tallies.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef VPMU_FUZZ_PPC_REFERENCE_H
#define VPMU_FUZZ_PPC_REFERENCE_H

#include "hw/pmu/pmu-engine.h"
#include "tests/qtest/vpmu-codes.h"

#define REF_BIT(n) (1ull << (63 - (n)))

/* Modes: a sum of these. */
#define REF_PRIVILEGED 1
#define REF_HV         2

/* Registers have numbers below that; those for problem state are less by 16. */
#define REF_NR_SPRS (SPR_MMCR1 + 1)

/**
 * enum RefWhen - when an event is counted, beside what freezes all
 * @REF_RUN: only with CTRL[RUN]
 * @REF_WAIT: whatever MMCR0[FC1-4WAIT] says
 * @REF_MARKED: if MMCRA marks it, which says what is counted, too
 * @REF_IN: plus a mode: in that one
 */
typedef enum RefWhen {
    REF_,
    REF_RUN,
    REF_WAIT,
    REF_MARKED,
    REF_IN = 8,
} RefWhen;

/**
 * struct RefEvent - what a code counts
 * @code: 0xPUxSS, the counter, unit and selector
 * @tallies: a set of PmuTally
 * @when: when it does
 */
typedef struct RefEvent {
    uint32_t code;
    PmuTallies tallies;
    RefWhen when;
} RefEvent;

/**
 * struct RefPpc - a PMU
 * @isa: 206, 207, 300 or 310: the architecture
 * @hv: it has hypervisor mode
 * @cpi: cycles of 1000 instructions
 * @events: what codes count, ended by a code that is 0
 * @denied: codes, with or without the counter, that are not counted, likewise;
 *          or NULL
 */
typedef struct RefPpc {
    unsigned isa;
    bool hv;
    unsigned cpi;
    const RefEvent *events;
    const uint32_t *denied;
} RefPpc;

/**
 * enum RefAccess - what becomes of an access; the numbers are PpcAccess's
 */
typedef enum RefAccess {
    REF_ALLOWED,
    REF_UNAVAILABLE,
    REF_ILLEGAL,
} RefAccess;

/**
 * struct RefPpcState - what the guest sees of it besides
 * @mode: in which the CPU is, a sum of REF_*
 * @pmm: MSR[PMM]
 * @run: CTRL[RUN]
 * @nip: where the CPU is
 * @bescr: BESCR
 * @perfm: the interrupt is pending
 * @ebb: an event-based branch is pending
 */
typedef struct RefPpcState {
    unsigned mode;
    bool pmm, run;
    uint64_t nip, bescr;
    bool perfm, ebb;
} RefPpcState;

extern RefPpcState ref_state;

/**
 * struct RefBranch - a branch that is taken
 * @from: its address
 * @to: where it goes
 * @indirect: that is in a register
 * @call, @conditional, @interrupt: what else it is
 */
typedef struct RefBranch {
    uint64_t from, to;
    bool indirect, call, conditional, interrupt;
} RefBranch;

/**
 * ref_init - the reference is to be this PMU; NULL if there is none
 */
void ref_init(const RefPpc *pmu);

/**
 * ref_reset - what a reset does to the registers
 */
void ref_reset(void);

/**
 * ref_access - what an instruction is answered
 */
RefAccess ref_access(unsigned spr, bool write);

/**
 * ref_read - what it reads, if it may
 */
uint64_t ref_read(unsigned spr);

/**
 * ref_write - what it writes, if it may
 */
void ref_write(unsigned spr, uint64_t val);

/**
 * ref_peek - all of a register
 */
uint64_t ref_peek(unsigned spr);

/**
 * ref_write_bescr - BESCR has been written
 */
void ref_write_bescr(uint64_t val);

/**
 * ref_happen - let events happen, one of each, at the same time
 *
 * Instructions take their cycles along.
 */
void ref_happen(PmuTallies events, unsigned mode);

/**
 * ref_branch - a branch ends in a mode
 */
void ref_branch(const RefBranch *branch, unsigned mode);

/**
 * ref_use_bhrb - the guest reads the BHRB, or has cleared it
 */
void ref_use_bhrb(bool clear);

/**
 * ref_bhrb_entry - what mfbhrbe reads of an entry, up to 31
 */
uint64_t ref_bhrb_entry(unsigned n);

/**
 * ref_moved - what a stream does not tell is as at the beginning
 */
void ref_moved(void);

/**
 * ref_begin_cycle - no part of a cycle has gone by
 */
void ref_begin_cycle(void);

/**
 * ref_remember, ref_recall - take a copy of all that, and use it
 */
void ref_remember(void);
void ref_recall(void);

/**
 * ref_writable - the bits that a register can hold
 */
uint64_t ref_writable(unsigned spr);

#endif /* VPMU_FUZZ_PPC_REFERENCE_H */
