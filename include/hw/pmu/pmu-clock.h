/*
 * Performance monitoring unit: the time of vCPUs' threads, as samples
 *
 * TCG executes a vCPU in a thread of the host.  That thread also does the work
 * that the guest's instructions cause: it translates them, walks page tables
 * and emulates the devices that they access.  A clock watches the time that
 * this thread has spent on the host's CPUs, and calls back once a period, for
 * the instruction under way.
 *
 * Under KVM, the time includes the work that the kernel does for the guest.
 *
 * A vCPU that is halted takes no time.  Where one thread executes several vCPUs
 * in turn, its time belongs to the one that is executed when a period ends.  A
 * clock does not change what the guest does, not even in a replay.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_CLOCK_H
#define HW_PMU_PMU_CLOCK_H

#include "hw/core/cpu.h"

/**
 * PMU_CLOCK_MIN_NS - the shortest period
 *
 * The host's threads do not wake up much more often than that.
 */
#define PMU_CLOCK_MIN_NS 100000

/**
 * PMU_CLOCK_MAX_NS - the longest period: more than ten days
 *
 * Sums of it and the time of the host's clocks are far from overflow.
 */
#define PMU_CLOCK_MAX_NS 1000000000000000ull

/**
 * typedef PmuClock - a clock of one vCPU
 */
typedef struct PmuClock PmuClock;

/**
 * typedef PmuClockFn - the function that a clock calls once a period
 * @opaque: as configured
 * @ns: for how much time this call is: one or several periods
 *
 * Called in the vCPU's thread between two instructions; pmu_cpu_where() reports
 * which instruction took the time.  Must not add or remove clocks.
 */
typedef void PmuClockFn(void *opaque, uint64_t ns);

/**
 * struct PmuClockConfig - the configuration of a clock
 * @period_ns: after how much time it calls @sample; from PMU_CLOCK_MIN_NS
 *             to PMU_CLOCK_MAX_NS
 * @sample: called once a period
 * @gone: called when the vCPU is unplugged; the clock is released after that
 * @opaque: the argument of both
 */
typedef struct PmuClockConfig {
    uint64_t period_ns;
    PmuClockFn *sample;
    void (*gone)(void *opaque);
    void *opaque;
} PmuClockConfig;

/**
 * pmu_clock_new - begin to watch the time of a vCPU's thread
 * @cpu: the vCPU, which is realized and executed by TCG or KVM; in tests it
 *       need not be executed
 * @config: the configuration; copied
 * @errp: why the host cannot measure the time
 *
 * In any thread that holds the big lock, which is given up meanwhile.
 *
 * Returns: NULL with @errp set if the host cannot measure the time.
 */
PmuClock *pmu_clock_new(CPUState *cpu, const PmuClockConfig *config,
                        Error **errp);

/**
 * pmu_clock_free - stop watching
 * @clock: the clock or NULL
 *
 * In any thread that holds the big lock, which is given up meanwhile.
 */
void pmu_clock_free(PmuClock *clock);

/**
 * pmu_clocks_gone - release the clocks of a vCPU that is unplugged
 * @cpu: the vCPU, whose thread has ended
 */
void pmu_clocks_gone(CPUState *cpu);

/**
 * pmu_clocks_sample - call the clocks whose period has ended
 * @cpu: the vCPU, in its thread, between two instructions
 */
void pmu_clocks_sample(CPUState *cpu);

#endif /* HW_PMU_PMU_CLOCK_H */
