/*
 * x86 virtual PMU: what the user can choose
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef I386_VPMU_PROPS_H
#define I386_VPMU_PROPS_H

/**
 * typedef X86VPmu - the PMU of a CPU; see vpmu.h
 */
typedef struct X86VPmu X86VPmu;

/**
 * X86_VPMU_UNSET - a number that the user has not given
 */
#define X86_VPMU_UNSET UINT32_MAX

/**
 * struct X86VPmuProps - the properties of a CPU that shape its PMU
 * @version: of Intel's architectural performance monitoring
 * @gp_counters: general-purpose counters
 * @fixed_counters: fixed-function counters
 * @cycles: "instructions" or "time", what cycles follow
 * @cpi: thousandths of a cycle per instruction, where they follow those
 * @frequency: in Hz, where they follow time; 0 if not given
 *
 * After realize, numbers that were not given hold what is used instead.
 */
typedef struct X86VPmuProps {
    uint32_t version;
    uint32_t gp_counters;
    uint32_t fixed_counters;
    char *cycles;
    uint32_t cpi;
    uint64_t frequency;
} X86VPmuProps;

/**
 * DEFINE_X86_VPMU_PROPERTIES - the properties, for an array of Property
 */
#define DEFINE_X86_VPMU_PROPERTIES(_state, _field)                         \
    DEFINE_PROP_UINT32("pmu-version", _state, _field.version,              \
                       X86_VPMU_UNSET),                                    \
    DEFINE_PROP_UINT32("pmu-gp-counters", _state, _field.gp_counters,      \
                       X86_VPMU_UNSET),                                    \
    DEFINE_PROP_UINT32("pmu-fixed-counters", _state, _field.fixed_counters, \
                       X86_VPMU_UNSET),                                    \
    DEFINE_PROP_STRING("pmu-cycles", _state, _field.cycles),               \
    DEFINE_PROP_UINT32("pmu-cpi", _state, _field.cpi, X86_VPMU_UNSET),     \
    DEFINE_PROP_UINT64("pmu-frequency", _state, _field.frequency, 0)

#endif /* I386_VPMU_PROPS_H */
