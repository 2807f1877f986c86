/*
 * Performance monitoring unit: samples of guests that TCG executes
 *
 * An observer calls the sampler once a period, in the vCPU's thread.  The
 * sample goes into a ring, and the vCPU goes on.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "qapi/error.h"
#include "system/tcg.h"
#include "hw/pmu/pmu-cpu.h"
#include "hw/pmu/pmu-observer.h"
#include "perf-events.h"
#include "sampler-ring.h"

/* The first period of a profile with a frequency: the event may be rare. */
#define FIRST_PERIOD 1

/**
 * struct ObserverSampler - a sampler that observes
 * @base: the common part
 * @event: the event
 * @observer: counts it; NULL while it is stopped
 * @owner: the owner of the block in which the period ends, if the block is
 *         executed to its end before the sample is taken
 * @sampled_ns: when it took the last sample; 0 if it has taken none
 */
typedef struct ObserverSampler {
    PmuRingSampler base;
    PmuEvent event;
    PmuObserver *observer;
    PmuSampleOwner owner;
    int64_t sampled_ns;
} ObserverSampler;

static ObserverSampler *observer_sampler(PmuSampler *s)
{
    return container_of(s, ObserverSampler, base.sampler);
}

/*
 * In the vCPU's thread
 */

/* Estimates how many events there are in 1 / frequency seconds. */
static void adapt_period(ObserverSampler *s, PmuObserver *observer,
                         uint64_t events, int64_t now)
{
    int64_t elapsed = MAX(now - s->sampled_ns, 1);
    int64_t wanted = NANOSECONDS_PER_SECOND
                     / s->base.sampler.config->asked.frequency;
    double factor = (double)wanted / elapsed;

    if (s->sampled_ns) {
        pmu_observer_set_period(observer,
                                MAX(1, events * CLAMP(factor, 0.125, 8.0)));
    }
    s->sampled_ns = now;
}

/* The block may end with a switch to another task. */
static void note_owner(void *opaque)
{
    ObserverSampler *s = opaque;

    s->owner = pmu_ring_sampler_owner(&s->base);
}

static void take_observer_sample(void *opaque, PmuObserver *observer,
                                 uint64_t events)
{
    ObserverSampler *s = opaque;
    int64_t now;

    if (!pmu_observer_is_late(observer)) {
        note_owner(s);
    }
    now = pmu_ring_sampler_take(&s->base, &s->owner, events);
    if (s->base.sampler.config->asked.frequency) {
        adapt_period(s, observer, events, now);
    }
}

/*
 * In the main loop
 */

static void observed_cpu_gone(void *opaque)
{
    ObserverSampler *s = opaque;

    s->observer = NULL;
}

static bool start_observer_sampler(PmuSampler *sampler, Error **errp)
{
    ObserverSampler *s = observer_sampler(sampler);
    const PmuProfileRequest *asked = &sampler->config->asked;
    const PmuObserverConfig config = {
        .owner = sampler->config->owner,
        .event = s->event,
        .modes = s->base.modes,
        .period = asked->frequency ? FIRST_PERIOD : asked->period,
        .branches = asked->branch_stack,
        .addresses = asked->data_address,
        .overflow = take_observer_sample,
        /* Callers are in registers; the block's branch and data come later. */
        .in_place = asked->callchain || asked->branch_stack
                    || asked->data_address,
        .prepare = note_owner,
        .gone = observed_cpu_gone,
        .opaque = s,
    };

    if (!s->observer) {
        s->sampled_ns = 0;
        s->observer = pmu_observer_new(sampler->cpu, &config, errp);
    }
    return s->observer;
}

static void stop_observer_sampler(PmuSampler *sampler)
{
    ObserverSampler *s = observer_sampler(sampler);

    g_clear_pointer(&s->observer, pmu_observer_free);
}

/* An event without a name in perf is written as a raw code. */
static void describe_observer_sampler(const PmuSampler *sampler,
                                      PmuStreamEvent *event)
{
    const ObserverSampler *s = container_of(sampler, ObserverSampler,
                                            base.sampler);

    event->exact = pmu_cpu_is_exact(first_cpu, s->event);
    event->data_source = event->data_address && first_cpu->pmu
                         && first_cpu->pmu->core;
    if (!pmu_perf_event(s->event, &event->type, &event->config)) {
        event->type = PMU_PERF_TYPE_RAW;
        event->config = s->event;
    }
}

static const PmuSamplerOps observer_ops = {
    .start = start_observer_sampler,
    .stop = stop_observer_sampler,
    .look = pmu_ring_sampler_look,
    .get = pmu_ring_sampler_get,
    .take_lost = pmu_ring_sampler_take_lost,
    .describe = describe_observer_sampler,
    .space_name = pmu_ring_sampler_space_name,
    .free = pmu_ring_sampler_free,
};

/*
 * The request, in the terms of a vCPU
 */

/* The vCPU says what a code means. */
static PmuEvent choose_observed_event(const CPUState *cpu,
                                      const PmuProfileRequest *r,
                                      Error **errp)
{
    ERRP_GUARD();
    PmuEvent event = r->named ?: pmu_guest_ops(cpu)->raw_event(cpu, r->code);

    if (!event) {
        error_setg(errp, "event=%s is not counted here", r->event);
        error_append_hint(errp, "The CPU's PMU, if it has one, defines the "
                          "codes; events also have names.\n");
    }
    return event;
}

static bool check_addresses(const CPUState *cpu, const PmuProfileRequest *r,
                            Error **errp)
{
    ERRP_GUARD();

    if (!r->data_address
        || (tcg_enabled() && pmu_tcg_can_note_addresses(cpu))) {
        return true;
    }
    error_setg(errp, "data-address=on: the instructions of this CPU are not "
               "known exactly");
    error_append_hint(errp, "They are on x86 with pmu-core, or if the CPU's "
                      "PMU has PEBS.\n");
    return false;
}

PmuSampler *pmu_sampler_new_observer(CPUState *cpu,
                                     const PmuSamplerConfig *config,
                                     Error **errp)
{
    g_autofree ObserverSampler *s = g_new0(ObserverSampler, 1);

    s->event = choose_observed_event(cpu, &config->asked, errp);
    if (!s->event || !check_addresses(cpu, &config->asked, errp)
        || !pmu_ring_sampler_init(&s->base, &observer_ops, cpu, config, errp)) {
        return NULL;
    }
    return &g_steal_pointer(&s)->base.sampler;
}
