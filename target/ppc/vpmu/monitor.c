/*
 * Power virtual PMU: the description for the monitor
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/pmu-monitor.h"
#include "system/kvm.h"
#include "system/tcg.h"
#include "guest.h"
#include "internal.h"
#include "kvm.h"
#include "monitor.h"

const char *ppc_vpmu_counter_name(const CPUState *cs, unsigned counter)
{
    static const char *const names[PPC_VPMU_NR_PMCS] = {
        "PMC1", "PMC2", "PMC3", "PMC4", "PMC5", "PMC6",
    };

    return names[counter];
}

static void describe_host(PowerPCCPU *cpu, PmuCpuInfo *info)
{
    PmuHostReport report;

    if (kvm_enabled() && cpu->pmu_host
        && pmu_host_report(cpu->pmu_host, &report)) {
        info->host = pmu_describe_host(CPU(cpu), &report);
    }
}

/*
 * Reasons for which a counter is frozen
 */

/* When a freeze bit has its effect */
typedef enum When {
    ALWAYS,
    MARKED,   /* MSR[PMM] is 1 */
    UNMARKED, /* MSR[PMM] is 0 */
    WAITING,  /* CTRL[RUN] is 0 */
} When;

#define PMCS(first, last) MAKE_64BIT_MASK(first, (last) - (first) + 1)
#define ALL_PMCS PMCS(1, PPC_VPMU_NR_PMCS)

static const struct {
    const char *name;
    uint64_t bit;
    uint64_t pmcs;
    When when;
} mmcr0_bits[] = {
    { "FC", MMCR0_FC, ALL_PMCS },
    { "FCS", MMCR0_FCS, ALL_PMCS },
    { "FCP", MMCR0_FCP, ALL_PMCS },
    { "FCM1", MMCR0_FCM1, ALL_PMCS, MARKED },
    { "FCM0", MMCR0_FCM0, ALL_PMCS, UNMARKED },
    { "TRIGGER", MMCR0_TRIGGER, PMCS(2, 6) },
    { "FC1-4", MMCR0_FC14, PMCS(1, 4) },
    { "FC5-6", MMCR0_FC56, PMCS(5, 6) },
    { "FCH", MMCR0_FCH, ALL_PMCS },
};

/* The bits of PMC1; each of the others has its own nine bits. */
static const struct {
    const char *suffix;
    uint64_t bit;
    When when;
} mmcr2_bits[] = {
    { "S", MMCR2_FCS(1) },
    { "P0", MMCR2_FCP0(1) },
    { "P1", MMCR2_FCP1(1) },
    { "M1", MMCR2_FCM1(1), MARKED },
    { "M0", MMCR2_FCM0(1), UNMARKED },
    { "WAIT", MMCR2_FCWAIT(1), WAITING },
    { "H", MMCR2_FCH(1) },
};

static bool is_effective(const PpcVPmuFreeze *f, When when)
{
    return when == ALWAYS || (when == MARKED && f->pmm)
           || (when == UNMARKED && !f->pmm) || (when == WAITING && !f->run);
}

static void name_mmcr0_bits(const PpcVPmuFreeze *f, unsigned pmc,
                            PmuCounterInfo *info)
{
    for (unsigned i = 0; i < ARRAY_SIZE(mmcr0_bits); i++) {
        pmu_stopped_by(info, f->mmcr0 & mmcr0_bits[i].bit
                             && mmcr0_bits[i].pmcs >> pmc & 1
                             && is_effective(f, mmcr0_bits[i].when),
                       mmcr0_bits[i].name);
    }
    /* Alone, it freezes problem state outside the hypervisor. */
    pmu_stopped_by(info, (f->mmcr0 & (MMCR0_FCPC | MMCR0_FCP)) == MMCR0_FCPC,
                   "FCPC");
}

static void name_mmcr2_bits(const PpcVPmuFreeze *f, unsigned pmc,
                            PmuCounterInfo *info)
{
    for (unsigned i = 0; i < ARRAY_SIZE(mmcr2_bits); i++) {
        g_autofree char *name = g_strdup_printf("FC%u%s", pmc,
                                                mmcr2_bits[i].suffix);

        pmu_stopped_by(info, f->mmcr2 << 9 * (pmc - 1) & mmcr2_bits[i].bit
                             && is_effective(f, mmcr2_bits[i].when), name);
    }
}

/* PMC5 and PMC6 count by themselves while the run latch is set. */
static void name_latches(const PpcVPmu *v, const PpcVPmuFreeze *f,
                         unsigned pmc, const PpcVPmuEvent *event,
                         PmuCounterInfo *info)
{
    const bool always = f->mmcr0 & MMCR0_CC56RUN
                        && !ppc_vpmu_is_outside(f->mmcr0, pmc);

    pmu_stopped_by(info, pmc < 5 && !f->run && !event->runs_always
                         && f->mmcr0 & MMCR0_FC14WAIT, "FC1-4WAIT");
    pmu_stopped_by(info, pmc >= 5
                         ? !f->run && !always
                         : !ppc_vpmu_latch_is_set(v, event->latch),
                   "run-latch");
}

/*
 * Under KVM the processor counts, which supports more events than QEMU; PMC5
 * and PMC6 always count their own events.
 */
static bool is_counted(const PpcVPmu *v, unsigned pmc,
                       const PpcVPmuEvent *event)
{
    return event->event != PMU_EVENT_NONE
           || (!v->unit && extract32(ppc_vpmu_code_of(v, pmc), 0, 8));
}

static void describe_stops(const PpcVPmu *v, unsigned pmc,
                           const PpcVPmuEvent *event, PmuCounterInfo *info)
{
    const PpcVPmuFreeze f = ppc_vpmu_freeze_state(v);

    if (!ppc_vpmu_is_outside(f.mmcr0, pmc)) {
        name_mmcr0_bits(&f, pmc, info);
        name_mmcr2_bits(&f, pmc, info);
    }
    name_latches(v, &f, pmc, event, info);
    pmu_stopped_by(info, !is_counted(v, pmc, event), "event");
    pmu_stopped_by(info, !ppc_vpmu_filter_allows(v->filter, info->code),
                   "filter");
}

/*
 * Counters
 */

static PpcVPmuEvent event_of(const PpcVPmu *v, unsigned pmc)
{
    return ppc_vpmu_event(v->model, pmc, v->cpu->env.spr[SPR_POWER_MMCR1],
                          v->cpu->env.spr[SPR_POWER_MMCRA],
                          v->cpu->env.spr[SPR_POWER_MMCR3]);
}

static PmuCounterInfo *describe_counter(const PpcVPmu *v, unsigned pmc)
{
    const uint64_t mmcr0 = v->cpu->env.spr[SPR_POWER_MMCR0];
    const unsigned counter = ppc_vpmu_counter(pmc);
    const PpcVPmuEvent event = event_of(v, pmc);
    PmuCounterInfo *info = pmu_describe_counter(v->pmu, counter, event.event,
                                                &ppc_pmu_guest_ops);

    info->q_register = g_strdup(ppc_vpmu_counter_name(CPU(v->cpu), counter));
    info->code = ppc_vpmu_code_of(v, pmc);
    info->has_code = extract32(info->code, 0, 8);
    info->running = pmu_is_running(v->pmu, counter);
    info->has_overflows = v->unit;
    info->interrupts = mmcr0 & MMCR0_PMAE
                       && ppc_vpmu_is_condition(mmcr0, pmc);
    describe_stops(v, pmc, &event, info);
    return info;
}

static PmuCounterInfoList *describe_counters(const PpcVPmu *v)
{
    PmuCounterInfoList *list = NULL, **tail = &list;

    for (unsigned pmc = 1; pmc <= PPC_VPMU_NR_PMCS; pmc++) {
        QAPI_LIST_APPEND(tail, describe_counter(v, pmc));
    }
    return list;
}

/*
 * Everything
 */

static PmuInterruptList *pending(const PpcVPmu *v)
{
    const uint32_t interrupts = v->cpu->env.pending_interrupts;
    PmuInterruptList *list = NULL, **tail = &list;

    if (interrupts & PPC_INTERRUPT_PERFM) {
        QAPI_LIST_APPEND(tail, PMU_INTERRUPT_PERFORMANCE_MONITOR);
    }
    if (interrupts & PPC_INTERRUPT_EBB) {
        QAPI_LIST_APPEND(tail, PMU_INTERRUPT_EVENT_BASED_BRANCH);
    }
    return list;
}

/* The description of the counters, under TCG and KVM */
static PmuInfo *describe_counting(const PpcVPmu *v)
{
    PmuInfo *info = g_new0(PmuInfo, 1);

    info->kind = g_ascii_strdown(v->model->name, -1);
    info->vendor = PMU_VENDOR_IBM;
    info->model = g_strdup(v->model->name);
    info->width = pmu_width(v->pmu, 0);
    info->counters = describe_counters(v);
    return info;
}

static PmuRecordsInfo *describe_records(const PpcVPmu *v)
{
    return v->cpu->env.bhrb_num_entries
           ? pmu_describe_records(&v->unit->recorder,
                                  &ppc_pmu_guest_ops) : NULL;
}

static PmuInfo *describe_pmu(const PpcVPmu *v)
{
    PmuInfo *info = describe_counting(v);

    info->has_pending = true;
    info->pending = pending(v);
    info->has_interrupts = true;
    info->interrupts = v->alerts;
    info->has_folds = true;
    info->folds = pmu_folds(v->pmu);
    info->records = describe_records(v);
    info->filter = pmu_describe_filter(v->filter);
    return info;
}

/*
 * Under KVM: a copy of the registers, with counters that do not advance
 */

static void nothing_overflows(void *opaque, uint64_t counters)
{
}

static void copy_counter(PpcVPmu *v, unsigned pmc)
{
    const CPUPPCState *env = &v->cpu->env;
    const unsigned counter = ppc_vpmu_counter(pmc);
    const PpcVPmuEvent event = ppc_vpmu_event(
        v->model, pmc, env->spr[SPR_POWER_MMCR1], env->spr[SPR_POWER_MMCRA],
        env->spr[SPR_POWER_MMCR3]);
    const PmuSelect select = {
        .event = event.event,
        .modes = ppc_vpmu_count_modes(v, pmc, &event),
    };

    pmu_set_shape(v->pmu, counter, ppc_vpmu_shape);
    pmu_write(v->pmu, counter, env->spr[SPR_POWER_PMC1 + counter]);
    pmu_select(v->pmu, counter, &select);
    pmu_run(v->pmu, counter, select.modes && is_counted(v, pmc, &event));
}

static void copy_registers(PpcVPmu *v)
{
    pmu_begin(v->pmu);
    for (unsigned pmc = 1; pmc <= PPC_VPMU_NR_PMCS; pmc++) {
        copy_counter(v, pmc);
    }
    pmu_commit(v->pmu);
}

static PmuInfo *describe_kvm(PowerPCCPU *cpu)
{
    PmuManual engine = {};
    PmuShare *share = pmu_share_new(PPC_VPMU_NR_MODES, &pmu_manual_ops,
                                    &engine);
    strList *hidden = ppc_vpmu_kvm_read(cpu);
    PpcVPmu v = {
        .cpu = cpu,
        .model = ppc_vpmu_model(cpu),
        .pmu = pmu_share_join(share, PPC_VPMU_NR_PMCS, nothing_overflows,
                              NULL),
    };
    PmuInfo *info;

    copy_registers(&v);
    info = describe_counting(&v);
    info->has_hidden = true;
    info->hidden = hidden;
    pmu_share_leave(share, v.pmu);
    pmu_share_free(share);
    return info;
}

bool ppc_vpmu_describe(CPUState *cs, PmuCpuInfo *info, Error **errp)
{
    PowerPCCPU *cpu = POWERPC_CPU(cs);

    info->observers = pmu_describe_observers(cs);
    info->core = pmu_describe_core(cs);
    if (cpu->vpmu) {
        info->engine = tcg_enabled() ? PMU_ENGINE_KIND_TCG
                                     : PMU_ENGINE_KIND_QTEST;
        info->pmu = describe_pmu(cpu->vpmu);
    } else if (kvm_enabled()) {
        info->engine = PMU_ENGINE_KIND_KVM;
        info->pmu = ppc_vpmu_model(cpu) ? describe_kvm(cpu) : NULL;
        describe_host(cpu, info);
    }
    return true;
}

PmuEvent ppc_vpmu_raw_event(const CPUState *cs, uint64_t raw)
{
    const PpcVPmu *v = POWERPC_CPU(cs)->vpmu;

    return v && raw <= UINT32_MAX ? ppc_vpmu_code_event(v->model, raw)
                                  : PMU_EVENT_NONE;
}
