/*
 * Performance monitoring unit: a perf event of the host's, on a vCPU's thread
 *
 * The host's kernel counts, and leaves samples in a ring that it shares with
 * QEMU.
 *
 * Threads: any that holds the big lock, unless a function says otherwise.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_HOST_EVENT_H
#define HW_PMU_PROFILE_HOST_EVENT_H

#include <linux/perf_event.h>
#include "request.h"

/**
 * struct PmuHostEvent - a perf event of the host's
 * @attr: what it counts
 * @fd: the event; -1 while it is not open
 * @page: what the kernel says of the ring; NULL likewise
 * @ring: the ring, behind that
 * @size: of the ring, a power of 2
 * @seen: up to where pmu_host_event_look() has seen records
 * @lost: samples for which the kernel had no room, so far
 */
typedef struct PmuHostEvent {
    struct perf_event_attr attr;
    int fd;
    struct perf_event_mmap_page *page;
    const char *ring;
    size_t size;
    uint64_t seen;
    uint64_t lost;
} PmuHostEvent;

/**
 * struct PmuHostSample - a sample of the host's, or that there are none
 * @header: what kind of record, and where the thread was.  Samples begin to be
 *          missing with PERF_RECORD_THROTTLE, until PERF_RECORD_UNTHROTTLE.
 * @ip: where it was; only in samples
 * @time: when, by CLOCK_MONOTONIC
 * @period: for how many events it stands; only in samples
 */
typedef struct PmuHostSample {
    struct perf_event_header header;
    uint64_t ip;
    uint64_t time;
    uint64_t period;
} PmuHostSample;

/**
 * struct PmuHostCount - what a perf event has counted
 * @value: so many events
 * @enabled_ns: for how long the vCPU's thread has run
 * @running_ns: for how much of that the event had a counter
 */
typedef struct PmuHostCount {
    uint64_t value;
    uint64_t enabled_ns;
    uint64_t running_ns;
} PmuHostCount;

/**
 * pmu_host_event_init - choose what to count
 * @event: the event
 * @asked: what is asked of the profile; modes are the caller's
 * @errp: why the host's perf cannot have it
 *
 * What @asked does not say is all 0 in @attr, and the caller's, until it is
 * opened.
 *
 * Returns: whether it can be had.
 */
bool pmu_host_event_init(PmuHostEvent *event, const PmuProfileRequest *asked,
                         Error **errp);

/**
 * pmu_host_event_open - make it ready to count
 * @event: the event
 * @thread_id: the vCPU's thread
 * @index: the vCPU's number
 * @errp: why the host does not let us, and what would help
 */
bool pmu_host_event_open(PmuHostEvent *event, int thread_id, unsigned index,
                         Error **errp);

/**
 * pmu_host_event_enable - count, or stand still
 * @event: the event, which is open
 * @enabled: which of the two
 */
void pmu_host_event_enable(const PmuHostEvent *event, bool enabled);

/**
 * pmu_host_event_read - what it has counted so far
 * @event: the event, which is open
 * @count: set to that
 *
 * Returns: false if the event is out of order: it is pinned, and there was no
 * counter for it.
 */
bool pmu_host_event_read(const PmuHostEvent *event, PmuHostCount *count);

/**
 * pmu_host_event_look - see what is in the ring now, for pmu_host_event_next()
 * @event: the event; it need not be open
 *
 * In the thread that takes it out.
 */
void pmu_host_event_look(PmuHostEvent *event);

/**
 * pmu_host_event_next - take what is oldest out of the ring
 * @event: the event; it need not be open
 * @sample: set to it
 *
 * In one thread at a time.
 *
 * Returns: false if pmu_host_event_look() has seen no more of them.
 */
bool pmu_host_event_next(PmuHostEvent *event, PmuHostSample *sample);

/**
 * pmu_host_sample_of_guest - whether a sample was taken in the guest
 * @sample: the sample
 */
static inline bool pmu_host_sample_of_guest(const PmuHostSample *sample)
{
    unsigned mode = sample->header.misc & PERF_RECORD_MISC_CPUMODE_MASK;

    return mode == PERF_RECORD_MISC_GUEST_KERNEL
           || mode == PERF_RECORD_MISC_GUEST_USER;
}

/**
 * pmu_host_sample_of_user - whether it was taken in a user's program
 * @sample: a sample that was taken in the guest
 */
static inline bool pmu_host_sample_of_user(const PmuHostSample *sample)
{
    return (sample->header.misc & PERF_RECORD_MISC_CPUMODE_MASK)
           == PERF_RECORD_MISC_GUEST_USER;
}

/**
 * pmu_host_event_close - release it
 * @event: the event; it need not be open
 */
void pmu_host_event_close(PmuHostEvent *event);

#endif /* HW_PMU_PROFILE_HOST_EVENT_H */
