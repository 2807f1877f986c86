/*
 * Performance monitoring unit: the request of a profile's user
 *
 * This parses the properties; samplers say whether they can be fulfilled.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_REQUEST_H
#define HW_PMU_PROFILE_REQUEST_H

#include "qapi/qapi-types-pmu.h"
#include "hw/pmu/pmu.h"

/**
 * struct PmuProfileRequest - the request of a profile's user
 * @event, @accounting, @period, @frequency, @modes, @callchain, @branch_stack,
 * @data_address: as the user has given them; pmu_profile_request_check() fills
 *     in defaults
 * @cpu_clock: the event is the time of vCPUs' threads
 * @named: the event, if the user has named it; otherwise PMU_EVENT_NONE
 * @code: the code of the event, if the user has given that
 * @user, @kernel: whether to count in programs, in the kernel
 * @itself, @nested: whether to count in the guest itself, in its guests
 */
typedef struct PmuProfileRequest {
    char *event;
    PmuAccounting accounting;
    uint64_t period;
    uint64_t frequency;
    char *modes;
    uint8_t callchain;
    bool branch_stack;
    bool data_address;

    bool cpu_clock;
    PmuEvent named;
    uint64_t code;
    bool user;
    bool kernel;
    bool itself;
    bool nested;
} PmuProfileRequest;

/**
 * pmu_profile_request_check - parse a request, and fill in defaults
 * @request: the request
 * @errp: why it is not valid
 *
 * Returns: whether it is valid.
 */
bool pmu_profile_request_check(PmuProfileRequest *request, Error **errp);

/**
 * pmu_profile_request_destroy - release the contents of a request
 * @request: the request
 */
void pmu_profile_request_destroy(PmuProfileRequest *request);

#endif /* HW_PMU_PROFILE_REQUEST_H */
