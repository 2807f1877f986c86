/*
 * One instruction that moves many bytes, again and again.
 *
 * Whoever counts instructions has to say whether it is one.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#define BYTES  4096
#define ROUNDS 10000

static char from[BYTES], to[BYTES];

int main(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        char *source = from, *target = to;
        unsigned long count = BYTES;

        asm volatile("rep movsb"
                     : "+S" (source), "+D" (target), "+c" (count)
                     : : "memory");
    }
    return 0;
}
