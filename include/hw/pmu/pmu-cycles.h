/*
 * Performance monitoring unit: the definition of a cycle under TCG
 *
 * The properties of a CPU that choose between the two models of cycles, and
 * the model that they choose.  Every target with a virtual PMU has them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_CYCLES_H
#define HW_PMU_PMU_CYCLES_H

#include <stdbool.h>
#include <stdint.h>

/**
 * PMU_CPI_ONE - one cycle per instruction, in the unit of cycles that follow
 *               instructions
 */
#define PMU_CPI_ONE 1000

/**
 * struct PmuCycleModel - the definition of a core cycle
 * @from_clock: cycles are virtual time at a rate of @khz, as far as the CPU is
 *              not halted; the cycles of an interval are divided among modes in
 *              the proportion of the instructions retired in each.  Otherwise
 *              each instruction takes @cpi cycles, whatever the host does.
 * @cpi: thousandths of a cycle per instruction, at least 1000
 * @khz: thousands of cycles per second of virtual time, at least 1
 */
typedef struct PmuCycleModel {
    bool from_clock;
    uint32_t cpi;
    uint32_t khz;
} PmuCycleModel;

/**
 * struct PmuCycleProps - the properties
 * @cycles: "instructions" or "time", which cycles follow; NULL if not given
 * @cpi: thousandths of a cycle per instruction, if they follow those; 0 if
 *       not given
 * @frequency: in Hz, if they follow time; 0 if not given
 *
 * After pmu_cycles_configure(), the numbers have the values in use.
 */
typedef struct PmuCycleProps {
    char *cycles;
    uint32_t cpi;
    uint64_t frequency;
} PmuCycleProps;

/**
 * DEFINE_PMU_CYCLE_PROPERTIES - the properties, for an array of Property
 */
#define DEFINE_PMU_CYCLE_PROPERTIES(_state, _field)                        \
    DEFINE_PROP_STRING("pmu-cycles", _state, _field.cycles),               \
    DEFINE_PROP_UINT32("pmu-cpi", _state, _field.cpi, 0),                  \
    DEFINE_PROP_UINT64("pmu-frequency", _state, _field.frequency, 0)

/**
 * pmu_cycles_given - find a property that the user has given
 * @props: as given, not yet configured
 *
 * Returns: the name of one, or NULL.
 */
const char *pmu_cycles_given(const PmuCycleProps *props);

/**
 * pmu_cycles_configure - check the properties and fill in those not given
 * @props: the properties
 * @errp: the error, and the allowed values
 *
 * Returns: false with @errp set if the combination is not allowed.
 */
bool pmu_cycles_configure(PmuCycleProps *props, Error **errp);

/**
 * pmu_cycles_model - the model that properties choose
 * @props: configured
 */
PmuCycleModel pmu_cycles_model(const PmuCycleProps *props);

#endif /* HW_PMU_PMU_CYCLES_H */
