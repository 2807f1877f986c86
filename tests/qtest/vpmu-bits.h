/*
 * Bits of the PMUs' registers, as all tests expect them
 *
 * They are copied from the manuals: see vpmu-codes.h.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef VPMU_BITS_H
#define VPMU_BITS_H

#define BIT64(n) (1ull << (n))

/*
 * x86: SDM, volume 3B, "Performance Monitoring" and "Last Branch Records"; APM,
 * volume 2, "Software Debug and Performance Resources"
 */

/*
 * Registers that select events; the last two bits are AMD's, and Intel's are
 * there since version 6.
 */
#define SEL_USR      BIT64(16)
#define SEL_OS       BIT64(17)
#define SEL_EDGE     BIT64(18)
#define SEL_INT      BIT64(20)
#define SEL_ANY      BIT64(21)
#define SEL_EN       BIT64(22)
#define SEL_INV      BIT64(23)
#define SEL_CMASK(n) ((uint64_t)(n) << 24)
#define SEL_ADAPTIVE BIT64(34)
#define SEL_EQ       BIT64(36)
#define SEL_UMASK2   (0xffull << 40)
#define SEL_GUEST    BIT64(40)
#define SEL_HOST     BIT64(41)

/* The four bits of a fixed counter */
#define FIXED_OS  1
#define FIXED_USR 2
#define FIXED_ANY 4
#define FIXED_INT 8

/* In the global control, too: MSR_PERF_METRICS */
#define GLOBAL_METRICS   BIT64(48)
#define STATUS_LBR_FRZ   BIT64(58)
#define STATUS_CTR_FRZ   BIT64(59)
#define STATUS_OVF_BUF   BIT64(62)
#define STATUS_COND_CHGD BIT64(63)
#define INUSE_PMI        BIT64(63)

#define DEBUGCTL_LBR           BIT64(0)
#define DEBUGCTL_BTF           BIT64(1)
#define DEBUGCTL_FREEZE_LBRS   BIT64(11)
#define DEBUGCTL_FREEZE_ON_PMI BIT64(12)
#define DEBUGCTL_FREEZE_IN_SMM BIT64(14)

#define PERF_CAP_LBR_FORMAT    0x3f
#define PERF_CAP_PEBS(format)  (0xc0 | (format) << 8)
#define PERF_CAP_FREEZE_IN_SMM BIT64(12)
#define PERF_CAP_FULL_WIDTH    BIT64(13)
#define PERF_CAP_BASELINE      BIT64(14)
#define PERF_CAP_METRICS       BIT64(15)

/* Branches that LBR_SELECT excludes; the last bit is no exclusion */
#define NO_RING_0   BIT64(0)
#define NO_RING_3   BIT64(1)
#define NO_COND     BIT64(2)
#define NO_CALL     BIT64(3)
#define NO_IND_CALL BIT64(4)
#define NO_RETURN   BIT64(5)
#define NO_IND_JUMP BIT64(6)
#define NO_JUMP     BIT64(7)
#define NO_FAR      BIT64(8)
#define CALL_STACK  BIT64(9)

/* IA32_LBR_CTL; AMD's DBG_EXTN_CFG, and a record's TO */
#define CTL_LBREN      BIT64(0)
#define CTL_OS         BIT64(1)
#define CTL_USR        BIT64(2)
#define CTL_CALL_STACK BIT64(3)
#define DBG_EXTN_LBR   BIT64(6)
#define AMD_TO_VALID   BIT64(63)

/*
 * Power ISA 3.1B, book III, "Performance Monitor Facility": bits are numbered
 * as there, 0 being the most significant of 64.
 */

#define PPC_BIT(n) BIT64(63 - (n))

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

/* MMCR2: each counter has nine bits. */
#define MMCR2_FIELD(n, pmc) PPC_BIT(9 * ((pmc) - 1) + (n))
enum {
    FCNS, FCNP0, FCNP1, FCNM1, FCNM0, FCNWAIT, FCNH,
};

#define MMCRA_BHRBRD       PPC_BIT(26)
#define MMCRA_IFM(n)       ((uint64_t)(n) << (63 - 33))
#define MMCRA_SAMP_ELIG(n) ((uint64_t)(n) << (63 - 59))
#define MMCRA_SAMP_MODE(n) ((uint64_t)(n) << (63 - 62))
#define MMCRA_SAMPLE       PPC_BIT(63)

#define SIER_SIPR       PPC_BIT(38)
#define SIER_SIHV       PPC_BIT(39)
#define SIER_SIAR_VALID PPC_BIT(41)
#define SIER_SDAR_VALID PPC_BIT(42)
#define SIER_STORE      PPC_BIT(47)
#define SIER_LOAD       PPC_BIT(48)

#define BESCR_GE   PPC_BIT(0)
#define BESCR_PME  PPC_BIT(31)
#define BESCR_EEO  PPC_BIT(62)
#define BESCR_PMEO PPC_BIT(63)

#endif /* VPMU_BITS_H */
