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
 * @attr: the event, as perf_event_open(2) takes it
 * @fd: its file descriptor; -1 while it is not open
 * @page: the kernel's description of the ring; NULL while it is not open
 * @ring: the ring, which follows @page
 * @size: the size of the ring, a power of 2
 * @seen: how far pmu_host_event_look() has seen records
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
 * struct PmuHostSample - a sample of the host's, or the beginning of a gap
 * @header: the kind of record, and where the thread was.  There are no samples
 *          from PERF_RECORD_THROTTLE to PERF_RECORD_UNTHROTTLE.
 * @ip: the address at which the thread was; only in samples
 * @time: the time, by CLOCK_MONOTONIC
 * @period: for how many events it stands; only in samples
 */
typedef struct PmuHostSample {
    struct perf_event_header header;
    uint64_t ip;
    uint64_t time;
    uint64_t period;
} PmuHostSample;

/**
 * struct PmuHostCount - the count of a perf event
 * @value: how many events it has counted
 * @enabled_ns: for how long the vCPU's thread has run
 * @running_ns: for how much of that the event had a counter
 */
typedef struct PmuHostCount {
    uint64_t value;
    uint64_t enabled_ns;
    uint64_t running_ns;
} PmuHostCount;

/**
 * pmu_host_event_init - choose the event to count
 * @event: the event
 * @asked: the request; its modes are left to the caller
 * @errp: set if the host's perf does not have the event
 *
 * Fields of @attr that @asked does not determine are 0; the caller may set
 * them until the event is opened.
 *
 * Returns: whether the host's perf has the event.
 */
bool pmu_host_event_init(PmuHostEvent *event, const PmuProfileRequest *asked,
                         Error **errp);

/**
 * pmu_host_event_open - make it ready to count
 * @event: the event
 * @thread_id: the vCPU's thread
 * @index: the vCPU's number
 * @errp: why the host refuses, and a remedy
 */
bool pmu_host_event_open(PmuHostEvent *event, int thread_id, unsigned index,
                         Error **errp);

/**
 * pmu_host_event_enable - start an event, or stop it
 * @event: the event, which is open
 * @enabled: which of the two
 */
void pmu_host_event_enable(const PmuHostEvent *event, bool enabled);

/**
 * pmu_host_event_read - read the count of an event
 * @event: the event, which is open
 * @count: set to its count
 *
 * Returns: false if the event is out of order: it is pinned, and there was no
 * counter for it.
 */
bool pmu_host_event_read(const PmuHostEvent *event, PmuHostCount *count);

/**
 * pmu_host_event_look - find the records that are in the ring now
 * @event: the event; it need not be open
 *
 * pmu_host_event_next() returns these.  Both are called in the same thread.
 */
void pmu_host_event_look(PmuHostEvent *event);

/**
 * pmu_host_event_next - take the oldest record out of the ring
 * @event: the event; it need not be open
 * @sample: set to it
 *
 * In one thread at a time.
 *
 * Returns: false if all that pmu_host_event_look() has seen were taken.
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
 * pmu_host_event_close - close an event
 * @event: the event; it need not be open
 */
void pmu_host_event_close(PmuHostEvent *event);

#endif /* HW_PMU_PROFILE_HOST_EVENT_H */
