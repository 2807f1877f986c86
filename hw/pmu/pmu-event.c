/*
 * Performance monitoring unit: the names of events for users
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/pmu.h"

/* Events that perf has a name for have the same name here. */
static const char *const event_names[PMU_EVENT__MAX] = {
    [PMU_EVENT_CYCLES]            = "cycles",
    [PMU_EVENT_REF_CYCLES]        = "ref-cycles",
    [PMU_EVENT_INSNS]             = "instructions",
    [PMU_EVENT_BRANCHES]          = "branches",
    [PMU_EVENT_COND_BRANCHES]     = "cond-branches",
    [PMU_EVENT_COND_TAKEN]        = "cond-taken",
    [PMU_EVENT_COND_NOT_TAKEN]    = "cond-not-taken",
    [PMU_EVENT_TAKEN_BRANCHES]    = "taken-branches",
    [PMU_EVENT_NEAR_TAKEN]        = "near-taken",
    [PMU_EVENT_CALLS]             = "calls",
    [PMU_EVENT_RETURNS]           = "returns",
    [PMU_EVENT_INDIRECT_BRANCHES] = "indirect-branches",
    [PMU_EVENT_DIRECT_CALLS]      = "direct-calls",
    [PMU_EVENT_INDIRECT_CALLS]    = "indirect-calls",
    [PMU_EVENT_FAR_BRANCHES]      = "far-branches",
    [PMU_EVENT_LOADS]             = "loads",
    [PMU_EVENT_STORES]            = "stores",
    [PMU_EVENT_ACCESSES]          = "accesses",
    [PMU_EVENT_INTERRUPTS]        = "interrupts",
    [PMU_EVENT_EXCEPTIONS]        = "exceptions",
    [PMU_EVENT_DTLB_LOAD_MISSES]  = "dtlb-load-misses",
    [PMU_EVENT_DTLB_STORE_MISSES] = "dtlb-store-misses",
    [PMU_EVENT_DTLB_MISSES]       = "dtlb-misses",
    [PMU_EVENT_ITLB_MISSES]       = "itlb-misses",
    [PMU_EVENT_FAILED_STORES]     = "failed-stores",
    [PMU_EVENT_L1D_MISSES]        = "l1d-misses",
    [PMU_EVENT_L1D_LOAD_MISSES]   = "l1d-load-misses",
    [PMU_EVENT_L1D_STORE_MISSES]  = "l1d-store-misses",
    [PMU_EVENT_L1D_LOAD_HITS]     = "l1d-load-hits",
    [PMU_EVENT_L1I_MISSES]        = "l1i-misses",
    [PMU_EVENT_LLC_REFS]          = "cache-references",
    [PMU_EVENT_LLC_MISSES]        = "cache-misses",
    [PMU_EVENT_LLC_LOAD_HITS]     = "llc-load-hits",
    [PMU_EVENT_LLC_LOAD_MISSES]   = "llc-load-misses",
    [PMU_EVENT_LLC_STORE_MISSES]  = "llc-store-misses",
    [PMU_EVENT_LLC_FETCH_MISSES]  = "llc-fetch-misses",
    [PMU_EVENT_BRANCH_MISSES]     = "branch-misses",
    [PMU_EVENT_COND_MISSES]       = "cond-misses",
    [PMU_EVENT_INDIRECT_MISSES]   = "indirect-misses",
    [PMU_EVENT_RETURN_MISSES]     = "return-misses",
    [PMU_EVENT_SPECULATION_CYCLES] = "bad-speculation",
    [PMU_EVENT_FRONTEND_CYCLES]   = "stalled-cycles-frontend",
    [PMU_EVENT_BACKEND_CYCLES]    = "stalled-cycles-backend",
    [PMU_EVENT_RETIRING_CYCLES]   = "retiring-cycles",
};

const char *pmu_event_name(PmuEvent event)
{
    return event_names[event];
}
