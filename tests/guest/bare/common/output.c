/*
 * Bare-metal test guest: text, to the serial port and to buffers
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "output.h"
#include "runner.h"

void put(struct output *out, char c)
{
    if (!out->buffer) {
        put_serial(c);
    } else if (out->room > 1) {
        *out->buffer++ = c;
        *out->buffer = 0;
        out->room--;
    }
}

void put_string(struct output *out, const char *s)
{
    while (*s) {
        put(out, *s++);
    }
}

void put_number(struct output *out, uint64_t value, unsigned base)
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

void put_format(struct output *out, const char *format, va_list args)
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
    struct output serial = { };
    va_list args;

    va_start(args, format);
    put_format(&serial, format, args);
    va_end(args);
}
