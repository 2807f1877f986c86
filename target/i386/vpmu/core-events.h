/*
 * x86 virtual PMU: events that a model of the core counts
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef I386_VPMU_CORE_EVENTS_H
#define I386_VPMU_CORE_EVENTS_H

#include "internal.h"

/**
 * x86_vpmu_has_core - whether a PMU's CPU has a model of its core
 * @v: the PMU
 */
bool x86_vpmu_has_core(const X86VPmu *v);

/**
 * x86_vpmu_core_event - the event of a code, if a model of the core counts it
 * @v: the PMU
 * @code: X86_VPMU_CODE()
 *
 * Returns: PMU_EVENT_NONE for other codes, and without such a model.
 */
PmuEvent x86_vpmu_core_event(const X86VPmu *v, uint32_t code);

/**
 * x86_vpmu_slots - how many slots a cycle of a CPU of Intel's has
 * @v: the PMU
 */
unsigned x86_vpmu_slots(const X86VPmu *v);

/**
 * x86_vpmu_core_each - what one of its events adds to a counter
 * @v: the PMU
 * @code: X86_VPMU_CODE()
 *
 * Returns: how many slots a cycle has, if the code counts slots where the model
 * counts cycles; otherwise 1.
 */
unsigned x86_vpmu_core_each(const X86VPmu *v, uint32_t code);

#endif /* I386_VPMU_CORE_EVENTS_H */
