/*
 * Performance monitoring unit: which task a guest's CPU runs
 *
 * Linux has a structure for each task, and each CPU has a pointer to the
 * structure of its current task.  A guest may say where this pointer is, and
 * where the structure has the task's numbers and its name.  These offsets, and
 * all data that is read, may be wrong.
 *
 * Plain C on GLib, in any thread.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_TASK_H
#define HW_PMU_PROFILE_TASK_H

#include "hw/pmu/profile/callchain.h"

/* The size of a name in Linux; a shorter name ends with a NUL. */
#define PMU_TASK_COMM 16

/* The first number that no task can have */
#define PMU_TASK_MAX_PID (1u << 22)

/* The highest offset in the structure; offsets are multiples of 4. */
#define PMU_TASK_MAX_OFFSET 65532

/**
 * struct PmuTaskLayout - where a guest's kernel has its current task
 * @current: offset of the pointer to it in the CPU's own data; a multiple of 8
 * @pid: offset of its number in its structure; a multiple of 4
 * @tgid: offset of the number of its process there; a multiple of 4
 * @comm: offset of its name there; a multiple of 4
 */
typedef struct PmuTaskLayout {
    uint64_t current;
    uint32_t pid;
    uint32_t tgid;
    uint32_t comm;
} PmuTaskLayout;

/**
 * struct PmuTask - a task
 * @pid: the number of its process
 * @tid: its own
 * @comm: its name; bytes after a NUL mean nothing
 */
typedef struct PmuTask {
    uint32_t pid;
    uint32_t tid;
    char comm[PMU_TASK_COMM];
} PmuTask;

/**
 * struct PmuTaskMemory - the memory of a guest's kernel
 * @read: reads it, whatever the mode of the CPU is
 * @opaque: for @read
 * @big_endian: the kernel's byte order
 * @own: the address of the CPU's own data
 */
typedef struct PmuTaskMemory {
    PmuReadFn *read;
    void *opaque;
    bool big_endian;
    uint64_t own;
} PmuTaskMemory;

/**
 * pmu_task_read - find out which task runs
 * @memory: where to look
 * @layout: where the current task is there
 * @task: is set to the task
 *
 * Returns: false if it cannot be read, or is not a valid task.
 */
bool pmu_task_read(const PmuTaskMemory *memory, const PmuTaskLayout *layout,
                   PmuTask *task);

#endif /* HW_PMU_PROFILE_TASK_H */
