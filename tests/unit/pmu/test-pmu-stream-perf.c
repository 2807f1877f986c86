/*
 * Performance monitoring unit: perf itself reads profiles
 *
 * The output is compared word by word, as the spacing depends on perf's
 * version.  6.1 and 6.12 agree.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include <inttypes.h>
#include <stdlib.h>
#include "hw/pmu/profile/stream.h"

#define TEXT 0xffffffff9a000000ull

/* A stream that is to be written to a file in a directory */
typedef struct Profile {
    PmuStream stream;
    GByteArray *out;
    char *directory;
    char *file;
    char *kallsyms;
} Profile;

static const PmuStreamEvent instructions = {
    .name = "instructions",
    .type = 4,
    .config = 0xc0,
    .period = 1000,
    .exact = true,
    .callchain = true,
};

static const PmuGuestKernel no_build_id = { .text = TEXT };

static const PmuGuestKernel with_build_id = {
    .text = TEXT,
    .release = "6.1.0-test",
    .build_id = { 0xab, 0xcd },
    .build_id_size = 20,
};

/* As in System.map: at other addresses than in the running kernel */
static const char kallsyms[] =
    "ffffffff81000000 T _text\n"
    "ffffffff81000000 T _stext\n"
    "ffffffff81001000 T guest_read\n"
    "ffffffff81002000 T guest_write\n"
    "ffffffff81003000 T _etext\n";

/* Returns: perf's output, with each run of blanks replaced by one */
static char *squeeze(const char *text)
{
    g_auto(GStrv) words = g_strsplit_set(text, " \t\n", 0);
    GString *all = g_string_new("");
    unsigned i;

    for (i = 0; words[i]; i++) {
        if (words[i][0]) {
            g_string_append_printf(all, "%s%s", all->len ? " " : "", words[i]);
        }
    }
    return g_string_free(all, FALSE);
}

static void write_stream(Profile *p)
{
    g_assert_true(g_file_set_contents(p->file, (char *)p->out->data,
                                      p->out->len, NULL));
}

/* @args: words, up to a NULL */
static char *run_perf(Profile *p, const char *command, const char **args)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_autofree char *out = NULL, *err = NULL;
    GError *error = NULL;
    int status;

    write_stream(p);
    g_ptr_array_add(argv, (char *)"perf");
    g_ptr_array_add(argv, (char *)"--no-pager");
    g_ptr_array_add(argv, (char *)command);
    g_ptr_array_add(argv, (char *)"-i");
    g_ptr_array_add(argv, p->file);
    for (; *args; args++) {
        g_ptr_array_add(argv, (char *)*args);
    }
    g_ptr_array_add(argv, NULL);
    g_spawn_sync(p->directory, (char **)argv->pdata, NULL, G_SPAWN_SEARCH_PATH,
                 NULL, NULL, &out, &err, &status, &error);
    g_assert_no_error(error);
    g_test_message("%s", err);
    g_assert_cmpint(status, ==, 0);
    return squeeze(out);
}

#define FIELDS "comm,tid,cpu,time,event,period,ip,sym,dso"

static void assert_script(Profile *p, const char *expected)
{
    const char *args[] = { "-F", FIELDS, "--ns", NULL };
    g_autofree char *shown = run_perf(p, "script", args);

    g_assert_cmpstr(shown, ==, expected);
}

/* With the symbols that the user provides */
static void assert_script_with_symbols(Profile *p, const char *expected)
{
    const char *args[] = {
        "-F", FIELDS, "--ns", "--kallsyms", p->kallsyms, NULL,
    };
    g_autofree char *shown = run_perf(p, "script", args);

    g_assert_cmpstr(shown, ==, expected);
}

static void put(Profile *p, PmuStreamSample sample)
{
    sample.tid = sample.pid;
    sample.period = instructions.period;
    pmu_stream_sample(&p->stream, &sample);
}

static void put_kernel_sample(Profile *p, uint64_t ip, uint64_t caller,
                              uint64_t time_ns)
{
    put(p, (PmuStreamSample) {
        .ip = ip,
        .pid = 1,
        .cpu = 2,
        .time_ns = time_ns,
        .callers = &caller,
        .nr_callers = 1,
    });
}

static void put_user_sample(Profile *p, uint32_t pid, bool nested,
                            uint64_t time_ns)
{
    put(p, (PmuStreamSample) {
        .ip = 0x401000,
        .user = true,
        .nested = nested,
        .pid = pid,
        .time_ns = time_ns,
    });
}

static void test_user(Profile *p)
{
    pmu_stream_comm(&p->stream, 1, 1, "cr3=0x1000", 5);
    put_user_sample(p, 1, false, 1500000000);
    assert_script(p, "cr3=0x1000 1 [000] 1.500000000: 1000 instructions:"
                     " 401000 [unknown] ([unknown])");
}

static void test_symbols(Profile *p)
{
    pmu_stream_kernel(&p->stream, &no_build_id, 5);
    pmu_stream_comm(&p->stream, 1, 1, "cr3=0x1000", 5);
    put_kernel_sample(p, TEXT + 0x1004, TEXT + 0x2010, 10);
    assert_script_with_symbols(
        p, "cr3=0x1000 1 [002] 0.000000010: 1000 instructions:"
           " ffffffff9a001004 guest_read ([kernel.kallsyms])"
           " ffffffff9a002010 guest_write ([kernel.kallsyms])");
}

/*
 * With an unknown kernel, symbols are as in the guest's /proc/kallsyms.
 */
static void test_symbols_at_their_addresses(Profile *p)
{
    static const PmuGuestKernel unknown = {};

    pmu_stream_kernel(&p->stream, &unknown, 5);
    put_kernel_sample(p, 0xffffffff81001004, 0xffffffff81002010, 10);
    assert_script_with_symbols(
        p, ":1 1 [002] 0.000000010: 1000 instructions:"
           " ffffffff81001004 guest_read ([kernel.kallsyms])"
           " ffffffff81002010 guest_write ([kernel.kallsyms])");
}

/* The address of a function in this machine's kernel; 0 if it is hidden */
static uint64_t address_here(const char *name)
{
    g_autofree char *symbols = NULL, *line = NULL;
    const char *at;

    g_file_get_contents("/proc/kallsyms", &symbols, NULL, NULL);
    line = g_strdup_printf(" T %s\n", name);
    at = symbols ? strstr(symbols, line) : NULL;
    return at ? g_ascii_strtoull(at - 16, NULL, 16) : 0;
}

/* perf must not take the guest's kernel for that of this machine. */
static void assert_not_of_this_machine(Profile *p, const PmuGuestKernel *kernel,
                                       const char *dso)
{
    uint64_t here = address_here("vfs_read") ?: TEXT + 0x1000;
    g_autofree char *expected = g_strdup_printf(
        ":1 1 [002] 0.000000010: 1000 instructions:"
        " %" PRIx64 " [unknown] (%s) %" PRIx64 " [unknown] (%s)",
        here + 5, dso, here + 9, dso);

    if (kernel) {
        pmu_stream_kernel(&p->stream, kernel, 5);
    }
    put_kernel_sample(p, here + 5, here + 9, 10);
    assert_script(p, expected);
}

static void test_unknown_kernel(Profile *p)
{
    assert_not_of_this_machine(p, NULL, "[unknown]");
}

static void test_unknown_build_id(Profile *p)
{
    PmuGuestKernel kernel = no_build_id;

    kernel.text = address_here("_stext") ?: TEXT;
    assert_not_of_this_machine(p, &kernel, "[kernel.kallsyms]");
}

static void test_other_build_id(Profile *p)
{
    PmuGuestKernel kernel = with_build_id;

    kernel.text = address_here("_stext") ?: TEXT;
    assert_not_of_this_machine(p, &kernel, "[kernel.kallsyms]");
}

static void test_nested(Profile *p)
{
    pmu_stream_kernel(&p->stream, &no_build_id, 5);
    pmu_stream_comm(&p->stream, 7, 7, "guest=0x5000,cr3=0x1000", 5);
    pmu_stream_nested(&p->stream, 7, 5);
    put(p, (PmuStreamSample) {
        .ip = TEXT + 0x1004, .nested = true, .pid = 7, .time_ns = 10,
    });
    put_user_sample(p, 7, true, 11);
    assert_script_with_symbols(
        p, "guest=0x5000,cr3=0x1000 7 [000] 0.000000010: 1000 instructions:"
           " ffffffff9a001004 [unknown] ([nested-guest])"
           " guest=0x5000,cr3=0x1000 7 [000] 0.000000011: 1000 instructions:"
           " 401000 [unknown] ([nested-guest])");
}

/* vCPUs are fetched in turn, so a later fetch can have earlier samples. */
static void test_order(Profile *p)
{
    static const uint64_t times[] = { 10, 40, 20, 30, 0, 50, 80, 45, 70, 0 };
    const char *args[] = { "-G", "-F", "time", "--ns", NULL };
    g_autofree char *shown = NULL;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(times); i++) {
        if (times[i]) {
            put_user_sample(p, 1, false, times[i]);
        } else {
            pmu_stream_round(&p->stream);
        }
    }
    shown = run_perf(p, "script", args);
    g_assert_cmpstr(shown, ==,
                    "0.000000010: 0.000000020: 0.000000030: 0.000000040: "
                    "0.000000045: 0.000000050: 0.000000070: 0.000000080:");
}

static void test_lost(Profile *p)
{
    const char *args[] = { "--show-lost-events", "-G", "-F", "cpu,time", "--ns",
                           NULL };
    g_autofree char *shown = NULL;

    put_user_sample(p, 1, false, 10);
    pmu_stream_lost(&p->stream, 3, 4711, 20);
    shown = run_perf(p, "script", args);
    g_assert_cmpstr(shown, ==, "[000] 0.000000010: [003] 0.000000020:"
                               " PERF_RECORD_LOST lost 4711");
}

static void test_throttle(Profile *p)
{
    const char *args[] = { "--stats", NULL };
    g_autofree char *shown = NULL;

    pmu_stream_throttle(&p->stream, 3, true, 5);
    put_user_sample(p, 1, false, 10);
    pmu_stream_throttle(&p->stream, 3, false, 20);
    pmu_stream_throttle(&p->stream, 2, true, 30);
    shown = run_perf(p, "report", args);
    g_assert_nonnull(strstr(shown, " THROTTLE events: 2 "));
    g_assert_nonnull(strstr(shown, " UNTHROTTLE events: 1 "));
}

static void test_report(Profile *p)
{
    const char *args[] = {
        "--stdio", "-q", "-g", "none", "--sort", "comm,dso,sym", "--kallsyms",
        p->kallsyms, "--percentage", "absolute", "--no-children", NULL,
    };
    g_autofree char *shown = NULL;

    pmu_stream_kernel(&p->stream, &with_build_id, 5);
    pmu_stream_comm(&p->stream, 1, 1, "cr3", 5);
    put_kernel_sample(p, TEXT + 0x1004, 0, 10);
    put_kernel_sample(p, TEXT + 0x1008, 0, 20);
    put_kernel_sample(p, TEXT + 0x1004, 0, 30);
    put_kernel_sample(p, TEXT + 0x2004, 0, 40);
    shown = run_perf(p, "report", args);
    g_assert_cmpstr(shown, ==,
                    "75.00% cr3 [kernel.kallsyms] [k] guest_read"
                    " 25.00% cr3 [kernel.kallsyms] [k] guest_write");
}

static void run(gconstpointer data)
{
    void (*test)(Profile *p) = data;
    Profile p = { .out = g_byte_array_new() };

    p.directory = g_dir_make_tmp("stream-XXXXXX", NULL);
    p.file = g_build_filename(p.directory, "guest.perf.data", NULL);
    p.kallsyms = g_build_filename(p.directory, "kallsyms", NULL);
    g_assert_true(g_file_set_contents(p.kallsyms, kallsyms, -1, NULL));
    pmu_stream_begin(&p.stream, p.out, &instructions, "x86_64");
    test(&p);
    g_unlink(p.file);
    g_unlink(p.kallsyms);
    g_rmdir(p.directory);
    g_free(p.file);
    g_free(p.kallsyms);
    g_free(p.directory);
    g_byte_array_unref(p.out);
}

static void add(const char *path, void (*test)(Profile *p))
{
    g_test_add_data_func(path, test, run);
}

int main(int argc, char *argv[])
{
    /* Ignore the user's settings and symbols. */
    setenv("PERF_CONFIG", "/dev/null", 1);
    setenv("PERF_BUILDID_DIR", "/nonexistent", 1);
    g_test_init(&argc, &argv, NULL);
    add("/pmu/stream-perf/user", test_user);
    add("/pmu/stream-perf/symbols", test_symbols);
    add("/pmu/stream-perf/symbols-at-their-addresses",
        test_symbols_at_their_addresses);
    add("/pmu/stream-perf/unknown-kernel", test_unknown_kernel);
    add("/pmu/stream-perf/unknown-build-id", test_unknown_build_id);
    add("/pmu/stream-perf/other-build-id", test_other_build_id);
    add("/pmu/stream-perf/nested", test_nested);
    add("/pmu/stream-perf/order", test_order);
    add("/pmu/stream-perf/lost", test_lost);
    add("/pmu/stream-perf/throttle", test_throttle);
    add("/pmu/stream-perf/report", test_report);
    return g_test_run();
}
