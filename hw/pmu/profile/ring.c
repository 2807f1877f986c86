/*
 * Performance monitoring unit: samples on their way from a vCPU
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/host-utils.h"
#include "ring.h"

/* The words of a sample in the ring, without its task and what follows that */
enum {
    WORD_IP,
    WORD_GUEST,
    WORD_SPACE,
    WORD_TIME,
    WORD_PERIOD,
    WORD_LOST,
    WORD_KIND,
    NR_WORDS
};

/* The words of a task: one with its two numbers, and its name */
#define TASK_WORDS (1 + PMU_TASK_COMM / 8)

#define KIND_USER          (1u << 0)
#define KIND_TASK          (1u << 1)
#define KIND_ACCESS        (1u << 2)
#define KIND_CALLERS_SHIFT 8
#define KIND_BRANCHES_SHIFT 16

/* The words of a branch: from, to, and its kind */
#define BRANCH_WORDS 3

/* Above the kind of a branch */
#define BRANCH_WRONG (1u << 8)

/*
 * The words of an access: its address, its kind and what became of it, and how
 * long it took
 */
#define ACCESS_WORDS 3

/**
 * struct PmuRing - a ring of words
 * @size: how many there are
 * @head: how many words were put in; changed by the thread that puts them in
 * @tail: how many were taken out; changed by the thread that takes them out
 * @seen: the value of @head at the last pmu_ring_look()
 * @lost: samples that did not fit; changed by the thread that puts them in
 * @told: how many of these were reported to the thread that takes them out
 * @words: the words, by their number modulo @size
 */
struct PmuRing {
    uint32_t size;
    uint32_t head;
    uint32_t tail;
    uint32_t seen;
    unsigned long lost;
    unsigned long told;
    uint64_t words[];
};

static void put_words(PmuRing *r, uint32_t at, const uint64_t *words,
                      unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        r->words[(at + i) & (r->size - 1)] = words[i];
    }
}

static void get_words(const PmuRing *r, uint32_t at, uint64_t *words,
                      unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        words[i] = r->words[(at + i) & (r->size - 1)];
    }
}

static uint64_t kind_of_entry(const PmuSample *s)
{
    return (s->user ? KIND_USER : 0) | (s->has_task ? KIND_TASK : 0)
           | (s->has_access ? KIND_ACCESS : 0)
           | s->nr_callers << KIND_CALLERS_SHIFT
           | s->nr_branches << KIND_BRANCHES_SHIFT;
}

static void put_task(PmuRing *r, uint32_t at, const PmuTask *task)
{
    uint64_t words[TASK_WORDS] = { (uint64_t)task->pid << 32 | task->tid };

    memcpy(words + 1, task->comm, sizeof(task->comm));
    put_words(r, at, words, TASK_WORDS);
}

static void get_task(const PmuRing *r, uint32_t at, PmuTask *task)
{
    uint64_t words[TASK_WORDS];

    get_words(r, at, words, TASK_WORDS);
    task->pid = words[0] >> 32;
    task->tid = words[0];
    memcpy(task->comm, words + 1, sizeof(task->comm));
}

static void put_ring_branches(PmuRing *r, uint32_t at, const PmuSample *s)
{
    for (unsigned i = 0; i < s->nr_branches; i++) {
        const PmuBranch *b = &s->branches[i];
        const uint64_t words[BRANCH_WORDS] = {
            b->from, b->to, b->kind | (b->mispredicted ? BRANCH_WRONG : 0),
        };

        put_words(r, at + i * BRANCH_WORDS, words, BRANCH_WORDS);
    }
}

static void get_branches(const PmuRing *r, uint32_t at, PmuSample *s)
{
    for (unsigned i = 0; i < s->nr_branches; i++) {
        uint64_t words[BRANCH_WORDS];

        get_words(r, at + i * BRANCH_WORDS, words, BRANCH_WORDS);
        s->branches[i] = (PmuBranch) {
            .from = words[0], .to = words[1], .kind = words[2] & ~BRANCH_WRONG,
            .mispredicted = words[2] & BRANCH_WRONG,
        };
    }
}

static void put_access(PmuRing *r, uint32_t at, const PmuAccess *a)
{
    const uint64_t words[ACCESS_WORDS] = {
        a->address, (uint64_t)a->kind << 32 | a->outcome, a->latency,
    };

    put_words(r, at, words, ACCESS_WORDS);
}

static void get_access(const PmuRing *r, uint32_t at, PmuAccess *a)
{
    uint64_t words[ACCESS_WORDS];

    get_words(r, at, words, ACCESS_WORDS);
    a->address = words[0];
    a->kind = words[1] >> 32;
    a->outcome = words[1];
    a->latency = words[2];
}

/* A sample from before the last pmu_ring_take_lost() may have a lower count. */
static uint64_t tell_lost(PmuRing *r, unsigned long lost)
{
    /* On hosts of 32 bits the numbers wrap. */
    long more = lost - r->told;

    if (more <= 0) {
        return 0;
    }
    r->told = lost;
    return more;
}

uint64_t pmu_ring_take_lost(PmuRing *r)
{
    return tell_lost(r, qatomic_read(&r->lost));
}

bool pmu_ring_put(PmuRing *r, const PmuSample *s)
{
    const uint64_t words[NR_WORDS] = {
        [WORD_IP] = s->ip,
        [WORD_GUEST] = s->space.guest,
        [WORD_SPACE] = s->space.id,
        [WORD_TIME] = s->time_ns,
        [WORD_PERIOD] = s->period,
        [WORD_LOST] = r->lost,
        [WORD_KIND] = kind_of_entry(s),
    };
    uint32_t used = r->head - qatomic_load_acquire(&r->tail);
    uint32_t at = r->head;
    uint32_t length = NR_WORDS + (s->has_task ? TASK_WORDS : 0)
                      + (s->has_access ? ACCESS_WORDS : 0)
                      + s->nr_callers + s->nr_branches * BRANCH_WORDS;

    if (length > r->size - used) {
        qatomic_set(&r->lost, r->lost + 1);
        return false;
    }
    put_words(r, at, words, NR_WORDS);
    at += NR_WORDS;
    if (s->has_task) {
        put_task(r, at, &s->task);
        at += TASK_WORDS;
    }
    if (s->has_access) {
        put_access(r, at, &s->access);
        at += ACCESS_WORDS;
    }
    put_words(r, at, s->callers, s->nr_callers);
    put_ring_branches(r, at + s->nr_callers, s);
    qatomic_store_release(&r->head, r->head + length);
    return used <= r->size / 2 && used + length > r->size / 2;
}

void pmu_ring_look(PmuRing *r)
{
    r->seen = qatomic_load_acquire(&r->head);
}

bool pmu_ring_get(PmuRing *r, PmuSample *s)
{
    uint64_t words[NR_WORDS];
    uint32_t at = r->tail + NR_WORDS;

    if (r->seen == r->tail) {
        return false;
    }
    get_words(r, r->tail, words, NR_WORDS);
    s->kind = PMU_SAMPLE_TAKEN;
    s->lost = tell_lost(r, words[WORD_LOST]);
    s->ip = words[WORD_IP];
    s->space.guest = words[WORD_GUEST];
    s->space.id = words[WORD_SPACE];
    s->time_ns = words[WORD_TIME];
    s->period = words[WORD_PERIOD];
    s->user = words[WORD_KIND] & KIND_USER;
    s->nr_callers = words[WORD_KIND] >> KIND_CALLERS_SHIFT;
    s->nr_branches = words[WORD_KIND] >> KIND_BRANCHES_SHIFT;
    s->has_task = words[WORD_KIND] & KIND_TASK;
    if (s->has_task) {
        get_task(r, at, &s->task);
        at += TASK_WORDS;
    }
    s->has_access = words[WORD_KIND] & KIND_ACCESS;
    if (s->has_access) {
        get_access(r, at, &s->access);
        at += ACCESS_WORDS;
    }
    get_words(r, at, s->callers, s->nr_callers);
    at += s->nr_callers;
    get_branches(r, at, s);
    qatomic_store_release(&r->tail, at + s->nr_branches * BRANCH_WORDS);
    return true;
}

PmuRing *pmu_ring_new(unsigned size)
{
    PmuRing *r = g_malloc0(sizeof(PmuRing) + size * sizeof(uint64_t));

    assert(is_power_of_2(size));
    r->size = size;
    return r;
}

void pmu_ring_free(PmuRing *r)
{
    g_free(r);
}
