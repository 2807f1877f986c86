/*
 * QTest of the virtual PMU: profiles, taken from outside the guest
 *
 * Tests that read profiles with perf check their contents (tests/unit,
 * tests/guest/linux).  These cases check when samples are taken, how many there
 * are, and how a profile ends.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include <sys/resource.h>
#include <sys/stat.h>
#include "qapi/error.h"
#include "qemu/bswap.h"
#include "qemu/sockets.h"
#include "qobject/qdict.h"
#include "qobject/qjson.h"
#include "qobject/qlist.h"
#include "standard-headers/linux/qemu_fw_cfg.h"
#include "libqos/fw_cfg.h"
#include "libqos/malloc-pc.h"
#include "libqos/pci-pc.h"
#include "hw/misc/vmcoreinfo.h"
#include "vpmu-test-x86.h"

#define PERIOD 1000

/* A time after which QEMU is assumed to write nothing */
#define NEVER_S 120

/**
 * struct Word - a word of a stream, in the byte order of QEMU's host
 * @little: in little-endian order
 * @big: in big-endian order
 *
 * This program cannot tell which order it is: QEMU's host may be emulated.
 */
typedef struct Word {
    char little[9], big[9];
} Word;

#define WORD_SIZE 8

/* The magic number at a stream's beginning */
static const Word magic = { "PERFILE2", "2ELIFREP" };

/* PERF_RECORD_FINISHED_INIT: its type, and the size of its header in bytes */
static const Word flushed = { "\x52\0\0\0\0\0\x8", "\0\0\0\x52\0\0\0\x8" };

static bool has_word(const void *bytes, size_t size, const Word *word)
{
    return memmem(bytes, size, word->little, WORD_SIZE)
           || memmem(bytes, size, word->big, WORD_SIZE);
}

/**
 * struct Profiled - a machine, and a directory for its profiles
 */
typedef struct Profiled {
    Machine m;
    char *dir;
} Profiled;

/*
 * Machines and profiles
 */

/* Start a machine with the options @more. */
static Profiled start_profiled_with(const char *cpu, const char *more)
{
    g_autofree char *args = face->args(cpu);
    g_autofree char *all = g_strdup_printf("%s %s", args, more);
    Profiled p = { .m = start(all) };

    p.dir = g_dir_make_tmp("vpmu-profile-XXXXXX", NULL);
    g_assert_nonnull(p.dir);
    return p;
}

static Profiled start_profiled(const char *cpu)
{
    return start_profiled_with(cpu, "");
}

static char *file_of(const Profiled *p, const char *name)
{
    return g_strdup_printf("%s/%s", p->dir, name);
}

/* Make an object with the properties in JSON, and a file. */
static QDict *object_with(const Profiled *p, const char *id, const char *json)
{
    QDict *object = qobject_to(QDict, qobject_from_json(json, &error_abort));
    g_autofree char *file = file_of(p, id);

    qdict_put_str(object, "qom-type", "pmu-profile");
    qdict_put_str(object, "id", id);
    if (!qdict_haskey(object, "file") && !qdict_haskey(object, "chardev")) {
        qdict_put_str(object, "file", file);
    }
    return object;
}

static void add_profile(Profiled *p, const char *id, const char *json)
{
    qtest_qmp_assert_success(p->m.qts, "{'execute': 'object-add',"
                             " 'arguments': %p}", object_with(p, id, json));
}

static void delete_profile(Profiled *p, const char *id)
{
    qtest_qmp_assert_success(p->m.qts, "{'execute': 'object-del',"
                             " 'arguments': {'id': %s}}", id);
}

static uint64_t property(Profiled *p, const char *id, const char *name)
{
    g_autofree char *path = g_strdup_printf("/objects/%s", id);
    QDict *answer = qtest_qmp(p->m.qts, "{'execute': 'qom-get', 'arguments': "
                              "{'path': %s, 'property': %s}}", path, name);
    uint64_t value = qdict_get_int(answer, "return");

    qobject_unref(answer);
    return value;
}

static void enable(Profiled *p, const char *id, bool enabled)
{
    g_autofree char *path = g_strdup_printf("/objects/%s", id);

    qtest_qmp_assert_success(p->m.qts, "{'execute': 'qom-set', 'arguments': "
                             "{'path': %s, 'property': 'enabled',"
                             " 'value': %i}}", path, enabled);
}

/* Get the number of samples: a disabled profile has written them all. */
static uint64_t samples(Profiled *p, const char *id)
{
    enable(p, id, false);
    return property(p, id, "samples");
}

static void end(Profiled *p)
{
    g_autofree char *remove = g_strdup_printf("rm -rf '%s'", p->dir);

    stop(&p->m);
    g_assert_cmpint(system(remove), ==, 0);
    g_free(p->dir);
}

/*
 * Times of samples
 */

static void check_period(const char *cpu)
{
    Profiled p = start_profiled(cpu);

    add_profile(&p, "p", "{'period': 1000}");
    count_insns(&p.m, PERIOD - 1);
    enable(&p, "p", false);
    g_assert_cmpuint(property(&p, "p", "samples"), ==, 0);
    enable(&p, "p", true);
    /* Disabling drops the events counted since the last sample. */
    count_insns(&p.m, 10 * PERIOD + PERIOD - 1);
    g_assert_cmpuint(samples(&p, "p"), ==, 10);
    g_assert_cmpuint(property(&p, "p", "lost"), ==, 0);
    end(&p);
}

static void test_period(void)
{
    check_period(face->cpu);
}

static void test_without_pmu(void)
{
    check_period(face->cpu_without);
}

/* While no time passes, each period is eight times the one before. */
static void test_frequency(void)
{
    Profiled p = start_profiled(face->cpu);

    qtest_clock_step(p.m.qts, 1000000);
    add_profile(&p, "p", "{'frequency': 1000}");
    count_insns(&p.m, 1 + 1 + 8 + 64 + 512);
    g_assert_cmpuint(samples(&p, "p"), ==, 5);
    enable(&p, "p", true);
    count_insns(&p.m, 1 + 1 + 8);
    g_assert_cmpuint(samples(&p, "p"), ==, 8);
    /* Samples take ten times too long: the period shrinks to an eighth. */
    enable(&p, "p", true);
    count_insns(&p.m, 1 + 1 + 8);
    qtest_clock_step(p.m.qts, 10000000);
    count_insns(&p.m, 64 + 8);
    g_assert_cmpuint(samples(&p, "p"), ==, 13);
    /* Twice too long, then half as long: the period is halved, then doubled. */
    enable(&p, "p", true);
    count_insns(&p.m, 1 + 1);
    qtest_clock_step(p.m.qts, 2000000);
    count_insns(&p.m, 8);
    qtest_clock_step(p.m.qts, 500000);
    count_insns(&p.m, 4 + 7);
    g_assert_cmpuint(samples(&p, "p"), ==, 17);
    end(&p);
}

/* Sample by an event's code; without a PMU there are no codes. */
static void test_raw(void)
{
    g_autofree char *json = g_strdup_printf(
        "{'event': 'r%" PRIx64 "', 'period': 1000}", face->shown_insns);
    Profiled p = start_profiled(face->cpu);
    QDict *error;

    add_profile(&p, "p", json);
    count_insns(&p.m, 5 * PERIOD);
    g_assert_cmpuint(samples(&p, "p"), ==, 5);
    end(&p);

    p = start_profiled(face->cpu_without);
    error = qtest_qmp_assert_failure_ref(
        p.m.qts, "{'execute': 'object-add', 'arguments': %p}",
        object_with(&p, "p", json));
    g_assert_nonnull(strstr(qdict_get_str(error, "desc"), "not counted here"));
    qobject_unref(error);
    end(&p);
}

static void test_modes(void)
{
    Profiled p = start_profiled(face->cpu);

    add_profile(&p, "user", "{'period': 1000, 'modes': 'u'}");
    add_profile(&p, "kernel", "{'period': 1000, 'modes': 'k'}");
    count(&p.m, PMU_TALLY_INSNS, face->user, 3 * PERIOD);
    count(&p.m, PMU_TALLY_INSNS, face->kernel, 5 * PERIOD);
    g_assert_cmpuint(samples(&p, "user"), ==, 3);
    g_assert_cmpuint(samples(&p, "kernel"), ==, 5);
    end(&p);
}

/* Nested guests can be excluded only if modes distinguish them. */
static void test_nested_modes(void)
{
    static const char *const letters[] = { "G", "H", "kG", "uH" };
    Profiled p = start_profiled(face->cpu);

    for (unsigned i = 0; i < ARRAY_SIZE(letters); i++) {
        QDict *answer = qtest_qmp(
            p.m.qts, "{'execute': 'object-add', 'arguments': {'qom-type':"
            " 'pmu-profile', 'id': 'p', 'file': '/dev/null', 'modes': %s}}",
            letters[i]);

        if (face->tells_nested) {
            g_assert_true(qdict_haskey(answer, "return"));
            delete_profile(&p, "p");
        } else {
            QDict *error = qdict_get_qdict(answer, "error");

            g_assert_nonnull(strstr(qdict_get_str(error, "desc"),
                                    "do not distinguish"));
        }
        qobject_unref(answer);
    }
    end(&p);
}

/* Several profiles of different events do not disturb each other. */
static void test_several(void)
{
    Profiled p = start_profiled(face->cpu);

    face->select(&p.m, 0, face->insns, COUNT_ALL);
    face->start(&p.m);
    add_profile(&p, "a", "{'period': 1000}");
    add_profile(&p, "b", "{'period': 7}");
    add_profile(&p, "c", "{'period': 3, 'event': 'calls'}");
    count_insns(&p.m, 20 * PERIOD);
    count(&p.m, PMU_TALLY_CALLS, face->user, 10);
    delete_profile(&p, "a");
    count_insns(&p.m, 20 * PERIOD);
    g_assert_cmpuint(samples(&p, "b"), ==, 40 * PERIOD / 7);
    g_assert_cmpuint(samples(&p, "c"), ==, 10 / 3);
    g_assert_cmpuint(face->read(&p.m, 0), ==, 40 * PERIOD);
    end(&p);
}

/* A reset by the guest neither ends a profile nor exposes it. */
static void test_reset(void)
{
    Profiled p = start_profiled(face->cpu);

    add_profile(&p, "p", "{'period': 1000}");
    count_insns(&p.m, PERIOD / 2);
    qtest_system_reset(p.m.qts);
    count_insns(&p.m, PERIOD / 2);
    g_assert_cmpuint(samples(&p, "p"), ==, 1);
    end(&p);
}

static void test_hotplug(void)
{
    Profiled p = start_profiled_with(face->cpu, "-smp 1,maxcpus=2");

    add_profile(&p, "all", "{'period': 1000}");
    add_profile(&p, "first", "{'period': 1000, 'vcpus': [0]}");
    face->hotplug(&p.m);
    p.m.cpu = 1;
    count_insns(&p.m, 4 * PERIOD);
    g_assert_cmpuint(samples(&p, "all"), ==, 4);
    g_assert_cmpuint(samples(&p, "first"), ==, 0);
    end(&p);
}

/* The profile in the monitor's observers; NULL if it observes nothing */
static QDict *observer_of(Profiled *p, const char *id)
{
    QDict *cpu = query_cpu(&p->m), *found = NULL;
    const QListEntry *e;

    QLIST_FOREACH_ENTRY(qdict_get_qlist(cpu, "observers"), e) {
        QDict *o = qobject_to(QDict, e->value);

        if (g_str_equal(qdict_get_str(o, "owner"), id)) {
            g_assert_null(found);
            found = qobject_ref(o);
        }
    }
    qobject_unref(cpu);
    return found;
}

static void assert_time_shown(Profiled *p, const char *id, uint64_t period,
                              const char *modes)
{
    QDict *o = observer_of(p, id);

    g_assert_cmpstr(qdict_get_str(o, "event"), ==, "cpu-clock");
    g_assert_cmpuint(get_uint(o, "period"), ==, period);
    g_assert_cmpuint(get_uint(o, "count"), ==, 0);
    assert_words(o, "modes", modes);
    qobject_unref(o);
}

/* A vCPU that executes nothing takes no time, so there are no samples. */
static void test_time(void)
{
    Profiled p = start_profiled_with(face->cpu, "-smp 1,maxcpus=2");

    add_profile(&p, "default", "{'accounting': 'vcpu'}");
    add_profile(&p, "often", "{'accounting': 'vcpu', 'event': 'cpu-clock',"
                             " 'frequency': 10000, 'modes': 'k'}");
    face->hotplug(&p.m);
    p.m.cpu = 1;
    count_insns(&p.m, 4 * PERIOD);
    assert_time_shown(&p, "default", 1000000, face->shown_modes[2]);
    assert_time_shown(&p, "often", 100000, face->shown_modes[1]);
    g_assert_cmpuint(samples(&p, "often"), ==, 0);
    g_assert_null(observer_of(&p, "often"));
    enable(&p, "often", true);
    assert_time_shown(&p, "often", 100000, face->shown_modes[1]);
    delete_profile(&p, "often");
    g_assert_null(observer_of(&p, "often"));
    g_assert_cmpuint(samples(&p, "default"), ==, 0);
    end(&p);
}

/* The QOM path of a vCPU */
static char *path_of_cpu(Profiled *p, int64_t index)
{
    QDict *reply = qtest_qmp(p->m.qts, "{'execute': 'query-cpus-fast'}");
    const QListEntry *e;
    char *path = NULL;

    QLIST_FOREACH_ENTRY(qdict_get_qlist(reply, "return"), e) {
        const QDict *cpu = qobject_to(QDict, e->value);

        if (qdict_get_int(cpu, "cpu-index") == index) {
            path = g_strdup(qdict_get_str(cpu, "qom-path"));
        }
    }
    qobject_unref(reply);
    return path;
}

/* The number of lost samples in query-stats, of a vCPU or of the machine */
static uint64_t lost_samples(Profiled *p, QDict *whose)
{
    QDict *reply;
    QList *results, *stats;
    uint64_t value;

    qdict_put_obj(whose, "providers",
                  qobject_from_json("[{'provider': 'pmu',"
                                    " 'names': ['lost-samples']}]",
                                    &error_abort));
    reply = qtest_qmp(p->m.qts, "{'execute': 'query-stats',"
                      " 'arguments': %p}", whose);
    results = qdict_get_qlist(reply, "return");
    g_assert_cmpuint(qlist_size(results), ==, 1);
    stats = qdict_get_qlist(qobject_to(QDict, qlist_peek(results)), "stats");
    value = get_uint(qobject_to(QDict, qlist_peek(stats)), "value");
    qobject_unref(reply);
    return value;
}

static uint64_t lost_by_cpu(Profiled *p, int64_t index)
{
    g_autofree char *path = path_of_cpu(p, index);

    return lost_samples(p, qdict_from_jsonf_nofail(
        "{'target': 'vcpu', 'vcpus': [%s]}", path));
}

static uint64_t lost_by_all(Profiled *p)
{
    return lost_samples(p, qdict_from_jsonf_nofail("{'target': 'vm'}"));
}

/* Each sample is either written or counted as lost, on its vCPU. */
static void test_lost(void)
{
    const uint64_t many = 300000;
    g_autofree char *two = g_strdup_printf("%s -smp 2", face->cpu);
    Profiled p = start_profiled(two);
    uint64_t written, lost;

    add_profile(&p, "p", "{'period': 1}");
    p.m.cpu = 1;
    count_insns(&p.m, many);
    written = samples(&p, "p");
    lost = property(&p, "p", "lost");
    g_assert_cmpuint(written, >, 0);
    g_assert_cmpuint(written + lost, ==, many);
    delete_profile(&p, "p");
    g_assert_cmpuint(lost_by_cpu(&p, 0), ==, 0);
    g_assert_cmpuint(lost_by_cpu(&p, 1), ==, lost);
    g_assert_cmpuint(lost_by_all(&p), ==, lost);
    end(&p);
}

/*
 * The end of a profile
 */

static void await_stop(Profiled *p, const char *reason)
{
    QDict *event = qtest_qmp_eventwait_ref(p->m.qts, "PMU_PROFILE_STOPPED");
    QDict *data = qdict_get_qdict(event, "data");

    g_assert_cmpstr(qdict_get_str(data, "id"), ==, "p");
    g_assert_cmpstr(qdict_get_str(data, "reason"), ==, reason);
    qobject_unref(event);
}

static off_t size_of(const char *path)
{
    struct stat st;

    g_assert_cmpint(stat(path, &st), ==, 0);
    return st.st_size;
}

static void test_max_size(void)
{
    Profiled p = start_profiled(face->cpu);
    g_autofree char *file = file_of(&p, "p");

    add_profile(&p, "p", "{'period': 1, 'max-size': 20000}");
    count_insns(&p.m, 10000);
    await_stop(&p, "max-size");
    /* After that, nothing is written. */
    count_insns(&p.m, 10000);
    g_usleep(300000);
    delete_profile(&p, "p");
    /* At most one more record is written, and the end of the round. */
    g_assert_cmpint(size_of(file), >=, 20000);
    g_assert_cmpint(size_of(file), <, 20200);
    end(&p);
}

/* The same when stopping the machine makes QEMU write. */
static void test_max_size_at_stop(void)
{
    Profiled p = start_profiled(face->cpu_without);

    for (int turn = 0; turn < 10; turn++) {
        add_profile(&p, "p", "{'period': 1, 'max-size': 3000,"
                    " 'file': '/dev/null'}");
        count_insns(&p.m, 1000);
        qtest_qmp_assert_success(p.m.qts, "{'execute': 'stop'}");
        await_stop(&p, "max-size");
        qtest_qmp_assert_success(p.m.qts, "{'execute': 'cont'}");
        delete_profile(&p, "p");
    }
    end(&p);
}

static void test_disk_full(void)
{
    Profiled p = start_profiled(face->cpu);
    QDict *error;

    add_profile(&p, "p", "{'period': 10, 'file': '/dev/full'}");
    count_insns(&p.m, 1000);
    await_stop(&p, "write-error");
    error = qtest_qmp_assert_failure_ref(
        p.m.qts, "{'execute': 'qom-set', 'arguments': {'path': '/objects/p',"
        " 'property': 'enabled', 'value': true}}");
    g_assert_nonnull(strstr(qdict_get_str(error, "desc"), "No space left"));
    qobject_unref(error);
    end(&p);
}

/* The same with a chardev, which does not report the cause. */
static void test_chardev_full(void)
{
    Profiled p = start_profiled_with(face->cpu,
                                     "-chardev file,id=c,path=/dev/full");

    add_profile(&p, "p", "{'period': 10, 'chardev': 'c'}");
    count_insns(&p.m, 1000);
    await_stop(&p, "write-error");
    delete_profile(&p, "p");

    /* A profile that ends before the error has been reported */
    add_profile(&p, "p", "{'period': 10, 'chardev': 'c'}");
    delete_profile(&p, "p");
    await_stop(&p, "write-error");
    end(&p);
}

static unsigned nr_fdsets(Profiled *p)
{
    QDict *answer = qtest_qmp(p->m.qts, "{'execute': 'query-fdsets'}");
    unsigned count = qlist_size(qdict_get_qlist(answer, "return"));

    qobject_unref(answer);
    return count;
}

/* A profile goes to @fd. */
static void give_file(Profiled *p, int fd)
{
    qtest_qmp_fds_assert_success(p->m.qts, &fd, 1, "{'execute': 'add-fd', "
                                 "'arguments': {'fdset-id': 1}}");
    add_profile(p, "p", "{'file': '/dev/fdset/1', 'period': 10}");
    qtest_qmp_assert_success(p->m.qts, "{'execute': 'remove-fd', 'arguments': "
                             "{'fdset-id': 1}}");
}

static void check_given_file(int how)
{
    static const char before[] = "before";
    Profiled p = start_profiled(face->cpu);
    g_autofree char *file = file_of(&p, "given");
    g_autofree char *contents = NULL;
    int fd = open(file, O_WRONLY | O_CREAT, 0600);

    g_assert_cmpint(write(fd, before, 6), ==, 6);
    if (how) {
        close(fd);
        fd = open(file, how);
    }
    give_file(&p, fd);
    delete_profile(&p, "p");
    g_assert_cmpint(fcntl(fd, F_GETFL) & how, ==, how);
    close(fd);
    /* On a slow host the file's end is written after the profile has left. */
    while (nr_fdsets(&p)) {
        g_usleep(G_USEC_PER_SEC / 100);
    }
    g_assert_true(g_file_get_contents(file, &contents, NULL, NULL));
    g_assert_true(g_str_has_prefix(contents, "before"));
    g_assert_true(has_word(contents + 6, WORD_SIZE, &magic));
    end(&p);
}

/* A file that QEMU is given is written from where it stands. */
static void test_given_file(void)
{
    check_given_file(0);
}

/* Or where it was opened to be written; and it stays open like that. */
static void test_given_file_to_append(void)
{
    check_given_file(O_WRONLY | O_APPEND);
}

static void test_given_file_to_read_too(void)
{
    check_given_file(O_RDWR | O_APPEND);
}

/* A pipe that waits for its reader stays one, and QEMU does not wait. */
static void test_given_pipe(void)
{
    Profiled p = start_profiled(face->cpu);
    char first[WORD_SIZE];
    int fds[2];

    g_assert_cmpint(pipe(fds), ==, 0);
    give_file(&p, fds[1]);
    for (int i = 0; i < 10; i++) {
        count_insns(&p.m, 10000);
        g_assert_cmpuint(samples(&p, "p"), ==, (i + 1) * 1000);
        enable(&p, "p", true);
    }
    delete_profile(&p, "p");
    await_stop(&p, "write-error");
    g_assert_cmpint(fcntl(fds[1], F_GETFL) & O_NONBLOCK, ==, 0);
    g_assert_cmpint(read(fds[0], first, sizeof(first)), ==, sizeof(first));
    g_assert_true(has_word(first, sizeof(first), &magic));
    close(fds[0]);
    close(fds[1]);
    end(&p);
}

/* Returns: the end at which a profile with more properties is read. */
static int open_pipe(Profiled *p, const char *name, const char *more)
{
    g_autofree char *pipe = file_of(p, name);
    int fd;

    g_assert_cmpint(mkfifo(pipe, 0600), ==, 0);
    fd = open(pipe, O_RDONLY | O_NONBLOCK);
    add_profile(p, name, more);
    g_assert_cmpint(fcntl(fd, F_SETFL, 0), ==, 0);
    return fd;
}

static void test_pipe(void)
{
    Profiled p = start_profiled(face->cpu);
    char first[WORD_SIZE];
    int fd = open_pipe(&p, "p", "{'period': 10}");

    count_insns(&p.m, 1000);
    g_assert_cmpint(read(fd, first, sizeof(first)), ==, sizeof(first));
    g_assert_true(has_word(first, sizeof(first), &magic));
    close(fd);
    count_insns(&p.m, 1000);
    await_stop(&p, "disconnected");
    end(&p);
}

/*
 * Samples lost after a profile has reached its size do not count as lost.
 * Nothing reads this pipe, so QEMU stops writing (after 64 MiB) and loses
 * samples.  Stopping the machine makes it write up to the maximum.
 */
static void test_max_size_before_loss(void)
{
    /* So many samples that they are written at once */
    const uint64_t many = 22000, turns = 70;
    Profiled p = start_profiled(face->cpu);
    int fd = open_pipe(&p, "p", "{'period': 1, 'max-size': 68600000}");
    uint64_t written;

    for (unsigned i = 0; i < turns; i++) {
        count_insns(&p.m, many);
        written = property(&p, "p", "samples");
    }
    g_assert_cmpuint(written + 2 * many, <, turns * many);
    qtest_qmp_assert_success(p.m.qts, "{'execute': 'stop'}");
    await_stop(&p, "max-size");
    g_assert_cmpuint(property(&p, "p", "lost"), ==, 0);
    close(fd);
    delete_profile(&p, "p");
    g_assert_cmpuint(lost_by_all(&p), ==, 0);
    end(&p);
}

/* When a profile is deleted, an event reports that its end was not written. */
static void test_pipe_at_end(void)
{
    Profiled p = start_profiled(face->cpu);

    close(open_pipe(&p, "p", "{'period': 10}"));
    count_insns(&p.m, 1000);
    delete_profile(&p, "p");
    await_stop(&p, "disconnected");
    end(&p);
}

/* Types of records: PERF_RECORD_COMM, and so on */
enum {
    COMM = 3,
    FORK = 7,
    SAMPLE = 9,
    MMAP2 = 10,
};

/**
 * struct Record - a record of a stream
 * @type: its type
 * @at: where it begins
 * @end: where the next one begins; 0 before the first record
 */
typedef struct Record {
    uint32_t type;
    const uint8_t *at;
    size_t end;
} Record;

static bool is_big(const GByteArray *stream)
{
    return stream->len >= WORD_SIZE
           && memcmp(stream->data, magic.big, WORD_SIZE) == 0;
}

/* Returns: false if there is no further record */
static bool next_record(const GByteArray *stream, Record *r)
{
    static const unsigned stream_header = 16, record_header = 8;
    size_t at = r->end ?: stream_header;

    if (at + record_header > stream->len) {
        return false;
    }
    r->at = stream->data + at;
    r->type = is_big(stream) ? ldl_be_p(r->at) : ldl_le_p(r->at);
    r->end = at + (is_big(stream) ? lduw_be_p(r->at + 6)
                                  : lduw_le_p(r->at + 6));
    return true;
}

/* Returns: the samples of a stream; 0 if it ends in the middle of a record. */
static unsigned count_samples(const GByteArray *stream)
{
    unsigned number = 0;
    Record r = {};

    while (next_record(stream, &r)) {
        number += r.type == SAMPLE;
    }
    return r.end == stream->len ? number : 0;
}

/* Limits the size of files, so that there is no room for the whole stream. */
static void limit_files(Profiled *p, rlim_t bytes)
{
    const struct rlimit limit = { .rlim_cur = bytes, .rlim_max = bytes };

    g_assert_cmpint(prlimit(qtest_pid(p->m.qts), RLIMIT_FSIZE, &limit, NULL),
                    ==, 0);
}

/* The profile's numbers match the samples in the file, and the lost ones. */
static void test_disk_fills_up(void)
{
    const uint64_t many = 20000;
    const struct sigaction ignore = { .sa_handler = SIG_IGN };
    struct sigaction before;
    int ignored = sigaction(SIGXFSZ, &ignore, &before);
    Profiled p = start_profiled(face->cpu);
    g_autofree char *file = file_of(&p, "p");
    g_autoptr(GByteArray) all = g_byte_array_new();
    uint64_t written, lost;
    char *contents;
    size_t size;

    g_assert_cmpint(ignored, ==, 0);
    sigaction(SIGXFSZ, &before, NULL);
    limit_files(&p, 300000);
    add_profile(&p, "p", "{'period': 10}");
    count_insns(&p.m, 10 * many);
    await_stop(&p, "write-error");
    /* Bytes that were still to be written are counted as lost now. */
    while (property(&p, "p", "size") > 300000) {
        g_usleep(G_USEC_PER_SEC / 100);
    }
    written = property(&p, "p", "samples");
    lost = property(&p, "p", "lost");
    g_assert_true(g_file_get_contents(file, &contents, &size, NULL));
    g_byte_array_append(all, (const uint8_t *)contents, size);
    g_free(contents);
    g_assert_cmpuint(size, >, 290000);
    g_assert_cmpuint(property(&p, "p", "size"), ==, size);
    g_assert_cmpuint(count_samples(all), ==, written);
    g_assert_cmpuint(written + lost, ==, many);
    g_assert_cmpuint(lost_by_all(&p), ==, lost);
    end(&p);
}

static char *name_socket(void)
{
    return g_strdup_printf("/tmp/vpmu-profile-%d.sock", getpid());
}

/* Start a machine with the profile "p" in a socket, with these properties. */
static Profiled start_in_socket(const char *socket, const char *properties)
{
    g_autofree char *more = g_strdup_printf(
        "-chardev socket,id=c,path=%s,server=on,wait=off"
        " -object pmu-profile,id=p,chardev=c,%s", socket, properties);

    return start_profiled_with(face->cpu, more);
}

/* Each reader of a chardev gets a stream from its beginning. */
static void test_chardev(void)
{
    g_autofree char *socket = name_socket();
    Profiled p = start_in_socket(socket, "period=10");

    for (int reader = 0; reader < 2; reader++) {
        char first[WORD_SIZE];
        int fd;

        count_insns(&p.m, 1000);
        fd = unix_connect(socket, &error_abort);
        g_assert_cmpint(read(fd, first, sizeof(first)), ==, sizeof(first));
        g_assert_true(has_word(first, sizeof(first), &magic));
        close(fd);
    }
    unlink(socket);
    end(&p);
}

/* Samples that did not fit before a reader came do not count as lost. */
static void test_lost_before_reader(void)
{
    g_autofree char *socket = name_socket();
    Profiled p = start_in_socket(socket, "period=1");
    char first[WORD_SIZE];
    int fd;

    count_insns(&p.m, 300000);
    fd = unix_connect(socket, &error_abort);
    g_assert_cmpint(read(fd, first, sizeof(first)), ==, sizeof(first));
    count_insns(&p.m, 10);
    g_assert_cmpuint(samples(&p, "p"), ==, 10);
    g_assert_cmpuint(property(&p, "p", "lost"), ==, 0);
    close(fd);
    unlink(socket);
    end(&p);
}

/* Returns: its path; NULL if there are no ptys, as under qemu-user. */
static char *add_pty(Profiled *p, const char *id)
{
    QDict *answer = qtest_qmp(p->m.qts, "{'execute': 'chardev-add',"
                              " 'arguments': {'id': %s, 'backend': {"
                              " 'type': 'pty', 'data': {}}}}", id);
    char *path = NULL;

    if (qdict_haskey(answer, "return")) {
        path = g_strdup(qdict_get_str(qdict_get_qdict(answer, "return"),
                                      "pty"));
    } else {
        const char *why = qdict_get_str(qdict_get_qdict(answer, "error"),
                                        "desc");

        g_assert_nonnull(strstr(why, "Failed to create PTY"));
        g_test_skip(why);
    }
    qobject_unref(answer);
    return path;
}

/* Skip data that the last reader of the pty has left. */
static void read_until_magic(int fd)
{
    char last[WORD_SIZE] = "";

    while (!has_word(last, sizeof(last), &magic)) {
        GPollFD ready = { .fd = fd, .events = G_IO_IN };

        memmove(last, last + 1, sizeof(last) - 1);
        g_assert_cmpint(g_poll(&ready, 1, NEVER_S * 1000), ==, 1);
        g_assert_cmpint(read(fd, last + sizeof(last) - 1, 1), ==, 1);
    }
}

/* The same with a pty, to which a reader may write. */
static void test_pty(void)
{
    Profiled p = start_profiled(face->cpu);
    g_autofree char *pty = add_pty(&p, "c");

    if (!pty) {
        end(&p);
        return;
    }
    add_profile(&p, "p", "{'period': 10, 'chardev': 'c'}");
    for (int reader = 0; reader < 2; reader++) {
        int fd = open(pty, O_RDWR | O_NOCTTY);

        read_until_magic(fd);
        g_assert_cmpint(write(fd, "giraffe", 7), ==, 7);
        close(fd);
        /*
         * The pty still exists, and QEMU has noticed that its reader has gone.
         */
        count_insns(&p.m, 1000);
        enable(&p, "p", false);
        enable(&p, "p", true);
    }
    end(&p);
}

/* Shared chardevs, and datagrams, cannot carry a stream. */
static void test_chardev_refused(void)
{
    static const char *const refused[][2] = {
        { "mux", "shared" }, { "hub", "shared" }, { "udp", "datagrams" },
    };
    Profiled p = start_profiled_with(
        face->cpu, "-chardev null,id=mux,mux=on -chardev null,id=c"
        " -chardev hub,id=hub,chardevs.0=c"
        " -chardev udp,id=udp,host=127.0.0.1,port=9");

    for (unsigned i = 0; i < ARRAY_SIZE(refused); i++) {
        QDict *error = qtest_qmp_assert_failure_ref(
            p.m.qts, "{'execute': 'object-add', 'arguments': {'qom-type':"
            " 'pmu-profile', 'id': 'p', 'chardev': %s}}", refused[i][0]);

        g_assert_nonnull(strstr(qdict_get_str(error, "desc"), refused[i][1]));
        qobject_unref(error);
    }
    end(&p);
}

static void *read_to_end(void *fd)
{
    GByteArray *all = g_byte_array_new();
    uint8_t some[4096];
    ssize_t n;

    while ((n = read(GPOINTER_TO_INT(fd), some, sizeof(some))) > 0) {
        g_byte_array_append(all, some, n);
    }
    return all;
}

typedef enum End {
    END_OF_PROFILE,
    END_OF_MACHINE,
    END_OF_STOPPED_MACHINE,
} End;

/* When this returns, QEMU waits for a reader, or is about to. */
static void begin_end(Profiled *p, End what)
{
    if (what == END_OF_PROFILE) {
        qtest_qmp_send(p->m.qts, "{'execute': 'object-del',"
                       " 'arguments': {'id': 'p'}}");
        return;
    }
    if (what == END_OF_STOPPED_MACHINE) {
        qtest_qmp_assert_success(p->m.qts, "{'execute': 'stop'}");
    }
    qtest_qmp_send(p->m.qts, "{'execute': 'quit'}");
    qtest_qmp_eventwait(p->m.qts, "SHUTDOWN");
}

/* Take more samples than fit into a socket, one per 10 instructions. */
static void overfill(Profiled *p)
{
    for (int i = 0; i < 10; i++) {
        count_insns(&p->m, 10000);
    }
    g_assert_cmpuint(samples(p, "p"), ==, 10000);
}

/* Start to read when a profile ends. */
static bool late_reader_has_all(End what)
{
    g_autofree char *socket = name_socket();
    Profiled p = start_in_socket(socket, "period=10");
    int fd = unix_connect(socket, &error_abort);
    GByteArray *stream;
    GThread *reader;
    bool all;

    overfill(&p);
    begin_end(&p, what);
    reader = g_thread_new("reader", read_to_end, GINT_TO_POINTER(fd));
    if (what == END_OF_PROFILE) {
        qobject_unref(qtest_qmp_receive(p.m.qts));
    }
    end(&p);
    stream = g_thread_join(reader);
    all = count_samples(stream) == 10000;
    g_byte_array_unref(stream);
    close(fd);
    unlink(socket);
    return all;
}

/* On a busy host QEMU may time out before the reader starts. */
static void check_late_reader(End what)
{
    int tries = 3;

    while (!late_reader_has_all(what)) {
        g_assert_cmpint(--tries, >, 0);
    }
}

static void test_late_reader(void)
{
    check_late_reader(END_OF_PROFILE);
}

static void test_late_reader_of_machine(void)
{
    check_late_reader(END_OF_MACHINE);
}

static void test_late_reader_of_stopped_machine(void)
{
    check_late_reader(END_OF_STOPPED_MACHINE);
}

/* When a profile is deleted, an event reports that its end was not read. */
static void test_reader_sleeps_at_end(void)
{
    g_autofree char *socket = name_socket();
    Profiled p = start_in_socket(socket, "period=10");
    int fd = unix_connect(socket, &error_abort);

    overfill(&p);
    delete_profile(&p, "p");
    await_stop(&p, "write-error");
    close(fd);
    unlink(socket);
    end(&p);
}

/* End the machine; returns its messages, which are in @log. */
static char *hear_end(Profiled *p, char *log)
{
    char *said;

    begin_end(p, END_OF_MACHINE);
    end(p);
    g_assert_true(g_file_get_contents(log, &said, NULL, NULL));
    delete_file(log);
    return said;
}

/* When QEMU itself ends, it can only print a message. */
static void test_reader_sleeps_at_end_of_machine(void)
{
    g_autofree char *socket = name_socket();
    g_autofree char *said = NULL;
    char *log = new_file();
    g_autofree char *properties = g_strdup_printf("period=10 2> %s", log);
    Profiled p = start_in_socket(socket, properties);
    int fd = unix_connect(socket, &error_abort);

    overfill(&p);
    said = hear_end(&p, log);
    g_assert_nonnull(strstr(said, "The end of a profile cannot be written"));
    close(fd);
    unlink(socket);
}

/* A reader that is so slow that QEMU does not wait for the end */
typedef struct Drip {
    int fd;
    GThread *thread;
    bool is_to_end;
} Drip;

static void *drip(void *opaque)
{
    Drip *d = opaque;
    char some[8192];

    while (!qatomic_read(&d->is_to_end)
           && read(d->fd, some, sizeof(some)) > 0) {
        g_usleep(G_USEC_PER_SEC / 10);
    }
    return NULL;
}

static void begin_drip(Drip *d, int fd)
{
    *d = (Drip) { .fd = fd };
    d->thread = g_thread_new("drip", drip, d);
}

static void end_drip(Drip *d)
{
    qatomic_set(&d->is_to_end, true);
    g_thread_join(d->thread);
    close(d->fd);
}

static void check_deleted_in_time(Profiled *p, int fd)
{
    g_autoptr(GTimer) timer = g_timer_new();
    Drip d;

    begin_drip(&d, fd);
    g_timer_start(timer);
    delete_profile(p, "p");
    g_assert_cmpfloat(g_timer_elapsed(timer, NULL), <, 2);
    await_stop(p, "write-error");
    end_drip(&d);
}

static void test_slow_reader(void)
{
    g_autofree char *socket = name_socket();
    Profiled p = start_in_socket(socket, "period=10");
    int fd = unix_connect(socket, &error_abort);

    overfill(&p);
    check_deleted_in_time(&p, fd);
    unlink(socket);
    end(&p);
}

static void test_slow_reader_of_pipe(void)
{
    Profiled p = start_profiled(face->cpu);
    int fd = open_pipe(&p, "p", "{'period': 10}");

    overfill(&p);
    check_deleted_in_time(&p, fd);
    end(&p);
}

/* All of them together have QEMU wait no longer than one. */
static void test_slow_readers_of_machine(void)
{
    g_autoptr(GTimer) timer = NULL;
    g_autofree char *socket = name_socket();
    Profiled p = start_in_socket(socket, "period=10");
    Drip d[5];

    begin_drip(&d[0], unix_connect(socket, &error_abort));
    for (unsigned i = 1; i < ARRAY_SIZE(d); i++) {
        g_autofree char *name = g_strdup_printf("pipe%u", i);

        begin_drip(&d[i], open_pipe(&p, name, "{'period': 10}"));
    }
    overfill(&p);
    begin_end(&p, END_OF_MACHINE);
    timer = g_timer_new();
    end(&p);
    g_assert_cmpfloat(g_timer_elapsed(timer, NULL), <, 2);
    for (unsigned i = 0; i < ARRAY_SIZE(d); i++) {
        end_drip(&d[i]);
    }
    unlink(socket);
}

/* Returns: all bytes until the end, for which this does not wait long */
static GByteArray *read_to_near_end(int fd)
{
    GByteArray *all = g_byte_array_new();
    GPollFD ready = { .fd = fd, .events = G_IO_IN };
    uint8_t some[4096];
    ssize_t n;

    do {
        g_assert_cmpint(g_poll(&ready, 1, 10000), ==, 1);
        n = read(fd, some, sizeof(some));
        g_assert_cmpint(n, >=, 0);
        g_byte_array_append(all, some, n);
    } while (n);
    return all;
}

static void assert_ends(int fd, uint64_t samples)
{
    g_autoptr(GByteArray) all = read_to_near_end(fd);

    g_assert_cmpuint(count_samples(all), ==, samples);
    close(fd);
}

/* A connection has the stream of one profile, and ends with it. */
static void test_reader_finds_end(void)
{
    g_autofree char *socket = name_socket();
    Profiled p = start_in_socket(socket, "period=10,max-size=20000");
    int fd = unix_connect(socket, &error_abort);

    count_insns(&p.m, 10000);
    await_stop(&p, "max-size");
    assert_ends(fd, property(&p, "p", "samples"));
    fd = unix_connect(socket, &error_abort);
    assert_ends(fd, 0);
    delete_profile(&p, "p");

    fd = unix_connect(socket, &error_abort);
    add_profile(&p, "p", "{'period': 10, 'chardev': 'c'}");
    count_insns(&p.m, 1000);
    delete_profile(&p, "p");
    assert_ends(fd, 100);
    unlink(socket);
    end(&p);
}

static void test_reader_of_pipe_finds_end(void)
{
    Profiled p = start_profiled(face->cpu);
    int fd = open_pipe(&p, "p", "{'period': 10, 'max-size': 20000}");

    count_insns(&p.m, 10000);
    await_stop(&p, "max-size");
    assert_ends(fd, property(&p, "p", "samples"));
    end(&p);
}

static bool is_disconnected(Profiled *p)
{
    QDict *answer = qtest_qmp(p->m.qts, "{'execute': 'query-chardev'}");
    const QListEntry *entry;
    bool found = false;

    QLIST_FOREACH_ENTRY(qdict_get_qlist(answer, "return"), entry) {
        const char *name = qdict_get_str(qobject_to(QDict, entry->value),
                                         "filename");

        found |= g_str_has_prefix(name, "disconnected:");
    }
    qobject_unref(answer);
    return found;
}

static void await_disconnection(Profiled *p)
{
    while (!is_disconnected(p)) {
        g_usleep(G_USEC_PER_SEC / 100);
    }
}

/* A reader that has left by then causes no message. */
static void test_sleeper_leaves_at_end(void)
{
    g_autofree char *socket = name_socket();
    g_autofree char *said = NULL;
    char *log = new_file();
    g_autofree char *properties = g_strdup_printf(
        "period=10 -action reboot=shutdown,shutdown=pause 2> %s", log);
    Profiled p = start_in_socket(socket, properties);
    int fd = unix_connect(socket, &error_abort);

    overfill(&p);
    qtest_qmp_assert_success(p.m.qts, "{'execute': 'system_reset'}");
    qtest_qmp_eventwait(p.m.qts, "STOP");
    /* QEMU answers when it no longer waits for the reader. */
    qtest_qmp_assert_success(p.m.qts, "{'execute': 'query-status'}");
    close(fd);
    await_disconnection(&p);
    said = hear_end(&p, log);
    g_assert_null(strstr(said, "The end of a profile cannot be written"));
    unlink(socket);
}

/*
 * A reader leaves while QEMU writes the rest to it.  The next reader, whose
 * socket has another number in QEMU, must not wait for the first.
 */
static void test_reader_leaves_at_end(void)
{
    const struct timeval never = { .tv_sec = NEVER_S };
    g_autofree char *socket = name_socket();
    Profiled p = start_in_socket(
        socket, "period=10 -action reboot=shutdown,shutdown=pause");
    int lower = open("/dev/null", O_RDONLY);
    char first[WORD_SIZE];
    int fd;

    qtest_qmp_fds_assert_success(p.m.qts, &lower, 1, "{'execute': 'add-fd', "
                                 "'arguments': {'fdset-id': 1}}");
    close(lower);
    fd = unix_connect(socket, &error_abort);
    overfill(&p);
    qtest_qmp_send(p.m.qts, "{'execute': 'system_reset'}");
    qtest_qmp_eventwait(p.m.qts, "SHUTDOWN");
    close(fd);
    qobject_unref(qtest_qmp_receive(p.m.qts));
    qtest_qmp_assert_success(p.m.qts, "{'execute': 'remove-fd', 'arguments': "
                             "{'fdset-id': 1}}");
    fd = unix_connect(socket, &error_abort);
    g_assert_cmpint(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &never,
                               sizeof(never)), ==, 0);
    qtest_qmp_assert_success(p.m.qts, "{'execute': 'set-action', 'arguments': "
                             "{'reboot': 'reset'}}");
    qtest_qmp_assert_success(p.m.qts, "{'execute': 'system_reset'}");
    qtest_qmp_assert_success(p.m.qts, "{'execute': 'cont'}");
    g_assert_cmpint(read(fd, first, sizeof(first)), ==, sizeof(first));
    g_assert_true(has_word(first, sizeof(first), &magic));
    close(fd);
    unlink(socket);
    end(&p);
}

/*
 * Profiles that the guest reads itself
 */

/* A serial port of x86, and the data read from it so far */
typedef struct Port {
    Profiled p;
    GByteArray *read;
} Port;

#define COM1         0x3f8
#define LINE_STATUS  (COM1 + 5)
#define DATA_READY   1

static char *port_args(const char *more)
{
    g_autofree char *args = face->args(face->cpu);

    return g_strdup_printf("%s -object pmu-profile,id=p,chardev=p%s"
                           " -serial chardev:p", args, more);
}

static Port open_port(const char *more)
{
    g_autofree char *all = port_args(more);

    return (Port) {
        .p = { .m = start(all), .dir = g_dir_make_tmp(NULL, NULL) },
        .read = g_byte_array_new(),
    };
}

static void close_port(Port *port)
{
    end(&port->p);
    g_byte_array_unref(port->read);
}

static void say(Port *port, const char *text)
{
    while (*text) {
        qtest_outb(port->p.m.qts, COM1, *text++);
    }
}

static bool has_read(const Port *port, const void *word)
{
    return has_word(port->read->data, port->read->len, word);
}

static bool has_read_text(const Port *port, const void *text)
{
    return memmem(port->read->data, port->read->len, text, strlen(text));
}

/* Read until the data is there: QEMU writes at any time. */
static void read_until_there(Port *port, const void *what,
                             bool (*is_there)(const Port *, const void *))
{
    g_autoptr(GTimer) timer = g_timer_new();

    while (!port->read->len || !is_there(port, what)) {
        g_assert_cmpfloat(g_timer_elapsed(timer, NULL), <, NEVER_S);
        if (qtest_inb(port->p.m.qts, LINE_STATUS) & DATA_READY) {
            uint8_t byte = qtest_inb(port->p.m.qts, COM1);

            g_byte_array_append(port->read, &byte, 1);
        }
    }
}

static void read_until(Port *port, const Word *word)
{
    read_until_there(port, word, has_read);
}

static void read_until_text(Port *port, const char *text)
{
    read_until_there(port, text, has_read_text);
}

static void test_guest_reads(void)
{
    Port port = open_port(",period=100");

    read_until(&port, &magic);
    read_until_text(&port, "[kernel.kallsyms]_stext");
    count_insns(&port.p.m, 1000);
    say(&port, "flush\n");
    read_until(&port, &flushed);
    g_assert_cmpuint(samples(&port.p, "p"), ==, 10);
    close_port(&port);
}

static void test_guest_speaks(void)
{
    Port port = open_port("");

    say(&port, "giraffe\ntask 8 1 2 3\nfork 1 2\n");
    read_until_text(&port, "pmu-profile: neither task, map, fork nor flush");
    read_until_text(&port, "pmu-profile: not a valid line of task");
    read_until_text(&port, "pmu-profile: not a valid line of fork");
    say(&port, "map 0 77 0x1000 0x1000 0 /bin/giraffe\nflush\n");
    read_until_text(&port, "/bin/giraffe");
    read_until(&port, &flushed);
    close_port(&port);
}

/* The guest's pointer to its tasks points to no tasks. */
static void test_guest_lies(void)
{
    Port port = open_port(",period=100");

    say(&port, "task 0xfffffffffffffff8 65532 65532 65532\n");
    count_insns(&port.p.m, 1000);
    say(&port, "task 0 0 0 0\n");
    count_insns(&port.p.m, 1000);
    say(&port, "flush\n");
    read_until(&port, &flushed);
    g_assert_cmpuint(samples(&port.p, "p"), ==, 20);
    close_port(&port);
}

/* Addresses of the guest's page tables; CR3 is 0 after a reset. */
#define TOP_TABLE    0x0
#define TABLE        0x1000
#define PRESENT      1
#define PRESENT_HUGE 0x81
#define EFER_LMA     (1 << 10)

/* The guest's only task, and the pointer to it that all vCPUs use */
#define CURRENT      0x10000
#define TASK         0x11000
#define TASK_NUMBER  77

/* Offsets of numbers and of the name in the task's structure */
#define TASK_PID     0
#define TASK_TGID    4
#define TASK_COMM    8

static void name_task(Port *port, const char *name)
{
    char comm[16] = "";

    strcpy(comm, name);
    qtest_memwrite(port->p.m.qts, TASK + TASK_COMM, comm, sizeof(comm));
}

/* Enter long mode with linear equal to physical addresses, and make a task. */
static void make_task(Port *port)
{
    QTestState *qts = port->p.m.qts;

    qtest_writeq(qts, TOP_TABLE, TABLE | PRESENT);
    qtest_writeq(qts, TABLE, PRESENT_HUGE);
    qtest_writeq(qts, CURRENT, TASK);
    qtest_writel(qts, TASK + TASK_PID, TASK_NUMBER);
    qtest_writel(qts, TASK + TASK_TGID, TASK_NUMBER);
    for (port->p.m.cpu = 0; port->p.m.cpu < 2; port->p.m.cpu++) {
        write_efer(&port->p.m, EFER_LMA);
    }
}

/* Run a task; returns the time. */
static uint64_t run_task(Port *port, unsigned cpu, const char *name)
{
    uint64_t now = qtest_clock_step(port->p.m.qts, 1000);

    name_task(port, name);
    port->p.m.cpu = cpu;
    count_insns(&port->p.m, PERIOD);
    return now;
}

/* The time of any record but a sample */
static uint64_t time_of(const GByteArray *stream, const Record *r)
{
    const uint8_t *time = stream->data + r->end - 16;

    return is_big(stream) ? ldq_be_p(time) : ldq_le_p(time);
}

/* The time of the only record of a type */
static uint64_t time_of_type(const GByteArray *stream, uint32_t type)
{
    uint64_t time = 0;
    Record r = {};

    while (next_record(stream, &r)) {
        if (r.type == type) {
            g_assert_cmpuint(time, ==, 0);
            time = time_of(stream, &r);
        }
    }
    return time;
}

/* The task's name at a time, from the last record before it */
static const char *name_at(const GByteArray *stream, uint64_t when)
{
    const char *name = "";
    uint64_t since = 0;
    Record r = {};

    while (next_record(stream, &r)) {
        uint64_t time = r.type == COMM ? time_of(stream, &r) : UINT64_MAX;

        if (time >= since && time <= when) {
            name = (const char *)r.at + 16;
            since = time;
        }
    }
    return name;
}

/* The task starts a program on the vCPU whose samples are written first. */
static void test_guest_task_moves(void)
{
    Port port = open_port(",period=1000 -smp 2");
    uint64_t sh, loop;

    read_until(&port, &magic);
    make_task(&port);
    say(&port, "task 0x10000 0 4 8\n");
    sh = run_task(&port, 1, "sh");
    loop = run_task(&port, 0, "loop");
    qtest_clock_step(port.p.m.qts, 1000);
    say(&port, "fork 0 77 1\nmap 0 77 0x1000 0x1000 0 /tmp/loop\nflush\n");
    read_until(&port, &flushed);
    g_assert_cmpstr(name_at(port.read, sh), ==, "sh");
    g_assert_cmpstr(name_at(port.read, loop), ==, "loop");
    g_assert_cmpuint(time_of_type(port.read, FORK), <, sh);
    g_assert_cmpuint(time_of_type(port.read, MMAP2), >=, sh);
    g_assert_cmpuint(time_of_type(port.read, MMAP2), <, loop);
    close_port(&port);
}

static void test_guest_is_reset(void)
{
    Port port = open_port("");

    read_until(&port, &magic);
    qtest_system_reset(port.p.m.qts);
    g_byte_array_set_size(port.read, 0);
    read_until(&port, &magic);
    close_port(&port);
}

/* A stopped machine continues its stream. */
static void test_guest_is_stopped(void)
{
    Port port = open_port(",period=100");

    read_until(&port, &magic);
    for (int turn = 1; turn <= 3; turn++) {
        qtest_qmp_assert_success(port.p.m.qts, "{'execute': 'stop'}");
        /* The guest's time goes on before handlers of the change are called. */
        qtest_clock_step(port.p.m.qts, 1000);
        qtest_qmp_assert_success(port.p.m.qts, "{'execute': 'cont'}");
        count_insns(&port.p.m, 1000);
        g_byte_array_set_size(port.read, 0);
        say(&port, "flush\n");
        read_until(&port, &flushed);
        g_assert_cmpuint(property(&port.p, "p", "samples"), ==, 10 * turn);
    }
    g_assert_false(has_read(&port, &magic));
    close_port(&port);
}

/* The rest of the old stream is dropped, and a new stream begins. */
static void test_guest_is_reset_stopped(void)
{
    Port port = open_port("");

    read_until(&port, &magic);
    qtest_qmp_assert_success(port.p.m.qts, "{'execute': 'stop'}");
    qtest_system_reset(port.p.m.qts);
    qtest_qmp_assert_success(port.p.m.qts, "{'execute': 'cont'}");
    g_byte_array_set_size(port.read, 0);
    read_until(&port, &magic);
    close_port(&port);
}

/* A serial port is always open: after migration, a new stream begins. */
static void test_guest_migrates(void)
{
    Port port = open_port("");
    g_autofree char *args = port_args("");

    read_until(&port, &magic);
    migrate_machine(&port.p.m, args);
    g_byte_array_set_size(port.read, 0);
    qtest_clock_step(port.p.m.qts, 1000);
    read_until(&port, &magic);
    close_port(&port);
}

/* If the guest is reset at once, only the reset begins a stream. */
static void test_guest_migrates_and_is_reset(void)
{
    Port port = open_port("");
    g_autofree char *args = port_args("");

    read_until(&port, &magic);
    migrate_machine(&port.p.m, args);
    qtest_system_reset(port.p.m.qts);
    g_byte_array_set_size(port.read, 0);
    read_until(&port, &magic);
    qtest_clock_step(port.p.m.qts, 1000);
    g_byte_array_set_size(port.read, 0);
    say(&port, "flush\n");
    read_until(&port, &flushed);
    g_assert_false(has_read(&port, &magic));
    close_port(&port);
}

static void test_is_used(void)
{
    Port port = open_port("");
    QDict *error = qtest_qmp_assert_failure_ref(
        port.p.m.qts, "{'execute': 'object-del', 'arguments': {'id': 'p'}}");

    g_assert_nonnull(strstr(qdict_get_str(error, "desc"), "in use"));
    qobject_unref(error);
    close_port(&port);
}

static void test_is_unused(void)
{
    Profiled p = start_profiled(face->cpu);

    for (int i = 0; i < 2; i++) {
        qtest_qmp_assert_success(p.m.qts, "{'execute': 'object-add', "
                                 "'arguments': {'qom-type': 'pmu-profile', "
                                 "'id': 'p', 'chardev': 'p'}}");
        count_insns(&p.m, 1000);
        delete_profile(&p, "p");
    }
    end(&p);
}

/*
 * Kernel of a profile
 */

#define NOTE     0x10000
#define OLD_TEXT 0xffffffff81000000
#define NEW_TEXT 0xffffffff99000000

/* Pass a kernel's note to QEMU on q35, as Linux does by its fw_cfg driver. */
static void tell_kernel(Profiled *p, uint64_t text)
{
    QOSState qos = { .qts = p->m.qts };
    QFWCFG *fw_cfg = pc_fw_cfg_init(p->m.qts);
    char note[256] = "\0\0\0\0\0\0\0\0\0\0\0\0VMCOREINFO";
    FWCfgVMCoreInfo info = {
        .guest_format = cpu_to_le16(FW_CFG_VMCOREINFO_FORMAT_ELF),
        .size = cpu_to_le32(sizeof(note)),
        .paddr = cpu_to_le64(NOTE),
    };

    snprintf(note + 24, sizeof(note) - 24,
             "OSRELEASE=giraffe\nSYMBOL(_stext)=%" PRIx64 "\n", text);
    qtest_memwrite(p->m.qts, NOTE, note, sizeof(note));
    pc_alloc_init(&qos.alloc, p->m.qts, ALLOC_NO_FLAGS);
    g_assert_cmpuint(qfw_cfg_write_file(fw_cfg, &qos,
                                        FW_CFG_VMCOREINFO_FILENAME, &info,
                                        sizeof(info)), ==, sizeof(info));
    alloc_destroy(&qos.alloc);
    pc_fw_cfg_uninit(fw_cfg);
}

static bool has_number(const void *bytes, size_t size, uint64_t number)
{
    Word word;

    stq_le_p(word.little, number);
    stq_be_p(word.big, number);
    return has_word(bytes, size, &word);
}

static bool file_has(const char *path, uint64_t number)
{
    g_autofree char *contents = NULL;
    size_t size;

    g_assert_true(g_file_get_contents(path, &contents, &size, NULL));
    return has_number(contents, size, number);
}

/* QEMU looks for the kernel until it is known, the last time at the end. */
static void test_kernel_untold(void)
{
    Profiled p = start_profiled_with(face->cpu, "-device vmcoreinfo");
    g_autofree char *file = file_of(&p, "p");

    add_profile(&p, "p", "{'period': 1000}");
    count_insns(&p.m, PERIOD);
    delete_profile(&p, "p");
    g_assert_cmpint(size_of(file), >, 0);
    end(&p);
}

/* The same when QEMU ends, and other objects have been freed. */
static void test_kernel_untold_at_exit(void)
{
    g_autofree char *args = face->args(face->cpu);
    g_autofree char *more = g_strdup_printf(
        "%s -device vmcoreinfo -object pmu-profile,id=a,file=/dev/null"
        " -object pmu-profile,id=b,file=/dev/null", args);
    Machine m = start(more);

    count_insns(&m, PERIOD);
    stop(&m);
}

/* The kernel of a machine that is reset before it runs is not in a profile. */
static void test_kernel_before_reset(void)
{
    Profiled p = start_profiled_with(face->cpu, "-device vmcoreinfo");
    g_autofree char *file = file_of(&p, "p");

    qtest_qmp_assert_success(p.m.qts, "{'execute': 'stop'}");
    tell_kernel(&p, OLD_TEXT);
    add_profile(&p, "p", "{'period': 1000}");
    qtest_system_reset(p.m.qts);
    qtest_qmp_assert_success(p.m.qts, "{'execute': 'cont'}");
    tell_kernel(&p, NEW_TEXT);
    count_insns(&p.m, PERIOD);
    g_assert_cmpuint(samples(&p, "p"), ==, 1);
    delete_profile(&p, "p");
    g_assert_false(file_has(file, OLD_TEXT));
    g_assert_true(file_has(file, NEW_TEXT));
    end(&p);
}

/* Returns: where the first sample begins in a stream; 0 without samples. */
static size_t first_sample(const GByteArray *stream)
{
    Record r = {};

    while (next_record(stream, &r)) {
        if (r.type == SAMPLE) {
            return r.at - stream->data;
        }
    }
    return 0;
}

/* A new reader gets the record of the kernel ahead of all samples. */
static void test_kernel_of_reader(void)
{
    g_autofree char *socket = name_socket();
    Profiled p = start_in_socket(socket, "period=1000 -device vmcoreinfo");
    g_autoptr(GByteArray) stream = g_byte_array_new();
    uint8_t some[4096];
    int fd;

    tell_kernel(&p, OLD_TEXT);
    fd = unix_connect(socket, &error_abort);
    do {
        ssize_t n = read(fd, some, sizeof(some));

        g_assert_cmpint(n, >, 0);
        g_byte_array_append(stream, some, n);
        count_insns(&p.m, PERIOD);
    } while (!first_sample(stream));
    g_assert_true(has_number(stream->data, first_sample(stream), OLD_TEXT));
    close(fd);
    unlink(socket);
    end(&p);
}

/* The kernel does not run yet when the profile begins, but is sampled. */
static void test_kernel_before_cont(void)
{
    Profiled p = start_profiled_with(face->cpu, "-device vmcoreinfo");
    g_autofree char *file = file_of(&p, "p");

    qtest_qmp_assert_success(p.m.qts, "{'execute': 'stop'}");
    tell_kernel(&p, OLD_TEXT);
    add_profile(&p, "p", "{'period': 1000}");
    qtest_qmp_assert_success(p.m.qts, "{'execute': 'cont'}");
    count_insns(&p.m, PERIOD);
    delete_profile(&p, "p");
    g_assert_true(file_has(file, OLD_TEXT));
    end(&p);
}

/* ICH9's bridge to the ISA bus, which has the address of ACPI's registers */
#define LPC_DEVICE   QPCI_DEVFN(0x1f, 0)
#define LPC_PMBASE   0x40
#define LPC_ACPI_CTL 0x44
#define LPC_ACPI_EN  0x80
#define PM_BASE      0x600
#define PM1_CNT      (PM_BASE + 4)
#define PM1_SLEEP_S3 (1 << 13 | 1 << 10)

static void sleep_and_wake(Profiled *p)
{
    QPCIBus *bus = qpci_new_pc(p->m.qts, NULL);
    QPCIDevice *lpc = qpci_device_find(bus, LPC_DEVICE);

    qpci_config_writel(lpc, LPC_PMBASE, PM_BASE | 1);
    qpci_config_writeb(lpc, LPC_ACPI_CTL, LPC_ACPI_EN);
    qtest_outw(p->m.qts, PM1_CNT, PM1_SLEEP_S3);
    qtest_qmp_eventwait(p->m.qts, "SUSPEND");
    qtest_qmp_assert_success(p->m.qts, "{'execute': 'system_wakeup'}");
    qtest_qmp_eventwait(p->m.qts, "WAKEUP");
    g_free(lpc);
    qpci_free_pc(bus);
}

/* A wake-up from S3 keeps the kernel; only a later reset ends the profile. */
static void test_sleep(void)
{
    Profiled p = start_profiled(face->cpu);

    add_profile(&p, "p", "{'period': 1000, 'kernel-text': 4096}");
    count_insns(&p.m, PERIOD);
    sleep_and_wake(&p);
    count_insns(&p.m, PERIOD);
    g_assert_cmpuint(samples(&p, "p"), ==, 2);
    enable(&p, "p", true);
    qtest_qmp_assert_success(p.m.qts, "{'execute': 'system_reset'}");
    await_stop(&p, "guest-reset");
    end(&p);
}

static void check_given_kernel_ends(Profiled *p)
{
    count_insns(&p->m, PERIOD);
    qtest_qmp_assert_success(p->m.qts, "{'execute': 'system_reset'}");
    await_stop(p, "guest-reset");
}

/* A reader that comes later would get a kernel that no longer runs. */
static void test_given_kernel_unread(void)
{
    g_autofree char *socket = name_socket();
    Profiled p = start_in_socket(socket, "kernel-text=4096");

    check_given_kernel_ends(&p);
    unlink(socket);
    end(&p);
}

static void test_given_kernel_of_reader(void)
{
    Port port = open_port(",kernel-text=4096");

    read_until(&port, &magic);
    check_given_kernel_ends(&port.p);
    close_port(&port);
}

/*
 * Refused options
 */

typedef struct Refused {
    const char *name, *json, *message;
} Refused;

static const Refused refused[] = {
    { "event", "{'event': 'giraffes'}", "no event giraffes" },
    { "code", "{'event': 'rfffff'}", "not counted here" },
    { "prefix-of-code", "{'event': 'r0xc0'}", "no event r0xc0" },
    { "long-code", "{'event': 'r11111111111111111'}", "no event" },
    { "both-rates", "{'period': 10, 'frequency': 10}", "exclude each other" },
    { "period", "{'period': 9223372036854775808}", "9223372036854775807" },
    { "frequency", "{'frequency': 2000000000}", "more than one sample" },
    { "modes", "{'modes': 'ux'}", "modes=ux" },
    { "accounting", "{'accounting': 'giraffe'}", "giraffe" },
    { "time-of-guest", "{'event': 'cpu-clock'}", "needs accounting=vcpu" },
    { "events-of-vcpu", "{'event': 'branches', 'accounting': 'vcpu'}",
      "event=branches" },
    { "short-time", "{'accounting': 'vcpu', 'period': 99999}",
      "at least 100000 ns" },
    { "frequent-time", "{'accounting': 'vcpu', 'frequency': 10001}",
      "at least 100000 ns" },
    { "long-time", "{'accounting': 'vcpu', 'period': 1000000000000001}",
      "at most 1000000000000000 ns" },
    { "very-long-time",
      "{'accounting': 'vcpu', 'period': 17293822569102704640}",
      "at most 1000000000000000 ns" },
    { "callchain", "{'callchain': 256}", "'callchain' expects uint8_t" },
    { "branches-of-time", "{'accounting': 'vcpu', 'branch-stack': true}",
      "branch-stack=on" },
    { "data-of-time", "{'accounting': 'vcpu', 'data-address': true}",
      "data-address=on" },
    { "data-of-no-engine", "{'data-address': true}", "not known exactly" },
    { "vcpu", "{'vcpus': [0, 77]}", "no vCPU 77" },
    { "build-id", "{'build-id': 'abcdefgh'}", "build-id=abcdefgh" },
    { "file-and-chardev", "{'file': '/dev/null', 'chardev': 'c'}",
      "either file or chardev" },
    { "chardev", "{'chardev': 'none'}", "no chardev none" },
    { "no-directory", "{'file': '/nonexistent/p'}", "/nonexistent/p" },
    { "directory", "{'file': '/'}", "/" },
};

static void test_refused(const void *data)
{
    const Refused *r = data;
    Profiled p = start_profiled(face->cpu);
    QDict *error = qtest_qmp_assert_failure_ref(
        p.m.qts, "{'execute': 'object-add', 'arguments': %p}",
        object_with(&p, "p", r->json));

    g_assert_nonnull(strstr(qdict_get_str(error, "desc"), r->message));
    qobject_unref(error);
    /* The refused object leaves no traces. */
    add_profile(&p, "p", "{}");
    end(&p);
}

/* Checks the monitor's report of the only profile; absent reasons are "". */
static void assert_profile(Profiled *p, const char *state, const char *reason,
                           uint64_t number)
{
    QDict *answer = qtest_qmp(p->m.qts, "{'execute': 'query-pmu-profiles'}");
    QList *list = qdict_get_qlist(answer, "return");
    const QDict *info = qobject_to(QDict, qlist_peek(list));

    g_assert_cmpuint(qlist_size(list), ==, 1);
    g_assert_cmpstr(qdict_get_str(info, "id"), ==, "p");
    g_assert_cmpstr(qdict_get_str(info, "state"), ==, state);
    g_assert_cmpstr(qdict_get_try_str(info, "stop-reason") ?: "", ==, reason);
    g_assert_cmpuint(get_uint(info, "samples"), ==, number);
    g_assert_cmpuint(get_uint(info, "size"), ==, property(p, "p", "size"));
    g_assert_cmpuint(get_uint(info, "lost"), ==, 0);
    g_assert_cmpuint(get_uint(info, "throttled"), ==, 0);
    qobject_unref(answer);
}

static void test_query(void)
{
    Profiled p = start_profiled(face->cpu);
    g_autofree char *table = NULL;

    add_profile(&p, "p", "{'period': 1000, 'max-size': 100000}");
    count_insns(&p.m, 2 * PERIOD);
    enable(&p, "p", false);
    assert_profile(&p, "disabled", "", 2);
    enable(&p, "p", true);
    assert_profile(&p, "sampling", "", 2);
    qtest_system_reset(p.m.qts);
    table = qtest_hmp(p.m.qts, "info pmu");
    g_test_message("%s", table);
    g_assert_nonnull(strstr(table, "sampling"));
    end(&p);
}

static void test_query_of_stopped(void)
{
    Profiled p = start_profiled(face->cpu);

    add_profile(&p, "p", "{'period': 1000, 'kernel-text': 4096}");
    count_insns(&p.m, PERIOD);
    qtest_qmp_assert_success(p.m.qts, "{'execute': 'system_reset'}");
    await_stop(&p, "guest-reset");
    assert_profile(&p, "stopped", "guest-reset", 1);
    end(&p);
}

/* Numbers of events, of samples and of callers, and addresses: no sizes */
static void test_no_sizes(void)
{
    static const char *const numbers[] = {
        "period", "frequency", "callchain", "kernel-text",
    };
    Profiled p = start_profiled(face->cpu);

    for (unsigned i = 0; i < ARRAY_SIZE(numbers); i++) {
        g_autofree char *line = g_strdup_printf(
            "object_add pmu-profile,id=p,file=/dev/null,%s=0.1k", numbers[i]);
        g_autofree char *answer = qtest_hmp(p.m.qts, "%s", line);

        g_assert_nonnull(strstr(answer, numbers[i]));
    }
    g_free(qtest_hmp(p.m.qts, "object_add pmu-profile,id=p,file=/dev/null,"
                     "max-size=1k,kernel-text=0x1000"));
    g_assert_cmpuint(property(&p, "p", "max-size"), ==, 1024);
    g_assert_cmpuint(property(&p, "p", "kernel-text"), ==, 0x1000);
    end(&p);
}

static void test_file_exists(void)
{
    Profiled p = start_profiled(face->cpu);
    g_autofree char *file = file_of(&p, "p");
    g_autofree char *contents = NULL;
    QDict *error;

    g_assert_true(g_file_set_contents(file, "precious", -1, NULL));
    error = qtest_qmp_assert_failure_ref(
        p.m.qts, "{'execute': 'object-add', 'arguments': %p}",
        object_with(&p, "p", "{}"));
    g_assert_nonnull(strstr(qdict_get_str(error, "desc"), "exists"));
    qobject_unref(error);
    g_assert_true(g_file_get_contents(file, &contents, NULL, NULL));
    g_assert_cmpstr(contents, ==, "precious");
    end(&p);
}

/* A profile that goes nowhere is a mistake. */
static void test_no_file(void)
{
    Profiled p = start_profiled(face->cpu);
    QDict *error = qtest_qmp_assert_failure_ref(
        p.m.qts, "{'execute': 'object-add', 'arguments': {'qom-type':"
        " 'pmu-profile', 'id': 'p'}}");

    g_assert_nonnull(strstr(qdict_get_str(error, "desc"),
                            "either file or chardev"));
    qobject_unref(error);
    end(&p);
}

/* Other users cannot read a profile. */
static void test_file_mode(void)
{
    mode_t before = umask(0);
    Profiled p = start_profiled(face->cpu);
    g_autofree char *file = file_of(&p, "p");
    struct stat st;

    umask(before);
    add_profile(&p, "p", "{}");
    g_assert_cmpint(stat(file, &st), ==, 0);
    g_assert_cmpuint(st.st_mode & 0777, ==, 0600);
    end(&p);
}

/* Two names of links, and what exchanges them until it is stopped */
typedef struct Exchange {
    const char *a, *b;
    bool is_to_end;
} Exchange;

static void *exchange(void *opaque)
{
    Exchange *e = opaque;

    while (!qatomic_read(&e->is_to_end)) {
        g_assert_cmpint(renameat2(AT_FDCWD, e->a, AT_FDCWD, e->b,
                                  RENAME_EXCHANGE), ==, 0);
    }
    return NULL;
}

/* A device that becomes a file while QEMU looks at it */
static void test_file_comes_to_exist(void)
{
    Profiled p = start_profiled(face->cpu);
    g_autofree char *file = file_of(&p, "p");
    g_autofree char *other = file_of(&p, "other");
    g_autofree char *victim = file_of(&p, "victim");
    g_autofree char *contents = NULL;
    Exchange e = { file, other };
    unsigned accepted = 0;
    GThread *thread;

    g_assert_true(g_file_set_contents(victim, "precious", -1, NULL));
    g_assert_cmpint(symlink("/dev/null", file), ==, 0);
    g_assert_cmpint(symlink(victim, other), ==, 0);
    thread = g_thread_new("exchange", exchange, &e);
    for (int i = 0; i < 200; i++) {
        QDict *answer = qtest_qmp(p.m.qts, "{'execute': 'object-add',"
                                  " 'arguments': %p}",
                                  object_with(&p, "p", "{}"));

        if (qdict_haskey(answer, "return")) {
            delete_profile(&p, "p");
            accepted++;
        }
        qobject_unref(answer);
    }
    qatomic_set(&e.is_to_end, true);
    g_thread_join(thread);
    g_assert_cmpuint(accepted, >, 0);
    g_assert_cmpuint(accepted, <, 200);
    g_assert_true(g_file_get_contents(victim, &contents, NULL, NULL));
    g_assert_cmpstr(contents, ==, "precious");
    end(&p);
}

static void test_pipe_without_reader(void)
{
    Profiled p = start_profiled(face->cpu);
    g_autofree char *pipe = file_of(&p, "p");
    QDict *error;

    g_assert_cmpint(mkfifo(pipe, 0600), ==, 0);
    error = qtest_qmp_assert_failure_ref(
        p.m.qts, "{'execute': 'object-add', 'arguments': %p}",
        object_with(&p, "p", "{}"));
    g_assert_nonnull(strstr(qdict_get_str(error, "desc"), "cannot be opened"));
    qobject_unref(error);
    end(&p);
}

static void test_no_cpu(void)
{
    g_autofree char *message = complaint("-machine none -object pmu-profile,"
                                         "id=p,file=/dev/null");

    g_assert_nonnull(strstr(message, "no CPU that can be profiled"));
}

static void test_too_many(void)
{
    Profiled p = start_profiled(face->cpu);
    QDict *error;

    for (unsigned i = 0; i < 32; i++) {
        g_autofree char *id = g_strdup_printf("p%u", i);

        add_profile(&p, id, "{'file': '/dev/null', 'period': 10}");
    }
    error = qtest_qmp_assert_failure_ref(
        p.m.qts, "{'execute': 'object-add', 'arguments': %p}",
        object_with(&p, "p", "{'file': '/dev/null'}"));
    g_assert_nonnull(strstr(qdict_get_str(error, "desc"), "32 observers"));
    qobject_unref(error);
    count_insns(&p.m, 100);
    g_assert_cmpuint(samples(&p, "p31"), ==, 10);
    end(&p);
}

static void add_sampling(void)
{
    add("profile/period", test_period);
    add("profile/without-pmu", test_without_pmu);
    add("profile/frequency", test_frequency);
    add("profile/raw", test_raw);
    add("profile/modes", test_modes);
    add("profile/nested-modes", test_nested_modes);
    add("profile/several", test_several);
    add("profile/reset", test_reset);
    add("profile/hotplug", test_hotplug);
    add("profile/time", test_time);
}

static void add_guests_of_x86(void)
{
    add("profile/guest-reads", test_guest_reads);
    add("profile/guest-speaks", test_guest_speaks);
    add("profile/guest-lies", test_guest_lies);
    add("profile/guest-task-moves", test_guest_task_moves);
    add("profile/guest-is-reset", test_guest_is_reset);
    add("profile/guest-is-stopped", test_guest_is_stopped);
    add("profile/guest-is-reset-stopped", test_guest_is_reset_stopped);
    add("profile/guest-migrates", test_guest_migrates);
    add("profile/guest-migrates-and-is-reset",
        test_guest_migrates_and_is_reset);
    add("profile/is-used", test_is_used);
    add("profile/kernel-untold", test_kernel_untold);
    add("profile/kernel-untold-at-exit", test_kernel_untold_at_exit);
    add("profile/kernel-before-reset", test_kernel_before_reset);
    add("profile/kernel-before-cont", test_kernel_before_cont);
    add("profile/kernel-of-reader", test_kernel_of_reader);
    add("profile/sleep", test_sleep);
    add("profile/given-kernel/of-reader", test_given_kernel_of_reader);
}

static void add_writing(void)
{
    add("profile/lost", test_lost);
    add("profile/max-size", test_max_size);
    add("profile/max-size-at-stop", test_max_size_at_stop);
    add("profile/given-file", test_given_file);
    add("profile/given-file-to-append", test_given_file_to_append);
    add("profile/given-file-to-read-too", test_given_file_to_read_too);
    add("profile/given-pipe", test_given_pipe);
    add("profile/disk-full", test_disk_full);
    add("profile/disk-fills-up", test_disk_fills_up);
    add("profile/chardev-full", test_chardev_full);
    add("profile/pipe", test_pipe);
    add("profile/max-size-before-loss", test_max_size_before_loss);
    add("profile/pipe-at-end", test_pipe_at_end);
    add("profile/chardev", test_chardev);
    add("profile/lost-before-reader", test_lost_before_reader);
    add("profile/chardev-refused", test_chardev_refused);
    add("profile/pty", test_pty);
    add("profile/reader-leaves-at-end", test_reader_leaves_at_end);
    add("profile/sleeper-leaves-at-end", test_sleeper_leaves_at_end);
    add("profile/reader-sleeps-at-end", test_reader_sleeps_at_end);
    add("profile/reader-sleeps-at-end-of-machine",
        test_reader_sleeps_at_end_of_machine);
    add("profile/slow-reader", test_slow_reader);
    add("profile/slow-reader-of-pipe", test_slow_reader_of_pipe);
    add("profile/slow-readers-of-machine", test_slow_readers_of_machine);
    add("profile/reader-finds-end", test_reader_finds_end);
    add("profile/reader-of-pipe-finds-end", test_reader_of_pipe_finds_end);
    add("profile/late-reader", test_late_reader);
    add("profile/late-reader-of-machine", test_late_reader_of_machine);
    add("profile/late-reader-of-stopped-machine",
        test_late_reader_of_stopped_machine);
    add("profile/is-unused", test_is_unused);
    add("profile/given-kernel/unread", test_given_kernel_unread);
    add("profile/query", test_query);
    add("profile/query-of-stopped", test_query_of_stopped);
    add("profile/no-sizes", test_no_sizes);
    add("profile/file-exists", test_file_exists);
    add("profile/no-file", test_no_file);
    add("profile/file-mode", test_file_mode);
    add("profile/file-comes-to-exist", test_file_comes_to_exist);
    add("profile/pipe-without-reader", test_pipe_without_reader);
    add("profile/no-cpu", test_no_cpu);
    add("profile/too-many", test_too_many);
    for (unsigned i = 0; i < ARRAY_SIZE(refused); i++) {
        add_data("profile/refused", refused[i].name, &refused[i], test_refused);
    }
}

void add_profile_cases(bool whole)
{
    add_sampling();
    if (!whole) {
        return;
    }
    add_writing();
    if (g_str_equal(qtest_get_arch(), "x86_64")) {
        add_guests_of_x86();
    }
}
