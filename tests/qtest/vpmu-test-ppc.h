/*
 * QTest of the virtual PMU: Power's registers
 *
 * Numbers and fields are written down anew, from the architecture: bits are
 * numbered as there, 0 being the most significant of 64.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef VPMU_TEST_PPC_H
#define VPMU_TEST_PPC_H

#include "vpmu-test.h"

#define PPC_BIT(n) BIT64(63 - (n))

#define NR_PMCS 6

enum {
    SPR_PROBLEM = 0x10, /* what numbers are less by in problem state */
    SPR_HFSCR = 190,
    SPR_SIER2 = 752,
    SPR_SIER3 = 753,
    SPR_MMCR3 = 754,
    SPR_SIER  = 784,
    SPR_MMCR2 = 785,
    SPR_MMCRA = 786,
    SPR_PMC1  = 787,
    SPR_PMC2  = 788,
    SPR_PMC3  = 789,
    SPR_PMC4  = 790,
    SPR_PMC5  = 791,
    SPR_PMC6  = 792,
    SPR_MMCR0 = 795,
    SPR_SIAR  = 796,
    SPR_SDAR  = 797,
    SPR_MMCR1 = 798,
    SPR_EBBHR = 804,
    SPR_EBBRR = 805,
    SPR_BESCR = 806,
};

#define MMCR0_FC        PPC_BIT(32)
#define MMCR0_FCS       PPC_BIT(33)
#define MMCR0_FCP       PPC_BIT(34)
#define MMCR0_FCM1      PPC_BIT(35)
#define MMCR0_FCM0      PPC_BIT(36)
#define MMCR0_PMAE      PPC_BIT(37)
#define MMCR0_FCECE     PPC_BIT(38)
#define MMCR0_TBSEL(n)  ((uint64_t)(n) << (63 - 40))
#define MMCR0_TBEE      PPC_BIT(41)
#define MMCR0_BHRBA     PPC_BIT(42)
#define MMCR0_EBE       PPC_BIT(43)
#define MMCR0_PMCC(n)   ((uint64_t)(n) << (63 - 45))
#define MMCR0_PMC1CE    PPC_BIT(48)
#define MMCR0_PMCJCE    PPC_BIT(49)
#define MMCR0_TRIGGER   PPC_BIT(50)
#define MMCR0_FCPC      PPC_BIT(51)
#define MMCR0_PMAQ      PPC_BIT(52)
#define MMCR0_PMCCEXT   PPC_BIT(54)
#define MMCR0_CC56RUN   PPC_BIT(55)
#define MMCR0_PMAO      PPC_BIT(56)
#define MMCR0_FC14      PPC_BIT(58)
#define MMCR0_FC56      PPC_BIT(59)
#define MMCR0_FC14WAIT  PPC_BIT(62)
#define MMCR0_FCH       PPC_BIT(63)

/* Fields of MMCR2, of which each counter has nine bits. */
#define MMCR2_FIELD(n, pmc) PPC_BIT(9 * ((pmc) - 1) + (n))
enum {
    FCNS, FCNP0, FCNP1, FCNM1, FCNM0, FCNWAIT, FCNH,
};

#define MSR_HV  PPC_BIT(3)
#define MSR_PR  PPC_BIT(49)
#define MSR_PMM PPC_BIT(61)

/* Modes, as the face numbers them: MSR[HV PR] is 0b01, 0b00, 0b11, 0b10. */
enum {
    MODE_PROBLEM,
    MODE_PRIVILEGED,
    MODE_PROBLEM_OF_HV,
    MODE_HYPERVISOR,
    NR_MODES,
};

#define NEGATIVE 0x80000000u

/**
 * ppc_args - the arguments for a CPU of a partition; the caller frees them
 */
char *ppc_args(const char *cpu);

/**
 * mfspr - read a register of the PMU, which must be allowed
 */
uint64_t mfspr(Machine *m, unsigned spr);

/**
 * mtspr - write a register of the PMU, which must be allowed
 */
void mtspr(Machine *m, unsigned spr, uint64_t val);

/**
 * set_mode - set MSR so that the CPU is in a privilege state
 * @mode: one that it has
 * @pmm: MSR[PMM]
 */
void set_mode(Machine *m, unsigned mode, bool pmm);

/**
 * set_run - set CTRL[RUN]
 */
void set_run(Machine *m, bool run);

#endif /* VPMU_TEST_PPC_H */
