/*
 * Performance monitoring unit: where the stream of a profile goes
 *
 * A sink writes to a file or a pipe, in a thread of its own, so that QEMU does
 * not wait for a disk; to a chardev; or to the guest, one of whose devices has
 * the owner as its chardev.
 *
 * Threads: any that holds the big lock; calls to the owner hold it, too.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_SINK_H
#define HW_PMU_PROFILE_SINK_H

#include <glib.h>
#include "qemu/typedefs.h"

/**
 * struct PmuSinkOps - calls from a sink to its owner
 * @opened: the chardev has a reader: a stream begins, unless this returns
 *          false.  For files and pipes, pmu_sink_start() calls this.
 * @closed: the chardev has no reader for now: unread bytes are dropped
 * @said: the guest that reads has written bytes
 * @failed: nothing more can be written; the owner has to free @err.  @closed
 *          says whether the reason is that a pipe's reader has gone.
 * @unwritten: these @size bytes were not written: whole records
 */
typedef struct PmuSinkOps {
    bool (*opened)(void *opaque);
    void (*closed)(void *opaque);
    void (*said)(void *opaque, const uint8_t *bytes, size_t size);
    void (*failed)(void *opaque, Error *err, bool closed);
    void (*unwritten)(void *opaque, const uint8_t *bytes, size_t size);
} PmuSinkOps;

typedef struct PmuSink PmuSink;

/**
 * pmu_sink_new_file - write to a new file, to a pipe that is read, or to a
 *                     character device
 * @path: its name, or that of a set of file descriptors
 * @ops: calls to its owner
 * @opaque: the owner
 * @errp: why it cannot be written
 *
 * A file that exists, or a block device, is refused.  A descriptor of a set is
 * used as the user has opened it.
 */
PmuSink *pmu_sink_new_file(const char *path, const PmuSinkOps *ops,
                           void *opaque, Error **errp);

/**
 * pmu_sink_new_chardev - write to a chardev
 * @id: its ID
 * @ops: calls to its owner
 * @opaque: the owner
 * @errp: why it cannot be used
 *
 * A chardev that other frontends write to, or that has several backends, is
 * refused.
 */
PmuSink *pmu_sink_new_chardev(const char *id, const PmuSinkOps *ops,
                              void *opaque, Error **errp);

/**
 * pmu_sink_new_guest - write to the guest
 * @id: the ID of the chardev that is created for the owner
 * @ops: calls to its owner
 * @opaque: the owner
 * @errp: why it cannot be created
 */
PmuSink *pmu_sink_new_guest(const char *id, const PmuSinkOps *ops,
                            void *opaque, Error **errp);

/**
 * pmu_sink_is_used - whether a device of the guest's has the owner as chardev
 * @sink: the sink, which must not be freed then
 */
bool pmu_sink_is_used(const PmuSink *sink);

/**
 * pmu_sink_start - begin to call the owner
 * @sink: the sink
 */
void pmu_sink_start(PmuSink *sink);

/**
 * pmu_sink_write - write something
 * @sink: the sink
 * @bytes: whole records; the sink takes over the array
 *
 * Does not wait.
 */
void pmu_sink_write(PmuSink *sink, GByteArray *bytes);

/**
 * pmu_sink_restart - drop unread bytes, as their reader is gone
 * @sink: one that writes to the guest
 *
 * If a device is open nevertheless, the owner's @opened is called.
 */
void pmu_sink_restart(PmuSink *sink);

/**
 * pmu_sink_go_on - begin a stream if a device is open
 * @sink: one that writes to the guest
 *
 * The owner's @opened is called, unless the reader of that device finds the end
 * of the stream (pmu_sink_hang_up()).
 */
void pmu_sink_go_on(PmuSink *sink);

/**
 * pmu_sink_hang_up - nothing more will be written, for now
 * @sink: the sink
 *
 * The reader of a pipe or a socket, or in a guest, finds the end of the file
 * after the bytes that were written.  When a chardev, or a guest's device, is
 * opened again, the owner's @opened is called again.
 */
void pmu_sink_hang_up(PmuSink *sink);

/**
 * pmu_sink_is_busy - whether much is left to be written
 * @sink: the sink
 *
 * Writing is still allowed, but takes memory.
 */
bool pmu_sink_is_busy(PmuSink *sink);

/**
 * pmu_sink_flush_all - write all that is left for chardevs
 *
 * Waits, with the big lock held, until all readers have taken all bytes, but
 * not longer than a second.  Sinks that write to files, pipes or the guest are
 * flushed when they are freed.
 */
void pmu_sink_flush_all(void);

/**
 * pmu_sink_free - write all that is left, and close
 * @sink: the sink or NULL
 *
 * Waits for the reader or the disk.  This function and pmu_sink_flush_all()
 * together, for all sinks, wait for one second at most in each five seconds.
 * If a disk takes longer, the rest is written later.  If a reader takes longer,
 * the rest is lost, and the owner's @failed is called even now, as it is if the
 * end cannot be written.  For the guest this does not wait, as its device has
 * gone.
 */
void pmu_sink_free(PmuSink *sink);

#endif /* HW_PMU_PROFILE_SINK_H */
