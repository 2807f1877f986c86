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
#include "hw/core/cpu.h"
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
 * @complete: the properties can no longer change
 * @machine_ready: the vCPUs exist
 * @stopped: a message that says why the profile has ended by itself; else NULL
 * @stop_reason: the same for programs
 * @config: the configuration of all samplers, with the user's request
 * @samplers: of PmuSampler, one for each vCPU
 * @event: the event that is sampled
 * @writer: writes the stream
 * @agent: the guest, if it reads the stream
 * @sink: the destination of the stream
 * @is_opened: a new reader waits for its stream to begin
 * @drain_timer: empties the samplers
 * @ready: called when the vCPUs exist
 * @shutdown: called when QEMU ends
 * @listener: called when vCPUs are plugged or unplugged
 * @changes: called when the machine starts and stops
 * @stops: called when it stops, after @changes
 * @reset: the state of the machine's resets
 * @has_run: the machine has run since the profile began
 * @is_loaded: the machine's state was loaded, and it has yet to go on; if the
 *             guest reads, ports that are open in that state belong to the
 *             reader of another stream
 * @gone_on: ends @is_loaded, once these ports were opened
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
 * pmu_profile_add_properties - give the class its properties
 * @oc: the class
 */
void pmu_profile_add_properties(ObjectClass *oc);

#endif /* HW_PMU_PROFILE_OBJECT_H */
