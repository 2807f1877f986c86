/*
 * Performance monitoring unit: from samples to the stream of a profile
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "writer.h"

/* Address spaces that get a pid of their own; the others share the last one. */
#define MAX_SPACES 65536

/*
 * Address spaces
 */

static guint hash_space(gconstpointer key)
{
    const PmuGuestSpace *space = key;

    return g_int64_hash(&space->guest) * 31 + g_int64_hash(&space->id);
}

static gboolean equal_spaces(gconstpointer a, gconstpointer b)
{
    return !memcmp(a, b, sizeof(PmuGuestSpace));
}

static void announce_space(PmuWriter *w, const PmuSampler *s, uint32_t pid)
{
    const PmuGuestSpace *space = &w->sample.space;
    g_autofree char *name = pmu_sampler_space_name(s, space);

    pmu_stream_comm(&w->stream, pid, pid,
                    pid == MAX_SPACES ? "others" : name, w->sample.time_ns);
    if (space->guest) {
        pmu_stream_nested(&w->stream, pid, w->sample.time_ns);
    }
}

static uint32_t pid_of_sample(PmuWriter *w, const PmuSampler *s)
{
    const PmuGuestSpace *space = &w->sample.space;
    uint32_t pid = GPOINTER_TO_UINT(g_hash_table_lookup(w->pids, space));

    if (pid) {
        return pid;
    }
    pid = g_hash_table_size(w->pids) + 1;
    if (pid <= MAX_SPACES) {
        g_hash_table_insert(w->pids, g_memdup2(space, sizeof(*space)),
                            GUINT_TO_POINTER(pid));
        announce_space(w, s, pid);
    }
    return MIN(pid, MAX_SPACES);
}

/*
 * Samples
 */

static void write_sample(PmuWriter *w, const PmuSampler *s)
{
    uint32_t pid = pid_of_sample(w, s);
    const PmuStreamSample sample = {
        .ip = w->sample.ip,
        .user = w->sample.user,
        .nested = w->sample.space.guest,
        .pid = pid,
        .tid = pid,
        .cpu = s->index,
        .time_ns = w->sample.time_ns,
        .period = w->sample.period,
        .callers = w->sample.callers,
        .nr_callers = w->sample.nr_callers,
    };

    pmu_stream_sample(&w->stream, &sample);
    w->samples++;
}

static void report_lost(PmuWriter *w, PmuSampler *s)
{
    uint64_t lost = pmu_sampler_take_lost(s);

    if (lost && w->streaming) {
        w->lost += lost;
        pmu_stream_lost(&w->stream, s->index, lost,
                        pmu_profile_clock_now(w->clock));
    }
}

bool pmu_writer_is_full(const PmuWriter *w)
{
    return w->max_size && w->size + w->stream.out->len >= w->max_size;
}

void pmu_writer_empty(PmuWriter *w, PmuSampler *s)
{
    while (!pmu_writer_is_full(w) && pmu_sampler_get(s, &w->sample)) {
        if (w->streaming) {
            write_sample(w, s);
        }
    }
    report_lost(w, s);
}

/*
 * The guest's kernel
 */

/* A guest that reads knows its own kernel, if it has not told. */
static void tell_guest_its_kernel(PmuWriter *w)
{
    if (w->asks_guest && pmu_guest_kernel_find(&w->kernel)) {
        pmu_stream_kernel(&w->stream, &w->kernel, 0);
    } else {
        pmu_stream_readers_kernel(&w->stream, 0);
    }
}

/*
 * What the user says; or nothing, of a guest that has no way to tell.  perf
 * finds it ahead of all samples.
 */
static void tell_known_kernel(PmuWriter *w)
{
    if (w->is_guests && (w->asks_guest || !w->kernel.text)) {
        tell_guest_its_kernel(w);
    } else if (!w->asks_guest) {
        pmu_stream_kernel(&w->stream, &w->kernel, 0);
    }
}

/* Linux tells when its driver qemu_fw_cfg is loaded. */
void pmu_writer_ask_kernel(PmuWriter *w, int64_t since_ns)
{
    if (w->streaming && !w->stream.has_kernel && w->asks_guest
        && pmu_guest_kernel_find(&w->kernel)) {
        pmu_stream_kernel(&w->stream, &w->kernel, since_ns);
    }
}

bool pmu_writer_depends_on_kernel(const PmuWriter *w)
{
    return w->streaming && w->stream.has_kernel && w->asks_guest;
}

static bool is_same_kernel(const PmuGuestKernel *a, const PmuGuestKernel *b)
{
    return a->text == b->text && g_str_equal(a->release, b->release)
           && !memcmp(a->build_id, b->build_id, sizeof(a->build_id));
}

bool pmu_writer_has_other_kernel(const PmuWriter *w)
{
    PmuGuestKernel now;

    return pmu_writer_depends_on_kernel(w)
           && !(pmu_guest_kernel_find(&now)
                && is_same_kernel(&now, &w->kernel));
}

/*
 * The stream
 */

void pmu_writer_begin(PmuWriter *w, const PmuStreamEvent *event,
                      const char *machine)
{
    g_hash_table_remove_all(w->pids);
    w->streaming = true;
    w->size = 0;
    pmu_stream_begin(&w->stream, w->stream.out, event, machine);
    tell_known_kernel(w);
}

void pmu_writer_end(PmuWriter *w)
{
    w->streaming = false;
    g_byte_array_set_size(w->stream.out, 0);
}

GByteArray *pmu_writer_take(PmuWriter *w)
{
    GByteArray *bytes = w->stream.out;

    if (!w->streaming || !bytes->len) {
        return NULL;
    }
    pmu_stream_round(&w->stream);
    w->size += bytes->len;
    w->stream.out = g_byte_array_new();
    return bytes;
}

void pmu_writer_init(PmuWriter *w, const PmuProfileClock *clock)
{
    w->clock = clock;
    w->stream.out = g_byte_array_new();
    w->pids = g_hash_table_new_full(hash_space, equal_spaces, g_free, NULL);
}

void pmu_writer_destroy(PmuWriter *w)
{
    g_hash_table_unref(w->pids);
    g_byte_array_unref(w->stream.out);
}
