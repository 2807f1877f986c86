/*
 * x86 virtual PMU: migration of registers that only some versions of KVM save
 *
 * These are IA32_DEBUGCTL and the registers of PEBS.  The host's CPU writes the
 * records of PEBS; QEMU only saves the registers.
 *
 * No name begins with the name of another subsection of the CPU, because that
 * one would take it as its own subsection.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "migration/vmstate.h"
#include "internal.h"

/*
 * Locks that take a bus trap.  This does not concern the PMU; Linux sets the
 * bit for ever on CPUs that have it.
 */
#define DEBUGCTL_BUS_LOCKS (1ull << 2)

static bool uses_debugctl(const X86VPmu *v)
{
    return v->debugctl & ~DEBUGCTL_BUS_LOCKS;
}

static bool uses_pebs(const X86VPmu *v)
{
    return v->ds_area || v->pebs_enable || v->pebs_data_cfg;
}

/*
 * QEMU without this PMU refuses the subsection, and guests of old machine types
 * can go there.  So it is sent only if the guest uses these registers.
 */
static bool kept_needed(void *opaque)
{
    X86CPU *cpu = opaque;
    const X86VPmu *v = cpu->vpmu;

    return v && v->engine == X86_VPMU_KVM && cpu->vpmu_props.machine
           && (uses_debugctl(v) || uses_pebs(v));
}

static int kept_pre_load(void *opaque)
{
    X86CPU *cpu = opaque;

    if (!cpu->vpmu || cpu->vpmu->engine != X86_VPMU_KVM) {
        error_report("The source's guest uses PEBS or IA32_DEBUGCTL of "
                     "KVM, which this CPU does not have.");
        return -EINVAL;
    }
    return 0;
}

static int registers_post_load(void *opaque, int version_id)
{
    X86VPmu *v = opaque;

    if ((uses_debugctl(v) && !v->kept.debugctl)
        || (uses_pebs(v) && !v->kept.pebs)) {
        v->debugctl = v->ds_area = v->pebs_enable = v->pebs_data_cfg = 0;
        error_report("The source's guest uses PEBS or IA32_DEBUGCTL, which "
                     "the KVM of this host does not save; use a newer kernel "
                     "there, and the source's CPU model.");
        return -EINVAL;
    }
    return 0;
}

static const VMStateDescription vmstate_registers = {
    .name = "cpu/kvm-vpmu/registers",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = registers_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(debugctl, X86VPmu),
        VMSTATE_UINT64(ds_area, X86VPmu),
        VMSTATE_UINT64(pebs_enable, X86VPmu),
        VMSTATE_UINT64(pebs_data_cfg, X86VPmu),
        VMSTATE_END_OF_LIST()
    }
};

const VMStateDescription vmstate_x86_vpmu_kept = {
    .name = "cpu/kvm-vpmu",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = kept_needed,
    .pre_load = kept_pre_load,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(vpmu, X86CPU, vmstate_registers, X86VPmu),
        VMSTATE_END_OF_LIST()
    }
};
