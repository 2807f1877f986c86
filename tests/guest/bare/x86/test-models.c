/*
 * Suite models: codes of events that depend on the CPU model
 *
 * `run` names the models, and passes their codes in opt/vpmu/conditional, loads
 * and stores.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

CODE("models_loop:\n"
     "    mov %rdi, %rcx\n"
     "1:  mov spare, %eax\n"
     "    mov %eax, spare + 8\n"
     "    dec %rcx\n"
     "    jnz 1b\n"
     "    ret\n");
code_fn models_loop;

TEST(models, events)
{
    pmu_gp(0, option("conditional", EV_BR_CONDITIONAL) | SEL_USR, 0);
    pmu_gp(1, option("loads", EV_LOADS) | SEL_USR, 0);
    pmu_gp(2, option("stores", EV_STORES) | SEL_USR, 0);
    pmu_gp(3, EV_BRANCHES | SEL_USR, 0);
    run_user(GP(0) | GP(1) | GP(2) | GP(3), models_loop, 1000);
    expect(rdmsr(MSR_PMC(0)), 1000, "conditional branches");
    expect(rdmsr(MSR_PMC(1)), 1001, "loads");
    expect(rdmsr(MSR_PMC(2)), 1000, "stores");
    expect(rdmsr(MSR_PMC(3)), 1002, "branches");
}

/* A counter of an uncounted event does not change, without faults. */
TEST(models, uncounted)
{
    pmu_gp(0, 0xffff | SEL_ALL | SEL_INT, -1ull);
    run_user(GP(0), models_loop, 1000);
    expect(rdmsr(MSR_PMC(0)), COUNTER_MASK, "counter");
    expect(rdmsr(MSR_GLOBAL_STATUS), 0, "status");
}

/* rr's test of a PMU, with its event and period. */
TEST(models, sampled_conditional)
{
    pmu_gp(0, option("conditional", EV_BR_CONDITIONAL) | SEL_USR | SEL_INT,
           -499ull);
    sample_with(VEC_PMI);
    run_user(GP(0), models_loop, 1000);
    expect(sample_count, 1, "samples");
    expect(samples[0].rip, (uint64_t)models_loop + 3, "RIP");
    expect(samples[0].value, 0, "counter");
}
