/*
 * x86 virtual PMU: under KVM
 *
 * The kernel counts: it emulates the registers and RDPMC, and raises the
 * interrupt.  What is here lies around that: what the kernel can give, which
 * is what the guest is told; the registers' state, which is reset, saved and
 * loaded through the same struct X86VPmu as under TCG; and what the host's
 * PMU says about the vCPU.  The counters of the Pmu stand still: they hold
 * what was last read from the kernel.
 *
 * The shape of the PMU (version, numbers of counters) is each vCPU's own.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef I386_VPMU_KVM_H
#define I386_VPMU_KVM_H

#include "cpu.h"
#include "hw/pmu/pmu-filter.h"

/**
 * x86_vpmu_kvm_configure - settle what PMU the guest gets
 * @cpu: the CPU, being realized; before any vCPU of the machine exists, for
 *       the first CPU
 * @filter: what the machine's CPUs may count; NULL if there is no filter
 * @errp: what the host cannot give, and what helps
 *
 * Fills in the properties that were not given.  With pmu=off the kernel's
 * PMU is disabled, if the machine type is not one of those with which QEMU did
 * not; if the kernel cannot (KVM_CAP_PMU_CAPABILITY), and the guest sees that,
 * there is a warning.  Where the host has no PMU for guests, the guest has
 * none; a user who has asked for it is told.
 *
 * Returns: false with @errp set if what was asked for cannot be had.
 */
bool x86_vpmu_kvm_configure(X86CPU *cpu, const PmuFilter *filter,
                            Error **errp);

/**
 * x86_vpmu_kvm_host_has_pmu - whether the host can give a PMU to a CPU
 * @cpu: the CPU, whose vendor is known
 */
bool x86_vpmu_kvm_host_has_pmu(const X86CPU *cpu);

/**
 * x86_vpmu_kvm_refuse - say that it cannot, and what helps
 * @property: what was asked for
 * @errp: is set
 *
 * Returns: false.
 */
bool x86_vpmu_kvm_refuse(const char *property, Error **errp);

/**
 * x86_vpmu_kvm_ops - the register file that the kernel has for a CPU
 * @cpu: the CPU, configured
 *
 * Intel's is told of by CPUID, which follows pmu=on, and guests of all vendors
 * can have it.  AMD CPUs cannot say that they have none: on an AMD host, the
 * kernel has one unless it was disabled.
 *
 * Returns: NULL if there is none.
 */
const struct X86VPmuOps *x86_vpmu_kvm_ops(const X86CPU *cpu);

/**
 * x86_vpmu_kvm_cpuid - as x86_vpmu_cpuid(), under KVM
 */
void x86_vpmu_kvm_cpuid(X86CPU *cpu, uint32_t leaf, uint32_t *eax,
                        uint32_t *ebx, uint32_t *ecx, uint32_t *edx);

/**
 * x86_vpmu_kvm_shows_pebs - whether the guest finds PEBS
 * @cpu: the CPU, whose features are known
 *
 * KVM has it if the host has, and a guest that finds its format and its buffer
 * in CPUID may use it.
 */
bool x86_vpmu_kvm_shows_pebs(const X86CPU *cpu);

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
 * Registers that the kernel ought to have, and refuses to read or to set to
 * what they hold after a reset, are left out from now on, with a warning.  It
 * gets the host's accounts, if they are asked for, also without a PMU; that
 * they cannot be had, and that counters of a guest cannot be watched, are
 * warnings, too.
 */
void x86_vpmu_kvm_attach(X86CPU *cpu);

/**
 * x86_vpmu_kvm_refuse_hidden - whether what has arrived is there to be loaded
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
 * No counter starts before all of them, and what they are to count, are
 * written.
 */
bool x86_vpmu_kvm_put(X86CPU *cpu, Error **errp);

/**
 * x86_vpmu_kvm_sample_time - for x86_vpmu_kvm_before_run()
 */
void x86_vpmu_kvm_sample_time(X86CPU *cpu);

/**
 * x86_vpmu_kvm_before_run - a vCPU is about to enter its guest
 * @cpu: the CPU, in its thread
 *
 * If a clock has asked for a sample (pmu-clock.h) it is taken now: what the
 * thread has done until here, was done for the instruction at which the guest
 * was left.
 */
static inline void x86_vpmu_kvm_before_run(X86CPU *cpu)
{
    if (unlikely(qatomic_read(&CPU(cpu)->neg.pmu.clock_due))) {
        x86_vpmu_kvm_sample_time(cpu);
    }
}

#endif /* I386_VPMU_KVM_H */
