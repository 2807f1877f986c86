/*
 * Suite overflow: the interrupt comes right after the instruction that makes a
 * counter overflow
 *
 * Single steps of the same code provide the expected addresses.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

/* A bit of everything: loop, calls, string, device, division, flags. */
CODE("overflow_mix:\n"
     "    mov $3, %ecx\n"
     "1:  nop\n"
     "    call 3f\n"
     "    loop 1b\n"
     "    lea 2f(%rip), %rdx\n"
     "    jmp *%rdx\n"
     "    ud2\n"
     "2:  mov $spare, %edi\n"
     "    mov $40, %ecx\n"
     "    xor %eax, %eax\n"
     "    rep stosb\n"
     "    mov 0xfee00020, %eax\n"
     "    mov $7, %ecx\n"
     "    xor %edx, %edx\n"
     "    div %ecx\n"
     "    nop\n"
     "    pushfq\n"
     "    popfq\n"
     "    lock incl spare\n"
     "    lock addq $1, spare + 61\n"
     "    cvtsi2sd %eax, %xmm0\n"
     "    rdtsc\n"
     "    cpuid\n"
     "    nop\n"
     "    ret\n"
     "3:  test $1, %cl\n"
     "    jz 4f\n"
     "    nop\n"
     "4:  ret\n");
code_fn overflow_mix;

/* A loop of any length: 3 instructions a turn, and 2 more. */
CODE("overflow_loop:\n"
     "    mov %rdi, %rcx\n"
     "1:  nop\n"
     "    dec %rcx\n"
     "    jnz 1b\n"
     "    ret\n");
code_fn overflow_loop;

/*
 * Code that modifies itself, ahead in the block and by a string: the
 * instruction after the store begins a new block.
 */
CODE("overflow_modify:\n"
     "    mov $4, %ecx\n"
     "    mov $0x90, %eax\n"
     "1:  xor $0x90 ^ 0xf8, %al\n"
     "    mov %al, 2f(%rip)\n"
     "    nop\n"
     "    nop\n"
     "2:  nop\n"
     "    dec %ecx\n"
     "    jnz 1b\n"
     "    mov $3, %ecx\n"
     "    lea 3f(%rip), %rdi\n"
     "    rep stosb\n"
     "3:  nop\n"
     "    nop\n"
     "    nop\n"
     "    ret\n");
code_fn overflow_modify;

/* The program's address after @n instructions of user mode */
static uint64_t address_after(uint64_t n, uint64_t total)
{
    return n < total ? step_trace[n - 1] : (uint64_t)user_exit;
}

/*
 * Sample @fn, of @total instructions, in user mode, by general counter 0 or by
 * the fixed counter. The INT that ends user mode can also make the counter
 * overflow: an NMI comes at once, in the kernel; any other interrupt stays
 * pending.
 */
static void expect_user_samples(code_fn *fn, uint64_t arg, uint64_t total,
                                unsigned period, bool fixed, uint32_t lvt)
{
    unsigned bit = fixed ? pmu_fixed_bit(0) : 0;
    bool at_exit = (total + RUN_USER_OVERHEAD) % period == 0;

    if (fixed) {
        pmu_fixed(0, FIXED_USR | FIXED_INT, -(uint64_t)period);
    } else {
        pmu_gp(0, EV_INSTRUCTIONS | SEL_USR | SEL_INT, -(uint64_t)period);
    }
    sample_with(lvt);
    sample_reload(bit, period);
    run_user(BIT(bit), fn, arg);
    expect(sample_count, total / period + (at_exit && lvt == APIC_NMI),
           "period %u: samples", period);
    expect(apic_requested(VEC_PMI), at_exit && lvt == VEC_PMI,
           "period %u: interrupt pending in the end", period);
    for (unsigned i = 0; i < total / period && i < MAX_SAMPLES; i++) {
        expect(samples[i].rip, address_after((i + 1) * period, total),
               "period %u, sample %u: RIP", period, i);
        expect(samples[i].status, BIT(bit), "period %u, sample %u: status",
               period, i);
        expect(samples[i].value, 0, "period %u, sample %u: counter", period,
               i);
    }
    /* Take a pending interrupt. */
    asm volatile("sti\nnop\ncli" : : : "memory");
}

/*
 * Let a counter overflow in the kernel at each instruction in turn; the first
 * is the CALL of run_kernel().
 */
static void expect_each_address(code_fn *fn, uint64_t arg)
{
    uint64_t total = count_kernel_steps(fn, arg);

    for (uint64_t n = 1; n <= total; n++) {
        pmu_gp(1, EV_INSTRUCTIONS | SEL_OS | SEL_INT, -n);
        sample_with(APIC_NMI);
        run_kernel(GP(1), fn, arg);
        expect(sample_count, 1, "instruction %lu: samples", n);
        expect(samples[0].rip, n == 1 ? (uint64_t)fn : step_trace[n - 2],
               "instruction %lu: RIP", n);
        expect(samples[0].cs, KERNEL_CS, "instruction %lu: CS", n);
    }
}

TEST(overflow, period_1)
{
    expect_user_samples(overflow_mix, 0, count_steps(overflow_mix, 0), 1,
                        false, VEC_PMI);
}

TEST(overflow, period_1_fixed)
{
    expect_user_samples(overflow_mix, 0, count_steps(overflow_mix, 0), 1,
                        true, VEC_PMI);
}

TEST(overflow, period_1_nmi)
{
    expect_user_samples(overflow_mix, 0, count_steps(overflow_mix, 0), 1,
                        false, APIC_NMI);
}

TEST(overflow, periods)
{
    uint64_t total = count_steps(overflow_mix, 0);

    for (unsigned period = 2; period <= total + 1; period++) {
        expect_user_samples(overflow_mix, 0, total, period, period % 2,
                            period % 4 < 2 ? VEC_PMI : APIC_NMI);
    }
}

TEST(overflow, modified_code)
{
    uint64_t total = count_steps(overflow_modify, 0);

    for (unsigned period = 1; period <= total + 1; period++) {
        expect_user_samples(overflow_modify, 0, total, period, period % 2,
                            VEC_PMI);
    }
    expect_each_address(overflow_modify, 0);
}

/* floor(N / period), and every address, over many turns of a loop. */
TEST(overflow, loop)
{
    static const unsigned periods[] = { 3, 7, 10, 100, 101, 511, 513, 4096 };
    const uint64_t turns = 1300, total = 3 * turns + 2;

    expect(count_steps(overflow_loop, turns), total, "single steps");
    for (unsigned i = 0; i < ARRAY_SIZE(periods); i++) {
        expect_user_samples(overflow_loop, turns, total, periods[i], i % 2,
                            VEC_PMI);
    }
}

/* Periods longer than any block or loop. */
TEST(overflow, long_period)
{
    pmu_gp(2, EV_INSTRUCTIONS | SEL_USR | SEL_INT, -1000003ull);
    sample_with(VEC_PMI);
    sample_reload(2, 1000003);
    run_user(GP(2), overflow_loop, 2000000);
    expect(sample_count, 6000002 / 1000003, "samples");
    for (unsigned i = 0; i < sample_count; i++) {
        /* After the first MOV, addresses repeat every 3 instructions. */
        uint64_t n = (i + 1) * 1000003ull;
        uint64_t place = (uint64_t)overflow_loop + 3;

        place += (n - 1) % 3 == 0 ? 0 : (n - 1) % 3 == 1 ? 1 : 4;
        expect(samples[i].rip, place, "sample %u: RIP", i);
    }
}

TEST(overflow, each_address)
{
    expect_each_address(overflow_mix, 0);
    expect_each_address(overflow_loop, 20);
}

/* Instructions of the kernel, many of which end their block. */
CODE("overflow_privileged:\n"
     "    mov %cr3, %rax\n"
     "    mov %rax, %cr3\n"
     "    mov %cr0, %rax\n"
     "    mov %rax, %cr0\n"
     "    mov %cr4, %rax\n"
     "    mov %rax, %cr4\n"
     "    mov %cr8, %rax\n"
     "    mov %rax, %cr8\n"
     "    mov %dr7, %rax\n"
     "    mov %rax, %dr7\n"
     "    invlpg spare\n"
     "    mov $0xc0000080, %ecx\n"
     "    rdmsr\n"
     "    wrmsr\n"
     MOV_PMU("0x40000001", "ecx")
     "    rdpmc\n"
     MOV_PMU("0x4c3", "ecx")
     "    rdmsr\n"
     "    wrmsr\n"
     "    clts\n"
     "    swapgs\n"
     "    swapgs\n"
     "    out %al, $0x80\n"
     "    in $0x71, %al\n"
     "    nop\n"
     "    wbinvd\n"
     "    str %eax\n"
     "    mov %ss, %eax\n"
     "    mov %ss, %ecx\n"
     "    sti\n"
     "    nop\n"
     "    cli\n"
     "    mov %rsp, %rdx\n"
     "    push $0x10\n"
     "    push %rdx\n"
     "    pushfq\n"
     "    push $0x08\n"
     "    push $1f\n"
     "    iretq\n"
     "    ud2\n"
     "1:  push $0x08\n"
     "    push $2f\n"
     "    lretq\n"
     "    ud2\n"
     "2:  nop\n"
     "    ret\n");
code_fn overflow_privileged;

TEST(overflow, privileged)
{
    expect_each_address(overflow_privileged, 0);
}

/* ---- Several counters ----------------------------------------------- */

/* Four periods at once; each sample names exactly the counters that are due. */
static void expect_four_counters(const unsigned *period, unsigned turns)
{
    uint64_t total = count_steps(overflow_loop, turns);
    unsigned sample = 0;

    for (unsigned i = 0; i < 4; i++) {
        pmu_gp(i, EV_INSTRUCTIONS | SEL_USR | SEL_INT, -(uint64_t)period[i]);
        sample_reload(i, period[i]);
    }
    sample_with(VEC_PMI);
    run_user(GP(0) | GP(1) | GP(2) | GP(3), overflow_loop, turns);
    for (uint64_t n = 1; n <= total; n++) {
        uint64_t due = 0;

        for (unsigned i = 0; i < 4; i++) {
            due |= n % period[i] ? 0 : BIT(i);
        }
        if (due) {
            expect(samples[sample].status, due, "sample %u: status", sample);
            expect(samples[sample].rip, address_after(n, total),
                   "sample %u: RIP", sample);
            sample++;
        }
    }
    expect(sample_count, sample, "samples");
}

TEST(overflow, four_counters)
{
    expect_four_counters((const unsigned[]) { 3, 5, 7, 11 }, 400);
}

TEST(overflow, four_counters_long)
{
    expect_four_counters((const unsigned[]) { 1000, 999, 1300, 64 }, 1200);
}

/* A counter of both modes together with one of user mode */
CODE("overflow_int_entry:\n"
     "    nop\n"
     "    iretq\n"
     "overflow_ints:\n"
     "    nop\n"
     "    int $0x80\n"
     "    dec %rdi\n"
     "    jnz overflow_ints\n"
     "    ret\n");
LABEL(overflow_int_entry);
code_fn overflow_ints;

TEST(overflow, both_modes)
{
    const unsigned turns = 300;

    /* iretq of run_user(), then 4 of the user and 2 of the kernel a turn */
    for (unsigned n = 2; n <= 60; n++) {
        unsigned place = (n - 2) % 6;
        bool kernel = place == 1 || place == 2;

        set_gate(VEC_SYSCALL, overflow_int_entry);
        pmu_gp(0, EV_INSTRUCTIONS | SEL_ALL | SEL_INT, -(uint64_t)n);
        pmu_gp(1, EV_INSTRUCTIONS | SEL_USR, 0);
        sample_with(APIC_NMI);
        run_user(GP(0) | GP(1), overflow_ints, turns);
        expect(sample_count, 1, "instruction %u: samples", n);
        expect(samples[0].cs, kernel ? KERNEL_CS : USER_CS,
               "instruction %u: CS", n);
        expect(rdmsr(MSR_PMC(1)), 4 * turns + 1 + RUN_USER_OVERHEAD,
               "instruction %u: user instructions", n);
    }
}

/* The same with longer turns: 603 of user mode and 1003 of the kernel. */
CODE("overflow_turn_entry:\n"
     "    mov $500, %ecx\n"
     "1:  dec %ecx\n"
     "    jnz 1b\n"
     "    nop\n"
     "    iretq\n"
     "overflow_turn:\n"
     "    int $0x80\n"
     "    mov $299, %ecx\n"
     "1:  dec %ecx\n"
     "    jnz 1b\n"
     "    nop\n"
     "    dec %rdi\n"
     "    jnz overflow_turn\n"
     "    ret\n");
LABEL(overflow_turn_entry);
code_fn overflow_turn;

/* After @n instructions of MOV, DEC and JNZ in turn: bytes from the MOV. */
static unsigned offset_in_loop(unsigned n)
{
    return n == 0 ? 0 : n % 2 ? 5 : 7;
}

TEST(overflow, both_modes_long)
{
    static const unsigned periods[] = {
        1000, 1605, 1606, 1607, 5000, 99991, 100003, 250007,
    };

    for (unsigned i = 0; i < ARRAY_SIZE(periods); i++) {
        unsigned place = (periods[i] - 1) % 1606;
        bool kernel = place >= 1 && place <= 1003;
        uint64_t rip;

        if (kernel) {
            unsigned n = place - 1;

            rip = (uint64_t)overflow_turn_entry +
                  (n <= 1000 ? offset_in_loop(n) : n == 1001 ? 9 : 10);
        } else {
            unsigned n = place - 1004;

            rip = (uint64_t)overflow_turn +
                  (place == 0 ? 0 : n <= 598 ? 2 + offset_in_loop(n) :
                   n == 599 ? 11 : n == 600 ? 12 : 15);
        }
        set_gate(VEC_SYSCALL, overflow_turn_entry);
        pmu_fixed(0, FIXED_ALL | FIXED_INT, -(uint64_t)periods[i]);
        sample_with(APIC_NMI);
        run_user(FIXED(0), overflow_turn, 200);
        expect(sample_count, 1, "instruction %u: samples", periods[i]);
        expect(samples[0].cs, kernel ? KERNEL_CS : USER_CS,
               "instruction %u: CS", periods[i]);
        expect(samples[0].rip, rip, "instruction %u: RIP", periods[i]);
    }
}

/* ---- The interrupt has to wait -------------------------------------- */

/*
 * Interrupts are disabled, and the overflow is at the second NOP.  STI delays
 * the interrupt by one instruction, POPF does not.
 */
CODE("overflow_sti:\n"
     "    nop\n"
     "    nop\n"
     "    nop\n"
     "    nop\n"
     "    sti\n"
     "    nop\n"
     "overflow_sti_here:\n"
     "    nop\n"
     "    nop\n"
     "    cli\n"
     "    ret\n"
     "overflow_popf:\n"
     "    nop\n"
     "    nop\n"
     "    nop\n"
     "    pushfq\n"
     "    orq $0x200, (%rsp)\n"
     "    popfq\n"
     "overflow_popf_here:\n"
     "    nop\n"
     "    cli\n"
     "    ret\n");
code_fn overflow_sti, overflow_popf;
LABEL(overflow_sti_here);
LABEL(overflow_popf_here);

static void expect_delayed(const char *what, code_fn *fn, unsigned n,
                           const char *here)
{
    pmu_gp(0, EV_INSTRUCTIONS | SEL_OS | SEL_INT, -(uint64_t)n);
    sample_with(VEC_PMI);
    run_kernel(GP(0), fn, 0);
    expect(sample_count, 1, "%s, instruction %u: samples", what, n);
    expect(samples[0].rip, (uint64_t)here, "%s, instruction %u: RIP", what,
           n);
}

TEST(overflow, interrupts_disabled)
{
    for (unsigned n = 1; n <= 5; n++) {
        expect_delayed("STI", overflow_sti, n, overflow_sti_here);
    }
    for (unsigned n = 1; n <= 6; n++) {
        expect_delayed("POPF", overflow_popf, n, overflow_popf_here);
    }
}

/* Overflows at STI itself, and at the instruction in its shadow */
TEST(overflow, sti_shadow)
{
    expect_delayed("STI", overflow_sti, 6, overflow_sti_here);
    expect_delayed("behind STI", overflow_sti, 7, overflow_sti_here);
    expect_delayed("further", overflow_sti, 8, overflow_sti_here + 1);
}

/* MOV SS delays an interrupt, too. */
CODE("overflow_mov_ss:\n"
     "    sti\n"
     "    nop\n"
     "    mov %ss, %eax\n"
     "    mov %eax, %ss\n"
     "    nop\n"
     "overflow_mov_ss_here:\n"
     "    nop\n"
     "    cli\n"
     "    ret\n");
code_fn overflow_mov_ss;
LABEL(overflow_mov_ss_here);

TEST(overflow, mov_ss_shadow)
{
    expect_delayed("MOV SS", overflow_mov_ss, 5, overflow_mov_ss_here);
}

/* While interrupts are disabled, a PMI is neither taken nor lost. */
TEST(overflow, stays_pending)
{
    pmu_gp(0, EV_INSTRUCTIONS | SEL_OS | SEL_INT, -10ull);
    sample_with(VEC_PMI);
    run_kernel(GP(0), overflow_loop, 100);
    expect(sample_count, 0, "samples while disabled");
    expect(apic_requested(VEC_PMI), true, "pending");
    expect(rdmsr(MSR_GLOBAL_STATUS), GP(0), "status");
    expect(apic_read(APIC_LVT_PC), pmu_delivered(VEC_PMI), "LVT");
    expect(rdmsr(MSR_PMC(0)), 302 + RUN_KERNEL_OVERHEAD - 10, "counter");
    asm volatile("sti\nnop\ncli" : : : "memory");
    expect(sample_count, 1, "samples afterwards");
}

/*
 * Overflow at an atomic access, which QEMU executes while other CPUs are
 * stopped, with another interrupt pending after it.
 */
CODE("overflow_atomic:\n"
     "    nop\n"
     "    sti\n"
     "    lock xadd %rax, spare + 61\n"
     "overflow_atomic_here:\n"
     "    nop\n"
     "    cli\n"
     "    ret\n");
code_fn overflow_atomic;
LABEL(overflow_atomic_here);

static void end_interrupt(struct regs *regs)
{
    (void)regs;
    apic_eoi();
}

TEST(overflow, atomic_before_interrupt)
{
    on_trap(VEC_IPI, end_interrupt);
    apic_write(APIC_ICR, APIC_SELF | VEC_IPI);
    pmu_gp(0, EV_INSTRUCTIONS | SEL_OS | SEL_INT, -4ull);
    sample_with(APIC_NMI);
    run_kernel(GP(0), overflow_atomic, 0);
    expect(sample_count, 1, "samples");
    expect(samples[0].rip, (uint64_t)overflow_atomic_here, "RIP");
}

/* ---- Transitions ---------------------------------------------------- */

CODE("overflow_syscall_entry:\n"
     "    nop\n"
     "    sysretq\n"
     "overflow_syscall:\n"
     "    nop\n"
     "    nop\n"
     "    syscall\n"
     "overflow_syscall_next:\n"
     "    nop\n"
     "    ret\n"
     "overflow_int:\n"
     "    nop\n"
     "    nop\n"
     "    int $0x80\n"
     "overflow_int_next:\n"
     "    nop\n"
     "    ret\n");
LABEL(overflow_syscall_entry);
LABEL(overflow_syscall_next);
LABEL(overflow_int_next);
code_fn overflow_syscall, overflow_int;

/* A counter of user mode overflows at the third instruction of @fn. */
static void expect_at_transition(const char *what, code_fn *fn, uint32_t lvt,
                                 const char *here, unsigned cs)
{
    pmu_gp(0, EV_INSTRUCTIONS | SEL_USR | SEL_INT, -3ull);
    sample_with(lvt);
    run_user(GP(0), fn, 0);
    expect(sample_count, 1, "%s: samples", what);
    expect(samples[0].rip, (uint64_t)here, "%s: RIP", what);
    expect(samples[0].cs, cs, "%s: CS", what);
}

TEST(overflow, at_syscall)
{
    wrmsr(MSR_LSTAR, (uint64_t)overflow_syscall_entry);
    wrmsr(MSR_FMASK, RFLAGS_IF);
    expect_at_transition("NMI", overflow_syscall, APIC_NMI,
                         overflow_syscall_entry, KERNEL_CS);
    expect_at_transition("interrupts disabled", overflow_syscall, VEC_PMI,
                         overflow_syscall_next, USER_CS);
}

TEST(overflow, at_int)
{
    set_gate(VEC_SYSCALL, overflow_int_entry);
    expect_at_transition("NMI", overflow_int, APIC_NMI, overflow_int_entry,
                         KERNEL_CS);
    expect_at_transition("interrupts disabled", overflow_int, VEC_PMI,
                         overflow_int_next, USER_CS);
}

/* The IRET that enters user mode is the kernel's last instruction. */
TEST(overflow, at_iret)
{
    pmu_gp(0, EV_INSTRUCTIONS | SEL_OS | SEL_INT, -1ull);
    sample_with(VEC_PMI);
    run_user(GP(0), overflow_mix, 0);
    expect(sample_count, 1, "samples");
    expect(samples[0].rip, (uint64_t)overflow_mix, "RIP");
    expect(samples[0].cs, USER_CS, "CS");
}

/* A fault does not retire: it causes no overflow, and changes no address. */
static void map_first(struct regs *regs)
{
    (void)regs;
    map(0, spare[0], PTE_RW);
}

CODE("overflow_fault:\n"
     "    nop\n"
     "    nop\n"
     "    mov (%rdi), %rax\n"
     "    nop\n"
     "    addl $1, (%rdi)\n"
     "    nop\n"
     "    ret\n");
code_fn overflow_fault;

TEST(overflow, around_faults)
{
    uint64_t total, page = (uint64_t)WINDOW(0);

    map(0, spare[0], PTE_RW);
    total = count_steps(overflow_fault, page);
    on_trap(PF_VECTOR, map_first);
    for (unsigned period = 1; period <= total; period++) {
        map(0, NULL, 0);
        expect_user_samples(overflow_fault, page, total, period, false,
                            VEC_PMI);
    }
}

/* A trap of the debug registers at the same address changes nothing. */
static void on_debug_trap(struct regs *regs)
{
    (void)regs;
}

TEST(overflow, at_watchpoint)
{
    uint64_t total = count_steps(overflow_mix, 0);

    on_trap(DB_VECTOR, on_debug_trap);
    asm volatile("mov %0, %%dr0" : : "r"((uint64_t)spare));
    asm volatile("mov %0, %%dr7" : : "r"(0x000d0402ull));
    for (unsigned period = 1; period <= total; period++) {
        expect_user_samples(overflow_mix, 0, total, period, false, VEC_PMI);
    }
}

/* Overflow within code that does not fit into one block */
CODE("overflow_long_block:\n"
     "    .rept 2000\n"
     "    nop\n"
     "    .endr\n"
     "    ret\n");
code_fn overflow_long_block;

TEST(overflow, long_block)
{
    for (unsigned n = 1; n <= 2000; n += n < 505 || n > 520 ? 7 : 1) {
        pmu_fixed(0, FIXED_USR | FIXED_INT, -(uint64_t)n);
        sample_with(VEC_PMI);
        run_user(FIXED(0), overflow_long_block, 0);
        expect(sample_count, 1, "instruction %u: samples", n);
        expect(samples[0].rip, (uint64_t)overflow_long_block + n,
               "instruction %u: RIP", n);
    }
}

/* ---- HLT ------------------------------------------------------------ */

static volatile unsigned timer_hits; /* by the handler */

static void on_timer(struct regs *regs)
{
    (void)regs;
    timer_hits++;
    apic_eoi();
}

CODE("overflow_hlt:\n"
     "    sti\n"
     "    nop\n"
     "    hlt\n"
     "overflow_hlt_here:\n"
     "    nop\n"
     "    cli\n"
     "    ret\n"
     "overflow_sti_hlt:\n"
     "    nop\n"
     "    nop\n"
     "    sti\n"
     "    hlt\n"
     "overflow_sti_hlt_here:\n"
     "    nop\n"
     "    cli\n"
     "    ret\n");
code_fn overflow_hlt, overflow_sti_hlt;
LABEL(overflow_hlt_here);
LABEL(overflow_sti_hlt_here);

/* The timer, seconds away, ends the test if the PMI does not wake the CPU. */
static void expect_awake(const char *what, code_fn *fn, unsigned n,
                         uint32_t lvt, const char *here)
{
    timer_hits = 0;
    on_trap(VEC_TIMER, on_timer);
    timer_once(4000000000u);
    pmu_gp(0, EV_INSTRUCTIONS | SEL_OS | SEL_INT, -(uint64_t)n);
    sample_with(lvt);
    run_kernel(GP(0), fn, 0);
    timer_once(0);
    expect(timer_hits, 0, "%s: timer interrupts", what);
    expect(sample_count, 1, "%s: samples", what);
    expect(samples[0].rip, (uint64_t)here, "%s: RIP", what);
}

TEST(overflow, at_hlt)
{
    expect_awake("HLT", overflow_hlt, 4, VEC_PMI, overflow_hlt_here);
    expect_awake("HLT, NMI", overflow_hlt, 4, APIC_NMI, overflow_hlt_here);
    expect_awake("STI, HLT", overflow_sti_hlt, 5, VEC_PMI,
                 overflow_sti_hlt_here);
    expect_awake("pending at HLT", overflow_sti_hlt, 2, VEC_PMI,
                 overflow_sti_hlt_here);
}

/* ---- The local vector table ----------------------------------------- */

/* Delivery masks the entry; overflows meanwhile never interrupt. */
TEST(overflow, lvt_mask)
{
    pmu_gp(0, EV_INSTRUCTIONS | SEL_USR | SEL_INT, -5ull);
    sample_with(VEC_PMI);
    run_user(GP(0), overflow_loop, 10);
    expect(sample_count, 1, "samples");
    expect(samples[0].lvt, pmu_delivered(VEC_PMI), "LVT in the handler");
    expect(apic_read(APIC_LVT_PC), VEC_PMI, "LVT afterwards");

    apic_write(APIC_LVT_PC, VEC_PMI | APIC_MASKED);
    pmu_gp(0, EV_INSTRUCTIONS | SEL_USR | SEL_INT, -5ull);
    sample_count = 0;
    run_user(GP(0), overflow_loop, 10);
    expect(sample_count, 0, "samples while masked");
    expect(rdmsr(MSR_GLOBAL_STATUS), GP(0), "status while masked");
    expect(apic_requested(VEC_PMI), false, "pending while masked");
    apic_write(APIC_LVT_PC, VEC_PMI);
    asm volatile("sti\nnop\nnop\ncli" : : : "memory");
    expect(sample_count, 0, "samples after unmasking");
}

/* A disabled APIC does not interrupt. */
TEST(overflow, apic_disabled)
{
    sample_with(VEC_PMI);
    apic_write(APIC_SVR, VEC_SPURIOUS);
    pmu_gp(0, EV_INSTRUCTIONS | SEL_USR | SEL_INT, -5ull);
    run_user(GP(0), overflow_loop, 10);
    apic_write(APIC_SVR, 0x100 | VEC_SPURIOUS);
    asm volatile("sti\nnop\nnop\ncli" : : : "memory");
    expect(sample_count, 0, "samples");
    expect(rdmsr(MSR_GLOBAL_STATUS), GP(0), "status");
}

TEST(overflow, x2apic)
{
    uint64_t total = count_steps(overflow_mix, 0);

    /* overflow_mix reads the APIC in memory, which is now plain memory. */
    apic_x2_mode();
    expect_user_samples(overflow_mix, 0, total, 1, false, VEC_PMI);
    expect(samples[1].lvt, pmu_delivered(VEC_PMI), "LVT in the handler");
    expect_user_samples(overflow_mix, 0, total, 3, false, APIC_NMI);
}

/* The task priority holds back a fixed vector as long as it is high. */
CODE("overflow_priority:\n"
     "    mov $4, %eax\n"
     "    mov %rax, %cr8\n"
     "    sti\n"
     "    nop\n"
     "    nop\n"
     "    xor %eax, %eax\n"
     "    mov %rax, %cr8\n"
     "overflow_priority_here:\n"
     "    nop\n"
     "    cli\n"
     "    ret\n");
code_fn overflow_priority;
LABEL(overflow_priority_here);

TEST(overflow, task_priority)
{
    expect_delayed("MOV to CR8", overflow_priority, 5,
                   overflow_priority_here);
}

/*
 * The interrupt of an overflow in an NMI's handler comes after the handler's
 * IRET, at the same address.
 */
static void on_first_nmi(struct regs *regs)
{
    wrmsr(MSR_GLOBAL_CONTROL, 0);
    samples[sample_count++].rip = regs->rip;
    wrmsr(MSR_GLOBAL_OVF_CTRL, GP(0));
    if (sample_count == 1) {
        wrmsr(MSR_PMC(0), -3ull & COUNTER_MASK);
        apic_write(APIC_LVT_PC, APIC_NMI);
        wrmsr(MSR_GLOBAL_CONTROL, GP(0));
    }
}

TEST(overflow, in_nmi_handler)
{
    pmu_gp(0, EV_INSTRUCTIONS | SEL_OS | SEL_INT, -10ull);
    on_trap(NMI_VECTOR, on_first_nmi);
    apic_write(APIC_LVT_PC, APIC_NMI);
    run_kernel(GP(0), overflow_loop, 100);
    expect(sample_count, 2, "samples");
    expect(samples[1].rip, samples[0].rip, "RIP");
}

/* Only the interrupt ends this loop. */
CODE("overflow_endless:\n"
     "    nop\n"
     "1:  jmp 1b\n"
     "overflow_endless_end:\n"
     "    ret\n");
code_fn overflow_endless;
LABEL(overflow_endless_end);

static void leave_endless(struct regs *regs)
{
    samples[sample_count++].rip = regs->rip;
    regs->rip = (uint64_t)overflow_endless_end;
    apic_eoi();
}

TEST(overflow, endless_loop)
{
    pmu_gp(0, EV_INSTRUCTIONS | SEL_USR | SEL_INT, -100000ull);
    pmu_gp(1, EV_INSTRUCTIONS | SEL_USR, 0);
    on_trap(VEC_PMI, leave_endless);
    apic_write(APIC_LVT_PC, VEC_PMI);
    run_user(GP(0) | GP(1), overflow_endless, 0);
    expect(sample_count, 1, "samples");
    expect(samples[0].rip, (uint64_t)overflow_endless + 1, "RIP");
    expect(rdmsr(MSR_PMC(1)), 100000 + 1 + RUN_USER_OVERHEAD, "instructions");
}

/* ---- Status --------------------------------------------------------- */

/* Without the INT bit the status is set, without an interrupt. */
TEST(overflow, status)
{
    pmu_gp(0, EV_INSTRUCTIONS | SEL_USR, -5ull);
    pmu_gp(1, EV_INSTRUCTIONS | SEL_USR, -6ull);
    pmu_gp(2, EV_INSTRUCTIONS | SEL_USR, 0);
    pmu_fixed(0, FIXED_USR, -7ull);
    sample_with(VEC_PMI);
    run_user(GP(0) | GP(1) | GP(2) | FIXED(0), overflow_loop, 10);
    expect(sample_count, 0, "samples");
    expect(rdmsr(MSR_GLOBAL_STATUS), GP(0) | GP(1) | FIXED(0), "status");
    wrmsr(MSR_GLOBAL_OVF_CTRL, GP(1));
    expect(rdmsr(MSR_GLOBAL_STATUS), GP(0) | FIXED(0), "one bit cleared");
    expect(rdmsr(MSR_GLOBAL_OVF_CTRL), 0, "OVF_CTRL reads");
    wrmsr(MSR_GLOBAL_OVF_CTRL, GP(0) | FIXED(0));
    expect(rdmsr(MSR_GLOBAL_STATUS), 0, "all cleared");
    expect(rdmsr(MSR_PMC(0)), 32 + RUN_USER_OVERHEAD - 5, "counter 0");
    expect(rdmsr(MSR_PMC(1)), 32 + RUN_USER_OVERHEAD - 6, "counter 1");
    expect(rdmsr(MSR_FIXED_CTR(0)), 32 + RUN_USER_OVERHEAD - 7,
           "fixed counter");
}

/* DEBUGCTL's freeze stops all counters at the overflow, in the kernel too. */
TEST(overflow, freeze_on_pmi)
{
    bool in_status = pmu_version() >= 4;

    if (!pmu_is_intel()) {
        skip();
    }
    wrmsr(MSR_DEBUGCTL, DEBUGCTL_FREEZE_ON_PMI);
    pmu_gp(0, EV_INSTRUCTIONS | SEL_ALL | SEL_INT, -20ull);
    pmu_gp(1, EV_INSTRUCTIONS | SEL_ALL, 0);
    pmu_fixed(0, FIXED_ALL, 0);
    sample_with(APIC_NMI);
    run_kernel(GP(0) | GP(1) | FIXED(0), overflow_loop, 100);
    expect(sample_count, 1, "samples");
    expect(samples[0].ctrl, in_status ? GP(0) | GP(1) | FIXED(0) : 0,
           "GLOBAL_CTRL in the handler");
    expect(samples[0].status, in_status ? GP(0) | STATUS_CTR_FRZ : GP(0),
           "status");
    expect(samples[0].value, 0, "counter that overflowed");
    expect(rdmsr(MSR_PMC(1)), 20, "general counter beside it");
    expect(rdmsr(MSR_FIXED_CTR(0)), 20, "fixed counter beside it");
    wrmsr(MSR_DEBUGCTL, 0);
}

/* ---- Writes --------------------------------------------------------- */

/* The period changes while the counter runs, as rr does. */
CODE("overflow_write:\n"
     "    nop\n"
     MOV_PMU("0x4c1", "ecx")
     "    mov $-3, %eax\n"
     "    mov $0xffff, %edx\n"
     "    wrmsr\n"
     "    nop\n"
     "    nop\n"
     "    nop\n"
     "overflow_write_here:\n"
     "    nop\n"
     "    ret\n");
code_fn overflow_write;
LABEL(overflow_write_here);

TEST(overflow, written_while_running)
{
    pmu_gp(0, EV_INSTRUCTIONS | SEL_OS | SEL_INT, -1000ull);
    sample_with(APIC_NMI);
    run_kernel(GP(0), overflow_write, 0);
    expect(sample_count, 1, "samples");
    expect(samples[0].rip, (uint64_t)overflow_write_here, "RIP");
}

/* A counter rewritten before its overflow does not interrupt. */
CODE("overflow_postpone:\n"
     MOV_PMU("0x4c1", "ecx")
     "    mov $0, %eax\n"
     "    mov $0, %edx\n"
     "    wrmsr\n"
     "    .rept 100\n"
     "    nop\n"
     "    .endr\n"
     "    ret\n");
code_fn overflow_postpone;

TEST(overflow, postponed)
{
    pmu_gp(0, EV_INSTRUCTIONS | SEL_OS | SEL_INT, -50ull);
    sample_with(APIC_NMI);
    run_kernel(GP(0), overflow_postpone, 0);
    expect(sample_count, 0, "samples");
    expect(rdmsr(MSR_GLOBAL_STATUS), 0, "status");
    expect(rdmsr(MSR_PMC(0)), 101 + 5, "counter");
}

/* The WRMSR that enables is not counted; with -1, the next one overflows. */
TEST(overflow, right_after_enabling)
{
    pmu_fixed(0, FIXED_OS | FIXED_INT, -1ull);
    sample_with(APIC_NMI);
    run_kernel(FIXED(0), overflow_loop, 1);
    expect(sample_count, 1, "samples");
    expect(samples[0].rip, (uint64_t)overflow_loop, "RIP");
}
