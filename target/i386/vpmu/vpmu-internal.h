/*
 * x86 virtual PMU: between the register files and what they share
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef I386_VPMU_INTERNAL_H
#define I386_VPMU_INTERNAL_H

#include "hw/pmu/pmu.h"
#include "hw/pmu/pmu-manual.h"
#include "hw/pmu/pmu-tcg.h"
#include "intel-events.h"
#include "vpmu.h"

#define X86_VPMU_MAX_GP 8

/* The modes that the two privilege filters of an x86 counter stand for. */
#define X86_VPMU_MODES_OS   0x55u
#define X86_VPMU_MODES_USER 0xaau
#define X86_VPMU_MODES_SMM  0xf0u

/**
 * struct X86VPmuOps - a vendor's register file
 * @features: as x86_vpmu_features()
 * @configure: as x86_vpmu_configure(); only what depends on the vendor
 * @init: the numbers of counters are known; prepare what is derived from them
 * @reset: registers to their state after RESET; the counters are cleared
 * @cpuid: as x86_vpmu_cpuid()
 * @misc_enable: as x86_vpmu_misc_enable()
 * @rdmsr: as x86_vpmu_rdmsr()
 * @wrmsr: as x86_vpmu_wrmsr()
 * @rdpmc: as x86_vpmu_rdpmc()
 * @overflow: as PmuOverflowFn
 * @resume: registers and counters were loaded; make the counters do what the
 *          registers say.  Called in a transaction.
 */
typedef struct X86VPmuOps {
    uint64_t (*features)(X86CPU *cpu, FeatureWord w);
    bool (*configure)(X86CPU *cpu, Error **errp);
    void (*init)(X86VPmu *v);
    void (*reset)(X86VPmu *v);
    void (*cpuid)(X86VPmu *v, uint32_t *eax, uint32_t *ebx, uint32_t *ecx,
                  uint32_t *edx);
    uint64_t (*misc_enable)(X86VPmu *v, uint64_t val);
    X86VPmuAccess (*rdmsr)(X86VPmu *v, uint32_t msr, uint64_t *val);
    X86VPmuAccess (*wrmsr)(X86VPmu *v, uint32_t msr, uint64_t val);
    bool (*rdpmc)(X86VPmu *v, uint32_t index, uint64_t *val);
    PmuOverflowFn *overflow;
    void (*resume)(X86VPmu *v);
} X86VPmuOps;

/**
 * struct X86VPmu - the PMU of one CPU
 * @cpu: the CPU
 * @ops: its vendor's register file
 * @pmu: its counters: general-purpose ones, then fixed ones
 * @tcg: what drives them, under TCG
 * @manual: or what drives them under qtest
 * @stopped: called when the machine starts and stops
 * @version: of the architecture of the registers
 * @nr_gp: general-purpose counters
 * @nr_fixed: fixed-function counters
 * @model: which codes of events the CPU knows
 * @evtsel: IA32_PERFEVTSELx
 * @fixed_ctrl: IA32_FIXED_CTR_CTRL
 * @global_ctrl: IA32_PERF_GLOBAL_CTRL
 * @global_status: IA32_PERF_GLOBAL_STATUS
 * @debugctl: IA32_DEBUGCTL
 */
struct X86VPmu {
    X86CPU *cpu;
    const X86VPmuOps *ops;
    Pmu *pmu;
    PmuTcg *tcg;
    PmuManual *manual;
    VMChangeStateEntry *stopped;
    uint32_t version;
    uint32_t nr_gp;
    uint32_t nr_fixed;
    const IntelModel *model;
    uint64_t evtsel[X86_VPMU_MAX_GP];
    uint64_t fixed_ctrl;
    uint64_t global_ctrl;
    uint64_t global_status;
    uint64_t debugctl;
};

extern const X86VPmuOps intel_vpmu_ops;

/**
 * x86_vpmu_raise_pmi - deliver the performance-monitoring interrupt
 * @v: the PMU
 * @mask: whether delivery masks the local APIC's entry
 */
void x86_vpmu_raise_pmi(X86VPmu *v, bool mask);

/**
 * x86_vpmu_qtest_init - offer the commands of qtest
 */
void x86_vpmu_qtest_init(void);

#endif /* I386_VPMU_INTERNAL_H */
