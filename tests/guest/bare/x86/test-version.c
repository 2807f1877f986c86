/*
 * Suite version: differences between versions of architectural perfmon
 *
 * `run` starts it once for each version and passes opt/vpmu/version, and
 * opt/vpmu/counters if the number of general counters is not four.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

#define ANY_DEPRECATED      BIT(15)

TEST(version, cpuid)
{
    unsigned version = option("version", 2);
    struct cpuid leaf = cpuid(0xa, 0);

    expect(leaf.a & 0xff, version, "version");
    expect(pmu_gp_counters(), option("counters", 4), "general counters");
    expect(pmu_fixed_counters(), version >= 2 ? 3 : 0, "fixed counters");
    expect(leaf.c, version >= 5 ? 7 : 0, "bit map of fixed counters");
    expect(!!(leaf.d & ANY_DEPRECATED), version >= 5, "ANY deprecated");
}

/*
 * The counter's own register starts and stops it, as in version 1, which has no
 * GLOBAL_CTRL.  In later versions, GLOBAL_CTRL enables the general counters
 * after a reset.
 */
TEST(version, own_switch)
{
    if (pmu_version() >= 2) {
        wrmsr(MSR_GLOBAL_CTRL, GP(0));
    }
    run_own_switch(EV_INSTRUCTIONS | SEL_ALL | SEL_EN, MSR_EVTSEL(0));
    expect(rdmsr(MSR_PMC(0)), 12, "instructions");
}

static volatile uint64_t pmi_rip; /* by the handler */

static void on_pmi(struct regs *regs)
{
    pmi_rip = regs->rip;
}

TEST(version, overflow)
{
    pmi_rip = 0;
    on_trap(NMI_VECTOR, on_pmi);
    apic_write(APIC_LVT_PC, APIC_NMI);
    wrmsr(MSR_PMC(0), -10ull & COUNTER_MASK);
    if (pmu_version() >= 2) {
        wrmsr(MSR_GLOBAL_CTRL, GP(0));
    }
    run_own_switch(EV_INSTRUCTIONS | SEL_ALL | SEL_INT | SEL_EN, MSR_EVTSEL(0));
    expect(pmi_rip, (uint64_t)run_own_switch_here, "RIP");
}

/* Registers introduced by a version fault in earlier versions. */
TEST(version, registers)
{
    const struct {
        uint32_t msr;
        unsigned since;
    } registers[] = {
        { MSR_FIXED_CTR(0), 2 },
        { MSR_FIXED_CTR_CTRL, 2 },
        { MSR_GLOBAL_STATUS, 2 },
        { MSR_GLOBAL_CTRL, 2 },
        { MSR_GLOBAL_OVF_CTRL, 2 },
        { MSR_STATUS_SET, 4 },
        { MSR_INUSE, 4 },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(registers); i++) {
        expect(rdmsr_fault(registers[i].msr),
               pmu_version() >= registers[i].since ? 0 : GP_VECTOR,
               "RDMSR 0x%x", registers[i].msr);
    }
    for (unsigned i = 0; i < pmu_gp_counters(); i++) {
        expect(rdmsr_fault(MSR_PMC(i)), 0, "counter %u", i);
        expect(rdmsr_fault(MSR_EVTSEL(i)), 0, "event select %u", i);
        expect(rdpmc_fault(i), 0, "RDPMC %u", i);
    }
    expect(rdpmc_fault(pmu_gp_counters()), GP_VECTOR, "RDPMC of one more");
    expect(rdpmc_fault(RDPMC_FIXED(0)), pmu_version() >= 2 ? 0 : GP_VECTOR,
           "RDPMC of fixed 0");
}

/* Counting for any thread of the core: from version 3 on, one thread here. */
TEST(version, any_thread)
{
    bool there = pmu_version() == 3 || pmu_version() == 4;

    expect(wrmsr_fault(MSR_EVTSEL(0), SEL_ANY), there ? 0 : GP_VECTOR,
           "EVTSEL0");
    if (pmu_version() >= 2) {
        expect(wrmsr_fault(MSR_FIXED_CTR_CTRL, FIXED_ANY),
               there ? 0 : GP_VECTOR, "FIXED_CTRL");
        wrmsr(MSR_GLOBAL_CTRL, GP(0));
    }
    if (there) {
        run_own_switch(EV_INSTRUCTIONS | SEL_ALL | SEL_EN | SEL_ANY,
                       MSR_EVTSEL(0));
        expect(rdmsr(MSR_PMC(0)), 12, "instructions");
    }
}

/* Software can set the same status as hardware. */
TEST(version, status_set)
{
    if (pmu_version() < 4) {
        skip();
    }
    wrmsr(MSR_STATUS_SET, GP(1) | FIXED(2));
    expect(rdmsr(MSR_GLOBAL_STATUS), GP(1) | FIXED(2), "status");
    wrmsr(MSR_GLOBAL_OVF_CTRL, GP(1));
    expect(rdmsr(MSR_GLOBAL_STATUS), FIXED(2), "status, one reset");

    /* A frozen PMU does not count, even with GLOBAL_CTRL set. */
    wrmsr(MSR_STATUS_SET, STATUS_CTR_FRZ);
    wrmsr(MSR_GLOBAL_CTRL, GP(0));
    run_own_switch(EV_INSTRUCTIONS | SEL_ALL | SEL_EN, MSR_EVTSEL(0));
    expect(rdmsr(MSR_PMC(0)), 0, "instructions while frozen");
    wrmsr(MSR_GLOBAL_OVF_CTRL, STATUS_CTR_FRZ);
    run_own_switch(EV_INSTRUCTIONS | SEL_ALL | SEL_EN, MSR_EVTSEL(0));
    expect(rdmsr(MSR_PMC(0)), 12, "instructions afterwards");
}

TEST(version, in_use)
{
    if (pmu_version() < 4) {
        skip();
    }
    expect(rdmsr(MSR_INUSE), 0, "nothing");
    wrmsr(MSR_EVTSEL(2), EV_INSTRUCTIONS | SEL_INT);
    wrmsr(MSR_FIXED_CTR_CTRL, FIXED_USR << 4);
    expect(rdmsr(MSR_INUSE), GP(2) | FIXED(1) | INUSE_PMI, "in use");
    wrmsr(MSR_EVTSEL(2), 0);
    expect(rdmsr(MSR_INUSE), FIXED(1), "in use later");
}

/* Resetting the status bit ends a freeze on PMI. */
CODE("version_nops:\n"
     "    .rept 50\n"
     "    nop\n"
     "    .endr\n"
     "    ret\n");
code_fn version_nops;

static void on_freezing_pmi(struct regs *regs)
{
    pmi_rip = regs->rip;
    samples[0].status = rdmsr(MSR_GLOBAL_STATUS);
    samples[0].value = rdmsr(MSR_PMC(1));
}

TEST(version, freeze)
{
    if (pmu_version() < 2) {
        skip();
    }
    on_trap(NMI_VECTOR, on_freezing_pmi);
    apic_write(APIC_LVT_PC, APIC_NMI);
    wrmsr(MSR_DEBUGCTL, DEBUGCTL_FREEZE_ON_PMI);
    pmu_gp(0, EV_INSTRUCTIONS | SEL_ALL | SEL_INT, -20ull);
    pmu_gp(1, EV_INSTRUCTIONS | SEL_ALL, 0);
    run_kernel(GP(0) | GP(1), version_nops, 0);
    expect(pmi_rip, (uint64_t)version_nops + 19, "RIP");
    expect(samples[0].value, 20, "counter in the handler");
    expect(samples[0].status, pmu_version() >= 4 ? GP(0) | STATUS_CTR_FRZ
                                                 : GP(0), "status");
    expect(rdmsr(MSR_PMC(1)), 20, "counter afterwards");
    wrmsr(MSR_DEBUGCTL, 0);
}
