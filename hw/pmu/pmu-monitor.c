/*
 * Performance monitoring unit: query-pmu
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-pmu-monitor.h"
#include "hw/pmu/pmu-monitor.h"
#include "hw/pmu/pmu-tcg-census.h"

static PmuCpuInfo *describe_on_cpu(CPUState *cpu, Error **errp)
{
    const PmuGuestOps *ops = pmu_guest_ops(cpu);
    g_autoptr(PmuCpuInfo) info = g_new0(PmuCpuInfo, 1);

    info->cpu_index = cpu->cpu_index;
    info->qom_path = object_get_canonical_path(OBJECT(cpu));
    return !ops || ops->describe(cpu, info, errp) ? g_steal_pointer(&info)
                                                  : NULL;
}

/**
 * struct Question - a question to a vCPU, and its answer
 * @info: the answer, or NULL
 * @err: why it could not be read, or NULL
 */
typedef struct Question {
    PmuCpuInfo *info;
    Error *err;
} Question;

static void answer(CPUState *cpu, run_on_cpu_data data)
{
    Question *question = data.host_ptr;

    question->info = describe_on_cpu(cpu, &question->err);
}

PmuCpuInfo *pmu_describe_cpu(CPUState *cpu, Error **errp)
{
    Question question = {};

    pmu_guest_run(cpu, answer, &question, NULL);
    error_propagate(errp, question.err);
    return question.info;
}

GPtrArray *pmu_all_cpus(void)
{
    GPtrArray *cpus = g_ptr_array_new_with_free_func(object_unref);
    CPUState *cpu;

    CPU_FOREACH(cpu) {
        g_ptr_array_add(cpus, object_ref(OBJECT(cpu)));
    }
    return cpus;
}

PmuCpuInfoList *qmp_query_pmu(Error **errp)
{
    ERRP_GUARD();
    g_autoptr(GPtrArray) cpus = pmu_all_cpus();
    g_autoptr(PmuCpuInfoList) list = NULL;
    PmuCpuInfoList **tail = &list;

    for (guint i = 0; i < cpus->len; i++) {
        CPUState *cpu = g_ptr_array_index(cpus, i);
        PmuCpuInfo *info = pmu_describe_cpu(cpu, errp);

        if (*errp) {
            return NULL;
        }
        if (info) {
            QAPI_LIST_APPEND(tail, info);
        }
    }
    return g_steal_pointer(&list);
}

#ifdef CONFIG_TCG
void qmp_pmu_census_start(Error **errp)
{
    pmu_census_start(errp);
}

void qmp_pmu_census_save(const char *file, Error **errp)
{
    pmu_census_save(file, errp);
}
#endif
