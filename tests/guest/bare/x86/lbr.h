/*
 * Bare-metal test guest: branch records
 *
 * AMD's and the architectural ones have the newest in the first registers,
 * where Intel's others have TOS, and registers of their own to be switched on
 * by.  Core's, which have no filters, are in yet others: see
 * test-unfiltered.c.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef BARE_LBR_H
#define BARE_LBR_H

#include "pmu.h"

/* Those of vpmu-codes.h, which these replace, are Intel's. */
#define MSR_LBR_SELECT      pmu_register(MSR_LBR_SELECT)
#define MSR_LBR_FROM(i) \
    (lbr_is_arch() ? MSR_ARCH_FROM + (i) : pmu_register(MSR_LBR_FROM + (i)))
#define MSR_LBR_TO(i) \
    (lbr_is_arch() ? MSR_ARCH_TO + (i) : pmu_register(MSR_LBR_TO + (i)))
/* Intel's alone. */
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

/* The types of branches that architectural ones tell there */
enum {
    TYPE_COND, TYPE_IND_JUMP, TYPE_JUMP, TYPE_IND_CALL, TYPE_CALL, TYPE_RETURN,
    TYPE_OTHER = 8,
};

/* Returns: a FORMAT_ of Intel's; 0 if they are AMD's. */
unsigned lbr_format(void);

/* Returns: whether they are architectural. */
bool lbr_is_arch(void);

/* Returns: whether they are Intel's with TOS. */
bool lbr_has_tos(void);

/* How many there are: of those with TOS what `run` says, or else Skylake's. */
unsigned lbr_depth(void);

/* By what the recording is switched on; test code of the kernel's, too. */
extern uint32_t lbr_switch;     /* the register */
extern uint32_t lbr_on;         /* the bits */

/**
 * lbr_choose - choose what is recorded, and find out by what
 * @select: as MSR_LBR_SELECT has it, wherever these have that
 *
 * The caller begins, by writing lbr_on to lbr_switch, so that no return from
 * here is recorded.
 */
void lbr_choose(uint64_t select);

/**
 * lbr_from, lbr_to - the addresses of the @age-th before the newest
 *
 * Without what some have above that of TO: cycles, or AMD's flags, which must
 * be right.  0 if there is none.
 */
uint64_t lbr_from(unsigned age);
uint64_t lbr_to(unsigned age);

/* Cycles up to the @age-th before the newest, if its format has them. */
uint64_t lbr_cycles(unsigned age);

/* MSR_LBR_INFO of the @age-th before the newest, without cycles. */
uint64_t lbr_info(unsigned age);

/* Returns: what lbr_info() must be of a branch of a TYPE_. */
uint64_t lbr_info_of(uint64_t type);

#endif /* BARE_LBR_H */
