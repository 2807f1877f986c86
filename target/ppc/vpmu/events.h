/*
 * Power virtual PMU: the processors' event codes
 *
 * A code of Linux or of the processors' manuals is 0xPUxSS: the PMC, the unit
 * that supplies the event and the selector; the last two are in MMCR1.  The
 * tables have only events that are counted.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef PPC_VPMU_EVENTS_H
#define PPC_VPMU_EVENTS_H

#include "hw/pmu/pmu.h"

/**
 * enum PpcVPmuLatch - the run latches that must be set for an event to count
 * @PPC_VPMU_LATCH_NONE: no latch
 * @PPC_VPMU_LATCH_OWN: this thread's, CTRL[RUN]
 * @PPC_VPMU_LATCH_ANY: the latch of any thread of the core
 * @PPC_VPMU_LATCH_ALL: the latches of all its threads
 */
typedef enum PpcVPmuLatch {
    PPC_VPMU_LATCH_NONE,
    PPC_VPMU_LATCH_OWN,
    PPC_VPMU_LATCH_ANY,
    PPC_VPMU_LATCH_ALL,
} PpcVPmuLatch;

/**
 * struct PpcVPmuEvent - an event of a processor
 * @pmcs: on which counters it can be selected, bit n for PMCn; 0 for any
 * @unit: the unit
 * @sel: the selector
 * @event: the event of the model
 * @latch: only while this is set
 * @states: only in these privilege states; 0 for all
 * @source: only if this is the counter's field of MMCR3; 0 for any
 * @runs_always: MMCR0[FC1-4WAIT] does not freeze it
 * @marked: only instructions that are marked; @event follows from MMCRA
 */
typedef struct PpcVPmuEvent {
    uint8_t pmcs;
    uint8_t unit;
    uint8_t sel;
    PmuEvent event;
    PpcVPmuLatch latch;
    PmuModes states;
    uint16_t source;
    bool runs_always;
    bool marked;
} PpcVPmuEvent;

/**
 * struct PpcVPmuEventList - events that processors have in common
 * @events: the events
 * @nr: how many
 */
typedef struct PpcVPmuEventList {
    const PpcVPmuEvent *events;
    unsigned nr;
} PpcVPmuEventList;

/**
 * struct PpcVPmuSampleFields - a processor's fields that describe samples
 * @reg: the register
 * @all: its bits that an alert writes
 * @problem: SIAR is of problem state
 * @hypervisor: SIAR is of hypervisor state
 * @siar_valid: SIAR is valid
 * @sdar_valid: SDAR is, too
 * @load: the instruction is a load; 0 if there is no such bit
 * @store: it is a store, likewise
 */
typedef struct PpcVPmuSampleFields {
    unsigned reg;
    uint64_t all;
    uint64_t problem, hypervisor;
    uint64_t siar_valid, sdar_valid;
    uint64_t load, store;
} PpcVPmuSampleFields;

/**
 * struct PpcVPmuModel - the properties of a processor
 * @name: its name
 * @mmcr0: the bits that MMCR0 has
 * @mmcr2: the bits that MMCR2 has; 0 if there is no such register
 * @mmcra: the bits of MMCRA that are implemented, or can be ignored
 * @lists: its events; the first list that has a code decides.  There is room
 *         for those of ppc_vpmu_with_core().
 * @core: those of a modelled core that not all processors have in common
 * @sample: the fields that describe samples
 * @records_kernel: branches of privileged state are recorded, too
 */
typedef struct PpcVPmuModel {
    const char *name;
    uint64_t mmcr0;
    uint64_t mmcr2;
    uint64_t mmcra;
    PpcVPmuEventList lists[5];
    PpcVPmuEventList core;
    const PpcVPmuSampleFields *sample;
    bool records_kernel;
} PpcVPmuModel;

/**
 * ppc_vpmu_with_core - a processor with a model of its core
 * @model: the processor
 *
 * Returns: the same, and the events that such a model counts.
 */
PpcVPmuModel ppc_vpmu_with_core(const PpcVPmuModel *model);

extern const PpcVPmuModel ppc_vpmu_power7;
extern const PpcVPmuModel ppc_vpmu_power8;
extern const PpcVPmuModel ppc_vpmu_power9;
extern const PpcVPmuModel ppc_vpmu_power10;

/**
 * ppc_vpmu_event - the event that a counter selects
 * @model: the processor
 * @pmc: 1 to PPC_VPMU_NR_PMCS
 * @mmcr1: MMCR1
 * @mmcra: MMCRA, which selects the instructions that are marked
 * @mmcr3: MMCR3, which selects a source of data
 *
 * Returns: the event; its event is PMU_EVENT_NONE if nothing is selected or
 * if the selected event is not counted.
 */
PpcVPmuEvent ppc_vpmu_event(const PpcVPmuModel *model, unsigned pmc,
                            uint64_t mmcr1, uint64_t mmcra,
                            uint64_t mmcr3);

/**
 * ppc_vpmu_event_code - the code of the selected event
 * @pmc: 1 to PPC_VPMU_NR_PMCS
 * @mmcr1: MMCR1
 *
 * Returns: 0xPUxSS, as above.
 */
uint32_t ppc_vpmu_event_code(unsigned pmc, uint64_t mmcr1);

/**
 * ppc_vpmu_code_event - the event of a code, independent of registers
 * @model: the processor
 * @code: 0xPUxSS, where 0 for the counter stands for any
 *
 * Returns: PMU_EVENT_NONE if no counter counts it, or if that depends on more
 * than the code: on marked instructions, run latches, or privilege.
 */
PmuEvent ppc_vpmu_code_event(const PpcVPmuModel *model, uint32_t code);

#endif /* PPC_VPMU_EVENTS_H */
