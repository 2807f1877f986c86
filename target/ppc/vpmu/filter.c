/*
 * Power virtual PMU: the events that a guest may count
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "internal.h"

/* The parts of ppc_vpmu_event_code() */
#define CODE_SEL    MAKE_64BIT_MASK(0, 8)
#define CODE_UNIT   MAKE_64BIT_MASK(12, 4)
#define CODE_PMC    MAKE_64BIT_MASK(16, 4)
#define CODE_BITS   (CODE_SEL | CODE_UNIT | CODE_PMC)

static bool check(const KvmPmuFilterEvent *entry, Error **errp)
{
    ERRP_GUARD();
    uint64_t code = entry->u.raw.code;

    if (entry->format != KVM_PMU_EVENT_FORMAT_RAW) {
        error_setg(errp, "format %s is for x86",
                   KvmPmuEventFormat_str(entry->format));
        error_append_hint(errp, "Use format raw.\n");
        return false;
    }
    if (code & ~CODE_BITS || extract64(code, 16, 4) > PPC_VPMU_NR_PMCS) {
        error_setg(errp, "0x%" PRIx64 " is not the raw code of an event",
                   code);
        error_append_hint(errp, "It has the event in bits 0 to 7, its unit in "
                          "bits 12 to 15, and in bits 16 to 19 the counter, or "
                          "0 for any.\n");
        return false;
    }
    return true;
}

static bool matches(const KvmPmuFilterEvent *entry, uint64_t code)
{
    uint64_t matter = entry->u.raw.code & CODE_PMC ? CODE_BITS
                                                   : CODE_BITS & ~CODE_PMC;

    return !((entry->u.raw.code ^ code) & matter);
}

bool ppc_vpmu_take_filter(const PmuFilter **filter, Error **errp)
{
    if (!pmu_filter_take(filter, check, errp)) {
        return false;
    }
    if (*filter && (*filter)->fixed) {
        error_setg(errp, "x86-fixed-counter of a pmu-filter is for x86");
        error_append_hint(errp, "PMC5 counts event 0x500fa, and PMC6 0x600f4: "
                          "name them among the events.\n");
        return false;
    }
    return true;
}

bool ppc_vpmu_filter_allows(const PmuFilter *filter, uint32_t code)
{
    return pmu_filter_allows(filter, matches, code);
}
