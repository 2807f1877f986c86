/*
 * x86 virtual PMU: Intel's architectural performance monitoring
 *
 * Registers as in the SDM, volume 3B, "Architectural Performance Monitoring",
 * versions 1 to 6.  One table has the differences between versions, another
 * the registers.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qemu/log.h"
#include "core-events.h"
#include "intel-events.h"
#include "debugctl.h"
#include "internal.h"
#include "metrics.h"

/* Register numbers that cpu.h does not have. */
#define MSR_IA32_PERF_GLOBAL_STATUS_SET   0x391
#define MSR_IA32_PERF_GLOBAL_INUSE        0x392
#define MSR_IA32_PMC0                     0x4c1

/* Version 6 has second numbers for registers of counters, with this distance */
#define MSR_IA32_PMC_GP0_CTR              0x1900
#define MSR_IA32_PMC_GP0_CFG_A            0x1901
#define MSR_IA32_PMC_FX0_CTR              0x1980
#define PMC_STEP                          4

/* IA32_PERFEVTSELx, in addition to X86_EVTSEL_* */
#define EVTSEL_EVENT     MAKE_64BIT_MASK(0, 8)
#define EVTSEL_ANY       (1ull << 21)
#define EVTSEL_IN_TX     (1ull << 32)
#define EVTSEL_IN_TXCP   (1ull << 33)
/* No cycle has two events: if a threshold is reached, it is equalled. */
#define EVTSEL_EQ        (1ull << 36)
#define EVTSEL_UMASK2    40
#define EVTSEL_VALID     (MAKE_64BIT_MASK(0, 32) & ~EVTSEL_ANY)

/* IA32_FIXED_CTR_CTRL: a field of 4 bits per counter */
#define FIXED_FIELD      4
#define FIXED_OS         1
#define FIXED_USR        2
#define FIXED_ANY        4
#define FIXED_PMI        8
#define FIXED_VALID      (FIXED_OS | FIXED_USR | FIXED_PMI)

/* IA32_PERF_GLOBAL_*: general-purpose counters from bit 0, fixed from 32 */
#define GLOBAL_FIXED     32
#define STATUS_ASCI      (1ull << 60)
#define STATUS_UNCORE    (1ull << 61)
#define STATUS_OVF_BUF   (1ull << 62)
#define STATUS_COND_CHGD (1ull << 63)

/* IA32_PERF_CAPABILITIES */
#define PERF_CAP_FULL_WIDTH    (1ull << 13)

/* RDPMC's ECX: which counters, and the number of one */
#define RDPMC_INDEX      MAKE_64BIT_MASK(0, 16)
#define RDPMC_GP         0
#define RDPMC_METRICS    0x20000000u
#define RDPMC_FIXED      0x40000000u

/**
 * struct IntelVersion - the properties of a version of the architecture
 * @evtsel: the bits of IA32_PERFEVTSELx
 * @fixed: the bits of a counter's field in IA32_FIXED_CTR_CTRL; 0 if there
 *         are no fixed counters, and no global control either
 * @status_clear: the bits that can be cleared in IA32_PERF_GLOBAL_STATUS,
 *                besides the counters' bits
 * @status_set: the bits that can be set there
 * @cpuid_edx: flags in EDX of CPUID leaf 0xA
 * @fixed_bitmap: ECX of that leaf names the fixed counters
 * @aliases: registers of counters have second numbers
 */
typedef struct IntelVersion {
    uint64_t evtsel;
    uint64_t fixed;
    uint64_t status_clear;
    uint64_t status_set;
    uint32_t cpuid_edx;
    bool fixed_bitmap;
    bool aliases;
} IntelVersion;

#define CLEAR_V2 (STATUS_OVF_BUF | STATUS_COND_CHGD)
/* ASCI can be set on CPUs with SGX only, and cleared on all. */
#define SET_V4   (X86_STATUS_LBRS_FROZEN | X86_STATUS_COUNTERS_FROZEN \
                  | STATUS_UNCORE | STATUS_OVF_BUF)
#define CLEAR_V4 (SET_V4 | STATUS_ASCI | STATUS_COND_CHGD)
#define EDX_ANYTHREAD_DEPRECATED (1u << 15)

static const IntelVersion versions[] = {
    [1] = {
        .evtsel = EVTSEL_VALID,
    },
    [2] = {
        .evtsel = EVTSEL_VALID,
        .fixed = FIXED_VALID,
        .status_clear = CLEAR_V2,
    },
    [3] = {
        .evtsel = EVTSEL_VALID | EVTSEL_ANY,
        .fixed = FIXED_VALID | FIXED_ANY,
        .status_clear = CLEAR_V2,
    },
    [4] = {
        .evtsel = EVTSEL_VALID | EVTSEL_ANY,
        .fixed = FIXED_VALID | FIXED_ANY,
        .status_clear = CLEAR_V4,
        .status_set = SET_V4,
    },
    [5] = {
        .evtsel = EVTSEL_VALID,
        .fixed = FIXED_VALID,
        .status_clear = CLEAR_V4,
        .status_set = SET_V4,
        .cpuid_edx = EDX_ANYTHREAD_DEPRECATED,
        .fixed_bitmap = true,
    },
    [6] = {
        .evtsel = EVTSEL_VALID | EVTSEL_EQ
                  | MAKE_64BIT_MASK(EVTSEL_UMASK2, 8),
        .fixed = FIXED_VALID,
        .status_clear = CLEAR_V4,
        .status_set = SET_V4,
        .cpuid_edx = EDX_ANYTHREAD_DEPRECATED,
        .fixed_bitmap = true,
        .aliases = true,
    },
};

static const IntelVersion *version_of(const X86VPmu *v)
{
    return &versions[v->version];
}

/*
 * From registers to counters
 */

/* Counters of the metrics have the field of the counter of slots. */
static uint64_t fixed_field(const X86VPmu *v, unsigned counter)
{
    return v->fixed_ctrl >> (MIN(counter - v->nr_gp, INTEL_FIXED_SLOTS)
                             * FIXED_FIELD);
}

static bool is_of_metrics(const X86VPmu *v, unsigned counter)
{
    return counter >= v->nr_gp + v->nr_fixed;
}

/* A counter's bit in the global registers. */
static uint64_t global_bit(const X86VPmu *v, unsigned counter)
{
    return is_of_metrics(v, counter) ? X86_GLOBAL_METRICS
           : 1ull << (counter < v->nr_gp ? counter
                      : GLOBAL_FIXED + counter - v->nr_gp);
}

static uint64_t global_bits(const X86VPmu *v)
{
    return x86_vpmu_low_bits(v->nr_gp)
           | x86_vpmu_low_bits(v->nr_fixed) << GLOBAL_FIXED
           | X86_VPMU_UNION(v->ops, global, v);
}

/* The bits that enable a counter there: metrics need the counter of slots. */
static uint64_t enabling_bits(const X86VPmu *v, unsigned counter)
{
    return global_bit(v, counter)
           | (is_of_metrics(v, counter)
              ? global_bit(v, v->nr_gp + INTEL_FIXED_SLOTS) : 0);
}

static bool locally_enabled(const X86VPmu *v, unsigned counter)
{
    if (counter < v->nr_gp) {
        return v->evtsel[counter] & X86_EVTSEL_EN;
    }
    return fixed_field(v, counter) & (FIXED_OS | FIXED_USR);
}

static bool globally_enabled(const X86VPmu *v, unsigned counter)
{
    return !version_of(v)->fixed
           || (!(enabling_bits(v, counter) & ~v->global_ctrl)
               && !(v->global_status & X86_STATUS_COUNTERS_FROZEN));
}

static bool interrupts(const X86VPmu *v, unsigned counter)
{
    if (counter < v->nr_gp) {
        return v->evtsel[counter] & X86_EVTSEL_INT;
    }
    return fixed_field(v, counter) & FIXED_PMI;
}

/* Without counters whose overflow is handled by a feature */
static uint64_t interrupting_counters(const X86VPmu *v)
{
    uint64_t counters = 0;

    for (unsigned i = 0; i < pmu_nr_counters(v->pmu); i++) {
        counters |= (uint64_t)interrupts(v, i) << i;
    }
    return counters & ~X86_VPMU_UNION(v->ops, claims, v);
}

static uint32_t event_code(const X86VPmu *v, unsigned i)
{
    return X86_VPMU_CODE2(extract64(v->evtsel[i], 0, 8),
                          extract64(v->evtsel[i], 8, 8),
                          extract64(v->evtsel[i], EVTSEL_UMASK2, 8));
}

/*
 * KVM lets a guest that has transactions count in them alone (EVTSEL_IN_TX),
 * or leave out the aborted ones (EVTSEL_IN_TXCP).  The model has no such event.
 */
static bool depends_on_transactions(const X86VPmu *v, unsigned i)
{
    return v->evtsel[i] & (EVTSEL_IN_TX | EVTSEL_IN_TXCP);
}

static PmuSelect decode_gp(const X86VPmu *v, unsigned i)
{
    PmuSelect select = x86_vpmu_gp_select(v, i, event_code(v, i),
                                          ~(PmuModes)0);

    if (depends_on_transactions(v, i)) {
        select.event = PMU_EVENT_NONE;
    }
    return select;
}

static PmuSelect decode_fixed(const X86VPmu *v, unsigned counter)
{
    uint64_t field = fixed_field(v, counter);
    unsigned i = counter - v->nr_gp;

    return (PmuSelect) {
        .event = pmu_filter_allows_fixed(v->filter, i) ? intel_fixed_events[i]
                                                       : PMU_EVENT_NONE,
        .modes = x86_vpmu_modes(field & FIXED_OS, field & FIXED_USR),
        .each = i == INTEL_FIXED_SLOTS ? x86_vpmu_slots(v) : 1,
    };
}

/*
 * Make the counters follow the registers; in a transaction.
 */

static void update_select(X86VPmu *v, unsigned counter)
{
    PmuSelect select = counter < v->nr_gp ? decode_gp(v, counter)
                       : is_of_metrics(v, counter) ? metrics_select(v, counter)
                       : decode_fixed(v, counter);

    select.modes &= ~X86_VPMU_UNION(v->ops, skips, v, counter);
    pmu_select(v->pmu, counter, &select);
    pmu_set_alert(v->pmu, counter,
                  interrupts(v, counter)
                  || X86_VPMU_UNION(v->ops, claims, v) >> counter & 1);
}

static void update_running(X86VPmu *v)
{
    for (unsigned i = 0; i < pmu_nr_counters(v->pmu); i++) {
        pmu_run(v->pmu, i, locally_enabled(v, i) && globally_enabled(v, i));
    }
}

static void update_freeze(X86VPmu *v)
{
    bool freeze = v->debugctl & X86_DEBUGCTL_FREEZE_COUNTERS;

    pmu_set_freeze(v->pmu, freeze ? interrupting_counters(v) : 0,
                   MAKE_64BIT_MASK(0, pmu_nr_counters(v->pmu)));
}

static void update_all(X86VPmu *v)
{
    for (unsigned i = 0; i < pmu_nr_counters(v->pmu); i++) {
        update_select(v, i);
    }
    update_running(v);
    update_freeze(v);
    X86_VPMU_CALL(v->ops, update, v);
}

static void freeze_on_pmi(X86VPmu *v)
{
    if (x86_vpmu_freezes_in_status(v)) {
        v->global_status |= X86_STATUS_COUNTERS_FROZEN;
    } else {
        v->global_ctrl = 0;
    }
}

/* Returns: the counters that interrupt all the same */
static uint64_t handle_claimed(X86VPmu *v, uint64_t counters)
{
    uint64_t interrupting = 0;

    pmu_begin(v->pmu);
    if (counters) {
        interrupting = X86_VPMU_UNION(v->ops, overflow, v, counters);
    }
    for (unsigned i = 0; counters >> i; i++) {
        if (counters >> i & 1) {
            update_select(v, i);
        }
    }
    pmu_commit(v->pmu);
    v->global_status |= interrupting ? STATUS_OVF_BUF : 0;
    return interrupting;
}

/*
 * The model has stopped the counters already, if they freeze; but not if the
 * cause is a full buffer.
 */
static void freeze_counters_on_pmi(X86VPmu *v)
{
    freeze_on_pmi(v);
    pmu_begin(v->pmu);
    update_running(v);
    pmu_commit(v->pmu);
}

static void intel_overflow(void *opaque, uint64_t counters)
{
    X86VPmu *v = opaque;
    uint64_t interrupting = counters & interrupting_counters(v);
    uint64_t claimed = counters & X86_VPMU_UNION(v->ops, claims, v);

    for (unsigned i = 0; i < pmu_nr_counters(v->pmu); i++) {
        if (version_of(v)->fixed && ((counters & ~claimed) >> i & 1)) {
            v->global_status |= global_bit(v, i);
        }
    }
    interrupting |= handle_claimed(v, claimed);
    if (interrupting) {
        if (v->debugctl & X86_DEBUGCTL_FREEZE_COUNTERS) {
            freeze_counters_on_pmi(v);
        }
        X86_VPMU_CALL(v->ops, on_pmi, v);
        x86_vpmu_raise_pmi(v, interrupting, true);
    }
}

/* AnyThread: the counter should also count the core's other threads. */
static void report_any_thread(const X86VPmu *v, uint64_t any)
{
    if (any && v->cpu->env.topo_info.threads_per_core > 1) {
        qemu_log_mask(LOG_UNIMP, "vPMU: AnyThread is ignored, counters count "
                      "what their own thread does\n");
    }
}

/*
 * The registers.
 */

static void write_evtsel(X86VPmu *v, unsigned i, uint64_t val)
{
    if (val & X86_EVTSEL_EN && !x86_vpmu_event_of(v, event_code(v, i))) {
        x86_vpmu_report_uncounted(v->model, event_code(v, i));
    }
    report_any_thread(v, val & EVTSEL_ANY);
    update_select(v, i);
    update_running(v);
    update_freeze(v);
    X86_VPMU_CALL(v->ops, update, v);
}

static uint64_t evtsel_bits(const X86VPmu *v)
{
    return version_of(v)->evtsel | X86_VPMU_UNION(v->ops, evtsel, v);
}

static void write_counter(X86VPmu *v, unsigned counter, uint64_t val)
{
    pmu_write(v->pmu, counter, val);
    if (X86_VPMU_UNION(v->ops, written, v, counter)) {
        update_select(v, counter);
    }
}

static void write_gp(X86VPmu *v, unsigned i, uint64_t val)
{
    write_counter(v, i, val);
}

static void write_gp_legacy(X86VPmu *v, unsigned i, uint64_t val)
{
    write_counter(v, i, (int64_t)(int32_t)val);
}

static uint64_t read_fixed(X86VPmu *v, unsigned i)
{
    return pmu_read(v->pmu, v->nr_gp + i);
}

static void write_fixed(X86VPmu *v, unsigned i, uint64_t val)
{
    write_counter(v, v->nr_gp + i, val);
}

/* The same bits in the field of each counter. */
static uint64_t all_fixed_fields(const X86VPmu *v, uint64_t field)
{
    uint64_t bits = 0;

    for (unsigned i = 0; i < v->nr_fixed; i++) {
        bits |= field << (i * FIXED_FIELD);
    }
    return bits;
}

static void write_fixed_ctrl(X86VPmu *v, unsigned i, uint64_t val)
{
    report_any_thread(v, val & all_fixed_fields(v, FIXED_ANY));
    update_all(v);
}

static uint64_t fixed_ctrl_bits(const X86VPmu *v)
{
    return all_fixed_fields(v, version_of(v)->fixed)
           | X86_VPMU_UNION(v->ops, fixed_ctrl, v);
}

static void write_global_ctrl(X86VPmu *v, unsigned i, uint64_t val)
{
    update_running(v);
}

static void write_status_reset(X86VPmu *v, unsigned i, uint64_t val)
{
    v->global_status &= ~val;
    update_running(v);
    X86_VPMU_CALL(v->ops, update, v);
}

static uint64_t status_reset_bits(const X86VPmu *v)
{
    return global_bits(v) | version_of(v)->status_clear;
}

static void write_status_set(X86VPmu *v, unsigned i, uint64_t val)
{
    v->global_status |= val;
    update_running(v);
    X86_VPMU_CALL(v->ops, update, v);
}

static uint64_t status_set_bits(const X86VPmu *v)
{
    return global_bits(v) | version_of(v)->status_set;
}

static uint64_t read_inuse(X86VPmu *v, unsigned i)
{
    uint64_t inuse = (interrupting_counters(v) ? X86_INUSE_PMI : 0)
                     | X86_VPMU_UNION(v->ops, inuse, v);

    for (unsigned c = 0; c < v->nr_gp + v->nr_fixed; c++) {
        bool used = c < v->nr_gp ? v->evtsel[c] & EVTSEL_EVENT
                                 : locally_enabled(v, c);

        inuse |= used ? global_bit(v, c) : 0;
    }
    return inuse;
}

static uint64_t read_perf_capabilities(X86VPmu *v, unsigned i)
{
    return x86_vpmu_perf_capabilities(v);
}

/* The number of registers of each kind */

static unsigned count_gp_full(const X86VPmu *v)
{
    return x86_vpmu_perf_capabilities(v) & PERF_CAP_FULL_WIDTH ? v->nr_gp : 0;
}

static unsigned count_fixed(const X86VPmu *v)
{
    return v->nr_fixed;
}

static unsigned count_gp_aliases(const X86VPmu *v)
{
    return version_of(v)->aliases ? v->nr_gp : 0;
}

static unsigned count_fixed_aliases(const X86VPmu *v)
{
    return version_of(v)->aliases ? v->nr_fixed : 0;
}

static unsigned one_with_pdcm(const X86VPmu *v)
{
    return v->cpu->env.features[FEAT_1_ECX] & CPUID_EXT_PDCM ? 1 : 0;
}

static unsigned one_with_global(const X86VPmu *v)
{
    return version_of(v)->fixed ? 1 : 0;
}

static unsigned one_with_status_set(const X86VPmu *v)
{
    return version_of(v)->status_set ? 1 : 0;
}

static const X86VPmuMsr msrs[] = {
    { MSR_P6_PERFCTR0, X86_VPMU_MAX_GP, 1, x86_vpmu_count_gp,
      x86_vpmu_any_bits, 0, write_gp_legacy, x86_vpmu_read_gp },
    { MSR_IA32_PMC0, X86_VPMU_MAX_GP, 1, count_gp_full,
      x86_vpmu_counter_bits, 0, write_gp, x86_vpmu_read_gp },
    { MSR_P6_EVNTSEL0, X86_VPMU_MAX_GP, 1, x86_vpmu_count_gp,
      evtsel_bits, X86_VPMU_FIELD(evtsel), write_evtsel },
    { MSR_CORE_PERF_FIXED_CTR0, X86_VPMU_MAX_FIXED, 1, count_fixed,
      x86_vpmu_counter_bits, 0, write_fixed, read_fixed },
    { MSR_CORE_PERF_FIXED_CTR_CTRL, 1, 1, one_with_global,
      fixed_ctrl_bits, X86_VPMU_FIELD(fixed_ctrl), write_fixed_ctrl },
    { MSR_CORE_PERF_GLOBAL_STATUS, 1, 1, one_with_global,
      NULL, X86_VPMU_FIELD(global_status) },
    { MSR_CORE_PERF_GLOBAL_CTRL, 1, 1, one_with_global,
      global_bits, X86_VPMU_FIELD(global_ctrl), write_global_ctrl },
    { MSR_CORE_PERF_GLOBAL_OVF_CTRL, 1, 1, one_with_global,
      status_reset_bits, 0, write_status_reset },
    { MSR_IA32_PERF_GLOBAL_STATUS_SET, 1, 1, one_with_status_set,
      status_set_bits, 0, write_status_set },
    { MSR_IA32_PERF_GLOBAL_INUSE, 1, 1, one_with_status_set,
      NULL, 0, NULL, read_inuse },
    { MSR_IA32_PERF_CAPABILITIES, 1, 1, one_with_pdcm,
      NULL, 0, NULL, read_perf_capabilities },
    { MSR_IA32_PMC_GP0_CTR, X86_VPMU_MAX_GP, PMC_STEP, count_gp_aliases,
      x86_vpmu_counter_bits, 0, write_gp, x86_vpmu_read_gp },
    { MSR_IA32_PMC_GP0_CFG_A, X86_VPMU_MAX_GP, PMC_STEP, count_gp_aliases,
      evtsel_bits, X86_VPMU_FIELD(evtsel), write_evtsel },
    { MSR_IA32_PMC_FX0_CTR, X86_VPMU_MAX_FIXED, PMC_STEP, count_fixed_aliases,
      x86_vpmu_counter_bits, 0, write_fixed, read_fixed },
    { }
};

static const X86VPmuStateMsr state[] = {
    { MSR_CORE_PERF_FIXED_CTR0, 1, count_fixed, false,
      0, write_fixed, read_fixed },
    { MSR_P6_PERFCTR0, 1, x86_vpmu_count_gp, false,
      0, x86_vpmu_write_gp, x86_vpmu_read_gp },
    { MSR_CORE_PERF_GLOBAL_STATUS, 1, one_with_global, false,
      X86_VPMU_FIELD(global_status) },
    { MSR_P6_EVNTSEL0, 1, x86_vpmu_count_gp, true, X86_VPMU_FIELD(evtsel) },
    { MSR_CORE_PERF_FIXED_CTR_CTRL, 1, one_with_global, true,
      X86_VPMU_FIELD(fixed_ctrl) },
    { MSR_CORE_PERF_GLOBAL_CTRL, 1, one_with_global, true,
      X86_VPMU_FIELD(global_ctrl) },
    { }
};

static bool intel_rdpmc(X86VPmu *v, uint32_t index, uint64_t *val)
{
    unsigned i = index & RDPMC_INDEX;

    switch (index & ~RDPMC_INDEX) {
    case RDPMC_GP:
        if (i >= v->nr_gp) {
            return false;
        }
        *val = x86_vpmu_read_gp(v, i);
        return true;
    case RDPMC_FIXED:
        if (i >= v->nr_fixed) {
            return false;
        }
        *val = read_fixed(v, i);
        return true;
    case RDPMC_METRICS:
        return metrics_rdpmc(v, i, val);
    default:
        return false;
    }
}

/* The last architectural event is TOPDOWN.SLOTS. */
unsigned intel_nr_arch_events(const X86VPmu *v)
{
    return INTEL_NR_ARCH_EVENTS + (v->nr_metrics ? 1 : 0);
}

uint32_t intel_unavailable_events(const X86VPmu *v)
{
    return x86_vpmu_has_core(v) ? 0 : intel_uncounted_events();
}

static void intel_cpuid(const X86VPmu *v, uint32_t leaf, uint32_t *eax,
                        uint32_t *ebx, uint32_t *ecx, uint32_t *edx)
{
    const IntelVersion *version = version_of(v);

    if (leaf != 0xa) {
        return;
    }
    *eax = v->version | v->nr_gp << 8 | X86_VPMU_WIDTH << 16
           | intel_nr_arch_events(v) << 24;
    *ebx = intel_unavailable_events(v);
    *ecx = version->fixed_bitmap ? x86_vpmu_low_bits(v->nr_fixed) : 0;
    *edx = version->fixed ? v->nr_fixed | X86_VPMU_WIDTH << 5 : 0;
    *edx |= version->cpuid_edx;
}

static X86VPmuBits intel_bits(const X86VPmu *v)
{
    const uint64_t all = one_with_global(v) ? UINT64_MAX : 0;

    return (X86VPmuBits) {
        .evtsel = evtsel_bits(v),
        .fixed_ctrl = fixed_ctrl_bits(v),
        .global_ctrl = all & global_bits(v),
        .global_status = all & status_reset_bits(v),
    };
}

static void intel_reset(X86VPmu *v)
{
    memset(v->evtsel, 0, sizeof(v->evtsel));
    v->fixed_ctrl = 0;
    v->global_ctrl = v->global_reset;
    v->global_status = 0;
}

/*
 * For the monitor
 */

static char *intel_kind(const X86VPmu *v)
{
    return g_strdup_printf("intel-v%u", v->version);
}

static const char *intel_counter_name(const X86VPmu *v, unsigned i)
{
    static const char *const gp[X86_VPMU_MAX_GP] = {
        "IA32_PMC0", "IA32_PMC1", "IA32_PMC2", "IA32_PMC3",
        "IA32_PMC4", "IA32_PMC5", "IA32_PMC6", "IA32_PMC7",
    };
    static const char *const fixed[X86_VPMU_MAX_FIXED] = {
        "IA32_FIXED_CTR0", "IA32_FIXED_CTR1", "IA32_FIXED_CTR2",
        "IA32_FIXED_CTR3",
    };

    return i < v->nr_gp ? gp[i] : fixed[i - v->nr_gp];
}

static unsigned intel_stops(const X86VPmu *v, unsigned i)
{
    const bool controlled = version_of(v)->fixed;
    unsigned stops = 0;

    if (!locally_enabled(v, i)) {
        stops |= i < v->nr_gp ? X86_VPMU_STOP_EN : X86_VPMU_STOP_FIXED_CTRL;
    }
    if (controlled && !(v->global_ctrl & global_bit(v, i))) {
        stops |= X86_VPMU_STOP_GLOBAL_CTRL;
    }
    if (controlled && v->global_status & X86_STATUS_COUNTERS_FROZEN) {
        stops |= X86_VPMU_STOP_CTR_FRZ;
    }
    return stops;
}

static uint64_t intel_offers(X86CPU *cpu, FeatureWord w)
{
    switch (w) {
    case FEAT_1_ECX:
        return CPUID_EXT_PDCM;
    case FEAT_PERF_CAPABILITIES:
        return PERF_CAP_FULL_WIDTH;
    default:
        return 0;
    }
}

static void intel_init(X86VPmu *v)
{
    v->version = v->cpu->vpmu_props.version;
    /* Older machine types cleared it; version 1 does not have it. */
    v->global_reset = v->cpu->vpmu_props.machine && version_of(v)->fixed
                      ? x86_vpmu_low_bits(v->nr_gp) : 0;
    v->model = &intel_model(v->cpu->env.cpuid_version)->vpmu;
}

const X86VPmuOps intel_vpmu_ops = {
    .offers = intel_offers,
    .init = intel_init,
    .reset = intel_reset,
    .cpuid = intel_cpuid,
    .msrs = msrs,
    .state = state,
    .features = intel_features,
    .in_stock_stream = true,
    .rdpmc = intel_rdpmc,
    .overflow = intel_overflow,
    .bits = intel_bits,
    .update = update_all,
    .by = PMU_VENDOR_INTEL,
    .kind = intel_kind,
    .counter_name = intel_counter_name,
    .event_code = event_code,
    .interrupts = interrupts,
    .stops = intel_stops,
};
