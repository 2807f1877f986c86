/*
 * Performance monitoring unit: the host's counts of a vCPU's events
 *
 * Under KVM the kernel counts for the guest, with perf events of its own.
 * In addition, QEMU opens some on the vCPU's thread and keeps two accounts: one
 * of events in the guest itself, and one that adds the events on its behalf, in
 * the host's kernel and in QEMU.  The literature calls these accountings
 * "CPU switch" and "domain switch".
 *
 * The kernel does not report that the host has taken the hardware away from a
 * guest's counter: the counter stands still while the guest expects it to
 * count.  A watch compares each counter's progress with the progress that it
 * should have made.  Whether the guest has executed anything in between is
 * taken from its account, not from the time for which its vCPU's thread has
 * run, because looking takes time, too.
 *
 * Threads: any that holds the big lock, unless a function says otherwise.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_HOST_H
#define HW_PMU_PMU_HOST_H

#include "hw/core/cpu.h"
#include "hw/pmu/pmu.h"

/**
 * enum PmuHostScope - the scope of an account
 * @PMU_HOST_GUEST: events in the guest alone
 * @PMU_HOST_ALL: events of the vCPU's thread: in guest, kernel and QEMU
 * @PMU_HOST_HOST: events in kernel and QEMU alone, if the host's PMU does not
 *                 count while the guest runs
 */
typedef enum PmuHostScope {
    PMU_HOST_GUEST,
    PMU_HOST_ALL,
    PMU_HOST_HOST,
    PMU_HOST__SCOPES
} PmuHostScope;

/**
 * struct PmuHostAccount - one account, since it was opened
 * @insns: instructions retired
 * @cycles: core cycles
 * @enabled_ns: for how long the vCPU's thread has run
 * @running_ns: for how much of that the host's PMU counted; if it is less,
 *              the numbers cover that part alone
 * @losses: how often the host was found to have no counters for it, although it
 *          has priority over the guest's; no number includes the vCPU's work
 *          then, for up to a second each time
 */
typedef struct PmuHostAccount {
    uint64_t insns;
    uint64_t cycles;
    uint64_t enabled_ns;
    uint64_t running_ns;
    uint64_t losses;
} PmuHostAccount;

/**
 * struct PmuHostReport - the accounts and lost counters of a vCPU
 * @scopes: as given to pmu_host_new()
 * @first: they have priority over the guest's counters (pmu_guest_host_first())
 * @accounts: by PmuHostScope, as far as @scopes has them
 * @lost: the guest's counters that do not have the hardware, as of the last
 *        look; bit n for counter n of the guest's Pmu
 * @losses: how often a counter was found to have lost the hardware
 * @last_loss_ms: the last time of that, in ms since 1970; 0 if never
 */
typedef struct PmuHostReport {
    unsigned scopes;
    bool first;
    PmuHostAccount accounts[PMU_HOST__SCOPES];
    uint64_t lost;
    uint64_t losses;
    int64_t last_loss_ms;
} PmuHostReport;

typedef struct PmuHost PmuHost;

struct perf_event_attr;

/**
 * PmuHostSyncFn - bring the guest's counters up to date with the kernel's
 * @cpu: the vCPU
 *
 * Called in its thread, with the big lock held.
 *
 * Returns: false if they could not be read; the vCPU is asked again later.
 */
typedef bool PmuHostSyncFn(CPUState *cpu);

/**
 * pmu_host_new - the accounts of a vCPU
 * @cpu: the vCPU, whose thread is known
 * @scopes: which, bit n for the scope n
 *
 * They are opened when the machine has all that it starts with, before the
 * vCPU runs, and at once for a vCPU that is plugged later: so everything that
 * the machine needs gets its file descriptors first.  The accounts take two
 * perf events, and as many descriptors, for each scope, and are traced once a
 * second of the host's time.  If the host refuses them, there is a warning, and
 * the vCPU runs without accounts.
 */
PmuHost *pmu_host_new(CPUState *cpu, unsigned scopes);

/**
 * pmu_host_scope_name - the name of a scope
 */
const char *pmu_host_scope_name(PmuHostScope scope);

/**
 * pmu_host_free - close the accounts
 * @host: the accounts or NULL
 *
 * With the big lock held, once the vCPU's thread has left its loop.
 */
void pmu_host_free(PmuHost *host);

/**
 * pmu_host_open_event - open a perf event on a thread of QEMU's
 * @attr: its attributes
 * @thread_id: the thread
 * @group: the event that leads its group, or -1
 *
 * A quarter of the file descriptors that QEMU may have is left for later use by
 * vCPUs and devices that are plugged, by monitors and by migrations.
 *
 * In any thread.
 *
 * Returns: its descriptor, or -1 with errno set: EMFILE also where it would be
 * of that quarter.
 */
int pmu_host_open_event(const struct perf_event_attr *attr, int thread_id,
                        int group);

/**
 * pmu_host_watch - look now and then whether the guest's counters move
 * @host: the accounts
 * @pmu: the guest's counters
 * @sync: brings @pmu up to date
 *
 * Once a second of the host's time the vCPU is asked to compare, if its guest
 * has executed something since the last time; a halted vCPU is left alone.
 * A counter of cycles or instructions in all modes that was running at both
 * looks must have moved.  The first loss, and then at most one a minute, is
 * reported to the user with a remedy; each is traced.  Each change emits the
 * monitor's event PMU_LOST.
 */
void pmu_host_watch(PmuHost *host, Pmu *pmu, PmuHostSyncFn *sync);

/**
 * pmu_host_remedy - the remedy for a failure of perf_event_open()
 * @error: its errno
 *
 * In any thread.
 *
 * Returns: a hint for the user: whole lines.
 */
const char *pmu_host_remedy(int error);

/**
 * pmu_host_report - fill in the report on a vCPU
 * @host: the accounts
 * @report: filled in
 *
 * Returns: false if the accounts are not open.
 */
bool pmu_host_report(PmuHost *host, PmuHostReport *report);

#endif /* HW_PMU_PMU_HOST_H */
