/*
 * Performance monitoring unit: a guest that helps with its profile
 *
 * What it says takes effect here: on where samplers find tasks, and on the
 * stream.
 *
 * Threads: the main loop, or any that holds the big lock.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_AGENT_H
#define HW_PMU_PROFILE_AGENT_H

#include "hw/pmu/profile/talk.h"
#include "sampler.h"
#include "writer.h"

/**
 * struct PmuAgent - somebody in the guest who reads the stream, and may speak
 * @config: the samplers'
 * @writer: the stream's
 * @empty: writes what samplers have
 * @opaque: for @empty
 * @talk: what was said and is not a line yet
 * @flush_asked: there is to be a record behind what was sampled so far
 * @moved_to: where tasks are from then on, if it has said so since
 * @has_moved: whether it has
 */
typedef struct PmuAgent {
    PmuSamplerConfig *config;
    PmuWriter *writer;
    void (*empty)(void *opaque);
    void *opaque;
    PmuTalk talk;
    bool flush_asked;
    PmuTaskLayout moved_to;
    bool has_moved;
} PmuAgent;

/**
 * pmu_agent_listen - take what was said
 * @agent: the agent
 * @bytes: that
 * @size: how much
 *
 * Dropped while nobody reads the stream.  What would be written is dropped
 * while much is not read.
 */
void pmu_agent_listen(PmuAgent *agent, const uint8_t *bytes, size_t size);

/**
 * pmu_agent_flushed - all that was sampled has been written
 * @agent: the agent, who may be waiting for that; what it has said of other
 *         places for its tasks takes effect
 */
void pmu_agent_flushed(PmuAgent *agent);

/**
 * pmu_agent_forget - what was said does not hold any more
 * @agent: the agent
 */
void pmu_agent_forget(PmuAgent *agent);

#endif /* HW_PMU_PROFILE_AGENT_H */
