/*
 * x86 virtual PMU: architectural last branch records
 *
 * This has the registers that control them, and the last event record.  The
 * records are in lbr.c, with the newest in the first registers.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qemu/cutils.h"
#include "qemu/error-report.h"
#include "migration/vmstate.h"
#include "system/tcg.h"
#include "internal.h"
#include "lbr.h"

/* Register numbers that cpu.h does not have. */
#define MSR_IA32_LER_FROM 0x1dd
#define MSR_IA32_LER_INFO 0x1e0

/* IA32_LBR_CTL; CTL_KINDS choose the kinds of branches to record */
#define CTL_LBREN       (1ull << 0)
#define CTL_OS          (1ull << 1)
#define CTL_USR         (1ull << 2)
#define CTL_CALL_STACK  (1ull << 3)
#define CTL_KINDS       MAKE_64BIT_MASK(16, 7)

#define LEAF_ARCH_LBR   0x1c
#define EAX_LINEAR      (1u << 31)
#define EBX_CPL         (1u << 0)
#define EBX_FILTER      (1u << 1)
#define EBX_CALL_STACK  (1u << 2)
#define ECX_MISPREDICT  (1u << 0)
#define ECX_TIMED       (1u << 1)
#define ECX_TYPE        (1u << 2)

/* Bit n of EAX stands for (n + 1) times this many records. */
#define DEPTH_UNIT 8

/*
 * Filters
 */

/* Calls of the next instruction are not recorded (SDM 20.1.2). */
static PmuBranchKinds wanted_kinds(uint64_t ctl)
{
    static const PmuBranchKind kinds[] = {
        [16] = PMU_BRANCH_JUMP | PMU_BRANCH_CONDITIONAL,
        [17] = PMU_BRANCH_JUMP,
        [18] = PMU_BRANCH_INDIRECT_JUMP,
        [19] = PMU_BRANCH_CALL,
        [20] = PMU_BRANCH_INDIRECT_CALL,
        [21] = PMU_BRANCH_RETURN,
        [22] = PMU_BRANCH_FAR,
    };
    PmuBranchKinds wanted = 0;

    for (unsigned bit = 16; bit < ARRAY_SIZE(kinds); bit++) {
        wanted |= (ctl >> bit & 1) << kinds[bit];
    }
    return wanted;
}

static PmuModes wanted_modes(const X86VPmu *v)
{
    return x86_vpmu_modes(v->lbr_arch.ctl & CTL_OS, v->lbr_arch.ctl & CTL_USR);
}

/*
 * The record of a branch from a mode that is filtered out has all ones as its
 * address.
 */
static bool arch_lbr_hides(const X86VPmu *v, unsigned mode)
{
    return arch_lbr_is_there(v) && !(wanted_modes(v) >> mode & 1);
}

static void arch_lbr_update(X86VPmu *v)
{
    uint64_t ctl = v->lbr_arch.ctl;
    bool record = ctl & CTL_LBREN && !lbr_is_frozen(v);
    LbrWanted wanted = {
        .kinds = wanted_kinds(ctl),
        .modes = wanted_modes(v),
        .call_stack = ctl & CTL_CALL_STACK,
    };

    if (arch_lbr_is_there(v)) {
        lbr_record(v, record ? &wanted : NULL);
    }
}

static void arch_lbr_reset(X86VPmu *v)
{
    v->lbr_arch = (X86VPmuArchLbr) {
        .depth = arch_lbr_is_there(v) ? v->lbr->depth : 0,
    };
}

bool arch_lbr_is_enabled(const X86VPmu *v)
{
    return v->lbr_arch.ctl & CTL_LBREN;
}

void arch_lbr_enable(X86VPmu *v, bool enable)
{
    v->lbr_arch.ctl &= ~CTL_LBREN;
    v->lbr_arch.ctl |= enable ? CTL_LBREN : 0;
}

void x86_vpmu_far_branch(X86CPU *cpu, uint64_t from, unsigned mode)
{
    const bool hidden = cpu->vpmu && arch_lbr_hides(cpu->vpmu, mode);

    if (tcg_enabled()) {
        pmu_tcg_far_branch(CPU(cpu), from, hidden ? UINT64_MAX : from);
    }
}

void x86_vpmu_event_delivered(X86CPU *cpu)
{
    X86VPmu *v = cpu->vpmu;

    if (v && arch_lbr_is_there(v) && lbr_is_recording(v)) {
        lbr_read(v, 0, v->lbr_arch.ler);
    }
}

/*
 * Registers
 */

static uint64_t arch_lbr_ctl_bits(const X86VPmu *v)
{
    return CTL_LBREN | CTL_OS | CTL_USR | CTL_CALL_STACK | CTL_KINDS;
}

static void arch_lbr_write_ctl(X86VPmu *v, unsigned i, uint64_t val)
{
    arch_lbr_update(v);
}

static bool is_depth(const X86VPmu *v, uint64_t depth)
{
    return depth && depth % DEPTH_UNIT == 0 && depth <= v->lbr->depth
           && v->lbr->depths >> (depth / DEPTH_UNIT - 1) & 1;
}

/* Clears all records; the last event record stays. */
static void arch_lbr_write_depth(X86VPmu *v, unsigned i, uint64_t val)
{
    lbr_clear(v, val);
}

/*
 * On silicon, other models also have a last event record; theirs stays as it is
 * in QEMU without this PMU.
 */
static uint64_t arch_lbr_read_ler(X86VPmu *v, unsigned i)
{
    return v->lbr_arch.ler[i];
}

static void arch_lbr_write_ler(X86VPmu *v, unsigned i, uint64_t val)
{
    if (arch_lbr_is_there(v)) {
        v->lbr_arch.ler[i] = val;
    }
}

static void arch_lbr_write_ler_info(X86VPmu *v, unsigned i, uint64_t val)
{
    v->lbr_arch.ler[X86_VPMU_LER_INFO] &= lbr_info_bits(v);
}

static unsigned arch_lbr_count_one(const X86VPmu *v)
{
    return arch_lbr_is_there(v) ? 1 : 0;
}

static const X86VPmuMsr arch_lbr_msrs[] = {
    { MSR_ARCH_LBR_CTL, 1, 1, arch_lbr_count_one,
      arch_lbr_ctl_bits, X86_VPMU_FIELD(lbr_arch.ctl), arch_lbr_write_ctl },
    { MSR_ARCH_LBR_DEPTH, 1, 1, arch_lbr_count_one,
      x86_vpmu_any_bits, X86_VPMU_FIELD(lbr_arch.depth), arch_lbr_write_depth,
      .valid = is_depth },
    { MSR_IA32_LER_FROM, 2, 1, NULL,
      x86_vpmu_any_bits, 0, arch_lbr_write_ler, arch_lbr_read_ler },
    { MSR_IA32_LER_INFO, 1, 1, arch_lbr_count_one,
      x86_vpmu_any_bits, X86_VPMU_FIELD(lbr_arch.ler[X86_VPMU_LER_INFO]),
      arch_lbr_write_ler_info },
    { }
};

/*
 * CPUID
 */

static uint64_t arch_lbr_offers(X86CPU *cpu, FeatureWord w)
{
    const X86VPmuLbr *lbr = x86_vpmu_wanted_lbr(cpu);

    return w == FEAT_7_0_EDX && lbr && lbr->architectural
           ? CPUID_7_0_EDX_ARCH_LBR : 0;
}

static void arch_lbr_cpuid(const X86VPmu *v, uint32_t leaf, uint32_t *eax,
                           uint32_t *ebx, uint32_t *ecx, uint32_t *edx)
{
    if (leaf == LEAF_ARCH_LBR && arch_lbr_is_there(v)) {
        *eax = v->lbr->depths | EAX_LINEAR;
        *ebx = EBX_CPL | EBX_FILTER | EBX_CALL_STACK;
        *ecx = ECX_MISPREDICT | ECX_TYPE
               | (lbr_is_timed(v) ? ECX_TIMED : 0);
    }
}

const X86VPmuFeature arch_lbr = {
    .msrs = arch_lbr_msrs,
    .offers = arch_lbr_offers,
    .reset = arch_lbr_reset,
    .cpuid = arch_lbr_cpuid,
    .update = arch_lbr_update,
};

/*
 * Migration
 */

bool arch_lbr_is_used(const X86VPmu *v)
{
    const X86VPmuArchLbr *a = &v->lbr_arch;

    return arch_lbr_is_there(v)
           && (a->ctl || a->depth != v->lbr->depth
               || !buffer_is_zero(a->ler, sizeof(a->ler)));
}

static bool arch_lbr_needed(void *opaque)
{
    X86CPU *cpu = opaque;

    return arch_lbr_is_there(cpu->vpmu);
}

static int arch_lbr_pre_load(void *opaque)
{
    X86CPU *cpu = opaque;

    if (!arch_lbr_is_there(cpu->vpmu)) {
        error_report("The source's CPU has architectural branch records, and "
                     "this one does not.");
        return -EINVAL;
    }
    return 0;
}

static int arch_lbr_post_load(void *opaque, int version_id)
{
    X86CPU *cpu = opaque;
    X86VPmu *v = cpu->vpmu;

    if (v->lbr_arch.ctl & ~arch_lbr_ctl_bits(v)
        || !is_depth(v, v->lbr_arch.depth)) {
        error_report("The source's branch records have control bits or a depth "
                     "that this CPU does not have.");
        arch_lbr_reset(v);
        return -EINVAL;
    }
    v->lbr_arch.ler[X86_VPMU_LER_INFO] &= lbr_info_bits(v);
    lbr_set_depth(v, v->lbr_arch.depth);
    return 0;
}

static const VMStateDescription vmstate_registers = {
    .name = "cpu/vpmu/lbr/arch/registers",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(lbr_arch.ctl, X86VPmu),
        VMSTATE_UINT64(lbr_arch.depth, X86VPmu),
        VMSTATE_UINT64_ARRAY(lbr_arch.ler, X86VPmu, X86_VPMU_LER__MAX),
        VMSTATE_END_OF_LIST()
    }
};

const VMStateDescription vmstate_x86_vpmu_arch_lbr = {
    .name = "cpu/vpmu/lbr/arch",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = arch_lbr_needed,
    .pre_load = arch_lbr_pre_load,
    .post_load = arch_lbr_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(vpmu, X86CPU, vmstate_registers, X86VPmu),
        VMSTATE_END_OF_LIST()
    }
};
