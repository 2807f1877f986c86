/*
 * Suite count: retired instructions of plain code, exact
 *
 * Each function's instructions are known by construction; they are counted
 * in the kernel and in user mode.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

CODE("count_return:\n"
     "    ret\n");
code_fn count_return;

TEST(count, nothing)
{
    expect_both("ret", count_return, 0, 1);
}

CODE("count_straight:\n"
     "    .rept 100\n"
     "    nop\n"
     "    add %rdi, %rax\n"
     "    lea 8(%rax), %rdx\n"
     "    .endr\n"
     "    ret\n");
code_fn count_straight;

TEST(count, straight_line)
{
    expect_both("301 instructions", count_straight, 0, 301);
}

/* More than a page, more than a translation block holds. */
CODE("count_long:\n"
     "    .rept 20000\n"
     "    nop\n"
     "    .endr\n"
     "    ret\n");
code_fn count_long;

TEST(count, several_pages)
{
    expect_both("20001 instructions", count_long, 0, 20001);
}

/* Each MOV of 10 bytes lies on two pages; one is reached by a jump, one not. */
CODE("    .balign 4096\n"
     "    .fill 4096 - 5, 1, 0x90\n"
     "count_straddle:\n"
     "    movabs $0x1122334455667788, %rax\n"
     "    jmp 1f\n"
     "    .fill 4096 - 10 - 2 - 7, 1, 0x90\n"
     "1:  nop\n"
     "    nop\n"
     "    movabs $0x1122334455667788, %rax\n"
     "    ret\n");
code_fn count_straddle;

TEST(count, straddled_page)
{
    expect_both("page straddlers", count_straddle, 0, 6);
}

CODE("count_loop:\n"
     "    mov %rdi, %rcx\n"
     "1:  dec %rcx\n"
     "    jnz 1b\n"
     "    ret\n");
code_fn count_loop;

TEST(count, loop)
{
    static const unsigned turns[] = { 1, 2, 3, 100, 100000, 3000000 };

    for (unsigned i = 0; i < ARRAY_SIZE(turns); i++) {
        expect_both("loop", count_loop, turns[i], 2 * turns[i] + 2);
    }
}

/* LOOP and JRCXZ, which QEMU translates in a special way. */
CODE("count_loop_insn:\n"
     "    mov %rdi, %rcx\n"
     "1:  nop\n"
     "    loop 1b\n"
     "    jrcxz 2f\n"
     "    ud2\n"
     "2:  ret\n");
code_fn count_loop_insn;

TEST(count, loop_instruction)
{
    expect_both("LOOP", count_loop_insn, 1000, 1 + 2 * 1000 + 1 + 1);
}

/* 3 in here, 4 a turn: CALL, NOP, RET, and LOOP. */
CODE("count_calls:\n"
     "    mov %rdi, %rcx\n"
     "1:  call 2f\n"
     "    loop 1b\n"
     "    nop\n"
     "    ret\n"
     "2:  nop\n"
     "    ret\n");
code_fn count_calls;

TEST(count, calls)
{
    expect_both("calls", count_calls, 5000, 4 * 5000 + 3);
}

/* Indirect jump and call, by register and by memory: 7 a turn. */
CODE("count_indirect:\n"
     "    mov %rdi, %rcx\n"
     "    lea 2f(%rip), %rdx\n"
     "1:  jmp *%rdx\n"
     "    ud2\n"
     "2:  call *4f(%rip)\n"
     "    jmp *5f(%rip)\n"
     "    ud2\n"
     "    .balign 4096\n"
     "3:  nop\n"
     "    ret\n"
     "4:  .quad 3b\n"
     "5:  .quad 6f\n"
     "6:  dec %rcx\n"
     "    jnz 1b\n"
     "    ret\n");
code_fn count_indirect;

TEST(count, indirect)
{
    expect_both("indirect jumps", count_indirect, 2000, 7 * 2000 + 3);
}

/*
 * fib(n) has 4 instructions if n < 2 (CMP, JB, MOV, RET), else 13 in addition
 * to its two calls.
 */
CODE("count_fib:\n"
     "    cmp $2, %rdi\n"
     "    jb 1f\n"
     "    push %rdi\n"
     "    dec %rdi\n"
     "    call count_fib\n"
     "    pop %rdi\n"
     "    push %rax\n"
     "    sub $2, %rdi\n"
     "    call count_fib\n"
     "    pop %rdx\n"
     "    add %rdx, %rax\n"
     "    nop\n"
     "    ret\n"
     "1:  mov %rdi, %rax\n"
     "    ret\n");
code_fn count_fib;

static uint64_t fib_instructions(unsigned n)
{
    return n < 2 ? 4 : 13 + fib_instructions(n - 1) + fib_instructions(n - 2);
}

TEST(count, recursion)
{
    expect(measure_user(count_fib, 15).result, 610, "fib(15)");
    expect_both("fib", count_fib, 15, fib_instructions(15));
}

/* x87, SSE, a division, a bit scan, CPUID, locked and plain. */
CODE("count_mixed:\n"
     "    push %rbx\n"
     "    mov $1000, %eax\n"
     "    xor %edx, %edx\n"
     "    mov $7, %ecx\n"
     "    div %ecx\n"
     "    bsf %eax, %ecx\n"
     "    cvtsi2sd %rax, %xmm0\n"
     "    sqrtsd %xmm0, %xmm1\n"
     "    mulsd %xmm1, %xmm0\n"
     "    pshufd $0x1b, %xmm0, %xmm2\n"
     "    fldpi\n"
     "    fsin\n"
     "    fstp %st(0)\n"
     "    lock addq $1, -8(%rsp)\n"
     "    lock cmpxchg %rdx, -8(%rsp)\n"
     "    cpuid\n"
     "    rdtsc\n"
     "    pause\n"
     "    movsd %xmm0, -16(%rsp)\n"
     "    pushf\n"
     "    popf\n"
     "    pop %rbx\n"
     "    ret\n");
code_fn count_mixed;

TEST(count, mixed)
{
    expect_both("mixed instructions", count_mixed, 0, 23);
}

/*
 * Accesses to devices, and locked ones across 16 bytes: within a block, QEMU
 * restarts each of these in its own block.
 */
CODE("count_restarted:\n"
     "    mov $0xfee00020, %edx\n"
     "    nop\n"
     "    mov (%rdx), %eax\n"
     "    nop\n"
     "    mov $spare + 13, %ecx\n"
     "    lock addq $1, (%rcx)\n"
     "    nop\n"
     "    xadd %eax, (%rcx)\n"
     "    lock xadd %rax, (%rcx)\n"
     "    mov $0xfee00080, %edx\n"
     "    movl $0, (%rdx)\n"
     "    nop\n"
     "    nop\n"
     "    ret\n");
code_fn count_restarted;

TEST(count, restarted_blocks)
{
    expect_both("device and split accesses", count_restarted, 0, 14);
}

/* Ports, in the kernel; CMOS takes them without harm. */
CODE("count_ports:\n"
     "    nop\n"
     "    xor %eax, %eax\n"
     "    out %al, $0x70\n"
     "    nop\n"
     "    in $0x71, %al\n"
     "    nop\n"
     "    in $0x71, %al\n"
     "    out %al, $0x80\n"
     "    ret\n");
code_fn count_ports;

TEST(count, ports)
{
    expect_counts("port accesses", measure_kernel(count_ports, 0), 0, 9);
}

/* With a second CPU, QEMU's MWAIT does not wait; with one it would. */
CODE("count_mwait:\n"
     "    lea spare(%rip), %rax\n"
     "    xor %ecx, %ecx\n"
     "    xor %edx, %edx\n"
     "    monitor\n"
     "    nop\n"
     "    xor %eax, %eax\n"
     "    mwait\n"
     "    nop\n"
     "    ret\n");
code_fn count_mwait;

TEST(count, mwait)
{
    if (option("cpus", 2) < 2) {
        skip();
    }
    expect_counts("MWAIT", measure_kernel(count_mwait, 0), 0, 9);
}

/*
 * RDPMC returns the number of instructions retired before it.  The first value
 * is that of the call and two MOVs.
 */
CODE("count_rdpmc:\n"
     "    mov %rdi, %r8\n"
     MOV_PMU("0x40000000", "ecx")
     "    rdpmc\n"
     "    mov %eax, (%r8)\n"
     "    rdpmc\n"
     "    mov %eax, 4(%r8)\n"
     "    .rept 50\n"
     "    nop\n"
     "    .endr\n"
     "    rdpmc\n"
     "    mov %eax, 8(%r8)\n"
     "    ret\n");
code_fn count_rdpmc;

TEST(count, rdpmc_while_running)
{
    static volatile uint32_t seen[3]; /* by the code under test */

    pmu_fixed(0, FIXED_ALL, 0);
    run_kernel(FIXED(0), count_rdpmc, (uint64_t)seen);
    expect(seen[0], 3, "kernel: before the first RDPMC");
    expect(seen[1], 5, "kernel: before the second");
    expect(seen[2], 57, "kernel: before the third");

    write_cr4(read_cr4() | CR4_PCE);
    pmu_fixed(0, FIXED_USR, 0);
    run_user(FIXED(0), count_rdpmc, (uint64_t)seen);
    expect(seen[0], 2, "user: before the first RDPMC");
    expect(seen[1], 4, "user: before the second");
    expect(seen[2], 56, "user: before the third");
}

/* The same by RDMSR, with both numbers of a general counter. */
CODE("count_rdmsr:\n"
     "    mov %rdi, %r8\n"
     MOV_PMU("0x4c1", "ecx")
     "    rdmsr\n"
     "    mov %eax, (%r8)\n"
     MOV_PMU("0xc1", "ecx")
     "    rdmsr\n"
     "    mov %eax, 4(%r8)\n"
     "    nop\n"
     MOV_PMU("0x309", "ecx")
     "    rdmsr\n"
     "    mov %eax, 8(%r8)\n"
     "    ret\n");
code_fn count_rdmsr;

TEST(count, rdmsr_while_running)
{
    static volatile uint32_t seen[3]; /* by the code under test */

    pmu_gp(0, EV_INSTRUCTIONS | SEL_ALL, 0);
    pmu_fixed(0, FIXED_ALL, 0);
    run_kernel(FIXED(0) | GP(0), count_rdmsr, (uint64_t)seen);
    expect(seen[0], 3, "IA32_A_PMC0");
    expect(seen[1], 6, "IA32_PMC0");
    expect(seen[2], 10, "FIXED_CTR0");
}

/*
 * A write takes effect at its end: the MOV before it counts, the write does
 * not.
 */
CODE("count_write:\n"
     "    mov %rdi, %r8\n"
     MOV_PMU("0x4c1", "ecx")
     "    mov $0x12345, %eax\n"
     "    mov $0x6789, %edx\n"
     "    wrmsr\n"
     "    xor %ecx, %ecx\n"
     "    rdpmc\n"
     "    mov %eax, (%r8)\n"
     "    mov %edx, 4(%r8)\n"
     "    ret\n");
code_fn count_write;

TEST(count, write_while_running)
{
    static volatile uint32_t seen[2]; /* by the code under test */

    pmu_gp(0, EV_INSTRUCTIONS | SEL_ALL, 0);
    run_kernel(GP(0), count_write, (uint64_t)seen);
    expect(seen[0], 0x12345 + 1, "low half");
    expect(seen[1], 0x6789, "high half");
    /* XOR, RDPMC, MOV, MOV, RET and the 5 of run_kernel() after it */
    expect(rdmsr(MSR_PMC(0)), 0x678900012345 + 10, "at the end");
}

/*
 * Counters switched on and off by their own control registers: neither counts
 * the write that enables it, both count the one that disables it.
 */
CODE("count_own_switch:\n"
     MOV_PMU("0x186", "ecx")
     "    mov $0x4300c0, %eax\n"
     "    xor %edx, %edx\n"
     "    wrmsr\n"
     "    nop\n"
     "    nop\n"
     "    nop\n"
     "    xor %eax, %eax\n"
     "    wrmsr\n"
     "    .rept 5\n"
     "    nop\n"
     "    .endr\n"
     "    ret\n"
     "count_fixed_switch:\n"
     "    xor %edx, %edx\n"
     "    mov $0x38d, %ecx\n"
     "    mov $3, %eax\n"
     "    wrmsr\n"
     "    nop\n"
     "    nop\n"
     "    xor %eax, %eax\n"
     "    wrmsr\n"
     "    ret\n");
code_fn count_own_switch, count_fixed_switch;

TEST(count, own_switch)
{
    run_kernel(GP(0), count_own_switch, 0);
    expect(rdmsr(MSR_PMC(0)), 5, "EVTSEL0's enable");
}

TEST(count, fixed_switch)
{
    if (!pmu_is_intel()) {
        skip();
    }
    run_kernel(FIXED(0), count_fixed_switch, 0);
    expect(rdmsr(MSR_FIXED_CTR(0)), 4, "FIXED_CTRL's field");
}

/* All counters agree. */
TEST(count, all_counters)
{
    for (unsigned i = 0; i < pmu_gp_counters(); i++) {
        pmu_gp(i, EV_INSTRUCTIONS | SEL_ALL, i);
    }
    pmu_fixed(0, FIXED_ALL, 0);
    run_kernel(pmu_all_counters(), count_loop, 1000);
    for (unsigned i = 0; i < pmu_gp_counters(); i++) {
        expect(rdmsr(MSR_PMC(i)), 2002 + RUN_KERNEL_OVERHEAD + i,
               "counter %u", i);
    }
    expect(rdmsr(MSR_FIXED_CTR(0)), 2002 + RUN_KERNEL_OVERHEAD,
           "fixed counter");
}

/* Counts add up over many short runs; a stopped counter does not change. */
TEST(count, many_starts)
{
    pmu_fixed(0, FIXED_ALL, 0);
    pmu_gp(1, EV_INSTRUCTIONS | SEL_ALL, 77);
    for (unsigned i = 0; i < 100; i++) {
        run_kernel(FIXED(0), count_loop, 10);
        run_kernel(0, count_loop, 1000);
    }
    expect(rdmsr(MSR_FIXED_CTR(0)), 100 * (22 + RUN_KERNEL_OVERHEAD),
           "running counter");
    expect(rdmsr(MSR_PMC(1)), 77, "stopped counter");
}

/*
 * When counting ends, QEMU keeps using code that counts for a while, and then
 * translates anew.
 */
static void wake_up(struct regs *regs)
{
    (void)regs;
    apic_eoi();
}

TEST(count, after_a_pause)
{
    on_trap(VEC_TIMER, wake_up);
    for (unsigned i = 0; i < 2; i++) {
        expect_both("straight line", count_straight, 0, 301);
        timer_once(250000000);
        asm volatile("sti\nhlt\ncli" : : : "memory");
        expect_counts("in the kernel", measure_kernel(count_straight, 0), 0,
                      301);
        expect_counts("in user mode", measure_user(count_straight, 0), 301,
                      0);
    }
}

/* The carry over 32 bits, and the wrap at 48. */
TEST(count, carry)
{
    pmu_fixed(0, FIXED_ALL, 0xfffffff0);
    pmu_gp(0, EV_INSTRUCTIONS | SEL_ALL, COUNTER_MASK - 9);
    run_kernel(FIXED(0) | GP(0), count_loop, 100);
    expect(rdmsr(MSR_FIXED_CTR(0)), 0xfffffff0ull + 202 + RUN_KERNEL_OVERHEAD,
           "over 32 bits");
    expect(rdmsr(MSR_PMC(0)), 202 + RUN_KERNEL_OVERHEAD - 10, "wrapped");
    expect(rdmsr(MSR_GLOBAL_STATUS), GP(0), "status");
}
