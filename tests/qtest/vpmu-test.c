/*
 * QTest of the virtual PMU: the cases that architectures share
 *
 * They are written in terms of struct Face, and run for each.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qemu/bswap.h"
#include "qemu/units.h"
#include "qobject/qdict.h"
#include "vpmu-test-x86.h"

/*
 * Machines
 */

char *new_file(void)
{
    char *path;
    int fd = g_file_open_tmp("vpmu-test-XXXXXX", &path, NULL);

    g_assert_cmpint(fd, >=, 0);
    close(fd);
    return path;
}

void delete_file(char *path)
{
    unlink(path);
    g_free(path);
}

/* Create a file in place of the firmware, which is never executed. */
static char *new_firmware(void)
{
    char *path = new_file();

    g_assert_cmpint(truncate(path, 64 * KiB), ==, 0);
    return path;
}

Machine start(const char *args)
{
    char *firmware = new_firmware();
    QTestState *qts = qtest_initf("-nodefaults -bios %s %s", firmware, args);

    delete_file(firmware);
    return (Machine) { .qts = qts };
}

/* libqtest looks every 100 ms, which is longer than most tests take. */
static void end_soon(pid_t qemu)
{
    siginfo_t ended = {};

    kill(qemu, SIGTERM);
    for (int ms = 0; ms < 1000 && !ended.si_pid; ms++) {
        g_usleep(1000);
        waitid(P_PID, qemu, &ended, WEXITED | WNOWAIT | WNOHANG);
    }
}

void stop(Machine *m)
{
    end_soon(qtest_pid(m->qts));
    qtest_quit(m->qts);
}

void count(Machine *m, PmuTally tally, unsigned mode, uint64_t n)
{
    g_strfreev(qtest_command(m->qts, 1, "vpmu_count %u %u %u %" PRIu64,
                             m->cpu, tally, mode, n));
}

PmuTallies wanted(Machine *m)
{
    g_auto(GStrv) words = qtest_command(m->qts, 2, "vpmu_wanted %u", m->cpu);

    return g_ascii_strtoull(words[1], NULL, 0);
}

static void wait_for_status(Machine *m, const char *wanted)
{
    g_autofree char *status = NULL;

    do {
        QDict *info = qtest_qmp_assert_success_ref(
            m->qts, "{'execute': 'query-migrate'}");

        g_free(status);
        status = g_strdup(qdict_get_try_str(info, "status"));
        qobject_unref(info);
    } while (g_strcmp0(status, "completed") != 0
             && g_strcmp0(status, "failed") != 0);
    g_assert_cmpstr(status, ==, wanted);
}

static void save(Machine *m, const char *path)
{
    g_autofree char *uri = g_strdup_printf("file:%s", path);

    qtest_qmp_assert_success(m->qts, "{'execute': 'migrate',"
                             " 'arguments': {'uri': %s}}", uri);
    wait_for_status(m, "completed");
}

Machine start_incoming(const char *args)
{
    g_autofree char *incoming = g_strdup_printf("%s -incoming defer", args);

    return start(incoming);
}

/* Replace a machine by one that gets its state, which can be refused. */
static void move(Machine *m, Machine to, const char *status)
{
    char *path = new_file();
    g_autofree char *uri = g_strdup_printf("file:%s", path);

    save(m, path);
    if (m->edit) {
        m->edit(path, m->with);
        m->edit = NULL;
    }
    qtest_qmp_assert_success(to.qts, "{'execute': 'migrate-incoming',"
                             " 'arguments': {'uri': %s,"
                             " 'exit-on-error': false}}", uri);
    wait_for_status(&to, status);
    stop(m);
    m->qts = to.qts;
    delete_file(path);
}

static Machine start_prepared(const char *args, void (*prepare)(Machine *m))
{
    Machine m = start_incoming(args);

    if (prepare) {
        prepare(&m);
    }
    return m;
}

void migrate_to(Machine *m, Machine to)
{
    move(m, to, "completed");
}

void migrate_prepared(Machine *m, const char *args,
                      void (*prepare)(Machine *m))
{
    migrate_to(m, start_prepared(args, prepare));
}

void migrate_machine(Machine *m, const char *args)
{
    migrate_prepared(m, args, NULL);
}

/* QEMU is started by a shell. */
/* Since QEMU 11.0, it is here that a field is named which does not fit. */
static char *error_of_migration(Machine *m)
{
    QDict *result = qtest_qmp_assert_success_ref(m->qts,
                                                 "{'execute': 'query-migrate'}");
    char *error = g_strdup(qdict_get_try_str(result, "error-desc"));

    qobject_unref(result);
    return error;
}

char *refuse_prepared(Machine *m, const char *args,
                      void (*prepare)(Machine *m))
{
    char *path = new_file();
    g_autofree char *logged = g_strdup_printf("%s 2> %s", args, path);
    g_autofree char *said = NULL, *error = NULL;
    char *message;

    move(m, start_prepared(logged, prepare), "failed");
    error = error_of_migration(m);
    stop(m);
    g_assert_true(g_file_get_contents(path, &said, NULL, NULL));
    delete_file(path);
    message = g_strconcat(said, error, NULL);
    g_test_message("%s: %s", args, message);
    return message;
}

/* If QEMU does start, kill it after a while. */
char *complaint(const char *args)
{
    char *firmware = new_firmware();
    g_autofree char *command = g_strdup_printf(
        "timeout 300 %s -accel qtest -display none -nodefaults -bios %s %s",
        g_getenv("QTEST_QEMU_BINARY"), firmware, args);
    char *argv[] = { (char *)"/bin/sh", (char *)"-c", command, NULL };
    g_autofree char *out = NULL;
    char *err;
    int status;

    g_assert_true(g_spawn_sync(NULL, argv, NULL, G_SPAWN_DEFAULT, NULL, NULL,
                               &out, &err, &status, NULL));
    delete_file(firmware);
    g_test_message("%s: %s", args, err);
    g_assert_true(WIFEXITED(status));
    g_assert_cmpint(WEXITSTATUS(status), ==, 1);
    return err;
}

/*
 * The PMU of the architecture under test
 */

const Face *face;

Machine begin(const char *cpu)
{
    g_autofree char *args = face->args(cpu);
    Machine m = start(args);

    face->prepare(&m);
    face->stop(&m);
    return m;
}

void count_insns(Machine *m, uint64_t n)
{
    count(m, PMU_TALLY_INSNS, face->user, n);
}

/* Let a counter overflow after so many events more. */
static void preset(Machine *m, unsigned counter, uint64_t left)
{
    face->write(m, counter, (face->overflow_at - left) & LOW_BITS(face->width));
}

/* Let a counter of instructions overflow after so many. */
static void arm(Machine *m, unsigned counter, uint64_t left, unsigned flags)
{
    face->select(m, counter, face->insns, COUNT_ALL | flags);
    preset(m, counter, left);
}

#define assert_counter(m, counter, expected) \
    g_assert_cmphex(face->read((m), (counter)), ==, (expected))

/* The events that a counter has counted since it overflowed. */
#define assert_beyond(m, counter, expected) \
    assert_counter((m), (counter), face->overflow_at + (expected))

/*
 * Counting
 */

static void test_start_and_stop(void)
{
    Machine m = begin(face->cpu);
    unsigned i;

    for (i = 0; i < NR_COUNTERS; i++) {
        face->select(&m, i, i & 1 ? face->cycles : face->insns, COUNT_ALL);
    }
    count_insns(&m, 1);
    g_assert_cmphex(wanted(&m), ==, 0);
    face->start(&m);
    g_assert_cmphex(wanted(&m), ==, T(INSNS) | T(CYCLES));
    count_insns(&m, 12345);
    count(&m, PMU_TALLY_CYCLES, face->kernel, 23456);
    face->stop(&m);
    g_assert_cmphex(wanted(&m), ==, 0);
    count_insns(&m, 1);
    for (i = 0; i < NR_COUNTERS; i++) {
        assert_counter(&m, i, i & 1 ? 23456 : 12345);
    }
    stop(&m);
}

/* Accesses to a running counter neither lose nor add events. */
static void test_running(void)
{
    Machine m = begin(face->cpu);
    unsigned i;

    face->select(&m, 0, face->insns, COUNT_ALL);
    face->select(&m, 1, face->insns, COUNT_ALL);
    face->start(&m);
    for (i = 0; i < 10; i++) {
        assert_counter(&m, 0, 7 * i);
        assert_counter(&m, 0, 7 * i);
        count_insns(&m, 7);
    }
    face->write(&m, 0, 1000);
    assert_counter(&m, 0, 1000);
    count_insns(&m, 7);
    assert_counter(&m, 0, 1007);
    assert_counter(&m, 1, 77);
    stop(&m);
}

static void test_wrap(void)
{
    Machine m = begin(face->cpu);

    face->select(&m, 0, face->insns, COUNT_ALL);
    face->write(&m, 0, LOW_BITS(face->width));
    face->start(&m);
    count_insns(&m, 3);
    assert_counter(&m, 0, 2);
    count_insns(&m, BIT64(face->width) + 5);
    assert_counter(&m, 0, 7);
    stop(&m);
}

/* 0x1000 in mode 3, and so on: each digit of a sum is a mode. */
static uint64_t digits(PmuModes modes)
{
    uint64_t sum = 0;
    unsigned mode;

    for (mode = 0; mode < face->nr_modes; mode++) {
        if (modes & BIT64(mode)) {
            sum += 1ull << (4 * mode);
        }
    }
    return sum;
}

static void test_modes(void)
{
    Machine m = begin(face->cpu);
    unsigned mode, i;

    for (i = 0; i < NR_COUNTERS; i++) {
        face->select(&m, i, face->insns, (i & 1 ? COUNT_USER : 0)
                                         | (i & 2 ? COUNT_KERNEL : 0));
    }
    face->start(&m);
    for (mode = 0; mode < face->nr_modes; mode++) {
        count(&m, PMU_TALLY_INSNS, mode, digits(BIT64(mode)));
    }
    assert_counter(&m, 0, 0);
    assert_counter(&m, 1, digits(face->user_modes));
    assert_counter(&m, 2, digits(~face->user_modes));
    assert_counter(&m, 3, digits(~0));
    stop(&m);
}

/* Each tally grows by its own power of two; some exceed Power's counters. */
static void check_event(Machine *m, const Event *e, unsigned counter)
{
    PmuTally t;

    g_test_message("event 0x%" PRIx64, e->code);
    face->stop(m);
    face->write(m, counter, 0);
    face->select(m, counter, e->code, COUNT_ALL);
    face->start(m);
    g_assert_cmphex(wanted(m), ==, e->tallies);
    for (t = 0; t < PMU_TALLY__MAX; t++) {
        count(m, t, t % face->nr_modes, BIT64(t));
    }
    assert_counter(m, counter, e->tallies & LOW_BITS(face->width));
    face->select(m, counter, e->code, 0);
}

static void test_events(void)
{
    unsigned i, n;

    for (i = 0; i < face->nr_event_tables; i++) {
        const EventTable *table = &face->event_tables[i];
        Machine m = begin(table->cpu);

        g_test_message("%s", table->cpu);
        for (n = 0; table->events[n].code; n++) {
            const Event *e = &table->events[n];

            check_event(&m, e, face->counter_of ? face->counter_of(e->code)
                                                : n % face->nr_selectors);
        }
        stop(&m);
    }
}

/* An event that is not counted is logged, but only once. */
static void test_uncounted_is_logged(void)
{
    char *log = new_file();
    g_autofree char *cpu = g_strdup_printf("%s -d unimp -D %s", face->cpu, log);
    g_autofree char *contents = NULL;
    Machine m = begin(cpu);
    char *line;

    face->select(&m, 0, face->unknown, COUNT_ALL);
    face->select(&m, 1, face->insns, COUNT_ALL);
    face->start(&m);
    face->select(&m, 0, face->unknown, COUNT_KERNEL);
    stop(&m);
    g_assert_true(g_file_get_contents(log, &contents, NULL, NULL));
    line = strstr(contents, face->unknown_message);
    g_assert_nonnull(line);
    g_assert_null(strstr(line + 1, "event 0x"));
    delete_file(log);
}

static void test_overflow_is_traced(void)
{
    char *log = new_file();
    g_autofree char *cpu = g_strdup_printf("%s -trace pmu_overflow -D %s",
                                           face->cpu, log);
    g_autofree char *line = NULL, *contents = NULL;
    Machine m = begin(cpu);

    arm(&m, 1, 10, INTERRUPT);
    face->start(&m);
    count_insns(&m, 10);
    stop(&m);
    g_assert_true(g_file_get_contents(log, &contents, NULL, NULL));
    line = g_strdup_printf("cpu 0: counter 1 overflows and holds 0x%" PRIx64
                           ",", face->overflow_at);
    g_assert_nonnull(strstr(contents, line));
    delete_file(log);
}

/* Each CPU has its own PMU and interrupt. */
static void test_two_cpus(void)
{
    g_autofree char *cpu = g_strdup_printf("%s -smp 2", face->cpu);
    Machine m = begin(cpu);
    Machine other = { .qts = m.qts, .cpu = 1 };

    face->prepare(&other);
    arm(&m, 0, 1000, INTERRUPT);
    arm(&other, 0, 10, INTERRUPT);
    face->start(&m);
    face->start(&other);
    count_insns(&other, 10);
    g_assert_cmphex(face->overflowed(&m), ==, 0);
    g_assert_cmphex(face->overflowed(&other), ==, 1);
    g_assert_false(face->interrupted(&m));
    g_assert_true(face->interrupted(&other));
    count_insns(&m, 1000);
    assert_beyond(&m, 0, 0);
    assert_beyond(&other, 0, 0);
    g_assert_true(face->interrupted(&m));
    stop(&m);
}

static void test_hotplug(void)
{
    g_autofree char *cpu = g_strdup_printf("%s -smp 1,maxcpus=2", face->cpu);
    Machine m = begin(cpu);

    face->hotplug(&m);
    m.cpu = 1;
    face->select(&m, 0, face->insns, COUNT_ALL);
    face->start(&m);
    count_insns(&m, 10);
    assert_counter(&m, 0, 10);
    stop(&m);
}

/*
 * Overflow and interrupt
 */

/* The interrupt comes with the event that makes the counter overflow. */
static void test_overflow(void)
{
    Machine m = begin(face->cpu);
    unsigned i;

    face->start(&m);
    for (i = 0; i < NR_COUNTERS; i++) {
        face->stop(&m);
        arm(&m, i, 1000, INTERRUPT);
        face->start(&m);
        count(&m, PMU_TALLY_INSNS, face->user, 999);
        g_assert_false(face->interrupted(&m));
        g_assert_cmphex(face->overflowed(&m), ==, 0);
        count(&m, PMU_TALLY_INSNS, face->kernel, 1);
        g_assert_true(face->interrupted(&m));
        g_assert_cmphex(face->overflowed(&m), ==, BIT64(i));
        assert_beyond(&m, i, 0);
        face->select(&m, i, face->insns, 0);
        face->write(&m, i, 1);
        face->rearm(&m);
    }
    stop(&m);
}

/* After an overflow the counter goes on without another interrupt. */
static void test_once(void)
{
    Machine m = begin(face->cpu);

    arm(&m, 0, 10, INTERRUPT);
    face->start(&m);
    count_insns(&m, 10);
    g_assert_true(face->interrupted(&m));
    count_insns(&m, 1);
    g_assert_false(face->interrupted(&m));
    count_insns(&m, 100);
    g_assert_false(face->interrupted(&m));
    assert_beyond(&m, 0, 101);
    stop(&m);
}

static void check_period(uint64_t period)
{
    Machine m = begin(face->cpu);
    unsigned i;

    arm(&m, 0, period, INTERRUPT);
    face->start(&m);
    for (i = 0; i < 10; i++) {
        count_insns(&m, period - 1);
        g_assert_false(face->interrupted(&m));
        count(&m, PMU_TALLY_INSNS, i % face->nr_modes, 1);
        g_assert_true(face->interrupted(&m));
        g_assert_cmphex(face->overflowed(&m), ==, 1);
        preset(&m, 0, period);
        face->rearm(&m);
        g_assert_false(face->interrupted(&m));
        g_assert_cmphex(face->overflowed(&m), ==, 0);
    }
    stop(&m);
}

static void test_period(void)
{
    check_period(1000);
}

/* Each event is a sample. */
static void test_period_of_one(void)
{
    check_period(1);
}

static void test_two_at_once(void)
{
    Machine m = begin(face->cpu);

    arm(&m, 0, 20, INTERRUPT);
    arm(&m, 1, 20, INTERRUPT);
    arm(&m, 2, 21, INTERRUPT);
    face->start(&m);
    count_insns(&m, 20);
    g_assert_cmphex(face->overflowed(&m), ==, 3);
    g_assert_true(face->interrupted(&m));
    count_insns(&m, 1);
    g_assert_cmphex(face->overflowed(&m), ==, 7);
    g_assert_cmpint(face->interrupted(&m), ==, face->interrupts_again);
    stop(&m);
}

static void test_no_interrupt_unless_asked(void)
{
    Machine m = begin(face->cpu);

    arm(&m, 0, 10, 0);
    arm(&m, 1, 20, INTERRUPT);
    face->start(&m);
    count_insns(&m, 12);
    g_assert_cmphex(face->overflowed(&m), ==, 1);
    assert_beyond(&m, 0, 2);
    g_assert_false(face->interrupted(&m));
    stop(&m);
}

/* Counter 0 overflows after 10 of 100 instructions. */
static void count_with_freeze(Machine *m)
{
    arm(m, 0, 10, INTERRUPT);
    face->select(m, 1, face->insns, COUNT_ALL);
    face->freeze_on_overflow(m);
    face->start(m);
    count_insns(m, 100);
}

static void check_thaw(Machine *m)
{
    count_insns(m, 100);
    assert_beyond(m, 0, 0);
    assert_counter(m, 1, 10);
    preset(m, 0, 1000);
    face->rearm(m);
    count_insns(m, 5);
    assert_counter(m, 1, 15);
}

/* With the event that makes one counter overflow, all stop. */
static void test_freeze(void)
{
    Machine m = begin(face->cpu);

    count_with_freeze(&m);
    g_assert_true(face->interrupted(&m));
    g_assert_cmphex(wanted(&m), ==, 0);
    check_thaw(&m);
    stop(&m);
}

static void test_no_freeze_unless_asked(void)
{
    Machine m = begin(face->cpu);

    arm(&m, 0, 10, INTERRUPT);
    face->start(&m);
    count_insns(&m, 100);
    g_assert_true(face->interrupted(&m));
    assert_beyond(&m, 0, 90);
    stop(&m);
}

/*
 * Life
 */

uint64_t *read_states(Machine *m)
{
    uint64_t *values = g_new(uint64_t, face->nr_states);
    unsigned i;

    for (i = 0; i < face->nr_states; i++) {
        values[i] = face->read_register(m, face->states[i].reg);
    }
    return values;
}

static void assert_reset(Machine *m)
{
    unsigned i;

    for (i = 0; i < face->nr_states; i++) {
        g_test_message("register 0x%x", face->states[i].reg);
        g_assert_cmphex(face->read_register(m, face->states[i].reg), ==,
                        face->states[i].reset);
    }
    g_assert_cmphex(wanted(m), ==, 0);
}

static void test_reset(void)
{
    g_autofree char *args = face->args(face->full_cpu);
    Machine m = start(args);

    assert_reset(&m);
    face->keep_busy(&m);
    qtest_system_reset(m.qts);
    assert_reset(&m);
    stop(&m);
}

static void test_migration(void)
{
    g_autofree char *args = face->args(face->full_cpu);
    g_autofree uint64_t *before = NULL, *after = NULL;
    Machine m = start(args);
    unsigned overflowed, i;

    face->keep_busy(&m);
    overflowed = face->overflowed(&m);
    before = read_states(&m);
    migrate_machine(&m, args);
    after = read_states(&m);
    for (i = 0; i < face->nr_states; i++) {
        g_test_message("register 0x%x", face->states[i].reg);
        g_assert_cmphex(before[i], ==, after[i]);
    }
    g_assert_cmphex(overflowed, !=, 0);
    g_assert_cmphex(overflowed, ==, face->overflowed(&m));
    stop(&m);
}

/* Migration neither loses an event nor counts one twice, nor an overflow. */
static void test_migration_goes_on(void)
{
    g_autofree char *args = face->args(face->cpu);
    Machine m = begin(face->cpu);

    arm(&m, 0, 1000, INTERRUPT);
    face->start(&m);
    count_insns(&m, 600);
    migrate_machine(&m, args);
    g_assert_cmphex(wanted(&m), ==, T(INSNS));
    count_insns(&m, 399);
    g_assert_false(face->interrupted(&m));
    g_assert_cmphex(face->overflowed(&m), ==, 0);
    count_insns(&m, 1);
    g_assert_true(face->interrupted(&m));
    g_assert_cmphex(face->overflowed(&m), ==, 1);
    stop(&m);
}

/* Migration notices overflows that had not been noticed. */
static void test_migration_of_overflow(void)
{
    g_autofree char *args = face->args(face->cpu);
    Machine m = begin(face->cpu);

    arm(&m, 0, 10, 0);
    face->start(&m);
    count_insns(&m, 15);
    migrate_machine(&m, args);
    assert_beyond(&m, 0, 5);
    g_assert_cmphex(face->overflowed(&m), ==, 1);
    preset(&m, 0, 10);
    face->rearm(&m);
    g_assert_cmphex(face->overflowed(&m), ==, 0);
    stop(&m);
}

static void test_migration_frozen(void)
{
    g_autofree char *args = face->args(face->full_cpu);
    Machine m = begin(face->full_cpu);

    count_with_freeze(&m);
    migrate_machine(&m, args);
    g_assert_cmphex(wanted(&m), ==, 0);
    check_thaw(&m);
    stop(&m);
}

/* Set the upper half of a 64-bit value, wherever it is in a stream. */
static void widen_in_stream(const char *path, uint32_t value)
{
    const uint64_t narrow = cpu_to_be64(value);
    const uint32_t high = UINT32_MAX;
    g_autofree char *stream = NULL;
    char *found, *from;
    gsize length;

    g_assert_true(g_file_get_contents(path, &stream, &length, NULL));
    from = stream;
    while ((found = memmem(from, stream + length - from, &narrow,
                           sizeof(narrow)))) {
        memcpy(found, &high, sizeof(high));
        from = found + sizeof(narrow);
    }
    g_assert_true(from != stream);
    g_assert_true(g_file_set_contents(path, stream, length, NULL));
}

/*
 * A loaded value wider than the counter is truncated, as by a write.  A PMU in
 * use and one that is not may store it in different subsections.
 */
static void migrate_width(bool used)
{
    const uint32_t value = 0x5a17c3e9;
    char *path = new_file();
    g_autofree char *to = g_strdup_printf("%s -incoming file:%s", face->cpu,
                                          path);
    g_autofree char *args = face->args(to);
    Machine m = begin(face->cpu);

    if (used) {
        face->select(&m, 0, face->insns, COUNT_ALL);
    }
    face->write(&m, 0, value);
    save(&m, path);
    stop(&m);
    widen_in_stream(path, value);
    m = start(args);
    wait_for_status(&m, "completed");
    g_assert_cmphex(face->read(&m, 0), ==,
                    deposit64(MAKE_64BIT_MASK(0, face->width), 0, 32, value));
    stop(&m);
    delete_file(path);
}

static void test_migration_of_width(void)
{
    migrate_width(true);
}

static void test_migration_of_width_unused(void)
{
    migrate_width(false);
}

static void test_migration_mismatch(const void *data)
{
    const Mismatch *mismatch = data;
    char *path = new_file();
    g_autofree char *to = g_strdup_printf("%s -incoming file:%s",
                                          mismatch->to, path);
    g_autofree char *args = face->args(to);
    g_autofree char *from = face->args(mismatch->from);
    g_autofree char *message = NULL;
    Machine m = start(from);

    arm(&m, 0, 1000, 0);
    save(&m, path);
    stop(&m);
    message = complaint(args);
    g_assert_nonnull(strstr(message, mismatch->message));
    delete_file(path);
}

/* Without a PMU, registers are ignored. */
static void test_no_pmu(void)
{
    g_autofree char *args = face->args(face->cpu_without);
    Machine m = start(args);
    unsigned i;

    for (i = 0; i < face->nr_states; i++) {
        g_test_message("register 0x%x", face->states[i].reg);
        face->write_register(&m, face->states[i].reg, UINT64_MAX);
        g_assert_cmphex(face->read_register(&m, face->states[i].reg), ==, 0);
    }
    stop(&m);
}

static void test_refusals(void)
{
    unsigned i;

    for (i = 0; i < face->nr_refusals; i++) {
        g_autofree char *args = face->args(face->refusals[i].cpu);
        g_autofree char *message = complaint(args);

        g_assert_nonnull(strstr(message, face->refusals[i].message));
        g_assert_nonnull(strstr(message, face->refusals[i].allowed));
    }
}

/**
 * struct Case - a test, of a face
 * @run: runs it without data
 * @run_with: runs it with @data
 */
typedef struct Case {
    const Face *face;
    void (*run)(void);
    void (*run_with)(const void *data);
    const void *data;
} Case;

static void run_case(const void *opaque)
{
    const Case *c = opaque;

    face = c->face;
    if (c->run) {
        c->run();
    } else {
        c->run_with(c->data);
    }
}

static void add_case(const char *path, Case c)
{
    g_autofree char *full = g_strdup_printf("vpmu/%s/%s", face->name, path);

    c.face = face;
    qtest_add_data_func_full(full, g_memdup2(&c, sizeof(c)), run_case, g_free);
}

void add(const char *path, void (*test)(void))
{
    add_case(path, (Case) { .run = test });
}

void add_data(const char *path, const char *name, const void *data,
              void (*test)(const void *data))
{
    g_autofree char *full = g_strdup_printf("%s/%s", path, name);

    add_case(full, (Case) { .run_with = test, .data = data });
}

void add_number(const char *path, unsigned n, void (*test)(const void *data))
{
    g_autofree char *name = g_strdup_printf("%u", n);

    add_data(path, name, GUINT_TO_POINTER(n), test);
}

static void add_counting(void)
{
    add("count/start-and-stop", test_start_and_stop);
    add("count/running", test_running);
    add("count/wrap", test_wrap);
    add("count/modes", test_modes);
    add("count/events", test_events);
    add("count/uncounted-is-logged", test_uncounted_is_logged);
    add("count/two-cpus", test_two_cpus);
    add("hotplug/counts", test_hotplug);
}

static void add_overflow(void)
{
    add("overflow/at-the-event", test_overflow);
    add("overflow/once", test_once);
    add("overflow/period", test_period);
    add("overflow/period-of-one", test_period_of_one);
    add("overflow/two-at-once", test_two_at_once);
    add("overflow/not-unless-asked", test_no_interrupt_unless_asked);
    add("overflow/is-traced", test_overflow_is_traced);
    if (face->freeze_on_overflow) {
        add("freeze/on-overflow", test_freeze);
        add("migration/frozen", test_migration_frozen);
    }
    add("freeze/not-unless-asked", test_no_freeze_unless_asked);
}

static void add_life(void)
{
    unsigned i;

    add("reset", test_reset);
    add("migration/state", test_migration);
    add("migration/goes-on", test_migration_goes_on);
    add("migration/overflow", test_migration_of_overflow);
    add("migration/width", test_migration_of_width);
    add("migration/width-unused", test_migration_of_width_unused);
    for (i = 0; i < face->nr_mismatches; i++) {
        add_data("migration/mismatch", face->mismatches[i].name,
                 &face->mismatches[i], test_migration_mismatch);
    }
    add("no-pmu/keeps-nothing", test_no_pmu);
    add("refusals", test_refusals);
}

static void add_face(const Face *of)
{
    face = of;
    add_counting();
    add_overflow();
    add_life();
    add_monitor_cases();
    add_profile_cases(of == &intel_face.face || g_test_slow());
    face->add_cases();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (g_str_equal(qtest_get_arch(), "ppc64")) {
        add_face(&ppc_face);
    } else {
        add_face(&intel_face.face);
        add_face(&amd_face.face);
        add_kvm_cases();
    }
    return g_test_run();
}
