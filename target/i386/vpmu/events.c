/*
 * x86 virtual PMU: tables of codes of events
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/log.h"
#include "hw/pmu/pmu-cpu.h"
#include "events.h"

static PmuEvent find_event(const X86VPmuEvent *table, uint32_t code)
{
    for (; table->code; table++) {
        if (table->code == code) {
            return table->event;
        }
    }
    return PMU_EVENT_NONE;
}

PmuEvent x86_vpmu_event(const X86VPmuModel *model, uint32_t code)
{
    PmuEvent event = PMU_EVENT_NONE;

    for (int i = 0; !event && model->events[i]; i++) {
        event = find_event(model->events[i], code);
    }
    return event;
}

void x86_vpmu_report_uncounted(const X86VPmuModel *model, uint32_t code)
{
    if (x86_vpmu_event(model, code) == PMU_EVENT_NONE && pmu_log_once(code)) {
        qemu_log_mask(LOG_UNIMP, "vPMU: event 0x%02x, unit mask 0x%02x (%s) is "
                      "not counted and reads 0\n",
                      X86_VPMU_CODE_EVENT(code),
                      X86_VPMU_CODE_UMASK2(code) << 8
                      | X86_VPMU_CODE_UMASK(code), model->name);
    }
}

unsigned x86_vpmu_family(uint32_t signature)
{
    unsigned family = extract32(signature, 8, 4);

    return family == 0xf ? family + extract32(signature, 20, 8) : family;
}

unsigned x86_vpmu_model_number(uint32_t signature)
{
    return extract32(signature, 4, 4) | extract32(signature, 16, 4) << 4;
}
