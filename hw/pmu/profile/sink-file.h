/*
 * Performance monitoring unit: a file that a thread of its own writes
 *
 * Callers hand bytes to the thread, and wait neither for a disk nor for a
 * pipe's reader.  A caller that cannot wait for the end leaves it to the thread
 * (pmu_file_leave()).
 *
 * Threads: any that holds the big lock.
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
 * @fd: an open file descriptor; the thread closes it at the end
 * @failed: scheduled when something was not written
 *
 * Writing to a regular file begins at the position of @fd, or at the end of the
 * file if @fd has O_APPEND.
 */
PmuFile *pmu_file_new(int fd, QEMUBH *failed);

/**
 * pmu_file_write - write something
 * @file: the file
 * @bytes: whole records; this takes over the array.  After pmu_file_end(), it
 *         is dropped.
 */
void pmu_file_write(PmuFile *file, GByteArray *bytes);

/**
 * pmu_file_backlog - how many bytes are left to be written
 * @file: the file
 */
size_t pmu_file_backlog(PmuFile *file);

/**
 * pmu_file_end - close the file once all has been written
 * @file: the file
 */
void pmu_file_end(PmuFile *file);

/**
 * pmu_file_await - wait until it is closed, after pmu_file_end()
 * @file: the file
 * @most_ms: the longest time to wait
 *
 * Returns: 0 if all was written; -EINPROGRESS if the thread still writes to a
 * slow disk; -ETIMEDOUT if a reader takes the bytes too slowly; otherwise
 * another negative errno.
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
 * pmu_file_take_unwritten - take records that were not written
 * @file: the file, which ends with a whole record
 *
 * Returns: whole records that no earlier call has returned, or NULL.
 */
GByteArray *pmu_file_take_unwritten(PmuFile *file);

/**
 * pmu_file_leave - leave a file to its thread
 * @file: the file, after pmu_file_end().  The thread writes the rest if the
 *        file is regular; a pipe's reader does not get the rest.
 */
void pmu_file_leave(PmuFile *file);

#endif /* HW_PMU_PROFILE_SINK_FILE_H */
