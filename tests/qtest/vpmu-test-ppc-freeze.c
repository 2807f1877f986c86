/*
 * QTest of the virtual PMU: Power's freeze bits
 *
 * Power ISA 3.1B, book III, "Monitor Mode Control Register 0" and "2".
 *
 * Tables say which counters each bit freezes.  For each bit, the CPU goes
 * through all its states (privilege, MSR[PMM], CTRL[RUN]), and all counters are
 * checked.  In the state numbered N, 2^N instructions and cycles happen, so
 * that the final value of a counter is the set of states in which it moved.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "vpmu-test-ppc.h"

/*
 * The tables
 */

/* Privilege states */
#define PROB    BIT64(MODE_PROBLEM)       /* MSR[HV PR] = 0b01 */
#define PRIV    BIT64(MODE_PRIVILEGED)    /* MSR[HV PR] = 0b00 */
#define PROB_HV BIT64(MODE_PROBLEM_OF_HV) /* MSR[HV PR] = 0b11 */
#define HYP     BIT64(MODE_HYPERVISOR)    /* MSR[HV PR] = 0b10 */
#define ANY     (PROB | PRIV | PROB_HV | HYP)

/* Other conditions */
typedef enum When {
    ALWAYS,
    PMM_1,
    PMM_0,
    RUN_0,
} When;

/* Counters, bit n for PMCn */
#define NONE  0x00
#define PMC14 0x1e
#define PMC24 0x1c
#define PMC26 0x7c
#define PMC56 0x60
#define PMC16 0x7e

/**
 * struct Freeze - the effect of a bit
 * @name: its name
 * @bits: for MMCR0, the bits to invert; for MMCR2, the field of a counter
 * @states: the privilege states in which it freezes
 * @when: a further condition
 * @pmcs: the counters that it freezes
 * @pmcs_outside: the same with PMC5 and PMC6 outside the facility, as
 *                MMCR0[PMCC] = 0b11 says
 */
typedef struct Freeze {
    const char *name;
    uint64_t bits;
    unsigned states;
    When when;
    unsigned pmcs, pmcs_outside;
} Freeze;

/* The bits of MMCR0, inverted one by one; otherwise, only CC5-6RUN is 1. */
static const Freeze mmcr0_bits[] = {
    /*                                 in states  when    PMCC<3  PMCC=3 */
    { "nothing",    0,                 ANY,       ALWAYS, NONE,   NONE },
    { "FC",         MMCR0_FC,          ANY,       ALWAYS, PMC16,  PMC14 },
    { "FCS",        MMCR0_FCS,         PRIV,      ALWAYS, PMC16,  PMC14 },
    { "FCP",        MMCR0_FCP,         PROB | PROB_HV,
                                                  ALWAYS, PMC16,  PMC14 },
    { "FCPC",       MMCR0_FCPC,        PROB,      ALWAYS, PMC16,  PMC14 },
    { "FCP+FCPC",   MMCR0_FCP | MMCR0_FCPC,
                                       PROB_HV,   ALWAYS, PMC16,  PMC14 },
    { "FCM1",       MMCR0_FCM1,        ANY,       PMM_1,  PMC16,  PMC14 },
    { "FCM0",       MMCR0_FCM0,        ANY,       PMM_0,  PMC16,  PMC14 },
    { "FCH",        MMCR0_FCH,         HYP,       ALWAYS, PMC16,  PMC14 },
    { "FC1-4",      MMCR0_FC14,        ANY,       ALWAYS, PMC14,  PMC14 },
    { "FC5-6",      MMCR0_FC56,        ANY,       ALWAYS, PMC56,  NONE },
    { "FC1-4WAIT",  MMCR0_FC14WAIT,    ANY,       RUN_0,  PMC14,  PMC14 },
    { "no CC5-6RUN", MMCR0_CC56RUN,    ANY,       RUN_0,  PMC56,  NONE },
    { "TRIGGER",    MMCR0_TRIGGER,     ANY,       ALWAYS, PMC26,  PMC24 },

    /* All other bits control something else. */
    { "PMAE",       MMCR0_PMAE,        ANY,       ALWAYS, NONE,   NONE },
    { "FCECE",      MMCR0_FCECE,       ANY,       ALWAYS, NONE,   NONE },
    { "TBSEL",      MMCR0_TBSEL(3),    ANY,       ALWAYS, NONE,   NONE },
    { "TBEE",       MMCR0_TBEE,        ANY,       ALWAYS, NONE,   NONE },
    { "BHRBA",      MMCR0_BHRBA,       ANY,       ALWAYS, NONE,   NONE },
    { "EBE",        MMCR0_EBE,         ANY,       ALWAYS, NONE,   NONE },
    { "PMC1CE",     MMCR0_PMC1CE,      ANY,       ALWAYS, NONE,   NONE },
    { "PMCjCE",     MMCR0_PMCJCE,      ANY,       ALWAYS, NONE,   NONE },
    { "PMAQ",       MMCR0_PMAQ,        ANY,       ALWAYS, NONE,   NONE },
    { "PMCCEXT",    MMCR0_PMCCEXT,     ANY,       ALWAYS, NONE,   NONE },
    { "PMAO",       MMCR0_PMAO,        ANY,       ALWAYS, NONE,   NONE },
};

/*
 * The bits of MMCR2 that each counter has.  FCnP0 freezes in either problem
 * state: it is the only bit by which hypervisors, whose programs have MSR[HV] =
 * 1, can exclude these.
 */
static const Freeze mmcr2_bits[] = {
    /*           in states             when    PMCC<3  PMCC=3 */
    { "FCnS",    FCNS,    PRIV,        ALWAYS, PMC16,  PMC14 },
    { "FCnP0",   FCNP0,   PROB | PROB_HV,
                                       ALWAYS, PMC16,  PMC14 },
    { "FCnP1",   FCNP1,   PROB_HV,     ALWAYS, PMC16,  PMC14 },
    { "FCnM1",   FCNM1,   ANY,         PMM_1,  PMC16,  PMC14 },
    { "FCnM0",   FCNM0,   ANY,         PMM_0,  PMC16,  PMC14 },
    { "FCnWAIT", FCNWAIT, ANY,         RUN_0,  PMC16,  PMC14 },
    { "FCnH",    FCNH,    HYP,         ALWAYS, PMC16,  PMC14 },
    { "FCnTI",   7,       ANY,         ALWAYS, NONE,   NONE }, /* reserved */
    { "FCnTA",   8,       ANY,         ALWAYS, NONE,   NONE }, /* reserved */
};

/* An event that PMC1 counts even if FC1-4WAIT freezes other counters */
#define CYCLES_ALWAYS 0xf0

static const Freeze wait_and_pmc1_f0 = {
    "FC1-4WAIT", MMCR0_FC14WAIT, ANY, RUN_0, PMC24, PMC24
};

/**
 * struct Model - a machine whose CPU has freeze bits
 * @name: its name
 * @args: QEMU's arguments
 * @states: the privilege states that it has
 */
static const struct Model {
    const char *name, *args;
    unsigned states;
} models[] = {
    { "POWER8",    "-machine pseries -cpu POWER8",  PROB | PRIV },
    { "POWER9",    "-machine pseries -cpu POWER9",  PROB | PRIV },
    { "POWER10",   "-machine pseries -cpu POWER10", PROB | PRIV },
    { "powernv8",  "-machine powernv8",             ANY },
    { "powernv9",  "-machine powernv9",             ANY },
    { "powernv10", "-machine powernv10",            ANY },
};

/*
 * States of a CPU
 */

/* Numbered by MSR[PMM] and CTRL[RUN] as well as by privilege. */
typedef unsigned State;

#define NR_STATES (4 * NR_MODES)

/* A set of states, bit n for state n. */
typedef uint32_t States;

static bool has_pmm(State s)
{
    return s & 2;
}

static bool has_run(State s)
{
    return s & 1;
}

static unsigned mode_of(State s)
{
    return s / 4;
}

static char *describe(State s)
{
    static const char *const names[NR_MODES] = {
        "problem state", "privileged state", "problem state of HV",
        "hypervisor state",
    };

    return g_strdup_printf("%s, PMM=%u, RUN=%u", names[mode_of(s)],
                           has_pmm(s), has_run(s));
}

static States states_of(unsigned modes)
{
    States set = 0;
    State s;

    for (s = 0; s < NR_STATES; s++) {
        if (modes & BIT64(mode_of(s))) {
            set |= BIT64(s);
        }
    }
    return set;
}

static bool is_when(State s, When when)
{
    return when == PMM_1 ? has_pmm(s)
           : when == PMM_0 ? !has_pmm(s)
           : when == RUN_0 ? !has_run(s)
           : true;
}

/* The states in which a bit freezes a counter */
static States frozen(const Freeze *f, bool outside, unsigned pmc)
{
    States set = states_of(f->states);
    State s;

    if (!((outside ? f->pmcs_outside : f->pmcs) & BIT64(pmc))) {
        return 0;
    }
    for (s = 0; s < NR_STATES; s++) {
        if (!is_when(s, f->when)) {
            set &= ~BIT64(s);
        }
    }
    return set;
}

/*
 * Walking through them
 */

/**
 * struct Walk - a setting of the PMU
 * @name: its distinguishing feature
 * @mmcr0: MMCR0
 * @mmcr1: MMCR1
 * @mmcr2: MMCR2
 * @moves: by counter, the states in which it must move
 */
typedef struct Walk {
    const char *name;
    uint64_t mmcr0, mmcr1, mmcr2;
    States moves[NR_PMCS + 1];
} Walk;

static void add_to_walk(Walk *w, const Freeze *f, bool outside)
{
    unsigned pmc;

    for (pmc = 1; pmc <= NR_PMCS; pmc++) {
        w->moves[pmc] &= ~frozen(f, outside, pmc);
    }
}

/* Outside the facility, PMC5 and PMC6 never count without the run latch. */
static const Freeze latch_outside = {
    "no run latch", 0, ANY, RUN_0, NONE, PMC56
};

/* PMC1 and PMC2 count cycles, PMC3 and PMC4 instructions. */
#define TWO_OF_EACH 0x1e1e0202

static Walk new_walk(const char *name, bool outside)
{
    Walk w = {
        .name = name,
        .mmcr0 = MMCR0_CC56RUN | (outside ? MMCR0_PMCC(3) : 0),
        .mmcr1 = TWO_OF_EACH,
    };
    unsigned pmc;

    for (pmc = 1; pmc <= NR_PMCS; pmc++) {
        w.moves[pmc] = states_of(ANY);
    }
    add_to_walk(&w, &latch_outside, outside);
    return w;
}

static void set_up(Machine *m, const Walk *w)
{
    unsigned pmc;

    mtspr(m, SPR_MMCR0, MMCR0_FC);
    mtspr(m, SPR_MMCR1, w->mmcr1);
    mtspr(m, SPR_MMCR2, w->mmcr2);
    for (pmc = 1; pmc <= NR_PMCS; pmc++) {
        mtspr(m, SPR_PMC1 + pmc - 1, 0);
    }
    mtspr(m, SPR_MMCR0, w->mmcr0);
}

static void visit(Machine *m, State s)
{
    set_mode(m, mode_of(s), has_pmm(s));
    set_run(m, has_run(s));
    count(m, PMU_TALLY_CYCLES, mode_of(s), BIT64(s));
    count(m, PMU_TALLY_INSNS, mode_of(s), BIT64(s));
}

static void visit_all(Machine *m, States states)
{
    State s;

    for (s = 0; s < NR_STATES; s++) {
        if (states & BIT64(s)) {
            visit(m, s);
        }
    }
}

static void report(const Walk *w, unsigned pmc, States wrong, bool moved)
{
    State s;

    for (s = 0; s < NR_STATES; s++) {
        if (wrong & BIT64(s)) {
            g_autofree char *where = describe(s);

            g_test_message("%s: PMC%u %s in %s (MMCR0 0x%" PRIx64
                           ", MMCR2 0x%" PRIx64 ")", w->name, pmc,
                           moved ? "moves" : "stands still", where,
                           w->mmcr0, w->mmcr2);
        }
    }
}

static void compare(const Walk *w, unsigned pmc, States moved, States states)
{
    States expected = w->moves[pmc] & states;

    if (moved != expected) {
        report(w, pmc, moved & ~expected, true);
        report(w, pmc, expected & ~moved, false);
        g_test_fail();
    }
}

static void do_walk(Machine *m, const Walk *w, const struct Model *model)
{
    States states = states_of(model->states);
    unsigned home = model->states & HYP ? MODE_HYPERVISOR : MODE_PRIVILEGED;
    unsigned pmc;

    set_up(m, w);
    visit_all(m, states);
    set_mode(m, home, false);
    for (pmc = 1; pmc <= NR_PMCS; pmc++) {
        compare(w, pmc, mfspr(m, SPR_PMC1 + pmc - 1), states);
    }
}

/*
 * The cases
 */

static void walk_mmcr0(Machine *m, const struct Model *model, bool outside)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(mmcr0_bits); i++) {
        const Freeze *f = &mmcr0_bits[i];
        Walk w = new_walk(f->name, outside);

        w.mmcr0 ^= f->bits;
        add_to_walk(&w, f, outside);
        do_walk(m, &w, model);
    }
}

static void test_mmcr0(const void *data)
{
    const struct Model *model = data;
    Machine m = start(model->args);

    walk_mmcr0(&m, model, false);
    walk_mmcr0(&m, model, true);
    stop(&m);
}

/* A bit of one counter does not affect other counters. */
static void walk_one_counter(Machine *m, const struct Model *model,
                             const Freeze *f, unsigned pmc, bool outside)
{
    Freeze alone = *f;
    Walk w = new_walk(f->name, outside);

    alone.pmcs &= BIT64(pmc);
    alone.pmcs_outside &= BIT64(pmc);
    w.mmcr2 = MMCR2_FIELD(f->bits, pmc);
    add_to_walk(&w, &alone, outside);
    do_walk(m, &w, model);
}

static void test_mmcr2(const void *data)
{
    const struct Model *model = data;
    Machine m = start(model->args);
    unsigned i, pmc;

    for (i = 0; i < G_N_ELEMENTS(mmcr2_bits); i++) {
        for (pmc = 1; pmc <= NR_PMCS; pmc++) {
            walk_one_counter(&m, model, &mmcr2_bits[i], pmc, false);
            walk_one_counter(&m, model, &mmcr2_bits[i], pmc, true);
        }
    }
    stop(&m);
}

/* A bit of MMCR0, and one of all counters in MMCR2. */
static void walk_both(Machine *m, const struct Model *model,
                      const Freeze *f0, const Freeze *f2)
{
    g_autofree char *name = g_strdup_printf("%s and %s", f0->name, f2->name);
    Walk w = new_walk(name, false);
    unsigned pmc;

    w.mmcr0 ^= f0->bits;
    for (pmc = 1; pmc <= NR_PMCS; pmc++) {
        w.mmcr2 |= MMCR2_FIELD(f2->bits, pmc);
    }
    add_to_walk(&w, f0, false);
    add_to_walk(&w, f2, false);
    do_walk(m, &w, model);
}

static void test_both(const void *data)
{
    const struct Model *model = data;
    Machine m = start(model->args);
    unsigned i, j;

    for (i = 0; i < G_N_ELEMENTS(mmcr0_bits); i++) {
        if (!mmcr0_bits[i].pmcs) {
            continue;
        }
        for (j = 0; j < G_N_ELEMENTS(mmcr2_bits); j++) {
            walk_both(&m, model, &mmcr0_bits[i], &mmcr2_bits[j]);
        }
    }
    stop(&m);
}

/* Idle cycles can be counted on PMC1. */
static void test_cycles_always(const void *data)
{
    const struct Model *model = data;
    const Freeze *f = &wait_and_pmc1_f0;
    Walk w = new_walk("FC1-4WAIT and PMC1 0xf0", false);
    Machine m = start(model->args);

    w.mmcr0 ^= f->bits;
    w.mmcr1 = (TWO_OF_EACH & 0xffffff) | (uint64_t)CYCLES_ALWAYS << 24;
    add_to_walk(&w, f, false);
    do_walk(&m, &w, model);
    stop(&m);
}

void add_ppc_freeze_cases(void)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(models); i++) {
        add_data("freeze/mmcr0", models[i].name, &models[i], test_mmcr0);
        add_data("freeze/mmcr2", models[i].name, &models[i], test_mmcr2);
        add_data("freeze/both", models[i].name, &models[i], test_both);
        add_data("freeze/cycles-always", models[i].name, &models[i],
                 test_cycles_always);
    }
}
