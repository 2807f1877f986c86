/*
 * Fuzzer of the virtual PMU: a reference of Power's registers
 *
 * Registers as the architecture describes them, with its numbers of bits, and
 * counters that take one event at a time.  The reference shares only the
 * numbers of tallies with the PMU.
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

/* Registers have smaller numbers; numbers for problem state are less by 16. */
#define REF_NR_SPRS (SPR_MMCR1 + 1)

/**
 * enum RefWhen - condition of an event, in addition to freeze bits
 * @REF_RUN: only with CTRL[RUN]
 * @REF_WAIT: whatever MMCR0[FC1-4WAIT] says
 * @REF_MARKED: if MMCRA marks it; MMCRA also selects the event
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
 * struct RefEvent - an event code
 * @code: 0xPUxSS, the counter, unit and selector
 * @tallies: a set of PmuTally
 * @when: the condition under which it counts
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
 * @events: events by code, ended by a code that is 0
 * @denied: codes, with or without the counter, that are not counted, ended by
 *          0; or NULL
 */
typedef struct RefPpc {
    unsigned isa;
    bool hv;
    unsigned cpi;
    const RefEvent *events;
    const uint32_t *denied;
} RefPpc;

/**
 * enum RefAccess - result of an access; the numbers are PpcAccess's
 */
typedef enum RefAccess {
    REF_ALLOWED,
    REF_UNAVAILABLE,
    REF_ILLEGAL,
} RefAccess;

/**
 * struct RefPpcState - state of the CPU that the guest sees besides registers
 * @mode: the CPU's mode, a sum of REF_*
 * @pmm: MSR[PMM]
 * @run: CTRL[RUN]
 * @nip: the CPU's address
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
 * @indirect: the target is in a register
 * @call, @conditional, @interrupt: further kinds
 */
typedef struct RefBranch {
    uint64_t from, to;
    bool indirect, call, conditional, interrupt;
} RefBranch;

/**
 * ref_init - become the reference of a PMU; NULL if the CPU has no PMU
 */
void ref_init(const RefPpc *pmu);

/**
 * ref_reset - reset the registers
 */
void ref_reset(void);

/**
 * ref_access - the result of an instruction's access
 */
RefAccess ref_access(unsigned spr, bool write);

/**
 * ref_read - the value that an allowed instruction reads
 */
uint64_t ref_read(unsigned spr);

/**
 * ref_write - write a value, as an allowed instruction does
 */
void ref_write(unsigned spr, uint64_t val);

/**
 * ref_peek - all of a register
 */
uint64_t ref_peek(unsigned spr);

/**
 * ref_write_bescr - write to BESCR
 */
void ref_write_bescr(uint64_t val);

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
 * ref_branch - take a branch that ends in a mode
 */
void ref_branch(const RefBranch *branch, unsigned mode);

/**
 * ref_use_bhrb - let the guest read or clear the BHRB
 */
void ref_use_bhrb(bool clear);

/**
 * ref_bhrb_entry - the value that mfbhrbe reads from an entry, up to 31
 */
uint64_t ref_bhrb_entry(unsigned n);

/**
 * ref_moved - reset all state that a stream does not contain
 */
void ref_moved(void);

/**
 * ref_begin_cycle - begin a whole cycle
 */
void ref_begin_cycle(void);

/**
 * ref_remember, ref_recall - save and restore a copy of the state
 */
void ref_remember(void);
void ref_recall(void);

/**
 * ref_writable - the bits that a register can hold
 */
uint64_t ref_writable(unsigned spr);

#endif /* VPMU_FUZZ_PPC_REFERENCE_H */
