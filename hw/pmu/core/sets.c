/*
 * Performance monitoring unit: the sets of a cache or a TLB
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "sets.h"

/* What was used later than the line moves back by one, and it comes first. */
static bool touch_line(const PmuCoreSets *sets, uint64_t number)
{
    uint64_t set = number & sets->mask, tag = number + 1;
    uint64_t *others = sets->others + set * (sets->ways - 1);
    uint64_t moved = sets->first[set];

    if (moved == tag) {
        return false;
    }
    sets->first[set] = tag;
    for (unsigned i = 0; i < sets->ways - 1; i++) {
        uint64_t was = others[i];

        others[i] = moved;
        if (was == tag) {
            return false;
        }
        moved = was;
    }
    return true;
}

/* Behind the last address is 0. */
bool pmu_core_touch(const PmuCoreSets *sets, uint64_t address, unsigned bytes)
{
    uint64_t last = (address + bytes - 1) >> sets->bits;
    uint64_t number = address >> sets->bits;
    bool missed = touch_line(sets, number);

    while (number != last) {
        number = (number + 1) & (UINT64_MAX >> sets->bits);
        missed |= touch_line(sets, number);
    }
    return missed;
}
