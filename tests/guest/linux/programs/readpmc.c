/*
 * readpmc - read counters in user space, as perf_event_open(2) describes
 *
 * Several events are open and mapped at the same time.  For each, the program
 * prints two differences between readings, the least and the greatest found in
 * many trials: of RDPMC before and after a loop of LOOPS instruction pairs, and
 * of RDPMC and a read(2) that follows it.  It also prints whether RDPMC faults
 * where no event is mapped.
 *
 *     width BITS
 *     EVENT loop MIN MAX read MIN MAX
 *     faults BEFORE MAPPED AFTER
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <err.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096
#define TRIALS 300
#define LOOPS 1000
#define LIMIT 1000000

struct event {
    const char *name;
    uint32_t type;
    uint64_t config;
    int fd;
    /* volatile: the kernel writes to it at any time */
    const volatile struct perf_event_mmap_page *page;
};

struct range {
    uint64_t min;
    uint64_t max;
};

static struct event events[] = {
    { "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
    { "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
    { "conditional", PERF_TYPE_RAW },
};

#define NR_EVENTS (sizeof(events) / sizeof(events[0]))

static sigjmp_buf after_fault;

static void open_event(struct event *e)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = e->type,
        .config = e->config,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };

    e->fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
    if (e->fd < 0) {
        err(2, "%s", e->name);
    }
    e->page = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, e->fd, 0);
    if (e->page == MAP_FAILED) {
        err(2, "%s: mmap", e->name);
    }
    if (!e->page->cap_user_rdpmc) {
        errx(2, "%s cannot be read in user space", e->name);
    }
}

static void close_event(struct event *e)
{
    munmap((void *)e->page, PAGE);
    close(e->fd);
}

static void fault(int signal)
{
    siglongjmp(after_fault, 1);
}

/* Whether RDPMC raises an exception. */
static int rdpmc_faults(void)
{
    uint32_t low, high;

    if (sigsetjmp(after_fault, 1)) {
        return 1;
    }
    asm volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(0));
    return 0;
}

/* The event's count, from the counter's value that RDPMC has read. */
static uint64_t count(const struct event *e, uint64_t offset, uint64_t pmc)
{
    unsigned unused = 64 - e->page->pmc_width;

    return offset + ((int64_t)(pmc << unused) >> unused);
}

/* 3 instructions and LOOPS pairs of them, from one RDPMC to the other. */
static uint64_t across_loop(uint32_t counter)
{
    uint32_t first, second;

    asm volatile("rdpmc\n\t"
                 "mov %%eax, %[first]\n\t"
                 "mov %[loops], %%edx\n"
                 "1: dec %%edx\n\t"
                 "jnz 1b\n\t"
                 "rdpmc"
                 : "=&a"(second), [first] "=&r"(first)
                 : "c"(counter), [loops] "i"(LOOPS) : "rdx", "cc");
    return second - first;
}

/* 8 instructions from RDPMC to the system call, which is the only branch. */
static uint64_t rdpmc_and_read(uint32_t counter, int fd, uint64_t *value)
{
    uint32_t low, high;
    long status;

    asm volatile("rdpmc\n\t"
                 "mov %%eax, %[low]\n\t"
                 "mov %%edx, %[high]\n\t"
                 "mov %[fd], %%edi\n\t"
                 "mov %[value], %%rsi\n\t"
                 "mov %[size], %%edx\n\t"
                 "xor %%eax, %%eax\n\t" /* SYS_read */
                 "syscall"
                 : "=&a"(status), [low] "=&r"(low), [high] "=&r"(high),
                   "+c"(counter)
                 : [fd] "r"(fd), [value] "r"(value), [size] "i"(sizeof(*value))
                 : "rdi", "rsi", "rdx", "r11", "memory", "cc");
    if (status != sizeof(*value)) {
        errx(2, "read");
    }
    return (uint64_t)high << 32 | low;
}

static void add_to_range(struct range *r, uint64_t value)
{
    r->min = value < r->min ? value : r->min;
    r->max = value > r->max ? value : r->max;
}

static void try_event(const struct event *e)
{
    struct range loop = { UINT64_MAX, 0 }, diff = { UINT64_MAX, 0 };
    uint64_t offset, pmc, value = 0, of_loop;
    int trials = 0, limit = LIMIT;
    uint32_t lock, index;

    while (trials < TRIALS && --limit) {
        lock = e->page->lock;
        asm volatile("" : : : "memory");
        index = e->page->index;
        offset = e->page->offset;
        if ((lock & 1) || !index) {
            continue;
        }
        of_loop = across_loop(index - 1);
        pmc = rdpmc_and_read(index - 1, e->fd, &value);
        asm volatile("" : : : "memory");
        if (e->page->lock != lock) {
            continue;       /* the event has moved meanwhile */
        }
        add_to_range(&loop, of_loop);
        add_to_range(&diff, value - count(e, offset, pmc));
        trials++;
    }
    if (trials < TRIALS) {
        errx(1, "%s: only %d readings", e->name, trials);
    }
    printf("%s loop %llu %llu read %llu %llu\n", e->name,
           (unsigned long long)loop.min, (unsigned long long)loop.max,
           (unsigned long long)diff.min, (unsigned long long)diff.max);
}

int main(int argc, char **argv)
{
    struct sigaction action = { .sa_handler = fault };
    int before, mapped;
    size_t i;

    if (argc != 2) {
        errx(2, "readpmc CODE-OF-CONDITIONAL-BRANCHES");
    }
    events[NR_EVENTS - 1].config = strtoull(argv[1], NULL, 16);
    if (sigaction(SIGSEGV, &action, NULL)) {
        err(2, "sigaction");
    }
    before = rdpmc_faults();
    for (i = 0; i < NR_EVENTS; i++) {
        open_event(&events[i]);
    }
    printf("width %u\n", events[0].page->pmc_width);
    for (i = 0; i < NR_EVENTS; i++) {
        try_event(&events[i]);
    }
    mapped = rdpmc_faults();
    for (i = 0; i < NR_EVENTS; i++) {
        close_event(&events[i]);
    }
    printf("faults %d %d %d\n", before, mapped, rdpmc_faults());
    return 0;
}
