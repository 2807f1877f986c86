/*
 * Performance monitoring unit: samplers, which take the samples of a vCPU
 *
 * A profile has a sampler on each vCPU.  TCG and KVM need samplers of different
 * kinds, but the samples of all kinds are fetched in the same way.
 *
 * Threads: any that holds the big lock.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_SAMPLER_H
#define HW_PMU_PROFILE_SAMPLER_H

#include "qemu/main-loop.h"
#include "qemu/rcu.h"
#include "hw/pmu/profile/stream.h"
#include "clock.h"
#include "request.h"
#include "sample.h"

/**
 * struct PmuTaskPlace - where the guest's kernel keeps its tasks
 * @rcu: frees it after it was replaced
 * @layout: the place
 */
typedef struct PmuTaskPlace {
    struct rcu_head rcu;
    PmuTaskLayout layout;
} PmuTaskPlace;

/**
 * struct PmuSamplerConfig - configuration that the samplers of a profile share
 * @owner: the profile's ID
 * @asked: the user's request
 * @clock: gives samples their time
 * @tasks: the place of the guest's tasks, under RCU; NULL until it is known
 * @drain: scheduled when a sampler should be emptied soon
 */
typedef struct PmuSamplerConfig {
    const char *owner;
    PmuProfileRequest asked;
    PmuProfileClock clock;
    PmuTaskPlace *tasks;
    QEMUBH *drain;
} PmuSamplerConfig;

typedef struct PmuSampler PmuSampler;

/**
 * struct PmuSamplerOps - operations of a kind of samplers
 *
 * Each operation implements the function pmu_sampler_*() of the same name.
 * @check is NULL if a sampler cannot fail once it has begun.
 */
typedef struct PmuSamplerOps {
    bool (*start)(PmuSampler *sampler, Error **errp);
    void (*stop)(PmuSampler *sampler);
    bool (*check)(const PmuSampler *sampler, Error **errp);
    void (*look)(PmuSampler *sampler);
    bool (*get)(PmuSampler *sampler, PmuSample *sample);
    uint64_t (*take_lost)(PmuSampler *sampler);
    void (*describe)(const PmuSampler *sampler, PmuStreamEvent *event);
    char *(*space_name)(const PmuSampler *sampler, const PmuGuestSpace *space);
    void (*free)(PmuSampler *sampler);
} PmuSamplerOps;

/**
 * struct PmuSampler - the part that samplers of all kinds begin with
 * @ops: the kind
 * @config: as given to pmu_sampler_new()
 * @cpu: the vCPU; NULL once it is unplugged
 * @index: its number
 */
struct PmuSampler {
    const PmuSamplerOps *ops;
    const PmuSamplerConfig *config;
    CPUState *cpu;
    unsigned index;
};

/**
 * pmu_sampler_new - create a sampler, of the kind that the accelerator needs
 * @cpu: the vCPU
 * @config: the configuration; outlives the sampler
 * @errp: why this vCPU cannot be sampled like that
 */
PmuSampler *pmu_sampler_new(CPUState *cpu, const PmuSamplerConfig *config,
                            Error **errp);

/**
 * pmu_sampler_modes - the modes in which to sample
 * @cpu: a vCPU of the machine
 * @asked: the user's request
 * @errp: set if the machine's CPUs do not distinguish these modes
 *
 * Returns: the modes, or 0 with @errp set.
 */
PmuModes pmu_sampler_modes(const CPUState *cpu, const PmuProfileRequest *asked,
                           Error **errp);

/**
 * pmu_sampler_free - release a sampler that was stopped
 * @sampler: the sampler
 */
void pmu_sampler_free(PmuSampler *sampler);

/**
 * pmu_sampler_find_task - find the task that the vCPU runs
 * @sampler: the sampler
 * @task: is set to it
 *
 * In the vCPU's thread, between two instructions.
 *
 * Returns: whether the task is known.
 */
bool pmu_sampler_find_task(const PmuSampler *sampler, PmuTask *task);

/**
 * pmu_sampler_start - begin to take samples
 * @sampler: the sampler
 * @errp: why the vCPU cannot be sampled
 *
 * Does nothing if it has begun already.
 *
 * Returns: whether samples are taken.
 */
bool pmu_sampler_start(PmuSampler *sampler, Error **errp);

/**
 * pmu_sampler_stop - take no more samples, until it is started again
 * @sampler: the sampler, which need not have begun
 *
 * Samples that it has taken can still be fetched.
 */
void pmu_sampler_stop(PmuSampler *sampler);

/**
 * pmu_sampler_check - whether a sampler still takes samples
 * @sampler: the sampler, which has begun
 * @errp: why there will be no more samples
 */
bool pmu_sampler_check(const PmuSampler *sampler, Error **errp);

/**
 * pmu_sampler_forget_cpu - the vCPU is gone
 * @sampler: the sampler, which will not be started again
 */
void pmu_sampler_forget_cpu(PmuSampler *sampler);

/**
 * pmu_sampler_look - find the samples that there are now
 * @sampler: the sampler
 *
 * pmu_sampler_get() returns samples that are taken later only after the next
 * look.
 */
void pmu_sampler_look(PmuSampler *sampler);

/**
 * pmu_sampler_get - fetch the oldest sample
 * @sampler: the sampler
 * @sample: set to it; callers beyond @nr_callers are left alone
 *
 * Returns: false if all that pmu_sampler_look() has seen were fetched.
 */
bool pmu_sampler_get(PmuSampler *sampler, PmuSample *sample);

/**
 * pmu_sampler_take_lost - take the count of samples lost after the last one
 * @sampler: the sampler, of which pmu_sampler_get() has fetched all samples
 *
 * Returns: the lost samples that neither a sample nor an earlier call has
 * reported.
 */
uint64_t pmu_sampler_take_lost(PmuSampler *sampler);

/**
 * pmu_sampler_describe - describe the event that is sampled
 * @sampler: the sampler
 * @event: its @type, @config and @exact are set
 */
void pmu_sampler_describe(const PmuSampler *sampler, PmuStreamEvent *event);

/**
 * pmu_sampler_space_name - name an address space, for users
 * @sampler: a sampler that has taken a sample there
 * @space: the space
 */
char *pmu_sampler_space_name(const PmuSampler *sampler,
                             const PmuGuestSpace *space);

/**
 * pmu_sampler_new_observer - create a sampler of events under TCG
 * @cpu: the vCPU
 * @config: the configuration
 * @errp: why this vCPU cannot be sampled like that
 *
 * An observer calls it once a period, in the vCPU's thread.
 */
PmuSampler *pmu_sampler_new_observer(CPUState *cpu,
                                     const PmuSamplerConfig *config,
                                     Error **errp);

/**
 * pmu_sampler_new_clock - create a sampler of the time that a vCPU takes
 * @cpu: the vCPU
 * @config: the configuration
 * @errp: why this vCPU cannot be sampled like that
 *
 * A PmuClock calls it once a period, in the vCPU's thread.
 */
PmuSampler *pmu_sampler_new_clock(CPUState *cpu,
                                  const PmuSamplerConfig *config,
                                  Error **errp);

/**
 * pmu_sampler_new_kvm - create a sampler of events under KVM
 * @cpu: the vCPU
 * @config: the configuration
 * @errp: why this vCPU cannot be sampled like that
 *
 * The host's kernel takes the samples, by a perf event on the vCPU's thread.
 */
PmuSampler *pmu_sampler_new_kvm(CPUState *cpu, const PmuSamplerConfig *config,
                                Error **errp);

#endif /* HW_PMU_PROFILE_SAMPLER_H */
