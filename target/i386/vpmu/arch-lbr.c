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
#include "lbr.h"

/* IA32_LBR_CTL; CTL_KINDS choose the kinds of branches to record */
#define CTL_LBREN       (1ull << 0)
#define CTL_OS          (1ull << 1)
#define CTL_USR         (1ull << 2)
#define CTL_CALL_STACK  (1ull << 3)
#define CTL_KINDS       MAKE_64BIT_MASK(16, 7)

/* CPUID leaf 0x1C */
#define EAX_LINEAR      (1u << 31)
#define EBX_CPL         (1u << 0)
#define EBX_FILTER      (1u << 1)
#define EBX_CALL_STACK  (1u << 2)
#define ECX_MISPREDICT  (1u << 0)
#define ECX_TIMED       (1u << 1)
#define ECX_TYPE        (1u << 2)

/* Bit n of EAX stands for (n + 1) times this many records. */
#define DEPTH_UNIT 8

static bool is_architectural(const X86VPmu *v)
{
    return v->lbr && v->lbr->architectural;
}

unsigned arch_lbr_count_one(const X86VPmu *v)
{
    return is_architectural(v) ? 1 : 0;
}

unsigned arch_lbr_count(const X86VPmu *v)
{
    return is_architectural(v) ? v->lbr_arch.depth : 0;
}

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

bool arch_lbr_hides(const X86VPmu *v, unsigned mode)
{
    return is_architectural(v) && !(wanted_modes(v) >> mode & 1);
}

void arch_lbr_update(X86VPmu *v, bool frozen)
{
    uint64_t ctl = v->lbr_arch.ctl;
    bool record = ctl & CTL_LBREN && !frozen;
    LbrWanted wanted = {
        .kinds = wanted_kinds(ctl),
        .modes = wanted_modes(v),
        .call_stack = ctl & CTL_CALL_STACK,
    };

    if (is_architectural(v)) {
        lbr_record(v, record ? &wanted : NULL);
    }
}

void arch_lbr_reset(X86VPmu *v)
{
    v->lbr_arch = (X86VPmuArchLbr) {
        .depth = is_architectural(v) ? v->lbr->depth : 0,
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

void arch_lbr_note_event(X86VPmu *v)
{
    X86VPmuArchLbr *a = &v->lbr_arch;

    if (is_architectural(v) && lbr_is_recording(v)) {
        a->ler[X86_VPMU_LER_FROM] = lbr_read_from(v, 0);
        a->ler[X86_VPMU_LER_TO] = lbr_read_to(v, 0);
        a->ler[X86_VPMU_LER_INFO] = lbr_read_info(v, 0);
    }
}

/*
 * Registers
 */

uint64_t arch_lbr_ctl_bits(const X86VPmu *v)
{
    return CTL_LBREN | CTL_OS | CTL_USR | CTL_CALL_STACK | CTL_KINDS;
}

uint64_t arch_lbr_read_ctl(X86VPmu *v, unsigned i)
{
    return v->lbr_arch.ctl;
}

static bool is_depth(const X86VPmu *v, uint64_t depth)
{
    return depth && depth % DEPTH_UNIT == 0 && depth <= v->lbr->depth
           && v->lbr->depths >> (depth / DEPTH_UNIT - 1) & 1;
}

bool arch_lbr_depth_is_valid(const X86VPmu *v, uint64_t val)
{
    return is_depth(v, val);
}

uint64_t arch_lbr_read_depth(X86VPmu *v, unsigned i)
{
    return v->lbr_arch.depth;
}

/* Clears all records; the last event record stays. */
void arch_lbr_write_depth(X86VPmu *v, unsigned i, uint64_t val)
{
    v->lbr_arch.depth = val;
    lbr_clear(v, val);
}

/*
 * On silicon, other models also have a last event record; theirs stays as it is
 * in QEMU without this PMU.
 */
uint64_t arch_lbr_read_ler(X86VPmu *v, unsigned i)
{
    return v->lbr_arch.ler[i];
}

void arch_lbr_write_ler(X86VPmu *v, unsigned i, uint64_t val)
{
    if (is_architectural(v)) {
        v->lbr_arch.ler[i] = val;
    }
}

uint64_t arch_lbr_read_ler_info(X86VPmu *v, unsigned i)
{
    return arch_lbr_read_ler(v, X86_VPMU_LER_INFO);
}

void arch_lbr_write_ler_info(X86VPmu *v, unsigned i, uint64_t val)
{
    arch_lbr_write_ler(v, X86_VPMU_LER_INFO, val & lbr_info_bits(v));
}

void arch_lbr_cpuid(const X86VPmu *v, uint32_t *eax, uint32_t *ebx,
                    uint32_t *ecx)
{
    if (is_architectural(v)) {
        *eax = v->lbr->depths | EAX_LINEAR;
        *ebx = EBX_CPL | EBX_FILTER | EBX_CALL_STACK;
        *ecx = ECX_MISPREDICT | ECX_TYPE
               | (lbr_is_timed(v) ? ECX_TIMED : 0);
    }
}

/*
 * Migration
 */

bool arch_lbr_is_used(const X86VPmu *v)
{
    const X86VPmuArchLbr *a = &v->lbr_arch;

    return is_architectural(v)
           && (a->ctl || a->depth != v->lbr->depth
               || !buffer_is_zero(a->ler, sizeof(a->ler)));
}

static bool arch_lbr_needed(void *opaque)
{
    X86CPU *cpu = opaque;

    return is_architectural(cpu->vpmu);
}

static int arch_lbr_pre_load(void *opaque)
{
    X86CPU *cpu = opaque;

    if (!is_architectural(cpu->vpmu)) {
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
