/*
 * Between these two a program is timed.
 *
 * Each prints a line and waits for one: whoever measures has all the time it
 * needs to look, however busy the host is.  With -DTIMES=N, it is N times as
 * much that is timed.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef TIMED_H
#define TIMED_H

#include <stdint.h>
#include <stdio.h>

#ifndef TIMES
#define TIMES 1
#endif

static void timed_line(const char *line)
{
    int c;

    puts(line);
    fflush(stdout);
    do {
        c = getchar();
    } while (c != '\n' && c != EOF);
}

static inline void timed_begin(void)
{
    timed_line("<begin>");
}

static inline void timed_end(void)
{
    timed_line("<end>");
}

static inline uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

#endif /* TIMED_H */
