/*
 * A floating-point program: multiplies matrices, and normalizes the product.
 *
 * Long blocks, whose work is in helpers; vectors where the compiler uses them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <math.h>
#include "timed.h"

#define SIZE   64
#define ROUNDS (70 * TIMES)

static double a[SIZE][SIZE], b[SIZE][SIZE], c[SIZE][SIZE];

static void multiply(void)
{
    for (int i = 0; i < SIZE; i++) {
        for (int j = 0; j < SIZE; j++) {
            c[i][j] = 0;
        }
        for (int k = 0; k < SIZE; k++) {
            for (int j = 0; j < SIZE; j++) {
                c[i][j] += a[i][k] * b[k][j];
            }
        }
    }
}

static void normalize(void)
{
    double sum = 0;

    for (int i = 0; i < SIZE; i++) {
        for (int j = 0; j < SIZE; j++) {
            sum += c[i][j] * c[i][j];
        }
    }
    for (int i = 0; i < SIZE; i++) {
        for (int j = 0; j < SIZE; j++) {
            a[i][j] = c[i][j] / sqrt(sum);
        }
    }
}

int main(void)
{
    uint32_t state = 12345;

    for (int i = 0; i < SIZE; i++) {
        for (int j = 0; j < SIZE; j++) {
            a[i][j] = next_random(&state) / 4294967296.0;
            b[i][j] = next_random(&state) / 4294967296.0;
        }
    }
    timed_begin();
    for (int round = 0; round < ROUNDS; round++) {
        multiply();
        normalize();
    }
    timed_end();
    return a[0][0] == 0;
}
