/*
 * Performance monitoring unit: the time of a profile
 *
 * A profile's time follows the guest's time, but never goes back: when a
 * snapshot sets the guest's time back, the profile's time continues.
 *
 * Threads: any that holds the big lock, unless a function says otherwise.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_CLOCK_H
#define HW_PMU_PROFILE_CLOCK_H

/**
 * struct PmuProfileClock - the time of a profile; 0 at first
 * @offset: the profile's time minus the guest's time, in ns
 * @host_offset: the profile's time minus the host's CLOCK_MONOTONIC, as of the
 *               last time that the machine went on
 * @stopped_ns: the profile's time when the machine stopped
 */
typedef struct PmuProfileClock {
    int64_t offset;
    int64_t host_offset;
    int64_t stopped_ns;
} PmuProfileClock;

/**
 * pmu_profile_clock_now - the time of the profile
 * @clock: the clock
 *
 * Also in the threads of vCPUs.
 *
 * Returns: the time in ns.
 */
int64_t pmu_profile_clock_now(const PmuProfileClock *clock);

/**
 * pmu_profile_clock_stop - the machine has stopped
 * @clock: the clock
 */
void pmu_profile_clock_stop(PmuProfileClock *clock);

/**
 * pmu_profile_clock_go_on - the machine is about to go on, or a profile begins
 * @clock: the clock
 *
 * If the guest's time was set back meanwhile, the profile's time is not.
 */
void pmu_profile_clock_go_on(PmuProfileClock *clock);

/**
 * pmu_profile_clock_of_host - convert a time of the host to the profile's time
 * @clock: the clock
 * @monotonic_ns: by CLOCK_MONOTONIC, since @clock last went on
 *
 * Returns: the time in ns.
 */
int64_t pmu_profile_clock_of_host(const PmuProfileClock *clock,
                                  int64_t monotonic_ns);

#endif /* HW_PMU_PROFILE_CLOCK_H */
