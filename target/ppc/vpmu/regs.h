/*
 * Power virtual PMU: the fields of its registers
 *
 * Power ISA 3.1B, book III, "Performance Monitor Facility"; bits are numbered
 * as there, 0 being the most significant of 64.  Where an earlier level of
 * the architecture differs, the field says so.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef PPC_VPMU_REGS_H
#define PPC_VPMU_REGS_H

#include "qemu/bitops.h"
#include "cpu.h"

#define PPC_VPMU_NR_PMCS 6

/* The value at which a counter is negative. */
#define PMC_NEGATIVE 0x80000000u

/* In problem state, the number of a register is less by this. */
#define SPR_PROBLEM 0x10

/* Monitor Mode Control Register 0 */
#define MMCR0_FC       PPC_BIT(32) /* freeze counters */
#define MMCR0_FCS      PPC_BIT(33) /* in privileged state */
#define MMCR0_FCP      PPC_BIT(34) /* in problem state, see FCPC */
#define MMCR0_FCM1     PPC_BIT(35) /* while MSR[PMM] is 1 */
#define MMCR0_FCM0     PPC_BIT(36) /* while MSR[PMM] is 0 */
#define MMCR0_PMAE     PPC_BIT(37) /* alert enable */
#define MMCR0_FCECE    PPC_BIT(38) /* freeze on enabled condition or event */
#define MMCR0_TBSEL    PPC_BITMASK(39, 40) /* which bit of the time base */
#define MMCR0_TBEE     PPC_BIT(41) /* its transition is an event */
#define MMCR0_BHRBA    PPC_BIT(42) /* BHRB available in problem state */
#define MMCR0_BHRBA_NR 21
#define MMCR0_EBE      PPC_BIT(43) /* alerts cause event-based branches */
#define MMCR0_PMCC     PPC_BITMASK(44, 45) /* access in problem state */
#define MMCR0_PMC1CE   PPC_BIT(48) /* PMC1 negative is a condition */
#define MMCR0_PMCJCE   PPC_BIT(49) /* one of the others negative is, too */
#define MMCR0_TRIGGER  PPC_BIT(50) /* the others wait for PMC1 */
#define MMCR0_FCPC     PPC_BIT(51) /* changes the meaning of FCP */
#define MMCR0_PMAQ     PPC_BIT(52) /* alert qualifier */
#define MMCR0_PMCCEXT  PPC_BIT(54) /* restricts more; since 3.1 */
#define MMCR0_CC56RUN  PPC_BIT(55) /* PMC5, PMC6 count without run latch */
#define MMCR0_PMAO     PPC_BIT(56) /* alert occurred */
#define MMCR0_FC14     PPC_BIT(58) /* freeze PMC1 to PMC4 */
#define MMCR0_FC56     PPC_BIT(59) /* freeze PMC5 and PMC6 */
#define MMCR0_FC14WAIT PPC_BIT(62) /* PMC1 to PMC4 without run latch */
#define MMCR0_FCH      PPC_BIT(63) /* in hypervisor state */

#define MMCR0_PMCC_SHIFT 18
#define MMCR0_TBSEL_SHIFT 23

/* Values of MMCR0[PMCC], for programs in problem state */
enum {
    PMCC_READ_ONLY,  /* all may be read, none written */
    PMCC_NONE,       /* nothing */
    PMCC_ALL,        /* PMC1 to PMC6 and what goes with them */
    PMCC_PMC1_TO_4,  /* likewise; PMC5 and PMC6 are not controlled at all */
};

/* Monitor Mode Control Register 1: fields of PMC1 to PMC4 from the left */
#define MMCR1_SEL(val, pmc)  extract64(val, 32 - 8 * (pmc), 8)
#define MMCR1_UNIT(val, pmc) extract64(val, 64 - 4 * (pmc), 4)

/* Monitor Mode Control Register 2: nine bits per counter, from bit 0 on */
#define MMCR2_FCS(pmc)   PPC_BIT(9 * ((pmc) - 1))
#define MMCR2_FCP0(pmc)  PPC_BIT(9 * ((pmc) - 1) + 1) /* problem state */
#define MMCR2_FCP1(pmc)  PPC_BIT(9 * ((pmc) - 1) + 2) /* with HV = 1 */
#define MMCR2_FCM1(pmc)  PPC_BIT(9 * ((pmc) - 1) + 3)
#define MMCR2_FCM0(pmc)  PPC_BIT(9 * ((pmc) - 1) + 4)
#define MMCR2_FCWAIT(pmc) PPC_BIT(9 * ((pmc) - 1) + 5)
#define MMCR2_FCH(pmc)   PPC_BIT(9 * ((pmc) - 1) + 6)
#define MMCR2_FCP0_ALL                                        \
    (MMCR2_FCP0(1) | MMCR2_FCP0(2) | MMCR2_FCP0(3)            \
     | MMCR2_FCP0(4) | MMCR2_FCP0(5) | MMCR2_FCP0(6))

/* Monitor Mode Control Register 3: a field of 15 bits for each counter */
#define MMCR3_SOURCE(val, pmc) extract64(val, 49 - 15 * ((pmc) - 1), 15)

/* Monitor Mode Control Register A */
/* SDAR follows misses of the TLB or the cache, which do not occur here. */
#define MMCRA_SDAR_MODE     PPC_BITMASK(20, 21)
#define MMCRA_SAMPLE        PPC_BITMASK(57, 63) /* the three that follow */
#define MMCRA_SAMPLE_ENABLE PPC_BIT(63) /* random sampling */
#define MMCRA_SAMP_MODE(val) extract64(val, 1, 2) /* bits 61, 62 */
#define MMCRA_SAMP_ELIG(val) extract64(val, 4, 3) /* bits 57 to 59 */
#define MMCRA_THR_CTL       PPC_BITMASK(48, 55) /* what a threshold counts */
/* A threshold's counter: a number, times 4 to the power of another one */
#define MMCRA_THR_MANTISSA  19
#define MMCRA_THR_EXPONENT  27
#define MMCRA_THR_CTR       (0x7full << MMCRA_THR_MANTISSA \
                             | 7ull << MMCRA_THR_EXPONENT)
#define MMCRA_BHRBRD        PPC_BIT(26) /* do not record; since 3.1 */
#define MMCRA_IFM           PPC_BITMASK(32, 33) /* which branches to record */
#define MMCRA_IFM_SHIFT     30

/* Values of MMCRA[SAMP_MODE]: the instructions that can be marked */
enum {
    SAMP_MODE_ANY,      /* any instruction */
    SAMP_MODE_ACCESSES, /* loads and stores */
};

/* Values of MMCRA[SAMP_ELIG]: which of these are */
enum {
    SAMP_ELIG_ALL = 0,
    SAMP_ELIG_ACCESSES = 1,
    SAMP_ELIG_LOADS = 5,
    SAMP_ELIG_STORES = 7,
};

/* POWER7 has no SIER: MMCRA describes a sample. */
#define POWER7_MMCRA_SDSYNC      PPC_BIT(20) /* SDAR belongs to SIAR */
#define POWER7_MMCRA_SIHV        PPC_BIT(21)
#define POWER7_MMCRA_SIPR        PPC_BIT(22)
#define POWER7_MMCRA_SDAR_MISSES PPC_BITMASK(33, 34) /* misses for SDAR */
#define POWER7_MMCRA_SIAR_VALID  PPC_BIT(35)
#define POWER7_MMCRA_SDAR_VALID  PPC_BIT(36)
#define POWER7_MMCRA_SAMPLE                                             \
    (POWER7_MMCRA_SDSYNC | POWER7_MMCRA_SIHV | POWER7_MMCRA_SIPR        \
     | POWER7_MMCRA_SIAR_VALID | POWER7_MMCRA_SDAR_VALID)

/* Values of MMCRA[IFM] */
enum {
    IFM_ALL,
    IFM_CALLS,
    IFM_INDIRECT,
    IFM_CONDITIONAL,
};

/* Sampled Instruction Event Register */
#define SIER_SIPR       PPC_BIT(38) /* SIAR is of problem state */
#define SIER_SIHV       PPC_BIT(39) /* SIAR is of hypervisor state */
#define SIER_SIAR_VALID PPC_BIT(41)
#define SIER_SDAR_VALID PPC_BIT(42)
#define SIER_TYPE_LOAD  PPC_BIT(48) /* TYPE, bits 46 to 48: 1 is a load */
#define SIER_TYPE_STORE PPC_BIT(47) /* and 2 a store */
/*
 * LDST, bits 60 to 62: hits; or memory; or a store that missed level 1.  Bits 8
 * to 10 say which memory: 1 is that of its chip.
 */
#define SIER_LDST_L1     (1ull << 1)
#define SIER_LDST_L3     (3ull << 1)
#define SIER_LDST_MEMORY (4ull << 1 | PPC_BIT(10))
#define SIER_LDST_STORE  (7ull << 1)
#define SIER_PROBLEM    0x7fffffull /* the bits readable in problem state */

/* Hypervisor Facility Status and Control Register */
#define HFSCR_PM PPC_BIT(60)

/* Control Register */
#define CTRL_RUN PPC_BIT(63)
#define CTRL_TS_SHIFT 8     /* that of each thread, bits 55 to 48 */
#define CTRL_TS(val) extract64(val, CTRL_TS_SHIFT, 8)
#define CTRL_ALONE (CTRL_RUN | PPC_BIT(55)) /* it sees no other thread */

#endif /* PPC_VPMU_REGS_H */
