/*
 * Suite lbr: last branch records
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "branches.h"
#include "lbr.h"

#define MSR_GLOBAL_STATUS_SET pmu_register(MSR_STATUS_SET)
/* For architectural records only */
#define CTL_ALL         (0xf | 0x7full << 16)

#define MAX_DEPTH 32

static bool has_info(void)
{
    return lbr_format() == FORMAT_INFO || lbr_format() == FORMAT_INFO_NO_TSX
           || lbr_is_arch();
}

struct branch {
    uint64_t from, to;
    uint64_t kind;              /* the bit of MSR_LBR_SELECT */
};

static void begin_recording(uint64_t select, uint64_t debugctl)
{
    lbr_choose(select);
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
    lbr_choose(0);              /* finds the switch */
    end_recording();
    for (unsigned i = 0; i < lbr_depth(); i++) {
        wrmsr(MSR_LBR_FROM(i), 0);
        wrmsr(MSR_LBR_TO(i), 0);
        if (has_info()) {
            wrmsr(MSR_LBR_INFO(i), 0);
        }
    }
    if (lbr_has_tos()) {
        wrmsr(MSR_LBR_TOS, 0);
    }
}

static void expect_tos(unsigned tos)
{
    if (lbr_has_tos()) {
        expect(rdmsr(MSR_LBR_TOS), tos, "TOS");
    }
}

/* @want has the newest first; there must be no other records. */
static void expect_records(const char *what, const struct branch *want,
                           unsigned n)
{
    for (unsigned i = 0; i < lbr_depth(); i++) {
        expect(lbr_from(i), i < n ? want[i].from : 0, "%s: record %u: FROM",
               what, i);
        expect(lbr_to(i), i < n ? want[i].to : 0, "%s: record %u: TO", what, i);
    }
}

/* Record without the kernel's branches, with counters @ctrl enabled. */
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
    expect_tos(8 % lbr_depth());
}

/* Record while branches are also counted. */
TEST(lbr, counted)
{
    pmu_gp(0, EV_BRANCHES | SEL_USR, 0);
    record_counted(NO_FAR, lbr_code, GP(0));
    expect_code("counted", 0);
    /* Including the one that is not taken, and the INT */
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

    for (unsigned i = 1; i < lbr_depth(); i++) {
        want[i] = (struct branch) { AT(lbr_jnz), AT(lbr_loop) + 5, 0 };
    }
    record_user(NO_FAR, lbr_loop);
    expect_records("a loop", want, lbr_depth());
    expect_tos(100 % lbr_depth());
}

/* A direct branch that is too far for the distance in a log */
CODE("lbr_near:\n"
     "    ret\n");
code_fn lbr_near;

TEST(lbr, distant)
{
    const uint64_t far_away = (uint64_t)WINDOW(0);
    const int32_t by = AT(lbr_near) - (far_away + 5);
    const struct branch want[] = {
        { AT(lbr_near), AT(user_exit), NO_RETURN },
        { far_away, AT(lbr_near), NO_JUMP },
    };

    spare[0][0] = 0xe9;         /* jmp */
    memcpy(&spare[0][1], &by, sizeof(by));
    map(0, spare[0], PTE_RW);
    record_user(NO_FAR, (code_fn *)far_away);
    expect_records("a distant jump", want, ARRAY_SIZE(want));
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
    lbr_choose(NO_RING_3);
    run_kernel(0, lbr_kernel, 0);
    expect_records("ring 0", want, ARRAY_SIZE(want));
    clear_records();
    lbr_choose(NO_RING_0);
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

/* Where a branch comes from, of a ring that is left out */
static uint64_t from_other_ring(uint64_t address)
{
    return lbr_is_arch() ? -1ull : address;
}

/* A branch is of the ring that it goes to. */
TEST(lbr, far)
{
    set_gate(UD_VECTOR, lbr_ud);
    record_user(ONLY_FAR, lbr_fault);
    expect(lbr_from(0), from_other_ring(AT(lbr_iretq)), "IRETQ: FROM");
    expect(lbr_to(0), AT(lbr_fault_end), "IRETQ: TO");
    expect(lbr_to(1), AT(lbr_fault), "entry: TO");
    expect(lbr_to(2), 0, "before");

    clear_records();
    begin_recording(NO_RING_3 | ONLY_FAR, 0);
    run_user(0, lbr_fault, 0);
    end_recording();
    expect(lbr_from(0), from_other_ring(AT(user_exit)), "INT: FROM");
    expect(lbr_from(1), from_other_ring(AT(lbr_fault)), "fault: FROM");
    expect(lbr_to(1), AT(lbr_ud), "fault: TO");
    expect(lbr_to(2), 0, "before");
}

/* Nothing is left out: every branch says where it comes from. */
TEST(lbr, far_of_both_rings)
{
    set_gate(UD_VECTOR, lbr_ud);
    clear_records();
    begin_recording(ONLY_FAR, 0);
    run_user(0, lbr_fault, 0);
    end_recording();
    expect(lbr_from(0), AT(user_exit), "INT: FROM");
    expect(lbr_from(1), AT(lbr_iretq), "IRETQ: FROM");
    expect(lbr_to(1), AT(lbr_fault_end), "IRETQ: TO");
    expect(lbr_from(2), AT(lbr_fault), "fault: FROM");
    expect(lbr_to(2), AT(lbr_ud), "fault: TO");
}

/* ---- Page faults ---------------------------------------------------- */

static uint64_t fault_at;

static void map_window(struct regs *regs)
{
    fault_at = regs->rip;
    map(0, spare[0], PTE_RW);
}

CODE("lbr_push:\n"
     "    mov %rsp, %rbx\n"
     "    mov %rdi, %rsp\n"
     "lbr_push_call:\n"
     "    call lbr_push_leaf\n"
     "    nop\n"
     "lbr_push_leaf:\n"
     "    mov %rbx, %rsp\n"
     "lbr_push_end:\n"
     "    ret\n"
     "lbr_nowhere:\n"
     "    push %rdi\n"
     "lbr_nowhere_ret:\n"
     "    ret\n");
code_fn lbr_push, lbr_nowhere;
LABEL(lbr_push_call);
LABEL(lbr_push_leaf);
LABEL(lbr_push_end);
LABEL(lbr_nowhere_ret);

static void record_over_fault(code_fn *fn, void *arg, uint64_t at)
{
    fault_at = 0;
    on_trap(PF_VECTOR, map_window);
    map(0, NULL, 0);
    clear_records();
    begin_recording(NO_RING_0 | NO_FAR, 0);
    run_user(0, fn, (uint64_t)arg);
    end_recording();
    expect(fault_at, at, "RIP of the fault");
}

/* A call that cannot push is not taken. */
TEST(lbr, call_faults)
{
    const struct branch want[] = {
        { AT(lbr_push_end), AT(user_exit), 0 },
        { AT(lbr_push_call), AT(lbr_push_leaf), 0 },
    };

    record_over_fault(lbr_push, WINDOW(1), AT(lbr_push_call));
    expect_records("a call, repeated", want, ARRAY_SIZE(want));
}

/* A return to an unmapped address is taken. */
TEST(lbr, return_faults)
{
    const struct branch want[] = {
        { (uint64_t)WINDOW(0), AT(user_exit), 0 },
        { AT(lbr_nowhere_ret), (uint64_t)WINDOW(0), 0 },
    };

    spare[0][0] = 0xc3;         /* ret */
    record_over_fault(lbr_nowhere, WINDOW(0), (uint64_t)WINDOW(0));
    expect_records("a return to nowhere", want, ARRAY_SIZE(want));
}

/* ---- Call stack ----------------------------------------------------- */

CODE("lbr_next:\n"
     "    call 1f\n"
     "1:  pop %rax\n"
     "lbr_next_end:\n"
     "    ret\n");
code_fn lbr_next;
LABEL(lbr_next_end);

/*
 * A call of the next instruction has no return.  Architectural records do not
 * record it.
 */
TEST(lbr, call_next)
{
    const struct branch want[] = {
        { AT(lbr_next_end), AT(user_exit), 0 },
        { AT(lbr_next), AT(lbr_next) + 5, 0 },
    };

    record_user(NO_FAR, lbr_next);
    expect_records("a call", want, lbr_is_arch() ? 1 : ARRAY_SIZE(want));
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

/* A return removes its call. */
TEST(lbr, call_stack)
{
    if (lbr_format() < FORMAT_FLAGS_TSX) {
        skip();
    }
    on_trap(UD_VECTOR, read_stack);
    record_user(NO_COND | NO_IND_JUMP | NO_JUMP | NO_FAR | CALL_STACK,
                lbr_stack);
    expect_records("at its end", NULL, 0);
}

/* ---- Freezing ------------------------------------------------------- */

/* The call is the sixth instruction of lbr_code, and the last one recorded. */
TEST(lbr, frozen)
{
    const struct branch want[] = {
        { AT(lbr_call), AT(lbr_leaf), 0 },
        { AT(lbr_jmp), AT(lbr_lea), 0 },
        { AT(lbr_je), AT(lbr_jmp), 0 },
    };
    bool by_status = !pmu_is_intel() || pmu_version() >= 4;
    uint64_t on = lbr_has_tos() ? DEBUGCTL_LBR : 0;

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

/* Recording frozen by the status resumes when that is cleared. */
TEST(lbr, thawed)
{
    if (pmu_is_intel() && pmu_version() < 4) {
        skip();
    }
    clear_records();
    begin_recording(NO_RING_0 | NO_FAR, 0);
    wrmsr(MSR_GLOBAL_STATUS_SET, STATUS_LBR_FRZ);
    run_user(0, lbr_code, 0);
    expect_records("frozen", NULL, 0);
    wrmsr(MSR_GLOBAL_OVF_CTRL, STATUS_LBR_FRZ);
    run_user(0, lbr_code, 0);
    end_recording();
    expect_code("thawed", 0);
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

/* A debug exception ends Intel's recording. */
TEST(lbr, debug_exception)
{
    const struct branch last = { AT(lbr_step_end), AT(user_exit), 0 };

    on_trap(DB_VECTOR, end_steps);
    clear_records();
    begin_recording(NO_RING_0 | NO_FAR, DEBUGCTL_FREEZE_LBRS);
    run_user(0, lbr_step, 0);
    expect(rdmsr(MSR_DEBUGCTL), DEBUGCTL_FREEZE_LBRS, "DEBUGCTL");
    if (pmu_is_intel()) {
        expect(rdmsr(lbr_switch) & CTL_LBREN, 0, "switch");
    }
    expect_records("stepped", &last, !pmu_is_intel());
    end_recording();
}

CODE("lbr_branch_step:\n"
     "    pushfq\n"
     "    orq $0x100, (%rsp)\n"
     "    popfq\n"
     "    nop\n"
     "lbr_branch_step_jmp:\n"
     "    jmp lbr_branch_step_end\n"
     "    nop\n"
     "lbr_branch_step_end:\n"
     "    ret\n");
code_fn lbr_branch_step;
LABEL(lbr_branch_step_jmp);
LABEL(lbr_branch_step_end);

/* With BTF, the branch that ends the step is recorded. */
TEST(lbr, branch_step)
{
    const struct branch all[] = {
        { AT(lbr_branch_step_end), AT(user_exit), 0 },
        { AT(lbr_branch_step_jmp), AT(lbr_branch_step_end), 0 },
    };
    const unsigned first = pmu_is_intel() ? 1 : 0;

    on_trap(DB_VECTOR, end_steps);
    clear_records();
    begin_recording(NO_RING_0 | NO_FAR, DEBUGCTL_BTF);
    run_user(0, lbr_branch_step, 0);
    expect(rdmsr(MSR_DEBUGCTL), 0, "DEBUGCTL");
    expect_records("stepped", all + first, ARRAY_SIZE(all) - first);
    end_recording();
}

/* ---- SMM ------------------------------------------------------------ */

/* Values that the handler has found, at a real-mode address */
#define SEEN            0x9000

struct seen {
    uint32_t debugctl, config, config_msr;
};

/* The handler has its own branches. */
CODE("    .code16\n"
     "lbr_smm_handler:\n"
     "    xor %ax, %ax\n"
     "    mov %ax, %ds\n"
     "    mov $0x1d9, %ecx\n"
     "    rdmsr\n"
     "    mov %eax, 0x9000\n"
     "    jmp 1f\n"
     "    nop\n"
     "1:  mov 0x9008, %ecx\n"
     "    rdmsr\n"
     "    mov %eax, 0x9004\n"
     "    mov $4, %cx\n"
     "1:  loop 1b\n"
     "    rsm\n"
     "lbr_smm_handler_end:\n"
     "    .code64\n");
LABEL(lbr_smm_handler);
LABEL(lbr_smm_handler_end);

CODE("lbr_smm:\n"
     "    mov $0xfee00000, %eax\n"
     "    movl $0x44200, 0x300(%rax)\n"
     "    nop\n"
     "    nop\n"
     "lbr_smm_jmp:\n"
     "    jmp lbr_smm_end\n"
     "    nop\n"
     "lbr_smm_end:\n"
     "    ret\n");
code_fn lbr_smm;
LABEL(lbr_smm_jmp);
LABEL(lbr_smm_end);

/* Record across an SMI with @debugctl set; in SMM it must be @there. */
static void record_over_smi(const char *what, uint64_t debugctl, uint64_t there)
{
    const struct branch want[] = {
        { AT(lbr_smm_end), AT(user_exit), 0 },
        { AT(lbr_smm_jmp), AT(lbr_smm_end), 0 },
    };
    volatile struct seen *seen = (volatile struct seen *)SEEN;

    memcpy((void *)SMI_ENTRY, lbr_smm_handler,
           lbr_smm_handler_end - lbr_smm_handler);
    clear_records();
    seen->debugctl = ~0u;
    seen->config_msr = lbr_switch;
    begin_recording(NO_RING_0 | NO_FAR, debugctl);
    debugctl = rdmsr(MSR_DEBUGCTL);
    run_user(0, lbr_smm, 0);
    expect(seen->debugctl, there, "%s: DEBUGCTL in SMM", what);
    expect(rdmsr(MSR_DEBUGCTL), debugctl, "%s: DEBUGCTL behind", what);
    if (lbr_is_arch()) {
        expect(seen->config, lbr_on & ~CTL_LBREN, "%s: LBR_CTL in SMM", what);
    }
    expect(rdmsr(lbr_switch) & lbr_on, lbr_on, "%s: switch behind", what);
    end_recording();
    expect_records(what, want, ARRAY_SIZE(want));
}

/* SMM's branches are not recorded, and no record is lost. */
TEST(lbr, smm)
{
    const uint64_t debugctl = lbr_has_tos() ? DEBUGCTL_LBR : 0;

    record_over_smi("as it is", DEBUGCTL_BTF, DEBUGCTL_BTF | debugctl);
    if (pmu_is_intel() && rdmsr(MSR_PERF_CAP) & PERF_CAP_FREEZE_IN_SMM) {
        record_over_smi("put aside", DEBUGCTL_BTF | DEBUGCTL_FREEZE_IN_SMM,
                        DEBUGCTL_FREEZE_IN_SMM);
    }
}

/* This handler never leaves SMM. */
CODE("    .code16\n"
     "lbr_smm_end_of_it:\n"
     "    xor %ax, %ax\n"
     "    mov %ax, %ds\n"
     "    movl $1, 0x9000\n"
     "1:  hlt\n"
     "    jmp 1b\n"
     "lbr_smm_end_of_it_end:\n"
     "    .code64\n");
LABEL(lbr_smm_end_of_it);
LABEL(lbr_smm_end_of_it_end);

static volatile uint64_t seen_debugctl, seen_behind, seen_switch;

static void stay_in_smm(void)
{
    begin_recording(0, DEBUGCTL_BTF | DEBUGCTL_FREEZE_IN_SMM);
    seen_debugctl = rdmsr(MSR_DEBUGCTL);
    apic_write(APIC_ICR, APIC_SELF | APIC_ASSERT | APIC_SMI);
}

static void read_switches(void)
{
    seen_behind = rdmsr(MSR_DEBUGCTL);
    seen_switch = rdmsr(lbr_switch);
    end_recording();
}

/* INIT ends SMM without RSM, and must restore the saved registers. */
TEST(lbr, smm_init)
{
    volatile uint32_t *in_smm = (volatile uint32_t *)SEEN;

    if (!pmu_is_intel() || !(rdmsr(MSR_PERF_CAP) & PERF_CAP_FREEZE_IN_SMM)) {
        skip();
    }
    memcpy((void *)SMI_ENTRY, lbr_smm_end_of_it,
           lbr_smm_end_of_it_end - lbr_smm_end_of_it);
    *in_smm = 0;
    start_cpu(1, stay_in_smm);
    spin_until(*in_smm);
    start_cpu(1, read_switches);
    expect(spin_until(cpu_done(1)), true, "CPU 1 done");
    expect(seen_behind, seen_debugctl, "DEBUGCTL behind");
    expect(seen_switch & lbr_on, lbr_on, "switch behind");
}

/* ---- Interrupt shadows ---------------------------------------------- */

/* A pending interrupt is taken after the instruction that follows STI. */
CODE("lbr_shadow:\n"
     "    mov $0xfee00000, %r8d\n"
     "    movl $0x44042, 0x300(%r8)\n"
     "    nop\n"
     "    nop\n"
     "    mov lbr_switch(%rip), %ecx\n"
     "    mov lbr_on(%rip), %eax\n"
     "    xor %edx, %edx\n"
     "    wrmsr\n"
     "    sti\n"
     "lbr_shadow_jmp:\n"
     "    jmp lbr_shadow_next\n"
     "    nop\n"
     "lbr_shadow_next:\n"
     "    nop\n"
     "    cli\n"
     "    xor %eax, %eax\n"
     "    wrmsr\n"
     "    ret\n"
     "lbr_interrupt:\n"
     "    movl $0, 0xb0(%r8)\n"
     "lbr_interrupt_end:\n"
     "    iretq\n");
code_fn lbr_shadow;
LABEL(lbr_shadow_jmp);
LABEL(lbr_shadow_next);
LABEL(lbr_interrupt);
LABEL(lbr_interrupt_end);

_Static_assert(VEC_IPI == 0x42, "lbr_shadow sends it to itself");

TEST(lbr, shadow)
{
    const struct branch want[] = {
        { AT(lbr_interrupt_end), AT(lbr_shadow_next), 0 },
        { AT(lbr_shadow_next), AT(lbr_interrupt), 0 },
        { AT(lbr_shadow_jmp), AT(lbr_shadow_next), 0 },
    };

    set_gate(VEC_IPI, lbr_interrupt);
    clear_records();
    lbr_choose(NO_RING_3);
    run_kernel(0, lbr_shadow, 0);
    expect_records("STI", want, ARRAY_SIZE(want));
}

/* An interrupt during MOV SS is also taken after the next instruction. */
CODE("lbr_mov_ss:\n"
     "    mov $0xfee00000, %r8d\n"
     "    mov lbr_switch(%rip), %ecx\n"
     "    mov lbr_on(%rip), %eax\n"
     "    xor %edx, %edx\n"
     "    wrmsr\n"
     "    mov %ss, %eax\n"
     "    sti\n"
     "    nop\n"
     "    mov %eax, %ss\n"
     "lbr_mov_ss_jmp:\n"
     "    jmp lbr_mov_ss_next\n"
     "    nop\n"
     "lbr_mov_ss_next:\n"
     "    nop\n"
     "    cli\n"
     "    xor %eax, %eax\n"
     "    wrmsr\n"
     "    ret\n");
code_fn lbr_mov_ss;
LABEL(lbr_mov_ss_jmp);
LABEL(lbr_mov_ss_next);

TEST(lbr, mov_ss_shadow)
{
    const struct branch want[] = {
        { AT(lbr_interrupt_end), AT(lbr_mov_ss_next), 0 },
        { AT(lbr_mov_ss_next), AT(lbr_interrupt), 0 },
        { AT(lbr_mov_ss_jmp), AT(lbr_mov_ss_next), 0 },
    };

    clear_records();
    lbr_choose(NO_RING_3);
    /* The ninth instruction after the call */
    pmu_gp(0, EV_INSTRUCTIONS | SEL_OS | SEL_INT, -10ull);
    sample_with(VEC_PMI);
    set_gate(VEC_PMI, lbr_interrupt);
    run_kernel(GP(0), lbr_mov_ss, 0);
    expect_records("MOV SS", want, ARRAY_SIZE(want));
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

/* AMD's registers ignore reserved bits, Intel's fault. */
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
    expect(lbr_depth(), 16, "depth");
    for (unsigned i = 0; i < lbr_depth(); i++) {
        expect_fault(MSR_LBR_FROM(i), false);
        expect_fault(MSR_LBR_TO(i), false);
    }
    expect_fault(MSR_DBG_EXTN_CFG, false);
    expect_reserved(MSR_DBG_EXTN_CFG, ~DBG_EXTN_LBR);
    expect_reserved(MSR_LBR_SELECT, CALL_STACK);
}

/* Writing an unsupported depth faults. */
static void expect_no_depth(uint64_t val)
{
    faults = 0;
    wrmsr(MSR_ARCH_DEPTH, val);
    expect(faults, 1, "depth %lu: faults", val);
}

static void arch_registers(void)
{
    for (unsigned i = 0; i < 2 * MAX_DEPTH; i++) {
        expect_fault(MSR_LBR_FROM(i), i >= MAX_DEPTH);
        expect_fault(MSR_LBR_TO(i), i >= MAX_DEPTH);
        expect_fault(MSR_LBR_INFO(i), i >= MAX_DEPTH);
    }
    /* Registers of other models */
    expect_fault(MSR_LBR_SELECT, true);
    expect_fault(MSR_LBR_TOS, true);
    expect_fault(0x680, true);
    expect_fault(0x6c0, true);
    expect_fault(0xdc0, true);
    expect_reserved(MSR_ARCH_CTL, ~CTL_ALL);
    expect_no_depth(0);
    expect_no_depth(4);
    expect_no_depth(24);
    expect_no_depth(40);
    expect_no_depth(64);
    expect_no_depth(BIT(32) | 32);
}

static void intel_registers(void)
{
    for (unsigned i = 0; i < MAX_DEPTH; i++) {
        expect_fault(MSR_LBR_FROM(i), i >= lbr_depth());
        expect_fault(MSR_LBR_TO(i), i >= lbr_depth());
        expect_fault(MSR_LBR_INFO(i), i >= lbr_depth() || !has_info());
    }
    /* Registers of other models */
    expect_fault(0x40, true);
    expect_fault(0x60, true);
    expect_reserved(MSR_LBR_TOS, lbr_depth());
    expect_reserved(MSR_LBR_SELECT, BIT(10));
}

TEST(lbr, registers)
{
    on_trap(GP_VECTOR, skip_access);
    if (lbr_is_arch()) {
        arch_registers();
    } else if (pmu_is_intel()) {
        intel_registers();
    } else {
        amd_registers();
    }
}

/* Write and read back, as Linux does to detect records. */
TEST(lbr, written)
{
    for (unsigned i = 0; i < lbr_depth(); i++) {
        wrmsr(MSR_LBR_FROM(i), 0xffff8000deadbe00 ^ i);
        wrmsr(MSR_LBR_TO(i), 0xffffffff81000000 ^ i);
    }
    for (unsigned i = 0; i < lbr_depth(); i++) {
        expect(rdmsr(MSR_LBR_FROM(i)), 0xffff8000deadbe00 ^ i, "FROM %u", i);
        expect(rdmsr(MSR_LBR_TO(i)), 0xffffffff81000000 ^ i, "TO %u", i);
    }
    if (lbr_has_tos()) {
        wrmsr(MSR_LBR_TOS, 3);
        expect_tos(3);
    }
}

/* ---- Other information of a record ---------------------------------- */

static bool is_timed(void)
{
    return has_info() || lbr_format() == FORMAT_TIME;
}

/* If @insns is 0, the number of instructions is unknown. */
static void expect_info(unsigned age, unsigned insns, uint64_t type)
{
    uint64_t cycles = insns * option("cpi", 1000) / 1000;

    if (insns) {
        expect(lbr_cycles(age), cycles < INFO_CYCLES ? cycles : INFO_CYCLES,
               "record %u: cycles", age);
    }
    if (has_info()) {
        expect(lbr_info(age), lbr_info_of(type), "record %u: INFO", age);
    }
}

TEST(lbr, info)
{
    if (!is_timed()) {
        skip();
    }
    record_user(NO_FAR, lbr_code);
    expect_info(0, 1, TYPE_RETURN);
    expect_info(1, 2, TYPE_IND_JUMP);
    expect_info(2, 1, TYPE_RETURN);
    expect_info(3, 1, TYPE_IND_CALL);
    expect_info(4, 1, TYPE_RETURN);
    expect_info(5, 2, TYPE_CALL);
    expect_info(6, 1, TYPE_JUMP);
    expect_info(7, 0, TYPE_COND);
}

CODE("lbr_long:\n"
     "    jmp 1f\n"
     "    nop\n"
     "1:  mov %edi, %ecx\n"
     "1:  dec %ecx\n"
     "    jnz 1b\n"
     "    ret\n");
code_fn lbr_long;

/* Cycles without a recorded branch count up to the field's maximum. */
TEST(lbr, cycles)
{
    static const unsigned turns[] = { 1, 100, 20000, 32766, 32767, 200000 };

    if (!is_timed()) {
        skip();
    }
    for (unsigned i = 0; i < ARRAY_SIZE(turns); i++) {
        clear_records();
        begin_recording(NO_RING_0 | NO_FAR | NO_COND, 0);
        run_user(0, lbr_long, turns[i]);
        end_recording();
        expect_info(0, 2 * turns[i] + 2, TYPE_RETURN);
        expect_info(1, 0, TYPE_JUMP);
    }
}

/*
 * Within the program, a counter with interrupts enabled overflows.  QEMU
 * notices that at once, and plans anew; the record's cycles must stay exact.
 */
TEST(lbr, cycles_of_counted)
{
    static const unsigned turns = 100;

    if (!is_timed()) {
        skip();
    }
    for (unsigned n = 1; n < 2 * turns; n += 7) {
        wrmsr(MSR_GLOBAL_OVF_CTRL, 1);
        pmu_gp(0, EV_INSTRUCTIONS | SEL_USR | SEL_INT, -(uint64_t)n);
        clear_records();
        begin_recording(NO_RING_0 | NO_FAR | NO_COND, 0);
        run_user(GP(0), lbr_long, turns);
        end_recording();
        expect(rdmsr(MSR_GLOBAL_STATUS) & 1, 1, "%u: overflow", n);
        expect_info(0, 2 * turns + 2, TYPE_RETURN);
        expect_info(1, 0, TYPE_JUMP);
    }
}

CODE("lbr_rep:\n"
     "    jmp 1f\n"
     "    nop\n"
     "1:  mov $50, %ecx\n"
     "    lea -256(%rsp), %rdi\n"
     "    rep stosb\n"
     "    ud2\n"
     "    ret\n");
code_fn lbr_rep;

/* A fault does not count as an instruction; a repeated one counts once. */
TEST(lbr, cycles_of_faults)
{
    if (!is_timed()) {
        skip();
    }
    set_gate(UD_VECTOR, lbr_ud);
    record_user(NO_FAR, lbr_rep);
    /* Three, the handler's, and RET */
    expect_info(0, 3 + 2 + 1, TYPE_RETURN);
}

/* ---- Architectural records only ------------------------------------- */

static void expect_ler(uint64_t from, uint64_t to, uint64_t type)
{
    expect(rdmsr(MSR_LER_FROM), from, "LER: FROM");
    expect(rdmsr(MSR_LER_TO), to, "LER: TO");
    expect(rdmsr(MSR_LER_INFO) & ~INFO_CYCLES, lbr_info_of(type), "LER: INFO");
}

static void read_ler(struct regs *regs)
{
    expect_ler(AT(lbr_stack_2), AT(lbr_stack_ud), TYPE_CALL);
    regs->rip += 2;
}

/* The branch before an event, even if the event is not recorded */
TEST(lbr, last_event)
{
    if (!lbr_is_arch()) {
        skip();
    }
    on_trap(UD_VECTOR, read_ler);
    record_user(NO_FAR, lbr_stack);
    /* INT is an event, too. */
    expect_ler(AT(lbr_stack_behind), AT(user_exit), TYPE_RETURN);
    run_user(0, lbr_code, 0);
    expect_ler(AT(lbr_stack_behind), AT(user_exit), TYPE_RETURN);
    wrmsr(MSR_ARCH_DEPTH, MAX_DEPTH);
    expect_ler(AT(lbr_stack_behind), AT(user_exit), TYPE_RETURN);
    wrmsr(MSR_LER_FROM, 5);
    expect(rdmsr(MSR_LER_FROM), 5, "LER: FROM, written");
}

static void expect_depth(unsigned n)
{
    struct branch want[MAX_DEPTH] = {
        { .from = AT(lbr_loop_end), .to = AT(user_exit) },
    };

    for (unsigned i = 1; i < n; i++) {
        want[i] = (struct branch) { AT(lbr_jnz), AT(lbr_loop) + 5, 0 };
    }
    wrmsr(MSR_ARCH_DEPTH, n);
    record_user(NO_FAR, lbr_loop);
    expect_records("so deep", want, n);
    expect_fault(MSR_LBR_FROM(n), true);
    wrmsr(MSR_ARCH_DEPTH, n);
    expect_records("cleared", want, 0);
}

TEST(lbr, depths)
{
    if (!lbr_is_arch()) {
        skip();
    }
    on_trap(GP_VECTOR, skip_access);
    expect(cpuid(0x1c, 0).a & 0xff, 0xb, "depths");
    expect_depth(8);
    expect_depth(16);
    expect_depth(32);
}

/* ---- Random programs ------------------------------------------------ */

#define TRIALS 150

/* Expected records: a ring; unused slots have no kind. */
static struct {
    struct passed slots[MAX_DEPTH];
    unsigned depth, next;
    uint64_t select;
    bool on;
    /* At the last recorded branch, if @is_timed */
    uint64_t insns;
    bool is_timed;
} model;

static bool has_call_stack(void)
{
    return lbr_format() >= FORMAT_FLAGS_TSX;
}

/* Some filters by kind, or the ones that Intel requires with a call stack */
static uint64_t random_select(void)
{
    const uint64_t rings = NO_RING_0 | NO_RING_3;
    uint64_t select = random() & random() & random() & rings;

    if (has_call_stack() && random() % 4 == 0) {
        return select | NO_COND | NO_IND_JUMP | NO_JUMP | NO_FAR | CALL_STACK;
    }
    return select | (random() & random() & (CALL_STACK - NO_COND));
}

static bool is_call_of_next(const struct passed *p)
{
    return p->kind == NO_CALL && p->to == p->from + 5;
}

static bool is_wanted(const struct passed *p)
{
    uint64_t without = p->kind | (p->kernel ? NO_RING_0 : NO_RING_3);

    return model.on && !(model.select & without)
           && !(is_call_of_next(p)
                && (lbr_is_arch() || model.select & CALL_STACK));
}

/* After a switch, the number of instructions before a branch is unknown. */
static void model_branch(const struct passed *p)
{
    unsigned mask = model.depth - 1;

    if (model.select & CALL_STACK && p->kind == NO_RETURN) {
        model.slots[--model.next & mask] = (struct passed) {};
    } else {
        model.slots[model.next & mask] = *p;
        model.slots[model.next++ & mask].insns =
            model.is_timed ? p->insns - model.insns : 0;
    }
    model.insns = p->insns;
    model.is_timed = true;
}

/* @kernel: where the branch comes from */
static void model_one(const struct passed *p, bool kernel)
{
    struct passed shown = *p;

    if (model.select & (kernel ? NO_RING_0 : NO_RING_3)) {
        shown.from = from_other_ring(p->from);
    }
    if (is_wanted(p)) {
        model_branch(&shown);
    }
}

static void model_all(const struct passed *p, unsigned count, bool kernel)
{
    for (unsigned i = 0; i < count; i++) {
        if (p[i].kind == SWITCHED_ON || p[i].kind == SWITCHED_OFF) {
            model.on = p[i].kind == SWITCHED_ON;
            model.is_timed = false;
        } else {
            model_one(&p[i], kernel);
            kernel = p[i].kernel;
        }
    }
}

static void expect_model_info(unsigned age, const struct passed *p)
{
    static const uint8_t types[] = {
        [2] = TYPE_COND, [3] = TYPE_CALL, [4] = TYPE_IND_CALL,
        [5] = TYPE_RETURN, [6] = TYPE_IND_JUMP, [7] = TYPE_JUMP,
        [8] = TYPE_OTHER,
    };

    if (!is_timed()) {
        return;
    }
    if (p->kind) {
        expect_info(age, p->insns, types[__builtin_ctzll(p->kind)]);
        return;
    }
    expect(lbr_cycles(age), 0, "record %u: no cycles", age);
    expect(has_info() ? lbr_info(age) : 0, 0, "record %u: no INFO", age);
}

/* Returns: the number of records */
static unsigned expect_model(unsigned trial)
{
    unsigned count = 0;

    for (unsigned i = 0; i < model.depth; i++) {
        unsigned slot = (model.next - 1 - i) & (model.depth - 1);
        const struct passed *p = &model.slots[slot];

        expect(lbr_from(i), p->from, "trial %u: record %u: FROM", trial, i);
        expect(lbr_to(i), p->to, "trial %u: record %u: TO", trial, i);
        expect_model_info(i, p);
        count += p->kind != 0;
    }
    expect_tos(model.next % model.depth);
    return count;
}

/* The number of architectural records can be reduced. */
static void choose_depth(unsigned depth)
{
    if (lbr_is_arch()) {
        wrmsr(MSR_ARCH_DEPTH, depth);
    }
}

/*
 * Check some walks by single steps, which are slow.  As steps leave records,
 * they must come before the program's recorded run.
 */
static void expect_steps(unsigned trial, bool kernel)
{
    if (trial % 8 == 0) {
        lbr_choose(model.select);
        branches_expect_steps(kernel);
    }
}

static unsigned random_trial(unsigned trial)
{
    bool kernel = random() % 2;
    code_fn *program = branches_generate();
    const struct passed *passed;
    unsigned count;

    passed = branches_walk(kernel, &count);
    memset(&model, 0, sizeof(model));
    model.select = random_select();
    choose_depth(8 << random() % 3);
    model.depth = lbr_depth();
    model_all(passed, count, kernel);
    expect_steps(trial, kernel);
    clear_records();
    lbr_choose(model.select);
    (kernel ? run_kernel : run_user)(0, program, 0);
    return expect_model(trial);
}

TEST(lbr, random)
{
    uint64_t records = 0;

    branches_prepare();
    for (unsigned trial = 0; trial < TRIALS; trial++) {
        records += random_trial(trial);
    }
    choose_depth(MAX_DEPTH);
    print("= %lu records\n", records);
}
