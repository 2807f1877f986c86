/*
 * Suite nopmu: a CPU without a PMU is as in stock QEMU, except that RDPMC
 * raises #GP
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

TEST(nopmu, cpuid)
{
    struct cpuid leaf = cpuid(0xa, 0);

    if (cpuid(0, 0).a >= 0xa) {
        expect(leaf.a | leaf.b | leaf.c | leaf.d, 0, "leaf 0xA");
    }
    expect(cpuid(1, 0).c >> 15 & 1, 0, "PDCM");
}

/* A leaf that describes branch records has no values of another leaf. */
TEST(nopmu, cpuid_of_records)
{
    struct cpuid name = cpuid(0, 0), leaf;

    if (name.a < 0x1c) {
        skip();
    }
    leaf = cpuid(0x1c, 0);
    expect(leaf.a, 0, "EAX");
    expect(leaf.b, 0, "EBX");
    expect(leaf.c, 0, "ECX");
    expect(leaf.d, 0, "EDX");
}

TEST(nopmu, rdpmc)
{
    expect(rdpmc_fault(0), GP_VECTOR, "RDPMC 0");
    expect(rdpmc_fault(RDPMC_FIXED(0)), GP_VECTOR, "RDPMC of fixed 0");
    write_cr4(read_cr4() | CR4_PCE);
    expect(rdpmc_fault(0), GP_VECTOR, "RDPMC 0 with CR4.PCE");
}

/* AMD's registers, and the bits of CPUID that announce them */
static const struct {
    uint32_t leaf;
    uint32_t bit;
    uint32_t msr;
    unsigned count;
} promises[] = {
    { 0x80000001, 23, 0xc0010200, 12 },
    { 0x80000022, 0, 0xc0000300, 2 },
};

static bool is_promised(unsigned i)
{
    struct cpuid leaf = cpuid(promises[i].leaf, 0);
    uint32_t flags = promises[i].leaf == 0x80000001 ? leaf.c : leaf.a;

    return cpuid(0x80000000, 0).a >= promises[i].leaf
           && (flags >> promises[i].bit & 1);
}

/* Registers that CPUID announces do not fault. */
TEST(nopmu, promises)
{
    for (unsigned i = 0; i < ARRAY_SIZE(promises); i++) {
        bool promised = is_promised(i);

        print("~ promises %x %u\n", promises[i].msr, promised);
        for (unsigned n = 0; promised && n < promises[i].count; n++) {
            expect(rdmsr_fault(promises[i].msr + n), 0, "RDMSR 0x%x",
                   promises[i].msr + n);
        }
    }
}

/* QEMU drops writes to registers that it does not know. */
TEST(nopmu, registers)
{
    const uint32_t registers[] = {
        MSR_PERFCTR(0), MSR_PMC(0), MSR_EVTSEL(0), MSR_FIXED_CTR(0),
        MSR_FIXED_CTR_CTRL, MSR_GLOBAL_CTRL, MSR_GLOBAL_STATUS,
        MSR_GLOBAL_OVF_CTRL, MSR_PERF_CAP, MSR_DEBUGCTL,
        0xc0010000, 0xc0010004, 0xc0010200, 0xc0010201,
    };

    for (unsigned i = 0; i < ARRAY_SIZE(registers); i++) {
        expect(wrmsr_fault(registers[i], 1), 0, "WRMSR 0x%x", registers[i]);
        expect(rdmsr_fault(registers[i]), 0, "RDMSR 0x%x", registers[i]);
        expect(rdmsr(registers[i]), 0, "value of 0x%x", registers[i]);
    }
}
