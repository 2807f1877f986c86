/*
 * A small program to profile: collatz() is where the time goes, and each of
 * the lines it writes costs the kernel something.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* The length of the Collatz sequence that begins at @n. */
static __attribute__((noinline)) unsigned collatz(unsigned long n)
{
    unsigned steps = 0;

    while (n != 1) {
        n = n & 1 ? 3 * n + 1 : n / 2;
        steps++;
    }
    return steps;
}

static __attribute__((noinline)) void report(int fd, unsigned long n,
                                             unsigned steps)
{
    char line[64];
    int len = snprintf(line, sizeof(line), "%lu takes %u steps\n", n, steps);

    if (write(fd, line, len) != len) {
        _exit(1);
    }
}

int main(void)
{
    int fd = open("/dev/null", O_WRONLY);
    unsigned best = 0;
    unsigned long n;

    for (n = 1; n <= 100000; n++) {
        unsigned steps = collatz(n);

        if (steps > best || n % 50 == 0) {
            best = steps > best ? steps : best;
            report(fd, n, steps);
        }
    }
    printf("the longest sequence below 100001 has %u steps\n", best);
    return 0;
}
