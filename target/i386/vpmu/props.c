/*
 * x86 virtual PMU: the user's properties
 *
 * This determines which PMU a CPU gets, and refuses properties that conflict.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qemu/error-report.h"
#include "qapi/error.h"
#include "system/kvm.h"
#include "amd-events.h"
#include "intel-events.h"
#include "internal.h"
#include "kvm.h"
#include "lbr.h"
#include "pebs.h"
#include "hw/pmu/compat.h"

#define DEFAULT_VERSION 2

/* For PMUs with architectural branch records, which freeze by status bits */
#define MIN_VERSION_ARCH_LBR     4
#define DEFAULT_VERSION_ARCH_LBR 5

/* The first version that needs CPUID to say more, and the first that can */
#define MIN_VERSION_EXTENDED_ONLY 6
#define MIN_VERSION_EXTENDED      5

#define LEAF_ARCH_LBR 0x1c
#define LEAF_EXTENDED 0x23

/* IA32_PERF_CAPABILITIES */
#define PERF_CAP_PEBS (MAKE_64BIT_MASK(6, 6) | 1ull << 14)

/* The remedy if the host has no PMU for guests */
#define NO_PMU_HINT                                                        \
    "The kvm module's parameter enable_pmu must be Y (" KVM_ENABLE_PMU ")," \
    " and perf must have hardware events on the host.  KVM has none on"    \
    " hybrid CPUs."

static bool G_GNUC_PRINTF(3, 4) refuse(Error **errp, const char *hint,
                                       const char *format, ...)
{
    ERRP_GUARD();
    g_autofree char *message = NULL;
    va_list values;

    va_start(values, format);
    message = g_strdup_vprintf(format, values);
    va_end(values);
    error_setg(errp, "%s", message);
    error_append_hint(errp, "%s\n", hint);
    return false;
}

/*
 * Numbers
 */

/* Fill in a number that the CPU determines. */
static bool take_number(uint32_t *number, const char *property, uint32_t there,
                        Error **errp)
{
    g_autofree char *hint = g_strdup_printf("Allowed: %u.", there);

    if (!*number) {
        *number = there;
    }
    return *number == there
           || refuse(errp, hint, "%s=%u is not possible with this PMU",
                     property, *number);
}

/* Settle one size: the one given by the user, if the host has as much. */
static bool settle_size(uint32_t *size, const char *property, uint32_t most,
                        Error **errp)
{
    g_autofree char *hint = g_strdup_printf("Allowed: up to %u.", most);

    if (!*size) {
        *size = most;
    }
    return *size <= most
           || refuse(errp, hint, "%s=%u is more than the host's KVM has for "
                     "guests", property, *size);
}

/* Subtract the counters that are hidden from the guest. */
static bool keep_for_host(const X86VPmuProps *props, uint32_t *counters,
                          Error **errp)
{
    g_autofree char *hint = g_strdup_printf("Allowed: up to %u.",
                                            *counters - 1);

    if (props->host_counters >= *counters) {
        return refuse(errp, hint, "pmu-host-counters=%u leaves no counter for "
                      "the guest", props->host_counters);
    }
    *counters -= props->host_counters;
    return true;
}

/*
 * The PMU that a CPU is to have
 */

/*
 * A guest cannot ask whether an AMD CPU has counters, as all of them do: it
 * tries, and does not find any in stock QEMU.  So that guests find the same as
 * before, only CPUs with an explicit pmu=on have counters; "max", whose PMU
 * is on by default, is not among them.
 */
static bool wants_pmu(const X86CPU *cpu)
{
    return cpu->enable_pmu
           && (cpu->pmu_asked_for || !x86_vpmu_shown_as_amd(cpu));
}

static const X86VPmuOps *emulated_ops(const X86CPU *cpu)
{
    if (!wants_pmu(cpu) || !cpu->vpmu_props.machine) {
        return NULL;
    }
    return IS_INTEL_CPU(&cpu->env) ? &intel_vpmu_ops
           : x86_vpmu_shown_as_amd(cpu) ? &amd_vpmu_ops : NULL;
}

const X86VPmuOps *x86_vpmu_ops_for(X86CPU *cpu)
{
    return pmu_cpu_is_emulated() ? emulated_ops(cpu)
           : kvm_enabled() ? x86_vpmu_kvm_ops(cpu) : NULL;
}

/* Whether the user has switched off one of these features */
static bool has_switched_off(const X86CPU *cpu, FeatureWord w, uint64_t bits)
{
    return cpu->env.user_features[w] & ~cpu->env.features[w] & bits;
}

/* Whether the version is not given, or new enough */
static bool takes_version(const X86CPU *cpu, uint32_t least)
{
    return !cpu->vpmu_props.version || cpu->vpmu_props.version >= least;
}

static bool takes_lbr_format(const X86CPU *cpu, uint64_t format)
{
    return cpu->lbr_fmt == ~PERF_CAP_LBR_FMT || cpu->lbr_fmt == format;
}

/* A level that the user did not give is raised for the PMU's leaves. */
static bool can_have_leaf(const X86CPU *cpu, uint32_t leaf)
{
    const CPUX86State *env = &cpu->env;

    return env->cpuid_level == UINT32_MAX && !full_cpuid_auto_level(cpu)
           ? env->cpuid_min_level >= leaf : env->cpuid_level >= leaf;
}

static bool is_intel_lbr_possible(const X86CPU *cpu, const X86VPmuLbr *lbr)
{
    return !has_switched_off(cpu, FEAT_1_ECX, CPUID_EXT_PDCM)
           && takes_lbr_format(cpu, lbr->format)
           && (!lbr->architectural
               || (takes_version(cpu, MIN_VERSION_ARCH_LBR)
                   && can_have_leaf(cpu, LEAF_ARCH_LBR)
                   && !has_switched_off(cpu, FEAT_7_0_EDX,
                                        CPUID_7_0_EDX_ARCH_LBR)));
}

static bool is_amd_lbr_possible(X86CPU *cpu)
{
    return amd_has_global_registers(cpu)
           && cpu->env.cpuid_xlevel >= AMD_LEAF_PERFMON;
}

/* Under KVM, the default is off, and "on" is refused. */
const X86VPmuLbr *x86_vpmu_wanted_lbr(X86CPU *cpu)
{
    const uint32_t signature = cpu->env.cpuid_version;
    const bool amd = x86_vpmu_shown_as_amd(cpu);
    const X86VPmuLbr *lbr = amd ? amd_model(signature)->lbr
                                : intel_model(signature)->lbr;
    const OnOffAuto given = cpu->vpmu_props.lbr;

    if (!lbr || given == ON_OFF_AUTO_OFF || kvm_enabled()) {
        return NULL;
    }
    return given == ON_OFF_AUTO_ON || (amd ? is_amd_lbr_possible(cpu)
                                           : is_intel_lbr_possible(cpu, lbr))
           ? lbr : NULL;
}

const X86VPmuPebs *x86_vpmu_wanted_pebs(const X86CPU *cpu)
{
    return cpu->vpmu_props.pebs ? intel_model(cpu->env.cpuid_version)->pebs
                                : NULL;
}

static bool wants_arch_lbr(X86CPU *cpu)
{
    const X86VPmuLbr *lbr = x86_vpmu_wanted_lbr(cpu);

    return lbr && lbr->architectural;
}

/* Linux interprets the bits of IA32_PEBS_ENABLE by the version. */
static uint32_t least_version(const X86CPU *cpu)
{
    const X86VPmuPebs *pebs = x86_vpmu_wanted_pebs(cpu);

    return !pebs ? 1 : pebs->baseline ? 5 : 2;
}

static bool can_be_extended(const X86CPU *cpu)
{
    return can_have_leaf(cpu, LEAF_EXTENDED)
           && !has_switched_off(cpu, FEAT_7_1_EAX,
                                CPUID_7_1_EAX_ARCH_PERFMON_EXT);
}

static uint32_t usual_version(X86CPU *cpu)
{
    const uint32_t version = intel_model(cpu->env.cpuid_version)->version;

    return version && can_be_extended(cpu) ? version
           : wants_arch_lbr(cpu) ? DEFAULT_VERSION_ARCH_LBR : DEFAULT_VERSION;
}

uint32_t x86_vpmu_intel_version(X86CPU *cpu)
{
    return cpu->vpmu_props.version ?: MAX(usual_version(cpu),
                                          least_version(cpu));
}

bool x86_vpmu_wants_extended(X86CPU *cpu)
{
    const uint32_t version = x86_vpmu_intel_version(cpu);

    return can_be_extended(cpu)
           && (version >= MIN_VERSION_EXTENDED_ONLY
               || (version >= MIN_VERSION_EXTENDED
                   && intel_model(cpu->env.cpuid_version)->extended));
}

/*
 * Features
 */

static bool refuse_lbr(Error **errp)
{
    return refuse(errp, "Choose an Intel CPU model from Core 2 on, or an AMD "
                  "one with perfmon-v2.", "lbr=on is not possible with this "
                  "CPU");
}

static bool refuse_pebs(Error **errp)
{
    return refuse(errp, "Choose an Intel CPU model from Nehalem to Granite "
                  "Rapids, or Snowridge.", "pebs=on is not possible with this "
                  "CPU");
}

/* Linux assumes that PMUs with these records freeze by status bits. */
static bool check_arch_lbr(X86CPU *cpu, Error **errp)
{
    if (!(cpu->env.features[FEAT_7_0_EDX] & CPUID_7_0_EDX_ARCH_LBR)) {
        return refuse(errp, "Leave out arch-lbr.",
                      "lbr=on needs arch-lbr=on on this CPU model");
    }
    if (x86_vpmu_intel_version(cpu) < MIN_VERSION_ARCH_LBR) {
        return refuse(errp, "Leave out pmu-version.",
                      "lbr=on needs pmu-version=%u or newer on this CPU model",
                      MIN_VERSION_ARCH_LBR);
    }
    return can_have_leaf(cpu, LEAF_ARCH_LBR)
           || refuse(errp, "Leave out level, and full-cpuid-auto-level=off.",
                     "lbr=on needs CPUID leaf 0x%x on this CPU model",
                     LEAF_ARCH_LBR);
}

/* CPUID has to say which records the guest has. */
static bool check_intel_lbr(X86CPU *cpu, Error **errp)
{
    const X86VPmuLbr *lbr = x86_vpmu_wanted_lbr(cpu);
    const uint64_t *features = cpu->env.features;

    if (!lbr) {
        return cpu->vpmu_props.lbr != ON_OFF_AUTO_ON || refuse_lbr(errp);
    }
    if (!(features[FEAT_1_ECX] & CPUID_EXT_PDCM)
        || (features[FEAT_PERF_CAPABILITIES] & PERF_CAP_LBR_FMT)
           != lbr->format) {
        return refuse(errp, "Leave out both pdcm and lbr-fmt.",
                      "lbr=on needs pdcm=on and lbr-fmt=%u", lbr->format);
    }
    return !lbr->architectural || check_arch_lbr(cpu, errp);
}

/* Whether CPUID says which PEBS the guest has */
static bool is_pebs_told(const X86CPU *cpu)
{
    const uint64_t told = pebs_capabilities(x86_vpmu_wanted_pebs(cpu));
    const uint64_t *features = cpu->env.features;

    return features[FEAT_1_EDX] & CPUID_DTS
           && features[FEAT_1_ECX] & CPUID_EXT_DTES64
           && features[FEAT_1_ECX] & CPUID_EXT_PDCM
           && (features[FEAT_PERF_CAPABILITIES] & PERF_CAP_PEBS) == told;
}

static bool check_pebs(X86CPU *cpu, Error **errp)
{
    const uint32_t version = x86_vpmu_intel_version(cpu);
    g_autofree char *versions = NULL;

    if (!cpu->vpmu_props.pebs) {
        return true;
    }
    if (!x86_vpmu_wanted_pebs(cpu)) {
        return refuse_pebs(errp);
    }
    if (!is_pebs_told(cpu)) {
        return refuse(errp, "Leave out these features.",
                      "pebs=on needs ds=on, dtes64=on, pdcm=on and the fields "
                      "of PEBS in IA32_PERF_CAPABILITIES");
    }
    versions = g_strdup_printf("With this CPU model, allowed: %u to %u.",
                               least_version(cpu), X86_VPMU_MAX_INTEL_VERSION);
    return version >= least_version(cpu)
           || refuse(errp, versions,
                     "pebs=on is not possible with pmu-version=%u", version);
}

static bool check_extended(const X86CPU *cpu, uint32_t version, Error **errp)
{
    return version < MIN_VERSION_EXTENDED_ONLY
           || cpu->env.features[FEAT_7_1_EAX] & CPUID_7_1_EAX_ARCH_PERFMON_EXT
           || refuse(errp, "Leave out arch-perfmon-ext, level, and "
                     "full-cpuid-auto-level=off.", "pmu-version=%u needs "
                     "arch-perfmon-ext=on and CPUID leaf 0x%x", version,
                     LEAF_EXTENDED);
}

/*
 * Vendors
 */

/* Guests find out about both from IA32_PERF_CAPABILITIES. */
bool x86_vpmu_wants_metrics(X86CPU *cpu)
{
    const X86VPmuProps *props = &cpu->vpmu_props;

    return props->core && intel_model(cpu->env.cpuid_version)->metrics
           && x86_vpmu_intel_version(cpu) >= 2
           && props->fixed_counters != INTEL_NR_FIXED
           && cpu->env.features[FEAT_1_ECX] & CPUID_EXT_PDCM;
}

static uint32_t fixed_counters(X86CPU *cpu)
{
    return cpu->vpmu_props.version < 2 ? 0
           : x86_vpmu_wants_metrics(cpu) ? INTEL_NR_FIXED + 1 : INTEL_NR_FIXED;
}

static bool configure_intel(X86CPU *cpu, Error **errp)
{
    X86VPmuProps *props = &cpu->vpmu_props;

    if (!check_intel_lbr(cpu, errp) || !check_pebs(cpu, errp)) {
        return false;
    }
    props->version = x86_vpmu_intel_version(cpu);
    if (props->version > X86_VPMU_MAX_INTEL_VERSION) {
        return refuse(errp, "Allowed: 1 to " stringify(
                      X86_VPMU_MAX_INTEL_VERSION) ".",
                      "pmu-version=%u is not supported", props->version);
    }
    if (!check_extended(cpu, props->version, errp)) {
        return false;
    }
    if (!props->gp_counters) {
        props->gp_counters = intel_model(cpu->env.cpuid_version)->gp_counters;
    } else if (props->gp_counters != 4 && props->gp_counters != 8) {
        return refuse(errp, "Allowed: 4 or 8.",
                      "pmu-gp-counters=%u is not supported",
                      props->gp_counters);
    }
    return take_number(&props->fixed_counters, "pmu-fixed-counters",
                       fixed_counters(cpu), errp);
}

/* Without PerfMonV2, guests know the number by the family of processors. */
static bool refuse_host_counters(X86CPU *cpu, Error **errp)
{
    g_autofree char *hint = g_strdup_printf(
        "Choose pmu=on and a CPU that has perfmon-v2, if the host has it%s.",
        amd_has_core_counters(cpu)
        ? "; perfctr-core=off leaves four of six counters" : "");

    return refuse(errp, hint, "pmu-host-counters is not possible: only "
                  "PerfMonV2 can tell a guest of AMD's that there are fewer "
                  "counters");
}

static bool configure_amd(X86CPU *cpu, Error **errp)
{
    X86VPmuProps *props = &cpu->vpmu_props;
    uint32_t counters = amd_count_counters(cpu);

    if (props->version) {
        return refuse(errp, "The PMU of AMD CPUs follows their model; "
                      "perfmon-v2=off and perfctr-core=off reduce it.",
                      "pmu-version is only for Intel CPUs");
    }
    if (props->lbr == ON_OFF_AUTO_ON
        && (!x86_vpmu_wanted_lbr(cpu) || !is_amd_lbr_possible(cpu))) {
        return refuse_lbr(errp);
    }
    if (props->pebs) {
        return refuse_pebs(errp);
    }
    if (props->host_counters && !amd_has_global_registers(cpu)) {
        return refuse_host_counters(cpu, errp);
    }
    return keep_for_host(props, &counters, errp)
           && take_number(&props->gp_counters, "pmu-gp-counters", counters,
                          errp)
           && take_number(&props->fixed_counters, "pmu-fixed-counters", 0,
                          errp);
}

/* Guests rely on the fixed counters of their version without asking. */
static bool configure_intel_of_kvm(X86CPU *cpu, Error **errp)
{
    X86VPmuProps *props = &cpu->vpmu_props;
    X86VPmuShape host = x86_vpmu_kvm_intel_shape();

    return keep_for_host(props, &host.nr_gp, errp)
           && settle_size(&props->version, "pmu-version", host.version, errp)
           && settle_size(&props->gp_counters, "pmu-gp-counters", host.nr_gp,
                          errp)
           && take_number(&props->fixed_counters, "pmu-fixed-counters",
                          props->version < 2 ? 0 : host.nr_fixed, errp);
}

/*
 * Accelerators and machine types
 */

/* The name of a property that the user has given, or NULL */
static const char *given_property(const X86VPmuProps *props)
{
    return props->version ? "pmu-version"
           : props->gp_counters ? "pmu-gp-counters"
           : props->fixed_counters ? "pmu-fixed-counters"
           : props->host_counters ? "pmu-host-counters"
           : props->lbr == ON_OFF_AUTO_ON ? "lbr=on"
           : props->pebs ? "pebs=on"
           : props->core ? "pmu-core"
           : pmu_cycles_given(&props->cycles);
}

static bool refuse_property(const X86CPU *cpu, const char *given, Error **errp)
{
    if (!pmu_cpu_is_emulated() && !kvm_enabled()) {
        return refuse(errp, "Use -accel tcg or -accel kvm, or leave the "
                      "property out.", "%s is only for PMUs under TCG and KVM",
                      given);
    }
    if (pmu_cpu_is_emulated() && !cpu->vpmu_props.machine) {
        return refuse(errp, "Choose one of QEMU 10.0 or newer.", "%s needs a "
                      "PMU, which this machine type does not have", given);
    }
    if (kvm_enabled() && !x86_vpmu_kvm_host_has_pmu(cpu)) {
        return refuse(errp, NO_PMU_HINT, "%s is not possible: the host's KVM "
                      "has no PMU for guests", given);
    }
    if (!wants_pmu(cpu)) {
        return refuse(errp, "Add pmu=on.", "%s needs a CPU with a PMU", given);
    }
    return kvm_enabled()
           ? refuse(errp, "Add level=10.", "%s needs a CPU that has CPUID leaf "
                    "0xA", given)
           : refuse(errp, "Choose a CPU model of Intel's or AMD's, or add "
                    "vendor=GenuineIntel.", "%s: there is no PMU for CPUs of "
                    "this vendor yet", given);
}

/*
 * Report that a PMU with pmu=on is not available: with "enforce" as an error,
 * otherwise as a warning, and the machine starts.
 */
static bool report_missing(const X86CPU *cpu, const char *why, const char *hint,
                           Error **errp)
{
    if (cpu->enforce_cpuid) {
        return refuse(errp, hint, "pmu=on is not possible: %s", why);
    }
    warn_report_once("pmu=on has no effect: %s", why);
    return true;
}

/* Without a PMU, no property may ask for one, except perhaps pmu=on. */
static bool go_without(const X86CPU *cpu, Error **errp)
{
    if (!pmu_cpu_is_emulated() || !cpu->enable_pmu || !cpu->pmu_asked_for) {
        return true;
    }
    return cpu->vpmu_props.machine
           ? report_missing(cpu, "there is no PMU for CPUs of this vendor",
                            "Choose a CPU model of Intel's or AMD's.", errp)
           : report_missing(cpu, "under TCG, this machine type has no PMU",
                            "Choose one of QEMU 10.0 or newer.", errp);
}

/* The kernel's PMU is settled before the sizes of this CPU's. */
static bool configure_kvm(X86CPU *cpu, const PmuFilter *filter, Error **errp)
{
    const char *cycles = pmu_cycles_given(&cpu->vpmu_props.cycles);
    bool off;

    if (cycles) {
        return refuse(errp, "Use -accel tcg, or leave the property out: the "
                      "host's PMU counts.", "%s is only for the PMU that TCG "
                      "emulates", cycles);
    }
    if (cpu->enable_pmu && !x86_vpmu_kvm_host_has_pmu(cpu)) {
        if (cpu->pmu_asked_for
            && !report_missing(cpu, "the host's KVM has no PMU for guests",
                               NO_PMU_HINT, errp)) {
            return false;
        }
        cpu->enable_pmu = false;
    }
    off = x86_vpmu_asked_off(cpu) || (STOCK_HAS_AMD_PMU && !cpu->enable_pmu);
    if (!x86_vpmu_kvm_settle(cpu, off, filter, errp)) {
        return false;
    }
    return !x86_vpmu_kvm_ops(cpu)
           || (x86_vpmu_kvm_ops(cpu) == &amd_vpmu_ops
               ? configure_amd(cpu, errp) : configure_intel_of_kvm(cpu, errp));
}

static bool configure_emulated(X86CPU *cpu, Error **errp)
{
    return (emulated_ops(cpu) == &amd_vpmu_ops ? configure_amd(cpu, errp)
                                               : configure_intel(cpu, errp))
           && pmu_cycles_configure(&cpu->vpmu_props.cycles, errp);
}

/* The name of a property about the host's PMU that was given, or NULL */
static const char *given_host_property(const X86VPmuProps *props)
{
    return props->host_perf ? "pmu-host-perf"
           : props->priority ? "pmu-priority"
           : props->host_counters ? "pmu-host-counters" : NULL;
}

/* These properties are for any vCPU of KVM, even without a PMU. */
static bool check_host_properties(const X86VPmuProps *props, Error **errp)
{
    const char *given = given_host_property(props);

    if (given && !kvm_enabled()) {
        return refuse(errp, "Under TCG, the guest's own counters are exact, "
                      "and the host cannot take them away.", "%s is only for "
                      "KVM", given);
    }
    return !props->priority || !strcmp(props->priority, "guest")
           || !strcmp(props->priority, "host")
           || refuse(errp, "Allowed: guest or host.",
                     "pmu-priority=%s is not supported", props->priority);
}

static bool check_emulated_only(const X86VPmuProps *props, Error **errp)
{
    if (props->lbr == ON_OFF_AUTO_ON && kvm_enabled()) {
        return refuse(errp, "Under KVM, lbr-fmt offers the host's records.",
                      "lbr=on is only for the PMU that TCG emulates");
    }
    return !props->pebs || !kvm_enabled()
           || refuse(errp, "Use -accel tcg, or leave the property out.",
                     "pebs=on is only for the PMU that TCG emulates");
}

static bool find_core(X86CPU *cpu, Error **errp)
{
    X86VPmuProps *props = &cpu->vpmu_props;

    return pmu_cpu_find_core(CPU(cpu), props->core, &props->cycles,
                             &props->core_model, errp);
}

bool x86_vpmu_configure(X86CPU *cpu, Error **errp)
{
    const X86VPmuProps *props = &cpu->vpmu_props;
    const char *given = given_property(props);
    const PmuFilter *filter;

    if (!check_host_properties(props, errp) || !check_emulated_only(props, errp)
        || !find_core(cpu, errp) || !x86_vpmu_take_filter(&filter, errp)) {
        return false;
    }
    if (kvm_enabled() && !configure_kvm(cpu, filter, errp)) {
        return false;
    }
    if (!x86_vpmu_ops_for(cpu)) {
        return given ? refuse_property(cpu, given, errp)
                     : go_without(cpu, errp);
    }
    return kvm_enabled() || configure_emulated(cpu, errp);
}
