/*
 * Power virtual PMU: what the processors' event codes mean
 *
 * A code of Linux or of the processors' manuals is 0xPUxSS: the PMC, the unit
 * that supplies the event and the selector; the last two are what MMCR1
 * holds.  Only events that are counted are in the tables.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef PPC_VPMU_EVENTS_H
#define PPC_VPMU_EVENTS_H

#include "hw/pmu/pmu.h"

/**
 * struct PpcEvent - an event of a processor
 * @pmcs: on which counters it can be selected, bit n for PMCn; 0 for any
 * @unit: the unit
 * @sel: the selector
 * @event: what is counted
 * @run_latch: only while CTRL[RUN] is 1
 * @runs_always: MMCR0[FC1-4WAIT] does not freeze it
 * @marked: only instructions that are marked; @event follows from MMCRA
 */
typedef struct PpcEvent {
    uint8_t pmcs;
    uint8_t unit;
    uint8_t sel;
    PmuEvent event;
    bool run_latch;
    bool runs_always;
    bool marked;
} PpcEvent;

/**
 * struct PpcVPmuModel - what depends on the processor
 * @name: its name
 * @mmcr0: the bits that MMCR0 has
 * @events: its own events, besides those of the architecture
 * @nr_events: how many
 * @records_kernel: branches of privileged state are recorded, too
 */
typedef struct PpcVPmuModel {
    const char *name;
    uint64_t mmcr0;
    const PpcEvent *events;
    unsigned nr_events;
    bool records_kernel;
} PpcVPmuModel;

extern const PpcVPmuModel ppc_vpmu_power8;
extern const PpcVPmuModel ppc_vpmu_power9;
extern const PpcVPmuModel ppc_vpmu_power10;

/**
 * ppc_event - what a counter is to count
 * @model: the processor
 * @pmc: 1 to PPC_NR_PMCS
 * @mmcr1: MMCR1
 * @mmcra: MMCRA, which says what instructions are marked
 *
 * Returns: the event; its event is PMU_EVENT_NONE if nothing is selected or
 * if what is selected is not counted.
 */
PpcEvent ppc_event(const PpcVPmuModel *model, unsigned pmc, uint64_t mmcr1,
                   uint64_t mmcra);

/**
 * ppc_event_code - the code of what is selected
 * @pmc: 1 to PPC_NR_PMCS
 * @mmcr1: MMCR1
 *
 * Returns: 0xPUxSS, as above.
 */
uint32_t ppc_event_code(unsigned pmc, uint64_t mmcr1);

#endif /* PPC_VPMU_EVENTS_H */
