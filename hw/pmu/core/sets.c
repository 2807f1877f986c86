/*
 * Performance monitoring unit: the sets of a cache or a TLB
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "sets.h"

/* Address 0 follows the last address. */
bool pmu_core_touch_lines(const PmuCoreSets *sets, uint64_t address,
                          unsigned bytes)
{
    uint64_t last = (address + bytes - 1) >> sets->bits;
    uint64_t number = address >> sets->bits;
    bool missed = pmu_core_touch_line(sets, number);

    while (number != last) {
        number = (number + 1) & (UINT64_MAX >> sets->bits);
        missed |= pmu_core_touch_line(sets, number);
    }
    return missed;
}
