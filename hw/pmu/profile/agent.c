/*
 * Performance monitoring unit: a guest that helps with its profile
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "agent.h"

/* With so many unread bytes, the guest's lines add no more to the stream. */
#define MAX_UNREAD (4 * 1024 * 1024)

static void replace_tasks(PmuAgent *agent, PmuTaskPlace *tasks)
{
    PmuTaskPlace *old = agent->config->tasks;

    qatomic_rcu_set(&agent->config->tasks, tasks);
    if (old) {
        g_free_rcu(old, rcu);
    }
}

static void place_tasks(PmuAgent *agent, const PmuTaskLayout *layout)
{
    PmuTaskPlace *tasks = g_new0(PmuTaskPlace, 1);

    tasks->layout = *layout;
    replace_tasks(agent, tasks);
}

/*
 * RCU releases nothing while this thread holds the big lock, and a guest can
 * send lines for long.  So only the last of its new places takes effect.
 */
static void take_task(void *opaque, const PmuTaskLayout *layout)
{
    PmuAgent *agent = opaque;

    if (!agent->config->tasks) {
        place_tasks(agent, layout);
        return;
    }
    agent->moved_to = *layout;
    agent->has_moved = true;
    qemu_bh_schedule(agent->config->drain);
}

static bool may_write(const PmuAgent *agent)
{
    return agent->writer->streaming
           && agent->writer->stream.out->len < MAX_UNREAD;
}

static void take_map(void *opaque, const PmuTalkMap *map)
{
    PmuAgent *agent = opaque;

    if (may_write(agent)) {
        agent->empty(agent->opaque);
        pmu_writer_map(agent->writer, map);
    }
}

static void take_fork(void *opaque, const PmuTalkFork *fork)
{
    PmuAgent *agent = opaque;

    if (may_write(agent)) {
        agent->empty(agent->opaque);
        pmu_writer_fork(agent->writer, fork);
    }
}

static void take_flush(void *opaque)
{
    PmuAgent *agent = opaque;

    agent->flush_asked = true;
    qemu_bh_schedule(agent->config->drain);
}

static void take_nonsense(void *opaque, const char *why)
{
    PmuAgent *agent = opaque;

    if (may_write(agent)) {
        g_autofree char *message = g_strdup_printf("pmu-profile: %s", why);

        pmu_writer_error(agent->writer, message);
    }
}

static const PmuTalkOps talk_ops = {
    .task = take_task,
    .map = take_map,
    .fork = take_fork,
    .flush = take_flush,
    .nonsense = take_nonsense,
};

void pmu_agent_listen(PmuAgent *agent, const uint8_t *bytes, size_t size)
{
    if (agent->writer->streaming) {
        pmu_talk_listen(&agent->talk, bytes, size, &talk_ops, agent);
    }
}

void pmu_agent_flushed(PmuAgent *agent)
{
    if (agent->has_moved) {
        agent->has_moved = false;
        place_tasks(agent, &agent->moved_to);
    }
    if (agent->flush_asked && agent->writer->streaming) {
        agent->flush_asked = false;
        pmu_stream_flushed(&agent->writer->stream);
    }
}

void pmu_agent_forget(PmuAgent *agent)
{
    pmu_talk_begin(&agent->talk);
    agent->flush_asked = false;
    agent->has_moved = false;
    replace_tasks(agent, NULL);
}
