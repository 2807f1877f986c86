/*
 * Performance monitoring unit: the sets of a cache or a TLB
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "sets.h"

bool pmu_core_touch_lines(const PmuCoreSets *sets, uint64_t address,
                          unsigned bytes)
{
    uint64_t last = pmu_core_line(sets, address + bytes - 1);
    uint64_t number = pmu_core_line(sets, address);
    bool missed = pmu_core_touch_line(sets, number);

    while (number != last) {
        number = pmu_core_next_line(sets, number);
        missed |= pmu_core_touch_line(sets, number);
    }
    return missed;
}
