/*
 * Performance monitoring unit: samples of guests that KVM executes
 *
 * The host's kernel takes the samples, by a perf event that counts in the guest
 * only.  A sample has the guest's address, and says whether that is in the
 * kernel, but the host's kernel does not know the guest's address spaces.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include <poll.h>
#include "qapi/error.h"
#include "hw/pmu/pmu-monitor.h"
#include "host-event.h"
#include "sampler.h"

/**
 * struct KvmSampler - a sampler by an event of the host's
 * @sampler: the part that all samplers begin with
 * @event: the event
 * @modes: the modes in which it counts
 * @observer: shows it in the monitor
 * @lost: samples without a place in the guest, since the last take_lost()
 */
typedef struct KvmSampler {
    PmuSampler sampler;
    PmuHostEvent event;
    PmuModes modes;
    PmuHostObserver observer;
    uint64_t lost;
} KvmSampler;

static KvmSampler *kvm_sampler(PmuSampler *s)
{
    return container_of(s, KvmSampler, sampler);
}

static PmuSampleKind kind_of_host_sample(const PmuHostSample *found)
{
    switch (found->header.type) {
    case PERF_RECORD_THROTTLE:
        return PMU_SAMPLE_THROTTLED;
    case PERF_RECORD_UNTHROTTLE:
        return PMU_SAMPLE_UNTHROTTLED;
    default:
        return PMU_SAMPLE_TAKEN;
    }
}

/* A sample taken after the guest was left has no place in the guest. */
static bool next_of_guest(KvmSampler *s, PmuHostSample *found)
{
    while (pmu_host_event_next(&s->event, found)) {
        if (kind_of_host_sample(found) != PMU_SAMPLE_TAKEN
            || pmu_host_sample_of_guest(found)) {
            return true;
        }
        s->lost++;
    }
    return false;
}

static uint64_t take_lost(PmuSampler *sampler)
{
    KvmSampler *s = kvm_sampler(sampler);
    uint64_t lost = s->lost + s->event.lost;

    s->lost = 0;
    s->event.lost = 0;
    return lost;
}

static void look_at_kvm_sampler(PmuSampler *sampler)
{
    pmu_host_event_look(&kvm_sampler(sampler)->event);
}

static bool get(PmuSampler *sampler, PmuSample *sample)
{
    KvmSampler *s = kvm_sampler(sampler);
    PmuHostSample found;

    if (!next_of_guest(s, &found)) {
        return false;
    }
    sample->kind = kind_of_host_sample(&found);
    sample->lost = take_lost(sampler);
    sample->ip = found.ip;
    sample->space = (PmuGuestSpace) { };
    sample->time_ns = pmu_profile_clock_of_host(&sampler->config->clock,
                                                found.time);
    sample->period = found.period;
    sample->user = pmu_host_sample_of_user(&found);
    sample->nr_callers = 0;
    sample->nr_branches = 0;
    sample->has_access = false;
    return true;
}

/*
 * POLLHUP or POLLERR means that the vCPU's thread has ended, or that the event
 * is out of order.  No more samples follow then.
 */
static void ring_is_half_full(void *opaque)
{
    KvmSampler *s = opaque;
    struct pollfd fd = { .fd = s->event.fd };

    if (poll(&fd, 1, 0) > 0 && fd.revents & (POLLHUP | POLLERR)) {
        qemu_set_fd_handler(s->event.fd, NULL, NULL, NULL);
    }
    qemu_bh_schedule(s->sampler.config->drain);
}

static void fill_in_kvm_sample(const KvmSampler *s, const PmuHostCount *count,
                               PmuObserverInfo *info)
{
    const PmuProfileRequest *asked = &s->sampler.config->asked;

    info->owner = g_strdup(s->sampler.config->owner);
    info->event = g_strdup(asked->event);
    info->modes = pmu_mode_list(s->modes, pmu_guest_ops(s->observer.cpu));
    info->has_period = asked->period;
    info->period = asked->period;
    info->count = count->value;
    info->has_enabled_ns = true;
    info->enabled_ns = count->enabled_ns;
    info->has_running_ns = true;
    info->running_ns = count->running_ns;
}

static PmuObserverInfo *describe_kvm_observer(const PmuHostObserver *observer)
{
    const KvmSampler *s = container_of(observer, KvmSampler, observer);
    PmuObserverInfo *info;
    PmuHostCount count;

    if (!pmu_host_event_read(&s->event, &count)) {
        return NULL;
    }
    info = g_new0(PmuObserverInfo, 1);
    fill_in_kvm_sample(s, &count, info);
    return info;
}

static bool open_once(KvmSampler *s, Error **errp)
{
    if (s->event.fd < 0) {
        if (!pmu_host_event_open(&s->event, s->sampler.cpu->thread_id,
                                 s->sampler.index, errp)) {
            return false;
        }
        qemu_set_fd_handler(s->event.fd, ring_is_half_full, NULL, s);
    }
    return true;
}

static bool start_kvm_sampler(PmuSampler *sampler, Error **errp)
{
    KvmSampler *s = kvm_sampler(sampler);

    if (!open_once(s, errp)) {
        return false;
    }
    pmu_host_event_enable(&s->event, true);
    s->observer.cpu = sampler->cpu;
    pmu_host_observer_add(&s->observer);
    return true;
}

static void stop_kvm_sampler(PmuSampler *sampler)
{
    KvmSampler *s = kvm_sampler(sampler);

    pmu_host_observer_remove(&s->observer);
    if (s->event.fd >= 0) {
        pmu_host_event_enable(&s->event, false);
    }
}

/* Only a pinned event can fail like that; others wait for their turn. */
static bool check_kvm_sampler(const PmuSampler *sampler, Error **errp)
{
    const KvmSampler *s = container_of(sampler, KvmSampler, sampler);
    PmuHostCount count;

    if (!s->event.attr.pinned || s->event.fd < 0
        || pmu_host_event_read(&s->event, &count)) {
        return true;
    }
    error_setg(errp, "The host has no counter left for event=%s of vCPU %u",
               sampler->config->asked.event, sampler->index);
    return false;
}

static void describe_kvm_sampler(const PmuSampler *sampler,
                                 PmuStreamEvent *event)
{
    const KvmSampler *s = container_of(sampler, KvmSampler, sampler);

    event->type = s->event.attr.type;
    event->config = s->event.attr.config;
}

static char *space_name(const PmuSampler *sampler, const PmuGuestSpace *space)
{
    return g_strdup("guest");
}

static void free_kvm(PmuSampler *sampler)
{
    KvmSampler *s = kvm_sampler(sampler);

    if (s->event.fd >= 0) {
        qemu_set_fd_handler(s->event.fd, NULL, NULL, NULL);
    }
    pmu_host_event_close(&s->event);
    g_free(s);
}

static const PmuSamplerOps kvm_ops = {
    .start = start_kvm_sampler,
    .stop = stop_kvm_sampler,
    .check = check_kvm_sampler,
    .look = look_at_kvm_sampler,
    .get = get,
    .take_lost = take_lost,
    .describe = describe_kvm_sampler,
    .space_name = space_name,
    .free = free_kvm,
};

static bool check_possible(const PmuGuestOps *ops, const PmuProfileRequest *r,
                           Error **errp)
{
    ERRP_GUARD();

    if (!ops->counted_by_host) {
        error_setg(errp, "KVM's guests cannot be sampled here: they have the "
                   "PMU for themselves");
        error_append_hint(errp, "Use -accel tcg, or perf in the guest.\n");
    } else if (r->callchain) {
        error_setg(errp, "callchain=%u: the host cannot follow the "
                   "calls of a guest", r->callchain);
        error_append_hint(errp, "Callers are known with -accel tcg.\n");
    } else if (r->branch_stack) {
        error_setg(errp, "branch-stack=on: the host does not report the "
                   "branches of a guest");
        error_append_hint(errp, "They are known with -accel tcg.\n");
    } else if (r->data_address) {
        error_setg(errp, "data-address=on: the host does not report a "
                   "guest's accesses");
        error_append_hint(errp, "Addresses are known with -accel tcg.\n");
    }
    return !*errp;
}

PmuSampler *pmu_sampler_new_kvm(CPUState *cpu, const PmuSamplerConfig *config,
                                Error **errp)
{
    g_autofree KvmSampler *s = g_new0(KvmSampler, 1);
    const PmuProfileRequest *r = &config->asked;

    if (!check_possible(pmu_guest_ops(cpu), r, errp)
        || !pmu_host_event_init(&s->event, r, errp)) {
        return NULL;
    }
    s->sampler.ops = &kvm_ops;
    s->modes = pmu_sampler_modes(cpu, r, &error_abort);
    s->observer.describe = describe_kvm_observer;
    s->event.attr.pinned = pmu_guest_host_first(cpu);
    s->event.attr.exclude_host = true;
    s->event.attr.exclude_user = !r->user;
    s->event.attr.exclude_kernel = !r->kernel;
    return &g_steal_pointer(&s)->sampler;
}
