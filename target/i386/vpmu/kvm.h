/*
 * x86 virtual PMU: under KVM
 *
 * The kernel counts: it emulates the registers and RDPMC, and raises the
 * interrupt.  This file has the rest: the settings, which depend on the kernel
 * and determine CPUID; the registers' state, which is reset, saved and loaded
 * through the same struct X86VPmu as under TCG; and the host's counts of the
 * vCPU's events.  The counters of the Pmu do not advance: they hold the values
 * last read from the kernel.
 *
 * The shape of the PMU (version, numbers of counters) is each vCPU's own.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef I386_VPMU_KVM_H
#define I386_VPMU_KVM_H

#include "cpu.h"
#include "hw/pmu/pmu-filter.h"

/* The parameter of KVM's module without which it has no PMU for guests */
#define KVM_ENABLE_PMU "/sys/module/kvm/parameters/enable_pmu"

/**
 * struct X86VPmuShape - the size of a PMU
 * @version: as in struct X86VPmu
 * @nr_gp: general-purpose counters
 * @nr_fixed: fixed-function counters
 */
typedef struct X86VPmuShape {
    uint32_t version;
    uint32_t nr_gp;
    uint32_t nr_fixed;
} X86VPmuShape;

/**
 * x86_vpmu_kvm_intel_shape - the size of the host's Intel PMU, as far as the
 *                            state has room for it
 */
X86VPmuShape x86_vpmu_kvm_intel_shape(void);

/**
 * x86_vpmu_kvm_settle - settle the machine's PMU with the kernel
 * @cpu: the CPU, being realized; before any vCPU of the machine exists, for
 *       the first CPU
 * @off: the CPU must not have a PMU
 * @filter: the filter of the machine's CPUs; NULL without one
 * @errp: the part that the host does not support, and the remedy
 *
 * With pmu=off the kernel's PMU is disabled, unless QEMU did not do this with
 * the machine type; if the kernel cannot do it (KVM_CAP_PMU_CAPABILITY), and
 * the guest sees that, there is a warning.
 *
 * Returns: false with @errp set if that is not possible.
 */
bool x86_vpmu_kvm_settle(const X86CPU *cpu, bool off, const PmuFilter *filter,
                         Error **errp);

/**
 * x86_vpmu_kvm_host_has_pmu - whether the host can give a PMU to a CPU
 * @cpu: the CPU, whose vendor is known
 */
bool x86_vpmu_kvm_host_has_pmu(const X86CPU *cpu);

/**
 * x86_vpmu_kvm_ops - the register file that the kernel has for a CPU
 * @cpu: the CPU, configured
 *
 * CPUID shows Intel's registers, with pmu=on, and guests of all vendors can
 * have them.  CPUID of AMD CPUs cannot deny counters: on an AMD host, the
 * kernel has a PMU unless it was disabled.
 *
 * Returns: NULL if the kernel has no PMU for the CPU.
 */
const struct X86VPmuOps *x86_vpmu_kvm_ops(const X86CPU *cpu);

/**
 * x86_vpmu_kvm_cpuid - as x86_vpmu_cpuid(), under KVM
 */
void x86_vpmu_kvm_cpuid(X86CPU *cpu, uint32_t leaf, uint32_t *eax,
                        uint32_t *ebx, uint32_t *ecx, uint32_t *edx);

/**
 * x86_vpmu_kvm_misc_enable - as x86_vpmu_misc_enable(), under KVM
 *
 * The kernel takes what QEMU writes.
 */
uint64_t x86_vpmu_kvm_misc_enable(const X86CPU *cpu, uint64_t val);

/**
 * x86_vpmu_kvm_attach - get to know the kernel's PMU of a new vCPU
 * @cpu: the CPU, whose CPUID the kernel has been told; in its thread, with
 *       the big lock
 *
 * Registers that the kernel ought to have, but refuses to read or to set to
 * their values after a reset, are left out from now on, with a warning.  The
 * CPU gets the host's accounts, if the user asks for them, also without a PMU.
 * If the host refuses the accounts, or a guest's counters cannot be watched,
 * there is a warning, too.
 */
void x86_vpmu_kvm_attach(X86CPU *cpu);

/**
 * x86_vpmu_kvm_refuse_hidden - whether KVM can load the registers received
 * @v: the PMU, which holds the source's registers
 * @errp: which register this host's KVM hides, although it holds something
 *
 * Returns: false with @errp set if there is such a register.
 */
bool x86_vpmu_kvm_refuse_hidden(X86VPmu *v, Error **errp);

/**
 * x86_vpmu_kvm_get - read the registers from the kernel
 * @cpu: the CPU; in its thread, or stopped
 * @errp: which register could not be read
 */
bool x86_vpmu_kvm_get(X86CPU *cpu, Error **errp);

/**
 * x86_vpmu_kvm_put - write the registers to the kernel
 * @cpu: the CPU; in its thread, or stopped
 * @errp: which register could not be written
 *
 * No counter starts before all counters and their events are written.
 */
bool x86_vpmu_kvm_put(X86CPU *cpu, Error **errp);

/**
 * x86_vpmu_kvm_sample_time - for x86_vpmu_kvm_before_run()
 */
void x86_vpmu_kvm_sample_time(X86CPU *cpu);

/**
 * x86_vpmu_kvm_before_run - prepare a vCPU to enter its guest
 * @cpu: the CPU, in its thread
 *
 * If a clock has asked for a sample (pmu-clock.h) it is taken now: the thread
 * has spent its time until here for the instruction at which the guest was
 * left.
 */
static inline void x86_vpmu_kvm_before_run(X86CPU *cpu)
{
    if (unlikely(qatomic_read(&CPU(cpu)->pmu_clock_due))) {
        x86_vpmu_kvm_sample_time(cpu);
    }
}

#endif /* I386_VPMU_KVM_H */
