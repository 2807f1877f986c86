/*
 * Suite domain: two domains of a hypervisor, each with its own PMU
 *
 * Each domain counts exactly its own instructions, despite switches at
 * hypercalls, and at interrupts of HDEC, which come at random times.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "hypervisor.h"

static struct domain domains[NR_DOMAINS];
static struct area areas[NR_DOMAINS];

/* Turns of a domain end within some microseconds. */
#define TICKS 3000

/* The number of turns that HDEC has to end in its test */
#define ENOUGH 100

/* ---- Counts --------------------------------------------------------- */

/*
 * The kernel asks for the PMU, and starts it with r16 and r14.  The program
 * makes r4 turns, and calls hypervisor and kernel at random.
 */
CODE("domain_mixed:\n"
     "    li r3, 1\n"
     "    li r0, 0x7e61\n"              /* CALL_PERF */
     "    sc 1\n"
     "    mtspr 785, r16\n"
     "    mtspr 795, r14\n"
     "    mtctr r4\n"                   /* 6 of the kernel */
     "    mfmsr r6\n"
     "    ori r6, r6, 0xc030\n"
     "    mtsrr1 r6\n"
     "    mtsrr0 r17\n"
     "    rfid\n"
     "domain_mixed_user:\n"
     "1:  mulld r5, r5, r8\n"           /* 6 a turn */
     "    add r5, r5, r9\n"
     "    rldicl r6, r5, 8, 60\n"
     "    cmpdi r6, 2\n"
     "    bgt 3f\n"
     "    beq 2f\n"
     "    li r0, 0x7e60\n"              /* CALL_YIELD: 5 with beq */
     "    sc 1\n"
     "    nop\n"
     "    b 3f\n"
     "2:  li r0, 0x7e59\n"              /* CALL_NOTHING: 4 with beq */
     "    sc\n"
     "    nop\n"
     "3:  bdnz 1b\n"
     "    li r0, 0x7e62\n"              /* CALL_DONE */
     "    sc 1\n");
code_fn domain_mixed;
LABEL(domain_mixed_user);

#define FACTOR  6364136223846793005
#define ADDEND  1442695040888963407

struct mixed {
    uint64_t kernel, user, yields;
};

static struct mixed simulate(uint64_t seed, unsigned turns)
{
    struct mixed m = { .kernel = 6, .user = 2 };

    while (turns--) {
        unsigned chosen;

        seed = seed * FACTOR + ADDEND;
        chosen = seed >> 56 & 15;
        m.user += 6;
        if (chosen < 2) {
            m.user += 5;
            m.yields++;
        } else if (chosen == 2) {
            m.user += 4;
            m.kernel += DOMAIN_NOTHING_INSNS;
        }
    }
    return m;
}

static void init_mixed(unsigned i, uint64_t seed, unsigned turns)
{
    struct domain *d = &domains[i];

    domain_init(d, i + 1, STATE_PRIV, domain_mixed, 0, &areas[i]);
    d->regs.gpr[4] = turns;
    d->regs.gpr[5] = seed;
    d->regs.gpr[8] = FACTOR;
    d->regs.gpr[9] = ADDEND;
    d->regs.gpr[14] = MMCR0_FCH;
    d->regs.gpr[16] = MMCR2_FIELD(FCNP0, 5) | MMCR2_FIELD(FCNS, 6);
    d->regs.gpr[17] = (uint64_t)domain_mixed_user;
}

static void expect_mixed(unsigned i, uint64_t seed, unsigned turns)
{
    struct mixed m = simulate(seed, turns);
    const struct domain *d = &domains[i];

    expect(d->yields, m.yields, "domain %u, seed %lu: yields", i, seed);
    expect(d->pmu.pmc[4], m.kernel, "domain %u, seed %lu: its kernel", i,
           seed);
    expect(d->pmu.pmc[5], m.user, "domain %u, seed %lu: its program", i,
           seed);
    expect(d->bad, false, "domain %u: is bad", i);
}

static void expect_counts_of_both(unsigned ticks)
{
    domains_prepare();
    for (unsigned trial = 0; trial < 20; trial++) {
        uint64_t seed[] = { random(), random() };
        unsigned turns[] = { 1 + random() % 1000, 1 + random() % 1000 };

        for (unsigned i = 0; i < NR_DOMAINS; i++) {
            init_mixed(i, seed[i], turns[i]);
        }
        domains_run(domains, ticks);
        for (unsigned i = 0; i < NR_DOMAINS; i++) {
            expect_mixed(i, seed[i], turns[i]);
        }
    }
}

TEST(domain, hypercalls)
{
    expect_counts_of_both(0);
}

TEST(domain, hypercalls_and_timer)
{
    expect_counts_of_both(TICKS);
}

/* Run until HDEC has ended r5 turns, as counted at the address in r4. */
CODE("domain_spin:\n"
     "    li r7, 0\n"
     "1:  ld r6, 0(r4)\n"
     "    addi r7, r7, 1\n"
     "    cmpld r6, r5\n"
     "    blt 1b\n"
     "    li r0, 0x7e62\n"
     "    sc 1\n");
code_fn domain_spin;

TEST(domain, timer)
{
    domains_prepare();
    for (unsigned i = 0; i < NR_DOMAINS; i++) {
        domain_init(&domains[i], i + 1, i ? STATE_PROBLEM : STATE_PRIV,
                    domain_spin, 0, &areas[i]);
        domains[i].regs.gpr[4] = (uint64_t)&domains[i].preempted;
        domains[i].regs.gpr[5] = ENOUGH;
        domain_use_pmu(&domains[i], MMCR0_FCH);
    }
    domains_run(domains, TICKS);
    for (unsigned i = 0; i < NR_DOMAINS; i++) {
        uint64_t want = 1 + 4 * domains[i].regs.gpr[7] + 2;

        expect(domains[i].pmu.pmc[4], want, "domain %u: instructions", i);
        expect(domains[i].pmu.pmc[5], want, "domain %u: cycles", i);
    }
}

/* ---- Alerts --------------------------------------------------------- */

/* r4 turns, each of which yields. */
CODE("domain_yielding:\n"
     "    mtctr r4\n"
     "1:  nop\n"
     "    li r0, 0x7e60\n"
     "    sc 1\n"
     "    bdnz 1b\n"
     "    li r0, 0x7e62\n"
     "    sc 1\n");
code_fn domain_yielding;

#define TURN 4
#define YIELDING_INSNS(turns) (1 + TURN * (turns) + 2)

/* The address of the program's @n-th instruction, from 1 */
static uint64_t yielding_address(uint64_t n, uint64_t turns)
{
    uint64_t place = n == 1 ? 0 :
                     n <= 1 + TURN * turns ? 1 + (n - 2) % TURN :
                     n - TURN * (turns - 1) - 1;

    return (uint64_t)domain_yielding + 4 * place;
}

static void init_yielding(unsigned i, uint64_t turns, uint64_t mmcr0,
                          uint64_t pmc5)
{
    domain_init(&domains[i], i + 1, STATE_PROBLEM, domain_yielding, 0,
                &areas[i]);
    domains[i].regs.gpr[4] = turns;
    domain_use_pmu(&domains[i], mmcr0);
    domains[i].pmu.pmc[4] = pmc5;
    areas[i].reload = pmc5;
    areas[i].mmcr0 = mmcr0;
    areas[i].count = 0;
}

#define SAMPLING (MMCR0_ALERT | MMCR0_FCECE | MMCR0_FCS | MMCR0_FCH)

static void expect_alerts(unsigned i, uint64_t turns, unsigned period)
{
    const struct area *area = &areas[i];
    uint64_t total = YIELDING_INSNS(turns);

    /* After its last instruction, no alert can come. */
    expect(area->count, (total - 1) / period, "domain %u, period %u: alerts",
           i, period);
    for (uint64_t k = 1; k <= area->count && k <= MAX_ALERTS; k++) {
        expect(area->alerts[k - 1].siar, yielding_address(k * period, turns),
               "domain %u, period %u, alert %lu: SIAR", i, period, k);
        expect(area->alerts[k - 1].nip,
               yielding_address(k * period + 1, turns),
               "domain %u, period %u, alert %lu: SRR0", i, period, k);
    }
    expect(!!(domains[i].pmu.mmcr0 & MMCR0_PMAO), total % period == 0,
           "domain %u, period %u: alert in the end", i, period);
}

static void expect_alerts_of_both(unsigned ticks)
{
    domains_prepare();
    for (unsigned period = 1; period <= 41; period++) {
        const unsigned turns[] = { 50, 37 };
        const unsigned periods[] = { period, 1 + period * 7 % 43 };

        for (unsigned i = 0; i < NR_DOMAINS; i++) {
            init_yielding(i, turns[i], SAMPLING, PMC_NEGATIVE - periods[i]);
        }
        domains_run(domains, ticks);
        for (unsigned i = 0; i < NR_DOMAINS; i++) {
            expect_alerts(i, turns[i], periods[i]);
        }
    }
}

TEST(domain, alerts)
{
    expect_alerts_of_both(0);
}

TEST(domain, alerts_and_timer)
{
    expect_alerts_of_both(TICKS);
}

/* The same, until the domain is ready for its alert. */
CODE("domain_masked:\n"
     "    mtctr r4\n"
     "1:  nop\n"
     "    li r0, 0x7e60\n"
     "    sc 1\n"
     "    bdnz 1b\n"
     "    mfmsr r6\n"
     "    ori r6, r6, 0x8000\n"
     "    mtmsrd r6, 1\n"
     "domain_unmasked:\n"
     "    nop\n"
     "    li r0, 0x7e62\n"
     "    sc 1\n");
code_fn domain_masked;
LABEL(domain_unmasked);

/* A pending alert waits for its domain, and is not given to the other one. */
TEST(domain, alert_waits)
{
    const unsigned turns = 9;

    domains_prepare();
    for (unsigned n = 1; n <= 1 + TURN * turns; n++) {
        uint64_t siar = (uint64_t)domain_masked
                        + (n == 1 ? 0 : 4 * (1 + (n - 2) % TURN));

        init_yielding(0, turns, SAMPLING & ~MMCR0_FCS, PMC_NEGATIVE - n);
        domains[0].regs.nip = (uint64_t)domain_masked;
        domains[0].regs.msr = STATE_PRIV;
        areas[0].mmcr0 = MMCR0_FC | MMCR0_FCH;
        init_yielding(1, turns, SAMPLING, 0);
        domains_run(domains, 0);
        expect(areas[0].count, 1, "%u: alerts", n);
        expect(areas[0].alerts[0].siar, siar, "%u: SIAR", n);
        expect(areas[0].alerts[0].nip, (uint64_t)domain_unmasked, "%u: SRR0",
               n);
        expect(areas[1].count, 0, "%u: alerts of the other", n);
        expect(domains[1].pmu.pmc[4], YIELDING_INSNS(turns),
               "%u: instructions of the other", n);
    }
}

/* ---- Bad domains ---------------------------------------------------- */

/* Code that breaks the rules, in each turn of a domain */
CODE("domain_good:\n"
     "    mtspr 795, r14\n"
     "    li r0, 0x7e60\n"
     "    sc 1\n"
     "    bdnz domain_good\n"
     "    li r0, 0x7e62\n"
     "    sc 1\n"
     "domain_marked:\n"
     "    mfmsr r6\n"
     "    ori r6, r6, 4\n"
     "    mtmsrd r6\n"
     "    li r0, 0x7e60\n"
     "    sc 1\n"
     "    bdnz domain_marked\n"
     "    li r0, 0x7e62\n"
     "    sc 1\n");
code_fn domain_good, domain_marked;

static void expect_neighbour(const char *name)
{
    const unsigned turns = 20;

    init_yielding(1, turns, SAMPLING, PMC_NEGATIVE - 7);
    domains_run(domains, 0);
    expect_alerts(1, turns, 7);
    expect(domains[1].bad, false, "%s: its neighbour is bad", name);
}

TEST(domain, bad)
{
    static const struct {
        const char *name;
        code_fn *fn;
        bool perf;
        uint64_t mmcr0;
        bool bad;
    } cases[] = {
        { "counts", domain_good, true, MMCR0_FCH, false },
        { "counts no more", domain_good, false, MMCR0_FC, false },
        { "counts the hypervisor", domain_good, true, 0, true },
        { "counts unasked", domain_good, false, MMCR0_FCH, true },
        { "is marked", domain_marked, false, MMCR0_FC, true },
        { "is marked, and counts", domain_marked, true, MMCR0_FCH, false },
        { "alerts the hypervisor", domain_good, true,
          MMCR0_PMAE | MMCR0_PMAO, true },
        { "alerts unasked", domain_good, false, MMCR0_PMAE | MMCR0_PMAO,
          true },
        { "overflows unasked", domain_good, false,
          MMCR0_ALERT | MMCR0_FCECE, true },
    };

    domains_prepare();
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        domain_init(&domains[0], 1, STATE_PRIV, cases[i].fn, 0, &areas[0]);
        domains[0].perf = cases[i].perf;
        domains[0].regs.ctr = 10;
        domains[0].regs.gpr[14] = cases[i].mmcr0;
        domains[0].pmu.mmcr0 = MMCR0_FC | MMCR0_FCH;
        expect_neighbour(cases[i].name);
        expect(domains[0].bad, cases[i].bad, "%s: is bad", cases[i].name);
    }
}

/* The domain writes to all registers; the other domain's are unchanged. */
CODE("domain_vandal:\n"
     "    mtspr 785, r15\n"
     "    mtspr 786, r15\n"
     "    mtspr 787, r15\n"
     "    mtspr 788, r15\n"
     "    mtspr 789, r15\n"
     "    mtspr 790, r15\n"
     "    mtspr 791, r15\n"
     "    mtspr 792, r15\n"
     "    mtspr 796, r15\n"
     "    mtspr 797, r15\n"
     "    mtspr 798, r15\n"
     "    b domain_good\n");
code_fn domain_vandal;

TEST(domain, vandal)
{
    domains_prepare();
    for (unsigned i = 0; i < 2; i++) {
        domain_init(&domains[0], 1, STATE_PRIV, domain_vandal, 0, &areas[0]);
        domains[0].perf = i;
        domains[0].regs.ctr = 10;
        domains[0].regs.gpr[14] = 0;
        domains[0].regs.gpr[15] = -1ull;
        domains[0].pmu.mmcr0 = MMCR0_FC | MMCR0_FCH;
        expect_neighbour("vandal");
        expect(domains[0].bad, true, "%u: is bad", i);
    }
}

/* ---- Passive domains ------------------------------------------------ */

/* Each turn looks for a PMU. */
CODE("domain_probing:\n"
     "    mtctr r4\n"
     "1:  nop\n"
     "    mfspr r3, 791\n"      /* refused, so it does not complete */
     "    add r5, r5, r3\n"
     "    bdnz 1b\n"
     "    li r0, 0x7e62\n"
     "    sc 1\n");
code_fn domain_probing;

/*
 * The hypervisor counts a domain without access, next to one that counts
 * itself.
 */
TEST(domain, passive)
{
    const unsigned turns = 200;

    domains_prepare();
    domain_init(&domains[0], 1, STATE_PRIV, domain_probing, 0, &areas[0]);
    domains[0].regs.gpr[4] = turns;
    domains[0].passive = true;
    domains[0].pmu.mmcr0 = MMCR0_FCH;
    init_mixed(1, 4711, turns);
    domains_run(domains, TICKS);
    expect(domains[0].pmu.pmc[4], 1 + 3 * turns + 2, "instructions");
    expect(domains[0].regs.gpr[5], 0, "what it has seen");
    expect(domains[0].refused, turns, "accesses");
    expect(domains[0].bad, false, "is bad");
    expect_mixed(1, 4711, turns);
}

/* The hypervisor finds the alerts of a domain that takes no interrupts. */
static uint64_t passive_samples[MAX_ALERTS];
static unsigned passive_count;
static uint64_t passive_period;

static void take_sample(struct domain *domain)
{
    if (domain->pmu.mmcr0 & MMCR0_PMAO && passive_count < MAX_ALERTS) {
        passive_samples[passive_count++] = domain->pmu.siar;
        domain->pmu.pmc[4] = PMC_NEGATIVE - passive_period;
        domain->pmu.mmcr0 = SAMPLING & ~MMCR0_FCS;
    }
}

TEST(domain, passive_samples)
{
    const unsigned turns = 50;

    domains_prepare();
    for (passive_period = 1; passive_period <= TURN; passive_period++) {
        passive_count = 0;
        init_yielding(0, turns, SAMPLING & ~MMCR0_FCS,
                      PMC_NEGATIVE - passive_period);
        domains[0].regs.msr = STATE_PRIV;
        domains[0].perf = false;
        domains[0].passive = true;
        domains[0].sampled = take_sample;
        init_yielding(1, turns, SAMPLING, PMC_NEGATIVE - 5);
        domains_run(domains, 0);
        /* One sample in each turn; in the last, if it is long enough */
        expect(passive_count,
               (YIELDING_INSNS(turns) - passive_period) / TURN + 1,
               "period %lu: samples", passive_period);
        for (unsigned k = 0; k < passive_count; k++) {
            uint64_t n = k * TURN + passive_period;

            expect(passive_samples[k], yielding_address(n, turns),
                   "period %lu, sample %u: SIAR", passive_period, k);
        }
        expect(areas[0].count, 0, "period %lu: alerts of the domain",
               passive_period);
        expect_alerts(1, turns, 5);
    }
}
