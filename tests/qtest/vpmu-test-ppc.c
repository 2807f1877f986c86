/*
 * QTest of the virtual PMU: Power's registers, as the guest sees them
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "vpmu-test-ppc.h"

#define CPU "POWER10"

#define HFSCR_PM PPC_BIT(60)

char *ppc_args(const char *cpu)
{
    return g_strdup_printf("-machine pseries -m 256 -cpu %s", cpu);
}

static Machine ppc_start(const char *cpu)
{
    g_autofree char *args = ppc_args(cpu);
    Machine m = start(args);

    set_run(&m, true);
    return m;
}

/* Try to read; returns "ok", or the interrupt that the access causes. */
static const char *try_mfspr(Machine *m, unsigned spr, uint64_t *val)
{
    g_auto(GStrv) words = qtest_command(m->qts, 2, "vpmu_mfspr %u %u", m->cpu,
                                        spr);

    *val = words[2] ? g_ascii_strtoull(words[2], NULL, 0) : 0;
    return g_intern_string(words[1]);
}

static const char *try_mtspr(Machine *m, unsigned spr, uint64_t val)
{
    g_auto(GStrv) words = qtest_command(m->qts, 2,
                                        "vpmu_mtspr %u %u 0x%" PRIx64,
                                        m->cpu, spr, val);

    return g_intern_string(words[1]);
}

uint64_t mfspr(Machine *m, unsigned spr)
{
    uint64_t val;

    g_assert_cmpstr(try_mfspr(m, spr, &val), ==, "ok");
    return val;
}

void mtspr(Machine *m, unsigned spr, uint64_t val)
{
    g_assert_cmpstr(try_mtspr(m, spr, val), ==, "ok");
}

#define assert_spr(m, spr, expected) \
    g_assert_cmphex(mfspr((m), (spr)), ==, (expected))

void set_mode(Machine *m, unsigned mode, bool pmm)
{
    static const uint64_t msr[NR_MODES] = {
        [MODE_PROBLEM] = MSR_PR,
        [MODE_PRIVILEGED] = 0,
        [MODE_PROBLEM_OF_HV] = MSR_HV | MSR_PR,
        [MODE_HYPERVISOR] = MSR_HV,
    };
    uint64_t val = msr[mode] | (pmm ? MSR_PMM : 0);
    g_auto(GStrv) words = qtest_command(m->qts, 2, "vpmu_msr %u 0x%" PRIx64,
                                        m->cpu, val);

    g_assert_cmpint(g_ascii_strtoull(words[1], NULL, 0), ==, mode);
}

void set_run(Machine *m, bool run)
{
    g_strfreev(qtest_command(m->qts, 1, "vpmu_run %u %u", m->cpu, run));
}

/* Whether the interrupt, or the event-based branch, is pending. */
typedef struct Pending {
    bool perfm, ebb;
} Pending;

static Pending pending(Machine *m)
{
    g_auto(GStrv) words = qtest_command(m->qts, 3, "vpmu_pending %u", m->cpu);

    return (Pending) { g_str_equal(words[1], "1"), g_str_equal(words[2], "1") };
}

static void set_bits(Machine *m, unsigned spr, uint64_t bits)
{
    mtspr(m, spr, mfspr(m, spr) | bits);
}

static void clear_bits(Machine *m, unsigned spr, uint64_t bits)
{
    mtspr(m, spr, mfspr(m, spr) & ~bits);
}

static unsigned spr_of(unsigned pmc)
{
    return SPR_PMC1 + pmc - 1;
}

/* Select an event for PMC1 to PMC4, by a code like Linux's: 0xPUxSS. */
static void select_event(Machine *m, unsigned pmc, uint64_t code)
{
    unsigned sel_shift = 8 * (4 - pmc), unit_shift = 60 - 4 * (pmc - 1);

    clear_bits(m, SPR_MMCR1, 0xffull << sel_shift | 0xfull << unit_shift);
    set_bits(m, SPR_MMCR1, (code & 0xff) << sel_shift
                           | (code >> 12 & 0xf) << unit_shift);
}

/* Freeze all counters, with no counter negative. */
static void freeze_and_clear(Machine *m)
{
    unsigned pmc;

    mtspr(m, SPR_MMCR0, MMCR0_FC);
    for (pmc = 1; pmc <= NR_PMCS; pmc++) {
        mtspr(m, spr_of(pmc), 0);
    }
}

/*
 * Let PMC1 to PMC4 count instructions, PMC1 and PMC2 turn negative after so
 * many.
 */
static void arm_two(Machine *m, uint64_t left1, uint64_t left2)
{
    unsigned pmc;

    freeze_and_clear(m);
    for (pmc = 1; pmc <= 4; pmc++) {
        select_event(m, pmc, 0x02);
    }
    mtspr(m, SPR_PMC1, NEGATIVE - left1);
    mtspr(m, SPR_PMC2, NEGATIVE - left2);
}

/*
 * Registers
 */

#define MMCR0_POWER7  0xffc0e0b3ull
#define MMCR0_POWER8  0xfffcf9b3ull
#define MMCR0_POWER10 (MMCR0_POWER8 | MMCR0_PMCCEXT)

/* The bits that registers have; writes to other bits are lost. */
static const struct Register {
    const char *cpu;
    unsigned spr;
    uint64_t bits;
} registers[] = {
    { "POWER7",  SPR_MMCR0, MMCR0_POWER7 },
    { "POWER7",  SPR_MMCR1, UINT64_MAX },
    { "POWER7",  SPR_MMCRA, UINT64_MAX },
    { "POWER7",  SPR_PMC1,  UINT32_MAX },
    { "POWER7",  SPR_PMC6,  UINT32_MAX },
    { "POWER7",  SPR_SIAR,  UINT64_MAX },
    { "POWER7",  SPR_SDAR,  UINT64_MAX },
    { "POWER8",  SPR_MMCR0, MMCR0_POWER8 },
    { "POWER8",  SPR_MMCR1, UINT64_MAX },
    { "POWER8",  SPR_MMCR2, UINT64_MAX },
    { "POWER8",  SPR_MMCRA, UINT64_MAX },
    { "POWER8",  SPR_PMC1,  UINT32_MAX },
    { "POWER8",  SPR_PMC6,  UINT32_MAX },
    { "POWER8",  SPR_SIAR,  UINT64_MAX },
    { "POWER8",  SPR_SDAR,  UINT64_MAX },
    { "POWER8",  SPR_SIER,  UINT64_MAX },
    { "POWER9",  SPR_MMCR0, MMCR0_POWER8 },
    { "POWER10", SPR_MMCR0, MMCR0_POWER10 },
    { "POWER10", SPR_PMC3,  UINT32_MAX },
    { "POWER10", SPR_MMCR3, UINT64_MAX },
    { "POWER10", SPR_SIER2, UINT64_MAX },
    { "POWER10", SPR_SIER3, UINT64_MAX },
};

static void test_bits(void)
{
    unsigned i, bit;

    for (i = 0; i < G_N_ELEMENTS(registers); i++) {
        const struct Register *r = &registers[i];
        Machine m = ppc_start(r->cpu);

        for (bit = 0; bit < 64; bit++) {
            g_test_message("%s: SPR %u, bit %u", r->cpu, r->spr, bit);
            mtspr(&m, r->spr, PPC_BIT(bit));
            assert_spr(&m, r->spr, PPC_BIT(bit) & r->bits);
        }
        mtspr(&m, r->spr, UINT64_MAX);
        assert_spr(&m, r->spr, r->bits);
        stop(&m);
    }
}

/* The numbers for problem state name the same registers in any state. */
static void test_aliases(void)
{
    Machine m = ppc_start(CPU);

    mtspr(&m, SPR_PMC4, 1234);
    assert_spr(&m, SPR_PMC4 - SPR_PROBLEM, 1234);
    mtspr(&m, SPR_PMC4 - SPR_PROBLEM, 4321);
    assert_spr(&m, SPR_PMC4, 4321);
    mtspr(&m, SPR_SIER2, BIT64(40));
    assert_spr(&m, SPR_SIER2 - SPR_PROBLEM, BIT64(40));
    stop(&m);
}

/* A privileged write to a read-only number does nothing. */
static void test_read_only_aliases(void)
{
    static const unsigned sprs[] = {
        SPR_SIER, SPR_SIAR, SPR_SDAR, SPR_MMCR1, SPR_SIER2, SPR_SIER3,
        SPR_MMCR3,
    };
    Machine m = ppc_start(CPU);
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(sprs); i++) {
        g_test_message("SPR %u", sprs[i] - SPR_PROBLEM);
        mtspr(&m, sprs[i], 0x1234);
        mtspr(&m, sprs[i] - SPR_PROBLEM, 0x4321);
        assert_spr(&m, sprs[i], 0x1234);
        assert_spr(&m, sprs[i] - SPR_PROBLEM, 0x1234);
    }
    stop(&m);
}

/*
 * Access in problem state
 */

/* Groups of registers with the same access rules */
enum {
    CONTROLS, /* programs can be allowed to write */
    PMC5_AND_6,
    SAMPLES,  /* programs can only read */
    NR_GROUPS,
};

static const unsigned groups[NR_GROUPS][9] = {
    { SPR_MMCR0, SPR_MMCR2, SPR_MMCRA, SPR_PMC1, SPR_PMC2, SPR_PMC3, SPR_PMC4 },
    { SPR_PMC5, SPR_PMC6 },
    { SPR_MMCR1, SPR_SIER, SPR_SIAR, SPR_SDAR, SPR_MMCR3, SPR_SIER2,
      SPR_SIER3 },
};

static const struct Access {
    const char *cpu;
    uint64_t mmcr0;
    struct {
        const char *read, *write;
    } group[NR_GROUPS];
} accesses[] = {
    /*                          controls         PMC5, PMC6       samples */
    { "POWER9", MMCR0_PMCC(0),
                              { { "ok", "hea" }, { "ok", "hea" },
                                                 { "ok", "hea" } } },
    { "POWER9", MMCR0_PMCC(1),
                              { { "fu", "fu" },  { "fu", "fu" },
                                                 { "fu", "fu" } } },
    { "POWER9", MMCR0_PMCC(2),
                              { { "ok", "ok" },  { "ok", "ok" },
                                                 { "ok", "hea" } } },
    { "POWER9", MMCR0_PMCC(3),
                              { { "ok", "ok" },  { "fu", "fu" },
                                                 { "ok", "hea" } } },
    /* PMCCEXT denies the samples to programs that cannot write... */
    { "POWER10", MMCR0_PMCC(0) | MMCR0_PMCCEXT,
                              { { "ok", "hea" }, { "ok", "hea" },
                                                 { "fu", "hea" } } },
    { "POWER10", MMCR0_PMCC(1) | MMCR0_PMCCEXT,
                              { { "fu", "fu" },  { "fu", "fu" },
                                                 { "fu", "fu" } } },
    { "POWER10", MMCR0_PMCC(2) | MMCR0_PMCCEXT,
                              { { "ok", "ok" },  { "ok", "ok" },
                                                 { "ok", "hea" } } },
    { "POWER10", MMCR0_PMCC(3) | MMCR0_PMCCEXT,
                              { { "ok", "ok" },  { "fu", "fu" },
                                                 { "ok", "hea" } } },
    /* ... and POWER9 does not have this bit. */
    { "POWER9", MMCR0_PMCC(0) | MMCR0_PMCCEXT,
                              { { "ok", "hea" }, { "ok", "hea" },
                                                 { "ok", "hea" } } },
};

static bool has_register(const char *cpu, unsigned spr)
{
    bool is_new = spr == SPR_MMCR3 || spr == SPR_SIER2 || spr == SPR_SIER3;

    return !is_new || g_str_equal(cpu, "POWER10");
}

static void check_access(Machine *m, const struct Access *a, unsigned group)
{
    const unsigned *reg;
    uint64_t val;

    for (reg = groups[group]; *reg; reg++) {
        unsigned spr = *reg - SPR_PROBLEM;

        if (!has_register(a->cpu, *reg)) {
            continue;
        }
        g_test_message("%s: SPR %u with MMCR0 = 0x%" PRIx64, a->cpu, spr,
                       a->mmcr0);
        g_assert_cmpstr(try_mfspr(m, spr, &val), ==, a->group[group].read);
        g_assert_cmpstr(try_mtspr(m, spr, 0), ==, a->group[group].write);
    }
}

static void test_access(void)
{
    unsigned i, group;

    for (i = 0; i < G_N_ELEMENTS(accesses); i++) {
        Machine m = ppc_start(accesses[i].cpu);

        mtspr(&m, SPR_MMCR0, MMCR0_FC | accesses[i].mmcr0);
        set_mode(&m, MODE_PROBLEM, false);
        for (group = 0; group < NR_GROUPS; group++) {
            check_access(&m, &accesses[i], group);
        }
        stop(&m);
    }
}

/* Bits visible in problem state, which cannot change other bits */
static const struct Visible {
    unsigned spr;
    uint64_t bits;
} visible[] = {
    { SPR_MMCR0, 0x84000080 },         /* FC, PMAE, PMAO */
    { SPR_MMCR2, 0x4020100804020000 }, /* the FCnP0 */
    { SPR_MMCRA, UINT64_MAX },
    { SPR_PMC1,  UINT32_MAX },
};

static void test_visible(void)
{
    Machine m = ppc_start("POWER9");
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(visible); i++) {
        const struct Visible *v = &visible[i];
        uint64_t all;

        g_test_message("SPR %u", v->spr);
        mtspr(&m, v->spr, UINT64_MAX);
        clear_bits(&m, SPR_MMCR0, MMCR0_PMCC(3));
        set_bits(&m, SPR_MMCR0, MMCR0_PMCC(2));
        all = mfspr(&m, v->spr);
        set_mode(&m, MODE_PROBLEM, false);
        assert_spr(&m, v->spr - SPR_PROBLEM, v->bits);
        mtspr(&m, v->spr - SPR_PROBLEM, 0);
        assert_spr(&m, v->spr - SPR_PROBLEM, 0);
        set_mode(&m, MODE_PRIVILEGED, false);
        assert_spr(&m, v->spr, all & ~v->bits);
        set_mode(&m, MODE_PROBLEM, false);
        mtspr(&m, v->spr - SPR_PROBLEM, UINT64_MAX);
        set_mode(&m, MODE_PRIVILEGED, false);
        assert_spr(&m, v->spr, all);
    }
    stop(&m);
}

static void test_visible_sier(void)
{
    Machine m = ppc_start(CPU);

    mtspr(&m, SPR_SIER, UINT64_MAX);
    mtspr(&m, SPR_MMCR0, MMCR0_FC | MMCR0_PMCC(2));
    set_mode(&m, MODE_PROBLEM, false);
    assert_spr(&m, SPR_SIER - SPR_PROBLEM, 0x7fffff);
    stop(&m);
}

static const struct Facility {
    unsigned mode;
    bool hfscr_pm;
    const char *outcome;
} facilities[] = {
    { MODE_PROBLEM,       true,  "ok" },
    { MODE_PRIVILEGED,    true,  "ok" },
    { MODE_PROBLEM_OF_HV, true,  "ok" },
    { MODE_HYPERVISOR,    true,  "ok" },
    { MODE_PROBLEM,       false, "hvfu" },
    { MODE_PRIVILEGED,    false, "hvfu" },
    { MODE_PROBLEM_OF_HV, false, "ok" },
    { MODE_HYPERVISOR,    false, "ok" },
};

/* A hypervisor can deny the facility to partitions. */
static void test_hfscr(const void *data)
{
    g_autofree char *args = g_strdup_printf("-machine %s", (const char *)data);
    Machine m = start(args);
    uint64_t val;
    unsigned i;

    mtspr(&m, SPR_MMCR0, MMCR0_FC | MMCR0_PMCC(2));
    for (i = 0; i < G_N_ELEMENTS(facilities); i++) {
        const struct Facility *f = &facilities[i];
        unsigned spr = SPR_PMC1 - (f->mode & MODE_PRIVILEGED ? 0 : SPR_PROBLEM);

        mtspr(&m, SPR_HFSCR, f->hfscr_pm ? HFSCR_PM : 0);
        set_mode(&m, f->mode, false);
        g_assert_cmpstr(try_mfspr(&m, spr, &val), ==, f->outcome);
        g_assert_cmpstr(try_mtspr(&m, spr, 1), ==, f->outcome);
    }
    stop(&m);
}

/* Without a PMU, the facility is not available. */
static void test_no_pmu(void)
{
    Machine m = ppc_start("POWER9,pmu=off");
    uint64_t val;

    mtspr(&m, SPR_MMCR0, MMCR0_PMCC(2));
    assert_spr(&m, SPR_MMCR0, 0);
    set_mode(&m, MODE_PROBLEM, false);
    g_assert_cmpstr(try_mfspr(&m, SPR_PMC1 - SPR_PROBLEM, &val), ==, "fu");
    g_assert_cmpstr(try_mtspr(&m, SPR_PMC1 - SPR_PROBLEM, 0), ==, "fu");
    stop(&m);
}

/* POWER7 does not have that interrupt: programs read 0. */
static void test_no_pmu_power7(void)
{
    Machine m = ppc_start("POWER7,pmu=off");

    set_mode(&m, MODE_PROBLEM, false);
    assert_spr(&m, SPR_PMC1 - SPR_PROBLEM, 0);
    stop(&m);
}

/*
 * Events
 */

#define WITH_CORE \
    ",pmu-core=core0 -object pmu-core,id=core0,preset=power9"

static const EventTable event_tables[] = {
    EVENT_TABLE("POWER7", POWER7),
    EVENT_TABLE("POWER8", POWER8),
    EVENT_TABLE("POWER9", POWER9),
    EVENT_TABLE("POWER10", POWER10),
    EVENT_TABLE("POWER8" WITH_CORE, POWER8_CORE),
    EVENT_TABLE("POWER9" WITH_CORE, POWER9_CORE),
    EVENT_TABLE("POWER10" WITH_CORE, POWER10_CORE),
};

/* The first digit is the PMC. */
static unsigned face_counter_of(uint64_t code)
{
    return (code >> 16) - 1;
}

/* Some are about one privilege state. */
static void test_states(void)
{
#define IN_STATE(code, counted, state) { code, MODE_##state },
    static const struct {
        uint64_t code;
        unsigned mode;
    } events[] = { CODES_POWER10_STATES(IN_STATE) };
    Machine m = start("-machine powernv10");

    for (unsigned i = 0; i < G_N_ELEMENTS(events); i++) {
        unsigned pmc = events[i].code >> 16;

        g_test_message("event 0x%" PRIx64, events[i].code);
        freeze_and_clear(&m);
        select_event(&m, pmc, events[i].code);
        set_run(&m, true);
        mtspr(&m, SPR_MMCR0, 0);
        for (unsigned mode = 0; mode < 4; mode++) {
            count(&m, PMU_TALLY_INSNS, mode, 10 << mode);
            count(&m, PMU_TALLY_CYCLES, mode, 10 << mode);
        }
        assert_spr(&m, spr_of(pmc), 10 << events[i].mode);
    }
    stop(&m);
}

/* POWER10's PM_DATA_FROM_*: a counter has a field of MMCR3 for the source. */
#define FROM_L3 0x9aull
#define SOURCE_OF(pmc, source) ((source) << (49 - 15 * ((pmc) - 1)))

static void test_source(void)
{
    Machine m = ppc_start("POWER10" WITH_CORE);

    for (unsigned pmc = 1; pmc <= 4; pmc++) {
        freeze_and_clear(&m);
        mtspr(&m, SPR_MMCR3, 0);
        select_event(&m, pmc, pmc << 16 | 0xc040);
        mtspr(&m, SPR_MMCR0, 0);
        count(&m, PMU_TALLY_LLC_LOAD_HITS, MODE_PROBLEM, 1);
        mtspr(&m, SPR_MMCR3, SOURCE_OF(pmc, FROM_L3));
        count(&m, PMU_TALLY_LLC_LOAD_HITS, MODE_PROBLEM, 10);
        mtspr(&m, SPR_MMCR3, SOURCE_OF(pmc, FROM_L3 + 1));
        count(&m, PMU_TALLY_LLC_LOAD_HITS, MODE_PROBLEM, 100);
        mtspr(&m, SPR_MMCR3, SOURCE_OF(pmc % 4 + 1, FROM_L3));
        count(&m, PMU_TALLY_LLC_LOAD_HITS, MODE_PROBLEM, 1000);
        assert_spr(&m, spr_of(pmc), 10);
    }
    stop(&m);
}

/* 100 with the run latch, 10 without. */
static const struct RunLatch {
    unsigned pmc;
    uint64_t code, mmcr0;
    uint64_t expected;
} run_latches[] = {
    { 1, 0x100fa, 0, 100 },
    { 2, 0x2000c, 0, 100 },
    { 2, 0x200f4, 0, 100 },
    { 3, 0x300f4, 0, 100 },
    { 4, 0x400fa, 0, 100 },
    { 5, 0x500fa, 0, 100 },
    { 6, 0x600f4, 0, 100 },
    { 5, 0x500fa, MMCR0_CC56RUN, 110 },
    { 6, 0x600f4, MMCR0_CC56RUN, 110 },
    { 5, 0x500fa, MMCR0_PMCC(3) | MMCR0_CC56RUN, 100 },
    { 6, 0x600f4, MMCR0_PMCC(3) | MMCR0_CC56RUN, 100 },
    { 2, 0x200f4, MMCR0_CC56RUN, 100 },
    { 1, 0x10002, 0, 110 },
    { 4, 0x4001e, 0, 110 },
    { 1, 0x100f0, 0, 110 },
    { 1, 0x100f0, MMCR0_FC14WAIT, 110 },
    { 1, 0x1001e, MMCR0_FC14WAIT, 100 },
};

static void test_run_latch(void)
{
    Machine m = ppc_start(CPU);
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(run_latches); i++) {
        const struct RunLatch *r = &run_latches[i];

        g_test_message("PMC%u, event 0x%" PRIx64, r->pmc, r->code);
        freeze_and_clear(&m);
        if (r->pmc <= 4) {
            select_event(&m, r->pmc, r->code);
        }
        mtspr(&m, SPR_MMCR0, r->mmcr0);
        set_run(&m, true);
        count(&m, PMU_TALLY_INSNS, MODE_PROBLEM, 100);
        count(&m, PMU_TALLY_CYCLES, MODE_PROBLEM, 100);
        set_run(&m, false);
        count(&m, PMU_TALLY_INSNS, MODE_PROBLEM, 10);
        count(&m, PMU_TALLY_CYCLES, MODE_PROBLEM, 10);
        assert_spr(&m, spr_of(r->pmc), r->expected);
    }
    stop(&m);
}

/* Marked instructions, which these events count */
static const struct Marked {
    uint64_t mmcra;
    PmuTallies tallies;
} marked[] = {
    { 0, 0 },
    { MMCRA_SAMPLE, T(INSNS) },
    { MMCRA_SAMPLE | MMCRA_SAMP_ELIG(1), T(LOADS) | T(STORES) },
    { MMCRA_SAMPLE | MMCRA_SAMP_ELIG(5), T(LOADS) },
    { MMCRA_SAMPLE | MMCRA_SAMP_ELIG(7), T(STORES) },
    { MMCRA_SAMPLE | MMCRA_SAMP_MODE(1), T(LOADS) | T(STORES) },
    { MMCRA_SAMPLE | MMCRA_SAMP_ELIG(2), 0 },
    { MMCRA_SAMPLE | MMCRA_SAMP_MODE(1) | MMCRA_SAMP_ELIG(5), 0 },
    { MMCRA_SAMPLE | MMCRA_SAMP_MODE(2), 0 },
    { MMCRA_SAMPLE | MMCRA_SAMP_MODE(3), 0 },
    { MMCRA_SAMP_ELIG(5), 0 },
};

static void test_marked(void)
{
    static const uint64_t codes[] = { 0x100e0, 0x20030, 0x30030, 0x400e0 };
    Machine m = ppc_start("POWER9");
    unsigned i, pmc;

    for (i = 0; i < G_N_ELEMENTS(marked); i++) {
        g_test_message("MMCRA 0x%" PRIx64, marked[i].mmcra);
        freeze_and_clear(&m);
        mtspr(&m, SPR_MMCRA, marked[i].mmcra);
        for (pmc = 1; pmc <= 4; pmc++) {
            select_event(&m, pmc, codes[pmc - 1]);
        }
        mtspr(&m, SPR_MMCR0, MMCR0_FC56);
        g_assert_cmphex(wanted(&m), ==, marked[i].tallies);
        count(&m, PMU_TALLY_INSNS, MODE_PROBLEM, T(INSNS));
        count(&m, PMU_TALLY_LOADS, MODE_PROBLEM, T(LOADS));
        count(&m, PMU_TALLY_STORES, MODE_PROBLEM, T(STORES));
        for (pmc = 1; pmc <= 4; pmc++) {
            assert_spr(&m, spr_of(pmc), marked[i].tallies);
        }
    }
    stop(&m);
}

/*
 * Code in place of a partition's firmware, which begins at 0x100.  It counts
 * 2004 instructions, and switches the machine off.
 */
static const uint32_t program[] = {
    0x3c800202, /*    lis r4,0x0202: instructions in PMC1 and PMC2, */
    0x60841e1e, /*    ori r4,r4,0x1e1e: cycles in PMC3 and PMC4 */
    0x7c9ec3a6, /*    mtspr MMCR1,r4 */
    0x38800000, /*    li r4,0 */
    0x7c9bc3a6, /* mtspr MMCR0,r4: counting begins */
    0x38a003e8, /*    li r5,1000 */
    0x7ca903a6, /*    mtctr r5 */
    0x60000000, /* 1: nop */
    0x4200fffc, /*    bdnz 1b */
    0x3c808000, /*    lis r4,0x8000 */
    0x7c9bc3a6, /* mtspr MMCR0,r4: the last counted one */
    0x38600000, /*    li r3,0 */
    0x6063f000, /*    ori r3,r3,0xf000: H_RTAS */
    0x38800200, /*    li r4,0x200 */
    0x44000022, /*    sc 1 */
    0x48000000, /*    b . */
};

/* The call's arguments at 0x200: power-off, two arguments, one result */
static const uint32_t power_off[] = { 0x2003, 2, 1, 0, 0, 0 };

static void put_words(uint8_t *to, const uint32_t *words, unsigned nr)
{
    unsigned i;

    for (i = 0; i < nr; i++) {
        stl_be_p(to + 4 * i, words[i]);
    }
}

/* Count instructions that TCG executes. */
static void test_executed(const void *data)
{
    uint8_t image[4096] = { 0 };
    char *firmware = new_file();
    Machine m = { 0 };
    unsigned pmc;

    put_words(image + 0x100, program, G_N_ELEMENTS(program));
    put_words(image + 0x200, power_off, G_N_ELEMENTS(power_off));
    g_assert_true(g_file_set_contents(firmware, (char *)image, sizeof(image),
                                      NULL));
    m.qts = qtest_initf("-accel tcg -nodefaults -no-shutdown -S "
                        "-machine pseries -cpu %s -bios %s",
                        (const char *)data, firmware);
    delete_file(firmware);
    qtest_qmp_assert_success(m.qts, "{'execute': 'cont'}");
    qtest_qmp_eventwait(m.qts, "SHUTDOWN");
    for (pmc = 1; pmc <= NR_PMCS; pmc++) {
        g_test_message("PMC%u", pmc);
        assert_spr(&m, spr_of(pmc), 2004);
    }
    stop(&m);
}

/* Each thread of a core has its own PMU and run latch. */
static void test_threads(const void *data)
{
    g_autofree char *args = g_strdup_printf("-machine %s -smp 2,threads=2",
                                            (const char *)data);
    Machine m = start(args);
    Machine other = { .qts = m.qts, .cpu = 1 };

    set_run(&m, true);
    set_run(&other, false);
    mtspr(&m, SPR_MMCR0, 0);
    mtspr(&other, SPR_MMCR0, 0);
    count(&m, PMU_TALLY_INSNS, MODE_PRIVILEGED, 10);
    count(&other, PMU_TALLY_INSNS, MODE_PRIVILEGED, 20);
    assert_spr(&m, SPR_PMC5, 10);
    assert_spr(&other, SPR_PMC5, 0);
    set_run(&other, true);
    mtspr(&m, SPR_MMCR0, MMCR0_FC);
    count(&other, PMU_TALLY_INSNS, MODE_PRIVILEGED, 20);
    assert_spr(&m, SPR_PMC5, 10);
    assert_spr(&other, SPR_PMC5, 20);
    stop(&m);
}

/* 10 events each with the latch of this thread, of the other, or of both */
static const struct CoreLatch {
    unsigned pmc;
    uint64_t code;
    unsigned own, other, both;
} core_latches[] = {
    { 1, 0x100fa, 10, 10, 10 },
    { 2, 0x2000c, 0, 0, 10 },
    { 2, 0x200f4, 10, 0, 10 },
    { 3, 0x300f4, 0, 0, 10 },
    { 4, 0x400fa, 10, 0, 10 },
};

/* Cores with one partition, as POWER8 and pseries always have */
static const struct Core {
    const char *name, *args;
    unsigned threads;
    bool begins_to_run;
} cores[] = {
    { "powernv8", "-machine powernv8 -smp 2,threads=2", 2 },
    { "powernv10", "-machine powernv10,lpar-per-core=on -smp 2,threads=2", 2 },
    /* Each of its small cores has half of the threads. */
    { "big-core", "-machine powernv10,lpar-per-core=on,big-core=on"
      " -smp 4,threads=4", 4 },
    { "pseries", "-machine pseries -cpu POWER10 -smp 2,threads=2", 2, true },
};

static void set_other_latches(Machine *m, const struct Core *core, bool run)
{
    Machine other = *m;

    for (other.cpu = 1; other.cpu < core->threads; other.cpu++) {
        set_run(&other, run);
    }
}

static unsigned count_on_core(Machine *m, const struct CoreLatch *l)
{
    mtspr(m, spr_of(l->pmc), 0);
    count(m, PMU_TALLY_INSNS, MODE_PRIVILEGED, 10);
    count(m, PMU_TALLY_CYCLES, MODE_PRIVILEGED, 10);
    return mfspr(m, spr_of(l->pmc));
}

static unsigned count_with_latches(Machine *m, const struct Core *core,
                                   const struct CoreLatch *l, bool own_run,
                                   bool others_run)
{
    set_run(m, own_run);
    set_other_latches(m, core, others_run);
    return count_on_core(m, l);
}

static void test_core_latches(const void *data)
{
    const struct Core *core = data;
    Machine m = start(core->args);
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(core_latches); i++) {
        const struct CoreLatch *l = &core_latches[i];

        g_test_message("event 0x%" PRIx64, l->code);
        qtest_system_reset(m.qts);
        freeze_and_clear(&m);
        select_event(&m, l->pmc, l->code);
        mtspr(&m, SPR_MMCR0, 0);
        if (core->begins_to_run) {
            /* The others are not started yet. */
            g_assert_cmpint(count_on_core(&m, l), ==, l->own);
        }
        g_assert_cmpint(count_with_latches(&m, core, l, false, false), ==, 0);
        g_assert_cmpint(count_with_latches(&m, core, l, true, false), ==,
                        l->own);
        g_assert_cmpint(count_with_latches(&m, core, l, false, true), ==,
                        l->other);
        g_assert_cmpint(count_with_latches(&m, core, l, true, true), ==,
                        l->both);
    }
    stop(&m);
}

/* A partition's CPU starts with the run latch, and has it after a reset. */
static void test_run_latch_at_reset(void)
{
    g_autofree char *args = ppc_args(CPU);
    Machine m = start(args);

    mtspr(&m, SPR_MMCR0, 0);
    count(&m, PMU_TALLY_INSNS, MODE_PRIVILEGED, 10);
    assert_spr(&m, SPR_PMC5, 10);
    set_run(&m, false);
    qtest_system_reset(m.qts);
    mtspr(&m, SPR_MMCR0, 0);
    count(&m, PMU_TALLY_INSNS, MODE_PRIVILEGED, 20);
    assert_spr(&m, SPR_PMC5, 20);
    stop(&m);
}

/*
 * Conditions and alerts
 */

/* Negative counters that cause an alert, bit n for PMCn. */
static const struct Condition {
    uint64_t mmcr0;
    unsigned pmcs;
} conditions[] = {
    { 0,                                            0x00 },
    { MMCR0_PMC1CE,                                 0x02 },
    { MMCR0_PMCJCE,                                 0x7c },
    { MMCR0_PMC1CE | MMCR0_PMCJCE,                  0x7e },
    { MMCR0_PMC1CE | MMCR0_PMCC(3),                 0x02 },
    { MMCR0_PMCJCE | MMCR0_PMCC(3),                 0x1c },
    { MMCR0_PMC1CE | MMCR0_PMCJCE | MMCR0_PMCC(3),  0x1e },
};

static void check_condition(Machine *m, const struct Condition *c, unsigned pmc)
{
    uint64_t mmcr0 = c->mmcr0 | MMCR0_FC;
    bool alert = c->pmcs & BIT64(pmc);

    g_test_message("MMCR0 0x%" PRIx64 ", PMC%u", c->mmcr0, pmc);
    freeze_and_clear(m);
    mtspr(m, SPR_MMCR0, mmcr0 | MMCR0_PMAE);
    mtspr(m, spr_of(pmc), NEGATIVE - 1);
    g_assert_false(pending(m).perfm);
    assert_spr(m, SPR_MMCR0, mmcr0 | MMCR0_PMAE);
    mtspr(m, spr_of(pmc), NEGATIVE);
    g_assert_cmpint(pending(m).perfm, ==, alert);
    assert_spr(m, SPR_MMCR0, mmcr0 | (alert ? MMCR0_PMAO : MMCR0_PMAE));
}

static void test_conditions(void)
{
    Machine m = ppc_start(CPU);
    unsigned i, pmc;

    for (i = 0; i < G_N_ELEMENTS(conditions); i++) {
        for (pmc = 1; pmc <= NR_PMCS; pmc++) {
            check_condition(&m, &conditions[i], pmc);
        }
    }
    stop(&m);
}

/* A negative counter is a condition as long as it is negative. */
static void test_level(void)
{
    Machine m = ppc_start(CPU);

    arm_two(&m, 10, 1000);
    mtspr(&m, SPR_MMCR0, MMCR0_PMC1CE | MMCR0_FC56);
    count(&m, PMU_TALLY_INSNS, MODE_PROBLEM, 11);
    g_assert_false(pending(&m).perfm);
    assert_spr(&m, SPR_PMC1, NEGATIVE + 1);
    set_bits(&m, SPR_MMCR0, MMCR0_PMAE);
    g_assert_true(pending(&m).perfm);
    assert_spr(&m, SPR_MMCR0, MMCR0_PMC1CE | MMCR0_FC56 | MMCR0_PMAO);

    /* The alert was handled, but the counter not changed. */
    mtspr(&m, SPR_MMCR0, MMCR0_PMC1CE | MMCR0_FC56);
    g_assert_false(pending(&m).perfm);
    set_bits(&m, SPR_MMCR0, MMCR0_PMAE);
    g_assert_true(pending(&m).perfm);

    mtspr(&m, SPR_MMCR0, MMCR0_PMC1CE | MMCR0_FC56);
    mtspr(&m, SPR_PMC1, 0);
    set_bits(&m, SPR_MMCR0, MMCR0_PMAE);
    g_assert_false(pending(&m).perfm);
    stop(&m);
}

/* PMAO causes the interrupt, even if software sets it; other bits stay. */
static void test_pmao(void)
{
    Machine m = ppc_start(CPU);

    mtspr(&m, SPR_MMCR0, MMCR0_FC | MMCR0_PMAE | MMCR0_PMAO);
    g_assert_true(pending(&m).perfm);
    assert_spr(&m, SPR_MMCR0, MMCR0_FC | MMCR0_PMAE | MMCR0_PMAO);
    mtspr(&m, SPR_MMCR0, MMCR0_FC | MMCR0_PMAE);
    g_assert_false(pending(&m).perfm);
    stop(&m);
}

static void test_alert_clears_pmae(void)
{
    const uint64_t mmcr0 = MMCR0_PMC1CE | MMCR0_FC56 | MMCR0_TBSEL(2);
    Machine m = ppc_start(CPU);

    arm_two(&m, 10, 1000);
    mtspr(&m, SPR_MMCR0, mmcr0 | MMCR0_PMAE | MMCR0_FCECE | MMCR0_PMAQ);
    count(&m, PMU_TALLY_INSNS, MODE_PROBLEM, 100);
    assert_spr(&m, SPR_MMCR0, mmcr0 | MMCR0_FC | MMCR0_FCECE | MMCR0_PMAO);
    assert_spr(&m, SPR_PMC1, NEGATIVE);
    assert_spr(&m, SPR_PMC3, 10);
    stop(&m);
}

/* FCECE freezes when there is a condition, with or without an alert. */
static void test_freeze_without_alert(void)
{
    Machine m = ppc_start(CPU);

    arm_two(&m, 10, 1000);
    mtspr(&m, SPR_MMCR0, MMCR0_PMC1CE | MMCR0_FCECE);
    count(&m, PMU_TALLY_INSNS, MODE_PROBLEM, 100);
    assert_spr(&m, SPR_MMCR0, MMCR0_FC | MMCR0_PMC1CE | MMCR0_FCECE);
    assert_spr(&m, SPR_PMC1, NEGATIVE);
    assert_spr(&m, SPR_PMC4, 10);
    assert_spr(&m, SPR_PMC5, 10);
    g_assert_false(pending(&m).perfm);
    stop(&m);
}

static void test_no_freeze_without_condition(void)
{
    Machine m = ppc_start(CPU);

    arm_two(&m, 10, 1000);
    mtspr(&m, SPR_MMCR0, MMCR0_PMCJCE | MMCR0_FCECE | MMCR0_PMAE);
    count(&m, PMU_TALLY_INSNS, MODE_PROBLEM, 100);
    assert_spr(&m, SPR_MMCR0, MMCR0_PMCJCE | MMCR0_FCECE | MMCR0_PMAE);
    assert_spr(&m, SPR_PMC1, NEGATIVE + 90);
    stop(&m);
}

/* PMC2 to PMC6 wait until PMC1 is negative, even if that is no condition. */
static void test_trigger(void)
{
    Machine m = ppc_start(CPU);
    unsigned pmc;

    arm_two(&m, 10, 1000);
    mtspr(&m, SPR_MMCR0, MMCR0_TRIGGER);
    count(&m, PMU_TALLY_INSNS, MODE_PROBLEM, 9);
    assert_spr(&m, SPR_MMCR0, MMCR0_TRIGGER);
    count(&m, PMU_TALLY_INSNS, MODE_PROBLEM, 6);
    assert_spr(&m, SPR_MMCR0, 0);
    assert_spr(&m, SPR_PMC1, NEGATIVE + 5);
    for (pmc = 3; pmc <= 5; pmc++) {
        assert_spr(&m, spr_of(pmc), 5);
    }
    stop(&m);
}

/* The condition that ends the trigger does not also freeze counters. */
static void test_trigger_without_freeze(void)
{
    Machine m = ppc_start(CPU);

    arm_two(&m, 10, 1000);
    mtspr(&m, SPR_MMCR0, MMCR0_PMC1CE | MMCR0_FCECE | MMCR0_TRIGGER);
    count(&m, PMU_TALLY_INSNS, MODE_PROBLEM, 15);
    assert_spr(&m, SPR_MMCR0, MMCR0_PMC1CE | MMCR0_FCECE);
    assert_spr(&m, SPR_PMC3, 5);
    stop(&m);
}

/* The event that ends the trigger does not freeze; the next condition does. */
static void test_trigger_then_freeze(void)
{
    const uint64_t mmcr0 = MMCR0_PMCJCE | MMCR0_FCECE | MMCR0_PMAE;
    Machine m = ppc_start(CPU);

    arm_two(&m, 10, 20);
    mtspr(&m, SPR_MMCR0, mmcr0 | MMCR0_TRIGGER);
    count(&m, PMU_TALLY_INSNS, MODE_PROBLEM, 10);
    assert_spr(&m, SPR_MMCR0, mmcr0);
    count(&m, PMU_TALLY_INSNS, MODE_PROBLEM, 100);
    assert_spr(&m, SPR_MMCR0, MMCR0_PMCJCE | MMCR0_FCECE | MMCR0_FC
                              | MMCR0_PMAO);
    assert_spr(&m, SPR_PMC1, NEGATIVE + 20);
    assert_spr(&m, SPR_PMC2, NEGATIVE);
    assert_spr(&m, SPR_PMC3, 20);
    stop(&m);
}

/* PMC1 is negative and enabled, but has ended the trigger; PMC2 counts on. */
static const uint64_t after_trigger = MMCR0_PMC1CE | MMCR0_FCECE;

static Machine end_trigger(void)
{
    Machine m = ppc_start(CPU);

    arm_two(&m, 10, 1000);
    mtspr(&m, SPR_MMCR0, after_trigger | MMCR0_TRIGGER);
    count(&m, PMU_TALLY_INSNS, MODE_PROBLEM, 10);
    assert_spr(&m, SPR_MMCR0, after_trigger);
    return m;
}

/* After migration, PMC1 does not freeze the counters either. */
static void test_ended_trigger_migrates(void)
{
    g_autofree char *args = ppc_args(CPU);
    Machine m = end_trigger();

    migrate_machine(&m, args);
    assert_spr(&m, SPR_MMCR0, after_trigger);
    stop(&m);
}

static void test_ended_trigger_and_state(void)
{
    Machine m = end_trigger();

    set_mode(&m, MODE_PROBLEM, true);
    set_run(&m, false);
    set_run(&m, true);
    /* MMCR0 cannot be read in problem state. */
    set_mode(&m, MODE_PRIVILEGED, false);
    assert_spr(&m, SPR_MMCR0, after_trigger);
    stop(&m);
}

/* Writes of registers do not make the condition occur again; its own does. */
static void test_ended_trigger_and_writes(void)
{
    static const unsigned regs[] = {
        SPR_SDAR, SPR_SIAR, SPR_SIER, SPR_MMCR1, SPR_MMCR2, SPR_MMCRA, SPR_PMC3,
    };
    Machine m = end_trigger();
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(regs); i++) {
        mtspr(&m, regs[i], 0);
        assert_spr(&m, SPR_MMCR0, after_trigger);
    }
    mtspr(&m, SPR_PMC1, NEGATIVE);
    assert_spr(&m, SPR_MMCR0, after_trigger | MMCR0_FC);
    mtspr(&m, SPR_PMC1, 0);
    mtspr(&m, SPR_MMCR0, after_trigger);
    assert_spr(&m, SPR_MMCR0, after_trigger);
    stop(&m);
}

/* So does a write of MMCR0 that enables it. */
static void test_ended_trigger_and_mmcr0(void)
{
    Machine m = end_trigger();

    mtspr(&m, SPR_MMCR0, after_trigger);
    assert_spr(&m, SPR_MMCR0, after_trigger | MMCR0_FC);
    stop(&m);
}

/* A counter whose condition is not enabled has no say. */
static void test_ended_trigger_and_others(void)
{
    Machine m = end_trigger();

    count(&m, PMU_TALLY_INSNS, MODE_PROBLEM, 1000);
    assert_spr(&m, SPR_PMC2, NEGATIVE);
    assert_spr(&m, SPR_MMCR0, after_trigger);
    stop(&m);
}

/* Mode and event of an alert, and bits of SIER */
static const struct Sample {
    unsigned mode;
    uint64_t code;
    PmuTally tally;
    uint64_t sier;
} samples[] = {
    { MODE_PROBLEM,       0x10002, PMU_TALLY_INSNS, SIER_SIPR },
    { MODE_PRIVILEGED,    0x10002, PMU_TALLY_INSNS, 0 },
    { MODE_PROBLEM_OF_HV, 0x10002, PMU_TALLY_INSNS, SIER_SIPR | SIER_SIHV },
    { MODE_HYPERVISOR,    0x10002, PMU_TALLY_INSNS, SIER_SIHV },
    { MODE_HYPERVISOR,    0x100fc, PMU_TALLY_LOADS, SIER_SIHV | SIER_LOAD },
    { MODE_HYPERVISOR,    0x200f0, PMU_TALLY_STORES, SIER_SIHV | SIER_STORE },
};

static void test_samples(void)
{
    Machine m = start("-machine powernv10");
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(samples); i++) {
        const struct Sample *s = &samples[i];
        unsigned pmc = s->code >> 16;

        freeze_and_clear(&m);
        mtspr(&m, SPR_SDAR, 1);
        mtspr(&m, SPR_SIER2, 1);
        select_event(&m, pmc, s->code);
        mtspr(&m, spr_of(pmc), NEGATIVE - 1);
        mtspr(&m, SPR_MMCR0, MMCR0_PMAE | MMCR0_PMC1CE | MMCR0_PMCJCE);
        set_mode(&m, s->mode, false);
        count(&m, s->tally, s->mode, 1);
        set_mode(&m, MODE_HYPERVISOR, false);
        g_assert_true(pending(&m).perfm);
        assert_spr(&m, SPR_SIER, SIER_SIAR_VALID | s->sier);
        assert_spr(&m, SPR_SDAR, 0);
        assert_spr(&m, SPR_SIER2, 0);
    }
    stop(&m);
}

/* POWER7 stores the sample in MMCRA, next to the guest's own bits. */
static void test_sample_power7(void)
{
    const uint64_t siar_valid = PPC_BIT(35), problem = PPC_BIT(22);
    Machine m = ppc_start("POWER7");

    freeze_and_clear(&m);
    mtspr(&m, SPR_SDAR, 1);
    mtspr(&m, SPR_MMCRA, PPC_BIT(20) | PPC_BIT(33) | BIT64(0));
    mtspr(&m, SPR_PMC5, NEGATIVE - 1);
    mtspr(&m, SPR_MMCR0, MMCR0_PMAE | MMCR0_PMCJCE);
    set_mode(&m, MODE_PROBLEM, false);
    count(&m, PMU_TALLY_INSNS, MODE_PROBLEM, 1);
    g_assert_true(pending(&m).perfm);
    set_mode(&m, MODE_PRIVILEGED, false);
    assert_spr(&m, SPR_MMCRA, siar_valid | problem | PPC_BIT(33) | BIT64(0));
    assert_spr(&m, SPR_SDAR, 0);
    stop(&m);
}

/*
 * The time base: an event whenever the selected bit turns from 0 to 1
 */

#define TB_HZ 512000000ull

static const struct TimeBase {
    const char *name;
    unsigned tbsel;
    unsigned bit;
} time_bases[] = {
    { "47", 0, 47 },
    { "51", 1, 51 },
    { "55", 2, 55 },
    { "63", 3, 63 },
};

static void test_time_base(const void *data)
{
    const struct TimeBase *t = data;
    const uint64_t mmcr0 = MMCR0_TBEE | MMCR0_TBSEL(t->tbsel) | MMCR0_FCECE;
    uint64_t ticks = 2 * PPC_BIT(t->bit);
    int64_t ns = ticks * 1000000000 / TB_HZ;
    Machine m = ppc_start(CPU);

    /* The time base has an unknown value: step to a transition. */
    mtspr(&m, SPR_MMCR0, mmcr0 | MMCR0_PMAE);
    qtest_clock_step_next(m.qts);
    g_assert_true(pending(&m).perfm);
    assert_spr(&m, SPR_MMCR0, mmcr0 | MMCR0_FC | MMCR0_PMAO);

    mtspr(&m, SPR_MMCR0, mmcr0 | MMCR0_PMAE);
    g_assert_false(pending(&m).perfm);
    if (ns > 10) {
        qtest_clock_step(m.qts, ns - 10);
        assert_spr(&m, SPR_MMCR0, mmcr0 | MMCR0_PMAE);
    }
    qtest_clock_step(m.qts, 20);
    g_assert_true(pending(&m).perfm);
    stop(&m);
}

static void test_time_base_off(void)
{
    Machine m = ppc_start(CPU);

    mtspr(&m, SPR_MMCR0, MMCR0_TBEE | MMCR0_PMAE);
    mtspr(&m, SPR_MMCR0, MMCR0_PMAE);
    qtest_clock_step(m.qts, 1000000);
    assert_spr(&m, SPR_MMCR0, MMCR0_PMAE);
    stop(&m);
}

/* Frozen counters are not frozen again every two nanoseconds. */
static void test_time_base_frozen(void)
{
    Machine m = start("-machine pseries -cpu " CPU " -smp 2");
    Machine other = { .qts = m.qts, .cpu = 1 };
    const uint64_t slow = MMCR0_FC | MMCR0_PMAE | MMCR0_TBEE | MMCR0_TBSEL(0);
    int64_t now;

    /* The other CPU's next event is as far away as can be: 256 us. */
    mtspr(&other, SPR_MMCR0, slow);
    now = qtest_clock_step_next(m.qts);
    g_assert_true(pending(&other).perfm);
    mtspr(&other, SPR_MMCR0, slow);
    mtspr(&m, SPR_MMCR0, MMCR0_FC | MMCR0_FCECE | MMCR0_TBEE | MMCR0_TBSEL(3));
    g_assert_cmpint(qtest_clock_step_next(m.qts) - now, >, 250000);
    assert_spr(&m, SPR_MMCR0, MMCR0_FC | MMCR0_FCECE | MMCR0_TBEE
                              | MMCR0_TBSEL(3));
    stop(&m);
}

/* Work queued for a CPU is done before it answers. */
static void let_cpu_do_its_work(const Machine *m)
{
    qobject_unref(qtest_qmp(m->qts, "{'execute': 'query-pmu'}"));
}

static void start_cpu(const Machine *cpu)
{
    const uint32_t args[] = { cpu_to_be32(cpu->cpu), 0, 0 };
    const uint64_t at = 1 << 20, result = at + sizeof(args);

    qtest_memwrite(cpu->qts, at, args, sizeof(args));
    qtest_rtas_call(cpu->qts, "start-cpu", G_N_ELEMENTS(args), at, 1, result);
    g_assert_cmpint(qtest_readl(cpu->qts, result), ==, 0);
    let_cpu_do_its_work(cpu);
}

/* A CPU that is started has an MSR of its own, in which PMM is 0. */
static void test_start_cpu(void)
{
    Machine m = start("-machine pseries -cpu " CPU " -smp 2");
    Machine other = { .qts = m.qts, .cpu = 1 };

    set_mode(&other, MODE_PRIVILEGED, true);
    mtspr(&other, SPR_MMCR0, MMCR0_FCM1);
    count(&other, PMU_TALLY_INSNS, MODE_PRIVILEGED, 10);
    assert_spr(&other, SPR_PMC5, 0);
    start_cpu(&other);
    count(&other, PMU_TALLY_INSNS, MODE_PRIVILEGED, 10);
    assert_spr(&other, SPR_PMC5, 10);
    stop(&m);
}

/* Counts cycles in which all threads of the core run, or any of them. */
static void assert_latches(Machine *m, unsigned all, unsigned any)
{
    freeze_and_clear(m);
    select_event(m, 1, 0x100fa);
    select_event(m, 2, 0x2000c);
    mtspr(m, SPR_MMCR0, 0);
    count(m, PMU_TALLY_CYCLES, MODE_PRIVILEGED, 10);
    assert_spr(m, SPR_PMC1, any);
    assert_spr(m, SPR_PMC2, all);
}

/* Threads run from start-cpu to stop-self. */
static void test_latches_of_started(void)
{
    Machine m = start("-machine pseries -cpu " CPU " -smp 2,threads=2");
    Machine other = { .qts = m.qts, .cpu = 1 };

    for (int turn = 0; turn < 2; turn++) {
        assert_latches(&m, 0, 10);
        start_cpu(&other);
        assert_latches(&m, 10, 10);
        assert_latches(&other, 10, 10);
        /* It is the first CPU's. */
        qtest_rtas_call(m.qts, "stop-self", 0, 0, 1, 0);
        assert_latches(&other, 0, 10);
        qtest_system_reset(m.qts);
        let_cpu_do_its_work(&m);
    }
    stop(&m);
}

/*
 * Event-based branches
 */

static void test_ebb(void)
{
    Machine m = ppc_start(CPU);

    mtspr(&m, SPR_BESCR, BESCR_GE | BESCR_PME);
    arm_two(&m, 10, 1000);
    mtspr(&m, SPR_MMCR0, MMCR0_PMAE | MMCR0_PMC1CE | MMCR0_EBE);
    count(&m, PMU_TALLY_INSNS, MODE_PROBLEM, 9);
    g_assert_false(pending(&m).ebb);
    count(&m, PMU_TALLY_INSNS, MODE_PROBLEM, 1);
    g_assert_true(pending(&m).ebb);
    g_assert_false(pending(&m).perfm);
    assert_spr(&m, SPR_BESCR, BESCR_GE | BESCR_PMEO);
    assert_spr(&m, SPR_MMCR0, MMCR0_PMAO | MMCR0_PMC1CE | MMCR0_EBE);
    mtspr(&m, SPR_BESCR, BESCR_GE);
    g_assert_false(pending(&m).ebb);
    stop(&m);
}

/* An alert while branches are disabled is not lost. */
static void test_ebb_disabled(void)
{
    Machine m = ppc_start(CPU);

    mtspr(&m, SPR_BESCR, BESCR_PME);
    mtspr(&m, SPR_MMCR0, MMCR0_FC | MMCR0_EBE | MMCR0_PMAO);
    assert_spr(&m, SPR_BESCR, BESCR_PMEO);
    g_assert_false(pending(&m).ebb);
    mtspr(&m, SPR_BESCR, BESCR_GE | BESCR_PMEO);
    g_assert_true(pending(&m).ebb);
    stop(&m);
}

static void test_ebb_exception_disabled(void)
{
    Machine m = ppc_start(CPU);

    mtspr(&m, SPR_BESCR, BESCR_GE);
    mtspr(&m, SPR_MMCR0, MMCR0_FC | MMCR0_EBE | MMCR0_PMAO);
    assert_spr(&m, SPR_BESCR, BESCR_GE);
    g_assert_false(pending(&m).ebb);
    mtspr(&m, SPR_BESCR, BESCR_GE | BESCR_PME);
    assert_spr(&m, SPR_BESCR, BESCR_GE | BESCR_PMEO);
    g_assert_true(pending(&m).ebb);
    stop(&m);
}

/* EBE decides which of the two an alert that has occurred causes. */
static void test_ebe(void)
{
    Machine m = ppc_start(CPU);

    mtspr(&m, SPR_MMCR0, MMCR0_FC | MMCR0_PMAO);
    g_assert_true(pending(&m).perfm);
    mtspr(&m, SPR_MMCR0, MMCR0_FC | MMCR0_PMAO | MMCR0_EBE);
    g_assert_false(pending(&m).perfm);
    mtspr(&m, SPR_BESCR, BESCR_GE | BESCR_PME);
    g_assert_true(pending(&m).ebb);
    stop(&m);
}

/*
 * Partitions
 */

#define H_PERFMON 0x7c

enum {
    H_SUCCESS = 0,
    H_PARAMETER = -4,
    H_RESOURCE = -16,
};

#define PERFMON_ENABLE      PPC_BIT(0)
#define PERFMON_GRANULARITY PPC_BIT(1)

static int64_t h_perfmon(Machine *m, uint64_t set, uint64_t reset,
                         uint64_t *modes)
{
    g_auto(GStrv) words = qtest_command(
        m->qts, 3, "vpmu_hcall %u 0x%x 0x%" PRIx64 " 0x%" PRIx64, m->cpu,
        H_PERFMON, set, reset);

    *modes = g_ascii_strtoull(words[2], NULL, 0);
    return g_ascii_strtoll(words[1], NULL, 0);
}

static const struct Perfmon {
    uint64_t set, reset;
    int64_t result;
    uint64_t modes; /* if successful */
} perfmons[] = {
    { 0, 0, H_SUCCESS, PERFMON_ENABLE },
    { PERFMON_ENABLE, 0, H_SUCCESS, PERFMON_ENABLE },
    { PERFMON_GRANULARITY, 0, H_RESOURCE },
    { BIT64(0), 0, H_PARAMETER },
    { 0, PPC_BIT(2), H_PARAMETER },
    { PERFMON_ENABLE, PERFMON_ENABLE, H_PARAMETER },
    { 0, PERFMON_GRANULARITY, H_SUCCESS, PERFMON_ENABLE },
    { 0, PERFMON_ENABLE, H_RESOURCE },
    { 0, PERFMON_ENABLE | PERFMON_GRANULARITY, H_RESOURCE },
    { 0, 0, H_SUCCESS, PERFMON_ENABLE },
};

static void test_perfmon(void)
{
    static const char *const without_pmu[] = { CPU ",pmu=off", "970_v2.2" };
    Machine m = ppc_start(CPU);
    uint64_t modes;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(perfmons); i++) {
        g_test_message("set 0x%" PRIx64 ", reset 0x%" PRIx64, perfmons[i].set,
                       perfmons[i].reset);
        g_assert_cmpint(h_perfmon(&m, perfmons[i].set, perfmons[i].reset,
                                  &modes), ==, perfmons[i].result);
        if (perfmons[i].result == H_SUCCESS) {
            g_assert_cmphex(modes, ==, perfmons[i].modes);
        }
    }
    stop(&m);
    for (i = 0; i < G_N_ELEMENTS(without_pmu); i++) {
        m = ppc_start(without_pmu[i]);
        g_assert_cmpint(h_perfmon(&m, PERFMON_ENABLE, 0, &modes), ==,
                        H_RESOURCE);
        stop(&m);
    }
}

/* The device tree of a machine; the caller frees it. */
static char *device_tree(const char *args, gsize *size)
{
    char *path = new_file();
    Machine m = start(args);
    char *dtb;

    qtest_qmp_assert_success(m.qts, "{'execute': 'dumpdtb',"
                             " 'arguments': {'filename': %s}}", path);
    stop(&m);
    g_assert_true(g_file_get_contents(path, &dtb, size, NULL));
    delete_file(path);
    return dtb;
}

/* Whether a partition's device tree has a property */
static bool device_tree_has(const char *cpu, const char *name)
{
    g_autofree char *args = ppc_args(cpu);
    gsize size;
    g_autofree char *dtb = device_tree(args, &size);

    return memmem(dtb, size, name, strlen(name) + 1);
}

static const struct Told {
    const char *cpu;
    bool has_pmu;
} told[] = {
    { CPU, true },
    { CPU ",pmu=off", false },
    { "POWER7", true },
    { "POWER7,pmu=off", false },
    { "970_v2.2", false },
    { "power5+_v2.1", false },
};

static void test_device_tree(void)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(told); i++) {
        g_test_message("%s", told[i].cpu);
        g_assert_cmpint(device_tree_has(told[i].cpu, "hcall-perfmon"), ==,
                        told[i].has_pmu);
        g_assert_cmpint(device_tree_has(told[i].cpu, "performance-monitor"),
                        ==, told[i].has_pmu);
    }
}

/* The value of a property, by the tokens of a flattened device tree. */
static const uint8_t *property(const char *dtb, gsize size, const char *name)
{
    const uint32_t strings = ldl_be_p(dtb + 12);
    const char *at = memmem(dtb + strings, size - strings, name,
                            strlen(name) + 1);
    uint32_t pos;

    g_assert_nonnull(at);
    for (pos = ldl_be_p(dtb + 8); pos + 12 <= size; pos += 4) {
        if (ldl_be_p(dtb + pos) == 3 /* a property */
            && ldl_be_p(dtb + pos + 8) == at - (dtb + strings)) {
            return (const uint8_t *)dtb + pos + 12;
        }
    }
    return NULL;
}

static const struct Promise {
    const char *args;
    uint8_t ebb, monitor;
} promises[] = {
    { "-machine pseries -cpu POWER9", 0xc0, 0x80 },
    { "-machine pseries -cpu POWER9,pmu=off", 0, 0 },
    { "-machine pseries -cpu POWER10", 0xc0, 0x80 },
    { "-machine pseries -cpu POWER10,pmu=off", 0, 0 },
    { "-machine powernv9", 0xc0, 0x80 },
    { "-machine powernv9 -cpu POWER9,pmu=off", 0, 0 },
    { "-machine powernv10 -cpu POWER10,pmu=off", 0, 0 },
};

/* ibm,pa-features has bytes 34 and 42, after two bytes of a header. */
static void test_pa_features(void)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(promises); i++) {
        gsize size;
        g_autofree char *dtb = device_tree(promises[i].args, &size);
        const uint8_t *features = property(dtb, size, "ibm,pa-features");

        g_test_message("%s", promises[i].args);
        g_assert_nonnull(features);
        g_assert_cmphex(features[2 + 34], ==, promises[i].ebb);
        g_assert_cmphex(features[2 + 42], ==, promises[i].monitor);
    }
}

/*
 * Life
 */

static const Kept states[] = {
    { SPR_MMCR0, MMCR0_FC }, { SPR_MMCR1, 0 }, { SPR_MMCR2, 0 },
    { SPR_MMCR3, 0 }, { SPR_MMCRA, 0 },
    { SPR_PMC1, 0 }, { SPR_PMC2, 0 }, { SPR_PMC3, 0 },
    { SPR_PMC4, 0 }, { SPR_PMC5, 0 }, { SPR_PMC6, 0 },
    { SPR_SIAR, 0 }, { SPR_SDAR, 0 },
    { SPR_SIER, 0 }, { SPR_SIER2, 0 }, { SPR_SIER3, 0 },
};

/* Change every state from its reset value; count, and leave PMC1 negative. */
static void keep_busy(Machine *m)
{
    unsigned i;

    set_run(m, true);
    for (i = 0; i < G_N_ELEMENTS(states); i++) {
        if (states[i].reg != SPR_MMCR0) {
            mtspr(m, states[i].reg, 0x1230000 + i);
        }
    }
    mtspr(m, SPR_MMCR1, 0x02021e1e);
    mtspr(m, SPR_MMCR2, MMCR2_FIELD(FCNP0, 2));
    mtspr(m, SPR_MMCR3, 0x123456789abcdef0);
    mtspr(m, SPR_PMC1, NEGATIVE - 10);
    mtspr(m, SPR_MMCR0, MMCR0_PMCJCE | MMCR0_PMAE | MMCR0_FCECE);
    count(m, PMU_TALLY_INSNS, MODE_PRIVILEGED, 11);
    count(m, PMU_TALLY_CYCLES, MODE_PROBLEM, 77);
}

/* An alert's interrupt or branch is still pending after migration. */
static void check_pending_migrates(uint64_t mmcr0)
{
    g_autofree char *args = ppc_args(CPU);
    Machine m = ppc_start(CPU);
    Pending before, after;

    mtspr(&m, SPR_BESCR, BESCR_GE | BESCR_PME);
    mtspr(&m, SPR_MMCR0, MMCR0_FC | MMCR0_PMAO | mmcr0);
    before = pending(&m);
    migrate_machine(&m, args);
    after = pending(&m);
    g_assert_true(before.perfm || before.ebb);
    g_assert_cmpint(before.perfm, ==, after.perfm);
    g_assert_cmpint(before.ebb, ==, after.ebb);
    assert_spr(&m, SPR_BESCR, before.ebb ? BESCR_GE | BESCR_PMEO
                                         : BESCR_GE | BESCR_PME);
    stop(&m);
}

static void test_pending_migrates(void)
{
    check_pending_migrates(0);
    check_pending_migrates(MMCR0_EBE);
}

/* The target's earlier counters cause no alert. */
static void test_migration_onto_counters(void)
{
    g_autofree char *args = ppc_args(CPU);
    Machine m = ppc_start(CPU), to = start_incoming(args);

    set_mode(&to, MODE_PRIVILEGED, true);
    mtspr(&to, SPR_PMC2, NEGATIVE);
    set_mode(&m, MODE_PRIVILEGED, false);
    mtspr(&m, SPR_MMCR0, MMCR0_FCM1 | MMCR0_PMCJCE | MMCR0_PMAE);
    mtspr(&m, SPR_PMC2, 5);
    migrate_to(&m, to);
    assert_spr(&m, SPR_MMCR0, MMCR0_FCM1 | MMCR0_PMCJCE | MMCR0_PMAE);
    assert_spr(&m, SPR_PMC2, 5);
    g_assert_false(pending(&m).perfm);
    stop(&m);
}

/* POWER7 has neither MMCR2 nor a BHRB, on which the other test relies. */
static void test_refused_from_power7(void)
{
    g_autofree char *without = ppc_args("POWER7,pmu=off");
    g_autofree char *message = NULL;
    Machine m = ppc_start("POWER7");

    mtspr(&m, SPR_MMCR1, 0x202);
    message = refuse_prepared(&m, without, NULL);
    g_assert_nonnull(strstr(message, "pmu=on"));
}

/* A reset also ends a pending alert. */
static void test_reset_of_pending(void)
{
    Machine m = ppc_start(CPU);

    mtspr(&m, SPR_BESCR, BESCR_GE | BESCR_PME);
    mtspr(&m, SPR_MMCR0, MMCR0_FC | MMCR0_PMAO);
    g_assert_true(pending(&m).perfm);
    qtest_system_reset(m.qts);
    g_assert_false(pending(&m).perfm);
    assert_spr(&m, SPR_BESCR, 0);
    stop(&m);
}

static const Mismatch mismatches[] = {
    { "no-pmu", CPU, CPU ",pmu=off", "pmu=on" },
};

static const Refusal refusals[] = {
    { "POWER9,pmu-cycles=guess", "pmu-cycles=guess",
      "Allowed: instructions or time" },
    { "POWER9,pmu-cpi=999", "pmu-cpi=999", "Allowed: 1000 to" },
    { "POWER9,pmu-cycles=time,pmu-frequency=1", "pmu-frequency=1",
      "Allowed: 1000000 to" },
    { "POWER9,pmu-frequency=1000000000", "pmu-frequency", "pmu-cycles=time" },
    { "POWER9,pmu-cycles=time,pmu-cpi=1000", "pmu-cpi",
      "pmu-cycles=instructions" },
    { "POWER9,pmu=off,pmu-cycles=time", "pmu-cycles", "pmu=on" },
    { "970_v2.2,pmu-cpi=1000", "pmu-cpi", "Choose POWER7 or later" },
    { "POWER9,pmu-core=missing", "pmu-core 'missing'",
      "-object pmu-core,id=missing" },
    { "POWER9,pmu-core=missing,pmu-cpi=2000", "pmu-cpi", "insn-cycles" },
};

/*
 * Implementation of struct Face
 */

static uint64_t face_read_register(Machine *m, uint32_t reg)
{
    return mfspr(m, reg);
}

static void face_hotplug(Machine *m)
{
    qtest_qmp_device_add(m->qts, "power10_v2.0-spapr-cpu-core", "late",
                         "{'core-id': 1}");
}

static void face_prepare(Machine *m)
{
    set_run(m, true);
}

static void face_select(Machine *m, unsigned counter, uint64_t event,
                        unsigned flags)
{
    unsigned pmc = counter + 1;
    uint64_t ce = pmc == 1 ? MMCR0_PMC1CE : MMCR0_PMCJCE;
    uint64_t user = MMCR2_FIELD(FCNP0, pmc);
    uint64_t kernel = MMCR2_FIELD(FCNS, pmc) | MMCR2_FIELD(FCNH, pmc);

    select_event(m, pmc, event);
    clear_bits(m, SPR_MMCR2, user | kernel);
    set_bits(m, SPR_MMCR2, (flags & COUNT_USER ? 0 : user)
                           | (flags & COUNT_KERNEL ? 0 : kernel));
    if (flags & INTERRUPT) {
        set_bits(m, SPR_MMCR0, ce | MMCR0_PMAE);
    }
}

static void face_start(Machine *m)
{
    mtspr(m, SPR_MMCR0, (mfspr(m, SPR_MMCR0) & ~MMCR0_FC) | MMCR0_FC56);
}

static void face_stop(Machine *m)
{
    set_bits(m, SPR_MMCR0, MMCR0_FC);
}

static void face_freeze_on_overflow(Machine *m)
{
    set_bits(m, SPR_MMCR0, MMCR0_FCECE);
}

static uint64_t face_read(Machine *m, unsigned counter)
{
    return mfspr(m, spr_of(counter + 1));
}

static void face_write(Machine *m, unsigned counter, uint64_t val)
{
    mtspr(m, spr_of(counter + 1), val);
}

static unsigned face_overflowed(Machine *m)
{
    unsigned set = 0, i;

    for (i = 0; i < NR_PMCS; i++) {
        if (face_read(m, i) & NEGATIVE) {
            set |= BIT64(i);
        }
    }
    return set;
}

static bool face_interrupted(Machine *m)
{
    bool perfm = pending(m).perfm;

    if (perfm) {
        clear_bits(m, SPR_MMCR0, MMCR0_PMAO);
    }
    return perfm;
}

static void face_rearm(Machine *m)
{
    mtspr(m, SPR_MMCR0, (mfspr(m, SPR_MMCR0) & ~(MMCR0_FC | MMCR0_PMAO))
                        | MMCR0_PMAE);
}

/*
 * Monitor
 */

/* Bits that are set, and the reasons shown for a stopped counter */
static const struct Stopped {
    uint64_t mmcr0;
    unsigned mmcr2; /* bits of the counter's field, from the left */
    unsigned pmc;
    bool pmm, wait;
    const char *by;
} stopped[] = {
    { 0, 0, 1, .by = "" },
    { 0, 0, 5, .by = "" },
    { MMCR0_FC, 0, 1, .by = "FC" },
    { MMCR0_FCS | MMCR0_FCP | MMCR0_FCH, 0, 6, .by = "FCS FCP FCH" },
    { MMCR0_FCP | MMCR0_FCPC, 0, 1, .by = "FCP" },
    { MMCR0_FCPC, 0, 1, .by = "FCPC" },
    { MMCR0_FCM1 | MMCR0_FCM0, 0, 1, .pmm = true, .by = "FCM1" },
    { MMCR0_FCM1 | MMCR0_FCM0, 0, 1, .by = "FCM0" },
    { MMCR0_TRIGGER, 0, 1, .by = "" },
    { MMCR0_TRIGGER, 0, 2, .by = "TRIGGER" },
    { MMCR0_FC14 | MMCR0_FC56, 0, 4, .by = "FC1-4" },
    { MMCR0_FC14 | MMCR0_FC56, 0, 5, .by = "FC5-6" },
    { MMCR0_FC14WAIT, 0, 1, .by = "" },
    { MMCR0_FC14WAIT, 0, 1, .wait = true, .by = "FC1-4WAIT" },
    { 0, 0, 1, .wait = true, .by = "" },
    { 0, 0, 5, .wait = true, .by = "run-latch" },
    { MMCR0_CC56RUN, 0, 5, .wait = true, .by = "" },
    { 0, 1 << FCNS | 1 << FCNP0 | 1 << FCNP1 | 1 << FCNH, 3,
      .by = "FC3S FC3P0 FC3P1 FC3H" },
    { 0, 1 << FCNM1 | 1 << FCNM0, 6, .pmm = true, .by = "FC6M1" },
    { 0, 1 << FCNM1 | 1 << FCNM0, 1, .by = "FC1M0" },
    { 0, 1 << FCNWAIT, 2, .by = "" },
    { 0, 1 << FCNWAIT, 2, .wait = true, .by = "FC2WAIT" },
    { MMCR0_FC | MMCR0_PMCC(3), 1 << FCNS, 5, .by = "" },
    { MMCR0_PMCC(3), 0, 5, .wait = true, .by = "run-latch" },
    { MMCR0_PMCC(3) | MMCR0_CC56RUN, 0, 5, .wait = true, .by = "run-latch" },
};

static void check_stopped(Machine *m, const struct Stopped *s)
{
    uint64_t mmcr2 = 0;

    for (unsigned n = FCNS; n <= FCNH; n++) {
        mmcr2 |= s->mmcr2 & 1 << n ? MMCR2_FIELD(n, s->pmc) : 0;
    }
    g_test_message("MMCR0 0x%" PRIx64 ", MMCR2 0x%" PRIx64, s->mmcr0, mmcr2);
    set_mode(m, MODE_PRIVILEGED, s->pmm);
    set_run(m, !s->wait);
    mtspr(m, SPR_MMCR0, s->mmcr0);
    mtspr(m, SPR_MMCR2, mmcr2);
    assert_stopped_by(m, s->pmc - 1, s->by);
}

static void test_stopped(void)
{
    Machine m = ppc_start(CPU);

    for (unsigned pmc = 1; pmc <= 4; pmc++) {
        select_event(&m, pmc, 0x02);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(stopped); i++) {
        check_stopped(&m, &stopped[i]);
    }
    stop(&m);
}

/* Recording begins when a program uses the BHRB; POWER7 has no BHRB. */
static void test_shown_records(void)
{
    Machine m = ppc_start(CPU);
    QDict *cpu, *records;

    mtspr(&m, SPR_MMCR0, MMCR0_PMAE);
    cpu = query_cpu(&m);
    records = qdict_get_qdict(qdict_get_qdict(cpu, "pmu"), "records");
    g_assert_cmpint(get_uint(records, "depth"), ==, 32);
    assert_words(records, "modes", "");
    g_assert_false(qdict_get_bool(records, "call-stack"));
    qobject_unref(cpu);
    stop(&m);
    m = ppc_start("POWER7");
    cpu = query_cpu(&m);
    g_assert_false(qdict_haskey(qdict_get_qdict(cpu, "pmu"), "records"));
    qobject_unref(cpu);
    stop(&m);
}

/* An event that counts only while the run latch is set */
static void test_stopped_by_latch(void)
{
    Machine m = ppc_start(CPU);

    select_event(&m, 2, 0x200f4);
    mtspr(&m, SPR_MMCR0, 0);
    assert_stopped_by(&m, 1, "");
    set_run(&m, false);
    assert_stopped_by(&m, 1, "run-latch");
    stop(&m);
}

static void test_pending_branch(void)
{
    Machine m = ppc_start(CPU);
    QDict *cpu;

    mtspr(&m, SPR_BESCR, BESCR_GE | BESCR_PME);
    mtspr(&m, SPR_MMCR0, MMCR0_EBE | MMCR0_PMAO);
    cpu = query_cpu(&m);
    assert_words(qdict_get_qdict(cpu, "pmu"), "pending",
                 "event-based-branch");
    qobject_unref(cpu);
    stop(&m);
}

static void add_registers(void)
{
    static const char *const machines[] = {
        "powernv8", "powernv9", "powernv10",
    };
    static const char *const cpus[] = {
        "POWER7", "POWER8", "POWER9", "POWER10", "POWER11",
    };
    unsigned i;

    add("bits", test_bits);
    add("aliases", test_aliases);
    add("read-only-aliases", test_read_only_aliases);
    add("access/problem-state", test_access);
    add("access/visible-bits", test_visible);
    add("access/visible-sier", test_visible_sier);
    for (i = 0; i < G_N_ELEMENTS(machines); i++) {
        add_data("access/hfscr", machines[i], machines[i], test_hfscr);
    }
    add("no-pmu/off", test_no_pmu);
    add("no-pmu/power7", test_no_pmu_power7);
    add("count/run-latch", test_run_latch);
    add("count/run-latch-at-reset", test_run_latch_at_reset);
    for (i = 0; i < G_N_ELEMENTS(cores); i++) {
        add_data("count/core-latches", cores[i].name, &cores[i],
                 test_core_latches);
    }
    add("count/marked", test_marked);
    add("count/states", test_states);
    add("count/source", test_source);
    for (i = 0; i < G_N_ELEMENTS(cpus); i++) {
        add_data("count/executed", cpus[i], cpus[i], test_executed);
    }
    add_data("count/threads", "pseries", "pseries", test_threads);
    add_data("count/threads", "powernv9", "powernv9", test_threads);
}

static void add_alerts(void)
{
    unsigned i;

    add("alert/conditions", test_conditions);
    add("alert/level", test_level);
    add("alert/pmao", test_pmao);
    add("alert/clears-pmae", test_alert_clears_pmae);
    add("alert/freeze-without-alert", test_freeze_without_alert);
    add("alert/no-freeze-without-condition", test_no_freeze_without_condition);
    add("alert/samples", test_samples);
    add("alert/sample-power7", test_sample_power7);
    add("trigger/ends", test_trigger);
    add("trigger/then-freeze", test_trigger_then_freeze);
    add("trigger/without-freeze", test_trigger_without_freeze);
    add("trigger/ended-and-migrated", test_ended_trigger_migrates);
    add("trigger/ended-and-state", test_ended_trigger_and_state);
    add("trigger/ended-and-others", test_ended_trigger_and_others);
    add("trigger/ended-and-writes", test_ended_trigger_and_writes);
    add("trigger/ended-and-mmcr0", test_ended_trigger_and_mmcr0);
    for (i = 0; i < G_N_ELEMENTS(time_bases); i++) {
        add_data("time-base", time_bases[i].name, &time_bases[i],
                 test_time_base);
    }
    add("time-base/off", test_time_base_off);
    add("time-base/frozen", test_time_base_frozen);
    add("start-cpu", test_start_cpu);
    add("run-latches", test_latches_of_started);
    add("ebb/pending", test_ebb);
    add("ebb/disabled", test_ebb_disabled);
    add("ebb/exception-disabled", test_ebb_exception_disabled);
    add("ebb/ebe", test_ebe);
}

static void add_cases(void)
{
    add_ppc_freeze_cases();
    add_registers();
    add_alerts();
    add("perfmon/hcall", test_perfmon);
    add("perfmon/device-tree", test_device_tree);
    add("perfmon/pa-features", test_pa_features);
    add("monitor/stopped", test_stopped);
    add("monitor/stopped-by-latch", test_stopped_by_latch);
    add("monitor/records", test_shown_records);
    add("monitor/pending-branch", test_pending_branch);
    add("migration/pending", test_pending_migrates);
    add("migration/onto-counters", test_migration_onto_counters);
    add("migration/refused-from-power7", test_refused_from_power7);
    add("reset-of-pending", test_reset_of_pending);
}

const Face ppc_face = {
    .name = "power",
    .cpu = CPU,
    .full_cpu = CPU,
    .cpu_without = CPU ",pmu=off",
    .user = MODE_PROBLEM,
    .kernel = MODE_PRIVILEGED,
    .user_modes = BIT64(MODE_PROBLEM) | BIT64(MODE_PROBLEM_OF_HV),
    .nr_modes = NR_MODES,
    .width = 32,
    .overflow_at = NEGATIVE,
    .insns = 0x02,
    .cycles = 0x1e,
    .unknown = 0x100f8,
    .unknown_message = "event 0x100f8",
    .kind = "power10",
    .vendor = "ibm",
    .nr_shown = NR_PMCS,
    .counter_name = "PMC1",
    .shown_insns = 0x10002,
    .shown_modes = {
        "problem hypervisor-problem",
        "privileged hypervisor",
        "problem privileged hypervisor-problem hypervisor",
        "",
    },
    .shown_pending = "performance-monitor",
    .event_tables = event_tables,
    .nr_event_tables = G_N_ELEMENTS(event_tables),
    .states = states,
    .nr_states = G_N_ELEMENTS(states),
    .mismatches = mismatches,
    .nr_mismatches = G_N_ELEMENTS(mismatches),
    .refusals = refusals,
    .nr_refusals = G_N_ELEMENTS(refusals),

    .add_cases = add_cases,
    .counter_of = face_counter_of,
    .args = ppc_args,
    .hotplug = face_hotplug,
    .read_register = face_read_register,
    .write_register = mtspr,
    .prepare = face_prepare,
    .select = face_select,
    .start = face_start,
    .stop = face_stop,
    .freeze_on_overflow = face_freeze_on_overflow,
    .read = face_read,
    .write = face_write,
    .overflowed = face_overflowed,
    .interrupted = face_interrupted,
    .rearm = face_rearm,
    .keep_busy = keep_busy,
};
