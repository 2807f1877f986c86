/*
 * Performance monitoring unit: what is asked of a profile
 *
 * This understands the words; whether they can be had, the samplers say.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_REQUEST_H
#define HW_PMU_PROFILE_REQUEST_H

#include "qapi/qapi-types-pmu.h"
#include "hw/pmu/pmu.h"

/**
 * struct PmuProfileRequest - what is asked of a profile
 * @event, @accounting, @period, @frequency, @modes, @callchain, @branch_stack:
 *     as the user has given them and, behind pmu_profile_request_check(), with
 *     what holds by default
 * @cpu_clock: the event is the time of vCPUs' threads
 * @named: the event, if it was named; otherwise PMU_EVENT_NONE
 * @code: its code, if it was not
 * @user, @kernel: in which of them to count
 * @itself, @nested: in which to count: the guest itself, guests of the guest
 */
typedef struct PmuProfileRequest {
    char *event;
    PmuAccounting accounting;
    uint64_t period;
    uint64_t frequency;
    char *modes;
    uint8_t callchain;
    bool branch_stack;

    bool cpu_clock;
    PmuEvent named;
    uint64_t code;
    bool user;
    bool kernel;
    bool itself;
    bool nested;
} PmuProfileRequest;

/**
 * pmu_profile_request_check - understand what was asked
 * @request: the request
 * @errp: what of it cannot be understood
 *
 * Returns: whether it was understood.
 */
bool pmu_profile_request_check(PmuProfileRequest *request, Error **errp);

/**
 * pmu_profile_request_destroy - release what a request refers to
 * @request: the request
 */
void pmu_profile_request_destroy(PmuProfileRequest *request);

#endif /* HW_PMU_PROFILE_REQUEST_H */
