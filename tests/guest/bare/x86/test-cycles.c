/*
 * Suite cycles: core and reference cycles of the default model, thresholds
 *
 * Each instruction takes opt/vpmu/cpi thousandths of a cycle; `run` passes the
 * value that it has given the CPU.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

CODE("cycles_loop:\n"
     "    mov %rdi, %rcx\n"
     "1:  dec %rcx\n"
     "    jnz 1b\n"
     "    ret\n"
     "cycles_straight:\n"
     "    .rept 200\n"
     "    nop\n"
     "    .endr\n"
     "    ret\n");
code_fn cycles_loop, cycles_straight;

/*
 * Cycles of @insns instructions of one mode.  They can begin at any point
 * within a cycle, so that one more cycle can end in them.
 */
static bool fits(uint64_t cycles, uint64_t insns)
{
    uint64_t cpi = option("cpi", 1000), want = insns * cpi / 1000;

    return cpi % 1000 ? cycles - want <= 1 : cycles == want;
}

#define expect_fits(cycles, insns, what)                        \
    expect(fits(cycles, insns), true, what ": %lu cycles, %lu "  \
           "instructions", (uint64_t)(cycles), (uint64_t)(insns))

TEST(cycles, of_instructions)
{
    static const unsigned turns[] = { 1, 10, 12345, 1000000 };

    for (unsigned i = 0; i < ARRAY_SIZE(turns); i++) {
        pmu_fixed(0, FIXED_USR, 0);
        pmu_fixed(1, FIXED_USR, 0);
        pmu_fixed(2, FIXED_USR, 0);
        pmu_gp(0, EV_CYCLES | SEL_USR, 0);
        pmu_gp(1, EV_REF_CYCLES | SEL_USR, 0);
        run_user(FIXED(0) | FIXED(1) | FIXED(2) | GP(0) | GP(1), cycles_loop,
                 turns[i]);
        expect(rdmsr(MSR_FIXED_CTR(0)), 2 * turns[i] + 3, "instructions");
        expect_fits(rdmsr(MSR_FIXED_CTR(1)), 2 * turns[i] + 3, "fixed");
        expect(rdmsr(MSR_PMC(0)), rdmsr(MSR_FIXED_CTR(1)), "general, fixed");
        expect(rdmsr(MSR_FIXED_CTR(2)), rdmsr(MSR_FIXED_CTR(1)),
               "reference cycles, cycles");
        expect(rdmsr(MSR_PMC(1)), rdmsr(MSR_FIXED_CTR(2)),
               "general, fixed reference cycles");
    }
}

/* A cycle counter alone, without a counter of instructions. */
TEST(cycles, alone)
{
    pmu_fixed(1, FIXED_ALL, 0);
    run_kernel(FIXED(1), cycles_straight, 0);
    expect_fits(rdmsr(MSR_FIXED_CTR(1)), 201 + RUN_KERNEL_OVERHEAD, "alone");
}

/* Nothing counts while the CPU sleeps: 10 times 1 ms. */
CODE(SLEEP("cycles", 1000000));
code_fn cycles_sleep;
LABEL(cycles_wake_up);

TEST(cycles, halted)
{
    const unsigned insns = 2 + (6 + 2) * 10 + RUN_KERNEL_OVERHEAD;

    set_gate(VEC_TIMER, cycles_wake_up);
    timer_once(0);
    pmu_fixed(0, FIXED_ALL, 0);
    pmu_fixed(1, FIXED_ALL, 0);
    pmu_fixed(2, FIXED_ALL, 0);
    run_kernel(FIXED(0) | FIXED(1) | FIXED(2), cycles_sleep, 10);
    expect(rdmsr(MSR_FIXED_CTR(0)), insns, "instructions");
    expect_fits(rdmsr(MSR_FIXED_CTR(1)), insns, "core cycles");
    expect_fits(rdmsr(MSR_FIXED_CTR(2)), insns, "reference cycles");
}

/* The interrupt comes after the instruction that completes cycle N. */
TEST(cycles, overflow)
{
    uint64_t cpi = option("cpi", 1000);

    for (unsigned n = 1; n <= 190; n += n < 20 ? 1 : 17) {
        uint64_t insns = (n * 1000 + cpi - 1) / cpi;
        uint64_t place;

        pmu_fixed(1, FIXED_USR | FIXED_INT, -(uint64_t)n);
        sample_with(VEC_PMI);
        run_user(FIXED(1), cycles_straight, 0);
        expect(sample_count, 1, "cycle %u: samples", n);
        place = samples[0].rip - (uint64_t)cycles_straight;
        if (cpi % 1000) {
            /* One instruction less, if the run begins late in a cycle */
            expect(insns - place <= 1, true, "cycle %u: %lu bytes", n, place);
        } else {
            expect(place, insns, "cycle %u: bytes", n);
        }
    }
}

/* Sampling of cycles does not change their number. */
TEST(cycles, sampled)
{
    uint64_t insns = 2 * 100000 + 3;

    pmu_fixed(0, FIXED_USR, 0);
    pmu_fixed(2, FIXED_USR, 0);
    pmu_gp(0, EV_CYCLES | SEL_USR | SEL_INT, -1000ull);
    sample_with(VEC_PMI);
    sample_reload(0, 1000);
    run_user(FIXED(0) | FIXED(2) | GP(0), cycles_loop, 100000);
    expect(rdmsr(MSR_FIXED_CTR(0)), insns, "instructions");
    expect_fits(rdmsr(MSR_FIXED_CTR(2)), insns, "cycles");
}

/*
 * At most one instruction a cycle: with a threshold of 2 none count, with
 * the threshold inverted all cycles do; a threshold of 1 changes nothing.
 */
TEST(cycles, threshold)
{
    uint64_t insns = 201 + RUN_USER_OVERHEAD;
    uint64_t event = EV_INSTRUCTIONS | SEL_USR;

    pmu_gp(0, event | SEL_CMASK(1), 0);
    pmu_gp(1, event | SEL_CMASK(2), 0);
    pmu_gp(2, event | SEL_CMASK(16) | SEL_INV, 0);
    pmu_gp(3, event | SEL_CMASK(1) | SEL_INV, 0);
    pmu_fixed(1, FIXED_USR, 0);
    run_user(GP(0) | GP(1) | GP(2) | GP(3) | FIXED(1), cycles_straight, 0);
    expect(rdmsr(MSR_PMC(0)), insns, "CMASK 1");
    expect(rdmsr(MSR_PMC(1)), 0, "CMASK 2");
    expect(rdmsr(MSR_PMC(2)), rdmsr(MSR_FIXED_CTR(1)), "CMASK 16, INV");
    expect(rdmsr(MSR_PMC(3)), rdmsr(MSR_FIXED_CTR(1)) - insns,
           "CMASK 1, INV");
}

/* Without a threshold INV means nothing. */
TEST(cycles, inverted_only)
{
    pmu_gp(0, EV_INSTRUCTIONS | SEL_USR | SEL_INV, 0);
    run_user(GP(0), cycles_straight, 0);
    expect(rdmsr(MSR_PMC(0)), 201 + RUN_USER_OVERHEAD, "INV");
}
