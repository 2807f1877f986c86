/*
 * Suite clock: cycles that follow time
 *
 * `run` gives the CPU pmu-cycles=time and a frequency, opt/vpmu/mhz. The number
 * of cycles depends on the host, but there must be some, and none in HLT.
 * Under icount an instruction takes opt/vpmu/insn_ns of time, and so a known
 * number of cycles.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

CODE("clock_loop:\n"
     "    mov %rdi, %rcx\n"
     "1:  dec %rcx\n"
     "    jnz 1b\n"
     "    ret\n");
code_fn clock_loop;

#define TURNS 500000

/* Whether time, and thus the number of cycles, is known: see expect_cycles() */
static bool is_exact(void)
{
    return option("insn_ns", 0);
}

/*
 * Check the cycles of @insns instructions, with @starts starts of counters. If
 * an instruction is no whole number of cycles, each start can be within a
 * cycle.
 */
static void expect_cycles(uint64_t got, uint64_t insns, unsigned starts,
                          const char *what)
{
    uint64_t thousandths = option("insn_ns", 0) * option("mhz", 0);
    uint64_t want = insns * thousandths / 1000;
    uint64_t spare = thousandths % 1000 ? starts : 0;

    if (is_exact()) {
        expect(got >= want - spare && got <= want + spare, true,
               "%s: %lu cycles of %lu instructions, which are %lu", what, got,
               insns, want);
    }
}

TEST(clock, running)
{
    uint64_t before = 0;

    pmu_fixed(0, FIXED_ALL, 0);
    pmu_fixed(1, FIXED_ALL, 0);
    pmu_gp(0, EV_CYCLES | SEL_ALL, 0);
    for (unsigned i = 1; i <= 5; i++) {
        uint64_t now;

        run_kernel(FIXED(0) | FIXED(1) | GP(0), clock_loop, TURNS);
        now = rdmsr(MSR_FIXED_CTR(1));
        expect(now > before, true, "run %u: %lu cycles after %lu", i, now,
               before);
        expect(rdmsr(MSR_PMC(0)), now, "run %u: general counter", i);
        before = now;
    }
    expect(rdmsr(MSR_FIXED_CTR(0)),
           5 * (2 * TURNS + 2 + RUN_KERNEL_OVERHEAD), "instructions");
    expect_cycles(before, rdmsr(MSR_FIXED_CTR(0)), 5, "five runs");
    run_kernel(0, clock_loop, TURNS);
    expect(rdmsr(MSR_FIXED_CTR(1)), before, "cycles while stopped");
}

CODE("clock_look:\n"
     "    mov $0x40000001, %ecx\n"
     "1:  rdpmc\n"
     "    dec %rdi\n"
     "    jnz 1b\n"
     "    ret\n");
code_fn clock_look;

/* Reads neither lose nor add cycles. */
TEST(clock, looked_at)
{
    if (!is_exact()) {
        skip();
    }
    pmu_fixed(0, FIXED_ALL, 0);
    pmu_fixed(1, FIXED_ALL, 0);
    run_kernel(FIXED(0) | FIXED(1), clock_look, TURNS);
    expect_cycles(rdmsr(MSR_FIXED_CTR(1)), rdmsr(MSR_FIXED_CTR(0)), 1,
                  "looked at");
}

/* Each mode has cycles in proportion to its instructions. */
TEST(clock, modes)
{
    uint64_t user, kernel;

    pmu_fixed(0, FIXED_ALL, 0);
    pmu_fixed(1, FIXED_ALL, 0);
    pmu_gp(0, EV_CYCLES | SEL_USR, 0);
    pmu_gp(1, EV_CYCLES | SEL_OS, 0);
    pmu_gp(2, EV_INSTRUCTIONS | SEL_USR, 0);
    run_user(FIXED(0) | FIXED(1) | GP(0) | GP(1) | GP(2), clock_loop, TURNS);
    user = rdmsr(MSR_PMC(0));
    kernel = rdmsr(MSR_PMC(1));
    expect(user + kernel, rdmsr(MSR_FIXED_CTR(1)), "user's and kernel's");
    expect_cycles(user + kernel, rdmsr(MSR_FIXED_CTR(0)), 1, "both");
    if (is_exact()) {
        expect(user / 1000, rdmsr(MSR_PMC(2)) * option("mhz", 0) / 1000000,
               "thousands of user's cycles");
    }
}

CODE("clock_call:\n"
     "1:  int $0x80\n"
     "    dec %rdi\n"
     "    jnz 1b\n"
     "    ret\n"
     "clock_called:\n"
     "    mov $1000, %ecx\n"
     "1:  dec %ecx\n"
     "    jnz 1b\n"
     "    iretq\n");
code_fn clock_call;
LABEL(clock_called);

/* The time of a mode that nobody asks for is not that of another. */
TEST(clock, mode_alone)
{
    if (!is_exact()) {
        skip();
    }
    set_gate(VEC_SYSCALL, clock_called);
    pmu_gp(0, EV_CYCLES | SEL_USR, 0);
    pmu_gp(1, EV_INSTRUCTIONS | SEL_USR, 0);
    run_user(GP(0) | GP(1), clock_call, 100);
    expect_cycles(rdmsr(MSR_PMC(0)), rdmsr(MSR_PMC(1)), 1, "user's");
}

/* Sleep: each turn would be many cycles if the CPU were awake. */
CODE(SLEEP("clock", 100000000));
code_fn clock_sleep;
LABEL(clock_wake_up);

/*
 * The time to wake up counts.  On a busy host this can be as long as the sleep,
 * but not every time.
 */
TEST(clock, halted)
{
    uint64_t cycles;

    set_gate(VEC_TIMER, clock_wake_up);
    timer_once(0);
    for (unsigned i = 0; i < 10; i++) {
        pmu_fixed(0, FIXED_ALL, 0);
        pmu_fixed(1, FIXED_ALL, 0);
        run_kernel(FIXED(0) | FIXED(1), clock_sleep, 5);
        cycles = rdmsr(MSR_FIXED_CTR(1));
        if (cycles < option("mhz", 0) * 500000 / 2) {
            break;
        }
    }
    expect(cycles < option("mhz", 0) * 500000 / 2, true,
           "%lu cycles in 500 ms of sleep", cycles);
    expect_cycles(cycles, rdmsr(MSR_FIXED_CTR(0)), 1, "asleep");
}

/* Each RDPMC ends a block. */
CODE("clock_read:\n"
     "    mov $0x40000001, %ecx\n"
     "    .rept 30\n"
     "    nop\n"
     "    rdpmc\n"
     "    .endr\n"
     "    ret\n"
     "clock_read_end:\n");
code_fn clock_read;
LABEL(clock_read_end);

#define READ_INSNS (1 + 30 * 2 + 1)

/*
 * If it is a read that finds an overflow, which freezes all counters, nothing
 * is counted from there on.  That is no reason not to count where the same code
 * is executed once more.  In some of these copies the overflow is at a read.
 */
TEST(clock, frozen_by_read)
{
    if (!is_exact()) {
        skip();
    }
    sample_with(APIC_MASKED | VEC_PMI);
    for (unsigned i = 0; i < 16; i++) {
        code_fn *copy = (code_fn *)spare[i];

        memcpy(spare[i], clock_read, clock_read_end - (char *)clock_read);
        pmu_fixed(0, FIXED_ALL, 0);
        pmu_fixed(1, FIXED_ALL | FIXED_INT,
                  -((25 + i) * option("mhz", 0) / 1000) & COUNTER_MASK);
        wrmsr(MSR_DEBUGCTL, DEBUGCTL_FREEZE_ON_PMI);
        run_kernel(FIXED(0) | FIXED(1), copy, 0);
        wrmsr(MSR_DEBUGCTL, 0);
        wrmsr(MSR_GLOBAL_OVF_CTRL, rdmsr(MSR_GLOBAL_STATUS));
        expect(rdmsr(MSR_FIXED_CTR(0)) < READ_INSNS, true, "copy %u: frozen",
               i);
        pmu_fixed(1, 0, 0);
        pmu_fixed(0, FIXED_ALL, 0);
        run_kernel(FIXED(0), copy, 0);
        expect(rdmsr(MSR_FIXED_CTR(0)), READ_INSNS + RUN_KERNEL_OVERHEAD,
               "copy %u: instructions", i);
    }
}

/* The interrupt comes, some time after the overflow. */
TEST(clock, overflow)
{
    pmu_fixed(1, FIXED_USR | FIXED_INT, -100000ull);
    sample_with(VEC_PMI);
    for (unsigned i = 0; i < 100 && !sample_count; i++) {
        run_user(FIXED(1), clock_loop, TURNS);
    }
    expect(sample_count, 1, "samples");
    expect(samples[0].status, FIXED(1), "status");
    expect(samples[0].cs, USER_CS, "CS");
    expect(samples[0].value < COUNTER_MASK / 2, true, "counter %lu",
           samples[0].value);
    if (is_exact()) {
        /* The excess is less than one instruction. */
        expect(samples[0].value * 1000 < option("insn_ns", 0) *
               option("mhz", 0), true, "counter %lu, though time is known",
               samples[0].value);
    }
}
