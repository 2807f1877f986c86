/*
 * x86 virtual PMU: what counters of all vendors have in common
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "core-events.h"
#include "internal.h"

PmuEvent x86_vpmu_event_of(const X86VPmu *v, uint32_t code)
{
    return x86_vpmu_event(v->model, code) ?: x86_vpmu_core_event(v, code)
           ?: X86_VPMU_UNION(v->ops, event, v, code);
}

PmuSelect x86_vpmu_gp_select(const X86VPmu *v, unsigned i, uint32_t code,
                             PmuModes modes)
{
    uint64_t evtsel = v->evtsel[i];

    return (PmuSelect) {
        .event = x86_vpmu_filter_allows(v->filter, code)
                 ? x86_vpmu_event_of(v, code) : PMU_EVENT_NONE,
        .modes = modes & x86_vpmu_modes(evtsel & X86_EVTSEL_OS,
                                        evtsel & X86_EVTSEL_USR),
        .threshold = extract64(evtsel, X86_EVTSEL_CMASK, 8),
        .invert = evtsel & X86_EVTSEL_INV,
        .edge = evtsel & X86_EVTSEL_EDGE,
        .each = x86_vpmu_core_each(v, code),
    };
}

unsigned x86_vpmu_count_gp(const X86VPmu *v)
{
    return v->nr_gp;
}

uint64_t x86_vpmu_counter_bits(const X86VPmu *v)
{
    return MAKE_64BIT_MASK(0, X86_VPMU_WIDTH);
}

uint64_t x86_vpmu_any_bits(const X86VPmu *v)
{
    return UINT64_MAX;
}

uint64_t x86_vpmu_read_gp(X86VPmu *v, unsigned i)
{
    return pmu_read(v->pmu, i);
}

void x86_vpmu_write_gp(X86VPmu *v, unsigned i, uint64_t val)
{
    pmu_write(v->pmu, i, val);
}
