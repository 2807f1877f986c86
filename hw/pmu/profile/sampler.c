/*
 * Performance monitoring unit: samplers, which take the samples of a vCPU
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "system/kvm.h"
#include "hw/pmu/pmu-cpu.h"
#include "sampler.h"

PmuModes pmu_sampler_modes(const CPUState *cpu, const PmuProfileRequest *r,
                           Error **errp)
{
    const PmuGuestOps *ops = pmu_guest_ops(cpu);
    PmuModes modes = (1u << ops->nr_modes) - 1;

    if (r->nested != r->itself && !ops->nested_modes) {
        error_setg(errp, "modes=%s: these CPUs do not distinguish a guest from "
                   "its guests", r->modes);
        return 0;
    }
    modes &= ~((r->user ? 0 : ops->user_modes)
               | (r->nested ? 0 : ops->nested_modes));
    modes &= (r->kernel ? ~0 : ops->user_modes)
             & (r->itself ? ~0 : ops->nested_modes);
    return modes;
}

static bool check_modes_of_kvm(const PmuProfileRequest *r, Error **errp)
{
    ERRP_GUARD();

    if (r->nested && r->itself) {
        return true;
    }
    error_setg(errp, "modes=%s: the host does not distinguish a guest from its "
               "guests", r->modes);
    error_append_hint(errp, "Without G and H, both are sampled.\n");
    return false;
}

static PmuSampler *new_of_kind(CPUState *cpu, const PmuSamplerConfig *config,
                               Error **errp)
{
    if (kvm_enabled() ? !check_modes_of_kvm(&config->asked, errp)
                      : !pmu_cpu_check_emulated(errp)) {
        return NULL;
    }
    return config->asked.cpu_clock ? pmu_sampler_new_clock(cpu, config, errp)
           : kvm_enabled() ? pmu_sampler_new_kvm(cpu, config, errp)
           : pmu_sampler_new_observer(cpu, config, errp);
}

PmuSampler *pmu_sampler_new(CPUState *cpu, const PmuSamplerConfig *config,
                            Error **errp)
{
    PmuSampler *s = new_of_kind(cpu, config, errp);

    if (s) {
        s->config = config;
        s->cpu = cpu;
        s->index = cpu->cpu_index;
    }
    return s;
}

void pmu_sampler_free(PmuSampler *s)
{
    s->ops->free(s);
}

bool pmu_sampler_find_task(const PmuSampler *s, PmuTask *task)
{
    const PmuTaskPlace *tasks;

    RCU_READ_LOCK_GUARD();
    tasks = qatomic_rcu_read(&s->config->tasks);
    return tasks && pmu_guest_ops(s->cpu)->task(s->cpu, &tasks->layout, task);
}

bool pmu_sampler_start(PmuSampler *s, Error **errp)
{
    return s->ops->start(s, errp);
}

void pmu_sampler_stop(PmuSampler *s)
{
    s->ops->stop(s);
}

bool pmu_sampler_check(const PmuSampler *s, Error **errp)
{
    return !s->ops->check || s->ops->check(s, errp);
}

void pmu_sampler_forget_cpu(PmuSampler *s)
{
    pmu_sampler_stop(s);
    s->cpu = NULL;
}

void pmu_sampler_look(PmuSampler *s)
{
    s->ops->look(s);
}

bool pmu_sampler_get(PmuSampler *s, PmuSample *sample)
{
    return s->ops->get(s, sample);
}

uint64_t pmu_sampler_take_lost(PmuSampler *s)
{
    return s->ops->take_lost(s);
}

void pmu_sampler_describe(const PmuSampler *s, PmuStreamEvent *event)
{
    s->ops->describe(s, event);
}

char *pmu_sampler_space_name(const PmuSampler *s, const PmuGuestSpace *space)
{
    return s->ops->space_name(s, space);
}
