/*
 * Power virtual PMU: conditions, the alert and its interrupt
 *
 * Power ISA 3.1B, book III, "Performance Monitor Facility": when an enabled
 * condition or event occurs, a trigger ends (TRIGGER) or else counters freeze
 * (FCECE), and an alert occurs (PMAE).  That a counter is negative is such a
 * condition.  It occurs when the counter turns negative, when it is written and
 * is negative then, and when MMCR0 is written, which enables it; it does not
 * occur again while the counter stays negative.  So the condition that ends a
 * trigger does not freeze counters, too: FCECE is taken for 0 when a condition
 * "occurs when MMCR0[TRIGGER] = 1", which would be void if it occurred once
 * more just after that.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "hw/ppc/ppc.h"
#include "hw/pmu/compat.h"
#include "internal.h"
#include "trace.h"

static uint64_t *spr(const PpcVPmu *v, unsigned reg)
{
    return &v->cpu->env.spr[reg];
}

static uint64_t mmcr0(const PpcVPmu *v)
{
    return *spr(v, SPR_POWER_MMCR0);
}

static bool is_negative(PpcVPmu *v, unsigned pmc)
{
    return pmu_read(v->pmu, ppc_vpmu_counter(pmc)) >= PMC_NEGATIVE;
}

/* Returns: the first of @counters whose enabled condition holds, or 0. */
static unsigned negative_among(PpcVPmu *v, uint64_t counters)
{
    unsigned pmc;

    for (pmc = 1; pmc <= PPC_VPMU_NR_PMCS; pmc++) {
        if (counters >> ppc_vpmu_counter(pmc) & 1
            && ppc_vpmu_is_condition(mmcr0(v), pmc) && is_negative(v, pmc)) {
            return pmc;
        }
    }
    return 0;
}

static unsigned negative_pmc(PpcVPmu *v)
{
    return negative_among(v, PPC_VPMU_ALL_COUNTERS);
}

bool ppc_vpmu_notices(const PpcVPmu *v, unsigned pmc)
{
    uint64_t val = mmcr0(v);

    if (pmc == 1 && val & MMCR0_TRIGGER) {
        return true;
    }
    return ppc_vpmu_is_condition(val, pmc)
           && val & (MMCR0_PMAE | MMCR0_FCECE | MMCR0_TRIGGER);
}

/* The type of the instruction that made a counter negative, if known */
static uint64_t type_of_sample(PpcVPmu *v)
{
    unsigned pmc = negative_pmc(v);

    if (!pmc) {
        return 0;
    }
    switch (ppc_vpmu_event(v->model, pmc, *spr(v, SPR_POWER_MMCR1),
                           *spr(v, SPR_POWER_MMCRA),
                           *spr(v, SPR_POWER_MMCR3)).event) {
    case PMU_EVENT_LOADS:
        return v->model->sample->load;
    case PMU_EVENT_STORES:
        return v->model->sample->store;
    default:
        return 0;
    }
}

/*
 * In continuous sampling SDAR follows misses of caches, which do not occur
 * here; in random sampling it belongs to the sampled instruction.
 */
void ppc_vpmu_sample_update(PpcVPmu *v)
{
    if (v->unit->tcg) {
        pmu_tcg_note_addresses(v->unit->tcg, *spr(v, SPR_POWER_MMCRA)
                                             & MMCRA_SAMPLE_ENABLE);
    }
}

/* Returns: the sample's bits that describe SDAR */
static uint64_t take_data_address(PpcVPmu *v, uint64_t pc)
{
    bool known = *spr(v, SPR_POWER_MMCRA) & MMCRA_SAMPLE_ENABLE
                 && pmu_tcg_data_address(CPU(v->cpu), pc,
                                         spr(v, SPR_POWER_SDAR));

    if (!known) {
        *spr(v, SPR_POWER_SDAR) = 0;
    }
    return known ? v->model->sample->sdar_valid : 0;
}

/* Where a model of the core had the data of a load or store, which is @type */
static uint64_t source_of(const PpcVPmuSampleFields *fields, uint64_t type,
                          uint32_t outcome)
{
    if (fields->reg != SPR_POWER_SIER || !type) {
        return 0;
    }
    if (!(outcome & PMU_CORE_L1_MISSED)) {
        return SIER_LDST_L1;
    }
    return type == fields->store ? SIER_LDST_STORE
           : outcome & PMU_CORE_LAST_MISSED ? SIER_LDST_MEMORY : SIER_LDST_L3;
}

/* A threshold that is set up is taken for that of the latency. */
static void take_latency(PpcVPmu *v, uint32_t outcome)
{
    const PmuCoreModel *core = v->cpu->pmu_core_model;
    uint64_t mantissa = pmu_core_latency(&core->penalties, outcome);
    uint64_t exponent = 0;

    for (; mantissa >= 1 << 7 && exponent < 7; exponent++) {
        mantissa >>= 2;
    }
    *spr(v, SPR_POWER_MMCRA) &= ~MMCRA_THR_CTR;
    *spr(v, SPR_POWER_MMCRA) |= MIN(mantissa, 0x7f) << MMCRA_THR_MANTISSA
                                | exponent << MMCRA_THR_EXPONENT;
}

/* Returns: the sample's bits that describe the access, if it is known */
static uint64_t take_access(PpcVPmu *v, uint64_t pc)
{
    const PpcVPmuSampleFields *fields = v->model->sample;
    uint64_t valid = take_data_address(v, pc), type = type_of_sample(v);
    const PmuCoreEntry *entry = valid ? pmu_tcg_data_entry(CPU(v->cpu)) : NULL;

    if (!entry) {
        return valid | type;
    }
    if (fields->reg == SPR_POWER_SIER
        && *spr(v, SPR_POWER_MMCRA) & MMCRA_THR_CTL) {
        take_latency(v, entry->from);
    }
    return valid | type | source_of(fields, type, entry->from);
}

/* An event of the time base does not belong to any counter: PMC0. */
static void trace_alert(PpcVPmu *v, unsigned mode)
{
    trace_ppc_vpmu_alert(CPU(v->cpu)->cpu_index, negative_pmc(v), mmcr0(v),
                         *spr(v, SPR_POWER_SIAR), *spr(v, SPR_POWER_SIER),
                         mode);
}

/*
 * The sampled instruction is the one whose completion made a counter negative.
 * If there is no such instruction, it is the one that comes next.
 *
 * Returns: the mode in which it was executed.
 */
static unsigned sample_instruction(PpcVPmu *v)
{
    const PpcVPmuSampleFields *fields = v->model->sample;
    CPUPPCState *env = &v->cpu->env;
    uint64_t pc, told;
    unsigned mode;

    if (!pmu_tcg_site(CPU(v->cpu), &pc, &mode)) {
        pc = env->nip;
        mode = ppc_vpmu_mode(env->hflags);
    }
    *spr(v, SPR_POWER_SIAR) = pc;
    told = fields->siar_valid | take_access(v, pc)
           | (mode & PPC_VPMU_MODE_PRIVILEGED ? 0 : fields->problem)
           | (mode & PPC_VPMU_MODE_HV ? fields->hypervisor : 0);
    *spr(v, fields->reg) = (*spr(v, fields->reg) & ~fields->all) | told;
    *spr(v, SPR_POWER_SIER2) = 0;
    *spr(v, SPR_POWER_SIER3) = 0;
    return mode;
}

void ppc_vpmu_update_interrupt(PpcVPmu *v)
{
    uint64_t val = mmcr0(v);

    ppc_set_irq(v->cpu, PPC_INTERRUPT_PERFM,
                val & MMCR0_PMAO && !(val & MMCR0_EBE));
    ppc_vpmu_update_ebb(&v->cpu->env);
}

static void raise_alert(PpcVPmu *v)
{
    unsigned mode = sample_instruction(v);

    v->alerts++;
    v->bhrb_unread = MIN(v->bhrb_unread + 1, PPC_VPMU_BHRB_UNUSED);
    *spr(v, SPR_POWER_MMCR0) &= ~(MMCR0_PMAE | MMCR0_PMAQ);
    *spr(v, SPR_POWER_MMCR0) |= MMCR0_PMAO;
    if (trace_event_get_state_backends(TRACE_PPC_VPMU_ALERT)) {
        trace_alert(v, mode);
    }
    ppc_vpmu_update_interrupt(v);
}

/* FCECE is ignored while counters wait for the trigger. */
static void freeze_or_trigger(PpcVPmu *v, bool due)
{
    if (mmcr0(v) & MMCR0_TRIGGER) {
        if (due || is_negative(v, 1)) {
            *spr(v, SPR_POWER_MMCR0) &= ~MMCR0_TRIGGER;
        }
    } else if (due && mmcr0(v) & MMCR0_FCECE) {
        *spr(v, SPR_POWER_MMCR0) |= MMCR0_FC;
    }
}

static void alert_if_enabled(PpcVPmu *v, bool due)
{
    if (due && mmcr0(v) & MMCR0_PMAE) {
        raise_alert(v);
    }
}

void ppc_vpmu_alert_if_due(PpcVPmu *v, uint64_t counters, bool event)
{
    bool due = event || negative_among(v, counters);

    freeze_or_trigger(v, due);
    alert_if_enabled(v, due);
}

void ppc_vpmu_alert_if_loaded(PpcVPmu *v)
{
    alert_if_enabled(v, negative_pmc(v));
}

static bool any_is_noticed(const PpcVPmu *v, uint64_t counters)
{
    unsigned pmc;

    for (pmc = 1; pmc <= PPC_VPMU_NR_PMCS; pmc++) {
        if (counters >> ppc_vpmu_counter(pmc) & 1 && ppc_vpmu_notices(v, pmc)) {
            return true;
        }
    }
    return false;
}

/* It is a matter of chance when other counters are found to be negative. */
void ppc_vpmu_overflow(void *opaque, uint64_t counters)
{
    PpcVPmu *v = opaque;

    if (any_is_noticed(v, counters)) {
        pmu_begin(v->pmu);
        ppc_vpmu_update(v, counters, false);
        pmu_commit(v->pmu);
    }
}

/*
 * Events of the time base
 */

/* Ticks until the selected bit turns from 0 to 1, at least 1. */
static uint64_t ticks_to_transition(PpcVPmu *v)
{
    static const unsigned bits[] = { 47, 51, 55, 63 };
    unsigned sel = extract64(mmcr0(v), MMCR0_TBSEL_SHIFT, 2);
    uint64_t bit = PPC_BIT(bits[sel]);
    uint64_t ticks = (bit - cpu_ppc_load_tbl(&v->cpu->env)) & (2 * bit - 1);

    return ticks ?: 2 * bit;
}

static void transition_on_cpu(CPUState *cs, run_on_cpu_data data)
{
    PpcVPmu *v = data.host_ptr;

    pmu_begin(v->pmu);
    if (mmcr0(v) & MMCR0_TBEE) {
        ppc_vpmu_update(v, 0, true);
    }
    pmu_commit(v->pmu);
}

static void transition(void *opaque)
{
    PpcVPmu *v = opaque;

    async_run_on_cpu(CPU(v->cpu), transition_on_cpu, RUN_ON_CPU_HOST_PTR(v));
}

void ppc_vpmu_timebase_init(PpcVPmu *v)
{
    v->timebase = timer_new_ns(QEMU_CLOCK_VIRTUAL, transition, v);
}

/* Each effect of an event happens once, until the guest asks for it again. */
static bool timebase_has_effect(uint64_t mmcr0)
{
    bool freezes = mmcr0 & MMCR0_FCECE && !(mmcr0 & MMCR0_FC);

    return mmcr0 & MMCR0_TBEE
           && (freezes || mmcr0 & (MMCR0_PMAE | MMCR0_TRIGGER));
}

/* Does not wait for an event that can have no effect. */
void ppc_vpmu_timebase_update(PpcVPmu *v)
{
    uint32_t freq;

    if (!timebase_has_effect(mmcr0(v)) || !v->cpu->env.tb_env) {
        timer_del(v->timebase);
        return;
    }
    freq = v->cpu->env.tb_env->tb_freq;
    if (!freq) {
        /* The time base stands still. */
        timer_del(v->timebase);
        return;
    }
    timer_mod(v->timebase, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL)
              + muldiv64_round_up(ticks_to_transition(v),
                                  NANOSECONDS_PER_SECOND, freq));
}

void ppc_vpmu_timebase_changed(CPUPPCState *env)
{
    PpcVPmu *v = env_archcpu(env)->vpmu;

    if (v) {
        ppc_vpmu_timebase_update(v);
    }
}
