/*
 * Suite memory: retired instructions that read or write memory
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

/* An instruction that faults does not retire. */
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

/* One that repeats zero times does not access memory. */
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

/* One instruction each, with its accesses; RDI points to data. */
#define ONE(name, insn) \
    "memory_" name ":\n    " insn "\n    ret\n"

CODE(ONE("push_mem", "push (%rdi)\n pop %rax")
     ONE("pop_mem", "push $5\n pop (%rdi)")
     ONE("call_mem", "movq $1f, (%rdi)\n call *(%rdi)\n ret\n 1:")
     ONE("leave", "push %rbp\n mov %rsp, %rbp\n leave")
     ONE("cmps", "mov %rdi, %rsi\n cmpsb")
     ONE("movs", "mov %rdi, %rsi\n movsq")
     ONE("xlat", "push %rbx\n mov %rdi, %rbx\n xor %eax, %eax\n xlat\n"
         "pop %rbx")
     ONE("bts", "bts %rax, (%rdi)")
     ONE("sgdt", "sgdt (%rdi)")
     ONE("m80", "fldpi\n fstpt (%rdi)\n fldt (%rdi)\n fstp %st(0)")
     ONE("fxsave", "fxsave (%rdi)\n fxrstor (%rdi)")
     ONE("cmpxchg16b", "push %rbx\n lock cmpxchg16b (%rdi)\n pop %rbx")
     ONE("split", "mov 61(%rdi), %rax\n mov %rax, 61(%rdi)\n"
         "lock incq 61(%rdi)")
     ONE("prefetch", "prefetcht0 (%rdi)\n clflush (%rdi)\n lea (%rdi), %rax")
     ONE("cmov", "cmovz (%rdi), %rax\n cmovnz (%rdi), %rax")
     ONE("sse", "paddb (%rdi), %xmm0\n movdqa %xmm0, (%rdi)\n"
         "pextrd $1, %xmm0, (%rdi)\n maskmovdqu %xmm0, %xmm0"));

code_fn memory_push_mem, memory_pop_mem, memory_call_mem, memory_leave,
        memory_cmps, memory_movs, memory_xlat, memory_bts, memory_sgdt,
        memory_m80, memory_fxsave, memory_cmpxchg16b, memory_split,
        memory_prefetch, memory_cmov, memory_sse;

TEST(memory, kinds)
{
    /* Accesses, without the load of the final RET */
    static const struct {
        const char *name;
        code_fn *fn;
        unsigned loads, stores;
    } kinds[] = {
        { "PUSH of memory", memory_push_mem, 2, 1 },
        { "POP to memory", memory_pop_mem, 1, 2 },
        { "CALL through memory", memory_call_mem, 2, 2 },
        { "LEAVE", memory_leave, 1, 1 },
        { "CMPSB", memory_cmps, 1, 0 },
        { "MOVSQ", memory_movs, 1, 1 },
        { "XLAT", memory_xlat, 2, 1 },
        { "BTS", memory_bts, 1, 1 },
        { "SGDT", memory_sgdt, 0, 1 },
        { "80 bits", memory_m80, 1, 1 },
        { "FXSAVE, FXRSTOR", memory_fxsave, 1, 1 },
        { "CMPXCHG16B", memory_cmpxchg16b, 2, 2 },
        { "split", memory_split, 2, 2 },
        { "PREFETCH, CLFLUSH, LEA", memory_prefetch, 0, 0 },
        { "CMOV", memory_cmov, 2, 0 },
        { "SSE", memory_sse, 1, 3 },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
        expect_accesses(kinds[i].name, kinds[i].fn, (uint64_t)spare[1],
                        kinds[i].loads + 1, kinds[i].stores);
    }
}

/*
 * Instructions with special accesses.  Bounds are encoded as bytes, as binutils
 * 2.44 has removed them.
 */
CODE("memory_call_far:\n"
     "    mov %cs, %eax\n"
     "    movl $1f, (%rdi)\n"
     "    mov %eax, 4(%rdi)\n"
     "    lcall *(%rdi)\n"
     "    ret\n"
     "1:  lretl\n"
     "memory_gather:\n"
     "    vpxor %ymm1, %ymm1, %ymm1\n"
     "    vpcmpeqd %ymm2, %ymm2, %ymm2\n"
     "    vpgatherdd %ymm2, (%rdi, %ymm1, 4), %ymm0\n"
     "    vpcmpeqd %xmm2, %xmm2, %xmm2\n"
     "    vgatherqpd %xmm2, (%rdi, %xmm1, 8), %xmm0\n"
     "    vzeroupper\n"
     "    ret\n"
     "memory_bounds:\n"
     "    mov $0x100000, %eax\n"
     "    xor %edx, %edx\n"
     "    .byte 0x66, 0x0f, 0x1b, 0x07\n"       /* BNDMOV %bnd0, (%rdi) */
     "    .byte 0x66, 0x0f, 0x1a, 0x07\n"       /* BNDMOV (%rdi), %bnd0 */
     "    .byte 0xf3, 0x0f, 0x1b, 0x48, 8\n"    /* BNDMK 8(%rax), %bnd1 */
     "    .byte 0x0f, 0x1b, 0x0c, 0x10\n"       /* BNDSTX %bnd1, (%rax,%rdx) */
     "    .byte 0x0f, 0x1a, 0x14, 0x10\n"       /* BNDLDX (%rax,%rdx), %bnd2 */
     "    ret\n");
code_fn memory_call_far, memory_gather, memory_bounds;

TEST(memory, far_calls)
{
    expect_accesses("far call", memory_call_far, (uint64_t)spare[1], 3, 3);
}

#define CR4_OSXSAVE         BIT(18)
#define CPUID_1_C_XSAVE     BIT(26)
#define CPUID_7_B_AVX2      BIT(5)
#define CPUID_7_B_MPX       BIT(14)
#define XCR0_X87_SSE_AVX    7
#define XCR0_MPX            (3 << 3)
#define MSR_BNDCFGS         0xd90

/* Enable an extension; skip the case if the processor lacks it. */
static void enable_extension(uint32_t feature, uint32_t xcr0)
{
    if (!(cpuid(1, 0).c & CPUID_1_C_XSAVE) || cpuid(0, 0).a < 7 ||
        !(cpuid(7, 0).b & feature)) {
        skip();
    }
    write_cr4(read_cr4() | CR4_OSXSAVE);
    asm volatile("xsetbv" : : "c"(0), "a"(xcr0), "d"(0));
}

TEST(memory, gathers)
{
    enable_extension(CPUID_7_B_AVX2, XCR0_X87_SSE_AVX);
    expect_accesses("gathers", memory_gather, (uint64_t)spare[1], 3, 0);
}

/* The directory of bounds is walked like a page table. */
TEST(memory, bounds)
{
    enable_extension(CPUID_7_B_MPX, XCR0_X87_SSE_AVX | XCR0_MPX);
    *(uint64_t *)(spare[2] + 8) = (uint64_t)spare[3] | 1;
    /* QEMU 10.0 takes the address from bit 20 on instead of 12. */
    wrmsr(MSR_BNDCFGS, (uint64_t)spare[2] << 8 | 1);
    pmu_gp(0, EV_LOADS | SEL_OS, 0);
    pmu_gp(1, EV_STORES | SEL_OS, 0);
    run_kernel(GP(0) | GP(1), memory_bounds, (uint64_t)spare[1]);
    wrmsr(MSR_BNDCFGS, 0);
    expect(rdmsr(MSR_PMC(0)), 3, "loads");
    expect(rdmsr(MSR_PMC(1)), 2 + 1, "stores");
    expect(*(uint64_t *)(spare[3] + 8), ~0x100008ull, "upper bound stored");
}

/* Period 1: a sample right after each access; all but the last do both. */
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

/* Whether the instruction of memory_loop at @code has event @event. */
static bool accesses(uint64_t event, const uint8_t *code)
{
    return event == EV_LOADS ? code[1] == 0x8b || code[0] == 0xc3
                             : code[0] == 0x48 && code[1] == 0x89;
}

TEST(memory, periods)
{
    static const uint64_t events[] = { EV_LOADS, EV_STORES };
    uint64_t data = (uint64_t)spare[1];
    uint64_t total;

    /* The trace holds only a part of the loop. */
    total = count_steps(memory_loop, data);
    total = total < MAX_TRACE ? total : MAX_TRACE;
    for (unsigned period = 1; period < 40; period++) {
        uint64_t event = events[period % 2], count = 0;
        unsigned sample = 0;

        pmu_gp(0, event | SEL_USR | SEL_INT, -(uint64_t)period);
        sample_with(VEC_PMI);
        sample_reload(0, period);
        run_user(GP(0), memory_loop, data);
        for (uint64_t i = 1; i < total && sample < MAX_SAMPLES; i++) {
            if (accesses(event, (uint8_t *)step_trace[i - 1]) &&
                ++count % period == 0) {
                expect(samples[sample].rip, step_trace[i],
                       "event %lx, period %u, sample %u: RIP", event, period,
                       sample);
                sample++;
            }
        }
    }
}

/*
 * One access to each of RDI pages of the window, and that of RET.  The code
 * that jumps from page to page is copied into the window.
 */
CODE("memory_load_pages:\n"
     "    mov $0x40000000, %ecx\n"
     "1:  mov (%rcx), %rax\n"
     "    add $4096, %rcx\n"
     "    dec %rdi\n"
     "    jnz 1b\n"
     "    ret\n"
     "memory_store_pages:\n"
     "    mov $0x40000000, %ecx\n"
     "1:  mov %eax, 8(%rcx)\n"
     "    add $4096, %rcx\n"
     "    dec %rdi\n"
     "    jnz 1b\n"
     "    ret\n"
     "memory_jump_pages:\n"
     "    dec %rdi\n"
     "    jz 1f\n"
     "    lea memory_jump_pages + 4096(%rip), %rcx\n"
     "    jmp *%rcx\n"
     "1:  ret\n"
     "memory_jump_pages_end:\n"
     "memory_load_twice:\n"
     "    push %rdi\n"
     "    call memory_load_pages\n"
     "    pop %rdi\n"
     "    call memory_load_pages\n"
     "    ret\n"
     "memory_load_often:\n"
     "    mov $16, %edx\n"
     "1:  push %rdi\n"
     "    call memory_load_pages\n"
     "    pop %rdi\n"
     "    dec %edx\n"
     "    jnz 1b\n"
     "    ret\n");
_Static_assert(WINDOW_BASE == 0x40000000, "the code above knows it");
code_fn memory_load_pages, memory_store_pages, memory_load_twice;
code_fn memory_load_often;
LABEL(memory_jump_pages);
LABEL(memory_jump_pages_end);

static void map_window(void)
{
    memcpy(spare[0], memory_jump_pages,
           memory_jump_pages_end - memory_jump_pages);
    for (unsigned i = 0; i < WINDOW_PAGES; i++) {
        map(i, spare[0], PTE_RW);
    }
}

/* Returns: the misses of a function in user mode, from an empty TLB. */
static uint64_t misses(uint64_t event, code_fn *fn, uint64_t pages)
{
    pmu_gp(0, event | SEL_USR, 0);
    asm volatile("mov %%cr3, %%rax\n mov %%rax, %%cr3" : : : "rax", "memory");
    run_user(GP(0), fn, pages);
    return rdmsr(MSR_PMC(0));
}

/*
 * Each new page misses once, whatever the size of QEMU's TLB.  The stack, the
 * code, and tables that INT reads also miss, as often for any number of pages.
 * With record and replay misses are not counted, as a replay can have another
 * TLB.
 */
static void expect_misses(uint64_t event, code_fn *fn)
{
    static const unsigned sizes[] = { 2, 100, WINDOW_PAGES };
    bool counted = !option("recorded", 0);
    uint64_t one;

    map_window();
    one = misses(event, fn, 1);
    expect(one > 0, counted, "event %lx: %lu misses of one page", event, one);
    for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
        expect(misses(event, fn, sizes[i]) - one, counted * (sizes[i] - 1),
               "event %lx: more misses of %u pages than of one", event,
               sizes[i]);
    }
}

/* The TLB grows while nothing flushes it: then none misses any more. */
TEST(memory, tlb_grows)
{
    uint64_t all;

    map_window();
    all = misses(EV_DTLB_LOAD_MISSES, memory_load_often, WINDOW_PAGES);
    expect(all < 4 * WINDOW_PAGES, true, "%lu misses of %u pages, 16 times",
           all, WINDOW_PAGES);
}

TEST(memory, tlb_misses)
{
    expect_misses(EV_DTLB_LOAD_MISSES, memory_load_pages);
}

TEST(memory, tlb_misses_of_stores)
{
    expect_misses(EV_DTLB_STORE_MISSES, memory_store_pages);
}

TEST(memory, tlb_misses_of_fetches)
{
    expect_misses(EV_ITLB_MISSES, (code_fn *)WINDOW(0));
}

/* So few pages stay in the TLB: the second time none misses. */
TEST(memory, tlb_hits)
{
    uint64_t once;

    map_window();
    once = misses(EV_DTLB_LOAD_MISSES, memory_load_twice, 1);
    expect(misses(EV_DTLB_LOAD_MISSES, memory_load_twice, 16) - once,
           option("recorded", 0) ? 0 : 15, "more misses of 16 pages than of 1");
}

/*
 * QEMU walks page tables when it follows frame pointers from outside, and these
 * tables may lead to a device.  Reading a register can have an effect: a
 * network card (82540EM) clears its interrupt causes when they are read.
 */
#define PCI_SLOT(n)     (0x80000000 | (n) << 11)
#define PCI_COMMAND     4
#define PCI_MEMORY      2
#define PCI_BAR0        0x10
#define NIC             PCI_SLOT(3)
#define NIC_BASE        0xfe000000ull
#define NIC_CAUSES      0xc0
#define NIC_SET_CAUSES  0xc8
#define SOME_CAUSE      4

#define ENTRIES         (PAGE_SIZE / sizeof(uint64_t))
#define ENTRY_RWU       7
#define TOP_LEVEL       4

static uint64_t tables[TOP_LEVEL][ENTRIES]
    __attribute__((aligned(PAGE_SIZE)));

/* In a loop, with both pointers of a frame at RDI. */
CODE("memory_frame:\n"
     "    mov %rsp, %r8\n"
     "    mov %rdi, %rbp\n"
     "    mov %rdi, %rsp\n"
     "    mov $20000, %ecx\n"
     "1:  dec %ecx\n"
     "    jnz 1b\n"
     "    mov %r8, %rsp\n"
     "    ret\n");
code_fn memory_frame;

static uint32_t pci_read(uint32_t address)
{
    outl(PCI_ADDRESS, address);
    return inl(PCI_DATA);
}

static void pci_write(uint32_t address, uint32_t value)
{
    outl(PCI_ADDRESS, address);
    outl(PCI_DATA, value);
}

static volatile uint32_t *nic_register(unsigned offset)
{
    return (volatile uint32_t *)(NIC_BASE + offset);
}

static bool has_cause(void)
{
    return *nic_register(NIC_CAUSES) & SOME_CAUSE;
}

/*
 * The second entry of the top table leads to tables whose first entries lead to
 * the device in the place of a table of this level.
 *
 * Returns: an address whose entry there is the register.
 */
static uint64_t lead_to_device(unsigned level)
{
    uint64_t next = NIC_BASE;

    for (unsigned i = level + 1; i < TOP_LEVEL; i++) {
        tables[i][0] = next | ENTRY_RWU;
        next = (uint64_t)tables[i];
    }
    ((uint64_t *)(read_cr3() & -PAGE_SIZE))[1] = next | ENTRY_RWU;
    return BIT(39) | (NIC_CAUSES / sizeof(uint64_t)) << (12 + 9 * (level - 1));
}

TEST(memory, tables_in_device)
{
    if (pci_read(NIC) == UINT32_MAX) {
        skip();
    }
    pci_write(NIC + PCI_BAR0, NIC_BASE);
    pci_write(NIC + PCI_COMMAND, PCI_MEMORY);
    *nic_register(NIC_SET_CAUSES) = SOME_CAUSE;
    expect(has_cause(), true, "a cause");
    expect(has_cause(), false, "a cause that was read");
    for (unsigned level = 1; level < TOP_LEVEL; level++) {
        uint64_t frame = lead_to_device(level);

        *nic_register(NIC_SET_CAUSES) = SOME_CAUSE;
        run_user(0, memory_frame, frame);
        expect(has_cause(), true, "level %u: a cause that nobody read", level);
    }
    ((uint64_t *)(read_cr3() & -PAGE_SIZE))[1] = 0;
}
