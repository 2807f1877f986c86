/*
 * x86 virtual PMU: AMD's core performance counters
 *
 * Registers as in AMD's Architecture Programmer's Manual, volume 2, "Core
 * Performance Monitoring Counters": the four counters of all CPUs since the
 * Athlon; the six of PerfCtrExtCore, which include these four; the global
 * registers of PerfMonV2; and the branch records of LbrExtV2.  The model and
 * CPUID say which of them a CPU has, and which of the selector's bits.
 *
 * Unlike Intel's, these registers ignore bits that cannot be written, and an
 * interrupt does not mask the local APIC's entry.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "system/kvm.h"
#include "amd-events.h"
#include "debugctl.h"
#include "internal.h"

#define NR_LEGACY 4
#define NR_CORE   6

/* Register numbers that cpu.h does not have. */
#define MSR_K7_PERFEVTSEL0              0xc0010000
#define MSR_K7_PERFCTR0                 0xc0010004
#define MSR_PERF_CTL0                   0xc0010200
#define MSR_PERF_CTR0                   0xc0010201
#define MSR_PERF_CNTR_GLOBAL_STATUS     0xc0000300
#define MSR_PERF_CNTR_GLOBAL_CTL        0xc0000301
#define MSR_PERF_CNTR_GLOBAL_STATUS_CLR 0xc0000302
#define MSR_PERF_CNTR_GLOBAL_STATUS_SET 0xc0000303

/* PERF_CTLx, besides what X86_EVTSEL_* names */
#define EVTSEL_VALID     (MAKE_64BIT_MASK(0, 32) & ~(1ull << 19 | 1ull << 21))
#define EVTSEL_EVENT_EXT MAKE_64BIT_MASK(32, 4)
#define EVTSEL_GUEST     (1ull << 40)
#define EVTSEL_HOST      (1ull << 41)

static const AmdModel *model_of(const X86CPU *cpu)
{
    return amd_model(cpu->env.cpuid_version);
}

static uint64_t amd_offers(X86CPU *cpu, FeatureWord w)
{
    switch (w) {
    case FEAT_8000_0001_ECX:
        return model_of(cpu)->core_ext ? CPUID_EXT3_PERFCORE : 0;
    case FEAT_8000_0022_EAX:
        return model_of(cpu)->global ? CPUID_8000_0022_EAX_PERFMON_V2 : 0;
    default:
        return 0;
    }
}

bool amd_has_core_counters(const X86CPU *cpu)
{
    return cpu->env.features[FEAT_8000_0001_ECX] & CPUID_EXT3_PERFCORE
           && (kvm_enabled() || model_of(cpu)->core_ext);
}

/*
 * KVM's PMU follows the CPUID of its guest, which may have less than features.
 * Returns: the number of counters in PerfMonV2's leaf, or 0 without that.
 */
static uint32_t cpuid_counters(X86CPU *cpu)
{
    uint32_t eax, ebx, ecx, edx;

    cpu_x86_cpuid(&cpu->env, AMD_LEAF_PERFMON, 0, &eax, &ebx, &ecx, &edx);
    return cpu->env.cpuid_xlevel >= AMD_LEAF_PERFMON
           && (eax & CPUID_8000_0022_EAX_PERFMON_V2) ? extract32(ebx, 0, 4) : 0;
}

bool amd_has_global_registers(X86CPU *cpu)
{
    return kvm_enabled()
           ? cpuid_counters(cpu) > 0
           : amd_has_core_counters(cpu) && model_of(cpu)->global
             && (cpu->env.features[FEAT_8000_0022_EAX]
                 & CPUID_8000_0022_EAX_PERFMON_V2);
}

static bool has_global(const X86VPmu *v)
{
    return v->version >= 2;
}

/*
 * From registers to counters
 */

/* With either of HostOnly and GuestOnly, nothing is counted without SVM. */
static bool needs_svme(const X86VPmu *v, uint64_t evtsel)
{
    return evtsel & (EVTSEL_GUEST | EVTSEL_HOST)
           && !(v->cpu->env.efer & MSR_EFER_SVME);
}

/* With both bits, both kinds of modes are counted. */
static PmuModes modes_by_svm(const X86VPmu *v, uint64_t evtsel)
{
    uint64_t side = evtsel & (EVTSEL_GUEST | EVTSEL_HOST);

    if (needs_svme(v, evtsel)) {
        return 0;
    }
    return side == EVTSEL_GUEST ? X86_VPMU_MODES_GUEST
           : side == EVTSEL_HOST ? ~X86_VPMU_MODES_GUEST
           : ~(PmuModes)0;
}

static uint32_t event_code(const X86VPmu *v, unsigned i)
{
    uint64_t evtsel = v->evtsel[i];

    return X86_VPMU_CODE(extract64(evtsel, 32, 4) << 8
                         | extract64(evtsel, 0, 8), extract64(evtsel, 8, 8));
}

static bool globally_enabled(const X86VPmu *v, unsigned i)
{
    return !has_global(v) || (v->global_ctrl >> i & 1);
}

static bool frozen(const X86VPmu *v)
{
    return v->global_status & X86_STATUS_COUNTERS_FROZEN;
}

static bool enabled(const X86VPmu *v, unsigned i)
{
    return (v->evtsel[i] & X86_EVTSEL_EN) && globally_enabled(v, i)
           && !frozen(v);
}

static bool interrupts(const X86VPmu *v, unsigned i)
{
    return v->evtsel[i] & X86_EVTSEL_INT;
}

static uint64_t interrupting_counters(const X86VPmu *v)
{
    uint64_t interrupting = 0;

    for (unsigned i = 0; i < v->nr_gp; i++) {
        interrupting |= (uint64_t)interrupts(v, i) << i;
    }
    return interrupting;
}

/*
 * Make the counters follow the registers; in a transaction.
 */

static void update_counter(X86VPmu *v, unsigned i)
{
    uint64_t evtsel = v->evtsel[i];
    PmuSelect select = x86_vpmu_gp_select(v, i, event_code(v, i),
                                          modes_by_svm(v, evtsel));

    pmu_select(v->pmu, i, &select);
    pmu_set_alert(v->pmu, i, interrupts(v, i));
    pmu_run(v->pmu, i, enabled(v, i));
}

static void update_running(X86VPmu *v)
{
    for (unsigned i = 0; i < v->nr_gp; i++) {
        pmu_run(v->pmu, i, enabled(v, i));
    }
}

static void update_freeze(X86VPmu *v)
{
    bool freeze = v->debugctl & X86_DEBUGCTL_FREEZE_COUNTERS;

    pmu_set_freeze(v->pmu, freeze ? interrupting_counters(v) : 0,
                   x86_vpmu_low_bits(v->nr_gp));
}

static void update_all(X86VPmu *v)
{
    for (unsigned i = 0; i < v->nr_gp; i++) {
        update_counter(v, i);
    }
    update_freeze(v);
    X86_VPMU_CALL(v->ops, update, v);
}

/* The model has stopped the counters already, if they freeze. */
static void freeze_on_pmi(X86VPmu *v)
{
    if (v->debugctl & X86_DEBUGCTL_FREEZE_COUNTERS) {
        v->global_status |= X86_STATUS_COUNTERS_FROZEN;
    }
    X86_VPMU_CALL(v->ops, on_pmi, v);
}

static void amd_overflow(void *opaque, uint64_t counters)
{
    X86VPmu *v = opaque;
    uint64_t interrupting = counters & interrupting_counters(v);

    if (has_global(v)) {
        v->global_status |= counters;
    }
    if (interrupting) {
        freeze_on_pmi(v);
        x86_vpmu_raise_pmi(v, interrupting, false);
    }
}

/*
 * The registers.
 */

static uint64_t evtsel_bits(const X86VPmu *v)
{
    return EVTSEL_VALID | (model_of(v->cpu)->select_ext
                           ? EVTSEL_EVENT_EXT | EVTSEL_GUEST | EVTSEL_HOST
                           : 0);
}

static void write_evtsel(X86VPmu *v, unsigned i, uint64_t val)
{
    if (val & X86_EVTSEL_EN && !x86_vpmu_event_of(v, event_code(v, i))) {
        x86_vpmu_report_uncounted(v->model, event_code(v, i));
    }
    update_counter(v, i);
    update_freeze(v);
}

static uint64_t global_bits(const X86VPmu *v)
{
    return x86_vpmu_low_bits(v->nr_gp);
}

static uint64_t status_bits(const X86VPmu *v)
{
    return global_bits(v) | X86_VPMU_UNION(v->ops, status, v);
}

static void write_global_ctrl(X86VPmu *v, unsigned i, uint64_t val)
{
    update_all(v);
}

static void write_status_clear(X86VPmu *v, unsigned i, uint64_t val)
{
    v->global_status &= ~val;
    update_running(v);
    X86_VPMU_CALL(v->ops, update, v);
}

static void write_status_set(X86VPmu *v, unsigned i, uint64_t val)
{
    v->global_status |= val;
    update_running(v);
    X86_VPMU_CALL(v->ops, update, v);
}

/* The number of registers of each kind */

static unsigned count_core(const X86VPmu *v)
{
    return amd_has_core_counters(v->cpu) ? v->nr_gp : 0;
}

static unsigned one_with_global(const X86VPmu *v)
{
    return has_global(v) ? 1 : 0;
}

static const X86VPmuMsr msrs[] = {
    { MSR_K7_PERFEVTSEL0, NR_LEGACY, 1, x86_vpmu_count_gp,
      evtsel_bits, X86_VPMU_FIELD(evtsel), write_evtsel },
    { MSR_K7_PERFCTR0, NR_LEGACY, 1, x86_vpmu_count_gp,
      x86_vpmu_counter_bits, 0, x86_vpmu_write_gp, x86_vpmu_read_gp },
    { MSR_PERF_CTL0, NR_CORE, 2, count_core,
      evtsel_bits, X86_VPMU_FIELD(evtsel), write_evtsel },
    { MSR_PERF_CTR0, NR_CORE, 2, count_core,
      x86_vpmu_counter_bits, 0, x86_vpmu_write_gp, x86_vpmu_read_gp },
    { MSR_PERF_CNTR_GLOBAL_STATUS, 1, 1, one_with_global,
      NULL, X86_VPMU_FIELD(global_status) },
    { MSR_PERF_CNTR_GLOBAL_CTL, 1, 1, one_with_global,
      global_bits, X86_VPMU_FIELD(global_ctrl), write_global_ctrl },
    { MSR_PERF_CNTR_GLOBAL_STATUS_CLR, 1, 1, one_with_global,
      status_bits, 0, write_status_clear },
    { MSR_PERF_CNTR_GLOBAL_STATUS_SET, 1, 1, one_with_global,
      status_bits, 0, write_status_set },
    { }
};

/* With core counters, the legacy registers are other names of these. */
static unsigned count_legacy(const X86VPmu *v)
{
    return count_core(v) ? 0 : v->nr_gp;
}

static const X86VPmuStateMsr state[] = {
    { MSR_K7_PERFCTR0, 1, count_legacy, false,
      0, x86_vpmu_write_gp, x86_vpmu_read_gp },
    { MSR_PERF_CTR0, 2, count_core, false,
      0, x86_vpmu_write_gp, x86_vpmu_read_gp },
    { MSR_PERF_CNTR_GLOBAL_STATUS, 1, one_with_global, false,
      X86_VPMU_FIELD(global_status) },
    { MSR_K7_PERFEVTSEL0, 1, count_legacy, true, X86_VPMU_FIELD(evtsel) },
    { MSR_PERF_CTL0, 2, count_core, true, X86_VPMU_FIELD(evtsel) },
    { MSR_PERF_CNTR_GLOBAL_CTL, 1, one_with_global, true,
      X86_VPMU_FIELD(global_ctrl) },
    { }
};

static bool amd_rdpmc(X86VPmu *v, uint32_t index, uint64_t *val)
{
    if (index >= v->nr_gp) {
        return false;
    }
    *val = x86_vpmu_read_gp(v, index);
    return true;
}

/* EBX has the number of core counters. */
static void amd_cpuid(const X86VPmu *v, uint32_t leaf, uint32_t *eax,
                      uint32_t *ebx, uint32_t *ecx, uint32_t *edx)
{
    if (leaf == AMD_LEAF_PERFMON && has_global(v)) {
        *eax = CPUID_8000_0022_EAX_PERFMON_V2;
        *ebx = v->nr_gp;
    }
}

static X86VPmuBits amd_bits(const X86VPmu *v)
{
    return (X86VPmuBits) {
        .evtsel = evtsel_bits(v),
        .global_ctrl = has_global(v) ? global_bits(v) : 0,
        .global_status = has_global(v) ? status_bits(v) : 0,
    };
}

/* Clears Intel's fields, too: a stream that was refused may have set them. */
static void amd_reset(X86VPmu *v)
{
    memset(v->evtsel, 0, sizeof(v->evtsel));
    v->fixed_ctrl = 0;
    v->global_ctrl = v->global_reset;
    v->global_status = 0;
}

/*
 * For the monitor
 */

static char *amd_kind(const X86VPmu *v)
{
    return g_strdup(has_global(v) ? "amd-perfmon-v2"
                    : count_core(v) ? "amd-perfctr-core" : "amd-perfctr");
}

static const char *amd_counter_name(const X86VPmu *v, unsigned i)
{
    static const char *const legacy[NR_LEGACY] = {
        "PERF_LEGACY_CTR0", "PERF_LEGACY_CTR1", "PERF_LEGACY_CTR2",
        "PERF_LEGACY_CTR3",
    };
    static const char *const core[NR_CORE] = {
        "PERF_CTR0", "PERF_CTR1", "PERF_CTR2", "PERF_CTR3", "PERF_CTR4",
        "PERF_CTR5",
    };

    return count_core(v) ? core[i] : legacy[i];
}

static unsigned amd_stops(const X86VPmu *v, unsigned i)
{
    return (v->evtsel[i] & X86_EVTSEL_EN ? 0 : X86_VPMU_STOP_EN)
           | (globally_enabled(v, i) ? 0 : X86_VPMU_STOP_GLOBAL_CTRL)
           | (frozen(v) ? X86_VPMU_STOP_CTR_FRZ : 0)
           | (needs_svme(v, v->evtsel[i]) ? X86_VPMU_STOP_SVME : 0);
}

uint32_t amd_count_counters(X86CPU *cpu)
{
    const uint32_t told = kvm_enabled() ? cpuid_counters(cpu) : 0;

    return !amd_has_core_counters(cpu) ? NR_LEGACY
           : told ? MIN(told, NR_CORE) : NR_CORE;
}

static void amd_init(X86VPmu *v)
{
    v->version = amd_has_global_registers(v->cpu) ? 2 : 1;
    v->global_reset = has_global(v) ? global_bits(v) : 0;
    v->model = &model_of(v->cpu)->vpmu;
}

const X86VPmuOps amd_vpmu_ops = {
    .offers = amd_offers,
    .init = amd_init,
    .reset = amd_reset,
    .cpuid = amd_cpuid,
    .msrs = msrs,
    .state = state,
    .features = amd_features,
    .ignores_invalid = true,
    .rdpmc = amd_rdpmc,
    .overflow = amd_overflow,
    .bits = amd_bits,
    .update = update_all,
    .by = PMU_VENDOR_AMD,
    .kind = amd_kind,
    .counter_name = amd_counter_name,
    .event_code = event_code,
    .interrupts = interrupts,
    .stops = amd_stops,
};
