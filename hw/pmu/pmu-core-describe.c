/*
 * Performance monitoring unit: the description of a vCPU's modelled core
 *
 * For code that is compiled per target.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-visit-pmu-monitor.h"
#include "qapi/qobject-input-visitor.h"
#include "qobject/qdict.h"
#include "system/tcg.h"
#include "hw/pmu/pmu-cpu.h"
#include "hw/pmu/pmu-monitor.h"
#include "pmu-tcg-internal.h"

/* The tallies of one kind stand apart by the number of kinds. */
static PmuCoreAccesses *describe_accesses(const uint64_t *tallies,
                                          PmuCoreTally first)
{
    PmuCoreAccesses *info = g_new0(PmuCoreAccesses, 1);

    info->references = tallies[first];
    info->l1_misses = tallies[first + PMU_CORE_ACCESSES];
    info->llc_misses = tallies[first + 2 * PMU_CORE_ACCESSES];
    info->tlb_misses = tallies[first + 3 * PMU_CORE_ACCESSES];
    return info;
}

static PmuCoreBranches *describe_branches(const uint64_t *tallies,
                                          PmuCoreTally branches,
                                          PmuCoreTally misses)
{
    PmuCoreBranches *info = g_new0(PmuCoreBranches, 1);

    info->predictions = tallies[branches];
    info->mispredicted = tallies[misses];
    return info;
}

static PmuCoreCounts *describe_counts(CPUState *cpu)
{
    PmuCoreCounts *info = g_new0(PmuCoreCounts, 1);
    uint64_t t[PMU_CORE_TALLIES];

    pmu_tcg_core_sum(pmu_tcg_core_of(cpu), t);
    info->fetches = describe_accesses(t, PMU_CORE_FETCHES);
    info->loads = describe_accesses(t, PMU_CORE_LOADS);
    info->stores = describe_accesses(t, PMU_CORE_STORES);
    info->modifies = describe_accesses(t, PMU_CORE_MODIFIES);
    info->not_taken = describe_branches(t, PMU_CORE_BRANCHES_NOT_TAKEN,
                                        PMU_CORE_NOT_TAKEN_MISSES);
    info->taken = describe_branches(t, PMU_CORE_BRANCHES_TAKEN,
                                    PMU_CORE_TAKEN_MISSES);
    info->indirect = describe_branches(t, PMU_CORE_BRANCHES_INDIRECT,
                                       PMU_CORE_INDIRECT_MISSES);
    info->returns = describe_branches(t, PMU_CORE_BRANCHES_RETURN,
                                      PMU_CORE_RETURN_MISSES);
    return info;
}

/* All members but the counts have the names of the object's properties. */
static PmuCoreInfo *describe_model(const PmuCoreModel *model)
{
    g_autoptr(QDict) properties = pmu_core_model_properties(model);
    Visitor *v = qobject_input_visitor_new(QOBJECT(properties));
    PmuCoreInfo *info;

    visit_type_PmuCoreInfo(v, NULL, &info, &error_abort);
    visit_free(v);
    return info;
}

PmuCoreInfo *pmu_describe_core(CPUState *cpu)
{
    PmuCoreInfo *info;

    if (!cpu->pmu || !cpu->pmu->core) {
        return NULL;
    }
    info = describe_model(cpu->pmu->core);
    if (tcg_enabled()) {
        info->counts = describe_counts(cpu);
    }
    return info;
}
