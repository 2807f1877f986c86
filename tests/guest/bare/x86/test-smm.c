/*
 * Suite smm: system management mode
 *
 * The handler counts as kernel unless DEBUGCTL freezes the counters for it.
 * The SMI itself is an interrupt and counts nothing.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

/* The handler counts its runs here, at a real-mode address. */
#define HITS            0x9000
#define HANDLER_COUNT   15

CODE("    .code16\n"
     "smm_handler:\n"
     "    xor %ax, %ax\n"
     "    mov %ax, %ds\n"
     "    incl 0x9000\n"
     "    mov $4, %cx\n"
     "1:  nop\n"
     "    loop 1b\n"
     "    nop\n"
     "    nop\n"
     "    rsm\n"
     "smm_handler_end:\n"
     "    .code64\n");
LABEL(smm_handler);
LABEL(smm_handler_end);

/* An SMI to itself in each turn */
CODE("smm_loop:\n"
     "    mov $0xfee00000, %eax\n"
     "1:  movl $0x44200, 0x300(%rax)\n"
     "    nop\n"
     "    nop\n"
     "    dec %rdi\n"
     "    jnz 1b\n"
     "    ret\n");
code_fn smm_loop;

#define TURNS           50
#define LOOP_COUNT      (5 * TURNS + 2)

/* volatile, as the handler changes it */
static volatile uint32_t *const hits = (uint32_t *)HITS;

static void install_handler(void)
{
    memcpy((void *)SMI_ENTRY, smm_handler, smm_handler_end - smm_handler);
    *hits = 0;
}

TEST(smm, counted)
{
    install_handler();
    expect_counts("from the kernel", measure_kernel(smm_loop, TURNS), 0,
                  LOOP_COUNT + HANDLER_COUNT * TURNS);
    expect(*hits, TURNS, "interrupts");
    expect_counts("from user mode", measure_user(smm_loop, TURNS),
                  LOOP_COUNT, HANDLER_COUNT * TURNS);
    expect(*hits, 2 * TURNS, "interrupts");
}

TEST(smm, frozen)
{
    if (!(rdmsr(MSR_PERF_CAP) & PERF_CAP_FREEZE_IN_SMM)) {
        skip();
    }
    install_handler();
    wrmsr(MSR_DEBUGCTL, DEBUGCTL_FREEZE_IN_SMM);
    expect_counts("from the kernel", measure_kernel(smm_loop, TURNS), 0,
                  LOOP_COUNT);
    expect_counts("from user mode", measure_user(smm_loop, TURNS),
                  LOOP_COUNT, 0);
    expect(*hits, 2 * TURNS, "interrupts");
    wrmsr(MSR_DEBUGCTL, 0);
}

/*
 * A counter of user mode overflows at the same addresses, and a PMI that
 * becomes due in SMM waits for the end of SMM.
 */
CODE("smm_once:\n"
     "    mov $0xfee00000, %eax\n"
     "    movl $0x44200, 0x300(%rax)\n"
     "smm_once_next:\n"
     "    nop\n"
     "    nop\n"
     "    ret\n");
code_fn smm_once;
LABEL(smm_once_next);

TEST(smm, overflow)
{
    install_handler();
    /* CALL, MOV, MOV, and into the handler */
    for (unsigned n = 4; n < 3 + HANDLER_COUNT; n++) {
        pmu_gp(0, EV_INSTRUCTIONS | SEL_OS | SEL_INT, -(uint64_t)n);
        sample_with(APIC_NMI);
        run_kernel(GP(0), smm_once, 0);
        expect(sample_count, 1, "instruction %u: samples", n);
        expect(samples[0].rip, (uint64_t)smm_once_next,
               "instruction %u: RIP", n);
        expect(samples[0].cs, KERNEL_CS, "instruction %u: CS", n);
    }
}

/* The performance LVT may deliver an SMI, too. */
CODE("smm_sampled:\n"
     "    .rept 20\n"
     "    nop\n"
     "    .endr\n"
     "    ret\n");
code_fn smm_sampled;

TEST(smm, lvt)
{
    install_handler();
    pmu_gp(0, EV_INSTRUCTIONS | SEL_USR | SEL_INT, -10ull);
    pmu_gp(1, EV_INSTRUCTIONS | SEL_ALL, 0);
    apic_write(APIC_LVT_PC, APIC_SMI);
    run_user(GP(0) | GP(1), smm_sampled, 0);
    expect(*hits, 1, "interrupts");
    expect(rdmsr(MSR_PMC(1)), 21 + RUN_USER_OVERHEAD + RUN_KERNEL_OVERHEAD +
           HANDLER_COUNT, "instructions");
}

TEST(smm, user_period)
{
    uint64_t total;

    install_handler();
    total = count_steps(smm_loop, 10);
    pmu_gp(0, EV_INSTRUCTIONS | SEL_USR | SEL_INT, -1ull);
    sample_with(APIC_NMI);
    sample_reload(0, 1);
    run_user(GP(0), smm_loop, 10);
    expect(sample_count, total + 1, "samples");
    for (unsigned i = 0; i < total - 1; i++) {
        expect(samples[i].rip, step_trace[i], "sample %u: RIP", i);
    }
}
