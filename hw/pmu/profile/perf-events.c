/*
 * Performance monitoring unit: perf's names of events
 *
 * The numbers of perf_event_open(2) are written out here, as hosts without that
 * system call need them, too.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "perf-events.h"

#define TYPE_HARDWARE 0
#define TYPE_CACHE    3

/* Events of caches: the cache, the access, and its result */
#define CACHE_DTLB   3
#define CACHE_ITLB   4
#define CACHE_READ   (0 << 8)
#define CACHE_WRITE  (1 << 8)
#define CACHE_MISSES (1 << 16)

static const struct {
    PmuEvent event;
    uint32_t type;
    uint64_t config;
} perf_events[] = {
    { PMU_EVENT_CYCLES, TYPE_HARDWARE, 0 },
    { PMU_EVENT_INSNS, TYPE_HARDWARE, 1 },
    { PMU_EVENT_BRANCHES, TYPE_HARDWARE, 4 },
    { PMU_EVENT_REF_CYCLES, TYPE_HARDWARE, 9 },
    { PMU_EVENT_DTLB_LOAD_MISSES, TYPE_CACHE,
      CACHE_DTLB | CACHE_READ | CACHE_MISSES },
    { PMU_EVENT_DTLB_STORE_MISSES, TYPE_CACHE,
      CACHE_DTLB | CACHE_WRITE | CACHE_MISSES },
    { PMU_EVENT_ITLB_MISSES, TYPE_CACHE,
      CACHE_ITLB | CACHE_READ | CACHE_MISSES },
};

bool pmu_perf_event(PmuEvent event, uint32_t *type, uint64_t *config)
{
    for (unsigned i = 0; i < ARRAY_SIZE(perf_events); i++) {
        if (perf_events[i].event == event) {
            *type = perf_events[i].type;
            *config = perf_events[i].config;
            return true;
        }
    }
    return false;
}
