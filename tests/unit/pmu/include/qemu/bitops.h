/*
 * Parts of QEMU's bitops.h that the unit tests of the faces need
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef QEMU_BITOPS_H
#define QEMU_BITOPS_H

#include <stdint.h>

static inline uint64_t extract64(uint64_t value, int start, int length)
{
    return value << (64 - start - length) >> (64 - length);
}

static inline uint32_t extract32(uint32_t value, int start, int length)
{
    return value << (32 - start - length) >> (32 - length);
}

static inline int64_t sextract64(uint64_t value, int start, int length)
{
    return (int64_t)(value << (64 - length - start)) >> (64 - length);
}

static inline int32_t sextract32(uint32_t value, int start, int length)
{
    return (int32_t)(value << (32 - length - start)) >> (32 - length);
}

#endif /* QEMU_BITOPS_H */
