/*
 * Performance monitoring unit: samples that vCPUs take by themselves
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/pmu-cpu.h"
#include "hw/pmu/pmu-observer.h"
#include "sampler-ring.h"

/* The size of each vCPU's ring, in words */
#define RING_SIZE (1u << 18)

/*
 * An instruction that changes the mode, such as a system call, also leaves its
 * stack: its callers can no longer be found.
 */
static unsigned find_callers(const PmuRingSampler *s, unsigned mode,
                             uint64_t *callers)
{
    CPUState *cpu = s->sampler.cpu;
    unsigned max = s->sampler.config->asked.callchain;

    return max && mode == pmu_cpu_mode(cpu)
           ? pmu_guest_ops(cpu)->callchain(cpu, callers, max) : 0;
}

static unsigned find_branches(const PmuRingSampler *s, PmuBranch *branches)
{
    return s->sampler.config->asked.branch_stack
           ? pmu_observer_branches(s->sampler.cpu, branches, PMU_RECORDER_MAX)
           : 0;
}

PmuSampleOwner pmu_ring_sampler_owner(const PmuRingSampler *s)
{
    CPUState *cpu = s->sampler.cpu;
    PmuSampleOwner owner = { .space = pmu_guest_ops(cpu)->space(cpu) };

    owner.has_task = pmu_sampler_find_task(&s->sampler, &owner.task);
    return owner;
}

static void fill_in(const PmuRingSampler *s, PmuSample *sample,
                    const PmuSampleOwner *owner, uint64_t events)
{
    CPUState *cpu = s->sampler.cpu;
    const PmuGuestOps *ops = pmu_guest_ops(cpu);
    unsigned mode;

    pmu_cpu_where(cpu, &sample->ip, &mode);
    sample->time_ns = pmu_profile_clock_now(&s->sampler.config->clock);
    sample->period = events;
    sample->user = ops->user_modes >> mode & 1;
    sample->space = owner->space;
    sample->has_task = owner->has_task;
    sample->task = owner->task;
    sample->nr_callers = find_callers(s, mode, sample->callers);
    sample->nr_branches = find_branches(s, sample->branches);
    sample->has_access = s->sampler.config->asked.data_address
                         && pmu_observer_access(cpu, &sample->access);
}

int64_t pmu_ring_sampler_take(PmuRingSampler *s, const PmuSampleOwner *owner,
                              uint64_t events)
{
    PmuSample sample;

    fill_in(s, &sample, owner, events);
    if (pmu_ring_put(s->ring, &sample)) {
        qemu_bh_schedule(s->sampler.config->drain);
    }
    return sample.time_ns;
}

void pmu_ring_sampler_look(PmuSampler *sampler)
{
    pmu_ring_look(pmu_ring_sampler_of(sampler)->ring);
}

bool pmu_ring_sampler_get(PmuSampler *sampler, PmuSample *sample)
{
    return pmu_ring_get(pmu_ring_sampler_of(sampler)->ring, sample);
}

uint64_t pmu_ring_sampler_take_lost(PmuSampler *sampler)
{
    return pmu_ring_take_lost(pmu_ring_sampler_of(sampler)->ring);
}

char *pmu_ring_sampler_space_name(const PmuSampler *sampler,
                                  const PmuGuestSpace *space)
{
    return pmu_guest_ops(first_cpu)->space_name(space);
}

void pmu_ring_sampler_free(PmuSampler *sampler)
{
    PmuRingSampler *s = pmu_ring_sampler_of(sampler);

    pmu_ring_free(s->ring);
    g_free(s);
}

bool pmu_ring_sampler_init(PmuRingSampler *s, const PmuSamplerOps *ops,
                           const CPUState *cpu, const PmuSamplerConfig *config,
                           Error **errp)
{
    s->modes = pmu_sampler_modes(cpu, &config->asked, errp);
    if (!s->modes) {
        return false;
    }
    s->sampler.ops = ops;
    s->ring = pmu_ring_new(RING_SIZE);
    return true;
}
