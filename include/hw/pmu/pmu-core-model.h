/*
 * Performance monitoring unit: the model of a core that the user asks for
 *
 * The object pmu-core.  Each vCPU that names it has cores of its own, of the
 * sizes that the object has.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_CORE_MODEL_H
#define HW_PMU_PMU_CORE_MODEL_H

#include "hw/pmu/pmu-core.h"
#include "qapi/qapi-types-common.h"
#include "qobject/qdict.h"

#define TYPE_PMU_CORE "pmu-core"

/**
 * struct PmuCoreModel - what the cores of a vCPU are like
 * @geometry: their sizes
 * @penalties: what their misses cost
 * @is_shared: a vCPU has one core, whatever it executes; otherwise each program
 *             has one of its own
 */
typedef struct PmuCoreModel {
    PmuCoreGeometry geometry;
    PmuCorePenalties penalties;
    bool is_shared;
} PmuCoreModel;

/**
 * pmu_core_model_find - find the model that a CPU's property names
 * @id: the object's ID
 * @errp: why there is none, with a hint
 *
 * Returns: the model, which the object keeps as long as the machine exists, or
 * NULL.
 */
const PmuCoreModel *pmu_core_model_find(const char *id, Error **errp);

/**
 * pmu_core_model_properties - the properties of the object that has a model
 * @model: the model, from pmu_core_model_find()
 *
 * Returns: a dictionary that the caller owns, with all members of
 * PmuCoreProperties, and the object's ID as "id".
 */
QDict *pmu_core_model_properties(const PmuCoreModel *model);

#endif /* HW_PMU_PMU_CORE_MODEL_H */
