/*
 * Performance monitoring unit: samples on their way from a vCPU
 *
 * A vCPU must not wait for whoever writes its samples down.  It puts them into
 * a ring; another thread takes them out.  What does not fit is counted, and the
 * next one that fits says how many were lost before it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_RING_H
#define HW_PMU_PROFILE_RING_H

#include "sample.h"

typedef struct PmuRing PmuRing;

/**
 * pmu_ring_new - create a ring
 * @size: how many words of 8 bytes it holds, a power of 2; a sample takes
 *        seven, three if its task is known, one for each caller, and three for
 *        each branch
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
 * Returns: whether this sample is the one that made the ring half full, so that
 *          it should be emptied soon.
 */
bool pmu_ring_put(PmuRing *ring, const PmuSample *sample);

/**
 * pmu_ring_look - see what is in a ring now, for pmu_ring_get()
 * @ring: the ring
 *
 * In the thread that takes samples out.  What is put in afterwards is for the
 * next look, so that no vCPU can keep that thread at work.
 */
void pmu_ring_look(PmuRing *ring);

/**
 * pmu_ring_get - take the oldest sample out of a ring
 * @ring: the ring
 * @sample: set to it; callers beyond @nr_callers are left alone, and so are
 *          branches
 *
 * In one thread at a time, which need not be that of pmu_ring_put().
 *
 * Returns: false if pmu_ring_look() has seen no more of them.
 */
bool pmu_ring_get(PmuRing *ring, PmuSample *sample);

/**
 * pmu_ring_take_lost - how many samples did not fit behind the last one fetched
 * @ring: the ring
 *
 * In the thread that fetches them, when it has fetched all.
 *
 * Returns: those that neither a sample nor an earlier call has told of.  No
 * sample tells of them any more.
 */
uint64_t pmu_ring_take_lost(PmuRing *ring);

#endif /* HW_PMU_PROFILE_RING_H */
