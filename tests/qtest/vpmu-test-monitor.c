/*
 * QTest of the virtual PMU: monitor commands and events
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "qobject/qnum.h"
#include "qobject/qstring.h"
#include "qemu/timer.h"
#include "vpmu-test.h"

/*
 * query-pmu
 */

static QList *query(Machine *m)
{
    QDict *reply = qtest_qmp(m->qts, "{'execute': 'query-pmu'}");
    QList *list = qdict_get_qlist(reply, "return");

    g_assert_nonnull(list);
    qobject_ref(list);
    qobject_unref(reply);
    return list;
}

static QDict *nth(const QList *list, unsigned n)
{
    const QListEntry *entry = qlist_first(list);

    while (n--) {
        entry = qlist_next(entry);
    }
    return qobject_to(QDict, qlist_entry_obj(entry));
}

QDict *query_cpu(Machine *m)
{
    QList *list = query(m);
    QDict *cpu = nth(list, m->cpu);

    g_assert_cmpint(qdict_get_int(cpu, "cpu-index"), ==, m->cpu);
    qobject_ref(cpu);
    qobject_unref(list);
    return cpu;
}

QDict *query_part(Machine *m, const char *name)
{
    QDict *cpu = query_cpu(m);
    QDict *part = qdict_get_qdict(cpu, name);

    qobject_ref(part);
    qobject_unref(cpu);
    return part;
}

static QDict *query_pmu(Machine *m)
{
    return query_part(m, "pmu");
}

QDict *query_counter(Machine *m, unsigned counter)
{
    QDict *pmu = query_pmu(m);
    QDict *c = nth(qdict_get_qlist(pmu, "counters"), counter);

    qobject_ref(c);
    qobject_unref(pmu);
    return c;
}

uint64_t get_uint(const QDict *dict, const char *key)
{
    return qnum_get_uint(qobject_to(QNum, qdict_get(dict, key)));
}

static char *get_words(const QDict *dict, const char *key)
{
    GString *words = g_string_new(NULL);
    const QListEntry *e;

    QLIST_FOREACH_ENTRY(qdict_get_qlist(dict, key), e) {
        g_string_append_printf(words, "%s%s", words->len ? " " : "",
                               qstring_get_str(qobject_to(QString, e->value)));
    }
    return g_string_free(words, FALSE);
}

void assert_words(const QDict *dict, const char *key, const char *expected)
{
    g_autofree char *words = get_words(dict, key);

    g_assert_cmpstr(words, ==, expected);
}

void assert_stopped_by(Machine *m, unsigned counter, const char *expected)
{
    QDict *c = query_counter(m, counter);

    assert_words(c, "stopped-by", expected);
    qobject_unref(c);
}

/* Let a counter of instructions overflow after so many. */
static void arm(Machine *m, unsigned counter, uint64_t left, unsigned flags)
{
    face->select(m, counter, face->insns, COUNT_ALL | flags);
    face->write(m, counter,
                (face->overflow_at - left) & LOW_BITS(face->width));
}

static void test_pmu(void)
{
    Machine m = begin(face->cpu);
    QDict *cpu = query_cpu(&m);
    QDict *pmu = qdict_get_qdict(cpu, "pmu");

    g_assert_cmpstr(qdict_get_str(cpu, "engine"), ==, "qtest");
    g_assert_cmpstr(qdict_get_str(pmu, "kind"), ==, face->kind);
    g_assert_cmpstr(qdict_get_str(pmu, "vendor"), ==, face->vendor);
    g_assert_cmpint(qdict_get_int(pmu, "width"), ==, face->width);
    g_assert_cmpint(qlist_size(qdict_get_qlist(pmu, "counters")), ==,
                    face->nr_shown);
    assert_words(cpu, "observers", "");
    g_assert_false(qdict_haskey(pmu, "filter"));
    g_assert_false(qdict_haskey(pmu, "hidden"));
    g_assert_false(qdict_haskey(cpu, "host"));
    qobject_unref(cpu);
    stop(&m);
}

static void test_counter(void)
{
    Machine m = begin(face->cpu);
    QDict *c;

    arm(&m, 0, 1000, INTERRUPT);
    face->start(&m);
    count_insns(&m, 600);
    c = query_counter(&m, 0);
    g_assert_cmpstr(qdict_get_str(c, "register"), ==, face->counter_name);
    g_assert_cmpstr(qdict_get_str(c, "event"), ==, "instructions");
    g_assert_cmphex(get_uint(c, "code"), ==, face->shown_insns);
    g_assert_true(qdict_get_bool(c, "running"));
    g_assert_true(qdict_get_bool(c, "interrupts"));
    g_assert_cmphex(get_uint(c, "value"), ==,
                    (face->overflow_at - 400) & LOW_BITS(face->width));
    g_assert_cmpint(get_uint(c, "left"), ==, 400);
    g_assert_cmpint(get_uint(c, "overflows"), ==, 0);
    assert_words(c, "stopped-by", "");
    qobject_unref(c);
    stop(&m);
}

/* A counter that counts in no mode does not run. */
static void test_modes(void)
{
    Machine m = begin(face->cpu);

    face->select(&m, 0, face->insns, COUNT_USER);
    face->select(&m, 1, face->insns, COUNT_KERNEL);
    face->select(&m, 2, face->insns, COUNT_ALL);
    face->select(&m, 3, face->insns, 0);
    face->start(&m);
    for (unsigned i = 0; i < NR_COUNTERS; i++) {
        QDict *c = query_counter(&m, i);

        assert_words(c, "modes", face->shown_modes[i]);
        g_assert_cmpint(qdict_get_bool(c, "running"), ==, i < 3);
        qobject_unref(c);
    }
    stop(&m);
}

/* An event that is not counted has no name. */
static void test_unknown(void)
{
    Machine m = begin(face->cpu);
    QDict *c;

    face->select(&m, 0, face->unknown, COUNT_ALL);
    face->start(&m);
    c = query_counter(&m, 0);
    g_assert_false(qdict_haskey(c, "event"));
    g_assert_false(qdict_get_bool(c, "running"));
    assert_words(c, "stopped-by", "event");
    qobject_unref(c);
    stop(&m);
}

static uint64_t folds(Machine *m)
{
    QDict *pmu = query_pmu(m);
    uint64_t n = get_uint(pmu, "folds");

    qobject_unref(pmu);
    return n;
}

/* Overflows not yet noticed are shown, and showing them does not fold. */
static void test_undisturbed(void)
{
    Machine m = begin(face->cpu);
    uint64_t before;
    QDict *c;

    arm(&m, 0, 10, 0);
    face->start(&m);
    count_insns(&m, 15);
    before = folds(&m);
    c = query_counter(&m, 0);
    g_assert_cmphex(get_uint(c, "value"), ==, face->overflow_at + 5);
    g_assert_cmpint(get_uint(c, "overflows"), ==, 1);
    qobject_unref(c);
    g_assert_cmpint(folds(&m), ==, before);
    face->read(&m, 0);
    g_assert_cmpint(folds(&m), >, before);
    stop(&m);
}

static uint64_t overflows(Machine *m, unsigned counter)
{
    QDict *c = query_counter(m, counter);
    uint64_t n = get_uint(c, "overflows");

    qobject_unref(c);
    return n;
}

/*
 * All overflows are counted, even without a read in between, and kept by a
 * reset.
 */
static void test_overflows(void)
{
    Machine m = begin(face->cpu);

    arm(&m, 0, 10, 0);
    arm(&m, 1, 10, INTERRUPT);
    face->start(&m);
    count_insns(&m, 3 * BIT64(face->width) + 10);
    g_assert_cmpint(overflows(&m, 0), ==, 4);
    g_assert_cmpint(overflows(&m, 1), ==, 4);
    face->stop(&m);
    qtest_system_reset(m.qts);
    g_assert_cmpint(overflows(&m, 0), ==, 4);
    stop(&m);
}

/* Numbers of overflows do not migrate. */
static void test_overflows_and_migration(void)
{
    g_autofree char *args = face->args(face->cpu);
    Machine m = begin(face->cpu);

    arm(&m, 0, 10, INTERRUPT);
    face->start(&m);
    count_insns(&m, 15);
    migrate_machine(&m, args);
    g_assert_cmpint(overflows(&m, 0), ==, 0);
    stop(&m);
}

static void test_pending(void)
{
    Machine m = begin(face->cpu);
    QDict *pmu;

    arm(&m, 0, 10, INTERRUPT);
    face->start(&m);
    count_insns(&m, 9);
    pmu = query_pmu(&m);
    assert_words(pmu, "pending", "");
    g_assert_cmpint(get_uint(pmu, "interrupts"), ==, 0);
    qobject_unref(pmu);
    count_insns(&m, 1);
    pmu = query_pmu(&m);
    assert_words(pmu, "pending", face->shown_pending);
    g_assert_cmpint(get_uint(pmu, "interrupts"), ==, 1);
    qobject_unref(pmu);
    g_assert_true(face->interrupted(&m));
    pmu = query_pmu(&m);
    assert_words(pmu, "pending", "");
    g_assert_cmpint(get_uint(pmu, "interrupts"), ==, 1);
    qobject_unref(pmu);
    stop(&m);
}

static void test_no_pmu(void)
{
    g_autofree char *args = face->args(face->cpu_without);
    Machine m = start(args);
    QDict *cpu = query_cpu(&m);

    g_assert_cmpstr(qdict_get_str(cpu, "engine"), ==, "none");
    g_assert_false(qdict_haskey(cpu, "pmu"));
    qobject_unref(cpu);
    stop(&m);
}

static void test_hotplug(void)
{
    g_autofree char *cpu = g_strdup_printf("%s -smp 1,maxcpus=2", face->cpu);
    Machine m = begin(cpu);
    QList *list;

    face->hotplug(&m);
    list = query(&m);
    g_assert_cmpint(qlist_size(list), ==, 2);
    qobject_unref(list);
    m.cpu = 1;
    face->select(&m, 2, face->insns, COUNT_ALL);
    face->start(&m);
    count_insns(&m, 7);
    qobject_unref(query_counter(&m, 2));
    stop(&m);
}

static const char filter[] =
    "%s -S -accel tcg,pmu-filter=f0 -object '{\"qom-type\": \"kvm-pmu-filter\","
    " \"id\": \"f0\", \"action\": \"deny\", \"events\":"
    " [{\"format\": \"raw\", \"code\": %" PRIu64 "}]}'";

static void test_filter(void)
{
    g_autofree char *cpu = g_strdup_printf(filter, face->cpu,
                                           face->shown_insns & 0xffff);
    Machine m = begin(cpu);
    QDict *pmu, *f;

    face->select(&m, 0, face->insns, COUNT_ALL);
    face->start(&m);
    assert_stopped_by(&m, 0, "filter");
    pmu = query_pmu(&m);
    f = qdict_get_qdict(pmu, "filter");
    g_assert_cmpstr(qdict_get_str(f, "id"), ==, "f0");
    g_assert_cmpstr(qdict_get_str(f, "action"), ==, "deny");
    g_assert_cmpint(qlist_size(qdict_get_qlist(f, "events")), ==, 1);
    qobject_unref(pmu);
    stop(&m);
}

static void test_errors(void)
{
    Machine m = begin(face->cpu);
    QDict *error = qtest_qmp_assert_failure_ref(
        m.qts, "{'execute': 'query-pmu', 'arguments': {'cpu-index': 0}}");

    g_assert_nonnull(strstr(qdict_get_str(error, "desc"), "cpu-index"));
    qobject_unref(error);
    stop(&m);
}

static void assert_no_blocks(Machine *m)
{
    QDict *error = qtest_qmp_assert_failure_ref(
        m->qts, "{'execute': 'tcg-keep-blocks'}");

    g_assert_nonnull(strstr(qdict_get_str(error, "desc"), "no file"));
    qobject_unref(error);
}

/* What guests keep is tested with programs (tests/vpmu-perf). */
static void test_blocks(void)
{
    char *file = new_file();
    g_autofree char *args = g_strdup_printf("-S -accel tcg,blocks=%s", file);
    Machine with = start(args), without = start("-S -accel tcg");
    QDict *blocks = qtest_qmp_assert_success_ref(
        with.qts, "{'execute': 'tcg-keep-blocks'}");

    g_assert_cmpint(qdict_get_int(blocks, "translated"), ==, 0);
    g_assert_cmpint(qdict_get_int(blocks, "taken"), ==, 0);
    g_assert_false(qdict_get_bool(blocks, "written"));
    qobject_unref(blocks);
    assert_no_blocks(&without);
    stop(&with);
    stop(&without);
    delete_file(file);
}

/*
 * info pmu
 */

void assert_fits(const char *table)
{
    g_auto(GStrv) lines = g_strsplit(table, "\r\n", 0);

    for (char **line = lines; *line; line++) {
        g_test_message("%s", *line);
        g_assert_cmpint(strlen(*line), <=, 80);
    }
}

/* With the longest names and numbers. */
static void test_table(void)
{
    Machine m = begin(face->full_cpu);
    g_autofree char *table = NULL, *overflows = NULL;

    face->select(&m, 1, face->unknown, COUNT_USER);
    arm(&m, 0, 1, INTERRUPT);
    face->start(&m);
    count_insns(&m, 12345 * BIT64(face->width));
    table = qtest_hmp(m.qts, "info pmu");
    assert_fits(table);
    g_assert_nonnull(strstr(table, "CPU 0: "));
    g_assert_nonnull(strstr(table, face->counter_name));
    g_assert_nonnull(strstr(table, " instructions "));
    g_assert_nonnull(strstr(table, " 12345\r\n"));
    g_assert_nonnull(strstr(table, "counts in: "));
    g_assert_nonnull(strstr(table, "stopped by: "));
    g_assert_nonnull(strstr(table, "setup: code "));
    g_assert_nonnull(strstr(table, face->shown_pending));
    stop(&m);
}

static void test_table_without_pmu(void)
{
    g_autofree char *args = face->args(face->cpu_without);
    Machine m = start(args);
    g_autofree char *table = qtest_hmp(m.qts, "info pmu");

    g_assert_cmpstr(table, ==, "CPU 0: no PMU\r\n");
    stop(&m);
}

/*
 * query-stats
 */

/* Query a statistic of a machine, or of its CPUs. */
static QList *query_stats(Machine *m, const char *target, const char *name)
{
    QDict *reply = qtest_qmp(
        m->qts, "{'execute': 'query-stats', 'arguments': {'target': %s,"
        " 'providers': [{'provider': 'pmu', 'names': [%s]}]}}", target, name);
    QList *list = qdict_get_qlist(reply, "return");

    g_assert_nonnull(list);
    qobject_ref(list);
    qobject_unref(reply);
    return list;
}

/* The value of a statistic, of the machine or of the first CPU */
static uint64_t stat_of(Machine *m, const char *target, const char *name)
{
    QList *list = query_stats(m, target, name);
    const QDict *first = nth(list, 0);
    const QList *stats = qdict_get_qlist(first, "stats");
    const QDict *stat = nth(stats, 0);
    uint64_t value = get_uint(stat, "value");

    g_assert_cmpint(qlist_size(stats), ==, 1);
    g_assert_cmpstr(qdict_get_str(stat, "name"), ==, name);
    g_assert_cmpint(qdict_haskey(first, "qom-path"), ==,
                    g_str_equal(target, "vcpu"));
    qobject_unref(list);
    return value;
}

static void assert_unobserved(Machine *m)
{
    QDict *cpu = query_cpu(m);

    g_assert_true(qlist_empty(qdict_get_qlist(cpu, "observers")));
    qobject_unref(cpu);
}

static void assert_unknown(Machine *m, const char *target, const char *name)
{
    QList *none = query_stats(m, target, name);

    g_assert_cmpint(qlist_size(none), ==, 0);
    qobject_unref(none);
}

/* A profile that counts an event, and hardly ever takes a sample. */
static void begin_counting(Machine *m, const char *event, const char *modes)
{
    qtest_qmp_assert_success(
        m->qts, "{'execute': 'object-add', 'arguments': {'qom-type': "
        "'pmu-profile', 'id': %s, 'event': %s, 'modes': %s, 'period': "
        "1000000000000000, 'file': '/dev/null'}}", event, event, modes);
}

static void end_counting(Machine *m, const char *event)
{
    qtest_qmp_assert_success(m->qts, "{'execute': 'object-del',"
                             " 'arguments': {'id': %s}}", event);
}

static const char *const observed[] = {
    "instructions", "branches", "interrupts", "exceptions",
};

/* A query does not begin to count; a profile's event is known until it ends. */
static void check_events(Machine *m)
{
    for (unsigned i = 0; i < ARRAY_SIZE(observed); i++) {
        assert_unknown(m, "vcpu", observed[i]);
        assert_unknown(m, "vm", observed[i]);
    }
    assert_unobserved(m);
    for (unsigned i = 0; i < ARRAY_SIZE(observed); i++) {
        begin_counting(m, observed[i], "");
    }
    count_insns(m, 100);
    count(m, PMU_TALLY_JUMPS, face->kernel, 20);
    count(m, PMU_TALLY_INTERRUPTS, face->kernel, 3);
    count(m, PMU_TALLY_EXCEPTIONS, face->user, 4);
    g_assert_cmpint(stat_of(m, "vcpu", "instructions"), ==, 100);
    g_assert_cmpint(stat_of(m, "vcpu", "branches"), ==, 20);
    g_assert_cmpint(stat_of(m, "vcpu", "interrupts"), ==, 3);
    g_assert_cmpint(stat_of(m, "vcpu", "exceptions"), ==, 4);
    g_assert_cmpint(stat_of(m, "vm", "instructions"), ==, 100);
}

static void test_stats(void)
{
    Machine m = begin(face->cpu);

    count_insns(&m, 1000);
    check_events(&m);
    qtest_system_reset(m.qts);
    g_assert_cmpint(stat_of(&m, "vcpu", "instructions"), ==, 100);
    end_counting(&m, "instructions");
    assert_unknown(&m, "vcpu", "instructions");
    stop(&m);
}

static void test_stats_without_pmu(void)
{
    g_autofree char *args = face->args(face->cpu_without);
    Machine m = start(args);

    assert_unknown(&m, "vcpu", "overflows");
    check_events(&m);
    stop(&m);
}

/* As a monitor of machines asks, which does not know the names */
static void test_stats_without_names(void)
{
    Machine m = begin(face->cpu);

    qtest_qmp_assert_success(m.qts, "{'execute': 'query-stats',"
                             " 'arguments': {'target': 'vm'}}");
    qtest_qmp_assert_success(m.qts, "{'execute': 'query-stats',"
                             " 'arguments': {'target': 'vcpu'}}");
    g_free(qtest_hmp(m.qts, "info stats vm"));
    assert_unobserved(&m);
    stop(&m);
}

/* A profile of programs only does not give the number for the whole guest. */
static void test_stats_of_modes(void)
{
    Machine m = begin(face->cpu);

    begin_counting(&m, "instructions", "u");
    count_insns(&m, 100);
    assert_unknown(&m, "vcpu", "instructions");
    stop(&m);
}

/* These are counted in any case. */
static void test_stats_of_model(void)
{
    Machine m = begin(face->cpu);
    uint64_t folds;

    arm(&m, 0, 10, INTERRUPT);
    arm(&m, 1, 15, 0);
    face->start(&m);
    folds = stat_of(&m, "vm", "folds");
    g_assert_cmpint(stat_of(&m, "vm", "folds"), ==, folds);
    count_insns(&m, 20);
    g_assert_cmpint(stat_of(&m, "vm", "folds"), >, folds);
    g_assert_cmpint(stat_of(&m, "vm", "overflows"), ==, 2);
    g_assert_cmpint(stat_of(&m, "vm", "pmis"), ==, 1);
    assert_unobserved(&m);
    stop(&m);
}

static void test_stats_of_two_cpus(void)
{
    g_autofree char *cpu = g_strdup_printf("%s -smp 2", face->cpu);
    Machine m = begin(cpu);
    QList *both;

    begin_counting(&m, "instructions", "");
    count_insns(&m, 100);
    m.cpu = 1;
    count_insns(&m, 11);
    g_assert_cmpint(stat_of(&m, "vm", "instructions"), ==, 111);
    both = query_stats(&m, "vcpu", "instructions");
    g_assert_cmpint(qlist_size(both), ==, 2);
    qobject_unref(both);
    stop(&m);
}

static unsigned nr_numbers(const QList *schemas, const char *target)
{
    const QListEntry *e;

    QLIST_FOREACH_ENTRY(schemas, e) {
        const QDict *schema = qobject_to(QDict, e->value);

        if (g_str_equal(qdict_get_str(schema, "target"), target)) {
            return qlist_size(qdict_get_qlist(schema, "stats"));
        }
    }
    return 0;
}

/* Each statistic is in the schema, and in the same order. */
static void test_stats_schema(void)
{
    Machine m = begin(face->cpu);
    g_autofree char *table = NULL;
    QDict *reply = qtest_qmp(
        m.qts, "{'execute': 'query-stats-schemas',"
        " 'arguments': {'provider': 'pmu'}}");
    const QList *schemas = qdict_get_qlist(reply, "return");

    g_assert_cmpint(nr_numbers(schemas, "vcpu"), ==, 9);
    g_assert_cmpint(nr_numbers(schemas, "vm"), ==, 9);
    begin_counting(&m, "instructions", "");
    table = qtest_hmp(m.qts, "info stats vm * pmu");
    g_test_message("%s", table);
    g_assert_null(strstr(table, "failed"));
    g_assert_nonnull(strstr(table, "instructions (cumulative): 0"));
    g_assert_nonnull(strstr(table, "folds (cumulative): "));
    g_assert_nonnull(strstr(table, "lost-samples (cumulative): 0"));
    qobject_unref(reply);
    stop(&m);
}

/*
 * PMU_LOST
 */

static void lose(Machine *m, unsigned cpu, uint64_t counters, uint64_t losses)
{
    g_strfreev(qtest_command(m->qts, 1, "vpmu_lost %u 0x%" PRIx64 " %" PRIu64,
                             cpu, counters, losses));
}

static void assert_lost(Machine *m, unsigned cpu, const char *lost,
                        uint64_t losses)
{
    QDict *event = qtest_qmp_eventwait_ref(m->qts, "PMU_LOST");
    const QDict *data = qdict_get_qdict(event, "data");

    g_assert_cmpint(qdict_get_int(data, "cpu-index"), ==, cpu);
    g_assert_cmpint(get_uint(data, "losses"), ==, losses);
    assert_words(data, "lost", lost);
    qobject_unref(event);
}

/*
 * All losses of a CPU within a second make one event.  This does not delay
 * events of other CPUs.
 */
static void test_lost_rate(void)
{
    g_autofree char *cpu = g_strdup_printf("%s -smp 2", face->cpu);
    Machine m = begin(cpu);

    lose(&m, 0, 1, 1);
    lose(&m, 0, 0, 1);
    lose(&m, 0, 1, 2);
    lose(&m, 1, 0, 7);
    assert_lost(&m, 0, face->counter_name, 1);
    assert_lost(&m, 1, "", 7);
    qtest_clock_step(m.qts, 1000 * SCALE_MS);
    assert_lost(&m, 0, face->counter_name, 2);
    lose(&m, 0, 0, 2);
    qtest_clock_step(m.qts, 1000 * SCALE_MS);
    assert_lost(&m, 0, "", 2);
    stop(&m);
}

void add_monitor_cases(void)
{
    add("monitor/pmu", test_pmu);
    add("monitor/counter", test_counter);
    add("monitor/modes", test_modes);
    add("monitor/unknown-event", test_unknown);
    add("monitor/undisturbed", test_undisturbed);
    add("monitor/overflows", test_overflows);
    add("monitor/overflows-and-migration", test_overflows_and_migration);
    add("monitor/pending", test_pending);
    add("monitor/no-pmu", test_no_pmu);
    add("monitor/hotplug", test_hotplug);
    add("monitor/filter", test_filter);
    add("monitor/errors", test_errors);
    add("monitor/blocks", test_blocks);
    add("monitor/table", test_table);
    add("monitor/table-without-pmu", test_table_without_pmu);
    add("monitor/stats", test_stats);
    add("monitor/stats-without-pmu", test_stats_without_pmu);
    add("monitor/stats-without-names", test_stats_without_names);
    add("monitor/stats-of-modes", test_stats_of_modes);
    add("monitor/stats-of-model", test_stats_of_model);
    add("monitor/stats-of-two-cpus", test_stats_of_two_cpus);
    add("monitor/stats-schema", test_stats_schema);
    add("monitor/lost-rate", test_lost_rate);
}
