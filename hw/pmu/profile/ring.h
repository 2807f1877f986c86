/*
 * Performance monitoring unit: samples on their way from a vCPU
 *
 * A vCPU must not wait for the thread that writes its samples.  It puts them
 * into a ring, and the other thread takes them out.  A sample that does not fit
 * is counted as lost; the next one that fits carries that count.
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
 * pmu_ring_look - find the samples that are in a ring now
 * @ring: the ring
 *
 * In the thread that takes samples out.  pmu_ring_get() returns samples that
 * are put in later only after the next look, so no vCPU can keep that thread at
 * work forever.
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
 * Returns: false if all that pmu_ring_look() has seen were taken.
 */
bool pmu_ring_get(PmuRing *ring, PmuSample *sample);

/**
 * pmu_ring_take_lost - take the count of samples lost after the last one
 * @ring: the ring
 *
 * In the thread that takes samples out, when it has taken all of them.
 *
 * Returns: the lost samples that neither PmuSample.lost nor an earlier call has
 * reported.  No later sample reports them again.
 */
uint64_t pmu_ring_take_lost(PmuRing *ring);

#endif /* HW_PMU_PROFILE_RING_H */
