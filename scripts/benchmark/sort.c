/*
 * A branchy integer program: sorts and searches pseudo-random numbers.
 *
 * Short blocks, branches that nobody can predict, calls by pointer.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stdlib.h>
#include "timed.h"

#define NUMBERS 40000
#define ROUNDS  (8 * TIMES)

static uint32_t numbers[NUMBERS];

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

int main(void)
{
    uint32_t state = 12345, found = 0;

    timed_begin();
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < NUMBERS; i++) {
            numbers[i] = next_random(&state) >> 8;
        }
        qsort(numbers, NUMBERS, sizeof(numbers[0]), compare);
        for (int i = 0; i < NUMBERS; i++) {
            uint32_t key = next_random(&state) >> 8;

            found += bsearch(&key, numbers, NUMBERS, sizeof(key),
                             compare) != NULL;
        }
    }
    timed_end();
    return found == 0;
}
