/*
 * Performance monitoring unit: a file that a thread of its own writes
 *
 * Nobody waits for a disk, nor for who reads a pipe: what is to be written is
 * handed to the thread.  Whoever is in a hurry leaves the rest to it.
 *
 * Threads: those that hold the big lock.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_SINK_FILE_H
#define HW_PMU_PROFILE_SINK_FILE_H

#include <glib.h>
#include "qemu/typedefs.h"

typedef struct PmuFile PmuFile;

/**
 * pmu_file_new - begin to write
 * @fd: what is open, and is closed at the end
 * @failed: scheduled when something was not written
 *
 * A regular file is written from where it stands, or from its end on if it is
 * open to append.
 */
PmuFile *pmu_file_new(int fd, QEMUBH *failed);

/**
 * pmu_file_write - write something
 * @file: the file
 * @bytes: whole records; is the file's from now on.  After pmu_file_end(), it
 *         is dropped.
 */
void pmu_file_write(PmuFile *file, GByteArray *bytes);

/**
 * pmu_file_backlog - how much is left to be written, in bytes
 * @file: the file
 */
size_t pmu_file_backlog(PmuFile *file);

/**
 * pmu_file_end - nothing more comes: close it behind what was written
 * @file: the file
 */
void pmu_file_end(PmuFile *file);

/**
 * pmu_file_await - wait until it is closed, after pmu_file_end()
 * @file: the file
 * @most_ms: so long at most
 *
 * Returns: 0 if all was written; -EINPROGRESS if it will be, on a slow disk;
 * -ETIMEDOUT if it will not, as a reader takes it too slowly; otherwise another
 * negative errno.
 */
int pmu_file_await(PmuFile *file, int most_ms);

/**
 * pmu_file_error - why something was not written
 * @file: the file
 *
 * Returns: 0, or a negative errno.
 */
int pmu_file_error(PmuFile *file);

/**
 * pmu_file_take_unwritten - what was not written, since the last time
 * @file: the file, which ends with a whole record
 *
 * Returns: whole records; NULL if there are none.
 */
GByteArray *pmu_file_take_unwritten(PmuFile *file);

/**
 * pmu_file_leave - forget it
 * @file: the file, which was ended.  What is not written by now is, if it is
 *        regular; a pipe's reader does not get it.
 */
void pmu_file_leave(PmuFile *file);

#endif /* HW_PMU_PROFILE_SINK_FILE_H */
