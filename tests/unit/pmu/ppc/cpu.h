/*
 * Parts of target/ppc/cpu.h that the unit tests of the faces need
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef PPC_CPU_H
#define PPC_CPU_H

/* Power numbers bits from the left. */
#define PPC_BIT(n)          (1ull << (63 - (n)))
#define PPC_BITMASK(hi, lo) ((PPC_BIT(hi) - PPC_BIT(lo)) | PPC_BIT(hi))

#endif /* PPC_CPU_H */
