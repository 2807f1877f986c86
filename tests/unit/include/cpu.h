/*
 * What the faces' plain parts take from target/ppc/cpu.h
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef PPC_CPU_H
#define PPC_CPU_H

/* Power numbers bits from the left. */
#define PPC_BIT(n)          (1ull << (63 - (n)))
#define PPC_BITMASK(hi, lo) ((PPC_BIT(hi) - PPC_BIT(lo)) | PPC_BIT(hi))

#endif /* PPC_CPU_H */
