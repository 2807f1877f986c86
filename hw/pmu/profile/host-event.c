/*
 * Performance monitoring unit: a perf event of the host's, on a vCPU's thread
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include <sys/ioctl.h>
#include <sys/mman.h>
#include "qapi/error.h"
#include "hw/pmu/pmu-host.h"
#include "host-event.h"
#include "perf-events.h"

/* Room for a few thousand samples; less if the user may not lock so much. */
#define MAX_RING_SIZE (256 * 1024)

/*
 * The ring
 */

/* Records in the layout of attr.sample_type; other kinds are skipped. */
typedef union Record {
    PmuHostSample sample;
    struct {
        struct perf_event_header header;
        uint64_t id;
        uint64_t count;
    } lost;
    struct {
        struct perf_event_header header;
        uint64_t time;
    } throttle;
} Record;

static void copy_out(const PmuHostEvent *e, uint64_t from, void *buf,
                     size_t size)
{
    size_t at = from & (e->size - 1);
    size_t first = MIN(size, e->size - at);

    memcpy(buf, e->ring + at, first);
    memcpy((char *)buf + first, e->ring, size - first);
}

/* This and next_record() use the ring as perf_event_open(2) requires. */
void pmu_host_event_look(PmuHostEvent *e)
{
    e->seen = e->page ? qatomic_read__nocheck(&e->page->data_head) : 0;
    smp_rmb(); /* between data_head and the data */
}

static bool next_record(PmuHostEvent *e, Record *r)
{
    uint64_t tail;

    if (!e->page) {
        return false;
    }
    tail = e->page->data_tail;
    if (e->seen == tail) {
        return false;
    }
    copy_out(e, tail, r, sizeof(r->sample.header));
    copy_out(e, tail, r, MIN(r->sample.header.size, sizeof(*r)));
    smp_mb(); /* between the data and data_tail */
    qatomic_set__nocheck(&e->page->data_tail, tail + r->sample.header.size);
    return true;
}

bool pmu_host_event_next(PmuHostEvent *e, PmuHostSample *sample)
{
    Record r;

    while (next_record(e, &r)) {
        switch (r.sample.header.type) {
        case PERF_RECORD_SAMPLE:
            *sample = r.sample;
            return true;
        case PERF_RECORD_THROTTLE:
        case PERF_RECORD_UNTHROTTLE:
            *sample = (PmuHostSample) {
                .header = r.throttle.header,
                .time = r.throttle.time,
            };
            return true;
        case PERF_RECORD_LOST:
            e->lost += r.lost.count;
            break;
        }
    }
    return false;
}

static bool map_ring(PmuHostEvent *e, size_t size)
{
    size_t page = qemu_real_host_page_size();
    void *map = mmap(NULL, page + size, PROT_READ | PROT_WRITE, MAP_SHARED,
                     e->fd, 0);

    if (map == MAP_FAILED) {
        return false;
    }
    e->page = map;
    e->ring = (char *)map + page;
    e->size = size;
    return true;
}

static bool map_largest_ring(PmuHostEvent *e, unsigned index, Error **errp)
{
    ERRP_GUARD();
    size_t page = qemu_real_host_page_size();

    for (size_t size = MAX_RING_SIZE; size >= page; size /= 2) {
        if (map_ring(e, size)) {
            return true;
        }
    }
    error_setg_errno(errp, errno, "There is no memory for samples of vCPU %u",
                     index);
    error_append_hint(errp, "Raise kernel.perf_event_mlock_kb, or the limit of "
                      "locked memory.\n");
    return false;
}

/*
 * The event
 */

static void refuse_event(const PmuHostEvent *e, int error, unsigned index,
                         Error **errp)
{
    ERRP_GUARD();

    error_setg_errno(errp, error, "The host takes no samples of vCPU %u",
                     index);
    if (error == EINVAL && e->attr.freq) {
        error_append_hint(errp, "frequency= can be at most the host's "
                          "kernel.perf_event_max_sample_rate.\n");
    } else {
        error_append_hint(errp, "%s", pmu_host_remedy(error));
    }
}

bool pmu_host_event_open(PmuHostEvent *e, int thread_id, unsigned index,
                         Error **errp)
{
    e->fd = pmu_host_open_event(&e->attr, thread_id, -1);
    if (e->fd < 0) {
        refuse_event(e, errno, index, errp);
        return false;
    }
    if (!map_largest_ring(e, index, errp)) {
        pmu_host_event_close(e);
        return false;
    }
    return true;
}

void pmu_host_event_close(PmuHostEvent *e)
{
    if (e->page) {
        munmap(e->page, qemu_real_host_page_size() + e->size);
        e->page = NULL;
    }
    if (e->fd >= 0) {
        close(e->fd);
        e->fd = -1;
    }
}

void pmu_host_event_enable(const PmuHostEvent *e, bool enabled)
{
    ioctl(e->fd, enabled ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

/* In the order of read_format; perf_event_open(2). */
bool pmu_host_event_read(const PmuHostEvent *e, PmuHostCount *count)
{
    return read(e->fd, count, sizeof(*count)) == sizeof(*count);
}

static bool choose_host_event(struct perf_event_attr *attr,
                              const PmuProfileRequest *r, Error **errp)
{
    ERRP_GUARD();
    uint32_t type = PMU_PERF_TYPE_RAW;
    uint64_t config = r->code;

    if (r->named && !pmu_perf_event(r->named, &type, &config)) {
        error_setg(errp, "event=%s: the host's perf has no name for it",
                   r->event);
        error_append_hint(errp, "Give its code, as the host's CPU has it: "
                          "rNNNN.\n");
        return false;
    }
    attr->type = type;
    attr->config = config;
    return true;
}

bool pmu_host_event_init(PmuHostEvent *e, const PmuProfileRequest *asked,
                         Error **errp)
{
    *e = (PmuHostEvent) {
        .fd = -1,
        .attr = {
            .size = sizeof(e->attr),
            .disabled = true,
            .exclude_hv = true,
            .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME
                           | PERF_SAMPLE_PERIOD,
            .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED
                           | PERF_FORMAT_TOTAL_TIME_RUNNING,
            .use_clockid = true,
            .clockid = CLOCK_MONOTONIC,
            .freq = asked->frequency != 0,
            .sample_period = asked->frequency ?: asked->period,
            /* With a mark of 0, the kernel wakes QEMU when it is half full. */
            .watermark = true,
        },
    };
    return choose_host_event(&e->attr, asked, errp);
}
