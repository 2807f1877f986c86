/*
 * Bare-metal test guest for Power: runs suites and reports
 *
 * What to do is in the machine's command line (QEMU's -append), which begins
 * with "vpmu": suites=A,B,C names the suites ("list" lists all cases),
 * skip=N leaves out the first cases of them.  What happened goes to the serial
 * port, a line each:
 *
 *   run SUITE/CASE             it begins
 *   ok SUITE/CASE
 *   not ok SUITE/CASE # why
 *   = ...                      for `run` to compare between modes
 *   ~ ...                      that only a replay must repeat
 *   end                        nothing is missing
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <stdarg.h>

#include "internal.h"
#include "pmu.h"

/* The serial port of the LPC bus's ISA space. */
#define SERIAL          0x60300d00103f8ull
#define SERIAL_LSR      5
#define LSR_THRE        0x20

static struct checkpoint after_test;
static char reason[256];
static char command_line[1024];

/* ---- Output --------------------------------------------------------- */

struct output {
    char *buffer;
    size_t room;
};

static void put_serial(char c)
{
    /* A device's registers. */
    volatile uint8_t *serial = (uint8_t *)SERIAL;

    while (!(serial[SERIAL_LSR] & LSR_THRE)) {
        continue;
    }
    *serial = c;
}

static void put(struct output *out, char c)
{
    if (!out) {
        put_serial(c);
    } else if (out->room > 1) {
        *out->buffer++ = c;
        *out->buffer = 0;
        out->room--;
    }
}

static void put_string(struct output *out, const char *s)
{
    while (*s) {
        put(out, *s++);
    }
}

static void put_number(struct output *out, uint64_t value, unsigned base)
{
    char digits[20];
    unsigned n = 0;

    do {
        digits[n++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value);
    while (n) {
        put(out, digits[--n]);
    }
}

static void put_format(struct output *out, const char *format, va_list args)
{
    for (; *format; format++) {
        bool wide;
        uint64_t value;

        if (*format != '%') {
            put(out, *format);
            continue;
        }
        wide = *++format == 'l';
        format += wide;
        switch (*format) {
        case 'c':
            put(out, va_arg(args, int));
            break;
        case 's':
            put_string(out, va_arg(args, const char *));
            break;
        default:
            value = wide ? va_arg(args, uint64_t) : va_arg(args, unsigned);
            put_number(out, value, *format == 'x' ? 16 : 10);
        }
    }
}

void print(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    put_format(NULL, format, args);
    va_end(args);
}

/* ---- Options -------------------------------------------------------- */

#define MARK "vpmu "

/* Returns: whether all of it had room; cut off, it would lack suites. */
static bool copy_command_line(const char *text)
{
    for (size_t i = 0; i < sizeof(command_line); i++) {
        command_line[i] = text[i];
        if (!text[i]) {
            return true;
        }
    }
    return false;
}

/* It is somewhere in the device tree, in one piece. */
static bool find_command_line(const void *fdt)
{
    size_t size = ((const uint32_t *)fdt)[1];
    const char *end = (const char *)fdt + size - strlen(MARK);

    for (const char *p = fdt; p < end; p++) {
        if (!memcmp(p, MARK, strlen(MARK))) {
            return copy_command_line(p);
        }
    }
    return false;
}

/* Returns: the text behind " NAME=", or NULL. */
static const char *find_option(const char *name)
{
    for (const char *p = command_line; *p; p++) {
        if (*p == ' ' && !memcmp(p + 1, name, strlen(name))
            && p[1 + strlen(name)] == '=') {
            return p + 1 + strlen(name) + 1;
        }
    }
    return NULL;
}

uint64_t option(const char *name, uint64_t value)
{
    const char *text = find_option(name);

    if (text) {
        value = 0;
        for (; *text >= '0' && *text <= '9'; text++) {
            value = value * 10 + *text - '0';
        }
    }
    return value;
}

/* Whether a suite is in the list of those to run. */
static bool is_wanted(const char *suite)
{
    const char *list = find_option("suites");
    size_t length = strlen(suite);

    for (const char *p = list; p && *p && *p != ' '; p++) {
        if ((p == list || p[-1] == ',') && !memcmp(p, suite, length)
            && (p[length] == ',' || p[length] == ' ' || !p[length])) {
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
    resume(&after_test);
}

static void run_test(const struct test *test)
{
    reason[0] = 0;
    reset_machine();
    if (checkpoint(&after_test)) {
        return;
    }
    pmu_reset();
    test->fn();
}

static void run_suites(uint64_t skip)
{
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
        if (reason[0]) {
            print("not ok %s/%s # %s\n", t->suite, t->name, reason);
        } else {
            print("ok %s/%s\n", t->suite, t->name);
        }
    }
}

static void list(void)
{
    for (const struct test *t = tests_begin; t < tests_end; t++) {
        print("%s/%s\n", t->suite, t->name);
    }
}

void main(const void *fdt)
{
    bool found = find_command_line(fdt);

    init_machine();
    if (!found) {
        stop_machine();
    }
    if (is_wanted("list")) {
        list();
    } else {
        run_suites(option("skip", 0));
    }
    print("end\n");
    /* `run` ends QEMU, by ways that say no more than they have to. */
    for (;;) {
        continue;
    }
}
