/*
 * Bare-metal test guest: runs one suite and reports
 *
 * What to do comes through fw_cfg: opt/vpmu/suite names the suite ("list"
 * lists all cases), opt/vpmu/skip leaves out its first cases.
 * What happened goes to the serial port, a line each:
 *
 *   run SUITE/CASE             it begins
 *   ok SUITE/CASE
 *   not ok SUITE/CASE # why
 *   skip SUITE/CASE            this machine does not have what it is about
 *   = ...                      for `run` to compare between modes
 *   ~ ...                      that only a replay must repeat
 *   end                        nothing is missing
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <stdarg.h>

#include "internal.h"
#include "pmu.h"

#define SERIAL          0x3f8
#define SERIAL_LSR      (SERIAL + 5)
#define LSR_THRE        BIT(5)
#define EXIT_PORT       0xf4
#define FW_CFG_SELECT   0x510
#define FW_CFG_DATA     0x511
#define FW_CFG_FILE_DIR 0x19

static const struct test *current;
static struct checkpoint after_test;
static char reason[256];
static bool skipped;

/* ---- Output --------------------------------------------------------- */

struct output {
    char *buffer;
    size_t room;
};

static void put(struct output *out, char c)
{
    if (!out) {
        while (!(inb(SERIAL_LSR) & LSR_THRE)) {
            pause();
        }
        outb(SERIAL, c);
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

static uint32_t fw_cfg_be(unsigned bytes)
{
    uint32_t value = 0;

    while (bytes--) {
        value = value << 8 | inb(FW_CFG_DATA);
    }
    return value;
}

/* Read a file of fw_cfg as a string; "" if there is none. */
static void fw_cfg_string(const char *name, char *buffer, size_t size)
{
    uint32_t files;

    buffer[0] = 0;
    outw(FW_CFG_SELECT, FW_CFG_FILE_DIR);
    for (files = fw_cfg_be(4); files; files--) {
        uint32_t length = fw_cfg_be(4);
        uint16_t select = fw_cfg_be(2);
        char file[57] = "";

        fw_cfg_be(2);
        for (unsigned i = 0; i < 56; i++) {
            file[i] = inb(FW_CFG_DATA);
        }
        if (streq(file, name)) {
            length = length < size ? length : size - 1;
            outw(FW_CFG_SELECT, select);
            for (unsigned i = 0; i < length; i++) {
                buffer[i] = inb(FW_CFG_DATA);
            }
            buffer[length] = 0;
            return;
        }
    }
}

uint64_t option(const char *name, uint64_t value)
{
    char path[56] = "opt/vpmu/";
    char text[24];

    memcpy(path + strlen(path), name, strlen(name) + 1);
    fw_cfg_string(path, text, sizeof(text));
    if (text[0]) {
        value = 0;
        for (const char *s = text; *s; s++) {
            value = value * 10 + *s - '0';
        }
    }
    return value;
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
    /* Only the boot CPU can go on; for the other it waits in vain. */
    while (cpu_index() != 0) {
        asm volatile("hlt");
    }
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
    if (checkpoint(&after_test)) {
        return;
    }
    if (!streq(test->suite, "machine") && !streq(test->suite, "nopmu") &&
        !streq(test->suite, "state")) {
        if (!pmu_version()) {
            fail("no PMU: CPUID reports version 0");
        }
        pmu_reset();
    }
    test->fn();
}

static bool run_suite(const char *suite, uint64_t skip)
{
    bool good = true;

    for (current = tests_begin; current < tests_end; current++) {
        if (!streq(current->suite, suite)) {
            continue;
        }
        if (skip) {
            skip--;
            continue;
        }
        print("run %s/%s\n", current->suite, current->name);
        run_test(current);
        if (reason[0]) {
            print("not ok %s/%s # %s\n", current->suite, current->name,
                  reason);
            good = false;
        } else if (skipped) {
            print("skip %s/%s\n", current->suite, current->name);
        } else {
            print("ok %s/%s\n", current->suite, current->name);
        }
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
    char suite[32];
    bool good = true;

    pmu_find();
    fw_cfg_string("opt/vpmu/suite", suite, sizeof(suite));
    if (streq(suite, "list")) {
        list();
    } else {
        good = run_suite(suite, option("skip", 0));
    }
    print("end\n");
    outl(EXIT_PORT, good ? 0x10 : 0x11);
    for (;;) {
        asm volatile("hlt");
    }
}
