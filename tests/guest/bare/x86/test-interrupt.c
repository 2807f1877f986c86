/*
 * Suite interrupt: counts with interrupts from outside, and across HLT
 *
 * They arrive at unknown times, but the handler's length is known.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

/* Each turn of the timer: HANDLER_COUNT instructions of the kernel. */
#define HANDLER_COUNT   8

volatile uint64_t interrupt_hits; /* by the handler */

CODE("interrupt_entry:\n"
     "    push %rax\n"
     "    mov $0xfee00000, %eax\n"
     "    incq interrupt_hits\n"
     "    movl $0, 0xb0(%rax)\n"        /* EOI */
     "    movl $20000, 0x380(%rax)\n"   /* and 20 us more */
     "    nop\n"
     "    pop %rax\n"
     "    iretq\n");
LABEL(interrupt_entry);

CODE("interrupt_loop:\n"
     "    mov %rdi, %rcx\n"
     "1:  dec %rcx\n"
     "    nop\n"
     "    jnz 1b\n"
     "    ret\n"
     "interrupt_kernel_loop:\n"
     "    sti\n"
     "    mov %rdi, %rcx\n"
     "1:  dec %rcx\n"
     "    nop\n"
     "    jnz 1b\n"
     "    cli\n"
     "    ret\n");
code_fn interrupt_loop, interrupt_kernel_loop;

#define TURNS           300000

static void start_timer(void)
{
    set_gate(VEC_TIMER, interrupt_entry);
    timer_once(20000);
}

/* The interrupts that a test needs: it is repeated until there were so many */
#define ENOUGH          10
#define TRIES           50

static void expect_enough(uint64_t total)
{
    expect(total >= ENOUGH, true, "at least 10 interrupts (%lu)", total);
}

TEST(interrupt, user_mode)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < TRIES && total < ENOUGH; i++) {
        struct counts c;

        interrupt_hits = 0;
        start_timer();
        c = measure_user(interrupt_loop, TURNS);
        expect_counts("user loop", c, 3 * TURNS + 2,
                      HANDLER_COUNT * interrupt_hits);
        total += interrupt_hits;
    }
    expect_enough(total);
}

TEST(interrupt, kernel)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < TRIES && total < ENOUGH; i++) {
        struct counts c;

        interrupt_hits = 0;
        start_timer();
        c = measure_kernel(interrupt_kernel_loop, TURNS);
        expect_counts("kernel loop", c, 0,
                      3 * TURNS + 4 + HANDLER_COUNT * interrupt_hits);
        total += interrupt_hits;
    }
    expect_enough(total);
}

/* In the middle of REP STOSB, in the kernel. */
uint8_t interrupt_buffer[1000000];

CODE("interrupt_rep:\n"
     "    sti\n"
     "    mov $interrupt_buffer, %edi\n"
     "    mov $1000000, %ecx\n"
     "    rep stosb\n"
     "    cli\n"
     "    ret\n");
code_fn interrupt_rep;

TEST(interrupt, in_rep)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < TRIES && total < ENOUGH; i++) {
        struct counts c;

        interrupt_hits = 0;
        start_timer();
        c = measure_kernel(interrupt_rep, 0);
        expect_counts("REP", c, 0, 6 + HANDLER_COUNT * interrupt_hits);
        total += interrupt_hits;
    }
    expect_enough(total);
}

/*
 * HLT retires once; the handler that wakes the CPU counts, the sleep does not.
 */
CODE("interrupt_hlt:\n"
     "    mov %rdi, %rcx\n"
     "    mov $0xfee00000, %eax\n"
     "1:  movl $50000, 0x380(%rax)\n"
     "    sti\n"
     "    hlt\n"
     "    cli\n"
     "    dec %rcx\n"
     "    jnz 1b\n"
     "    movl $0, 0x380(%rax)\n"
     "    ret\n"
     "interrupt_wake_up:\n"
     "    incq interrupt_hits\n"
     "    movl $0, 0xb0(%rax)\n"
     "    iretq\n");
code_fn interrupt_hlt;
LABEL(interrupt_wake_up);

TEST(interrupt, hlt)
{
    set_gate(VEC_TIMER, interrupt_wake_up);
    timer_once(0);
    interrupt_hits = 0;
    pmu_fixed(1, FIXED_ALL, 0);
    expect_counts("20 HLT", measure_kernel(interrupt_hlt, 20), 0,
                  4 + (6 + 3) * 20);
    expect(interrupt_hits, 20, "interrupts");
}

/* An interrupt that the program sends itself is taken after the store. */
CODE("interrupt_self:\n"
     "    sti\n"
     "    mov $0xfee00000, %eax\n"
     "1:  movl $0x40042, 0x300(%rax)\n"
     "    nop\n"
     "    nop\n"
     "    dec %rdi\n"
     "    jnz 1b\n"
     "    cli\n"
     "    ret\n");
code_fn interrupt_self;

TEST(interrupt, to_itself)
{
    set_gate(VEC_IPI, interrupt_wake_up);
    interrupt_hits = 0;
    expect_counts("100 IPIs", measure_kernel(interrupt_self, 100), 0,
                  4 + (5 + 3) * 100);
    expect(interrupt_hits, 100, "interrupts");
}

/* The event of interrupts counts them in the mode that they interrupt. */
TEST(interrupt, counted)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < TRIES && total < ENOUGH; i++) {
        interrupt_hits = 0;
        start_timer();
        pmu_gp(0, EV_INTERRUPTS | SEL_USR, 0);
        pmu_gp(1, EV_INTERRUPTS | SEL_OS, 0);
        run_user(GP(0) | GP(1), interrupt_loop, TURNS);
        expect(rdmsr(MSR_PMC(0)), interrupt_hits, "interrupts of user mode");
        expect(rdmsr(MSR_PMC(1)), 0, "interrupts of the kernel");
        total += interrupt_hits;
    }
    expect_enough(total);
}

/* Interrupts do not disturb samples of a loop in user mode. */
TEST(interrupt, sampling)
{
    const uint64_t total = 3 * TURNS + 2, period = 997;
    uint64_t hits = 0;

    for (unsigned tries = 0; tries < TRIES && hits < ENOUGH; tries++) {
        interrupt_hits = 0;
        start_timer();
        pmu_gp(0, EV_INSTRUCTIONS | SEL_USR | SEL_INT, -period);
        sample_with(VEC_PMI);
        sample_reload(0, period);
        run_user(GP(0), interrupt_loop, TURNS);
        hits += interrupt_hits;
        expect(sample_count, total / period, "samples");
        for (unsigned i = 0; i < sample_count; i++) {
            static const uint8_t place[] = { 3, 6, 7 };
            uint64_t n = (i + 1) * period;

            expect(samples[i].rip,
                   (uint64_t)interrupt_loop + place[(n - 1) % 3],
                   "sample %u: RIP", i);
        }
    }
    expect_enough(hits);
}

/* A counter of interrupts overflows before the handler's first instruction. */
TEST(interrupt, overflow)
{
    set_gate(VEC_IPI, interrupt_wake_up);
    interrupt_hits = 0;
    pmu_gp(0, EV_INTERRUPTS | SEL_ALL | SEL_INT, -3ull);
    sample_with(APIC_NMI);
    sample_reload(0, 0);
    run_kernel(GP(0), interrupt_self, 5);
    expect(interrupt_hits, 5, "interrupts");
    expect(sample_count, 1, "samples");
    expect(samples[0].rip, (uint64_t)interrupt_wake_up, "RIP");
    /* The NMI is one, too. */
    expect(samples[0].value, 1, "counter");
}
