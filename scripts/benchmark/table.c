/*
 * A program that waits for memory: counts keys in a hash table of lists.
 *
 * 16 MB, read in no order: the TLB and the host's caches miss, in loops of a
 * few instructions.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <stdlib.h>
#include "timed.h"

#define LISTS   (1 << 18)
#define ENTRIES (1 << 19)
#define LOOKUPS (700000 * TIMES)

struct entry {
    struct entry *next;
    uint32_t key;
    uint32_t count;
};

static struct entry *lists[LISTS];
static struct entry entries[ENTRIES];

static struct entry *find(uint32_t key)
{
    struct entry *e = lists[key % LISTS];

    while (e && e->key != key) {
        e = e->next;
    }
    return e;
}

static void insert(struct entry *e, uint32_t key)
{
    e->key = key;
    e->next = lists[key % LISTS];
    lists[key % LISTS] = e;
}

int main(void)
{
    uint32_t state = 12345, found = 0;

    for (int i = 0; i < ENTRIES; i++) {
        insert(&entries[i], next_random(&state) % (4 * ENTRIES));
    }
    timed_begin();
    for (int i = 0; i < LOOKUPS; i++) {
        struct entry *e = find(next_random(&state) % (4 * ENTRIES));

        if (e) {
            e->count++;
            found++;
        }
    }
    timed_end();
    return found == 0;
}
