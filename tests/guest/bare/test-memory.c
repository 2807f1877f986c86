/*
 * Suite memory: instructions retired that read and that wrote memory
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

/* Count @fn's loads and stores, in user mode and in the kernel. */
static void expect_accesses(const char *what, code_fn *fn, uint64_t arg,
                            uint64_t loads, uint64_t stores)
{
    pmu_gp(0, EV_LOADS | SEL_USR, 0);
    pmu_gp(1, EV_STORES | SEL_USR, 0);
    run_user(GP(0) | GP(1), fn, arg);
    expect(rdmsr(MSR_PMC(0)), loads, "%s: loads in user mode", what);
    expect(rdmsr(MSR_PMC(1)), stores, "%s: stores in user mode", what);

    /* and the CALL of run_kernel() stores */
    pmu_gp(0, EV_LOADS | SEL_OS, 0);
    pmu_gp(1, EV_STORES | SEL_OS, 0);
    run_kernel(GP(0) | GP(1), fn, arg);
    expect(rdmsr(MSR_PMC(0)), loads, "%s: loads in the kernel", what);
    expect(rdmsr(MSR_PMC(1)), stores + 1, "%s: stores in the kernel", what);
}

/* RET loads. */
CODE("memory_none:\n"
     "    nop\n"
     "    lea 8(%rdi), %rax\n"
     "    ret\n"
     "memory_loads:\n"
     "    mov (%rdi), %rax\n"
     "    add (%rdi), %rax\n"
     "    cmp %rax, 8(%rdi)\n"
     "    movzbl (%rdi), %ecx\n"
     "    movups (%rdi), %xmm0\n"
     "    movsd (%rdi), %xmm1\n"
     "    ret\n"
     "memory_stores:\n"
     "    mov %rax, (%rdi)\n"
     "    movb $1, (%rdi)\n"
     "    movups %xmm0, (%rdi)\n"
     "    setz (%rdi)\n"
     "    ret\n"
     "memory_both:\n"
     "    add %rax, (%rdi)\n"
     "    incl (%rdi)\n"
     "    lock incl (%rdi)\n"
     "    xchg %rax, (%rdi)\n"
     "    ret\n"
     "memory_stack:\n"
     "    push %rax\n"
     "    pop %rax\n"
     "    call 1f\n"
     "    ret\n"
     "1:  ret\n");
code_fn memory_none, memory_loads, memory_stores, memory_both, memory_stack;

TEST(memory, counts)
{
    uint64_t data = (uint64_t)spare[1];

    expect_accesses("neither", memory_none, data, 1, 0);
    expect_accesses("loads", memory_loads, data, 7, 0);
    expect_accesses("stores", memory_stores, data, 1, 4);
    expect_accesses("both", memory_both, data, 5, 4);
    expect_accesses("stack", memory_stack, data, 3, 2);
}

CODE("memory_loop:\n"
     "    mov $1000, %ecx\n"
     "1:  mov (%rdi), %rax\n"
     "    mov %rax, 8(%rdi)\n"
     "    mov %rax, 16(%rdi)\n"
     "    dec %ecx\n"
     "    jnz 1b\n"
     "    ret\n");
code_fn memory_loop;

TEST(memory, loop)
{
    expect_accesses("loop", memory_loop, (uint64_t)spare[1], 1001, 2000);
}

/* What faults has not retired. */
static void map_page(struct regs *regs)
{
    (void)regs;
    map(0, spare[0], PTE_RW);
}

TEST(memory, faults)
{
    on_trap(PF_VECTOR, map_page);
    map(0, NULL, 0);
    pmu_gp(0, EV_LOADS | SEL_USR, 0);
    pmu_gp(1, EV_STORES | SEL_USR, 0);
    run_user(GP(0) | GP(1), memory_loads, (uint64_t)WINDOW(0));
    expect(rdmsr(MSR_PMC(0)), 7, "loads");
    map(0, spare[0], PTE_P | PTE_U);
    run_user(GP(0) | GP(1), memory_both, (uint64_t)WINDOW(0));
    expect(rdmsr(MSR_PMC(0)), 7 + 5, "loads of both");
    expect(rdmsr(MSR_PMC(1)), 4, "stores of both");
}

/* A string instruction that copies is one load and one store. */
CODE("memory_string:\n"
     "    mov $spare, %esi\n"
     "    mov $spare + 4096, %edi\n"
     "    mov $1000, %ecx\n"
     "    rep movsb\n"
     "    movsb\n"
     "    mov $1000, %ecx\n"
     "    rep stosb\n"
     "    stosb\n"
     "    lodsb\n"
     "    ret\n");
code_fn memory_string;

TEST(memory, strings)
{
    expect_accesses("strings", memory_string, 0, 4, 4);
}

/* One that repeats zero times does neither. */
CODE("memory_no_string:\n"
     "    mov $spare, %esi\n"
     "    mov $spare + 4096, %edi\n"
     "    xor %ecx, %ecx\n"
     "    rep movsb\n"
     "    rep stosb\n"
     "    repne scasb\n"
     "    ret\n");
code_fn memory_no_string;

TEST(memory, empty_strings)
{
    expect_accesses("empty strings", memory_no_string, 0, 1, 0);
}

/* Period 1: right behind each access; all but the last do both. */
TEST(memory, period_1)
{
    static const uint64_t events[] = { EV_LOADS, EV_STORES };
    uint64_t data = (uint64_t)spare[1];

    count_steps(memory_both, data);
    for (unsigned i = 0; i < ARRAY_SIZE(events); i++) {
        pmu_gp(0, events[i] | SEL_USR | SEL_INT, -1ull);
        sample_with(VEC_PMI);
        sample_reload(0, 1);
        run_user(GP(0), memory_both, data);
        expect(sample_count, events[i] == EV_LOADS ? 5 : 4,
               "event %lx: samples", events[i]);
        for (unsigned n = 0; n < 4; n++) {
            expect(samples[n].rip, step_trace[n], "event %lx, sample %u: RIP",
                   events[i], n);
        }
    }
}
