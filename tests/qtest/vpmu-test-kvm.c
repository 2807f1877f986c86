/*
 * QTest of the virtual PMU: registers that KVM keeps
 *
 * No guest code runs, so nothing is counted; but reads and writes access the
 * registers in KVM.  It needs a host whose KVM has an AMD CPU's PMU for guests:
 * tests/guest/nested makes one, and sets VPMU_TEST_KVM.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "vpmu-test-x86.h"

#define KVM_MACHINE "-accel kvm -machine q35 -S "
#define KVM_ARGS KVM_MACHINE "-cpu host,pmu=on"

#define NR_LEGACY 4
#define NR_CORE   6
#define GLOBAL_ALL (BIT64(NR_CORE) - 1)

static uint64_t selector_value(unsigned i)
{
    return 0xc0 | SEL_USR | SEL_CMASK(i + 1);
}

static uint64_t counter_value(unsigned i)
{
    return 0x123456789a + i;
}

static void fill_counters(Machine *m)
{
    for (unsigned i = 0; i < NR_CORE; i++) {
        wrmsr(m, MSR_CTL0 + 2 * i, selector_value(i));
        wrmsr(m, MSR_CTR0 + 2 * i, counter_value(i));
    }
}

static void fill(Machine *m)
{
    fill_counters(m);
    wrmsr(m, MSR_AMD_CTL, BIT64(1) | BIT64(4));
}

static void assert_counters_filled(Machine *m)
{
    for (unsigned i = 0; i < NR_CORE; i++) {
        assert_msr(m, MSR_CTL0 + 2 * i, selector_value(i));
        assert_msr(m, MSR_CTR0 + 2 * i, counter_value(i));
    }
    for (unsigned i = 0; i < NR_LEGACY; i++) {
        assert_msr(m, MSR_LEGACY_EVTSEL0 + i, selector_value(i));
        assert_msr(m, MSR_LEGACY_CTR0 + i, counter_value(i));
    }
}

static void assert_filled(Machine *m)
{
    assert_counters_filled(m);
    assert_msr(m, MSR_AMD_CTL, BIT64(1) | BIT64(4));
}

static void test_registers(void)
{
    Machine m = start(KVM_ARGS);

    fill(&m);
    assert_filled(&m);
    stop(&m);
}

static void assert_counters_reset(Machine *m)
{
    for (unsigned i = 0; i < NR_CORE; i++) {
        assert_msr(m, MSR_CTL0 + 2 * i, 0);
        assert_msr(m, MSR_CTR0 + 2 * i, 0);
    }
}

static void test_reset(void)
{
    Machine m = start(KVM_ARGS);

    fill(&m);
    qtest_system_reset(m.qts);
    assert_counters_reset(&m);
    assert_msr(&m, MSR_AMD_STATUS, 0);
    assert_msr(&m, MSR_AMD_CTL, GLOBAL_ALL);
    stop(&m);
}

static void test_migration(void)
{
    Machine m = start(KVM_ARGS);

    fill(&m);
    migrate_machine(&m, KVM_ARGS);
    assert_filled(&m);
    stop(&m);
}

/* Without pmu=on, CPUID announces six counters and no other features. */
static void test_not_asked_for(void)
{
    const char *args = KVM_MACHINE "-cpu EPYC-Genoa";
    Machine m = start(args);
    uint64_t val;

    fill_counters(&m);
    g_assert_false(try_rdmsr(&m, MSR_AMD_CTL, &val));
    migrate_machine(&m, args);
    assert_counters_filled(&m);
    qtest_system_reset(m.qts);
    assert_counters_reset(&m);
    stop(&m);
}

/*
 * As Linux does at boot: probe a counter, and then clear everything.
 */
static void test_leftovers(void)
{
    Machine m = start(KVM_ARGS);

    wrmsr(&m, MSR_CTR0 + 2, 0xabcd);
    migrate_machine(&m, KVM_ARGS);
    assert_msr(&m, MSR_CTR0 + 2, 0xabcd);
    assert_msr(&m, MSR_AMD_CTL, GLOBAL_ALL);
    wrmsr(&m, MSR_CTR0 + 2, 0);
    wrmsr(&m, MSR_AMD_CTL, 0);
    migrate_machine(&m, KVM_ARGS);
    assert_msr(&m, MSR_CTR0 + 2, 0);
    assert_msr(&m, MSR_AMD_CTL, 0);
    stop(&m);
}

/* Each vCPU has its own registers. */
static void test_two_cpus(void)
{
    Machine m = start(KVM_ARGS " -smp 2");

    fill(&m);
    m.cpu = 1;
    assert_msr(&m, MSR_CTR0, 0);
    assert_msr(&m, MSR_AMD_CTL, GLOBAL_ALL);
    fill(&m);
    wrmsr(&m, MSR_CTR0, 1);
    m.cpu = 0;
    assert_filled(&m);
    stop(&m);
}

/* Counters that CPUID does not announce do not exist. */
static void test_host_counters(void)
{
    const char *args = KVM_ARGS ",pmu-host-counters=4";
    Machine m = start(args);
    QDict *cpu = query_cpu(&m);
    QDict *pmu = qdict_get_qdict(cpu, "pmu");
    uint32_t regs[4];
    uint64_t val;

    cpuid(&m, 0x80000022, regs);
    g_assert_cmpuint(regs[1] & 0xf, ==, 2);
    g_assert_cmpint(qdict_get_int(pmu, "host-counters"), ==, 4);
    g_assert_cmpint(qlist_size(qdict_get_qlist(pmu, "counters")), ==, 2);
    qobject_unref(cpu);
    assert_msr(&m, MSR_AMD_CTL, BIT64(2) - 1);
    wrmsr(&m, MSR_CTR0 + 2, 0xabcd);
    g_assert_false(try_rdmsr(&m, MSR_CTR0 + 4, &val));
    migrate_machine(&m, args);
    assert_msr(&m, MSR_CTR0 + 2, 0xabcd);
    stop(&m);
}

void add_kvm_cases(void)
{
    if (g_getenv("VPMU_TEST_KVM")) {
        qtest_add_func("/vpmu/kvm/registers", test_registers);
        qtest_add_func("/vpmu/kvm/reset", test_reset);
        qtest_add_func("/vpmu/kvm/migration", test_migration);
        qtest_add_func("/vpmu/kvm/not-asked-for", test_not_asked_for);
        qtest_add_func("/vpmu/kvm/leftovers", test_leftovers);
        qtest_add_func("/vpmu/kvm/two-cpus", test_two_cpus);
        qtest_add_func("/vpmu/kvm/host-counters", test_host_counters);
    }
}
