/*
 * x86 virtual PMU: the common part of the register files
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "qapi/error.h"
#include "hw/i386/apic.h"
#include "hw/pmu/pmu-host.h"
#include "hw/pmu/pmu-observer.h"
#include "system/kvm.h"
#include "system/tcg.h"
#include "debugctl.h"
#include "internal.h"
#include "kvm.h"
#include "trace.h"

/* Under KVM, the kernel reports its features itself. */
uint64_t x86_vpmu_features(X86CPU *cpu, FeatureWord w)
{
    const X86VPmuOps *ops = pmu_cpu_is_emulated() ? x86_vpmu_ops_for(cpu)
                                                  : NULL;

    return ops ? ops->offers(cpu, w) | X86_VPMU_UNION(ops, offers, cpu, w) : 0;
}

uint64_t x86_vpmu_perf_capabilities(const X86VPmu *v)
{
    return v->cpu->env.features[FEAT_PERF_CAPABILITIES]
           & x86_vpmu_features(v->cpu, FEAT_PERF_CAPABILITIES);
}

/* PerfMonV2 extends PerfCtrExtCore. */
static bool has_perfcore(const X86CPU *cpu)
{
    return !x86_vpmu_asked_off(cpu)
           && cpu->env.features[FEAT_8000_0001_ECX] & CPUID_EXT3_PERFCORE;
}

/* Their registers would fault, or differ from those that a guest expects. */
uint64_t x86_vpmu_missing_features(X86CPU *cpu, FeatureWord w)
{
    if (!kvm_enabled() || !cpu->vpmu_props.machine) {
        return 0;
    }
    switch (w) {
    case FEAT_8000_0001_ECX:
        return x86_vpmu_asked_off(cpu) ? CPUID_EXT3_PERFCORE : 0;
    case FEAT_8000_0022_EAX:
        return has_perfcore(cpu) ? 0 : CPUID_8000_0022_EAX_PERFMON_V2;
    default:
        return X86_VPMU_UNION(&intel_vpmu_ops, lacks, cpu, w);
    }
}

/*
 * Life
 */

static void create_counters(X86VPmu *v)
{
    const PmuCpuConfig config = {
        .nr_counters = v->nr_gp + v->nr_fixed + v->nr_metrics,
        .shape.width = X86_VPMU_WIDTH,
        .cycles = &v->cpu->vpmu_props.cycles,
        .core = v->cpu->vpmu_props.core_model,
        .overflow = v->ops->overflow,
        .opaque = v,
    };

    v->unit = pmu_cpu_new(CPU(v->cpu), &config);
    v->pmu = v->unit->pmu;
}

void x86_vpmu_create(X86CPU *cpu)
{
    const X86VPmuOps *ops = x86_vpmu_ops_for(cpu);
    X86VPmu *v;

    x86_vpmu_qtest_init();
    if (!ops) {
        return;
    }
    v = g_new0(X86VPmu, 1);
    v->cpu = cpu;
    v->ops = ops;
    v->engine = tcg_enabled() ? X86_VPMU_TCG
                : kvm_enabled() ? X86_VPMU_KVM : X86_VPMU_QTEST;
    v->vendor = cpu->env.cpuid_vendor1;
    v->nr_gp = cpu->vpmu_props.gp_counters;
    v->nr_fixed = cpu->vpmu_props.fixed_counters;
    /* x86_vpmu_configure() has checked it. */
    x86_vpmu_take_filter(&v->filter, &error_abort);
    ops->init(v);
    X86_VPMU_CALL(ops, init, v);
    create_counters(v);
    cpu->vpmu = v;
    x86_vpmu_reset(cpu);
}

void x86_vpmu_destroy(X86CPU *cpu)
{
    X86VPmu *v = cpu->vpmu;

    if (kvm_enabled()) {
        pmu_host_free(cpu->pmu_host);
        cpu->pmu_host = NULL;
    }
    cpu->vpmu = NULL;
    pmu_cpu_free(CPU(cpu));
    g_free(v);
}

void x86_vpmu_reset(X86CPU *cpu)
{
    X86VPmu *v = cpu->vpmu;

    if (v) {
        pmu_reset(v->pmu);
        v->ops->reset(v);
        X86_VPMU_CALL(v->ops, reset, v);
        pmu_cpu_was_reset(v->unit);
    }
}

/*
 * In QEMU, INIT also ends SMM: events that PEBS did not record before are not
 * recorded after it either.
 */
void x86_vpmu_init_signal(X86CPU *cpu)
{
    X86VPmu *v = cpu->vpmu;
    const bool leaves_smm = tcg_enabled() && cpu->env.hflags & HF_SMM_MASK;

    pmu_observer_forget_branches(CPU(cpu));
    if (v && (X86_VPMU_UNION(v->ops, ends_at_init, v) || leaves_smm)) {
        pmu_begin(v->pmu);
        X86_VPMU_FOREACH_FEATURE(f, v->ops) {
            if (f->ends_at_init && f->ends_at_init(v)) {
                f->reset(v);
            }
        }
        if (leaves_smm) {
            x86_debugctl_take_back(v);
        }
        v->ops->update(v);
        pmu_commit(v->pmu);
    }
}

void x86_vpmu_svme_changed(X86CPU *cpu)
{
    X86VPmu *v = cpu->vpmu;

    if (v) {
        pmu_begin(v->pmu);
        v->ops->update(v);
        pmu_commit(v->pmu);
    }
}

/*
 * The guest's view
 */

void x86_vpmu_cpuid(X86CPU *cpu, uint32_t leaf, uint32_t *eax, uint32_t *ebx,
                    uint32_t *ecx, uint32_t *edx)
{
    const X86VPmu *v = cpu->vpmu;

    if (kvm_enabled()) {
        x86_vpmu_kvm_cpuid(cpu, leaf, eax, ebx, ecx, edx);
        return;
    }
    *eax = *ebx = *ecx = *edx = 0;
    v->ops->cpuid(v, leaf, eax, ebx, ecx, edx);
    X86_VPMU_CALL(v->ops, cpuid, v, leaf, eax, ebx, ecx, edx);
}

uint64_t x86_vpmu_misc_enable(X86CPU *cpu, uint64_t val)
{
    X86VPmu *v = cpu->vpmu;

    if (kvm_enabled()) {
        return x86_vpmu_kvm_misc_enable(cpu, val);
    }
    return v && v->engine != X86_VPMU_KVM && v->ops->by == PMU_VENDOR_INTEL
           ? x86_vpmu_show_in_misc_enable(val, true, v->pebs) : val;
}

/* A read returns the count before the instruction that reads it. */
static void before_insn(X86CPU *cpu)
{
    if (tcg_enabled()) {
        pmu_tcg_before_insn(CPU(cpu));
    }
}

static void after_insn(X86CPU *cpu)
{
    if (tcg_enabled()) {
        pmu_tcg_after_insn(CPU(cpu));
    }
}

X86VPmuAccess x86_vpmu_rdmsr(X86CPU *cpu, uint32_t msr, uint64_t *val)
{
    X86VPmu *v = cpu->vpmu;
    X86VPmuAccess result;

    if (!v) {
        return X86_VPMU_NOT_MINE;
    }
    before_insn(cpu);
    result = x86_vpmu_read(v, msr, val);
    after_insn(cpu);
    if (result == X86_VPMU_DONE) {
        trace_x86_vpmu_rdmsr(CPU(cpu)->cpu_index, msr, *val);
    }
    return result;
}

X86VPmuAccess x86_vpmu_wrmsr(X86CPU *cpu, uint32_t msr, uint64_t val)
{
    X86VPmu *v = cpu->vpmu;
    X86VPmuAccess result = v ? x86_vpmu_write(v, msr, val)
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
    before_insn(cpu);
    valid = v->ops->rdpmc(v, index, val);
    after_insn(cpu);
    if (valid) {
        trace_x86_vpmu_rdpmc(CPU(cpu)->cpu_index, index, *val);
    }
    return valid;
}

void x86_vpmu_raise_pmi(X86VPmu *v, uint64_t counters, bool mask)
{
    const CPUX86State *env = &v->cpu->env;
    BQL_LOCK_GUARD();

    v->pmis++;
    trace_x86_vpmu_pmi(CPU(v->cpu)->cpu_index, counters, v->global_status,
                       env->segs[R_CS].base + env->eip,
                       x86_vpmu_mode(env->hflags));
    if (v->cpu->apic_state) {
        apic_deliver_pmi(v->cpu->apic_state, mask);
    }
}
