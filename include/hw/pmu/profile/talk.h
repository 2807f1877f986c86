/*
 * Performance monitoring unit: messages from a guest to its profile
 *
 * Messages are lines of text: a word and numbers, which are decimal or begin
 * with 0x, with one space between:
 *
 *   task CURRENT PID TGID COMM
 *   map AGE PID START LENGTH OFFSET PATH
 *   fork AGE PID PARENT
 *   flush
 *
 * A guest may write anything.  A line that is not like one of these is answered
 * with an error, and has no effect.
 *
 * Plain C on GLib.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_TALK_H
#define HW_PMU_PROFILE_TALK_H

#include "hw/pmu/profile/task.h"

/* A longer line is answered with an error, and dropped. */
#define PMU_TALK_MAX_LINE 4096

/* The highest age in ns; it does not matter when older events happened. */
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
 * struct PmuTalkOps - calls for the lines of a guest
 * @task: the guest says where its tasks are
 * @map: a process has mapped a file
 * @fork: a process has begun
 * @flush: all samples are to be written now
 * @nonsense: a line is not valid; @why says so, without a newline
 */
typedef struct PmuTalkOps {
    void (*task)(void *opaque, const PmuTaskLayout *layout);
    void (*map)(void *opaque, const PmuTalkMap *map);
    void (*fork)(void *opaque, const PmuTalkFork *fork);
    void (*flush)(void *opaque);
    void (*nonsense)(void *opaque, const char *why);
} PmuTalkOps;

/**
 * struct PmuTalk - a line that is not complete yet
 * @length: the length of @line
 * @too_long: the line is too long, and is dropped
 * @line: the beginning of the line
 */
typedef struct PmuTalk {
    unsigned length;
    bool too_long;
    char line[PMU_TALK_MAX_LINE];
} PmuTalk;

/**
 * pmu_talk_begin - begin with an empty line, for another writer
 * @talk: is set up
 */
void pmu_talk_begin(PmuTalk *talk);

/**
 * pmu_talk_listen - take bytes from the guest
 * @talk: the line so far
 * @said: the bytes
 * @size: how many
 * @ops: called for each line that ends
 * @opaque: for @ops
 */
void pmu_talk_listen(PmuTalk *talk, const void *said, size_t size,
                     const PmuTalkOps *ops, void *opaque);

#endif /* HW_PMU_PROFILE_TALK_H */
