/*
 * Performance monitoring unit: samples that vCPUs take by themselves
 *
 * What samplers have in common that are called in the vCPU's thread: the sample
 * goes into a ring, and the vCPU goes on.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_SAMPLER_RING_H
#define HW_PMU_PROFILE_SAMPLER_RING_H

#include "ring.h"
#include "sampler.h"

/**
 * struct PmuRingSampler - what such samplers begin with
 * @sampler: what all have
 * @modes: in which modes to sample
 * @ring: what was sampled
 */
typedef struct PmuRingSampler {
    PmuSampler sampler;
    PmuModes modes;
    PmuRing *ring;
} PmuRingSampler;

/**
 * pmu_ring_sampler_of - a sampler, as one of these
 * @sampler: the sampler
 */
static inline PmuRingSampler *pmu_ring_sampler_of(PmuSampler *sampler)
{
    return container_of(sampler, PmuRingSampler, sampler);
}

/**
 * pmu_ring_sampler_init - choose the modes, and make the ring
 * @s: the sampler, all of it 0
 * @ops: of what kind it is
 * @cpu: the vCPU
 * @config: what is asked for
 * @errp: why the vCPU has no such modes
 */
bool pmu_ring_sampler_init(PmuRingSampler *s, const PmuSamplerOps *ops,
                           const CPUState *cpu, const PmuSamplerConfig *config,
                           Error **errp);

/**
 * struct PmuSampleOwner - who executes something
 * @space: in this address space
 * @has_task: @task is known
 * @task: the task that runs
 */
typedef struct PmuSampleOwner {
    PmuGuestSpace space;
    bool has_task;
    PmuTask task;
} PmuSampleOwner;

/**
 * pmu_ring_sampler_owner - who executes what comes next
 * @s: the sampler, in the vCPU's thread between two instructions
 */
PmuSampleOwner pmu_ring_sampler_owner(const PmuRingSampler *s);

/**
 * pmu_ring_sampler_take - take a sample
 * @s: the sampler, in the vCPU's thread between two instructions
 * @owner: who has executed the instruction
 * @events: for how many events it stands
 *
 * Returns: its time, in ns.
 */
int64_t pmu_ring_sampler_take(PmuRingSampler *s, const PmuSampleOwner *owner,
                              uint64_t events);

/*
 * Operations of samplers
 */
void pmu_ring_sampler_look(PmuSampler *sampler);
bool pmu_ring_sampler_get(PmuSampler *sampler, PmuSample *sample);
uint64_t pmu_ring_sampler_take_lost(PmuSampler *sampler);
char *pmu_ring_sampler_space_name(const PmuSampler *sampler,
                                  const PmuGuestSpace *space);
void pmu_ring_sampler_free(PmuSampler *sampler);

#endif /* HW_PMU_PROFILE_SAMPLER_RING_H */
