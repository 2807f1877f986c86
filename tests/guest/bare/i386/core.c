/*
 * Guest of 32 bits: counts of programs whose length is known
 *
 * It is for 32-bit hosts, which have no other guests.  The same code counts on
 * Intel's and on AMD's PMU.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "layout.h"

#define USER (1 << 16)
#define KERNEL (1 << 17)
#define INTERRUPT (1 << 20)
#define ENABLE (1 << 22)

#define APIC_BASE_MSR 0x1b
#define APIC_ENABLED (1 << 11)
#define APIC 0xfee00000
#define APIC_EOI 0xb0
#define APIC_SPURIOUS 0xf0
#define APIC_LVT_PMI 0x340

/*
 * struct Pmu - differences between vendors
 * @control: the global control register; the status is the one before, and the
 *           register that clears the status is the one after it
 * @select, @counter: the registers of the first counter
 * @stride: from one counter's registers to the next counter's
 * @branches: the event of branches
 * @accesses: it has events of loads and of stores
 * @pebs: it has PEBS
 */
typedef struct Pmu {
    uint32_t control;
    uint32_t select, counter, stride;
    uint32_t branches;
    bool accesses;
    bool pebs;
} Pmu;

static const Pmu intel = { 0x38f, 0x186, 0x4c1, 1, 0x00c4, true, true };
static const Pmu amd = { 0xc0000301, 0xc0010200, 0xc0010201, 2, 0x00c2, false,
                         false };

#define COUNTER_MASK 0xffffffffffffull

/* Fields that Intel's PEBS reads, in words */
#define DS_AREA_MSR 0x600
#define PEBS_ENABLE_MSR 0x3f1
#define DS_INDEX 5
#define DS_MAXIMUM 6
#define DS_THRESHOLD 7
#define DS_RESET 8
#define RECORD_WORDS 25
#define RECORD_COUNTERS 18

/* Canonical, and above the range that such a CPU can address */
#define ABOVE 0x7fff00000000ull

#define INSTRUCTIONS 0x00c0
#define LOADS 0x81d0
#define STORES 0x82d0

typedef struct Gate {
    uint16_t low, selector, type, high;
} Gate;

extern const uint64_t gdt_in_rom[6];

void main(void);
void pmi(uint32_t address);
void run(uint32_t control, uint64_t mask, void (*fn)(void));
void run_user(uint32_t control, uint64_t mask, void (*fn)(void));
void on_ud(void), on_pmi(void), on_leave(void);
void nops(void), loop_of_100(void), string(void), undefined(void);
void accesses(void), user_nops(void);

uint8_t buffer[128];
uint32_t task[26];

/* volatile, as the PMU writes to them */
volatile uint64_t ds_area[16], records[RECORD_WORDS];

static const Pmu *pmu;
static uint64_t gdt[6];
static Gate idt[256];
static uint32_t interrupted;
static bool failed;

static uint64_t rdmsr(uint32_t number)
{
    uint64_t value;

    asm volatile("rdmsr" : "=A"(value) : "c"(number));
    return value;
}

static void wrmsr(uint32_t number, uint64_t value)
{
    asm volatile("wrmsr" : : "A"(value), "c"(number) : "memory");
}

static void outb(uint16_t port, uint8_t value)
{
    asm volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static void apic_write(uint32_t offset, uint32_t value)
{
    *(volatile uint32_t *)(APIC + offset) = value;
}

static void print(const char *text)
{
    while (*text) {
        outb(0x3f8, *text++);
    }
}

static void print_number(uint32_t number)
{
    if (number >= 10) {
        print_number(number / 10);
    }
    outb(0x3f8, '0' + number % 10);
}

/* Report a case; a failure shows the values. */
static void check(const char *name, uint32_t got, uint32_t want)
{
    failed |= got != want;
    print(got == want ? "ok " : "not ok ");
    print(name);
    if (got != want) {
        print(" # ");
        print_number(got);
        print(" but ");
        print_number(want);
    }
    print("\n");
}

static void set_gate(int vector, void (*handler)(void), int privilege)
{
    uint32_t address = (uint32_t)handler;

    idt[vector] = (Gate) {
        .low = address,
        .selector = KERNEL_CS,
        .type = 0x8e00 | privilege << 13,
        .high = address >> 16,
    };
}

/* Interrupts in user mode use the stack on which run_user() waits. */
static void set_up_task(void)
{
    uint32_t address = (uint32_t)task;

    for (int i = 0; i < 6; i++) {
        gdt[i] = gdt_in_rom[i];
    }
    gdt[TASK / 8] = (uint64_t)(address >> 24) << 56 | 0x89ull << 40
                    | (uint64_t)(address & 0xffffff) << 16 | (sizeof(task) - 1);
    task[2] = KERNEL_DS;
}

static void set_up_traps(void)
{
    struct {
        uint16_t limit;
        uint32_t base;
    } __attribute__((packed)) gdt_at = { sizeof(gdt) - 1, (uint32_t)gdt },
                              idt_at = { sizeof(idt) - 1, (uint32_t)idt };

    set_up_task();
    set_gate(VECTOR_UD, on_ud, 0);
    set_gate(VECTOR_PMI, on_pmi, 0);
    set_gate(VECTOR_LEAVE, on_leave, 3);
    asm volatile("lgdt %0; lidt %1; ltr %w2"
                 : : "m"(gdt_at), "m"(idt_at), "r"(TASK) : "memory");
    wrmsr(APIC_BASE_MSR, rdmsr(APIC_BASE_MSR) | APIC_ENABLED);
    apic_write(APIC_SPURIOUS, 0x1ff);
    asm volatile("sti");
}

static void set_up_pmu(void)
{
    uint32_t eax = 0, ebx, ecx, edx;

    asm volatile("cpuid" : "+a"(eax), "=b"(ebx), "=c"(ecx), "=d"(edx));
    pmu = ecx == 0x444d4163 ? &amd : &intel;
    /* Intel's register resets to a value that enables all counters. */
    wrmsr(pmu->control, 0);
}

static void start(unsigned counter, uint32_t event, uint64_t value)
{
    wrmsr(pmu->counter + counter * pmu->stride, value & COUNTER_MASK);
    wrmsr(pmu->select + counter * pmu->stride, event | ENABLE);
}

static uint64_t value_of(unsigned counter)
{
    return rdmsr(pmu->counter + counter * pmu->stride);
}

/* Count twice: a carry from the lower half must change nothing. */
static void count(const char *name, uint32_t event, void (*fn)(void),
                  uint32_t want)
{
    uint64_t before = 0xfffffff0;

    start(0, event | USER | KERNEL, 0);
    start(1, event | USER | KERNEL, before);
    run(pmu->control, 3, fn);
    check(name, value_of(0) == want ? value_of(1) - before : value_of(0), want);
}

static void test_counts(void)
{
    count("count/nops", INSTRUCTIONS, nops, OVERHEAD + NR_NOPS + 1);
    count("count/loop", INSTRUCTIONS, loop_of_100, OVERHEAD + 1 + 200 + 1);
    count("count/string", INSTRUCTIONS, string, OVERHEAD + 4);
    count("count/undefined", INSTRUCTIONS, undefined,
          OVERHEAD + OVERHEAD_OF_UD + 2);
    /* CALL, each JNZ and RET. */
    count("branch/loop", pmu->branches, loop_of_100, 1 + 100 + 1);
    if (pmu->accesses) {
        /* RET loads, CALL stores. */
        count("memory/loads", LOADS, accesses, 10 + 1);
        count("memory/stores", STORES, accesses, 7 + 1);
    }
}

static void test_modes(void)
{
    start(0, INSTRUCTIONS | USER, 0);
    start(1, INSTRUCTIONS | KERNEL, 0);
    start(2, INSTRUCTIONS | USER | KERNEL, 0);
    run_user(pmu->control, 7, user_nops);
    check("mode/user", value_of(0), OVERHEAD_OF_USER + NR_NOPS);
    check("mode/kernel", value_of(1), OVERHEAD_OF_KERNEL);
    check("mode/both", value_of(2),
          OVERHEAD_OF_USER + NR_NOPS + OVERHEAD_OF_KERNEL);
}

void pmi(uint32_t address)
{
    interrupted = address;
    wrmsr(pmu->control, 0);
    wrmsr(pmu->control + 1, rdmsr(pmu->control - 1));
    apic_write(APIC_EOI, 0);
}

/* Return where a counter interrupted that wraps after @period. */
static uint32_t interrupt_after(uint32_t period)
{
    interrupted = 0;
    apic_write(APIC_LVT_PMI, VECTOR_PMI);
    start(0, INSTRUCTIONS | KERNEL | INTERRUPT, -(uint64_t)period);
    run(pmu->control, 1, nops);
    return interrupted - (uint32_t)nops;
}

/* CALL is the first instruction of a period; NOPs have one byte. */
static void test_periods(void)
{
    uint32_t period = 1;

    while (period < NR_NOPS && interrupt_after(period) == period - 1) {
        period++;
    }
    check("overflow/periods", interrupt_after(period), period - 1);
}

/* A CPU without long mode uses 32 bits of any address. */
static void test_pebs_addresses(void)
{
    uint64_t buffer = ABOVE + (uint32_t)records;

    ds_area[DS_INDEX] = buffer;
    ds_area[DS_MAXIMUM] = buffer + sizeof(records);
    ds_area[DS_THRESHOLD] = buffer + sizeof(records) + 1;
    ds_area[DS_RESET] = -1000000;
    wrmsr(DS_AREA_MSR, ABOVE + (uint32_t)ds_area);
    wrmsr(PEBS_ENABLE_MSR, 1);
    start(0, INSTRUCTIONS | KERNEL, -3);
    run(pmu->control, 1, nops);
    wrmsr(PEBS_ENABLE_MSR, 0);
    check("pebs/index", ds_area[DS_INDEX] - buffer, sizeof(records));
    check("pebs/record", records[RECORD_COUNTERS], 1);
    check("pebs/address", records[1], (uint32_t)nops + 2);
}

void main(void)
{
    set_up_pmu();
    set_up_traps();
    test_counts();
    test_modes();
    test_periods();
    if (pmu->pebs) {
        test_pebs_addresses();
    }
    print("end\n");
    outb(0xf4, failed);
    for (;;) {
        asm volatile("hlt");
    }
}
