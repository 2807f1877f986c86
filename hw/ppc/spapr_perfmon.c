/*
 * PAPR: partitions and the performance monitor
 *
 * H_PERFMON, "Linux on Power Architecture Reference", "Performance Monitor
 * Option".  The CPU (target/ppc/vpmu) or KVM provides the facility itself, and
 * a partition may use it without asking.  So there is no state to switch, to
 * keep or to migrate: the mode is always "enabled", and a request to deactivate
 * it fails.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "cpu.h"
#include "hw/ppc/spapr.h"

#define MODE_ENABLE           PPC_BIT(0)
#define MODE_HIGH_GRANULARITY PPC_BIT(1) /* of thresholds */
#define MODES                 (MODE_ENABLE | MODE_HIGH_GRANULARITY)

bool spapr_has_perfmon(SpaprMachineState *spapr, PowerPCCPU *cpu)
{
    return SPAPR_MACHINE_GET_CLASS(spapr)->perfmon_enabled && cpu->has_pmu;
}

static target_ulong h_perfmon(PowerPCCPU *cpu, SpaprMachineState *spapr,
                              target_ulong opcode, target_ulong *args)
{
    target_ulong set = args[0];
    target_ulong reset = args[1];

    if (!SPAPR_MACHINE_GET_CLASS(spapr)->perfmon_enabled) {
        return H_FUNCTION;
    }
    if ((set | reset) & ~MODES || set & reset) {
        return H_PARAMETER;
    }
    if (!cpu->has_pmu || set & MODE_HIGH_GRANULARITY || reset & MODE_ENABLE) {
        return H_RESOURCE;
    }
    args[0] = MODE_ENABLE;
    return H_SUCCESS;
}

static void register_hypercall(void)
{
    spapr_register_hypercall(H_PERFMON, h_perfmon);
}

type_init(register_hypercall)
