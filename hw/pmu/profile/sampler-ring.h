/*
 * Performance monitoring unit: samples that vCPUs take by themselves
 *
 * The common part of samplers that are called in the vCPU's thread: they put
 * the sample into a ring, and the vCPU goes on.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_SAMPLER_RING_H
#define HW_PMU_PROFILE_SAMPLER_RING_H

#include "ring.h"
#include "sampler.h"

/**
 * struct PmuRingSampler - the part that such samplers begin with
 * @sampler: the part that all samplers begin with
 * @modes: the modes in which to sample
 * @ring: the samples
 */
typedef struct PmuRingSampler {
    PmuSampler sampler;
    PmuModes modes;
    PmuRing *ring;
} PmuRingSampler;

/**
 * pmu_ring_sampler_of - find the PmuRingSampler of a PmuSampler
 * @sampler: the sampler
 */
static inline PmuRingSampler *pmu_ring_sampler_of(PmuSampler *sampler)
{
    return container_of(sampler, PmuRingSampler, sampler);
}

/**
 * pmu_ring_sampler_init - choose the modes, and create the ring
 * @s: the sampler, all of it 0
 * @ops: its kind
 * @cpu: the vCPU
 * @config: the configuration
 * @errp: why the vCPU has no such modes
 */
bool pmu_ring_sampler_init(PmuRingSampler *s, const PmuSamplerOps *ops,
                           const CPUState *cpu, const PmuSamplerConfig *config,
                           Error **errp);

/**
 * struct PmuSampleOwner - the owner of an instruction
 * @space: its address space
 * @has_task: @task is known
 * @task: the task that runs
 */
typedef struct PmuSampleOwner {
    PmuGuestSpace space;
    bool has_task;
    PmuTask task;
} PmuSampleOwner;

/**
 * pmu_ring_sampler_owner - find the owner of the next instruction
 * @s: the sampler, in the vCPU's thread between two instructions
 */
PmuSampleOwner pmu_ring_sampler_owner(const PmuRingSampler *s);

/**
 * pmu_ring_sampler_take - take a sample
 * @s: the sampler, in the vCPU's thread between two instructions
 * @owner: the owner of the instruction
 * @events: for how many events it stands
 *
 * Returns: its time, in ns.
 */
int64_t pmu_ring_sampler_take(PmuRingSampler *s, const PmuSampleOwner *owner,
                              uint64_t events);

/*
 * Operations for PmuSamplerOps
 */
void pmu_ring_sampler_look(PmuSampler *sampler);
bool pmu_ring_sampler_get(PmuSampler *sampler, PmuSample *sample);
uint64_t pmu_ring_sampler_take_lost(PmuSampler *sampler);
char *pmu_ring_sampler_space_name(const PmuSampler *sampler,
                                  const PmuGuestSpace *space);
void pmu_ring_sampler_free(PmuSampler *sampler);

#endif /* HW_PMU_PROFILE_SAMPLER_RING_H */
