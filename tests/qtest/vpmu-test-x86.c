/*
 * QTest of the virtual PMU: cases that x86's vendors share
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/units.h"
#include "qobject/qdict.h"
#include "vpmu-test-x86.h"

/* The PMU under test. */
static const X86Face *x86(void)
{
    return container_of(face, X86Face, face);
}

/* Only the registers of an x2APIC can be reached without executing code. */
char *x86_args(const char *cpu)
{
    return g_strdup_printf("-machine q35 -m 32 -global apic-common.vapic=off "
                           "-global x86_64-cpu.x2apic=on -cpu %s", cpu);
}

Machine x86_start(const char *cpu)
{
    g_autofree char *args = x86_args(cpu);

    return start(args);
}

/* Use three fixed counters: QEMU's state of KVM has no more. */
void as_kvm(Machine *m)
{
    g_strfreev(qtest_command(m->qts, 1, "vpmu_kvm %u 3", m->cpu));
}

/*
 * Streams
 */

#define STOCK_NAME "cpu/msr_architectural_pmu"

/* A file with a stream that has the subsection */
typedef struct Stream {
    char *data;
    gsize size;
    uint8_t *values;
} Stream;

/* The name is once more in the description at the end. */
static Stream read_stream(const char *path)
{
    Stream s;
    char *at;

    g_assert_true(g_file_get_contents(path, &s.data, &s.size, NULL));
    at = memmem(s.data, s.size, STOCK_NAME, strlen(STOCK_NAME));
    g_assert_nonnull(at);
    at += strlen(STOCK_NAME);
    g_assert_cmpuint(ldl_be_p(at), ==, 1);
    s.values = (uint8_t *)at + sizeof(uint32_t);
    return s;
}

static void write_stream(const char *path, Stream *s)
{
    g_assert_true(g_file_set_contents(path, s->data, s->size, NULL));
    g_free(s->data);
}

static void put_value(Stream *s, unsigned at, uint64_t val)
{
    stq_be_p(s->values + at * sizeof(val), val);
}

static uint64_t get_value(const Stream *s, unsigned at)
{
    return ldq_be_p(s->values + at * sizeof(uint64_t));
}

uint64_t stock_value(const char *path, unsigned at)
{
    Stream s = read_stream(path);
    uint64_t val = get_value(&s, at);

    g_free(s.data);
    return val;
}

void edit_stock(const char *path, const void *with)
{
    Stream s = read_stream(path);

    memset(s.values, 0, STOCK__MAX * sizeof(uint64_t));
    for (const StockValue *value = with; value->val; value++) {
        put_value(&s, value->at, value->val);
    }
    write_stream(path, &s);
}

void edit_mark(const char *path, const void *unused)
{
    Stream s = read_stream(path);

    g_assert_cmphex(get_value(&s, STOCK_MARKED), ==, STOCK_MARK);
    for (unsigned i = STOCK_COUNTER; i < STOCK_EVTSEL; i++) {
        if (get_value(&s, i) == STOCK_MARK) {
            put_value(&s, i, 0);
        }
    }
    put_value(&s, STOCK_OVF_CTRL, 1);
    write_stream(path, &s);
}

/*
 * Registers
 */

/* The reply to an access: "ok", maybe with a value, or "gp". */
static bool access_done(GStrv words, uint64_t *val)
{
    if (g_str_equal(words[1], "gp")) {
        return false;
    }
    g_assert_cmpstr(words[1], ==, "ok");
    if (val) {
        g_assert_nonnull(words[2]);
        *val = g_ascii_strtoull(words[2], NULL, 0);
    }
    return true;
}

bool try_rdmsr(Machine *m, uint32_t msr, uint64_t *val)
{
    g_auto(GStrv) words = qtest_command(m->qts, 2, "vpmu_rdmsr %u 0x%x",
                                        m->cpu, msr);

    return access_done(words, val);
}

bool try_wrmsr(Machine *m, uint32_t msr, uint64_t val)
{
    g_auto(GStrv) words = qtest_command(m->qts, 2,
                                        "vpmu_wrmsr %u 0x%x 0x%" PRIx64,
                                        m->cpu, msr, val);

    return access_done(words, NULL);
}

bool try_rdpmc(Machine *m, uint32_t ecx, unsigned cpl, uint64_t *val)
{
    g_auto(GStrv) words = qtest_command(m->qts, 2, "vpmu_rdpmc %u 0x%x %u",
                                        m->cpu, ecx, cpl);

    return access_done(words, val);
}

uint64_t rdmsr(Machine *m, uint32_t msr)
{
    uint64_t val;

    g_assert_true(try_rdmsr(m, msr, &val));
    return val;
}

void wrmsr(Machine *m, uint32_t msr, uint64_t val)
{
    g_test_message("wrmsr 0x%x 0x%" PRIx64, msr, val);
    g_assert_true(try_wrmsr(m, msr, val));
}

uint64_t rdpmc(Machine *m, uint32_t ecx)
{
    uint64_t val;

    g_assert_true(try_rdpmc(m, ecx, 0, &val));
    return val;
}

void write_cr4(Machine *m, uint64_t val)
{
    g_strfreev(qtest_command(m->qts, 1, "vpmu_cr4 %u 0x%" PRIx64, m->cpu,
                             val));
}

void write_efer(Machine *m, uint64_t val)
{
    g_strfreev(qtest_command(m->qts, 1, "vpmu_efer %u 0x%" PRIx64, m->cpu,
                             val));
}

void init(Machine *m)
{
    g_strfreev(qtest_command(m->qts, 1, "vpmu_init %u", m->cpu));
}

bool take_nmi(Machine *m)
{
    g_auto(GStrv) words = qtest_command(m->qts, 2, "vpmu_nmi %u", m->cpu);

    return g_str_equal(words[1], "1");
}

void cpuid_subleaf(Machine *m, uint32_t leaf, uint32_t subleaf,
                   uint32_t regs[4])
{
    g_auto(GStrv) words = qtest_command(m->qts, 5, "vpmu_cpuid %u 0x%x 0x%x",
                                        m->cpu, leaf, subleaf);
    unsigned i;

    for (i = 0; i < 4; i++) {
        regs[i] = g_ascii_strtoull(words[1 + i], NULL, 0);
    }
}

void cpuid(Machine *m, uint32_t leaf, uint32_t regs[4])
{
    cpuid_subleaf(m, leaf, 0, regs);
}

void set_lvt(Machine *m, uint32_t lvt)
{
    wrmsr(m, MSR_APICBASE, rdmsr(m, MSR_APICBASE) | BIT64(10));
    wrmsr(m, MSR_APIC_SVR, 0x1ff);
    wrmsr(m, MSR_APIC_LVTPC, lvt);
}

bool requested(Machine *m, unsigned vector)
{
    return rdmsr(m, MSR_APIC_IRR0 + vector / 32) & BIT64(vector % 32);
}

/*
 * General-purpose counters
 */

uint32_t evtsel_msr(unsigned i)
{
    return x86()->evtsel + i * x86()->step;
}

uint32_t counter_msr(unsigned i)
{
    return x86()->counter + i * x86()->step;
}

void start_gp(Machine *m, unsigned i, uint64_t evtsel)
{
    wrmsr(m, evtsel_msr(i), evtsel | SEL_EN);
}

void arm_gp(Machine *m, unsigned i, uint64_t distance, uint64_t flags)
{
    wrmsr(m, evtsel_msr(i), 0);
    wrmsr(m, counter_msr(i), -distance & LOW_BITS(48));
    start_gp(m, i, face->insns | SEL_ALL | flags);
}

void count_in_all_modes(Machine *m, PmuTally tally)
{
    unsigned mode;

    for (mode = 0; mode < NR_MODES; mode++) {
        count(m, tally, mode, 1 << (4 * mode));
    }
}

uint64_t x86_read_register(Machine *m, uint32_t reg)
{
    return rdmsr(m, reg);
}

void x86_write_register(Machine *m, uint32_t reg, uint64_t val)
{
    try_wrmsr(m, reg, val);
}

void x86_prepare(Machine *m)
{
    set_lvt(m, LVT_NMI);
}

void x86_select(Machine *m, unsigned counter, uint64_t event, unsigned flags)
{
    start_gp(m, counter, event | (flags & COUNT_USER ? SEL_USR : 0)
                         | (flags & COUNT_KERNEL ? SEL_OS : 0)
                         | (flags & INTERRUPT ? SEL_INT : 0));
}

uint64_t x86_read(Machine *m, unsigned counter)
{
    return rdmsr(m, counter_msr(counter));
}

void x86_write(Machine *m, unsigned counter, uint64_t val)
{
    wrmsr(m, counter_msr(counter), val);
}

/*
 * Cases
 */

static void test_rdpmc_privilege(void)
{
    Machine m = x86_start(face->cpu);
    uint64_t val;
    unsigned cpl;

    for (cpl = 0; cpl < 4; cpl++) {
        write_cr4(&m, 0);
        g_assert_cmpint(try_rdpmc(&m, 0, cpl, &val), ==, cpl == 0);
        write_cr4(&m, CR4_PCE);
        g_assert_true(try_rdpmc(&m, 0, cpl, &val));
        g_assert_false(try_rdpmc(&m, x86()->nr_counters, cpl, &val));
    }
    stop(&m);
}

static void test_rdpmc_value(void)
{
    Machine m = x86_start(face->cpu);

    wrmsr(&m, counter_msr(1), 0xfedcba987654);
    g_assert_cmphex(rdpmc(&m, 1), ==, 0xfedcba987654);
    start_gp(&m, 1, face->insns | SEL_OS);
    count(&m, PMU_TALLY_INSNS, KERNEL, 0x11);
    g_assert_cmphex(rdpmc(&m, 1), ==, 0xfedcba987665);
    stop(&m);
}

/* As in stock QEMU, registers are ignored.  But RDPMC is no invalid opcode. */
static void test_no_pmu(const void *args)
{
    Machine m = start(args);
    uint32_t leaf[4];
    uint64_t val;

    cpuid(&m, 0xa, leaf);
    g_assert_cmphex(leaf[0] | leaf[1] | leaf[2] | leaf[3], ==, 0);
    wrmsr(&m, evtsel_msr(0), face->insns | SEL_ALL);
    assert_msr(&m, evtsel_msr(0), 0);
    wrmsr(&m, counter_msr(0), 1);
    assert_msr(&m, counter_msr(0), 0);
    g_assert_false(try_rdpmc(&m, 0, 0, &val));
    stop(&m);
}

static void add_no_pmu(void)
{
    add_data("no-pmu/ignores", "off", x86_args(face->cpu_without),
             test_no_pmu);
    add_data("no-pmu/ignores", "old-machine",
             g_strdup_printf("-machine pc-q35-9.2 -cpu %s", face->cpu),
             test_no_pmu);
}

/* A management layer can pass the reported defaults back to QEMU. */
static void test_expansion(void)
{
    static const char *const numbers[] = {
        "pmu-version", "pmu-gp-counters", "pmu-fixed-counters", "pmu-cpi",
        "pmu-frequency",
    };
    g_auto(GStrv) cpu = g_strsplit(face->cpu, ",", 2);
    Machine m = start("-machine q35");
    QDict *expansion = qtest_qmp_assert_success_ref(
        m.qts, "{'execute': 'query-cpu-model-expansion', 'arguments':"
               " {'type': 'full', 'model': {'name': %s}}}", cpu[0]);
    QDict *props = qdict_get_qdict(qdict_get_qdict(expansion, "model"),
                                   "props");

    for (unsigned i = 0; i < G_N_ELEMENTS(numbers); i++) {
        g_assert_cmpint(qdict_get_int(props, numbers[i]), ==, 0);
    }
    qobject_unref(expansion);
    stop(&m);
}

/*
 * Leftover values in a PMU that is not in use migrate, and do not prevent
 * migration to a machine without a PMU.
 */
static void assert_moves(Machine *m)
{
    g_autofree char *args = x86_args(face->full_cpu);
    g_autofree uint64_t *before = read_states(m), *after = NULL;

    migrate_machine(m, args);
    after = read_states(m);
    for (unsigned i = 0; i < face->nr_states; i++) {
        g_assert_cmphex(before[i], ==, after[i]);
    }
}

static void check_leftovers(Machine *m)
{
    g_autofree char *without = x86_args(face->cpu_without);

    assert_moves(m);
    m->edit = edit_mark;
    assert_moves(m);
    migrate_machine(m, without);
    stop(m);
}

static void test_leftover_values(void)
{
    Machine m = x86_start(face->full_cpu);

    for (unsigned i = 0; i < x86()->nr_counters; i++) {
        wrmsr(&m, counter_msr(i), 0xabcd + i);
    }
    check_leftovers(&m);
}

/* Linux clears this when it starts. */
static void test_leftover_control(void)
{
    Machine m = x86_start(face->full_cpu);

    face->stop(&m);
    check_leftovers(&m);
}

/*
 * Eject a CPU as a guest does by ACPI: registers of q35, as
 * docs/specs/acpi_cpu_hotplug.rst describes them.
 */
#define CPU_SELECTOR 0xcd8
#define CPU_CONTROL  0xcdc
#define CPU_EJECT    8

static void eject(Machine *m, unsigned cpu)
{
    /* The first write leaves the older interface. */
    qtest_outl(m->qts, CPU_SELECTOR, 0);
    qtest_outl(m->qts, CPU_SELECTOR, cpu);
    qtest_outb(m->qts, CPU_CONTROL, CPU_EJECT);
}

static unsigned nr_cpus(Machine *m)
{
    QDict *response = qtest_qmp(m->qts, "{'execute': 'query-cpus-fast'}");
    unsigned nr = qlist_size(qdict_get_qlist(response, "return"));

    qobject_unref(response);
    return nr;
}

static void test_unplug(void)
{
    g_autofree char *cpu = g_strdup_printf("%s -smp 1,maxcpus=2", face->cpu);
    g_autofree char *args = x86_args(cpu);
    Machine m = start(args);

    face->hotplug(&m);
    g_assert_cmpint(nr_cpus(&m), ==, 2);
    eject(&m, 1);
    g_assert_cmpint(nr_cpus(&m), ==, 1);
    stop(&m);
}

/*
 * Under TCG, stopped and running: CPUs come and go more often than there may be
 * of them.
 */
static void test_unplug_executed(const void *data)
{
    g_autofree char *cpu = g_strdup_printf("%s -smp 1,maxcpus=2 -S -accel "
                                           "tcg,thread=%s", face->cpu,
                                           (const char *)data);
    g_autofree char *args = x86_args(cpu);
    Machine m = start(args);

    for (int turn = 1; turn <= 4; turn++) {
        face->hotplug(&m);
        g_assert_cmpint(nr_cpus(&m), ==, 2);
        eject(&m, 1);
        g_assert_cmpint(nr_cpus(&m), ==, 1);
        if (turn == 2) {
            qtest_qmp_assert_success(m.qts, "{'execute': 'cont'}");
        }
    }
    stop(&m);
}

#define READY 0x800
#define GO    0x1000
/* Writing so much takes longer than the guest needs. */
#define MUCH  (64 * MiB)

/*
 * Code in place of the firmware, whose last KiB this is: eject a CPU as above,
 * but wait for another value at GO before the last write.
 */
static const uint8_t ejecting[KiB] = {
    0xba, 0xd8, 0x0c,               /*    mov $0xcd8, %dx */
    0x66, 0x31, 0xc0,               /*    xor %eax, %eax */
    0x66, 0xef,                     /*    out %eax, %dx */
    0x40,                           /*    inc %ax */
    0x66, 0xef,                     /*    out %eax, %dx */
    0xb2, 0xdc,                     /*    mov $0xdc, %dl */
    0xb0, 0x08,                     /*    mov $8, %al */
    0xa2, 0x00, 0x08,               /*    mov %al, READY */
    0x80, 0x3e, 0x00, 0x10, 0x00,   /* 1: cmpb $0, GO */
    0x74, 0xf9,                     /*    je 1b */
    0xee,                           /*    out %al, %dx */
    0xf4,                           /* 2: hlt */
    0xeb, 0xfd,                     /*    jmp 2b */
    [KiB - 16] = 0xe9, 0x0d, 0xfc,  /* begin here */
};

static Machine start_ejecting(const char *thread)
{
    g_autofree uint8_t *image = g_malloc0(64 * KiB);
    char *firmware = new_file();
    Machine m;

    memcpy(image + 63 * KiB, ejecting, sizeof(ejecting));
    g_assert_true(g_file_set_contents(firmware, (char *)image, 64 * KiB, NULL));
    m.qts = qtest_initf("-accel tcg,thread=%s -nodefaults -machine q35 -m 128 "
                        "-smp 2 -cpu %s -bios %s", thread, face->cpu, firmware);
    delete_file(firmware);
    return m;
}

/*
 * The main loop holds the big lock when the guest is about to eject a CPU, and
 * releases it while it waits for work of that CPU: both is done.
 */
static void test_unplug_asked(const void *data)
{
    Machine m = start_ejecting(data);

    while (!qtest_readb(m.qts, READY)) {
        g_usleep(1000);
    }
    g_strfreev(qtest_command(m.qts, 1, "memset %u %" PRId64 " 1\n"
                             "vpmu_cpuid 1 0 0", GO, MUCH));
    while (nr_cpus(&m) > 1) {
        g_usleep(1000);
    }
    stop(&m);
}

static void set_enabled(Machine *m, bool enabled)
{
    qtest_qmp_assert_success(m->qts, "{'execute': 'qom-set', 'arguments': "
                             "{'path': '/objects/p', 'property': 'enabled',"
                             " 'value': %i}}", enabled);
}

static uint64_t nr_samples(Machine *m)
{
    QDict *answer = qtest_qmp(m->qts, "{'execute': 'qom-get', 'arguments': "
                              "{'path': '/objects/p',"
                              " 'property': 'samples'}}");
    uint64_t nr = qdict_get_int(answer, "return");

    qobject_unref(answer);
    return nr;
}

/*
 * Samples of a CPU remain after its removal, and other CPUs are still sampled.
 */
static void test_unplug_profiled(void)
{
    g_autofree char *cpu = g_strdup_printf("%s -smp 1,maxcpus=2", face->cpu);
    g_autofree char *args = x86_args(cpu);
    Machine m = start(args);

    qtest_qmp_assert_success(m.qts, "{'execute': 'object-add', 'arguments': "
                             "{'qom-type': 'pmu-profile', 'id': 'p',"
                             " 'file': '/dev/null', 'period': 1000}}");
    for (uint64_t turn = 1; turn <= 3; turn++) {
        face->hotplug(&m);
        m.cpu = 1;
        count(&m, PMU_TALLY_INSNS, KERNEL, 4000);
        eject(&m, 1);
        m.cpu = 0;
        count(&m, PMU_TALLY_INSNS, KERNEL, 2000);
        set_enabled(&m, false);
        g_assert_cmpuint(nr_samples(&m), ==, 6 * turn);
        set_enabled(&m, true);
    }
    stop(&m);
}

/* An overflow stays in the status when its counter no longer has an event. */
static void test_status_alone(void)
{
    g_autofree char *args = x86_args(face->full_cpu);
    Machine m = x86_start(face->full_cpu);

    arm_gp(&m, 0, 10, 0);
    count(&m, PMU_TALLY_INSNS, KERNEL, 10);
    wrmsr(&m, evtsel_msr(0), 0);
    migrate_machine(&m, args);
    g_assert_cmphex(face->overflowed(&m), ==, 1);
    stop(&m);
}

/* Results after 1000 cycles, 700 instructions and 4 wake-ups */
static const struct Condition {
    bool of_cycles;
    uint64_t evtsel, expected;
} conditions[] = {
    { false, 0, 700 },
    { false, SEL_CMASK(1), 700 },
    { false, SEL_CMASK(2), 0 },
    { false, SEL_CMASK(255), 0 },
    { false, SEL_INV, 700 },
    { false, SEL_INV | SEL_CMASK(1), 300 },
    { false, SEL_INV | SEL_CMASK(2), 1000 },
    { false, SEL_EDGE, 700 },
    { false, SEL_EDGE | SEL_INV | SEL_CMASK(2), 4 },
    { true, SEL_EDGE | SEL_CMASK(1), 4 },
    { true, SEL_INV | SEL_CMASK(1), 0 },
};

static void test_conditions(void)
{
    Machine m = x86_start(face->cpu);
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(conditions); i++) {
        wrmsr(&m, evtsel_msr(0), 0);
        wrmsr(&m, counter_msr(0), 0);
        start_gp(&m, 0, (conditions[i].of_cycles ? face->cycles : face->insns)
                        | conditions[i].evtsel | SEL_ALL);
        count(&m, PMU_TALLY_CYCLES, KERNEL, 1000);
        count(&m, PMU_TALLY_INSNS, KERNEL, 700);
        count(&m, PMU_TALLY_WAKEUPS, KERNEL, 4);
        assert_msr(&m, counter_msr(0), conditions[i].expected);
    }
    stop(&m);
}

/* The local APIC's entry after an interrupt */
static uint32_t delivered(uint32_t lvt)
{
    return lvt | (x86()->masks_lvt ? LVT_MASKED : 0);
}

static void test_interrupt(void)
{
    Machine m = x86_start(face->cpu);

    set_lvt(&m, VECTOR);
    arm_gp(&m, 2, 1000, SEL_INT);
    count(&m, PMU_TALLY_INSNS, USER, 999);
    g_assert_false(requested(&m, VECTOR));
    count(&m, PMU_TALLY_INSNS, KERNEL, 1);
    g_assert_true(requested(&m, VECTOR));
    assert_msr(&m, MSR_APIC_LVTPC, delivered(VECTOR));
    assert_msr(&m, x86()->status, 1 << 2);
    assert_msr(&m, counter_msr(2), 0);
    g_assert_false(take_nmi(&m));
    stop(&m);
}

static void test_nmi(void)
{
    Machine m = x86_start(face->cpu);

    set_lvt(&m, LVT_NMI);
    arm_gp(&m, 0, 10, SEL_INT);
    count(&m, PMU_TALLY_INSNS, KERNEL, 9);
    g_assert_false(take_nmi(&m));
    count(&m, PMU_TALLY_INSNS, KERNEL, 1);
    g_assert_true(take_nmi(&m));
    assert_msr(&m, MSR_APIC_LVTPC, delivered(LVT_NMI));
    stop(&m);
}

/* An entry that delivery has masked stays masked until it is written. */
static void test_second_interrupt(void)
{
    Machine m = x86_start(face->cpu);

    set_lvt(&m, LVT_NMI);
    arm_gp(&m, 0, 10, SEL_INT);
    count(&m, PMU_TALLY_INSNS, KERNEL, 10);
    g_assert_true(take_nmi(&m));
    arm_gp(&m, 0, 10, SEL_INT);
    count(&m, PMU_TALLY_INSNS, KERNEL, 10);
    g_assert_cmpint(take_nmi(&m), ==, !x86()->masks_lvt);
    set_lvt(&m, LVT_NMI);
    g_assert_false(take_nmi(&m));
    arm_gp(&m, 0, 10, SEL_INT);
    count(&m, PMU_TALLY_INSNS, KERNEL, 10);
    g_assert_true(take_nmi(&m));
    stop(&m);
}

static void test_masked(void)
{
    Machine m = x86_start(face->cpu);

    set_lvt(&m, VECTOR | LVT_MASKED);
    arm_gp(&m, 0, 10, SEL_INT);
    count(&m, PMU_TALLY_INSNS, KERNEL, 10);
    g_assert_false(requested(&m, VECTOR));
    assert_msr(&m, x86()->status, 1);
    stop(&m);
}

/* A local APIC that software has disabled delivers nothing. */
static void test_apic_disabled(void)
{
    Machine m = x86_start(face->cpu);

    set_lvt(&m, LVT_NMI);
    wrmsr(&m, MSR_APIC_SVR, 0xff);
    arm_gp(&m, 0, 10, SEL_INT);
    count(&m, PMU_TALLY_INSNS, KERNEL, 10);
    g_assert_false(take_nmi(&m));
    assert_msr(&m, x86()->status, 1);
    stop(&m);
}

/* Setting INT after an overflow causes no interrupt. */
static void test_no_late_interrupt(void)
{
    Machine m = x86_start(face->cpu);

    set_lvt(&m, VECTOR);
    arm_gp(&m, 0, 10, 0);
    count(&m, PMU_TALLY_INSNS, KERNEL, 11);
    start_gp(&m, 0, face->insns | SEL_ALL | SEL_INT);
    g_assert_false(requested(&m, VECTOR));
    assert_msr(&m, x86()->status, 1);
    stop(&m);
}

/* INIT restarts a CPU.  It resets the local APIC, but not the PMU. */
static void test_init(void)
{
    Machine m = x86_start(face->full_cpu);
    g_autofree uint64_t *before = NULL, *after = NULL;

    face->keep_busy(&m);
    before = read_states(&m);
    init(&m);
    after = read_states(&m);
    g_assert_cmpmem(before, face->nr_states * sizeof(*before),
                    after, face->nr_states * sizeof(*after));
    g_assert_true(rdmsr(&m, MSR_APIC_LVTPC) & LVT_MASKED);
    count(&m, PMU_TALLY_INSNS, KERNEL, 5);
    assert_msr(&m, counter_msr(0), 6);
    stop(&m);
}

/* The PMU of a realized CPU cannot be changed. */
static void test_property_when_realized(void)
{
    Machine m = x86_start(face->cpu);
    QDict *error = qtest_qmp_assert_failure_ref(
        m.qts, "{'execute': 'qom-set', 'arguments': {"
        " 'path': '/machine/unattached/device[0]',"
        " 'property': 'pmu', 'value': false}}");
    const char *message = qdict_get_str(error, "desc");

    g_test_message("%s", message);
    g_assert_nonnull(strstr(message, "'pmu'"));
    g_assert_nonnull(strstr(message, "realized"));
    qobject_unref(error);
    stop(&m);
}

void add_x86_cases(void)
{
    add("rdpmc/privilege", test_rdpmc_privilege);
    add("rdpmc/value", test_rdpmc_value);
    add_no_pmu();
    add("properties/expansion", test_expansion);
    add("migration/leftover-values", test_leftover_values);
    add("migration/leftover-control", test_leftover_control);
    add("migration/status-alone", test_status_alone);
    add("unplug", test_unplug);
    add("unplug-profiled", test_unplug_profiled);
    add("count/conditions", test_conditions);
    add("overflow/interrupt", test_interrupt);
    add("overflow/nmi", test_nmi);
    add("overflow/second-interrupt", test_second_interrupt);
    add("overflow/masked", test_masked);
    add("overflow/apic-disabled", test_apic_disabled);
    add("overflow/no-late-interrupt", test_no_late_interrupt);
    add("init", test_init);
    add("property-when-realized", test_property_when_realized);
    add_data("unplug-executed", "multi", "multi", test_unplug_executed);
    add_data("unplug-executed", "single", "single", test_unplug_executed);
    add_data("unplug-asked", "multi", "multi", test_unplug_asked);
    add_data("unplug-asked", "single", "single", test_unplug_asked);
}
