/*
 * Suite branch: branches retired, by kind, and their interrupts
 *
 * Single steps, and the opcodes at each, provide the expected counts.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

/* Kinds of branches; an event counts the kinds in its set. */
enum {
    COND_TAKEN = 1,
    COND_NOT_TAKEN = 2,
    JUMP = 4,
    CALL = 8,
    RETURN = 16,
    FAR = 32,
};

/* The INT that ends user mode is a far branch, for the event of all. */
#define EXIT_BRANCHES 1

static const struct {
    const char *name;
    uint64_t code;
    unsigned kinds;
} events[] = {
    { "all", EV_BRANCHES,
      COND_TAKEN | COND_NOT_TAKEN | JUMP | CALL | RETURN | FAR },
    { "conditional", EV_BR_CONDITIONAL, COND_TAKEN | COND_NOT_TAKEN },
    { "not taken", EV_BR_NOT_TAKEN, COND_NOT_TAKEN },
    { "taken", EV_BR_TAKEN, COND_TAKEN | JUMP | CALL | RETURN },
    { "calls", EV_BR_CALL, CALL },
    { "returns", EV_BR_RETURN, RETURN },
};

/* Branches of every kind, without prefixes, which kind_of() does not know. */
CODE("branch_mix:\n"
     "    mov $5, %ecx\n"
     "    lea 7f(%rip), %rdx\n"
     "1:  test $1, %cl\n"
     "    jz 2f\n"
     "    nop\n"
     "2:  jmp 3f\n"
     "    ud2\n"
     "3:  call 6f\n"
     "    call *%rdx\n"
     "    call *8f(%rip)\n"
     "    push $4f\n"
     "    jmp *(%rsp)\n"
     "    ud2\n"
     "4:  pop %rax\n"
     "    cmp $3, %ecx\n"
     "    .byte 0x0f, 0x84\n"           /* JE with 32 bits */
     "    .long 5f - . - 4\n"
     "    nop\n"
     "5:  loop 1b\n"
     "    jrcxz 9f\n"
     "    ud2\n"
     "9:  push $9f\n"
     "    ret\n"
     "9:  cmp %eax, %eax\n"
     "    cmovz %eax, %ecx\n"
     "    jb 6f\n"
     "6:  mov $40, %eax\n"
     "10: sub $7, %eax\n"
     "    jns 10b\n"
     "    ret\n"
     "7:  push %rbx\n"
     "    pop %rbx\n"
     "    jmp *9f(%rip)\n"
     "    .balign 8\n"
     "8:  .quad 6b\n"
     "9:  .quad 6b\n");
code_fn branch_mix;

static bool is_conditional(const uint8_t *code)
{
    return (code[0] & 0xf0) == 0x70 || (code[0] & 0xfc) == 0xe0 ||
           (code[0] == 0x0f && (code[1] & 0xf0) == 0x80);
}

/* The kind of the branch from @from to @to; 0 if it is no branch */
static unsigned kind_of(const uint8_t *from, const uint8_t *to)
{
    if (is_conditional(from)) {
        return to == from + (from[0] == 0x0f ? 6 : 2) ? COND_NOT_TAKEN
                                                      : COND_TAKEN;
    }
    switch (from[0]) {
    case 0xc2:
    case 0xc3:
        return RETURN;
    case 0xe8:
        return CALL;
    case 0xe9:
    case 0xeb:
        return JUMP;
    case 0xff:
        return (from[1] & 0x38) == 0x10 ? CALL :
               (from[1] & 0x38) == 0x20 ? JUMP : 0;
    default:
        return 0;
    }
}

/* Results of single steps of a function, with user_exit at the end */
static struct expected {
    uint64_t steps;
    uint8_t kind[MAX_TRACE];
} expected;

static void trace(code_fn *fn, uint64_t arg)
{
    struct expected *e = &expected;

    e->steps = count_steps(fn, arg);
    step_trace[e->steps - 1] = (uint64_t)user_exit;
    for (uint64_t i = 0; i < e->steps; i++) {
        e->kind[i] = kind_of(i ? (uint8_t *)step_trace[i - 1] : (uint8_t *)fn,
                             (uint8_t *)step_trace[i]);
    }
}

static unsigned count_kinds(unsigned kinds)
{
    unsigned count = 0;

    for (uint64_t i = 0; i < expected.steps; i++) {
        count += (expected.kind[i] & kinds) != 0;
    }
    return count;
}

static unsigned exit_branches(unsigned event)
{
    return events[event].kinds & FAR ? EXIT_BRANCHES : 0;
}

TEST(branch, counts)
{
    trace(branch_mix, 0);
    for (unsigned i = 0; i < ARRAY_SIZE(events); i++) {
        unsigned count = count_kinds(events[i].kinds);

        if (!pmu_has_event(events[i].code)) {
            continue;
        }
        pmu_gp(0, events[i].code | SEL_USR, 0);
        pmu_fixed(0, FIXED_USR, 0);
        run_user(GP(0) | FIXED(0), branch_mix, 0);
        expect(rdmsr(MSR_PMC(0)), count + exit_branches(i), "%s, user mode",
               events[i].name);
        expect(rdmsr(MSR_FIXED_CTR(0)), expected.steps + RUN_USER_OVERHEAD,
               "instructions beside %s", events[i].name);

        /* and the CALL in run_kernel() */
        pmu_gp(0, events[i].code | SEL_OS, 0);
        run_kernel(GP(0), branch_mix, 0);
        expect(rdmsr(MSR_PMC(0)), count + !!(events[i].kinds & CALL),
               "%s, kernel", events[i].name);
    }
}

/* One of the events, or all branches if the PMU does not have it */
static unsigned nth_counted(unsigned n)
{
    n %= ARRAY_SIZE(events);
    return pmu_has_event(events[n].code) ? n : 0;
}

TEST(branch, several_at_once)
{
    trace(branch_mix, 0);
    for (unsigned first = 0; first < ARRAY_SIZE(events); first += 2) {
        for (unsigned i = 0; i < 4; i++) {
            pmu_gp(i, events[nth_counted(first + i)].code | SEL_USR, 0);
        }
        run_user(GP(0) | GP(1) | GP(2) | GP(3), branch_mix, 0);
        for (unsigned i = 0; i < 4; i++) {
            unsigned n = nth_counted(first + i);

            expect(rdmsr(MSR_PMC(i)),
                   count_kinds(events[n].kinds) + exit_branches(n),
                   "%s, counter %u", events[n].name, i);
        }
    }
}

/* All periods up to the count of the event, each at its exact target. */
static void expect_samples(unsigned event, unsigned period, uint32_t lvt)
{
    unsigned count = 0, sample = 0;

    if (!pmu_has_event(events[event].code)) {
        return;
    }
    pmu_gp(3, events[event].code | SEL_USR | SEL_INT, -(uint64_t)period);
    sample_with(lvt);
    sample_reload(3, period);
    run_user(GP(3), branch_mix, 0);
    for (uint64_t i = 0; i < expected.steps; i++) {
        if (expected.kind[i] & events[event].kinds && ++count % period == 0) {
            expect(samples[sample].rip, step_trace[i],
                   "%s, period %u, sample %u: RIP", events[event].name,
                   period, sample);
            sample++;
        }
    }
    if (lvt == APIC_NMI && (count + exit_branches(event)) % period == 0) {
        sample += exit_branches(event);
    }
    expect(sample_count, sample, "%s, period %u: samples", events[event].name,
           period);
    /* Take an interrupt that the exit has left pending. */
    asm volatile("sti\nnop\ncli" : : : "memory");
}

TEST(branch, period_1)
{
    trace(branch_mix, 0);
    for (unsigned i = 0; i < ARRAY_SIZE(events); i++) {
        expect_samples(i, 1, VEC_PMI);
        expect_samples(i, 1, APIC_NMI);
    }
}

TEST(branch, periods)
{
    trace(branch_mix, 0);
    for (unsigned i = 0; i < ARRAY_SIZE(events); i++) {
        for (unsigned period = 2; period < 40; period++) {
            expect_samples(i, period, VEC_PMI);
        }
    }
}

/* Counters of instructions and of branches interrupt, each at its own event. */
TEST(branch, beside_instructions)
{
    unsigned branches = 0, sample = 0;

    trace(branch_mix, 0);
    pmu_gp(0, EV_BRANCHES | SEL_USR | SEL_INT, -3ull);
    pmu_fixed(0, FIXED_USR | FIXED_INT, -7ull);
    sample_with(VEC_PMI);
    sample_reload(0, 3);
    sample_reload(pmu_fixed_bit(0), 7);
    run_user(GP(0) | FIXED(0), branch_mix, 0);
    for (uint64_t i = 0; i < expected.steps; i++) {
        uint64_t due = 0;

        branches += expected.kind[i] != 0;
        if (expected.kind[i] && branches % 3 == 0) {
            due |= GP(0);
        }
        if ((i + 1) % 7 == 0) {
            due |= FIXED(0);
        }
        if (due) {
            expect(samples[sample].status, due, "sample %u: status", sample);
            expect(samples[sample].rip, step_trace[i], "sample %u: RIP",
                   sample);
            sample++;
        }
    }
    expect(sample_count, sample, "samples");
}

/* Branches that fault: counted when they succeed. */
static unsigned faults;

static void map_page(struct regs *regs)
{
    (void)regs;
    faults++;
    map(0, spare[0], PTE_RW);
}

CODE("branch_fault:\n"
     "    mov %rsp, %rdx\n"
     "    lea 2f(%rip), %rax\n"
     "    mov %rax, spare\n"
     "    jmp 1f\n"
     "1:  jmp *(%rdi)\n"
     "    ud2\n"
     "2:  mov %rdx, %rsp\n"
     "    ret\n"
     "branch_fault_call:\n"
     "    mov %rsp, %rdx\n"
     "    lea 64(%rdi), %rsp\n"
     "    call 1f\n"
     "1:  mov %rdx, %rsp\n"
     "    ret\n"
     "branch_fault_ret:\n"
     "    mov %rsp, %rdx\n"
     "    lea 64(%rdi), %rsp\n"
     "    lea 1f(%rip), %rax\n"
     "    mov %rax, spare + 64\n"
     "    ret\n"
     "1:  mov %rdx, %rsp\n"
     "    ret\n");
code_fn branch_fault, branch_fault_call, branch_fault_ret;

TEST(branch, faults)
{
    static const struct {
        code_fn *fn;
        unsigned count;
    } functions[] = {
        { branch_fault, 3 + EXIT_BRANCHES },
        { branch_fault_call, 2 + EXIT_BRANCHES },
        { branch_fault_ret, 2 + EXIT_BRANCHES },
    };

    on_trap(PF_VECTOR, map_page);
    for (unsigned i = 0; i < ARRAY_SIZE(functions); i++) {
        faults = 0;
        map(0, NULL, 0);
        pmu_gp(1, EV_BRANCHES | SEL_USR, 0);
        run_user(GP(1), functions[i].fn, (uint64_t)WINDOW(0));
        expect(faults, 1, "function %u: faults", i);
        expect(rdmsr(MSR_PMC(1)), functions[i].count, "function %u: branches",
               i);
    }
}

/* An interrupt that arrives is no branch of the program. */
static volatile unsigned interrupts; /* by the handler */

static void on_timer(struct regs *regs)
{
    (void)regs;
    interrupts++;
    apic_eoi();
    timer_once(20000);
}

CODE("branch_loop:\n"
     "    mov %rdi, %rcx\n"
     "1:  dec %rcx\n"
     "    jnz 1b\n"
     "    ret\n");
code_fn branch_loop;

TEST(branch, interrupts)
{
    const uint64_t turns = 1000000;
    bool has_taken = pmu_has_event(EV_BR_TAKEN);

    on_trap(VEC_TIMER, on_timer);
    interrupts = 0;
    for (unsigned tries = 0; tries < 20 && interrupts < 10; tries++) {
        pmu_gp(0, EV_BRANCHES | SEL_USR, 0);
        pmu_gp(1, EV_BR_CONDITIONAL | SEL_USR, 0);
        pmu_gp(2, (has_taken ? EV_BR_TAKEN : EV_BR_RETURN) | SEL_USR, 0);
        timer_once(20000);
        run_user(GP(0) | GP(1) | GP(2), branch_loop, turns);
        expect(rdmsr(MSR_PMC(0)), turns + 1 + EXIT_BRANCHES, "all");
        expect(rdmsr(MSR_PMC(1)), turns, "conditional");
        expect(rdmsr(MSR_PMC(2)), has_taken ? turns : 1, "taken, or returns");
    }
    expect(interrupts >= 10, true, "at least 10 interrupts");
}

/*
 * Far branches are instructions of the program, including IRET, SYSRET and
 * RETF.  Interrupts and exceptions are no far branches.
 */
CODE("branch_far_entry:\n"
     "    nop\n"
     "    iretq\n"
     "branch_far:\n"
     "    int $0x80\n"
     "    nop\n"
     "    int $0x80\n"
     "    ud2\n"
     "    ret\n");
LABEL(branch_far_entry);
code_fn branch_far;

static void skip_two(struct regs *regs)
{
    regs->rip += 2;
}

TEST(branch, far)
{
    set_gate(VEC_SYSCALL, branch_far_entry);
    on_trap(UD_VECTOR, skip_two);
    pmu_gp(0, EV_BR_FAR | SEL_USR, 0);
    pmu_gp(1, EV_BR_FAR | SEL_OS, 0);
    pmu_gp(2, (pmu_has_event(EV_BR_TAKEN) ? EV_BR_TAKEN : EV_BR_RETURN) |
              SEL_USR, 0);
    run_user(GP(0) | GP(1) | GP(2), branch_far, 0);
    expect(rdmsr(MSR_PMC(0)), 2 + EXIT_BRANCHES, "in user mode");
    /* IRET of run_user(), of the two INT, of #UD's handler */
    expect(rdmsr(MSR_PMC(1)), 1 + 2 + 1, "in the kernel");
    expect(rdmsr(MSR_PMC(2)), 1, "near branches taken: the return");
}

CODE("branch_syscall_entry:\n"
     "    sysretq\n"
     "branch_syscall:\n"
     "    syscall\n"
     "    nop\n"
     "    syscall\n"
     "    ret\n");
LABEL(branch_syscall_entry);
code_fn branch_syscall;

TEST(branch, syscall)
{
    wrmsr(MSR_LSTAR, (uint64_t)branch_syscall_entry);
    wrmsr(MSR_FMASK, RFLAGS_IF);
    pmu_gp(0, EV_BR_FAR | SEL_USR, 0);
    pmu_gp(1, EV_BR_FAR | SEL_OS, 0);
    run_user(GP(0) | GP(1), branch_syscall, 0);
    expect(rdmsr(MSR_PMC(0)), 2 + EXIT_BRANCHES, "SYSCALL");
    /* IRET of run_user() */
    expect(rdmsr(MSR_PMC(1)), 1 + 2, "SYSRET");
}

CODE("branch_sysenter_entry:\n"
     "    rex.w sysexit\n"
     "branch_sysenter:\n"
     "    mov %rsp, %rcx\n"
     "    lea 1f(%rip), %rdx\n"
     "    sysenter\n"
     "1:  ret\n");
LABEL(branch_sysenter_entry);
code_fn branch_sysenter;

/* AMD's CPUs do not have SYSENTER in long mode. */
TEST(branch, sysenter)
{
    static uint8_t stack[256] __attribute__((aligned(16)));

    if (!pmu_is_intel()) {
        skip();
    }
    wrmsr(MSR_SYSENTER_CS, KERNEL_CS);
    wrmsr(MSR_SYSENTER_ESP, (uint64_t)(stack + sizeof(stack)));
    wrmsr(MSR_SYSENTER_EIP, (uint64_t)branch_sysenter_entry);
    pmu_gp(0, EV_BR_FAR | SEL_USR, 0);
    pmu_gp(1, EV_BR_FAR | SEL_OS, 0);
    run_user(GP(0) | GP(1), branch_sysenter, 0);
    expect(rdmsr(MSR_PMC(0)), 1 + EXIT_BRANCHES, "SYSENTER");
    /* IRET of run_user() */
    expect(rdmsr(MSR_PMC(1)), 1 + 1, "SYSEXIT");
}

/*
 * INTO is a far branch if it traps.  The first one has no gate yet: it cannot
 * be delivered, so it does not retire, and is executed again.
 */
CODE("branch_into_entry:\n"
     "    iretq\n"
     "branch_into:\n"
     "    push $0x18\n"
     "    push $1f\n"
     "    lretq\n"
     "    .code32\n"
     "1:  mov $0x7fffffff, %eax\n"
     "    inc %eax\n"
     "    into\n"
     "    nop\n"
     "    into\n"
     "    xor %eax, %eax\n"
     "    into\n"
     "    ljmp $0x08, $2f\n"
     "    .code64\n"
     "2:  ret\n");
LABEL(branch_into_entry);
code_fn branch_into;

static void give_gate(struct regs *regs)
{
    (void)regs;
    faults++;
    set_gate(OF_VECTOR, branch_into_entry);
}

TEST(branch, into)
{
    faults = 0;
    set_gate(OF_VECTOR, NULL);
    on_trap(NP_VECTOR, give_gate);
    pmu_gp(0, EV_BR_FAR | SEL_OS, 0);
    run_kernel(GP(0), branch_into, 0);
    expect(faults, 1, "faults");
    /* RETF, jump, two INTO that trap, and IRET after these and the fault */
    expect(rdmsr(MSR_PMC(0)), 2 + 2 + 3, "far branches");
}

/* Counting of branches begins in code that was translated without it. */
TEST(branch, after_translation)
{
    run_user(0, branch_loop, 100);
    pmu_fixed(0, FIXED_USR, 0);
    run_user(FIXED(0), branch_loop, 100);
    pmu_gp(0, EV_BRANCHES | SEL_USR, 0);
    run_user(GP(0), branch_loop, 100);
    expect(rdmsr(MSR_PMC(0)), 101 + EXIT_BRANCHES, "branches");
    run_user(0, branch_loop, 100);
    expect(rdmsr(MSR_PMC(0)), 101 + EXIT_BRANCHES, "branches, stopped");
    run_user(GP(0), branch_loop, 100);
    expect(rdmsr(MSR_PMC(0)), 2 * (101 + EXIT_BRANCHES),
           "branches, started again");
}

/*
 * A branch makes one counter overflow, and the instruction after it another
 * one: each interrupts at once.
 */
CODE("branch_neighbour:\n"
     "    nop\n"
     "    nop\n"
     "    jmp branch_neighbour_first\n"
     "branch_neighbour_first:\n"
     "    nop\n"
     "branch_neighbour_second:\n"
     "    nop\n"
     "    ret\n");
LABEL(branch_neighbour_first);
LABEL(branch_neighbour_second);
code_fn branch_neighbour;

TEST(branch, neighbour_overflows)
{
    pmu_gp(0, EV_BRANCHES | SEL_USR | SEL_INT, -1ull);
    pmu_gp(1, EV_INSTRUCTIONS | SEL_USR | SEL_INT, -4ull);
    sample_with(APIC_NMI);
    sample_reload(0, 0);
    sample_reload(1, 0);
    run_user(GP(0) | GP(1), branch_neighbour, 0);
    expect(sample_count, 2, "samples");
    expect(samples[0].rip, (uint64_t)branch_neighbour_first, "first: RIP");
    expect(samples[0].status, GP(0), "first: status");
    expect(samples[1].rip, (uint64_t)branch_neighbour_second, "second: RIP");
    expect(samples[1].status, GP(1), "second: status");
}
