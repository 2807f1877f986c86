/*
 * Power virtual PMU: the interface between its parts
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef PPC_VPMU_INTERNAL_H
#define PPC_VPMU_INTERNAL_H

#include "hw/pmu/pmu-cpu.h"
#include "hw/pmu/pmu-filter.h"
#include "access.h"
#include "events.h"
#include "freeze.h"
#include "regs.h"
#include "vpmu.h"

typedef struct PpcVPmu PpcVPmu;

/**
 * struct PpcVPmu - the PMU of one CPU
 * @cpu: the CPU; its registers include the PMU's
 * @model: the properties of the processor
 * @model_with_core: the same, if there is a model of its core
 * @filter: the events that it may count
 * @unit: its counters, and their engine
 * @pmu: the counters of @unit; PMCn is counter n - 1
 * @bhrb_unread: alerts since the guest last executed an instruction of the
 *               BHRB, up to PPC_VPMU_BHRB_UNUSED
 * @timebase: the next transition of the bit that MMCR0[TBSEL] selects
 * @watches_siblings: events depend on the run latches of the core's threads
 * @alerts: how many there have been; not migrated
 */
struct PpcVPmu {
    PowerPCCPU *cpu;
    const PpcVPmuModel *model;
    PpcVPmuModel model_with_core;
    const PmuFilter *filter;
    PmuCpu *unit;
    Pmu *pmu;
    uint32_t bhrb_unread;
    QEMUTimer *timebase;
    bool watches_siblings;
    uint64_t alerts;
};

/**
 * ppc_vpmu_take_filter - get the filter of the machine's CPUs
 * @filter: set to the filter, or to NULL if the machine has no filter
 * @errp: the error in it
 *
 * As pmu_filter_take(), for the codes of Power.
 */
bool ppc_vpmu_take_filter(const PmuFilter **filter, Error **errp);

/**
 * ppc_vpmu_filter_allows - whether this event may be counted
 * @filter: ppc_vpmu_take_filter()
 * @code: ppc_vpmu_event_code()
 */
bool ppc_vpmu_filter_allows(const PmuFilter *filter, uint32_t code);

/**
 * ppc_vpmu_model - find the processor of a CPU
 * @cpu: the CPU
 *
 * Returns: NULL for processors whose PMU is not known.
 */
const PpcVPmuModel *ppc_vpmu_model(const PowerPCCPU *cpu);

/**
 * ppc_vpmu_shape - the shape of each counter
 */
extern const PmuCounterShape ppc_vpmu_shape;

/**
 * ppc_vpmu_code_of - the code of the event that a PMC selects
 * @v: the PMU
 * @pmc: 1 to PPC_VPMU_NR_PMCS
 */
uint32_t ppc_vpmu_code_of(const PpcVPmu *v, unsigned pmc);

/**
 * ppc_vpmu_count_modes - the modes in which a PMC counts
 * @v: the PMU
 * @pmc: 1 to PPC_VPMU_NR_PMCS
 * @event: ppc_vpmu_event()
 *
 * As the registers, run latches and the user's filter say.
 */
PmuModes ppc_vpmu_count_modes(const PpcVPmu *v, unsigned pmc,
                              const PpcVPmuEvent *event);

/**
 * PPC_VPMU_BHRB_UNUSED - after so many alerts the guest does not use the BHRB
 */
#define PPC_VPMU_BHRB_UNUSED 64

/**
 * ppc_vpmu_counter - the number of a PMC's counter
 * @pmc: 1 to PPC_VPMU_NR_PMCS
 */
static inline unsigned ppc_vpmu_counter(unsigned pmc)
{
    return pmc - 1;
}

/**
 * PPC_VPMU_ALL_COUNTERS - as a set of counters
 */
#define PPC_VPMU_ALL_COUNTERS MAKE_64BIT_MASK(0, PPC_VPMU_NR_PMCS)

/**
 * ppc_vpmu_update - make the counters do what the registers say
 * @v: the PMU, in a transaction
 * @counters: as for ppc_vpmu_alert_if_due()
 * @event: likewise
 *
 * First does what follows from conditions that occur now.
 */
void ppc_vpmu_update(PpcVPmu *v, uint64_t counters, bool event);

/**
 * ppc_vpmu_alert_if_due - check the conditions for an alert
 * @v: the PMU, in a transaction
 * @counters: the counters that have turned negative, or that were written; all
 *            counters if MMCR0 was written.  On other counters, negative or
 *            not, no condition occurs now
 * @event: an enabled event, other than a negative counter, has happened
 *
 * Power ISA 3.1B, book III, "Performance Monitor Alerts": freezes, ends a
 * trigger and raises the alert, as MMCR0 says.
 */
void ppc_vpmu_alert_if_due(PpcVPmu *v, uint64_t counters, bool event);

/**
 * ppc_vpmu_alert_if_loaded - check the conditions after registers were replaced
 * @v: the PMU, in a transaction
 *
 * Conditions froze counters, or ended the trigger, before the registers were
 * saved, so loading them does neither.  An alert that is enabled and has its
 * condition is raised nevertheless: another QEMU may not have raised it.
 */
void ppc_vpmu_alert_if_loaded(PpcVPmu *v);

/**
 * ppc_vpmu_is_condition - whether a PMC is an enabled condition when negative
 * @mmcr0: MMCR0
 * @pmc: 1 to PPC_VPMU_NR_PMCS
 */
bool ppc_vpmu_is_condition(uint64_t mmcr0, unsigned pmc);

/**
 * ppc_vpmu_notices - whether the moment at which a PMC turns negative matters
 * @v: the PMU
 * @pmc: 1 to PPC_VPMU_NR_PMCS
 */
bool ppc_vpmu_notices(const PpcVPmu *v, unsigned pmc);

/**
 * ppc_vpmu_update_interrupt - make interrupt and branch follow MMCR0[PMAO]
 * @v: the PMU
 */
void ppc_vpmu_update_interrupt(PpcVPmu *v);

/**
 * ppc_vpmu_overflow - PmuOverflowFn of a PpcVPmu
 */
void ppc_vpmu_overflow(void *opaque, uint64_t counters);

/**
 * ppc_vpmu_sample_update - note addresses of data, if samples need them
 * @v: the PMU, in a transaction
 */
void ppc_vpmu_sample_update(PpcVPmu *v);

/**
 * ppc_vpmu_timebase_init - prepare for events of the time base
 * @v: the PMU
 */
void ppc_vpmu_timebase_init(PpcVPmu *v);

/**
 * ppc_vpmu_timebase_update - wait for the transition that MMCR0 asks for
 * @v: the PMU
 */
void ppc_vpmu_timebase_update(PpcVPmu *v);

/**
 * ppc_vpmu_bhrb_update - record the branches that MMCR0 and MMCRA ask for
 * @v: the PMU
 */
void ppc_vpmu_bhrb_update(PpcVPmu *v);

/**
 * ppc_vpmu_check_access - whether the CPU, as it is now, may access a register
 * @env: its state
 * @sprn: the number used; the numbers for problem state are different ones
 * @write: whether it is to be written
 */
PpcVPmuAccess ppc_vpmu_check_access(CPUPPCState *env, unsigned sprn,
                                    bool write);

/**
 * ppc_vpmu_read - read a register, as the CPU's state allows
 * @v: the PMU
 * @sprn: the register, to which access is allowed
 */
uint64_t ppc_vpmu_read(PpcVPmu *v, unsigned sprn);

/**
 * ppc_vpmu_write - write a register, as the CPU's state allows
 * @v: the PMU
 * @sprn: the register, to which access is allowed
 * @val: the value
 */
void ppc_vpmu_write(PpcVPmu *v, unsigned sprn, uint64_t val);

/**
 * ppc_vpmu_peek - the value of a register, without consequences
 * @v: the PMU
 * @reg: the register's privileged number
 *
 * All of it, whatever the CPU's state; no overflow is noticed.
 */
uint64_t ppc_vpmu_peek(const PpcVPmu *v, unsigned reg);

/**
 * ppc_vpmu_write_whole - write all bits of a register
 * @v: the PMU
 * @reg: the register's privileged number
 * @val: the value
 *
 * Whatever the CPU's state.
 */
void ppc_vpmu_write_whole(PpcVPmu *v, unsigned reg, uint64_t val);

/**
 * ppc_vpmu_freeze_state - the state that decides now whether counters move
 * @v: the PMU
 */
PpcVPmuFreeze ppc_vpmu_freeze_state(const PpcVPmu *v);

/**
 * ppc_vpmu_latch_is_set - whether the run latches let an event be counted
 * @v: the PMU
 * @latch: the latches that the event depends on
 */
bool ppc_vpmu_latch_is_set(const PpcVPmu *v, PpcVPmuLatch latch);

/**
 * ppc_vpmu_qtest_init - offer the commands of qtest
 */
void ppc_vpmu_qtest_init(void);

#endif /* PPC_VPMU_INTERNAL_H */
