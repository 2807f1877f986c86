/*
 * Bare-metal test guest: runs suites and reports
 *
 * Options control it: suite=A,B,C names the suites ("list" lists all cases),
 * skip=N skips their first cases.  Results go to the serial port, one per line:
 *
 *   run SUITE/CASE             the case begins
 *   ok SUITE/CASE
 *   not ok SUITE/CASE # why
 *   skip SUITE/CASE            this machine lacks the case's subject
 *   = ...                      output for `run` to compare between modes
 *   ~ ...                      output that only a replay must repeat
 *   end                        the output is complete
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "internal.h"
#include "output.h"

static struct checkpoint after_test;
static char reason[256];
static bool skipped;
static char suites[256];

/* ---- Options -------------------------------------------------------- */

uint64_t option(const char *name, uint64_t value)
{
    char text[24];

    if (read_option(name, text, sizeof(text))) {
        value = 0;
        for (const char *s = text; *s >= '0' && *s <= '9'; s++) {
            value = value * 10 + *s - '0';
        }
    }
    return value;
}

/* Whether a suite is to be run */
static bool is_wanted(const char *suite)
{
    size_t length = strlen(suite);

    for (const char *p = suites; *p; p++) {
        if ((p == suites || p[-1] == ',') && !memcmp(p, suite, length)
            && (p[length] == ',' || !p[length])) {
            return true;
        }
    }
    return false;
}

/* ---- Tests ---------------------------------------------------------- */

static void set_reason(const char *format, va_list args, uint64_t got,
                       uint64_t want)
{
    struct output out = { reason, sizeof(reason) };

    put_format(&out, format, args);
    if (got != want) {
        put_string(&out, ": got ");
        put_number(&out, got, 10);
        put_string(&out, " (0x");
        put_number(&out, got, 16);
        put_string(&out, "), not ");
        put_number(&out, want, 10);
        put_string(&out, " (0x");
        put_number(&out, want, 16);
        put(&out, ')');
    }
}

bool expect_at(uint64_t got, uint64_t want, const char *what, ...)
{
    va_list args;

    if (got != want && !reason[0]) {
        va_start(args, what);
        set_reason(what, args, got, want);
        va_end(args);
    }
    return got == want;
}

void fail(const char *why, ...)
{
    va_list args;

    if (!reason[0]) {
        va_start(args, why);
        set_reason(why, args, 0, 0);
        va_end(args);
    }
    park_other_cpu();
    resume(&after_test);
}

void skip(void)
{
    skipped = true;
    resume(&after_test);
}

static void run_test(const struct test *test)
{
    reason[0] = 0;
    skipped = false;
    reset_machine();
    seed_random(1);
    if (checkpoint(&after_test)) {
        return;
    }
    prepare_pmu(test->suite);
    test->fn();
}

/* Returns: false if the case has failed */
static bool report(const struct test *test)
{
    if (reason[0]) {
        print("not ok %s/%s # %s\n", test->suite, test->name, reason);
    } else {
        print("%s %s/%s\n", skipped ? "skip" : "ok", test->suite, test->name);
    }
    return !reason[0];
}

static bool run_suites(uint64_t skip)
{
    bool good = true;

    for (const struct test *t = tests_begin; t < tests_end; t++) {
        if (!is_wanted(t->suite)) {
            continue;
        }
        if (skip) {
            skip--;
            continue;
        }
        print("run %s/%s\n", t->suite, t->name);
        run_test(t);
        good = report(t) && good;
    }
    return good;
}

static void list(void)
{
    for (const struct test *t = tests_begin; t < tests_end; t++) {
        print("%s/%s\n", t->suite, t->name);
    }
}

void main(void)
{
    bool good = true;

    read_option("suite", suites, sizeof(suites));
    if (is_wanted("list")) {
        list();
    } else {
        good = run_suites(option("skip", 0));
    }
    print("end\n");
    end_machine(good);
}
