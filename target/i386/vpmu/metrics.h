/*
 * x86 virtual PMU: Intel's performance metrics
 *
 * For CPUs with a model of the core, from Ice Lake on: IA32_FIXED_CTR3 counts
 * slots, and MSR_PERF_METRICS says what became of them.  The metrics are made
 * of counters of slots, which no register shows.  They count while and as
 * IA32_FIXED_CTR3 does, and follow the fixed counters in struct Pmu.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef I386_VPMU_METRICS_H
#define I386_VPMU_METRICS_H

#include "internal.h"

/* IA32_PERF_GLOBAL_CTRL, IA32_PERF_GLOBAL_STATUS */
#define X86_GLOBAL_METRICS (1ull << 48)

/**
 * metrics_select - the event selection of a counter of the metrics
 * @v: the PMU
 * @counter: the counter
 *
 * IA32_FIXED_CTR3 has been selected before.
 */
PmuSelect metrics_select(const X86VPmu *v, unsigned counter);

/**
 * metrics_rdpmc - read the metrics by RDPMC
 * @v: the PMU
 * @index: the lower half of ECX
 * @val: set to the value
 *
 * Returns: false if there are none, or not with this index.
 */
bool metrics_rdpmc(const X86VPmu *v, unsigned index, uint64_t *val);

/**
 * The feature of Intel's CPUs
 */
extern const X86VPmuFeature intel_metrics;

#endif /* I386_VPMU_METRICS_H */
