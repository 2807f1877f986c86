/*
 * x86 virtual PMU: tables of codes of events
 *
 * The codes differ between vendors and CPU models; the form of the tables does
 * not.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef I386_VPMU_EVENTS_H
#define I386_VPMU_EVENTS_H

#include "qemu/bitops.h"
#include "hw/pmu/pmu.h"

/**
 * X86_VPMU_CODE - an event select, of up to 12 bits, and a unit mask
 * X86_VPMU_CODE2 - likewise, with the second unit mask of Intel's version 6
 */
#define X86_VPMU_CODE(event, umask) ((uint32_t)(umask) << 12 | (event))
#define X86_VPMU_CODE2(event, umask, umask2) \
    ((uint32_t)(umask2) << 20 | X86_VPMU_CODE(event, umask))
#define X86_VPMU_CODE_EVENT(code) extract32(code, 0, 12)
#define X86_VPMU_CODE_UMASK(code) extract32(code, 12, 8)
#define X86_VPMU_CODE_UMASK2(code) extract32(code, 20, 8)

/**
 * struct X86VPmuEvent - a code and its event
 * @code: X86_VPMU_CODE(); 0 ends a table
 * @event: the event
 */
typedef struct X86VPmuEvent {
    uint32_t code;
    PmuEvent event;
} X86VPmuEvent;

/**
 * struct X86VPmuModel - the events of some CPU models
 * @name: the name of the microarchitecture
 * @events: tables of their codes, ended by NULL; the first that has a code
 *          determines its event
 */
typedef struct X86VPmuModel {
    const char *name;
    const X86VPmuEvent *const *events;
} X86VPmuModel;

/**
 * X86_VPMU_EVENTS - a value for X86VPmuModel.events
 */
#define X86_VPMU_EVENTS(...) \
    ((const X86VPmuEvent *const[]) { __VA_ARGS__, NULL })

/**
 * x86_vpmu_event - the event of a code
 * @model: the CPU
 * @code: X86_VPMU_CODE()
 *
 * Returns: the event, or PMU_EVENT_NONE.
 */
PmuEvent x86_vpmu_event(const X86VPmuModel *model, uint32_t code);

/**
 * x86_vpmu_report_uncounted - report an event that is not counted
 * @model: the CPU
 * @code: X86_VPMU_CODE(), of a counter that is being enabled
 *
 * Reports each such code once, whichever vCPU uses it.
 */
void x86_vpmu_report_uncounted(const X86VPmuModel *model, uint32_t code);

/**
 * x86_vpmu_family, x86_vpmu_model_number - parts of a CPU's signature
 * @signature: CPUID leaf 1, EAX
 */
unsigned x86_vpmu_family(uint32_t signature);
unsigned x86_vpmu_model_number(uint32_t signature);

#endif /* I386_VPMU_EVENTS_H */
