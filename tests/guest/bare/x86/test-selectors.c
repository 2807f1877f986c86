/*
 * Suite selectors: AMD's counters before Zen 4, which nothing but their
 * selectors starts and stops
 *
 * run_kernel() and run_user() write the first one's where others have
 * GLOBAL_CTRL.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

#define AMD_INSTRUCTIONS    0xc0
#define AMD_BRANCHES        0xc2

#define INSNS 14
#define BRANCHES 6

/* A loop with three turns, and the code around it */
CODE("selectors_loop:\n"
     "    mov $3, %ecx\n"
     "1:  nop\n"
     "    nop\n"
     "    jmp 2f\n"
     "2:  loop 1b\n"
     "    ret\n");
code_fn selectors_loop;

static uint64_t count(run_fn *run, uint64_t select)
{
    wrmsr(MSR_PMC(0), 0);
    run(select | SEL_EN, selectors_loop, 0);
    return rdmsr(MSR_PMC(0));
}

TEST(selectors, count)
{
    const uint64_t insns = AMD_INSTRUCTIONS;

    expect(count_steps(selectors_loop, 0), INSNS, "single steps");
    expect(count(run_kernel, insns | SEL_OS), INSNS + RUN_KERNEL_OVERHEAD,
           "kernel");
    expect(count(run_kernel, insns | SEL_USR), 0, "kernel, of user mode");
    expect(count(run_user, insns | SEL_USR), INSNS + RUN_USER_OVERHEAD,
           "user mode");
    expect(count(run_user, insns | SEL_OS), RUN_KERNEL_OVERHEAD,
           "user mode, of the kernel");
    expect(count(run_user, insns | SEL_ALL),
           INSNS + RUN_USER_OVERHEAD + RUN_KERNEL_OVERHEAD, "both");
    /* One is the loop's return, another the way back to the kernel. */
    expect(count(run_user, AMD_BRANCHES | SEL_USR), BRANCHES + 2, "branches");
}

/* Counters of the register file new in family 15h also have old numbers. */
static void expect_counter(unsigned i, uint32_t select, uint32_t counter)
{
    wrmsr(counter, 0);
    run_own_switch(AMD_INSTRUCTIONS | SEL_ALL | SEL_EN, select);
    expect(rdmsr(counter), 12, "MSR 0x%x", counter);
    expect(rdpmc(i), 12, "RDPMC of %u", i);
}

TEST(selectors, every_counter)
{
    bool core_ext = cpuid(0x80000001, 0).c & BIT(23);

    for (unsigned i = 0; i < 4; i++) {
        expect_counter(i, MSR_LEGACY_EVTSEL0 + i, MSR_LEGACY_CTR0 + i);
    }
    for (unsigned i = 0; core_ext && i < 6; i++) {
        expect_counter(i, MSR_CTL0 + 2 * i, MSR_CTR0 + 2 * i);
    }
    expect(rdpmc_fault(core_ext ? 6 : 4), GP_VECTOR, "RDPMC of one more");
    expect(rdmsr_fault(MSR_CTL0), core_ext ? 0 : GP_VECTOR, "new numbers");
}

static volatile uint64_t pmi_rip;   /* by the handler */
static volatile unsigned pmi_count;

static void on_pmi(struct regs *regs)
{
    pmi_rip = regs->rip;
    pmi_count++;
}

/* Each instruction of user mode overflows once; then comes the way back. */
TEST(selectors, overflow)
{
    on_trap(NMI_VECTOR, on_pmi);
    apic_write(APIC_LVT_PC, APIC_NMI);
    count_steps(selectors_loop, 0);
    for (unsigned n = 1; n <= INSNS; n++) {
        pmi_count = 0;
        wrmsr(MSR_PMC(0), -(uint64_t)n & COUNTER_MASK);
        run_user(AMD_INSTRUCTIONS | SEL_USR | SEL_INT | SEL_EN,
                 selectors_loop, 0);
        expect(pmi_count, 1, "instruction %u: interrupts", n);
        expect(pmi_rip, n < INSNS ? step_trace[n - 1] : (uint64_t)user_exit,
               "instruction %u: RIP", n);
        expect(rdmsr(MSR_PMC(0)), INSNS + RUN_USER_OVERHEAD - n,
               "instruction %u: counter", n);
    }
}
