/*
 * Performance monitoring unit: samples of the time that vCPUs take
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "qapi/error.h"
#include "system/kvm.h"
#include "hw/pmu/pmu-cpu.h"
#include "hw/pmu/pmu-clock.h"
#include "hw/pmu/pmu-monitor.h"
#include "sampler-ring.h"

/* Values of perf_event_attr */
#define PERF_TYPE_SOFTWARE      1
#define PERF_COUNT_SW_CPU_CLOCK 0

/**
 * struct ClockSampler - a sampler of time
 * @base: the common part
 * @clock: watches the time; NULL while it is stopped
 * @observer: shows it in the monitor
 * @sampled_ns: the time for which it has taken samples since it was started
 */
typedef struct ClockSampler {
    PmuRingSampler base;
    PmuClock *clock;
    PmuHostObserver observer;
    uint64_t sampled_ns;
} ClockSampler;

static ClockSampler *clock_sampler(PmuSampler *s)
{
    return container_of(s, ClockSampler, base.sampler);
}

/* Time in other modes is not sampled. */
static void take_clock_sample(void *opaque, uint64_t ns)
{
    ClockSampler *s = opaque;
    uint64_t pc;
    unsigned mode;

    pmu_cpu_where(s->base.sampler.cpu, &pc, &mode);
    if (s->base.modes >> mode & 1) {
        const PmuSampleOwner owner = pmu_ring_sampler_owner(&s->base);

        s->sampled_ns += ns;
        pmu_ring_sampler_take(&s->base, &owner, ns);
    }
}

static void clock_cpu_gone(void *opaque)
{
    ClockSampler *s = opaque;

    pmu_host_observer_remove(&s->observer);
    s->clock = NULL;
}

static uint64_t period_ns(const PmuProfileRequest *r)
{
    return r->frequency ? NANOSECONDS_PER_SECOND / r->frequency : r->period;
}

static PmuObserverInfo *describe_clock(const PmuHostObserver *observer)
{
    const ClockSampler *s = container_of(observer, ClockSampler, observer);
    const PmuSamplerConfig *config = s->base.sampler.config;
    PmuObserverInfo *info = g_new0(PmuObserverInfo, 1);

    info->owner = g_strdup(config->owner);
    info->event = g_strdup(config->asked.event);
    info->modes = pmu_mode_list(s->base.modes, pmu_guest_ops(observer->cpu));
    info->has_period = true;
    info->period = period_ns(&config->asked);
    info->count = s->sampled_ns;
    return info;
}

static bool start_clock_sampler(PmuSampler *sampler, Error **errp)
{
    ClockSampler *s = clock_sampler(sampler);
    const PmuClockConfig config = {
        .period_ns = period_ns(&sampler->config->asked),
        .sample = take_clock_sample,
        .gone = clock_cpu_gone,
        .opaque = s,
    };

    if (!s->clock) {
        s->sampled_ns = 0;
        s->clock = pmu_clock_new(sampler->cpu, &config, errp);
    }
    if (s->clock) {
        s->observer.cpu = sampler->cpu;
        pmu_host_observer_add(&s->observer);
    }
    return s->clock;
}

static void stop_clock_sampler(PmuSampler *sampler)
{
    ClockSampler *s = clock_sampler(sampler);

    pmu_host_observer_remove(&s->observer);
    g_clear_pointer(&s->clock, pmu_clock_free);
}

static void describe_clock_sampler(const PmuSampler *sampler,
                                   PmuStreamEvent *event)
{
    event->type = PERF_TYPE_SOFTWARE;
    event->config = PERF_COUNT_SW_CPU_CLOCK;
    event->exact = false;
}

static const PmuSamplerOps clock_ops = {
    .start = start_clock_sampler,
    .stop = stop_clock_sampler,
    .look = pmu_ring_sampler_look,
    .get = pmu_ring_sampler_get,
    .take_lost = pmu_ring_sampler_take_lost,
    .describe = describe_clock_sampler,
    .space_name = pmu_ring_sampler_space_name,
    .free = pmu_ring_sampler_free,
};

static bool check_clock_period(const PmuProfileRequest *r, Error **errp)
{
    ERRP_GUARD();

    if (period_ns(r) < PMU_CLOCK_MIN_NS) {
        error_setg(errp, "event=cpu-clock: the period must be at least %u ns",
                   PMU_CLOCK_MIN_NS);
        error_append_hint(errp, "Its period is in ns.\n");
    } else if (period_ns(r) > PMU_CLOCK_MAX_NS) {
        error_setg(errp, "event=cpu-clock: the period must be at most %llu ns",
                   PMU_CLOCK_MAX_NS);
        error_append_hint(errp, "Its period is in ns.\n");
    }
    return !*errp;
}

static bool check_place(const PmuGuestOps *ops, Error **errp)
{
    ERRP_GUARD();

    if (kvm_enabled() && !ops->kvm_mode) {
        error_setg(errp, "accounting=vcpu is not available for KVM's guests on "
                   "%s", ops->machine);
        error_append_hint(errp, "Use -accel tcg.\n");
        return false;
    }
    return true;
}

PmuSampler *pmu_sampler_new_clock(CPUState *cpu,
                                  const PmuSamplerConfig *config, Error **errp)
{
    g_autofree ClockSampler *s = g_new0(ClockSampler, 1);

    if (!check_place(pmu_guest_ops(cpu), errp)
        || !check_clock_period(&config->asked, errp)
        || !pmu_ring_sampler_init(&s->base, &clock_ops, cpu, config, errp)) {
        return NULL;
    }
    s->observer.describe = describe_clock;
    return &g_steal_pointer(&s)->base.sampler;
}
