/*
 * Power virtual PMU: life, and counters that follow their registers
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "qapi/error.h"
#include "system/kvm.h"
#include "access.h"
#include "helper_regs.h"
#include "kvm.h"
#include "target/ppc/internal.h"
#include "hw/pmu/compat.h"
#include "hw/pmu/pmu-observer.h"
#include "internal.h"
#include "trace.h"

static bool is_pmc(unsigned reg)
{
    return reg >= SPR_POWER_PMC1 && reg <= SPR_POWER_PMC6;
}

static unsigned counter_of(unsigned reg)
{
    return ppc_vpmu_counter(reg - SPR_POWER_PMC1 + 1);
}

/* The processor whose PMU a CPU would have; NULL if QEMU has no PMU for it */
static const PpcVPmuModel *model_for(PowerPCCPU *cpu)
{
    return cpu->has_pmu && pmu_cpu_is_emulated() ? ppc_vpmu_model(cpu) : NULL;
}

/*
 * Counters follow registers
 */

/* An event that is selected and not counted is reported once. */
static void report_uncounted(const PpcVPmu *v, uint32_t code)
{
    if (extract32(code, 0, 8) && pmu_log_once(code)) {
        qemu_log_mask(LOG_UNIMP, "vPMU: event 0x%" PRIx32 " (%s) is not "
                      "counted and reads 0\n", code, v->model->name);
    }
}

static PmuSelect select_for(const PpcVPmu *v, unsigned pmc,
                            const PpcVPmuEvent *event)
{
    const PmuModes modes = ppc_vpmu_count_modes(v, pmc, event);

    if (modes && event->event == PMU_EVENT_NONE) {
        report_uncounted(v, ppc_vpmu_code_of(v, pmc));
    }
    return (PmuSelect) { .event = event->event, .modes = modes };
}

static void update_counter(PpcVPmu *v, unsigned pmc)
{
    const PpcVPmuEvent event =
        ppc_vpmu_event(v->model, pmc, v->cpu->env.spr[SPR_POWER_MMCR1],
                       v->cpu->env.spr[SPR_POWER_MMCRA],
                       v->cpu->env.spr[SPR_POWER_MMCR3]);
    const PmuSelect select = select_for(v, pmc, &event);
    unsigned counter = ppc_vpmu_counter(pmc);

    v->watches_siblings |= event.latch == PPC_VPMU_LATCH_ANY
                           || event.latch == PPC_VPMU_LATCH_ALL;
    pmu_select(v->pmu, counter, &select);
    pmu_run(v->pmu, counter, select.modes && select.event != PMU_EVENT_NONE);
    pmu_set_alert(v->pmu, counter, ppc_vpmu_notices(v, pmc));
}

static void follow_registers(PpcVPmu *v)
{
    unsigned pmc;

    v->watches_siblings = false;
    for (pmc = 1; pmc <= PPC_VPMU_NR_PMCS; pmc++) {
        update_counter(v, pmc);
    }
    ppc_vpmu_sample_update(v);
    ppc_vpmu_timebase_update(v);
    ppc_vpmu_bhrb_update(v);
}

void ppc_vpmu_update(PpcVPmu *v, uint64_t counters, bool event)
{
    ppc_vpmu_alert_if_due(v, counters, event);
    follow_registers(v);
}

/* This does not cause any condition. */
void ppc_vpmu_state_changed(CPUPPCState *env)
{
    PpcVPmu *v = env_archcpu(env)->vpmu;

    if (v) {
        pmu_begin(v->pmu);
        follow_registers(v);
        pmu_commit(v->pmu);
    }
}

static void siblings_changed(CPUState *cs, run_on_cpu_data data)
{
    ppc_vpmu_state_changed(cpu_env(cs));
}

void ppc_vpmu_sibling_changed(CPUPPCState *env)
{
    PpcVPmu *v = env_archcpu(env)->vpmu;

    if (v && v->watches_siblings) {
        async_run_on_cpu(env_cpu(env), siblings_changed, RUN_ON_CPU_NULL);
    }
}

static void cpu_started(CPUState *cs, run_on_cpu_data data)
{
    ppc_vpmu_state_changed(cpu_env(cs));
    pmu_observer_forget_branches(cs);
    ppc_vpmu_timebase_changed(cpu_env(cs));
}

void ppc_vpmu_started(CPUPPCState *env)
{
    async_run_on_cpu(env_cpu(env), cpu_started, RUN_ON_CPU_NULL);
}

void ppc_vpmu_store(CPUPPCState *env)
{
    PpcVPmu *v = env_archcpu(env)->vpmu;
    unsigned reg;

    if (v) {
        for (reg = SPR_POWER_PMC1; reg <= SPR_POWER_PMC6; reg++) {
            env->spr[reg] = pmu_read(v->pmu, counter_of(reg));
        }
    }
}

/* Counts up to now belong to the registers that were replaced. */
void ppc_vpmu_load(CPUPPCState *env)
{
    PpcVPmu *v = env_archcpu(env)->vpmu;
    unsigned reg;

    if (v) {
        pmu_reset(v->pmu);
        pmu_begin(v->pmu);
        for (reg = SPR_POWER_PMC1; reg <= SPR_POWER_PMC6; reg++) {
            pmu_write(v->pmu, counter_of(reg), env->spr[reg]);
        }
        env->spr[SPR_POWER_MMCR0] &= v->model->mmcr0;
        env->spr[SPR_POWER_MMCR2] &= v->model->mmcr2;
        ppc_vpmu_alert_if_loaded(v);
        follow_registers(v);
        ppc_vpmu_update_interrupt(v);
        pmu_commit(v->pmu);
    }
}

void ppc_vpmu_reset(CPUPPCState *env)
{
    PpcVPmu *v = env_archcpu(env)->vpmu;

    pmu_observer_forget_branches(env_cpu(env));
    if (v) {
        v->bhrb_unread = PPC_VPMU_BHRB_UNUSED;
        ppc_vpmu_bhrb_clear(env);
        ppc_vpmu_load(env);
        pmu_cpu_was_reset(v->unit);
    }
}

/*
 * Access to registers
 */

static bool is_problem_state(const CPUPPCState *env)
{
    return FIELD_EX64(env->msr, MSR, PR);
}

PpcVPmuAccess ppc_vpmu_check_access(CPUPPCState *env, unsigned sprn, bool write)
{
    PowerPCCPU *cpu = env_archcpu(env);

    if (ppc_hfscr_refuses(env, HFSCR_PM)) {
        return PPC_VPMU_HV_UNAVAILABLE;
    }
    if (!is_problem_state(env)) {
        return PPC_VPMU_ALLOWED;
    }
    if (!cpu->vpmu) {
        /* Before Power ISA 2.07 no facility could be unavailable. */
        return ppc_has_spr(cpu, SPR_FSCR) ? PPC_VPMU_UNAVAILABLE
                                          : PPC_VPMU_ALLOWED;
    }
    return ppc_vpmu_access(env->spr[SPR_POWER_MMCR0], sprn | SPR_PROBLEM,
                           write);
}

static void clear_cause(CPUPPCState *env, unsigned reg)
{
    env->spr[reg] &= ~((uint64_t)FSCR_IC_MASK << FSCR_IC_POS);
}

/* Leave by an interrupt if the access is not allowed. */
static void check_access(CPUPPCState *env, unsigned sprn, bool write,
                         uintptr_t ra)
{
    switch (ppc_vpmu_check_access(env, sprn, write)) {
    case PPC_VPMU_ALLOWED:
        break;
    case PPC_VPMU_HV_UNAVAILABLE:
        clear_cause(env, SPR_HFSCR);
        raise_exception_err_ra(env, POWERPC_EXCP_HV_FU, FSCR_IC_PMU, ra);
    case PPC_VPMU_UNAVAILABLE:
        clear_cause(env, SPR_FSCR);
        raise_exception_err_ra(env, POWERPC_EXCP_FU, FSCR_IC_PMU, ra);
    case PPC_VPMU_ILLEGAL:
        /* Without a hypervisor it becomes a program interrupt. */
        raise_exception_err_ra(env, POWERPC_EXCP_HV_EMU,
                               POWERPC_EXCP_INVAL | POWERPC_EXCP_INVAL_SPR,
                               ra);
    }
}

uint64_t ppc_vpmu_peek(const PpcVPmu *v, unsigned reg)
{
    return is_pmc(reg) ? pmu_peek(v->pmu, counter_of(reg))
                       : v->cpu->env.spr[reg];
}

static uint64_t read_register(PpcVPmu *v, unsigned reg)
{
    return is_pmc(reg) ? pmu_read(v->pmu, counter_of(reg))
                       : v->cpu->env.spr[reg];
}

uint64_t ppc_vpmu_read(PpcVPmu *v, unsigned sprn)
{
    unsigned reg = sprn | SPR_PROBLEM;
    uint64_t val = read_register(v, reg);

    if (is_problem_state(&v->cpu->env)) {
        val &= ppc_vpmu_visible_bits(reg);
    }
    return val;
}

uint64_t ppc_vpmu_mfspr(CPUPPCState *env, unsigned sprn, uintptr_t ra)
{
    PpcVPmu *v = env_archcpu(env)->vpmu;
    uint64_t val;

    check_access(env, sprn, false, ra);
    if (!v) {
        return 0;
    }
    pmu_tcg_before_insn(CPU(v->cpu));
    val = ppc_vpmu_read(v, sprn);
    pmu_tcg_after_insn(CPU(v->cpu));
    trace_ppc_vpmu_mfspr(CPU(v->cpu)->cpu_index, sprn, val);
    return val;
}

static void write_mmcr0(PpcVPmu *v, uint64_t val)
{
    v->cpu->env.spr[SPR_POWER_MMCR0] = val & v->model->mmcr0;
    ppc_vpmu_update_interrupt(v);
}

/* The numbers of registers that are reported once, apart from event codes */
#define REPORTED_REGISTER(reg) (1u << 31 | (reg))

/* A value that a register keeps and that has no effect is reported once. */
static void report_ignored(const PpcVPmu *v, unsigned reg, uint64_t val)
{
    bool ignored = reg == SPR_POWER_MMCRA ? val & ~v->model->mmcra
                   : reg == SPR_POWER_MMCR3 && val && !v->cpu->pmu_core_model;

    if (!ignored || !pmu_log_once(REPORTED_REGISTER(reg))) {
        return;
    }
    if (reg == SPR_POWER_MMCRA) {
        qemu_log_mask(LOG_UNIMP, "vPMU: MMCRA = 0x%" PRIx64 ": thresholds are "
                      "not compared with anything\n", val);
    } else {
        qemu_log_mask(LOG_UNIMP, "vPMU: MMCR3 = 0x%" PRIx64 ": there are no "
                      "caches whose sources it could choose\n", val);
    }
}

static void write_register(PpcVPmu *v, unsigned reg, uint64_t val)
{
    report_ignored(v, reg, val);
    if (is_pmc(reg)) {
        pmu_write(v->pmu, counter_of(reg), val);
    } else if (reg == SPR_POWER_MMCR0) {
        write_mmcr0(v, val);
    } else {
        v->cpu->env.spr[reg] = val;
    }
}

/* Those whose conditions can occur by a write of a register. */
static uint64_t counters_written(unsigned reg)
{
    return reg == SPR_POWER_MMCR0 ? PPC_VPMU_ALL_COUNTERS
           : is_pmc(reg) ? 1u << counter_of(reg) : 0;
}

void ppc_vpmu_write_whole(PpcVPmu *v, unsigned reg, uint64_t val)
{
    pmu_begin(v->pmu);
    write_register(v, reg, val);
    ppc_vpmu_update(v, counters_written(reg), false);
    pmu_commit(v->pmu);
}

void ppc_vpmu_write(PpcVPmu *v, unsigned sprn, uint64_t val)
{
    unsigned reg = sprn | SPR_PROBLEM;

    if (!ppc_vpmu_is_writable(sprn)) {
        return;
    }
    pmu_begin(v->pmu);
    if (is_problem_state(&v->cpu->env)) {
        uint64_t visible = ppc_vpmu_visible_bits(reg);

        val = (val & visible) | (read_register(v, reg) & ~visible);
    }
    ppc_vpmu_write_whole(v, reg, val);
    pmu_commit(v->pmu);
}

void ppc_vpmu_mtspr(CPUPPCState *env, unsigned sprn, uint64_t val,
                    uintptr_t ra)
{
    PpcVPmu *v = env_archcpu(env)->vpmu;

    check_access(env, sprn, true, ra);
    if (v) {
        trace_ppc_vpmu_mtspr(CPU(v->cpu)->cpu_index, sprn, val);
        ppc_vpmu_write(v, sprn, val);
    }
}

/*
 * Life
 */

static bool check_accelerator(const PowerPCCPU *cpu, Error **errp)
{
    ERRP_GUARD();

    if (kvm_enabled()) {
        return ppc_vpmu_kvm_configure(cpu, errp);
    }
    if (cpu->pmu_host_perf) {
        error_setg(errp, "pmu-host-perf is only for KVM");
        error_append_hint(errp, "Under TCG, the guest's own counters are "
                          "exact.\n");
        return false;
    }
    return true;
}

bool ppc_vpmu_configure(PowerPCCPU *cpu, Error **errp)
{
    ERRP_GUARD();
    const char *given = cpu->pmu_core ? "pmu-core"
                        : pmu_cycles_given(&cpu->pmu_cycles);
    const PmuFilter *filter;

    if (!check_accelerator(cpu, errp)
        || !ppc_vpmu_take_filter(&filter, errp)
        || !pmu_cpu_find_core(CPU(cpu), cpu->pmu_core, &cpu->pmu_cycles,
                              &cpu->pmu_core_model, errp)) {
        return false;
    }
    if (model_for(cpu)) {
        return pmu_cycles_configure(&cpu->pmu_cycles, errp);
    }
    if (!given) {
        /* If no PMU is emulated, the guest is not shown one either. */
        cpu->has_pmu = cpu->has_pmu && !pmu_cpu_is_emulated();
        return true;
    }
    error_setg(errp, "%s needs a CPU whose PMU is emulated", given);
    error_append_hint(errp, "%s.\n", !cpu->has_pmu ? "Add pmu=on"
                      : pmu_cpu_is_emulated() ? "Choose POWER7 or later"
                      : "Use -accel tcg, or leave it out");
    return false;
}

static void create_counters(PpcVPmu *v)
{
    const PmuCpuConfig config = {
        .nr_counters = PPC_VPMU_NR_PMCS,
        .shape = ppc_vpmu_shape,
        .cycles = &v->cpu->pmu_cycles,
        .core = v->cpu->pmu_core_model,
        .overflow = ppc_vpmu_overflow,
        .opaque = v,
    };

    v->unit = pmu_cpu_new(CPU(v->cpu), &config);
    v->pmu = v->unit->pmu;
}

void ppc_vpmu_create(PowerPCCPU *cpu)
{
    const PpcVPmuModel *model = model_for(cpu);
    PpcVPmu *v;

    ppc_vpmu_qtest_init();
    if (!model) {
        return;
    }
    v = g_new0(PpcVPmu, 1);
    v->cpu = cpu;
    v->model = model;
    if (cpu->pmu_core_model) {
        v->model_with_core = ppc_vpmu_with_core(model);
        v->model = &v->model_with_core;
    }
    v->bhrb_unread = PPC_VPMU_BHRB_UNUSED;
    /* ppc_vpmu_configure() has checked it. */
    ppc_vpmu_take_filter(&v->filter, &error_abort);
    create_counters(v);
    ppc_vpmu_timebase_init(v);
    pmu_recorder_init(&v->unit->recorder, BHRB_MAX_NUM_ENTRIES);
    cpu->vpmu = v;
}

void ppc_vpmu_destroy(PowerPCCPU *cpu)
{
    PpcVPmu *v = cpu->vpmu;

    if (v) {
        cpu->vpmu = NULL;
        timer_free(v->timebase);
    }
    pmu_cpu_free(CPU(cpu));
    g_free(v);
}
