/*
 * Performance monitoring unit: the sets of a cache or a TLB
 *
 * A tag is the number of a line, or page, plus 1.  So 0 means that a place is
 * empty, and memory that is all zero is an empty cache.  A separate array has
 * the tags that were used last, one for each set: most accesses look only
 * there.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_CORE_SETS_H
#define HW_PMU_CORE_SETS_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct PmuCoreSets - all sets of a cache
 * @first: for each set, the tag of the line that was used last
 * @others: for each set, the tags of its other lines, the last used one first
 * @mask: the bits of a line's number that are the number of its set
 * @bits: how many bits of an address lie within a line
 * @ways: how many lines a set has
 */
typedef struct PmuCoreSets {
    uint64_t *first;
    uint64_t *others;
    uint64_t mask;
    uint32_t bits;
    uint32_t ways;
} PmuCoreSets;

/**
 * pmu_core_line - the number of the line in which a byte is
 * @sets: the cache
 * @address: the address of the byte
 */
static inline uint64_t pmu_core_line(const PmuCoreSets *sets, uint64_t address)
{
    return address >> sets->bits;
}

/**
 * pmu_core_next_line - the number of the line after another one
 * @sets: the cache
 * @number: the other's number; address 0 follows the last address
 */
static inline uint64_t pmu_core_next_line(const PmuCoreSets *sets,
                                          uint64_t number)
{
    return (number + 1) & (UINT64_MAX >> sets->bits);
}

/**
 * pmu_core_is_first - whether a byte is in the line that its set used last
 * @sets: the cache
 * @address: the address of the byte
 *
 * An access to this line would not change the state.
 */
static inline bool pmu_core_is_first(const PmuCoreSets *sets, uint64_t address)
{
    uint64_t number = pmu_core_line(sets, address);

    return sets->first[number & sets->mask] == number + 1;
}

/**
 * pmu_core_in_line - whether an access stays within one line
 * @sets: the cache
 * @address: where it begins
 * @bytes: how many it accesses, at least 1
 */
static inline bool pmu_core_in_line(const PmuCoreSets *sets, uint64_t address,
                                    unsigned bytes)
{
    return !((address ^ (address + bytes - 1)) >> sets->bits);
}

/**
 * pmu_core_touch_line - access one line
 * @sets: the cache
 * @number: the number of the line
 *
 * The line becomes the one that its set used last; lines that were used after
 * its last use move back by one place.
 *
 * Returns: whether the line was missing.
 */
static inline bool pmu_core_touch_line(const PmuCoreSets *sets,
                                       uint64_t number)
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

/**
 * pmu_core_touch_lines - access any number of lines, in their order
 * @sets: the cache
 * @address: where it begins
 * @bytes: how many it accesses, at least 1
 *
 * Returns: whether a line was missing.
 */
bool pmu_core_touch_lines(const PmuCoreSets *sets, uint64_t address,
                          unsigned bytes);

/**
 * pmu_core_touch - as pmu_core_touch_lines(), but quick for one line
 */
static inline bool pmu_core_touch(const PmuCoreSets *sets, uint64_t address,
                                  unsigned bytes)
{
    return pmu_core_in_line(sets, address, bytes)
           ? pmu_core_touch_line(sets, address >> sets->bits)
           : pmu_core_touch_lines(sets, address, bytes);
}

#endif /* HW_PMU_CORE_SETS_H */
