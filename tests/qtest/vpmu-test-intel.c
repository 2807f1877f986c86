/*
 * QTest of the virtual PMU: Intel's registers, as the guest sees them
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/units.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "vpmu-test-x86.h"

#define MODEL "Skylake-Client-v1"
#define INTEL MODEL ",pmu=on"

/* The number of Diamond Rapids, which not every QEMU has as a model */
#define PANTHER_COVE "GraniteRapids-v1,family=19,model=1,pmu=on"

#define NR_GP 4
#define NR_FIXED 3
#define MAX_GP 8
#define MAX_VERSION 6

/* The distance of the second numbers that version 6 gives to registers */
#define PMC_STEP 4

#define EVENT_CYCLES   0x3c
#define EVENT_INSNS    0xc0
#define EVENT_BRANCHES 0xc4

#define FIXED(counter, field) ((uint64_t)(field) << (4 * (counter)))

#define GLOBAL_GP(counter)    BIT64(counter)
#define GLOBAL_FIXED(counter) BIT64(32 + (counter))
#define GLOBAL_ALL (LOW_BITS(NR_GP) | LOW_BITS(NR_FIXED) << 32)

#define RDPMC_METRICS 0x20000000u
#define RDPMC_FIXED   0x40000000u

/* Start without registers that depend on other features than the version. */
static Machine x86_start_version(unsigned version)
{
    g_autofree char *cpu = g_strdup_printf(INTEL ",lbr=off,pmu-version=%u",
                                           version);

    return x86_start(cpu);
}

static void arm_fixed(Machine *m, unsigned i, uint64_t distance, uint64_t flags)
{
    wrmsr(m, MSR_FIXED_CTR_CTRL, 0);
    wrmsr(m, MSR_FIXED_CTR0 + i, -distance & LOW_BITS(48));
    wrmsr(m, MSR_FIXED_CTR_CTRL, FIXED(i, FIXED_OS | FIXED_USR | flags));
    wrmsr(m, MSR_GLOBAL_CTRL, GLOBAL_ALL);
}

/*
 * CPUID and capabilities
 */

static const struct Leaf {
    const char *name, *cpu;
    uint32_t regs[4];
} leaves[] = {
    { "default", INTEL,                   { 0x07300402, 0x58, 0, 0x603 } },
    { "v1", INTEL ",pmu-version=1",       { 0x07300401, 0x58, 0, 0 } },
    { "v2", INTEL ",pmu-version=2",       { 0x07300402, 0x58, 0, 0x603 } },
    { "v3", INTEL ",pmu-version=3",       { 0x07300403, 0x58, 0, 0x603 } },
    { "v4", INTEL ",pmu-version=4",       { 0x07300404, 0x58, 0, 0x603 } },
    { "v5", INTEL ",pmu-version=5",       { 0x07300405, 0x58, 7, 0x8603 } },
    { "v6", INTEL ",pmu-version=6",       { 0x07300406, 0x58, 7, 0x8603 } },
    { "4-counters", INTEL ",pmu-gp-counters=4",
                                          { 0x07300402, 0x58, 0, 0x603 } },
    { "8-counters", INTEL ",pmu-gp-counters=8",
                                          { 0x07300802, 0x58, 0, 0x603 } },
    { "fixed-counters", INTEL ",pmu-fixed-counters=3",
                                          { 0x07300402, 0x58, 0, 0x603 } },
    { "max", "max,vendor=GenuineIntel,pmu=on",
                                          { 0x07300402, 0x58, 0, 0x603 } },
    { "Icelake-Server", "Icelake-Server-v1,pmu=on",
                                          { 0x07300802, 0x58, 0, 0x603 } },
    { "low-level", "pentium3,pmu=on",     { 0x07300402, 0x58, 0, 0x603 } },
    { "off", MODEL ",pmu=off",            { 0, 0, 0, 0 } },
};

static void test_leaf(const void *data)
{
    const struct Leaf *leaf = data;
    Machine m = x86_start(leaf->cpu);
    uint32_t regs[4], basic[4];
    unsigned i;

    cpuid(&m, 0, basic);
    cpuid(&m, 0xa, regs);
    for (i = 0; i < 4; i++) {
        g_assert_cmphex(regs[i], ==, leaf->regs[i]);
    }
    if (regs[0]) {
        g_assert_cmphex(basic[0], >=, 0xa);
    }
    stop(&m);
}

#define PDCM       BIT64(15)
#define DTES64     BIT64(2)
#define DS         BIT64(21)
#define ARCH_LBR   BIT64(19)

/* There are no bits for PEBS and BTS, and none for LBR with lbr=off. */
static void test_features(void)
{
    Machine m = x86_start(INTEL ",lbr=off");
    uint32_t regs[4];

    cpuid(&m, 1, regs);
    g_assert_cmphex(regs[2] & (PDCM | DTES64), ==, PDCM);
    g_assert_cmphex(regs[3] & DS, ==, 0);
    cpuid(&m, 7, regs);
    g_assert_cmphex(regs[3] & ARCH_LBR, ==, 0);
    assert_msr(&m, MSR_PERF_CAP, PERF_CAP_FULL_WIDTH | PERF_CAP_FREEZE_IN_SMM);
    stop(&m);
}

/* Bit 7: counters; bits 11 and 12: no BTS, no PEBS.  All are read-only. */
static void test_misc_enable(void)
{
    const uint64_t mask = BIT64(7) | BIT64(11) | BIT64(12);
    Machine m = x86_start(INTEL);

    g_assert_cmphex(rdmsr(&m, MSR_MISC_ENABLE) & mask, ==, mask);
    wrmsr(&m, MSR_MISC_ENABLE, 1);
    g_assert_cmphex(rdmsr(&m, MSR_MISC_ENABLE), ==, mask | 1);
    stop(&m);
    m = x86_start(MODEL ",pmu=off");
    g_assert_cmphex(rdmsr(&m, MSR_MISC_ENABLE) & mask, ==, 0);
    stop(&m);
}

/* Without PDCM, neither PERF_CAPABILITIES nor its features exist. */
static void test_without_pdcm(void)
{
    Machine m = x86_start(INTEL ",pdcm=off");
    uint32_t regs[4];
    uint64_t val;

    cpuid(&m, 1, regs);
    g_assert_cmphex(regs[2] & PDCM, ==, 0);
    g_assert_false(try_rdmsr(&m, MSR_PERF_CAP, &val));
    g_assert_false(try_rdmsr(&m, MSR_A_PMC0, &val));
    g_assert_false(try_wrmsr(&m, MSR_A_PMC0, 0));
    g_assert_false(try_wrmsr(&m, MSR_DEBUGCTL, DEBUGCTL_FREEZE_IN_SMM));
    g_assert_true(try_wrmsr(&m, MSR_DEBUGCTL, DEBUGCTL_FREEZE_ON_PMI));
    stop(&m);
}

/*
 * Existence of registers, and their bits
 */

/**
 * struct Register - a register of some versions
 * @msr: its number
 * @first: the first of these versions
 * @last: the last of them
 * @keeps: bits that can be written, and read back
 * @takes: bits that can be written as 1 but are not read back; without bits of
 *         either kind, any write faults
 */
static const struct Register {
    uint32_t msr;
    unsigned first, last;
    uint64_t keeps, takes;
} registers[] = {
    { MSR_EVTSEL0, 1, 2, LOW_BITS(32) & ~SEL_ANY },
    { MSR_EVTSEL0, 3, 4, LOW_BITS(32) },
    { MSR_EVTSEL0, 5, 5, LOW_BITS(32) & ~SEL_ANY },
    { MSR_EVTSEL0, 6, 6, (LOW_BITS(32) & ~SEL_ANY) | SEL_EQ | SEL_UMASK2 },
    { MSR_PMC_GP0_CFG_A, 6, 6,
      (LOW_BITS(32) & ~SEL_ANY) | SEL_EQ | SEL_UMASK2 },
    { MSR_PMC_GP0_CTR, 6, 6, LOW_BITS(48) },
    { MSR_PMC_FX0_CTR, 6, 6, LOW_BITS(48) },
    { MSR_A_PMC0, 1, 6, LOW_BITS(48) },
    { MSR_FIXED_CTR0, 2, 6, LOW_BITS(48) },
    { MSR_FIXED_CTR0 + NR_FIXED, MAX_VERSION + 1 /* none has it */ },
    { MSR_FIXED_CTR_CTRL, 2, 2, 0xbbb },
    { MSR_FIXED_CTR_CTRL, 3, 4, 0xfff },
    { MSR_FIXED_CTR_CTRL, 5, 6, 0xbbb },
    { MSR_GLOBAL_CTRL, 2, 6, GLOBAL_ALL },
    { MSR_STATUS, 2, 6 },
    { MSR_STATUS_RESET, 2, 3, 0, GLOBAL_ALL | 3ull << 62 },
    { MSR_STATUS_RESET, 4, 6, 0, GLOBAL_ALL | 0x3full << 58 },
    { MSR_STATUS_SET, 4, 6, 0, GLOBAL_ALL | 0x1bull << 58 },
    { MSR_INUSE, 4, 6 },
    { MSR_PERF_CAP, 1, 6 },
    { MSR_DEBUGCTL, 1, 1, DEBUGCTL_BTF, DEBUGCTL_LBR },
    { MSR_DEBUGCTL, 2, 6,
      DEBUGCTL_BTF | DEBUGCTL_FREEZE_ON_PMI | DEBUGCTL_FREEZE_IN_SMM,
      DEBUGCTL_LBR },
};

static bool has_register(unsigned version, uint32_t msr)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(registers); i++) {
        if (registers[i].msr == msr && registers[i].first <= version
            && version <= registers[i].last) {
            return true;
        }
    }
    return false;
}

static void check_bit(Machine *m, const struct Register *r, uint64_t bit)
{
    bool allowed = bit & (r->keeps | r->takes);

    wrmsr(m, r->msr, 0);
    g_assert_cmpint(try_wrmsr(m, r->msr, bit), ==, allowed);
    assert_msr(m, r->msr, allowed ? bit & r->keeps : 0);
}

static void check_bits(Machine *m, uint32_t msr, uint64_t keeps,
                       uint64_t takes)
{
    const struct Register r = { msr, 1, MAX_VERSION, keeps, takes };

    for (unsigned bit = 0; bit < 64; bit++) {
        check_bit(m, &r, BIT64(bit));
    }
    wrmsr(m, msr, 0);
}

static void check_read_only(Machine *m, const struct Register *r)
{
    uint64_t val = rdmsr(m, r->msr);

    g_assert_false(try_wrmsr(m, r->msr, val));
    g_assert_false(try_wrmsr(m, r->msr, 0));
    assert_msr(m, r->msr, val);
}

static void test_bits(const void *data)
{
    unsigned version = GPOINTER_TO_UINT(data);
    Machine m = x86_start_version(version);
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(registers); i++) {
        const struct Register *r = &registers[i];

        if (version < r->first || r->last < version) {
            continue;
        }
        g_test_message("register 0x%x", r->msr);
        if (!(r->keeps | r->takes)) {
            check_read_only(&m, r);
            continue;
        }
        check_bits(&m, r->msr, r->keeps, r->takes);
    }
    stop(&m);
}

static void test_absent(const void *data)
{
    unsigned version = GPOINTER_TO_UINT(data);
    Machine m = x86_start_version(version);
    uint64_t val;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(registers); i++) {
        if (!has_register(version, registers[i].msr)) {
            g_test_message("register 0x%x", registers[i].msr);
            g_assert_false(try_rdmsr(&m, registers[i].msr, &val));
            g_assert_false(try_wrmsr(&m, registers[i].msr, 0));
        }
    }
    stop(&m);
}

static void check_counter(Machine *m, unsigned i, bool exists)
{
    static const uint32_t first[] = { MSR_PERFCTR0, MSR_A_PMC0, MSR_EVTSEL0 };
    uint64_t val;
    unsigned j;

    for (j = 0; j < G_N_ELEMENTS(first); j++) {
        g_assert_cmpint(try_rdmsr(m, first[j] + i, &val), ==, exists);
        g_assert_cmpint(try_wrmsr(m, first[j] + i, 1), ==, exists);
    }
    g_assert_cmpint(try_rdpmc(m, i, 0, &val), ==, exists);
    g_assert_cmpint(try_wrmsr(m, MSR_GLOBAL_CTRL, GLOBAL_GP(i)), ==, exists);
}

static void test_number_of_counters(const void *data)
{
    unsigned n = GPOINTER_TO_UINT(data);
    g_autofree char *cpu = g_strdup_printf(INTEL ",pmu-gp-counters=%u", n);
    Machine m = x86_start(cpu);
    unsigned i;

    assert_msr(&m, MSR_GLOBAL_CTRL, LOW_BITS(n));
    for (i = 0; i < MAX_GP; i++) {
        check_counter(&m, i, i < n);
    }
    stop(&m);
}

/* Both numbers of a register are of the same one, which has to be there. */
static void check_alias(Machine *m, uint32_t msr, uint32_t alias, bool exists)
{
    uint64_t val;

    g_assert_cmpint(try_rdmsr(m, alias, &val), ==, exists);
    g_assert_cmpint(try_wrmsr(m, alias, 0x4321), ==, exists);
    if (exists) {
        assert_msr(m, msr, 0x4321);
        wrmsr(m, msr, 0x1234);
        assert_msr(m, alias, 0x1234);
    }
}

static void test_aliases(void)
{
    Machine m = x86_start(INTEL ",pmu-version=6,pmu-gp-counters=8");

    for (unsigned i = 0; i < MAX_GP; i++) {
        check_alias(&m, MSR_A_PMC0 + i, MSR_PMC_GP0_CTR + PMC_STEP * i, true);
        check_alias(&m, MSR_EVTSEL0 + i, MSR_PMC_GP0_CFG_A + PMC_STEP * i,
                    true);
    }
    for (unsigned i = 0; i <= NR_FIXED; i++) {
        check_alias(&m, MSR_FIXED_CTR0 + i, MSR_PMC_FX0_CTR + PMC_STEP * i,
                    i < NR_FIXED);
    }
    stop(&m);
    m = x86_start(INTEL ",pmu-version=6");
    check_alias(&m, MSR_A_PMC0, MSR_PMC_GP0_CTR + PMC_STEP * NR_GP, false);
    check_alias(&m, MSR_EVTSEL0, MSR_PMC_GP0_CFG_A + PMC_STEP * NR_GP, false);
    stop(&m);
}

/* A counter that software only uses by the second numbers */
static void test_alias_counts(void)
{
    Machine m = x86_start(INTEL ",pmu-version=6");

    wrmsr(&m, MSR_GLOBAL_CTRL, GLOBAL_ALL);
    wrmsr(&m, MSR_PMC_GP0_CTR + PMC_STEP, -100 & LOW_BITS(48));
    wrmsr(&m, MSR_PMC_GP0_CFG_A + PMC_STEP, EVENT_INSNS | SEL_ALL);
    count(&m, PMU_TALLY_INSNS, USER, 110);
    assert_msr(&m, MSR_PMC_GP0_CTR + PMC_STEP, 10);
    assert_msr(&m, MSR_STATUS, GLOBAL_GP(1));
    wrmsr(&m, MSR_PMC_GP0_CFG_A + PMC_STEP, 0);
    count(&m, PMU_TALLY_INSNS, USER, 100);
    assert_msr(&m, MSR_PMC_GP0_CTR + PMC_STEP, 10);
    stop(&m);
}

/*
 * CPUID leaf 0x23: which subleaves there are, the bits of selectors, and slots;
 * counters; events.  Processors' dumps have these values, but for events that
 * are not counted, and for the subleaves of features that are not there.
 */
#define UMASK2_EQ 3

static const struct Extended {
    const char *name, *cpu;
    bool there;
    unsigned version;
    uint32_t selectors, slots, gp, fixed, events;
} extended[] = {
    { "sapphire-rapids", "SapphireRapids,pmu=on", false, 5 },
    { "granite-rapids", "GraniteRapids,pmu=on", true, 5, 0, 0, 0xff, 7, 0x27 },
    { "off", "GraniteRapids,pmu=on,arch-perfmon-ext=off", false, 5 },
    { "earlier", "GraniteRapids,pmu=on,pmu-version=4", false, 4 },
    { "low-level", "GraniteRapids,pmu=on,level=0x22", false, 5 },
    { "slots", "GraniteRapids,pmu=on,pmu-core=core0 "
      "-object pmu-core,id=core0,preset=skylake",
      true, 5, 0, 0, 0xff, 0xf, 0xff },
    { "sierra-forest", "SierraForest,pmu=on",
      true, 5, 0, 6, 0xff, 7, 0x27 },
    { "clearwater-forest", "ClearwaterForest,pmu=on",
      true, 6, UMASK2_EQ, 8, 0xff, 7, 0x27 },
    { "without-records", "ClearwaterForest,pmu=on,lbr=off",
      true, 6, UMASK2_EQ, 8, 0xff, 7, 0x27 },
    { "clearwater-forest-off",
      "ClearwaterForest,pmu=on,arch-perfmon-ext=off", false, 5 },
    { "diamond-rapids", PANTHER_COVE, true, 6, UMASK2_EQ, 0, 0xff, 7, 0x27 },
    { "other-family", "GraniteRapids-v1,family=19,pmu=on", false, 2 },
    { "given", INTEL ",pmu-version=6", true, 6, UMASK2_EQ, 0, 0xf, 7, 0x27 },
    { "core", INTEL ",pmu-version=6,pmu-core=core0 "
      "-object pmu-core,id=core0,preset=skylake",
      true, 6, UMASK2_EQ, 0, 0xf, 7, 0x7f },
    { "no-pmu", "GraniteRapids,pmu=off", false, 0 },
    { "amd", "EPYC-Genoa,pmu=on", false, 0 },
};

static void assert_subleaf(Machine *m, uint32_t subleaf, uint32_t eax,
                           uint32_t ebx, uint32_t ecx)
{
    uint32_t regs[4];

    g_test_message("subleaf %u", subleaf);
    cpuid_subleaf(m, 0x23, subleaf, regs);
    g_assert_cmphex(regs[0], ==, eax);
    g_assert_cmphex(regs[1], ==, ebx);
    g_assert_cmphex(regs[2], ==, ecx);
    g_assert_cmphex(regs[3], ==, 0);
}

static void test_extended(const void *data)
{
    const struct Extended *e = data;
    Machine m = x86_start(e->cpu);
    uint32_t regs[4];

    cpuid(&m, 0xa, regs);
    g_assert_cmpuint(regs[0] & 0xff, ==, e->version);
    cpuid_subleaf(&m, 7, 1, regs);
    g_assert_cmphex(regs[0] & BIT64(8), ==, e->there ? BIT64(8) : 0);
    cpuid(&m, 0, regs);
    if (e->there) {
        g_assert_cmphex(regs[0], >=, 0x23);
    }
    /* Beyond the level, CPUID has another leaf's contents. */
    if (regs[0] >= 0x23) {
        assert_subleaf(&m, 0, e->there ? 0xb : 0, e->selectors, e->slots);
        assert_subleaf(&m, 1, e->gp, e->fixed, 0);
        assert_subleaf(&m, 3, e->events, 0, 0);
        assert_subleaf(&m, 2, 0, 0, 0);
        assert_subleaf(&m, 4, 0, 0, 0);
        assert_subleaf(&m, 5, 0, 0, 0);
    }
    stop(&m);
}

/* Results after 1000 cycles and 700 instructions, of which no two are in one */
static void test_equality(void)
{
    static const struct {
        uint64_t evtsel, expected;
    } cases[] = {
        { SEL_CMASK(1), 700 },
        { SEL_CMASK(2), 0 },
        { SEL_INV | SEL_CMASK(1), 300 },
        { SEL_INV | SEL_CMASK(2), 1000 },
    };
    Machine m = x86_start(INTEL ",pmu-version=6");

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        wrmsr(&m, MSR_EVTSEL0, 0);
        wrmsr(&m, MSR_A_PMC0, 0);
        start_gp(&m, 0, EVENT_INSNS | SEL_EQ | cases[i].evtsel | SEL_ALL);
        count(&m, PMU_TALLY_CYCLES, KERNEL, 1000);
        count(&m, PMU_TALLY_INSNS, KERNEL, 700);
        assert_msr(&m, MSR_A_PMC0, cases[i].expected);
    }
    stop(&m);
}

/* An entry of a filter names no event with a second unit mask. */
static void test_filter_of_selectors(void)
{
    static const char filter[] =
        PANTHER_COVE " -S -accel tcg,pmu-filter=f0 -object '{\"qom-type\":"
        " \"kvm-pmu-filter\", \"id\": \"f0\", \"action\": \"deny\","
        " \"events\": [{\"format\": \"raw\", \"code\": 196}]}'";
    Machine m = x86_start(filter);

    wrmsr(&m, MSR_GLOBAL_CTRL, GLOBAL_ALL);
    wrmsr(&m, MSR_EVTSEL0, EVENT_BRANCHES | SEL_ALL);
    wrmsr(&m, MSR_EVTSEL0 + 1, EVENT_BRANCHES | BIT64(40) | SEL_ALL);
    assert_stopped_by(&m, 0, "filter");
    assert_stopped_by(&m, 1, "");
    stop(&m);
}

/* The second unit mask and the test for equality go along. */
static void test_migration_of_selectors(void)
{
    const uint64_t sel = 0xc4 | BIT64(40) | SEL_EQ | SEL_CMASK(1) | SEL_ALL;
    g_autofree char *args = x86_args(PANTHER_COVE);
    Machine m = x86_start(PANTHER_COVE);

    wrmsr(&m, MSR_GLOBAL_CTRL, GLOBAL_ALL);
    wrmsr(&m, MSR_EVTSEL0, sel);
    migrate_machine(&m, args);
    assert_msr(&m, MSR_EVTSEL0, sel);
    count(&m, PMU_TALLY_FAR_BRANCHES, USER, 10);
    count(&m, PMU_TALLY_COND_TAKEN, USER, 100);
    assert_msr(&m, MSR_A_PMC0, 10);
    stop(&m);
}

static const struct Rdpmc {
    uint32_t ecx;
    unsigned first_version;
} rdpmc_indices[] = {
    { 0, 1 },
    { NR_GP - 1, 1 },
    { NR_GP, UINT_MAX },
    { 0xffff, UINT_MAX },
    { 0x10000, UINT_MAX },
    { RDPMC_FIXED, 2 },
    { RDPMC_FIXED + NR_FIXED - 1, 2 },
    { RDPMC_FIXED + NR_FIXED, UINT_MAX },
    { RDPMC_FIXED + 0x10000, UINT_MAX },
    { RDPMC_METRICS, UINT_MAX },
    { 0x60000000, UINT_MAX },
    { 0x80000000, UINT_MAX },
    { 0xc0000000, UINT_MAX },
    { 0xffffffff, UINT_MAX },
};

static void test_rdpmc_index(const void *data)
{
    unsigned version = GPOINTER_TO_UINT(data);
    Machine m = x86_start_version(version);
    uint64_t val;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rdpmc_indices); i++) {
        g_test_message("ECX 0x%x", rdpmc_indices[i].ecx);
        g_assert_cmpint(try_rdpmc(&m, rdpmc_indices[i].ecx, 0, &val), ==,
                        version >= rdpmc_indices[i].first_version);
    }
    stop(&m);
}

static void test_rdpmc_fixed(void)
{
    Machine m = x86_start(INTEL);
    uint64_t val;
    unsigned cpl;

    for (cpl = 0; cpl < 4; cpl++) {
        write_cr4(&m, 0);
        g_assert_cmpint(try_rdpmc(&m, RDPMC_FIXED, cpl, &val), ==, cpl == 0);
        write_cr4(&m, CR4_PCE);
        g_assert_true(try_rdpmc(&m, RDPMC_FIXED, cpl, &val));
    }
    wrmsr(&m, MSR_FIXED_CTR0 + 2, 0xa5a5a5a5a5a5);
    g_assert_cmphex(rdpmc(&m, RDPMC_FIXED + 2), ==, 0xa5a5a5a5a5a5);
    stop(&m);
}

/*
 * Reading, writing and counting
 */

static const struct Write {
    uint64_t written, legacy;
} writes[] = {
    { 0, 0 },
    { 1, 1 },
    { 0x7fffffff, 0x7fffffff },
    { 0x80000000, 0xffff80000000 },
    { 0xffffffff, 0xffffffffffff },
    { 0x123456789, 0x23456789 },
    { 0x123480000000, 0xffff80000000 },
    { 0xfffffffffffe, 0xfffffffffffe },
};

static void check_write(Machine *m, unsigned i, const struct Write *w)
{
    wrmsr(m, MSR_PERFCTR0 + i, w->written);
    assert_msr(m, MSR_PERFCTR0 + i, w->legacy);
    assert_msr(m, MSR_A_PMC0 + i, w->legacy);
    wrmsr(m, MSR_A_PMC0 + i, w->written);
    assert_msr(m, MSR_A_PMC0 + i, w->written);
    assert_msr(m, MSR_PERFCTR0 + i, w->written);
    wrmsr(m, MSR_PERFCTR0 + i, w->written | 0xa5a5ull << 48);
    assert_msr(m, MSR_PERFCTR0 + i, w->legacy);
}

/* Counter 0 is stopped, counter 1 runs. */
static void test_writes(void)
{
    Machine m = x86_start(INTEL);
    unsigned i;

    start_gp(&m, 1, EVENT_INSNS | SEL_OS);
    for (i = 0; i < G_N_ELEMENTS(writes); i++) {
        count(&m, PMU_TALLY_INSNS, KERNEL, 3);
        check_write(&m, 0, &writes[i]);
        check_write(&m, 1, &writes[i]);
        wrmsr(&m, MSR_FIXED_CTR0, writes[i].written);
        assert_msr(&m, MSR_FIXED_CTR0, writes[i].written);
    }
    stop(&m);
}

static void test_fault_changes_nothing(void)
{
    Machine m = x86_start(INTEL);

    start_gp(&m, 0, EVENT_INSNS | SEL_OS);
    wrmsr(&m, MSR_A_PMC0, 1000);
    g_assert_false(try_wrmsr(&m, MSR_A_PMC0, BIT64(48)));
    g_assert_false(try_wrmsr(&m, MSR_EVTSEL0, BIT64(32)));
    g_assert_false(try_wrmsr(&m, MSR_GLOBAL_CTRL, BIT64(31)));
    count(&m, PMU_TALLY_INSNS, KERNEL, 1);
    assert_msr(&m, MSR_A_PMC0, 1001);
    assert_msr(&m, MSR_EVTSEL0, EVENT_INSNS | SEL_OS | SEL_EN);
    assert_msr(&m, MSR_GLOBAL_CTRL, LOW_BITS(NR_GP));
    stop(&m);
}

static const uint64_t modes_by_filter[] = {
    0, 0x10101010, 0x01010101, 0x11111111, /* none, USR, OS, both */
};

static void test_fixed_modes(void)
{
    Machine m = x86_start(INTEL);
    unsigned i;

    wrmsr(&m, MSR_GLOBAL_CTRL, GLOBAL_ALL);
    for (i = 0; i < 4; i++) {
        wrmsr(&m, MSR_FIXED_CTR0, 0);
        wrmsr(&m, MSR_FIXED_CTR_CTRL, FIXED(0, (i & 1 ? FIXED_USR : 0)
                                               | (i & 2 ? FIXED_OS : 0)));
        count_in_all_modes(&m, PMU_TALLY_INSNS);
        assert_msr(&m, MSR_FIXED_CTR0, modes_by_filter[i]);
    }
    stop(&m);
}

static void test_freeze_in_smm(void)
{
    Machine m = x86_start(INTEL);

    wrmsr(&m, MSR_GLOBAL_CTRL, GLOBAL_ALL);
    start_gp(&m, 0, EVENT_INSNS | SEL_ALL);
    wrmsr(&m, MSR_FIXED_CTR_CTRL, FIXED(0, FIXED_OS | FIXED_USR));
    wrmsr(&m, MSR_DEBUGCTL, DEBUGCTL_FREEZE_IN_SMM);
    count_in_all_modes(&m, PMU_TALLY_INSNS);
    assert_msr(&m, MSR_PERFCTR0, 0x1111);
    assert_msr(&m, MSR_FIXED_CTR0, 0x1111);
    wrmsr(&m, MSR_DEBUGCTL, 0);
    count(&m, PMU_TALLY_INSNS, SMM, 1);
    assert_msr(&m, MSR_PERFCTR0, 0x1112);
    stop(&m);
}

static void test_fixed_events(void)
{
    static const PmuTally tallies[NR_FIXED] = {
        PMU_TALLY_INSNS, PMU_TALLY_CYCLES, PMU_TALLY_REF_CYCLES,
    };
    Machine m = x86_start(INTEL);
    unsigned i;

    wrmsr(&m, MSR_GLOBAL_CTRL, GLOBAL_ALL);
    wrmsr(&m, MSR_FIXED_CTR_CTRL, 0x333);
    for (i = 0; i < NR_FIXED; i++) {
        count(&m, tallies[i], USER, 10 + i);
    }
    for (i = 0; i < NR_FIXED; i++) {
        assert_msr(&m, MSR_FIXED_CTR0 + i, 10 + i);
    }
    stop(&m);
}

/* A CPU with a model of its core, and that model */
#define CORE_OBJECT "-object pmu-core,id=core0,preset=skylake,l1d-size=16k "
#define CORE_CPU    INTEL ",pmu-core=core0 " CORE_OBJECT
#define CORE_OF(options) \
    ",pmu-core=core0 -object pmu-core,id=core0,preset=skylake," options

static const EventTable event_tables[] = {
    EVENT_TABLE(INTEL, SKYLAKE),
    EVENT_TABLE(CORE_CPU, SKYLAKE_CORE),
    EVENT_TABLE("SapphireRapids-v1,pmu=on" CORE_OF("l1d-size=16k"),
                SKYLAKE_CORE),
    EVENT_TABLE("n270-v1,pmu=on", BONNELL),
    EVENT_TABLE("Nehalem-v1,pmu=on", NEHALEM),
    EVENT_TABLE("SandyBridge-v1,pmu=on", SANDY_BRIDGE),
    EVENT_TABLE("Haswell-v1,pmu=on", HASWELL),
    EVENT_TABLE("Icelake-Server-v1,pmu=on", ICE_LAKE),
    EVENT_TABLE("SapphireRapids-v1,pmu=on", GOLDEN_COVE),
    EVENT_TABLE("GraniteRapids-v1,pmu=on", GOLDEN_COVE),
    EVENT_TABLE("ClearwaterForest-v1,pmu=on", DARKMONT),
    EVENT_TABLE(PANTHER_COVE, PANTHER_COVE),
    EVENT_TABLE("KnightsMill-v1,pmu=on", KNIGHTS),
    EVENT_TABLE("Denverton-v1,pmu=on", GOLDMONT),
    EVENT_TABLE("Snowridge-v1,pmu=on", TREMONT),
    EVENT_TABLE("max,vendor=GenuineIntel,pmu=on", ANY_INTEL),
};

/* A counter counts if its own enable and the global one are set. */
static void test_enables(void)
{
    Machine m = x86_start(INTEL);

    g_assert_cmphex(wanted(&m), ==, 0);
    wrmsr(&m, MSR_EVTSEL0, EVENT_INSNS | SEL_OS);
    g_assert_cmphex(wanted(&m), ==, 0);
    start_gp(&m, 0, EVENT_INSNS | SEL_OS);
    count(&m, PMU_TALLY_INSNS, KERNEL, 10);
    wrmsr(&m, MSR_GLOBAL_CTRL, GLOBAL_ALL & ~GLOBAL_GP(0));
    g_assert_cmphex(wanted(&m), ==, 0);
    count(&m, PMU_TALLY_INSNS, KERNEL, 100);
    wrmsr(&m, MSR_GLOBAL_CTRL, GLOBAL_GP(0));
    g_assert_cmphex(wanted(&m), ==, T(INSNS));
    count(&m, PMU_TALLY_INSNS, KERNEL, 1000);
    wrmsr(&m, MSR_EVTSEL0, EVENT_INSNS | SEL_OS);
    count(&m, PMU_TALLY_INSNS, KERNEL, 10000);
    assert_msr(&m, MSR_PERFCTR0, 1010);
    stop(&m);
}

static void test_global_start_and_stop(void)
{
    Machine m = x86_start(INTEL);
    unsigned i;

    wrmsr(&m, MSR_GLOBAL_CTRL, 0);
    for (i = 0; i < NR_GP; i++) {
        start_gp(&m, i, EVENT_INSNS | SEL_ALL);
    }
    wrmsr(&m, MSR_FIXED_CTR_CTRL, FIXED(0, FIXED_OS | FIXED_USR));
    wrmsr(&m, MSR_GLOBAL_CTRL, GLOBAL_ALL);
    count(&m, PMU_TALLY_INSNS, KERNEL, 12345);
    wrmsr(&m, MSR_GLOBAL_CTRL, 0);
    count(&m, PMU_TALLY_INSNS, KERNEL, 1);
    for (i = 0; i < NR_GP; i++) {
        assert_msr(&m, MSR_PERFCTR0 + i, 12345);
    }
    assert_msr(&m, MSR_FIXED_CTR0, 12345);
    stop(&m);
}

/* Version 1 has no global control: a counter's own enable is enough. */
static void test_version_1_counts(void)
{
    Machine m = x86_start_version(1);

    start_gp(&m, 3, EVENT_INSNS | SEL_OS);
    count(&m, PMU_TALLY_INSNS, KERNEL, 10);
    assert_msr(&m, MSR_PERFCTR0 + 3, 10);
    stop(&m);
}

/* QEMU goes on after it has refused to add a CPU. */
static void test_hotplug_refused(void)
{
    Machine m = x86_start(INTEL " -smp 1,maxcpus=2,cores=2");
    QDict *error = qtest_qmp_assert_failure_ref(
        m.qts, "{'execute': 'device_add', 'arguments': {'driver': %s,"
        " 'pmu-version': 9, 'core-id': 1, 'thread-id': 0, 'socket-id': 0}}",
        MODEL "-x86_64-cpu");

    g_assert_nonnull(strstr(qdict_get_str(error, "desc"), "pmu-version=9"));
    qobject_unref(error);
    start_gp(&m, 0, EVENT_INSNS | SEL_ALL);
    count(&m, PMU_TALLY_INSNS, KERNEL, 10);
    assert_msr(&m, MSR_PERFCTR0, 10);
    stop(&m);
}

/*
 * Overflow, status and interrupt
 */

static void test_fixed_interrupt(void)
{
    Machine m = x86_start(INTEL);

    set_lvt(&m, VECTOR);
    arm_fixed(&m, 1, 1000, FIXED_INT);
    count(&m, PMU_TALLY_CYCLES, USER, 999);
    g_assert_false(requested(&m, VECTOR));
    count(&m, PMU_TALLY_CYCLES, KERNEL, 1);
    g_assert_true(requested(&m, VECTOR));
    assert_msr(&m, MSR_STATUS, GLOBAL_FIXED(1));
    assert_msr(&m, MSR_FIXED_CTR0 + 1, 0);
    stop(&m);
}

/* With INT and PMI clear, an overflow still sets the status. */
static void test_status_without_interrupt(void)
{
    Machine m = x86_start(INTEL);

    set_lvt(&m, VECTOR);
    arm_fixed(&m, 0, 15, 0);
    arm_gp(&m, 1, 10, 0);
    count(&m, PMU_TALLY_INSNS, KERNEL, 12);
    assert_msr(&m, MSR_STATUS, GLOBAL_GP(1));
    count(&m, PMU_TALLY_INSNS, KERNEL, 12);
    assert_msr(&m, MSR_STATUS, GLOBAL_GP(1) | GLOBAL_FIXED(0));
    assert_msr(&m, MSR_PERFCTR0 + 1, 14);
    assert_msr(&m, MSR_FIXED_CTR0, 9);
    g_assert_false(requested(&m, VECTOR));
    assert_msr(&m, MSR_APIC_LVTPC, VECTOR);
    stop(&m);
}

static void test_status_reset(void)
{
    Machine m = x86_start(INTEL);
    unsigned i;

    arm_fixed(&m, 0, 5, 0);
    for (i = 0; i < NR_GP; i++) {
        arm_gp(&m, i, 5, 0);
    }
    count(&m, PMU_TALLY_INSNS, KERNEL, 5);
    assert_msr(&m, MSR_STATUS, LOW_BITS(NR_GP) | GLOBAL_FIXED(0));
    assert_msr(&m, MSR_STATUS_RESET, 0);
    wrmsr(&m, MSR_STATUS_RESET, GLOBAL_GP(1) | GLOBAL_FIXED(1));
    assert_msr(&m, MSR_STATUS, 0xd | GLOBAL_FIXED(0));
    wrmsr(&m, MSR_STATUS_RESET, GLOBAL_ALL | STATUS_OVF_BUF
                                | STATUS_COND_CHGD);
    assert_msr(&m, MSR_STATUS, 0);
    count(&m, PMU_TALLY_INSNS, KERNEL, 5);
    assert_msr(&m, MSR_STATUS, 0);
    stop(&m);
}

/* At the same event: one interrupt, two bits. */
static void test_fixed_and_gp_at_once(void)
{
    Machine m = x86_start(INTEL);

    set_lvt(&m, LVT_NMI);
    arm_fixed(&m, 0, 20, FIXED_INT);
    arm_gp(&m, 0, 20, SEL_INT);
    arm_gp(&m, 1, 21, SEL_INT);
    count(&m, PMU_TALLY_INSNS, KERNEL, 20);
    assert_msr(&m, MSR_STATUS, GLOBAL_GP(0) | GLOBAL_FIXED(0));
    g_assert_true(take_nmi(&m));
    count(&m, PMU_TALLY_INSNS, KERNEL, 1);
    assert_msr(&m, MSR_STATUS, 3 | GLOBAL_FIXED(0));
    g_assert_false(take_nmi(&m));
    stop(&m);
}

static void test_version_1_interrupt(void)
{
    Machine m = x86_start_version(1);

    set_lvt(&m, VECTOR);
    arm_gp(&m, 0, 10, SEL_INT);
    count(&m, PMU_TALLY_INSNS, KERNEL, 12);
    g_assert_true(requested(&m, VECTOR));
    assert_msr(&m, MSR_PERFCTR0, 2);
    stop(&m);
}

/*
 * Freezing
 */

static void arm_two(Machine *m)
{
    set_lvt(m, LVT_NMI);
    arm_fixed(m, 0, 1000, FIXED_INT);
    arm_gp(m, 0, 10, SEL_INT);
}

static void count_until_frozen(Machine *m)
{
    count(m, PMU_TALLY_INSNS, KERNEL, 100);
    g_assert_true(take_nmi(m));
    assert_msr(m, MSR_PERFCTR0, 0);
    assert_msr(m, MSR_FIXED_CTR0, -990 & LOW_BITS(48));
}

static void arm_with_freeze(Machine *m)
{
    arm_two(m);
    wrmsr(m, MSR_DEBUGCTL, DEBUGCTL_FREEZE_ON_PMI);
    count_until_frozen(m);
}

/* INT can be set after the freeze has been enabled. */
static void test_freeze_by_later(const void *data)
{
    Machine m = x86_start_version(GPOINTER_TO_UINT(data));
    uint64_t select;

    wrmsr(&m, MSR_DEBUGCTL, DEBUGCTL_FREEZE_ON_PMI);
    arm_two(&m);
    select = rdmsr(&m, MSR_EVTSEL0);
    wrmsr(&m, MSR_EVTSEL0, select & ~SEL_INT);
    wrmsr(&m, MSR_DEBUGCTL, DEBUGCTL_FREEZE_ON_PMI);
    /* This is the last write. */
    wrmsr(&m, MSR_EVTSEL0, select);
    count_until_frozen(&m);
    stop(&m);
}

/* Versions 2 and 3 clear the global enables. */
static void test_freeze_by_enables(const void *data)
{
    Machine m = x86_start_version(GPOINTER_TO_UINT(data));

    arm_with_freeze(&m);
    assert_msr(&m, MSR_STATUS, GLOBAL_GP(0));
    assert_msr(&m, MSR_GLOBAL_CTRL, 0);
    wrmsr(&m, MSR_STATUS_RESET, GLOBAL_GP(0));
    count(&m, PMU_TALLY_INSNS, KERNEL, 100);
    assert_msr(&m, MSR_PERFCTR0, 0);
    wrmsr(&m, MSR_GLOBAL_CTRL, GLOBAL_ALL);
    count(&m, PMU_TALLY_INSNS, KERNEL, 5);
    assert_msr(&m, MSR_PERFCTR0, 5);
    assert_msr(&m, MSR_FIXED_CTR0, -985 & LOW_BITS(48));
    stop(&m);
}

/* Versions from 4 on set a bit in the status. */
static void test_freeze_by_status(const void *data)
{
    Machine m = x86_start_version(GPOINTER_TO_UINT(data));

    arm_with_freeze(&m);
    assert_msr(&m, MSR_STATUS, GLOBAL_GP(0) | STATUS_CTR_FRZ);
    assert_msr(&m, MSR_GLOBAL_CTRL, GLOBAL_ALL);
    wrmsr(&m, MSR_STATUS_RESET, GLOBAL_GP(0));
    wrmsr(&m, MSR_EVTSEL0, EVENT_INSNS | SEL_ALL);
    count(&m, PMU_TALLY_INSNS, KERNEL, 100);
    assert_msr(&m, MSR_PERFCTR0, 0);
    wrmsr(&m, MSR_STATUS_RESET, STATUS_CTR_FRZ);
    assert_msr(&m, MSR_STATUS, 0);
    count(&m, PMU_TALLY_INSNS, KERNEL, 5);
    assert_msr(&m, MSR_PERFCTR0, 5);
    assert_msr(&m, MSR_FIXED_CTR0, -985 & LOW_BITS(48));
    stop(&m);
}

/* Only an interrupt freezes. */
static void test_no_freeze_without_interrupt(void)
{
    Machine m = x86_start(INTEL);

    wrmsr(&m, MSR_DEBUGCTL, DEBUGCTL_FREEZE_ON_PMI);
    arm_gp(&m, 0, 10, 0);
    count(&m, PMU_TALLY_INSNS, KERNEL, 100);
    assert_msr(&m, MSR_STATUS, GLOBAL_GP(0));
    assert_msr(&m, MSR_GLOBAL_CTRL, LOW_BITS(NR_GP));
    assert_msr(&m, MSR_PERFCTR0, 90);
    stop(&m);
}

static void test_status_set(void)
{
    Machine m = x86_start_version(4);

    start_gp(&m, 0, EVENT_INSNS | SEL_ALL);
    wrmsr(&m, MSR_STATUS_SET, GLOBAL_GP(3) | STATUS_CTR_FRZ | STATUS_LBR_FRZ);
    assert_msr(&m, MSR_STATUS, GLOBAL_GP(3) | STATUS_CTR_FRZ | STATUS_LBR_FRZ);
    count(&m, PMU_TALLY_INSNS, KERNEL, 10);
    assert_msr(&m, MSR_PERFCTR0, 0);
    wrmsr(&m, MSR_STATUS_RESET, STATUS_CTR_FRZ);
    count(&m, PMU_TALLY_INSNS, KERNEL, 10);
    assert_msr(&m, MSR_PERFCTR0, 10);
    assert_msr(&m, MSR_STATUS, GLOBAL_GP(3) | STATUS_LBR_FRZ);
    stop(&m);
}

/* An interrupt occupies the next cycle, even if migration comes in between. */
static void test_migration_of_inverted(void)
{
    const uint64_t interrupts = 0x01cb;
    g_autofree char *args = x86_args(INTEL);
    Machine m = x86_start(INTEL);

    start_gp(&m, 0, interrupts | SEL_INV | SEL_CMASK(1) | SEL_ALL);
    count(&m, PMU_TALLY_CYCLES, KERNEL, 10);
    count(&m, PMU_TALLY_INTERRUPTS, KERNEL, 5);
    assert_msr(&m, MSR_PERFCTR0, 10);
    migrate_machine(&m, args);
    count(&m, PMU_TALLY_CYCLES, KERNEL, 8);
    assert_msr(&m, MSR_PERFCTR0, 13);
    stop(&m);
}

/* A leftover counter also migrates if there is no global control. */
static void test_leftovers_of_version_1(void)
{
    g_autofree char *args = x86_args(INTEL ",pmu-version=1");
    Machine m = start(args);

    wrmsr(&m, MSR_PERFCTR0, 0xabcd);
    migrate_machine(&m, args);
    assert_msr(&m, MSR_PERFCTR0, 0xabcd);
    stop(&m);
}

/*
 * Branch records
 */

#define LBR "Skylake-Client-v1,pmu=on,lbr=on"

/* Cycles, and results of a prediction and of a transaction */
#define LBR_INFO_BITS (LOW_BITS(16) | 7ull << 61)

static const struct {
    uint32_t msr;
    uint64_t val;
} records[] = {
    { MSR_DEBUGCTL, DEBUGCTL_LBR },
    { MSR_LBR_SELECT, 0x2c4 },
    { MSR_LBR_TOS, 5 },
    { MSR_LBR_FROM, 0xffffffff81000010 },
    { MSR_LBR_TO, 0xffffffff81000020 },
    { MSR_LBR_INFO, BIT64(63) | 17 },
    { MSR_LBR_FROM + 31, 0x401000 },
    { MSR_LBR_TO + 31, 0x401004 },
    { MSR_LBR_INFO + 31, BIT64(62) | 0xffff },
};

static void write_records(Machine *m)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(records); i++) {
        wrmsr(m, records[i].msr, records[i].val);
    }
}

static void assert_records(Machine *m, bool written)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(records); i++) {
        assert_msr(m, records[i].msr, written ? records[i].val : 0);
    }
}

/* RESET clears all records, INIT clears none. */
static void test_lbr_reset(void)
{
    Machine m = x86_start(LBR);

    assert_records(&m, false);
    write_records(&m);
    assert_records(&m, true);
    init(&m);
    assert_records(&m, true);
    qtest_system_reset(m.qts);
    assert_records(&m, false);
    stop(&m);
}

static void test_lbr_migration(void)
{
    g_autofree char *args = x86_args(LBR);
    Machine m = x86_start(LBR);

    write_records(&m);
    migrate_machine(&m, args);
    assert_records(&m, true);
    stop(&m);
}

/* Records migrate even when recording and counting have ended. */
static void test_lbr_migration_ended(void)
{
    g_autofree char *args = x86_args(LBR);
    Machine m = x86_start(LBR);

    write_records(&m);
    wrmsr(&m, MSR_DEBUGCTL, 0);
    migrate_machine(&m, args);
    assert_msr(&m, MSR_DEBUGCTL, 0);
    wrmsr(&m, MSR_DEBUGCTL, DEBUGCTL_LBR);
    assert_records(&m, true);
    stop(&m);
}

/* A nonzero IA32_DEBUGCTL would be refused first; here, the records are. */
static void test_lbr_refused(void)
{
    g_autofree char *args = x86_args(INTEL ",lbr=off");
    g_autofree char *message = NULL;
    Machine m = x86_start(LBR);

    write_records(&m);
    wrmsr(&m, MSR_DEBUGCTL, 0);
    message = refuse_prepared(&m, args, NULL);
    g_assert_nonnull(strstr(message, "add lbr=on"));
}

/*
 * The number of record registers, and their contents besides addresses, depend
 * on the model.  Migration must neither lose nor change records.
 */
static const Mismatch lbr_mismatches[] = {
    { "fewer", LBR, "Haswell-v1,pmu=on,lbr=on", "the source's CPU model" },
    { "depth", "core2duo,pmu=on,lbr=on", "n270,pmu=on,lbr=on",
      "the source's CPU model" },
    { "format", "Nehalem-v1,pmu=on,lbr=on", "Haswell-v1,pmu=on,lbr=on",
      "the source's CPU model" },
    { "architectural", LBR ",pmu-version=5,pmu-gp-counters=8",
      "SapphireRapids-v1,pmu=on,lbr=on", "the source's CPU model" },
};

static void test_lbr_mismatch(const void *data)
{
    const Mismatch *mismatch = data;
    g_autofree char *args = x86_args(mismatch->to);
    g_autofree char *message = NULL;
    Machine m = x86_start(mismatch->from);

    wrmsr(&m, MSR_LBR_TOS, 3);
    message = refuse_prepared(&m, args, NULL);
    g_assert_nonnull(strstr(message, mismatch->message));
}

static void write_branches(Machine *m, uint32_t from, uint32_t to, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        wrmsr(m, from + i, 0xffffffff81000000 + i);
        wrmsr(m, to + i, 0x401000 + i);
    }
}

static void assert_branches(Machine *m, uint32_t from, uint32_t to, unsigned n,
                            bool written)
{
    for (unsigned i = 0; i < n; i++) {
        assert_msr(m, from + i, written ? 0xffffffff81000000 + i : 0);
        assert_msr(m, to + i, written ? 0x401000 + i : 0);
    }
}

/* Depth, format and register numbers depend on the model; some lack filters. */
static void test_lbr_models(void)
{
    static const struct {
        const char *cpu;
        uint32_t from, to;
        unsigned numbers, depth, format;
        bool select;
    } models[] = {
        { "core2duo", 0x40, 0x60, 8, 4, 2, false },
        { "Penryn", 0x40, 0x60, 8, 4, 2, false },
        { "n270", 0x40, 0x60, 8, 8, 1, false },
        { "KnightsMill", MSR_LBR_FROM, MSR_LBR_TO, 32, 8, 1, true },
        { "Denverton", MSR_LBR_FROM, MSR_LBR_TO, 32, 32, 6, true },
        { "Snowridge", MSR_LBR_FROM, MSR_LBR_TO, 32, 32, 7, true },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(models); i++) {
        g_autofree char *cpu = g_strdup_printf("%s,pmu=on", models[i].cpu);
        g_autofree char *args = x86_args(cpu);
        Machine m = x86_start(cpu);
        const uint32_t from = models[i].from, to = models[i].to;
        const unsigned depth = models[i].depth;
        uint64_t val;

        g_assert_cmpuint(rdmsr(&m, MSR_PERF_CAP) & PERF_CAP_LBR_FORMAT, ==,
                         models[i].format);
        g_assert(try_rdmsr(&m, MSR_LBR_SELECT, &val) == models[i].select);
        for (unsigned n = depth; n < models[i].numbers; n++) {
            g_assert_false(try_rdmsr(&m, from + n, &val));
            g_assert_false(try_wrmsr(&m, to + n, 0));
        }
        write_branches(&m, from, to, depth);
        wrmsr(&m, MSR_LBR_TOS, depth - 1);
        migrate_machine(&m, args);
        assert_branches(&m, from, to, depth, true);
        assert_msr(&m, MSR_LBR_TOS, depth - 1);
        qtest_system_reset(m.qts);
        assert_branches(&m, from, to, depth, false);
        assert_msr(&m, MSR_LBR_TOS, 0);
        stop(&m);
    }
}

/* Bits that a model does not use fault. */
static void test_lbr_bits(void)
{
    const uint64_t filters = LOW_BITS(9), call_stack = BIT64(9);
    const uint64_t freeze = DEBUGCTL_FREEZE_LBRS | DEBUGCTL_FREEZE_ON_PMI;
    const uint64_t debugctl = DEBUGCTL_LBR | DEBUGCTL_BTF | freeze
                              | DEBUGCTL_FREEZE_IN_SMM;
    const struct {
        const char *cpu;
        uint32_t msr;
        uint64_t keeps, takes;
    } registers[] = {
        { "core2duo", MSR_LBR_TOS, 3 },
        { "n270", MSR_LBR_TOS, 7 },
        { "KnightsMill", MSR_LBR_SELECT, filters },
        { "KnightsMill", MSR_LBR_TOS, 7 },
        { "Nehalem-v1", MSR_LBR_SELECT, filters },
        { "Nehalem-v1", MSR_LBR_TOS, 15 },
        { "Haswell-v1", MSR_LBR_SELECT, filters | call_stack },
        { "Denverton", MSR_LBR_SELECT, filters | call_stack },
        { "Snowridge", MSR_LBR_INFO, LBR_INFO_BITS },
        { "Skylake-Client-v1", MSR_LBR_SELECT, filters | call_stack },
        { "Skylake-Client-v1", MSR_LBR_TOS, 31 },
        { "Skylake-Client-v1", MSR_LBR_INFO, LBR_INFO_BITS },
        { "Skylake-Client-v1", MSR_DEBUGCTL, debugctl },
        { "core2duo", MSR_DEBUGCTL, debugctl },
        { "SapphireRapids", MSR_DEBUGCTL, debugctl & ~DEBUGCTL_LBR,
          DEBUGCTL_LBR },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(registers); i++) {
        g_autofree char *cpu = g_strdup_printf("%s,pmu=on,lbr=on",
                                               registers[i].cpu);
        Machine m = x86_start(cpu);

        g_test_message("%s: register 0x%x", cpu, registers[i].msr);
        check_bits(&m, registers[i].msr, registers[i].keeps,
                   registers[i].takes);
        stop(&m);
    }
}

/* Without branch records, registers fault. */
static void test_lbr_absent(void)
{
    Machine m = x86_start(INTEL ",lbr=off");
    uint64_t val;

    for (unsigned i = 1; i < G_N_ELEMENTS(records); i++) {
        g_assert_false(try_rdmsr(&m, records[i].msr, &val));
        g_assert_false(try_wrmsr(&m, records[i].msr, records[i].val));
    }
    wrmsr(&m, MSR_DEBUGCTL, DEBUGCTL_LBR);
    assert_msr(&m, MSR_DEBUGCTL, 0);
    stop(&m);
}

/*
 * Architectural branch records
 */

#define ARCH "SapphireRapids,pmu=on,lbr=on"
#define ARCH_DEPTH 32

#define ARCH_CTL_BITS   0x7f000full

/* CPUID leaf 0xD, subleaf 1: EAX, and ECX, which is IA32_XSS's lower half */
#define XSAVES   BIT64(3)
#define XSS_LBR  BIT64(15)
#define ARCH_INFO_BITS  (0xff00000000000000 | 0xffff)

static const struct {
    uint32_t msr;
    uint64_t val;
} arch_records[] = {
    { MSR_ARCH_CTL, 0x7f0007 },
    { MSR_ARCH_FROM, 0xffffffff81000010 },
    { MSR_ARCH_TO, 0xffffffff81000020 },
    { MSR_ARCH_INFO, BIT64(60) | 17 },
    { MSR_ARCH_FROM + 7, 0x401000 },
    { MSR_ARCH_TO + 7, 0x401004 },
    { MSR_ARCH_INFO + 7, ARCH_INFO_BITS },
    { MSR_LER_FROM, 0x402000 },
    { MSR_LER_TO, 0x402004 },
    { MSR_LER_INFO, 5ull << 56 },
};

static void write_arch_records(Machine *m)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(arch_records); i++) {
        wrmsr(m, arch_records[i].msr, arch_records[i].val);
    }
}

static void assert_arch_records(Machine *m, bool written)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(arch_records); i++) {
        assert_msr(m, arch_records[i].msr,
                   written ? arch_records[i].val : 0);
    }
}

/* XSAVE does not support architectural records. */
static void test_arch_features(void)
{
    static const struct {
        const char *cpu;
        unsigned version;
    } models[] = {
        { "SapphireRapids,pmu=on", 5 }, { "GraniteRapids,pmu=on", 5 },
        { "SierraForest,pmu=on", 5 }, { "ClearwaterForest,pmu=on", 6 },
        { PANTHER_COVE, 6 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(models); i++) {
        g_autofree char *cpu = g_strdup_printf("%s,lbr=on", models[i].cpu);
        Machine m = x86_start(cpu);
        uint32_t regs[4];

        cpuid(&m, 7, regs);
        g_assert_cmphex(regs[3] & ARCH_LBR, ==, ARCH_LBR);
        cpuid(&m, 0x1c, regs);
        g_assert_cmphex(regs[0], ==, 0x8000000b);
        g_assert_cmphex(regs[1], ==, 7);
        g_assert_cmphex(regs[2], ==, 7);
        g_assert_cmphex(regs[3], ==, 0);
        cpuid(&m, 0xa, regs);
        g_assert_cmphex(regs[0] & 0xff, ==, models[i].version);
        cpuid_subleaf(&m, 0xd, 1, regs);
        g_assert_cmphex(regs[0] & XSAVES, ==, XSAVES);
        g_assert_cmphex(regs[2] & XSS_LBR, ==, 0);
        cpuid_subleaf(&m, 0xd, 15, regs);
        g_assert_cmphex(regs[0] | regs[1] | regs[2] | regs[3], ==, 0);
        g_assert_cmphex(rdmsr(&m, MSR_PERF_CAP) & PERF_CAP_LBR_FORMAT, ==,
                        PERF_CAP_LBR_FORMAT);
        stop(&m);
    }
}

static bool is_property(const QDict *property, const char *name)
{
    return !strcmp(qdict_get_str(property, "name"), name);
}

/* Some properties are not in all series of QEMU. */
static bool has_cpu_property(const char *name)
{
    Machine m = x86_start(INTEL);
    QDict *response = qtest_qmp(m.qts, "{'execute': 'qom-list-properties',"
                                " 'arguments': {'typename': 'x86_64-cpu'}}");
    const QListEntry *entry;
    bool found = false;

    QLIST_FOREACH_ENTRY(qdict_get_qlist(response, "return"), entry) {
        found |= is_property(qobject_to(QDict, qlist_entry_obj(entry)), name);
    }
    qobject_unref(response);
    stop(&m);
    return found;
}

/*
 * If the CPU has architectural records, CPUID has the leaf that describes them.
 * It is not there where the level is that of the model.
 */
static void test_arch_level(void)
{
    static const struct {
        const char *cpu;
        bool has;
        uint32_t level;
        bool by_model;
    } cpus[] = {
        { "Skylake-Client-v1,pmu=on,model=143", true, 0x1c },
        { ARCH, true, 0x20 },
        { ARCH ",level=0x1b,lbr=auto", false, 0x1b },
        { ARCH ",level=0x1c", true, 0x1c },
        { ARCH, true, 0x20, true },
        { "Skylake-Client-v1,pmu=on,model=143", false, 0xd, true },
    };
    const bool fixable = has_cpu_property("full-cpuid-auto-level");

    for (unsigned i = 0; i < G_N_ELEMENTS(cpus); i++) {
        g_autofree char *cpu = g_strconcat(cpus[i].cpu, cpus[i].by_model ?
                                           ",full-cpuid-auto-level=off" : "",
                                           NULL);
        uint32_t regs[4];
        Machine m;

        if (cpus[i].by_model && !fixable) {
            continue;
        }
        m = x86_start(cpu);
        cpuid(&m, 0, regs);
        g_assert_cmphex(regs[0], ==, cpus[i].level);
        cpuid(&m, 7, regs);
        g_assert_cmphex(regs[3] & ARCH_LBR, ==, cpus[i].has ? ARCH_LBR : 0);
        stop(&m);
    }
}

/* Records have no cycles if these follow the time. */
static void test_arch_untimed(void)
{
    Machine m = x86_start(ARCH ",pmu-cycles=time");
    uint32_t regs[4];

    cpuid(&m, 0x1c, regs);
    g_assert_cmphex(regs[2], ==, 5);
    stop(&m);
}

static void test_arch_bits(void)
{
    Machine m = x86_start(ARCH);
    uint64_t val;

    for (unsigned bit = 0; bit < 64; bit++) {
        bool there = ARCH_CTL_BITS & BIT64(bit);

        g_assert_cmpint(try_wrmsr(&m, MSR_ARCH_CTL, BIT64(bit)), ==, there);
        wrmsr(&m, MSR_ARCH_CTL, 0);
        wrmsr(&m, MSR_ARCH_INFO, BIT64(bit));
        assert_msr(&m, MSR_ARCH_INFO, BIT64(bit) & ARCH_INFO_BITS);
        wrmsr(&m, MSR_LER_INFO, BIT64(bit));
        assert_msr(&m, MSR_LER_INFO, BIT64(bit) & ARCH_INFO_BITS);
    }
    for (unsigned depth = 0; depth <= 2 * ARCH_DEPTH; depth++) {
        bool there = depth == 8 || depth == 16 || depth == 32;

        g_assert_cmpint(try_wrmsr(&m, MSR_ARCH_DEPTH, depth), ==, there);
    }
    wrmsr(&m, MSR_ARCH_DEPTH, 8);
    g_assert_true(try_rdmsr(&m, MSR_ARCH_FROM + 7, &val));
    g_assert_false(try_rdmsr(&m, MSR_ARCH_FROM + 8, &val));
    /* DEBUGCTL.LBR does not enable architectural records. */
    wrmsr(&m, MSR_DEBUGCTL, DEBUGCTL_LBR);
    assert_msr(&m, MSR_DEBUGCTL, 0);
    stop(&m);
}

/* A write of the depth clears all records but that of the last event. */
static void test_arch_depth(void)
{
    Machine m = x86_start(ARCH);

    assert_msr(&m, MSR_ARCH_DEPTH, ARCH_DEPTH);
    write_arch_records(&m);
    wrmsr(&m, MSR_ARCH_DEPTH, ARCH_DEPTH);
    for (unsigned i = 0; i < ARCH_DEPTH; i++) {
        assert_msr(&m, MSR_ARCH_FROM + i, 0);
        assert_msr(&m, MSR_ARCH_TO + i, 0);
        assert_msr(&m, MSR_ARCH_INFO + i, 0);
    }
    assert_msr(&m, MSR_ARCH_CTL, 0x7f0007);
    assert_msr(&m, MSR_LER_FROM, 0x402000);
    stop(&m);
}

/* RESET clears all records, INIT clears none. */
static void test_arch_reset(void)
{
    Machine m = x86_start(ARCH);

    assert_arch_records(&m, false);
    wrmsr(&m, MSR_ARCH_DEPTH, 8);
    write_arch_records(&m);
    assert_arch_records(&m, true);
    init(&m);
    assert_msr(&m, MSR_ARCH_DEPTH, 8);
    assert_arch_records(&m, true);
    qtest_system_reset(m.qts);
    assert_msr(&m, MSR_ARCH_DEPTH, ARCH_DEPTH);
    assert_arch_records(&m, false);
    stop(&m);
}

static void test_arch_migration(const void *data)
{
    g_autofree char *args = x86_args(ARCH);
    Machine m = x86_start(ARCH);
    unsigned depth = GPOINTER_TO_UINT(data);

    wrmsr(&m, MSR_ARCH_DEPTH, depth);
    write_arch_records(&m);
    migrate_machine(&m, args);
    assert_msr(&m, MSR_ARCH_DEPTH, depth);
    assert_arch_records(&m, true);
    stop(&m);
}

/* The last event and the depth each migrate without other state. */
static void test_arch_migration_ended(void)
{
    g_autofree char *args = x86_args(ARCH);
    Machine m = x86_start(ARCH);

    wrmsr(&m, MSR_ARCH_DEPTH, 16);
    migrate_machine(&m, args);
    assert_msr(&m, MSR_ARCH_DEPTH, 16);
    wrmsr(&m, MSR_ARCH_DEPTH, ARCH_DEPTH);
    wrmsr(&m, MSR_LER_TO, 5);
    migrate_machine(&m, args);
    assert_msr(&m, MSR_LER_TO, 5);
    stop(&m);
}

static void test_arch_absent(void)
{
    Machine m = x86_start("SapphireRapids,pmu=on,lbr=off");
    uint32_t regs[4];
    uint64_t val;

    cpuid(&m, 7, regs);
    g_assert_cmphex(regs[3] & ARCH_LBR, ==, 0);
    cpuid(&m, 0x1c, regs);
    g_assert_cmphex(regs[0] | regs[1] | regs[2] | regs[3], ==, 0);
    g_assert_false(try_rdmsr(&m, MSR_ARCH_CTL, &val));
    g_assert_false(try_wrmsr(&m, MSR_ARCH_DEPTH, 32));
    g_assert_false(try_rdmsr(&m, MSR_ARCH_FROM, &val));
    g_assert_false(try_rdmsr(&m, MSR_ARCH_INFO + 31, &val));
    g_assert_false(try_rdmsr(&m, MSR_LER_INFO, &val));
    g_assert_false(try_wrmsr(&m, MSR_LER_INFO, 0));
    stop(&m);
}

/*
 * Event based sampling
 */

#define PEBS INTEL ",pebs=on"

#define PEBS_LOAD_LATENCY (LOW_BITS(4) << 32)

/**
 * struct Pebs - PEBS of some CPU models
 * @cpu: for -cpu
 * @cap: its bits in IA32_PERF_CAPABILITIES
 * @enable: the bits of IA32_PEBS_ENABLE
 * @config: the bits of MSR_PEBS_DATA_CFG; 0 without that register
 * @size: of a record, in words
 */
static const struct Pebs {
    const char *cpu;
    uint64_t cap, enable, config;
    unsigned size;
} pebs_models[] = {
    { "Nehalem-v1", PERF_CAP_PEBS(1), 0xf | PEBS_LOAD_LATENCY, 0, 22 },
    { "SandyBridge-v1", PERF_CAP_PEBS(1), 0xf | PEBS_LOAD_LATENCY | BIT64(63),
      0, 22 },
    { "IvyBridge-v1", PERF_CAP_PEBS(1), 0xf | PEBS_LOAD_LATENCY | BIT64(63), 0,
      22 },
    { "Haswell-v1", PERF_CAP_PEBS(2), 0xf | PEBS_LOAD_LATENCY, 0, 24 },
    { "Broadwell-v1", PERF_CAP_PEBS(2), 0xf | PEBS_LOAD_LATENCY, 0, 24 },
    { MODEL, PERF_CAP_PEBS(3), 0xf | PEBS_LOAD_LATENCY, 0, 25 },
    { "Icelake-Server-v1", PERF_CAP_PEBS(4) | PERF_CAP_BASELINE,
      0xff | LOW_BITS(3) << 32, 0xff00000f, 4 },
    { "SapphireRapids-v1", PERF_CAP_PEBS(4) | PERF_CAP_BASELINE,
      0xff | LOW_BITS(3) << 32, 0xff00000f, 4 },
    { "GraniteRapids-v1", PERF_CAP_PEBS(4) | PERF_CAP_BASELINE,
      0xff | LOW_BITS(3) << 32, 0xff00000f, 4 },
    { "Snowridge-v1", PERF_CAP_PEBS(4) | PERF_CAP_BASELINE,
      0xff | LOW_BITS(3) << 32, 0xff00000f, 4 },
};

static Machine pebs_start(const struct Pebs *pebs)
{
    g_autofree char *cpu = g_strdup_printf("%s,pmu=on,lbr=off,pebs=on",
                                           pebs->cpu);

    return x86_start(cpu);
}

static void test_pebs_features(const void *data)
{
    const struct Pebs *pebs = data;
    Machine m = pebs_start(pebs);
    uint32_t regs[4];

    cpuid(&m, 1, regs);
    g_assert_cmphex(regs[2] & (PDCM | DTES64), ==, PDCM | DTES64);
    g_assert_cmphex(regs[3] & DS, ==, DS);
    cpuid(&m, 0xa, regs);
    g_assert_cmpint(regs[0] & 0xff, ==, pebs->config ? 5 : 2);
    assert_msr(&m, MSR_PERF_CAP,
               pebs->cap | PERF_CAP_FULL_WIDTH | PERF_CAP_FREEZE_IN_SMM);
    /* There is PEBS, but no BTS; both bits are read-only. */
    g_assert_cmphex(rdmsr(&m, MSR_MISC_ENABLE) & 0x1800, ==, 0x800);
    wrmsr(&m, MSR_MISC_ENABLE, 0x1001);
    g_assert_cmphex(rdmsr(&m, MSR_MISC_ENABLE) & 0x1801, ==, 0x801);
    stop(&m);
}

static void test_pebs_bits(const void *data)
{
    const struct Pebs *pebs = data;
    Machine m = pebs_start(pebs);
    uint64_t adaptive = pebs->config ? BIT64(34) : 0;
    uint64_t val;

    check_bits(&m, MSR_PEBS_ENABLE, pebs->enable, 0);
    check_bits(&m, MSR_PEBS_LD_LAT, 0xffff, ~0xffffull);
    check_bits(&m, MSR_EVTSEL0,
               (LOW_BITS(32) & ~SEL_ANY) | adaptive, 0);
    check_bits(&m, MSR_FIXED_CTR_CTRL,
               0xbbb | (adaptive ? 0x111ull << 32 : 0), 0);
    if (pebs->config) {
        check_bits(&m, MSR_PEBS_DATA_CFG, pebs->config, 0);
    } else {
        g_assert_false(try_rdmsr(&m, MSR_PEBS_DATA_CFG, &val));
        g_assert_false(try_wrmsr(&m, MSR_PEBS_DATA_CFG, 0));
    }
    stop(&m);
}

/* The address of the DS save area is canonical. */
static void test_pebs_ds_area(void)
{
    static const uint64_t good[] = { 0, 0x7fffffffffff, -0x800000000000ull,
                                     UINT64_MAX };
    static const uint64_t bad[] = { 0x800000000000, BIT64(63),
                                    -0x800000000001ull };
    Machine m = x86_start(PEBS);

    for (unsigned i = 0; i < G_N_ELEMENTS(good); i++) {
        wrmsr(&m, MSR_DS_AREA, good[i]);
        assert_msr(&m, MSR_DS_AREA, good[i]);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_false(try_wrmsr(&m, MSR_DS_AREA, bad[i]));
        assert_msr(&m, MSR_DS_AREA, UINT64_MAX);
    }
    stop(&m);
}

static const Kept pebs_registers[] = {
    { MSR_DS_AREA, 0x7ffffffff000 },
    { MSR_PEBS_ENABLE, 3 },
    { MSR_PEBS_LD_LAT, 0x11 },
};

static void write_pebs(Machine *m)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(pebs_registers); i++) {
        wrmsr(m, pebs_registers[i].reg, pebs_registers[i].reset);
    }
}

static void assert_pebs(Machine *m, bool written)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(pebs_registers); i++) {
        assert_msr(m, pebs_registers[i].reg,
                   written ? pebs_registers[i].reset : 0);
    }
}

/* PEBS is off by default. */
static void test_pebs_absent(const void *cpu)
{
    Machine m = x86_start(cpu);
    uint64_t val;

    g_assert_cmphex(rdmsr(&m, MSR_MISC_ENABLE) & BIT64(12), !=, 0);
    g_assert_cmphex(rdmsr(&m, MSR_PERF_CAP) & PERF_CAP_PEBS(0xf), ==, 0);

    for (unsigned i = 0; i < G_N_ELEMENTS(pebs_registers); i++) {
        g_assert_false(try_rdmsr(&m, pebs_registers[i].reg, &val));
        g_assert_false(try_wrmsr(&m, pebs_registers[i].reg, 0));
    }
    g_assert_false(try_wrmsr(&m, MSR_PEBS_DATA_CFG, 0));
    stop(&m);
}

static void test_pebs_reset(void)
{
    Machine m = x86_start(PEBS);

    write_pebs(&m);
    assert_pebs(&m, true);
    qtest_system_reset(m.qts);
    assert_pebs(&m, false);
    stop(&m);
}

static void test_pebs_migration(void)
{
    g_autofree char *args = x86_args(PEBS);
    Machine m = x86_start(PEBS);

    write_pebs(&m);
    migrate_machine(&m, args);
    assert_pebs(&m, true);
    stop(&m);
}

static void test_pebs_refused(void)
{
    g_autofree char *args = x86_args(INTEL);
    g_autofree char *message = NULL;
    Machine m = x86_start(PEBS);

    write_pebs(&m);
    message = refuse_prepared(&m, args, NULL);
    g_assert_nonnull(strstr(message, "add pebs=on"));
}

/* Bit 63 has another meaning on the other model, so migration is refused. */
static void test_pebs_refused_by_other(void)
{
    g_autofree char *args = x86_args("Haswell-v1,pmu=on,pebs=on");
    g_autofree char *message = NULL;
    Machine m = x86_start("SandyBridge-v1,pmu=on,pebs=on");

    wrmsr(&m, MSR_PEBS_ENABLE, BIT64(63));
    message = refuse_prepared(&m, args, NULL);
    g_assert_nonnull(strstr(message, "the source's CPU model"));
}

/*
 * Addresses of the DS save area and the buffer.  The CPU is as after a reset,
 * so linear addresses are physical ones.
 */
#define DS_AREA   0x100ff0ull
#define BUFFER    0x102f90ull
#define NR_WORDS  128
#define RESET_RIP 0xfffffff0u

static uint64_t read_word(Machine *m, uint64_t addr)
{
    return qtest_readq(m->qts, addr);
}

static void write_word(Machine *m, uint64_t addr, uint64_t val)
{
    qtest_writeq(m->qts, addr, val);
}

static uint64_t pebs_index(Machine *m)
{
    return read_word(m, DS_AREA + 0x28);
}

/* Make a buffer for @records, with an interrupt after @threshold of them. */
static void prepare_buffer(Machine *m, unsigned size, unsigned records,
                           unsigned threshold)
{
    write_word(m, DS_AREA + 0x20, BUFFER);
    write_word(m, DS_AREA + 0x28, BUFFER);
    write_word(m, DS_AREA + 0x30, BUFFER + records * size * 8);
    write_word(m, DS_AREA + 0x38, BUFFER + threshold * size * 8);
    for (unsigned slot = 0; slot < 12; slot++) {
        write_word(m, DS_AREA + 0x40 + slot * 8, -(uint64_t)(10 + slot));
    }
    for (unsigned i = 0; i < NR_WORDS; i++) {
        write_word(m, BUFFER + i * 8, 0x5555);
    }
    wrmsr(m, MSR_DS_AREA, DS_AREA);
}

static void assert_nothing_written(Machine *m, unsigned from)
{
    for (unsigned i = from; i < NR_WORDS; i++) {
        g_assert_cmphex(read_word(m, BUFFER + i * 8), ==, 0x5555);
    }
}

/* The word in which a record names its counters */
static unsigned word_of_names(const struct Pebs *pebs)
{
    return pebs->config ? 2 : 18;
}

/* Check each field that exists without executing instructions. */
static void test_pebs_record(const void *data)
{
    const struct Pebs *pebs = data;
    Machine m = pebs_start(pebs);

    set_lvt(&m, LVT_NMI);
    prepare_buffer(&m, pebs->size, 2, 2);
    wrmsr(&m, MSR_PEBS_ENABLE, BIT64(1));
    arm_gp(&m, 1, 5, 0);

    count(&m, PMU_TALLY_INSNS, KERNEL, 4);
    g_assert_cmphex(pebs_index(&m), ==, BUFFER);
    count(&m, PMU_TALLY_INSNS, KERNEL, 1);
    g_assert_cmphex(pebs_index(&m), ==, BUFFER + pebs->size * 8);
    assert_msr(&m, MSR_PERFCTR0 + 1, -11ull & LOW_BITS(48));
    assert_msr(&m, MSR_STATUS, 0);
    g_assert_false(take_nmi(&m));
    g_assert_cmphex(read_word(&m, BUFFER + 8), ==, RESET_RIP);
    g_assert_cmphex(read_word(&m, BUFFER + word_of_names(pebs) * 8), ==,
                    BIT64(1));
    if (pebs->config) {
        g_assert_cmphex(read_word(&m, BUFFER), ==, 0x20ull << 48);
    } else {
        g_assert_cmphex(read_word(&m, BUFFER), ==, 2);
    }
    if (pebs->size >= 24) {
        g_assert_cmphex(read_word(&m, BUFFER + 22 * 8), ==, RESET_RIP);
    }
    assert_nothing_written(&m, pebs->size);

    /* The second record reaches the threshold. */
    count(&m, PMU_TALLY_INSNS, KERNEL, 11);
    g_assert_cmphex(pebs_index(&m), ==, BUFFER + 2 * pebs->size * 8);
    assert_msr(&m, MSR_STATUS, STATUS_OVF_BUF);
    g_assert_true(take_nmi(&m));
    wrmsr(&m, MSR_STATUS_RESET, STATUS_OVF_BUF);
    assert_msr(&m, MSR_STATUS, 0);

    /* A third record does not fit, but counting goes on. */
    count(&m, PMU_TALLY_INSNS, KERNEL, 11);
    g_assert_cmphex(pebs_index(&m), ==, BUFFER + 2 * pebs->size * 8);
    assert_msr(&m, MSR_PERFCTR0 + 1, -11ull & LOW_BITS(48));
    assert_nothing_written(&m, 2 * pebs->size);
    stop(&m);
}

/* Groups, and the words that they add to a record */
static const struct {
    uint64_t config;
    unsigned size, rip;
} pebs_groups[] = {
    { 0, 4 },
    { 1, 8 },
    { 2, 22, 5 },
    { 4, 36 },
    { 8, 7 },
    { 8 | 0x1f000000, 4 + 32 * 3 },
    { 0x1f000000, 4 },
    { 0xf, 61, 9 },
};

static void check_groups(Machine *m, uint64_t config, unsigned size,
                         unsigned rip)
{
    const uint64_t told = config & 8 ? config : config & 7;

    prepare_buffer(m, size, 1, 1);
    wrmsr(m, MSR_PEBS_DATA_CFG, config);
    arm_fixed(m, 0, 1, BIT64(32));
    count(m, PMU_TALLY_INSNS, KERNEL, 1);
    g_assert_cmphex(pebs_index(m), ==, BUFFER + size * 8);
    g_assert_cmphex(read_word(m, BUFFER), ==,
                    told | (uint64_t)size * 8 << 48);
    g_assert_cmphex(read_word(m, BUFFER + 8), ==, RESET_RIP);
    g_assert_cmphex(read_word(m, BUFFER + 16), ==, GLOBAL_FIXED(0));
    if (rip) {
        g_assert_cmphex(read_word(m, BUFFER + rip * 8), ==, RESET_RIP);
    }
    assert_nothing_written(m, size);
}

static void test_pebs_groups(void)
{
    Machine m = x86_start("Icelake-Server-v1,pmu=on,pebs=on");

    wrmsr(&m, MSR_PEBS_ENABLE, GLOBAL_FIXED(0));
    for (unsigned i = 0; i < G_N_ELEMENTS(pebs_groups); i++) {
        check_groups(&m, pebs_groups[i].config, pebs_groups[i].size,
                     pebs_groups[i].rip);
    }
    /* A counter without the adaptive bit records no groups. */
    wrmsr(&m, MSR_PEBS_DATA_CFG, 0xf);
    prepare_buffer(&m, 4, 1, 1);
    arm_fixed(&m, 0, 1, 0);
    count(&m, PMU_TALLY_INSNS, KERNEL, 1);
    g_assert_cmphex(read_word(&m, BUFFER), ==, 0x20ull << 48);
    assert_msr(&m, MSR_FIXED_CTR0, -18ull & LOW_BITS(48));
    stop(&m);
}

/* Two overflows at once make one record from format 3 on, two before that. */
static void test_pebs_together(const void *data)
{
    const struct Pebs *pebs = data;
    const bool one = (pebs->cap >> 8 & 0xf) >= 3;
    const unsigned names = word_of_names(pebs);
    Machine m = pebs_start(pebs);

    prepare_buffer(&m, pebs->size, 4, 4);
    wrmsr(&m, MSR_PEBS_ENABLE, 5);
    arm_gp(&m, 0, 7, 0);
    arm_gp(&m, 2, 7, 0);
    count(&m, PMU_TALLY_INSNS, KERNEL, 7);
    g_assert_cmphex(pebs_index(&m), ==,
                    BUFFER + (one ? 1 : 2) * pebs->size * 8);
    g_assert_cmphex(read_word(&m, BUFFER + names * 8), ==, one ? 5 : 1);
    if (!one) {
        g_assert_cmphex(read_word(&m, BUFFER + (pebs->size + names) * 8), ==,
                        4);
    }
    assert_msr(&m, MSR_PERFCTR0, -10ull & LOW_BITS(48));
    assert_msr(&m, MSR_PERFCTR0 + 2, -12ull & LOW_BITS(48));
    stop(&m);
}

/*
 * Without memory for records, the index does not move and the status stays 0.
 * Addresses have 32 bits, as the CPU is not in long mode.
 */
static void test_pebs_nowhere(void)
{
    const uint64_t nowhere = 0x70000000;
    Machine m = x86_start(PEBS);

    prepare_buffer(&m, 25, 2, 1);
    wrmsr(&m, MSR_PEBS_ENABLE, 1);
    write_word(&m, DS_AREA + 0x28, nowhere);
    write_word(&m, DS_AREA + 0x30, nowhere + 0x1000);
    write_word(&m, DS_AREA + 0x38, UINT64_MAX);
    arm_gp(&m, 0, 1, 0);
    count(&m, PMU_TALLY_INSNS, KERNEL, 1);
    g_assert_cmphex(pebs_index(&m), ==, nowhere);
    assert_msr(&m, MSR_PERFCTR0, -10ull & LOW_BITS(48));
    assert_msr(&m, MSR_STATUS, 0);

    /* Without a DS save area, there is no reset value either. */
    wrmsr(&m, MSR_DS_AREA, nowhere);
    arm_gp(&m, 0, 1, 0);
    count(&m, PMU_TALLY_INSNS, KERNEL, 1);
    assert_msr(&m, MSR_PERFCTR0, 0);
    assert_msr(&m, MSR_STATUS, 0);
    assert_nothing_written(&m, 0);
    stop(&m);
}

/* Outside long mode, linear addresses have 32 bits. */
static void test_pebs_linear(void)
{
    const uint64_t above = BUFFER | 1ull << 40;
    Machine m = x86_start(PEBS);

    prepare_buffer(&m, 25, 2, 2);
    wrmsr(&m, MSR_PEBS_ENABLE, 1);
    wrmsr(&m, MSR_DS_AREA, DS_AREA | 1ull << 32);
    write_word(&m, DS_AREA + 0x28, above);
    write_word(&m, DS_AREA + 0x30, UINT64_MAX);
    arm_gp(&m, 0, 1, 0);
    count(&m, PMU_TALLY_INSNS, KERNEL, 1);
    g_assert_cmphex(pebs_index(&m), ==, above + 25 * 8);
    g_assert_cmphex(read_word(&m, BUFFER + 18 * 8), ==, 1);
    stop(&m);
}

/* Indices outside the buffer, one that wraps, and one without room */
static void test_pebs_bad_index(void)
{
    static const uint64_t bad[] = { UINT64_MAX, UINT64_MAX - 100, BUFFER + 1 };
    Machine m = x86_start(PEBS);

    prepare_buffer(&m, 25, 1, 2);
    wrmsr(&m, MSR_PEBS_ENABLE, 1);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        write_word(&m, DS_AREA + 0x28, bad[i]);
        arm_gp(&m, 0, 1, 0);
        count(&m, PMU_TALLY_INSNS, KERNEL, 1);
        g_assert_cmphex(pebs_index(&m), ==, bad[i]);
    }
    assert_nothing_written(&m, 0);
    stop(&m);
}

/* The interrupt of a full buffer freezes as a counter's does. */
static void test_pebs_freeze(const void *data)
{
    const unsigned version = GPOINTER_TO_UINT(data);
    g_autofree char *cpu = g_strdup_printf(PEBS ",pmu-version=%u", version);
    Machine m = x86_start(cpu);

    prepare_buffer(&m, 25, 2, 1);
    wrmsr(&m, MSR_PEBS_ENABLE, 1);
    wrmsr(&m, MSR_DEBUGCTL, DEBUGCTL_FREEZE_ON_PMI);
    arm_gp(&m, 0, 3, 0);
    arm_gp(&m, 1, 1000, 0);
    count(&m, PMU_TALLY_INSNS, KERNEL, 100);
    assert_msr(&m, MSR_STATUS,
               STATUS_OVF_BUF | (version < 4 ? 0 : STATUS_CTR_FRZ));
    assert_msr(&m, MSR_GLOBAL_CTRL, version < 4 ? 0 : LOW_BITS(NR_GP));
    assert_msr(&m, MSR_PERFCTR0, -10ull & LOW_BITS(48));
    assert_msr(&m, MSR_PERFCTR0 + 1, -997ull & LOW_BITS(48));
    stop(&m);
}

/* The interrupt also freezes branch records. */
static void test_pebs_freeze_lbrs(const void *data)
{
    const unsigned version = GPOINTER_TO_UINT(data);
    g_autofree char *cpu = g_strdup_printf(PEBS ",lbr=on,pmu-version=%u",
                                           version);
    Machine m = x86_start(cpu);

    prepare_buffer(&m, 25, 2, 2);
    wrmsr(&m, MSR_PEBS_ENABLE, 1);
    wrmsr(&m, MSR_DEBUGCTL, DEBUGCTL_LBR | DEBUGCTL_FREEZE_LBRS);
    arm_gp(&m, 0, 3, 0);
    count(&m, PMU_TALLY_INSNS, KERNEL, 3);
    assert_msr(&m, MSR_STATUS, 0);
    assert_msr(&m, MSR_DEBUGCTL, DEBUGCTL_LBR | DEBUGCTL_FREEZE_LBRS);
    count(&m, PMU_TALLY_INSNS, KERNEL, 10);
    assert_msr(&m, MSR_STATUS,
               STATUS_OVF_BUF | (version < 4 ? 0 : STATUS_LBR_FRZ));
    assert_msr(&m, MSR_DEBUGCTL,
               DEBUGCTL_FREEZE_LBRS | (version < 4 ? 0 : DEBUGCTL_LBR));
    assert_msr(&m, MSR_GLOBAL_CTRL, LOW_BITS(NR_GP));
    stop(&m);
}

/* All loads take 32 cycles: a greater threshold finds no loads. */
static void test_pebs_load_latency(void)
{
    const uint64_t load_latency = 0x01cd;
    Machine m = x86_start(PEBS);

    wrmsr(&m, MSR_PEBS_LD_LAT, 31);
    start_gp(&m, 0, load_latency | SEL_ALL);
    assert_stopped_by(&m, 0, "");
    count(&m, PMU_TALLY_LOADS, KERNEL, 3);
    wrmsr(&m, MSR_PEBS_LD_LAT, 32);
    assert_stopped_by(&m, 0, "event");
    count(&m, PMU_TALLY_LOADS, KERNEL, 3);
    assert_msr(&m, MSR_PERFCTR0, 3);
    stop(&m);
    /* Without PEBS, this event does not exist. */
    m = x86_start(INTEL);
    start_gp(&m, 0, load_latency | SEL_ALL);
    count(&m, PMU_TALLY_LOADS, KERNEL, 3);
    assert_msr(&m, MSR_PERFCTR0, 0);
    stop(&m);
}

static void test_inuse(void)
{
    Machine m = x86_start_version(4);

    assert_msr(&m, MSR_INUSE, 0);
    wrmsr(&m, MSR_EVTSEL0 + 1, EVENT_INSNS);
    assert_msr(&m, MSR_INUSE, GLOBAL_GP(1));
    wrmsr(&m, MSR_EVTSEL0 + 2, SEL_INT);
    assert_msr(&m, MSR_INUSE, GLOBAL_GP(1) | INUSE_PMI);
    wrmsr(&m, MSR_EVTSEL0 + 2, 0);
    wrmsr(&m, MSR_FIXED_CTR_CTRL, FIXED(2, FIXED_USR));
    assert_msr(&m, MSR_INUSE, GLOBAL_GP(1) | GLOBAL_FIXED(2));
    wrmsr(&m, MSR_FIXED_CTR_CTRL, FIXED(2, FIXED_INT));
    assert_msr(&m, MSR_INUSE, GLOBAL_GP(1) | INUSE_PMI);
    stop(&m);
}

/*
 * Life
 */

/* The state of a PMU of version 4, with values after a reset */
static const Kept states[] = {
    { MSR_PERFCTR0, 0 }, { MSR_PERFCTR0 + 1, 0 },
    { MSR_PERFCTR0 + 2, 0 }, { MSR_PERFCTR0 + 3, 0 },
    { MSR_EVTSEL0, 0 }, { MSR_EVTSEL0 + 1, 0 },
    { MSR_EVTSEL0 + 2, 0 }, { MSR_EVTSEL0 + 3, 0 },
    { MSR_FIXED_CTR0, 0 }, { MSR_FIXED_CTR0 + 1, 0 }, { MSR_FIXED_CTR0 + 2, 0 },
    { MSR_FIXED_CTR_CTRL, 0 },
    { MSR_STATUS, 0 },
    { MSR_GLOBAL_CTRL, LOW_BITS(NR_GP) },
    { MSR_INUSE, 0 },
    { MSR_DEBUGCTL, 0 },
};

/*
 * Change every state from its reset value; count, and leave an overflow
 * pending.
 */
static void keep_busy(Machine *m)
{
    set_lvt(m, VECTOR);
    arm_fixed(m, 0, 5000, FIXED_INT);
    arm_gp(m, 0, 10, 0);
    arm_gp(m, 1, 1000, SEL_INT);
    start_gp(m, 2, EVENT_BRANCHES | SEL_OS);
    start_gp(m, 3, EVENT_CYCLES | SEL_USR);
    wrmsr(m, MSR_GLOBAL_CTRL, GLOBAL_ALL & ~GLOBAL_GP(3));
    wrmsr(m, MSR_DEBUGCTL, DEBUGCTL_FREEZE_IN_SMM);
    count(m, PMU_TALLY_INSNS, KERNEL, 11);
    count(m, PMU_TALLY_RETURNS, KERNEL, 77);
}

static const Mismatch mismatches[] = {
    { "version", INTEL, INTEL ",pmu-version=4", "pmu-version" },
    { "version-6", INTEL ",pmu-version=6", INTEL ",pmu-version=5",
      "pmu-version" },
    { "gp-counters", INTEL, INTEL ",pmu-gp-counters=8", "pmu-gp-counters" },
    { "no-pmu", INTEL, MODEL ",pmu=off", "pmu=on" },
    { "vendor", INTEL, "Opteron_G3-v1,pmu=on", "vendor" },
};

/*
 * Under KVM, real or pretended: see vpmu_kvm in target/i386/vpmu/qtest.c
 */

static void as_kvm_two_fixed(Machine *m)
{
    g_strfreev(qtest_command(m->qts, 1, "vpmu_kvm %u 2", m->cpu));
}

static Machine start_as_kvm(const char *cpu)
{
    Machine m = x86_start(cpu);

    as_kvm(&m);
    return m;
}

/* Registers that KVM has, with values to write */
static const struct {
    uint32_t reg;
    uint64_t val;
} kvm_state[] = {
    { MSR_PERFCTR0, 0x123456 }, { MSR_PERFCTR0 + 3, 0x654321 },
    { MSR_EVTSEL0, EVENT_INSNS | SEL_USR },
    { MSR_EVTSEL0 + 3, EVENT_BRANCHES | SEL_ALL },
    { MSR_FIXED_CTR0, 0x77 }, { MSR_FIXED_CTR0 + 2, 0x99 },
    { MSR_FIXED_CTR_CTRL, FIXED(2, FIXED_USR) },
    { MSR_GLOBAL_CTRL, GLOBAL_GP(3) | GLOBAL_FIXED(2) },
};

static void fill_kvm_state(Machine *m)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(kvm_state); i++) {
        wrmsr(m, kvm_state[i].reg, kvm_state[i].val);
    }
    arm_gp(m, 1, 10, 0);
    wrmsr(m, MSR_GLOBAL_CTRL, GLOBAL_GP(1));
    count(m, PMU_TALLY_INSNS, KERNEL, 10);
    wrmsr(m, MSR_EVTSEL0 + 1, 0);
    wrmsr(m, MSR_GLOBAL_CTRL, GLOBAL_GP(3) | GLOBAL_FIXED(2));
}

/* The state migrates in the subsection that QEMU without this PMU has, too. */
static void test_kvm_migration(void)
{
    g_autofree char *args = x86_args(INTEL);
    Machine m = start_as_kvm(INTEL);

    fill_kvm_state(&m);
    migrate_prepared(&m, args, as_kvm);
    for (unsigned i = 0; i < G_N_ELEMENTS(kvm_state); i++) {
        assert_msr(&m, kvm_state[i].reg, kvm_state[i].val);
    }
    assert_msr(&m, MSR_STATUS, GLOBAL_GP(1));
    stop(&m);
}

/* A register, and the reason why another PMU cannot take it */
static const struct KvmMismatch {
    const char *name;
    const char *from, *to;
    void (*prepare)(Machine *m);
    uint32_t reg;
    uint64_t val;
    const char *message;
} kvm_mismatches[] = {
    { "counter", INTEL ",pmu-gp-counters=8", INTEL, as_kvm,
      MSR_PERFCTR0 + 4, 1, "same pmu-gp-counters" },
    { "selector", INTEL ",pmu-gp-counters=8", INTEL, as_kvm,
      MSR_EVTSEL0 + 7, EVENT_INSNS, "same pmu-gp-counters" },
    { "global", INTEL ",pmu-gp-counters=8", INTEL, as_kvm,
      MSR_GLOBAL_CTRL, LOW_BITS(5), "same pmu-gp-counters" },
    { "fixed", INTEL, INTEL, as_kvm_two_fixed,
      MSR_FIXED_CTR0 + 2, 1, "same pmu-fixed-counters" },
    { "fixed-control", INTEL, INTEL, as_kvm_two_fixed,
      MSR_FIXED_CTR_CTRL, FIXED(2, FIXED_OS), "same pmu-fixed-counters" },
    { "fixed-global", INTEL, INTEL, as_kvm_two_fixed,
      MSR_GLOBAL_CTRL, GLOBAL_FIXED(2), "same pmu-fixed-counters" },
    { "version", INTEL, INTEL ",pmu-version=1", as_kvm,
      MSR_GLOBAL_CTRL, GLOBAL_GP(0), "same pmu-version (AMD: perfmon-v2)." },
    { "no-pmu", INTEL, MODEL ",pmu=off", NULL,
      MSR_EVTSEL0, EVENT_INSNS, "uses a PMU of KVM" },
    { "accelerator", INTEL, INTEL, NULL,
      MSR_FIXED_CTR_CTRL, FIXED(0, FIXED_OS), "uses a PMU of KVM" },
};

static void test_kvm_mismatch(const void *data)
{
    const struct KvmMismatch *mismatch = data;
    g_autofree char *to = x86_args(mismatch->to);
    g_autofree char *message = NULL;
    Machine m = start_as_kvm(mismatch->from);

    wrmsr(&m, mismatch->reg, mismatch->val);
    message = refuse_prepared(&m, to, mismatch->prepare);
    g_assert_nonnull(strstr(message, mismatch->message));
}

/* A PMU that is not in use can hold values, as guests probe counters. */
static void test_kvm_unused(const void *cpu)
{
    g_autofree char *args = x86_args(cpu);
    Machine m = start_as_kvm(INTEL);

    wrmsr(&m, MSR_PERFCTR0, 0xabcd);
    migrate_machine(&m, args);
    if (g_str_equal(cpu, INTEL)) {
        assert_msr(&m, MSR_PERFCTR0, 0xabcd);
        assert_msr(&m, MSR_GLOBAL_CTRL, LOW_BITS(NR_GP));
    }
    stop(&m);
}

#define KVM_PEBS "Icelake-Server-v1,pmu=on,lbr=off"

/* Registers that only some versions of KVM save */
static const Kept kvm_kept[] = {
    { MSR_DEBUGCTL, DEBUGCTL_FREEZE_ON_PMI },
    { MSR_DS_AREA, 0x7ffffffff000 },
    { MSR_PEBS_DATA_CFG, 3 },
    { MSR_PEBS_ENABLE, BIT64(32) | 3 },
};

static void write_kvm_kept(Machine *m)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(kvm_kept); i++) {
        wrmsr(m, kvm_kept[i].reg, kvm_kept[i].reset);
    }
}

static void assert_kvm_kept(Machine *m, bool written)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(kvm_kept); i++) {
        assert_msr(m, kvm_kept[i].reg, written ? kvm_kept[i].reset : 0);
    }
}

/*
 * These registers migrate, are shown by the monitor, and are cleared by a
 * reset.
 */
static void test_kvm_kept(void)
{
    g_autofree char *args = x86_args(KVM_PEBS ",pebs=on");
    Machine m = start_as_kvm(KVM_PEBS ",pebs=on");
    QDict *cpu, *pebs;

    write_kvm_kept(&m);
    migrate_prepared(&m, args, as_kvm);
    assert_kvm_kept(&m, true);
    cpu = query_cpu(&m);
    pebs = qdict_get_qdict(qdict_get_qdict(cpu, "pmu"), "pebs");
    g_assert_cmphex(get_uint(pebs, "area"), ==, 0x7ffffffff000);
    g_assert_cmphex(get_uint(pebs, "enable"), ==, BIT64(32) | 3);
    qobject_unref(cpu);
    qtest_system_reset(m.qts);
    assert_kvm_kept(&m, false);
    stop(&m);
}

static const struct KvmMismatch kept_mismatches[] = {
    { "pebs", NULL, KVM_PEBS ",pebs=off", as_kvm, MSR_DS_AREA, 0x1000,
      "does not save" },
    { "accelerator", NULL, KVM_PEBS ",pebs=on", NULL, MSR_DEBUGCTL,
      DEBUGCTL_BTF, "of KVM, which" },
    { "no-pmu", NULL, "Icelake-Server-v1,pmu=off", NULL, MSR_PEBS_ENABLE, 1,
      "of KVM, which" },
};

/* A single register causes the refusal. */
static void test_kvm_kept_mismatch(const void *data)
{
    const struct KvmMismatch *mismatch = data;
    g_autofree char *to = x86_args(mismatch->to);
    g_autofree char *message = NULL;
    Machine m = start_as_kvm(KVM_PEBS ",pebs=on");

    wrmsr(&m, mismatch->reg, mismatch->val);
    message = refuse_prepared(&m, to, mismatch->prepare);
    g_assert_nonnull(strstr(message, mismatch->message));
}

/* Under KVM, the kernel sets MISC_ENABLE. */
static void test_kvm_misc_enable(void)
{
    Machine m = x86_start(MODEL ",pmu=off");
    uint64_t val = rdmsr(&m, MSR_MISC_ENABLE);

    stop(&m);
    m = start_as_kvm(INTEL);
    qtest_system_reset(m.qts);
    assert_msr(&m, MSR_MISC_ENABLE, val);
    stop(&m);
}

static void add_kvm(void)
{
    add("kvm/migration", test_kvm_migration);
    for (unsigned i = 0; i < G_N_ELEMENTS(kvm_mismatches); i++) {
        add_data("kvm/mismatch", kvm_mismatches[i].name, &kvm_mismatches[i],
                 test_kvm_mismatch);
    }
    add_data("kvm/unused", "without", MODEL ",pmu=off", test_kvm_unused);
    add_data("kvm/unused", "emulated", INTEL, test_kvm_unused);
    add("kvm/kept", test_kvm_kept);
    for (unsigned i = 0; i < G_N_ELEMENTS(kept_mismatches); i++) {
        add_data("kvm/not-kept", kept_mismatches[i].name, &kept_mismatches[i],
                 test_kvm_kept_mismatch);
    }
    add("kvm/misc-enable", test_kvm_misc_enable);
}

/*
 * Refused options
 */

static const Refusal refusals[] = {
    { INTEL ",pmu-version=9", "pmu-version=9", "Allowed: 1 to 6" },
    { INTEL ",pmu-version=6,arch-perfmon-ext=off", "arch-perfmon-ext=on",
      "Leave out arch-perfmon-ext" },
    { INTEL ",pmu-version=6,level=0x22", "leaf 0x23", "level" },
    { INTEL ",pmu-gp-counters=20", "pmu-gp-counters=20", "Allowed: 4 or 8" },
    { INTEL ",pmu-fixed-counters=2", "pmu-fixed-counters=2", "Allowed: 3" },
    { INTEL ",pmu-version=1,pmu-fixed-counters=3", "pmu-fixed-counters=3",
      "Allowed: 0" },
    { INTEL ",pmu-cycles=guess", "pmu-cycles=guess",
      "Allowed: instructions or time" },
    { INTEL ",pmu-cpi=999", "pmu-cpi=999", "Allowed: 1000 to" },
    { INTEL ",pmu-cycles=time,pmu-frequency=1", "pmu-frequency=1",
      "Allowed: 1000000 to" },
    { INTEL ",pmu-frequency=1000000000", "pmu-frequency", "pmu-cycles=time" },
    { INTEL ",pmu-cycles=time,pmu-cpi=1000", "pmu-cpi",
      "pmu-cycles=instructions" },
    { INTEL ",lbr=on,lbr-fmt=3", "lbr-fmt=5", "Leave out" },
    { INTEL ",lbr=on,pdcm=off", "pdcm=on", "Leave out" },
    { ARCH ",pmu-version=3", "pmu-version=4", "Leave out pmu-version" },
    { ARCH ",arch-lbr=off", "arch-lbr=on", "Leave out arch-lbr" },
    { ARCH ",level=0x1b", "leaf 0x1c", "Leave out level" },
    { PEBS ",ds=off", "needs ds=on", "Leave out" },
    { PEBS ",dtes64=off", "dtes64=on", "Leave out" },
    { PEBS ",pdcm=off", "pdcm=on", "Leave out" },
    { PEBS ",pmu-version=1", "pmu-version=1", "2 to 6" },
    { "Icelake-Server-v1,pmu=on,pebs=on,pmu-version=4", "pmu-version=4",
      "5 to 6" },
    { "Denverton-v1,pmu=on,pebs=on", "pebs=on", "Choose an Intel CPU model" },
    { "EPYC-v1,pmu=on,pebs=on", "pebs=on", "Choose an Intel CPU model" },
    { MODEL ",pebs=on", "pebs=on", "pmu=on" },
    { MODEL ",pmu=off,pmu-version=2", "pmu-version", "pmu=on" },
    { MODEL ",pmu-gp-counters=4", "pmu-gp-counters", "pmu=on" },
    { INTEL ",pmu-core=missing", "pmu-core 'missing'",
      "-object pmu-core,id=missing" },
    { INTEL ",pmu-core=missing,pmu-cpi=2000", "pmu-cpi", "insn-cycles" },
};

/*
 * A model of the core
 */

/* CPUID says that all architectural events are there. */
static void test_core_cpuid(void)
{
    Machine m = x86_start(CORE_CPU);
    uint32_t regs[4];

    cpuid(&m, 0xa, regs);
    g_assert_cmphex(regs[1], ==, 0);
    stop(&m);
}

static void assert_core_number(Machine *m, const char *name, int64_t wanted)
{
    QDict *answer = qtest_qmp(m->qts, "{'execute': 'qom-get', 'arguments': "
                              "{'path': '/objects/core0', 'property': %s}}",
                              name);

    g_assert_cmpint(qdict_get_int(answer, "return"), ==, wanted);
    qobject_unref(answer);
}

/* Whoever asks for the object finds its sizes, which cannot be changed. */
static void test_core_object(void)
{
    Machine m = start("-machine none " CORE_OBJECT);
    QDict *error;

    assert_core_number(&m, "l1d-size", 16384);
    assert_core_number(&m, "l1i-size", 32768);
    assert_core_number(&m, "branch-cycles", 16);
    error = qtest_qmp_assert_failure_ref(
        m.qts, "{'execute': 'qom-set', 'arguments': {'path': '/objects/core0',"
        " 'property': 'l1d-size', 'value': 32768}}");
    g_assert_nonnull(strstr(qdict_get_str(error, "desc"), "any more"));
    qobject_unref(error);
    stop(&m);
}

static const struct {
    const char *options, *why;
} bad_cores[] = {
    { "'preset': 'i386'", "no preset 'i386'" },
    { "'preset': 'skylake', 'l1d-size': 48", "l1d" },
    { "'preset': 'zen4', 'l1d-ways': 7", "power of two" },
    { "'preset': 'zen4', 'branch-history': 99", "" },
};

static void test_core_refused(void)
{
    Machine m = start("-machine none");

    for (unsigned i = 0; i < G_N_ELEMENTS(bad_cores); i++) {
        g_autofree char *command = g_strdup_printf(
            "{'execute': 'object-add', 'arguments': {'qom-type': 'pmu-core',"
            " 'id': 'bad', %s}}", bad_cores[i].options);
        QDict *error = qtest_qmp_assert_failure_ref(m.qts, command, NULL);

        g_test_message("%s: %s", bad_cores[i].options,
                       qdict_get_str(error, "desc"));
        g_assert_nonnull(strstr(qdict_get_str(error, "desc"),
                                bad_cores[i].why));
        qobject_unref(error);
    }
    stop(&m);
}

/* query-pmu has all sizes, and no counts, as nothing is executed here. */
static void test_core_described(void)
{
    Machine m = x86_start(CORE_CPU);
    QDict *cpu = query_cpu(&m);
    QDict *core = qdict_get_qdict(cpu, "core");

    g_assert_cmpstr(qdict_get_str(core, "id"), ==, "core0");
    g_assert_cmpstr(qdict_get_str(core, "preset"), ==, "skylake");
    g_assert_cmpstr(qdict_get_str(core, "state"), ==, "private");
    g_assert_cmpint(get_uint(core, "l1d-size"), ==, 16 * KiB);
    g_assert_cmpint(get_uint(core, "l1d-ways"), ==, 8);
    g_assert_cmpint(get_uint(core, "llc-size"), ==, 8 * MiB);
    g_assert_cmpint(get_uint(core, "dtlb-entries"), ==, 1536);
    g_assert_cmpint(get_uint(core, "branch-cycles"), ==, 16);
    g_assert_false(qdict_haskey(core, "counts"));
    qobject_unref(cpu);
    stop(&m);
}

/* The register that READING polls: masks of interrupts, 0 at first */
#define GO 0x21

/*
 * Code in place of the firmware, whose last KiB this is: read one byte of each
 * of the first 256 lines of memory, twice; and again while GO is 1.
 */
static const uint8_t reading[KiB] = {
    0xba, 0x02, 0x00,               /* 0: mov $2, %dx */
    0x31, 0xf6,                     /* 1: xor %si, %si */
    0x8a, 0x04,                     /* 2: mov (%si), %al */
    0x83, 0xc6, 0x40,               /*    add $64, %si */
    0x81, 0xfe, 0x00, 0x40,         /*    cmp $0x4000, %si */
    0x75, 0xf5,                     /*    jne 2b */
    0x4a,                           /*    dec %dx */
    0x75, 0xf0,                     /*    jne 1b */
    0xe4, GO,                       /* 3: in $GO, %al */
    0x3c, 0x01,                     /*    cmp $1, %al */
    0x75, 0xfa,                     /*    jne 3b */
    0xeb, 0xe5,                     /*    jmp 0b */
    [KiB - 16] = 0xe9, 0x0d, 0xfc,  /* begin here */
};

#define READING_LINES 256
#define READING_LOADS (2 * READING_LINES)

/* The instruction of @reading that polls */
#define READING_IN  19
#define HLT         0xf4

static Machine start_code(const uint8_t *code, const char *options)
{
    g_autofree uint8_t *image = g_malloc0(64 * KiB);
    char *firmware = new_file();
    Machine m = {};

    memcpy(image + 63 * KiB, code, KiB);
    g_assert_true(g_file_set_contents(firmware, (char *)image, 64 * KiB, NULL));
    m.qts = qtest_initf("-accel tcg -nodefaults -m 128 -bios %s -cpu %s",
                        firmware, options);
    delete_file(firmware);
    return m;
}

static Machine start_reading(const char *options)
{
    return start_code(reading, options);
}

static uint64_t core_count(const QDict *core, const char *kind,
                           const char *what)
{
    QDict *counts = qdict_get_qdict(core, "counts");

    return get_uint(qdict_get_qdict(counts, kind), what);
}

static void assert_counts(const QDict *core, const char *kind,
                          const char *what, uint64_t wanted)
{
    g_test_message("%s of %s", what, kind);
    g_assert_cmpint(core_count(core, kind, what), ==, wanted);
}

/* The core of the CPU, to be unreferenced */
static QDict *query_core(Machine *m)
{
    return query_part(m, "core");
}

/* The same when it has seen so many loads. */
static QDict *wait_for_loads(Machine *m, uint64_t loads)
{
    QDict *core = query_core(m);

    while (core_count(core, "loads", "references") < loads) {
        qobject_unref(core);
        g_usleep(1000);
        core = query_core(m);
    }
    return core;
}

/* Of 16 KiB, the second turn misses nothing in a first level of that size. */
static void test_core_counts(void)
{
    Machine m = start_reading(CORE_CPU);
    QDict *core = wait_for_loads(&m, READING_LOADS);
    g_autofree char *table = qtest_hmp(m.qts, "info pmu");

    assert_counts(core, "fetches", "l1-misses", 2);
    assert_counts(core, "fetches", "tlb-misses", 1);
    assert_counts(core, "loads", "references", READING_LOADS);
    assert_counts(core, "loads", "l1-misses", READING_LINES);
    assert_counts(core, "loads", "llc-misses", READING_LINES);
    assert_counts(core, "loads", "tlb-misses", 4);
    assert_counts(core, "stores", "references", 0);
    assert_counts(core, "modifies", "references", 0);
    assert_counts(core, "not-taken", "predictions", 2 + 1);
    assert_counts(core, "returns", "predictions", 0);
    assert_counts(core, "indirect", "predictions", 0);
    assert_fits(table);
    g_assert_nonnull(strstr(table, "core core0: skylake, private"));
    g_assert_nonnull(strstr(table, "16384 bytes     8 ways"));
    qobject_unref(core);
    stop(&m);
}

/* An event is selected, whatever the guest executes. */
static void use_core(Machine *m)
{
    wrmsr(m, MSR_EVTSEL0, EVENT_INSNS | SEL_OS);
}

/* The counts of a CPU that has halted are complete. */
static void test_core_counts_of_halted(void)
{
    uint8_t code[KiB];
    QDict *core;
    Machine m;

    memcpy(code, reading, sizeof(code));
    code[READING_IN] = HLT;
    m = start_code(code, CORE_CPU);
    core = wait_for_loads(&m, READING_LOADS);
    assert_counts(core, "loads", "references", READING_LOADS);
    qobject_unref(core);
    stop(&m);
}

/* Read on after a migration: how much of that missed the first level? */
static void assert_misses_after_migration(bool used, uint64_t misses)
{
    Machine m = start_reading(CORE_CPU);
    QDict *core = wait_for_loads(&m, READING_LOADS);
    uint64_t before = used ? READING_LOADS : 0;

    if (used) {
        use_core(&m);
    }
    qobject_unref(core);
    migrate_to(&m, start_reading(CORE_CPU " -incoming defer"));
    qtest_outb(m.qts, GO, 1);
    core = wait_for_loads(&m, before + READING_LOADS);
    assert_counts(core, "loads", "l1-misses", misses);
    qobject_unref(core);
    stop(&m);
}

/* The contents of a core and its counts move with the PMU. */
static void test_core_migration(void)
{
    assert_misses_after_migration(true, READING_LINES);
}

/* If the guest does not use that, the core begins anew. */
static void test_core_migration_unused(void)
{
    assert_misses_after_migration(false, READING_LINES);
}

static const struct {
    const char *to, *message;
} other_cores[] = {
    { "", "add the property pmu-core" },
    { CORE_OF("l1d-size=32k"), "geometry.l1d.size" },
    /* The same number of lines */
    { CORE_OF("l1d-size=16k,l1d-ways=4"), "geometry.l1d.ways" },
    { CORE_OF("l1d-size=16k,branch-cycles=15"), "penalties.branch" },
};

/* Other cores cannot go on with it. */
static void test_core_migration_refused(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(other_cores); i++) {
        Machine m = start_reading(CORE_CPU);
        g_autofree char *to = g_strdup_printf("-accel tcg -m 128 -cpu " INTEL
                                              "%s", other_cores[i].to);
        g_autofree char *message = NULL;

        use_core(&m);
        message = refuse_prepared(&m, to, NULL);
        g_assert_nonnull(strstr(message, other_cores[i].message));
    }
}

/* CPUs of two generations, and with the metrics of a core each */
#define ICE_LAKE    "Icelake-Server-v5,pmu=on"
#define GOLDEN_COVE "SapphireRapids-v1,pmu=on"
#define ICE_LAKE_CORE    ICE_LAKE CORE_OF("l1d-size=32k")
#define GOLDEN_COVE_CORE GOLDEN_COVE CORE_OF("l1d-size=32k")

static void check_slots(const char *cpu, const Event *slots, unsigned each)
{
    Machine m = x86_start(cpu);

    for (const Event *e = slots; e->code; e++) {
        g_test_message("0x%" PRIx64, e->code);
        start_gp(&m, 0, e->code | SEL_OS);
        wrmsr(&m, MSR_PERFCTR0, 0);
        count(&m, __builtin_ctzll(e->tallies), KERNEL, 10);
        assert_msr(&m, MSR_PERFCTR0, each * 10);
        wrmsr(&m, MSR_EVTSEL0, 0);
    }
    stop(&m);
}

/* A cycle in which the core waits for code is four slots with nothing. */
static void test_core_slots(void)
{
    static const Event skylake[] = { CODES_SKYLAKE_SLOTS(EVENT) { } };
    static const Event golden_cove[] = { CODES_GOLDEN_COVE_SLOTS(EVENT) { } };

    check_slots(CORE_CPU, skylake, 4);
    check_slots(GOLDEN_COVE_CORE, golden_cove, 6);
}

/* It overflows in the event that passes it, and not later. */
static void test_core_slots_overflow(void)
{
    Machine m = x86_start(CORE_CPU);

    start_gp(&m, 0, 0x019c | SEL_OS | SEL_INT);
    wrmsr(&m, MSR_PERFCTR0, (uint32_t)-10);
    count(&m, PMU_TALLY_FRONTEND_CYCLES, KERNEL, 2);
    assert_msr(&m, MSR_STATUS, 0);
    count(&m, PMU_TALLY_FRONTEND_CYCLES, KERNEL, 1);
    assert_msr(&m, MSR_STATUS, GLOBAL_GP(0));
    assert_msr(&m, MSR_PERFCTR0, 2);
    stop(&m);
}

/*
 * Metrics of slots
 */

#define FIXED_SLOTS 3

static void start_metrics(Machine *m, unsigned flags)
{
    wrmsr(m, MSR_GLOBAL_CTRL, GLOBAL_FIXED(FIXED_SLOTS) | GLOBAL_METRICS);
    wrmsr(m, MSR_FIXED_CTR_CTRL, FIXED(FIXED_SLOTS, FIXED_OS | flags));
}

/* So many cycles of each kind, from the lowest metric on */
static void count_parts(Machine *m, unsigned mode, const unsigned parts[4])
{
    static const PmuTally tallies[] = {
        PMU_TALLY_RETIRING_CYCLES, PMU_TALLY_SPECULATION_CYCLES,
        PMU_TALLY_FRONTEND_CYCLES, PMU_TALLY_BACKEND_CYCLES,
    };

    for (unsigned i = 0; i < 4; i++) {
        count(m, tallies[i], mode, parts[i]);
        count(m, PMU_TALLY_CYCLES, mode, parts[i]);
    }
}

static const unsigned parts_of_all[] = { 100, 50, 30, 75 };
#define METRICS_OF_ALL (100 | 50 << 8 | 30 << 16 | 75u << 24)

static void assert_metrics(Machine *m, uint64_t slots, uint64_t metrics)
{
    assert_msr(m, MSR_FIXED_CTR0 + FIXED_SLOTS, slots);
    assert_msr(m, MSR_PERF_METRICS, metrics);
    g_assert_cmphex(rdpmc(m, RDPMC_METRICS), ==, metrics);
}

/* They are shares of 255, as which parts of 255 read as they are. */
static void test_core_metrics(void)
{
    Machine m = x86_start(ICE_LAKE_CORE);

    start_metrics(&m, 0);
    assert_metrics(&m, 0, 0);
    count_parts(&m, KERNEL, parts_of_all);
    count_parts(&m, USER, (unsigned[]) { 1, 0, 0, 9 });
    assert_metrics(&m, 5 * 255, METRICS_OF_ALL);
    /* As Linux begins anew */
    wrmsr(&m, MSR_FIXED_CTR0 + FIXED_SLOTS, 0);
    wrmsr(&m, MSR_PERF_METRICS, 0);
    assert_metrics(&m, 0, 0);
    count_parts(&m, KERNEL, (unsigned[]) { 1, 1, 1, 0 });
    assert_metrics(&m, 5 * 3, 85 | 85 << 8 | 85 << 16);
    /* As it goes on with a task's */
    wrmsr(&m, MSR_FIXED_CTR0 + FIXED_SLOTS, 5 * 255);
    wrmsr(&m, MSR_PERF_METRICS, METRICS_OF_ALL);
    assert_metrics(&m, 5 * 255, METRICS_OF_ALL);
    count_parts(&m, KERNEL, (unsigned[]) { 255, 0, 0, 0 });
    assert_metrics(&m, 5 * 510, 178 | 25 << 8 | 15 << 16 | 37 << 24);
    stop(&m);
}

/* A few slots are parted, too, and the parts always add up to 255. */
static void test_core_metrics_sum(void)
{
    Machine m = x86_start(ICE_LAKE_CORE);

    start_metrics(&m, 0);
    for (unsigned n = 1; n < 300; n += 7) {
        uint64_t metrics, sum = 0;

        count_parts(&m, KERNEL, (unsigned[]) { n, 1, n / 3, 2 });
        metrics = rdmsr(&m, MSR_PERF_METRICS);
        for (unsigned i = 0; i < 4; i++) {
            sum += metrics >> (8 * i) & 0xff;
        }
        g_assert_cmpint(sum, ==, 255);
        wrmsr(&m, MSR_PERF_METRICS, metrics);
        assert_msr(&m, MSR_PERF_METRICS, metrics);
    }
    stop(&m);
}

/* Golden Cove's second level: nothing of what retires is heavy. */
static void test_core_metrics_levels(void)
{
    Machine m = x86_start(GOLDEN_COVE_CORE);

    start_metrics(&m, 0);
    count_parts(&m, KERNEL, parts_of_all);
    assert_metrics(&m, 6 * 255, METRICS_OF_ALL
                   | (uint64_t)(METRICS_OF_ALL & ~0xff) << 32);
    stop(&m);
}

/* They count while the counter of slots does, and their own bit is set. */
static void test_core_metrics_enables(void)
{
    static const uint64_t incomplete[] = {
        0, GLOBAL_METRICS, GLOBAL_FIXED(FIXED_SLOTS),
    };
    Machine m = x86_start(ICE_LAKE_CORE);

    start_metrics(&m, 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(incomplete); i++) {
        wrmsr(&m, MSR_GLOBAL_CTRL, incomplete[i]);
        g_assert_cmphex(wanted(&m), ==,
                        incomplete[i] & GLOBAL_FIXED(FIXED_SLOTS)
                        ? T(CYCLES) : 0);
    }
    start_metrics(&m, 0);
    wrmsr(&m, MSR_FIXED_CTR_CTRL, FIXED(2, FIXED_OS));
    g_assert_cmphex(wanted(&m), ==, 0);
    start_metrics(&m, 0);
    g_assert_cmphex(wanted(&m), ==, T(CYCLES) | COUNTS_RETIRING
                    | COUNTS_SPECULATION | COUNTS_FRONTEND | COUNTS_BACKEND);
    stop(&m);
}

/* If software clears the slots alone, a metric overflows before they do. */
static void test_core_metrics_overflow(void)
{
    Machine m = x86_start(ICE_LAKE_CORE);

    set_lvt(&m, VECTOR);
    wrmsr(&m, MSR_DEBUGCTL, DEBUGCTL_FREEZE_ON_PMI);
    wrmsr(&m, MSR_FIXED_CTR0 + FIXED_SLOTS, LOW_BITS(48) - 9);
    wrmsr(&m, MSR_PERF_METRICS, 0xff);
    wrmsr(&m, MSR_FIXED_CTR0 + FIXED_SLOTS, 0);
    start_metrics(&m, FIXED_INT);
    count_parts(&m, KERNEL, (unsigned[]) { 1, 0, 0, 0 });
    g_assert_false(requested(&m, VECTOR));
    count_parts(&m, KERNEL, (unsigned[]) { 1, 0, 0, 0 });
    g_assert_true(requested(&m, VECTOR));
    assert_msr(&m, MSR_STATUS, GLOBAL_METRICS);
    g_assert_cmphex(wanted(&m), ==, 0);
    wrmsr(&m, MSR_STATUS_RESET, GLOBAL_METRICS);
    assert_msr(&m, MSR_STATUS, 0);
    stop(&m);
}

static const struct {
    const char *name, *cpu;
    uint64_t writable;
    unsigned slots;
} metrics_cpus[] = {
    { "ice-lake", ICE_LAKE_CORE, LOW_BITS(32), 5 },
    { "golden-cove", GOLDEN_COVE_CORE, UINT64_MAX, 6 },
};

static void test_core_metrics_registers(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(metrics_cpus); i++) {
        Machine m = x86_start(metrics_cpus[i].cpu);
        uint32_t regs[4];
        uint64_t val;

        cpuid(&m, 0xa, regs);
        g_assert_cmpint(regs[0] >> 24, ==, 8);
        g_assert_cmphex(regs[1], ==, 0);
        g_assert_cmpint(regs[3] & 0x1f, ==, 4);
        g_assert_cmphex(rdmsr(&m, MSR_PERF_CAP) & PERF_CAP_METRICS, !=, 0);
        wrmsr(&m, MSR_GLOBAL_CTRL, LOW_BITS(8) | 0xfull << 32 | GLOBAL_METRICS);
        g_assert_false(try_wrmsr(&m, MSR_GLOBAL_CTRL, BIT64(36)));
        wrmsr(&m, MSR_FIXED_CTR_CTRL, 0xbbbb);
        wrmsr(&m, MSR_PERF_METRICS, metrics_cpus[i].writable);
        g_assert_cmpint(try_wrmsr(&m, MSR_PERF_METRICS, BIT64(32)), ==,
                        metrics_cpus[i].writable >> 32 != 0);
        g_assert_false(try_rdpmc(&m, RDPMC_METRICS + 1, 0, &val));
        qtest_system_reset(m.qts);
        assert_msr(&m, MSR_PERF_METRICS, 0);
        assert_msr(&m, MSR_FIXED_CTR0 + FIXED_SLOTS, 0);
        stop(&m);
    }
}

/* Who has none: no core, another model, or fewer counters */
static void test_core_metrics_absent(void)
{
    static const char *const cpus[] = {
        ICE_LAKE, CORE_CPU, ICE_LAKE ",pmu-fixed-counters=3" CORE_OF(""),
        ICE_LAKE ",pdcm=off" CORE_OF(""),
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cpus); i++) {
        Machine m = x86_start(cpus[i]);
        uint32_t regs[4];
        uint64_t val;

        cpuid(&m, 0xa, regs);
        g_assert_cmpint(regs[0] >> 24, ==, 7);
        g_assert_cmpint(regs[3] & 0x1f, ==, 3);
        g_assert_false(try_wrmsr(&m, MSR_GLOBAL_CTRL, GLOBAL_METRICS));
        g_assert_false(try_wrmsr(&m, MSR_FIXED_CTR0 + FIXED_SLOTS, 0));
        g_assert_false(try_rdpmc(&m, RDPMC_METRICS, 0, &val));
        wrmsr(&m, MSR_PERF_METRICS, 1);
        assert_msr(&m, MSR_PERF_METRICS, 0);
        stop(&m);
    }
}

/* Also if only these have a value, and nothing counts any more */
static void test_core_metrics_migration(void)
{
    g_autofree char *args = face->args(GOLDEN_COVE_CORE);
    g_autofree char *fewer = face->args(GOLDEN_COVE ",pmu-fixed-counters=3"
                                        CORE_OF("l1d-size=32k"));
    g_autofree char *message = NULL;
    Machine m = x86_start(GOLDEN_COVE_CORE);
    uint64_t metrics;

    start_metrics(&m, 0);
    count_parts(&m, KERNEL, parts_of_all);
    migrate_machine(&m, args);
    count_parts(&m, KERNEL, parts_of_all);
    wrmsr(&m, MSR_GLOBAL_CTRL, 0);
    wrmsr(&m, MSR_FIXED_CTR_CTRL, 0);
    metrics = rdmsr(&m, MSR_PERF_METRICS);
    g_assert_cmphex(metrics & LOW_BITS(32), ==, METRICS_OF_ALL);
    migrate_machine(&m, args);
    assert_metrics(&m, 6 * 510, metrics);
    message = refuse_prepared(&m, fewer, NULL);
    g_assert_nonnull(strstr(message, "pmu-fixed-counters"));
}

static void test_core_metrics_shown(void)
{
    Machine m = x86_start(ICE_LAKE_CORE);
    QDict *pmu;

    start_metrics(&m, 0);
    count_parts(&m, KERNEL, parts_of_all);
    pmu = query_part(&m, "pmu");
    g_assert_cmphex(get_uint(pmu, "metrics"), ==, METRICS_OF_ALL);
    g_assert_cmpint(qlist_size(qdict_get_qlist(pmu, "counters")), ==, 8 + 4);
    qobject_unref(pmu);
    stop(&m);
}

static void add_metrics_tests(void)
{
    add("core/metrics", test_core_metrics);
    add("core/metrics/sum", test_core_metrics_sum);
    add("core/metrics/levels", test_core_metrics_levels);
    add("core/metrics/enables", test_core_metrics_enables);
    add("core/metrics/overflow", test_core_metrics_overflow);
    add("core/metrics/registers", test_core_metrics_registers);
    add("core/metrics/absent", test_core_metrics_absent);
    add("core/metrics/migration", test_core_metrics_migration);
    add("core/metrics/shown", test_core_metrics_shown);
}

/* Requests to the last level, by the register that their code selects */
#define OFFCORE_CODE   0x01b7
#define OFFCORE_CODE_1 0x01bb

static const struct {
    uint64_t rsp;
    PmuTallies counted;
} offcore_events[] = {
    /* Linux's LLC-loads, -load-misses, -stores and -store-misses */
    { 0x3fc0010001, COUNTS_L1D_LOAD_MISSES },
    { 0x3fbc020001, COUNTS_LLC_LOAD_MISSES },
    { 0x3fc0010002, COUNTS_L1D_STORE_MISSES },
    { 0x3fbc020002, T(LLC_STORE_MISSES) },
    /* Its node-loads and node-load-misses: there is one node. */
    { 0x1fc4000001, COUNTS_LLC_LOAD_MISSES },
    { 0x1fb8000001, 0 },
    /* Hits in any state; code; all requests */
    { 0x3fc03c0001, COUNTS_LLC_LOAD_HITS },
    { 0x3fc0010004, COUNTS_L1I_MISSES },
    { 0x3fc0010007, COUNTS_LLC_REFS },
    { 0x3fbc000007, COUNTS_LLC_MISSES },
    /* Other cores have nothing, and nothing is prefetched or written back. */
    { 0x1000000001 | 1ull << 26, 0 },
    { 0x3fc0010010, 0 },
    { 0x3fc0010008, 0 },
    { 0, 0 },
};

static void test_core_offcore(void)
{
    Machine m = x86_start(CORE_CPU);

    for (unsigned i = 0; i < G_N_ELEMENTS(offcore_events); i++) {
        g_test_message("0x%" PRIx64, offcore_events[i].rsp);
        start_gp(&m, 0, OFFCORE_CODE | SEL_OS);
        wrmsr(&m, MSR_OFFCORE_RSP_0, offcore_events[i].rsp);
        g_assert_cmphex(wanted(&m), ==, offcore_events[i].counted);
        wrmsr(&m, MSR_EVTSEL0, 0);
        wrmsr(&m, MSR_OFFCORE_RSP_0, 0);
        start_gp(&m, 0, OFFCORE_CODE_1 | SEL_OS);
        wrmsr(&m, MSR_OFFCORE_RSP_0 + 1, offcore_events[i].rsp);
        g_assert_cmphex(wanted(&m), ==, offcore_events[i].counted);
        wrmsr(&m, MSR_EVTSEL0, 0);
    }
    stop(&m);
}

/* Without a core, the registers are ignored; a reset clears them. */
static void test_core_offcore_registers(void)
{
    g_autofree char *args = face->args(CORE_CPU);
    Machine m = x86_start(INTEL);

    wrmsr(&m, MSR_OFFCORE_RSP_0, 1);
    assert_msr(&m, MSR_OFFCORE_RSP_0, 0);
    stop(&m);
    m = x86_start(CORE_CPU);
    for (unsigned i = 0; i < 2; i++) {
        g_assert_false(try_wrmsr(&m, MSR_OFFCORE_RSP_0 + i, BIT64(38)));
        wrmsr(&m, MSR_OFFCORE_RSP_0 + i, 0x3fffff8fff);
    }
    migrate_machine(&m, args);
    for (unsigned i = 0; i < 2; i++) {
        assert_msr(&m, MSR_OFFCORE_RSP_0 + i, 0x3fffff8fff);
    }
    qtest_system_reset(m.qts);
    assert_msr(&m, MSR_OFFCORE_RSP_0, 0);
    stop(&m);
}

/* CPUID has the sizes of the core, and no other caches. */
static void test_core_caches(void)
{
    Machine m = x86_start(CORE_CPU);
    uint32_t regs[4];

    cpuid_subleaf(&m, 4, 0, regs);
    g_assert_cmphex(regs[0] & 0x3ffffff, ==, 1 | 1 << 5 | 1 << 8);
    g_assert_cmphex(regs[1], ==, 7 << 22 | 63);
    g_assert_cmphex(regs[2], ==, 31);
    cpuid_subleaf(&m, 4, 2, regs);
    g_assert_cmphex(regs[0] & 0x3ffffff, ==, 3 | 2 << 5 | 1 << 8);
    g_assert_cmphex(regs[1], ==, 15 << 22 | 63);
    g_assert_cmphex(regs[2], ==, 8191);
    cpuid_subleaf(&m, 4, 3, regs);
    g_assert_cmphex(regs[0], ==, 0);
    cpuid(&m, 2, regs);
    g_assert_cmphex(regs[0], ==, 0xff01);
    stop(&m);
}

/*
 * Implementation of struct Face
 */

static void face_hotplug(Machine *m)
{
    qtest_qmp_device_add(m->qts, MODEL "-x86_64-cpu", "late",
                         "{'core-id': 1, 'thread-id': 0, 'socket-id': 0}");
}

static void face_start(Machine *m)
{
    wrmsr(m, MSR_GLOBAL_CTRL, GLOBAL_ALL);
}

static void face_stop(Machine *m)
{
    wrmsr(m, MSR_GLOBAL_CTRL, 0);
}

static void face_freeze_on_overflow(Machine *m)
{
    wrmsr(m, MSR_DEBUGCTL, DEBUGCTL_FREEZE_ON_PMI);
}

static unsigned face_overflowed(Machine *m)
{
    return rdmsr(m, MSR_STATUS) & LOW_BITS(NR_GP);
}

static void face_rearm(Machine *m)
{
    wrmsr(m, MSR_STATUS_RESET, rdmsr(m, MSR_STATUS));
    wrmsr(m, MSR_APIC_LVTPC, LVT_NMI);
    face_start(m);
}

/*
 * Monitor
 */

/* Each condition in turn stops the counter. */
static void test_stopped_gp(void)
{
    Machine m = x86_start_version(4);

    assert_stopped_by(&m, 0, "EN");
    start_gp(&m, 0, EVENT_INSNS | SEL_USR);
    assert_stopped_by(&m, 0, "");
    wrmsr(&m, MSR_GLOBAL_CTRL, GLOBAL_GP(1));
    assert_stopped_by(&m, 0, "GLOBAL_CTRL");
    wrmsr(&m, MSR_STATUS_SET, STATUS_CTR_FRZ);
    wrmsr(&m, MSR_EVTSEL0, EVENT_INSNS);
    assert_stopped_by(&m, 0, "EN GLOBAL_CTRL CTR_FRZ");
    wrmsr(&m, MSR_STATUS_RESET, STATUS_CTR_FRZ);
    face_start(&m);
    start_gp(&m, 0, EVENT_INSNS);
    assert_stopped_by(&m, 0, "modes");
    wrmsr(&m, MSR_DEBUGCTL, DEBUGCTL_FREEZE_IN_SMM);
    start_gp(&m, 0, EVENT_INSNS | SEL_USR);
    assert_stopped_by(&m, 0, "FREEZE_WHILE_SMM");
    stop(&m);
}

static void test_stopped_fixed(void)
{
    Machine m = x86_start_version(2);

    assert_stopped_by(&m, NR_GP, "FIXED_CTR_CTRL GLOBAL_CTRL");
    wrmsr(&m, MSR_FIXED_CTR_CTRL, FIXED(0, FIXED_USR));
    assert_stopped_by(&m, NR_GP, "GLOBAL_CTRL");
    face_start(&m);
    assert_stopped_by(&m, NR_GP, "");
    stop(&m);
}

/* Thresholds and other conditions of a counter */
static void test_shown_conditions(void)
{
    Machine m = x86_start_version(2);
    g_autofree char *table = NULL;
    QDict *c;

    start_gp(&m, 0, 0x1cb | SEL_ALL | SEL_EDGE | SEL_INV | SEL_CMASK(3));
    c = query_counter(&m, 0);
    g_assert_cmpstr(qdict_get_str(c, "event"), ==, "interrupts");
    g_assert_cmphex(get_uint(c, "code"), ==, 0x1cb);
    g_assert_cmpint(get_uint(c, "threshold"), ==, 3);
    g_assert_true(qdict_get_bool(c, "invert"));
    g_assert_true(qdict_get_bool(c, "edge"));
    qobject_unref(c);
    table = qtest_hmp(m.qts, "info pmu");
    g_assert_nonnull(strstr(table,
                            "code 0x1cb fewer than 3 a cycle edges\r\n"));
    stop(&m);
}

/* The interrupt is shown by its vector until the CPU takes it. */
static void test_pending_vector(void)
{
    Machine m = x86_start_version(2);
    QDict *cpu;

    set_lvt(&m, VECTOR);
    arm_gp(&m, 0, 10, SEL_INT);
    count(&m, PMU_TALLY_INSNS, USER, 10);
    cpu = query_cpu(&m);
    assert_words(qdict_get_qdict(cpu, "pmu"), "pending", "local-apic");
    qobject_unref(cpu);
    stop(&m);
}

/*
 * The kernel counts events for which QEMU has no name, and does not report
 * overflows and interrupts.
 */
static void test_shown_kvm(void)
{
    Machine m = x86_start_version(2);
    g_autofree char *table = NULL;
    QDict *cpu, *pmu, *c;

    g_strfreev(qtest_command(m.qts, 1, "vpmu_kvm %u %u", m.cpu, NR_FIXED));
    start_gp(&m, 0, face->unknown | SEL_ALL);
    cpu = query_cpu(&m);
    pmu = qdict_get_qdict(cpu, "pmu");
    g_assert_cmpstr(qdict_get_str(cpu, "engine"), ==, "kvm");
    g_assert_false(qdict_haskey(pmu, "pending"));
    g_assert_false(qdict_haskey(pmu, "interrupts"));
    assert_words(pmu, "hidden", "");
    qobject_unref(cpu);
    c = query_counter(&m, 0);
    g_assert_true(qdict_get_bool(c, "running"));
    g_assert_false(qdict_haskey(c, "event"));
    g_assert_false(qdict_haskey(c, "overflows"));
    assert_words(c, "stopped-by", "");
    qobject_unref(c);
    table = qtest_hmp(m.qts, "info pmu");
    g_assert_nonnull(strstr(table, "unknown "));
    g_assert_nonnull(strstr(table, " -\r\n"));
    stop(&m);
}

static void assert_recording(Machine *m, const char *modes, bool call_stack)
{
    QDict *cpu = query_cpu(m);
    QDict *records = qdict_get_qdict(qdict_get_qdict(cpu, "pmu"), "records");

    g_assert_cmpint(get_uint(records, "depth"), ==, 32);
    assert_words(records, "modes", modes);
    g_assert_cmpint(qdict_get_bool(records, "call-stack"), ==, call_stack);
    qobject_unref(cpu);
}

/* Modes in which branches are recorded, never SMM; and addresses of PEBS. */
static void test_shown_records(void)
{
    Machine m = x86_start(LBR ",pebs=on");
    g_autofree char *off = qtest_hmp(m.qts, "info pmu"), *on = NULL;

    g_assert_nonnull(strstr(off, "records of 32 branches, not recording\r\n"));
    g_assert_nonnull(strstr(off, "PEBS: area at 0x0, enable 0x0\r\n"));
    assert_recording(&m, "", false);
    wrmsr(&m, MSR_DEBUGCTL, DEBUGCTL_LBR);
    assert_recording(&m, "kernel user guest-kernel guest-user", false);
    /* Calls and returns in user mode only */
    wrmsr(&m, MSR_LBR_SELECT, 0x3c5);
    assert_recording(&m, "user guest-user", true);
    wrmsr(&m, MSR_DS_AREA, 0x5000);
    wrmsr(&m, MSR_PEBS_ENABLE, 2);
    on = qtest_hmp(m.qts, "info pmu");
    g_assert_nonnull(strstr(on, "records of 32 branches, as a call stack\r\n"));
    g_assert_nonnull(strstr(on, "PEBS: area at 0x5000, enable 0x2\r\n"));
    stop(&m);
}

/* Without branch records, none are shown. */
static void test_shown_no_records(void)
{
    Machine m = x86_start(MODEL ",pmu=on,lbr=off");
    QDict *cpu = query_cpu(&m);
    QDict *info = qdict_get_qdict(cpu, "pmu");

    g_assert_false(qdict_haskey(info, "records"));
    g_assert_false(qdict_haskey(info, "pebs"));
    qobject_unref(cpu);
    stop(&m);
}

static void add_registers(void)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(leaves); i++) {
        add_data("cpuid", leaves[i].name, &leaves[i], test_leaf);
    }
    add("features", test_features);
    add("misc-enable", test_misc_enable);
    add("without-pdcm", test_without_pdcm);
    for (i = 1; i <= MAX_VERSION; i++) {
        add_number("bits", i, test_bits);
        add_number("absent", i, test_absent);
        add_number("rdpmc/index", i, test_rdpmc_index);
    }
    add_number("counters", 4, test_number_of_counters);
    add_number("counters", 8, test_number_of_counters);
    add("rdpmc/fixed", test_rdpmc_fixed);
    add("aliases", test_aliases);
    add("alias-counts", test_alias_counts);
    for (i = 0; i < G_N_ELEMENTS(extended); i++) {
        add_data("extended", extended[i].name, &extended[i], test_extended);
    }
    add("write/values", test_writes);
    add("write/fault-changes-nothing", test_fault_changes_nothing);
}

static void add_counting(void)
{
    add("count/fixed-modes", test_fixed_modes);
    add("count/freeze-in-smm", test_freeze_in_smm);
    add("count/fixed-events", test_fixed_events);
    add("count/enables", test_enables);
    add("count/equality", test_equality);
    add("count/filter-of-selectors", test_filter_of_selectors);
    add("count/global-start-and-stop", test_global_start_and_stop);
    add("count/version-1", test_version_1_counts);
    add("hotplug/refused", test_hotplug_refused);
}

static void add_overflow(void)
{
    unsigned i;

    add("overflow/fixed-interrupt", test_fixed_interrupt);
    add("overflow/status-without-interrupt", test_status_without_interrupt);
    add("overflow/status-reset", test_status_reset);
    add("overflow/fixed-and-gp-at-once", test_fixed_and_gp_at_once);
    add("overflow/version-1", test_version_1_interrupt);
    for (i = 2; i <= MAX_VERSION; i++) {
        add_number("freeze/version", i, i < 4 ? test_freeze_by_enables
                                              : test_freeze_by_status);
    }
    add_number("freeze/later-version", 2, test_freeze_by_later);
    add_number("freeze/later-version", 4, test_freeze_by_later);
    add("freeze/not-without-interrupt", test_no_freeze_without_interrupt);
    add("migration/inverted", test_migration_of_inverted);
    add("migration/selectors", test_migration_of_selectors);
    add("migration/leftovers-of-version-1", test_leftovers_of_version_1);
    add("status-set", test_status_set);
    add("inuse", test_inuse);
}

static void add_lbr(void)
{
    add("lbr/reset", test_lbr_reset);
    add("lbr/migration", test_lbr_migration);
    add("lbr/migration-ended", test_lbr_migration_ended);
    add("lbr/refused", test_lbr_refused);
    for (unsigned i = 0; i < G_N_ELEMENTS(lbr_mismatches); i++) {
        add_data("lbr/mismatch", lbr_mismatches[i].name, &lbr_mismatches[i],
                 test_lbr_mismatch);
    }
    add("lbr/absent", test_lbr_absent);
    add("lbr/models", test_lbr_models);
    add("lbr/bits", test_lbr_bits);
    add("lbr/arch/features", test_arch_features);
    add("lbr/arch/level", test_arch_level);
    add("lbr/arch/untimed", test_arch_untimed);
    add("lbr/arch/bits", test_arch_bits);
    add("lbr/arch/depth", test_arch_depth);
    add("lbr/arch/reset", test_arch_reset);
    add_data("lbr/arch/migration", "32", GUINT_TO_POINTER(32),
             test_arch_migration);
    add_data("lbr/arch/migration", "8", GUINT_TO_POINTER(8),
             test_arch_migration);
    add("lbr/arch/migration-ended", test_arch_migration_ended);
    add("lbr/arch/absent", test_arch_absent);
}

static void add_core(void)
{
    add("core/cpuid", test_core_cpuid);
    add("core/object", test_core_object);
    add("core/refused", test_core_refused);
    add("core/described", test_core_described);
    add("core/counts", test_core_counts);
    add("core/counts/halted", test_core_counts_of_halted);
    add("core/slots", test_core_slots);
    add("core/slots/overflow", test_core_slots_overflow);
    add_metrics_tests();
    add("core/offcore", test_core_offcore);
    add("core/offcore-registers", test_core_offcore_registers);
    add("core/caches", test_core_caches);
    add("core/migration/used", test_core_migration);
    add("core/migration/unused", test_core_migration_unused);
    add("core/migration/refused", test_core_migration_refused);
}

static void add_pebs(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(pebs_models); i++) {
        const struct Pebs *pebs = &pebs_models[i];

        add_data("pebs/features", pebs->cpu, pebs, test_pebs_features);
        add_data("pebs/bits", pebs->cpu, pebs, test_pebs_bits);
        add_data("pebs/record", pebs->cpu, pebs, test_pebs_record);
        add_data("pebs/together", pebs->cpu, pebs, test_pebs_together);
    }
    add("pebs/ds-area", test_pebs_ds_area);
    add_data("pebs/absent", "default", INTEL, test_pebs_absent);
    add_data("pebs/absent", "off", INTEL ",pebs=off", test_pebs_absent);
    add("pebs/reset", test_pebs_reset);
    add("pebs/migration", test_pebs_migration);
    add("pebs/refused", test_pebs_refused);
    add("pebs/refused-by-other", test_pebs_refused_by_other);
    add("pebs/groups", test_pebs_groups);
    add("pebs/nowhere", test_pebs_nowhere);
    add("pebs/linear", test_pebs_linear);
    add("pebs/bad-index", test_pebs_bad_index);
    add_number("pebs/freeze", 3, test_pebs_freeze);
    add_number("pebs/freeze", 4, test_pebs_freeze);
    add_number("pebs/freeze-lbrs", 3, test_pebs_freeze_lbrs);
    add_number("pebs/freeze-lbrs", 4, test_pebs_freeze_lbrs);
    add("pebs/load-latency", test_pebs_load_latency);
}

static void add_cases(void)
{
    add_x86_cases();
    add_registers();
    add_lbr();
    add_pebs();
    add_core();
    add_counting();
    add_overflow();
    add("monitor/stopped-gp", test_stopped_gp);
    add("monitor/stopped-fixed", test_stopped_fixed);
    add("monitor/conditions", test_shown_conditions);
    add("monitor/pending-vector", test_pending_vector);
    add("monitor/kvm", test_shown_kvm);
    add("monitor/records", test_shown_records);
    add("monitor/no-records", test_shown_no_records);
    add_kvm();
}

const X86Face intel_face = {
    .evtsel = MSR_EVTSEL0,
    .counter = MSR_A_PMC0,
    .step = 1,
    .nr_counters = NR_GP,
    .status = MSR_STATUS,
    .masks_lvt = true,
    .face = {
        .name = "intel",
        .cpu = INTEL,
        .full_cpu = INTEL ",pmu-version=4",
        .cpu_without = MODEL ",pmu=off",
        .tells_nested = true,
        .user = USER,
        .kernel = KERNEL,
        .user_modes = 0xaa,
        .nr_modes = NR_MODES,
        .width = 48,
        .overflow_at = 0,
        .insns = EVENT_INSNS,
        .cycles = EVENT_CYCLES,
        .unknown = 0x412e,
        .unknown_message = "event 0x2e, unit mask 0x41",
        .kind = "intel-v2",
        .vendor = "intel",
        .nr_shown = NR_GP + NR_FIXED,
        .counter_name = "IA32_PMC0",
        .shown_insns = EVENT_INSNS,
        .shown_modes = {
            "user guest-user smm-user guest-smm-user",
            "kernel guest-kernel smm guest-smm",
            "kernel user guest-kernel guest-user smm smm-user guest-smm "
            "guest-smm-user",
            "",
        },
        .shown_pending = "nmi",
        .nr_selectors = NR_GP,
        .event_tables = event_tables,
        .nr_event_tables = G_N_ELEMENTS(event_tables),
        .states = states,
        .nr_states = G_N_ELEMENTS(states),
        .mismatches = mismatches,
        .nr_mismatches = G_N_ELEMENTS(mismatches),
        .refusals = refusals,
        .nr_refusals = G_N_ELEMENTS(refusals),

        .add_cases = add_cases,
        .args = x86_args,
        .hotplug = face_hotplug,
        .read_register = x86_read_register,
        .write_register = x86_write_register,
        .prepare = x86_prepare,
        .select = x86_select,
        .start = face_start,
        .stop = face_stop,
        .freeze_on_overflow = face_freeze_on_overflow,
        .read = x86_read,
        .write = x86_write,
        .overflowed = face_overflowed,
        .interrupted = take_nmi,
        .rearm = face_rearm,
        .keep_busy = keep_busy,
    },
};
