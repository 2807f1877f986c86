/*
 * x86 virtual PMU: last branch records
 *
 * The recorder of hw/pmu has the branches.  A register that the guest has
 * written holds the written value; in the recorder, such a record has its own
 * kind.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qemu/cutils.h"
#include "qemu/error-report.h"
#include "migration/vmstate.h"
#include "system/tcg.h"
#include "hw/pmu/pmu-monitor.h"
#include "guest.h"
#include "debugctl.h"
#include "internal.h"
#include "lbr.h"

/* Register numbers that cpu.h does not have. */
#define MSR_LBR_SELECT      0x1c8
#define MSR_LBR_TOS         0x1c9
#define MSR_CORE_LBR_FROM   0x40
#define MSR_CORE_LBR_TO     0x60
#define MSR_LBR_FROM        0x680
#define MSR_LBR_TO          0x6c0
#define MSR_LBR_INFO        0xdc0
#define MSR_AMD_LBR_SELECT  0xc000010e
#define MSR_DBG_EXTN_CFG    0xc000010f
#define MSR_SAMP_BR_FROM    0xc0010300
#define MSR_SAMP_BR_TO      0xc0010301

/*
 * MSR_LBR_SELECT, and AMD's LBR_SELECT: bits that exclude branches.  CALLSTACK,
 * which is Intel's, is the other way round.
 */
#define SELECT_CPL_EQ_0     (1u << 0)
#define SELECT_CPL_NEQ_0    (1u << 1)
#define SELECT_CALLSTACK    (1u << 9)
#define SELECT_FILTERS      MAKE_64BIT_MASK(0, 9)

/*
 * The kind, in the recorder, of values that the guest has written.  A record
 * that a return has taken away has kind 0, and its registers are 0.
 */
#define WRITTEN PMU_BRANCH__MAX

/* Streams have a fixed number of records. */
QEMU_BUILD_BUG_ON(PMU_RECORDER_MAX != 32);

/* The contents of MSR_LASTBRANCH_x_FROM_IP above the address, or elsewhere */
#define FORMAT_LINEAR       1
#define FORMAT_OFFSETS      2   /* in the code segment, which is flat */
#define FORMAT_FLAGS        3
#define FORMAT_FLAGS_TSX    4
#define FORMAT_INFO         5
#define FORMAT_TIME         6
#define FORMAT_INFO_NO_TSX  7
#define FORMAT_ARCH         0x3f

/*
 * With a model of the core: where FROM has flags, or else in MSR_LBR_INFO_x and
 * IA32_LBR_x_INFO
 */
#define MISPREDICTED        (1ull << 63)

/* FORMAT_TIME has cycles above the address of the target. */
#define TIME_SHIFT          48

/* The most cycles, in any format */
#define MAX_CYCLES          0xffff

/* MSR_LBR_INFO_x, and in addition IA32_LBR_x_INFO */
#define INFO_BITS (MAKE_64BIT_MASK(61, 3) | MAX_CYCLES)
#define INFO_ARCH_BITS MAKE_64BIT_MASK(56, 5)
#define INFO_TYPE_SHIFT 56
#define INFO_CYCLES_VALID (1ull << 60)

/* IA32_LBR_x_INFO: the kind of a branch */
enum {
    TYPE_CONDITIONAL = 0,
    TYPE_INDIRECT_JUMP = 1,
    TYPE_JUMP = 2,
    TYPE_INDIRECT_CALL = 3,
    TYPE_CALL = 4,
    TYPE_RETURN = 5,
    TYPE_OTHER = 8,
};

/* CPUID leaf 0x80000022 */
#define EAX_LBR_V2          (1u << 1)
#define EAX_FREEZE          (1u << 2)
#define EBX_NR_RECORDS      4

/* DBG_EXTN_CFG */
#define AMD_CONFIG_ON       (1ull << 6)

/* SAMP_BR_TO: flags above the address; FROM has one flag there */
#define AMD_FLAGS_FROM      1
#define AMD_FLAGS_TO        3
#define AMD_TO_VALID        (1ull << 63)

const X86VPmuLbr lbr_of_core = {
    .depth = 4, .format = FORMAT_OFFSETS, .unfiltered = true,
};
const X86VPmuLbr lbr_of_bonnell = {
    .depth = 8, .format = FORMAT_LINEAR, .unfiltered = true,
};
/* On silicon they have FORMAT_FLAGS, although they report this format. */
const X86VPmuLbr lbr_of_knights = { .depth = 8, .format = FORMAT_LINEAR };
const X86VPmuLbr lbr_of_nehalem = { .depth = 16, .format = FORMAT_FLAGS };
const X86VPmuLbr lbr_of_haswell = {
    .depth = 16, .format = FORMAT_FLAGS_TSX, .call_stack = true,
};
const X86VPmuLbr lbr_of_skylake = {
    .depth = 32, .format = FORMAT_INFO, .call_stack = true,
};
const X86VPmuLbr lbr_of_goldmont = {
    .depth = 32, .format = FORMAT_TIME, .call_stack = true,
};
const X86VPmuLbr lbr_of_tremont = {
    .depth = 32, .format = FORMAT_INFO_NO_TSX, .call_stack = true,
};
/* 8, 16 or 32 of them */
const X86VPmuLbr lbr_of_sapphire_rapids = {
    .depth = 32, .depths = 0xb, .format = FORMAT_ARCH, .call_stack = true,
    .newest_is_first = true, .architectural = true,
};
const X86VPmuLbr lbr_of_zen4 = {
    .depth = 16, .newest_is_first = true, .valid_in_to = true,
};

static bool is_legacy(const X86VPmu *v)
{
    return v->lbr && !v->lbr->architectural;
}

/* The recorder, which has read all branches up to now */
static PmuRecorder *recorder(const X86VPmu *v)
{
    if (tcg_enabled()) {
        pmu_tcg_see_branches(CPU(v->cpu));
    }
    return &v->unit->recorder;
}

/*
 * Filters
 */

static PmuBranchKinds unfiltered(uint64_t select)
{
    static const PmuBranchKind kinds[] = {
        [2] = PMU_BRANCH_JUMP | PMU_BRANCH_CONDITIONAL,
        [3] = PMU_BRANCH_CALL,
        [4] = PMU_BRANCH_INDIRECT_CALL,
        [5] = PMU_BRANCH_RETURN,
        [6] = PMU_BRANCH_INDIRECT_JUMP,
        [7] = PMU_BRANCH_JUMP,
        [8] = PMU_BRANCH_FAR,
    };
    PmuBranchKinds wanted = 0;

    for (unsigned bit = 2; bit < ARRAY_SIZE(kinds); bit++) {
        wanted |= select >> bit & 1 ? 0 : 1u << kinds[bit];
    }
    /* A return does not take calls of the next instruction away. */
    if (wanted >> PMU_BRANCH_CALL & 1 && !(select & SELECT_CALLSTACK)) {
        wanted |= 1u << PMU_BRANCH_CALL_NEXT;
    }
    return wanted;
}

static bool has_info(const X86VPmuLbr *lbr)
{
    return lbr->format == FORMAT_INFO || lbr->format == FORMAT_INFO_NO_TSX
           || lbr->architectural;
}

bool lbr_is_timed(const X86VPmu *v)
{
    return (has_info(v->lbr) || v->lbr->format == FORMAT_TIME)
           && !pmu_cycles_model(&v->cpu->vpmu_props.cycles).from_clock;
}

static PmuTcgRecord what_to_record(const X86VPmu *v, bool record)
{
    return !record ? PMU_TCG_RECORD_NONE
           : lbr_is_timed(v) ? PMU_TCG_RECORD_TIME : PMU_TCG_RECORD_BRANCHES;
}

/* If all kinds of x86 are wanted, also set the others: that is faster. */
static PmuBranchKinds all_or_some(PmuBranchKinds wanted)
{
    const PmuBranchKinds all =
        MAKE_64BIT_MASK(PMU_BRANCH_JUMP, PMU_BRANCH_CALL_NEXT)
        | 1u << (PMU_BRANCH_JUMP | PMU_BRANCH_CONDITIONAL);

    return wanted == all ? ~0u : wanted;
}

/* Not in SMM: an SMI puts the state of branch records aside and clears it. */
void lbr_record(X86VPmu *v, const LbrWanted *wanted)
{
    PmuModes modes = wanted ? wanted->modes & ~X86_VPMU_MODES_SMM : 0;
    PmuBranchKinds kinds = wanted ? all_or_some(wanted->kinds) : 0;

    for (unsigned mode = 0; mode < PMU_MAX_MODES; mode++) {
        recorder(v)->wanted[mode] = modes >> mode & 1 ? kinds : 0;
    }
    recorder(v)->call_stack = wanted && wanted->call_stack;
    if (tcg_enabled()) {
        pmu_tcg_record(v->unit->tcg, what_to_record(v, wanted));
    }
}

bool lbr_is_recording(const X86VPmu *v)
{
    return recorder(v)->wanted[x86_vpmu_mode(v->cpu->env.hflags)
                               & ~X86_VPMU_MODE_USER]
           | recorder(v)->wanted[x86_vpmu_mode(v->cpu->env.hflags)
                                 | X86_VPMU_MODE_USER];
}

/* Whether the registers besides the filter's enable recording */
static bool lbr_is_on(const X86VPmu *v)
{
    return arch_lbr_is_there(v) ? arch_lbr_is_enabled(v)
           : v->lbr->valid_in_to ? v->dbg_extn_cfg
           : v->debugctl & X86_DEBUGCTL_LBR;
}

static void lbr_update(X86VPmu *v)
{
    const LbrWanted wanted = {
        .kinds = unfiltered(v->lbr_select),
        .modes = x86_vpmu_modes(!(v->lbr_select & SELECT_CPL_EQ_0),
                                !(v->lbr_select & SELECT_CPL_NEQ_0)),
        .call_stack = v->lbr_select & SELECT_CALLSTACK,
    };

    if (is_legacy(v)) {
        lbr_record(v, lbr_is_on(v) && !lbr_is_frozen(v) ? &wanted : NULL);
    }
}

/* Branches on the way to the handler are not recorded any more. */
static void lbr_freeze(X86VPmu *v)
{
    if (!(v->debugctl & X86_DEBUGCTL_FREEZE_LBRS)) {
        return;
    }
    if (x86_vpmu_freezes_in_status(v)) {
        v->global_status |= X86_STATUS_LBRS_FROZEN;
    } else {
        v->debugctl &= ~X86_DEBUGCTL_LBR;
    }
    X86_VPMU_CALL(v->ops, update, v);
}

static uint64_t lbr_tos_bits(const X86VPmu *v)
{
    return recorder(v)->last / sizeof(uint64_t);
}

static uint64_t newest(const X86VPmu *v)
{
    return (recorder(v)->next / sizeof(uint64_t) - 1) & lbr_tos_bits(v);
}

static uint64_t lbr_read_tos(X86VPmu *v, unsigned i)
{
    return newest(v);
}

static void lbr_write_tos(X86VPmu *v, unsigned i, uint64_t val)
{
    recorder(v)->next = (val + 1) * sizeof(uint64_t) & recorder(v)->last;
}

void lbr_set_depth(X86VPmu *v, unsigned depth)
{
    recorder(v)->last = (depth - 1) * sizeof(uint64_t);
}

void lbr_clear(X86VPmu *v, unsigned depth)
{
    memset(v->lbr_info, 0, sizeof(v->lbr_info));
    pmu_recorder_clear(recorder(v));
    lbr_set_depth(v, depth);
    lbr_write_tos(v, 0, 0);
}

static void lbr_init(X86VPmu *v)
{
    v->lbr = x86_vpmu_wanted_lbr(v->cpu);
}

static void lbr_reset(X86VPmu *v)
{
    v->lbr_select = 0;
    v->dbg_extn_cfg = 0;
    if (v->lbr) {
        pmu_recorder_init(recorder(v), v->lbr->depth);
        lbr_clear(v, v->lbr->depth);
        lbr_record(v, NULL);
    }
}

/*
 * Registers
 */

static unsigned lbr_count_one(const X86VPmu *v)
{
    return v->lbr ? 1 : 0;
}

static unsigned lbr_count_all(const X86VPmu *v)
{
    return v->lbr ? v->lbr->depth : 0;
}

static unsigned lbr_count_tos(const X86VPmu *v)
{
    return is_legacy(v) ? 1 : 0;
}

static unsigned lbr_count_select(const X86VPmu *v)
{
    return is_legacy(v) && !v->lbr->unfiltered ? 1 : 0;
}

static unsigned lbr_count_legacy(const X86VPmu *v)
{
    return is_legacy(v) && !v->lbr->unfiltered ? v->lbr->depth : 0;
}

static unsigned lbr_count_unfiltered(const X86VPmu *v)
{
    return is_legacy(v) && v->lbr->unfiltered ? v->lbr->depth : 0;
}

static unsigned lbr_count_info(const X86VPmu *v)
{
    return is_legacy(v) && has_info(v->lbr) ? v->lbr->depth : 0;
}

static unsigned lbr_count_arch(const X86VPmu *v)
{
    return arch_lbr_is_there(v) ? v->lbr_arch.depth : 0;
}

static uint64_t lbr_select_bits(const X86VPmu *v)
{
    return v->lbr->unfiltered ? 0
           : SELECT_FILTERS | (v->lbr->call_stack ? SELECT_CALLSTACK : 0);
}

static uint64_t lbr_config_bits(const X86VPmu *v)
{
    return v->lbr->valid_in_to ? AMD_CONFIG_ON : 0;
}

static void lbr_write_control(X86VPmu *v, unsigned i, uint64_t val)
{
    lbr_update(v);
}

/* The slot of the recorder that is shown in the @i-th registers */
static unsigned slot_of(const X86VPmu *v, unsigned i)
{
    return v->lbr->newest_is_first ? (newest(v) - i) & lbr_tos_bits(v) : i;
}

static bool is_recorded(const PmuRecorder *r, unsigned slot)
{
    return r->kind[slot] && r->kind[slot] != WRITTEN;
}

static unsigned flags_in_from(const X86VPmuLbr *lbr)
{
    switch (lbr->format) {
    case FORMAT_LINEAR:
        return lbr->unfiltered ? 0 : 1;
    case FORMAT_FLAGS:
    case FORMAT_TIME:
        return 1;
    case FORMAT_FLAGS_TSX:
        return 3;
    default:
        return lbr->valid_in_to ? AMD_FLAGS_FROM : 0;
    }
}

static uint64_t misprediction(const PmuRecorder *r, unsigned slot)
{
    return r->mispredicted >> slot & 1 ? MISPREDICTED : 0;
}

/*
 * There are no transactions and no speculation: such flags of recorded branches
 * are 0.
 */
static uint64_t shown_from(const X86VPmu *v, unsigned slot)
{
    const PmuRecorder *r = recorder(v);
    const unsigned flags = flags_in_from(v->lbr);

    return is_recorded(r, slot)
           ? extract64(r->from[slot], 0, 64 - flags)
             | (flags ? misprediction(r, slot) : 0)
           : r->from[slot];
}

/* Since the record before, at most as many as fit; 0 if not known */
static uint64_t recorded_cycles(const X86VPmu *v, unsigned slot)
{
    uint64_t cycles = 0;

    if (lbr_is_timed(v) && tcg_enabled()) {
        pmu_tcg_cycles(v->unit->tcg, recorder(v)->time[slot], &cycles);
    }
    return MIN(cycles, MAX_CYCLES);
}

static uint64_t recorded_to(const X86VPmu *v, unsigned slot)
{
    uint64_t to = recorder(v)->to[slot];

    if (v->lbr->format == FORMAT_TIME) {
        return extract64(to, 0, TIME_SHIFT)
               | recorded_cycles(v, slot) << TIME_SHIFT;
    }
    return v->lbr->valid_in_to
           ? extract64(to, 0, 64 - AMD_FLAGS_TO) | AMD_TO_VALID : to;
}

static uint64_t shown_to(const X86VPmu *v, unsigned slot)
{
    const PmuRecorder *r = recorder(v);

    return is_recorded(r, slot) ? recorded_to(v, slot) : r->to[slot];
}

static uint64_t type_of(PmuBranchKind kind)
{
    static const uint8_t types[] = {
        [PMU_BRANCH_JUMP] = TYPE_JUMP,
        [PMU_BRANCH_INDIRECT_JUMP] = TYPE_INDIRECT_JUMP,
        [PMU_BRANCH_CALL] = TYPE_CALL,
        [PMU_BRANCH_INDIRECT_CALL] = TYPE_INDIRECT_CALL,
        [PMU_BRANCH_RETURN] = TYPE_RETURN,
        [PMU_BRANCH_FAR] = TYPE_OTHER,
        [PMU_BRANCH_CALL_NEXT] = TYPE_CALL,
    };

    return kind & PMU_BRANCH_CONDITIONAL ? TYPE_CONDITIONAL : types[kind];
}

static uint64_t recorded_info(const X86VPmu *v, unsigned slot)
{
    uint64_t info = recorded_cycles(v, slot) | misprediction(recorder(v), slot);

    if (v->lbr->architectural) {
        info |= type_of(recorder(v)->kind[slot]) << INFO_TYPE_SHIFT;
        info |= lbr_is_timed(v) && tcg_enabled() ? INFO_CYCLES_VALID : 0;
    }
    return info;
}

static uint64_t shown_info(const X86VPmu *v, unsigned slot)
{
    const PmuRecorder *r = recorder(v);

    if (is_recorded(r, slot)) {
        return recorded_info(v, slot);
    }
    return r->kind[slot] == WRITTEN ? v->lbr_info[slot] : 0;
}

static uint64_t lbr_read_from(X86VPmu *v, unsigned i)
{
    return shown_from(v, slot_of(v, i));
}

static uint64_t lbr_read_to(X86VPmu *v, unsigned i)
{
    return shown_to(v, slot_of(v, i));
}

static uint64_t lbr_read_info(X86VPmu *v, unsigned i)
{
    return shown_info(v, slot_of(v, i));
}

uint64_t lbr_info_bits(const X86VPmu *v)
{
    return INFO_BITS | (v->lbr && v->lbr->architectural ? INFO_ARCH_BITS : 0);
}

/* From now on the registers of a record hold the written values. */
static void take_over(X86VPmu *v, unsigned slot)
{
    PmuRecorder *r = recorder(v);

    r->from[slot] = shown_from(v, slot);
    r->to[slot] = shown_to(v, slot);
    v->lbr_info[slot] = has_info(v->lbr) ? shown_info(v, slot) : 0;
    r->kind[slot] = WRITTEN;
}

static void lbr_write_from(X86VPmu *v, unsigned i, uint64_t val)
{
    take_over(v, slot_of(v, i));
    recorder(v)->from[slot_of(v, i)] = val;
}

static void lbr_write_to(X86VPmu *v, unsigned i, uint64_t val)
{
    take_over(v, slot_of(v, i));
    recorder(v)->to[slot_of(v, i)] = val;
}

static void lbr_write_info(X86VPmu *v, unsigned i, uint64_t val)
{
    take_over(v, slot_of(v, i));
    v->lbr_info[slot_of(v, i)] = val & lbr_info_bits(v);
}

static const X86VPmuMsr intel_lbr_msrs[] = {
    { MSR_LBR_SELECT, 1, 1, lbr_count_select,
      lbr_select_bits, X86_VPMU_FIELD(lbr_select), lbr_write_control },
    { MSR_LBR_TOS, 1, 1, lbr_count_tos,
      lbr_tos_bits, 0, lbr_write_tos, lbr_read_tos },
    { MSR_LBR_FROM, X86_VPMU_MAX_LBR, 1, lbr_count_legacy,
      x86_vpmu_any_bits, 0, lbr_write_from, lbr_read_from },
    { MSR_LBR_TO, X86_VPMU_MAX_LBR, 1, lbr_count_legacy,
      x86_vpmu_any_bits, 0, lbr_write_to, lbr_read_to },
    { MSR_LBR_INFO, X86_VPMU_MAX_LBR, 1, lbr_count_info,
      lbr_info_bits, 0, lbr_write_info, lbr_read_info },
    /* After the last one, software that counts registers has to fault. */
    { MSR_ARCH_LBR_FROM_0, 2 * X86_VPMU_MAX_LBR, 1, lbr_count_arch,
      x86_vpmu_any_bits, 0, lbr_write_from, lbr_read_from },
    { MSR_ARCH_LBR_TO_0, 2 * X86_VPMU_MAX_LBR, 1, lbr_count_arch,
      x86_vpmu_any_bits, 0, lbr_write_to, lbr_read_to },
    { MSR_ARCH_LBR_INFO_0, 2 * X86_VPMU_MAX_LBR, 1, lbr_count_arch,
      x86_vpmu_any_bits, 0, lbr_write_info, lbr_read_info },
    /* Software that counts these registers has to fault as well. */
    { MSR_CORE_LBR_FROM, 8, 1, lbr_count_unfiltered,
      x86_vpmu_any_bits, 0, lbr_write_from, lbr_read_from },
    { MSR_CORE_LBR_TO, 8, 1, lbr_count_unfiltered,
      x86_vpmu_any_bits, 0, lbr_write_to, lbr_read_to },
    { }
};

static const X86VPmuMsr amd_lbr_msrs[] = {
    { MSR_AMD_LBR_SELECT, 1, 1, lbr_count_one,
      lbr_select_bits, X86_VPMU_FIELD(lbr_select), lbr_write_control },
    { MSR_DBG_EXTN_CFG, 1, 1, lbr_count_one,
      lbr_config_bits, X86_VPMU_FIELD(dbg_extn_cfg), lbr_write_control },
    { MSR_SAMP_BR_FROM, X86_VPMU_MAX_LBR / 2, 2, lbr_count_all,
      x86_vpmu_any_bits, 0, lbr_write_from, lbr_read_from },
    { MSR_SAMP_BR_TO, X86_VPMU_MAX_LBR / 2, 2, lbr_count_all,
      x86_vpmu_any_bits, 0, lbr_write_to, lbr_read_to },
    { }
};

/* A register of an older record has the next lower number, or the last one. */
bool lbr_read(const X86VPmu *v, unsigned age,
              uint64_t record[X86_VPMU_LER__MAX])
{
    const unsigned depth = arch_lbr_is_there(v) ? lbr_count_arch(v)
                                                : lbr_count_all(v);
    unsigned slot;

    if (age >= depth || !lbr_is_on(v)) {
        return false;
    }
    slot = (newest(v) - age) & lbr_tos_bits(v);
    record[X86_VPMU_LER_FROM] = shown_from(v, slot);
    record[X86_VPMU_LER_TO] = shown_to(v, slot);
    record[X86_VPMU_LER_INFO] = has_info(v->lbr) ? shown_info(v, slot) : 0;
    return true;
}

static uint64_t intel_lbr_debugctl(const X86VPmu *v)
{
    return (is_legacy(v) ? X86_DEBUGCTL_LBR : 0)
           | (v->lbr && v->version >= 2 ? X86_DEBUGCTL_FREEZE_LBRS : 0);
}

static uint64_t amd_lbr_debugctl(const X86VPmu *v)
{
    return v->lbr ? X86_DEBUGCTL_FREEZE_LBRS | X86_DEBUGCTL_FREEZE_COUNTERS : 0;
}

static uint64_t amd_lbr_status(const X86VPmu *v)
{
    return v->lbr ? X86_STATUS_LBRS_FROZEN | X86_STATUS_COUNTERS_FROZEN : 0;
}

/*
 * CPUID and the monitor
 */

static uint64_t lbr_offers(X86CPU *cpu, FeatureWord w)
{
    const X86VPmuLbr *lbr = x86_vpmu_wanted_lbr(cpu);

    return w == FEAT_PERF_CAPABILITIES && lbr ? lbr->format : 0;
}

static void amd_lbr_cpuid(const X86VPmu *v, uint32_t leaf, uint32_t *eax,
                          uint32_t *ebx, uint32_t *ecx, uint32_t *edx)
{
    if (leaf == AMD_LEAF_PERFMON && v->lbr) {
        *eax |= EAX_LBR_V2 | EAX_FREEZE;
        *ebx |= v->lbr->depth << EBX_NR_RECORDS;
    }
}

/* Branches that the kernel records are not known. */
static void lbr_describe(const X86VPmu *v, PmuInfo *info)
{
    if (v->lbr && v->engine != X86_VPMU_KVM) {
        info->records = pmu_describe_records(&v->unit->recorder,
                                             &x86_pmu_guest_ops);
    }
}

/*
 * Migration: all records as if the guest had written them
 */

/* Whether the time of the next record has begun */
static bool is_under_way(const X86VPmu *v)
{
    return lbr_is_timed(v) && recorder(v)->since;
}

static bool lbr_is_used(const X86VPmu *v)
{
    const PmuRecorder *r = recorder(v);

    if (!v->lbr) {
        return false;
    }
    return v->lbr_select || v->dbg_extn_cfg || arch_lbr_is_used(v) || newest(v)
           || is_under_way(v)
           || !buffer_is_zero(r->from, sizeof(r->from))
           || !buffer_is_zero(r->to, sizeof(r->to))
           || !buffer_is_zero(v->lbr_info, sizeof(v->lbr_info));
}

static bool lbr_needed(void *opaque)
{
    X86CPU *cpu = opaque;

    return cpu->vpmu && lbr_is_used(cpu->vpmu);
}

static int lbr_pre_save(void *opaque)
{
    X86CPU *cpu = opaque;

    for (unsigned i = 0; i < X86_VPMU_MAX_LBR; i++) {
        take_over(cpu->vpmu, i);
    }
    return 0;
}

static int lbr_pre_load(void *opaque)
{
    X86CPU *cpu = opaque;

    if (!cpu->vpmu || !cpu->vpmu->lbr) {
        error_report("The source's CPU has branch records and this one does "
                     "not; add lbr=on.");
        return -EINVAL;
    }
    return 0;
}

/* Recording begins anew, but the time of the next record continues. */
static int lbr_post_load(void *opaque, int version_id)
{
    X86CPU *cpu = opaque;
    X86VPmu *v = cpu->vpmu;
    PmuRecorder *r = recorder(v);
    uint64_t since = r->since;

    v->lbr_select &= lbr_select_bits(v);
    v->dbg_extn_cfg &= lbr_config_bits(v);
    for (unsigned i = 0; i < X86_VPMU_MAX_LBR; i++) {
        v->lbr_info[i] &= lbr_info_bits(v);
    }
    pmu_begin(v->pmu);
    v->ops->update(v);
    pmu_commit(v->pmu);
    r->since = since;
    return 0;
}

/*
 * A stream may hold any value.  Later parts of it may be refused, and the guest
 * may go on recording.
 */
static int records_post_load(void *opaque, int version_id)
{
    PmuRecorder *r = opaque;

    r->next &= r->last;
    for (unsigned i = 0; i < PMU_RECORDER_MAX; i++) {
        r->kind[i] = WRITTEN;
    }
    return 0;
}

#define MODEL "The source's branch records are of another kind; use the " \
              "source's CPU model."

/* The CPU model determines the registers and their contents. */
static const VMStateDescription vmstate_layout = {
    .name = "cpu/vpmu/lbr/layout",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32_EQUAL(depth, X86VPmuLbr, MODEL),
        VMSTATE_UINT32_EQUAL(format, X86VPmuLbr, MODEL),
        VMSTATE_END_OF_LIST()
    }
};

static const VMStateDescription vmstate_kind = {
    .name = "cpu/vpmu/lbr/kind",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(lbr, X86VPmu, vmstate_layout, const X86VPmuLbr),
        VMSTATE_END_OF_LIST()
    }
};

static const VMStateDescription vmstate_records = {
    .name = "cpu/vpmu/lbr/records",
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = records_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64_ARRAY(from, PmuRecorder, PMU_RECORDER_MAX),
        VMSTATE_UINT64_ARRAY(to, PmuRecorder, PMU_RECORDER_MAX),
        VMSTATE_UINT32(next, PmuRecorder),
        VMSTATE_END_OF_LIST()
    }
};

static const VMStateDescription vmstate_written = {
    .name = "cpu/vpmu/lbr/written",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(lbr_select, X86VPmu),
        VMSTATE_UINT64(dbg_extn_cfg, X86VPmu),
        VMSTATE_UINT64_ARRAY(lbr_info, X86VPmu, X86_VPMU_MAX_LBR),
        VMSTATE_END_OF_LIST()
    }
};

/* Of the unit, in a stream of the CPU */
static const VMStateDescription vmstate_recorder = {
    .name = "cpu/vpmu/lbr/recorder",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT(recorder, PmuCpu, 1, vmstate_records, PmuRecorder),
        VMSTATE_END_OF_LIST()
    }
};

static const VMStateDescription vmstate_since_last = {
    .name = "cpu/vpmu/lbr/since-last",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(recorder.since, PmuCpu),
        VMSTATE_END_OF_LIST()
    }
};

static bool since_needed(void *opaque)
{
    X86CPU *cpu = opaque;

    return is_under_way(cpu->vpmu);
}

static const VMStateDescription vmstate_since = {
    .name = "cpu/vpmu/lbr/since",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = since_needed,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(parent_obj.pmu, X86CPU, vmstate_since_last,
                               PmuCpu),
        VMSTATE_END_OF_LIST()
    }
};

const VMStateDescription vmstate_x86_vpmu_lbr = {
    .name = "cpu/vpmu/lbr",
    .version_id = 2,
    .minimum_version_id = 1,
    .needed = lbr_needed,
    .pre_save = lbr_pre_save,
    .pre_load = lbr_pre_load,
    .post_load = lbr_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER_V(vpmu, X86CPU, 2, vmstate_kind, X86VPmu),
        VMSTATE_STRUCT_POINTER(vpmu, X86CPU, vmstate_written, X86VPmu),
        VMSTATE_STRUCT_POINTER(parent_obj.pmu, X86CPU, vmstate_recorder,
                               PmuCpu),
        VMSTATE_END_OF_LIST()
    },
    .subsections = (const VMStateDescription *const []) {
        &vmstate_since,
        &vmstate_x86_vpmu_arch_lbr,
        NULL
    }
};

const X86VPmuFeature intel_lbr = {
    .msrs = intel_lbr_msrs,
    .offers = lbr_offers,
    .init = lbr_init,
    .reset = lbr_reset,
    .debugctl = intel_lbr_debugctl,
    .update = lbr_update,
    .on_pmi = lbr_freeze,
    .is_used = lbr_is_used,
    .describe = lbr_describe,
};

const X86VPmuFeature amd_lbr = {
    .msrs = amd_lbr_msrs,
    .init = lbr_init,
    .reset = lbr_reset,
    .cpuid = amd_lbr_cpuid,
    .status = amd_lbr_status,
    .debugctl = amd_lbr_debugctl,
    .update = lbr_update,
    .on_pmi = lbr_freeze,
    .is_used = lbr_is_used,
    .describe = lbr_describe,
};
