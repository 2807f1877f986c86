/*
 * Suite svm: counts go on across VMRUN and #VMEXIT
 *
 * The guest is a few instructions of this kernel's own code, in the same
 * address space, in kernel or in user mode.  An intercepted instruction does
 * not retire.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "lbr.h"

#define MSR_EFER            0xc0000080
#define MSR_VM_HSAVE_PA     0xc0010117
#define EFER_SVME           BIT(12)

#define MISC1_INTR          BIT(0)
#define MISC1_NMI           BIT(1)
#define MISC1_CPUID         BIT(18)
#define MISC1_INT           BIT(21)
#define MISC1_RDPMC         BIT(15)
#define MISC1_HLT           BIT(24)
#define MISC1_MSR           BIT(28)
#define MISC2_VMRUN         BIT(0)
#define MISC2_VMMCALL       BIT(1)

#define EXIT_NP             0x4b
#define EXIT_PF             0x4e
#define EXIT_INTR           0x60
#define EXIT_NMI            0x61
#define EXIT_RDPMC          0x6f
#define EXIT_CPUID          0x72
#define EXIT_INT            0x75
#define EXIT_HLT            0x78
#define EXIT_MSR            0x7c
#define EXIT_VMMCALL        0x81

#define EXIT_INVALID        UINT64_MAX

/* Events that VMRUN injects */
#define INJECT(vector, type) ((vector) | (type) << 8 | BIT(31))
#define INJECT_INTERRUPT    0
#define INJECT_RESERVED     1
#define INJECT_NMI          2
#define INJECT_EXCEPTION    3
#define INJECT_SOFTWARE     4

struct vmcb_segment {
    uint16_t selector, attributes;
    uint32_t limit;
    uint64_t base;
};

/* AMD's virtual machine control block, with the fields needed here */
struct vmcb {
    uint32_t intercept_cr, intercept_dr, intercept_exceptions;
    uint32_t intercept_misc1, intercept_misc2;
    uint8_t pad0[0x48 - 0x14];
    uint64_t msr_permissions;
    uint8_t pad10[0x58 - 0x50];
    uint32_t asid;
    uint8_t pad1[0x70 - 0x5c];
    uint64_t exit_code;
    uint8_t pad2[0xa8 - 0x78];
    uint64_t event_injection;
    uint8_t pad3[0x400 - 0xb0];
    struct vmcb_segment es, cs, ss, ds, fs, gs, gdtr, ldtr, idtr, tr;
    uint8_t pad4[0x4cb - 0x4a0];
    uint8_t cpl;
    uint8_t pad5[4];
    uint64_t efer;
    uint8_t pad6[0x548 - 0x4d8];
    uint64_t cr4, cr3, cr0, dr7, dr6, rflags, rip;
    uint8_t pad7[0x5d8 - 0x580];
    uint64_t rsp;
    uint8_t pad8[0x5f8 - 0x5e0];
    uint64_t rax;
    uint8_t pad9[0x1000 - 0x600];
} __attribute__((packed, aligned(4096)));

_Static_assert(offsetof(struct vmcb, msr_permissions) == 0x48, "AMD's layout");
_Static_assert(offsetof(struct vmcb, exit_code) == 0x70, "AMD's layout");
_Static_assert(offsetof(struct vmcb, cr4) == 0x548, "AMD's layout");
_Static_assert(offsetof(struct vmcb, rip) == 0x578, "AMD's layout");

static struct vmcb vmcb;
static uint8_t host_save[PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));
static uint8_t guest_stack[1024] __attribute__((aligned(16)));

/* VMRUN, and STGI, as #VMEXIT clears GIF: 4 in addition to the guest */
#define HOST_COUNT 4

CODE("svm_run:\n"
     "    mov %rdi, %rax\n"
     "    vmrun\n"
     "    stgi\n"
     "    ret\n");
code_fn svm_run;

static void prepare_guest(code_fn *rip, bool user, uint32_t misc1)
{
    struct { uint16_t limit; uint64_t base; } __attribute__((packed)) table;

    if (!(cpuid(0x80000001, 0).c & BIT(2))) {
        fail("the CPU has no SVM");
    }
    wrmsr(MSR_EFER, rdmsr(MSR_EFER) | EFER_SVME);
    wrmsr(MSR_VM_HSAVE_PA, (uint64_t)host_save);
    vmcb = (struct vmcb) {
        .intercept_misc1 = misc1,
        .intercept_misc2 = MISC2_VMRUN | MISC2_VMMCALL,
        .asid = 1,
        .cs = { user ? USER_CS : KERNEL_CS, user ? 0xafb : 0xa9b, ~0u, 0 },
        .ss = { user ? USER_DS : KERNEL_DS, user ? 0xcf3 : 0xc93, ~0u, 0 },
        .ds = { user ? USER_DS : KERNEL_DS, user ? 0xcf3 : 0xc93, ~0u, 0 },
        .es = { user ? USER_DS : KERNEL_DS, user ? 0xcf3 : 0xc93, ~0u, 0 },
        .cpl = user ? 3 : 0,
        .efer = rdmsr(MSR_EFER),
        .cr4 = read_cr4(),
        .cr3 = read_cr3(),
        .cr0 = read_cr0(),
        .rflags = 2 | RFLAGS_IF,
        .rip = (uint64_t)rip,
        .rsp = (uint64_t)(guest_stack + sizeof(guest_stack)),
    };
    asm volatile("sgdt %0" : "=m"(table));
    vmcb.gdtr.limit = table.limit;
    vmcb.gdtr.base = table.base;
    asm volatile("sidt %0" : "=m"(table));
    vmcb.idtr.limit = table.limit;
    vmcb.idtr.base = table.base;
}

CODE("svm_guest:\n"
     "    nop\n"
     "    nop\n"
     "    mov $10, %ecx\n"
     "1:  loop 1b\n"
     "    push %rcx\n"
     "    pop %rcx\n"
     "    nop\n"
     "svm_guest_exit:\n"
     "    vmmcall\n"
     "    nop\n"
     "    nop\n"
     "    vmmcall\n"
     "svm_guest_cpuid:\n"
     "    nop\n"
     "    cpuid\n"
     "    nop\n"
     "    hlt\n"
     "    nop\n"
     "    vmmcall\n");
code_fn svm_guest, svm_guest_cpuid;
LABEL(svm_guest_exit);

#define GUEST_COUNT 16

TEST(svm, kernel_guest)
{
    struct counts c;

    prepare_guest(svm_guest, false, 0);
    c = measure_kernel(svm_run, (uint64_t)&vmcb);
    expect(vmcb.exit_code, EXIT_VMMCALL, "exit");
    expect(vmcb.rip, (uint64_t)svm_guest_exit, "guest's RIP");
    expect_counts("guest", c, 0, HOST_COUNT + GUEST_COUNT);

    /* The guest goes on after the VMMCALL. */
    vmcb.rip += 3;
    c = measure_kernel(svm_run, (uint64_t)&vmcb);
    expect_counts("guest, resumed", c, 0, HOST_COUNT + 2);
}

TEST(svm, user_guest)
{
    prepare_guest(svm_guest, true, 0);
    expect_counts("guest in user mode",
                  measure_kernel(svm_run, (uint64_t)&vmcb), GUEST_COUNT,
                  HOST_COUNT);
    expect(vmcb.exit_code, EXIT_VMMCALL, "exit");
}

/*
 * States that VMRUN refuses: bits of the VMCB to invert after prepare_guest().
 * If QEMU refuses before it has loaded the guest's RIP, it stores the host's in
 * the VMCB.
 */
static const struct refusal {
    const char *what;
    unsigned field;
    uint64_t bits;
    bool has_rip;
} refusals[] = {
    { "VMRUN is not intercepted", offsetof(struct vmcb, intercept_misc2),
      MISC2_VMRUN, false },
    { "the host's ASID", offsetof(struct vmcb, asid), 1, false },
    { "a reserved bit of CR0", offsetof(struct vmcb, cr0), BIT(32), false },
    { "a reserved bit of CR4", offsetof(struct vmcb, cr4), BIT(32), false },
    { "a reserved bit of DR6", offsetof(struct vmcb, dr6), BIT(32), true },
    { "a reserved bit of DR7", offsetof(struct vmcb, dr7), BIT(32), true },
    { "EFER.SVME is clear", offsetof(struct vmcb, efer), EFER_SVME, true },
    { "an exception that is none", offsetof(struct vmcb, event_injection),
      INJECT(NMI_VECTOR, INJECT_EXCEPTION), true },
    { "a reserved type of injection", offsetof(struct vmcb, event_injection),
      INJECT(VEC_IPI, INJECT_RESERVED), true },
};

static void prepare_refusal(const struct refusal *r)
{
    uint64_t field;

    prepare_guest(svm_guest, false, 0);
    memcpy(&field, (uint8_t *)&vmcb + r->field, sizeof(field));
    field ^= r->bits;
    memcpy((uint8_t *)&vmcb + r->field, &field, sizeof(field));
}

/* A refused VMRUN does not retire, and does not change the guest's RIP. */
TEST(svm, refused_guests)
{
    for (unsigned i = 0; i < ARRAY_SIZE(refusals); i++) {
        const char *what = refusals[i].what;

        prepare_refusal(&refusals[i]);
        expect_counts(what, measure_kernel(svm_run, (uint64_t)&vmcb), 0,
                      HOST_COUNT - 1);
        expect(vmcb.exit_code, EXIT_INVALID, "%s: exit", what);
        if (refusals[i].has_rip) {
            expect(vmcb.rip, (uint64_t)svm_guest, "%s: guest's RIP", what);
        }
    }
}

/* The same for AMD's counters of only the host or the guest. */
TEST(svm, refused_guests_by_side)
{
    if (pmu_is_intel()) {
        skip();
    }
    for (unsigned i = 0; i < ARRAY_SIZE(refusals); i++) {
        pmu_gp(0, EV_INSTRUCTIONS | SEL_ALL | SEL_HOST, 0);
        pmu_gp(1, EV_INSTRUCTIONS | SEL_ALL | SEL_GUEST, 0);
        prepare_refusal(&refusals[i]);
        run_kernel(GP(0) | GP(1), svm_run, (uint64_t)&vmcb);
        expect(vmcb.exit_code, EXIT_INVALID, "%s: exit", refusals[i].what);
        expect(rdmsr(MSR_PMC(0)), HOST_COUNT - 1 + RUN_KERNEL_OVERHEAD,
               "%s: the host's", refusals[i].what);
        expect(rdmsr(MSR_PMC(1)), 0, "%s: the guest's", refusals[i].what);
    }
}

/* CPUID and HLT are intercepted before they have any effect. */
TEST(svm, intercepts)
{
    prepare_guest(svm_guest_cpuid, false, MISC1_CPUID | MISC1_HLT);
    expect_counts("to CPUID", measure_kernel(svm_run, (uint64_t)&vmcb), 0,
                  HOST_COUNT + 1);
    expect(vmcb.exit_code, EXIT_CPUID, "exit");
    vmcb.rip += 2;
    expect_counts("to HLT", measure_kernel(svm_run, (uint64_t)&vmcb), 0,
                  HOST_COUNT + 1);
    expect(vmcb.exit_code, EXIT_HLT, "exit");
    vmcb.rip += 1;
    expect_counts("to VMMCALL", measure_kernel(svm_run, (uint64_t)&vmcb), 0,
                  HOST_COUNT + 1);
    expect(vmcb.exit_code, EXIT_VMMCALL, "exit");
}

/* A page fault in the middle of the guest's block, intercepted. */
CODE("svm_fault:\n"
     "    nop\n"
     "    nop\n"
     "    mov 0x40000000, %eax\n"
     "    nop\n"
     "    vmmcall\n");
code_fn svm_fault;

TEST(svm, page_fault)
{
    prepare_guest(svm_fault, false, 0);
    vmcb.intercept_exceptions = BIT(PF_VECTOR);
    expect_counts("to the fault", measure_kernel(svm_run, (uint64_t)&vmcb), 0,
                  HOST_COUNT + 2);
    expect(vmcb.exit_code, EXIT_PF, "exit");
    map(0, spare[0], PTE_RW);
    expect_counts("behind it", measure_kernel(svm_run, (uint64_t)&vmcb), 0,
                  HOST_COUNT + 2);
    expect(vmcb.exit_code, EXIT_VMMCALL, "exit");
}

/* The guest's INT n, intercepted: it neither retires nor is a branch. */
CODE("svm_int:\n"
     "    nop\n"
     "    int $0x80\n"
     "    nop\n"
     "    vmmcall\n"
     "svm_int_entry:\n"
     "    nop\n"
     "    iretq\n"
     "svm_error_entry:\n"
     "    add $8, %rsp\n"
     "    iretq\n");
code_fn svm_int;
LABEL(svm_int_entry);
LABEL(svm_error_entry);

TEST(svm, software_interrupt)
{
    set_gate(VEC_SYSCALL, svm_int_entry);
    prepare_guest(svm_int, false, 0);
    expect_counts("taken", measure_kernel(svm_run, (uint64_t)&vmcb), 0,
                  HOST_COUNT + 3 + 2);
    expect(vmcb.exit_code, EXIT_VMMCALL, "exit");

    prepare_guest(svm_int, false, MISC1_INT);
    expect_counts("intercepted", measure_kernel(svm_run, (uint64_t)&vmcb), 0,
                  HOST_COUNT + 1);
    expect(vmcb.exit_code, EXIT_INT, "exit");
    expect(vmcb.rip, (uint64_t)svm_int + 1, "guest's RIP");
}

/* An INT n that cannot be delivered does not retire if its fault exits, too. */
TEST(svm, software_interrupt_fails)
{
    set_gate(VEC_SYSCALL, NULL);
    prepare_guest(svm_int, false, 0);
    vmcb.intercept_exceptions = BIT(NP_VECTOR);
    expect_counts("intercepted", measure_kernel(svm_run, (uint64_t)&vmcb), 0,
                  HOST_COUNT + 1);
    expect(vmcb.exit_code, EXIT_NP, "exit");
    expect(vmcb.rip, (uint64_t)svm_int + 1, "guest's RIP");
}

/*
 * VMRUN injects an event: the guest begins in the handler.  An injected
 * software interrupt counts as the guest's INT, as one delivered directly does.
 */
static void prepare_injection(unsigned vector, unsigned type)
{
    set_gate(vector, svm_int_entry);
    prepare_guest(svm_guest, false, 0);
    vmcb.event_injection = INJECT(vector, type);
}

static void expect_injection(const char *what, unsigned vector, unsigned type)
{
    unsigned count = type == INJECT_SOFTWARE;

    prepare_injection(vector, type);
    expect_counts(what, measure_kernel(svm_run, (uint64_t)&vmcb), 0,
                  HOST_COUNT + count + 2 + GUEST_COUNT);
    expect(vmcb.exit_code, EXIT_VMMCALL, "%s: exit", what);
    prepare_injection(vector, type);
    pmu_gp(0, EV_BR_FAR | SEL_OS, 0);
    run_kernel(GP(0), svm_run, (uint64_t)&vmcb);
    expect(rdmsr(MSR_PMC(0)), count + 1, "%s: far branches", what);
}

TEST(svm, injection)
{
    expect_injection("interrupt", VEC_IPI, INJECT_INTERRUPT);
    expect_injection("NMI", NMI_VECTOR, INJECT_NMI);
    expect_injection("exception", DE_VECTOR, INJECT_EXCEPTION);
    expect_injection("software interrupt", VEC_SYSCALL, INJECT_SOFTWARE);
}

TEST(svm, injected_software_interrupt_fails)
{
    prepare_injection(VEC_SYSCALL, INJECT_SOFTWARE);
    set_gate(VEC_SYSCALL, NULL);
    vmcb.intercept_exceptions = BIT(NP_VECTOR);
    expect_counts("intercepted", measure_kernel(svm_run, (uint64_t)&vmcb), 0,
                  HOST_COUNT);
    expect(vmcb.exit_code, EXIT_NP, "exit");

    prepare_injection(VEC_SYSCALL, INJECT_SOFTWARE);
    set_gate(VEC_SYSCALL, NULL);
    set_gate(NP_VECTOR, svm_error_entry);
    expect_counts("by the guest", measure_kernel(svm_run, (uint64_t)&vmcb), 0,
                  HOST_COUNT + 2 + GUEST_COUNT);
    expect(vmcb.exit_code, EXIT_VMMCALL, "exit");
}

/* Only hardware interrupts and NMIs count as interrupts. */
TEST(svm, injected_interrupts)
{
    static const struct {
        const char *what;
        unsigned vector, type, interrupts;
    } injections[] = {
        { "interrupt", VEC_IPI, INJECT_INTERRUPT, 1 },
        { "NMI", NMI_VECTOR, INJECT_NMI, 1 },
        { "exception", DE_VECTOR, INJECT_EXCEPTION, 0 },
        { "software interrupt", VEC_SYSCALL, INJECT_SOFTWARE, 0 },
    };

    /* Not every model has this event. */
    if (!option("interrupts", 1)) {
        skip();
    }
    for (unsigned i = 0; i < ARRAY_SIZE(injections); i++) {
        prepare_injection(injections[i].vector, injections[i].type);
        pmu_gp(0, EV_INTERRUPTS | SEL_OS, 0);
        run_kernel(GP(0), svm_run, (uint64_t)&vmcb);
        expect(rdmsr(MSR_PMC(0)), injections[i].interrupts, "%s",
               injections[i].what);
    }
}

/*
 * Another CPU changes the memory map while the handler of an injected interrupt
 * waits for that, so that QEMU has to interrupt the first one: the handler runs
 * once.  It has no PAUSE, at which QEMU forgets the injected vector.
 */
CODE("svm_handler:\n"
     "    incl svm_handled\n"
     "1:  cmpl $0, svm_map_changed\n"
     "    je 1b\n"
     "    mov $1000, %ecx\n"
     "2:  loop 2b\n"
     "    iretq\n");
LABEL(svm_handler);

volatile uint32_t svm_handled, svm_map_changed;

static void change_map(void)
{
    while (!svm_handled) {
        pause();
    }
    outl(PCI_ADDRESS, PAM3_TO_6);
    outl(PCI_DATA, ALL_RAM);
    outl(PCI_DATA, 0);
    svm_map_changed = true;
}

TEST(svm, injected_once)
{
    svm_handled = svm_map_changed = 0;
    set_gate(VEC_SYSCALL, svm_handler);
    prepare_guest(svm_guest, false, 0);
    vmcb.rflags = 2;
    vmcb.event_injection = INJECT(VEC_SYSCALL, INJECT_INTERRUPT);
    start_cpu(1, change_map);
    svm_run((uint64_t)&vmcb);
    expect(vmcb.exit_code, EXIT_VMMCALL, "exit");
    expect(svm_handled, 1, "interrupts");
}

/* Without an intercept, VMMCALL is undefined, in the middle of a block. */
CODE("svm_vmmcall:\n"
     "    nop\n"
     "    vmmcall\n"
     "    nop\n"
     "    nop\n"
     "    ret\n"
     "svm_skip:\n"
     "    addq $3, (%rsp)\n"
     "    iretq\n");
code_fn svm_vmmcall;
LABEL(svm_skip);

TEST(svm, vmmcall_outside)
{
    prepare_guest(svm_guest, false, 0);
    set_gate(UD_VECTOR, svm_skip);
    expect_counts("kernel", measure_kernel(svm_vmmcall, 0), 0, 4 + 2);
    expect_counts("user mode", measure_user(svm_vmmcall, 0), 4, 2);
}

/* Many entries and exits: errors would add up. */
TEST(svm, many_exits)
{
    prepare_guest(svm_guest, false, 0);
    pmu_fixed(0, FIXED_ALL, 0);
    for (unsigned i = 0; i < 200; i++) {
        vmcb.rip = (uint64_t)svm_guest;
        run_kernel(FIXED(0), svm_run, (uint64_t)&vmcb);
    }
    expect(rdmsr(MSR_FIXED_CTR(0)),
           200 * (HOST_COUNT + GUEST_COUNT + RUN_KERNEL_OVERHEAD),
           "instructions");
}

/*
 * An intercepted PMI that is due in the guest makes the guest exit at that
 * exact instruction.  The host takes it when it can.
 */
static void expect_guest_overflow(bool user, unsigned n, unsigned at,
                                  uint32_t lvt)
{
    uint32_t mode = user ? SEL_USR : SEL_OS;

    prepare_guest(svm_guest, user, MISC1_INTR | MISC1_NMI);
    pmu_gp(0, EV_INSTRUCTIONS | mode | SEL_INT, -(uint64_t)n);
    sample_with(lvt);
    run_kernel(GP(0), svm_run, (uint64_t)&vmcb);
    expect(vmcb.exit_code, lvt == APIC_NMI ? EXIT_NMI : EXIT_INTR,
           "instruction %u: exit", n);
    expect(vmcb.rip, (uint64_t)svm_guest + at, "instruction %u: guest's RIP",
           n);
    asm volatile("sti\nnop\ncli" : : : "memory");
    expect(sample_count, 1, "instruction %u: samples", n);
}

TEST(svm, overflow_in_guest)
{
    /* The guest's address after each of its instructions */
    static const uint8_t place[GUEST_COUNT + 1] = {
        0, 1, 2, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 9, 10, 11, 12,
    };

    for (unsigned n = 1; n <= GUEST_COUNT; n++) {
        expect_guest_overflow(true, n, place[n], VEC_PMI);
        expect_guest_overflow(true, n, place[n], APIC_NMI);
    }
    /* A counter of the kernel also counts CALL, MOV and VMRUN before. */
    for (unsigned n = 0; n <= GUEST_COUNT; n++) {
        expect_guest_overflow(false, 3 + n, place[n], VEC_PMI);
        expect_guest_overflow(false, 3 + n, place[n], APIC_NMI);
    }
}

/* AMD's filters by side. */
TEST(svm, host_and_guest_only)
{
    static const struct {
        const char *name;
        uint64_t filter;
        unsigned count;
    } sides[] = {
        { "both", 0, HOST_COUNT + RUN_KERNEL_OVERHEAD + GUEST_COUNT },
        { "host", SEL_HOST, HOST_COUNT + RUN_KERNEL_OVERHEAD },
        { "guest", SEL_GUEST, GUEST_COUNT },
        { "either", SEL_HOST | SEL_GUEST,
          HOST_COUNT + RUN_KERNEL_OVERHEAD + GUEST_COUNT },
    };

    if (pmu_is_intel()) {
        skip();
    }
    prepare_guest(svm_guest, false, 0);
    for (unsigned i = 0; i < ARRAY_SIZE(sides); i++) {
        pmu_gp(i, EV_INSTRUCTIONS | SEL_ALL | sides[i].filter, 0);
    }
    run_kernel(GP(0) | GP(1) | GP(2) | GP(3), svm_run, (uint64_t)&vmcb);
    for (unsigned i = 0; i < ARRAY_SIZE(sides); i++) {
        expect(rdmsr(MSR_PMC(i)), sides[i].count, "%s", sides[i].name);
    }
}

/*
 * A guest's accesses to the PMU can be intercepted, register by register.
 * Otherwise they go to the PMU.
 */
CODE("svm_access_control:\n"
     MOV_PMU("0x38f", "ecx")
     "    rdmsr\n"
     "    vmmcall\n"
     "svm_access_select:\n"
     MOV_PMU("0x186", "ecx")
     "    rdmsr\n"
     "    wrmsr\n"
     "    vmmcall\n"
     "svm_access_rdpmc:\n"
     "    xor %ecx, %ecx\n"
     "    rdpmc\n"
     "    vmmcall\n");
code_fn svm_access_control, svm_access_select, svm_access_rdpmc;

/* Two bits for each register, in three ranges of 0x2000 registers */
static uint8_t permissions[2 * PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));

static void intercept_msr(uint32_t msr, bool intercept)
{
    unsigned kind = msr >= 0xc0010000 ? 2 : msr >= 0xc0000000 ? 1 : 0;
    unsigned bit = (kind * 0x2000 + (msr & 0x1fff)) * 2;
    uint8_t mask = 3 << bit % 8;

    permissions[bit / 8] &= ~mask;
    permissions[bit / 8] |= intercept ? mask : 0;
}

static unsigned exit_of(code_fn *code, uint32_t misc1)
{
    prepare_guest(code, false, misc1);
    vmcb.msr_permissions = (uint64_t)permissions;
    svm_run((uint64_t)&vmcb);
    return vmcb.exit_code;
}

TEST(svm, intercepted_accesses)
{
    const struct {
        code_fn *code;
        uint32_t msr;
    } accesses[] = {
        { svm_access_control, MSR_GLOBAL_CONTROL },
        { svm_access_select, MSR_EVTSEL(0) },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(accesses); i++) {
        intercept_msr(accesses[i].msr, true);
        expect(exit_of(accesses[i].code, MISC1_MSR), EXIT_MSR,
               "register %x: exit", accesses[i].msr);
        intercept_msr(accesses[i].msr, false);
        expect(exit_of(accesses[i].code, MISC1_MSR), EXIT_VMMCALL,
               "register %x: exit if allowed", accesses[i].msr);
    }
    expect(exit_of(svm_access_rdpmc, MISC1_RDPMC), EXIT_RDPMC, "RDPMC: exit");
    wrmsr(MSR_PMC(0), 4711);
    expect(exit_of(svm_access_rdpmc, 0), EXIT_VMMCALL,
           "RDPMC: exit if allowed");
    expect(vmcb.rax, 4711, "RDPMC");
}

/*
 * CPUID does not offer virtualization of branch records.  Without that, host
 * and guest share all records and DebugCtl, and the branches of both are
 * recorded in their order.  VMRUN and #VMEXIT are no branches.
 */

#define HAS_LBR             BIT(1)
#define LEAF_SVM            0x8000000a
#define HAS_LBR_VIRTUAL     BIT(1)

/* Two kinds of Intel's records, or AMD's */
static bool has_records(void)
{
    return pmu_is_intel() ? lbr_is_arch() || lbr_format() == FORMAT_INFO
                          : cpuid(LEAF_AMD_PMU, 0).a & HAS_LBR;
}

/* The newest record is that of the RET to this function: it must not branch. */
static void record_run(code_fn *run, uint64_t select)
{
    lbr_choose(select);
    wrmsr(lbr_switch, lbr_on);
    run((uint64_t)&vmcb);
    wrmsr(lbr_switch, 0);
}

CODE("svm_record:\n"
     "    mov %rdi, %rax\n"
     "    vmrun\n"
     "svm_record_behind:\n"
     "    jmp svm_record_end\n"
     "    nop\n"
     "svm_record_end:\n"
     "    stgi\n"
     "    ret\n"
     "svm_recorded:\n"
     "    mov $3, %ecx\n"
     "svm_recorded_loop:\n"
     "    loop svm_recorded_loop\n"
     "    call svm_recorded_leaf\n"
     "svm_recorded_exit:\n"
     "    vmmcall\n"
     "svm_recorded_leaf:\n"
     "    ret\n");
code_fn svm_record, svm_recorded;
LABEL(svm_record_behind);
LABEL(svm_record_end);
LABEL(svm_recorded_loop);
LABEL(svm_recorded_exit);
LABEL(svm_recorded_leaf);

#define AT(label)           ((uint64_t)(label))

static void expect_record(unsigned i, uint64_t from, uint64_t to)
{
    expect(lbr_from(i), from, "record %u: FROM", i);
    expect(lbr_to(i), to, "record %u: TO", i);
}

TEST(svm, records)
{
    if (!has_records()) {
        skip();
    }
    expect(cpuid(LEAF_SVM, 0).d & HAS_LBR_VIRTUAL, 0, "virtualized records");
    prepare_guest(svm_recorded, false, 0);
    record_run(svm_record, NO_RING_3);
    expect(vmcb.exit_code, EXIT_VMMCALL, "exit");
    expect(vmcb.rip, (uint64_t)svm_recorded_exit, "guest's RIP");
    /* The RET to record_run() is the newest. */
    expect(lbr_from(0), AT(svm_record_end) + 3, "RET: FROM");
    expect_record(1, AT(svm_record_behind), AT(svm_record_end));
    expect_record(2, AT(svm_recorded_leaf), AT(svm_recorded_exit));
    expect_record(3, AT(svm_recorded_exit) - 5, AT(svm_recorded_leaf));
    expect_record(4, AT(svm_recorded_loop), AT(svm_recorded_loop));
    expect_record(5, AT(svm_recorded_loop), AT(svm_recorded_loop));
    expect(lbr_to(6), AT(svm_record), "CALL: TO");
}

/*
 * Intel's records also have the cycles since the one before, and architectural
 * ones the type.
 */
static void expect_cycles_of_guest(const char *what, bool user)
{
    /* The newest first; an intercepted instruction takes no cycles. */
    static const struct {
        const char *branch;
        unsigned cycles, type;
    } want[] = {
        { "host's RET", 2, TYPE_RETURN }, { "host's JMP", 1, TYPE_JUMP },
        { "RET", 1, TYPE_RETURN }, { "CALL", 2, TYPE_CALL },
        { "second LOOP", 1, TYPE_COND },
        { "first LOOP, and the host's MOV and VMRUN", 4, TYPE_COND },
    };

    prepare_guest(svm_recorded, user, 0);
    record_run(svm_record, 0);
    expect(vmcb.exit_code, EXIT_VMMCALL, "%s: exit", what);
    for (unsigned age = 0; age < ARRAY_SIZE(want); age++) {
        expect(lbr_cycles(age), want[age].cycles, "%s: cycles to %s", what,
               want[age].branch);
        expect(lbr_info(age), lbr_info_of(want[age].type), "%s: type of %s",
               what, want[age].branch);
    }
}

/* Cycles continue from the host to the guest and back. */
TEST(svm, cycles_of_records)
{
    if (!pmu_is_intel() || !has_records()) {
        skip();
    }
    expect_cycles_of_guest("kernel", false);
    expect_cycles_of_guest("user mode", true);
}

/* The injected event's record has the guest's first address as FROM. */
TEST(svm, injection_is_recorded)
{
    if (!has_records()) {
        skip();
    }
    prepare_injection(VEC_IPI, INJECT_INTERRUPT);
    record_run(svm_run, NO_RING_3);
    expect(vmcb.exit_code, EXIT_VMMCALL, "exit");
    /* Nine rounds of its loop, IRETQ, and the delivery. */
    expect_record(1, AT(svm_guest) + 7, AT(svm_guest) + 7);
    expect_record(9, AT(svm_guest) + 7, AT(svm_guest) + 7);
    expect_record(10, AT(svm_int_entry) + 1, AT(svm_guest));
    expect_record(11, AT(svm_guest), AT(svm_int_entry));
}

/* The guest sees the host's value, and its own write stays after the exit. */
CODE("svm_debugctl:\n"
     "    mov $0x1d9, %ecx\n"
     "    rdmsr\n"
     "    vmmcall\n"
     "    mov $0x1d9, %ecx\n"
     "    xor %edx, %edx\n"
     "    mov $2, %eax\n"
     "    wrmsr\n"
     "    vmmcall\n");
code_fn svm_debugctl;

TEST(svm, debugctl)
{
    if (!has_records()) {
        skip();
    }
    wrmsr(MSR_DEBUGCTL, DEBUGCTL_FREEZE_LBRS);
    prepare_guest(svm_debugctl, false, 0);
    svm_run((uint64_t)&vmcb);
    expect(vmcb.exit_code, EXIT_VMMCALL, "exit");
    expect(vmcb.rax, DEBUGCTL_FREEZE_LBRS, "in the guest");
    vmcb.rip += 3;
    svm_run((uint64_t)&vmcb);
    expect(vmcb.exit_code, EXIT_VMMCALL, "second exit");
    expect(rdmsr(MSR_DEBUGCTL), DEBUGCTL_BTF, "behind it");
    wrmsr(MSR_DEBUGCTL, 0);
}

/*
 * The host is stepped.  With BTF, it does not stop after VMRUN, which is no
 * branch, but after the JMP.
 */
CODE("svm_step:\n"
     "    mov %rdi, %rax\n"
     "    pushfq\n"
     "    orq $0x100, (%rsp)\n"
     "    popfq\n"
     "    vmrun\n"
     "svm_step_behind:\n"
     "    jmp svm_step_end\n"
     "    nop\n"
     "svm_step_end:\n"
     "    stgi\n"
     "    ret\n");
code_fn svm_step;
LABEL(svm_step_behind);
LABEL(svm_step_end);

static uint64_t first_stop;

static void end_steps(struct regs *regs)
{
    first_stop = regs->rip;
    regs->rflags &= ~RFLAGS_TF;
}

static uint64_t step_over_guest(uint64_t debugctl)
{
    first_stop = 0;
    on_trap(DB_VECTOR, end_steps);
    prepare_guest(svm_guest, false, 0);
    wrmsr(MSR_DEBUGCTL, debugctl);
    svm_step((uint64_t)&vmcb);
    on_trap(DB_VECTOR, NULL);
    expect(vmcb.exit_code, EXIT_VMMCALL, "exit");
    return first_stop;
}

TEST(svm, steps)
{
    expect(step_over_guest(0), AT(svm_step_behind), "stop without BTF");
    expect(step_over_guest(DEBUGCTL_BTF), AT(svm_step_end), "stop with BTF");
    expect(rdmsr(MSR_DEBUGCTL), 0, "DEBUGCTL");
}

/*
 * Event based sampling, with a period of 1: each instruction of host and guest
 * has a record.  VMRUN retires at the guest's first address; VMMCALL, which is
 * intercepted, does not retire.
 */
#define DATA_CFG_GPRS       2

/* The DS save area, in words */
#define DS_BASE             4
#define DS_INDEX            5
#define DS_MAXIMUM          6
#define DS_THRESHOLD        7
#define DS_RESET            8
#define DS_WORDS            20

#define MAX_RECORDS         32
#define MAX_WORDS           25

static uint64_t ds_area[DS_WORDS];
static uint64_t ds_buffer[MAX_RECORDS * MAX_WORDS];

static unsigned pebs_format(void)
{
    return rdmsr(MSR_PERF_CAP) >> 8 & 0xf;
}

/* Size and fields of a record, in words: format 3, or groups as chosen */
static unsigned record_size(void)
{
    return pebs_format() >= 4 ? 22 : 25;
}

static uint64_t sampled_ip(unsigned i)
{
    return ds_buffer[i * record_size() + (pebs_format() >= 4 ? 5 : 1)];
}

static uint64_t sampled_at(unsigned i)
{
    return ds_buffer[i * record_size() + (pebs_format() >= 4 ? 1 : 22)];
}

static unsigned nr_sampled(void)
{
    return (ds_area[DS_INDEX] - ds_area[DS_BASE]) / (record_size() * 8);
}

static void begin_sampling(void)
{
    memset(ds_area, 0, sizeof(ds_area));
    memset(ds_buffer, 0x55, sizeof(ds_buffer));
    ds_area[DS_BASE] = ds_area[DS_INDEX] = (uint64_t)ds_buffer;
    ds_area[DS_MAXIMUM] = (uint64_t)(ds_buffer + MAX_RECORDS * record_size());
    /* No interrupt */
    ds_area[DS_THRESHOLD] = ds_area[DS_MAXIMUM] + 1;
    ds_area[DS_RESET] = -1;
    wrmsr(MSR_DS_AREA, (uint64_t)ds_area);
    pmu_gp(0, EV_INSTRUCTIONS | SEL_ALL
              | (pebs_format() >= 4 ? SEL_ADAPTIVE : 0), COUNTER_MASK);
    wrmsr(MSR_PEBS_ENABLE, GP(0));
    if (pebs_format() >= 4) {
        wrmsr(MSR_PEBS_DATA_CFG, DATA_CFG_GPRS);
    }
}

static void end_sampling(void)
{
    wrmsr(MSR_PEBS_ENABLE, 0);
    wrmsr(MSR_DS_AREA, 0);
    if (pebs_format() >= 4) {
        wrmsr(MSR_PEBS_DATA_CFG, 0);
    }
}

static void expect_sampled(const char *what, bool user)
{
    /* Instructions after the CALL of svm_record */
    const uint64_t want[] = {
        AT(svm_record), AT(svm_record) + 3,
        AT(svm_recorded), AT(svm_recorded_loop), AT(svm_recorded_loop),
        AT(svm_recorded_loop), AT(svm_recorded_exit) - 5,
        AT(svm_recorded_leaf),
        AT(svm_record_behind), AT(svm_record_end), AT(svm_record_end) + 3,
    };
    /* The guest's RET goes to VMMCALL, which does not retire. */
    const unsigned ret = 7;
    const unsigned n = ARRAY_SIZE(want);

    prepare_guest(svm_recorded, user, 0);
    begin_sampling();
    run_kernel(GP(0), svm_record, (uint64_t)&vmcb);
    end_sampling();
    expect(vmcb.exit_code, EXIT_VMMCALL, "%s: exit", what);
    expect(nr_sampled(), n + RUN_KERNEL_OVERHEAD, "%s: records", what);
    expect(sampled_ip(0), want[0], "%s: CALL: IP", what);
    for (unsigned i = 0; i < n; i++) {
        expect(sampled_at(i + 1), want[i], "%s: record %u: EventingIP", what,
               i + 1);
        if (i < n - 1) {
            expect(sampled_ip(i + 1),
                   i == ret ? AT(svm_recorded_exit) : want[i + 1],
                   "%s: record %u: IP", what, i + 1);
        }
    }
    expect(rdmsr(MSR_GLOBAL_STATUS), 0, "%s: the status", what);
}

TEST(svm, sampled)
{
    if (!pmu_is_intel() || pebs_format() < 3 || rdmsr_fault(MSR_PEBS_ENABLE)) {
        skip();
    }
    expect_sampled("kernel", false);
    expect_sampled("user mode", true);
}
