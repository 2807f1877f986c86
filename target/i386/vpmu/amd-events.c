/*
 * x86 virtual PMU: AMD's CPU models and codes of events
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "amd-events.h"
#include "lbr.h"

#define CODE X86_VPMU_CODE

/*
 * Codes in groups that several families share.
 *
 * The codes of counted events come from AMD's guides and event lists, and from
 * Linux's perf and other profilers.  A miss of the TLB always walks the page
 * tables, whatever level of TLB an event is about.
 */

/* Since the Athlon */
static const X86VPmuEvent k7_events[] = {
    { CODE(0x40, 0x00), PMU_EVENT_ACCESSES },
    { CODE(0x76, 0x00), PMU_EVENT_CYCLES },
    { CODE(0xc0, 0x00), PMU_EVENT_INSNS },
    { CODE(0xc2, 0x00), PMU_EVENT_BRANCHES },
    { CODE(0xc4, 0x00), PMU_EVENT_TAKEN_BRANCHES },
    { CODE(0xc6, 0x00), PMU_EVENT_FAR_BRANCHES },
    { }
};

/* Until Zen */
static const X86VPmuEvent k7_interrupts[] = {
    { CODE(0xcf, 0x00), PMU_EVENT_INTERRUPTS },
    { }
};

static const X86VPmuEvent k7_misses[] = {
    { CODE(0x46, 0x00), PMU_EVENT_DTLB_MISSES },
    { CODE(0x85, 0x00), PMU_EVENT_ITLB_MISSES },
    { }
};

static const X86VPmuEvent k8_returns[] = {
    { CODE(0xc8, 0x00), PMU_EVENT_RETURNS },
    { }
};

/*
 * With a unit mask of page sizes, of which Linux asks for all; also before
 * family 10h, where these events have no unit mask
 */
static const X86VPmuEvent k10_misses[] = {
    { CODE(0x46, 0x07), PMU_EVENT_DTLB_MISSES },
    { CODE(0x85, 0x03), PMU_EVENT_ITLB_MISSES },
    { }
};

/*
 * LsDispatch is about operations: one that reads and then writes the same
 * place has a bit of its own in the unit mask, 4.  Here, the instruction counts
 * as a load and as a store, and that bit adds nothing to others.
 */
static const X86VPmuEvent zen_events[] = {
    { CODE(0x29, 0x01), PMU_EVENT_LOADS },
    { CODE(0x29, 0x02), PMU_EVENT_STORES },
    { CODE(0x29, 0x03), PMU_EVENT_ACCESSES },
    { CODE(0x29, 0x05), PMU_EVENT_LOADS },
    { CODE(0x29, 0x06), PMU_EVENT_STORES },
    { CODE(0x29, 0x07), PMU_EVENT_ACCESSES },
    { CODE(0x45, 0xf0), PMU_EVENT_DTLB_MISSES },
    { CODE(0x45, 0xff), PMU_EVENT_DTLB_MISSES },
    { CODE(0xd1, 0x00), PMU_EVENT_COND_BRANCHES },
    { }
};

static const X86VPmuEvent zen1_misses[] = {
    { CODE(0x85, 0x00), PMU_EVENT_ITLB_MISSES },
    { CODE(0x85, 0x07), PMU_EVENT_ITLB_MISSES },
    { CODE(0x85, 0xff), PMU_EVENT_ITLB_MISSES },
    { }
};

static const X86VPmuEvent zen2_events[] = {
    { CODE(0x2c, 0x00), PMU_EVENT_INTERRUPTS },
    { CODE(0x85, 0x07), PMU_EVENT_ITLB_MISSES },
    { CODE(0x85, 0xff), PMU_EVENT_ITLB_MISSES },
    { }
};

static const X86VPmuEvent zen3_events[] = {
    { CODE(0x85, 0x0f), PMU_EVENT_ITLB_MISSES },
    { CODE(0xcc, 0x00), PMU_EVENT_INDIRECT_BRANCHES },
    { }
};

/* Cycles at the frequency of P-state 0 */
static const X86VPmuEvent zen4_events[] = {
    { CODE(0x120, 0x01), PMU_EVENT_REF_CYCLES },
    { }
};

#define FAMILY(family)          MODELS(family, 0x00, 0xff)
#define MODELS(family, from, to) \
    { (family) << 8 | (from), (family) << 8 | (to) }
#define RANGES(...) .ranges = (const AmdRange[]) { __VA_ARGS__, { } }
#define EVENTS(...) .vpmu.events = X86_VPMU_EVENTS(k7_events, __VA_ARGS__)

/* The first model whose ranges contain a CPU is used. */
static const AmdModel models[] = {
    {
        .vpmu.name = "K8",
        RANGES(FAMILY(0x0f)),
        EVENTS(k8_returns, k7_misses, k10_misses, k7_interrupts),
    }, {
        .vpmu.name = "Family 15h",
        RANGES(FAMILY(0x15)),
        EVENTS(k8_returns, k10_misses, k7_interrupts),
        .select_ext = true,
        .core_ext = true,
    }, {
        .vpmu.name = "Family 10h",
        RANGES({ 0x10 << 8, 0x16 << 8 | 0xff }),
        EVENTS(k8_returns, k10_misses, k7_interrupts),
        .select_ext = true,
    }, {
        /* Family 18h is Hygon's. */
        .vpmu.name = "Zen",
        RANGES(MODELS(0x17, 0x00, 0x2f), FAMILY(0x18)),
        EVENTS(k8_returns, zen_events, zen1_misses),
        .select_ext = true,
        .core_ext = true,
    }, {
        .vpmu.name = "Zen 2",
        RANGES(MODELS(0x17, 0x30, 0xff)),
        EVENTS(k8_returns, zen_events, zen2_events),
        .select_ext = true,
        .core_ext = true,
    }, {
        .vpmu.name = "Zen 4",
        RANGES(MODELS(0x19, 0x10, 0x1f), MODELS(0x19, 0x60, 0x7f),
               MODELS(0x19, 0xa0, 0xaf), { 0x1a << 8, UINT16_MAX }),
        EVENTS(k8_returns, zen_events, zen2_events, zen3_events, zen4_events),
        .select_ext = true,
        .core_ext = true,
        .global = true,
        .lbr = &lbr_of_zen4,
    }, {
        .vpmu.name = "Zen 3",
        RANGES(FAMILY(0x19)),
        EVENTS(k8_returns, zen_events, zen2_events, zen3_events),
        .select_ext = true,
        .core_ext = true,
    }, {
        .vpmu.name = "K7",
        RANGES({ 0, UINT16_MAX }),
        EVENTS(k7_misses, k10_misses, k7_interrupts),
    },
};

static bool in_ranges(const AmdRange *range, unsigned number)
{
    for (; range->last; range++) {
        if (range->first <= number && number <= range->last) {
            return true;
        }
    }
    return false;
}

/* The last model is for all other CPUs. */
const AmdModel *amd_model(uint32_t signature)
{
    unsigned number = MIN(x86_vpmu_family(signature), 0xff) << 8
                      | x86_vpmu_model_number(signature);
    const AmdModel *model = models;

    while (!in_ranges(model->ranges, number)) {
        model++;
    }
    return model;
}
