/*
 * x86 virtual PMU: Intel's events of requests that leave the first level
 *
 * Their codes select a register, MSR_OFFCORE_RSP_x, whose lower bits say which
 * requests count, and the upper ones which memory has to answer.  A model of
 * the core has no level between the first and the last: a request is a miss of
 * the first level, and either the last level or memory answers.  Nothing is
 * prefetched or written back, there are no other sockets, and no other core is
 * asked.
 *
 * The bits come from Intel's event lists, and from Linux's perf.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qemu/error-report.h"
#include "migration/vmstate.h"
#include "core-events.h"
#include "intel-events.h"
#include "offcore.h"

#define MSR_OFFCORE_RSP_0 0x1a6

#define CODE X86_VPMU_CODE

/* Requests, on all models */
#define READ     (1ull << 0)
#define WRITE    (1ull << 1)
#define FETCH    (1ull << 2)
#define REQUESTS (READ | WRITE | FETCH)

/**
 * struct X86VPmuOffcore - the registers of some CPU models
 * @nr: how many there are
 * @codes: the code that selects each of them
 * @writable: their bits
 * @any: whatever answers; 0 if there is no such bit
 * @hit: the last level, in any state of the line
 * @memory: this socket's memory
 * @unasked: no other core was asked, or had to be; one of these is needed
 *           unless @any is set.  0 if no bits are about that
 */
struct X86VPmuOffcore {
    unsigned nr;
    uint32_t codes[X86_VPMU_MAX_OFFCORE];
    uint64_t writable;
    uint64_t any;
    uint64_t hit;
    uint64_t memory;
    uint64_t unasked;
};

/* The last level hits where no core has the line. */
const X86VPmuOffcore offcore_of_nehalem = {
    .nr = 1, .codes = { CODE(0xb7, 0x01) }, .writable = 0xffff,
    .hit = 1ull << 8, .memory = 1ull << 14,
};

#define SINCE_SANDY_BRIDGE                          \
    .nr = 2, .any = 1ull << 16,                     \
    .hit = MAKE_64BIT_MASK(18, 4), .unasked = MAKE_64BIT_MASK(31, 2)
#define B7_BB .codes = { CODE(0xb7, 0x01), CODE(0xbb, 0x01) }

const X86VPmuOffcore offcore_of_sandy_bridge = {
    SINCE_SANDY_BRIDGE, B7_BB, .writable = 0x3fffff8fff, .memory = 1ull << 22,
};
/* Broadwell has another bit for memory. */
const X86VPmuOffcore offcore_of_haswell = {
    SINCE_SANDY_BRIDGE, B7_BB, .writable = 0x3fffff8fff,
    .memory = 1ull << 22 | 1ull << 26,
};
const X86VPmuOffcore offcore_of_skylake = {
    SINCE_SANDY_BRIDGE, B7_BB, .writable = 0x3fffff8fff, .memory = 1ull << 26,
};
const X86VPmuOffcore offcore_of_ice_lake = {
    SINCE_SANDY_BRIDGE, B7_BB, .writable = 0x3fffffbfff, .memory = 1ull << 26,
};
const X86VPmuOffcore offcore_of_golden_cove = {
    SINCE_SANDY_BRIDGE, .codes = { CODE(0x2a, 0x01), CODE(0x2b, 0x01) },
    .writable = 0x3fffffffff, .memory = 1ull << 26,
};

/* Without a model of the core, there is nothing to count. */
static const X86VPmuOffcore *kind_of(const X86VPmu *v)
{
    return x86_vpmu_has_core(v)
           ? intel_model(v->cpu->env.cpuid_version)->offcore : NULL;
}

/*
 * Events
 */

/* Requests of several kinds count if the model has their sum. */
static const struct {
    uint64_t requests;
    PmuEvent any, hit, memory;
} requests[] = {
    { READ, PMU_EVENT_L1D_LOAD_MISSES, PMU_EVENT_LLC_LOAD_HITS,
      PMU_EVENT_LLC_LOAD_MISSES },
    { WRITE, PMU_EVENT_L1D_STORE_MISSES, PMU_EVENT_NONE,
      PMU_EVENT_LLC_STORE_MISSES },
    { FETCH, PMU_EVENT_L1I_MISSES, PMU_EVENT_NONE,
      PMU_EVENT_LLC_FETCH_MISSES },
    { READ | WRITE, PMU_EVENT_L1D_MISSES, PMU_EVENT_NONE, PMU_EVENT_NONE },
    { REQUESTS, PMU_EVENT_LLC_REFS, PMU_EVENT_NONE, PMU_EVENT_LLC_MISSES },
};

static PmuEvent event_of_register(const X86VPmuOffcore *o, uint64_t rsp)
{
    bool any = rsp & o->any;
    bool counts = any || !o->unasked || rsp & o->unasked;

    for (unsigned i = 0; counts && i < ARRAY_SIZE(requests); i++) {
        if (requests[i].requests == (rsp & REQUESTS)) {
            return any || (rsp & o->hit && rsp & o->memory) ? requests[i].any
                   : rsp & o->hit ? requests[i].hit
                   : rsp & o->memory ? requests[i].memory : PMU_EVENT_NONE;
        }
    }
    return PMU_EVENT_NONE;
}

static PmuEvent offcore_event(const X86VPmu *v, uint32_t code)
{
    const X86VPmuOffcore *o = kind_of(v);

    for (unsigned i = 0; o && i < o->nr; i++) {
        if (o->codes[i] == code) {
            return event_of_register(o, v->offcore_rsp[i]);
        }
    }
    return PMU_EVENT_NONE;
}

/*
 * Registers
 */

static unsigned offcore_count(const X86VPmu *v)
{
    const X86VPmuOffcore *o = kind_of(v);

    return o ? o->nr : 0;
}

static uint64_t offcore_bits(const X86VPmu *v)
{
    const X86VPmuOffcore *o = kind_of(v);

    return o ? o->writable : 0;
}

static void write_offcore(X86VPmu *v, unsigned i, uint64_t val)
{
    v->ops->update(v);
}

/* Drivers for the model may write them unasked. */
static bool offcore_ignored(const X86VPmu *v)
{
    return !x86_vpmu_has_core(v);
}

static const X86VPmuMsr offcore_msrs[] = {
    { MSR_OFFCORE_RSP_0, X86_VPMU_MAX_OFFCORE, 1, offcore_count,
      offcore_bits, X86_VPMU_FIELD(offcore_rsp), write_offcore },
    { }
};

static void offcore_reset(X86VPmu *v)
{
    memset(v->offcore_rsp, 0, sizeof(v->offcore_rsp));
}

/*
 * Migration
 */

static bool is_set(const X86VPmu *v)
{
    return v->offcore_rsp[0] | v->offcore_rsp[1];
}

static bool offcore_needed(void *opaque)
{
    X86CPU *cpu = opaque;

    return cpu->vpmu && is_set(cpu->vpmu);
}

static int offcore_pre_load(void *opaque)
{
    X86CPU *cpu = opaque;

    return pmu_cpu_check_load(cpu->vpmu);
}

static bool has_other_bits(const X86VPmu *v)
{
    for (unsigned i = 0; i < X86_VPMU_MAX_OFFCORE; i++) {
        if (i < offcore_count(v) ? v->offcore_rsp[i] & ~offcore_bits(v)
                                 : v->offcore_rsp[i]) {
            return true;
        }
    }
    return false;
}

static int offcore_post_load(void *opaque, int version_id)
{
    X86VPmu *v = opaque;

    if (has_other_bits(v)) {
        offcore_reset(v);
        error_report("The source's PMU has values in MSR_OFFCORE_RSP_x that "
                     "this PMU cannot have.");
        return -EINVAL;
    }
    pmu_begin(v->pmu);
    v->ops->update(v);
    pmu_commit(v->pmu);
    return 0;
}

static const VMStateDescription vmstate_offcore = {
    .name = "cpu/vpmu/offcore/registers",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = offcore_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64_ARRAY(offcore_rsp, X86VPmu, X86_VPMU_MAX_OFFCORE),
        VMSTATE_END_OF_LIST()
    }
};

const VMStateDescription vmstate_x86_vpmu_offcore = {
    .name = "cpu/vpmu/offcore",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = offcore_needed,
    .pre_load = offcore_pre_load,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(vpmu, X86CPU, vmstate_offcore, X86VPmu),
        VMSTATE_END_OF_LIST()
    }
};

const X86VPmuFeature intel_offcore = {
    .msrs = offcore_msrs,
    .ignored = offcore_ignored,
    .reset = offcore_reset,
    .event = offcore_event,
    .is_used = is_set,
};
