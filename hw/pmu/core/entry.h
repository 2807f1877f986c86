/*
 * Performance monitoring unit: the parts of an entry of a core's log
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_CORE_ENTRY_H
#define HW_PMU_CORE_ENTRY_H

#include "hw/pmu/pmu-core.h"

/**
 * pmu_core_is_branch - whether an entry is a branch; others are accesses
 * @entry: the entry
 */
static inline bool pmu_core_is_branch(const PmuCoreEntry *entry)
{
    return pmu_core_kind_of(entry) >= PMU_CORE_ACCESSES;
}

/**
 * pmu_core_bytes_of - how many bytes an access has
 * @entry: the access
 */
static inline unsigned pmu_core_bytes_of(const PmuCoreEntry *entry)
{
    return entry->what >> PMU_CORE_SIZE & PMU_CORE_MOST_BYTES;
}

/**
 * pmu_core_last_byte - the address of the last byte of an access
 * @entry: the access
 */
static inline uint64_t pmu_core_last_byte(const PmuCoreEntry *entry)
{
    return entry->address + pmu_core_bytes_of(entry) - 1;
}

/**
 * pmu_core_count_of - how many instructions a fetch stands for
 * @entry: the fetch; for another access it is 1, and for a branch 0
 */
static inline unsigned pmu_core_count_of(const PmuCoreEntry *entry)
{
    return entry->what >> PMU_CORE_COUNT;
}

#endif /* HW_PMU_CORE_ENTRY_H */
