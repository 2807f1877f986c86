/*
 * Performance monitoring unit: the migration state of the model
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_VMSTATE_H
#define HW_PMU_PMU_VMSTATE_H

#include "migration/vmstate.h"
#include "hw/pmu/pmu.h"

/**
 * vmstate_pmu - the values of the counters of a struct Pmu
 *
 * The face saves its registers, from which follow the event of each counter
 * and whether it runs.  A face with a Pmu in its state
 *
 *   in pre_save    calls pmu_fold(), so that the values are up to date
 *   in its fields  has its registers, this, and the state of the engine
 *   in post_load   calls pmu_rebase(), and then, in a transaction, selects and
 *                  runs the counters as its registers say
 *
 * The Pmu must have been reset before it is loaded, and have as many counters
 * as the one that was saved.
 */
extern const VMStateDescription vmstate_pmu;

#endif /* HW_PMU_PMU_VMSTATE_H */
