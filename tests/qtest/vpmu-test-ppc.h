/*
 * QTest of the virtual PMU: Power's registers
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef VPMU_TEST_PPC_H
#define VPMU_TEST_PPC_H

#include "vpmu-test.h"

#define NR_PMCS 6

enum {
    SPR_PROBLEM = 0x10, /* numbers for problem state are less by this */
    SPR_HFSCR = 190,
    SPR_EBBHR = 804,
    SPR_EBBRR = 805,
    SPR_BESCR = 806,
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
