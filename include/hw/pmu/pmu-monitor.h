/*
 * Performance monitoring unit: the descriptions that the monitor shows
 *
 * query-pmu asks each CPU's architecture (PmuGuestOps.describe), which builds
 * its answer from the parts below, which are common to all.
 *
 * Threads: the vCPU's, or any that holds the big lock while the vCPU does not
 * run, unless a function says otherwise.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_MONITOR_H
#define HW_PMU_PMU_MONITOR_H

#include "qemu/queue.h"
#include "qapi/qapi-types-pmu-monitor.h"
#include "hw/pmu/pmu-filter.h"
#include "hw/pmu/pmu-guest.h"
#include "hw/pmu/pmu-host.h"
#include "hw/pmu/pmu-recorder.h"
#include "hw/pmu/pmu.h"

/**
 * pmu_all_cpus - a list of the vCPUs, to be asked one after the other
 *
 * While one is asked the big lock is released, and others can come and go: a
 * vCPU that is gone has @unplug set.  In any thread that holds the big lock.
 *
 * Returns: an array of CPUState, with a reference to each.
 */
GPtrArray *pmu_all_cpus(void);

/**
 * pmu_describe_cpu - describe the PMU of a vCPU
 * @cpu: the vCPU, which may run, with a reference to it
 * @errp: why it cannot be read
 *
 * In any thread that holds the big lock, which is given up meanwhile.
 *
 * Returns: NULL with @errp set if it cannot be read; NULL alone if it is being
 * unplugged.
 */
PmuCpuInfo *pmu_describe_cpu(CPUState *cpu, Error **errp);

/**
 * pmu_describe_counter - a counter, as far as the model knows it
 * @pmu: its Pmu
 * @counter: which counter
 * @event: the event that its registers select, even if it may not be counted
 * @ops: the operations of its architecture
 *
 * The face adds its register, its code, whether it runs, and what stops it.
 */
PmuCounterInfo *pmu_describe_counter(const Pmu *pmu, unsigned counter,
                                     PmuEvent event, const PmuGuestOps *ops);

/**
 * pmu_counter_names - the registers that are counters of a vCPU
 * @cpu: the vCPU
 * @counters: bit n for counter n
 */
strList *pmu_counter_names(const CPUState *cpu, uint64_t counters);

/**
 * pmu_emit_lost - report that the host has taken counters away, or given back
 * @cpu: the vCPU
 * @counters: the counters that are lost now; bit n for counter n
 * @losses: how often counters have been lost
 */
void pmu_emit_lost(const CPUState *cpu, uint64_t counters, uint64_t losses);

/**
 * pmu_stopped_by - add a reason for which a counter does not count
 * @info: the counter
 * @applies: whether the reason applies; if not, nothing is added
 * @what: the name of the reason
 *
 * The names will be in the order of the calls.
 */
void pmu_stopped_by(PmuCounterInfo *info, bool applies, const char *what);

/**
 * pmu_describe_records - describe a guest's branch records
 * @recorder: the recorder that has them
 * @ops: the operations of the architecture
 */
PmuRecordsInfo *pmu_describe_records(const PmuRecorder *recorder,
                                     const PmuGuestOps *ops);

/**
 * pmu_describe_filter - describe the user's filter
 * @filter: the filter or NULL
 *
 * Returns: NULL without a filter.
 */
PmuFilterInfo *pmu_describe_filter(const PmuFilter *filter);

/**
 * struct PmuHostObserver - an observer that uses the host's counts for a vCPU
 * @cpu: the vCPU
 * @describe: describes the observer; NULL if it does not count.  Called as for
 *            pmu_describe_observers().
 * @next: the observers that were added before
 */
typedef struct PmuHostObserver {
    const CPUState *cpu;
    PmuObserverInfo *(*describe)(const struct PmuHostObserver *observer);
    QLIST_ENTRY(PmuHostObserver) next;
} PmuHostObserver;

/**
 * pmu_host_observer_add - let the monitor show an observer
 * @observer: the observer; stays where it is until it is removed
 *
 * In any thread that holds the big lock.  Nothing happens if it was added.
 */
void pmu_host_observer_add(PmuHostObserver *observer);

/**
 * pmu_host_observer_remove - hide an observer from the monitor
 * @observer: the observer, which need not have been added
 *
 * In any thread that holds the big lock.
 */
void pmu_host_observer_remove(PmuHostObserver *observer);

/**
 * pmu_mode_list - modes, as the monitor shows them
 * @modes: the modes
 * @ops: the operations of the architecture
 */
PmuModeList *pmu_mode_list(PmuModes modes, const PmuGuestOps *ops);

/**
 * pmu_describe_observers - describe the observers of a vCPU
 * @cpu: the vCPU
 */
PmuObserverInfoList *pmu_describe_observers(CPUState *cpu);

/**
 * pmu_describe_core - describe the model of a vCPU's core
 * @cpu: the vCPU
 *
 * Returns: NULL if it has none.
 */
PmuCoreInfo *pmu_describe_core(CPUState *cpu);

/**
 * pmu_describe_host - describe the host's counts of a vCPU's events
 * @cpu: the vCPU
 * @report: the counts
 */
PmuHostInfo *pmu_describe_host(const CPUState *cpu,
                               const PmuHostReport *report);

/**
 * pmu_stats_lost_samples - count samples of a vCPU that a profile has lost
 * @cpu_index: the vCPU's number; the vCPU need not exist any more
 * @count: how many more
 *
 * With the big lock held.
 */
void pmu_stats_lost_samples(unsigned cpu_index, uint64_t count);

#endif /* HW_PMU_PMU_MONITOR_H */
