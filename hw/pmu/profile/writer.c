/*
 * Performance monitoring unit: from samples to the stream of a profile
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "hw/pmu/pmu-monitor.h"
#include "writer.h"

/* After the first sample with its name, a task counts as new for so long. */
#define BEGINNING_NS NANOSECONDS_PER_SECOND

/* So many address spaces get a pid of their own; all others share one. */
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

/* If the guest reads, pids of tasks come first, and pids of spaces follow. */
static uint32_t first_pid(const PmuWriter *w)
{
    return w->is_guests ? PMU_TASK_MAX_PID : 0;
}

static void announce_space(PmuWriter *w, const PmuSampler *s, uint32_t pid)
{
    const PmuGuestSpace *space = &w->sample.space;
    g_autofree char *name = pmu_sampler_space_name(s, space);

    pmu_stream_comm(&w->stream, pid, pid,
                    pid == MAX_SPACES + first_pid(w) ? "others" : name,
                    w->sample.time_ns);
    if (space->guest) {
        pmu_stream_nested(&w->stream, pid, w->sample.time_ns);
    }
}

static uint32_t pid_of_sample(PmuWriter *w, const PmuSampler *s)
{
    const PmuGuestSpace *space = &w->sample.space;
    uint32_t last = first_pid(w) + MAX_SPACES;
    uint32_t pid = GPOINTER_TO_UINT(g_hash_table_lookup(w->pids, space));

    if (pid) {
        return pid;
    }
    pid = first_pid(w) + g_hash_table_size(w->pids) + 1;
    if (pid <= last) {
        g_hash_table_insert(w->pids, g_memdup2(space, sizeof(*space)),
                            GUINT_TO_POINTER(pid));
        announce_space(w, s, pid);
    }
    return MIN(pid, last);
}

/*
 * Tasks, which the guest reports
 */

static uint64_t time_of(const PmuWriter *w, uint64_t age_ns)
{
    uint64_t now = pmu_profile_clock_now(w->clock);

    return now - MIN(age_ns, now);
}

/**
 * struct Name - the name of a task
 * @since_ns: the time of its first sample with that name
 * @text: the name; empty if it is not known yet
 */
typedef struct Name {
    uint64_t since_ns;
    char text[PMU_TASK_COMM + 1];
} Name;

/**
 * struct Names - the names of a task
 * @forked_ns: when it began; 0 if that is not known
 * @now: its present name
 * @before: its previous name
 */
typedef struct Names {
    uint64_t forked_ns;
    Name now, before;
} Names;

static Names *names_of(PmuWriter *w, uint32_t tid)
{
    gpointer key = GUINT_TO_POINTER(tid);
    Names *names = g_hash_table_lookup(w->names, key);

    if (!names) {
        if (g_hash_table_size(w->names) >= MAX_SPACES) {
            g_hash_table_remove_all(w->names);
        }
        names = g_new0(Names, 1);
        g_hash_table_insert(w->names, key, names);
    }
    return names;
}

static bool is_called(const PmuTask *task, const Name *name)
{
    return !memcmp(name->text, task->comm, sizeof(task->comm));
}

/* @since_ns: the time from which on the task has that name in the stream */
static void call_task(PmuWriter *w, const PmuTask *task, Name *name,
                      uint64_t since_ns)
{
    name->since_ns = w->sample.time_ns;
    memcpy(name->text, task->comm, sizeof(task->comm));
    pmu_stream_comm(&w->stream, task->pid, task->tid, name->text, since_ns);
}

/*
 * A new task may have been sampled earlier on a vCPU whose samples are written
 * later, but not before @taken_ns: all samples from before that were written.
 */
static uint64_t named_since(const PmuWriter *w, const Names *names)
{
    return names->now.text[0] ? w->sample.time_ns
                              : MIN(w->sample.time_ns,
                                    MAX(w->taken_ns, names->forked_ns));
}

static void rename_task(PmuWriter *w, const PmuTask *task, Names *names)
{
    uint64_t since_ns = named_since(w, names);

    names->before = names->now;
    call_task(w, task, &names->now, since_ns);
}

/*
 * The stream may already have the present name for a time before its first
 * sample.  So it is written again, after the previous name and ahead of that
 * sample.
 */
static void name_task_before(PmuWriter *w, const PmuTask *task, Names *names)
{
    if (is_called(task, &names->before)
        && w->sample.time_ns >= names->before.since_ns) {
        return;
    }
    call_task(w, task, &names->before, w->sample.time_ns);
    pmu_stream_comm(&w->stream, task->pid, task->tid, names->now.text,
                    names->now.since_ns - 1);
}

/*
 * The known name may be newer than the sample: samples are written one vCPU
 * after the other, and a task that begins a program may move to another vCPU.
 */
static void announce_task(PmuWriter *w, const PmuTask *task)
{
    Names *names = names_of(w, task->tid);
    bool is_older = w->sample.time_ns < names->now.since_ns;

    if (!is_called(task, &names->now)) {
        (is_older ? name_task_before : rename_task)(w, task, names);
    } else if (is_older) {
        call_task(w, task, &names->now, w->sample.time_ns);
    }
}

/*
 * The guest's messages arrive late: if the task was sampled meanwhile, it began
 * before that sample.
 */
static bool was_sampled(const Name *name, uint64_t said_ns)
{
    return name->text[0] && name->since_ns < said_ns
           && said_ns - name->since_ns < BEGINNING_NS;
}

static uint64_t begun_at(const Name *name, uint64_t said_ns)
{
    return was_sampled(name, said_ns) ? name->since_ns - 1 : said_ns;
}

/* A program that begins names its task before it executes anything. */
static uint64_t mapped_at(PmuWriter *w, const PmuTalkMap *map)
{
    const Names *names = names_of(w, map->pid);
    g_autofree char *program = g_path_get_basename(map->path);
    uint64_t said_ns = time_of(w, map->age_ns);

    return strncmp(names->now.text, program, PMU_TASK_COMM - 1)
           ? said_ns : MAX(begun_at(&names->now, said_ns), names->forked_ns);
}

void pmu_writer_map(PmuWriter *w, const PmuTalkMap *map)
{
    const PmuStreamMap written = {
        .pid = map->pid,
        .start = map->start,
        .length = map->length,
        .offset = map->offset,
        .name = map->path,
        .time_ns = mapped_at(w, map),
    };

    pmu_stream_map(&w->stream, &written);
}

/* perf gives it the parent's name now, so a known name is written again. */
void pmu_writer_fork(PmuWriter *w, const PmuTalkFork *fork)
{
    Names *names = names_of(w, fork->pid);
    uint64_t said_ns = time_of(w, fork->age_ns);
    const Name *first = was_sampled(&names->before, said_ns) ? &names->before
                                                             : &names->now;

    names->forked_ns = begun_at(first, said_ns);
    pmu_stream_fork(&w->stream, fork->pid, fork->parent, names->forked_ns);
    if (first->text[0]) {
        pmu_stream_comm(&w->stream, fork->pid, fork->pid, first->text,
                        names->forked_ns);
    }
}

void pmu_writer_error(PmuWriter *w, const char *message)
{
    pmu_stream_error(&w->stream, message, pmu_profile_clock_now(w->clock));
}

/*
 * Samples
 */

/* Without a task, the address space stands for a process with one thread. */
static PmuTask task_of_sample(PmuWriter *w, const PmuSampler *s)
{
    uint32_t pid;

    if (w->is_guests && w->sample.has_task) {
        announce_task(w, &w->sample.task);
        return w->sample.task;
    }
    pid = pid_of_sample(w, s);
    return (PmuTask) { .pid = pid, .tid = pid };
}

static void write_sample(PmuWriter *w, const PmuSampler *s)
{
    PmuTask task = task_of_sample(w, s);
    const PmuStreamSample sample = {
        .ip = w->sample.ip,
        .user = w->sample.user,
        .nested = w->sample.space.guest,
        .pid = task.pid,
        .tid = task.tid,
        .cpu = s->index,
        .time_ns = w->sample.time_ns,
        .period = w->sample.period,
        .callers = w->sample.callers,
        .nr_callers = w->sample.nr_callers,
        .branches = w->sample.branches,
        .nr_branches = w->sample.nr_branches,
        .access = w->sample.has_access ? &w->sample.access : NULL,
    };

    pmu_stream_sample(&w->stream, &sample);
    w->samples++;
}

static void write_throttle(PmuWriter *w, const PmuSampler *s)
{
    bool throttled = w->sample.kind == PMU_SAMPLE_THROTTLED;

    w->throttled += throttled;
    pmu_stream_throttle(&w->stream, s->index, throttled, w->sample.time_ns);
}

static void report_lost(PmuWriter *w, const PmuSampler *s, uint64_t lost,
                        int64_t time_ns)
{
    if (lost) {
        w->lost += lost;
        pmu_stats_lost_samples(s->index, lost);
        pmu_stream_lost(&w->stream, s->index, lost, time_ns);
    }
}

static void write_what_is_told(PmuWriter *w, const PmuSampler *s)
{
    report_lost(w, s, w->sample.lost, w->sample.time_ns);
    if (w->sample.kind == PMU_SAMPLE_TAKEN) {
        write_sample(w, s);
    } else {
        write_throttle(w, s);
    }
}

bool pmu_writer_is_full(const PmuWriter *w)
{
    return w->max_size && w->size + w->stream.out->len >= w->max_size;
}

void pmu_writer_empty(PmuWriter *w, PmuSampler *s)
{
    pmu_sampler_look(s);
    while (!pmu_writer_is_full(w) && pmu_sampler_get(s, &w->sample)) {
        if (w->streaming) {
            write_what_is_told(w, s);
        }
    }
}

void pmu_writer_empty_to_end(PmuWriter *w, PmuSampler *s)
{
    uint64_t lost;

    pmu_writer_empty(w, s);
    lost = pmu_sampler_take_lost(s);
    if (w->streaming && !pmu_writer_is_full(w)) {
        report_lost(w, s, lost, pmu_profile_clock_now(w->clock));
    }
}

/*
 * The guest's kernel
 */

/* A reader in the guest can use the symbols of the kernel that it runs on. */
static void tell_guest_its_kernel(PmuWriter *w)
{
    if (w->asks_guest && pmu_guest_kernel_find(&w->kernel)) {
        pmu_stream_kernel(&w->stream, &w->kernel, 0);
    } else {
        pmu_stream_readers_kernel(&w->stream, 0);
    }
}

/*
 * Writes the kernel that the user has named, or an unknown kernel if the guest
 * has no way to name one.  perf finds it ahead of all samples.
 */
static void tell_known_kernel(PmuWriter *w)
{
    if (w->is_guests && (w->asks_guest || !w->kernel.text)) {
        tell_guest_its_kernel(w);
    } else if (!w->asks_guest) {
        pmu_stream_kernel(&w->stream, &w->kernel, 0);
    }
}

/* Linux reports its kernel once its driver qemu_fw_cfg is loaded. */
void pmu_writer_ask_kernel(PmuWriter *w, int64_t since_ns)
{
    if (w->streaming && !w->stream.has_kernel && w->asks_guest
        && pmu_guest_kernel_find(&w->kernel)) {
        pmu_stream_kernel(&w->stream, &w->kernel, since_ns);
    }
}

static bool is_known_kernel(const PmuGuestKernel *kernel)
{
    return kernel->text || kernel->build_id_size;
}

/* The kernel that the user has named is also written for later readers. */
bool pmu_writer_depends_on_kernel(const PmuWriter *w)
{
    bool told = !w->is_guests && w->streaming && w->stream.has_kernel;

    return is_known_kernel(&w->kernel) && (told || !w->asks_guest);
}

static bool is_same_kernel(const PmuGuestKernel *a, const PmuGuestKernel *b)
{
    return a->text == b->text && g_str_equal(a->release, b->release)
           && !memcmp(a->build_id, b->build_id, sizeof(a->build_id));
}

bool pmu_writer_may_have_other_kernel(const PmuWriter *w)
{
    PmuGuestKernel now;

    return pmu_writer_depends_on_kernel(w)
           && !(w->asks_guest && pmu_guest_kernel_find(&now)
                && is_same_kernel(&now, &w->kernel));
}

/*
 * The stream
 */

void pmu_writer_begin(PmuWriter *w, const PmuStreamEvent *event,
                      const char *machine)
{
    g_hash_table_remove_all(w->pids);
    g_hash_table_remove_all(w->names);
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

    w->taken_ns = pmu_profile_clock_now(w->clock);
    if (!w->streaming || !bytes->len) {
        return NULL;
    }
    pmu_stream_round(&w->stream);
    w->size += bytes->len;
    w->stream.out = g_byte_array_new();
    return bytes;
}

/* The stream has ended, so it cannot report these losses. */
void pmu_writer_unwrite(PmuWriter *w, const uint8_t *bytes, size_t size)
{
    size_t at = 0;
    uint32_t cpu;

    w->size -= size;
    while (pmu_stream_next_sample(&w->stream, bytes, size, &at, &cpu)) {
        w->samples--;
        w->lost++;
        pmu_stats_lost_samples(cpu, 1);
    }
}

void pmu_writer_init(PmuWriter *w, const PmuProfileClock *clock)
{
    w->clock = clock;
    w->stream.out = g_byte_array_new();
    w->pids = g_hash_table_new_full(hash_space, equal_spaces, g_free, NULL);
    w->names = g_hash_table_new_full(NULL, NULL, NULL, g_free);
}

void pmu_writer_destroy(PmuWriter *w)
{
    g_hash_table_unref(w->pids);
    g_hash_table_unref(w->names);
    g_byte_array_unref(w->stream.out);
}
