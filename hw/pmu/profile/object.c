/*
 * Performance monitoring unit: profiles of guests, taken from outside
 *
 * The object, and its life.  A profile has a sampler on each vCPU.  From time
 * to time, the main loop empties the samplers, lets a writer turn the samples
 * into perf's records, and hands these to the sink.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "qapi/error.h"
#include "qapi/qapi-events-pmu.h"
#include "qom/object_interfaces.h"
#include "hw/core/cpu.h"
#include "hw/pmu/pmu-observer.h"
#include "system/replay.h"
#include "system/reset.h"
#include "system/system.h"
#include "hw/pmu/compat.h"
#include "object.h"

/* How often samplers are emptied, unless they fill up earlier. */
#define DRAIN_MS 100

/*
 * From the samplers to the sink
 */

static void stop_by_itself(PmuProfile *p, PmuProfileStopReason reason,
                           const char *message);

/*
 * Also called in threads of vCPUs, while the main loop waits for a vCPU and
 * still uses samplers: so this must not remove any.
 */
static void empty_samplers(void *opaque)
{
    PmuProfile *p = opaque;

    for (unsigned i = 0; i < p->samplers->len; i++) {
        pmu_writer_empty(&p->writer, g_ptr_array_index(p->samplers, i));
    }
}

/* Also writes how many samples were lost after the last one. */
static void empty_samplers_to_end(PmuProfile *p)
{
    for (unsigned i = 0; i < p->samplers->len; i++) {
        pmu_writer_empty_to_end(&p->writer, g_ptr_array_index(p->samplers, i));
    }
}

/* A vCPU that was unplugged takes no more samples.  In the main loop only. */
static void remove_gone_samplers(PmuProfile *p)
{
    for (unsigned i = p->samplers->len; i-- > 0; ) {
        PmuSampler *s = g_ptr_array_index(p->samplers, i);

        if (!s->cpu) {
            pmu_writer_empty_to_end(&p->writer, s);
            g_ptr_array_remove_index(p->samplers, i);
        }
    }
}

static bool check_samplers(const PmuProfile *p, Error **errp)
{
    for (unsigned i = 0; i < p->samplers->len; i++) {
        const PmuSampler *s = g_ptr_array_index(p->samplers, i);

        if (s->cpu && !pmu_sampler_check(s, errp)) {
            return false;
        }
    }
    return true;
}

static void stop_samplers(PmuProfile *p)
{
    for (unsigned i = 0; i < p->samplers->len; i++) {
        pmu_sampler_stop(g_ptr_array_index(p->samplers, i));
    }
}

static void write_out(PmuProfile *p)
{
    GByteArray *bytes = pmu_writer_take(&p->writer);

    if (bytes) {
        pmu_sink_write(p->sink, bytes);
    }
}

/* The last records say how many samples were lost. */
static void stop_if_out_of_order(PmuProfile *p)
{
    Error *err = NULL;

    if (p->enabled && !check_samplers(p, &err)) {
        stop_samplers(p);
        empty_samplers_to_end(p);
        write_out(p);
        stop_by_itself(p, PMU_PROFILE_STOP_REASON_HOST_ERROR,
                       error_get_pretty(err));
        error_free(err);
    }
}

/*
 * Before the machine runs, a reset or a snapshot can still replace its kernel.
 * So the guest is asked once the machine has run since the profile began, or
 * since its state was loaded.
 */
static void ask_kernel(PmuProfile *p, int64_t since_ns)
{
    if (p->has_run && !p->is_loaded) {
        pmu_writer_ask_kernel(&p->writer, since_ns);
    }
}

/* Drops samples, and counts of lost ones, from before this reader came. */
static void begin_if_opened(PmuProfile *p)
{
    if (p->is_opened) {
        p->is_opened = false;
        empty_samplers_to_end(p);
        pmu_writer_begin(&p->writer, &p->event,
                         pmu_guest_ops(first_cpu)->machine);
        ask_kernel(p, 0);
    }
}

/*
 * perf sorts by time: the time of the kernel's record must not be later than
 * that of the samples which need it.  Samples taken before @begin are written
 * first.
 */
static void drain(PmuProfile *p)
{
    int64_t begin = pmu_profile_clock_now(&p->config.clock);

    begin_if_opened(p);
    empty_samplers(p);
    ask_kernel(p, begin);
    pmu_agent_flushed(&p->agent);
    write_out(p);
    if (pmu_writer_is_full(&p->writer)) {
        stop_by_itself(p, PMU_PROFILE_STOP_REASON_MAX_SIZE,
                       "The profile has reached its max-size");
    }
    stop_if_out_of_order(p);
}

/* The same while no samples are taken, with the count of lost ones. */
static void drain_to_end(PmuProfile *p)
{
    empty_samplers_to_end(p);
    drain(p);
}

/*
 * While the sink is busy, samples stay in the samplers, and are lost when these
 * are full.  Samplers may have samples even before the sink exists.
 */
static void drain_if_idle(void *opaque)
{
    PmuProfile *p = opaque;

    if (p->sink && !pmu_sink_is_busy(p->sink)) {
        drain(p);
    }
}

static void drain_now_and_then(void *opaque)
{
    PmuProfile *p = opaque;

    if (!pmu_sink_is_busy(p->sink)) {
        drain(p);
        remove_gone_samplers(p);
    }
    timer_mod(p->drain_timer,
              qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + DRAIN_MS);
}

static void end_stream(void *opaque)
{
    PmuProfile *p = opaque;

    p->is_opened = false;
    pmu_writer_end(&p->writer);
    pmu_agent_forget(&p->agent);
}

/* A guest may open and close a port many times before anything is written. */
static bool begin_stream(void *opaque)
{
    PmuProfile *p = opaque;

    end_stream(p);
    if (p->stopped || (p->writer.is_guests && p->is_loaded)) {
        return false;
    }
    p->is_opened = true;
    if (p->writer.is_guests) {
        qemu_bh_schedule(p->config.drain);
    } else {
        begin_if_opened(p);
    }
    return true;
}

static void guest_said(void *opaque, const uint8_t *bytes, size_t size)
{
    PmuProfile *p = opaque;

    begin_if_opened(p);
    pmu_agent_listen(&p->agent, bytes, size);
}

static void sink_failed(void *opaque, Error *err, bool closed)
{
    PmuProfile *p = opaque;

    stop_by_itself(p, closed ? PMU_PROFILE_STOP_REASON_DISCONNECTED
                             : PMU_PROFILE_STOP_REASON_WRITE_ERROR,
                   error_get_pretty(err));
    error_free(err);
}

static void not_written(void *opaque, const uint8_t *bytes, size_t size)
{
    PmuProfile *p = opaque;

    pmu_writer_unwrite(&p->writer, bytes, size);
}

static const PmuSinkOps sink_ops = {
    .opened = begin_stream,
    .closed = end_stream,
    .said = guest_said,
    .failed = sink_failed,
    .unwritten = not_written,
};

/*
 * vCPUs
 */

/* The vCPU may be unplugged meanwhile; that is not an error. */
static bool start_sampler(PmuSampler *s, Error **errp)
{
    Error *err = NULL;

    if (!s->cpu || pmu_sampler_start(s, &err)) {
        return true;
    }
    if (!s->cpu) {
        error_free(err);
        return true;
    }
    error_propagate(errp, err);
    return false;
}

/* The big lock is released meanwhile: samplers may be added during the loop. */
static bool start_samplers(PmuProfile *p, Error **errp)
{
    for (unsigned i = 0; i < p->samplers->len; i++) {
        if (!start_sampler(g_ptr_array_index(p->samplers, i), errp)) {
            stop_samplers(p);
            return false;
        }
    }
    return true;
}

static bool is_chosen(const PmuProfile *p, const CPUState *cpu)
{
    const uint16List *v;

    for (v = p->vcpus; v; v = v->next) {
        if (v->value == cpu->cpu_index) {
            return true;
        }
    }
    return !p->vcpus;
}

static bool has_sampler(const PmuProfile *p, const CPUState *cpu)
{
    for (unsigned i = 0; i < p->samplers->len; i++) {
        const PmuSampler *s = g_ptr_array_index(p->samplers, i);

        if (s->cpu == cpu) {
            return true;
        }
    }
    return false;
}

static PmuSampler *add_sampler(PmuProfile *p, CPUState *cpu, Error **errp)
{
    PmuSampler *s = pmu_sampler_new(cpu, &p->config, errp);

    if (s) {
        g_ptr_array_add(p->samplers, s);
    }
    return s;
}

static void free_sampler(void *opaque)
{
    pmu_sampler_free(opaque);
}

/* vCPUs that are plugged in later are profiled, too. */
static void device_realized(DeviceListener *listener, DeviceState *dev)
{
    PmuProfile *p = container_of(listener, PmuProfile, listener);
    Error *err = NULL;
    PmuSampler *s;

    if (!object_dynamic_cast(OBJECT(dev), TYPE_CPU) || p->stopped
        || !is_chosen(p, CPU(dev)) || has_sampler(p, CPU(dev))) {
        return;
    }
    s = add_sampler(p, CPU(dev), &err);
    if (!s || (p->enabled && !start_sampler(s, &err))) {
        warn_report_err(err);
    }
}

static void device_unrealized(DeviceListener *listener, DeviceState *dev)
{
    PmuProfile *p = container_of(listener, PmuProfile, listener);

    for (unsigned i = 0; i < p->samplers->len; i++) {
        PmuSampler *s = g_ptr_array_index(p->samplers, i);

        if (s->cpu && DEVICE(s->cpu) == dev) {
            pmu_sampler_forget_cpu(s);
        }
    }
}

static bool check_vcpus(const PmuProfile *p, Error **errp)
{
    const uint16List *v;

    for (v = p->vcpus; v; v = v->next) {
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
        if (is_chosen(p, cpu) && !has_sampler(p, cpu)
            && !add_sampler(p, cpu, errp)) {
            return false;
        }
    }
    return !p->enabled || start_samplers(p, errp);
}

/* All samplers are of the same kind, and sample the same event. */
static void describe_event(PmuProfile *p)
{
    const PmuProfileRequest *asked = &p->config.asked;

    p->event = (PmuStreamEvent) {
        .name = asked->event,
        .period = asked->frequency ?: asked->period,
        .frequency = asked->frequency,
        .callchain = asked->callchain,
        .branch_stack = asked->branch_stack,
        .data_address = asked->data_address,
        .exclude_user = !asked->user,
        .exclude_kernel = !asked->kernel,
    };
    pmu_sampler_describe(g_ptr_array_index(p->samplers, 0), &p->event);
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
    p->stop_reason = reason;
    p->enabled = false;
    p->is_opened = false;
    pmu_writer_end(&p->writer);
    pmu_sink_hang_up(p->sink);
    stop_samplers(p);
    qapi_event_send_pmu_profile_stopped(p->config.owner, reason, message);
}

/* The old reader is gone, or it reads a stream that another QEMU began. */
static void replace_reader(PmuProfile *p)
{
    end_stream(p);
    pmu_sink_restart(p->sink);
}

static bool is_to_be_loaded(void)
{
    return runstate_check(RUN_STATE_INMIGRATE);
}

/* A wakeup keeps the memory; go_on_from_elsewhere() looks at snapshots. */
static bool may_keep_kernel(ResetType type)
{
    return type == RESET_TYPE_WAKEUP || type == RESET_TYPE_SNAPSHOT_LOAD;
}

static void forget_branches(void)
{
    CPUState *cpu;

    CPU_FOREACH(cpu) {
        pmu_observer_forget_branches(cpu);
    }
}

/*
 * The user's kernel-text and build-id are for the kernel that runs first, so a
 * reset before the machine runs changes nothing.
 */
static void reset_machine(Object *obj, ResetType type)
{
    PmuProfile *p = PMU_PROFILE(obj);

    forget_branches();
    p->is_loaded = type == RESET_TYPE_SNAPSHOT_LOAD || is_to_be_loaded();
    if (!may_keep_kernel(type) && p->has_run
        && pmu_writer_depends_on_kernel(&p->writer)) {
        drain_to_end(p);
        stop_by_itself(p, PMU_PROFILE_STOP_REASON_GUEST_RESET,
                       "The guest was reset, and may run another kernel");
    } else if (p->writer.is_guests) {
        replace_reader(p);
    }
}

static void gone_on(void *opaque)
{
    PmuProfile *p = opaque;

    if (p->is_loaded) {
        p->is_loaded = false;
        pmu_sink_go_on(p->sink);
    }
}

/*
 * After a load, a timer of virtio-serial, on QEMU_CLOCK_VIRTUAL, reopens the
 * ports that were open, as soon as that clock goes on.  Ports that open later
 * are opened by the guest.  A device that is open all the time is not opened
 * again; its stream begins when this timer expires.
 */
static void await_old_ports(PmuProfile *p)
{
    timer_mod(p->gone_on, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) + 1);
}

/* The loaded state has another time, and perhaps another kernel. */
static void go_on_from_elsewhere(PmuProfile *p)
{
    if (p->writer.is_guests) {
        await_old_ports(p);
    } else {
        p->is_loaded = false;
    }
    if (p->has_run && pmu_writer_may_have_other_kernel(&p->writer)) {
        stop_by_itself(p, PMU_PROFILE_STOP_REASON_SNAPSHOT_LOADED,
                       "A snapshot was loaded, perhaps with another kernel");
    }
}

/*
 * When QEMU ends, chardevs end before objects do.  A machine that runs, or is
 * suspended, is stopped first, and machine_changed_state() has more to write.
 */
static void shutting_down(Notifier *notifier, void *unused)
{
    if (!runstate_is_live(runstate_get())) {
        pmu_sink_flush_all();
    }
}

static void machine_changed_state(void *opaque, bool running, RunState state)
{
    PmuProfile *p = opaque;

    if (!running) {
        drain_to_end(p);
        pmu_profile_clock_stop(&p->config.clock);
        return;
    }
    pmu_profile_clock_go_on(&p->config.clock);
    if (p->is_loaded) {
        go_on_from_elsewhere(p);
    }
    p->has_run = true;
    ask_kernel(p, pmu_profile_clock_now(&p->config.clock));
}

/* Called after machine_changed_state() of all profiles. */
static void flush_stopped_machine(void *unused, bool running, RunState state)
{
    if (!running && state == RUN_STATE_SHUTDOWN) {
        pmu_sink_flush_all();
    }
}

/*
 * The object
 */

static bool take_given_kernel(PmuProfile *p, Error **errp)
{
    PmuGuestKernel *kernel = &p->writer.kernel;

    kernel->text = p->kernel_text;
    if (p->build_id && !pmu_guest_kernel_set_build_id(kernel, p->build_id,
                                                      strlen(p->build_id))) {
        error_setg(errp, "build-id=%s is not a valid build id", p->build_id);
        return false;
    }
    return true;
}

/* The profile itself is the chardev that it names. */
static bool is_chardev(const PmuProfile *p)
{
    return p->chardev && g_str_equal(p->chardev, p->config.owner);
}

/*
 * A stream that the guest reads depends on how fast it reads.  Bytes for a
 * chardev become a part of the recording, which waits until all were read.
 */
static bool check_replay(const PmuProfile *p, Error **errp)
{
    ERRP_GUARD();

    if (p->file || replay_mode == REPLAY_MODE_NONE) {
        return true;
    }
    error_setg(errp, "A profile that %s cannot be recorded or replayed",
               is_chardev(p) ? "the guest reads" : "goes to a chardev");
    error_append_hint(errp, "Name a file.\n");
    return false;
}

static bool check_target(const PmuProfile *p, Error **errp)
{
    ERRP_GUARD();

    if (!p->file == !p->chardev) {
        error_setg(errp, "A profile has either file or chardev");
        error_append_hint(errp, "With chardev=%s, the profile itself is a "
                          "chardev: the guest reads it from a device.\n",
                          p->config.owner);
        return false;
    }
    return true;
}

static bool check_properties(PmuProfile *p, Error **errp)
{
    return check_target(p, errp) && check_replay(p, errp)
           && pmu_profile_request_check(&p->config.asked, errp)
           && take_given_kernel(p, errp);
}

static bool check_machine(Error **errp)
{
    if (!first_cpu || !pmu_guest_ops(first_cpu)) {
        error_setg(errp, "The machine has no CPU that can be profiled");
        return false;
    }
    return true;
}

static PmuSink *open_sink(PmuProfile *p, Error **errp)
{
    return p->file ? pmu_sink_new_file(p->file, &sink_ops, p, errp)
                   : pmu_sink_new_chardev(p->chardev, &sink_ops, p, errp);
}

static bool be_chardev(PmuProfile *p, Error **errp)
{
    p->writer.is_guests = true;
    p->sink = pmu_sink_new_guest(p->config.owner, &sink_ops, p, errp);
    return p->sink;
}

/*
 * The file is created last, so that a profile that fails leaves no file.  vCPUs
 * may be plugged and unplugged already.
 */
static bool prepare(PmuProfile *p, Error **errp)
{
    p->listener.realize = device_realized;
    p->listener.unrealize = device_unrealized;
    device_listener_register(&p->listener);
    if (add_samplers(p, errp)) {
        describe_event(p);
        pmu_profile_clock_go_on(&p->config.clock);
        p->sink = p->sink ?: open_sink(p, errp);
        if (p->sink) {
            return true;
        }
        stop_samplers(p);
    }
    device_listener_unregister(&p->listener);
    return false;
}

static bool begin_profile(PmuProfile *p, Error **errp)
{
    if (!check_machine(errp) || !prepare(p, errp)) {
        return false;
    }
    p->machine_ready = true;
    p->has_run = runstate_is_running();
    p->is_loaded = is_to_be_loaded();
    p->writer.asks_guest = !p->kernel_text && !p->build_id
                           && pmu_guest_kernel_can_be_told();
    pmu_profile_clock_stop(&p->config.clock);
    p->changes = qemu_add_vm_change_state_handler(machine_changed_state, p);
    p->stops = qemu_add_vm_change_state_handler_prio(flush_stopped_machine,
                                                     NULL, -1);
    p->shutdown.notify = shutting_down;
    qemu_register_shutdown_notifier(&p->shutdown);
    pmu_sink_start(p->sink);
    drain_now_and_then(p);
    return true;
}

static void begin_with_machine(Notifier *notifier, void *unused)
{
    begin_profile(container_of(notifier, PmuProfile, ready), &error_fatal);
}

static void complete(UserCreatable *uc, Error **errp)
{
    PmuProfile *p = PMU_PROFILE(uc);

    p->config.owner = object_get_canonical_path_component(OBJECT(p));
    if (!check_properties(p, errp)
        || (is_chardev(p) && !be_chardev(p, errp))) {
        return;
    }
    p->complete = true;
    qemu_register_resettable(OBJECT(p));
    if (phase_check(PHASE_MACHINE_READY)) {
        begin_profile(p, errp);
    } else {
        p->ready.notify = begin_with_machine;
        qemu_add_machine_init_done_notifier(&p->ready);
    }
}

static void init(Object *obj)
{
    PmuProfile *p = PMU_PROFILE(obj);

    p->enabled = true;
    p->config.drain = qemu_bh_new(drain_if_idle, p);
    p->samplers = g_ptr_array_new_with_free_func(free_sampler);
    p->drain_timer = timer_new_ms(QEMU_CLOCK_REALTIME, drain_now_and_then, p);
    p->gone_on = timer_new_ns(QEMU_CLOCK_VIRTUAL, gone_on, p);
    pmu_writer_init(&p->writer, &p->config.clock);
    p->agent.config = &p->config;
    p->agent.writer = &p->writer;
    p->agent.empty = empty_samplers;
    p->agent.opaque = p;
}

static void end(PmuProfile *p)
{
    if (p->machine_ready) {
        device_listener_unregister(&p->listener);
        qemu_del_vm_change_state_handler(p->changes);
        qemu_del_vm_change_state_handler(p->stops);
        notifier_remove(&p->shutdown);
        stop_samplers(p);
        drain_to_end(p);
    }
    if (p->ready.notify) {
        qemu_remove_machine_init_done_notifier(&p->ready);
    }
    if (p->complete) {
        qemu_unregister_resettable(OBJECT(p));
    }
}

static void finalize(Object *obj)
{
    PmuProfile *p = PMU_PROFILE(obj);

    end(p);
    pmu_agent_forget(&p->agent);
    pmu_sink_free(p->sink);
    timer_free(p->drain_timer);
    timer_free(p->gone_on);
    qemu_bh_delete(p->config.drain);
    g_ptr_array_unref(p->samplers);
    pmu_writer_destroy(&p->writer);
    pmu_profile_request_destroy(&p->config.asked);
    qapi_free_uint16List(p->vcpus);
    g_free(p->file);
    g_free(p->chardev);
    g_free(p->build_id);
    g_free(p->stopped);
}

static void refuse_ended(const PmuProfile *p, Error **errp)
{
    ERRP_GUARD();

    error_setg(errp, "The profile has ended: %s", p->stopped);
    error_append_hint(errp, "Begin another one, with another file.\n");
}

/* While samplers start, the big lock is released, and the profile may end. */
static void start_again(PmuProfile *p, Error **errp)
{
    p->enabled = start_samplers(p, errp);
    if (p->enabled && p->stopped) {
        p->enabled = false;
        stop_samplers(p);
        refuse_ended(p, errp);
    }
}

static bool get_enabled(Object *obj, Error **errp)
{
    return PMU_PROFILE(obj)->enabled;
}

static void set_enabled(Object *obj, bool enabled, Error **errp)
{
    PmuProfile *p = PMU_PROFILE(obj);

    if (enabled && p->stopped) {
        refuse_ended(p, errp);
    } else if (!p->machine_ready) {
        p->enabled = enabled;
    } else if (!enabled) {
        p->enabled = false;
        stop_samplers(p);
        drain_to_end(p);
    } else {
        start_again(p, errp);
    }
}

static bool can_be_deleted(UserCreatable *uc)
{
    const PmuProfile *p = PMU_PROFILE(uc);

    return !p->sink || !pmu_sink_is_used(p->sink);
}

static ResettableState *reset_state(Object *obj)
{
    return &PMU_PROFILE(obj)->reset;
}

static void init_class(ObjectClass *oc, ClassData *data)
{
    ResettableClass *rc = RESETTABLE_CLASS(oc);

    rc->get_state = reset_state;
    rc->phases.hold = reset_machine;
    USER_CREATABLE_CLASS(oc)->complete = complete;
    USER_CREATABLE_CLASS(oc)->can_be_deleted = can_be_deleted;
    pmu_profile_add_properties(oc);
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
        { TYPE_RESETTABLE_INTERFACE },
        { }
    },
};

static void register_profile_type(void)
{
    type_register_static(&profile_type);
}

type_init(register_profile_type)
