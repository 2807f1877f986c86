/*
 * Performance monitoring unit: the time of a profile
 *
 * It is the guest's, as far as that goes on: where a snapshot takes the guest
 * back, the profile's time goes on from where it was.
 *
 * Threads: any that holds the big lock, unless a function says otherwise.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_CLOCK_H
#define HW_PMU_PROFILE_CLOCK_H

/**
 * struct PmuProfileClock - the time of a profile; 0 at first
 * @offset: of it from the guest's time, in ns
 * @stopped_ns: what it was when the machine stopped
 */
typedef struct PmuProfileClock {
    int64_t offset;
    int64_t stopped_ns;
} PmuProfileClock;

/**
 * pmu_profile_clock_now - what time it is
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
 * pmu_profile_clock_go_on - the machine is about to go on
 * @clock: the clock
 *
 * Returns: whether it has become another one meanwhile, of another time.
 */
bool pmu_profile_clock_go_on(PmuProfileClock *clock);

#endif /* HW_PMU_PROFILE_CLOCK_H */
