/*
 * Suite oracle: `run` compares its output between modes of TCG
 *
 * Counts must be the same with one instruction a block, with many instructions
 * a block, with icount, and with one thread.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"
#include "programs.h"

/* ---- The kernel of the programs ------------------------------------- */

static void map_page(struct regs *regs)
{
    unsigned n = (read_cr2() - WINDOW_BASE) / PAGE_SIZE;

    (void)regs;
    map(n, spare[n], PTE_RW);
}

static void system_call(struct regs *regs)
{
    regs->rax = regs->rax * 3 + 1;
}

CODE("oracle_syscall:\n"
     "    add $7, %rax\n"
     "    sysretq\n");
LABEL(oracle_syscall);

static void skip_two(struct regs *regs)
{
    regs->rip += 2;
}

static void skip_breakpoint(struct regs *regs)
{
    (void)regs;
}

static void prepare_kernel(void)
{
    on_trap(PF_VECTOR, map_page);
    on_trap(VEC_SYSCALL, system_call);
    on_trap(UD_VECTOR, skip_two);
    on_trap(DE_VECTOR, skip_two);
    on_trap(GP_VECTOR, skip_two);
    on_trap(BP_VECTOR, skip_breakpoint);
    wrmsr(MSR_LSTAR, (uint64_t)oracle_syscall);
    wrmsr(MSR_FMASK, RFLAGS_IF);
}

static void unmap_window(void)
{
    for (unsigned i = 0; i < SPARE_PAGES; i++) {
        map(i, NULL, 0);
    }
    memset(spare, 0, sizeof(spare));
}

/* ---- Counts and samples --------------------------------------------- */

static const struct {
    const char *name;
    uint64_t code;
} events[] = {
    { "instructions", EV_INSTRUCTIONS },
    { "branches", EV_BRANCHES },
    { "conditional", EV_BR_CONDITIONAL },
    { "not-taken", EV_BR_NOT_TAKEN },
    { "taken", EV_BR_TAKEN },
    { "calls", EV_BR_CALL },
    { "returns", EV_BR_RETURN },
    { "loads", EV_LOADS },
    { "stores", EV_STORES },
    { "cycles", EV_CYCLES },
};

/* Count two events at a time, in user mode and in the kernel. */
static void print_counts(code_fn *fn, run_fn *run)
{
    uint64_t result = 0;

    for (unsigned i = 0; i < ARRAY_SIZE(events); i += 2) {
        unmap_window();
        for (unsigned n = 0; n < 4; n++) {
            uint64_t code = events[i + n / 2].code;

            pmu_gp(n, (pmu_has_event(code) ? code : EV_INSTRUCTIONS) |
                      (n % 2 ? SEL_OS : SEL_USR), 0);
        }
        for (unsigned n = 0; n < pmu_fixed_counters(); n++) {
            pmu_fixed(n, FIXED_ALL, 0);
        }
        result = run(pmu_all_counters(), fn, 12345);
        for (unsigned n = 0; n < 4; n += 2) {
            print("= %s user %lu kernel %lu\n", events[i + n / 2].name,
                  rdmsr(MSR_PMC(n)), rdmsr(MSR_PMC(n + 1)));
        }
        for (unsigned n = 0; n < pmu_fixed_counters(); n++) {
            print("= fixed %u %lu\n", n, rdmsr(MSR_FIXED_CTR(n)));
        }
    }
    print("= result %lx\n", result);
}

/* Sample instructions and branches of user mode: a hash of all addresses. */
static void print_samples(code_fn *fn)
{
    uint64_t hash = 0;

    unmap_window();
    pmu_gp(0, EV_INSTRUCTIONS | SEL_USR | SEL_INT, -257ull);
    pmu_gp(1, EV_BR_CONDITIONAL | SEL_USR | SEL_INT, -91ull);
    sample_with(VEC_PMI);
    sample_reload(0, 257);
    sample_reload(1, 91);
    run_user(GP(0) | GP(1), fn, 12345);
    for (unsigned i = 0; i < sample_count && i < MAX_SAMPLES; i++) {
        hash = (hash ^ samples[i].rip ^ samples[i].status << 48) *
               0x100000001b3;
    }
    print("= samples %u hash %lx\n", sample_count, hash);
}

static void print_program(code_fn *fn, bool in_kernel)
{
    prepare_kernel();
    print_counts(fn, run_user);
    if (in_kernel) {
        print_counts(fn, run_kernel);
    }
    print_samples(fn);
}

#define PROGRAM(name, in_kernel)                \
    TEST(oracle, name)                          \
    {                                           \
        print_program(program_##name, in_kernel);    \
    }

PROGRAM(sort, true)
PROGRAM(sieve, true)
PROGRAM(strings, true)
PROGRAM(float, true)
PROGRAM(interpreter, true)
PROGRAM(atomics, true)
PROGRAM(generated_code, true)
PROGRAM(demand_paging, true)
PROGRAM(system_calls, false)
PROGRAM(faults, true)

/*
 * Interrupts come at random times, so only counts of user mode are the same; in
 * a replay, all are.
 */
static unsigned timer_hits;

static void on_timer(struct regs *regs)
{
    (void)regs;
    timer_hits++;
    apic_eoi();
    timer_once(30000);
}

static void print_interrupted(code_fn *fn)
{
    unmap_window();
    pmu_gp(0, EV_INSTRUCTIONS | SEL_USR, 0);
    pmu_gp(1, EV_BRANCHES | SEL_USR, 0);
    pmu_gp(2, EV_LOADS | SEL_USR, 0);
    pmu_gp(3, EV_CYCLES | SEL_USR, 0);
    pmu_fixed(0, FIXED_ALL, 0);
    timer_hits = 0;
    timer_once(30000);
    run_user(GP(0) | GP(1) | GP(2) | GP(3) | FIXED(0), fn, 12345);
    timer_once(0);
    print("= user %lu %lu %lu %lu\n", rdmsr(MSR_PMC(0)), rdmsr(MSR_PMC(1)),
          rdmsr(MSR_PMC(2)), rdmsr(MSR_PMC(3)));
    print("~ interrupts %u all %lu\n", timer_hits, rdmsr(MSR_FIXED_CTR(0)));
}

TEST(oracle, interrupted)
{
    prepare_kernel();
    on_trap(VEC_TIMER, on_timer);
    print_interrupted(program_sort);
    print_interrupted(program_strings);
    print_interrupted(program_interpreter);
    print_interrupted(program_demand_paging);
    print_interrupted(program_generated_code);
    print_interrupted(program_faults);
}
