/*
 * Suite msr: registers, read and written by the processor itself
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

TEST(msr, cpuid)
{
    struct cpuid leaf = cpuid(0xa, 0);

    expect(leaf.a & 0xff, 2, "version");
    expect(leaf.a >> 8 & 0xff, 4, "general counters");
    expect(leaf.a >> 16 & 0xff, 48, "their width");
    expect(leaf.a >> 24 >= 7, true, "events named by EBX");
    expect(leaf.b & 0x23, 0, "cycles, instructions, branches missing");
    expect(leaf.d & 0x1f, 3, "fixed counters");
    expect(leaf.d >> 5 & 0xff, 48, "their width");
    expect(cpuid(1, 0).c >> 15 & 1, 1, "PDCM");
    expect(rdmsr(MSR_PERF_CAP) & PERF_CAP_FULL_WIDTH, PERF_CAP_FULL_WIDTH,
           "full-width writes");
}

TEST(msr, read_back)
{
    static const uint64_t values[] = {
        0, 1, COUNTER_MASK, 0x123456789abc, 0xffff, 0x800000000000,
    };

    for (unsigned v = 0; v < ARRAY_SIZE(values); v++) {
        for (unsigned i = 0; i < 4; i++) {
            wrmsr(MSR_PMC(i), values[v]);
            expect(rdmsr(MSR_PMC(i)), values[v], "PMC%u", i);
            expect(rdmsr(MSR_PERFCTR(i)), values[v], "PERFCTR%u", i);
            expect(rdpmc(i), values[v], "RDPMC %u", i);
        }
        for (unsigned i = 0; i < 3; i++) {
            wrmsr(MSR_FIXED_CTR(i), values[v]);
            expect(rdmsr(MSR_FIXED_CTR(i)), values[v], "FIXED_CTR%u", i);
            expect(rdpmc(RDPMC_FIXED(i)), values[v], "RDPMC of fixed %u", i);
        }
    }
}

/* The old numbers take 32 bits and sign-extend these. */
TEST(msr, sign_extension)
{
    wrmsr(MSR_PERFCTR(0), 0x80000000);
    expect(rdmsr(MSR_PMC(0)), 0xffff80000000, "negative");
    wrmsr(MSR_PERFCTR(0), 0xffffffff7fffffff);
    expect(rdmsr(MSR_PMC(0)), 0x7fffffff, "positive");
}

TEST(msr, rdpmc_faults)
{
    const uint32_t bad[] = {
        4, 5, 8, 0xffff, 0x10000, 0x40000003, 0x4000ffff, 0x20000000,
        0x80000000, 0x80000001, 0xc0000000, 0xffffffff,
    };

    for (unsigned i = 0; i < 4; i++) {
        expect(rdpmc_fault(i), 0, "RDPMC %u", i);
    }
    for (unsigned i = 0; i < 3; i++) {
        expect(rdpmc_fault(RDPMC_FIXED(i)), 0, "RDPMC of fixed %u", i);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
        expect(rdpmc_fault(bad[i]), GP_VECTOR, "RDPMC 0x%x", bad[i]);
    }
}

TEST(msr, reserved_bits)
{
    const struct {
        uint32_t msr;
        uint64_t value;
    } bad[] = {
        { MSR_EVTSEL(0), BIT(32) },
        { MSR_EVTSEL(3), BIT(63) },
        { MSR_PMC(0), BIT(48) },
        { MSR_PMC(3), BIT(63) },
        { MSR_FIXED_CTR_CTRL, BIT(12) },
        { MSR_FIXED_CTR_CTRL, BIT(63) },
        { MSR_GLOBAL_CTRL, BIT(4) },
        { MSR_GLOBAL_CTRL, BIT(35) },
        { MSR_GLOBAL_CTRL, BIT(63) },
        { MSR_GLOBAL_STATUS, 0 },
        { MSR_GLOBAL_OVF_CTRL, BIT(4) },
        { MSR_GLOBAL_OVF_CTRL, BIT(35) },
        { MSR_PERF_CAP, 0 },
        { MSR_PMC(4), 0 },
        { MSR_PERFCTR(4), 0 },
        { MSR_EVTSEL(4), 0 },
    };
    const struct {
        uint32_t msr;
        uint64_t value;
    } good[] = {
        { MSR_EVTSEL(0), 0xffdfffff & ~SEL_EN },
        { MSR_EVTSEL(0), 0 },
        { MSR_PERFCTR(0), ~0ull },
        { MSR_FIXED_CTR_CTRL, 0xbbb },
        { MSR_FIXED_CTR_CTRL, 0 },
        { MSR_GLOBAL_CTRL, 0xf | 7ull << 32 },
        { MSR_GLOBAL_CTRL, 0 },
        { MSR_GLOBAL_OVF_CTRL, 0xf | 7ull << 32 | BIT(62) | BIT(63) },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
        expect(wrmsr_fault(bad[i].msr, bad[i].value), GP_VECTOR,
               "WRMSR 0x%x, 0x%lx", bad[i].msr, bad[i].value);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(good); i++) {
        expect(wrmsr_fault(good[i].msr, good[i].value), 0,
               "WRMSR 0x%x, 0x%lx", good[i].msr, good[i].value);
    }
    expect(rdmsr_fault(MSR_PMC(4)), GP_VECTOR, "RDMSR of counter 4");
    expect(rdmsr_fault(MSR_FIXED_CTR(3)), GP_VECTOR, "RDMSR of fixed 3");
    expect(rdmsr(MSR_GLOBAL_OVF_CTRL), 0, "GLOBAL_OVF_CTRL");
}

/* Accesses that fault change nothing, and do not retire. */
CODE("msr_faults:\n"
     "    mov $0x40000007, %ecx\n"
     "    rdpmc\n"
     "    nop\n"
     "    mov $0x38e, %ecx\n"
     "    wrmsr\n"
     "    nop\n"
     "    mov $0x4c8, %ecx\n"
     "    rdmsr\n"
     "    ret\n"
     "msr_skip:\n"
     "    addq $2, 8(%rsp)\n"
     "    add $8, %rsp\n"
     "    iretq\n");
code_fn msr_faults;
LABEL(msr_skip);

TEST(msr, faults_while_counting)
{
    set_gate(GP_VECTOR, msr_skip);
    expect_counts("faults", measure_kernel(msr_faults, 0), 0, 6 + 3 * 3);
}

/* Counters stay enabled themselves, so that GLOBAL_CTRL decides. */
TEST(msr, enables)
{
    pmu_gp(0, EV_INSTRUCTIONS | SEL_ALL, 0);
    expect(rdmsr(MSR_PMC(0)), 0, "GLOBAL_CTRL clear");
    wrmsr(MSR_EVTSEL(0), EV_INSTRUCTIONS | SEL_ALL);
    wrmsr(MSR_GLOBAL_CTRL, GP(0));
    expect(rdmsr(MSR_PMC(0)), 0, "EVTSEL0.EN clear");
    wrmsr(MSR_GLOBAL_CTRL, 0);
    wrmsr(MSR_EVTSEL(0), EV_INSTRUCTIONS | SEL_EN);
    wrmsr(MSR_GLOBAL_CTRL, GP(0));
    expect(rdmsr(MSR_PMC(0)), 0, "neither USR nor OS");
}
