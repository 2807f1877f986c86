/*
 * PAPR: partitions and the performance monitor
 *
 * H_PERFMON, "Linux on Power Architecture Reference", "Performance Monitor
 * Option".  The facility itself is the CPU's (target/ppc/vpmu), or KVM's; a
 * partition that has it may use it whether or not it has asked.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "cpu.h"
#include "hw/ppc/spapr.h"
#include "hw/ppc/spapr_cpu_core.h"

#define MODE_ENABLE           PPC_BIT(0)
#define MODE_HIGH_GRANULARITY PPC_BIT(1) /* of thresholds */
#define MODES                 (MODE_ENABLE | MODE_HIGH_GRANULARITY)

static target_ulong h_perfmon(PowerPCCPU *cpu, SpaprMachineState *spapr,
                              target_ulong opcode, target_ulong *args)
{
    SpaprCpuState *spapr_cpu = spapr_cpu_state(cpu);
    target_ulong set = args[0];
    target_ulong reset = args[1];

    if ((set | reset) & ~MODES || set & reset) {
        return H_PARAMETER;
    }
    if (!cpu->has_pmu || set & MODE_HIGH_GRANULARITY) {
        return H_RESOURCE;
    }
    spapr_cpu->perfmon_modes |= set;
    spapr_cpu->perfmon_modes &= ~reset;
    args[0] = spapr_cpu->perfmon_modes;
    return H_SUCCESS;
}

static void register_hypercall(void)
{
    spapr_register_hypercall(H_PERFMON, h_perfmon);
}

type_init(register_hypercall)
