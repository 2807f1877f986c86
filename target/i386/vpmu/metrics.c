/*
 * x86 virtual PMU: Intel's performance metrics
 *
 * As in the SDM, volume 3B, "Performance Metrics".  Linux reads them together
 * with IA32_FIXED_CTR3, clears both before they run over, and stores and loads
 * both when it switches tasks.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "core-events.h"
#include "intel-events.h"
#include "metrics.h"

#define MSR_PERF_METRICS       0x329

/* IA32_PERF_CAPABILITIES */
#define PERF_CAP_METRICS       (1ull << 15)

/* Each metric is a share of all slots, of which there are so many. */
#define ALL_SLOTS              0xff
#define METRIC_BITS            8
#define LEVEL_BITS             32

/* The metrics of the first level, from the lowest bits on */
static const PmuEvent parts[X86_VPMU_MAX_METRICS] = {
    PMU_EVENT_RETIRING_CYCLES,
    PMU_EVENT_SPECULATION_CYCLES,
    PMU_EVENT_FRONTEND_CYCLES,
    PMU_EVENT_BACKEND_CYCLES,
};

static unsigned first_of(const X86VPmu *v)
{
    return v->nr_gp + v->nr_fixed;
}

/* What the user's filter does not let IA32_FIXED_CTR3 count is not shown. */
PmuSelect metrics_select(const X86VPmu *v, unsigned counter)
{
    PmuSelect select = *pmu_selected(v->pmu, v->nr_gp + INTEL_FIXED_SLOTS);

    if (select.event != PMU_EVENT_NONE) {
        select.event = parts[counter - first_of(v)];
    }
    return select;
}

/* The ends of the parts are rounded, so that the parts add up to all slots. */
static uint64_t first_level(const X86VPmu *v)
{
    uint64_t ends[X86_VPMU_MAX_METRICS], sum = 0, level = 0, before = 0;

    for (unsigned i = 0; i < v->nr_metrics; i++) {
        sum += pmu_peek(v->pmu, first_of(v) + i);
        ends[i] = sum;
    }
    for (unsigned i = 0; sum && i < v->nr_metrics; i++) {
        uint64_t end = (ends[i] * ALL_SLOTS + sum / 2) / sum;

        level |= (end - before) << (i * METRIC_BITS);
        before = end;
    }
    return level;
}

/*
 * No instruction of the model is a heavy one.  All else has one cause: of
 * speculation branches, of the frontend the latency of fetches, and of the
 * backend memory.
 */
static uint64_t second_level(const X86VPmu *v, uint64_t first)
{
    return intel_model(v->cpu->env.cpuid_version)->two_levels
           ? first & ~(uint64_t)ALL_SLOTS : 0;
}

static uint64_t metrics_of(const X86VPmu *v)
{
    uint64_t first = first_level(v);

    return first | second_level(v, first) << LEVEL_BITS;
}

static uint64_t read_metrics(X86VPmu *v, unsigned i)
{
    return metrics_of(v);
}

bool metrics_rdpmc(const X86VPmu *v, unsigned index, uint64_t *val)
{
    if (!v->nr_metrics || index) {
        return false;
    }
    *val = metrics_of(v);
    return true;
}

/*
 * The shares are of what IA32_FIXED_CTR3 says, which software writes first.
 * With fewer slots than shares, they would not read as they were written.
 */
static void write_metrics(X86VPmu *v, unsigned i, uint64_t val)
{
    uint64_t slots = pmu_read(v->pmu, v->nr_gp + INTEL_FIXED_SLOTS);
    uint64_t shares = 0, before = 0;

    slots = MAX(slots, ALL_SLOTS);
    for (unsigned part = 0; part < v->nr_metrics; part++) {
        uint64_t end;

        shares += extract64(val, part * METRIC_BITS, METRIC_BITS);
        end = (slots * shares + ALL_SLOTS / 2) / ALL_SLOTS;
        pmu_write(v->pmu, first_of(v) + part, end - before);
        before = end;
    }
}

static uint64_t metrics_bits(const X86VPmu *v)
{
    return intel_model(v->cpu->env.cpuid_version)->two_levels
           ? UINT64_MAX : MAKE_64BIT_MASK(0, LEVEL_BITS);
}

/* As all that QEMU does not know */
static bool metrics_ignored(const X86VPmu *v)
{
    return !v->nr_metrics;
}

static const X86VPmuMsr metrics_msrs[] = {
    { MSR_PERF_METRICS, 1, 1, NULL, metrics_bits, 0, write_metrics,
      read_metrics },
    { }
};

static uint64_t metrics_offers(X86CPU *cpu, FeatureWord w)
{
    return w == FEAT_PERF_CAPABILITIES && x86_vpmu_wants_metrics(cpu)
           ? PERF_CAP_METRICS : 0;
}

static void metrics_init(X86VPmu *v)
{
    v->nr_metrics = x86_vpmu_wants_metrics(v->cpu) ? X86_VPMU_MAX_METRICS : 0;
}

static uint64_t metrics_global(const X86VPmu *v)
{
    return v->nr_metrics ? X86_GLOBAL_METRICS : 0;
}

/* QEMU without this PMU has no room for these counters. */
static bool metrics_are_used(const X86VPmu *v)
{
    bool used = false;

    for (unsigned i = 0; v->nr_metrics && i <= v->nr_metrics; i++) {
        used |= pmu_peek(v->pmu, v->nr_gp + INTEL_FIXED_SLOTS + i) != 0;
    }
    return used;
}

static void metrics_describe(const X86VPmu *v, PmuInfo *info)
{
    if (v->nr_metrics) {
        info->has_metrics = true;
        info->metrics = metrics_of(v);
    }
}

const X86VPmuFeature intel_metrics = {
    .msrs = metrics_msrs,
    .ignored = metrics_ignored,
    .offers = metrics_offers,
    .init = metrics_init,
    .global = metrics_global,
    .is_used = metrics_are_used,
    .describe = metrics_describe,
};
