/*
 * Power virtual PMU: access to registers in problem state
 *
 * Power ISA 3.1B, book III, MMCR0[PMCC] and MMCR0[PMCCEXT].
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef PPC_VPMU_ACCESS_H
#define PPC_VPMU_ACCESS_H

/**
 * enum PpcVPmuAccess - the result of an access to a register
 * @PPC_VPMU_ALLOWED: it is carried out
 * @PPC_VPMU_HV_UNAVAILABLE: Hypervisor Facility Unavailable interrupt
 * @PPC_VPMU_UNAVAILABLE: Facility Unavailable interrupt
 * @PPC_VPMU_ILLEGAL: Hypervisor Emulation Assistance interrupt
 */
typedef enum PpcVPmuAccess {
    PPC_VPMU_ALLOWED,
    PPC_VPMU_HV_UNAVAILABLE,
    PPC_VPMU_UNAVAILABLE,
    PPC_VPMU_ILLEGAL,
} PpcVPmuAccess;

/**
 * ppc_vpmu_access - whether a program in problem state may access a register
 * @mmcr0: MMCR0
 * @reg: the register's privileged number
 * @write: whether it is to be written
 */
PpcVPmuAccess ppc_vpmu_access(uint64_t mmcr0, unsigned reg, bool write);

/**
 * ppc_vpmu_is_writable - whether a number names a register for writing
 * @sprn: a number that may be used in the CPU's state
 *
 * The numbers for problem state of registers that cannot be written there are
 * for reading alone: in privileged state, writing them does nothing.
 */
bool ppc_vpmu_is_writable(unsigned sprn);

/**
 * ppc_vpmu_visible_bits - the bits of a register that problem state can see
 * @reg: the register's privileged number
 *
 * The others read as 0 and keep their value when the register is written.
 */
uint64_t ppc_vpmu_visible_bits(unsigned reg);

#endif /* PPC_VPMU_ACCESS_H */
