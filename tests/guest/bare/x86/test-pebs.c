/*
 * Suite pebs: event based sampling, record by record
 *
 * With a period of 1, each instruction of a program has a record.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "internal.h"
#include "lbr.h"

#define DATA_CFG_MEMORY_AND_GPRS 3
#define DATA_CFG_XMMS     4
#define DATA_CFG_LBRS(n)  (8 | (n - 1ull) << 24)
#define EV_LOAD_LATENCY   option("latency", 0x01cd)
#define EV_STORE_SAMPLE   0x02cd
#define LATENCY           32
#define SOURCE_L1         1

/* The DS save area, in words */
#define DS_BASE           4
#define DS_INDEX          5
#define DS_MAXIMUM        6
#define DS_THRESHOLD      7
#define DS_RESET          8
#define DS_WORDS          20

#define MAX_RECORDS       64

/* Pages of the window for the area and the buffer, each followed by a spare */
#define DS_PAGE           2
#define BUFFER_PAGE       4

static unsigned format(void)
{
    return rdmsr(MSR_PERF_CAP) >> 8 & 0xf;
}

/**
 * struct layout - offsets of fields in a record, in words
 * @at: the instruction that overflowed; 0 if records do not have this
 */
struct layout {
    unsigned size, flags, ip, ax, bx, cx, dx, si, di, bp, sp, r8;
    unsigned counters, address, source, latency, at, tsc;
};

static struct layout layout(void)
{
    struct layout fixed = {
        .flags = 0, .ip = 1, .ax = 2, .bx = 3, .cx = 4, .dx = 5, .si = 6,
        .di = 7, .bp = 8, .sp = 9, .r8 = 10, .counters = 18, .address = 19,
        .source = 20, .latency = 21,
        .at = format() >= 2 ? 22 : 0, .tsc = format() >= 3 ? 24 : 0,
        .size = format() >= 3 ? 25 : format() == 2 ? 24 : 22,
    };
    const struct layout chosen = {
        .at = 1, .counters = 2, .tsc = 3, .address = 4, .source = 5,
        .latency = 6, .flags = 8, .ip = 9, .ax = 10, .cx = 11, .dx = 12,
        .bx = 13, .sp = 14, .bp = 15, .si = 16, .di = 17, .r8 = 18, .size = 26,
    };

    return format() >= 4 ? chosen : fixed;
}

static uint64_t *area(void)
{
    return (uint64_t *)WINDOW(DS_PAGE);
}

static uint64_t *buffer(void)
{
    return (uint64_t *)WINDOW(BUFFER_PAGE);
}

static const uint64_t *record(unsigned n)
{
    return buffer() + n * layout().size;
}

static unsigned nr_records(void)
{
    return (area()[DS_INDEX] - (uint64_t)buffer()) / (layout().size * 8);
}

/* Map the area and the buffer for the kernel only, and set them up. */
static void prepare_area(unsigned threshold)
{
    const unsigned size = layout().size * 8;

    for (unsigned i = 0; i < 6; i++) {
        map(DS_PAGE + i, spare[i], PTE_P | PTE_W);
    }
    memset(area(), 0, DS_WORDS * 8);
    memset(buffer(), 0x55, MAX_RECORDS * size);
    area()[DS_BASE] = area()[DS_INDEX] = (uint64_t)buffer();
    area()[DS_MAXIMUM] = (uint64_t)buffer() + MAX_RECORDS * size;
    area()[DS_THRESHOLD] = (uint64_t)buffer() + threshold * size;
    wrmsr(MSR_DS_AREA, (uint64_t)area());
}

/* Make each event of counter @i overflow. */
static void sample(unsigned i, uint64_t select)
{
    area()[DS_RESET + i] = -1;
    pmu_gp(i, select | (format() >= 4 ? SEL_ADAPTIVE : 0), COUNTER_MASK);
    wrmsr(MSR_PEBS_ENABLE, rdmsr(MSR_PEBS_ENABLE) | GP(i));
    if (format() >= 4) {
        wrmsr(MSR_PEBS_DATA_CFG, DATA_CFG_MEMORY_AND_GPRS);
    }
}

/* Before version 5, counter @i needs a bit for the latency of loads. */
static void sample_latency(unsigned i)
{
    if (pmu_version() < 5) {
        wrmsr(MSR_PEBS_ENABLE, rdmsr(MSR_PEBS_ENABLE) | GP(i) << 32);
    }
}

static void end_sampling(void)
{
    wrmsr(MSR_PEBS_ENABLE, 0);
    wrmsr(MSR_DS_AREA, 0);
    wrmsr(MSR_PEBS_LD_LAT, 0);
    if (format() >= 4) {
        wrmsr(MSR_PEBS_DATA_CFG, 0);
    }
}

CODE("pebs_code:\n"
     "    mov $0x11, %eax\n"
     "    mov $0x12, %ebx\n"
     "    mov $0x13, %ecx\n"
     "    mov $0x14, %edx\n"
     "    mov $0x15, %esi\n"
     "    mov $0x16, %ebp\n"
     "    jmp 1f\n"
     "    ud2\n"
     "1:  call 2f\n"
     "    push %rax\n"
     "    pop %rcx\n"
     "    xor %edx, %edx\n"
     "    mov $3, %ecx\n"
     "3:  dec %ecx\n"
     "    jnz 3b\n"
     "    ret\n"
     "2:  cpuid\n"
     "    mov $0x11, %eax\n"
     "    mov $0x12, %ebx\n"
     "    stc\n"
     "    ret\n");
code_fn pebs_code;

/* Returns: the number of instructions; step_trace has the addresses */
static unsigned trace_code(code_fn *fn, uint64_t arg)
{
    unsigned steps = count_steps(fn, arg);

    step_trace[steps - 1] = (uint64_t)user_exit;
    return steps;
}

static uint64_t before(code_fn *fn, unsigned i)
{
    return i ? step_trace[i - 1] : (uint64_t)fn;
}

static void expect_place(code_fn *fn, unsigned i)
{
    const struct layout l = layout();

    expect(record(i)[l.ip], step_trace[i], "record %u: IP", i);
    expect(record(i)[l.counters], GP(0), "record %u: counters", i);
    if (l.at) {
        expect(record(i)[l.at], before(fn, i), "record %u: EventingIP", i);
    }
    if (l.tsc && i) {
        expect(record(i)[l.tsc] >= record(i - 1)[l.tsc], 1, "record %u: TSC",
               i);
    }
    if (format() >= 4) {
        expect(record(i)[0], l.size * 8ull << 48 | DATA_CFG_MEMORY_AND_GPRS,
               "record %u: format and size", i);
    }
}

/* Each instruction of a program has a record. */
static void sample_user(code_fn *fn, uint64_t arg)
{
    prepare_area(MAX_RECORDS + 1);
    sample(0, EV_INSTRUCTIONS | SEL_USR);
    run_user(GP(0), fn, arg);
    end_sampling();
}

TEST(pebs, each_instruction)
{
    const unsigned steps = trace_code(pebs_code, 0);

    sample_user(pebs_code, 0);
    /* Including the INT that ends it and enters the kernel */
    expect(nr_records(), steps + 1, "records");
    for (unsigned i = 0; i < steps; i++) {
        expect_place(pebs_code, i);
    }
    expect(rdmsr(MSR_PERFCTR(0)), COUNTER_MASK, "the counter");
    expect(rdmsr(MSR_GLOBAL_STATUS), 0, "the status");
}

TEST(pebs, registers)
{
    const struct layout l = layout();
    const uint64_t *r = record(6);      /* after the JMP */

    sample_user(pebs_code, 0x1234);
    expect(r[l.ax], 0x11, "RAX");
    expect(r[l.bx], 0x12, "RBX");
    expect(r[l.cx], 0x13, "RCX");
    expect(r[l.dx], 0x14, "RDX");
    expect(r[l.si], 0x15, "RSI");
    expect(r[l.di], 0x1234, "RDI");
    expect(r[l.bp], 0x16, "RBP");
    /* The call pushes, STC sets a flag. */
    expect(r[l.sp] - record(7)[l.sp], 8, "RSP");
    expect(record(10)[l.flags] & 1, 0, "carry before STC");
    expect(record(11)[l.flags] & 1, 1, "carry behind STC");
}

/* A counter that does not count is written and read. */
CODE("pebs_register:\n"
     "    mov $0x4c3, %ecx\n"
     "    xor %eax, %eax\n"
     "    xor %edx, %edx\n"
     "pebs_wrmsr:\n"
     "    wrmsr\n"
     "pebs_rdmsr:\n"
     "    rdmsr\n"
     "pebs_register_end:\n"
     "    ret\n");
code_fn pebs_register;
LABEL(pebs_wrmsr);
LABEL(pebs_rdmsr);
LABEL(pebs_register_end);

/* Registers of the PMU are accessed in the midst of an instruction. */
TEST(pebs, accesses)
{
    const char *const insns[] = { pebs_wrmsr, pebs_rdmsr, pebs_register_end };
    const struct layout l = layout();
    unsigned i = 0;

    prepare_area(MAX_RECORDS + 1);
    sample(0, EV_INSTRUCTIONS | SEL_OS);
    run_kernel(GP(0), pebs_register, 0);
    end_sampling();
    while (i < nr_records() && record(i)[l.ip] != (uint64_t)pebs_wrmsr) {
        i++;
    }
    for (unsigned n = 1; n < ARRAY_SIZE(insns); n++) {
        expect(record(i + n)[l.ip], (uint64_t)insns[n],
               "IP behind instruction %u", n);
        if (l.at) {
            expect(record(i + n)[l.at], (uint64_t)insns[n - 1],
                   "EventingIP of instruction %u", n);
        }
    }
}

CODE("pebs_more_registers:\n"
     "    .irp n, 8, 9, 10, 11, 12, 13, 14, 15\n"
     "    mov $(0x20 + \\n), %r\\n\n"
     "    .endr\n"
     "    nop\n"
     "    ret\n");
code_fn pebs_more_registers;

TEST(pebs, more_registers)
{
    const struct layout l = layout();
    const uint64_t *r = record(8);      /* after the NOP */

    sample_user(pebs_more_registers, 0);
    for (unsigned i = 8; i < 16; i++) {
        expect(r[l.r8 + i - 8], 0x20 + i, "R%u", i);
    }
}

CODE("pebs_xmms:\n"
     "    .irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"
     "    movdqu 16 * \\n(%rdi), %xmm\\n\n"
     "    .endr\n"
     "    nop\n"
     "    ret\n");
code_fn pebs_xmms;

/* The basic group has 4 words, and each XMM has 2. */
TEST(pebs, xmms)
{
    const unsigned size = 4 + 16 * 2;
    const uint64_t *r = buffer() + 16 * size;   /* after the NOP */
    uint64_t *loaded = (uint64_t *)spare[8];

    if (format() < 4) {
        skip();
    }
    prepare_area(MAX_RECORDS + 1);
    sample(0, EV_INSTRUCTIONS | SEL_USR);
    wrmsr(MSR_PEBS_DATA_CFG, DATA_CFG_XMMS);
    for (unsigned i = 0; i < 16 * 2; i++) {
        loaded[i] = i + 1;
    }
    run_user(GP(0), pebs_xmms, (uint64_t)loaded);
    end_sampling();
    expect(r[0], size * 8ull << 48 | DATA_CFG_XMMS, "format and size");
    for (unsigned i = 0; i < 16 * 2; i++) {
        expect(r[4 + i], i + 1, "XMM%u, half %u", i / 2, i % 2);
    }
}

/* The basic group has 4 words, and each branch 3; the newest is the first. */
#define BRANCHES 2
#define BRANCHES_SIZE (4 + BRANCHES * 3)

/* Returns: the branches in the record of the CALL, which follows the JMP */
static const uint64_t *sample_branches(bool on)
{
    const uint64_t *r = buffer() + 7 * BRANCHES_SIZE;

    prepare_area(MAX_RECORDS + 1);
    sample(0, EV_INSTRUCTIONS | SEL_USR);
    wrmsr(MSR_PEBS_DATA_CFG, DATA_CFG_LBRS(BRANCHES));
    lbr_choose(0);
    wrmsr(lbr_switch, on ? lbr_on : 0);
    run_user(GP(0), pebs_code, 0);
    wrmsr(lbr_switch, 0);
    end_sampling();
    expect(r[0], BRANCHES_SIZE * 8ull << 48 | DATA_CFG_LBRS(BRANCHES),
           "format and size");
    return r + 4;
}

TEST(pebs, branches)
{
    const uint64_t *b;

    if (format() < 4) {
        skip();
    }
    trace_code(pebs_code, 0);
    b = sample_branches(true);
    expect(b[0], step_trace[6], "the CALL");
    expect(b[1], step_trace[7], "where it goes");
    expect(b[2] & INFO_CYCLES, 1, "cycles of the CALL");
    expect(b[3], step_trace[5], "the JMP");
    expect(b[4], step_trace[6], "where it goes");
}

/* PEBS records have no branches while branch recording is off. */
TEST(pebs, branches_off)
{
    const uint64_t *b;

    if (format() < 4) {
        skip();
    }
    sample_branches(true);
    b = sample_branches(false);
    for (unsigned i = 0; i < BRANCHES * 3; i++) {
        expect(b[i], 0, "word %u", i);
    }
}

/* The kernel can be sampled, too. */
TEST(pebs, kernel)
{
    const unsigned steps = count_kernel_steps(pebs_code, 0);

    prepare_area(MAX_RECORDS + 1);
    sample(0, EV_INSTRUCTIONS | SEL_OS);
    run_kernel(GP(0), pebs_code, 0);
    end_sampling();
    expect(nr_records(), steps + RUN_KERNEL_OVERHEAD, "records");
}

/* Loads and stores */
CODE("pebs_access:\n"
     "    mov (%rdi), %rax\n"
     "    nop\n"
     "    add 8(%rdi), %rax\n"
     "    mov %rax, 16(%rdi)\n"
     "    incl 24(%rdi)\n"
     "    ret\n");
code_fn pebs_access;

static void sample_accesses_of(code_fn *fn, uint64_t event, bool latency)
{
    prepare_area(MAX_RECORDS + 1);
    sample(0, event | SEL_USR);
    if (latency) {
        sample_latency(0);
    }
    run_user(GP(0), fn, (uint64_t)spare[8]);
    end_sampling();
}

static void sample_accesses(uint64_t event, bool latency)
{
    sample_accesses_of(pebs_access, event, latency);
}

static void expect_access(unsigned i, unsigned offset, uint64_t latency)
{
    const struct layout l = layout();

    expect(record(i)[l.address], (uint64_t)spare[8] + offset,
           "record %u: address", i);
    expect(record(i)[l.source], SOURCE_L1, "record %u: source", i);
    expect(record(i)[l.latency], latency, "record %u: latency", i);
}

TEST(pebs, stores)
{
    sample_accesses(option("stores", EV_STORES), false);
    expect_access(0, 16, 0);
    expect_access(1, 24, 0);
    expect(rdmsr(MSR_GLOBAL_STATUS), 0, "the status");
}

/* An instruction that stores three bytes, and then one byte */
#define REPEATED(insn)      \
    "    mov $3, %ecx\n"    \
    "    mov $1, %edx\n"    \
    "1:  rep " insn "\n"    \
    "    xchg %edx, %ecx\n" \
    "    jecxz 2f\n"        \
    "    jmp 1b\n"          \
    "2:  ret\n"

CODE("pebs_string:\n"
     REPEATED("stosb"));
code_fn pebs_string;

/* The same with an instruction that also loads */
CODE("pebs_string_move:\n"
     "    mov %rdi, %rsi\n"
     "    add $64, %rdi\n"
     REPEATED("movsb"));
code_fn pebs_string_move;

/* A repeated access is one instruction, with the address of its last turn. */
static void check_last_turns(code_fn *fn)
{
    sample_accesses_of(fn, option("stores", EV_STORES), false);
    expect(nr_records(), 2, "records");
    expect_access(0, 2, 0);
    expect_access(1, 3, 0);
}

TEST(pebs, string_stores)
{
    check_last_turns(pebs_string);
}

TEST(pebs, string_moves)
{
    check_last_turns(pebs_string_move);
}

/* Some models have an event for samples of stores. */
TEST(pebs, store_samples)
{
    if (!option("store_sample", 0)) {
        skip();
    }
    sample_accesses(EV_STORE_SAMPLE, false);
    expect_access(0, 16, 0);
    expect_access(1, 24, 0);
}

TEST(pebs, loads)
{
    if (option("core", 0)) {
        skip();
    }
    for (unsigned asked = 0; asked < 2; asked++) {
        uint64_t latency = asked || pmu_version() >= 5 ? LATENCY : 0;

        /* The record also has the access latency. */
        latency |= option("both_latencies", 0) ? latency << 32 : 0;
        wrmsr(MSR_PEBS_LD_LAT, LATENCY - 1);
        sample_accesses(EV_LOAD_LATENCY, asked);
        expect_access(0, 0, latency);
        expect_access(1, 8, latency);
        expect_access(2, 24, latency);
    }
}

/* A load misses, and the next one, of the same line, does not. */
CODE("pebs_twice:\n"
     "    mov (%rdi), %rax\n"
     "    mov (%rdi), %rdx\n"
     "    ret\n");
code_fn pebs_twice;

/* It is the first or the second load that is sampled. */
static void sample_twice(unsigned which)
{
    const struct layout l = layout();

    asm volatile("wbinvd");
    prepare_area(MAX_RECORDS + 1);
    sample(0, EV_LOADS | SEL_USR);
    area()[DS_RESET] = -MAX_RECORDS;
    wrmsr(MSR_PERFCTR(0), -which);
    run_user(GP(0), pebs_twice, (uint64_t)spare[8]);
    end_sampling();
    expect(nr_records(), 1, "records of load %u", which);
    expect(record(0)[l.address], (uint64_t)spare[8], "load %u: address", which);
    expect(record(0)[l.source] == SOURCE_L1, which == 2, "load %u: whether "
           "the first level had its data", which);
}

TEST(pebs, source)
{
    if (!option("core", 0)) {
        skip();
    }
    sample_twice(1);
    sample_twice(2);
}

/* Records of other events have no data address. */
TEST(pebs, no_access)
{
    const struct layout l = layout();

    sample_accesses(EV_INSTRUCTIONS, false);
    expect(nr_records(), 7, "records");
    expect(record(0)[l.address], 0, "the address");
    expect(record(0)[l.source], 0, "the source");
}

/* Whether the buffer is still unchanged */
static bool is_untouched(void)
{
    for (unsigned i = 0; i < MAX_RECORDS * layout().size; i++) {
        if (((uint64_t *)spare[2])[i] != 0x5555555555555555) {
            return false;
        }
    }
    return true;
}

/* A page fault of PEBS loses records, and is not reported. */
static void lose_records(const char *what, unsigned page, uint64_t flags,
                         bool goes_on)
{
    uint64_t cr2 = read_cr2(), index;

    prepare_area(MAX_RECORDS + 1);
    sample(0, EV_INSTRUCTIONS | SEL_USR);
    index = area()[DS_INDEX];
    map(page, spare[page - DS_PAGE], flags);
    run_user(GP(0), pebs_code, 0);
    map(page, spare[page - DS_PAGE], PTE_P | PTE_W);
    end_sampling();
    expect(area()[DS_INDEX], index, "%s: the index", what);
    expect(is_untouched(), 1, "%s: the buffer", what);
    expect(read_cr2(), cr2, "%s: CR2", what);
    expect(rdmsr(MSR_GLOBAL_STATUS), 0, "%s: the status", what);
    expect(rdmsr(MSR_PERFCTR(0)) == COUNTER_MASK, goes_on, "%s: the counter",
           what);
}

TEST(pebs, page_faults)
{
    lose_records("no buffer", BUFFER_PAGE, 0, true);
    lose_records("read-only buffer", BUFFER_PAGE, PTE_P, true);
    lose_records("no area", DS_PAGE, 0, false);
    lose_records("read-only area", DS_PAGE, PTE_P, true);
}

/* A record across pages is written completely or not at all. */
TEST(pebs, half_a_page)
{
    const uint64_t *start = (uint64_t *)(spare[3] - 64);

    prepare_area(MAX_RECORDS + 1);
    area()[DS_INDEX] = (uint64_t)WINDOW(BUFFER_PAGE + 1) - 64;
    sample(0, EV_INSTRUCTIONS | SEL_USR);
    map(BUFFER_PAGE + 1, NULL, 0);
    run_user(GP(0), pebs_code, 0);
    expect(is_untouched(), 1, "the buffer without its second page");
    map(BUFFER_PAGE + 1, spare[3], PTE_P | PTE_W);
    run_user(GP(0), pebs_code, 0);
    end_sampling();
    expect(start[layout().ip], (uint64_t)pebs_code + 5, "IP");
    expect(start[layout().counters], GP(0), "counters");
}

/* The threshold's interrupt comes right after the recorded instruction. */
TEST(pebs, threshold)
{
    const unsigned steps = trace_code(pebs_code, 0);

    prepare_area(3);
    sample_with(VEC_PMI);
    sample(0, EV_INSTRUCTIONS | SEL_USR);
    run_user(GP(0), pebs_code, 0);
    end_sampling();
    expect(nr_records(), steps + 1, "records");
    /* At the INT, interrupts are disabled. */
    expect(sample_count, steps - 2, "interrupts");
    for (unsigned i = 0; i < sample_count; i++) {
        expect(samples[i].rip, step_trace[i + 2], "interrupt %u", i);
        expect(samples[i].status, STATUS_OVF_BUF, "interrupt %u: status", i);
    }
}

/* The area alone, without an enabled counter, has no effect. */
TEST(pebs, without_enable)
{
    prepare_area(1);
    sample(0, EV_INSTRUCTIONS | SEL_USR);
    wrmsr(MSR_PEBS_ENABLE, 0);
    run_user(GP(0), pebs_code, 0);
    end_sampling();
    expect(nr_records(), 0, "records");
    expect(is_untouched(), 1, "the buffer");
    expect(rdmsr(MSR_GLOBAL_STATUS), GP(0), "the status");
    expect(rdmsr(MSR_PERFCTR(0)) < COUNTER_MASK, 1, "the counter");
}

/* An SMI to itself in each turn, and code that follows it */
CODE("pebs_smis:\n"
     "    mov $0xfee00000, %eax\n"
     "1:  movl $0x44200, 0x300(%rax)\n"
     "pebs_behind_smi:\n"
     "    nop\n"
     "    nop\n"
     "    dec %rdi\n"
     "    jnz 1b\n"
     "    ret\n"
     "    .code16\n"
     "pebs_smm:\n"
     "    .rept 15\n"
     "    nop\n"
     "    .endr\n"
     "    rsm\n"
     "pebs_smm_end:\n"
     "    .code64\n");
code_fn pebs_smis;
LABEL(pebs_behind_smi);
LABEL(pebs_smm);
LABEL(pebs_smm_end);

#define SMIS        20
#define SMI_PERIOD  7

/* An overflow in SMM is recorded at the first event after SMM. */
TEST(pebs, smm)
{
    const struct layout l = layout();
    unsigned behind = 0;

    memcpy((void *)SMI_ENTRY, pebs_smm, pebs_smm_end - pebs_smm);
    prepare_area(MAX_RECORDS + 1);
    sample(0, EV_INSTRUCTIONS | SEL_OS);
    area()[DS_RESET] = -SMI_PERIOD;
    wrmsr(MSR_PERFCTR(0), -SMI_PERIOD & COUNTER_MASK);
    run_kernel(GP(0), pebs_smis, SMIS);
    end_sampling();
    for (unsigned i = 0; i < nr_records(); i++) {
        behind += record(i)[l.ip] == (uint64_t)pebs_behind_smi + 1;
        expect(record(i)[l.ip] < KERNEL_BASE, 0, "record %u: in SMM", i);
    }
    expect(behind, SMIS, "records behind SMM");
}

/*
 * A load in SMM makes the counter overflow.  Before another load, which would
 * be recorded, 0 is written to a register.
 */
CODE("pebs_left:\n"
     "    mov $0xfee00000, %eax\n"
     "    mov %edi, %ecx\n"
     "    xor %edx, %edx\n"
     "    movl $0x44200, 0x300(%rax)\n"
     "    nop\n"
     "    xor %eax, %eax\n"
     "    wrmsr\n"
     "    ret\n"
     "    .code16\n"
     "pebs_smm_load:\n"
     "    mov %cs:0, %bx\n"
     "    rsm\n"
     "pebs_smm_load_end:\n"
     "    .code64\n");
code_fn pebs_left;
LABEL(pebs_smm_load);
LABEL(pebs_smm_load_end);

static uint64_t count_over_smis(void)
{
    memcpy((void *)SMI_ENTRY, pebs_smm, pebs_smm_end - pebs_smm);
    prepare_area(MAX_RECORDS + 1);
    sample(0, EV_INSTRUCTIONS | SEL_OS);
    wrmsr(MSR_PERFCTR(0), 0);
    run_kernel(GP(0), pebs_smis, SMIS);
    end_sampling();
    return rdmsr(MSR_PERFCTR(0));
}

/* The overflow in SMM has no effect when the counter is used again. */
TEST(pebs, smm_is_over)
{
    const uint32_t left_by[] = { MSR_PEBS_ENABLE, MSR_PERFCTR(0) };
    const uint64_t count = count_over_smis();

    for (unsigned i = 0; i < ARRAY_SIZE(left_by); i++) {
        memcpy((void *)SMI_ENTRY, pebs_smm_load,
               pebs_smm_load_end - pebs_smm_load);
        prepare_area(MAX_RECORDS + 1);
        sample(0, option("loads", EV_LOADS) | SEL_OS);
        run_kernel(GP(0), pebs_left, left_by[i]);
        expect(nr_records() > 0, false, "register %x: records", left_by[i]);
        run_kernel(GP(0), pebs_smis, SMIS);
        expect(rdmsr(MSR_PERFCTR(0)) >= SMIS, true, "register %x: loads in SMM",
               left_by[i]);
        expect(count_over_smis(), count, "register %x: count", left_by[i]);
    }
}

/*
 * The area, mapped by a page table entry in a device register, the comparator
 * of the HPET's first timer.  The entry is not marked as accessed, and is in no
 * TLB.
 */
#define HPET            0xfed00000ull
#define HPET_VENDOR     0x8086
#define HPET_COMPARATOR 0x108
#define DEVICE_REGION   (WINDOW_BASE + 0x200000)
#define DEVICE_AREA     (DEVICE_REGION + HPET_COMPARATOR / 8 * PAGE_SIZE)

static uint64_t *entry_of_region(void)
{
    uint64_t *tables = (uint64_t *)(read_cr3() & -PAGE_SIZE);

    tables = (uint64_t *)(*tables & -PAGE_SIZE);
    tables = (uint64_t *)(tables[DEVICE_REGION >> 30] & -PAGE_SIZE);
    return &tables[DEVICE_REGION >> 21 & 511];
}

static void set_entry_of_region(uint64_t entry)
{
    *entry_of_region() = entry;
    asm volatile("mov %0, %%cr3" : : "r"(read_cr3()) : "memory");
}

CODE("pebs_spin:\n"
     "    mov %rdi, %rcx\n"
     "1:  dec %rcx\n"
     "    jnz 1b\n"
     "    ret\n");
code_fn pebs_spin;

#define SPINS           2000000
#define SPIN_PERIOD     100000

TEST(pebs, tables_in_a_device)
{
    volatile uint32_t *comparator = (uint32_t *)(HPET + HPET_COMPARATOR);
    const uint64_t entry = *entry_of_region();

    /* A QEMU that is built without default devices has no HPET. */
    if (*(volatile uint32_t *)HPET >> 16 != HPET_VENDOR) {
        skip();
    }
    prepare_area(MAX_RECORDS + 1);
    set_entry_of_region(HPET | PTE_RW);
    comparator[0] = (uint64_t)spare[0] | PTE_P | PTE_W;
    comparator[1] = 0;
    wrmsr(MSR_DS_AREA, DEVICE_AREA);
    sample(0, EV_CYCLES | SEL_OS);
    area()[DS_RESET] = -SPIN_PERIOD;
    wrmsr(MSR_PERFCTR(0), -SPIN_PERIOD & COUNTER_MASK);
    /* No executed access has used this entry before. */
    comparator[0] = (uint64_t)spare[0] | PTE_P | PTE_W;
    run_kernel(GP(0), pebs_spin, SPINS);
    end_sampling();
    set_entry_of_region(entry);
    expect(nr_records() > 0, 1, "%u records", nr_records());
}

/* Reload CS with another base, which is ignored in 64-bit mode. */
static void set_base_of_code(uint64_t base)
{
    gdt[KERNEL_CS / 8] = (gdt[KERNEL_CS / 8] & ~(0xffffffull << 16))
                         | base << 16;
    asm volatile("push %0\n"
                 "lea 1f(%%rip), %%rax\n"
                 "push %%rax\n"
                 "lretq\n"
                 "1:\n" : : "i"(KERNEL_CS) : "rax", "memory");
}

TEST(pebs, base_of_code)
{
    const struct layout l = layout();
    unsigned begins = 0;

    if (format() < 2) {
        skip();
    }
    prepare_area(MAX_RECORDS + 1);
    sample(0, EV_INSTRUCTIONS | SEL_OS);
    set_base_of_code(0x1000);
    run_kernel(GP(0), pebs_code, 0);
    set_base_of_code(0);
    end_sampling();
    for (unsigned i = 0; i < nr_records(); i++) {
        begins += record(i)[l.at] == (uint64_t)pebs_code;
    }
    expect(begins, 1, "records of the first instruction");
}

static uint64_t other_cpus[2];

static void set_registers(void)
{
    wrmsr(MSR_DS_AREA, (uint64_t)area());
    wrmsr(MSR_PEBS_ENABLE, GP(0));
}

static void read_registers(void)
{
    other_cpus[0] = rdmsr(MSR_DS_AREA);
    other_cpus[1] = rdmsr(MSR_PEBS_ENABLE);
}

/* Each start of another CPU begins with an INIT. */
TEST(pebs, init_signal)
{
    start_cpu(1, set_registers);
    spin_until(cpu_done(1));
    other_cpus[0] = other_cpus[1] = 1;
    start_cpu(1, read_registers);
    expect(spin_until(cpu_done(1)), true, "the other CPU");
    expect(other_cpus[0], 0, "IA32_DS_AREA");
    expect(other_cpus[1], 0, "IA32_PEBS_ENABLE");
}
