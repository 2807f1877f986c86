/*
 * Bare-metal test guest: branch records
 *
 * AMD's and architectural records have the newest one in the first registers,
 * and their own registers to enable them.  Intel's other records have TOS.
 * Core's, which have no filters, use yet other registers: see
 * test-unfiltered.c.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef BARE_LBR_H
#define BARE_LBR_H

#include "pmu.h"

/* These replace the numbers of vpmu-codes.h, which are Intel's. */
#define MSR_LBR_SELECT      pmu_register(MSR_LBR_SELECT)
#define MSR_LBR_FROM(i) \
    (lbr_is_arch() ? MSR_ARCH_FROM + (i) : pmu_register(MSR_LBR_FROM + (i)))
#define MSR_LBR_TO(i) \
    (lbr_is_arch() ? MSR_ARCH_TO + (i) : pmu_register(MSR_LBR_TO + (i)))
/* Only Intel's records have this. */
#define MSR_LBR_INFO(i) \
    ((lbr_is_arch() ? MSR_ARCH_INFO : MSR_LBR_INFO) + (i))

/* Formats in IA32_PERF_CAPABILITIES */
#define FORMAT_FLAGS_TSX    4
#define FORMAT_INFO         5
#define FORMAT_TIME         6
#define FORMAT_INFO_NO_TSX  7
#define FORMAT_ARCH         0x3f

/* MSR_LBR_INFO */
#define INFO_CYCLES         0xffff

/* Types of branches in architectural records */
enum {
    TYPE_COND, TYPE_IND_JUMP, TYPE_JUMP, TYPE_IND_CALL, TYPE_CALL, TYPE_RETURN,
    TYPE_OTHER = 8,
};

/* Returns: Intel's format, a FORMAT_; 0 for AMD's records */
unsigned lbr_format(void);

/* Returns: whether records are architectural */
bool lbr_is_arch(void);

/* Returns: whether records are Intel's with TOS */
bool lbr_has_tos(void);

/* The number of records; with TOS, the option of `run`, or else Skylake's */
unsigned lbr_depth(void);

/* Register and bits that enable recording, also for test code in the kernel */
extern uint32_t lbr_switch;     /* the register */
extern uint32_t lbr_on;         /* the bits */

/**
 * lbr_choose - choose the branches to record, and set the two above
 * @select: as in MSR_LBR_SELECT, whichever register has the filters
 *
 * The caller starts recording, by writing lbr_on to lbr_switch, so that the
 * return from this function is not recorded.
 */
void lbr_choose(uint64_t select);

/**
 * lbr_from, lbr_to - the addresses of the @age-th record before the newest
 *
 * Without other bits above TO's address: cycles, or AMD's flags, which are
 * checked.  0 without record.
 */
uint64_t lbr_from(unsigned age);
uint64_t lbr_to(unsigned age);

/* Cycles of the @age-th record before the newest, if the format has these */
uint64_t lbr_cycles(unsigned age);

/* MSR_LBR_INFO of the @age-th record before the newest, without cycles */
uint64_t lbr_info(unsigned age);

/* Returns: the expected lbr_info() of a branch of a TYPE_ */
uint64_t lbr_info_of(uint64_t type);

#endif /* BARE_LBR_H */
