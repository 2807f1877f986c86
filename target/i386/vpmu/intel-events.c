/*
 * x86 virtual PMU: codes of events on Intel CPUs
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "intel-events.h"
#include "lbr.h"
#include "offcore.h"
#include "pebs.h"

#define CODE X86_VPMU_CODE

/* The order is that of the bits of CPUID leaf 0xA, EBX. */
static const X86VPmuEvent arch_events[INTEL_NR_ARCH_EVENTS + 1] = {
    { CODE(0x3c, 0x00), PMU_EVENT_CYCLES },     /* core cycles */
    { CODE(0xc0, 0x00), PMU_EVENT_INSNS },      /* instructions retired */
    { CODE(0x3c, 0x01), PMU_EVENT_REF_CYCLES }, /* reference cycles */
    { CODE(0x2e, 0x4f), PMU_EVENT_NONE },       /* last level cache refs */
    { CODE(0x2e, 0x41), PMU_EVENT_NONE },       /* last level cache misses */
    { CODE(0xc4, 0x00), PMU_EVENT_BRANCHES },   /* branches retired */
    { CODE(0xc5, 0x00), PMU_EVENT_NONE },       /* mispredicted branches */
    { }
};

const PmuEvent intel_fixed_events[INTEL_FIXED_SLOTS + 1] = {
    PMU_EVENT_INSNS,
    PMU_EVENT_CYCLES,
    PMU_EVENT_REF_CYCLES,
    PMU_EVENT_CYCLES, /* of so many slots each */
};

/*
 * Model-specific codes, in groups that several microarchitectures share.
 *
 * The codes of counted events come from Intel's event lists, and from Linux's
 * perf.  Micro-operations that read or write memory are counted by the
 * instruction.  A miss of the TLB always walks the page tables, and the walk
 * always completes, if only with a page fault.
 */

#define PRECISE_INSNS { CODE(0xc0, 0x01), PMU_EVENT_INSNS }

/* BR_INST_RETIRED from Sandy Bridge to Comet Lake */
static const X86VPmuEvent snb_branches[] = {
    { CODE(0xc4, 0x01), PMU_EVENT_COND_BRANCHES },
    { CODE(0xc4, 0x02), PMU_EVENT_CALLS },
    { CODE(0xc4, 0x04), PMU_EVENT_BRANCHES },
    { CODE(0xc4, 0x08), PMU_EVENT_RETURNS },
    { CODE(0xc4, 0x10), PMU_EVENT_COND_NOT_TAKEN },
    { CODE(0xc4, 0x20), PMU_EVENT_NEAR_TAKEN },
    { CODE(0xc4, 0x40), PMU_EVENT_FAR_BRANCHES },
    PRECISE_INSNS,
    { }
};

/* BR_INST_RETIRED since Ice Lake */
static const X86VPmuEvent icl_branches[] = {
    { CODE(0xc4, 0x01), PMU_EVENT_COND_TAKEN },
    { CODE(0xc4, 0x02), PMU_EVENT_CALLS },
    { CODE(0xc4, 0x08), PMU_EVENT_RETURNS },
    { CODE(0xc4, 0x10), PMU_EVENT_COND_NOT_TAKEN },
    { CODE(0xc4, 0x11), PMU_EVENT_COND_BRANCHES },
    { CODE(0xc4, 0x20), PMU_EVENT_NEAR_TAKEN },
    { CODE(0xc4, 0x40), PMU_EVENT_FAR_BRANCHES },
    { CODE(0xc4, 0x80), PMU_EVENT_INDIRECT_BRANCHES },
    { }
};

/*
 * Linux's code of branch-loads from Golden Cove on.  Intel's lists no longer
 * name this unit mask, which up to Comet Lake stood for all branches.
 */
static const X86VPmuEvent glc_branches[] = {
    { CODE(0xc4, 0x04), PMU_EVENT_BRANCHES },
    { }
};

/* BR_INST_RETIRED from Silvermont to Crestmont */
static const X86VPmuEvent slm_branches[] = {
    { CODE(0xc4, 0x7e), PMU_EVENT_COND_BRANCHES },
    { CODE(0xc4, 0xbf), PMU_EVENT_FAR_BRANCHES },
    { CODE(0xc4, 0xeb), PMU_EVENT_INDIRECT_BRANCHES },
    { CODE(0xc4, 0xf7), PMU_EVENT_RETURNS },
    { CODE(0xc4, 0xf9), PMU_EVENT_CALLS },
    { CODE(0xc4, 0xfb), PMU_EVENT_INDIRECT_CALLS },
    { CODE(0xc4, 0xfd), PMU_EVENT_DIRECT_CALLS },
    { CODE(0xc4, 0xfe), PMU_EVENT_COND_TAKEN },
    { }
};

/*
 * BR_INST_RETIRED since Darkmont, and of Intel's cores for performance since
 * Lion Cove
 */
static const X86VPmuEvent dkt_branches[] = {
    { CODE(0xc4, 0x03), PMU_EVENT_COND_TAKEN },
    { CODE(0xc4, 0x04), PMU_EVENT_COND_NOT_TAKEN },
    { CODE(0xc4, 0x07), PMU_EVENT_COND_BRANCHES },
    { CODE(0xc4, 0x08), PMU_EVENT_RETURNS },
    { CODE(0xc4, 0x10), PMU_EVENT_INDIRECT_CALLS },
    { CODE(0xc4, 0x20), PMU_EVENT_DIRECT_CALLS },
    { CODE(0xc4, 0x30), PMU_EVENT_CALLS },
    { CODE(0xc4, 0x50), PMU_EVENT_INDIRECT_BRANCHES },
    { CODE(0xc4, 0xfb), PMU_EVENT_NEAR_TAKEN },
    { }
};

/* The same: far branches, which Darkmont does not count */
static const X86VPmuEvent lnc_branches[] = {
    { X86_VPMU_CODE2(0xc4, 0x00, 0x01), PMU_EVENT_FAR_BRANCHES },
    { }
};

/* MEM_UOPS_RETIRED or MEM_INST_RETIRED, ALL_LOADS and ALL_STORES */
static const X86VPmuEvent snb_accesses[] = {
    { CODE(0xd0, 0x81), PMU_EVENT_LOADS },
    { CODE(0xd0, 0x82), PMU_EVENT_STORES },
    { }
};

/* The same, with the unit masks that Linux uses on Sandy and Ivy Bridge */
static const X86VPmuEvent snb_accesses_any[] = {
    { CODE(0xd0, 0xf1), PMU_EVENT_LOADS },
    { CODE(0xd0, 0xf2), PMU_EVENT_STORES },
    { }
};

/* DTLB_LOAD_MISSES, DTLB_STORE_MISSES, ITLB_MISSES: MISS_CAUSES_A_WALK */
static const X86VPmuEvent snb_misses[] = {
    { CODE(0x08, 0x01), PMU_EVENT_DTLB_LOAD_MISSES },
    { CODE(0x49, 0x01), PMU_EVENT_DTLB_STORE_MISSES },
    { CODE(0x85, 0x01), PMU_EVENT_ITLB_MISSES },
    { }
};

/* The same, WALK_COMPLETED, on Sandy Bridge */
static const X86VPmuEvent snb_walks[] = {
    { CODE(0x08, 0x02), PMU_EVENT_DTLB_LOAD_MISSES },
    { CODE(0x49, 0x02), PMU_EVENT_DTLB_STORE_MISSES },
    { CODE(0x85, 0x02), PMU_EVENT_ITLB_MISSES },
    { }
};

/* Both, on Ivy Bridge */
static const X86VPmuEvent ivb_walks[] = {
    { CODE(0x08, 0x81), PMU_EVENT_DTLB_LOAD_MISSES },
    { CODE(0x08, 0x82), PMU_EVENT_DTLB_LOAD_MISSES },
    { CODE(0x49, 0x01), PMU_EVENT_DTLB_STORE_MISSES },
    { CODE(0x49, 0x02), PMU_EVENT_DTLB_STORE_MISSES },
    { CODE(0x85, 0x01), PMU_EVENT_ITLB_MISSES },
    { CODE(0x85, 0x02), PMU_EVENT_ITLB_MISSES },
    { }
};

/* WALK_COMPLETED, any page size, Haswell to Ice Lake and since Tremont */
static const X86VPmuEvent hsw_walks[] = {
    { CODE(0x08, 0x0e), PMU_EVENT_DTLB_LOAD_MISSES },
    { CODE(0x49, 0x0e), PMU_EVENT_DTLB_STORE_MISSES },
    { CODE(0x85, 0x0e), PMU_EVENT_ITLB_MISSES },
    { }
};

/* WALK_COMPLETED since Golden Cove */
static const X86VPmuEvent glc_walks[] = {
    { CODE(0x11, 0x0e), PMU_EVENT_ITLB_MISSES },
    { CODE(0x12, 0x0e), PMU_EVENT_DTLB_LOAD_MISSES },
    { CODE(0x13, 0x0e), PMU_EVENT_DTLB_STORE_MISSES },
    { }
};

/* HW_INTERRUPTS.RECEIVED */
static const X86VPmuEvent interrupts[] = {
    { CODE(0xcb, 0x01), PMU_EVENT_INTERRUPTS },
    { }
};

/* ITLB.MISS of Goldmont and after */
static const X86VPmuEvent glm_itlb[] = {
    { CODE(0x81, 0x04), PMU_EVENT_ITLB_MISSES },
    { }
};

static const X86VPmuEvent glm_taken[] = {
    { CODE(0xc4, 0x80), PMU_EVENT_TAKEN_BRANCHES },
    { }
};

static const X86VPmuEvent knl_accesses[] = {
    { CODE(0x04, 0x08), PMU_EVENT_DTLB_LOAD_MISSES },
    { CODE(0x04, 0x40), PMU_EVENT_LOADS },
    { CODE(0x04, 0x80), PMU_EVENT_STORES },
    { }
};

static const X86VPmuEvent nhm_events[] = {
    PRECISE_INSNS,
    { CODE(0xc4, 0x01), PMU_EVENT_COND_BRANCHES },
    { CODE(0xc4, 0x02), PMU_EVENT_CALLS },
    { CODE(0xc4, 0x04), PMU_EVENT_BRANCHES },
    { CODE(0x0b, 0x01), PMU_EVENT_LOADS },
    { CODE(0x0b, 0x02), PMU_EVENT_STORES },
    { CODE(0x08, 0x01), PMU_EVENT_DTLB_LOAD_MISSES },
    { CODE(0x08, 0x02), PMU_EVENT_DTLB_LOAD_MISSES },
    { CODE(0x0c, 0x01), PMU_EVENT_DTLB_STORE_MISSES },
    { CODE(0x85, 0x01), PMU_EVENT_ITLB_MISSES },
    { CODE(0x85, 0x02), PMU_EVENT_ITLB_MISSES },
    { CODE(0xc8, 0x20), PMU_EVENT_ITLB_MISSES },
    { }
};

/* L1D_CACHE_LD and L1D_CACHE_ST of Core and Nehalem, in any state */
static const X86VPmuEvent core_accesses[] = {
    { CODE(0x40, 0x0f), PMU_EVENT_LOADS },
    { CODE(0x41, 0x0f), PMU_EVENT_STORES },
    { }
};

static const X86VPmuEvent core_misses[] = {
    { CODE(0x08, 0x02), PMU_EVENT_DTLB_LOAD_MISSES },
    { CODE(0x08, 0x08), PMU_EVENT_DTLB_STORE_MISSES },
    { CODE(0x82, 0x12), PMU_EVENT_ITLB_MISSES },
    { }
};

static const X86VPmuEvent bonnell_events[] = {
    { CODE(0x08, 0x05), PMU_EVENT_DTLB_LOAD_MISSES },
    { CODE(0x08, 0x06), PMU_EVENT_DTLB_STORE_MISSES },
    { CODE(0x40, 0x21), PMU_EVENT_LOADS },
    { CODE(0x40, 0x22), PMU_EVENT_STORES },
    { CODE(0x82, 0x02), PMU_EVENT_ITLB_MISSES },
    { CODE(0x88, 0x01), PMU_EVENT_COND_BRANCHES },
    { CODE(0x88, 0x08), PMU_EVENT_RETURNS },
    { CODE(0x88, 0x10), PMU_EVENT_DIRECT_CALLS },
    { CODE(0x88, 0x20), PMU_EVENT_INDIRECT_CALLS },
    { CODE(0x88, 0x41), PMU_EVENT_COND_TAKEN },
    { CODE(0xc4, 0x0c), PMU_EVENT_TAKEN_BRANCHES },
    { CODE(0xc4, 0x0f), PMU_EVENT_BRANCHES },
    { CODE(0xc8, 0x00), PMU_EVENT_INTERRUPTS },
    { }
};

#define NUMBERS(...) .numbers = (const uint8_t[]) { __VA_ARGS__, 0 }
#define EVENTS(...) .vpmu.events = X86_VPMU_EVENTS(arch_events, __VA_ARGS__)

/* What Redwood Cove, which CPUID leaf 0x23 describes as well, shares with it */
#define GOLDEN_COVE                                              \
    EVENTS(icl_branches, glc_branches, snb_accesses, glc_walks), \
    .slots = 6,                                                  \
    .metrics = true,                                             \
    .two_levels = true,                                          \
    .offcore = &offcore_of_golden_cove,                          \
    .gp_counters = 8,                                            \
    .lbr = &lbr_of_sapphire_rapids,                              \
    .pebs = &pebs_of_golden_cove

static const IntelModel models[] = {
    {
        .vpmu.name = "Core",
        NUMBERS(0x0f, 0x17),
        EVENTS(core_accesses, core_misses),
        .gp_counters = 4,
        .lbr = &lbr_of_core,
    }, {
        .vpmu.name = "Bonnell",
        NUMBERS(0x1c),
        EVENTS(bonnell_events),
        .gp_counters = 4,
        .lbr = &lbr_of_bonnell,
    }, {
        .vpmu.name = "Nehalem",
        NUMBERS(0x1a, 0x2c, 0x2e),
        EVENTS(nhm_events, core_accesses),
        .offcore = &offcore_of_nehalem,
        .gp_counters = 4,
        .lbr = &lbr_of_nehalem,
        .pebs = &pebs_of_nehalem,
    }, {
        .vpmu.name = "Sandy Bridge",
        NUMBERS(0x2a),
        EVENTS(snb_branches, snb_accesses, snb_accesses_any, snb_misses,
               snb_walks),
        .slots = 4,
        .offcore = &offcore_of_sandy_bridge,
        .gp_counters = 4,
        .lbr = &lbr_of_nehalem,
        .pebs = &pebs_of_sandy_bridge,
    }, {
        .vpmu.name = "Ivy Bridge",
        NUMBERS(0x3a),
        EVENTS(snb_branches, snb_accesses, snb_accesses_any, ivb_walks),
        .slots = 4,
        .offcore = &offcore_of_sandy_bridge,
        .gp_counters = 4,
        .lbr = &lbr_of_nehalem,
        .pebs = &pebs_of_sandy_bridge,
    }, {
        .vpmu.name = "Haswell",
        NUMBERS(0x3c, 0x3d),
        EVENTS(snb_branches, snb_accesses, snb_misses, hsw_walks),
        .slots = 4,
        .offcore = &offcore_of_haswell,
        .gp_counters = 4,
        .lbr = &lbr_of_haswell,
        .pebs = &pebs_of_haswell,
    }, {
        .vpmu.name = "Skylake",
        NUMBERS(0x55, 0x5e, 0xa5),
        EVENTS(snb_branches, snb_accesses, snb_misses, hsw_walks, interrupts),
        .slots = 4,
        .offcore = &offcore_of_skylake,
        .gp_counters = 4,
        .lbr = &lbr_of_skylake,
        .pebs = &pebs_of_skylake,
    }, {
        .vpmu.name = "Ice Lake",
        NUMBERS(0x6a, 0x7d),
        EVENTS(icl_branches, snb_accesses, hsw_walks),
        .slots = 5,
        .metrics = true,
        .offcore = &offcore_of_ice_lake,
        .gp_counters = 8,
        .lbr = &lbr_of_skylake,
        .pebs = &pebs_of_ice_lake,
    }, {
        .vpmu.name = "Golden Cove",
        NUMBERS(0x8f, 0xcf),
        GOLDEN_COVE,
    }, {
        .vpmu.name = "Redwood Cove",
        NUMBERS(0xad),
        GOLDEN_COVE,
        .extended = true,
    }, {
        /*
         * There is no list of its events yet: these are in the lists of both
         * Cougar Cove and Coyote Cove, its relatives.
         */
        .vpmu.name = "Panther Cove",
        .family = 19,
        NUMBERS(0x01),
        EVENTS(dkt_branches, lnc_branches, snb_accesses, glc_walks),
        .version = 6,
        .extended = true,
        .gp_counters = 8,
        .lbr = &lbr_of_sapphire_rapids,
    }, {
        .vpmu.name = "Knights",
        NUMBERS(0x57, 0x85),
        EVENTS(slm_branches, knl_accesses),
        .gp_counters = 4,
        .lbr = &lbr_of_knights,
    }, {
        .vpmu.name = "Goldmont",
        NUMBERS(0x5f),
        EVENTS(slm_branches, glm_taken, snb_accesses, glm_itlb, interrupts),
        .gp_counters = 4,
        .lbr = &lbr_of_goldmont,
    }, {
        /*
         * QEMU's Icelake-Server has this number, too, up to its version 3;
         * therefore also the codes and the counters of that model.
         */
        .vpmu.name = "Tremont",
        NUMBERS(0x86),
        EVENTS(slm_branches, icl_branches, snb_accesses, hsw_walks, glm_itlb,
               interrupts),
        .gp_counters = 8,
        .lbr = &lbr_of_tremont,
        .pebs = &pebs_of_ice_lake,
    }, {
        .vpmu.name = "Crestmont",
        NUMBERS(0xaf),
        EVENTS(slm_branches, snb_accesses, hsw_walks),
        .extended = true,
        .told_slots = 6,
        .gp_counters = 8,
        .lbr = &lbr_of_sapphire_rapids,
    }, {
        .vpmu.name = "Darkmont",
        NUMBERS(0xdd),
        EVENTS(dkt_branches, snb_accesses, snb_misses, hsw_walks),
        .version = 6,
        .extended = true,
        .told_slots = 8,
        .gp_counters = 8,
        .lbr = &lbr_of_sapphire_rapids,
    }, {
        .vpmu.name = "any Intel CPU",
        .vpmu.events = X86_VPMU_EVENTS(arch_events),
        .numbers = (const uint8_t[]) { 0 },
        .gp_counters = 4,
    },
};

/* The last model is for all other CPUs. */
static const IntelModel *generic = &models[ARRAY_SIZE(models) - 1];

static bool is_of_model(const IntelModel *model, uint32_t signature)
{
    unsigned number = x86_vpmu_model_number(signature);
    bool found = false;

    for (const uint8_t *n = model->numbers; *n; n++) {
        found |= *n == number;
    }
    return found && x86_vpmu_family(signature) == (model->family ?: 6);
}

const IntelModel *intel_model(uint32_t signature)
{
    for (int i = 0; i < ARRAY_SIZE(models); i++) {
        if (is_of_model(&models[i], signature)) {
            return &models[i];
        }
    }
    return generic;
}

uint32_t intel_uncounted_events(void)
{
    uint32_t bits = 0;

    for (int i = 0; i < INTEL_NR_ARCH_EVENTS; i++) {
        bits |= (arch_events[i].event == PMU_EVENT_NONE) << i;
    }
    return bits;
}
