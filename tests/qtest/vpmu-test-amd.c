/*
 * QTest of the virtual PMU: AMD's registers, as the guest sees them
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "vpmu-test-x86.h"

#define MODEL "EPYC-Genoa-v1"
#define AMD MODEL ",pmu=on"

#define NR_LEGACY 4
#define NR_CORE   6

#define GLOBAL_ALL LOW_BITS(NR_CORE)

#define EVTSEL_K8  (LOW_BITS(32) & ~(BIT64(19) | BIT64(21)))
#define EVTSEL_K10 (EVTSEL_K8 | 0xfull << 32 | SEL_GUEST | SEL_HOST)

#define EVENT_CYCLES   0x76
#define EVENT_INSNS    0xc0
#define EVENT_BRANCHES 0xc2
#define EVENT_MISSES   0xc3

/*
 * CPUID and the existence of registers
 */

/**
 * struct Shape - the PMU of a CPU
 * @name: of the case
 * @cpu: for -cpu
 * @core: it has six counters, and registers for them; otherwise four
 * @global: it has global registers
 * @evtsel: bits of a register that selects events
 */
static const struct Shape {
    const char *name, *cpu;
    bool core, global;
    uint64_t evtsel;
} shapes[] = {
    { "EPYC-Genoa", AMD, true, true, EVTSEL_K10 },
    { "EPYC-Milan", "EPYC-Milan-v1,pmu=on", true, false, EVTSEL_K10 },
    { "EPYC-Rome", "EPYC-Rome-v1,pmu=on", true, false, EVTSEL_K10 },
    { "EPYC", "EPYC-v1,pmu=on", true, false, EVTSEL_K10 },
    { "Opteron_G5", "Opteron_G5-v1,pmu=on", true, false, EVTSEL_K10 },
    { "Opteron_G4", "Opteron_G4-v1,pmu=on", true, false, EVTSEL_K10 },
    { "Opteron_G3", "Opteron_G3-v1,pmu=on", false, false, EVTSEL_K10 },
    { "phenom", "phenom-v1,pmu=on", false, false, EVTSEL_K10 },
    { "Opteron_G1", "Opteron_G1-v1,pmu=on", false, false, EVTSEL_K8 },
    { "qemu64", "qemu64,pmu=on", false, false, EVTSEL_K8 },
    { "max", "max,pmu=on", false, false, EVTSEL_K8 },
    { "athlon", "athlon-v1,pmu=on", false, false, EVTSEL_K8 },
    { "without-global", AMD ",perfmon-v2=off", true, false, EVTSEL_K10 },
    { "without-core", AMD ",perfctr-core=off", false, false, EVTSEL_K10 },
    { "newer", "EPYC-Milan-v1,pmu=on,family=26", true, true, EVTSEL_K10 },
};

static unsigned nr_counters(const struct Shape *s)
{
    return s->core ? NR_CORE : NR_LEGACY;
}

#define PERFCTR_CORE BIT64(23)
/* With global registers there are records, and freezing. */
#define PERFMON_V2   7
#define NR_RECORDS   16
#define OTHER_LEAFS  (BIT64(24) | BIT64(28) | BIT64(10)) /* NB, LLC, IBS */

/* Read a leaf of CPUID, or zeros if the CPU does not have it. */
static void read_leaf(Machine *m, uint32_t leaf, uint32_t regs[4])
{
    uint32_t highest[4];

    cpuid(m, leaf & 0x80000000, highest);
    memset(regs, 0, 4 * sizeof(*regs));
    if (highest[0] >= leaf) {
        cpuid(m, leaf, regs);
    }
}

static void test_cpuid(const void *data)
{
    const struct Shape *s = data;
    Machine m = x86_start(s->cpu);
    uint32_t regs[4];

    read_leaf(&m, 0xa, regs);
    g_assert_cmphex(regs[0] | regs[1] | regs[2] | regs[3], ==, 0);
    cpuid(&m, 0x80000001, regs);
    g_assert_cmpint(!!(regs[2] & PERFCTR_CORE), ==, s->core);
    g_assert_cmphex(regs[2] & OTHER_LEAFS, ==, 0);
    read_leaf(&m, 0x80000022, regs);
    g_assert_cmphex(regs[0], ==, s->global ? PERFMON_V2 : 0);
    g_assert_cmphex(regs[1], ==, s->global ? NR_CORE | NR_RECORDS << 4 : 0);
    stop(&m);
}

/* A register keeps these bits, and others are ignored. */
static void check_register(Machine *m, bool exists, uint32_t msr,
                           uint64_t keeps)
{
    uint64_t val;
    unsigned bit;

    g_test_message("register 0x%x", msr);
    if (!exists) {
        g_assert_false(try_rdmsr(m, msr, &val));
        g_assert_false(try_wrmsr(m, msr, 0));
        return;
    }
    for (bit = 0; bit < 64; bit++) {
        wrmsr(m, msr, BIT64(bit));
        assert_msr(m, msr, BIT64(bit) & keeps);
    }
    wrmsr(m, msr, UINT64_MAX);
    assert_msr(m, msr, keeps);
    wrmsr(m, msr, 0);
    assert_msr(m, msr, 0);
}

static void test_registers(const void *data)
{
    const struct Shape *s = data;
    Machine m = x86_start(s->cpu);
    unsigned i;

    for (i = 0; i < NR_LEGACY; i++) {
        check_register(&m, true, MSR_LEGACY_EVTSEL0 + i, s->evtsel);
        check_register(&m, true, MSR_LEGACY_CTR0 + i, LOW_BITS(48));
    }
    for (i = 0; i < NR_CORE; i++) {
        check_register(&m, s->core, MSR_CTL0 + 2 * i, s->evtsel);
        check_register(&m, s->core, MSR_CTR0 + 2 * i, LOW_BITS(48));
    }
    check_register(&m, s->global, MSR_AMD_CTL, GLOBAL_ALL);
    check_register(&m, s->global, MSR_AMD_STATUS, 0);
    check_register(&m, s->global, MSR_AMD_STATUS_CLR, 0);
    check_register(&m, s->global, MSR_AMD_STATUS_SET, 0);
    stop(&m);
}

static void test_rdpmc_index(const void *data)
{
    static const uint32_t never[] = {
        NR_CORE, 10, 31, 0x10000, 0x40000000, 0x80000000, 0xc0000000,
        UINT32_MAX,
    };
    const struct Shape *s = data;
    Machine m = x86_start(s->cpu);
    uint64_t val;
    unsigned i;

    for (i = 0; i < NR_CORE; i++) {
        g_assert_cmpint(try_rdpmc(&m, i, 0, &val), ==, i < nr_counters(s));
    }
    for (i = 0; i < G_N_ELEMENTS(never); i++) {
        g_assert_false(try_rdpmc(&m, never[i], 0, &val));
    }
    stop(&m);
}

/* The registers of the first four counters have two numbers each. */
static void test_aliases(void)
{
    Machine m = x86_start(AMD);
    unsigned i;

    for (i = 0; i < NR_LEGACY; i++) {
        wrmsr(&m, MSR_LEGACY_EVTSEL0 + i, EVENT_CYCLES + i);
        assert_msr(&m, MSR_CTL0 + 2 * i, EVENT_CYCLES + i);
        wrmsr(&m, MSR_CTR0 + 2 * i, 1000 + i);
        assert_msr(&m, MSR_LEGACY_CTR0 + i, 1000 + i);
    }
    stop(&m);
}

/*
 * Each counter counts, overflows and interrupts, even without status register.
 */
static void check_counter(Machine *m, uint32_t evtsel, uint32_t counter)
{
    wrmsr(m, counter, -10);
    wrmsr(m, evtsel, EVENT_INSNS | SEL_ALL | SEL_INT);
    count(m, PMU_TALLY_INSNS, USER, 9);
    g_assert_false(take_nmi(m));
    count(m, PMU_TALLY_INSNS, KERNEL, 3);
    g_assert_true(take_nmi(m));
    assert_msr(m, counter, 2);
    wrmsr(m, evtsel, 0);
    count(m, PMU_TALLY_INSNS, KERNEL, 3);
    assert_msr(m, counter, 2);
}

static void test_counters(const void *data)
{
    const struct Shape *s = data;
    Machine m = x86_start(s->cpu);
    unsigned i;

    set_lvt(&m, LVT_NMI);
    for (i = 0; i < NR_LEGACY; i++) {
        check_counter(&m, MSR_LEGACY_EVTSEL0 + i, MSR_LEGACY_CTR0 + i);
    }
    for (i = 0; s->core && i < NR_CORE; i++) {
        check_counter(&m, MSR_CTL0 + 2 * i, MSR_CTR0 + 2 * i);
    }
    stop(&m);
}

/* By default a CPU has no PMU, even if CPUID has bits of the PMU set. */
static void test_not_asked_for(const void *data)
{
    Machine m = x86_start(data);
    uint32_t regs[4];
    uint64_t val;
    unsigned i;

    for (i = 0; i < NR_LEGACY; i++) {
        wrmsr(&m, MSR_LEGACY_EVTSEL0 + i, UINT64_MAX);
        assert_msr(&m, MSR_LEGACY_EVTSEL0 + i, 0);
        wrmsr(&m, MSR_LEGACY_CTR0 + i, UINT64_MAX);
        assert_msr(&m, MSR_LEGACY_CTR0 + i, 0);
        g_assert_false(try_rdpmc(&m, i, 0, &val));
    }
    read_leaf(&m, 0x80000022, regs);
    g_assert_cmphex(regs[0] | regs[1], ==, 0);
    stop(&m);
}

/*
 * Counting
 */

/* A counter needs its own enable, and the global one if that exists. */
static void test_enables(void)
{
    Machine m = x86_start(AMD);

    wrmsr(&m, MSR_CTL0, EVENT_INSNS | SEL_OS);
    g_assert_cmphex(wanted(&m), ==, 0);
    start_gp(&m, 0, EVENT_INSNS | SEL_OS);
    count(&m, PMU_TALLY_INSNS, KERNEL, 10);
    wrmsr(&m, MSR_AMD_CTL, GLOBAL_ALL & ~1);
    g_assert_cmphex(wanted(&m), ==, 0);
    count(&m, PMU_TALLY_INSNS, KERNEL, 100);
    wrmsr(&m, MSR_AMD_CTL, 1);
    count(&m, PMU_TALLY_INSNS, KERNEL, 1000);
    wrmsr(&m, MSR_CTL0, EVENT_INSNS | SEL_OS);
    count(&m, PMU_TALLY_INSNS, KERNEL, 10000);
    assert_msr(&m, MSR_CTR0, 1010);
    stop(&m);
}

/* Mode n counts 1 << 4n; modes 2, 3, 6 and 7 are guests' modes. */
#define IN_HOST  0x00110011
#define IN_GUEST 0x11001100

static const struct Side {
    uint64_t filter;
    bool svme;
    uint64_t expected;
} sides[] = {
    { 0, false, IN_HOST | IN_GUEST },
    { SEL_HOST, false, 0 },
    { SEL_GUEST, false, 0 },
    { SEL_HOST | SEL_GUEST, false, 0 },
    { 0, true, IN_HOST | IN_GUEST },
    { SEL_HOST, true, IN_HOST },
    { SEL_GUEST, true, IN_GUEST },
    { SEL_HOST | SEL_GUEST, true, IN_HOST | IN_GUEST },
};

static void test_host_and_guest(void)
{
    Machine m = x86_start(AMD);
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(sides); i++) {
        write_efer(&m, sides[i].svme ? EFER_SVME : 0);
        wrmsr(&m, MSR_CTR0, 0);
        start_gp(&m, 0, EVENT_INSNS | SEL_ALL | sides[i].filter);
        count_in_all_modes(&m, PMU_TALLY_INSNS);
        assert_msr(&m, MSR_CTR0, sides[i].expected);
        start_gp(&m, 0, EVENT_INSNS | SEL_USR | sides[i].filter);
        count_in_all_modes(&m, PMU_TALLY_INSNS);
        assert_msr(&m, MSR_CTR0, sides[i].expected
                                 + (sides[i].expected & 0xf0f0f0f0));
    }
    stop(&m);
}

/* A change of EFER.SVME starts and stops such a counter. */
static void test_svme_changes(void)
{
    Machine m = x86_start(AMD);

    start_gp(&m, 0, EVENT_INSNS | SEL_ALL | SEL_HOST);
    start_gp(&m, 1, EVENT_INSNS | SEL_ALL);
    count(&m, PMU_TALLY_INSNS, KERNEL, 1);
    write_efer(&m, EFER_SVME);
    count(&m, PMU_TALLY_INSNS, KERNEL, 10);
    count(&m, PMU_TALLY_INSNS, GUEST, 100);
    init(&m);
    count(&m, PMU_TALLY_INSNS, KERNEL, 1000);
    assert_msr(&m, MSR_CTR0, 10);
    assert_msr(&m, counter_msr(1), 1111);
    stop(&m);
}

#define WITH_CORE ",pmu-core=core0 -object pmu-core,id=core0,preset=zen4"

static const EventTable event_tables[] = {
    EVENT_TABLE(AMD, ZEN4),
};

/* Events of CPUs without global registers */
static const EventTable older_event_tables[] = {
    EVENT_TABLE("EPYC-Milan-v1,pmu=on", ZEN3),
    EVENT_TABLE("EPYC-Rome-v1,pmu=on", ZEN2),
    EVENT_TABLE("EPYC-v1,pmu=on", ZEN),
    EVENT_TABLE("Dhyana-v1,pmu=on", ZEN),
    EVENT_TABLE("Opteron_G4-v1,pmu=on", K10),
    EVENT_TABLE("Opteron_G3-v1,pmu=on", K10),
    EVENT_TABLE("qemu64,pmu=on", K8),
    EVENT_TABLE("athlon-v1,pmu=on", K7),
    EVENT_TABLE(AMD WITH_CORE, ZEN_CORE),
    EVENT_TABLE("EPYC-Milan-v1,pmu=on" WITH_CORE, ZEN_CORE),
    EVENT_TABLE("EPYC-Rome-v1,pmu=on" WITH_CORE, ZEN_CORE),
    EVENT_TABLE("EPYC-v1,pmu=on" WITH_CORE, ZEN_CORE),
    EVENT_TABLE("Opteron_G4-v1,pmu=on" WITH_CORE, K10_CORE),
    EVENT_TABLE("Opteron_G3-v1,pmu=on" WITH_CORE, K10_CORE),
    EVENT_TABLE("qemu64,pmu=on" WITH_CORE, K10_CORE),
};

/* Each tally grows by its own power of two. */
static void check_event(Machine *m, const Event *e, unsigned counter)
{
    PmuTally t;

    g_test_message("event 0x%" PRIx64, e->code);
    wrmsr(m, MSR_LEGACY_CTR0 + counter, 0);
    wrmsr(m, MSR_LEGACY_EVTSEL0 + counter, e->code | SEL_ALL);
    for (t = 0; t < PMU_TALLY__MAX; t++) {
        count(m, t, t % NR_MODES, BIT64(t));
    }
    wrmsr(m, MSR_LEGACY_EVTSEL0 + counter, 0);
    assert_msr(m, MSR_LEGACY_CTR0 + counter, e->tallies);
}

static void test_older_events(void)
{
    unsigned i, n;

    for (i = 0; i < G_N_ELEMENTS(older_event_tables); i++) {
        const EventTable *table = &older_event_tables[i];
        Machine m = x86_start(table->cpu);

        g_test_message("%s", table->cpu);
        for (n = 0; table->events[n].code; n++) {
            check_event(&m, &table->events[n], n % NR_LEGACY);
        }
        stop(&m);
    }
}

/*
 * Status
 */

/* With INT clear, an overflow still sets the status. */
static void test_status(void)
{
    Machine m = x86_start(AMD);

    set_lvt(&m, LVT_NMI);
    arm_gp(&m, 0, 10, 0);
    arm_gp(&m, 5, 20, 0);
    count(&m, PMU_TALLY_INSNS, KERNEL, 12);
    assert_msr(&m, MSR_AMD_STATUS, BIT64(0));
    count(&m, PMU_TALLY_INSNS, KERNEL, 12);
    assert_msr(&m, MSR_AMD_STATUS, BIT64(0) | BIT64(5));
    g_assert_false(take_nmi(&m));
    wrmsr(&m, MSR_AMD_STATUS, 0);
    assert_msr(&m, MSR_AMD_STATUS, BIT64(0) | BIT64(5));
    wrmsr(&m, MSR_AMD_STATUS_CLR, BIT64(0) | BIT64(1));
    assert_msr(&m, MSR_AMD_STATUS, BIT64(5));
    wrmsr(&m, MSR_AMD_STATUS_CLR, UINT64_MAX);
    assert_msr(&m, MSR_AMD_STATUS, 0);
    stop(&m);
}

/* Setting a bit of the status is no overflow. */
static void test_status_set(void)
{
    Machine m = x86_start(AMD);

    set_lvt(&m, LVT_NMI);
    arm_gp(&m, 0, 1000, SEL_INT);
    wrmsr(&m, MSR_AMD_STATUS_SET, BIT64(0) | BIT64(63));
    wrmsr(&m, MSR_AMD_STATUS_SET, BIT64(4));
    assert_msr(&m, MSR_AMD_STATUS, BIT64(0) | BIT64(4));
    g_assert_false(take_nmi(&m));
    wrmsr(&m, MSR_AMD_STATUS_CLR, BIT64(4));
    count(&m, PMU_TALLY_INSNS, KERNEL, 1000);
    g_assert_true(take_nmi(&m));
    assert_msr(&m, MSR_AMD_STATUS, BIT64(0));
    stop(&m);
}

/*
 * Branch records
 */

#define LBR AMD ",lbr=on"
#define LBR_DEPTH 16

static const struct {
    uint32_t msr;
    uint64_t val;
} records[] = {
    { MSR_AMD_LBR_SELECT, 0x1c5 },
    { MSR_AMD_LBR_FROM, 0x7fffffff81000010 },
    { MSR_AMD_LBR_TO, BIT64(63) | 0x1fffffff81000020 },
    { MSR_AMD_LBR_FROM + 2 * (LBR_DEPTH - 1), 0x401000 },
    { MSR_AMD_LBR_TO + 2 * (LBR_DEPTH - 1), BIT64(62) | 0x401004 },
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

static void test_lbr_cpuid(void)
{
    Machine m = x86_start(LBR);
    uint32_t regs[4];

    read_leaf(&m, 0x80000022, regs);
    g_assert_cmphex(regs[0], ==, PERFMON_V2 | 1 << 1 | 1 << 2);
    g_assert_cmphex(regs[1], ==, NR_CORE | LBR_DEPTH << 4);
    stop(&m);
}

static void test_lbr_registers(void)
{
    Machine m = x86_start(LBR);

    check_register(&m, true, MSR_DBG_EXTN_CFG, DBG_EXTN_LBR);
    check_register(&m, true, MSR_AMD_LBR_SELECT, LOW_BITS(9));
    check_register(&m, true, MSR_DEBUGCTL,
                   DEBUGCTL_BTF | DEBUGCTL_FREEZE_LBRS
                   | DEBUGCTL_FREEZE_ON_PMI);
    check_register(&m, true, MSR_AMD_LBR_FROM + 2 * 7, UINT64_MAX);
    check_register(&m, true, MSR_AMD_LBR_TO + 2 * 7, UINT64_MAX);
    stop(&m);
}

/* RESET clears all records, INIT clears none. */
static void test_lbr_reset(void)
{
    Machine m = x86_start(LBR);

    assert_records(&m, false);
    write_records(&m);
    wrmsr(&m, MSR_DBG_EXTN_CFG, DBG_EXTN_LBR);
    assert_records(&m, true);
    init(&m);
    assert_records(&m, true);
    assert_msr(&m, MSR_DBG_EXTN_CFG, DBG_EXTN_LBR);
    qtest_system_reset(m.qts);
    assert_records(&m, false);
    assert_msr(&m, MSR_DBG_EXTN_CFG, 0);
    stop(&m);
}

/* Records migrate during recording, and afterwards. */
static void test_lbr_migration(const void *data)
{
    const uint64_t config = *(const uint64_t *)data;
    g_autofree char *args = x86_args(LBR);
    Machine m = x86_start(LBR);

    write_records(&m);
    wrmsr(&m, MSR_DBG_EXTN_CFG, config);
    migrate_machine(&m, args);
    assert_records(&m, true);
    assert_msr(&m, MSR_DBG_EXTN_CFG, config);
    stop(&m);
}

static void test_lbr_absent(void)
{
    Machine m = x86_start(AMD ",lbr=off");

    for (unsigned i = 0; i < G_N_ELEMENTS(records); i++) {
        check_register(&m, false, records[i].msr, 0);
    }
    check_register(&m, false, MSR_DBG_EXTN_CFG, 0);
    check_register(&m, true, MSR_DEBUGCTL, DEBUGCTL_BTF);
    stop(&m);
}

/* Counters that an interrupt has frozen stay so until the status is cleared. */
static void test_lbr_freeze(void)
{
    Machine m = x86_start(LBR);

    set_lvt(&m, LVT_NMI);
    arm_gp(&m, 0, 10, SEL_INT);
    start_gp(&m, 1, EVENT_INSNS | SEL_ALL);
    wrmsr(&m, MSR_DEBUGCTL, DEBUGCTL_FREEZE_LBRS | DEBUGCTL_FREEZE_ON_PMI);
    count(&m, PMU_TALLY_INSNS, KERNEL, 10);
    g_assert_true(take_nmi(&m));
    assert_msr(&m, MSR_AMD_STATUS, BIT64(0) | STATUS_LBR_FRZ | STATUS_CTR_FRZ);
    assert_stopped_by(&m, 1, "CTR_FRZ");
    count(&m, PMU_TALLY_INSNS, KERNEL, 7);
    assert_msr(&m, counter_msr(1), 10);
    wrmsr(&m, MSR_AMD_STATUS_CLR, STATUS_CTR_FRZ);
    count(&m, PMU_TALLY_INSNS, KERNEL, 5);
    assert_msr(&m, counter_msr(1), 15);
    wrmsr(&m, MSR_AMD_STATUS_CLR, UINT64_MAX);
    assert_msr(&m, MSR_AMD_STATUS, 0);
    stop(&m);
}

/* Under KVM: each of the two subsections loads with and without the other. */
static void test_kvm_debugctl(void)
{
    g_autofree char *args = x86_args(AMD);
    Machine m = x86_start(AMD);

    as_kvm(&m);
    wrmsr(&m, MSR_DEBUGCTL, DEBUGCTL_BTF);
    migrate_prepared(&m, args, as_kvm);
    assert_msr(&m, MSR_DEBUGCTL, DEBUGCTL_BTF);
    wrmsr(&m, evtsel_msr(1), EVENT_INSNS | SEL_USR);
    migrate_prepared(&m, args, as_kvm);
    assert_msr(&m, MSR_DEBUGCTL, DEBUGCTL_BTF);
    assert_msr(&m, evtsel_msr(1), EVENT_INSNS | SEL_USR);
    stop(&m);
}

/*
 * Streams of QEMU 11.0, whose AMD registers under KVM are in the subsection of
 * Intel's: see target/i386/vpmu/amd-stock.h
 */

#define SELECTED(i) (EVENT_INSNS | SEL_USR | SEL_CMASK((i) + 1))
#define COUNTED(i)  (0x123456789aull + (i))
#define LEFT        0xabcdull

/* Selector and counter of a number, straight and shifted */
#define STRAIGHT_SEL(i) { STOCK_EVTSEL + (i), SELECTED(i) }
#define STRAIGHT_CTR(i) { STOCK_COUNTER + (i), COUNTED(i) }
#define SHIFTED_SEL(i)  { STOCK_EVTSEL + 2 * (i), SELECTED(i) }
#define SHIFTED_CTR(i)  { STOCK_COUNTER + 2 * (i) + 1, COUNTED(i) }

/* What this PMU sends, and what is left of it after QEMU 11.0 */
#define MARK_OF_ALL      { STOCK_MARKED, STOCK_MARK }
#define MARK_OF_STRAIGHT { STOCK_COUNTER + 2 * NR_CORE - 1, STOCK_MARK }

/**
 * struct FromStock - a stream
 * @cpu: the CPU that gets it, with as many counters as the source
 * @values: all that are not 0
 * @selectors, @counters: sets of registers that hold their values; the others
 *                        hold 0
 */
static const struct FromStock {
    const char *name, *cpu;
    StockValue values[20];
    unsigned selectors, counters;
} from_stock[] = {
    { "all", AMD,
      { SHIFTED_SEL(0), SHIFTED_SEL(1), SHIFTED_SEL(2), SHIFTED_SEL(3),
        SHIFTED_SEL(4), SHIFTED_SEL(5), SHIFTED_CTR(0), SHIFTED_CTR(1),
        SHIFTED_CTR(2), SHIFTED_CTR(3), SHIFTED_CTR(4), SHIFTED_CTR(5) },
      0x3f, 0x3f },
    { "first", AMD, { SHIFTED_SEL(0), SHIFTED_CTR(0) }, 1, 1 },
    { "second", AMD, { SHIFTED_SEL(1), SHIFTED_CTR(1) }, 2, 2 },
    { "last-selector", AMD, { SHIFTED_SEL(5) }, 0x20, 0 },
    { "event-alone", AMD, { SHIFTED_SEL(0) }, 1, 0 },
    { "left", AMD, { SHIFTED_CTR(0), SHIFTED_CTR(2) }, 0, 5 },
    { "without-global", AMD ",perfmon-v2=off",
      { SHIFTED_SEL(0), SHIFTED_SEL(1), SHIFTED_CTR(1) }, 3, 2 },
    { "straight", AMD,
      { STRAIGHT_SEL(0), STRAIGHT_SEL(1), STRAIGHT_CTR(0), STRAIGHT_CTR(1) },
      3, 3 },
    { "four", AMD ",perfctr-core=off",
      { STRAIGHT_SEL(0), STRAIGHT_SEL(2), STRAIGHT_CTR(3) }, 5, 8 },
    { "ours", AMD,
      { STRAIGHT_SEL(0), STRAIGHT_SEL(2), STRAIGHT_CTR(1), MARK_OF_ALL,
        MARK_OF_STRAIGHT }, 5, 2 },
    /* Elements that QEMU 11.0 does not save are as they were loaded. */
    { "returned", AMD,
      { { STOCK_COUNTER, LEFT }, { STOCK_COUNTER + 2, LEFT },
        { STOCK_EVTSEL + 1, SELECTED(1) }, SHIFTED_SEL(0), SHIFTED_SEL(1),
        SHIFTED_CTR(0), SHIFTED_CTR(5), MARK_OF_ALL }, 3, 0x21 },
    { "older-mark", AMD, { STRAIGHT_CTR(1), { STOCK_OVF_CTRL, 1 } }, 0, 2 },
};

/* Some value is left, so that the subsection is sent, which is replaced. */
static Machine start_as_stock(const StockValue *values)
{
    Machine m = x86_start(AMD);

    wrmsr(&m, MSR_CTR0, LEFT);
    m.edit = edit_stock;
    m.with = values;
    return m;
}

static void assert_register(Machine *m, unsigned set, unsigned i, uint32_t msr,
                            uint64_t val)
{
    assert_msr(m, msr, set >> i & 1 ? val : 0);
}

static void test_from_stock(const void *data)
{
    const struct FromStock *from = data;
    g_autofree char *args = x86_args(from->cpu);
    Machine m = start_as_stock(from->values);
    bool core = !strstr(from->cpu, "perfctr-core=off");

    migrate_prepared(&m, args, as_kvm);
    for (unsigned i = 0; i < (core ? NR_CORE : NR_LEGACY); i++) {
        assert_register(&m, from->selectors, i,
                        core ? evtsel_msr(i) : MSR_LEGACY_EVTSEL0 + i,
                        SELECTED(i));
        assert_register(&m, from->counters, i,
                        core ? counter_msr(i) : MSR_LEGACY_CTR0 + i,
                        COUNTED(i));
    }
    stop(&m);
}

/* The global registers are where Intel's are. */
static void test_global_from_stock(void)
{
    static const StockValue values[] = {
        SHIFTED_SEL(4), SHIFTED_CTR(4), { STOCK_GLOBAL_CTRL, 0x15 },
        { STOCK_GLOBAL_STATUS, 0x10 }, { }
    };
    g_autofree char *args = x86_args(AMD);
    Machine m = start_as_stock(values);

    migrate_prepared(&m, args, as_kvm);
    assert_msr(&m, MSR_AMD_CTL, 0x15);
    assert_msr(&m, MSR_AMD_STATUS, 0x10);
    assert_msr(&m, evtsel_msr(4), SELECTED(4));
    stop(&m);
}

/* Streams that are refused, and why */
static const struct {
    const char *name, *cpu;
    void (*prepare)(Machine *m);
    StockValue values[6];
    const char *message;
} stock_refusals[] = {
    { "uncertain", AMD, as_kvm, { SHIFTED_SEL(0), SHIFTED_CTR(1) },
      "it is not certain in which" },
    { "uncertain-selectors", AMD, as_kvm, { SHIFTED_SEL(0), SHIFTED_SEL(2) },
      "it is not certain in which" },
    { "neither", AMD, as_kvm, { STRAIGHT_SEL(1), SHIFTED_CTR(3) },
      "it is not certain in which" },
    { "more-counters", AMD, as_kvm, { SHIFTED_SEL(6), SHIFTED_CTR(6) },
      "same pmu-gp-counters" },
    { "intel", AMD, as_kvm, { { STOCK_FIXED_CTRL, 0x3 } },
      "uses an Intel PMU of KVM" },
    { "accelerator", AMD, NULL, { SHIFTED_SEL(0), SHIFTED_CTR(0) },
      "uses a PMU of KVM, which this CPU does not have" },
    { "no-pmu", MODEL ",pmu=off", NULL, { SHIFTED_SEL(0), SHIFTED_CTR(0) },
      "uses a PMU of KVM, which this CPU does not have" },
};

static void test_stock_refused(const void *data)
{
    const typeof(*stock_refusals) *refusal = data;
    g_autofree char *args = x86_args(refusal->cpu);
    g_autofree char *message = NULL;
    Machine m = start_as_stock(refusal->values);

    message = refuse_prepared(&m, args, refusal->prepare);
    g_assert_nonnull(strstr(message, refusal->message));
}

static void assert_straight(const char *path, const void *unused)
{
    g_assert_cmphex(stock_value(path, STOCK_COUNTER + 1), ==, LEFT);
    g_assert_cmphex(stock_value(path, STOCK_COUNTER + 3), ==, 0);
    g_assert_cmphex(stock_value(path, STOCK_COUNTER + 2 * NR_CORE - 1), ==,
                    STOCK_MARK);
    g_assert_cmphex(stock_value(path, STOCK_MARKED), ==, STOCK_MARK);
    g_assert_cmphex(stock_value(path, STOCK_OVF_CTRL), ==, 0);
}

/* QEMU 11.0 loads counter n from element n, and clears status by OVF_CTRL. */
static void test_to_stock(void)
{
    g_autofree char *args = x86_args(AMD);
    Machine m = x86_start(AMD);

    as_kvm(&m);
    wrmsr(&m, counter_msr(1), LEFT);
    m.edit = assert_straight;
    migrate_prepared(&m, args, as_kvm);
    assert_msr(&m, counter_msr(0), 0);
    assert_msr(&m, counter_msr(1), LEFT);
    stop(&m);
}

static void assert_control(const char *path, const void *unused)
{
    g_assert_cmphex(stock_value(path, STOCK_GLOBAL_CTRL), ==, GLOBAL_ALL);
}

/* QEMU 11.0 resets it to 0. */
static void test_control_to_stock(void)
{
    g_autofree char *args = x86_args(AMD);
    Machine m = x86_start(AMD);

    as_kvm(&m);
    m.edit = assert_control;
    migrate_prepared(&m, args, as_kvm);
    assert_msr(&m, MSR_AMD_CTL, GLOBAL_ALL);
    stop(&m);
}

static void add_stock_cases(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(from_stock); i++) {
        add_data("kvm/stock", from_stock[i].name, &from_stock[i],
                 test_from_stock);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(stock_refusals); i++) {
        add_data("kvm/stock-refused", stock_refusals[i].name,
                 &stock_refusals[i], test_stock_refused);
    }
    add("kvm/stock-global", test_global_from_stock);
    add("kvm/to-stock", test_to_stock);
    add("kvm/control-to-stock", test_control_to_stock);
}

/*
 * Implementation of struct Face
 */

static const Kept states[] = {
    { MSR_LEGACY_EVTSEL0, 0 }, { MSR_LEGACY_EVTSEL0 + 1, 0 },
    { MSR_LEGACY_EVTSEL0 + 2, 0 }, { MSR_LEGACY_EVTSEL0 + 3, 0 },
    { MSR_LEGACY_CTR0, 0 }, { MSR_LEGACY_CTR0 + 1, 0 },
    { MSR_LEGACY_CTR0 + 2, 0 }, { MSR_LEGACY_CTR0 + 3, 0 },
    { MSR_CTL0, 0 }, { MSR_CTL0 + 2, 0 }, { MSR_CTL0 + 4, 0 },
    { MSR_CTL0 + 6, 0 }, { MSR_CTL0 + 8, 0 }, { MSR_CTL0 + 10, 0 },
    { MSR_CTR0, 0 }, { MSR_CTR0 + 2, 0 }, { MSR_CTR0 + 4, 0 },
    { MSR_CTR0 + 6, 0 }, { MSR_CTR0 + 8, 0 }, { MSR_CTR0 + 10, 0 },
    { MSR_AMD_STATUS, 0 },
    { MSR_AMD_CTL, GLOBAL_ALL },
};

/*
 * Change every state from its reset value; count, and leave an overflow
 * pending.
 */
static void keep_busy(Machine *m)
{
    set_lvt(m, VECTOR);
    arm_gp(m, 0, 10, 0);
    arm_gp(m, 1, 1000, SEL_INT);
    start_gp(m, 2, EVENT_BRANCHES | SEL_OS);
    wrmsr(m, counter_msr(3), 333);
    start_gp(m, 3, EVENT_CYCLES | SEL_USR);
    wrmsr(m, counter_msr(4), 444);
    start_gp(m, 4, EVENT_INSNS | SEL_ALL | SEL_GUEST);
    wrmsr(m, counter_msr(5), 555);
    start_gp(m, 5, 0x100000120 | SEL_ALL);
    wrmsr(m, MSR_AMD_CTL, GLOBAL_ALL & ~BIT64(3));
    count(m, PMU_TALLY_INSNS, KERNEL, 11);
    count(m, PMU_TALLY_RETURNS, KERNEL, 77);
}

static const Mismatch mismatches[] = {
    { "global", AMD, AMD ",perfmon-v2=off", "perfmon-v2" },
    { "counters", AMD ",perfmon-v2=off", AMD ",perfctr-core=off",
      "pmu-gp-counters" },
    { "no-pmu", AMD, MODEL ",pmu=off", "pmu=on" },
};

static const Refusal refusals[] = {
    { AMD ",pmu-version=2", "pmu-version is only for Intel CPUs",
      "perfmon-v2=off" },
    { AMD ",pmu-gp-counters=4", "pmu-gp-counters=4", "Allowed: 6" },
    { "Opteron_G3-v1,pmu=on,pmu-gp-counters=6", "pmu-gp-counters=6",
      "Allowed: 4" },
    { AMD ",pmu-fixed-counters=3", "pmu-fixed-counters=3", "Allowed: 0" },
    { MODEL ",pmu-cpi=2000", "pmu-cpi needs", "pmu=on" },
    { "max,pmu-gp-counters=4", "pmu-gp-counters needs", "pmu=on" },
    { "YongFeng-v1,pmu=on,pmu-gp-counters=6", "no PMU for CPUs of this vendor",
      "AMD" },
    { "EPYC-Milan-v1,pmu=on,lbr=on", "lbr=on is not possible", "perfmon-v2" },
    { AMD ",perfmon-v2=off,lbr=on", "lbr=on is not possible", "perfmon-v2" },
    { AMD ",xlevel=0x80000021,lbr=on", "lbr=on is not possible", "perfmon-v2" },
    { "YongFeng-v1,pmu=on,enforce", "there is no PMU for CPUs of this vendor",
      "AMD" },
};

/*
 * Monitor
 */

static void test_stopped(void)
{
    Machine m = x86_start(AMD);

    assert_stopped_by(&m, 0, "EN");
    start_gp(&m, 0, EVENT_INSNS | SEL_ALL | SEL_HOST);
    assert_stopped_by(&m, 0, "EFER.SVME");
    write_efer(&m, EFER_SVME);
    assert_stopped_by(&m, 0, "");
    face->stop(&m);
    assert_stopped_by(&m, 0, "GLOBAL_CTRL");
    stop(&m);
}

/* Event codes of more than 8 bits are shown as in perf. */
static void test_shown_code(void)
{
    Machine m = x86_start(AMD);
    QDict *c;

    start_gp(&m, 0, 1ull << 32 | 0x0120 | SEL_ALL);
    c = query_counter(&m, 0);
    g_assert_cmpstr(qdict_get_str(c, "event"), ==, "ref-cycles");
    g_assert_cmphex(get_uint(c, "code"), ==, 1ull << 32 | 0x0120);
    qobject_unref(c);
    stop(&m);
}

static const struct Kind {
    const char *cpu, *kind, *counter_name;
} kinds[] = {
    { "EPYC-Milan-v1,pmu=on", "amd-perfctr-core", "PERF_CTR0" },
    { "Opteron_G3-v1,pmu=on", "amd-perfctr", "PERF_LEGACY_CTR0" },
};

static void test_kinds(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        Machine m = x86_start(kinds[i].cpu);
        QDict *cpu = query_cpu(&m), *c = query_counter(&m, 0);

        g_assert_cmpstr(qdict_get_str(qdict_get_qdict(cpu, "pmu"), "kind"),
                        ==, kinds[i].kind);
        g_assert_cmpstr(qdict_get_str(c, "register"), ==,
                        kinds[i].counter_name);
        qobject_unref(cpu);
        qobject_unref(c);
        stop(&m);
    }
}

static void face_hotplug(Machine *m)
{
    qtest_qmp_device_add(m->qts, MODEL "-x86_64-cpu", "late",
                         "{'core-id': 1, 'thread-id': 0, 'socket-id': 0}");
}

static void face_start(Machine *m)
{
    wrmsr(m, MSR_AMD_CTL, GLOBAL_ALL);
}

static void face_stop(Machine *m)
{
    wrmsr(m, MSR_AMD_CTL, 0);
}

static unsigned face_overflowed(Machine *m)
{
    return rdmsr(m, MSR_AMD_STATUS);
}

static void face_rearm(Machine *m)
{
    wrmsr(m, MSR_AMD_STATUS_CLR, rdmsr(m, MSR_AMD_STATUS));
    face_start(m);
}

static void add_lbr(void)
{
    static const uint64_t on = DBG_EXTN_LBR, off;

    add("lbr/cpuid", test_lbr_cpuid);
    add("lbr/registers", test_lbr_registers);
    add("lbr/reset", test_lbr_reset);
    add_data("lbr/migration", "recording", &on, test_lbr_migration);
    add_data("lbr/migration", "ended", &off, test_lbr_migration);
    add("lbr/absent", test_lbr_absent);
    add("lbr/freeze", test_lbr_freeze);
}

static void add_cases(void)
{
    static const char *const not_asked_for[] = {
        "max", "qemu64", "EPYC-v1", MODEL, "Opteron_G3-v1", "max,pmu=off",
    };
    unsigned i;

    add_x86_cases();
    for (i = 0; i < G_N_ELEMENTS(shapes); i++) {
        const struct Shape *s = &shapes[i];

        /* Without a real accelerator, "max" has every feature. */
        if (!g_str_equal(s->name, "max")) {
            add_data("cpuid", s->name, s, test_cpuid);
        }
        add_data("registers", s->name, s, test_registers);
        add_data("rdpmc/index", s->name, s, test_rdpmc_index);
        add_data("counters", s->name, s, test_counters);
    }
    for (i = 0; i < G_N_ELEMENTS(not_asked_for); i++) {
        add_data("no-pmu/not-asked-for", not_asked_for[i], not_asked_for[i],
                 test_not_asked_for);
    }
    add("aliases", test_aliases);
    add("count/enables", test_enables);
    add("count/host-and-guest", test_host_and_guest);
    add("count/svme-changes", test_svme_changes);
    add("count/older-events", test_older_events);
    add("monitor/stopped", test_stopped);
    add("monitor/code", test_shown_code);
    add("monitor/kinds", test_kinds);
    add("status/overflow", test_status);
    add("status/set", test_status_set);
    add("kvm/debugctl", test_kvm_debugctl);
    add_stock_cases();
    add_lbr();
}

const X86Face amd_face = {
    .evtsel = MSR_CTL0,
    .counter = MSR_CTR0,
    .step = 2,
    .nr_counters = NR_CORE,
    .status = MSR_AMD_STATUS,
    .face = {
        .name = "amd",
        .cpu = AMD,
        .full_cpu = AMD,
        .cpu_without = MODEL ",pmu=off",
        .tells_nested = true,
        .user = USER,
        .kernel = KERNEL,
        .user_modes = 0xaa,
        .nr_modes = NR_MODES,
        .width = 48,
        .overflow_at = 0,
        .interrupts_again = true,
        .insns = EVENT_INSNS,
        .cycles = EVENT_CYCLES,
        .unknown = EVENT_MISSES,
        .unknown_message = "event 0xc3, unit mask 0x00",
        .kind = "amd-perfmon-v2",
        .vendor = "amd",
        .nr_shown = NR_CORE,
        .counter_name = "PERF_CTR0",
        .shown_insns = EVENT_INSNS,
        .shown_modes = {
            "user guest-user smm-user guest-smm-user",
            "kernel guest-kernel smm guest-smm",
            "kernel user guest-kernel guest-user smm smm-user guest-smm "
            "guest-smm-user",
            "",
        },
        .shown_pending = "nmi",
        .nr_selectors = NR_CORE,
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
        .read = x86_read,
        .write = x86_write,
        .overflowed = face_overflowed,
        .interrupted = take_nmi,
        .rearm = face_rearm,
        .keep_busy = keep_busy,
    },
};
