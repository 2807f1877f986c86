/*
 * Performance monitoring unit: a guest that helps with its profile
 *
 * The guest's lines take effect here: they change where samplers find tasks,
 * or add records to the stream.
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
 * struct PmuAgent - a program in the guest that reads the stream, and may speak
 * @config: the configuration of the samplers
 * @writer: the writer of the stream
 * @empty: writes the samples that samplers have
 * @opaque: for @empty
 * @talk: bytes of the agent's that are not a whole line yet
 * @flush_asked: the agent waits for a record after all samples taken so far
 * @moved_to: the new place of tasks, for use after the next flush
 * @has_moved: @moved_to is set
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
 * pmu_agent_listen - take bytes from the agent
 * @agent: the agent
 * @bytes: the bytes
 * @size: how many
 *
 * The bytes are dropped while the stream has no reader.  Lines that lead to
 * records are dropped while much of the stream is still unread.
 */
void pmu_agent_listen(PmuAgent *agent, const uint8_t *bytes, size_t size);

/**
 * pmu_agent_flushed - all that was sampled has been written
 * @agent: the agent, which may be waiting for that; a new place of its tasks
 *         takes effect now
 */
void pmu_agent_flushed(PmuAgent *agent);

/**
 * pmu_agent_forget - drop all that the agent has said
 * @agent: the agent
 */
void pmu_agent_forget(PmuAgent *agent);

#endif /* HW_PMU_PROFILE_AGENT_H */
