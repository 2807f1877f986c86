/*
 * x86 virtual PMU: what the register files share
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "qapi/error.h"
#include "hw/i386/apic.h"
#include "system/qtest.h"
#include "system/runstate.h"
#include "system/tcg.h"
#include "vpmu-internal.h"
#include "trace.h"

/*
 * A guest cannot ask whether an AMD CPU has counters, as all of them do: it
 * tries, and finds none in QEMU's.  So that guests find what they always have
 * found, only those CPUs have some for which the user asks; "max", whose PMU
 * is on by default, is not among them.
 */
static bool wants_pmu(const X86CPU *cpu)
{
    return cpu->enable_pmu
           && (cpu->pmu_asked_for || !IS_AMD_CPU(&cpu->env));
}

/* The register file that a CPU would have; NULL if there is none for it. */
static const X86VPmuOps *ops_for(X86CPU *cpu)
{
    if (!wants_pmu(cpu) || !(tcg_enabled() || qtest_enabled())) {
        return NULL;
    }
    return IS_INTEL_CPU(&cpu->env) ? &intel_vpmu_ops
           : IS_AMD_CPU(&cpu->env) ? &amd_vpmu_ops : NULL;
}

uint64_t x86_vpmu_features(X86CPU *cpu, FeatureWord w)
{
    const X86VPmuOps *ops = ops_for(cpu);

    return ops ? ops->features(cpu, w) : 0;
}

/*
 * Properties
 */

/* The name of a property that the user has given, or NULL. */
static const char *given_property(const X86VPmuProps *props)
{
    return props->version != X86_VPMU_UNSET ? "pmu-version"
           : props->gp_counters != X86_VPMU_UNSET ? "pmu-gp-counters"
           : props->fixed_counters != X86_VPMU_UNSET ? "pmu-fixed-counters"
           : pmu_cycles_given(&props->cycles);
}

static bool refuse_properties(X86CPU *cpu, const char *given, Error **errp)
{
    ERRP_GUARD();

    if (!(tcg_enabled() || qtest_enabled())) {
        error_setg(errp, "%s is only for the PMU that TCG emulates", given);
        error_append_hint(errp, "Use -accel tcg, or leave the property out: "
                          "the host's PMU decides.\n");
    } else if (!wants_pmu(cpu)) {
        error_setg(errp, "%s needs a CPU with a PMU", given);
        error_append_hint(errp, "Add pmu=on.\n");
    } else {
        error_setg(errp, "%s: there is no PMU for CPUs of this vendor yet",
                   given);
        error_append_hint(errp, "Choose a CPU model of Intel's or AMD's, or "
                          "add vendor=GenuineIntel.\n");
    }
    return false;
}

bool x86_vpmu_configure(X86CPU *cpu, Error **errp)
{
    const X86VPmuOps *ops = ops_for(cpu);
    const char *given = given_property(&cpu->vpmu_props);

    if (!ops) {
        return !given || refuse_properties(cpu, given, errp);
    }
    return ops->configure(cpu, errp)
           && pmu_cycles_configure(&cpu->vpmu_props.cycles, errp);
}

/*
 * Life
 */

static void create_counters(X86VPmu *v)
{
    const PmuCycleModel model =
        pmu_cycles_model(&v->cpu->vpmu_props.cycles);
    const PmuEngineOps *engine_ops = &pmu_manual_ops;
    void *engine;

    if (tcg_enabled()) {
        engine_ops = &pmu_tcg_ops;
        engine = v->tcg = pmu_tcg_new(CPU(v->cpu), &model);
    } else {
        engine = v->manual = g_new0(PmuManual, 1);
    }
    v->pmu = pmu_new(v->nr_gp + v->nr_fixed, X86_VPMU_NR_MODES,
                     engine_ops, engine, v->ops->overflow, v);
    CPU(v->cpu)->pmu = v->pmu;
}

/*
 * Overflow that has not been noticed yet is noticed before anything is saved:
 * it may raise an interrupt, which is part of other devices' state.
 */
static void machine_stopped(void *opaque, bool running, RunState state)
{
    X86VPmu *v = opaque;

    if (!running) {
        pmu_fold(v->pmu);
    }
}

void x86_vpmu_create(X86CPU *cpu)
{
    const X86VPmuOps *ops = ops_for(cpu);
    X86VPmu *v;

    x86_vpmu_qtest_init();
    if (!ops) {
        return;
    }
    v = g_new0(X86VPmu, 1);
    v->cpu = cpu;
    v->ops = ops;
    v->vendor = cpu->env.cpuid_vendor1;
    v->nr_gp = cpu->vpmu_props.gp_counters;
    v->nr_fixed = cpu->vpmu_props.fixed_counters;
    ops->init(v);
    create_counters(v);
    v->stopped = qemu_add_vm_change_state_handler(machine_stopped, v);
    cpu->vpmu = v;
    x86_vpmu_reset(cpu);
}

void x86_vpmu_destroy(X86CPU *cpu)
{
    X86VPmu *v = cpu->vpmu;

    if (v) {
        cpu->vpmu = NULL;
        CPU(cpu)->pmu = NULL;
        qemu_del_vm_change_state_handler(v->stopped);
        pmu_free(v->pmu);
        pmu_tcg_free(v->tcg);
        g_free(v->manual);
        g_free(v);
    }
}

void x86_vpmu_reset(X86CPU *cpu)
{
    X86VPmu *v = cpu->vpmu;

    if (v) {
        pmu_reset(v->pmu);
        v->ops->reset(v);
    }
}

void x86_vpmu_svme_changed(X86CPU *cpu)
{
    X86VPmu *v = cpu->vpmu;

    if (v) {
        pmu_begin(v->pmu);
        v->ops->resume(v);
        pmu_commit(v->pmu);
    }
}

/*
 * The guest's view
 */

void x86_vpmu_cpuid(X86CPU *cpu, uint32_t leaf, uint32_t *eax, uint32_t *ebx,
                    uint32_t *ecx, uint32_t *edx)
{
    *eax = *ebx = *ecx = *edx = 0;
    cpu->vpmu->ops->cpuid(cpu->vpmu, leaf, eax, ebx, ecx, edx);
}

uint64_t x86_vpmu_misc_enable(X86CPU *cpu, uint64_t val)
{
    X86VPmu *v = cpu->vpmu;

    return v && v->ops->misc_enable ? v->ops->misc_enable(v, val) : val;
}

X86VPmuAccess x86_vpmu_rdmsr(X86CPU *cpu, uint32_t msr, uint64_t *val)
{
    X86VPmu *v = cpu->vpmu;
    X86VPmuAccess result;

    if (!v) {
        return X86_VPMU_NOT_MINE;
    }
    pmu_tcg_before_insn(CPU(cpu));
    result = x86_vpmu_read_msr(v, msr, val);
    pmu_tcg_after_insn(CPU(cpu));
    if (result == X86_VPMU_DONE) {
        trace_x86_vpmu_rdmsr(CPU(cpu)->cpu_index, msr, *val);
    }
    return result;
}

X86VPmuAccess x86_vpmu_wrmsr(X86CPU *cpu, uint32_t msr, uint64_t val)
{
    X86VPmu *v = cpu->vpmu;
    X86VPmuAccess result = v ? x86_vpmu_write_msr(v, msr, val)
                             : X86_VPMU_NOT_MINE;

    if (result != X86_VPMU_NOT_MINE) {
        trace_x86_vpmu_wrmsr(CPU(cpu)->cpu_index, msr, val,
                             result == X86_VPMU_FAULT ? " #GP" : "");
    }
    return result;
}

bool x86_vpmu_rdpmc(X86CPU *cpu, uint32_t index, uint64_t *val)
{
    X86VPmu *v = cpu->vpmu;
    bool valid;

    if (!v) {
        return false;
    }
    pmu_tcg_before_insn(CPU(cpu));
    valid = v->ops->rdpmc(v, index, val);
    pmu_tcg_after_insn(CPU(cpu));
    if (valid) {
        trace_x86_vpmu_rdpmc(CPU(cpu)->cpu_index, index, *val);
    }
    return valid;
}

void x86_vpmu_raise_pmi(X86VPmu *v, bool mask)
{
    BQL_LOCK_GUARD();

    trace_x86_vpmu_pmi(CPU(v->cpu)->cpu_index);
    if (v->cpu->apic_state) {
        apic_deliver_pmi(v->cpu->apic_state, mask);
    }
}
