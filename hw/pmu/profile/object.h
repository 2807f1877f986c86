/*
 * Performance monitoring unit: profiles of guests, taken from outside
 *
 * The object, for the code that gives it its properties.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_OBJECT_H
#define HW_PMU_PROFILE_OBJECT_H

#include "qom/object.h"
#include "hw/qdev-core.h"
#include "hw/resettable.h"
#include "system/runstate.h"
#include "agent.h"
#include "sampler.h"
#include "sink.h"
#include "writer.h"

#define TYPE_PMU_PROFILE "pmu-profile"
OBJECT_DECLARE_SIMPLE_TYPE(PmuProfile, PMU_PROFILE)

/**
 * struct PmuProfile - a profile of the guest
 * @vcpus, @file, @chardev, @kernel_text, @build_id, @enabled: as the user has
 *     given them
 * @complete: the properties are settled
 * @machine_ready: there are vCPUs
 * @stopped: why it has ended by itself; NULL if it has not
 * @stop_reason: the same for programs
 * @config: what the samplers share; what the user has asked for is in there
 * @samplers: of PmuSampler, one a vCPU
 * @event: what their samples are of
 * @writer: writes the stream
 * @agent: the guest, if it reads the stream
 * @sink: where that goes
 * @is_opened: somebody has begun to read, for whom a stream is to begin
 * @drain_timer: empties the samplers
 * @ready: called when there are vCPUs
 * @shutdown: called when QEMU is to end
 * @listener: called when there are more, or fewer
 * @changes: called when the machine starts and stops
 * @stops: called when it stops, after that
 * @reset: the state of the machine's resets
 * @has_run: the machine has run since the profile began
 * @is_loaded: its state has come from elsewhere since; where the guest reads,
 *             what is open in it has another stream
 * @gone_on: called when that is over
 */
struct PmuProfile {
    Object parent;

    uint16List *vcpus;
    char *file;
    char *chardev;
    uint64_t kernel_text;
    char *build_id;
    bool enabled;

    bool complete;
    bool machine_ready;
    char *stopped;
    PmuProfileStopReason stop_reason;
    PmuSamplerConfig config;
    GPtrArray *samplers;
    PmuStreamEvent event;
    PmuWriter writer;
    PmuAgent agent;
    PmuSink *sink;
    bool is_opened;
    QEMUTimer *drain_timer;
    Notifier ready;
    Notifier shutdown;
    DeviceListener listener;
    VMChangeStateEntry *changes;
    VMChangeStateEntry *stops;
    ResettableState reset;
    bool has_run;
    bool is_loaded;
    QEMUTimer *gone_on;
};

/**
 * pmu_profile_enable - take samples, or take none for now
 * @profile: the profile
 * @enabled: which of the two
 * @errp: why none can be taken
 */
void pmu_profile_enable(PmuProfile *profile, bool enabled, Error **errp);

/**
 * pmu_profile_add_properties - give the class its properties
 * @oc: the class
 */
void pmu_profile_add_properties(ObjectClass *oc);

#endif /* HW_PMU_PROFILE_OBJECT_H */
