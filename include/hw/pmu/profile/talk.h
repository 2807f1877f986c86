/*
 * Performance monitoring unit: what a guest says of itself to a profile
 *
 * Lines of text, each a word and numbers, decimal or behind 0x, with one space
 * between:
 *
 *   task CURRENT PID TGID COMM
 *   map AGE PID START LENGTH OFFSET PATH
 *   fork AGE PID PARENT
 *   flush
 *
 * A guest may say anything.  What is not one of these lines is answered, and
 * has no effect.
 *
 * Plain C on GLib.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_TALK_H
#define HW_PMU_PROFILE_TALK_H

#include "hw/pmu/profile/task.h"

/* A longer line is answered, and dropped. */
#define PMU_TALK_MAX_LINE 4096

/* Of ages: longer ago, and it is of no interest when. */
#define PMU_TALK_MAX_AGE 10000000000ull

/**
 * struct PmuTalkMap - a file that a process has mapped
 * @age_ns: how long ago, of the guest's time
 * @pid: the process
 * @start, @length: where
 * @offset: in the file
 * @path: of the file; anything but a NUL and a newline
 */
typedef struct PmuTalkMap {
    uint64_t age_ns;
    uint32_t pid;
    uint64_t start;
    uint64_t length;
    uint64_t offset;
    const char *path;
} PmuTalkMap;

/**
 * struct PmuTalkFork - a process that has begun with the maps of another
 * @age_ns: how long ago, of the guest's time
 * @pid: the process
 * @parent: the other
 */
typedef struct PmuTalkFork {
    uint64_t age_ns;
    uint32_t pid;
    uint32_t parent;
} PmuTalkFork;

/**
 * struct PmuTalkOps - who listens
 * @task: where tasks are
 * @map: a process has mapped a file
 * @fork: a process has begun
 * @flush: what was sampled is wanted now
 * @nonsense: something else was said; @why ends no line
 */
typedef struct PmuTalkOps {
    void (*task)(void *opaque, const PmuTaskLayout *layout);
    void (*map)(void *opaque, const PmuTalkMap *map);
    void (*fork)(void *opaque, const PmuTalkFork *fork);
    void (*flush)(void *opaque);
    void (*nonsense)(void *opaque, const char *why);
} PmuTalkOps;

/**
 * struct PmuTalk - what was said and is not a line yet
 * @length: of @line
 * @too_long: the line is, and was dropped
 * @line: its beginning
 */
typedef struct PmuTalk {
    unsigned length;
    bool too_long;
    char line[PMU_TALK_MAX_LINE];
} PmuTalk;

/**
 * pmu_talk_begin - somebody else speaks from now on
 * @talk: is set up
 */
void pmu_talk_begin(PmuTalk *talk);

/**
 * pmu_talk_listen - take what was said
 * @talk: what was said before
 * @said: the bytes
 * @size: how many
 * @ops: who is told of each line that ends
 * @opaque: for @ops
 */
void pmu_talk_listen(PmuTalk *talk, const void *said, size_t size,
                     const PmuTalkOps *ops, void *opaque);

#endif /* HW_PMU_PROFILE_TALK_H */
