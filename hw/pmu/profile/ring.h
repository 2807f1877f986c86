/*
 * Performance monitoring unit: samples on their way from a vCPU
 *
 * A vCPU must not wait for whoever writes its samples down.  It puts them into
 * a ring; another thread takes them out.  What does not fit is counted.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_RING_H
#define HW_PMU_PROFILE_RING_H

#include "hw/pmu/pmu-guest.h"

/**
 * PMU_RING_MAX_CALLERS - the longest chain of callers that a sample can have
 */
#define PMU_RING_MAX_CALLERS 255

/**
 * struct PmuRingSample - a sample of a vCPU
 * @ip: the address of the instruction
 * @space: its address space
 * @time_ns: when it was taken
 * @period: for how many events it stands
 * @user: it is of a user's program
 * @nr_callers: how many callers there are, up to PMU_RING_MAX_CALLERS
 * @callers: whence @ip was called, the innermost first
 */
typedef struct PmuRingSample {
    uint64_t ip;
    PmuGuestSpace space;
    uint64_t time_ns;
    uint64_t period;
    bool user;
    uint8_t nr_callers;
    uint64_t callers[PMU_RING_MAX_CALLERS];
} PmuRingSample;

typedef struct PmuRing PmuRing;

/**
 * pmu_ring_new - create a ring
 * @size: how many words of 8 bytes it holds, a power of 2; a sample takes six
 *        and one for each caller
 */
PmuRing *pmu_ring_new(unsigned size);

/**
 * pmu_ring_free - release a ring
 * @ring: the ring or NULL
 */
void pmu_ring_free(PmuRing *ring);

/**
 * pmu_ring_put - put a sample into a ring, or count it as lost
 * @ring: the ring
 * @sample: the sample
 *
 * In one thread at a time.
 *
 * Returns: whether the ring is half full now, and should be emptied soon.
 */
bool pmu_ring_put(PmuRing *ring, const PmuRingSample *sample);

/**
 * pmu_ring_get - take the oldest sample out of a ring
 * @ring: the ring
 * @sample: set to it; callers beyond @nr_callers are left alone
 *
 * In one thread at a time, which need not be that of pmu_ring_put().
 *
 * Returns: false if the ring is empty.
 */
bool pmu_ring_get(PmuRing *ring, PmuRingSample *sample);

/**
 * pmu_ring_take_lost - how many samples did not fit
 * @ring: the ring
 *
 * In any thread.
 *
 * Returns: those since the last call.
 */
uint64_t pmu_ring_take_lost(PmuRing *ring);

#endif /* HW_PMU_PROFILE_RING_H */
