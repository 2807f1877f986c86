/*
 * Fuzzer of the virtual PMU: x86's faces
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include <sys/mman.h>
#include "qemu/bitops.h"
#include "cpu.h"
#include "exec/cpu-common.h"
#include "exec/helper-proto.h"
#include "hw/i386/apic.h"
#include "hw/pmu/pmu-tcg.h"
#include "hw/pmu/compat.h"
#include "tcg/helper-tcg.h"
#include "vpmu/vpmu.h"
#include "fuzz.h"
#include "x86-reference.h"

#define NR_MODES 8

#define X2APIC_SVR   0x0f
#define X2APIC_LVTPC 0x34
#define SVR_ENABLE   0x100

#define T(name) BIT(PMU_TALLY_##name)

#define NEAR_TAKEN (T(COND_TAKEN) | T(JUMPS) | T(INDIRECT_JUMPS) | T(CALLS) \
                    | T(INDIRECT_CALLS) | T(RETURNS))
#define TAKEN (NEAR_TAKEN | T(FAR_BRANCHES))
#define BRANCHES (TAKEN | T(COND_NOT_TAKEN))
#define COND (T(COND_TAKEN) | T(COND_NOT_TAKEN))

/*
 * Faces
 */

/* What is not in here by intent: 0xfefe and codes without their unit mask. */
static const RefEvent skylake_events[] = {
    { 0x003c, 0, T(CYCLES) },
    { 0x013c, 0, T(REF_CYCLES) },
    { 0x00c0, 0, T(INSNS) },
    { 0x00c4, 0, BRANCHES },
    { 0x01c4, 0, COND },
    { 0x02c4, 0, T(CALLS) | T(INDIRECT_CALLS) },
    { 0x08c4, 0, T(RETURNS) },
    { 0x10c4, 0, T(COND_NOT_TAKEN) },
    { 0x20c4, 0, NEAR_TAKEN },
    { 0x81d0, 0, T(LOADS) },
    { 0x82d0, 0, T(STORES) },
    { 0x0108, 0, T(DTLB_LOAD_MISSES) },
    { 0x0185, 0, T(ITLB_MISSES) },
    { 0x01cb, 0, T(INTERRUPTS) },
    { }
};

/* What all models of Intel's have. */
static const RefEvent intel_events[] = {
    { 0x003c, 0, T(CYCLES) },
    { 0x013c, 0, T(REF_CYCLES) },
    { 0x00c0, 0, T(INSNS) },
    { 0x00c4, 0, BRANCHES },
    { }
};

static const RefEvent knights_events[] = {
    { 0x003c, 0, T(CYCLES) },
    { 0x00c0, 0, T(INSNS) },
    { 0x00c4, 0, BRANCHES },
    { 0x7ec4, 0, COND },
    { 0xf7c4, 0, T(RETURNS) },
    { }
};

static const RefEvent goldmont_events[] = {
    { 0x00c0, 0, T(INSNS) },
    { 0x00c4, 0, BRANCHES },
    { 0x81d0, 0, T(LOADS) },
    { 0x82d0, 0, T(STORES) },
    { 0x01cb, 0, T(INTERRUPTS) },
    { }
};

static const RefEvent icelake_events[] = {
    { 0x003c, 0, T(CYCLES) },
    { 0x013c, 0, T(REF_CYCLES) },
    { 0x00c0, 0, T(INSNS) },
    { 0x00c4, 0, BRANCHES },
    { 0x01c4, 0, T(COND_TAKEN) },
    { 0x11c4, 0, COND },
    { 0x81d0, 0, T(LOADS) },
    { 0x82d0, 0, T(STORES) },
    { 0x01cd, 0, T(LOADS) },
    { }
};

static const RefEvent golden_cove_events[] = {
    { 0x003c, 0, T(CYCLES) },
    { 0x00c0, 0, T(INSNS) },
    { 0x00c4, 0, BRANCHES },
    { 0x01c4, 0, T(COND_TAKEN) },
    { 0x11c4, 0, COND },
    { 0x81d0, 0, T(LOADS) },
    { 0x82d0, 0, T(STORES) },
    { }
};

/* These two come with PEBS. */
static const RefEvent golden_cove_pebs_events[] = {
    { 0x003c, 0, T(CYCLES) },
    { 0x00c0, 0, T(INSNS) },
    { 0x11c4, 0, COND },
    { 0x01cd, 0, T(LOADS) },
    { 0x02cd, 0, T(STORES) },
    { }
};

static const RefEvent pebs_events[] = {
    { 0x00c0, 0, T(INSNS) },
    { 0x01c4, 0, COND },
    { 0x82d0, 0, T(STORES) },
    { 0x01cd, 0, T(LOADS) },
    { 0x01cb, 0, T(INTERRUPTS) },
    { }
};

#define K7_EVENTS                             \
    { 0x0040, 0, T(LOADS) | T(STORES) },      \
    { 0x0076, 0, T(CYCLES) },                 \
    { 0x00c0, 0, T(INSNS) },                  \
    { 0x00c2, 0, BRANCHES },                  \
    { 0x00c4, 0, TAKEN },                     \
    { 0x00c6, 0, T(FAR_BRANCHES) }

static const RefEvent k7_events[] = {
    K7_EVENTS,
    { 0x0046, 0, T(DTLB_LOAD_MISSES) | T(DTLB_STORE_MISSES) },
    { 0x00cf, 0, T(INTERRUPTS) },
    { }
};

static const RefEvent zen_events[] = {
    K7_EVENTS,
    { 0x00c8, 0, T(RETURNS) },
    { 0x0129, 0, T(LOADS) },
    { 0x00d1, 0, COND },
    { 0x0785, 0, T(ITLB_MISSES) },
    { }
};

static const RefEvent zen4_events[] = {
    K7_EVENTS,
    { 0x0229, 0, T(STORES) },
    { 0x002c, 0, T(INTERRUPTS) },
    { 0x00cc, 0, T(INDIRECT_JUMPS) | T(INDIRECT_CALLS) },
    { 0x0120, 1, T(REF_CYCLES) },
    { }
};

static const uint16_t denied[] = { 0x00c0, 0x20c4, 0x02c4, 0x01cb, 0 };

/*
 * What it takes to allow the others of Skylake's, and nothing else.  What is
 * excluded can come before what includes it, and after that.
 */
#define RAW(code) "{\"format\":\"raw\",\"code\":" #code "}"
#define DENY                                                              \
    "-object '{\"qom-type\":\"kvm-pmu-filter\",\"id\":\"f\","               \
    "\"action\":\"deny\",\"x86-fixed-counter\":2,\"events\":["              \
    RAW(192) "," RAW(8388) "," RAW(708) "," RAW(459) "]}' "
#define ALLOW                                                             \
    "-object '{\"qom-type\":\"kvm-pmu-filter\",\"id\":\"f\","               \
    "\"action\":\"allow\",\"x86-fixed-counter\":5,\"events\":["             \
    RAW(60) "," RAW(316) ","                                              \
    "{\"format\":\"x86-masked-entry\",\"select\":196,\"match\":32,"         \
    "\"mask\":255,\"exclude\":true},"                                       \
    "{\"format\":\"x86-masked-entry\",\"select\":196,\"match\":0,"          \
    "\"mask\":0,\"exclude\":false},"                                        \
    "{\"format\":\"x86-masked-entry\",\"select\":196,\"match\":2,"          \
    "\"mask\":255,\"exclude\":true},"                                       \
    "{\"format\":\"x86-select-umask\",\"select\":208,\"umask\":129},"       \
    RAW(33488) "," RAW(264) "," RAW(389) "]}' "

#define MACHINE "-machine q35 -global apic-common.vapic=off " \
                "-global x86_64-cpu.x2apic=on "
#define TCG MACHINE "-accel tcg -cpu "
#define INTEL(v) TCG "Skylake-Server,pmu=on,lbr=off,pmu-version=" #v

#define INTEL_PMU_OF(list, v, gp, ...)                                    \
    &(const RefX86) { .version = v, .nr_gp = gp, .nr_fixed = v > 1 ? 3 : 0, \
                      .cpi = 1000, .events = list, __VA_ARGS__ }
#define INTEL_PMU(...) INTEL_PMU_OF(skylake_events, __VA_ARGS__)
#define AMD_PMU(v, gp, ext, list, ...)                                    \
    &(const RefX86) { .amd = true, .version = v, .nr_gp = gp,               \
                      .select_ext = ext, .cpi = 1000, .events = list,       \
                      __VA_ARGS__ }

static const FuzzFace faces[] = {
    { "intel-1", INTEL(1), INTEL_PMU(1, 4) },
    { "intel-2", INTEL(2), INTEL_PMU(2, 4) },
    { "intel-3", INTEL(3) ",pmu-gp-counters=8", INTEL_PMU(3, 8) },
    { "intel-4", INTEL(4), INTEL_PMU(4, 4) },
    { "intel-5", INTEL(5) ",pmu-gp-counters=8", INTEL_PMU(5, 8) },
    { "intel-cpi", INTEL(2) ",pmu-cpi=1500", INTEL_PMU(2, 4, .cpi = 1500) },
    { "intel-deny", DENY MACHINE "-accel tcg,pmu-filter=f -cpu "
      "Skylake-Server,pmu=on,lbr=off,pmu-version=4",
      INTEL_PMU(4, 4, .denied = denied, .fixed_denied = 2) },
    { "intel-allow", ALLOW MACHINE "-accel tcg,pmu-filter=f -cpu "
      "Skylake-Server,pmu=on,lbr=off,pmu-version=4",
      INTEL_PMU(4, 4, .denied = denied, .fixed_denied = 2) },
    { "intel-pebs-3", INTEL(4) ",pebs=on",
      INTEL_PMU(4, 4, .pebs = 3, .events = pebs_events) },
    { "intel-pebs-4", TCG "Icelake-Server-v6,pmu=on,lbr=off,pebs=on",
      INTEL_PMU(5, 8, .pebs = 4, .events = icelake_events) },
    { "amd-k7", TCG "athlon,pmu=on", AMD_PMU(1, 4, false, k7_events) },
    { "amd-zen", TCG "EPYC,pmu=on", AMD_PMU(1, 6, true, zen_events) },
    { "amd-zen4", TCG "EPYC-Genoa,pmu=on,lbr=off",
      AMD_PMU(2, 6, true, zen4_events) },
    { "hygon", TCG "Dhyana,pmu=on", AMD_PMU(1, 6, true, zen_events) },
    { "zhaoxin", TCG "YongFeng,pmu=on", NULL },
    { "intel-lbr-1", TCG "Nehalem,pmu=on,pmu-version=1,lbr=on",
      INTEL_PMU_OF(intel_events, 1, 4, .lbrs = 16, .lbr_format = 3) },
    { "intel-lbr-3", TCG "Haswell,pmu=on,pmu-version=3,lbr=on",
      INTEL_PMU_OF(intel_events, 3, 4, .lbrs = 16, .lbr_format = 4) },
    { "intel-lbr-4", INTEL(4) ",lbr=on",
      INTEL_PMU(4, 4, .lbrs = 32, .lbr_format = 5) },
    { "intel-lbr-core", TCG "Penryn,pmu=on,lbr=on",
      INTEL_PMU_OF(intel_events, 2, 4, .lbrs = 4, .lbr_format = 1,
                   .unfiltered = true) },
    { "intel-lbr-knights", TCG "KnightsMill,pmu=on,pmu-version=3,lbr=on",
      INTEL_PMU_OF(knights_events, 3, 4, .lbrs = 8, .lbr_format = 1) },
    { "intel-lbr-time", TCG "Denverton,pmu=on,pmu-version=4,lbr=on",
      INTEL_PMU_OF(goldmont_events, 4, 4, .lbrs = 32, .lbr_format = 6) },
    { "intel-lbr-arch", TCG "SapphireRapids,pmu=on,lbr=on",
      INTEL_PMU_OF(golden_cove_events, 5, 8, .lbrs = 32, .lbr_format = 0x3f) },
    { "intel-lbr-arch-pebs", TCG "SapphireRapids,pmu=on,lbr=on,pebs=on",
      INTEL_PMU_OF(golden_cove_pebs_events, 5, 8, .lbrs = 32,
                   .lbr_format = 0x3f, .pebs = 4) },
    { "amd-lbr", TCG "EPYC-Genoa,pmu=on,lbr=on",
      AMD_PMU(2, 6, true, zen4_events, .lbrs = 16) },
    { "intel-off", TCG "Skylake-Server,pmu=off", NULL },
};

static const RefX86 *pmu;

static X86CPU *cpu(void)
{
    return X86_CPU(fuzz_cpu);
}

/*
 * The local APIC and what it delivers; it is not part of the CPU's state.
 */

static void set_lvtpc(uint32_t val)
{
    ref_state.lvtpc = val;
    g_assert(apic_write_msr(cpu()->apic_state, X2APIC_LVTPC, val) == 0);
}

static void set_nmi(bool nmi)
{
    ref_state.nmi = nmi;
    if (nmi) {
        fuzz_cpu->interrupt_request |= CPU_INTERRUPT_NMI;
    } else {
        fuzz_cpu->interrupt_request &= ~CPU_INTERRUPT_NMI;
    }
}

static void prepare_apic(uint32_t lvtpc, bool nmi)
{
    g_assert(cpu_set_apic_base(cpu()->apic_state,
                               APIC_DEFAULT_ADDRESS | MSR_IA32_APICBASE_ENABLE
                               | MSR_IA32_APICBASE_EXTD) == 0);
    g_assert(apic_write_msr(cpu()->apic_state, X2APIC_SVR, SVR_ENABLE) == 0);
    set_lvtpc(lvtpc);
    set_nmi(nmi);
}

static void check_interrupts(void)
{
    uint64_t lvtpc;

    g_assert(apic_read_msr(cpu()->apic_state, X2APIC_LVTPC, &lvtpc) == 0);
    fuzz_expect("LVTPC", lvtpc, ref_state.lvtpc);
    fuzz_expect("a pending NMI",
                !!(fuzz_cpu->interrupt_request & CPU_INTERRUPT_NMI),
                ref_state.nmi);
}

/*
 * Registers
 */

static const struct {
    uint32_t first;
    unsigned nr;
} registers[] = {
    { 0x0c1, 9 }, { 0x186, 9 }, { 0x1d9, 1 }, { 0x309, 5 }, { 0x345, 1 },
    { 0x38d, 6 }, { 0x3f1, 6 }, { 0x4c1, 9 }, { 0x600, 1 }, { 0xc0010000, 8 },
    { 0xc0010200, 12 }, { 0xc0000300, 4 }, { 0x1c8, 2 }, { 0x040, 8 },
    { 0x060, 8 }, { 0x680, 32 }, { 0x6c0, 32 }, { 0xdc0, 32 },
    { 0xc000010e, 2 }, { 0xc0010300, 32 }, { 0x1dd, 4 }, { 0x1200, 33 },
    { 0x1500, 33 }, { 0x1600, 33 },
    /* Who writes their number has cleared all records. */
    { REF_LBR_CTL, 2 },
};

/* One that there is, mostly; what programs before have left does not matter. */
static uint32_t any_register(FuzzRandom *r)
{
    uint32_t msr;

    do {
        unsigned n = fuzz_below(r, ARRAY_SIZE(registers));

        msr = registers[n].first + fuzz_below(r, registers[n].nr);
    } while (!ref_has(msr) && !fuzz_chance(r, 8));
    return msr;
}

static const char *name_of(const char *what, uint32_t msr)
{
    static char name[40];

    snprintf(name, sizeof(name), "%s 0x%x", what, msr);
    return name;
}

static X86VPmuAccess rdmsr(uint32_t msr, uint64_t *val)
{
    X86VPmuAccess result;

    fuzz_begin_read();
    result = x86_vpmu_rdmsr(cpu(), msr, val);
    fuzz_end_read();
    return result;
}

static bool rdpmc(uint32_t index, uint64_t *val)
{
    bool valid;

    fuzz_begin_read();
    valid = x86_vpmu_rdpmc(cpu(), index, val);
    fuzz_end_read();
    return valid;
}

static void read_register(uint32_t msr)
{
    uint64_t val = 0, ref = 0;
    X86VPmuAccess got = rdmsr(msr, &val);
    RefAccess wanted = ref_read(msr, &ref);

    fuzz_expect(name_of("access to", msr), got, (X86VPmuAccess)wanted);
    fuzz_expect(name_of("register", msr), val & ~ref_unknown(msr),
                ref & ~ref_unknown(msr));
}

static void make_rdmsr(FuzzRandom *r, uint64_t *arg)
{
    arg[0] = any_register(r);
}

static void run_rdmsr(const uint64_t *arg)
{
    read_register(arg[0]);
}

/* Flags of a selector, with an event that the reference knows. */
static uint64_t any_selector(FuzzRandom *r)
{
    const RefEvent *e = pmu->events;
    uint64_t flags = fuzz_random(r) & 0x70000 /* USR, OS, EDGE */;
    unsigned n = 0;

    while (e[n].tallies) {
        n++;
    }
    e += fuzz_below(r, n);
    flags |= fuzz_random(r) & (BIT_ULL(20) | BIT_ULL(22) | BIT_ULL(23));
    flags |= fuzz_chance(r, 4) ? 0 : BIT_ULL(22) | BIT_ULL(17) | BIT_ULL(16);
    flags |= fuzz_chance(r, 2) ? 0 : BIT_ULL(20);
    flags &= fuzz_chance(r, 2) ? ~0ull : ~BIT_ULL(18);
    flags |= fuzz_chance(r, 3) ? fuzz_below(r, 4) << 24 : 0;
    flags |= fuzz_chance(r, 4) ? fuzz_below(r, 4) << 40 : 0;
    flags |= fuzz_chance(r, 20) ? fuzz_number(r) & ~0xf0000ffffull : 0;
    return flags | (fuzz_chance(r, 12) ? 0xfefe
                                       : (uint64_t)e->ext << 32 | e->code);
}

static uint64_t any_count(FuzzRandom *r)
{
    return fuzz_chance(r, 5) ? fuzz_number(r)
           : (-(fuzz_below(r, 1 << fuzz_below(r, 10)) + 1))
             & MAKE_64BIT_MASK(0, 48);
}

/* Of memory there is what it has to be, where there is any. */
static uint64_t any_ds_area(FuzzRandom *r)
{
    static const uint64_t areas[] = {
        REF_DS_FULL, REF_DS_NEVER_FULL, REF_DS_NEVER_FULL, 0xd0000000,
        0xffff8000d0000000, 0x8000d0000000,
    };

    return fuzz_pick(r, areas);
}

/* Mostly something is recorded. */
static uint64_t any_lbr_ctl(FuzzRandom *r)
{
    uint64_t on = fuzz_chance(r, 4) ? 0 : 7 /* LBREn, OS, USR */;

    return fuzz_bits(r, ref_writable(REF_LBR_CTL)) | on;
}

/* Counters of 32 bits are extended by their sign: these overflow, too. */
static void make_wrmsr(FuzzRandom *r, uint64_t *arg)
{
    uint64_t bits;

    arg[0] = any_register(r);
    bits = ref_writable(arg[0]);
    if (arg[0] == 0x600) {
        arg[1] = any_ds_area(r);
    } else if (arg[0] == REF_LBR_CTL) {
        arg[1] = any_lbr_ctl(r);
    } else if (pmu && bits >> 22 & 1 && bits >> 16 & 1 && !(bits >> 47 & 1)) {
        arg[1] = any_selector(r);
    } else if (bits >> 47 & 1) {
        arg[1] = any_count(r);
    } else {
        arg[1] = fuzz_bits(r, bits);
    }
}

static void run_wrmsr(const uint64_t *arg)
{
    X86VPmuAccess got = x86_vpmu_wrmsr(cpu(), arg[0], arg[1]);

    fuzz_expect(name_of("writing", arg[0]), got,
                (X86VPmuAccess)ref_write(arg[0], arg[1]));
    check_interrupts();
}

static void make_rdpmc(FuzzRandom *r, uint64_t *arg)
{
    static const uint32_t kinds[] = { 0, 0, 0x40000000, 0x20000000, 1u << 31 };

    arg[0] = fuzz_pick(r, kinds) | fuzz_below(r, 10);
}

static void run_rdpmc(const uint64_t *arg)
{
    uint64_t val = 0, ref = 0;
    bool valid = rdpmc(arg[0], &val);

    fuzz_expect("validity of RDPMC", valid, ref_rdpmc(arg[0], &ref));
    fuzz_expect("RDPMC", val, ref);
}

/*
 * What happens
 */

static const PmuTally retired[] = {
    PMU_TALLY_COND_TAKEN, PMU_TALLY_COND_NOT_TAKEN, PMU_TALLY_JUMPS,
    PMU_TALLY_INDIRECT_JUMPS, PMU_TALLY_CALLS, PMU_TALLY_INDIRECT_CALLS,
    PMU_TALLY_RETURNS, PMU_TALLY_FAR_BRANCHES, PMU_TALLY_LOADS,
    PMU_TALLY_STORES,
};

static const PmuTally other[] = {
    PMU_TALLY_INTERRUPTS, PMU_TALLY_EXCEPTIONS, PMU_TALLY_DTLB_LOAD_MISSES,
    PMU_TALLY_DTLB_STORE_MISSES, PMU_TALLY_ITLB_MISSES, PMU_TALLY_WAKEUPS,
};

static const PmuBranchKind kinds[] = {
    PMU_BRANCH_JUMP, PMU_BRANCH_JUMP | PMU_BRANCH_CONDITIONAL,
    PMU_BRANCH_INDIRECT_JUMP, PMU_BRANCH_CALL, PMU_BRANCH_INDIRECT_CALL,
    PMU_BRANCH_RETURN, PMU_BRANCH_FAR, PMU_BRANCH_CALL_NEXT,
};

/* Bits of addresses where records have flags are set, too. */
static void make_branch(FuzzRandom *r, uint64_t *arg)
{
    arg[0] = fuzz_below(r, ARRAY_SIZE(kinds) * NR_MODES);
    arg[1] = fuzz_random(r);
    arg[2] = fuzz_target_of(r, arg[1]);
}

static void take_branch(PmuBranchKind kind, const uint64_t *arg)
{
    const PmuBranch branch = { .from = arg[1], .to = arg[2], .kind = kind };
    unsigned mode = arg[0] % NR_MODES;

    fuzz_take_branch(&branch, mode);
    ref_branch(&branch, mode);
}

static void run_branch(const uint64_t *arg)
{
    take_branch(kinds[arg[0] / NR_MODES % ARRAY_SIZE(kinds)], arg);
}

/* An interrupt or an exception; it is recorded as well. */
static void make_event(FuzzRandom *r, uint64_t *arg)
{
    make_branch(r, arg);
    arg[0] %= NR_MODES;
}

static void run_event(const uint64_t *arg)
{
    x86_vpmu_event_delivered(cpu());
    ref_event();
    take_branch(PMU_BRANCH_FAR, arg);
}

static void run_debug(const uint64_t *arg)
{
    x86_vpmu_debug_exception(cpu());
    ref_debug_exception();
}

static void make_svme(FuzzRandom *r, uint64_t *arg)
{
    arg[0] = fuzz_below(r, 2);
}

static void run_svme(const uint64_t *arg)
{
    ref_state.svme = arg[0] & 1;
    cpu_load_efer(&cpu()->env, ref_state.svme ? MSR_EFER_SVME : 0);
}

/*
 * What the CPU saves in memory does not come with its state: EFER is the one of
 * the last SMI, on whichever CPU.
 */
static bool svme_in_memory;

static bool is_in_smm(void)
{
    return cpu()->env.hflags & HF_SMM_MASK;
}

/* None is delivered in SMM. */
static void run_smi(const uint64_t *arg)
{
    if (!is_in_smm()) {
        do_smm_enter(cpu());
        svme_in_memory = ref_state.svme;
        ref_state.svme = false;
        ref_smi();
    }
}

static void run_rsm(const uint64_t *arg)
{
    if (is_in_smm()) {
        helper_rsm(&cpu()->env);
        ref_state.svme = svme_in_memory;
        ref_rsm();
    }
}

static void make_lvtpc(FuzzRandom *r, uint64_t *arg)
{
    arg[0] = fuzz_chance(r, 4);
}

static void run_lvtpc(const uint64_t *arg)
{
    set_lvtpc(REF_LVT_NMI | (arg[0] & 1 ? REF_LVT_MASKED : 0));
}

static void run_nmi(const uint64_t *arg)
{
    check_interrupts();
    set_nmi(false);
}

static void run_reset(const uint64_t *arg)
{
    cpu_reset(fuzz_cpu);
    x86_vpmu_reset(cpu());
    ref_reset();
    ref_state.svme = false;
    ref_state.smm = false;
    set_nmi(false);
}

/* It leaves the PMU as it is, but for PEBS and for what SVM and SMM say. */
static void run_init(const uint64_t *arg)
{
    do_cpu_init(cpu());
    ref_init_signal();
    ref_state.svme = false;
    prepare_apic(REF_LVT_NMI, false);
}

static const FuzzVerb verbs[] = {
    { "wrmsr", 2, 60, make_wrmsr, run_wrmsr },
    { "rdmsr", 1, 20, make_rdmsr, run_rdmsr },
    { "rdpmc", 1, 5, make_rdpmc, run_rdpmc },
    { "insns", 2, 25, fuzz_make_insns, fuzz_run_insns },
    { "retire", 3, 25, fuzz_make_retire, fuzz_run_retire },
    { "other", 3, 20, fuzz_make_other, fuzz_run_other },
    { "branch", 3, 15, make_branch, run_branch },
    { "event", 3, 5, make_event, run_event },
    { "debug", 0, 1, NULL, run_debug },
    { "svme", 1, 3, make_svme, run_svme },
    { "smi", 0, 4, NULL, run_smi },
    { "rsm", 0, 5, NULL, run_rsm },
    { "lvtpc", 1, 8, make_lvtpc, run_lvtpc },
    { "nmi", 0, 5, NULL, run_nmi },
    { "reset", 0, 1, NULL, run_reset },
    { "init", 0, 1, NULL, run_init },
    { }
};

/*
 * The machine
 */

/* QEMU keeps guests' memory from its children, and programs run in these. */
static int share_block(RAMBlock *block, void *opaque)
{
    return madvise(qemu_ram_get_host_addr(block),
                   qemu_ram_get_used_length(block), MADV_DOFORK);
}

static void write_ds_area(hwaddr addr, uint64_t threshold)
{
    uint64_t words[8 + REF_DS_NR_SLOTS] = { [7] = cpu_to_le64(threshold) };

    for (unsigned slot = 0; slot < REF_DS_NR_SLOTS; slot++) {
        words[8 + slot] = cpu_to_le64(-(uint64_t)(slot + 2));
    }
    cpu_physical_memory_write(addr, words, sizeof(words));
}

static void start(const FuzzFace *face)
{
    pmu = face->data;
    g_assert(qemu_ram_foreach_block(share_block, NULL) == 0);
    write_ds_area(REF_DS_FULL, 0);
    write_ds_area(REF_DS_NEVER_FULL, UINT64_MAX);
    ref_init(pmu);
    g_assert(!pmu == !cpu()->vpmu);
}

static void begin(void)
{
    run_reset(NULL);
    prepare_apic(REF_LVT_NMI, false);
    fuzz_align_cycles();
}

static void for_each_register(void (*look)(uint32_t msr))
{
    for (unsigned n = 0; n < ARRAY_SIZE(registers); n++) {
        for (unsigned i = 0; i < registers[n].nr; i++) {
            look(registers[n].first + i);
        }
    }
}

static void check(void)
{
    for_each_register(read_register);
    check_interrupts();
}

/* What a register holds can be written, and is read again, but for signs. */
static void check_legal_register(uint32_t msr)
{
    uint64_t val, again;
    uint64_t bits = ref_writable(msr);

    if (rdmsr(msr, &val) != X86_VPMU_DONE || !bits || bits == UINT64_MAX) {
        return;
    }
    if (x86_vpmu_wrmsr(cpu(), msr, val) != X86_VPMU_DONE
        || rdmsr(msr, &again) != X86_VPMU_DONE
        || val != again || val & ~bits) {
        fprintf(stderr, "register 0x%x holds 0x%" PRIx64 "\n", msr, val);
        abort();
    }
}

static void check_legal_status(void)
{
    bool amd = pmu->amd;
    uint32_t status = amd ? 0xc0000300 : 0x38e;
    uint64_t bits = ref_writable(amd ? 0xc0000302 : 0x390), val;

    if (rdmsr(status, &val) == X86_VPMU_DONE && val & ~bits) {
        fprintf(stderr, "status is 0x%" PRIx64 "\n", val);
        abort();
    }
}

static void check_legal(void)
{
    if (pmu) {
        check_legal_status();
        for_each_register(check_legal_register);
    }
}

/* Fractions of cycles come along only with a PMU that is used. */
static void moved(void)
{
    if (!ref_is_used()) {
        fuzz_align_cycles();
    }
    ref_moved();
    prepare_apic(ref_state.lvtpc, ref_state.nmi);
}

const FuzzTarget fuzz_target = {
    .faces = faces,
    .nr_faces = ARRAY_SIZE(faces),
    .verbs = verbs,
    .vmsd = &vmstate_x86_cpu,
    .sections = (const char *const[]) {
        "cpu/vpmu", "cpu/vpmu/lbr", "cpu/msr_architectural_pmu",
        "cpu/vpmu/lbr/arch", "cpu/vpmu/pebs", "cpu/vpmu/smm", NULL
    },
    .nr_modes = NR_MODES,
    .retired = retired,
    .nr_retired = ARRAY_SIZE(retired),
    .other = other,
    .nr_other = ARRAY_SIZE(other),
    .start = start,
    .happen = ref_happen,
    .begin_cycle = ref_begin_cycle,
    .check_interrupts = check_interrupts,
    .begin = begin,
    .check = check,
    .check_legal = check_legal,
    .remember = ref_remember,
    .recall = ref_recall,
    .moved = moved,
};
