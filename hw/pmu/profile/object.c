/*
 * Performance monitoring unit: profiles of guests, taken from outside
 *
 * A profile has an observer on each vCPU.  Once a period the vCPU puts a sample
 * into its ring, and goes on.  The main loop empties the rings now and then,
 * writes perf's records, and hands them to the sink.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "qapi/error.h"
#include "qapi/qapi-builtin-visit.h"
#include "qapi/qapi-events-pmu.h"
#include "qom/object_interfaces.h"
#include "hw/core/cpu.h"
#include "hw/misc/vmcoreinfo.h"
#include "hw/qdev-core.h"
#include "system/reset.h"
#include "system/runstate.h"
#include "system/system.h"
#include "hw/pmu/pmu-cpu.h"
#include "hw/pmu/pmu-guest.h"
#include "hw/pmu/pmu-observer.h"
#include "hw/pmu/profile/stream.h"
#include "ring.h"
#include "sink.h"

#define TYPE_PMU_PROFILE "pmu-profile"
OBJECT_DECLARE_SIMPLE_TYPE(PmuProfile, PMU_PROFILE)

/* How often the rings are emptied, if they do not fill up before. */
#define DRAIN_MS 100

/* Of each vCPU, in words. */
#define RING_SIZE (1u << 18)

/* Of instructions, some thousand samples a second. */
#define DEFAULT_PERIOD 100003

/* What a profile begins with that adapts it: the event may be a rare one. */
#define FIRST_PERIOD 1

/* Address spaces that get a pid of their own; the others share the last one. */
#define MAX_SPACES 65536

/* perf's, of perf_event_attr */
#define PERF_TYPE_HARDWARE 0
#define PERF_TYPE_RAW      4

/**
 * struct Sampler - the part of a profile that belongs to a vCPU
 * @profile: the profile
 * @cpu: the vCPU; NULL once it is unplugged
 * @index: its number
 * @observer: what counts; NULL while the profile is not enabled
 * @ring: what it has sampled
 * @sampled_ns: when it took the last sample
 */
typedef struct Sampler {
    PmuProfile *profile;
    CPUState *cpu;
    unsigned index;
    PmuObserver *observer;
    PmuRing *ring;
    int64_t sampled_ns;
} Sampler;

/**
 * struct PmuProfile - a profile of the guest
 * @event, @period, @frequency, @modes, @vcpus, @callchain, @max_size, @file,
 * @chardev, @kernel_text, @build_id, @enabled: as the user has given them
 * @id: the object's ID
 * @counted: the event
 * @counted_modes: the modes
 * @complete: the properties are settled
 * @machine_ready: there are vCPUs
 * @asks_guest: the guest is asked which kernel it runs
 * @stopped: why it has ended by itself; NULL if it has not
 * @samplers: of Sampler, one a vCPU
 * @sink: where the stream goes
 * @stream: the stream, while @streaming
 * @streaming: somebody reads it
 * @size: bytes of it so far
 * @samples: samples in it
 * @lost: samples that are missing
 * @kernel: what runs, if the guest or the user has said it
 * @pids: of the address spaces, by PmuGuestSpace
 * @time_offset: of the stream's time from the guest's, in ns
 * @stopped_ns: the stream's time when the machine stopped
 * @drain_timer: empties the rings
 * @drain_bh: the same, at once
 * @sample: the one on its way from a ring to the stream
 * @ready: called when there are vCPUs
 * @listener: called when there are more
 * @changes: called when the machine starts and stops
 */
struct PmuProfile {
    Object parent;

    char *event;
    uint64_t period;
    uint64_t frequency;
    char *modes;
    uint16List *vcpus;
    uint64_t callchain;
    uint64_t max_size;
    char *file;
    char *chardev;
    uint64_t kernel_text;
    char *build_id;
    bool enabled;

    const char *id;
    PmuEvent counted;
    PmuModes counted_modes;
    bool complete;
    bool machine_ready;
    bool asks_guest;
    char *stopped;
    GPtrArray *samplers;
    PmuSink *sink;
    PmuStream stream;
    bool streaming;
    uint64_t size;
    uint64_t samples;
    uint64_t lost;
    PmuGuestKernel kernel;
    GHashTable *pids;
    int64_t time_offset;
    int64_t stopped_ns;
    QEMUTimer *drain_timer;
    QEMUBH *drain_bh;
    PmuRingSample sample;
    Notifier ready;
    DeviceListener listener;
    VMChangeStateEntry *changes;
};

/* The guest's time, but it never goes back. */
static int64_t profile_time(const PmuProfile *p)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) + p->time_offset;
}

/*
 * Sampling, in the vCPU's thread
 */

/* As many events as there would have been in the time between two samples. */
static void adapt_period(Sampler *s, PmuObserver *observer, uint64_t events,
                         int64_t now)
{
    int64_t elapsed = MAX(now - s->sampled_ns, 1);
    int64_t wanted = NANOSECONDS_PER_SECOND / s->profile->frequency;
    double factor = (double)wanted / elapsed;

    if (s->sampled_ns) {
        pmu_observer_set_period(observer,
                                MAX(1, events * CLAMP(factor, 0.125, 8.0)));
    }
    s->sampled_ns = now;
}

static void fill_in(Sampler *s, PmuRingSample *sample, uint64_t events)
{
    const PmuGuestOps *ops = pmu_guest_ops(s->cpu);
    unsigned mode;

    pmu_cpu_where(s->cpu, &sample->ip, &mode);
    sample->time_ns = profile_time(s->profile);
    sample->period = events;
    sample->user = ops->user_modes >> mode & 1;
    sample->space = ops->space(s->cpu);
    sample->nr_callers = 0;
    if (s->profile->callchain) {
        sample->nr_callers = ops->callchain(s->cpu, sample->callers,
                                            s->profile->callchain);
    }
}

static void take_sample(void *opaque, PmuObserver *observer, uint64_t events)
{
    PmuRingSample sample;
    Sampler *s = opaque;

    fill_in(s, &sample, events);
    if (pmu_ring_put(s->ring, &sample)) {
        qemu_bh_schedule(s->profile->drain_bh);
    }
    if (s->profile->frequency) {
        adapt_period(s, observer, events, sample.time_ns);
    }
}

/*
 * The stream
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

static void announce_space(PmuProfile *p, const PmuGuestSpace *space,
                           uint32_t pid, const Sampler *s, uint64_t time_ns)
{
    const PmuGuestOps *ops = pmu_guest_ops(s->cpu ?: first_cpu);
    g_autofree char *name = ops->space_name(space);

    pmu_stream_comm(&p->stream, pid, pid, pid == MAX_SPACES ? "others" : name,
                    time_ns);
    if (space->guest) {
        pmu_stream_nested(&p->stream, pid, time_ns);
    }
}

static uint32_t pid_of(PmuProfile *p, const Sampler *s,
                       const PmuRingSample *sample)
{
    uint32_t pid = GPOINTER_TO_UINT(g_hash_table_lookup(p->pids,
                                                        &sample->space));

    if (pid) {
        return pid;
    }
    pid = g_hash_table_size(p->pids) + 1;
    if (pid <= MAX_SPACES) {
        g_hash_table_insert(p->pids,
                            g_memdup2(&sample->space, sizeof(sample->space)),
                            GUINT_TO_POINTER(pid));
        announce_space(p, &sample->space, pid, s, sample->time_ns);
    }
    return MIN(pid, MAX_SPACES);
}

static void write_sample(PmuProfile *p, const Sampler *s)
{
    uint32_t pid = pid_of(p, s, &p->sample);
    const PmuStreamSample sample = {
        .ip = p->sample.ip,
        .user = p->sample.user,
        .nested = p->sample.space.guest,
        .pid = pid,
        .tid = pid,
        .cpu = s->index,
        .time_ns = p->sample.time_ns,
        .period = p->sample.period,
        .callers = p->sample.callers,
        .nr_callers = p->sample.nr_callers,
    };

    pmu_stream_sample(&p->stream, &sample);
    p->samples++;
}

static void report_lost(PmuProfile *p, const Sampler *s)
{
    uint64_t lost = pmu_ring_take_lost(s->ring);

    if (lost && p->streaming) {
        p->lost += lost;
        pmu_stream_lost(&p->stream, s->index, lost, profile_time(p));
    }
}

static bool is_full(const PmuProfile *p)
{
    return p->max_size && p->size + p->stream.out->len >= p->max_size;
}

/* What is not read by anybody is dropped. */
static void empty_ring(PmuProfile *p, const Sampler *s)
{
    while (!is_full(p) && pmu_ring_get(s->ring, &p->sample)) {
        if (p->streaming) {
            write_sample(p, s);
        }
    }
    report_lost(p, s);
}

/*
 * Linux tells when its driver qemu_fw_cfg is loaded.  Otherwise it is what the
 * user says; or nothing, of a guest that has no way to tell.
 */
static void tell_kernel(PmuProfile *p)
{
    if (p->stream.has_kernel) {
        return;
    }
    if (!p->asks_guest) {
        pmu_stream_kernel(&p->stream, &p->kernel, 0);
    } else if (pmu_guest_kernel_find(&p->kernel)) {
        pmu_stream_kernel(&p->stream, &p->kernel, profile_time(p));
    }
}

static void flush(PmuProfile *p)
{
    GByteArray *bytes = p->stream.out;

    p->size += bytes->len;
    p->stream.out = g_byte_array_new();
    pmu_sink_write(p->sink, bytes);
}

static void stop_by_itself(PmuProfile *p, PmuProfileStopReason reason,
                           const char *message);

/* Take what there is to the sink, unless that has enough to do. */
static void drain(PmuProfile *p)
{
    if (pmu_sink_is_busy(p->sink)) {
        return;
    }
    for (unsigned i = 0; i < p->samplers->len; i++) {
        empty_ring(p, g_ptr_array_index(p->samplers, i));
    }
    if (p->streaming && p->stream.out->len) {
        pmu_stream_round(&p->stream);
        flush(p);
    }
    if (p->max_size && p->size >= p->max_size) {
        stop_by_itself(p, PMU_PROFILE_STOP_REASON_MAX_SIZE,
                       "The profile has reached its max-size");
    }
}

static void drain_soon(void *opaque)
{
    PmuProfile *p = opaque;

    if (p->streaming) {
        tell_kernel(p);
    }
    drain(p);
}

static void drain_now_and_then(void *opaque)
{
    PmuProfile *p = opaque;

    drain_soon(p);
    timer_mod(p->drain_timer,
              qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + DRAIN_MS);
}

/*
 * Where code is compiled relative to the program counter, branches and what
 * happens outside of instructions are seen behind them.
 */
static bool is_exact(const PmuProfile *p)
{
    return p->counted == PMU_EVENT_INSNS || p->counted == PMU_EVENT_CYCLES
           || p->counted == PMU_EVENT_REF_CYCLES
           || !(first_cpu->tcg_cflags & CF_PCREL);
}

/* What perf calls them, as far as it has names. */
static PmuStreamEvent stream_event(const PmuProfile *p)
{
    const PmuGuestOps *ops = pmu_guest_ops(first_cpu);
    static const struct {
        PmuEvent event;
        uint64_t config;
    } hardware[] = {
        { PMU_EVENT_CYCLES, 0 },
        { PMU_EVENT_INSNS, 1 },
        { PMU_EVENT_BRANCHES, 4 },
        { PMU_EVENT_REF_CYCLES, 9 },
    };
    PmuStreamEvent event = {
        .name = p->event,
        .type = PERF_TYPE_RAW,
        .config = p->counted,
        .period = p->frequency ?: p->period,
        .frequency = p->frequency,
        .exact = is_exact(p),
        .callchain = p->callchain,
        .exclude_user = !(p->counted_modes & ops->user_modes),
        .exclude_kernel = !(p->counted_modes & ~ops->user_modes),
    };

    for (unsigned i = 0; i < ARRAY_SIZE(hardware); i++) {
        if (hardware[i].event == p->counted) {
            event.type = PERF_TYPE_HARDWARE;
            event.config = hardware[i].config;
        }
    }
    return event;
}

static void begin_stream(void *opaque)
{
    PmuProfile *p = opaque;
    const PmuStreamEvent event = stream_event(p);

    if (p->stopped) {
        return;
    }
    /* What was sampled for others is not for this reader. */
    p->streaming = false;
    drain(p);
    g_hash_table_remove_all(p->pids);
    p->streaming = true;
    p->size = 0;
    pmu_stream_begin(&p->stream, p->stream.out, &event,
                     pmu_guest_ops(first_cpu)->machine);
}

static void end_stream(void *opaque)
{
    PmuProfile *p = opaque;

    p->streaming = false;
    g_byte_array_set_size(p->stream.out, 0);
}

static void sink_failed(void *opaque, Error *err, bool closed)
{
    PmuProfile *p = opaque;

    stop_by_itself(p, closed ? PMU_PROFILE_STOP_REASON_DISCONNECTED
                             : PMU_PROFILE_STOP_REASON_WRITE_ERROR,
                   error_get_pretty(err));
    error_free(err);
}

static const PmuSinkOps sink_ops = {
    .opened = begin_stream,
    .closed = end_stream,
    .failed = sink_failed,
};

/*
 * vCPUs
 */

static void cpu_gone(void *opaque)
{
    Sampler *s = opaque;

    s->cpu = NULL;
    s->observer = NULL;
}

static bool observe(Sampler *s, Error **errp)
{
    const PmuProfile *p = s->profile;
    const PmuObserverConfig config = {
        .owner = p->id,
        .event = p->counted,
        .modes = p->counted_modes,
        .period = p->frequency ? FIRST_PERIOD : p->period,
        .overflow = take_sample,
        .gone = cpu_gone,
        .opaque = s,
    };

    s->sampled_ns = 0;
    s->observer = pmu_observer_new(s->cpu, &config, errp);
    return s->observer;
}

static void observe_no_more(PmuProfile *p)
{
    for (unsigned i = 0; i < p->samplers->len; i++) {
        Sampler *s = g_ptr_array_index(p->samplers, i);

        g_clear_pointer(&s->observer, pmu_observer_free);
    }
}

static bool observe_all(PmuProfile *p, Error **errp)
{
    for (unsigned i = 0; i < p->samplers->len; i++) {
        Sampler *s = g_ptr_array_index(p->samplers, i);

        if (s->cpu && !s->observer && !observe(s, errp)) {
            observe_no_more(p);
            return false;
        }
    }
    return true;
}

static bool is_chosen(const PmuProfile *p, const CPUState *cpu)
{
    for (const uint16List *v = p->vcpus; v; v = v->next) {
        if (v->value == cpu->cpu_index) {
            return true;
        }
    }
    return !p->vcpus;
}

static Sampler *add_sampler(PmuProfile *p, CPUState *cpu)
{
    Sampler *s = g_new0(Sampler, 1);

    s->profile = p;
    s->cpu = cpu;
    s->index = cpu->cpu_index;
    s->ring = pmu_ring_new(RING_SIZE);
    g_ptr_array_add(p->samplers, s);
    return s;
}

static void free_sampler(void *opaque)
{
    Sampler *s = opaque;

    pmu_ring_free(s->ring);
    g_free(s);
}

/* vCPUs that are plugged in later are profiled, too. */
static void device_realized(DeviceListener *listener, DeviceState *dev)
{
    PmuProfile *p = container_of(listener, PmuProfile, listener);
    Error *err = NULL;
    CPUState *cpu;

    if (!object_dynamic_cast(OBJECT(dev), TYPE_CPU)) {
        return;
    }
    cpu = CPU(dev);
    if (is_chosen(p, cpu) && !p->stopped) {
        Sampler *s = add_sampler(p, cpu);

        if (p->enabled && !observe(s, &err)) {
            warn_report_err(err);
        }
    }
}

static bool check_vcpus(const PmuProfile *p, Error **errp)
{
    for (const uint16List *v = p->vcpus; v; v = v->next) {
        if (!qemu_get_cpu(v->value)) {
            error_setg(errp, "There is no vCPU %u", v->value);
            return false;
        }
    }
    return true;
}

static bool add_samplers(PmuProfile *p, Error **errp)
{
    CPUState *cpu;

    if (!check_vcpus(p, errp)) {
        return false;
    }
    CPU_FOREACH(cpu) {
        if (is_chosen(p, cpu)) {
            add_sampler(p, cpu);
        }
    }
    return !p->enabled || observe_all(p, errp);
}

/*
 * Its end
 */

static void stop_by_itself(PmuProfile *p, PmuProfileStopReason reason,
                           const char *message)
{
    if (p->stopped) {
        return;
    }
    p->stopped = g_strdup(message);
    p->enabled = false;
    p->streaming = false;
    observe_no_more(p);
    qapi_event_send_pmu_profile_stopped(p->id, reason, message);
}

/* Whether the guest has said which kernel it runs: a stream has one alone. */
static bool depends_on_kernel(const PmuProfile *p)
{
    return p->streaming && p->stream.has_kernel && p->asks_guest;
}

static void machine_reset(void *opaque)
{
    PmuProfile *p = opaque;

    if (depends_on_kernel(p)) {
        drain(p);
        stop_by_itself(p, PMU_PROFILE_STOP_REASON_GUEST_RESET,
                       "The guest was reset, and may run another kernel");
    }
}

static bool is_same_kernel(const PmuProfile *p)
{
    PmuGuestKernel now;

    return pmu_guest_kernel_find(&now) && now.text == p->kernel.text
           && g_str_equal(now.release, p->kernel.release)
           && !memcmp(now.build_id, p->kernel.build_id, sizeof(now.build_id));
}

/* It may go on from a snapshot, of another time and perhaps another kernel. */
static void machine_goes_on(PmuProfile *p)
{
    int64_t behind = p->stopped_ns - profile_time(p);

    p->time_offset += MAX(behind, 0);
    if (depends_on_kernel(p) && !is_same_kernel(p)) {
        stop_by_itself(p, PMU_PROFILE_STOP_REASON_SNAPSHOT_LOADED,
                       "A snapshot was loaded, of a guest with another kernel");
    }
}

static void machine_changed(void *opaque, bool running, RunState state)
{
    PmuProfile *p = opaque;

    if (!running) {
        drain(p);
        p->stopped_ns = profile_time(p);
    } else {
        machine_goes_on(p);
    }
}

/*
 * The object
 */

static PmuEvent named_event(const char *name)
{
    for (int e = PMU_EVENT_NONE + 1; e < PMU_EVENT__MAX; e++) {
        if (g_str_equal(name, pmu_event_name(e))) {
            return e;
        }
    }
    return PMU_EVENT_NONE;
}

/* Returns: whether it is written as one. */
static bool raw_code(const char *name, uint64_t *code)
{
    return name[0] == 'r' && g_ascii_isxdigit(name[1])
           && parse_uint_full(name + 1, 16, code) == 0;
}

/* What codes mean, vCPUs say. */
static bool resolve_event(PmuProfile *p, const PmuGuestOps *ops, Error **errp)
{
    ERRP_GUARD();
    uint64_t code;

    if (p->counted) {
        return true;
    }
    if (raw_code(p->event, &code)) {
        p->counted = ops->raw_event(first_cpu, code);
    }
    if (!p->counted) {
        error_setg(errp, "event=%s is not counted here", p->event);
        error_append_hint(errp, "Codes are those of the CPU's PMU, if it has "
                          "one; events can be named, too.\n");
    }
    return p->counted;
}

static bool parse_event(PmuProfile *p, Error **errp)
{
    ERRP_GUARD();
    uint64_t code;

    if (!p->event) {
        p->event = g_strdup(pmu_event_name(PMU_EVENT_INSNS));
    }
    p->counted = named_event(p->event);
    if (p->counted || raw_code(p->event, &code)) {
        return true;
    }
    error_setg(errp, "There is no event %s", p->event);
    error_append_hint(errp, "Codes are written as rNNNN.  Events:");
    for (int e = PMU_EVENT_NONE + 1; e < PMU_EVENT__MAX; e++) {
        error_append_hint(errp, " %s", pmu_event_name(e));
    }
    error_append_hint(errp, "\n");
    return false;
}

/* As perf's modifiers of events: what is named, or all if none is. */
static bool parse_modes(PmuProfile *p, const PmuGuestOps *ops, Error **errp)
{
    ERRP_GUARD();
    const char *modes = p->modes ?: "";
    PmuModes all = (1u << ops->nr_modes) - 1;
    PmuModes privilege = 0, guest = 0;

    if (modes[strspn(modes, "ukGH")]) {
        error_setg(errp, "modes=%s is not understood", modes);
        error_append_hint(errp, "Letters, as after perf's events: u for user, "
                          "k for kernel; G for the guest's guests, H for "
                          "itself.\n");
        return false;
    }
    privilege |= strchr(modes, 'u') ? ops->user_modes : 0;
    privilege |= strchr(modes, 'k') ? all & ~ops->user_modes : 0;
    guest |= strchr(modes, 'G') ? ops->nested_modes : 0;
    guest |= strchr(modes, 'H') ? all & ~ops->nested_modes : 0;
    p->counted_modes = (privilege ?: all) & (guest ?: all);
    if (!p->counted_modes) {
        error_setg(errp, "modes=%s: the guests of these CPUs have no such "
                   "modes", modes);
    }
    return p->counted_modes;
}

static bool check_period(PmuProfile *p, Error **errp)
{
    if (p->period && p->frequency) {
        error_setg(errp, "period and frequency exclude each other");
        return false;
    }
    if (p->frequency > NANOSECONDS_PER_SECOND) {
        error_setg(errp, "frequency=%" PRIu64 " is more than a sample in a "
                   "nanosecond", p->frequency);
        return false;
    }
    if (!p->period && !p->frequency) {
        p->period = DEFAULT_PERIOD;
    }
    return true;
}

static bool take_given_kernel(PmuProfile *p, Error **errp)
{
    p->kernel.text = p->kernel_text;
    if (p->build_id && !pmu_guest_kernel_set_build_id(&p->kernel, p->build_id,
                                                      strlen(p->build_id))) {
        error_setg(errp, "build-id=%s is none", p->build_id);
        return false;
    }
    return true;
}

static bool check_properties(PmuProfile *p, Error **errp)
{
    if (!p->file == !p->chardev) {
        error_setg(errp, "A profile needs either file or chardev");
        return false;
    }
    if (p->callchain > PMU_RING_MAX_CALLERS) {
        error_setg(errp, "callchain=%" PRIu64 " is more than %u", p->callchain,
                   PMU_RING_MAX_CALLERS);
        return false;
    }
    return parse_event(p, errp) && check_period(p, errp)
           && take_given_kernel(p, errp);
}

static PmuSink *open_sink(PmuProfile *p, Error **errp)
{
    return p->file ? pmu_sink_new_file(p->file, &sink_ops, p, errp)
                   : pmu_sink_new_chardev(p->chardev, &sink_ops, p, errp);
}

/* The file is made last, so that none is left by what cannot be had. */
static bool begin(PmuProfile *p, Error **errp)
{
    const PmuGuestOps *ops = first_cpu ? pmu_guest_ops(first_cpu) : NULL;

    if (!ops) {
        error_setg(errp, "The machine has no CPU that can be profiled");
        return false;
    }
    if (!resolve_event(p, ops, errp) || !parse_modes(p, ops, errp)
        || !add_samplers(p, errp)) {
        return false;
    }
    p->sink = open_sink(p, errp);
    if (!p->sink) {
        observe_no_more(p);
        return false;
    }
    p->machine_ready = true;
    p->asks_guest = !p->kernel_text && !p->build_id && vmcoreinfo_find();
    p->listener.realize = device_realized;
    device_listener_register(&p->listener);
    p->changes = qemu_add_vm_change_state_handler(machine_changed, p);
    pmu_sink_start(p->sink);
    drain_now_and_then(p);
    return true;
}

static void begin_with_machine(Notifier *notifier, void *unused)
{
    begin(container_of(notifier, PmuProfile, ready), &error_fatal);
}

static void complete(UserCreatable *uc, Error **errp)
{
    PmuProfile *p = PMU_PROFILE(uc);

    p->id = object_get_canonical_path_component(OBJECT(p));
    if (!check_properties(p, errp)) {
        return;
    }
    p->complete = true;
    qemu_register_reset_nosnapshotload(machine_reset, p);
    if (phase_check(PHASE_MACHINE_READY)) {
        begin(p, errp);
    } else {
        p->ready.notify = begin_with_machine;
        qemu_add_machine_init_done_notifier(&p->ready);
    }
}

static void init(Object *obj)
{
    PmuProfile *p = PMU_PROFILE(obj);

    p->enabled = true;
    p->samplers = g_ptr_array_new_with_free_func(free_sampler);
    p->stream.out = g_byte_array_new();
    p->pids = g_hash_table_new_full(hash_space, equal_spaces, g_free, NULL);
    p->drain_timer = timer_new_ms(QEMU_CLOCK_REALTIME, drain_now_and_then, p);
    p->drain_bh = qemu_bh_new(drain_soon, p);
}

static void end(PmuProfile *p)
{
    if (p->machine_ready) {
        device_listener_unregister(&p->listener);
        qemu_del_vm_change_state_handler(p->changes);
        observe_no_more(p);
        drain(p);
    } else if (p->complete && p->ready.notify) {
        qemu_remove_machine_init_done_notifier(&p->ready);
    }
    if (p->complete) {
        qemu_unregister_reset(machine_reset, p);
    }
}

static void finalize(Object *obj)
{
    PmuProfile *p = PMU_PROFILE(obj);

    end(p);
    pmu_sink_free(p->sink);
    timer_free(p->drain_timer);
    qemu_bh_delete(p->drain_bh);
    g_ptr_array_unref(p->samplers);
    g_hash_table_unref(p->pids);
    g_byte_array_unref(p->stream.out);
    qapi_free_uint16List(p->vcpus);
    g_free(p->event);
    g_free(p->modes);
    g_free(p->file);
    g_free(p->chardev);
    g_free(p->build_id);
    g_free(p->stopped);
}

/*
 * Its properties, each at an offset in the object
 */

static bool may_change(const PmuProfile *p, Error **errp)
{
    if (p->complete) {
        error_setg(errp, "A profile cannot be changed any more");
    }
    return !p->complete;
}

static void get_string(Object *obj, Visitor *v, const char *name, void *opaque,
                       Error **errp)
{
    char **field = (void *)((char *)obj + GPOINTER_TO_SIZE(opaque));
    g_autofree char *copy = g_strdup(*field ?: "");

    visit_type_str(v, name, &copy, errp);
}

static void set_string(Object *obj, Visitor *v, const char *name, void *opaque,
                       Error **errp)
{
    char **field = (void *)((char *)obj + GPOINTER_TO_SIZE(opaque));
    g_autofree char *value = NULL;

    if (visit_type_str(v, name, &value, errp)
        && may_change(PMU_PROFILE(obj), errp)) {
        g_free(*field);
        *field = g_steal_pointer(&value);
    }
}

static void get_number(Object *obj, Visitor *v, const char *name, void *opaque,
                       Error **errp)
{
    uint64_t *field = (void *)((char *)obj + GPOINTER_TO_SIZE(opaque));

    visit_type_uint64(v, name, field, errp);
}

static void set_number(Object *obj, Visitor *v, const char *name, void *opaque,
                       Error **errp)
{
    uint64_t *field = (void *)((char *)obj + GPOINTER_TO_SIZE(opaque));
    uint64_t value;

    if (visit_type_size(v, name, &value, errp)
        && may_change(PMU_PROFILE(obj), errp)) {
        *field = value;
    }
}

static void get_vcpus(Object *obj, Visitor *v, const char *name, void *opaque,
                      Error **errp)
{
    visit_type_uint16List(v, name, &PMU_PROFILE(obj)->vcpus, errp);
}

static void set_vcpus(Object *obj, Visitor *v, const char *name, void *opaque,
                      Error **errp)
{
    PmuProfile *p = PMU_PROFILE(obj);
    uint16List *vcpus;

    if (!visit_type_uint16List(v, name, &vcpus, errp)) {
        return;
    }
    if (may_change(p, errp)) {
        qapi_free_uint16List(p->vcpus);
        p->vcpus = vcpus;
    } else {
        qapi_free_uint16List(vcpus);
    }
}

static bool get_enabled(Object *obj, Error **errp)
{
    return PMU_PROFILE(obj)->enabled;
}

static void set_enabled(Object *obj, bool enabled, Error **errp)
{
    ERRP_GUARD();
    PmuProfile *p = PMU_PROFILE(obj);

    if (enabled && p->stopped) {
        error_setg(errp, "The profile has ended: %s", p->stopped);
        error_append_hint(errp, "Begin another one, with another file.\n");
    } else if (!p->machine_ready) {
        p->enabled = enabled;
    } else if (!enabled) {
        p->enabled = false;
        observe_no_more(p);
        drain(p);
    } else {
        p->enabled = observe_all(p, errp);
    }
}

/* Properties that are set once, and what they are for. */
static const struct {
    const char *name;
    const char *type;
    ObjectPropertyAccessor *get, *set;
    size_t offset;
    const char *description;
} properties[] = {
    { "event", "str", get_string, set_string, offsetof(PmuProfile, event),
      "The event that is counted" },
    { "period", "size", get_number, set_number, offsetof(PmuProfile, period),
      "Events from one sample to the next" },
    { "frequency", "size", get_number, set_number,
      offsetof(PmuProfile, frequency),
      "Samples a second, to which the period is adapted" },
    { "modes", "str", get_string, set_string, offsetof(PmuProfile, modes),
      "Modes, as letters of perf's: u, k, G, H" },
    { "vcpus", "uint16List", get_vcpus, set_vcpus, 0,
      "vCPUs by their numbers" },
    { "callchain", "size", get_number, set_number,
      offsetof(PmuProfile, callchain), "The most callers of a sample" },
    { "max-size", "size", get_number, set_number,
      offsetof(PmuProfile, max_size), "Where the stream ends, in bytes" },
    { "file", "str", get_string, set_string, offsetof(PmuProfile, file),
      "A new file, or a pipe" },
    { "chardev", "str", get_string, set_string, offsetof(PmuProfile, chardev),
      "The ID of a chardev" },
    { "kernel-text", "size", get_number, set_number,
      offsetof(PmuProfile, kernel_text),
      "Address of the guest kernel's symbol _stext" },
    { "build-id", "str", get_string, set_string,
      offsetof(PmuProfile, build_id), "Build id of the guest's kernel" },
    { "samples", "size", get_number, NULL, offsetof(PmuProfile, samples),
      "Samples that were written" },
    { "lost", "size", get_number, NULL, offsetof(PmuProfile, lost),
      "Samples for which there was no room" },
    { "size", "size", get_number, NULL, offsetof(PmuProfile, size),
      "Bytes that were written" },
};

static void init_class(ObjectClass *oc, void *data)
{
    USER_CREATABLE_CLASS(oc)->complete = complete;
    for (unsigned i = 0; i < ARRAY_SIZE(properties); i++) {
        object_class_property_add(oc, properties[i].name, properties[i].type,
                                  properties[i].get, properties[i].set, NULL,
                                  GSIZE_TO_POINTER(properties[i].offset));
        object_class_property_set_description(oc, properties[i].name,
                                              properties[i].description);
    }
    object_class_property_add_bool(oc, "enabled", get_enabled, set_enabled);
    object_class_property_set_description(oc, "enabled",
        "Whether samples are taken; can be changed at any time");
}

static const TypeInfo profile_type = {
    .name = TYPE_PMU_PROFILE,
    .parent = TYPE_OBJECT,
    .instance_size = sizeof(PmuProfile),
    .instance_init = init,
    .instance_finalize = finalize,
    .class_init = init_class,
    .interfaces = (InterfaceInfo[]) {
        { TYPE_USER_CREATABLE },
        { }
    },
};

static void register_profile_type(void)
{
    type_register_static(&profile_type);
}

type_init(register_profile_type)
