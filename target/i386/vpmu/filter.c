/*
 * x86 virtual PMU: the events that a guest may count
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "filter.h"

/* An event select and a unit mask, as in registers */
#define RAW_BITS (MAKE_64BIT_MASK(0, 16) | MAKE_64BIT_MASK(32, 4))

X86VPmuFilterEntry x86_vpmu_filter_entry(const KvmPmuFilterEvent *entry)
{
    const KvmPmuX86SelectUmaskEvent *select = &entry->u.x86_select_umask;
    const KvmPmuX86MaskedEntry *masked = &entry->u.x86_masked_entry;
    uint64_t code = entry->u.raw.code;

    switch (entry->format) {
    case KVM_PMU_EVENT_FORMAT_RAW:
        return (X86VPmuFilterEntry) {
            .select = extract64(code, 0, 8) | extract64(code, 32, 4) << 8,
            .match = extract64(code, 8, 8),
            .mask = 0xff,
        };
    case KVM_PMU_EVENT_FORMAT_X86_SELECT_UMASK:
        return (X86VPmuFilterEntry) {
            .select = select->select,
            .match = select->umask,
            .mask = 0xff,
        };
    case KVM_PMU_EVENT_FORMAT_X86_MASKED_ENTRY:
        return (X86VPmuFilterEntry) {
            .select = masked->select,
            .match = masked->match,
            .mask = masked->mask,
            .exclude = masked->exclude,
        };
    default:
        g_assert_not_reached();
    }
}

/* The other formats are checked as soon as they are set. */
static bool check(const KvmPmuFilterEvent *entry, Error **errp)
{
    ERRP_GUARD();

    if (entry->format == KVM_PMU_EVENT_FORMAT_RAW
        && entry->u.raw.code & ~RAW_BITS) {
        error_setg(errp, "0x%" PRIx64 " is not the raw code of an event",
                   entry->u.raw.code);
        error_append_hint(errp, "Bits 0 to 15 and 32 to 35 may be set.\n");
        return false;
    }
    return true;
}

static bool matches(const KvmPmuFilterEvent *entry, uint64_t code)
{
    const X86VPmuFilterEntry e = x86_vpmu_filter_entry(entry);

    /* As in the kernel's interface, entries have no second unit mask. */
    return !X86_VPMU_CODE_UMASK2(code)
           && X86_VPMU_CODE_EVENT(code) == e.select
           && (X86_VPMU_CODE_UMASK(code) & e.mask) == e.match;
}

bool x86_vpmu_take_filter(const PmuFilter **filter, Error **errp)
{
    return pmu_filter_take(filter, check, errp);
}

bool x86_vpmu_filter_allows(const PmuFilter *filter, uint32_t code)
{
    return pmu_filter_allows(filter, matches, code);
}
