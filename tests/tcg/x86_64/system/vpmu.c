/*
 * Counters of the virtual PMU: Intel's architectural performance monitoring
 *
 * See the SDM, volume 3, chapter "Performance Monitoring".  The number of
 * events is known by construction, and counts have to be exact.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <stdbool.h>
#include <stdint.h>
#include <minilib.h>

#define MSR_PMC0            0x0c1
#define MSR_EVTSEL0         0x186
#define MSR_FIXED_CTR0      0x309
#define MSR_FIXED_CTR_CTRL  0x38d
#define MSR_GLOBAL_STATUS   0x38e
#define MSR_GLOBAL_CTRL     0x38f
#define MSR_GLOBAL_OVF_CTRL 0x390

#define EVENT_INSTRUCTIONS  0xc0
#define EVENT_BRANCHES      0xc4
#define EVTSEL_USR          (1u << 16)
#define EVTSEL_OS           (1u << 17)
#define EVTSEL_EN           (1u << 22)
#define FIXED_OS            1u
#define RDPMC_FIXED         (1u << 30)

static int failures;

static void expect(uint64_t seen, uint64_t wanted, const char *what)
{
    bool good = seen == wanted;

    ml_printf("%s: %s", good ? "ok" : "not ok", what);
    if (!good) {
        ml_printf(": %ld, not %ld", (long)seen, (long)wanted);
        failures++;
    }
    ml_printf("\n");
}

static void wrmsr(uint32_t msr, uint64_t value)
{
    asm volatile("wrmsr" : : "c"(msr), "a"((uint32_t)value),
                 "d"((uint32_t)(value >> 32)) : "memory");
}

static uint64_t rdmsr(uint32_t msr)
{
    uint32_t low, high;

    asm volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(msr));
    return (uint64_t)high << 32 | low;
}

static uint64_t rdpmc(uint32_t index)
{
    uint32_t low, high;

    asm volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index));
    return (uint64_t)high << 32 | low;
}

static uint32_t version_of_pmu(void)
{
    uint32_t eax = 10, ebx, ecx = 0, edx;

    asm volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
    return eax & 0xff;
}

/* Run both counters 0 for three instructions a turn, and some more. */
static void run(uint64_t turns)
{
    uint32_t all = 1, none = 0;

    asm volatile("wrmsr\n\t"
                 "1: nop\n\t"
                 "dec %[turns]\n\t"
                 "jnz 1b\n\t"
                 "mov %[none], %%eax\n\t"
                 "mov %[none], %%edx\n\t"
                 "wrmsr"
                 : [turns] "+r"(turns), "+a"(all)
                 : "c"(MSR_GLOBAL_CTRL), "d"(all), [none] "r"(none)
                 : "memory", "cc");
}

static void set(uint32_t event, uint64_t start)
{
    wrmsr(MSR_GLOBAL_CTRL, 0);
    wrmsr(MSR_EVTSEL0, event | EVTSEL_USR | EVTSEL_OS | EVTSEL_EN);
    wrmsr(MSR_FIXED_CTR_CTRL, FIXED_OS);
    wrmsr(MSR_PMC0, start);
    wrmsr(MSR_FIXED_CTR0, 0);
}

static uint64_t count(uint32_t event, uint64_t turns)
{
    set(event, 0);
    run(turns);
    return rdmsr(MSR_PMC0);
}

int main(void)
{
    uint64_t status;

    if (version_of_pmu() < 2) {
        ml_printf("not ok: no PMU of version 2\n");
        return 1;
    }

    expect(count(EVENT_INSTRUCTIONS, 3000) - count(EVENT_INSTRUCTIONS, 1000),
           3 * 2000, "instructions of 2000 turns");
    expect(rdpmc(0), rdmsr(MSR_PMC0), "RDPMC of counter 0");
    expect(rdpmc(RDPMC_FIXED), rdmsr(MSR_PMC0),
           "the fixed counter of instructions");
    expect(count(EVENT_BRANCHES, 3000), 3000, "branches of 3000 turns");

    /* The last branch wraps it around. */
    set(EVENT_BRANCHES, -1000);
    run(1000);
    status = rdmsr(MSR_GLOBAL_STATUS);
    expect(rdmsr(MSR_PMC0), 0, "a counter that has overflowed");
    expect(status & 1, 1, "its overflow in the status");
    wrmsr(MSR_GLOBAL_OVF_CTRL, status);
    expect(rdmsr(MSR_GLOBAL_STATUS), 0, "the status when it is cleared");

    set(EVENT_BRANCHES, -1001);
    run(1000);
    expect(rdmsr(MSR_GLOBAL_STATUS) & 1, 0, "no overflow one branch before");

    wrmsr(MSR_EVTSEL0, 0);
    return failures != 0;
}
