/*
 * Bare-metal test guest: text
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef BARE_OUTPUT_H
#define BARE_OUTPUT_H

#include <stdarg.h>

#include "bare.h"

/**
 * struct output - a destination of text
 * @buffer: the end of the text so far; NULL for the serial port
 * @room: the rest of the buffer's size
 */
struct output {
    char *buffer;
    size_t room;
};

void put(struct output *out, char c);
void put_string(struct output *out, const char *s);
void put_number(struct output *out, uint64_t value, unsigned base);
void put_format(struct output *out, const char *format, va_list args);

#endif /* BARE_OUTPUT_H */
