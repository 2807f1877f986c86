/*
 * A program of strings and system calls: formats lines, sends them through a
 * pipe, and takes them apart again.
 *
 * The C library's string functions, the kernel, and changes between user and
 * kernel mode.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "timed.h"

#define LINES (4000 * TIMES)

static unsigned long parse(char *line)
{
    unsigned long sum = 0;

    for (char *word = strtok(line, " "); word; word = strtok(NULL, " ")) {
        char *value = strchr(word, '=');

        sum += value ? strtoul(value + 1, NULL, 10) : strlen(word);
    }
    return sum;
}

int main(void)
{
    uint32_t state = 12345;
    unsigned long sum = 0;
    char line[128];
    int ends[2];

    if (pipe(ends)) {
        return 2;
    }
    timed_begin();
    for (int i = 0; i < LINES; i++) {
        uint32_t r = next_random(&state);
        int length = snprintf(line, sizeof(line), "line=%d word=%u %s of %x",
                              i, r, r & 1 ? "odd" : "even", r);

        if (write(ends[1], line, length) != length
            || read(ends[0], line, sizeof(line)) != length) {
            return 2;
        }
        line[length] = 0;
        sum += parse(line);
    }
    timed_end();
    return sum == 0;
}
