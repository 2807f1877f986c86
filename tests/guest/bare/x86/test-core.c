/*
 * Suite core: what a modelled core misses, and the cycles that this costs
 *
 * The core is that of the preset "skylake": a first level of 64 sets with 8
 * lines of 64 bytes, and predictions by the last 7 outcomes.  Programs have a
 * core of their own, which remembers what they did last: each is executed
 * before it is counted, so that the result does not depend on other cases.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "lbr.h"

#define EV_L1D_MISSES      0x0151
#define EV_L1D_LOAD_MISSES 0x08d1
#define EV_L1D_LOAD_HITS   0x01d1
#define EV_LLC_REFS        0x4f2e
#define EV_LLC_MISSES      0x412e
#define EV_L1I_MISSES      0x0283
#define EV_BRANCH_MISSES   0x00c5

#define L1_CYCLES     40
#define BRANCH_CYCLES 16

/* Memory that nothing else uses, and lines of twice the first level there. */
#define AREA  "0x1000000"
#define LINES 1024

/* Executions before the one that is counted: predictions need some. */
#define WARMING 4

static void warm(code_fn *fn, uint64_t arg)
{
    for (unsigned i = 0; i < WARMING; i++) {
        run_user(0, fn, arg);
    }
}

/* Count two events in user mode. */
static void count_two(uint64_t first, uint64_t second, code_fn *fn,
                      uint64_t arg)
{
    warm(fn, arg);
    pmu_gp(0, first | SEL_USR, 0);
    pmu_gp(1, second | SEL_USR, 0);
    run_user(GP(0) | GP(1), fn, arg);
}

/*
 * Read, a few times, as many lines as the argument says.  The second read of a
 * line hits.  RET reads, too.
 */
#define TURNS 3
CODE("core_walk:\n"
     "    mov $3, %ecx\n"
     "1:  mov $" AREA ", %eax\n"
     "    mov %edi, %edx\n"
     "2:  mov (%rax), %rsi\n"
     "    mov 8(%rax), %rsi\n"
     "    add $64, %rax\n"
     "    dec %edx\n"
     "    jnz 2b\n"
     "    dec %ecx\n"
     "    jnz 1b\n"
     "    ret\n");
code_fn core_walk;

/* Half of the first level: nothing misses but for the last branch of loops. */
TEST(core, fits)
{
    count_two(EV_L1D_MISSES, EV_LLC_REFS, core_walk, 256);
    expect(rdmsr(MSR_PMC(0)), 0, "first level");
    expect(rdmsr(MSR_PMC(1)), 0, "references of the last level");
}

/* More lines than there is room: each is gone when it is read again. */
TEST(core, does_not_fit)
{
    const uint64_t misses = TURNS * LINES + 1;

    count_two(EV_L1D_MISSES, EV_L1D_LOAD_MISSES, core_walk, LINES);
    expect(rdmsr(MSR_PMC(0)), misses, "first level");
    expect(rdmsr(MSR_PMC(1)), misses, "reads that miss it");
    count_two(EV_LLC_REFS, EV_LLC_MISSES, core_walk, LINES);
    expect(rdmsr(MSR_PMC(0)), misses, "references of the last level");
    expect(rdmsr(MSR_PMC(1)), 0, "misses of the last level");
    count_two(EV_L1D_LOAD_HITS, EV_LOADS, core_walk, LINES);
    expect(rdmsr(MSR_PMC(0)), TURNS * LINES, "hits");
    expect(rdmsr(MSR_PMC(1)), 2 * TURNS * LINES + 1, "loads");
}

/* Lines of one set: as many as it has, and one more. */
CODE("core_set:\n"
     "    mov $100, %ecx\n"
     "1:  mov $" AREA ", %eax\n"
     "    mov %edi, %edx\n"
     "2:  mov (%rax), %rsi\n"
     "    add $4096, %rax\n"
     "    dec %edx\n"
     "    jnz 2b\n"
     "    dec %ecx\n"
     "    jnz 1b\n"
     "    ret\n");
code_fn core_set;

TEST(core, one_set)
{
    count_two(EV_L1D_MISSES, EV_LLC_MISSES, core_set, 8);
    expect(rdmsr(MSR_PMC(0)), 0, "8 lines");
    count_two(EV_L1D_MISSES, EV_LLC_MISSES, core_set, 9);
    expect(rdmsr(MSR_PMC(0)), 900, "9 lines");
    expect(rdmsr(MSR_PMC(1)), 0, "misses of the last level");
}

/*
 * Each access of these reaches into a line that is missing: it reads, writes,
 * or does both, at once or by an atomic instruction; a string reads and writes
 * other places.
 */
#define WALK(name, insn) \
    "core_" name ":\n    mov $" AREA " + 60, %eax\n    mov $1024, %edx\n" \
    "1:  " insn "\n    add $64, %rax\n    dec %edx\n    jnz 1b\n    ret\n"

CODE(WALK("across", "mov (%rax), %rsi")
     WALK("store", "mov %rsi, -60(%rax)")
     WALK("modify", "add %rsi, -60(%rax)")
     WALK("atomic", "lock add %rsi, -60(%rax)")
     WALK("push", "mov (%rsp), %rsi\n push -60(%rax)\n pop %rsi"));
code_fn core_across, core_store, core_modify, core_atomic, core_push;

static void expect_misses(const char *what, code_fn *fn, uint64_t all,
                          uint64_t reads)
{
    count_two(EV_L1D_MISSES, EV_L1D_LOAD_MISSES, fn, 0);
    expect(rdmsr(MSR_PMC(0)), all, "%s: misses", what);
    expect(rdmsr(MSR_PMC(1)), reads, "%s: misses of reads", what);
}

TEST(core, accesses)
{
    expect_misses("across lines", core_across, LINES + 1, LINES + 1);
    expect_misses("store", core_store, LINES + 1, 1);
    expect_misses("modify", core_modify, LINES + 1, LINES + 1);
    expect_misses("atomic", core_atomic, LINES + 1, LINES + 1);
    /* The stack is used again before its line is gone. */
    expect_misses("push", core_push, LINES, LINES);
}

/* One instruction that writes 64 KiB: more than a log takes, and misses. */
CODE("core_string:\n"
     "    mov $" AREA ", %edi\n"
     "    mov $8192, %ecx\n"
     "    rep stosq\n"
     "    ret\n");
code_fn core_string;

TEST(core, string)
{
    expect_misses("string", core_string, LINES + 1, 1);
}

/* Programs find caches empty, and the code after the instruction, too. */
CODE("core_wbinvd:\n"
     "    wbinvd\n"
     "    ret\n"
     "core_invd:\n"
     "    invd\n"
     "    ret\n"
     "core_wbnoinvd:\n"
     "    .byte 0xf3, 0x0f, 0x09\n"
     "    ret\n"
     "core_nop:\n"
     "    nop\n"
     "    nop\n"
     "    ret\n");
code_fn core_wbinvd, core_invd, core_wbnoinvd, core_nop;

static uint64_t count_fetches(code_fn *fn)
{
    for (unsigned i = 0; i < 2; i++) {
        pmu_gp(0, EV_L1I_MISSES | SEL_OS, 0);
        run_kernel(GP(0), fn, 0);
    }
    return rdmsr(MSR_PMC(0));
}

static void expect_flush(code_fn *fn)
{
    uint64_t wrong;

    count_two(EV_BRANCH_MISSES, EV_L1D_MISSES, core_walk, 256);
    wrong = rdmsr(MSR_PMC(0));
    expect(rdmsr(MSR_PMC(1)), 0, "misses before");
    run_kernel(0, fn, 0);
    pmu_gp(0, EV_BRANCH_MISSES | SEL_USR, 0);
    pmu_gp(1, EV_L1D_MISSES | SEL_USR, 0);
    run_user(GP(0) | GP(1), core_walk, 256);
    expect(rdmsr(MSR_PMC(0)), wrong, "wrong predictions");
    /* And the return address */
    expect(rdmsr(MSR_PMC(1)), 256 + 1, "misses after");
    expect(count_fetches(fn) > 0, true, "fetches after it that miss");
}

TEST(core, flush)
{
    expect_flush(core_wbinvd);
    expect_flush(core_invd);
    expect(count_fetches(core_nop), 0, "fetches that miss");
    expect(count_fetches(core_wbnoinvd), 0, "fetches after WBNOINVD that miss");
}

/* Lines that are flushed one by one stay, and that is no access either. */
CODE("core_clflush:\n"
     "    mov $" AREA ", %eax\n"
     "    mov $64, %edx\n"
     "1:  mov (%rax), %rsi\n"
     "    clflush (%rax)\n"
     "    add $64, %rax\n"
     "    dec %edx\n"
     "    jnz 1b\n"
     "    ret\n");
code_fn core_clflush;

TEST(core, flush_of_line)
{
    count_two(EV_L1D_MISSES, EV_L1D_LOAD_HITS, core_clflush, 0);
    expect(rdmsr(MSR_PMC(0)), 0, "misses");
    expect(rdmsr(MSR_PMC(1)), 64 + 1, "hits");
}

/* The last branch of a loop is wrong, and so is RET, which nothing called. */
CODE("core_loop:\n"
     "    mov $1000, %ecx\n"
     "1:  dec %ecx\n"
     "    jnz 1b\n"
     "    ret\n"
     "core_alternate:\n"
     "    mov $1000, %ecx\n"
     "1:  test $1, %cl\n"
     "    jz 2f\n"
     "    nop\n"
     "2:  dec %ecx\n"
     "    jnz 1b\n"
     "    ret\n"
     /* Where it goes changes each time. */
     "core_indirect:\n"
     "    mov $1000, %ecx\n"
     "    mov $2f, %eax\n"
     "    mov $3f, %edx\n"
     "1:  xchg %rax, %rdx\n"
     "    jmp *%rax\n"
     "2:  nop\n"
     "3:  dec %ecx\n"
     "    jnz 1b\n"
     "    ret\n"
     /* Calls within calls, as many as the argument says */
     "core_calls:\n"
     "    mov %edi, %ecx\n"
     "1:  dec %ecx\n"
     "    jz 2f\n"
     "    call 1b\n"
     "2:  ret\n");
code_fn core_loop, core_alternate, core_indirect, core_calls;

static void expect_mispredicted(const char *what, code_fn *fn, uint64_t arg,
                                uint64_t misses)
{
    count_two(EV_BRANCH_MISSES, EV_BRANCHES, fn, arg);
    expect(rdmsr(MSR_PMC(0)), misses, "%s", what);
}

TEST(core, branches)
{
    expect_mispredicted("loop", core_loop, 0, 2);
    expect_mispredicted("alternating", core_alternate, 0, 2);
    expect_mispredicted("indirect", core_indirect, 0, 1000 + 2);
}

/* 16 calls are remembered; of the DEC loop, the end is seen in the history. */
TEST(core, returns)
{
    uint64_t few, many;

    count_two(EV_BRANCH_MISSES, EV_BRANCHES, core_calls, 17);
    few = rdmsr(MSR_PMC(0));
    count_two(EV_BRANCH_MISSES, EV_BRANCHES, core_calls, 21);
    many = rdmsr(MSR_PMC(0));
    expect(many - few, 4, "calls that are not remembered");
}

/* Cycles: a weighted sum, with and without misses. */
TEST(core, cycles)
{
    uint64_t insns = TURNS * (5 * LINES + 4) + 2;

    warm(core_walk, LINES);
    pmu_fixed(0, FIXED_USR, 0);
    pmu_fixed(1, FIXED_USR, 0);
    pmu_gp(0, EV_BRANCH_MISSES | SEL_USR, 0);
    run_user(FIXED(0) | FIXED(1) | GP(0), core_walk, LINES);
    expect(rdmsr(MSR_FIXED_CTR(0)), insns + RUN_USER_OVERHEAD, "instructions");
    expect(rdmsr(MSR_FIXED_CTR(1)),
           insns + RUN_USER_OVERHEAD + (TURNS * LINES + 1) * L1_CYCLES
           + rdmsr(MSR_PMC(0)) * BRANCH_CYCLES, "cycles");
}

/*
 * Overflow: each sample is the instruction that crossed
 */

/* Where the first read of a line ends, which is the one that misses. */
#define AFTER_MISS ((uint64_t)core_walk + 5 + 5 + 2 + 3)

TEST(core, overflow_of_misses)
{
    static const unsigned periods[] = { 1, 2, 3, 7, 100, 1023 };
    const uint64_t misses = TURNS * LINES;

    for (unsigned i = 0; i < ARRAY_SIZE(periods); i++) {
        unsigned period = periods[i];

        warm(core_walk, LINES);
        pmu_gp(0, EV_L1D_MISSES | SEL_USR | SEL_INT, -(uint64_t)period);
        sample_with(VEC_PMI);
        sample_reload(0, period);
        run_user(GP(0), core_walk, LINES);
        /* RET misses as well, and that may be one more sample. */
        expect(sample_count, (misses + 1) / period, "period %u: samples",
               period);
        for (unsigned n = 0; n < misses / period && n < MAX_SAMPLES; n++) {
            expect(samples[n].rip, AFTER_MISS, "period %u, sample %u: RIP",
                   period, n);
            expect(samples[n].value, 0, "period %u, sample %u: counter",
                   period, n);
        }
    }
}

/* The innermost loop of core_walk(): its instructions, in bytes */
static const unsigned lengths[] = { 3, 4, 4, 2, 2 };
#define LOOP_BEGIN (AFTER_MISS - 3)

/* Where a program is after an instruction of the loop; the last one jumps */
static uint64_t after(unsigned place)
{
    uint64_t address = LOOP_BEGIN;

    for (unsigned i = 0; i <= place; i++) {
        address += lengths[i];
    }
    return place == ARRAY_SIZE(lengths) - 1 ? LOOP_BEGIN : address;
}

/*
 * A counter of cycles is set to -@period again after each overflow.  In the
 * loop, of which the first instruction misses, each sample tells where the
 * next one has to be.
 */
static void expect_cycle_samples(unsigned period)
{
    /* The first walk has some more cycles than that. */
    const unsigned last = 40000 / period < 20 ? 40000 / period : 20;
    unsigned place = 0;

    warm(core_walk, LINES);
    pmu_gp(0, EV_CYCLES | SEL_USR | SEL_INT, -(uint64_t)period);
    sample_with(VEC_PMI);
    sample_reload(0, period);
    run_user(GP(0), core_walk, LINES);
    expect(sample_count > last, 1, "period %u: samples", period);
    while (after(place) != samples[5].rip) {
        expect(++place < ARRAY_SIZE(lengths), 1, "period %u: sample 5, RIP %lx",
               period, samples[5].rip);
    }
    for (unsigned i = 6; i < last; i++) {
        uint64_t cycles = 0;

        do {
            place = (place + 1) % ARRAY_SIZE(lengths);
            cycles += 1 + (place ? 0 : L1_CYCLES);
        } while (cycles < period);
        expect(samples[i].rip, after(place), "period %u, sample %u: RIP",
               period, i);
        expect(samples[i].value, cycles - period,
               "period %u, sample %u: counter", period, i);
    }
}

TEST(core, overflow_of_cycles)
{
    static const unsigned periods[] = { 30, 43, 44, 45, 46, 1000, 3217 };

    for (unsigned i = 0; i < ARRAY_SIZE(periods); i++) {
        expect_cycle_samples(periods[i]);
    }
}

/*
 * Instructions that read descriptors: two loads each, which are hits.  The
 * period ends with the first load of the third one.
 */
CODE("core_descriptors:\n"
     "    mov %cs, %eax\n"
     ".rept 16\n"
     "    lar %eax, %edx\n"
     ".endr\n"
     "    ret\n");
code_fn core_descriptors;

TEST(core, overflow_of_descriptors)
{
    warm(core_descriptors, 0);
    pmu_gp(0, EV_L1D_LOAD_HITS | SEL_USR | SEL_INT, -5ull);
    sample_with(VEC_PMI);
    run_user(GP(0), core_descriptors, 0);
    expect(sample_count, 1, "samples");
    expect(samples[0].rip, (uint64_t)core_descriptors + 2 + 3 * 3, "RIP");
    expect(samples[0].value, 1, "counter");
}

/*
 * The delivery of an interrupt reads and writes memory, too.  If it is what
 * overflows, that comes before the handler's first instruction.
 */
CODE("core_int:\n"
     "    int $0x42\n"
     "    ret\n");
code_fn core_int;

static void do_nothing(struct regs *regs)
{
    (void)regs;
}

TEST(core, overflow_in_delivery)
{
    uint64_t loads;

    on_trap(VEC_IPI, do_nothing);
    run_kernel(0, core_int, 0);
    pmu_gp(0, EV_L1D_LOAD_HITS | SEL_OS, 0);
    run_kernel(GP(0), core_int, 0);
    loads = rdmsr(MSR_PMC(0));
    expect(loads > 5, true, "loads");
    for (unsigned period = 1; period <= loads; period++) {
        pmu_gp(0, EV_L1D_LOAD_HITS | SEL_OS | SEL_INT, -(uint64_t)period);
        sample_with(APIC_NMI);
        run_kernel(GP(0), core_int, 0);
        expect(sample_count, 1, "period %u: samples", period);
    }
}

static void end_interrupt(struct regs *regs)
{
    (void)regs;
    apic_eoi();
}

/* Code goes on while an interrupt is pending that it does not take. */
TEST(core, masked_interrupt)
{
    on_trap(VEC_IPI, end_interrupt);
    apic_write(APIC_ICR, APIC_SELF | VEC_IPI);
    while (!apic_requested(VEC_IPI)) {
        pause();
    }
    pmu_gp(0, EV_INSTRUCTIONS | SEL_OS, 0);
    run_kernel(GP(0), core_loop, 0);
    expect(rdmsr(MSR_PMC(0)), 2002 + RUN_KERNEL_OVERHEAD, "instructions");
    expect(apic_requested(VEC_IPI), true, "still pending");
    asm volatile("sti\nnop\ncli" : : : "memory");
    expect(apic_requested(VEC_IPI), false, "pending");
}

/*
 * Branches that are recorded, and what is missed between them.  The argument
 * decides about the only conditional one.
 */
CODE("core_records:\n"
     "    mov $" AREA ", %eax\n"
     "    jmp 1f\n"
     "    nop\n"
     "1:  mov (%rax), %rsi\n"
     "    jmp 2f\n"
     "    nop\n"
     "2:  mov (%rax), %rsi\n"
     "    jmp 3f\n"
     "    nop\n"
     "3:  mov 124(%rax), %rsi\n"
     "    mov 128(%rax), %rsi\n"
     "    jmp 4f\n"
     "    nop\n"
     "4:  test %edi, %edi\n"
     "    jnz 5f\n"
     "    nop\n"
     "5:  jmp 6f\n"
     "    nop\n"
     "6:  ret\n");
code_fn core_records;

/* The lines of the area are not in the first level when @fn begins. */
static void record(code_fn *fn, uint64_t before, uint64_t now)
{
    for (unsigned i = 0; i < WARMING; i++) {
        run_user(0, core_walk, LINES);
        run_user(0, fn, before);
    }
    run_user(0, core_walk, LINES);
    lbr_choose(NO_RING_0 | NO_FAR);
    wrmsr(lbr_switch, lbr_on);
    run_user(0, fn, now);
    wrmsr(lbr_switch, 0);
}

static void expect_record(unsigned age, uint64_t type, unsigned insns,
                          unsigned misses, bool wrong)
{
    expect(lbr_cycles(age), insns + misses * L1_CYCLES + wrong * BRANCH_CYCLES,
           "record %u: cycles", age);
    expect(lbr_info(age), lbr_info_of(type) | (wrong ? BIT(63) : 0),
           "record %u: INFO", age);
}

/* The first four, without the first one, before which there is the kernel */
static void expect_jumps(unsigned age)
{
    expect_record(age, TYPE_JUMP, 3, 1, false);
    expect_record(age + 1, TYPE_JUMP, 2, 0, false);
    expect_record(age + 2, TYPE_JUMP, 2, 1, false);
}

/* RET is wrong, as always here. */
TEST(core, records)
{
    record(core_records, 1, 1);
    expect_record(0, TYPE_RETURN, 1, 0, true);
    expect_record(1, TYPE_JUMP, 1, 0, false);
    expect_record(2, TYPE_COND, 2, 0, false);
    expect_jumps(3);
    record(core_records, 0, 1);
    expect_record(1, TYPE_JUMP, 1, 0, false);
    expect_record(2, TYPE_COND, 2, 0, true);
    expect_jumps(3);
}

/* A branch that is not taken has no record: the next one has its cycles. */
TEST(core, records_of_not_taken)
{
    record(core_records, 0, 0);
    expect(lbr_cycles(1), 4, "predicted: cycles");
    expect_jumps(2);
    record(core_records, 1, 0);
    expect(lbr_cycles(1), 4 + BRANCH_CYCLES, "not predicted: cycles");
    expect(lbr_info(1), lbr_info_of(TYPE_JUMP), "not predicted: INFO");
    expect_jumps(2);
}

/* More accesses than a log has room for, and 256 misses, before a branch */
CODE("core_long:\n"
     "    jmp 1f\n"
     "    nop\n"
     "1:  mov $" AREA ", %esi\n"
     "    mov $" AREA " + 65536, %edi\n"
     "    mov $1024, %ecx\n"
     "    rep movsq\n"
     "    ret\n");
code_fn core_long;

TEST(core, records_of_long)
{
    record(core_long, 0, 0);
    expect_record(0, TYPE_RETURN, 5, 256, true);
}

/* The architectural events are announced. */
TEST(core, announced)
{
    expect(cpuid(0xa, 0).b & 0x7f, 0, "events that are not available");
}
