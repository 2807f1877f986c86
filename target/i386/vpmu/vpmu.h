/*
 * x86 virtual PMU
 *
 * The guest's view of the counters of hw/pmu: model-specific registers,
 * RDPMC, CPUID and the performance-monitoring interrupt.  One register file
 * per vendor translates the guest's writes into calls of hw/pmu/pmu.h;
 * nothing is counted here.
 *
 * A CPU has a virtual PMU (X86CPU.vpmu) if it was created with pmu=on, under
 * TCG or qtest, and its vendor has a register file.  Under KVM the kernel has
 * the PMU, and X86CPU.vpmu its state; see kvm.h.  Every function below
 * does nothing for a CPU without a virtual PMU.
 *
 * Files: props.c determines which PMU a CPU gets.  intel.c and amd.c have its
 * counters, and counters.c what these share; debugctl.c, lbr.c, arch-lbr.c and
 * pebs.c have the features besides, perfmon-ext.c a leaf of CPUID, metrics.c
 * and offcore.c those of CPUs with a model of the core; features.c lists them
 * and finds registers.
 * vpmu.c creates and resets PMUs, and executes instructions that access them;
 * kvm.c and kvm-vmstate.c are for the kernel's PMU, vmstate.c for migration,
 * with amd-stock.c for that of AMD's registers from and to other QEMUs,
 * monitor.c, guest.c and qtest.c for the monitor, profiles and tests.
 * events.c, intel-events.c, amd-events.c and filter.c have codes of events.
 *
 * Threads: as for struct Pmu, the vCPU's own thread, or any that holds the
 * big lock while the vCPU is stopped.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef I386_VPMU_H
#define I386_VPMU_H

#include "hw/pmu/pmu-engine.h"
#include "cpu.h"

/**
 * x86_vpmu_rdpmc_allowed - whether RDPMC is allowed at the current privilege
 * @env: the CPU's state
 */
static inline bool x86_vpmu_rdpmc_allowed(const CPUX86State *env)
{
    return (env->hflags & HF_CPL_MASK) == 0
           || (env->cr[4] & CR4_PCE_MASK)
           || !(env->cr[0] & CR0_PE_MASK);
}

#if (defined(CONFIG_TCG) || defined(CONFIG_KVM)) && !defined(CONFIG_USER_ONLY)

/*
 * Modes, as hw/pmu numbers them: a sum of these
 */
#define X86_VPMU_MODE_USER  1 /* CPL is not 0 */
#define X86_VPMU_MODE_GUEST 2 /* between VMRUN and #VMEXIT */
#define X86_VPMU_MODE_SMM   4 /* in system management mode */
#define X86_VPMU_NR_MODES   8
#define X86_VPMU_MODE_FLAGS { HF_CPL_MASK, HF_GUEST_MASK, HF_SMM_MASK }

/**
 * x86_vpmu_mode - the mode in which instructions are counted
 * @hflags: CPUX86State.hflags, or the flags of a translation block
 */
static inline unsigned x86_vpmu_mode(uint32_t hflags)
{
    return pmu_mode_of_flags((PmuModeFlags) X86_VPMU_MODE_FLAGS, hflags);
}

/**
 * enum X86VPmuAccess - the result of an access to a register
 * @X86_VPMU_NOT_MINE: not a register of the PMU
 * @X86_VPMU_DONE: read or written
 * @X86_VPMU_FAULT: the guest gets #GP(0); nothing has changed
 */
typedef enum X86VPmuAccess {
    X86_VPMU_NOT_MINE,
    X86_VPMU_DONE,
    X86_VPMU_FAULT,
} X86VPmuAccess;

/**
 * x86_vpmu_features - the CPUID and MSR features that a CPU's PMU brings
 * @cpu: the CPU, not necessarily realized
 * @w: a word of features
 */
uint64_t x86_vpmu_features(X86CPU *cpu, FeatureWord w);

/**
 * x86_vpmu_missing_features - features that a CPU's PMU does not provide
 * @cpu: the CPU, not necessarily realized
 * @w: a word of features
 *
 * Under KVM, pmu=off disables the kernel's PMU, so that the registers that
 * AMD's PerfCtrExtCore and PerfMonV2 stand for are not there.  Nor is there
 * PerfMonV2 without PerfCtrExtCore, or a debug store without PEBS: KVM has no
 * branch trace stores.  Machine types without this PMU keep their CPUID.
 */
uint64_t x86_vpmu_missing_features(X86CPU *cpu, FeatureWord w);

/**
 * x86_vpmu_configure - check the properties and fill in those not given
 * @cpu: the CPU, being realized
 * @errp: the error, and the allowed values
 *
 * Returns: false with @errp set if the combination is not allowed.
 */
bool x86_vpmu_configure(X86CPU *cpu, Error **errp);

/**
 * x86_vpmu_create - create the PMU of a CPU, if it is to have one
 * @cpu: the CPU, configured, before its thread starts
 */
void x86_vpmu_create(X86CPU *cpu);

/**
 * x86_vpmu_destroy - release the PMU of a CPU
 * @cpu: the CPU, whose thread has ended
 */
void x86_vpmu_destroy(X86CPU *cpu);

/**
 * x86_vpmu_reset - reset the PMU as RESET does
 * @cpu: the CPU
 */
void x86_vpmu_reset(X86CPU *cpu);

/**
 * x86_vpmu_init_signal - do as INIT does: end PEBS, take back the state that
 *                        was put aside for SMM, and forget branches recorded
 *                        for observers; the rest of the PMU stays
 * @cpu: the CPU, as it was before
 */
void x86_vpmu_init_signal(X86CPU *cpu);

/**
 * x86_vpmu_svme_changed - handle a change of EFER.SVME
 * @cpu: the CPU
 */
void x86_vpmu_svme_changed(X86CPU *cpu);

/**
 * x86_vpmu_debug_exception - handle the delivery of #DB: branches are no longer
 *                            recorded, and steps no longer end at branches
 * @cpu: the CPU
 */
void x86_vpmu_debug_exception(X86CPU *cpu);

/**
 * x86_vpmu_steps_branches - whether single steps end at branches alone
 * @cpu: the CPU
 */
bool x86_vpmu_steps_branches(const X86CPU *cpu);

/**
 * x86_vpmu_enter_smm - handle an SMI: put aside the state that is not for SMM
 * @cpu: the CPU, not yet in SMM
 */
void x86_vpmu_enter_smm(X86CPU *cpu);

/**
 * x86_vpmu_leave_smm - handle RSM: take that state back
 * @cpu: the CPU, still in SMM
 */
void x86_vpmu_leave_smm(X86CPU *cpu);

/**
 * x86_vpmu_event_delivered - handle the delivery of an interrupt or an
 *                            exception, which is about to be recorded
 */
void x86_vpmu_event_delivered(X86CPU *cpu);

/**
 * x86_vpmu_cpuid - fill in a leaf that may describe the PMU
 * @cpu: the CPU, which has a PMU
 * @leaf: 0xA, 0x1C (Intel) or 0x80000022 (AMD)
 *
 * The registers are set to 0 if the PMU is the other vendor's.
 */
void x86_vpmu_cpuid(X86CPU *cpu, uint32_t leaf, uint32_t *eax, uint32_t *ebx,
                    uint32_t *ecx, uint32_t *edx);

/**
 * x86_vpmu_extended_cpuid - fill in leaf 0x23, if the CPU has it
 * @cpu: the CPU, which has a PMU under TCG
 * @subleaf: its subleaf
 *
 * The registers are 0 before, and so is EDX.
 */
void x86_vpmu_extended_cpuid(X86CPU *cpu, uint32_t subleaf, uint32_t *eax,
                             uint32_t *ebx, uint32_t *ecx);

/**
 * x86_vpmu_core_cpuid - tell of the caches of a modelled core
 * @cpu: the CPU, which need not have one
 * @leaf: any leaf, whose registers are filled in already
 * @subleaf: its subleaf
 */
void x86_vpmu_core_cpuid(const X86CPU *cpu, uint32_t leaf, uint32_t subleaf,
                         uint32_t *eax, uint32_t *ebx, uint32_t *ecx,
                         uint32_t *edx);

/**
 * x86_vpmu_misc_enable - IA32_MISC_ENABLE with its read-only bits in place
 * @cpu: the CPU
 * @val: a value to be stored there
 */
uint64_t x86_vpmu_misc_enable(X86CPU *cpu, uint64_t val);

/**
 * x86_vpmu_far_branch - record what may have changed the segment or privilege
 * @cpu: the CPU, which goes on at the branch's target, in the state it has
 *       there
 * @from: where it comes from
 * @mode: and in which mode it was there (x86_vpmu_mode())
 */
void x86_vpmu_far_branch(X86CPU *cpu, uint64_t from, unsigned mode);

/**
 * x86_vpmu_rdmsr - read a register
 * @cpu: the CPU
 * @msr: its number
 * @val: set if the result is X86_VPMU_DONE, to the value of the register before
 *       the instruction that reads it
 */
X86VPmuAccess x86_vpmu_rdmsr(X86CPU *cpu, uint32_t msr, uint64_t *val);

/**
 * x86_vpmu_wrmsr - write a register
 * @cpu: the CPU
 * @msr: its number
 * @val: the value
 */
X86VPmuAccess x86_vpmu_wrmsr(X86CPU *cpu, uint32_t msr, uint64_t val);

/**
 * x86_vpmu_rdpmc - execute RDPMC, which has been found to be allowed
 * @cpu: the CPU
 * @index: ECX
 * @val: set to EDX:EAX, the count before this instruction
 *
 * Returns: false if the guest gets #GP(0).
 */
bool x86_vpmu_rdpmc(X86CPU *cpu, uint32_t index, uint64_t *val);

/**
 * x86_vpmu_pre_save - prepare a CPU's state for being saved
 * @cpu: the CPU, whose registers are known
 */
void x86_vpmu_pre_save(X86CPU *cpu);

/**
 * x86_vpmu_pre_load - prepare a CPU for a stream that may have no PMU state
 * @cpu: the CPU
 */
void x86_vpmu_pre_load(X86CPU *cpu);

/**
 * x86_vpmu_post_load - take the state that was loaded
 * @cpu: the CPU
 * @errp: why this CPU cannot go on with it
 *
 * A stream of QEMU without this PMU is accepted as well: under TCG its guests
 * had no PMU, and under KVM it has Intel's registers, and from QEMU 11.0 on
 * AMD's.
 *
 * Returns: false with @errp set if the guest would lose counts.
 */
bool x86_vpmu_post_load(X86CPU *cpu, Error **errp);

/**
 * vmstate_x86_vpmu - a subsection of the CPU's state, for CPUs that have one
 */
extern const VMStateDescription vmstate_x86_vpmu;

/**
 * vmstate_x86_vpmu_kept - a subsection with registers that only some KVMs save
 *
 * This is a separate subsection because Intel's counters under KVM are not in
 * vmstate_x86_vpmu.
 */
extern const VMStateDescription vmstate_x86_vpmu_kept;

#else /* no virtual PMU in this executable */

static inline uint64_t x86_vpmu_features(X86CPU *cpu, FeatureWord w)
{
    return 0;
}

static inline uint64_t x86_vpmu_missing_features(X86CPU *cpu, FeatureWord w)
{
    return 0;
}

static inline bool x86_vpmu_configure(X86CPU *cpu, Error **errp)
{
    return true;
}

static inline void x86_vpmu_create(X86CPU *cpu)
{
}

static inline void x86_vpmu_destroy(X86CPU *cpu)
{
}

static inline void x86_vpmu_reset(X86CPU *cpu)
{
}

static inline void x86_vpmu_init_signal(X86CPU *cpu)
{
}

static inline void x86_vpmu_pre_save(X86CPU *cpu)
{
}

static inline void x86_vpmu_pre_load(X86CPU *cpu)
{
}

static inline bool x86_vpmu_post_load(X86CPU *cpu, Error **errp)
{
    return true;
}

static inline void x86_vpmu_svme_changed(X86CPU *cpu)
{
}

static inline void x86_vpmu_cpuid(X86CPU *cpu, uint32_t leaf, uint32_t *eax,
                                  uint32_t *ebx, uint32_t *ecx, uint32_t *edx)
{
}

static inline void x86_vpmu_extended_cpuid(X86CPU *cpu, uint32_t subleaf,
                                           uint32_t *eax, uint32_t *ebx,
                                           uint32_t *ecx)
{
}

static inline void x86_vpmu_core_cpuid(const X86CPU *cpu, uint32_t leaf,
                                       uint32_t subleaf, uint32_t *eax,
                                       uint32_t *ebx, uint32_t *ecx,
                                       uint32_t *edx)
{
}

static inline uint64_t x86_vpmu_misc_enable(X86CPU *cpu, uint64_t val)
{
    return val;
}

static inline bool x86_vpmu_rdpmc(X86CPU *cpu, uint32_t index, uint64_t *val)
{
    return false;
}

#endif

#endif /* I386_VPMU_H */
