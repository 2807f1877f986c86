/*
 * x86 virtual PMU: IA32_DEBUGCTL, which is DebugCtl on AMD's CPUs
 *
 * It enables branch records of Intel's older kinds, makes single steps end at
 * branches alone (BTF), and freezes counters and records.  Debug exceptions and
 * SMIs clear its enabling bits, and that of architectural branch records.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qemu/log.h"
#include "migration/vmstate.h"
#include "debugctl.h"
#include "lbr.h"

/* IA32_PERF_CAPABILITIES */
#define PERF_CAP_FREEZE_IN_SMM (1ull << 12)

/* The bits that a debug exception clears */
#define STEPS_AND_RECORDS (X86_DEBUGCTL_LBR | X86_DEBUGCTL_BTF)

/*
 * The register
 */

/* AMD's LBR, for the last branch alone, does not exist here. */
static uint64_t bits_of_intel(const X86VPmu *v)
{
    return (v->version >= 2 ? X86_DEBUGCTL_FREEZE_COUNTERS : 0)
           | (x86_vpmu_perf_capabilities(v) & PERF_CAP_FREEZE_IN_SMM
              ? X86_DEBUGCTL_FREEZE_IN_SMM : 0);
}

uint64_t x86_debugctl_bits(const X86VPmu *v)
{
    return X86_DEBUGCTL_BTF | X86_VPMU_UNION(v->ops, debugctl, v)
           | (v->ops->by == PMU_VENDOR_INTEL ? bits_of_intel(v) : 0);
}

/*
 * On an Intel CPU without branch records, software that tries to enable them
 * finds the bit clear again.
 */
static uint64_t debugctl_writable(const X86VPmu *v)
{
    return x86_debugctl_bits(v)
           | (v->ops->by == PMU_VENDOR_INTEL ? X86_DEBUGCTL_LBR : 0);
}

static void write_debugctl(X86VPmu *v, unsigned i, uint64_t val)
{
    if (val & X86_DEBUGCTL_LBR & ~x86_debugctl_bits(v)) {
        qemu_log_mask(LOG_UNIMP, "IA32_DEBUGCTL: LBR is ignored, as this "
                      "CPU has no branch records\n");
    }
    v->debugctl = val & x86_debugctl_bits(v);
    v->ops->update(v);
}

static const X86VPmuMsr debugctl_msrs[] = {
    { MSR_IA32_DEBUGCTL, 1, 1, NULL,
      debugctl_writable, X86_VPMU_FIELD(debugctl), write_debugctl },
    { }
};

static unsigned debugctl_count_kept(const X86VPmu *v)
{
    return v->kept.debugctl;
}

static const X86VPmuStateMsr debugctl_state[] = {
    { MSR_IA32_DEBUGCTL, 1, debugctl_count_kept, false,
      X86_VPMU_FIELD(debugctl) },
    { }
};

static uint64_t debugctl_offers(X86CPU *cpu, FeatureWord w)
{
    return w == FEAT_PERF_CAPABILITIES && IS_INTEL_CPU(&cpu->env)
           && x86_vpmu_intel_version(cpu) >= 2 ? PERF_CAP_FREEZE_IN_SMM : 0;
}

static void debugctl_reset(X86VPmu *v)
{
    v->debugctl = 0;
    v->smm = (X86VPmuSmm) { };
}

/* The processor does not know the SMM of KVM's guests, and counts there. */
static bool freezes_in_smm(const X86VPmu *v)
{
    return v->debugctl & X86_DEBUGCTL_FREEZE_IN_SMM
           && v->engine != X86_VPMU_KVM;
}

static PmuModes debugctl_skips(const X86VPmu *v, unsigned counter)
{
    return freezes_in_smm(v) ? X86_VPMU_MODES_SMM : 0;
}

static unsigned debugctl_stops(const X86VPmu *v, unsigned counter)
{
    return freezes_in_smm(v) ? X86_VPMU_STOP_IN_SMM : 0;
}

/*
 * Debug exceptions
 */

bool x86_vpmu_steps_branches(const X86CPU *cpu)
{
    return cpu->vpmu && cpu->vpmu->debugctl & X86_DEBUGCTL_BTF;
}

void x86_vpmu_debug_exception(X86CPU *cpu)
{
    X86VPmu *v = cpu->vpmu;

    if (v && (v->debugctl & STEPS_AND_RECORDS || arch_lbr_is_enabled(v))) {
        pmu_begin(v->pmu);
        v->debugctl &= ~STEPS_AND_RECORDS;
        arch_lbr_enable(v, false);
        v->ops->update(v);
        pmu_commit(v->pmu);
    }
}

/*
 * SMM
 */

static bool has_put_aside(const X86VPmu *v)
{
    return v->smm.debugctl || v->smm.lbr_enabled;
}

/*
 * IA32_DEBUGCTL is put aside only if the guest has asked for that;
 * architectural branch records are always switched off.
 */
void x86_vpmu_enter_smm(X86CPU *cpu)
{
    X86VPmu *v = cpu->vpmu;
    bool put_aside;

    if (!v) {
        return;
    }
    /* A counter that overflows only now may still freeze the records. */
    pmu_begin(v->pmu);
    put_aside = v->debugctl & X86_DEBUGCTL_FREEZE_IN_SMM;
    v->smm.debugctl = put_aside ? v->debugctl : 0;
    v->smm.lbr_enabled = arch_lbr_is_enabled(v);
    if (has_put_aside(v)) {
        v->debugctl &= put_aside ? ~STEPS_AND_RECORDS : UINT64_MAX;
        arch_lbr_enable(v, false);
        v->ops->update(v);
    }
    pmu_commit(v->pmu);
}

void x86_debugctl_take_back(X86VPmu *v)
{
    v->debugctl = v->smm.debugctl ?: v->debugctl;
    arch_lbr_enable(v, v->smm.lbr_enabled);
    v->smm = (X86VPmuSmm) { };
}

void x86_vpmu_leave_smm(X86CPU *cpu)
{
    X86VPmu *v = cpu->vpmu;

    if (v) {
        pmu_begin(v->pmu);
        x86_debugctl_take_back(v);
        v->ops->update(v);
        pmu_commit(v->pmu);
    }
}

/*
 * Migration
 */

static bool smm_needed(void *opaque)
{
    X86CPU *cpu = opaque;

    return has_put_aside(cpu->vpmu);
}

static int smm_post_load(void *opaque, int version_id)
{
    X86VPmu *v = opaque;

    if (v->smm.debugctl & ~x86_debugctl_bits(v)
        || (v->smm.lbr_enabled && !arch_lbr_is_there(v))) {
        v->smm = (X86VPmuSmm) { };
        error_report("In SMM, the source's PMU has put aside bits that this "
                     "PMU does not have.");
        return -EINVAL;
    }
    return 0;
}

static const VMStateDescription vmstate_put_aside = {
    .name = "cpu/vpmu/smm/put-aside",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = smm_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(smm.debugctl, X86VPmu),
        VMSTATE_BOOL(smm.lbr_enabled, X86VPmu),
        VMSTATE_END_OF_LIST()
    }
};

const VMStateDescription vmstate_x86_vpmu_smm = {
    .name = "cpu/vpmu/smm",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = smm_needed,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(vpmu, X86CPU, vmstate_put_aside, X86VPmu),
        VMSTATE_END_OF_LIST()
    }
};

const X86VPmuFeature x86_debugctl = {
    .msrs = debugctl_msrs,
    .state = debugctl_state,
    .offers = debugctl_offers,
    .reset = debugctl_reset,
    .skips = debugctl_skips,
    .is_used = has_put_aside,
    .stops = debugctl_stops,
};
