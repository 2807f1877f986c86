/*
 * Suite state: registers after a reset of the machine, and after migration
 *
 * This suite is run with the other suites, and by tests/guest/nested under KVM,
 * with our QEMU and with others.  Counters are stopped at the reset or
 * migration, so that all registers are known.  Linux guests test counting over
 * a migration.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

/* The reset control register of Intel's chipsets: reset everything. */
#define RESET_PORT          0xcf9
#define RESET_ALL           0x06

/* AMD's first four counters by their old numbers */
#define K7_EVTSEL(i)        (0xc0010000 + (i))
#define K7_CTR(i)           (0xc0010004 + (i))
#define K7_COUNTERS         4

#define FIRST_COUNTER_VALUE 0x123456789a

/* opt/vpmu/migration: the source's task, or ARRIVED on the destination */
enum { NOWHERE, USED, UNUSED, ARRIVED };

#define MAX_REGISTERS       64

/* The ROM copies no .bss: it survives a reset, as all memory does. */
static bool was_reset;
static uint64_t at_first[MAX_REGISTERS], filled[MAX_REGISTERS];

static uint32_t registers[MAX_REGISTERS];
static unsigned nr_registers;

static void add(uint32_t msr)
{
    registers[nr_registers++] = msr;
}

/* The event select of the AMD counters that stand in for fixed ones */
static uint32_t fixed_select(unsigned i)
{
    return MSR_FIXED_CTR(i) - 1;
}

static void list_registers(void)
{
    nr_registers = 0;
    for (unsigned i = 0; i < pmu_gp_counters(); i++) {
        add(MSR_EVTSEL(i));
        add(MSR_PMC(i));
    }
    for (unsigned i = 0; i < pmu_fixed_counters(); i++) {
        if (!pmu_is_intel()) {
            add(fixed_select(i));
        }
        add(MSR_FIXED_CTR(i));
    }
    for (unsigned i = 0; !pmu_is_intel() && i < K7_COUNTERS; i++) {
        add(K7_EVTSEL(i));
        add(K7_CTR(i));
    }
    if (pmu_is_intel()) {
        add(MSR_FIXED_CTR_CTRL);
    }
    add(MSR_GLOBAL_CONTROL);
    add(MSR_GLOBAL_STATUS);
}

static void read_registers(uint64_t *values)
{
    for (unsigned i = 0; i < nr_registers; i++) {
        values[i] = rdmsr(registers[i]);
    }
}

/* Set a bit of the status, which cannot be written, by an overflow. */
static void overflow(void)
{
    pmu_gp(0, EV_INSTRUCTIONS | SEL_ALL, COUNTER_MASK - 1000);
    wrmsr(MSR_GLOBAL_CONTROL, GP(0));
    expect(spin_until(rdmsr(MSR_GLOBAL_STATUS) & GP(0)), true, "overflow");
    wrmsr(MSR_GLOBAL_CONTROL, 0);
}

/* Give every register its own value, with no counter running. */
static void fill_registers(void)
{
    uint64_t value = FIRST_COUNTER_VALUE;

    pmu_reset();
    overflow();
    for (unsigned i = 0; i < pmu_gp_counters(); i++) {
        wrmsr(MSR_EVTSEL(i), EV_INSTRUCTIONS | SEL_USR | SEL_CMASK(i + 1));
        wrmsr(MSR_PMC(i), value++);
    }
    for (unsigned i = 0; i < pmu_fixed_counters(); i++) {
        if (!pmu_is_intel()) {
            wrmsr(fixed_select(i), EV_INSTRUCTIONS | SEL_OS
                                   | SEL_CMASK(i + 1));
        }
        wrmsr(MSR_FIXED_CTR(i), value++);
    }
    if (pmu_is_intel()) {
        wrmsr(MSR_FIXED_CTR_CTRL, FIXED_USR);
    }
    wrmsr(MSR_GLOBAL_CONTROL, GP(1) | GP(2));
    read_registers(filled);
    for (unsigned i = 0; i < nr_registers; i++) {
        expect(filled[i] != at_first[i], true, "0x%x has another value",
               registers[i]);
    }
}

/* Check that all registers have the same values as then. */
static void expect_registers(const uint64_t *then, const char *what)
{
    for (unsigned i = 0; i < nr_registers; i++) {
        uint64_t now = rdmsr(registers[i]);

        expect(now, then[i], "0x%x after %s", registers[i], what);
        print("~ %s %x %lx %lx\n", what, registers[i], filled[i], now);
    }
}

TEST(state, reset)
{
    list_registers();
    if (!was_reset) {
        read_registers(at_first);
        fill_registers();
        was_reset = true;
        outb(RESET_PORT, RESET_ALL);
        fail("the machine was not reset");
    }
    was_reset = false;
    expect_registers(at_first, "reset");
    for (unsigned i = 0; i < nr_registers; i++) {
        if (registers[i] != MSR_GLOBAL_CONTROL) {
            expect(at_first[i], 0, "0x%x at power-on", registers[i]);
        }
    }
}

/* Wait for migration. */
static void migrate(void)
{
    print("ready to leave\n");
    while (option("migration", NOWHERE) != ARRIVED) {
        pause();
    }
}

TEST(state, migration)
{
    if (option("migration", NOWHERE) != USED) {
        skip();
    }
    list_registers();
    read_registers(at_first);
    fill_registers();
    migrate();
    expect_registers(filled, "migration");
}

/* An unused PMU can migrate to a QEMU that does not know it. */
TEST(state, unused)
{
    if (option("migration", NOWHERE) != UNUSED) {
        skip();
    }
    list_registers();
    read_registers(at_first);
    migrate();
    expect_registers(at_first, "migration");
}
