/*
 * Bare-metal test guest: the PMU
 *
 * Tests are written for Intel's PMU.  Other vendors have most of its registers
 * and events under other numbers: pmu_register() and pmu_gp() find these.
 * AMD's core counters are four general counters, and two with the events of
 * Intel's first fixed ones.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef BARE_PMU_H
#define BARE_PMU_H

#include "bare.h"

#define MSR_PERFCTR(i)      pmu_register(MSR_PERFCTR0 + (i))
#define MSR_PMC(i)          pmu_register(MSR_A_PMC0 + (i))
#define MSR_EVTSEL(i)       pmu_register(MSR_EVTSEL0 + (i))
#define MSR_FIXED_CTR(i)    pmu_register(MSR_FIXED_CTR0 + (i))
#define MSR_GLOBAL_CONTROL  pmu_register(MSR_GLOBAL_CTRL)
#define MSR_GLOBAL_STATUS   pmu_register(MSR_STATUS)
#define MSR_GLOBAL_OVF_CTRL pmu_register(MSR_STATUS_RESET)
/* AMD only: CPUID of counters and branch records */
#define LEAF_AMD_PMU        0x80000022

#define SEL_ALL             (SEL_USR | SEL_OS)
#define FIXED_ALL           (FIXED_USR | FIXED_OS)

/* Events: unit mask << 8 | code, which pmu_gp() replaces by the vendor's. */
#define EV_CYCLES           0x003c
#define EV_INSTRUCTIONS     0x00c0
#define EV_REF_CYCLES       0x013c
#define EV_BRANCHES         0x00c4
/* The model-specific ones are Skylake's. */
#define EV_BR_CONDITIONAL   0x01c4
#define EV_BR_CALL          0x02c4
#define EV_BR_RETURN        0x08c4
#define EV_BR_NOT_TAKEN     0x10c4
#define EV_BR_TAKEN         0x20c4
#define EV_BR_FAR           0x40c4
#define EV_INTERRUPTS       0x01cb
#define EV_DTLB_LOAD_MISSES 0x0108
#define EV_DTLB_STORE_MISSES 0x0149
#define EV_ITLB_MISSES      0x0185
#define EV_LOADS            0x81d0
#define EV_STORES           0x82d0

/* Bits of counters in GLOBAL_CTRL, GLOBAL_STATUS and GLOBAL_OVF_CTRL. */
#define GP(i)               BIT(i)
#define FIXED(i)            BIT(pmu_fixed_bit(i))

/* RDPMC's index of fixed counter @i */
#define RDPMC_FIXED(i)      pmu_register(0x40000000u + (i))

/* For CODE(): load the number of an Intel register, or RDPMC's index. */
#define MOV_PMU(number, into) \
    "    mov $" number ", %" into "\n" \
    "9:  .pushsection pmu_sites, \"a\"\n.quad 9b\n.popsection\n"

#define COUNTER_MASK        (BIT(48) - 1)

/* Detect the PMU's vendor; call this before other functions. */
void pmu_find(void);

/* Returns: whether the PMU is Intel's */
bool pmu_is_intel(void);

/**
 * pmu_register - the number of a register, or an index of RDPMC
 * @intel: Intel's number
 */
uint32_t pmu_register(uint32_t intel);

/* The number of a fixed counter's bit in global registers. */
unsigned pmu_fixed_bit(unsigned i);

/* Returns: whether an event, EV_*, is counted. */
bool pmu_has_event(uint64_t event);

/* The local APIC's entry after it has delivered an interrupt */
uint32_t pmu_delivered(uint32_t lvt);

/**
 * pmu_version - CPUID's version of architectural perfmon
 *
 * Returns: 0 without one; for AMD's, 2 with global registers and 1 without.
 */
unsigned pmu_version(void);
unsigned pmu_gp_counters(void);
unsigned pmu_fixed_counters(void);

/* GLOBAL_CTRL's bits of all counters */
uint64_t pmu_all_counters(void);

/* Bring the PMU to its state after a reset, but clear GLOBAL_CTRL, if any. */
void pmu_reset(void);

/**
 * pmu_gp - program a general counter
 * @i: which
 * @select: event and SEL_ bits; SEL_EN is added.  The case is skipped if the
 *          PMU does not have the event.
 * @value: its first value
 */
void pmu_gp(unsigned i, uint64_t select, uint64_t value);

/**
 * pmu_fixed - program a fixed counter
 * @i: the counter; the case is skipped if it does not exist
 * @field: FIXED_ bits
 * @value: its first value
 */
void pmu_fixed(unsigned i, unsigned field, uint64_t value);

/* ---- Counts --------------------------------------------------------- */

/**
 * struct counts - results of measure_kernel() and measure_user(), for only the
 *     code under test
 * @user: instructions in user mode
 * @kernel: instructions in the kernel
 * @all: instructions by the fixed counter
 * @result: the code's result
 */
struct counts {
    uint64_t user, kernel, all, result;
};

struct counts measure_kernel(code_fn *fn, uint64_t arg);
struct counts measure_user(code_fn *fn, uint64_t arg);

/**
 * expect_counts - check results of measure_kernel() or measure_user()
 * @what: names the code under test
 * @c: the counts
 * @user: instructions that there must be in user mode
 * @kernel: instructions that there must be in the kernel
 */
void expect_counts(const char *what, struct counts c, uint64_t user,
                   uint64_t kernel);

/**
 * expect_both - count a function in the kernel and in user mode
 * @what: names it
 * @fn: the function
 * @arg: its argument
 * @count: instructions it must have in both
 *
 * Single steps check that @count is right, unless it is large.
 */
void expect_both(const char *what, code_fn *fn, uint64_t arg, uint64_t count);

/**
 * run_own_switch - let a counter count until its own selector stops it
 * @select: the value of the selector, of 32 bits
 * @msr: the number of the selector
 *
 * Executes 10 NOPs and 2 instructions of its own after the selector is written.
 * At run_own_switch_here the NOPs have been executed.
 */
uint64_t run_own_switch(uint64_t select, uint32_t msr);
LABEL(run_own_switch_here);

/* ---- Sampling ------------------------------------------------------- */

#define MAX_SAMPLES 4096

/**
 * struct sample - the state of the machine at a PMI
 * @value: of the first counter in @status, after it was stopped
 */
struct sample {
    uint64_t rip, cs, status, lvt, ctrl, value;
};

extern struct sample samples[MAX_SAMPLES];
extern volatile unsigned sample_count; /* by the handler */

/**
 * sample_with - handle PMIs
 * @lvt: value for the APIC's performance LVT: VEC_PMI or APIC_NMI
 *
 * Every PMI appends to samples[].  The handler stops all counters, clears the
 * overflows in the status, sets each such counter to the value from
 * sample_reload(), or disables it without that call, unmasks the LVT and
 * restores GLOBAL_CTRL.  It does not end a freeze.
 */
void sample_with(uint32_t lvt);

/**
 * sample_reload - set the value at which a counter restarts after overflow
 * @bit: the counter's bit in GLOBAL_STATUS
 * @period: events until the next overflow; 0 to stop the counter
 */
void sample_reload(unsigned bit, uint64_t period);

#endif /* BARE_PMU_H */
