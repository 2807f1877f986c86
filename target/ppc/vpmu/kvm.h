/*
 * Power virtual PMU: under KVM
 *
 * A guest of KVM's has the processor's own PMU: the kernel switches its
 * registers with the guest, and no access to them leaves it.  What is here lies
 * around that: what the user cannot have, what the registers hold, and what the
 * host's PMU says about the vCPU.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef PPC_VPMU_KVM_H
#define PPC_VPMU_KVM_H

#include "qapi/qapi-builtin-types.h"
#include "cpu.h"

/**
 * ppc_vpmu_kvm_configure - check the properties that are about KVM
 * @cpu: the CPU, being realized, under KVM
 * @errp: what the kernel cannot do, and what helps
 *
 * Returns: false with @errp set if what was asked for cannot be had.
 */
bool ppc_vpmu_kvm_configure(const PowerPCCPU *cpu, Error **errp);

/**
 * ppc_vpmu_kvm_attach - add the host's accounts, if they are asked for
 * @cpu: the CPU, in its thread, with the big lock
 *
 * What of them cannot be had is a warning.
 */
void ppc_vpmu_kvm_attach(PowerPCCPU *cpu);

/**
 * ppc_vpmu_kvm_detach - close them
 * @cpu: the CPU, in its thread, with the big lock
 */
void ppc_vpmu_kvm_detach(PowerPCCPU *cpu);

/**
 * ppc_vpmu_kvm_read - read what decides about counters from the kernel
 * @cpu: the CPU; in its thread, or stopped
 *
 * The guest does not notice.  CPUPPCState has the registers then.
 *
 * Returns: the names of those that the kernel does not tell, to be freed.
 */
strList *ppc_vpmu_kvm_read(PowerPCCPU *cpu);

#endif /* PPC_VPMU_KVM_H */
