/*
 * Suite rep: a repeated string instruction is one instruction
 *
 * This holds for any number of iterations, and for any number of resumptions:
 * after interrupts, after page faults, under single steps.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

#define BUFFER_SIZE 600000

uint8_t rep_source[BUFFER_SIZE], rep_target[BUFFER_SIZE];

CODE("rep_movsb:\n"
     "    mov %rdi, %rcx\n"
     "    mov $rep_source, %esi\n"
     "    mov $rep_target, %edi\n"
     "    rep movsb\n"
     "    nop\n"
     "    ret\n"
     "rep_stosq:\n"
     "    mov %rdi, %rcx\n"
     "    mov $rep_target, %edi\n"
     "    xor %eax, %eax\n"
     "    nop\n"
     "    rep stosq\n"
     "    ret\n"
     "rep_lodsb:\n"
     "    mov %rdi, %rcx\n"
     "    mov $rep_source, %esi\n"
     "    rep lodsb\n"
     "    nop\n"
     "    nop\n"
     "    ret\n"
     "rep_scasb:\n"
     "    mov %rdi, %rcx\n"
     "    mov $rep_target, %edi\n"
     "    mov $1, %eax\n"
     "    repne scasb\n"
     "    nop\n"
     "    ret\n"
     "rep_cmpsb:\n"
     "    mov %rdi, %rcx\n"
     "    mov $rep_source, %esi\n"
     "    mov $rep_target, %edi\n"
     "    repe cmpsb\n"
     "    nop\n"
     "    ret\n");
code_fn rep_movsb, rep_stosq, rep_lodsb, rep_scasb, rep_cmpsb;

/* Each of these functions has as many instructions. */
#define REP_COUNT 6

static const struct {
    const char *name;
    code_fn *fn;
} strings[] = {
    { "REP MOVSB", rep_movsb },
    { "REP STOSQ", rep_stosq },
    { "REP LODSB", rep_lodsb },
    { "REPNE SCASB", rep_scasb },
    { "REPE CMPSB", rep_cmpsb },
};

/* QEMU leaves a translated REP after 65535 iterations. */
TEST(rep, iterations)
{
    static const unsigned iterations[] = {
        0, 1, 2, 3, 1000, 65534, 65535, 65536, 65537, 70000,
    };

    memset(rep_source, 0, BUFFER_SIZE);
    memset(rep_target, 0, BUFFER_SIZE);
    for (unsigned s = 0; s < ARRAY_SIZE(strings); s++) {
        for (unsigned i = 0; i < ARRAY_SIZE(iterations); i++) {
            expect_counts(strings[s].name,
                          measure_kernel(strings[s].fn, iterations[i]), 0,
                          REP_COUNT);
            expect_counts(strings[s].name,
                          measure_user(strings[s].fn, iterations[i]),
                          REP_COUNT, 0);
        }
    }
}

/* REPNE SCASB and REPE CMPSB end early, at a byte found. */
TEST(rep, early_end)
{
    static const unsigned ends[] = { 0, 1, 5, 65534, 65535, 65536, 66000 };

    memset(rep_source, 0, BUFFER_SIZE);
    memset(rep_target, 0, BUFFER_SIZE);
    for (unsigned i = 0; i < ARRAY_SIZE(ends); i++) {
        rep_target[ends[i]] = 1;
        expect_counts("REPNE SCASB", measure_user(rep_scasb, 300000),
                      REP_COUNT, 0);
        expect_counts("REPE CMPSB", measure_kernel(rep_cmpsb, 300000), 0,
                      REP_COUNT);
        rep_target[ends[i]] = 0;
    }
}

/* 8 bytes and 4 bytes at a time, backwards, and several in a row. */
CODE("rep_several:\n"
     "    mov $rep_target + 80000, %edi\n"
     "    std\n"
     "    mov $1000, %ecx\n"
     "    rep stosl\n"
     "    cld\n"
     "    mov $1000, %ecx\n"
     "    rep stosw\n"
     "    rep stosw\n"
     "    mov $rep_source, %esi\n"
     "    mov $3, %ecx\n"
     "    rep movsl\n"
     "    jrcxz 1f\n"
     "    ud2\n"
     "1:  movsb\n"
     "    ret\n");
code_fn rep_several;

TEST(rep, several)
{
    expect_both("several REPs", rep_several, 0, 14);
}

CODE("rep_in_loop:\n"
     "    mov %rdi, %rdx\n"
     "1:  mov $rep_target, %edi\n"
     "    mov %rdx, %rcx\n"
     "    and $7, %ecx\n"
     "    rep stosb\n"
     "    dec %rdx\n"
     "    jnz 1b\n"
     "    ret\n");
code_fn rep_in_loop;

TEST(rep, in_a_loop)
{
    expect_both("a REP a turn", rep_in_loop, 1000, 6 * 1000 + 2);
}

/* Under single steps, every iteration traps, but only the last retires. */
static unsigned steps;

static void on_step(struct regs *regs)
{
    steps++;
    if (regs->rip == (uint64_t)user_exit) {
        regs->rflags &= ~RFLAGS_TF;
    }
}

CODE("rep_stepped:\n"
     "    mov $rep_target, %edi\n"
     "    mov $20, %ecx\n"
     "    pushfq\n"
     "    orq $0x100, (%rsp)\n"
     "    popfq\n"
     "    nop\n"
     "    rep stosb\n"
     "    rep stosb\n"
     "    ret\n");
code_fn rep_stepped;

TEST(rep, single_step)
{
    struct counts c;

    steps = 0;
    on_trap(DB_VECTOR, on_step);
    c = measure_user(rep_stepped, 0);
    /* A step each for NOP, 20 iterations, one without iterations, and RET */
    expect(steps, 1 + 20 + 1 + 1, "steps");
    expect(c.user, 9, "user instructions");
}

code_fn *rep_to_step;

CODE("rep_step_into:\n"
     "    mov rep_to_step(%rip), %rax\n"
     "    pushfq\n"
     "    orq $0x100, (%rsp)\n"
     "    popfq\n"
     "    jmp *%rax\n");
code_fn rep_step_into;

/* The JMP, the instructions but the REP, and its iterations, or one of none. */
static void expect_steps(code_fn *fn, unsigned iterations, unsigned executed,
                         const char *name)
{
    steps = 0;
    rep_to_step = fn;
    run_user(0, rep_step_into, iterations);
    expect(steps, 1 + REP_COUNT - 1 + (executed ?: 1), "%s of %u: steps", name,
           iterations);
}

/*
 * There is exactly one trap for each iteration: without counters, while
 * instructions are counted, and while QEMU counts loads and stores outside.
 */
TEST(rep, steps_of_each)
{
    static const unsigned iterations[] = { 0, 1, 2, 3, 20 };

    memset(rep_source, 0, BUFFER_SIZE);
    memset(rep_target, 0, BUFFER_SIZE);
    on_trap(DB_VECTOR, on_step);
    for (unsigned s = 0; s < ARRAY_SIZE(strings); s++) {
        for (unsigned i = 0; i < ARRAY_SIZE(iterations); i++) {
            expect_steps(strings[s].fn, iterations[i], iterations[i],
                         strings[s].name);
        }
    }
    rep_target[7] = 1;
    expect_steps(rep_scasb, 20, 8, "REPNE SCASB, found");
    expect_steps(rep_scasb, 8, 8, "REPNE SCASB, found at its end");
    expect_steps(rep_cmpsb, 20, 8, "REPE CMPSB, different");
}

/* The guest's own counters change nothing of that. */
TEST(rep, steps_while_counted)
{
    static const uint64_t events[] = { EV_LOADS, EV_STORES, EV_INSTRUCTIONS };

    on_trap(DB_VECTOR, on_step);
    for (unsigned i = 0; i < ARRAY_SIZE(events); i++) {
        pmu_gp(0, events[i] | SEL_ALL, 0);
        rep_to_step = rep_movsb;
        steps = 0;
        run_user(GP(0), rep_step_into, 20);
        expect(steps, 1 + REP_COUNT - 1 + 20, "event 0x%lx: steps", events[i]);
    }
}

/* ---- Page faults ---------------------------------------------------- */

/* Fill @arg pages of the window. */
CODE("rep_window:\n"
     "    mov %rdi, %rcx\n"
     "    shl $12, %rcx\n"
     "    mov $0x40000000, %edi\n"
     "    nop\n"
     "    rep stosb\n"
     "    nop\n"
     "    ret\n");
code_fn rep_window;

static unsigned faults;

static void map_next(struct regs *regs)
{
    unsigned n = (read_cr2() - WINDOW_BASE) / PAGE_SIZE;

    faults++;
    expect(regs->rdi, read_cr2() & -(uint64_t)PAGE_SIZE, "RDI at the fault");
    map(n, spare[n % SPARE_PAGES], PTE_RW);
}

TEST(rep, page_faults)
{
    struct counts c;

    on_trap(PF_VECTOR, map_next);
    faults = 0;
    c = measure_user(rep_window, 40);
    expect(faults, 40, "faults");
    expect(c.user, 7, "user instructions");
    expect(c.all, c.user + c.kernel, "all");
}

/* ---- Interrupts ----------------------------------------------------- */

static volatile unsigned interrupts, in_rep; /* by the handler */
LABEL(rep_timed_insn);

static void on_timer(struct regs *regs)
{
    interrupts++;
    in_rep += regs->rip == (uint64_t)rep_timed_insn;
    apic_eoi();
    timer_once(20000);
}

CODE("rep_timed:\n"
     "    mov %rdi, %rdx\n"
     "1:  mov $600000, %ecx\n"
     "    mov $rep_target, %edi\n"
     "rep_timed_insn:\n"
     "    rep stosb\n"
     "    dec %rdx\n"
     "    jnz 1b\n"
     "    ret\n");
code_fn rep_timed;

TEST(rep, interrupts)
{
    struct counts c;

    on_trap(VEC_TIMER, on_timer);
    interrupts = in_rep = 0;
    for (unsigned tries = 0; tries < 20 && in_rep < 5; tries++) {
        timer_once(20000);
        c = measure_user(rep_timed, 3);
        expect(c.user, 5 * 3 + 2, "user instructions");
        expect(c.all, c.user + c.kernel, "all");
    }
    expect(in_rep >= 5, true, "interrupts within a REP (%u of %u)", in_rep,
           interrupts);
}

/* ---- Overflow ------------------------------------------------------- */

CODE("rep_overflow:\n"
     "    mov $rep_target, %edi\n"
     "    mov $200000, %ecx\n"
     "    rep stosb\n"
     "rep_overflow_next:\n"
     "    nop\n"
     "    ret\n");
code_fn rep_overflow;
LABEL(rep_overflow_next);

/* An overflow at the REP interrupts only when the REP has finished. */
TEST(rep, overflow)
{
    for (unsigned lvt = 0; lvt < 2; lvt++) {
        pmu_fixed(0, FIXED_USR | FIXED_INT, -3ull);
        sample_with(lvt ? APIC_NMI : VEC_PMI);
        run_user(FIXED(0), rep_overflow, 0);
        expect(sample_count, 1, "samples");
        expect(samples[0].rip, (uint64_t)rep_overflow_next, "RIP");
        expect(samples[0].value, 0, "counter");
    }
}
