/*
 * A branchy integer workload that tells when it begins and when it ends.
 *
 * Sorts and searches pseudo-random numbers: short blocks, unpredictable
 * branches, calls and returns, all in user mode.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define NUMBERS 40000
#define ROUNDS  24

static uint32_t numbers[NUMBERS];

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

int main(void)
{
    uint32_t state = 12345, found = 0;

    puts("<begin>");
    fflush(stdout);
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
    puts("<end>");
    return found == 0;
}
