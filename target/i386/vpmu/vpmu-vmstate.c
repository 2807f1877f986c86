/*
 * x86 virtual PMU: migration state
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qapi/error.h"
#include "system/kvm.h"
#include "hw/pmu/pmu-vmstate.h"
#include "vpmu-internal.h"
#include "vpmu-kvm.h"

#define SAME(property) \
    "Source and destination must have the same " property "."

static int registers_pre_save(void *opaque)
{
    X86VPmu *v = opaque;

    pmu_fold(v->pmu);
    return 0;
}

static int registers_post_load(void *opaque, int version_id)
{
    X86VPmu *v = opaque;

    pmu_rebase(v->pmu);
    pmu_begin(v->pmu);
    v->ops->resume(v);
    pmu_commit(v->pmu);
    return 0;
}

#ifdef CONFIG_TCG
static bool driven_by_tcg(void *opaque, int version_id)
{
    X86VPmu *v = opaque;

    return v->tcg != NULL;
}
#endif

static const VMStateDescription vmstate_registers = {
    .name = "cpu/vpmu/registers",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_save = registers_pre_save,
    .post_load = registers_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32_EQUAL(engine, X86VPmu, SAME("accelerator")),
        VMSTATE_UINT32_EQUAL(vendor, X86VPmu, SAME("vendor")),
        VMSTATE_UINT32_EQUAL(version, X86VPmu,
                             SAME("pmu-version, or perfmon-v2,")),
        VMSTATE_UINT32_EQUAL(nr_gp, X86VPmu, SAME("pmu-gp-counters")),
        VMSTATE_UINT32_EQUAL(nr_fixed, X86VPmu, SAME("pmu-fixed-counters")),
        VMSTATE_UINT64_ARRAY(evtsel, X86VPmu, X86_VPMU_MAX_GP),
        VMSTATE_UINT64(fixed_ctrl, X86VPmu),
        VMSTATE_UINT64(global_ctrl, X86VPmu),
        VMSTATE_UINT64(global_status, X86VPmu),
        VMSTATE_UINT64(debugctl, X86VPmu),
        VMSTATE_STRUCT_POINTER(pmu, X86VPmu, vmstate_pmu, Pmu),
#ifdef CONFIG_TCG
        VMSTATE_STRUCT_POINTER_TEST(tcg, X86VPmu, driven_by_tcg,
                                    vmstate_pmu_tcg, PmuTcg),
#endif
        VMSTATE_END_OF_LIST()
    }
};

/* Whether a PMU is not as after RESET. */
static bool is_used(const X86VPmu *v)
{
    uint64_t used = v->fixed_ctrl | v->global_status;

    for (unsigned i = 0; i < v->nr_gp; i++) {
        used |= v->evtsel[i];
    }
    for (unsigned i = 0; i < v->pmu->nr_counters; i++) {
        used |= pmu_peek(v->pmu, i);
    }
    return used;
}

/*
 * Under KVM, guests of QEMU without this subsection have a PMU, too: they can
 * go where it is not known as long as they do not use it.
 */
static bool vpmu_needed(void *opaque)
{
    X86CPU *cpu = opaque;
    X86VPmu *v = cpu->vpmu;

    if (!v || !kvm_enabled()) {
        return v;
    }
    return !v->ops->in_stock_stream && is_used(v);
}

static int vpmu_pre_load(void *opaque)
{
    X86CPU *cpu = opaque;

    if (!cpu->vpmu) {
        error_report("The source's CPU has a PMU and this one has none; "
                     "add pmu=on.");
        return -EINVAL;
    }
    return 0;
}

const VMStateDescription vmstate_x86_vpmu = {
    .name = "cpu/vpmu",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = vpmu_needed,
    .pre_load = vpmu_pre_load,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(vpmu, X86CPU, vmstate_registers, X86VPmu),
        VMSTATE_END_OF_LIST()
    }
};

/*
 * Intel's registers under KVM, where QEMU without this PMU has them
 */

static bool stock_state_is_used(const CPUX86State *env)
{
    uint64_t used = env->msr_fixed_ctr_ctrl | env->msr_global_ctrl
                    | env->msr_global_status;

    for (unsigned i = 0; i < MAX_FIXED_COUNTERS; i++) {
        used |= env->msr_fixed_counters[i];
    }
    for (unsigned i = 0; i < MAX_GP_COUNTERS; i++) {
        used |= env->msr_gp_counters[i] | env->msr_gp_evtsel[i];
    }
    return used;
}

static bool uses_stock_state(const X86VPmu *v)
{
    return v && kvm_enabled() && v->ops->in_stock_stream;
}

void x86_vpmu_pre_save(X86CPU *cpu)
{
    CPUX86State *env = &cpu->env;
    X86VPmu *v = cpu->vpmu;

    if (!uses_stock_state(v)) {
        return;
    }
    env->msr_fixed_ctr_ctrl = v->fixed_ctrl;
    env->msr_global_ctrl = v->global_ctrl;
    env->msr_global_status = v->global_status;
    for (unsigned i = 0; i < v->nr_gp; i++) {
        env->msr_gp_counters[i] = pmu_peek(v->pmu, i);
        env->msr_gp_evtsel[i] = v->evtsel[i];
    }
    for (unsigned i = 0; i < v->nr_fixed; i++) {
        env->msr_fixed_counters[i] = pmu_peek(v->pmu, v->nr_gp + i);
    }
}

void x86_vpmu_pre_load(X86CPU *cpu)
{
    CPUX86State *env = &cpu->env;

    env->msr_fixed_ctr_ctrl = 0;
    env->msr_global_ctrl = 0;
    env->msr_global_status = 0;
    memset(env->msr_gp_counters, 0, sizeof(env->msr_gp_counters));
    memset(env->msr_gp_evtsel, 0, sizeof(env->msr_gp_evtsel));
    memset(env->msr_fixed_counters, 0, sizeof(env->msr_fixed_counters));
    x86_vpmu_reset(cpu);
}

static void take_stock_state(X86VPmu *v)
{
    const CPUX86State *env = &v->cpu->env;

    pmu_begin(v->pmu);
    v->fixed_ctrl = env->msr_fixed_ctr_ctrl;
    v->global_ctrl = env->msr_global_ctrl;
    v->global_status = env->msr_global_status;
    for (unsigned i = 0; i < v->nr_gp; i++) {
        pmu_write(v->pmu, i, env->msr_gp_counters[i]);
        v->evtsel[i] = env->msr_gp_evtsel[i];
    }
    for (unsigned i = 0; i < v->nr_fixed; i++) {
        pmu_write(v->pmu, v->nr_gp + i, env->msr_fixed_counters[i]);
    }
    v->ops->resume(v);
    pmu_commit(v->pmu);
}

bool x86_vpmu_post_load(X86CPU *cpu, Error **errp)
{
    ERRP_GUARD();

    if (uses_stock_state(cpu->vpmu)) {
        take_stock_state(cpu->vpmu);
    } else if (stock_state_is_used(&cpu->env)) {
        error_setg(errp, "The source's guest uses an Intel PMU of KVM, which "
                   "this CPU does not have");
        error_append_hint(errp, "Use -accel kvm, the source's CPU model, and "
                          "pmu=on if the source has it.\n");
        return false;
    }
    return true;
}
