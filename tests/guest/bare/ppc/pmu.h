/*
 * Bare-metal test guest: its PMU
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef BARE_PMU_H
#define BARE_PMU_H

#include "bare.h"

/* The number of a register is less by this in problem state. */
#define SPR_PROBLEM     16

#define NR_PMCS         6
#define PMC_NEGATIVE    0x80000000u

/* Alerts at any counter. */
#define MMCR0_ALERT     (MMCR0_PMAE | MMCR0_PMC1CE | MMCR0_PMCJCE)

/* Events: the value of MMCR1 for a counter, unit and selector */
#define EVENT(pmc, unit, sel) \
    ((uint64_t)(unit) << (64 - 4 * (pmc)) | (uint64_t)(sel) << (32 - 8 * (pmc)))
#define EV_INSNS(pmc)   EVENT(pmc, 0, 0x02)
#define EV_CYCLES(pmc)  EVENT(pmc, 0, 0x1e)
#define EV_BRANCHES_1   EVENT(1, 0, 0x68)
#define EV_STCX_FAIL_1  EVENT(1, 0xe, 0x58)
#define EV_LOADS_1      EVENT(1, 0, 0xfc)
#define EV_STORES_2     EVENT(2, 0, 0xf0)
#define EV_TAKEN_2      EVENT(2, 0, 0xfa)
#define EV_RUN_CYCLES_2 EVENT(2, 0, 0xf4)
#define EV_RUN_INSNS_4  EVENT(4, 0, 0xfa)
#define EV_BRANCHES_4   EVENT(4, 0xd, 0x5e)
#define EV_LOADS_4      EVENT(4, 0, 0x3e)
#define EV_DTLB_MISS_3  EVENT(3, 0, 0xfc)
#define EV_ITLB_MISS_4  EVENT(4, 0, 0xfc)

/* Instructions on each of PMC1 to PMC4. */
#define EV_INSNS_ALL \
    (EV_INSNS(1) | EV_INSNS(2) | EV_INSNS(3) | EV_INSNS(4))

/* Bring the PMU to its state after a reset, and set the run latch. */
void pmu_reset(void);

uint64_t read_pmc(unsigned pmc);
void write_pmc(unsigned pmc, uint64_t value);

/* ---- What freezes --------------------------------------------------- */

/**
 * struct state - the state that freeze bits depend on
 */
struct state {
    bool hv, problem, pmm, run;
};

/**
 * frozen_by_mmcr0 - whether a counter is frozen in a state
 * @bits: bits of MMCR0
 * @pmc: the counter
 * @s: the state
 */
bool frozen_by_mmcr0(uint64_t bits, unsigned pmc, struct state s);

/* The same for bit @n of a counter's nine in MMCR2. */
bool frozen_by_mmcr2(unsigned n, struct state s);

/* The same for all of both registers. */
bool frozen(uint64_t mmcr0, uint64_t mmcr2, unsigned pmc, struct state s);

/* ---- Counts --------------------------------------------------------- */

/**
 * struct counts - results of measure() for the code under test
 * @hv, @priv, @problem: instructions in each state; @problem includes the
 *     hypervisor's problem state
 * @all: all instructions
 * @cycles: all cycles
 * @result: the code's result
 */
struct counts {
    uint64_t hv, priv, problem, all, cycles, result;
};

/**
 * measure - count a function's instructions, excluding run()
 * @msr: the state in which to run it
 * @fn: the function
 * @arg: its argument
 */
struct counts measure(uint64_t msr, code_fn *fn, uint64_t arg);

/**
 * expect_counts - check results of measure()
 * @what: names the code under test
 * @c: the counts
 * @hv: instructions that there must be of the hypervisor
 * @priv: in privileged state below it
 * @problem: in problem state
 */
void expect_counts(const char *what, struct counts c, uint64_t hv,
                   uint64_t priv, uint64_t problem);

/**
 * expect_everywhere - count a function in all four states
 * @what: names it
 * @fn: the function
 * @arg: its argument
 * @count: instructions it must have in each
 *
 * Single steps check that @count is right, unless it is large.
 */
void expect_everywhere(const char *what, code_fn *fn, uint64_t arg,
                       uint64_t count);

/* ---- Sampling ------------------------------------------------------- */

#define MAX_SAMPLES 4096

/**
 * struct sample - the state of the machine at an interrupt
 */
struct sample {
    uint64_t nip, msr, siar, sdar, sier, mmcr0, pmc[NR_PMCS];
};

extern struct sample samples[MAX_SAMPLES];
extern volatile unsigned sample_count; /* by the handler */

/**
 * sample - handle performance monitor interrupts
 *
 * Every interrupt appends to samples[].  The handler sets negative counters to
 * the value from sample_reload(); without that call, counters stay frozen.
 */
void sample(void);

/**
 * sample_reload - set the value at which a counter restarts after overflow
 * @pmc: the counter
 * @period: events until the next overflow; 0 to stop them all
 */
void sample_reload(unsigned pmc, uint32_t period);

#endif /* BARE_PMU_H */
