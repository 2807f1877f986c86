/*
 * Suite unfiltered: last branch records without filters
 *
 * Core's CPUs have four, in their own registers.  The kernel's branches are
 * recorded, too, so it records itself, or its branches come first.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

#define DEPTH           4
#define MSR_LBR_FROM(i) (MSR_CORE_LBR_FROM + (i))
#define MSR_LBR_TO(i)   (MSR_CORE_LBR_TO + (i))

#define FORMAT_OFFSETS  2

#define AT(label) ((uint64_t)(label))

struct branch {
    uint64_t from, to;
};

static void clear_records(void)
{
    wrmsr(MSR_DEBUGCTL, 0);
    for (unsigned i = 0; i < DEPTH; i++) {
        wrmsr(MSR_LBR_FROM(i), 0);
        wrmsr(MSR_LBR_TO(i), 0);
    }
    wrmsr(MSR_LBR_TOS, 0);
}

/* @want has the newest first; there must be no other records. */
static void expect_records(const char *what, const struct branch *want,
                           unsigned n)
{
    unsigned tos = rdmsr(MSR_LBR_TOS);

    for (unsigned age = 0; age < DEPTH; age++) {
        unsigned i = (tos - age) % DEPTH;

        expect(rdmsr(MSR_LBR_FROM(i)), age < n ? want[age].from : 0,
               "%s: record %u: FROM", what, age);
        expect(rdmsr(MSR_LBR_TO(i)), age < n ? want[age].to : 0,
               "%s: record %u: TO", what, age);
    }
}

/* ---- The kernel's own ----------------------------------------------- */

/* Code between these is recorded; it keeps RCX and RDX. */
#define RECORD(code)            \
    "    mov $0x1d9, %ecx\n"    \
    "    mov $1, %eax\n"        \
    "    xor %edx, %edx\n"      \
    "    wrmsr\n"               \
    code                        \
    "    xor %eax, %eax\n"      \
    "    wrmsr\n"               \
    "    ret\n"

CODE("unfiltered_kernel:\n"
     RECORD("    cmp %eax, %eax\n"
            "    jne unfiltered_je\n"   /* not taken: no record */
            "unfiltered_je:\n"
            "    je unfiltered_jmp\n"
            "    nop\n"
            "unfiltered_jmp:\n"
            "    jmp unfiltered_call\n"
            "    nop\n"
            "unfiltered_call:\n"
            "    call unfiltered_leaf\n"
            "unfiltered_behind:\n")
     "unfiltered_leaf:\n"
     "    ret\n");
code_fn unfiltered_kernel;
LABEL(unfiltered_je);
LABEL(unfiltered_jmp);
LABEL(unfiltered_call);
LABEL(unfiltered_behind);
LABEL(unfiltered_leaf);

TEST(unfiltered, entries)
{
    const struct branch want[] = {
        { AT(unfiltered_leaf), AT(unfiltered_behind) },
        { AT(unfiltered_call), AT(unfiltered_leaf) },
        { AT(unfiltered_jmp), AT(unfiltered_call) },
        { AT(unfiltered_je), AT(unfiltered_jmp) },
    };

    clear_records();
    run_kernel(0, unfiltered_kernel, 0);
    expect_records("all", want, ARRAY_SIZE(want));
    expect(rdmsr(MSR_LBR_TOS), 0, "TOS");
}

CODE("unfiltered_loop:\n"
     RECORD("    mov $100, %esi\n"
            "unfiltered_again:\n"
            "    dec %esi\n"
            "unfiltered_jnz:\n"
            "    jnz unfiltered_again\n"));
code_fn unfiltered_loop;
LABEL(unfiltered_again);
LABEL(unfiltered_jnz);

/* Only the last of many are kept. */
TEST(unfiltered, rolls)
{
    const struct branch turn = { AT(unfiltered_jnz), AT(unfiltered_again) };
    const struct branch want[DEPTH] = { turn, turn, turn, turn };

    clear_records();
    run_kernel(0, unfiltered_loop, 0);
    expect_records("a loop", want, ARRAY_SIZE(want));
    expect(rdmsr(MSR_LBR_TOS), 99 % DEPTH, "TOS");
}

CODE("unfiltered_fault:\n"
     RECORD("unfiltered_ud2:\n"
            "    ud2\n"
            "unfiltered_ud2_end:\n")
     "unfiltered_ud:\n"
     "    addq $2, (%rsp)\n"
     "unfiltered_iretq:\n"
     "    iretq\n");
code_fn unfiltered_fault;
LABEL(unfiltered_ud2);
LABEL(unfiltered_ud2_end);
LABEL(unfiltered_ud);
LABEL(unfiltered_iretq);

TEST(unfiltered, far)
{
    const struct branch want[] = {
        { AT(unfiltered_iretq), AT(unfiltered_ud2_end) },
        { AT(unfiltered_ud2), AT(unfiltered_ud) },
    };

    set_gate(UD_VECTOR, unfiltered_ud);
    clear_records();
    run_kernel(0, unfiltered_fault, 0);
    expect_records("a fault", want, ARRAY_SIZE(want));
}

/* ---- User mode, and the end of recording ---------------------------- */

CODE("unfiltered_user:\n"
     "    jmp unfiltered_user_jmp\n"
     "    nop\n"
     "unfiltered_user_jmp:\n"
     "    jmp unfiltered_user_call\n"
     "    nop\n"
     "unfiltered_user_call:\n"
     "    call unfiltered_leaf\n"
     "    ret\n");
code_fn unfiltered_user;
LABEL(unfiltered_user_jmp);
LABEL(unfiltered_user_call);

/* The return from the leaf, the fourth instruction, overflows a counter. */
TEST(unfiltered, frozen)
{
    const struct branch want[] = {
        { AT(unfiltered_leaf), AT(unfiltered_user_call) + 5 },
        { AT(unfiltered_user_call), AT(unfiltered_leaf) },
        { AT(unfiltered_user_jmp), AT(unfiltered_user_call) },
        { AT(unfiltered_user), AT(unfiltered_user_jmp) },
    };

    clear_records();
    pmu_gp(0, EV_INSTRUCTIONS | SEL_USR | SEL_INT, -4ull);
    sample_with(VEC_PMI);
    wrmsr(MSR_DEBUGCTL, DEBUGCTL_LBR | DEBUGCTL_FREEZE_LBRS);
    run_user(GP(0), unfiltered_user, 0);
    expect(sample_count, 1, "interrupts");
    expect_records("frozen", want, ARRAY_SIZE(want));
    expect(rdmsr(MSR_DEBUGCTL), DEBUGCTL_FREEZE_LBRS, "DEBUGCTL");
    wrmsr(MSR_DEBUGCTL, 0);
}

static void end_steps(struct regs *regs)
{
    regs->rflags &= ~RFLAGS_TF;
}

CODE("unfiltered_step:\n"
     "    jmp unfiltered_step_jmp\n"
     "    nop\n"
     "unfiltered_step_jmp:\n"
     "    pushfq\n"
     "    orq $0x100, (%rsp)\n"
     "    popfq\n"
     "unfiltered_step_next:\n"
     "    nop\n"
     "    ret\n");
code_fn unfiltered_step;
LABEL(unfiltered_step_jmp);
LABEL(unfiltered_step_next);

/* A debug exception ends the recording, before it would be recorded. */
TEST(unfiltered, debug_exception)
{
    unsigned tos;

    on_trap(DB_VECTOR, end_steps);
    clear_records();
    wrmsr(MSR_DEBUGCTL, DEBUGCTL_LBR);
    run_user(0, unfiltered_step, 0);
    expect(rdmsr(MSR_DEBUGCTL), 0, "DEBUGCTL");
    tos = rdmsr(MSR_LBR_TOS);
    expect(rdmsr(MSR_LBR_FROM(tos)), AT(unfiltered_step), "the last: FROM");
    expect(rdmsr(MSR_LBR_TO(tos)), AT(unfiltered_step_jmp), "the last: TO");
}

/* ---- Registers ------------------------------------------------------ */

static unsigned faults;

static void skip_access(struct regs *regs)
{
    faults++;
    regs->rip += 2;
}

static void expect_fault(uint32_t msr, bool fault)
{
    faults = 0;
    rdmsr(msr);
    expect(faults, fault, "register %x: faults when it is read", msr);
    wrmsr(msr, 0);
    expect(faults, 2 * fault, "register %x: faults when it is written", msr);
}

/* Registers beyond its four fault, and so do registers of other models. */
TEST(unfiltered, registers)
{
    on_trap(GP_VECTOR, skip_access);
    expect(rdmsr(MSR_PERF_CAP) & PERF_CAP_LBR_FORMAT, FORMAT_OFFSETS, "format");
    for (unsigned i = 0; i < 2 * DEPTH; i++) {
        expect_fault(MSR_LBR_FROM(i), i >= DEPTH);
        expect_fault(MSR_LBR_TO(i), i >= DEPTH);
    }
    expect_fault(MSR_LBR_TOS, false);
    expect_fault(MSR_LBR_SELECT, true);
    expect_fault(0x680, true);
    expect_fault(0x6c0, true);
    expect_fault(0xdc0, true);
    faults = 0;
    wrmsr(MSR_LBR_TOS, DEPTH);
    expect(faults, 1, "TOS: reserved bits");
}

/* Write and read back, as Linux does to detect records. */
TEST(unfiltered, written)
{
    for (unsigned i = 0; i < DEPTH; i++) {
        wrmsr(MSR_LBR_FROM(i), 0xffff8000deadbe00 ^ i);
        wrmsr(MSR_LBR_TO(i), 0xffffffff81000000 ^ i);
    }
    for (unsigned i = 0; i < DEPTH; i++) {
        expect(rdmsr(MSR_LBR_FROM(i)), 0xffff8000deadbe00 ^ i, "FROM %u", i);
        expect(rdmsr(MSR_LBR_TO(i)), 0xffffffff81000000 ^ i, "TO %u", i);
    }
    wrmsr(MSR_LBR_TOS, DEPTH - 1);
    expect(rdmsr(MSR_LBR_TOS), DEPTH - 1, "TOS");
}
