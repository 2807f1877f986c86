/*
 * Power virtual PMU: under KVM
 *
 * A guest of KVM's has the processor's own PMU: the kernel switches its
 * registers with the guest, and no access to them leaves the guest.  This file
 * has the rest: checks of the properties, the values of the registers, and the
 * host's counts of the vCPU's events.
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
 * @errp: the part that the kernel does not support, and the remedy
 *
 * Returns: false with @errp set if a requested property is not possible.
 */
bool ppc_vpmu_kvm_configure(const PowerPCCPU *cpu, Error **errp);

/**
 * ppc_vpmu_kvm_attach - add the host's accounts, if they are asked for
 * @cpu: the CPU, in its thread, with the big lock
 *
 * There is a warning for accounts that cannot be opened.
 */
void ppc_vpmu_kvm_attach(PowerPCCPU *cpu);

/**
 * ppc_vpmu_kvm_detach - close the host's accounts
 * @cpu: the CPU, in its thread, with the big lock
 */
void ppc_vpmu_kvm_detach(PowerPCCPU *cpu);

/**
 * ppc_vpmu_kvm_read - read the registers that decide about counters
 * @cpu: the CPU; in its thread, or stopped
 *
 * The guest does not notice.  The registers are then in CPUPPCState.
 *
 * Returns: the names of registers that the kernel does not return, to be freed.
 */
strList *ppc_vpmu_kvm_read(PowerPCCPU *cpu);

#endif /* PPC_VPMU_KVM_H */
