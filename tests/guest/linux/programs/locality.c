/*
 * locality - whether memory is read in its order or at random, by the PMU
 *
 * Opens perf's generic events of the first level, reads and misses, in one
 * group, as programs do that measure parts of themselves.  Prints for each way:
 *
 *     WAY READS MISSES
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <err.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Much more than a first level holds */
#define WORDS (1u << 20)
#define READS (1u << 16)

static uint64_t words[WORDS];

static int open_event(unsigned result, int group)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = PERF_TYPE_HW_CACHE,
        .config = PERF_COUNT_HW_CACHE_L1D
                  | PERF_COUNT_HW_CACHE_OP_READ << 8 | result << 16,
        .disabled = group < 0,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .read_format = PERF_FORMAT_GROUP,
    };
    int fd = syscall(SYS_perf_event_open, &attr, 0, -1, group, 0);

    if (fd < 0) {
        err(2, "perf_event_open");
    }
    return fd;
}

/* The place after @at: the next one, or any */
static uint32_t next_in_order(uint32_t at)
{
    return at + 1;
}

static uint32_t next_at_random(uint32_t at)
{
    return at * 1103515245 + 12345;
}

static void measure(int group, const char *way, uint32_t (*next)(uint32_t))
{
    uint64_t counts[3];
    uint32_t at = 1;

    ioctl(group, PERF_EVENT_IOC_RESET, PERF_IOC_FLAG_GROUP);
    ioctl(group, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
    for (unsigned i = 0; i < READS; i++) {
        at = next(at);
        /* The upper bits are the random ones. */
        *(volatile uint64_t *)&words[(next == next_at_random ? at >> 12 : at)
                                     % WORDS];
    }
    ioctl(group, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
    if (read(group, counts, sizeof(counts)) != sizeof(counts)) {
        err(2, "read");
    }
    printf("%s %llu %llu\n", way, (unsigned long long)counts[1],
           (unsigned long long)counts[2]);
}

int main(void)
{
    int group = open_event(PERF_COUNT_HW_CACHE_RESULT_ACCESS, -1);

    open_event(PERF_COUNT_HW_CACHE_RESULT_MISS, group);
    measure(group, "linear", next_in_order);
    measure(group, "random", next_at_random);
    return 0;
}
