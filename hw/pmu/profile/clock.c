/*
 * Performance monitoring unit: the time of a profile
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "clock.h"

int64_t pmu_profile_clock_now(const PmuProfileClock *c)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) + c->offset;
}

void pmu_profile_clock_stop(PmuProfileClock *c)
{
    c->stopped_ns = pmu_profile_clock_now(c);
}

void pmu_profile_clock_go_on(PmuProfileClock *c)
{
    int64_t behind = c->stopped_ns - pmu_profile_clock_now(c);

    c->offset += MAX(behind, 0);
    c->host_offset = pmu_profile_clock_now(c) - get_clock();
}

int64_t pmu_profile_clock_of_host(const PmuProfileClock *c,
                                  int64_t monotonic_ns)
{
    return monotonic_ns + c->host_offset;
}
