/*
 * Power virtual PMU: migration state
 *
 * The registers are part of every CPU's state, also of those that QEMU wrote
 * before it had this PMU.  What comes in addition may be missing.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "migration/vmstate.h"
#include "vpmu-internal.h"

static bool driven_by_tcg(void *opaque, int version_id)
{
    PpcVPmu *v = opaque;

    return v->tcg != NULL;
}

static const VMStateDescription vmstate_counters = {
    .name = "cpu/vpmu/counters",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER_TEST(tcg, PpcVPmu, driven_by_tcg,
                                    vmstate_pmu_tcg, PmuTcg),
        VMSTATE_UINT32(bhrb_unread, PpcVPmu),
        VMSTATE_END_OF_LIST()
    }
};

static bool vpmu_needed(void *opaque)
{
    PowerPCCPU *cpu = opaque;

    return cpu->vpmu != NULL;
}

static int vpmu_pre_load(void *opaque)
{
    PowerPCCPU *cpu = opaque;

    if (!cpu->vpmu) {
        error_report("The source's CPU has a PMU and this one has none; "
                     "add pmu=on.");
        return -EINVAL;
    }
    return 0;
}

const VMStateDescription vmstate_ppc_vpmu = {
    .name = "cpu/vpmu",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = vpmu_needed,
    .pre_load = vpmu_pre_load,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(vpmu, PowerPCCPU, vmstate_counters, PpcVPmu),
        VMSTATE_END_OF_LIST()
    }
};
