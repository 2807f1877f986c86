/*
 * Performance monitoring unit: descriptions that all architectures share
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/clone-visitor.h"
#include "qapi/error.h"
#include "qapi/qapi-events-pmu-monitor.h"
#include "qapi/qapi-visit-pmu.h"
#include "hw/pmu/pmu-monitor.h"
#include "hw/pmu/pmu-observer.h"

PmuModeList *pmu_mode_list(PmuModes modes, const PmuGuestOps *ops)
{
    PmuModeList *list = NULL, **tail = &list;

    for (unsigned m = 0; m < ops->nr_modes; m++) {
        if (modes >> m & 1) {
            QAPI_LIST_APPEND(tail, qapi_enum_parse(&PmuMode_lookup,
                                                   ops->mode_names[m], -1,
                                                   &error_abort));
        }
    }
    return list;
}

strList *pmu_counter_names(const CPUState *cpu, uint64_t counters)
{
    strList *names = NULL, **tail = &names;

    for (unsigned i = 0; i < PMU_MAX_COUNTERS; i++) {
        if (counters >> i & 1) {
            QAPI_LIST_APPEND(tail, g_strdup(
                pmu_guest_ops(cpu)->counter_name(cpu, i)));
        }
    }
    return names;
}

void pmu_emit_lost(const CPUState *cpu, uint64_t counters, uint64_t losses)
{
    g_autoptr(strList) lost = pmu_counter_names(cpu, counters);

    qapi_event_send_pmu_lost(cpu->cpu_index, lost, losses);
}

static void describe_select(PmuCounterInfo *info, const PmuSelect *select,
                            const PmuGuestOps *ops)
{
    info->modes = pmu_mode_list(select->modes, ops);
    info->has_threshold = select->threshold;
    info->threshold = select->threshold;
    info->has_invert = select->invert;
    info->invert = select->invert;
    info->has_edge = select->edge;
    info->edge = select->edge;
}

PmuCounterInfo *pmu_describe_counter(const Pmu *pmu, unsigned counter,
                                     PmuEvent event, const PmuGuestOps *ops)
{
    PmuCounterInfo *info = g_new0(PmuCounterInfo, 1);

    info->event = g_strdup(pmu_event_name(event));
    describe_select(info, pmu_selected(pmu, counter), ops);
    info->value = pmu_peek(pmu, counter);
    info->left = pmu_distance(pmu, counter);
    info->has_overflows = true;
    info->overflows = pmu_overflows(pmu, counter);
    return info;
}

void pmu_stopped_by(PmuCounterInfo *info, bool applies, const char *what)
{
    strList **tail = &info->stopped_by;

    if (applies) {
        while (*tail) {
            tail = &(*tail)->next;
        }
        QAPI_LIST_APPEND(tail, g_strdup(what));
    }
}

static PmuModes recorded_modes(const PmuRecorder *r)
{
    PmuModes modes = 0;

    for (unsigned m = 0; m < PMU_MAX_MODES; m++) {
        modes |= r->wanted[m] ? 1u << m : 0;
    }
    return modes;
}

PmuRecordsInfo *pmu_describe_records(const PmuRecorder *recorder,
                                     const PmuGuestOps *ops)
{
    PmuRecordsInfo *info = g_new0(PmuRecordsInfo, 1);

    info->depth = pmu_recorder_depth(recorder);
    info->modes = pmu_mode_list(recorded_modes(recorder), ops);
    info->call_stack = recorder->call_stack;
    return info;
}

PmuFilterInfo *pmu_describe_filter(const PmuFilter *filter)
{
    PmuFilterInfo *info;

    if (!filter) {
        return NULL;
    }
    info = g_new0(PmuFilterInfo, 1);
    info->id = g_strdup(
        object_get_canonical_path_component(OBJECT(filter)));
    info->action = filter->action;
    info->has_x86_fixed_counter = true;
    info->x86_fixed_counter = filter->fixed;
    info->has_events = true;
    info->events = QAPI_CLONE(KvmPmuFilterEventList, filter->events);
    return info;
}

static PmuObserverInfo *describe_observer(const PmuObserver *o,
                                          const PmuGuestOps *ops)
{
    const PmuObserverConfig *config = pmu_observer_config(o);
    PmuObserverInfo *info = g_new0(PmuObserverInfo, 1);

    info->owner = g_strdup(config->owner);
    info->event = g_strdup(pmu_event_name(config->event));
    info->modes = pmu_mode_list(config->modes, ops);
    info->has_period = true;
    info->period = config->period;
    info->count = pmu_observer_count(o);
    return info;
}

static QLIST_HEAD(, PmuHostObserver) host_observers =
    QLIST_HEAD_INITIALIZER(host_observers);

void pmu_host_observer_add(PmuHostObserver *o)
{
    if (!QLIST_IS_INSERTED(o, next)) {
        QLIST_INSERT_HEAD(&host_observers, o, next);
    }
}

void pmu_host_observer_remove(PmuHostObserver *o)
{
    QLIST_SAFE_REMOVE(o, next);
}

static void describe_host_observers(const CPUState *cpu,
                                    PmuObserverInfoList **tail)
{
    const PmuHostObserver *o;

    QLIST_FOREACH(o, &host_observers, next) {
        PmuObserverInfo *info = o->cpu == cpu ? o->describe(o) : NULL;

        if (info) {
            QAPI_LIST_APPEND(tail, info);
        }
    }
}

PmuObserverInfoList *pmu_describe_observers(CPUState *cpu)
{
    PmuObserverInfoList *list = NULL, **tail = &list;
    const PmuObserver *o = NULL;

    while ((o = pmu_observer_next(cpu, o))) {
        QAPI_LIST_APPEND(tail, describe_observer(o, pmu_guest_ops(cpu)));
    }
    describe_host_observers(cpu, tail);
    return list;
}

/* Returns: NULL if there is no such account. */
static PmuHostAccountInfo *describe_account(const PmuHostReport *report,
                                            PmuHostScope scope)
{
    const PmuHostAccount *account = &report->accounts[scope];
    PmuHostAccountInfo *info;

    if (!(report->scopes >> scope & 1)) {
        return NULL;
    }
    info = g_new0(PmuHostAccountInfo, 1);
    info->instructions = account->insns;
    info->cycles = account->cycles;
    info->enabled_ns = account->enabled_ns;
    info->running_ns = account->running_ns;
    info->losses = account->losses;
    return info;
}

PmuHostInfo *pmu_describe_host(const CPUState *cpu,
                               const PmuHostReport *report)
{
    PmuHostInfo *info = g_new0(PmuHostInfo, 1);

    info->guest = describe_account(report, PMU_HOST_GUEST);
    info->all = describe_account(report, PMU_HOST_ALL);
    info->host = describe_account(report, PMU_HOST_HOST);
    /* Where guests have counters of their own, there is no priority. */
    info->has_priority = info->guest;
    info->priority = report->first ? PMU_PRIORITY_HOST
                                          : PMU_PRIORITY_GUEST;
    info->lost = pmu_counter_names(cpu, report->lost);
    info->losses = report->losses;
    info->has_last_loss = report->losses;
    info->last_loss = report->last_loss_ms;
    return info;
}
