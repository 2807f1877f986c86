/*
 * An interpreter: runs a program for a stack machine, and calls itself for the
 * program's calls.
 *
 * Indirect jumps, calls and returns; few of its blocks have more than five
 * instructions.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "timed.h"

#define ROUNDS (250 * TIMES)
#define N      17

enum { PUSH, GET, ADD, SUB, IF_LESS, CALL, RETURN };

/* fib(n): n < 2 ? n : fib(n - 1) + fib(n - 2) */
static const uint8_t fib[] = {
    GET, PUSH, 2, IF_LESS,
    GET, PUSH, 1, SUB, CALL,
    GET, PUSH, 2, SUB, CALL,
    ADD, RETURN,
};
static const uint8_t base[] = { GET, RETURN };

static long stack[1000];

static long *run(const uint8_t *pc, long *sp, long argument)
{
    for (;;) {
        switch (*pc++) {
        case PUSH:
            *sp++ = *pc++;
            break;
        case GET:
            *sp++ = argument;
            break;
        case ADD:
            sp--;
            sp[-1] += sp[0];
            break;
        case SUB:
            sp--;
            sp[-1] -= sp[0];
            break;
        case IF_LESS:
            sp -= 2;
            pc = sp[0] < sp[1] ? base : pc;
            break;
        case CALL:
            sp--;
            sp = run(fib, sp, sp[0]);
            break;
        case RETURN:
            return sp;
        }
    }
}

int main(void)
{
    long sum = 0;

    timed_begin();
    for (int round = 0; round < ROUNDS; round++) {
        run(fib, stack, N);
        sum += stack[0];
    }
    timed_end();
    return sum == 0;
}
