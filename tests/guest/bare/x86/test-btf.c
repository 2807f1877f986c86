/*
 * Suite btf: single steps from branch to branch
 *
 * With DEBUGCTL.BTF, TF traps after each taken branch, and after nothing else.
 * The trap clears BTF; a debugger sets it again.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

#define DR6_BS          BIT(14)

#define AT(label)       ((uint64_t)(label))

/* Each target of a branch has a label. */
CODE("btf_code:\n"
     "    pushfq\n"
     "    orq $0x100, (%rsp)\n"
     "    popfq\n"
     "    nop\n"
     "    cmp %eax, %eax\n"
     "    jne btf_not_taken\n"
     "    nop\n"
     "btf_not_taken:\n"
     "    je btf_to_jmp\n"
     "    nop\n"
     "btf_to_jmp:\n"
     "    jmp btf_to_call\n"
     "    nop\n"
     "btf_to_call:\n"
     "    lea btf_to_leaf(%rip), %rdx\n"
     "    call btf_to_leaf\n"
     "btf_to_icall:\n"
     "    nop\n"
     "    call *%rdx\n"
     "btf_to_ijmp:\n"
     "    lea btf_to_loop(%rip), %rdx\n"
     "    jmp *%rdx\n"
     "    nop\n"
     "btf_to_loop:\n"
     "    mov $3, %ecx\n"
     "btf_to_again:\n"
     "    loop btf_to_again\n"
     "    mov $50, %ecx\n"
     "    lea -256(%rsp), %rdi\n"
     "    rep stosb\n"
     "    jrcxz btf_to_end\n"
     "    nop\n"
     "btf_to_end:\n"
     "    mov $7, %eax\n"
     "    ret\n"
     "btf_to_leaf:\n"
     "    nop\n"
     "    ret\n"
     "btf_halt:\n"
     "    mov $0xfee00000, %eax\n"
     "    movl $0x44042, 0x300(%rax)\n"
     "    pushfq\n"
     "    orq $0x100, (%rsp)\n"
     "    popfq\n"
     "    sti\n"
     "    hlt\n"
     "    cli\n"
     "    jmp btf_to_awake\n"
     "    nop\n"
     "btf_to_awake:\n"
     "    mov $7, %eax\n"
     "    ret\n"
     "btf_wake_up:\n"
     "    movl $0, 0xb0(%rax)\n"
     "    iretq\n"
     "btf_code_end:\n");
code_fn btf_code, btf_halt;
LABEL(btf_to_jmp);
LABEL(btf_to_call);
LABEL(btf_to_icall);
LABEL(btf_to_ijmp);
LABEL(btf_to_loop);
LABEL(btf_to_again);
LABEL(btf_to_end);
LABEL(btf_to_leaf);
LABEL(btf_to_awake);
LABEL(btf_wake_up);
LABEL(btf_code_end);

_Static_assert(VEC_IPI == 0x42, "btf_halt sends it to itself");

/* Instructions from one stop to the next; REP is one */
#define CODE_COUNT (8 + 1 + 2 + 2 + 2 + 2 + 2 + 2 + 1 + 5 + 2)

#define MAX_STOPS 64

/* Stops that the handler has noted, and whether it sets BTF again */
static uint64_t stops[MAX_STOPS];
static unsigned stop_count;
static bool set_again;

static uint64_t read_dr6(void)
{
    uint64_t value;

    asm volatile("mov %%dr6, %0" : "=r"(value));
    return value;
}

static void write_dr6(uint64_t value)
{
    asm volatile("mov %0, %%dr6" : : "r"(value));
}

/* Whether the program has been left, to the kernel or to its caller */
static bool is_outside(const struct regs *regs)
{
    return regs->rip < AT(btf_code) || regs->rip >= AT(btf_code_end);
}

static void on_stop(struct regs *regs)
{
    expect(rdmsr(MSR_DEBUGCTL) & DEBUGCTL_BTF, 0, "BTF in the handler");
    expect(read_dr6() & DR6_BS, DR6_BS, "DR6.BS");
    write_dr6(0);
    if (stop_count < MAX_STOPS) {
        stops[stop_count++] = regs->rip;
    }
    if (is_outside(regs)) {
        regs->rflags &= ~RFLAGS_TF;
    } else if (set_again) {
        wrmsr(MSR_DEBUGCTL, DEBUGCTL_BTF);
    }
}

static void step(run_fn *run, uint64_t ctrl, code_fn *fn, bool again)
{
    stop_count = 0;
    set_again = again;
    on_trap(DB_VECTOR, on_stop);
    wrmsr(MSR_DEBUGCTL, DEBUGCTL_BTF);
    expect(rdmsr(MSR_DEBUGCTL), DEBUGCTL_BTF, "BTF before");
    expect(run(ctrl, fn, 0), 7, "result");
    expect(rdmsr(MSR_DEBUGCTL), 0, "BTF behind");
    on_trap(DB_VECTOR, NULL);
}

/* The last stop is the program's return address. */
static void expect_stops(const char *what)
{
    const uint64_t want[] = {
        AT(btf_to_jmp), AT(btf_to_call), AT(btf_to_leaf), AT(btf_to_icall),
        AT(btf_to_leaf), AT(btf_to_ijmp), AT(btf_to_loop), AT(btf_to_again),
        AT(btf_to_again), AT(btf_to_end),
    };

    expect(stop_count, ARRAY_SIZE(want) + 1, "%s: stops", what);
    for (unsigned i = 0; i < ARRAY_SIZE(want); i++) {
        expect(stops[i], want[i], "%s: stop %u", what, i);
    }
}

TEST(btf, user)
{
    step(run_user, 0, btf_code, true);
    expect_stops("user mode");
    expect(stops[stop_count - 1], AT(user_exit), "behind RET");
}

TEST(btf, kernel)
{
    step(run_kernel, 0, btf_code, true);
    expect_stops("kernel");
}

/* Neither HLT nor the interrupt that ends it counts as a branch. */
TEST(btf, halted)
{
    set_gate(VEC_IPI, btf_wake_up);
    step(run_kernel, 0, btf_halt, true);
    expect(stop_count, 2, "stops");
    expect(stops[0], AT(btf_to_awake), "behind JMP");
}

/* The trap clears BTF: from then on, steps are single instructions. */
TEST(btf, once)
{
    step(run_user, 0, btf_code, false);
    expect(stops[0], AT(btf_to_jmp), "the first stop");
    expect(stops[1], AT(btf_to_call), "the second: a JMP");
    expect(stops[2], AT(btf_to_call) + 7, "the third: a LEA");
    expect(stops[3], AT(btf_to_leaf), "the fourth: a CALL");
    expect(stops[4], AT(btf_to_leaf) + 1, "the fifth: a NOP");
}

CODE("btf_free:\n"
     "    mov $7, %eax\n"
     "    jmp 1f\n"
     "    nop\n"
     "1:  ret\n");
code_fn btf_free;

/* Without TF, nothing traps, and BTF stays set. */
TEST(btf, without_tf)
{
    wrmsr(MSR_DEBUGCTL, DEBUGCTL_BTF);
    expect(run_user(0, btf_free, 0), 7, "result");
    expect(rdmsr(MSR_DEBUGCTL), DEBUGCTL_BTF, "BTF");
    wrmsr(MSR_DEBUGCTL, 0);
    expect(rdmsr(MSR_DEBUGCTL), 0, "BTF, cleared");
}

/* Neither counts nor the addresses of interrupts change. */
TEST(btf, counted)
{
    pmu_gp(0, EV_INSTRUCTIONS | SEL_USR, 0);
    step(run_user, GP(0), btf_code, true);
    expect_stops("counted");
    expect(rdmsr(MSR_PMC(0)), CODE_COUNT + RUN_USER_OVERHEAD, "instructions");
}

TEST(btf, interrupted)
{
    for (unsigned period = 1; period < 5; period++) {
        pmu_gp(0, EV_INSTRUCTIONS | SEL_USR | SEL_INT, -(uint64_t)period);
        sample_with(APIC_NMI);
        sample_reload(0, period);
        step(run_user, GP(0), btf_code, true);
        expect_stops("interrupted");
        expect(sample_count, (CODE_COUNT + RUN_USER_OVERHEAD) / period,
               "samples");
    }
}
