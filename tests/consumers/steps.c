/*
 * A program that executes each line a known number of times
 *
 * It goes ROUNDS times through its loop.  Comments say how often a line is
 * executed in 16 rounds, however it is compiled.  Hints about likely branches
 * are wrong on purpose.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

typedef unsigned long Word;

#define rarely(condition) __builtin_expect(condition, 0)

Word table[64];

/* Too large to be inlined, unless a profile says that it is hot. */
Word leaf(Word i, Word x)
{
    x = x * 3 + table[x & 63];                  /* 32 */
    if (rarely(i % 4 != 1)) {
        x ^= x >> 11;                           /* 24 */
        x += 7;
        x ^= x << 3;
        table[x & 63] += i;
    } else {
        x -= 5;                                 /* 8 */
        x ^= x >> 4;
        table[i & 63] ^= x;
    }
    return x;
}

Word choose(Word i, Word x)
{
    switch (i % 16) {                           /* 16 */
    case 0:
        x -= 5;                                 /* 1 */
        x ^= x >> 1;
        table[2]++;
        break;
    case 1:
        x ^= table[1];                          /* 1 */
        table[3] += x;
        break;
    case 2:
        x += table[x & 63];                     /* 1 */
        break;
    case 3:
        x <<= 2;                                /* 1 */
        table[x & 63] += 6;
        break;
    case 4:
        x += 0x1234567;                         /* 1 */
        table[x & 63] ^= 7;
        break;
    default:
        x += 1;                                 /* 11 */
        x ^= x << 7;
        table[i & 63] += 5;
    }
    return x;
}

static Word work(void)
{
    Word x = 1;

    for (Word i = 0; i < ROUNDS; i++) {
        x = choose(i, x);
        x = leaf(i, x) + leaf(i + 1, x);
    }
    return x;
}

void _start(void)
{
    __asm__ volatile("syscall" :: "a"(231), "D"(work() & 0x7f));
    __builtin_unreachable();
}
