/*
 * x86 virtual PMU: the user's properties
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef I386_VPMU_PROPS_H
#define I386_VPMU_PROPS_H

#include "qapi/qapi-types-common.h"
#include "hw/pmu/pmu-core-model.h"
#include "hw/pmu/pmu-cycles.h"

/**
 * typedef X86VPmu - the PMU of a CPU; see vpmu.h
 */
typedef struct X86VPmu X86VPmu;

/**
 * struct X86VPmuProps - the properties of a CPU that shape its PMU
 * @machine: the machine type has virtual PMUs; with types of QEMU 9.2 and
 *           older, guests are as in stock QEMU
 * @stock_amd: QEMU without this PMU that has the machine type also migrates
 *             AMD's PMU under KVM, so that guests can go there
 * @version: of Intel's architectural performance monitoring, for Intel only
 * @gp_counters: general-purpose counters
 * @fixed_counters: fixed-function counters
 * @cycles: the definition of a cycle, under TCG
 * @core: the ID of a model of the core, under TCG; NULL if not given
 * @core_model: that model, once it is found
 * @lbr: last branch records, under TCG; "auto" uses them if the CPU has them
 * @pebs: processor event based sampling, if the CPU has it, under TCG
 * @host_perf: keep the host's accounts of the vCPU, under KVM
 * @priority: "guest" or "host", which one gets the host's counters if both want
 *            them, under KVM; NULL if not given, which is "guest"
 * @host_counters: general-purpose counters that are hidden from the guest,
 *                 under KVM
 *
 * Numbers that were not given are 0; realize replaces them.
 */
typedef struct X86VPmuProps {
    bool machine;
    bool stock_amd;
    uint32_t version;
    uint32_t gp_counters;
    uint32_t fixed_counters;
    PmuCycleProps cycles;
    char *core;
    const PmuCoreModel *core_model;
    OnOffAuto lbr;
    bool pebs;
    bool host_perf;
    char *priority;
    uint32_t host_counters;
} X86VPmuProps;

/**
 * DEFINE_X86_VPMU_PROPERTIES - the properties, for an array of Property
 */
#define DEFINE_X86_VPMU_PROPERTIES(_state, _field)                         \
    DEFINE_PROP_BOOL("x-vpmu", _state, _field.machine, true),              \
    DEFINE_PROP_BOOL("x-vpmu-stock-amd", _state, _field.stock_amd, true),  \
    DEFINE_PROP_UINT32("pmu-version", _state, _field.version, 0),          \
    DEFINE_PROP_UINT32("pmu-gp-counters", _state, _field.gp_counters, 0),  \
    DEFINE_PROP_UINT32("pmu-fixed-counters", _state, _field.fixed_counters, \
                       0),                                                 \
    DEFINE_PROP_STRING("pmu-core", _state, _field.core),                   \
    DEFINE_PROP_ON_OFF_AUTO("lbr", _state, _field.lbr, ON_OFF_AUTO_AUTO),  \
    DEFINE_PROP_BOOL("pebs", _state, _field.pebs, false),                  \
    DEFINE_PROP_BOOL("pmu-host-perf", _state, _field.host_perf, false),    \
    DEFINE_PROP_STRING("pmu-priority", _state, _field.priority),           \
    DEFINE_PROP_UINT32("pmu-host-counters", _state, _field.host_counters,  \
                       0),                                                 \
    DEFINE_PMU_CYCLE_PROPERTIES(_state, _field.cycles)

#endif /* I386_VPMU_PROPS_H */
