/*
 * Suite mode: user mode and kernel are distinguished at every transition
 *
 * An instruction counts in the mode in which it begins: SYSCALL, INT and INT3
 * in user mode, SYSRET and IRET in the kernel.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "internal.h"
#include "pmu.h"

/* SYSCALL: 4 in the kernel.  SYSCALL uses RCX and R11. */
#define SYSCALL_COUNT 4

CODE("mode_syscall_entry:\n"
     "    nop\n"
     "    nop\n"
     "    inc %r10\n"
     "    sysretq\n"
     "mode_syscalls:\n"
     "    xor %r10d, %r10d\n"
     "1:  nop\n"
     "    syscall\n"
     "    dec %rdi\n"
     "    jnz 1b\n"
     "    mov %r10, %rax\n"
     "    ret\n");
LABEL(mode_syscall_entry);
code_fn mode_syscalls;

TEST(mode, syscall)
{
    struct counts c;

    wrmsr(MSR_LSTAR, (uint64_t)mode_syscall_entry);
    wrmsr(MSR_FMASK, RFLAGS_IF);
    c = measure_user(mode_syscalls, 1000);
    expect(c.result, 1000, "system calls");
    expect_counts("1000 SYSCALL", c, 4 * 1000 + 3, SYSCALL_COUNT * 1000);
}

/* INT: 3 in the kernel. */
#define INT_COUNT 3

CODE("mode_int_entry:\n"
     "    nop\n"
     "    inc %r10\n"
     "    iretq\n"
     "mode_ints:\n"
     "    xor %r10d, %r10d\n"
     "1:  int $0x80\n"
     "    dec %rdi\n"
     "    jnz 1b\n"
     "    mov %r10, %rax\n"
     "    ret\n"
     "mode_int3s:\n"
     "    xor %r10d, %r10d\n"
     "1:  int3\n"
     "    dec %rdi\n"
     "    jnz 1b\n"
     "    mov %r10, %rax\n"
     "    ret\n");
LABEL(mode_int_entry);
code_fn mode_ints, mode_int3s;

TEST(mode, int)
{
    struct counts c;

    set_gate(VEC_SYSCALL, mode_int_entry);
    c = measure_user(mode_ints, 1000);
    expect(c.result, 1000, "interrupts");
    expect_counts("1000 INT in user mode", c, 3 * 1000 + 3,
                  INT_COUNT * 1000);
    expect_counts("1000 INT in the kernel", measure_kernel(mode_ints, 1000),
                  0, (3 + INT_COUNT) * 1000 + 3);
}

TEST(mode, int3)
{
    set_gate(BP_VECTOR, mode_int_entry);
    expect_counts("1000 INT3 in user mode", measure_user(mode_int3s, 1000),
                  3 * 1000 + 3, INT_COUNT * 1000);
    expect_counts("1000 INT3 in the kernel",
                  measure_kernel(mode_int3s, 1000),
                  0, (3 + INT_COUNT) * 1000 + 3);
}

/* SYSENTER and SYSEXIT: 2 in the kernel. */
CODE("mode_sysenter_entry:\n"
     "    nop\n"
     "    rex.w sysexit\n"
     "mode_sysenter:\n"
     "    mov %rsp, %rcx\n"
     "    lea 1f(%rip), %rdx\n"
     "    sysenter\n"
     "    ud2\n"
     "1:  nop\n"
     "    ret\n");
LABEL(mode_sysenter_entry);
code_fn mode_sysenter;

/* AMD's CPUs do not have SYSENTER in long mode. */
TEST(mode, sysenter)
{
    static uint8_t stack[256] __attribute__((aligned(16)));

    if (!pmu_is_intel()) {
        skip();
    }
    wrmsr(MSR_SYSENTER_CS, KERNEL_CS);
    wrmsr(MSR_SYSENTER_ESP, (uint64_t)(stack + sizeof(stack)));
    wrmsr(MSR_SYSENTER_EIP, (uint64_t)mode_sysenter_entry);
    expect_counts("SYSENTER", measure_user(mode_sysenter, 0), 5, 2);
}

/*
 * A call gate: the one instruction that chains code of two modes.  Its
 * descriptor is in the place of a CPU's task state that there is not.
 */
#define CALL_GATE (TSS_SEL + 16 * (MAX_CPUS - 1))

CODE("mode_gate_entry:\n"
     "    nop\n"
     "    jmp 1f\n"
     "1:  nop\n"
     "    rex.w lret\n"
     "mode_gate:\n"
     "    lcall *mode_gate_pointer\n"
     "    dec %rdi\n"
     "    jnz mode_gate\n"
     "    ret\n");
LABEL(mode_gate_entry);
code_fn mode_gate;

struct {
    uint32_t offset;
    uint16_t selector;
} __attribute__((packed)) mode_gate_pointer = { 0, CALL_GATE | 3 };

TEST(mode, call_gate)
{
    uint64_t entry = (uint64_t)mode_gate_entry;

    gdt[CALL_GATE / 8] = (entry & 0xffff) | KERNEL_CS << 16 | 0xecull << 40
                         | (entry >> 16 & 0xffff) << 48;
    gdt[CALL_GATE / 8 + 1] = entry >> 32;
    expect_counts("call gate", measure_user(mode_gate, 1000), 3 * 1000 + 1,
                  4 * 1000);
}

/* A long way in both modes, so that both have translated chains. */
CODE("mode_busy_entry:\n"
     "    mov $500, %ecx\n"
     "1:  dec %ecx\n"
     "    jnz 1b\n"
     "    iretq\n"
     "mode_busy:\n"
     "    int $0x80\n"
     "    mov $300, %ecx\n"
     "1:  dec %ecx\n"
     "    jnz 1b\n"
     "    dec %rdi\n"
     "    jnz mode_busy\n"
     "    ret\n");
LABEL(mode_busy_entry);
code_fn mode_busy;

TEST(mode, loops_in_both)
{
    set_gate(VEC_SYSCALL, mode_busy_entry);
    expect_counts("loops", measure_user(mode_busy, 200), 604 * 200 + 1,
                  1002 * 200);
}

/* The same code, run in both modes in turn: one translation for each. */
CODE("mode_shared:\n"
     "    nop\n"
     "    nop\n"
     "    nop\n"
     "    ret\n"
     "mode_shared_entry:\n"
     "    call mode_shared\n"
     "    iretq\n"
     "mode_sharing:\n"
     "    call mode_shared\n"
     "    int $0x80\n"
     "    call mode_shared\n"
     "    dec %rdi\n"
     "    jnz mode_sharing\n"
     "    ret\n");
LABEL(mode_shared_entry);
code_fn mode_sharing;

TEST(mode, shared_code)
{
    set_gate(VEC_SYSCALL, mode_shared_entry);
    expect_counts("shared code", measure_user(mode_sharing, 100),
                  13 * 100 + 1, 6 * 100);
}

/* Single steps: a trap after each instruction, which has retired. */
static unsigned steps;

static void on_step(struct regs *regs)
{
    steps++;
    if (regs->rip == (uint64_t)user_exit) {
        regs->rflags &= ~RFLAGS_TF;
    }
}

CODE("mode_stepped:\n"
     "    pushfq\n"
     "    orq $0x100, (%rsp)\n"
     "    popfq\n"
     "    nop\n"
     "    mov $5, %ecx\n"
     "1:  dec %ecx\n"
     "    jnz 1b\n"
     "    lea spare(%rip), %rdx\n"
     "    mov (%rdx), %rax\n"
     "    mov %rax, 8(%rdx)\n"
     "    cpuid\n"
     "    ret\n");
code_fn mode_stepped;

TEST(mode, single_step)
{
    struct counts c;

    steps = 0;
    on_trap(DB_VECTOR, on_step);
    c = measure_user(mode_stepped, 0);
    expect(steps, 17, "steps");
    expect(c.user, 20, "user instructions");
    expect(c.all, c.user + c.kernel, "all");
}

/* Single steps, together with a PMI after each instruction */
TEST(mode, single_step_and_period_1)
{
    uint64_t total;

    total = count_steps(mode_stepped, 0);
    steps = 0;
    on_trap(DB_VECTOR, on_step);
    pmu_gp(0, EV_INSTRUCTIONS | SEL_USR | SEL_INT, -1ull);
    sample_with(VEC_PMI);
    sample_reload(0, 1);
    run_user(GP(0), mode_stepped, 0);
    expect(steps, 17, "steps");
    expect(sample_count, total, "samples");
    for (unsigned i = 0; i < total - 1; i++) {
        expect(samples[i].rip, step_trace[i], "sample %u: RIP", i);
    }
}

/*
 * 32-bit code, and back: three far branches.  INTO traps on overflow, and
 * retires then; its handler has one instruction.
 */
CODE("mode_compatibility:\n"
     "    push $0x18\n"
     "    push $1f\n"
     "    lretq\n"
     "    .code32\n"
     "1:  mov $5, %ecx\n"
     "2:  inc %eax\n"
     "    dec %ecx\n"
     "    jnz 2b\n"
     "    push %eax\n"
     "    xor %eax, %eax\n"
     "    into\n"
     "    nop\n"
     "    bound %eax, mode_bounds\n"
     "    pop %eax\n"
     "    mov $0x7fffffff, %eax\n"
     "    inc %eax\n"
     "    into\n"
     "    nop\n"
     "    ljmp $0x08, $3f\n"
     "    .code64\n"
     "3:  nop\n"
     "    ret\n"
     "mode_overflow_entry:\n"
     "    iretq\n"
     "mode_bounds:\n"
     "    .long 0, 10\n");
LABEL(mode_overflow_entry);
code_fn mode_compatibility;

TEST(mode, compatibility)
{
    const unsigned count = 3 + 1 + 5 * 3 + 6 + 5 + 2 + 1;

    set_gate(OF_VECTOR, mode_overflow_entry);
    expect_counts("32-bit code", measure_kernel(mode_compatibility, 0), 0,
                  count);
}

/* USR and OS filters of fixed and general counters, and neither. */
TEST(mode, filters)
{
    static const struct {
        uint64_t select;
        unsigned field;
        unsigned count;
        const char *name;
    } filters[] = {
        { 0, 0, 0, "none" },
        { SEL_USR, FIXED_USR, 3003 + RUN_USER_OVERHEAD, "user" },
        { SEL_OS, FIXED_OS, INT_COUNT * 1000 + RUN_KERNEL_OVERHEAD, "OS" },
        { SEL_ALL, FIXED_ALL, 3003 + RUN_USER_OVERHEAD + INT_COUNT * 1000 +
          RUN_KERNEL_OVERHEAD, "both" },
    };

    set_gate(VEC_SYSCALL, mode_int_entry);
    for (unsigned i = 0; i < ARRAY_SIZE(filters); i++) {
        pmu_fixed(0, filters[i].field, 0);
        pmu_gp(3, EV_INSTRUCTIONS | filters[i].select, 0);
        run_user(FIXED(0) | GP(3), mode_ints, 1000);
        expect(rdmsr(MSR_FIXED_CTR(0)), filters[i].count, "fixed, %s",
               filters[i].name);
        expect(rdmsr(MSR_PMC(3)), filters[i].count, "general, %s",
               filters[i].name);
    }
}

/* The kernel changes the filters of a counter of user mode while it counts. */
CODE("mode_change:\n"
     MOV_PMU("0x186", "ecx")
     "    mov $0x4200c0, %eax\n"
     "    xor %edx, %edx\n"
     "    wrmsr\n"
     "    nop\n"
     "    nop\n"
     "    mov $0x4100c0, %eax\n"
     "    wrmsr\n"
     "    nop\n"
     "    nop\n"
     "    nop\n"
     "    ret\n");
code_fn mode_change;

TEST(mode, changed_filter)
{
    pmu_gp(0, EV_INSTRUCTIONS | SEL_USR, 0);
    run_kernel(GP(0), mode_change, 0);
    expect(rdmsr(MSR_PMC(0)), 4, "instructions while SEL_OS was set");
}

/* The same, once QEMU has forgotten that the kernel was counted before. */
CODE(SLEEP("mode", 100000000));
code_fn mode_sleep;
LABEL(mode_wake_up);

CODE("mode_faults:\n"
     "    .rept 8\n"
     "    ud2\n"
     "    .endr\n"
     "    jmp mode_change\n");
code_fn mode_faults;

static void skip_ud2(struct regs *regs)
{
    regs->rip += 2;
}

/*
 * What was not counted cannot have been taken back when it faulted: that would
 * be missing from what is counted later.
 */
TEST(mode, filter_changed_late)
{
    set_gate(VEC_TIMER, mode_wake_up);
    timer_once(0);
    on_trap(UD_VECTOR, skip_ud2);
    pmu_gp(0, EV_INSTRUCTIONS | SEL_USR, 0);
    run_kernel(GP(0), mode_sleep, 2);
    run_kernel(GP(0), mode_faults, 0);
    expect(rdmsr(MSR_PMC(0)), 4, "instructions while SEL_OS was set");
}

/* RDPMC in user mode: allowed by CR4.PCE only. */
CODE("mode_rdpmc:\n"
     "    mov %edi, %ecx\n"
     "    rdpmc\n"
     "    shl $32, %rdx\n"
     "    or %rdx, %rax\n"
     "    ret\n");
code_fn mode_rdpmc;

static unsigned faults;

static void skip_rdpmc(struct regs *regs)
{
    faults++;
    regs->rip += 2;
    regs->rax = regs->rdx = 0;
}

TEST(mode, rdpmc_in_user_mode)
{
    on_trap(GP_VECTOR, skip_rdpmc);
    pmu_gp(1, EV_INSTRUCTIONS | SEL_USR, 0x123456789abc);
    faults = 0;
    run_user(0, mode_rdpmc, 1);
    expect(faults, 1, "#GP without CR4.PCE");

    write_cr4(read_cr4() | CR4_PCE);
    faults = 0;
    expect(run_user(0, mode_rdpmc, 1), 0x123456789abc, "stopped counter");
    expect(run_user(GP(1), mode_rdpmc, 1), 0x123456789abd,
           "running counter");
    expect(faults, 0, "#GP with CR4.PCE");
    run_user(0, mode_rdpmc, 99);
    expect(faults, 1, "#GP for an index that there is not");
    write_cr4(read_cr4() & ~CR4_PCE);
    run_user(0, mode_rdpmc, 1);
    expect(faults, 2, "#GP after CR4.PCE was cleared");
}
