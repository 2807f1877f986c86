/*
 * Performance monitoring unit: counters that the guest cannot see
 *
 * The observers of a vCPU are the counters of a Pmu of their own, which shares
 * the engine with the guest's.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "system/tcg.h"
#include "hw/pmu/pmu-cpu.h"
#include "hw/pmu/pmu-guest.h"
#include "hw/pmu/pmu-observer.h"

typedef struct PmuObservers PmuObservers;

/**
 * struct PmuObserver - a counter that the guest cannot see
 * @cpu: the vCPU
 * @config: its configuration
 * @index: the index of the counter
 * @before: events before the counter was last written
 * @from: the value that was written then
 */
struct PmuObserver {
    CPUState *cpu;
    PmuObserverConfig config;
    unsigned index;
    uint64_t before;
    uint64_t from;
};

/**
 * struct PmuObservers - the observers of a vCPU
 * @unit: the vCPU's part in counting
 * @share: the engine, which they share with the guest
 * @pmu: their counters
 * @slots: the observers by the index of the counter
 * @called: the one that is being called, or NULL
 * @loaded: hears that the engine's tallies were loaded
 * @gone: hears that the vCPU goes away
 */
struct PmuObservers {
    PmuCpu *unit;
    PmuShare *share;
    Pmu *pmu;
    PmuObserver *slots[PMU_MAX_OBSERVERS];
    const PmuObserver *called;
    Notifier loaded;
    Notifier gone;
};

static PmuObservers *observers_of(const PmuObserver *o)
{
    return o->cpu->pmu->observers;
}

/*
 * Counting
 */

static uint64_t since_written(const PmuObserver *o, uint64_t value)
{
    return value - o->from;
}

static void write_observer(PmuObserver *o, uint64_t distance)
{
    Pmu *pmu = observers_of(o)->pmu;

    o->from = -distance;
    pmu_begin(pmu);
    pmu_write(pmu, o->index, o->from);
    pmu_commit(pmu);
}

/* Events beyond the end of the period are part of the next one. */
static void end_period(PmuObserver *o)
{
    uint64_t beyond = pmu_peek(observers_of(o)->pmu, o->index);
    uint64_t period = o->config.period;
    uint64_t events = (beyond / period + 1) * period;

    o->before += since_written(o, beyond);
    write_observer(o, period - beyond % period);
    observers_of(o)->called = o;
    o->config.overflow(o->config.opaque, o, events);
    observers_of(o)->called = NULL;
}

static void handle_observers_overflow(void *opaque, uint64_t counters)
{
    PmuObservers *all = opaque;

    pmu_begin(all->pmu);
    for (unsigned i = 0; i < PMU_MAX_OBSERVERS; i++) {
        if (counters >> i & 1) {
            end_period(all->slots[i]);
        }
    }
    pmu_commit(all->pmu);
}

uint64_t pmu_observer_count(const PmuObserver *o)
{
    return o->before + since_written(o, pmu_peek(observers_of(o)->pmu,
                                                 o->index));
}

const PmuObserverConfig *pmu_observer_config(const PmuObserver *o)
{
    return &o->config;
}

void pmu_observer_set_period(PmuObserver *o, uint64_t period)
{
    Pmu *pmu = observers_of(o)->pmu;
    uint64_t gone;

    assert(period);
    pmu_begin(pmu);
    gone = o->config.period - pmu_distance(pmu, o->index);
    o->before = pmu_observer_count(o);
    o->config.period = period;
    write_observer(o, period > gone ? period - gone : 1);
    pmu_commit(pmu);
}

/*
 * Branches
 */

/*
 * Record branches in all modes in which an observer asks for them, and note
 * addresses if any of them asks for these.
 */
static void update_records(CPUState *cpu)
{
    const PmuObserver *o = NULL;
    PmuModes modes = 0;
    bool addresses = false;

    while ((o = pmu_observer_next(cpu, o))) {
        modes |= o->config.branches ? o->config.modes : 0;
        addresses |= o->config.addresses;
    }
    if (tcg_enabled()) {
        pmu_tcg_record_outside(cpu->pmu->tcg, modes);
        pmu_tcg_note_addresses_outside(cpu->pmu->tcg, addresses);
    }
}

/* The recorder, which has read all branches up to now */
static PmuRecorder *recorder_outside(CPUState *cpu)
{
    if (tcg_enabled()) {
        pmu_tcg_see_branches(cpu);
    }
    return &cpu->pmu->outside;
}

unsigned pmu_observer_branches(CPUState *cpu, PmuBranch *branches,
                               unsigned max)
{
    const PmuRecorder *r = recorder_outside(cpu);
    unsigned n;

    for (n = 0; n < max; n++) {
        branches[n] = pmu_recorder_get(r, n);
        if (!branches[n].kind) {
            break;
        }
    }
    return n;
}

void pmu_observer_forget_branches(CPUState *cpu)
{
    if (cpu->pmu) {
        pmu_recorder_clear(recorder_outside(cpu));
    }
}

/*
 * Data
 */

bool pmu_observer_access(CPUState *cpu, PmuAccess *access)
{
    const PmuCoreEntry *entry;
    uint64_t pc;
    unsigned mode;

    *access = (PmuAccess) { .kind = PMU_CORE_FETCH };
    if (!tcg_enabled() || !pmu_tcg_site(cpu, &pc, &mode)
        || !pmu_tcg_data_address(cpu, pc, &access->address)) {
        return false;
    }
    entry = pmu_tcg_data_entry(cpu);
    if (entry) {
        access->kind = pmu_core_kind_of(entry);
        access->outcome = entry->from;
        access->latency = pmu_core_latency(&cpu->pmu->core->penalties,
                                           entry->from);
    }
    return true;
}

/*
 * Life
 */

static void run_counter(PmuObserver *o)
{
    const PmuSelect select = {
        .event = o->config.event,
        .modes = o->config.modes,
    };
    Pmu *pmu = observers_of(o)->pmu;

    pmu_begin(pmu);
    pmu_select(pmu, o->index, &select);
    write_observer(o, o->config.period);
    pmu_set_alert(pmu, o->index, true);
    pmu_run(pmu, o->index, true);
    pmu_commit(pmu);
}

static void stop_counter(PmuObserver *o)
{
    Pmu *pmu = observers_of(o)->pmu;

    pmu_begin(pmu);
    pmu_run(pmu, o->index, false);
    pmu_set_alert(pmu, o->index, false);
    pmu_commit(pmu);
}

/* @gone is not set until pmu_observer_new() has returned the observer. */
static void release(PmuObserver *o)
{
    if (o->config.gone) {
        o->config.gone(o->config.opaque);
    }
    g_free(o);
}

/*
 * Periods that end late
 */

/* Whether the event consists of instructions, or follows from their number */
static bool is_of_insns(PmuEvent event)
{
    return event == PMU_EVENT_INSNS || event == PMU_EVENT_CYCLES
           || event == PMU_EVENT_REF_CYCLES;
}

static uint64_t distance_to_end(const PmuObserver *o)
{
    return pmu_distance(observers_of(o)->pmu, o->index);
}

/* Whether its period ends at most once in @events events, and may end late */
static bool can_end_late(const PmuObserver *o, uint64_t events)
{
    return !o->config.in_place && o->config.period > events;
}

static bool observers_can_wait(void *opaque, unsigned mode, uint64_t events,
                               PmuLate *late)
{
    const PmuObservers *all = opaque;

    for (unsigned i = 0; i < PMU_MAX_OBSERVERS; i++) {
        const PmuObserver *o = all->slots[i];

        if (!o || !(o->config.modes >> mode & 1)) {
            continue;
        }
        if (!is_of_insns(o->config.event)) {
            return false;
        }
        if (distance_to_end(o) <= events) {
            if (late->owner || !can_end_late(o, events)) {
                return false;
            }
            late->owner = o;
            late->distance = distance_to_end(o);
            late->in_cycles = o->config.event != PMU_EVENT_INSNS;
        }
    }
    return true;
}

static void prepare_observer(const void *owner)
{
    const PmuObserver *o = owner;

    if (o->config.prepare) {
        o->config.prepare(o->config.opaque);
    }
}

static const void *called_observer(void *opaque)
{
    const PmuObservers *all = opaque;

    return all->called;
}

static const PmuLateOps late_ops = {
    .can_wait = observers_can_wait,
    .prepare = prepare_observer,
    .called = called_observer,
};

bool pmu_observer_is_late(const PmuObserver *o)
{
    return tcg_enabled() && observers_of(o)->called == o
           && pmu_tcg_is_late(o->cpu);
}

/*
 * The observers of a vCPU
 */

/* The counts of observers stay. */
static void rebase_observers(Notifier *notifier, void *unused)
{
    Pmu *pmu = container_of(notifier, PmuObservers, loaded)->pmu;

    pmu_rebase(pmu);
    pmu_fold(pmu);
}

static void free_observers(PmuObservers *all)
{
    notifier_remove(&all->loaded);
    notifier_remove(&all->gone);
    pmu_share_leave(all->share, all->pmu);
    all->unit->observers = NULL;
    g_free(all);
}

static void vcpu_gone(Notifier *notifier, void *unused)
{
    PmuObservers *all = container_of(notifier, PmuObservers, gone);

    for (unsigned i = 0; i < PMU_MAX_OBSERVERS; i++) {
        if (all->slots[i]) {
            release(all->slots[i]);
        }
    }
    free_observers(all);
}

static PmuObservers *new_observers(PmuCpu *unit)
{
    PmuObservers *all = g_new0(PmuObservers, 1);

    all->unit = unit;
    all->share = unit->share;
    all->pmu = pmu_share_join_late(all->share, PMU_MAX_OBSERVERS,
                                   handle_observers_overflow, &late_ops, all);
    for (unsigned i = 0; i < PMU_MAX_OBSERVERS; i++) {
        pmu_set_shape(all->pmu, i, (PmuCounterShape) { .width = 64 });
    }
    all->loaded.notify = rebase_observers;
    notifier_list_add(&unit->loaded, &all->loaded);
    all->gone.notify = vcpu_gone;
    notifier_list_add(&unit->gone, &all->gone);
    return all;
}

static int free_slot(const PmuObservers *all)
{
    for (unsigned i = 0; i < PMU_MAX_OBSERVERS; i++) {
        if (!all->slots[i]) {
            return i;
        }
    }
    return -1;
}

/* Returns: false if there is no room. */
static bool take_slot(PmuObserver *o)
{
    PmuCpu *unit = pmu_cpu_of(o->cpu);
    int slot;

    if (!unit->observers) {
        unit->observers = new_observers(unit);
    }
    slot = free_slot(unit->observers);
    if (slot < 0) {
        return false;
    }
    o->index = slot;
    unit->observers->slots[slot] = o;
    return true;
}

/* An observer on its way to the vCPU */
typedef struct Request {
    PmuObserver *observer;
    bool done;
} Request;

static void begin_observer_on_cpu(CPUState *cpu, run_on_cpu_data data)
{
    Request *r = data.host_ptr;

    r->done = take_slot(r->observer);
    if (r->done) {
        run_counter(r->observer);
        update_records(cpu);
    }
}

static void end_observer_on_cpu(CPUState *cpu, run_on_cpu_data data)
{
    PmuObserver *o = data.host_ptr;
    PmuObservers *all = observers_of(o);

    stop_counter(o);
    all->slots[o->index] = NULL;
    update_records(cpu);
    if (!pmu_observer_next(cpu, NULL)) {
        free_observers(all);
    }
    g_free(o);
}

static bool check_observable(CPUState *cpu, Error **errp)
{
    ERRP_GUARD();

    if (!pmu_guest_ops(cpu)) {
        error_setg(errp, "CPUs of type %s cannot be observed",
                   object_get_typename(OBJECT(cpu)));
        error_append_hint(errp, "CPUs of x86 and of 64-bit Power can.\n");
        return false;
    }
    return pmu_cpu_check_emulated(errp);
}

static PmuObserver *new_observer(CPUState *cpu, const PmuObserverConfig *config)
{
    PmuObserver *o = g_new0(PmuObserver, 1);

    o->cpu = cpu;
    o->config = *config;
    o->config.gone = NULL;
    return o;
}

/* Releases the big lock meanwhile. */
static PmuObserver *begin_observer(PmuObserver *o, Error **errp)
{
    CPUState *cpu = o->cpu;
    Request r = { .observer = o };
    bool is_there = pmu_guest_run(cpu, begin_observer_on_cpu, &r, errp);

    if (is_there && !r.done) {
        error_setg(errp, "vCPU %d has %u observers already, the maximum",
                   cpu->cpu_index, PMU_MAX_OBSERVERS);
    }
    if (!r.done) {
        g_free(o);
    }
    return is_there && r.done ? o : NULL;
}

PmuObserver *pmu_observer_new(CPUState *cpu, const PmuObserverConfig *config,
                              Error **errp)
{
    PmuObserver *o = NULL;

    if (check_observable(cpu, errp)) {
        object_ref(OBJECT(cpu));
        o = begin_observer(new_observer(cpu, config), errp);
        object_unref(OBJECT(cpu));
    }
    if (o) {
        o->config.gone = config->gone;
    }
    return o;
}

void pmu_observer_free(PmuObserver *o)
{
    if (o) {
        pmu_guest_run(o->cpu, end_observer_on_cpu, o, NULL);
    }
}

PmuObserver *pmu_observer_next(CPUState *cpu, const PmuObserver *o)
{
    const PmuObservers *all = cpu->pmu ? cpu->pmu->observers : NULL;

    for (unsigned i = o ? o->index + 1 : 0; all && i < PMU_MAX_OBSERVERS; i++) {
        if (all->slots[i]) {
            return all->slots[i];
        }
    }
    return NULL;
}
