/*
 * x86 virtual PMU: events that a model of the core counts
 *
 * The codes come from the vendors' event lists and manuals, and from Linux's
 * perf.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "core-events.h"
#include "intel-events.h"

#define CODE X86_VPMU_CODE

/* Architectural events, which CPUID then says are there */
static const X86VPmuEvent arch_events[] = {
    { CODE(0x2e, 0x4f), PMU_EVENT_LLC_REFS },
    { CODE(0x2e, 0x41), PMU_EVENT_LLC_MISSES },
    { CODE(0xc5, 0x00), PMU_EVENT_BRANCH_MISSES },
    { }
};

/* From Sandy Bridge on: wrong branches, L1D.REPLACEMENT, loads by level */
static const X86VPmuEvent snb_events[] = {
    { CODE(0xc5, 0x01), PMU_EVENT_COND_MISSES },
    { CODE(0xc5, 0x04), PMU_EVENT_BRANCH_MISSES },
    { CODE(0x51, 0x01), PMU_EVENT_L1D_MISSES },
    { CODE(0xd1, 0x01), PMU_EVENT_L1D_LOAD_HITS },
    { CODE(0xd1, 0x04), PMU_EVENT_LLC_LOAD_HITS },
    { CODE(0xd1, 0x08), PMU_EVENT_L1D_LOAD_MISSES },
    { CODE(0xd1, 0x20), PMU_EVENT_LLC_LOAD_MISSES },
    { }
};

/* ICACHE.MISSES up to Broadwell, ICACHE_64B.IFTAG_MISS from Skylake on */
static const X86VPmuEvent fetch_events[] = {
    { CODE(0x80, 0x02), PMU_EVENT_L1I_MISSES },
    { CODE(0x83, 0x02), PMU_EVENT_L1I_MISSES },
    { }
};

/*
 * Requests to the level after the first, which is the last one here: of demand
 * reads, of stores, and of fetches
 */
static const X86VPmuEvent request_events[] = {
    { CODE(0x24, 0xe1), PMU_EVENT_L1D_LOAD_MISSES },
    { CODE(0x24, 0xe2), PMU_EVENT_L1D_STORE_MISSES },
    { CODE(0x24, 0xe4), PMU_EVENT_L1I_MISSES },
    { }
};

/*
 * Cycles by their cause: IDQ_UOPS_NOT_DELIVERED.CORE; INT_MISC.RECOVERY_CYCLES,
 * from Skylake on with another unit mask; UOPS_ISSUED.ANY, of which none is in
 * vain; UOPS_RETIRED.RETIRE_SLOTS
 */
static const X86VPmuEvent topdown_events[] = {
    { CODE(0x9c, 0x01), PMU_EVENT_FRONTEND_CYCLES },
    { CODE(0x0d, 0x01), PMU_EVENT_SPECULATION_CYCLES },
    { CODE(0x0d, 0x03), PMU_EVENT_SPECULATION_CYCLES },
    { CODE(0x0e, 0x01), PMU_EVENT_RETIRING_CYCLES },
    { CODE(0xc2, 0x02), PMU_EVENT_RETIRING_CYCLES },
    { }
};

/* TOPDOWN.*: all slots, and those of the metrics; of the backend, of memory */
static const X86VPmuEvent slots_events[] = {
    { CODE(0xa4, 0x01), PMU_EVENT_CYCLES },
    { CODE(0xa4, 0x02), PMU_EVENT_BACKEND_CYCLES },
    { CODE(0xa4, 0x04), PMU_EVENT_SPECULATION_CYCLES },
    { CODE(0xa4, 0x08), PMU_EVENT_SPECULATION_CYCLES },
    { CODE(0xa4, 0x10), PMU_EVENT_BACKEND_CYCLES },
    { }
};

/* Those that are in slots, and that the model counts in cycles */
static const uint32_t in_slots[] = {
    CODE(0x9c, 0x01), CODE(0x0e, 0x01), CODE(0xc2, 0x02),
    CODE(0xa4, 0x01), CODE(0xa4, 0x02), CODE(0xa4, 0x04), CODE(0xa4, 0x08),
    CODE(0xa4, 0x10),
};

/*
 * AMD's: the model has no level between the first and the last, which stands
 * for both the second and the third.
 */
static const X86VPmuEvent k7_events[] = {
    { CODE(0x80, 0x00), PMU_EVENT_INSNS },
    { CODE(0x81, 0x00), PMU_EVENT_L1I_MISSES },
    { CODE(0xc3, 0x00), PMU_EVENT_BRANCH_MISSES },
    { CODE(0xc9, 0x00), PMU_EVENT_RETURN_MISSES },
    { CODE(0xca, 0x00), PMU_EVENT_INDIRECT_MISSES },
    { }
};

/*
 * Until Zen: also decoders that have nothing and stalls of dispatch; requests
 * of CPUs to memory, local or on any node, of which there is one
 */
static const X86VPmuEvent k8_events[] = {
    { CODE(0x41, 0x00), PMU_EVENT_L1D_MISSES },
    { CODE(0x41, 0x01), PMU_EVENT_L1D_MISSES },
    { CODE(0x7d, 0x03), PMU_EVENT_LLC_REFS },
    { CODE(0x7d, 0x07), PMU_EVENT_LLC_REFS },
    { CODE(0x7e, 0x03), PMU_EVENT_LLC_MISSES },
    { CODE(0x7e, 0x07), PMU_EVENT_LLC_MISSES },
    { CODE(0xd0, 0x00), PMU_EVENT_FRONTEND_CYCLES },
    { CODE(0xd1, 0x00), PMU_EVENT_BACKEND_CYCLES },
    { CODE(0xe9, 0xa8), PMU_EVENT_LLC_MISSES },
    { CODE(0xe9, 0xb8), PMU_EVENT_LLC_MISSES },
    { }
};

static const X86VPmuEvent zen_events[] = {
    { CODE(0x60, 0x10), PMU_EVENT_L1I_MISSES },
    { CODE(0x60, 0xc8), PMU_EVENT_L1D_MISSES },
    { CODE(0x60, 0xff), PMU_EVENT_LLC_REFS },
    { CODE(0x64, 0x09), PMU_EVENT_LLC_MISSES },
    { CODE(0x87, 0x01), PMU_EVENT_BACKEND_CYCLES },
    { CODE(0x87, 0x02), PMU_EVENT_FRONTEND_CYCLES },
    { CODE(0xa9, 0x00), PMU_EVENT_FRONTEND_CYCLES },
    { }
};

#define TABLES(...) { .events = X86_VPMU_EVENTS(__VA_ARGS__) }

static const X86VPmuModel intel = TABLES(arch_events, snb_events,
                                         fetch_events, request_events);
static const X86VPmuModel intel_with_slots =
    TABLES(arch_events, snb_events, fetch_events, request_events,
           topdown_events);
static const X86VPmuModel intel_with_metrics =
    TABLES(arch_events, snb_events, fetch_events, request_events,
           topdown_events, slots_events);
static const X86VPmuModel amd = TABLES(k7_events, k8_events);
static const X86VPmuModel zen = TABLES(k7_events, zen_events);

unsigned x86_vpmu_slots(const X86VPmu *v)
{
    return intel_model(v->cpu->env.cpuid_version)->slots;
}

static const X86VPmuModel *tables_of(const X86VPmu *v)
{
    const uint32_t signature = v->cpu->env.cpuid_version;

    if (v->ops != &intel_vpmu_ops) {
        return x86_vpmu_family(signature) < 0x17 ? &amd : &zen;
    }
    return intel_model(signature)->metrics ? &intel_with_metrics
           : x86_vpmu_slots(v) ? &intel_with_slots : &intel;
}

bool x86_vpmu_has_core(const X86VPmu *v)
{
    return v->cpu->vpmu_props.core_model;
}

unsigned x86_vpmu_core_each(const X86VPmu *v, uint32_t code)
{
    bool has_slots = x86_vpmu_has_core(v) && v->ops == &intel_vpmu_ops
                     && x86_vpmu_slots(v);

    for (unsigned i = 0; has_slots && i < ARRAY_SIZE(in_slots); i++) {
        if (in_slots[i] == code) {
            return x86_vpmu_slots(v);
        }
    }
    return 1;
}

PmuEvent x86_vpmu_core_event(const X86VPmu *v, uint32_t code)
{
    return x86_vpmu_has_core(v) ? x86_vpmu_event(tables_of(v), code)
                                : PMU_EVENT_NONE;
}
