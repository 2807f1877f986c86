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
#include "vpmu/internal.h"
#include "fuzz.h"
#include "core-reference.h"
#include "x86-memory.h"
#include "x86-reference.h"

#define NR_MODES 8

#define X2APIC_SVR   0x0f
#define X2APIC_LVTPC 0x34
#define SVR_ENABLE   0x100

/*
 * Faces
 */

#define EVENT(code, counted) { code, COUNTS_##counted },
#define EVENTS(list) ((const RefEvent[]) { CODES_##list(EVENT) { } })

static const uint16_t denied[] = { 0x00c0, 0x20c4, 0x02c4, 0x01cb, 0 };

/*
 * Filters that have the same effect: ALLOW allows exactly the events that DENY
 * does not deny.  An exclusion can stand before or after the entry that
 * includes its codes.
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
    RAW(33488) "," RAW(264) "," RAW(329) "," RAW(389) "," RAW(448) ","     \
    RAW(3717) "]}' "

#define MACHINE "-machine q35 -global apic-common.vapic=off " \
                "-global x86_64-cpu.x2apic=on "
#define TCG MACHINE "-accel tcg -cpu "
#define INTEL(v) TCG "Skylake-Server,pmu=on,lbr=off,pmu-version=" #v

/* Events of the core come first: other lists have them as not counted. */
#define CORE(state) "-object pmu-core,id=core0,state=" #state "," REF_CORE " "
#define CODES_SKYLAKE_WITH_CORE(E) CODES_SKYLAKE_CORE(E) CODES_SKYLAKE(E)
#define CODES_SKYLAKE_PEBS_CORE(E) CODES_SKYLAKE_CORE(E) CODES_SKYLAKE_PEBS(E)
#define CODES_ICE_LAKE_WITH_CORE(E) CODES_SKYLAKE_CORE(E) CODES_ICE_LAKE(E)
#define CODES_ZEN4_WITH_CORE(E) CODES_ZEN_CORE(E) CODES_ZEN4(E)

#define INTEL_PMU_OF(list, v, gp, ...)                                    \
    &(const RefX86) { .version = v, .nr_gp = gp, .nr_fixed = v > 1 ? 3 : 0, \
                      .cpi = 1000, .events = EVENTS(list), __VA_ARGS__ }
#define INTEL_PMU(...) INTEL_PMU_OF(SKYLAKE, __VA_ARGS__)
#define AMD_PMU(v, gp, ext, list, ...)                                    \
    &(const RefX86) { .amd = true, .version = v, .nr_gp = gp,               \
                      .select_ext = ext, .cpi = 1000,                       \
                      .events = EVENTS(list), __VA_ARGS__ }

static const FuzzFace faces[] = {
    { "intel-1", INTEL(1), INTEL_PMU(1, 4) },
    { "intel-2", INTEL(2), INTEL_PMU(2, 4) },
    { "intel-3", INTEL(3) ",pmu-gp-counters=8", INTEL_PMU(3, 8) },
    { "intel-4", INTEL(4), INTEL_PMU(4, 4) },
    { "intel-5", INTEL(5) ",pmu-gp-counters=8", INTEL_PMU(5, 8) },
    { "intel-6", TCG "GraniteRapids,family=19,model=1,pmu=on,lbr=off",
      INTEL_PMU_OF(PANTHER_COVE, 6, 8) },
    { "intel-cpi", INTEL(2) ",pmu-cpi=1500", INTEL_PMU(2, 4, .cpi = 1500) },
    { "intel-deny", DENY MACHINE "-accel tcg,pmu-filter=f -cpu "
      "Skylake-Server,pmu=on,lbr=off,pmu-version=4",
      INTEL_PMU(4, 4, .denied = denied, .fixed_denied = 2) },
    { "intel-allow", ALLOW MACHINE "-accel tcg,pmu-filter=f -cpu "
      "Skylake-Server,pmu=on,lbr=off,pmu-version=4",
      INTEL_PMU(4, 4, .denied = denied, .fixed_denied = 2) },
    { "intel-no-capabilities", INTEL(4) ",pdcm=off",
      INTEL_PMU(4, 4, .no_capabilities = true) },
    { "intel-pebs-1", TCG "SandyBridge,pmu=on,lbr=off,pebs=on",
      INTEL_PMU_OF(SANDY_BRIDGE_PEBS, 2, 4, .pebs = 1,
                   .precise_store = true) },
    { "intel-pebs-2", TCG "Haswell,pmu=on,pmu-version=3,lbr=off,pebs=on",
      INTEL_PMU_OF(HASWELL_PEBS, 3, 4, .pebs = 2) },
    { "intel-pebs-3", INTEL(4) ",pebs=on",
      INTEL_PMU_OF(SKYLAKE_PEBS, 4, 4, .pebs = 3) },
    { "intel-pebs-4", TCG "Icelake-Server-v6,pmu=on,lbr=off,pebs=on",
      INTEL_PMU_OF(ICE_LAKE_PEBS, 5, 8, .pebs = 4, .la57 = true) },
    { "intel-kvm", TCG "Icelake-Server-v6,pmu=on,lbr=off,pebs=on",
      INTEL_PMU_OF(ICE_LAKE_PEBS, 5, 8, .pebs = 4, .la57 = true,
                   .kvm = true) },
    { "amd-k7", TCG "athlon,pmu=on", AMD_PMU(1, 4, false, K7) },
    { "amd-zen", TCG "EPYC,pmu=on", AMD_PMU(1, 6, true, ZEN) },
    { "amd-zen4", TCG "EPYC-Genoa,pmu=on,lbr=off",
      AMD_PMU(2, 6, true, ZEN4) },
    { "hygon", TCG "Dhyana,pmu=on", AMD_PMU(1, 6, true, ZEN) },
    { "zhaoxin", TCG "YongFeng,pmu=on", NULL },
    { "intel-lbr-1", TCG "Nehalem,pmu=on,pmu-version=1,lbr=on",
      INTEL_PMU_OF(NEHALEM, 1, 4, .lbrs = 16, .lbr_format = 3) },
    { "intel-lbr-3", TCG "Haswell,pmu=on,pmu-version=3,lbr=on",
      INTEL_PMU_OF(HASWELL, 3, 4, .lbrs = 16, .lbr_format = 4) },
    { "intel-lbr-4", INTEL(4) ",lbr=on",
      INTEL_PMU(4, 4, .lbrs = 32, .lbr_format = 5) },
    { "intel-lbr-core", TCG "Penryn,pmu=on,lbr=on",
      INTEL_PMU_OF(ARCHITECTURAL, 2, 4, .lbrs = 4, .lbr_format = 2,
                   .unfiltered = true) },
    { "intel-lbr-bonnell", TCG "n270,pmu=on,lbr=on",
      INTEL_PMU_OF(BONNELL, 2, 4, .lbrs = 8, .lbr_format = 1,
                   .unfiltered = true) },
    { "intel-lbr-knights", TCG "KnightsMill,pmu=on,pmu-version=3,lbr=on",
      INTEL_PMU_OF(KNIGHTS, 3, 4, .lbrs = 8, .lbr_format = 1) },
    { "intel-lbr-time", TCG "Denverton,pmu=on,pmu-version=4,lbr=on",
      INTEL_PMU_OF(GOLDMONT, 4, 4, .lbrs = 32, .lbr_format = 6) },
    { "intel-lbr-arch", TCG "SapphireRapids,pmu=on,lbr=on",
      INTEL_PMU_OF(GOLDEN_COVE, 5, 8, .lbrs = 32, .lbr_format = 0x3f) },
    { "intel-lbr-arch-pebs", TCG "SapphireRapids,pmu=on,lbr=on,pebs=on",
      INTEL_PMU_OF(GOLDEN_COVE_PEBS, 5, 8, .lbrs = 32,
                   .lbr_format = 0x3f, .pebs = 4, .both_latencies = true,
                   .la57 = true) },
    { "intel-lbr-pebs", TCG "Snowridge,pmu=on,lbr=on,pebs=on",
      INTEL_PMU_OF(TREMONT_PEBS, 5, 8, .lbrs = 32, .lbr_format = 7,
                   .pebs = 4) },
    { "amd-lbr", TCG "EPYC-Genoa,pmu=on,lbr=on",
      AMD_PMU(2, 6, true, ZEN4, .lbrs = 16) },
    { "intel-off", TCG "Skylake-Server,pmu=off", NULL },
    { "intel-core", CORE(shared) INTEL(4) ",pmu-core=core0",
      INTEL_PMU_OF(SKYLAKE_WITH_CORE, 4, 4, .core = true,
                   .offcore = 0x3fffff8fff) },
    { "intel-core-pebs", CORE(shared) INTEL(4) ",pebs=on,pmu-core=core0",
      INTEL_PMU_OF(SKYLAKE_PEBS_CORE, 4, 4, .pebs = 3, .core = true,
                   .offcore = 0x3fffff8fff) },
    { "intel-core-metrics", CORE(private)
      TCG "Icelake-Server-v6,pmu=on,lbr=off,pmu-version=5,pmu-gp-counters=8,"
      "pmu-core=core0",
      INTEL_PMU_OF(ICE_LAKE_WITH_CORE, 5, 8, .nr_fixed = 4, .core = true,
                   .private = true, .offcore = 0x3fffffbfff, .slots = 5) },
    { "amd-core", CORE(private) TCG "EPYC-Genoa,pmu=on,lbr=off,pmu-core=core0",
      AMD_PMU(2, 6, true, ZEN4_WITH_CORE, .core = true, .private = true) },
};

static const RefX86 *pmu;

static bool has_pebs(void)
{
    return pmu && pmu->pebs;
}

static bool has_adaptive_pebs(void)
{
    return pmu && pmu->pebs >= 4;
}

static X86CPU *cpu(void)
{
    return X86_CPU(fuzz_cpu);
}

/*
 * The local APIC and its interrupts, which are not part of the CPU's state
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
    { MSR_PERFCTR0, 9 }, { MSR_EVTSEL0, 9 }, { MSR_DEBUGCTL, 1 },
    { MSR_FIXED_CTR0, 5 }, { MSR_PERF_CAP, 1 }, { MSR_FIXED_CTR_CTRL, 6 },
    { MSR_PEBS_ENABLE, 6 }, { MSR_A_PMC0, 9 }, { MSR_DS_AREA, 1 },
    { MSR_LEGACY_EVTSEL0, 8 }, { MSR_CTL0, 12 }, { MSR_AMD_STATUS, 4 },
    { MSR_OFFCORE_RSP_0, 2 }, { MSR_PERF_METRICS, 1 },
    { MSR_LBR_SELECT, 2 }, { MSR_CORE_LBR_FROM, 8 }, { MSR_CORE_LBR_TO, 8 },
    { MSR_LBR_FROM, 32 }, { MSR_LBR_TO, 32 }, { MSR_LBR_INFO, 32 },
    { MSR_AMD_LBR_SELECT, 2 }, { MSR_AMD_LBR_FROM, 32 }, { MSR_LER_FROM, 4 },
    { MSR_ARCH_INFO, 33 }, { MSR_ARCH_FROM, 33 }, { MSR_ARCH_TO, 33 },
    /* The number of records; writing it clears all records */
    { MSR_ARCH_CTL, 2 },
    { MSR_PMC_GP0_CTR, 34 }, { MSR_PMC_FX0_CTR, 17 },
};

/*
 * Mostly one that exists; the state that earlier programs left has no effect.
 */
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

/* A selector with random flags and an event that the reference knows */
static uint64_t any_selector(FuzzRandom *r)
{
    const RefEvent *e = pmu->events;
    uint64_t flags = fuzz_random(r) & 0x70000 /* USR, OS, EDGE */;
    unsigned n = 0;

    while (e[n].code) {
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
    flags |= pmu->version >= 6 ? fuzz_random(r) & BIT_ULL(36) : 0;
    flags |= has_adaptive_pebs() ? fuzz_random(r) & BIT_ULL(34) : 0;
    return flags | (fuzz_chance(r, 12) ? 0xfefe : e->code);
}

static uint64_t any_count(FuzzRandom *r)
{
    return fuzz_chance(r, 5) ? fuzz_number(r)
           : (-(fuzz_below(r, 1 << fuzz_below(r, 10)) + 1))
             & MAKE_64BIT_MASK(0, 48);
}

/* Mostly an address in memory */
static uint64_t any_ds_area(FuzzRandom *r)
{
    static const uint64_t good[] = { REF_DS_IN_PAGE, REF_DS_ACROSS_PAGES };
    static const uint64_t areas[] = {
        REF_DS_NO_RESETS, REF_DS_NO_THRESHOLD, REF_DS_NO_MAXIMUM,
        REF_DS_IN_ROM, 0, 0xd0000000, 0xffffffffffffffd0,
        0xffff800000000000 + REF_DS_IN_PAGE, 0x8000d0000000,
    };

    return fuzz_chance(r, 2) ? fuzz_pick(r, good) : fuzz_pick(r, areas);
}

/* Mostly with so few branches that a record fits into the buffer */
static uint64_t any_data_cfg(FuzzRandom *r)
{
    uint64_t entries = fuzz_chance(r, 4) ? fuzz_below(r, 40) : fuzz_below(r, 6);

    return fuzz_chance(r, 8) ? fuzz_bits(r, ref_writable(MSR_PEBS_DATA_CFG))
                             : fuzz_below(r, 16) | entries << 24;
}

/* Mostly a latency near that of loads, which is 32 cycles */
static uint64_t any_ld_lat(FuzzRandom *r)
{
    /* With a core, below and at the three latencies */
    static const uint8_t of_core[] = { 3, 4, 6, 7, 13, 14 };

    return fuzz_chance(r, 4) ? fuzz_bits(r, ref_writable(MSR_PEBS_LD_LAT))
           : pmu && pmu->core ? fuzz_pick(r, of_core) : 30 + fuzz_below(r, 4);
}

/* Mostly with branches recorded */
static uint64_t any_lbr_ctl(FuzzRandom *r)
{
    uint64_t on = fuzz_chance(r, 4) ? 0 : 7 /* LBREn, OS, USR */;

    return fuzz_bits(r, ref_writable(MSR_ARCH_CTL)) | on;
}

/* 32-bit values of counters are sign-extended, and can overflow, too. */
static void make_wrmsr(FuzzRandom *r, uint64_t *arg)
{
    uint64_t bits;

    arg[0] = any_register(r);
    bits = ref_writable(arg[0]);
    if (arg[0] == MSR_DS_AREA) {
        arg[1] = any_ds_area(r);
    } else if (arg[0] == MSR_PEBS_DATA_CFG) {
        arg[1] = any_data_cfg(r);
    } else if (arg[0] == MSR_PEBS_LD_LAT) {
        arg[1] = any_ld_lat(r);
    } else if (arg[0] == MSR_ARCH_CTL) {
        arg[1] = any_lbr_ctl(r);
    } else if (pmu && bits >> 22 & 1 && bits >> 16 & 1 && !(bits >> 38 & 1)) {
        arg[1] = any_selector(r);
    } else if (bits >> 38 & 1) {
        arg[1] = any_count(r);
    } else {
        arg[1] = fuzz_bits(r, bits);
    }
}

static void run_wrmsr(const uint64_t *arg)
{
    uint64_t val = arg[0] == MSR_DS_AREA ? ref_safe_area(arg[1]) : arg[1];
    X86VPmuAccess got = x86_vpmu_wrmsr(cpu(), arg[0], val);

    fuzz_expect(name_of("writing", arg[0]), got,
                (X86VPmuAccess)ref_write(arg[0], val));
    check_interrupts();
}

/*
 * PEBS: the guest writes a field of its DS save area, or has a counter sampled.
 */

/* Mostly a multiple of a record's size from the beginning of a buffer */
static uint64_t any_place(FuzzRandom *r)
{
    static const unsigned basic_sizes[] = { 4, 22, 24, 25, 4 };
    static const unsigned other_sizes[] = { 3, 7, 8, 14, 36, 40, 61 };
    static const uint64_t places[] = {
        REF_BUFFER, REF_BUFFER, REF_BUFFER, REF_BUFFER, REF_BUFFER + 0xff8,
        REF_BUFFER + 0x1ffd, REF_BUFFER + REF_BUFFER_SIZE - 0x400,
        (1ull << 32) + REF_BUFFER,
    };
    unsigned size = fuzz_chance(r, 3) ? fuzz_pick(r, other_sizes)
                                      : basic_sizes[pmu->pebs];
    uint64_t offset = size * fuzz_below(r, 6) * 8;

    offset += fuzz_chance(r, 6) ? fuzz_below(r, 3) - 1 : 0;
    return fuzz_chance(r, 12) ? fuzz_number(r) : fuzz_pick(r, places) + offset;
}

static void make_ds(FuzzRandom *r, uint64_t *arg)
{
    const unsigned first_reset = (REF_DS_RESET - REF_DS_INDEX) / 8;
    const unsigned maximum = (REF_DS_MAXIMUM - REF_DS_INDEX) / 8;

    if (has_pebs()) {
        arg[0] = fuzz_chance(r, 4) ? fuzz_below(r, REF_DS_NR_FIELDS)
                                   : fuzz_below(r, first_reset);
        arg[1] = arg[0] < first_reset ? any_place(r) : any_count(r);
        arg[1] += arg[0] == maximum && fuzz_chance(r, 2) ? 0x1000 : 0;
    }
}

static void run_ds(const uint64_t *arg)
{
    unsigned offset = REF_DS_INDEX + arg[0] % REF_DS_NR_FIELDS * 8;
    uint64_t val = ref_safe_field(offset, arg[1]), addr;
    uint64_t word = cpu_to_le64(val);

    if (has_pebs() && ref_ds_field(offset, &addr)) {
        ref_write_word(addr, val, 0);
        cpu_physical_memory_write(addr, &word, sizeof(word));
    }
}

static void make_sample(FuzzRandom *r, uint64_t *arg)
{
    if (has_pebs()) {
        arg[0] = fuzz_below(r, 12);
        arg[1] = any_selector(r) | BIT_ULL(22) /* EN */;
        arg[2] = any_count(r);
    }
}

static void set_bits(uint32_t msr, uint64_t bits)
{
    uint64_t val;

    if (ref_read(msr, &val) == REF_DONE) {
        run_wrmsr((uint64_t[]) { msr, val | bits });
    }
}

/* Before format 4, separate bits enable the latency of loads. */
static void sample_gp(unsigned i, uint64_t selector, uint64_t count)
{
    uint64_t latency = has_adaptive_pebs() ? 0 : (count & 1) << (32 + i);

    run_wrmsr((uint64_t[]) { MSR_PERFCTR0 + i, count });
    run_wrmsr((uint64_t[]) { MSR_EVTSEL0 + i, selector });
    set_bits(MSR_PEBS_ENABLE, BIT_ULL(i) | latency);
}

static void sample_fixed(unsigned i, uint64_t adaptive, uint64_t count)
{
    run_wrmsr((uint64_t[]) { MSR_FIXED_CTR0 + i, count });
    set_bits(MSR_FIXED_CTR_CTRL, (3 | adaptive << 32) << 4 * i);
    set_bits(MSR_PEBS_ENABLE, BIT_ULL(32 + i));
}

static void run_sample(const uint64_t *arg)
{
    if (has_pebs()) {
        unsigned n = pmu->nr_gp + (has_adaptive_pebs() ? pmu->nr_fixed : 0);
        unsigned i = arg[0] % n;

        if (i < pmu->nr_gp) {
            sample_gp(i, arg[1], arg[2]);
        } else {
            sample_fixed(i - pmu->nr_gp, arg[1] >> 34 & 1, arg[2]);
        }
    }
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
 * Events
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

/* Addresses also have bits set where records have flags. */
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

/* An interrupt or an exception, which is also recorded as a branch */
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
 * Saved state in memory is not part of the CPU's state: RSM restores the EFER
 * of the last SMI, on either CPU.
 */
static bool svme_in_memory;

static bool is_in_smm(void)
{
    return cpu()->env.hflags & HF_SMM_MASK;
}

/* In SMM, SMIs are blocked. */
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

/* Set the registers that records show, and that no operation changes. */
static void prepare_registers(void)
{
    CPUX86State *env = &cpu()->env;

    for (unsigned i = 0; i < CPU_NB_REGS; i++) {
        env->regs[i] = REF_GPR(i);
        env->xmm_regs[i].ZMM_Q(0) = REF_XMM(2 * i);
        env->xmm_regs[i].ZMM_Q(1) = REF_XMM(2 * i + 1);
    }
    cpu_load_eflags(env, REF_FLAGS, -1);
    env->tsc_offset = REF_TIME;
}

static void run_reset(const uint64_t *arg)
{
    cpu_reset(fuzz_cpu);
    prepare_registers();
    x86_vpmu_reset(cpu());
    ref_reset();
    ref_state.svme = false;
    ref_state.smm = false;
    set_nmi(false);
}

/* INIT leaves the PMU alone, except for PEBS and the effects of SVM and SMM. */
static void run_init(const uint64_t *arg)
{
    do_cpu_init(cpu());
    prepare_registers();
    ref_init_signal();
    ref_state.svme = false;
    prepare_apic(REF_LVT_NMI, false);
}

static const FuzzVerb verbs[] = {
    { "wrmsr", 2, 60, make_wrmsr, run_wrmsr },
    { "rdmsr", 1, 20, make_rdmsr, run_rdmsr },
    { "rdpmc", 1, 5, make_rdpmc, run_rdpmc },
    { "ds", 2, 10, make_ds, run_ds },
    { "sample", 3, 10, make_sample, run_sample },
    { "insns", 2, 25, fuzz_make_insns, fuzz_run_insns },
    { "retire", 3, 25, fuzz_make_retire, fuzz_run_retire },
    { "other", 3, 20, fuzz_make_other, fuzz_run_other },
    { "step", 3, 40, fuzz_make_step, fuzz_run_step },
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

/*
 * QEMU hides guest memory from its children, in which programs run: undo that.
 */
static int share_block(RAMBlock *block, void *opaque)
{
    return madvise(qemu_ram_get_host_addr(block),
                   qemu_ram_get_used_length(block), MADV_DOFORK);
}

static void clear_page(hwaddr page)
{
    address_space_set(&address_space_memory, page, 0, TARGET_PAGE_SIZE,
                      MEMTXATTRS_UNSPECIFIED);
}

/* Also clear pages to which changed streams may have written records. */
static void write_memory(void)
{
    clear_page(0);
    clear_page(REF_SMM_STATE);
    for (const RefWindow *w = ref_windows; w->size; w++) {
        if (!w->rom) {
            cpu_physical_memory_write(w->base, w->bytes, w->size);
        }
    }
}

static void write_rom(void)
{
    for (const RefWindow *w = ref_windows; w->size; w++) {
        if (w->rom) {
            address_space_write_rom(&address_space_memory, w->base,
                                    MEMTXATTRS_UNSPECIFIED, w->bytes, w->size);
        }
    }
}

/*
 * Make the PMU claim to be KVM's, as target/i386/vpmu/qtest.c explains: the
 * state is the same, and few test hosts have KVM with Intel's PMU.
 */
static void be_under_kvm(void)
{
    CPUState *cs;

    CPU_FOREACH(cs) {
        X86VPmu *v = X86_CPU(cs)->vpmu;

        v->engine = X86_VPMU_KVM;
        v->kept = (X86VPmuKept) { .debugctl = true, .pebs = true };
    }
}

static void start(const FuzzFace *face)
{
    pmu = face->data;
    g_assert(qemu_ram_foreach_block(share_block, NULL) == 0);
    ref_memory_reset();
    write_rom();
    ref_init(pmu);
    g_assert(!pmu == !cpu()->vpmu);
    if (pmu && pmu->kvm) {
        be_under_kvm();
    }
}

static void begin(void)
{
    if (has_pebs()) {
        ref_memory_reset();
        write_memory();
    }
    run_reset(NULL);
    prepare_apic(REF_LVT_NMI, false);
    fuzz_align_cycles();
}

/* Store an instruction's addresses as translated code does. */
static void note_site(uint64_t pc, unsigned mode, bool accesses, uint64_t data)
{
    PmuTcgCells *cells = &cpu_env(fuzz_cpu)->pmu_cells;

    cells->site_pc = pc;
    cells->site_mode = mode;
    cells->site_known = true;
    if (fuzz_cpu->tcg_cflags & CF_PMU_ADDRESSES && accesses) {
        cells->access.pc = pc;
        cells->access.address = data;
    }
}

static void note_insn(PmuTallies events, unsigned mode)
{
    note_site(ref_pc(events), mode, events & (T(LOADS) | T(STORES)),
              ref_data(events, mode));
}

static void note_step(const FuzzInsn *insn, unsigned mode)
{
    note_site(insn->pc, mode, insn->access != PMU_CORE_FETCH, insn->data);
}

static void for_each_register(void (*look)(uint32_t msr))
{
    for (unsigned n = 0; n < ARRAY_SIZE(registers); n++) {
        for (unsigned i = 0; i < registers[n].nr; i++) {
            look(registers[n].first + i);
        }
    }
}

static void check_word(const RefWindow *w, const uint8_t *held, unsigned at)
{
    uint64_t known = ~ldq_le_p(w->unknown + at);

    fuzz_expect(name_of("memory at", w->base + at), ldq_le_p(held + at) & known,
                ldq_le_p(w->bytes + at) & known);
}

static void check_window(const RefWindow *w)
{
    static uint8_t held[REF_BUFFER_SIZE];

    g_assert(w->size <= sizeof(held));
    cpu_physical_memory_read(w->base, held, w->size);
    for (unsigned at = 0; at < w->size; at += 8) {
        if (memcmp(held + at, w->bytes + at, 8)) {
            check_word(w, held, at);
        }
    }
}

static void check_memory(void)
{
    for (const RefWindow *w = ref_windows; has_pebs() && w->size; w++) {
        if (!w->rom) {
            check_window(w);
        }
    }
}

static void check(void)
{
    for_each_register(read_register);
    check_interrupts();
    check_memory();
}

/*
 * A register's value can be written and read back, except sign-extended ones.
 */
static void check_legal_register(uint32_t msr)
{
    uint64_t val, again;
    uint64_t bits = ref_writable(msr);

    if (rdmsr(msr, &val) != X86_VPMU_DONE || !bits
        || (bits == UINT64_MAX && msr != MSR_DS_AREA)) {
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
    uint32_t status = amd ? MSR_AMD_STATUS : MSR_STATUS;
    uint64_t bits = ref_writable(amd ? MSR_AMD_STATUS_CLR : MSR_STATUS_RESET);
    uint64_t val;

    if (rdmsr(status, &val) == X86_VPMU_DONE && val & ~bits) {
        fprintf(stderr, "status is 0x%" PRIx64 "\n", val);
        abort();
    }
}

/* Under KVM, the kernel refuses values, not QEMU. */
static void check_legal(void)
{
    if (pmu && !pmu->kvm) {
        check_legal_status();
        for_each_register(check_legal_register);
    }
}

/* Fold: under KVM, the kernel has noticed every overflow. */
static void before_save(void)
{
    if (pmu && pmu->kvm) {
        pmu_fold(fuzz_cpu->pmu->pmu);
    }
}

/* Only the state of a PMU that is used contains fractions of cycles. */
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
        "cpu/vpmu/lbr/arch", "cpu/vpmu/pebs", "cpu/vpmu/smm",
        "cpu/vpmu/lbr/since", "cpu/kvm-vpmu", "cpu/vpmu/offcore", NULL
    },
    .nr_modes = NR_MODES,
    .retired = retired,
    .nr_retired = ARRAY_SIZE(retired),
    .other = other,
    .nr_other = ARRAY_SIZE(other),
    .start = start,
    .happen = ref_happen,
    .step = ref_step,
    .note_insn = note_insn,
    .note_step = note_step,
    .begin_cycle = ref_begin_cycle,
    .check_interrupts = check_interrupts,
    .begin = begin,
    .check = check,
    .check_legal = check_legal,
    .remember = ref_remember,
    .recall = ref_recall,
    .before_save = before_save,
    .moved = moved,
};
