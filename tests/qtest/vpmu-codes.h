/*
 * Codes of the PMUs' events and numbers of their registers, as all tests expect
 * them
 *
 * They are copied from the manuals only: the PMU under test has its own tables.
 * Macros generate the tables of the qtest and of the fuzzer from here:
 * CODES_*(E) has an E(code, what) for each code that counts what COUNTS_* says,
 * and other lists that belong to it.  For tests of guests, tests/guest/codes.py
 * reads the same lists.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef VPMU_CODES_H
#define VPMU_CODES_H

#define T(name) (1ull << PMU_TALLY_##name)

#define COUNTS_NOTHING           0
#define COUNTS_CYCLES            T(CYCLES)
#define COUNTS_REF_CYCLES        T(REF_CYCLES)
#define COUNTS_INSNS             T(INSNS)
#define COUNTS_COND_TAKEN        T(COND_TAKEN)
#define COUNTS_NOT_TAKEN         T(COND_NOT_TAKEN)
#define COUNTS_CONDITIONAL       (T(COND_TAKEN) | T(COND_NOT_TAKEN))
#define COUNTS_CALLS             (T(CALLS) | T(INDIRECT_CALLS))
#define COUNTS_DIRECT_CALLS      T(CALLS)
#define COUNTS_INDIRECT_CALLS    T(INDIRECT_CALLS)
#define COUNTS_INDIRECT          (T(INDIRECT_JUMPS) | T(INDIRECT_CALLS))
#define COUNTS_RETURNS           T(RETURNS)
#define COUNTS_FAR               T(FAR_BRANCHES)
/* Near branches that are taken, far ones as well, and all */
#define COUNTS_TAKEN             (T(COND_TAKEN) | T(JUMPS) | COUNTS_INDIRECT \
                                  | T(CALLS) | T(RETURNS))
#define COUNTS_ALL_TAKEN         (COUNTS_TAKEN | T(FAR_BRANCHES))
#define COUNTS_BRANCHES          (COUNTS_ALL_TAKEN | T(COND_NOT_TAKEN))
#define COUNTS_LOADS             T(LOADS)
#define COUNTS_STORES            T(STORES)
#define COUNTS_ACCESSES          (T(LOADS) | T(STORES))
#define COUNTS_FAILED_STORES     T(FAILED_STORES)
#define COUNTS_INTERRUPTS        T(INTERRUPTS)
#define COUNTS_DTLB_LOAD_MISSES  T(DTLB_LOAD_MISSES)
#define COUNTS_DTLB_STORE_MISSES T(DTLB_STORE_MISSES)
#define COUNTS_DTLB_MISSES       (T(DTLB_LOAD_MISSES) | T(DTLB_STORE_MISSES))
#define COUNTS_ITLB_MISSES       T(ITLB_MISSES)
#define COUNTS_LLC_REFS          T(LLC_REFS)
#define COUNTS_LLC_MISSES        T(LLC_MISSES)
#define COUNTS_BRANCH_MISSES     T(BRANCH_MISSES)
#define COUNTS_COND_MISSES       T(COND_MISSES)
#define COUNTS_L1D_MISSES        T(L1D_MISSES)
#define COUNTS_L1D_LOAD_HITS     T(L1D_LOAD_HITS)
#define COUNTS_L1D_LOAD_MISSES   T(L1D_LOAD_MISSES)
#define COUNTS_L1D_STORE_MISSES  T(L1D_STORE_MISSES)
#define COUNTS_LLC_LOAD_HITS     T(LLC_LOAD_HITS)
#define COUNTS_LLC_LOAD_MISSES   T(LLC_LOAD_MISSES)
#define COUNTS_L1I_MISSES        T(L1I_MISSES)
#define COUNTS_INDIRECT_MISSES   T(INDIRECT_MISSES)
#define COUNTS_RETURN_MISSES     T(RETURN_MISSES)
#define COUNTS_FRONTEND          T(FRONTEND_CYCLES)
#define COUNTS_BACKEND           T(BACKEND_CYCLES)
#define COUNTS_SPECULATION       T(SPECULATION_CYCLES)
#define COUNTS_RETIRING          T(RETIRING_CYCLES)

/*
 * Intel: the unit mask and the event select, bits 15 to 0 of IA32_PERFEVTSELx.
 * SDM, volume 3B, "Pre-Defined Architectural Performance Events" has the first
 * list, and refers to lists of events for all others, by the model.
 */

/* Not counted: the last level cache, mispredictions; not defined */
#define CODES_ARCHITECTURAL(E) \
    E(0x003c, CYCLES) E(0x013c, REF_CYCLES) E(0x00c0, INSNS) \
    E(0x00c4, BRANCHES) E(0x4f2e, NOTHING) E(0x412e, NOTHING) \
    E(0x00c5, NOTHING) E(0xffff, NOTHING)

/*
 * Sandy Bridge to Skylake: BR_INST_RETIRED; instructions whose precise samples
 * are distributed; TLB misses that cause a walk
 */
#define CODES_SNB(E) \
    E(0x01c4, CONDITIONAL) E(0x02c4, CALLS) E(0x08c4, RETURNS) \
    E(0x10c4, NOT_TAKEN) E(0x20c4, TAKEN) E(0x40c4, FAR) \
    E(0x01c0, INSNS) E(0x0108, DTLB_LOAD_MISSES) \
    E(0x0149, DTLB_STORE_MISSES) E(0x0185, ITLB_MISSES)

/* Ice Lake to Golden Cove: BR_INST_RETIRED */
#define CODES_ICL(E) \
    E(0x01c4, COND_TAKEN) E(0x02c4, CALLS) E(0x08c4, RETURNS) \
    E(0x10c4, NOT_TAKEN) E(0x11c4, CONDITIONAL) E(0x20c4, TAKEN) \
    E(0x40c4, FAR)

/* Knights Landing, Goldmont and Tremont: BR_INST_RETIRED */
#define CODES_SLM(E)        E(0x7ec4, CONDITIONAL) E(0xf7c4, RETURNS)
/* Darkmont, and Cougar Cove: BR_INST_RETIRED */
#define CODES_DKT(E) \
    E(0x03c4, COND_TAKEN) E(0x04c4, NOT_TAKEN) E(0x07c4, CONDITIONAL) \
    E(0x08c4, RETURNS) E(0x10c4, INDIRECT_CALLS) E(0x20c4, DIRECT_CALLS) \
    E(0x30c4, CALLS) E(0x50c4, INDIRECT) E(0xfbc4, TAKEN) E(0x11c4, NOTHING)
/* MEM_UOPS_RETIRED or MEM_INST_RETIRED, ALL_LOADS and ALL_STORES */
#define CODES_ACCESSES(E)   E(0x81d0, LOADS) E(0x82d0, STORES)
/* ITLB_MISSES.WALK_COMPLETED, HW_INTERRUPTS.RECEIVED */
#define CODES_WALKS(E)      E(0x0e85, ITLB_MISSES)
#define CODES_INTERRUPTS(E) E(0x01cb, INTERRUPTS)

/* A CPU of Intel's that is no known model */
#define CODES_ANY_INTEL(E) CODES_ARCHITECTURAL(E) E(0x01c4, NOTHING)
/* Bonnell, the first Atom */
#define CODES_BONNELL(E) \
    CODES_ARCHITECTURAL(E) E(0x0508, DTLB_LOAD_MISSES) \
    E(0x0608, DTLB_STORE_MISSES) E(0x0282, ITLB_MISSES) E(0x2140, LOADS) \
    E(0x2240, STORES) E(0x0188, CONDITIONAL) E(0x0888, RETURNS) \
    E(0x1088, DIRECT_CALLS) E(0x2088, INDIRECT_CALLS) E(0x4188, COND_TAKEN) \
    E(0x0cc4, ALL_TAKEN) E(0x0fc4, BRANCHES) E(0x00c8, INTERRUPTS)
#define CODES_NEHALEM(E) \
    CODES_ARCHITECTURAL(E) E(0x01c4, CONDITIONAL) E(0x02c4, CALLS) \
    E(0x010b, LOADS) E(0x020b, STORES)
/* Linux asks for loads by another unit mask. */
#define CODES_SANDY_BRIDGE(E) \
    CODES_ARCHITECTURAL(E) CODES_SNB(E) CODES_ACCESSES(E) E(0xf1d0, LOADS)
#define CODES_HASWELL(E) \
    CODES_ARCHITECTURAL(E) CODES_SNB(E) CODES_ACCESSES(E) CODES_WALKS(E)
/* Beside these, the events that a model of the core counts on Skylake */
#define CODES_SKYLAKE_CORE(E) \
    E(0x4f2e, LLC_REFS) E(0x412e, LLC_MISSES) E(0x00c5, BRANCH_MISSES) \
    E(0x01c5, COND_MISSES) E(0x0151, L1D_MISSES) E(0x01d1, L1D_LOAD_HITS) \
    E(0x08d1, L1D_LOAD_MISSES) E(0x04d1, LLC_LOAD_HITS) \
    E(0x20d1, LLC_LOAD_MISSES) E(0x0283, L1I_MISSES) \
    E(0xe124, L1D_LOAD_MISSES) E(0xe224, L1D_STORE_MISSES) \
    E(0xe424, L1I_MISSES) E(0x010d, SPECULATION) E(0x01b7, NOTHING)
/* These count slots, of which each cycle has four on Skylake. */
#define CODES_SKYLAKE_SLOTS(E) \
    E(0x019c, FRONTEND) E(0x010e, RETIRING) E(0x02c2, RETIRING)
/* The same of Golden Cove, which has six, and TOPDOWN.* */
#define CODES_GOLDEN_COVE_SLOTS(E) \
    CODES_SKYLAKE_SLOTS(E) E(0x01a4, CYCLES) E(0x02a4, BACKEND) \
    E(0x04a4, SPECULATION) E(0x08a4, SPECULATION) E(0x10a4, BACKEND)
#define CODES_SKYLAKE(E) \
    CODES_HASWELL(E) CODES_INTERRUPTS(E) E(0x11c4, NOTHING)
#define CODES_SINCE_ICE_LAKE(E) \
    CODES_ARCHITECTURAL(E) CODES_ICL(E) CODES_ACCESSES(E)
/* Linux asks for branches by another unit mask, too. */
#define CODES_GOLDEN_COVE(E) CODES_SINCE_ICE_LAKE(E) E(0x04c4, BRANCHES)
#define CODES_ICE_LAKE(E) \
    CODES_SINCE_ICE_LAKE(E) CODES_WALKS(E) E(0x04c4, NOTHING)
/* Bits 47 to 40 are a second unit mask; far branches have one. */
#define CODES_DARKMONT(E) \
    CODES_ARCHITECTURAL(E) CODES_DKT(E) CODES_ACCESSES(E) CODES_WALKS(E) \
    E(0x0108, DTLB_LOAD_MISSES) E(0x100000000c4, NOTHING) \
    E(0x100000000c0, NOTHING)
#define CODES_PANTHER_COVE(E) \
    CODES_ARCHITECTURAL(E) CODES_DKT(E) CODES_ACCESSES(E) \
    E(0x0e11, ITLB_MISSES) E(0x0e12, DTLB_LOAD_MISSES) \
    E(0x0e13, DTLB_STORE_MISSES) E(0x100000000c4, FAR) \
    E(0x200000000c4, NOTHING) E(0x0e85, NOTHING)
#define CODES_KNIGHTS(E) CODES_ARCHITECTURAL(E) CODES_SLM(E)
#define CODES_GOLDMONT(E) \
    CODES_KNIGHTS(E) CODES_ACCESSES(E) CODES_INTERRUPTS(E)
/* QEMU's Icelake-Server has Tremont's number, too, up to its version 3. */
#define CODES_TREMONT(E) CODES_ICE_LAKE(E) CODES_SLM(E) CODES_INTERRUPTS(E)

/*
 * With PEBS, SDM, volume 3B, "Processor Event Based Sampling": also the latency
 * of loads, stores, and UOPS_RETIRED.ALL
 */
#define CODES_NEHALEM_PEBS(E) CODES_NEHALEM(E) E(0x100b, LOADS)
#define CODES_SANDY_BRIDGE_PEBS(E) \
    CODES_SANDY_BRIDGE(E) E(0x01cd, LOADS) E(0x02cd, STORES) E(0x01c2, INSNS)
#define CODES_HASWELL_PEBS(E) CODES_HASWELL(E) E(0x01cd, LOADS) E(0x01c2, INSNS)
#define CODES_SKYLAKE_PEBS(E) CODES_SKYLAKE(E) E(0x01cd, LOADS)
#define CODES_ICE_LAKE_PEBS(E) CODES_ICE_LAKE(E) E(0x01cd, LOADS)
#define CODES_GOLDEN_COVE_PEBS(E) \
    CODES_GOLDEN_COVE(E) E(0x01cd, LOADS) E(0x02cd, STORES)
#define CODES_TREMONT_PEBS(E) CODES_TREMONT(E) E(0x01cd, LOADS)

/*
 * AMD: bits 35 to 32 and 7 to 0 of PERF_CTLx are the event select, bits 15 to 8
 * the unit mask.  PPR of families 17h and 19h, "Core Performance Monitor
 * Counters", and "Performance Counter Events" in the guides of older families.
 */

/* Mispredictions are not counted; the last code is not defined. */
#define CODES_AMD(E) \
    E(0x0040, ACCESSES) E(0x0076, CYCLES) E(0x00c0, INSNS) \
    E(0x00c2, BRANCHES) E(0x00c4, ALL_TAKEN) E(0x00c6, FAR) \
    E(0x00c3, NOTHING) E(0x00c5, NOTHING) E(0x0fff, NOTHING)

/*
 * Until Zen; since family 10h, TLB misses have a unit mask of page sizes, all
 * of which Linux asks for on the processors before, too
 */
#define CODES_BEFORE_ZEN(E) \
    CODES_AMD(E) E(0x00cf, INTERRUPTS) E(0x0746, DTLB_MISSES) \
    E(0x0385, ITLB_MISSES)
#define CODES_BEFORE_K10(E) \
    CODES_BEFORE_ZEN(E) E(0x0046, DTLB_MISSES) E(0x0085, ITLB_MISSES)
#define CODES_K7(E) CODES_BEFORE_K10(E) E(0x00c8, NOTHING)
/* It has no bits above 32. */
#define CODES_K8(E) \
    CODES_BEFORE_K10(E) E(0x00c8, RETURNS) E(0x1000000c0, INSNS)
#define CODES_K10(E) \
    CODES_BEFORE_ZEN(E) E(0x00c8, RETURNS) E(0x00d1, NOTHING)

/* Not counted: loads that are stores, alone; mispredicted indirect branches */
#define CODES_SINCE_ZEN(E) \
    CODES_AMD(E) E(0x00c8, RETURNS) E(0x00d1, CONDITIONAL) \
    E(0x0129, LOADS) E(0x0229, STORES) E(0x0429, NOTHING) \
    E(0x0329, ACCESSES) E(0x0529, LOADS) E(0x0629, STORES) \
    E(0x0729, ACCESSES) \
    E(0xf045, DTLB_MISSES) E(0xff45, DTLB_MISSES) \
    E(0x0785, ITLB_MISSES) E(0xff85, ITLB_MISSES) E(0x00ca, NOTHING)
#define CODES_SINCE_ZEN_2(E) CODES_SINCE_ZEN(E) E(0x002c, INTERRUPTS)
#define CODES_SINCE_ZEN_3(E) CODES_SINCE_ZEN_2(E) E(0x00cc, INDIRECT)
#define CODES_ZEN(E) \
    CODES_SINCE_ZEN(E) E(0x0085, ITLB_MISSES) E(0x002c, NOTHING)
#define CODES_ZEN2(E) CODES_SINCE_ZEN_2(E) E(0x00cc, NOTHING)
#define CODES_ZEN3(E) CODES_SINCE_ZEN_3(E) E(0x100000120, NOTHING)
#define CODES_ZEN4(E) \
    CODES_SINCE_ZEN_3(E) E(0x100000120, REF_CYCLES) E(0x00cf, NOTHING) \
    E(0x0120, NOTHING) E(0x1000000c0, NOTHING)

/*
 * Beside these, the events of a model of the core: fetches; misses of the first
 * level, here also by the requests to the second; wrong predictions; what
 * decoders and dispatch wait for.  No other node is there.
 */
#define CODES_AMD_CORE(E) \
    E(0x00c3, BRANCH_MISSES) E(0x00c9, RETURN_MISSES) \
    E(0x00ca, INDIRECT_MISSES) E(0x0080, INSNS) E(0x0081, L1I_MISSES)
#define CODES_ZEN_CORE(E) \
    CODES_AMD_CORE(E) E(0x1060, L1I_MISSES) E(0xc860, L1D_MISSES) \
    E(0xff60, LLC_REFS) E(0x0964, LLC_MISSES) \
    E(0x0187, BACKEND) E(0x0287, FRONTEND) E(0x00a9, FRONTEND)
#define CODES_K10_CORE(E) \
    CODES_AMD_CORE(E) E(0x0041, L1D_MISSES) E(0x0141, L1D_MISSES) \
    E(0x037d, LLC_REFS) E(0x077d, LLC_REFS) \
    E(0x037e, LLC_MISSES) E(0x077e, LLC_MISSES) \
    E(0x00d0, FRONTEND) E(0x00d1, BACKEND) \
    E(0xb8e9, LLC_MISSES) E(0xa8e9, LLC_MISSES) E(0x98e9, NOTHING)

/*
 * Power: the PMC, the unit and the selector, as 0xPUxSS.  PMU user's guides of
 * the processors.  A third word says that a code counts with CTRL[RUN] alone
 * (RUN), that MMCR0[FC1-4WAIT] does not freeze it (WAIT), that it counts what
 * MMCRA has marked (MARKED), or in which privilege state it counts.
 */

/*
 * PM_INST_CMPL and PM_CYC; PM_1PLUS_PPC_CMPL, PM_INST_DISP, PM_1PLUS_PPC_DISP;
 * PM_ANY_THRD_RUN_CYC, PM_THRD_ALL_RUN_CYC, PM_RUN_CYC, PM_THRD_CONC_RUN_INST,
 * PM_RUN_INST_CMPL; PM_BRU_FIN, PM_DTLB_MISS, PM_ITLB_MISS.  Codes that count
 * nothing are of another counter or unit, or of caches.
 */
#define CODES_COMMON(E) \
    E(0x10002, INSNS) E(0x20002, INSNS) E(0x30002, INSNS) E(0x40002, INSNS) \
    E(0x1001e, CYCLES) E(0x2001e, CYCLES) E(0x3001e, CYCLES) \
    E(0x4001e, CYCLES) \
    E(0x100f2, INSNS) E(0x200f2, INSNS) E(0x300f2, INSNS) E(0x400f2, INSNS) \
    E(0x100fa, CYCLES, RUN) E(0x2000c, CYCLES, RUN) E(0x200f4, CYCLES, RUN) \
    E(0x300f4, INSNS, RUN) E(0x400fa, INSNS, RUN) E(0x10068, BRANCHES) \
    E(0x300fc, DTLB_MISSES) E(0x400fc, ITLB_MISSES) \
    E(0x300f8, NOTHING) E(0x400f4, NOTHING) E(0x20068, NOTHING) \
    E(0x1e002, NOTHING) E(0x4d01e, NOTHING) E(0x10058, NOTHING) \
    E(0x10000, NOTHING) E(0x200fe, NOTHING) E(0x300f0, NOTHING) \
    E(0x400f0, NOTHING) E(0x400f6, NOTHING)

/* PM_CYC, PM_INST_CMPL, PM_BR_TAKEN_CMPL, PM_STCX_FAIL; PM_MRK_INST_* */
#define CODES_SINCE_POWER8(E) \
    CODES_COMMON(E) E(0x100f0, CYCLES, WAIT) E(0x100fe, INSNS) \
    E(0x200fa, ALL_TAKEN) E(0x1e058, FAILED_STORES) \
    E(0x100e0, NOTHING, MARKED) E(0x20030, NOTHING, MARKED) \
    E(0x30030, NOTHING, MARKED) E(0x400e0, NOTHING, MARKED) \
    E(0x20004, NOTHING) E(0x1c080, NOTHING)

/* PM_EXT_INT; PM_BR_TAKEN, PM_ST_FIN, PM_LD_REF_L1 */
#define CODES_POWER7(E) \
    CODES_COMMON(E) E(0x200f8, INTERRUPTS) E(0x20004, ALL_TAKEN) \
    E(0x200f0, STORES) \
    E(0x1c080, LOADS) E(0x2c080, LOADS) E(0x3c080, LOADS) E(0x4c080, LOADS) \
    E(0x100f0, NOTHING) E(0x100fe, NOTHING) E(0x200fa, NOTHING) \
    E(0x1e058, NOTHING)

/* PM_EXT_INT; PM_LD_REF_L1, PM_LD_CMPL; PM_ST_FIN, PM_ST_CMPL; PM_BR_CMPL */
#define CODES_POWER8(E) \
    CODES_SINCE_POWER8(E) E(0x200f8, INTERRUPTS) \
    E(0x100ee, LOADS) E(0x1002e, LOADS) \
    E(0x200f0, STORES) E(0x20016, STORES) E(0x40060, BRANCHES) \
    E(0x100fc, NOTHING) E(0x4d05e, NOTHING)

/*
 * PM_EXT_INT; PM_LD_REF_L1, PM_LD_CMPL; PM_ST_FIN, PM_ST_CMPL; PM_BR_CMPL, by
 * two codes
 */
#define CODES_POWER9(E) \
    CODES_SINCE_POWER8(E) E(0x200f8, INTERRUPTS) \
    E(0x100fc, LOADS) E(0x4003e, LOADS) \
    E(0x20016, STORES) E(0x200f0, STORES) E(0x10012, BRANCHES) \
    E(0x4d05e, BRANCHES) E(0x100ee, NOTHING) E(0x2f04a, NOTHING)

/* Beside these, of a model of the core; PM_LD_MISS_L1 has three codes */
#define CODES_POWER_CORE(E) \
    E(0x3e054, L1D_LOAD_MISSES) E(0x400f0, L1D_LOAD_MISSES) \
    E(0x2c04e, L1D_LOAD_MISSES) E(0x300f0, L1D_STORE_MISSES) \
    E(0x200fc, L1I_MISSES) E(0x200fd, L1I_MISSES) E(0x300f6, BRANCH_MISSES) \
    E(0x400f6, BRANCH_MISSES) E(0x4c042, LLC_LOAD_HITS) \
    E(0x300fe, LLC_LOAD_MISSES) E(0x200fe, LLC_LOAD_MISSES) \
    E(0x400fe, LLC_LOAD_MISSES) E(0x100f8, FRONTEND) E(0x14080, INSNS) \
    E(0x24080, INSNS) E(0x34080, INSNS) E(0x44080, INSNS)
/* PM_CMPLU_STALL; PM_EXEC_STALL, PM_MPRED_BR_FIN */
#define CODES_POWER8_CORE(E)  CODES_POWER_CORE(E) E(0x4000a, BACKEND)
#define CODES_POWER9_CORE(E)  CODES_POWER_CORE(E) E(0x1e054, BACKEND)
#define CODES_POWER10_CORE(E) \
    CODES_POWER_CORE(E) E(0x30008, BACKEND) E(0x3e098, BRANCH_MISSES) \
    E(0x1e054, NOTHING)

/*
 * PM_LD_REF_L1, PM_LD_CMPL; PM_ST_CMPL; PM_BR_CMPL, PM_BR_FIN; PM_INST_FIN.
 * Its PM_EXT_INT is about cycles, not counted.
 */
#define CODES_POWER10(E) \
    CODES_SINCE_POWER8(E) E(0x100fc, LOADS) E(0x4003e, LOADS) \
    E(0x200f0, STORES) E(0x4d05e, BRANCHES) E(0x2f04a, BRANCHES) \
    E(0x40030, INSNS) E(0x100ee, NOTHING) E(0x40060, NOTHING) \
    E(0x200f8, NOTHING)

/* PM_PRIVILEGED_INST_CMPL, _CYC; PM_HYPERVISOR_...; PM_ADJUNCT_... */
#define CODES_POWER10_STATES(E) \
    E(0x3405a, INSNS, PRIVILEGED) E(0x4d028, CYCLES, PRIVILEGED) \
    E(0x4d022, INSNS, HYPERVISOR) E(0x2000a, CYCLES, HYPERVISOR) \
    E(0x2e010, INSNS, PROBLEM_OF_HV) E(0x10066, CYCLES, PROBLEM_OF_HV)

/*
 * Registers
 */

enum {
    /* Intel: SDM, volume 4, "Model-Specific Registers" */
    MSR_CORE_LBR_FROM = 0x40, MSR_CORE_LBR_TO = 0x60,
    MSR_PERFCTR0 = 0xc1, MSR_EVTSEL0 = 0x186, MSR_MISC_ENABLE = 0x1a0,
    MSR_OFFCORE_RSP_0 = 0x1a6,
    MSR_LBR_SELECT = 0x1c8, MSR_LBR_TOS,
    MSR_DEBUGCTL = 0x1d9, /* AMD's, too */
    MSR_LER_FROM = 0x1dd, MSR_LER_TO, MSR_LER_INFO = 0x1e0,
    MSR_FIXED_CTR0 = 0x309, MSR_PERF_METRICS = 0x329, MSR_PERF_CAP = 0x345,
    MSR_FIXED_CTR_CTRL = 0x38d, MSR_STATUS, MSR_GLOBAL_CTRL,
    MSR_STATUS_RESET, MSR_STATUS_SET, MSR_INUSE,
    MSR_PEBS_ENABLE = 0x3f1, MSR_PEBS_DATA_CFG, MSR_PEBS_LD_LAT = 0x3f6,
    MSR_A_PMC0 = 0x4c1, MSR_DS_AREA = 0x600,
    MSR_LBR_FROM = 0x680, MSR_LBR_TO = 0x6c0, MSR_LBR_INFO = 0xdc0,
    MSR_ARCH_INFO = 0x1200, MSR_ARCH_CTL = 0x14ce, MSR_ARCH_DEPTH,
    MSR_ARCH_FROM = 0x1500, MSR_ARCH_TO = 0x1600,
    MSR_PMC_GP0_CTR = 0x1900, MSR_PMC_GP0_CFG_A, MSR_PMC_FX0_CTR = 0x1980,

    /* AMD: APM, volume 2, "MSR Cross-Reference" */
    MSR_AMD_LBR_SELECT = 0xc000010e, MSR_DBG_EXTN_CFG,
    MSR_AMD_STATUS = 0xc0000300, MSR_AMD_CTL, MSR_AMD_STATUS_CLR,
    MSR_AMD_STATUS_SET,
    MSR_LEGACY_EVTSEL0 = 0xc0010000, MSR_LEGACY_CTR0 = 0xc0010004,
    MSR_CTL0 = 0xc0010200, MSR_CTR0,
    MSR_AMD_LBR_FROM = 0xc0010300, MSR_AMD_LBR_TO,
};

/* Power ISA 3.1B, book III, "Move To/From System Register Instructions" */
enum {
    SPR_SIER2 = 752, SPR_SIER3, SPR_MMCR3,
    SPR_SIER = 784, SPR_MMCR2, SPR_MMCRA,
    SPR_PMC1, SPR_PMC2, SPR_PMC3, SPR_PMC4, SPR_PMC5, SPR_PMC6,
    SPR_MMCR0 = 795, SPR_SIAR, SPR_SDAR, SPR_MMCR1,
};

#endif /* VPMU_CODES_H */
