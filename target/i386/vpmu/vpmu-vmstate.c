/*
 * x86 virtual PMU: migration state
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "hw/pmu/pmu-vmstate.h"
#include "vpmu-internal.h"

#define SAME(property) \
    "Source and destination must have the same " property "."

static int registers_pre_save(void *opaque)
{
    X86VPmu *v = opaque;

    pmu_fold(v->pmu);
    return 0;
}

static int registers_post_load(void *opaque, int version_id)
{
    X86VPmu *v = opaque;

    pmu_rebase(v->pmu);
    pmu_begin(v->pmu);
    v->ops->resume(v);
    pmu_commit(v->pmu);
    return 0;
}

static bool driven_by_tcg(void *opaque, int version_id)
{
    X86VPmu *v = opaque;

    return v->tcg != NULL;
}

static const VMStateDescription vmstate_registers = {
    .name = "cpu/vpmu/registers",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_save = registers_pre_save,
    .post_load = registers_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32_EQUAL(vendor, X86VPmu, SAME("vendor")),
        VMSTATE_UINT32_EQUAL(version, X86VPmu,
                             SAME("pmu-version, or perfmon-v2,")),
        VMSTATE_UINT32_EQUAL(nr_gp, X86VPmu, SAME("pmu-gp-counters")),
        VMSTATE_UINT32_EQUAL(nr_fixed, X86VPmu, SAME("pmu-fixed-counters")),
        VMSTATE_UINT64_ARRAY(evtsel, X86VPmu, X86_VPMU_MAX_GP),
        VMSTATE_UINT64(fixed_ctrl, X86VPmu),
        VMSTATE_UINT64(global_ctrl, X86VPmu),
        VMSTATE_UINT64(global_status, X86VPmu),
        VMSTATE_UINT64(debugctl, X86VPmu),
        VMSTATE_STRUCT_POINTER(pmu, X86VPmu, vmstate_pmu, Pmu),
        VMSTATE_STRUCT_POINTER_TEST(tcg, X86VPmu, driven_by_tcg,
                                    vmstate_pmu_tcg, PmuTcg),
        VMSTATE_END_OF_LIST()
    }
};

static bool vpmu_needed(void *opaque)
{
    X86CPU *cpu = opaque;

    return cpu->vpmu != NULL;
}

static int vpmu_pre_load(void *opaque)
{
    X86CPU *cpu = opaque;

    if (!cpu->vpmu) {
        error_report("The source's CPU has a PMU and this one has none; "
                     "add pmu=on.");
        return -EINVAL;
    }
    return 0;
}

const VMStateDescription vmstate_x86_vpmu = {
    .name = "cpu/vpmu",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = vpmu_needed,
    .pre_load = vpmu_pre_load,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(vpmu, X86CPU, vmstate_registers, X86VPmu),
        VMSTATE_END_OF_LIST()
    }
};
