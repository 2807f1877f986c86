/*
 * Performance monitoring unit: a sample of a vCPU
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_SAMPLE_H
#define HW_PMU_PROFILE_SAMPLE_H

#include "hw/pmu/pmu-core.h"
#include "hw/pmu/pmu-guest.h"
#include "hw/pmu/pmu-recorder.h"

/**
 * PMU_SAMPLE_MAX_CALLERS - the longest chain of callers that a sample can have
 */
#define PMU_SAMPLE_MAX_CALLERS UINT8_MAX

/**
 * enum PmuSampleKind - the kind of a sampler's report
 * @PMU_SAMPLE_TAKEN: a sample
 * @PMU_SAMPLE_THROTTLED: the host stops taking samples: there were too many
 * @PMU_SAMPLE_UNTHROTTLED: it takes samples again
 */
typedef enum PmuSampleKind {
    PMU_SAMPLE_TAKEN,
    PMU_SAMPLE_THROTTLED,
    PMU_SAMPLE_UNTHROTTLED,
} PmuSampleKind;

/**
 * struct PmuSample - a sample of a vCPU
 * @kind: PMU_SAMPLE_TAKEN; for other kinds, only @time_ns and @lost are set
 * @lost: how many samples were lost between the previous one and this one
 * @ip: the address of the instruction
 * @space: its address space
 * @time_ns: when it was taken
 * @period: for how many events it stands
 * @user: it was taken in a user's program
 * @has_task: @task is known
 * @task: the task that ran
 * @nr_callers: how many callers there are, up to PMU_SAMPLE_MAX_CALLERS
 * @callers: whence @ip was called, the innermost first
 * @nr_branches: how many branches there are
 * @branches: the last taken branches, the newest first
 * @has_access: @access is known
 * @access: the instruction's access to data
 */
typedef struct PmuSample {
    PmuSampleKind kind;
    uint64_t lost;
    uint64_t ip;
    PmuGuestSpace space;
    uint64_t time_ns;
    uint64_t period;
    bool user;
    bool has_task;
    PmuTask task;
    uint8_t nr_callers;
    uint64_t callers[PMU_SAMPLE_MAX_CALLERS];
    uint8_t nr_branches;
    PmuBranch branches[PMU_RECORDER_MAX];
    bool has_access;
    PmuAccess access;
} PmuSample;

#endif /* HW_PMU_PROFILE_SAMPLE_H */
