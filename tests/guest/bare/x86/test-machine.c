/*
 * Suite machine: the library itself, which needs no PMU
 *
 * When one of these fails, results of other suites mean nothing.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "bare.h"

static volatile unsigned hits; /* by handlers */

CODE("machine_triple:\n"
     "    lea (%rdi,%rdi,2), %rax\n"
     "    ret\n");
code_fn machine_triple;

TEST(machine, call)
{
    expect(run_kernel(0, machine_triple, 14), 42, "result");
}

TEST(machine, user)
{
    expect(run_user(0, machine_triple, 14), 42, "result");
    expect(run_user(0, machine_triple, 5), 15, "second result");
}

CODE("machine_privileged:\n"
     "    hlt\n"
     "    ret\n");
code_fn machine_privileged;

static void skip_hlt(struct regs *regs)
{
    hits++;
    expect(regs->cs, USER_CS, "CS");
    expect(regs->rip, (uint64_t)machine_privileged, "RIP");
    regs->rip++;
}

TEST(machine, privilege)
{
    hits = 0;
    on_trap(GP_VECTOR, skip_hlt);
    run_user(0, machine_privileged, 0);
    expect(hits, 1, "faults");
}

CODE("machine_load:\n"
     "    movzbl (%rdi), %eax\n"
     "    ret\n");
code_fn machine_load;

static void map_window(struct regs *regs)
{
    hits++;
    expect(read_cr2(), (uint64_t)WINDOW(0) + 8, "CR2");
    expect(regs->error, 0, "error code");
    map(0, spare[0], PTE_RW);
}

TEST(machine, page_fault)
{
    hits = 0;
    on_trap(PF_VECTOR, map_window);
    spare[0][8] = 7;
    expect(run_kernel(0, machine_load, (uint64_t)WINDOW(0) + 8), 7, "byte");
    expect(hits, 1, "faults");
}

TEST(machine, fixup)
{
    uint64_t base = rdmsr(MSR_APICBASE);

    /* x2APIC mode of a disabled APIC */
    expect(wrmsr_fault(MSR_APICBASE, (base & ~BIT(11)) | BIT(10)), GP_VECTOR,
           "vector");
    expect(wrmsr_fault(MSR_APICBASE, base), 0, "vector of what is right");
}

CODE("machine_break:\n"
     "    int3\n"
     "    mov $1, %eax\n"
     "    ret\n");
code_fn machine_break;

static void count_trap(struct regs *regs)
{
    (void)regs;
    hits++;
}

TEST(machine, breakpoint)
{
    hits = 0;
    on_trap(BP_VECTOR, count_trap);
    expect(run_user(0, machine_break, 0), 1, "result");
    expect(hits, 1, "traps");
}

static void on_timer(struct regs *regs)
{
    (void)regs;
    hits++;
    apic_eoi();
}

TEST(machine, timer)
{
    hits = 0;
    on_trap(VEC_TIMER, on_timer);
    timer_once(10000);
    sti();
    spin_until(hits);
    cli();
    expect(hits, 1, "interrupts");
}

TEST(machine, halt)
{
    hits = 0;
    on_trap(VEC_TIMER, on_timer);
    timer_once(10000);
    asm volatile("sti\nhlt\ncli" : : : "memory");
    expect(hits, 1, "interrupts");
}

TEST(machine, x2apic)
{
    uint32_t id = apic_read(APIC_ID) >> 24;

    hits = 0;
    apic_x2_mode();
    expect(apic_read(APIC_ID), id, "APIC ID");
    on_trap(VEC_TIMER, on_timer);
    timer_once(10000);
    sti();
    spin_until(hits);
    cli();
    expect(hits, 1, "interrupts");
}

TEST(machine, nmi)
{
    hits = 0;
    on_trap(NMI_VECTOR, count_trap);
    apic_write(APIC_ICR, APIC_SELF | APIC_ASSERT | APIC_NMI);
    spin_until(hits);
    expect(hits, 1, "interrupts");
}

static void fail_in_nmi(struct regs *regs)
{
    (void)regs;
    hits++;
    on_trap(NMI_VECTOR, count_trap);
    asm volatile("ud2");
}

static void leave_ud(struct regs *regs)
{
    regs->rip += 2;
}

TEST(machine, trap_in_nmi)
{
    hits = 0;
    on_trap(NMI_VECTOR, fail_in_nmi);
    on_trap(UD_VECTOR, leave_ud);
    apic_write(APIC_ICR, APIC_SELF | APIC_ASSERT | APIC_NMI);
    spin_until(hits);
    apic_write(APIC_ICR, APIC_SELF | APIC_ASSERT | APIC_NMI);
    spin_until(hits == 2);
    expect(hits, 2, "interrupts");
}

static volatile unsigned seen; /* by the other CPU */

static void report_index(void)
{
    seen += 10 + cpu_index();
}

TEST(machine, second_cpu)
{
    seen = 0;
    start_cpu(1, report_index);
    spin_until(cpu_done(1));
    expect(seen, 11, "index");
    start_cpu(1, report_index);
    spin_until(cpu_done(1));
    expect(seen, 22, "index after another INIT");
}
