/*
 * Performance monitoring unit: common code of its unit tests
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef TESTS_UNIT_PMU_RIG_H
#define TESTS_UNIT_PMU_RIG_H

#include "hw/pmu/pmu-manual.h"

#define BIT64(n) (1ull << (n))
#define LOW_BITS(n) (UINT64_MAX >> (64 - (n)))

/* Modes of the rig's Pmu; any number would do. */
#define USER 0
#define KERNEL 1
#define ALL_MODES LOW_BITS(PMU_MAX_MODES)

typedef struct Rig Rig;

/**
 * struct Overflow - one call of the overflow handler
 * @counters: the counters that were reported to it
 * @at: the number of events, of any kind, that had happened by then
 */
typedef struct Overflow {
    uint64_t counters;
    uint64_t at;
} Overflow;

/**
 * struct Rig - a Pmu, the engine that drives it, and a log of its overflows
 * @engine: the engine, first; its contract is asserted at each call
 * @pmu: the Pmu
 * @overflow_at: where each counter overflows, as set by rig_shape()
 * @sync: called when the engine takes the time, or NULL
 * @plan: called before the engine takes a plan, or NULL
 * @log: all overflows so far, of type Overflow
 * @handler: called on overflow, or NULL
 */
struct Rig {
    PmuManual engine;
    Pmu *pmu;
    uint64_t overflow_at[PMU_MAX_COUNTERS];
    void (*sync)(PmuManual *engine);
    void (*plan)(PmuManual *engine, PmuTallies wanted);
    GArray *log;
    void (*handler)(Rig *rig, uint64_t counters);
};

/**
 * rig_init - set up a Pmu; stopped, 48 bits, selecting nothing
 */
void rig_init(Rig *rig, unsigned nr_counters, unsigned nr_modes);

/**
 * rig_cleanup - release what rig_init() has set up
 */
void rig_cleanup(Rig *rig);

/**
 * rig_add - add a test that runs on a rig of 8 counters and 8 modes
 */
void rig_add(const char *path, void (*test)(Rig *rig));

/**
 * rig_start - select an event for a counter and let it run
 */
void rig_start(Rig *rig, unsigned counter, PmuEvent event, PmuModes modes);

/**
 * rig_arm - make a counter alert after @distance more counts
 */
void rig_arm(Rig *rig, unsigned counter, uint64_t distance);

/**
 * rig_write - write to one counter
 */
void rig_write(Rig *rig, unsigned counter, uint64_t value);

/**
 * rig_run - start or stop a set of counters in one transaction
 */
void rig_run(Rig *rig, uint64_t counters, bool running);

/**
 * rig_shape - set the shape of a counter that does not run
 */
void rig_shape(Rig *rig, unsigned counter, unsigned width,
               uint64_t overflow_at);

/**
 * rig_count - let events happen
 */
void rig_count(Rig *rig, PmuTally tally, unsigned mode, uint64_t count);

/**
 * rig_events - the number of events that have happened, of any kind
 */
uint64_t rig_events(const Rig *rig);

/**
 * rig_overflow - an entry of the log
 */
const Overflow *rig_overflow(const Rig *rig, unsigned index);

#define rig_assert_value(rig, counter, value) \
    g_assert_cmphex(pmu_read((rig)->pmu, (counter)), ==, (value))

#define rig_assert_overflow(rig, index, which, position)                   \
    do {                                                                   \
        g_assert_cmpuint((rig)->log->len, >, (index));                     \
        g_assert_cmphex(rig_overflow((rig), (index))->counters, ==, (which)); \
        g_assert_cmpuint(rig_overflow((rig), (index))->at, ==, (position)); \
    } while (0)

#endif /* TESTS_UNIT_PMU_RIG_H */
