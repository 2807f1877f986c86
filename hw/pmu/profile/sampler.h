/*
 * Performance monitoring unit: who takes the samples of a vCPU
 *
 * A profile has a sampler on each vCPU.  Of what kind it is depends on who
 * executes the guest; what it samples is fetched in the same way from all.
 *
 * Threads: those that hold the big lock.
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
 * struct PmuTaskPlace - where the guest has its tasks
 * @rcu: for whoever replaces it
 * @layout: that
 */
typedef struct PmuTaskPlace {
    struct rcu_head rcu;
    PmuTaskLayout layout;
} PmuTaskPlace;

/**
 * struct PmuSamplerConfig - what the samplers of a profile share
 * @owner: the profile's ID
 * @asked: what it is to sample
 * @clock: when samples are taken
 * @tasks: where the guest has its tasks, under RCU; NULL if it has not said it
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
 * struct PmuSamplerOps - a kind of samplers; each does what the function of the
 *                        same name says
 *
 * @check is NULL where nothing can go wrong.
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
 * struct PmuSampler - what all kinds begin with
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
 * pmu_sampler_new - make a sampler, of the kind that the accelerator needs
 * @cpu: the vCPU
 * @config: what to do; outlives the sampler
 * @errp: why that cannot be had of this vCPU
 */
PmuSampler *pmu_sampler_new(CPUState *cpu, const PmuSamplerConfig *config,
                            Error **errp);

/**
 * pmu_sampler_modes - the modes in which to sample
 * @cpu: a vCPU of the machine
 * @asked: what is asked for
 * @errp: why its CPUs do not tell these modes apart
 *
 * Returns: 0 with @errp set if they do not.
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
 * Returns: whether it is known.
 */
bool pmu_sampler_find_task(const PmuSampler *sampler, PmuTask *task);

/**
 * pmu_sampler_start - begin to take samples
 * @sampler: the sampler
 * @errp: why the vCPU cannot be sampled
 *
 * Nothing happens if it has begun.
 *
 * Returns: whether samples are taken.
 */
bool pmu_sampler_start(PmuSampler *sampler, Error **errp);

/**
 * pmu_sampler_stop - take no more samples, until it is started again
 * @sampler: the sampler, which need not have begun
 *
 * What it has taken can be fetched behind this.
 */
void pmu_sampler_stop(PmuSampler *sampler);

/**
 * pmu_sampler_check - whether samples are taken as long as there are events
 * @sampler: the sampler, which has begun
 * @errp: why there will be no more
 */
bool pmu_sampler_check(const PmuSampler *sampler, Error **errp);

/**
 * pmu_sampler_forget_cpu - the vCPU is gone
 * @sampler: the sampler, which will not be started again
 */
void pmu_sampler_forget_cpu(PmuSampler *sampler);

/**
 * pmu_sampler_look - see what samples there are now, for pmu_sampler_get()
 * @sampler: the sampler
 *
 * Those that are taken afterwards are for the next look.
 */
void pmu_sampler_look(PmuSampler *sampler);

/**
 * pmu_sampler_get - fetch the oldest sample
 * @sampler: the sampler
 * @sample: set to it; callers beyond @nr_callers are left alone
 *
 * Returns: false if pmu_sampler_look() has seen no more of them.
 */
bool pmu_sampler_get(PmuSampler *sampler, PmuSample *sample);

/**
 * pmu_sampler_take_lost - how many samples were lost behind the last one
 * @sampler: the sampler, of which pmu_sampler_get() has fetched all
 *
 * Returns: those that no sample has told of, nor an earlier call.
 */
uint64_t pmu_sampler_take_lost(PmuSampler *sampler);

/**
 * pmu_sampler_describe - say what the samples are of
 * @sampler: the sampler
 * @event: its @type, @config and @exact are set
 */
void pmu_sampler_describe(const PmuSampler *sampler, PmuStreamEvent *event);

/**
 * pmu_sampler_space_name - what a user is to call an address space
 * @sampler: the sampler of a sample of it
 * @space: the space
 */
char *pmu_sampler_space_name(const PmuSampler *sampler,
                             const PmuGuestSpace *space);

/**
 * pmu_sampler_new_observer - a sampler for what TCG executes
 * @cpu: the vCPU
 * @config: what to do
 * @errp: why that cannot be had of this vCPU
 *
 * An observer calls it once a period, in the vCPU's thread.
 */
PmuSampler *pmu_sampler_new_observer(CPUState *cpu,
                                     const PmuSamplerConfig *config,
                                     Error **errp);

/**
 * pmu_sampler_new_clock - a sampler for the time that TCG takes
 * @cpu: the vCPU
 * @config: what to do
 * @errp: why that cannot be had of this vCPU
 *
 * A clock of the vCPU's thread calls it once a period, there.
 */
PmuSampler *pmu_sampler_new_clock(CPUState *cpu,
                                  const PmuSamplerConfig *config,
                                  Error **errp);

/**
 * pmu_sampler_new_kvm - a sampler for what KVM executes
 * @cpu: the vCPU
 * @config: what to do
 * @errp: why that cannot be had of this vCPU
 *
 * The host's kernel takes the samples, by a perf event on the vCPU's thread.
 */
PmuSampler *pmu_sampler_new_kvm(CPUState *cpu, const PmuSamplerConfig *config,
                                Error **errp);

#endif /* HW_PMU_PROFILE_SAMPLER_H */
