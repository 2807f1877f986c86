/*
 * Power virtual PMU: what the monitor shows
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/pmu-monitor.h"
#include "system/kvm.h"
#include "system/tcg.h"
#include "guest.h"
#include "internal.h"
#include "monitor.h"

const char *ppc_vpmu_counter_name(const CPUState *cs, unsigned counter)
{
    static const char *const names[PPC_VPMU_NR_PMCS] = {
        "PMC1", "PMC2", "PMC3", "PMC4", "PMC5", "PMC6",
    };

    return names[counter];
}

#ifdef CONFIG_TCG

/*
 * What freezes a counter
 */

/* When a freeze bit has its effect. */
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

/* Those of PMC1; each of the others has its own nine bits. */
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
    /* Alone, it freezes problem state that is not the hypervisor's. */
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
    pmu_stopped_by(info, pmc < 5 && !f->run && !event->runs_always
                         && f->mmcr0 & MMCR0_FC14WAIT, "FC1-4WAIT");
    pmu_stopped_by(info, pmc >= 5
                         ? !f->run && !(f->mmcr0 & MMCR0_CC56RUN)
                         : !ppc_vpmu_latch_is_set(v, event->latch),
                   "run-latch");
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
    pmu_stopped_by(info, event->event == PMU_EVENT_NONE, "event");
    pmu_stopped_by(info, !ppc_vpmu_filter_allows(v->filter, info->code),
                   "filter");
}

/*
 * Counters
 */

static PpcVPmuEvent event_of(const PpcVPmu *v, unsigned pmc)
{
    return ppc_vpmu_event(v->model, pmc, v->cpu->env.spr[SPR_POWER_MMCR1],
                          v->cpu->env.spr[SPR_POWER_MMCRA]);
}

static PmuCounterInfo *describe_counter(const PpcVPmu *v, unsigned pmc)
{
    const uint64_t mmcr0 = v->cpu->env.spr[SPR_POWER_MMCR0];
    const unsigned counter = ppc_vpmu_counter(pmc);
    const PpcVPmuEvent event = event_of(v, pmc);
    PmuCounterInfo *info = pmu_describe_counter(v->pmu, counter, event.event,
                                                &ppc_pmu_guest_ops);

    info->q_register = g_strdup(ppc_vpmu_counter_name(CPU(v->cpu), counter));
    info->code = ppc_vpmu_event_code(pmc, v->cpu->env.spr[SPR_POWER_MMCR1]);
    info->has_code = extract32(info->code, 0, 8);
    info->running = pmu_is_running(v->pmu, counter);
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

static PmuInfo *describe_pmu(const PpcVPmu *v)
{
    PmuInfo *info = g_new0(PmuInfo, 1);

    info->kind = g_ascii_strdown(v->model->name, -1);
    info->vendor = PMU_VENDOR_IBM;
    info->model = g_strdup(v->model->name);
    info->width = pmu_width(v->pmu, 0);
    info->counters = describe_counters(v);
    info->has_pending = true;
    info->pending = pending(v);
    info->has_interrupts = true;
    info->interrupts = v->alerts;
    info->has_folds = true;
    info->folds = pmu_folds(v->pmu);
    info->filter = pmu_describe_filter(v->filter);
    return info;
}

bool ppc_vpmu_describe(CPUState *cs, PmuCpuInfo *info, Error **errp)
{
    const PowerPCCPU *cpu = POWERPC_CPU(cs);

    info->observers = pmu_describe_observers(cs);
    if (cpu->vpmu) {
        info->engine = tcg_enabled() ? PMU_ENGINE_KIND_TCG
                                     : PMU_ENGINE_KIND_QTEST;
        info->pmu = describe_pmu(cpu->vpmu);
    } else if (kvm_enabled() && cpu->has_pmu) {
        info->engine = PMU_ENGINE_KIND_KVM;
    }
    return true;
}

PmuEvent ppc_vpmu_raw_event(const CPUState *cs, uint64_t raw)
{
    const PpcVPmu *v = POWERPC_CPU(cs)->vpmu;

    return v && raw <= UINT32_MAX ? ppc_vpmu_code_event(v->model, raw)
                                  : PMU_EVENT_NONE;
}

#else /* no PMU but KVM's in this executable */

PmuEvent ppc_vpmu_raw_event(const CPUState *cs, uint64_t raw)
{
    return PMU_EVENT_NONE;
}

bool ppc_vpmu_describe(CPUState *cs, PmuCpuInfo *info, Error **errp)
{
    if (kvm_enabled() && POWERPC_CPU(cs)->has_pmu) {
        info->engine = PMU_ENGINE_KIND_KVM;
    }
    return true;
}

#endif
