/*
 * Suite random: counters of random events, modes and values
 *
 * The first overflow that interrupts freezes them.  All of them must then have
 * the values from a simulation.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

CODE("random_int_entry:\n"
     "    nop\n"
     "    iretq\n"
     "random_ints:\n"
     "    nop\n"
     "    int $0x80\n"
     "    dec %rdi\n"
     "    jnz random_ints\n"
     "    ret\n");
LABEL(random_int_entry);
code_fn random_ints;

/* After the IRET of run_user(), the program repeats these six instructions. */
static const struct {
    bool kernel, branch, conditional;
} six[] = {
    { .kernel = false },                                            /* NOP */
    { .kernel = false, .branch = true },                            /* INT */
    { .kernel = true },                                             /* NOP */
    { .kernel = true, .branch = true },                             /* IRET */
    { .kernel = false },                                            /* DEC */
    { .kernel = false, .branch = true, .conditional = true },       /* JNZ */
};

struct random_counter {
    uint64_t event, modes, value;
    bool interrupts;
};

static void choose(struct random_counter *c)
{
    static const uint64_t event[] = {
        EV_INSTRUCTIONS, EV_BRANCHES, EV_BR_CONDITIONAL, EV_CYCLES,
    };
    static const uint64_t modes[] = { SEL_USR, SEL_OS, SEL_ALL };

    c->event = event[random() % ARRAY_SIZE(event)];
    c->modes = modes[random() % ARRAY_SIZE(modes)];
    c->value = -(1 + random() % (1 << random() % 11)) & COUNTER_MASK;
    c->interrupts = random() % 4;
}

static bool counts(const struct random_counter *c, unsigned place)
{
    if (!(c->modes & (six[place].kernel ? SEL_OS : SEL_USR))) {
        return false;
    }
    return c->event == EV_BRANCHES ? six[place].branch :
           c->event == EV_BR_CONDITIONAL ? six[place].conditional : true;
}

/* Simulate until a counter interrupts; returns the number of instructions. */
static unsigned simulate(struct random_counter *c, unsigned count,
                         unsigned limit, uint64_t *status)
{
    *status = 0;
    for (unsigned n = 0; n < limit; n++) {
        /* IRET comes first: that is the fourth of the six. */
        unsigned place = n == 0 ? 3 : (n - 1) % 6;
        bool interrupt = false;

        for (unsigned i = 0; i < count; i++) {
            if (counts(&c[i], place)) {
                c[i].value = (c[i].value + 1) & COUNTER_MASK;
                if (c[i].value == 0) {
                    *status |= BIT(i);
                    interrupt |= c[i].interrupts;
                }
            }
        }
        if (interrupt) {
            return n + 1;
        }
    }
    return 0;
}

TEST(random, frozen)
{
    const unsigned turns = 400, limit = turns * 6;

    if (!pmu_is_intel()) {
        skip();
    }
    set_gate(VEC_SYSCALL, random_int_entry);
    wrmsr(MSR_DEBUGCTL, DEBUGCTL_FREEZE_ON_PMI);
    for (unsigned trial = 0; trial < 1000; trial++) {
        struct random_counter c[4];
        uint64_t status;
        unsigned n;

        for (unsigned i = 0; i < 4; i++) {
            choose(&c[i]);
            pmu_gp(i, c[i].event | c[i].modes |
                      (c[i].interrupts ? SEL_INT : 0), c[i].value);
        }
        n = simulate(c, 4, limit, &status);
        if (!n) {
            continue;
        }
        sample_with(APIC_NMI);
        run_user(GP(0) | GP(1) | GP(2) | GP(3), random_ints, turns);
        status |= pmu_version() >= 4 ? STATUS_CTR_FRZ : 0;
        expect(sample_count, 1, "trial %u: samples", trial);
        expect(samples[0].status, status, "trial %u: status", trial);
        for (unsigned i = 0; i < 4; i++) {
            expect(rdmsr(MSR_PMC(i)), c[i].value,
                   "trial %u, instruction %u: counter %u", trial, n, i);
        }
        wrmsr(MSR_GLOBAL_OVF_CTRL, rdmsr(MSR_GLOBAL_STATUS));
    }
    wrmsr(MSR_DEBUGCTL, 0);
}
