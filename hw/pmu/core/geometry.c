/*
 * Performance monitoring unit: the sizes that a core can have
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/pmu-core.h"

#define MOST_WAYS      64
#define LEAST_LINE     16
#define MOST_LINE      4096
#define MOST_SIZE      (1ull << 30)
#define MOST_ENTRIES   65536
#define LEAST_PAGE     MOST_LINE
#define MOST_PAGE      (1u << 30)
#define MOST_COUNTERS  20
#define MOST_TARGETS   65536
#define MOST_RETURNS   1024
#define MOST_ALIGN     16

static bool is_power(uint64_t n)
{
    return n && !(n & (n - 1));
}

static char *refuse_power(const char *what, uint32_t n, uint32_t least,
                          uint32_t most)
{
    if (is_power(n) && n >= least && n <= most) {
        return NULL;
    }
    return g_strdup_printf("%s is %u, and has to be a power of two from %u to "
                           "%u", what, n, least, most);
}

static char *refuse_above(const char *what, uint64_t n, uint64_t most)
{
    return n <= most ? NULL : g_strdup_printf("%s is %" PRIu64 ", and has to "
                                              "be %" PRIu64 " at most",
                                              what, n, most);
}

/* @count of @lines, in sets of @ways; @what is the name of the cache or TLB */
static char *refuse_sets(const char *what, const char *lines, uint64_t count,
                         uint32_t ways)
{
    if (!ways || ways > MOST_WAYS) {
        return g_strdup_printf("%s has %u ways, and has to have 1 to %u", what,
                               ways, MOST_WAYS);
    }
    if (count % ways || !is_power(count / ways)) {
        return g_strdup_printf("%s has %" PRIu64 " %s, which have to be a "
                               "power of two of sets of %u", what, count,
                               lines, ways);
    }
    return NULL;
}

static char *refuse_cache(const char *what, const PmuCoreCache *cache)
{
    g_autofree char *line = g_strdup_printf("the line of %s", what);
    g_autofree char *size = g_strdup_printf("the size of %s", what);
    char *message = refuse_power(line, cache->line, LEAST_LINE, MOST_LINE);

    message = message ?: refuse_above(size, cache->size, MOST_SIZE);
    if (!message && cache->size % cache->line) {
        message = g_strdup_printf("%s is %" PRIu64 ", which is no multiple of "
                                  "its line of %u", size, cache->size,
                                  cache->line);
    }
    return message ?: refuse_sets(what, "lines", cache->size / cache->line,
                                  cache->ways);
}

static char *refuse_tlb(const char *what, const PmuCoreTlb *tlb)
{
    return refuse_above(what, tlb->entries, MOST_ENTRIES)
           ?: refuse_sets(what, "entries", tlb->entries, tlb->ways);
}

static char *refuse_predictor(const PmuCoreGeometry *g)
{
    uint64_t bits = (uint64_t)g->history + g->places;

    return refuse_above("the sum of bits of history and address", bits,
                        MOST_COUNTERS)
           ?: refuse_power("the number of targets", g->targets, 1, MOST_TARGETS)
           ?: refuse_above("the number of returns", g->returns, MOST_RETURNS)
           ?: refuse_power("the alignment of instructions", g->align, 1,
                           MOST_ALIGN);
}

char *pmu_core_refuse(const PmuCoreGeometry *geometry)
{
    return refuse_cache("l1i", &geometry->l1i)
           ?: refuse_cache("l1d", &geometry->l1d)
           ?: refuse_cache("the last level", &geometry->last)
           ?: refuse_power("the size of pages", geometry->page, LEAST_PAGE,
                           MOST_PAGE)
           ?: refuse_tlb("itlb", &geometry->itlb)
           ?: refuse_tlb("dtlb", &geometry->dtlb)
           ?: refuse_predictor(geometry);
}
