/*
 * x86 virtual PMU: migration state
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qemu/error-report.h"
#include "qapi/error.h"
#include "system/kvm.h"
#include "system/replay.h"
#include "hw/pmu/pmu-vmstate.h"
#include "amd-stock.h"
#include "debugctl.h"
#include "internal.h"
#include "kvm.h"
#include "hw/pmu/compat.h"

#define SAME(property) \
    "Source and destination must have the same " property "."

static int registers_pre_save(void *opaque)
{
    X86VPmu *v = opaque;

    pmu_fold(v->pmu);
    return 0;
}

/* Bits that no register has; under KVM, the kernel knows its bits. */
static uint64_t bits_beyond_registers(const X86VPmu *v)
{
    const X86VPmuBits bits = v->ops->bits(v);
    uint64_t beyond = (v->fixed_ctrl & ~bits.fixed_ctrl)
                      | (v->global_ctrl & ~bits.global_ctrl)
                      | (v->global_status & ~bits.global_status)
                      | (v->debugctl & ~x86_debugctl_bits(v));

    for (unsigned i = 0; i < X86_VPMU_MAX_GP; i++) {
        beyond |= v->evtsel[i] & ~(i < v->nr_gp ? bits.evtsel : 0);
    }
    return v->engine == X86_VPMU_KVM ? 0 : beyond;
}

static int registers_post_load(void *opaque, int version_id)
{
    X86VPmu *v = opaque;

    if (bits_beyond_registers(v)) {
        error_report("The source's PMU has bits in its registers that this one "
                     "does not have.");
        return -EINVAL;
    }
    pmu_rebase(v->pmu);
    pmu_begin(v->pmu);
    v->ops->update(v);
    pmu_commit(v->pmu);
    return 0;
}

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
                             SAME("pmu-version (AMD: perfmon-v2)")),
        VMSTATE_UINT32_EQUAL(nr_gp, X86VPmu, SAME("pmu-gp-counters")),
        VMSTATE_UINT32_EQUAL(nr_fixed, X86VPmu, SAME("pmu-fixed-counters")),
        VMSTATE_UINT64_ARRAY(evtsel, X86VPmu, X86_VPMU_MAX_GP),
        VMSTATE_UINT64(fixed_ctrl, X86VPmu),
        VMSTATE_UINT64(global_ctrl, X86VPmu),
        VMSTATE_UINT64(global_status, X86VPmu),
        VMSTATE_UINT64(debugctl, X86VPmu),
        VMSTATE_STRUCT_POINTER(pmu, X86VPmu, vmstate_pmu, Pmu),
        VMSTATE_STRUCT_POINTER(unit, X86VPmu, vmstate_pmu_engine, PmuCpu),
        VMSTATE_END_OF_LIST()
    }
};

static bool is_amd(const X86VPmu *v)
{
    return v->ops->by == PMU_VENDOR_AMD;
}

/*
 * QEMU 11.0 and later.  A guest of a machine type that earlier QEMU has, too,
 * could also go to that, which would lose these registers: it has to refuse
 * them.
 */
static bool is_amd_in_stock_stream(const X86VPmu *v)
{
    return STOCK_HAS_AMD_PMU && is_amd(v) && v->cpu->vpmu_props.stock_amd;
}

static bool uses_stock_state(const X86VPmu *v)
{
    return v && v->engine == X86_VPMU_KVM
           && (v->ops->in_stock_stream || is_amd_in_stock_stream(v));
}

/*
 * Whether a counter may count, has overflowed, or has an event selected.
 * Otherwise the PMU holds only values that were left behind: the counters, and
 * which of them could be started.
 */
static bool is_used(const X86VPmu *v)
{
    uint64_t used = v->fixed_ctrl | v->global_status;

    if (v->engine != X86_VPMU_KVM) {
        /* Under KVM it is in another subsection. */
        used |= v->debugctl;
    }
    for (unsigned i = 0; i < v->nr_gp; i++) {
        used |= v->evtsel[i];
    }
    return used;
}

/* For QEMU 11.0, another value is that of a reset. */
static bool stock_resets_control(const X86VPmu *v)
{
    return v->engine == X86_VPMU_KVM && is_amd(v) && v->global_ctrl
           && v->cpu->vpmu_props.machine;
}

static bool has_leftovers(const X86VPmu *v)
{
    bool found = v->global_ctrl != v->global_reset || stock_resets_control(v);

    for (unsigned i = 0; i < pmu_nr_counters(v->pmu); i++) {
        found |= pmu_peek(v->pmu, i) != 0;
    }
    return found;
}

/*
 * A guest can go to QEMU without this PMU as long as it does not use its PMU.
 * But a replay needs fractions of cycles as its recording left them.
 */
static bool vpmu_needed(void *opaque)
{
    X86CPU *cpu = opaque;
    X86VPmu *v = cpu->vpmu;

    return v && !uses_stock_state(v)
           && (is_used(v) || X86_VPMU_UNION(v->ops, is_used, v)
               || replay_mode != REPLAY_MODE_NONE);
}

static int vpmu_pre_load(void *opaque)
{
    X86CPU *cpu = opaque;

    return pmu_cpu_check_load(cpu->vpmu);
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
    },
    .subsections = x86_vpmu_subsections,
};

/*
 * cpu/msr_architectural_pmu, a subsection that QEMU without this PMU has, too.
 * It is for the registers under KVM: Intel's, of which it has all state, and
 * since QEMU 11.0 also AMD's (amd-stock.h).
 *
 * Other PMUs store in it the values that an unused PMU holds.  QEMU without
 * this PMU loads and ignores them, unless it has such registers under KVM
 * itself; so the guest can go to it.  With this PMU, nothing is lost.
 *
 * A mark in it makes sure that it is sent, even if all else is 0.  It is among
 * the counters, as a subsection without counters would be of no use to QEMU.
 * Once it was in IA32_PERF_GLOBAL_OVF_CTRL, which has no state.
 */
#define OLDER_MARK 1

static void clear_stock_state(CPUX86State *env)
{
    env->msr_fixed_ctr_ctrl = 0;
    env->msr_global_ctrl = 0;
    env->msr_global_status = 0;
    env->msr_global_ovf_ctrl = 0;
    memset(env->msr_gp_counters, 0, sizeof(env->msr_gp_counters));
    memset(env->msr_gp_evtsel, 0, sizeof(env->msr_gp_evtsel));
    memset(env->msr_fixed_counters, 0, sizeof(env->msr_fixed_counters));
}

static bool stock_state_is_used(const CPUX86State *env)
{
    uint64_t used = env->msr_fixed_ctr_ctrl | env->msr_global_status;

    for (unsigned i = 0; i < MAX_GP_COUNTERS; i++) {
        used |= env->msr_gp_evtsel[i];
    }
    return used;
}

static bool stock_state_has_leftovers(const CPUX86State *env)
{
    uint64_t left = env->msr_global_ctrl | env->msr_global_ovf_ctrl;

    for (unsigned i = 0; i < MAX_GP_COUNTERS; i++) {
        left |= env->msr_gp_counters[i];
    }
    for (unsigned i = 0; i < MAX_FIXED_COUNTERS; i++) {
        left |= env->msr_fixed_counters[i];
    }
    return left;
}

static void give_stock_state(const X86VPmu *v)
{
    CPUX86State *env = &v->cpu->env;

    env->msr_fixed_ctr_ctrl = v->fixed_ctrl;
    env->msr_global_ctrl = v->global_ctrl;
    env->msr_global_status = v->global_status;
    for (unsigned i = 0; i < v->nr_gp; i++) {
        env->msr_gp_counters[i] = pmu_peek(v->pmu, i);
        env->msr_gp_evtsel[i] = v->evtsel[i];
    }
    for (unsigned i = 0; i < MIN(v->nr_fixed, MAX_FIXED_COUNTERS); i++) {
        env->msr_fixed_counters[i] = pmu_peek(v->pmu, v->nr_gp + i);
    }
}

/* Intel's state under KVM is as it has always been. */
static void mark_stock_state(const X86VPmu *v)
{
    CPUX86State *env = &v->cpu->env;

    if (is_amd(v)) {
        amd_stock_mark(env, v->nr_gp);
    } else if (!uses_stock_state(v)) {
        env->msr_gp_counters[X86_VPMU_MARKED] = X86_VPMU_MARK;
    }
}

void x86_vpmu_pre_save(X86CPU *cpu)
{
    X86VPmu *v = cpu->vpmu;

    clear_stock_state(&cpu->env);
    if (v && (uses_stock_state(v) || (!is_used(v) && has_leftovers(v)))) {
        give_stock_state(v);
        mark_stock_state(v);
    }
}

void x86_vpmu_pre_load(X86CPU *cpu)
{
    clear_stock_state(&cpu->env);
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
    for (unsigned i = 0; i < MIN(v->nr_fixed, MAX_FIXED_COUNTERS); i++) {
        pmu_write(v->pmu, v->nr_gp + i, env->msr_fixed_counters[i]);
    }
    v->ops->update(v);
    pmu_commit(v->pmu);
}

/*
 * State that does not fit, with the property that would make room
 */

#define GLOBAL_NR_GP    32
#define GLOBAL_NR_FIXED 16
#define FIXED_FIELD     4
#define FIXED_FIELDS    32

static bool beyond_version(const X86VPmu *v)
{
    const CPUX86State *env = &v->cpu->env;

    return v->version < 2 && (env->msr_global_ctrl | env->msr_global_status
                              | env->msr_fixed_ctr_ctrl);
}

static bool beyond_gp(const X86VPmu *v)
{
    const CPUX86State *env = &v->cpu->env;
    uint64_t global = env->msr_global_ctrl | env->msr_global_status;
    uint64_t beyond = extract64(global, 0, GLOBAL_NR_GP) >> v->nr_gp;

    for (unsigned i = v->nr_gp; i < MAX_GP_COUNTERS; i++) {
        beyond |= env->msr_gp_counters[i] | env->msr_gp_evtsel[i];
    }
    return beyond;
}

/* A counter has two fields: one for its events, the other for its PEBS. */
static uint64_t both_fields(uint64_t fixed_ctrl)
{
    return extract64(fixed_ctrl, 0, FIXED_FIELDS)
           | extract64(fixed_ctrl, FIXED_FIELDS, FIXED_FIELDS);
}

static bool beyond_fixed(const X86VPmu *v)
{
    const CPUX86State *env = &v->cpu->env;
    uint64_t global = env->msr_global_ctrl | env->msr_global_status;
    uint64_t beyond = extract64(global, GLOBAL_NR_GP, GLOBAL_NR_FIXED)
                      >> v->nr_fixed
                      | both_fields(env->msr_fixed_ctr_ctrl)
                      >> v->nr_fixed * FIXED_FIELD;

    for (unsigned i = v->nr_fixed; i < MAX_FIXED_COUNTERS; i++) {
        beyond |= env->msr_fixed_counters[i];
    }
    return beyond;
}

static const struct {
    bool (*beyond)(const X86VPmu *v);
    const char *message;
} limits[] = {
    { beyond_version, SAME("pmu-version (AMD: perfmon-v2)") },
    { beyond_gp, SAME("pmu-gp-counters") },
    { beyond_fixed, SAME("pmu-fixed-counters") },
};

static bool fits(const X86VPmu *v, Error **errp)
{
    ERRP_GUARD();

    for (unsigned i = 0; i < ARRAY_SIZE(limits); i++) {
        if (limits[i].beyond(v)) {
            error_setg(errp, "The source's guest uses more of a PMU than this "
                       "CPU has");
            error_append_hint(errp, "%s\n", limits[i].message);
            return false;
        }
    }
    return true;
}

static bool load_stock_state(X86VPmu *v, Error **errp)
{
    if (!fits(v, errp)) {
        return false;
    }
    take_stock_state(v);
    if (bits_beyond_registers(v)) {
        error_setg(errp, "The source's PMU has bits in its registers that this "
                   "one does not have");
        return false;
    }
    return true;
}

/* From versions of this PMU with the older mark, it is straight. */
static bool straighten(X86VPmu *v, Error **errp)
{
    ERRP_GUARD();
    CPUX86State *env = &v->cpu->env;
    bool core = amd_has_core_counters(v->cpu)
                && (stock_state_is_used(env)
                    || env->msr_global_ovf_ctrl != OLDER_MARK);

    if (!amd_stock_straighten(env, v->nr_gp, core)) {
        error_setg(errp, "The source is a QEMU that stores AMD's counters in "
                   "one of two ways, and it is not certain in which");
        error_append_hint(errp, "Let the guest end its use of the PMU, and "
                          "migrate it then.\n");
        return false;
    }
    return true;
}

/* Remove the mark of all vendors, and AMD's, which belong together. */
static bool prepare_stock_state(X86VPmu *v, Error **errp)
{
    CPUX86State *env = &v->cpu->env;

    if (is_amd(v)) {
        return straighten(v, errp);
    }
    if (env->msr_gp_counters[X86_VPMU_MARKED] == X86_VPMU_MARK) {
        env->msr_gp_counters[X86_VPMU_MARKED] = 0;
    }
    return true;
}

static bool has_intel_state(const CPUX86State *env)
{
    uint64_t found = env->msr_fixed_ctr_ctrl;

    for (unsigned i = 0; i < MAX_FIXED_COUNTERS; i++) {
        found |= env->msr_fixed_counters[i];
    }
    return found;
}

/* Whether the registers that KVM had are of a kind that this CPU can have */
static bool can_take_stock_state(const X86CPU *cpu, Error **errp)
{
    ERRP_GUARD();
    const X86VPmu *v = cpu->vpmu;
    const CPUX86State *env = &cpu->env;
    bool intel = v && is_amd(v) && has_intel_state(env);

    if (!stock_state_is_used(env)
        || (v && v->engine == X86_VPMU_KVM && !intel)) {
        return true;
    }
    error_setg(errp, "The source's guest uses %s PMU of KVM, which this CPU "
               "does not have", intel ? "an Intel" : "a");
    error_append_hint(errp, "Use -accel kvm, the source's CPU model, and "
                      "pmu=on if the source has it.\n");
    return false;
}

bool x86_vpmu_post_load(X86CPU *cpu, Error **errp)
{
    X86VPmu *v = cpu->vpmu;
    bool left;

    if (!can_take_stock_state(cpu, errp)) {
        return false;
    }
    if (!v) {
        return true;
    }
    left = stock_state_has_leftovers(&cpu->env)
           || stock_state_is_used(&cpu->env);
    if (!prepare_stock_state(v, errp)
        || ((uses_stock_state(v) || left) && !load_stock_state(v, errp))) {
        return false;
    }
    return !kvm_enabled() || x86_vpmu_kvm_refuse_hidden(v, errp);
}
