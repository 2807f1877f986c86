/*
 * Suite lbr: last branch records
 *
 * AMD's have the newest in the first registers, where Intel's have TOS, and
 * registers of their own to be switched on by.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

#define MSR_LBR_SELECT  pmu_register(0x1c8)
#define MSR_LBR_FROM(i) pmu_register(0x680 + (i))
#define MSR_LBR_TO(i)   pmu_register(0x6c0 + (i))
/* Intel's alone, and AMD's. */
#define MSR_LBR_TOS     0x1c9
#define MSR_LBR_INFO(i) (0xdc0 + (i))
#define MSR_DBG_EXTN_CFG 0xc000010f

#define DEBUGCTL_LBR         BIT(0)
#define DBG_EXTN_LBR         BIT(6)
#define AMD_TO_VALID         BIT(63)
#define LEAF_AMD_LBR         0x80000022
#define DEBUGCTL_FREEZE_LBRS BIT(11)
#define STATUS_LBR_FRZ       BIT(58)

/* Formats in IA32_PERF_CAPABILITIES */
#define PERF_CAP_FORMAT      0x3f
#define FORMAT_FLAGS         3
#define FORMAT_FLAGS_TSX     4
#define FORMAT_INFO          5

/* MSR_LBR_SELECT: what is left out, but for the last */
#define NO_RING_0       BIT(0)
#define NO_RING_3       BIT(1)
#define NO_COND         BIT(2)
#define NO_CALL         BIT(3)
#define NO_IND_CALL     BIT(4)
#define NO_RETURN       BIT(5)
#define NO_IND_JUMP     BIT(6)
#define NO_JUMP         BIT(7)
#define NO_FAR          BIT(8)
#define CALL_STACK      BIT(9)

#define MAX_DEPTH 32

static unsigned format(void)
{
    return pmu_is_intel() ? rdmsr(MSR_PERF_CAP) & PERF_CAP_FORMAT : 0;
}

static unsigned depth(void)
{
    return !pmu_is_intel() ? cpuid(LEAF_AMD_LBR, 0).b >> 4 & 0x3f
           : format() == FORMAT_INFO ? 32 : 16;
}

struct branch {
    uint64_t from, to;
    uint64_t kind;              /* the bit of MSR_LBR_SELECT */
};

/* By what the recording is switched on; test code of the kernel's, too. */
uint32_t lbr_switch;
uint32_t lbr_on;

static void find_switch(void)
{
    lbr_switch = pmu_is_intel() ? MSR_DEBUGCTL : MSR_DBG_EXTN_CFG;
    lbr_on = pmu_is_intel() ? DEBUGCTL_LBR : DBG_EXTN_LBR;
}

static void begin_recording(uint64_t select, uint64_t debugctl)
{
    wrmsr(MSR_LBR_SELECT, select);
    wrmsr(MSR_DEBUGCTL, debugctl);
    wrmsr(lbr_switch, rdmsr(lbr_switch) | lbr_on);
}

static void end_recording(void)
{
    wrmsr(lbr_switch, 0);
    wrmsr(MSR_DEBUGCTL, 0);
}

static void clear_records(void)
{
    find_switch();
    end_recording();
    for (unsigned i = 0; i < depth(); i++) {
        wrmsr(MSR_LBR_FROM(i), 0);
        wrmsr(MSR_LBR_TO(i), 0);
        if (format() == FORMAT_INFO) {
            wrmsr(MSR_LBR_INFO(i), 0);
        }
    }
    if (pmu_is_intel()) {
        wrmsr(MSR_LBR_TOS, 0);
    }
}

static void expect_tos(unsigned tos)
{
    if (pmu_is_intel()) {
        expect(rdmsr(MSR_LBR_TOS), tos, "TOS");
    }
}

/* Without AMD's flag, which says that there is one. */
static uint64_t target(uint64_t to)
{
    if (pmu_is_intel() || !to) {
        return to;
    }
    expect(to >> 61, AMD_TO_VALID >> 61, "flags of TO");
    return (int64_t)(to << 3) >> 3;
}

/* The @age-th before the newest. */
static struct branch record(unsigned age)
{
    unsigned i = pmu_is_intel() ? (rdmsr(MSR_LBR_TOS) - age) & (depth() - 1)
                                : age;

    return (struct branch) {
        .from = rdmsr(MSR_LBR_FROM(i)), .to = target(rdmsr(MSR_LBR_TO(i))),
    };
}

/* @want has the newest first; beyond it there are none. */
static void expect_records(const char *what, const struct branch *want,
                           unsigned n)
{
    for (unsigned i = 0; i < depth(); i++) {
        struct branch is = record(i);

        expect(is.from, i < n ? want[i].from : 0, "%s: record %u: FROM", what,
               i);
        expect(is.to, i < n ? want[i].to : 0, "%s: record %u: TO", what, i);
    }
}

/* The kernel's own branches are left out; @ctrl is of counters. */
static void record_counted(uint64_t select, code_fn *fn, uint64_t ctrl)
{
    clear_records();
    begin_recording(NO_RING_0 | select, 0);
    run_user(ctrl, fn, 0);
    end_recording();
}

static void record_user(uint64_t select, code_fn *fn)
{
    record_counted(select, fn, 0);
}

CODE("lbr_code:\n"
     "    cmp %eax, %eax\n"
     "    jne lbr_je\n"             /* not taken: no record */
     "lbr_je:\n"
     "    je lbr_jmp\n"
     "    nop\n"
     "lbr_jmp:\n"
     "    jmp lbr_lea\n"
     "    nop\n"
     "lbr_lea:\n"
     "    lea lbr_leaf(%rip), %rdx\n"
     "lbr_call:\n"
     "    call lbr_leaf\n"
     "lbr_icall:\n"
     "    call *%rdx\n"
     "lbr_behind:\n"
     "    lea lbr_end(%rip), %rdx\n"
     "lbr_ijmp:\n"
     "    jmp *%rdx\n"
     "    nop\n"
     "lbr_end:\n"
     "    ret\n"
     "lbr_leaf:\n"
     "    ret\n");
code_fn lbr_code;
LABEL(lbr_je);
LABEL(lbr_jmp);
LABEL(lbr_lea);
LABEL(lbr_call);
LABEL(lbr_icall);
LABEL(lbr_behind);
LABEL(lbr_ijmp);
LABEL(lbr_end);
LABEL(lbr_leaf);

#define AT(label) ((uint64_t)(label))

static void expect_code(const char *what, uint64_t select)
{
    const struct branch all[] = {
        { AT(lbr_end), AT(user_exit), NO_RETURN },
        { AT(lbr_ijmp), AT(lbr_end), NO_IND_JUMP },
        { AT(lbr_leaf), AT(lbr_behind), NO_RETURN },
        { AT(lbr_icall), AT(lbr_leaf), NO_IND_CALL },
        { AT(lbr_leaf), AT(lbr_icall), NO_RETURN },
        { AT(lbr_call), AT(lbr_leaf), NO_CALL },
        { AT(lbr_jmp), AT(lbr_lea), NO_JUMP },
        { AT(lbr_je), AT(lbr_jmp), NO_COND },
    };
    struct branch want[ARRAY_SIZE(all)];
    unsigned n = 0;

    for (unsigned i = 0; i < ARRAY_SIZE(all); i++) {
        if (!(select & all[i].kind)) {
            want[n++] = all[i];
        }
    }
    expect_records(what, want, n);
}

TEST(lbr, entries)
{
    record_user(NO_FAR, lbr_code);
    expect_code("all", 0);
    expect_tos(8);
}

/* While branches are counted, too. */
TEST(lbr, counted)
{
    pmu_gp(0, EV_BRANCHES | SEL_USR, 0);
    record_counted(NO_FAR, lbr_code, GP(0));
    expect_code("counted", 0);
    /* With the one that is not taken, and the INT. */
    expect(rdmsr(MSR_PERFCTR(0)), 8 + 2, "branches");
}

/* Any of the filters by kind, with any others. */
TEST(lbr, filters)
{
    for (uint64_t select = 0; select < NO_FAR; select += NO_COND) {
        record_user(NO_FAR | select, lbr_code);
        expect_code("filtered", select);
    }
    record_user(NO_RING_3, lbr_code);
    expect_records("no ring", NULL, 0);
}

/* Only the last of many are kept. */
CODE("lbr_loop:\n"
     "    mov $100, %ecx\n"
     "1:  nop\n"
     "    dec %ecx\n"
     "lbr_jnz:\n"
     "    jnz 1b\n"
     "lbr_loop_end:\n"
     "    ret\n");
code_fn lbr_loop;
LABEL(lbr_jnz);
LABEL(lbr_loop_end);

TEST(lbr, rolls)
{
    struct branch want[MAX_DEPTH] = {
        { .from = AT(lbr_loop_end), .to = AT(user_exit) },
    };

    for (unsigned i = 1; i < depth(); i++) {
        want[i] = (struct branch) { AT(lbr_jnz), AT(lbr_loop) + 5, 0 };
    }
    record_user(NO_FAR, lbr_loop);
    expect_records("a loop", want, depth());
    expect_tos(100 % depth());
}

/* ---- The kernel's --------------------------------------------------- */

CODE("lbr_kernel:\n"
     "    mov lbr_switch(%rip), %ecx\n"
     "    mov lbr_on(%rip), %eax\n"
     "    xor %edx, %edx\n"
     "    wrmsr\n"
     "    call lbr_leaf\n"
     "lbr_kernel_end:\n"
     "    xor %eax, %eax\n"
     "    wrmsr\n"
     "    ret\n");
code_fn lbr_kernel;
LABEL(lbr_kernel_end);

TEST(lbr, kernel)
{
    const struct branch want[] = {
        { .from = AT(lbr_leaf), .to = AT(lbr_kernel_end) },
        { .from = AT(lbr_kernel_end) - 5, .to = AT(lbr_leaf) },
    };

    clear_records();
    wrmsr(MSR_LBR_SELECT, NO_RING_3);
    run_kernel(0, lbr_kernel, 0);
    expect_records("ring 0", want, ARRAY_SIZE(want));
    clear_records();
    wrmsr(MSR_LBR_SELECT, NO_RING_0);
    run_kernel(0, lbr_kernel, 0);
    expect_records("ring 3 alone", NULL, 0);
}

/* ---- Far branches --------------------------------------------------- */

CODE("lbr_fault:\n"
     "    ud2\n"
     "lbr_fault_end:\n"
     "    ret\n"
     "lbr_ud:\n"
     "    addq $2, (%rsp)\n"
     "lbr_iretq:\n"
     "    iretq\n");
code_fn lbr_fault;
LABEL(lbr_fault_end);
LABEL(lbr_ud);
LABEL(lbr_iretq);

#define ONLY_FAR (NO_FAR - NO_COND)

/* A branch is of the ring that it goes to. */
TEST(lbr, far)
{
    set_gate(UD_VECTOR, lbr_ud);
    record_user(ONLY_FAR, lbr_fault);
    expect(record(0).from, AT(lbr_iretq), "IRETQ: FROM");
    expect(record(0).to, AT(lbr_fault_end), "IRETQ: TO");
    expect(record(1).to, AT(lbr_fault), "entry: TO");
    expect(record(2).to, 0, "before");

    clear_records();
    begin_recording(NO_RING_3 | ONLY_FAR, 0);
    run_user(0, lbr_fault, 0);
    end_recording();
    expect(record(0).from, AT(user_exit), "INT: FROM");
    expect(record(1).from, AT(lbr_fault), "fault: FROM");
    expect(record(1).to, AT(lbr_ud), "fault: TO");
    expect(record(2).to, 0, "before");
}

/* ---- Call stack ----------------------------------------------------- */

CODE("lbr_next:\n"
     "    call 1f\n"
     "1:  pop %rax\n"
     "lbr_next_end:\n"
     "    ret\n");
code_fn lbr_next;
LABEL(lbr_next_end);

/* A call of the next instruction is one, but nothing returns from it. */
TEST(lbr, call_next)
{
    const struct branch want[] = {
        { AT(lbr_next_end), AT(user_exit), 0 },
        { AT(lbr_next), AT(lbr_next) + 5, 0 },
    };

    record_user(NO_FAR, lbr_next);
    expect_records("a call", want, ARRAY_SIZE(want));
    record_user(NO_FAR | NO_CALL, lbr_next);
    expect_records("left out", want, 1);
}

CODE("lbr_stack:\n"
     "    call 1f\n"
     "lbr_stack_behind:\n"
     "    ret\n"
     "1:  call lbr_leaf\n"
     "    call 3f\n"
     "3:  pop %rax\n"
     "lbr_stack_2:\n"
     "    call 2f\n"
     "    ret\n"
     "2:\n"
     "lbr_stack_ud:\n"
     "    ud2\n"
     "    ret\n");
code_fn lbr_stack;
LABEL(lbr_stack_behind);
LABEL(lbr_stack_2);
LABEL(lbr_stack_ud);

static void read_stack(struct regs *regs)
{
    const struct branch want[] = {
        { .from = AT(lbr_stack_2), .to = AT(lbr_stack_ud) },
        { .from = AT(lbr_stack), .to = AT(lbr_stack_behind) + 1 },
    };

    expect(regs->rip, AT(lbr_stack_ud), "RIP");
    expect_records("inside", want, ARRAY_SIZE(want));
    regs->rip += 2;
}

/* A return takes its call away. */
TEST(lbr, call_stack)
{
    if (format() < FORMAT_FLAGS_TSX) {
        return;
    }
    on_trap(UD_VECTOR, read_stack);
    record_user(NO_COND | NO_IND_JUMP | NO_JUMP | NO_FAR | CALL_STACK,
                lbr_stack);
    expect_records("at its end", NULL, 0);
}

/* ---- Freezing ------------------------------------------------------- */

/* The call of lbr_code is its sixth instruction: it is the last. */
TEST(lbr, frozen)
{
    const struct branch want[] = {
        { AT(lbr_call), AT(lbr_leaf), 0 },
        { AT(lbr_jmp), AT(lbr_lea), 0 },
        { AT(lbr_je), AT(lbr_jmp), 0 },
    };
    bool by_status = !pmu_is_intel() || pmu_version() >= 4;
    uint64_t on = pmu_is_intel() ? DEBUGCTL_LBR : 0;

    clear_records();
    pmu_gp(0, EV_INSTRUCTIONS | SEL_USR | SEL_INT, -6ull);
    sample_with(VEC_PMI);
    begin_recording(NO_RING_0 | NO_FAR, DEBUGCTL_FREEZE_LBRS);
    run_user(GP(0), lbr_code, 0);
    expect(sample_count, 1, "interrupts");
    expect(samples[0].rip, AT(lbr_leaf), "RIP");
    expect_records("frozen", want, ARRAY_SIZE(want));
    expect(rdmsr(MSR_DEBUGCTL),
           DEBUGCTL_FREEZE_LBRS | (by_status ? on : 0), "DEBUGCTL");
    expect(rdmsr(MSR_GLOBAL_STATUS) & STATUS_LBR_FRZ,
           by_status ? STATUS_LBR_FRZ : 0, "LBR_FRZ");
    end_recording();
    wrmsr(MSR_GLOBAL_OVF_CTRL, by_status ? STATUS_LBR_FRZ : 0);
    expect(rdmsr(MSR_GLOBAL_STATUS) & STATUS_LBR_FRZ, 0, "LBR_FRZ, cleared");
}

static void end_steps(struct regs *regs)
{
    regs->rflags &= ~RFLAGS_TF;
}

CODE("lbr_step:\n"
     "    pushfq\n"
     "    orq $0x100, (%rsp)\n"
     "    popfq\n"
     "    nop\n"
     "lbr_step_end:\n"
     "    ret\n");
code_fn lbr_step;
LABEL(lbr_step_end);

/* A debug exception ends the recording by IA32_DEBUGCTL. */
TEST(lbr, debug_exception)
{
    const struct branch last = { AT(lbr_step_end), AT(user_exit), 0 };

    on_trap(DB_VECTOR, end_steps);
    clear_records();
    begin_recording(NO_RING_0 | NO_FAR, DEBUGCTL_FREEZE_LBRS);
    run_user(0, lbr_step, 0);
    expect(rdmsr(MSR_DEBUGCTL), DEBUGCTL_FREEZE_LBRS, "DEBUGCTL");
    expect_records("stepped", &last, !pmu_is_intel());
    end_recording();
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

/* AMD's ignore what they do not have. */
static void expect_reserved(uint32_t msr, uint64_t bits)
{
    uint64_t was = rdmsr(msr);

    faults = 0;
    wrmsr(msr, was | bits);
    expect(faults, pmu_is_intel(), "register %x: reserved bits: faults", msr);
    expect(rdmsr(msr), was, "register %x: reserved bits", msr);
}

static void amd_registers(void)
{
    expect(depth(), 16, "depth");
    for (unsigned i = 0; i < depth(); i++) {
        expect_fault(MSR_LBR_FROM(i), false);
        expect_fault(MSR_LBR_TO(i), false);
    }
    expect_fault(MSR_DBG_EXTN_CFG, false);
    expect_reserved(MSR_DBG_EXTN_CFG, ~DBG_EXTN_LBR);
    expect_reserved(MSR_LBR_SELECT, CALL_STACK);
}

static void intel_registers(void)
{
    for (unsigned i = 0; i < MAX_DEPTH; i++) {
        expect_fault(MSR_LBR_FROM(i), i >= depth());
        expect_fault(MSR_LBR_TO(i), i >= depth());
        expect_fault(MSR_LBR_INFO(i),
                     i >= depth() || format() != FORMAT_INFO);
    }
    /* Those of other models. */
    expect_fault(0x40, true);
    expect_fault(0x60, true);
    expect_reserved(MSR_LBR_TOS, depth());
    expect_reserved(MSR_LBR_SELECT, BIT(10));
}

TEST(lbr, registers)
{
    on_trap(GP_VECTOR, skip_access);
    if (pmu_is_intel()) {
        intel_registers();
    } else {
        amd_registers();
    }
}

/* As Linux looks whether they are there. */
TEST(lbr, written)
{
    for (unsigned i = 0; i < depth(); i++) {
        wrmsr(MSR_LBR_FROM(i), 0xffff8000deadbe00 ^ i);
        wrmsr(MSR_LBR_TO(i), 0xffffffff81000000 ^ i);
    }
    for (unsigned i = 0; i < depth(); i++) {
        expect(rdmsr(MSR_LBR_FROM(i)), 0xffff8000deadbe00 ^ i, "FROM %u", i);
        expect(rdmsr(MSR_LBR_TO(i)), 0xffffffff81000000 ^ i, "TO %u", i);
    }
    if (pmu_is_intel()) {
        wrmsr(MSR_LBR_TOS, 3);
        expect_tos(3);
    }
}
