/*
 * Bare-metal test guest: functions of a C library, and single steps
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "runner.h"

/* ---- Strings -------------------------------------------------------- */

int memcmp(const void *a, const void *b, size_t size)
{
    const uint8_t *x = a, *y = b;

    for (size_t i = 0; i < size; i++) {
        if (x[i] != y[i]) {
            return x[i] - y[i];
        }
    }
    return 0;
}

size_t strlen(const char *s)
{
    size_t n = 0;

    while (s[n]) {
        n++;
    }
    return n;
}

bool streq(const char *a, const char *b)
{
    return strlen(a) == strlen(b) && !memcmp(a, b, strlen(a));
}

/* ---- Random numbers ------------------------------------------------- */

static uint64_t random_state;

void seed_random(uint64_t seed)
{
    random_state = seed;
}

uint64_t random(void)
{
    random_state = random_state * 6364136223846793005 + 1442695040888963407;
    return random_state >> 33;
}

/* ---- Single steps --------------------------------------------------- */

uint64_t step_trace[MAX_TRACE];

void trace_step(uint64_t step, uint64_t address)
{
    if (step < MAX_TRACE) {
        step_trace[step] = address;
    }
}
