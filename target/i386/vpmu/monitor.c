/*
 * x86 virtual PMU: the description for the monitor
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "hw/i386/apic_internal.h"
#include "hw/pmu/pmu-monitor.h"
#include "system/kvm.h"
#include "guest.h"
#include "intel-events.h"
#include "internal.h"
#include "kvm.h"
#include "monitor.h"

const char *x86_vpmu_counter_name(const CPUState *cs, unsigned counter)
{
    const X86VPmu *v = X86_CPU(cs)->vpmu;

    return v->ops->counter_name(v, counter);
}

/*
 * Counters
 */

static const struct {
    X86VPmuStop stop;
    const char *name;
} stop_names[] = {
    { X86_VPMU_STOP_EN, "EN" },
    { X86_VPMU_STOP_FIXED_CTRL, "FIXED_CTR_CTRL" },
    { X86_VPMU_STOP_GLOBAL_CTRL, "GLOBAL_CTRL" },
    { X86_VPMU_STOP_CTR_FRZ, "CTR_FRZ" },
    { X86_VPMU_STOP_SVME, "EFER.SVME" },
    { X86_VPMU_STOP_IN_SMM, "FREEZE_WHILE_SMM" },
};

/* The event that would be counted without a filter */
static PmuEvent event_of(const X86VPmu *v, unsigned i)
{
    return i < v->nr_gp ? x86_vpmu_event_of(v, v->ops->event_code(v, i))
                        : intel_fixed_events[i - v->nr_gp];
}

static bool allowed(const X86VPmu *v, unsigned i)
{
    return i < v->nr_gp
           ? x86_vpmu_filter_allows(v->filter, v->ops->event_code(v, i))
           : pmu_filter_allows_fixed(v->filter, i - v->nr_gp);
}

/* The bits of a code in the registers */
#define RAW_BITS 0xff0f0000ffffull

PmuEvent x86_vpmu_raw_event(const CPUState *cs, uint64_t raw)
{
    const X86VPmu *v = X86_CPU(cs)->vpmu;
    uint32_t select = extract64(raw, 0, 8) | extract64(raw, 32, 4) << 8;
    uint32_t code = X86_VPMU_CODE2(select, extract64(raw, 8, 8),
                                   extract64(raw, 40, 8));

    return v && !(raw & ~RAW_BITS) ? x86_vpmu_event_of(v, code)
                                   : PMU_EVENT_NONE;
}

/* The code in the form of the registers */
static uint64_t raw_code(uint32_t code)
{
    return extract32(X86_VPMU_CODE_EVENT(code), 0, 8)
           | X86_VPMU_CODE_UMASK(code) << 8
           | (uint64_t)extract32(X86_VPMU_CODE_EVENT(code), 8, 4) << 32
           | (uint64_t)X86_VPMU_CODE_UMASK2(code) << 40;
}

static void describe_code(const X86VPmu *v, unsigned i, PmuCounterInfo *info)
{
    if (i < v->nr_gp) {
        info->code = raw_code(v->ops->event_code(v, i));
        info->has_code = info->code;
    }
}

/* Under KVM the host's PMU counts, which supports more events than these. */
static bool counted(const X86VPmu *v, unsigned i)
{
    return v->engine == X86_VPMU_KVM || event_of(v, i) != PMU_EVENT_NONE;
}

/* If a counter is not even enabled, other reasons are not listed. */
static void describe_stops(const X86VPmu *v, unsigned i, bool lost,
                           PmuCounterInfo *info)
{
    const unsigned stops = v->ops->stops(v, i)
                           | X86_VPMU_UNION(v->ops, stops, v, i);
    const bool used = !(stops & (X86_VPMU_STOP_EN | X86_VPMU_STOP_FIXED_CTRL));

    for (unsigned n = 0; n < ARRAY_SIZE(stop_names); n++) {
        pmu_stopped_by(info, stops & stop_names[n].stop, stop_names[n].name);
    }
    pmu_stopped_by(info, used && !counted(v, i), "event");
    pmu_stopped_by(info, used && !allowed(v, i), "filter");
    pmu_stopped_by(info, used && !info->modes && !(stops & X86_VPMU_STOP_SVME),
                   "modes");
    pmu_stopped_by(info, lost, "host");
}

static PmuCounterInfo *describe_counter(const X86VPmu *v, unsigned i,
                                        bool lost)
{
    PmuCounterInfo *info = pmu_describe_counter(v->pmu, i, event_of(v, i),
                                                &x86_pmu_guest_ops);

    info->q_register = g_strdup(v->ops->counter_name(v, i));
    info->interrupts = v->ops->interrupts(v, i);
    info->running = pmu_is_running(v->pmu, i) && info->modes
                    && counted(v, i) && allowed(v, i) && !lost;
    info->has_overflows = v->engine != X86_VPMU_KVM;
    describe_code(v, i, info);
    describe_stops(v, i, lost, info);
    return info;
}

static PmuCounterInfoList *describe_counters(const X86VPmu *v, uint64_t lost)
{
    PmuCounterInfoList *list = NULL, **tail = &list;

    for (unsigned i = 0; i < v->nr_gp + v->nr_fixed; i++) {
        QAPI_LIST_APPEND(tail, describe_counter(v, i, lost >> i & 1));
    }
    return list;
}

/*
 * Interrupts
 */

/* The CPU has one NMI, which other sources may have raised, too. */
static bool nmi_is_pending(const X86VPmu *v, uint32_t lvt)
{
    return (lvt >> 8 & 7) == APIC_DM_NMI
           && CPU(v->cpu)->interrupt_request & CPU_INTERRUPT_NMI;
}

static bool vector_is_pending(APICCommonState *apic, uint32_t lvt)
{
    return (lvt >> 8 & 7) == APIC_DM_FIXED
           && apic_get_bit(apic->irr, extract32(lvt, 0, 8));
}

static PmuInterruptList *pending(const X86VPmu *v)
{
    PmuInterruptList *list = NULL, **tail = &list;
    APICCommonState *apic;
    uint32_t lvt;

    if (!v->cpu->apic_state) {
        return NULL;
    }
    apic = APIC_COMMON(v->cpu->apic_state);
    lvt = apic->lvt[APIC_LVT_PERFORM];
    if (nmi_is_pending(v, lvt)) {
        QAPI_LIST_APPEND(tail, PMU_INTERRUPT_NMI);
    }
    if (vector_is_pending(apic, lvt)) {
        QAPI_LIST_APPEND(tail, PMU_INTERRUPT_LOCAL_APIC);
    }
    return list;
}

/*
 * Everything
 */

/* The registers that KVM hides, by their numbers */
static strList *hidden_registers(const X86VPmu *v)
{
    strList *list = NULL, **tail = &list;
    const X86VPmuStateMsr *m;
    unsigned n, i;

    for (n = 0; (m = x86_vpmu_state(v, n, &i)); n++) {
        if (v->hidden >> n & 1) {
            QAPI_LIST_APPEND(tail, g_strdup_printf(
                "0x%" PRIx32, m->first + i * m->step));
        }
    }
    return list;
}

static PmuInfo *describe_pmu(const X86VPmu *v, uint64_t lost)
{
    const bool ours = v->engine != X86_VPMU_KVM;
    PmuInfo *info = g_new0(PmuInfo, 1);

    info->kind = v->ops->kind(v);
    info->vendor = v->ops->by;
    info->model = g_strdup(v->model->name);
    info->has_version = true;
    info->version = v->version;
    info->width = X86_VPMU_WIDTH;
    info->counters = describe_counters(v, lost);
    info->has_pending = ours;
    info->pending = ours ? pending(v) : NULL;
    info->has_interrupts = ours;
    info->interrupts = v->pmis;
    info->has_folds = ours;
    info->folds = pmu_folds(v->pmu);
    X86_VPMU_CALL(v->ops, describe, v, info);
    info->filter = pmu_describe_filter(v->filter);
    info->has_hidden = !ours;
    info->hidden = ours ? NULL : hidden_registers(v);
    info->has_host_counters = !ours;
    info->host_counters = v->cpu->vpmu_props.host_counters;
    return info;
}

static PmuEngineKind engine_of(const X86VPmu *v)
{
    static const PmuEngineKind engines[] = {
        [X86_VPMU_TCG] = PMU_ENGINE_KIND_TCG,
        [X86_VPMU_QTEST] = PMU_ENGINE_KIND_QTEST,
        [X86_VPMU_KVM] = PMU_ENGINE_KIND_KVM,
    };

    return v ? engines[v->engine] : PMU_ENGINE_KIND_NONE;
}

/* Returns: the counters that the host has taken away */
static uint64_t describe_host(X86CPU *cpu, PmuCpuInfo *info)
{
    PmuHostReport report = {};

    if (kvm_enabled() && cpu->pmu_host
        && pmu_host_report(cpu->pmu_host, &report)) {
        info->host = pmu_describe_host(CPU(cpu), &report);
    }
    return report.lost;
}

/* If QEMU has changed registers, its values are newer than the kernel's. */
static bool read_kernel(X86CPU *cpu, Error **errp)
{
    return !kvm_enabled() || CPU(cpu)->vcpu_dirty
           || x86_vpmu_kvm_get(cpu, errp);
}

bool x86_vpmu_host_first(const CPUState *cs)
{
    return g_strcmp0(X86_CPU(cs)->vpmu_props.priority, "host") == 0;
}

bool x86_vpmu_describe(CPUState *cs, PmuCpuInfo *info, Error **errp)
{
    X86CPU *cpu = X86_CPU(cs);
    uint64_t lost;

    if (!read_kernel(cpu, errp)) {
        return false;
    }
    lost = describe_host(cpu, info);
    info->engine = engine_of(cpu->vpmu);
    info->observers = pmu_describe_observers(cs);
    info->core = pmu_describe_core(cs);
    info->pmu = cpu->vpmu ? describe_pmu(cpu->vpmu, lost) : NULL;
    return true;
}
