/*
 * Bare-metal test guest: the PMU
 *
 * Tests are written for Intel's, of which other vendors' have most under other
 * numbers: pmu_register() and pmu_gp() find these.  AMD's core counters are
 * four general counters, and two that count what Intel's first fixed ones do.
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
/* AMD's alone: CPUID of counters and branch records */
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

/* RDPMC's index of fixed counter @i. */
#define RDPMC_FIXED(i)      pmu_register(0x40000000u + (i))

/* For CODE(): load the number of a register of Intel's, or RDPMC's index. */
#define MOV_PMU(number, into) \
    "    mov $" number ", %" into "\n" \
    "9:  .pushsection pmu_sites, \"a\"\n.quad 9b\n.popsection\n"

#define COUNTER_MASK        (BIT(48) - 1)

/* Find out whose PMU this is; before anything else here. */
void pmu_find(void);

/* Returns: whether it is Intel's. */
bool pmu_is_intel(void);

/**
 * pmu_register - the number of a register, or an index of RDPMC
 * @intel: Intel's
 */
uint32_t pmu_register(uint32_t intel);

/* The number of a fixed counter's bit in global registers. */
unsigned pmu_fixed_bit(unsigned i);

/* Returns: whether an event, EV_*, is counted. */
bool pmu_has_event(uint64_t event);

/* What the local APIC's entry is after an interrupt was delivered. */
uint32_t pmu_delivered(uint32_t lvt);

/**
 * pmu_version - CPUID's version of architectural perfmon
 *
 * Returns: 0 if there is none; AMD's with global registers is 2, without 1.
 */
unsigned pmu_version(void);
unsigned pmu_gp_counters(void);
unsigned pmu_fixed_counters(void);

/* GLOBAL_CTRL's bits of all counters. */
uint64_t pmu_all_counters(void);

/* As after a reset, but nothing enabled in GLOBAL_CTRL, if there is one. */
void pmu_reset(void);

/**
 * pmu_gp - program a general counter
 * @i: which
 * @select: event and SEL_ bits; SEL_EN is added.  The case is skipped if there
 *          is no such event.
 * @value: what it starts at
 */
void pmu_gp(unsigned i, uint64_t select, uint64_t value);

/**
 * pmu_fixed - program a fixed counter
 * @i: which; the case is skipped if there is none
 * @field: FIXED_ bits
 * @value: what it starts at
 */
void pmu_fixed(unsigned i, unsigned field, uint64_t value);

/* ---- Counts --------------------------------------------------------- */

/**
 * struct counts - what the counters of measure_kernel() and measure_user()
 *     say of the code under test alone
 * @user: instructions in user mode
 * @kernel: instructions in the kernel
 * @all: instructions by the fixed counter
 * @result: what the code returned
 */
struct counts {
    uint64_t user, kernel, all, result;
};

struct counts measure_kernel(code_fn *fn, uint64_t arg);
struct counts measure_user(code_fn *fn, uint64_t arg);

/**
 * expect_counts - check what measure_kernel() or measure_user() returned
 * @what: names the code under test
 * @c: the counts
 * @user: instructions there must be in user mode
 * @kernel: instructions there must be in the kernel
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
 * That @count is right is checked by single steps, unless it is large.
 */
void expect_both(const char *what, code_fn *fn, uint64_t arg, uint64_t count);

/* ---- Sampling ------------------------------------------------------- */

#define MAX_SAMPLES 4096

/**
 * struct sample - one PMI, as its handler found the machine
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
 * Every PMI appends to samples[]. The handler stops all counters, clears
 * what overflowed, sets each such counter to what sample_reload() asked for
 * or else disables it, unmasks the LVT and restores GLOBAL_CTRL. What is
 * frozen it leaves frozen.
 */
void sample_with(uint32_t lvt);

/**
 * sample_reload - set what an overflowed counter starts from again
 * @bit: of the counter in GLOBAL_STATUS
 * @period: events until the next overflow; 0 to stop the counter
 */
void sample_reload(unsigned bit, uint64_t period);

#endif /* BARE_PMU_H */
