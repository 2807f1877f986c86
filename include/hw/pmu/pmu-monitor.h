/*
 * Performance monitoring unit: what the monitor shows
 *
 * query-pmu asks each CPU's architecture (PmuGuestOps.describe), which builds
 * its answer of what is common to all, below.
 *
 * Threads: that of the vCPU, or any that holds the big lock while the vCPU does
 * not run, unless a function says otherwise.
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
 * pmu_all_cpus - the vCPUs, to be asked one after the other
 *
 * While one is asked the big lock is given up, and others can come and go:
 * those that are gone have @unplug set.  In any thread that holds the big lock.
 *
 * Returns: an array of CPUState, with a reference to each.
 */
GPtrArray *pmu_all_cpus(void);

/**
 * pmu_describe_cpu - ask a vCPU
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
 * @event: what its registers select, whether it may be counted or not
 * @ops: those of its architecture
 *
 * Its register, its code, whether it runs and what stops it are for the face
 * to say.
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
 * pmu_emit_lost - tell that the host has taken counters away, or given back
 * @cpu: the vCPU
 * @counters: those that are lost now; bit n for counter n
 * @losses: how often counters have been lost
 */
void pmu_emit_lost(const CPUState *cpu, uint64_t counters, uint64_t losses);

/**
 * pmu_stopped_by - name something that keeps a counter from counting
 * @info: the counter
 * @applies: whether it does
 * @what: its name
 *
 * The names will be in the order of the calls.
 */
void pmu_stopped_by(PmuCounterInfo *info, bool applies, const char *what);

/**
 * pmu_describe_records - records of branches
 * @recorder: who has them
 * @ops: those of the architecture
 */
PmuRecordsInfo *pmu_describe_records(const PmuRecorder *recorder,
                                     const PmuGuestOps *ops);

/**
 * pmu_describe_filter - the user's filter
 * @filter: the filter or NULL
 *
 * Returns: NULL if there is none.
 */
PmuFilterInfo *pmu_describe_filter(const PmuFilter *filter);

/**
 * struct PmuHostObserver - who counts by what the host tells of a vCPU's thread
 * @cpu: the vCPU
 * @describe: says what it counts; NULL if it does not count.  Called as for
 *            pmu_describe_observers().
 * @next: those that were added before
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
 * pmu_host_observer_remove - show it no more
 * @observer: the observer, which need not have been added
 *
 * In any thread that holds the big lock.
 */
void pmu_host_observer_remove(PmuHostObserver *observer);

/**
 * pmu_mode_list - modes, as the monitor shows them
 * @modes: the modes
 * @ops: those of the architecture
 */
PmuModeList *pmu_mode_list(PmuModes modes, const PmuGuestOps *ops);

/**
 * pmu_describe_observers - who looks at a vCPU
 * @cpu: the vCPU
 */
PmuObserverInfoList *pmu_describe_observers(CPUState *cpu);

/**
 * pmu_describe_host - what the host says about a vCPU
 * @cpu: the vCPU
 * @report: what it says
 */
PmuHostInfo *pmu_describe_host(const CPUState *cpu,
                               const PmuHostReport *report);

/**
 * pmu_stats_lost_samples - a profile lacks samples of a vCPU
 * @cpu_index: the vCPU's number; the vCPU need not be there any more
 * @count: so many more
 *
 * With the big lock held.
 */
void pmu_stats_lost_samples(unsigned cpu_index, uint64_t count);

#endif /* HW_PMU_PMU_MONITOR_H */
