/*
 * Performance monitoring unit: which task a guest's CPU runs
 *
 * Linux has a structure for each task, and each CPU a pointer to that of its
 * current one.  A guest may say where in these its numbers and its name are.
 * That, and all that is read, may be anything.
 *
 * Plain C on GLib, in any thread.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_TASK_H
#define HW_PMU_PROFILE_TASK_H

#include "hw/pmu/profile/callchain.h"

/* Linux's: with the NUL that ends it, if it is shorter */
#define PMU_TASK_COMM 16

/* The first number that is no task's */
#define PMU_TASK_MAX_PID (1u << 22)

/* Offsets are in a structure, and words of 4 bytes. */
#define PMU_TASK_MAX_OFFSET 65532

/**
 * struct PmuTaskLayout - where a guest's kernel has its current task
 * @current: where the pointer to it is, from what is the CPU's own; a multiple
 *           of 8
 * @pid: where in the task its number is; this and the others multiples of 4
 * @tgid: where the number of its process is
 * @comm: where its name is
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
 * @comm: its name; what is behind a NUL means nothing
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
 * @own: the address of what is the CPU's own
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
 * @layout: where it is there
 * @task: is set to it
 *
 * Returns: false if it cannot be read, or is none.
 */
bool pmu_task_read(const PmuTaskMemory *memory, const PmuTaskLayout *layout,
                   PmuTask *task);

#endif /* HW_PMU_PROFILE_TASK_H */
