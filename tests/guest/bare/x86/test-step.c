/*
 * Suite step: overflows while a debugger steps from instruction to instruction
 *
 * Each loop is stopped at its own label, from which `run` steps on
 * (debugger.py). The label's name says what to step over, and how.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

#define TURNS 300

/* 3 instructions a turn, and 2 more */
#define TOTAL (3 * TURNS + 2)

#define LOOP(name, at_entry, each_turn) \
    CODE(name ":\n"                     \
         at_entry                       \
         "    mov %rdi, %rcx\n"         \
         "1:\n"                         \
         each_turn                      \
         "    nop\n"                    \
         "    dec %rcx\n"               \
         "    jnz 1b\n"                 \
         "    ret\n")
#define STOPS_INSIDE(name)  LOOP(name, "", name "_here:\n")
#define STOPS_AT_ENTRY(name) LOOP(name, name "_here:\n", "")

STOPS_INSIDE("step_user_1");
STOPS_INSIDE("step_user_10");
STOPS_INSIDE("step_user_17");
STOPS_AT_ENTRY("step_kernel_1");
STOPS_AT_ENTRY("step_kernel_10");
STOPS_AT_ENTRY("step_kernel_17");
STOPS_INSIDE("step_masked_10");
code_fn step_user_1, step_user_10, step_user_17, step_kernel_1, step_kernel_10,
        step_kernel_17, step_masked_10;

/* The program's address after @n instructions of a loop */
static uint64_t address_after(code_fn *fn, uint64_t n)
{
    static const unsigned offsets[] = { 3, 4, 7 };

    return n < TOTAL - 1 ? (uint64_t)fn + offsets[(n - 1) % 3]
           : n < TOTAL ? (uint64_t)fn + 9 : (uint64_t)user_exit;
}

static void expect_user_samples(code_fn *fn, unsigned period)
{
    pmu_gp(0, EV_INSTRUCTIONS | SEL_USR | SEL_INT, -(uint64_t)period);
    sample_with(VEC_PMI);
    sample_reload(0, period);
    run_user(GP(0), fn, TURNS);
    expect(sample_count, TOTAL / period, "samples");
    for (unsigned i = 0; i < TOTAL / period; i++) {
        expect(samples[i].rip, address_after(fn, (i + 1) * period),
               "sample %u: RIP", i);
        expect(samples[i].value, 0, "sample %u: counter", i);
    }
}

TEST(step, user_1)
{
    expect_user_samples(step_user_1, 1);
}

TEST(step, user_10)
{
    expect_user_samples(step_user_10, 10);
}

TEST(step, user_17)
{
    expect_user_samples(step_user_17, 17);
}

/* Take one sample, so that the handler is not sampled; CALL comes first. */
static void expect_kernel_sample(code_fn *fn, unsigned period)
{
    for (unsigned n = 2; n <= 40; n++) {
        pmu_gp(0, EV_INSTRUCTIONS | SEL_OS | SEL_INT, -(uint64_t)n * period);
        sample_with(APIC_NMI);
        run_kernel(GP(0), fn, TURNS);
        if (n * period <= TOTAL) {
            expect(sample_count, 1, "instruction %u: samples", n * period);
            expect(samples[0].rip, address_after(fn, n * period - 1),
                   "instruction %u: RIP", n * period);
        }
    }
}

TEST(step, kernel_1)
{
    expect_kernel_sample(step_kernel_1, 1);
}

TEST(step, kernel_10)
{
    expect_kernel_sample(step_kernel_10, 10);
}

TEST(step, kernel_17)
{
    expect_kernel_sample(step_kernel_17, 17);
}

/* If steps hold back interrupts, counts stay exact, but not addresses. */
TEST(step, masked_10)
{
    pmu_gp(0, EV_INSTRUCTIONS | SEL_USR | SEL_INT, -10ull);
    pmu_gp(1, EV_INSTRUCTIONS | SEL_USR, 0);
    sample_with(VEC_PMI);
    sample_reload(0, 10);
    run_user(GP(0) | GP(1), step_masked_10, TURNS);
    expect(sample_count > 0, true, "samples");
    expect(rdmsr(MSR_PMC(1)), TOTAL + RUN_USER_OVERHEAD, "instructions");
}

/*
 * The debugger stops this at the end of some block.  Even if the PMU had to cut
 * that block, the next step is one instruction.
 */
CODE("step_stopped:\n"
     "1:\n"
     "step_nops:\n"
     "    .rept 30\n"
     "    nop\n"
     "    .endr\n"
     "step_nops_end:\n"
     "    cmpq $0, step_waits\n"
     "    jne 1b\n"
     "    ret\n");
code_fn step_stopped;
uint64_t step_waits;

TEST(step, stopped)
{
    const uint64_t period = 31;

    pmu_gp(0, EV_INSTRUCTIONS | SEL_USR | SEL_INT, -period);
    sample_with(APIC_NMI);
    sample_reload(0, period);
    run_user(GP(0), step_stopped, 0);
    expect(sample_count > 0, true, "samples");
    expect(step_waits, 0, "what the debugger has left");
}
