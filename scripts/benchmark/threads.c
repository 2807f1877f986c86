/*
 * Four threads, each with numbers of its own.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <pthread.h>
#include "timed.h"

#define THREADS 4
#define NUMBERS (25000000 * TIMES)

static void *work(void *seed)
{
    uint32_t *state = seed, sum = 0;

    for (int i = 0; i < NUMBERS; i++) {
        sum += next_random(state) % 7 == 0;
    }
    *state = sum;
    return NULL;
}

int main(void)
{
    uint32_t seeds[THREADS];
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        seeds[i] = i + 1;
        if (pthread_create(&threads[i], NULL, work, &seeds[i])) {
            return 2;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    return seeds[0] == 0;
}
