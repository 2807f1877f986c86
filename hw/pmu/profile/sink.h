/*
 * Performance monitoring unit: where the stream of a profile goes
 *
 * To a file or a pipe, which a thread of its own writes, so that nobody waits
 * for a disk; to a chardev; or to the guest, whose device has the owner as its
 * chardev.
 *
 * Threads: those that hold the big lock, also where the owner is told.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_SINK_H
#define HW_PMU_PROFILE_SINK_H

#include <glib.h>
#include "qemu/typedefs.h"

/**
 * struct PmuSinkOps - what a sink tells its owner
 * @opened: somebody reads the chardev now: a stream begins, unless this returns
 *          false.  Of files and pipes this is told by pmu_sink_start().
 * @closed: nobody reads it any more, for now: what was not read is gone
 * @said: the guest that reads has written something
 * @failed: nothing more can be written; @err is the owner's.  @closed tells
 *          whether that is because a pipe's reader has gone.
 * @unwritten: of what was to be written, @size bytes are not: whole records
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
 * @ops: what its owner is told
 * @opaque: the owner
 * @errp: why it cannot be written
 *
 * A file that exists, or a block device, is refused.  What is in a set is
 * written as it was opened.
 */
PmuSink *pmu_sink_new_file(const char *path, const PmuSinkOps *ops,
                           void *opaque, Error **errp);

/**
 * pmu_sink_new_chardev - write to a chardev
 * @id: its ID
 * @ops: what its owner is told
 * @opaque: the owner
 * @errp: why it cannot be used
 *
 * One that other frontends write, or that has several backends, is refused.
 */
PmuSink *pmu_sink_new_chardev(const char *id, const PmuSinkOps *ops,
                              void *opaque, Error **errp);

/**
 * pmu_sink_new_guest - write to the guest
 * @id: the ID of the chardev that the owner is from now on
 * @ops: what its owner is told
 * @opaque: the owner
 * @errp: why it cannot be one
 */
PmuSink *pmu_sink_new_guest(const char *id, const PmuSinkOps *ops,
                            void *opaque, Error **errp);

/**
 * pmu_sink_is_used - whether a device of the guest's has the owner as chardev
 * @sink: the sink, which must not be freed then
 */
bool pmu_sink_is_used(const PmuSink *sink);

/**
 * pmu_sink_start - the owner is ready to be told
 * @sink: the sink
 */
void pmu_sink_start(PmuSink *sink);

/**
 * pmu_sink_write - write something
 * @sink: the sink
 * @bytes: what to write, whole records; is the sink's from now on
 *
 * Does not wait.
 */
void pmu_sink_write(PmuSink *sink, GByteArray *bytes);

/**
 * pmu_sink_restart - what was written is for somebody who is no more
 * @sink: one that writes to the guest
 *
 * If a device is open all the same, its owner is told that it was opened.
 */
void pmu_sink_restart(PmuSink *sink);

/**
 * pmu_sink_go_on - whoever has a device open may read
 * @sink: one that writes to the guest
 *
 * The owner is told that it was opened, unless who has it open finds the end
 * (pmu_sink_hang_up()).
 */
void pmu_sink_go_on(PmuSink *sink);

/**
 * pmu_sink_hang_up - nothing more will be written, for now
 * @sink: the sink
 *
 * Whoever reads a pipe or a socket, or is a guest, finds the end after what was
 * written.  A chardev that somebody opens next, or a guest, is another matter.
 */
void pmu_sink_hang_up(PmuSink *sink);

/**
 * pmu_sink_is_busy - whether much is left to be written
 * @sink: the sink
 *
 * Who writes more in spite of that takes the memory for it.
 */
bool pmu_sink_is_busy(PmuSink *sink);

/**
 * pmu_sink_flush_all - write what is left for chardevs
 *
 * Waits, with the big lock, until those who read have taken all, or for a
 * second.  What else sinks write to has the rest when they are freed.
 */
void pmu_sink_flush_all(void);

/**
 * pmu_sink_free - write what is left, and close
 * @sink: the sink or NULL
 *
 * Waits for who reads, and for the disk, but not longer than a second: this and
 * pmu_sink_flush_all(), of all sinks together, within five seconds.  A disk
 * that takes longer has the rest later.  A reader does not, and the owner is
 * told even now, as it is if the end cannot be written.  For the guest it does
 * not wait: its device has gone.
 */
void pmu_sink_free(PmuSink *sink);

#endif /* HW_PMU_PROFILE_SINK_H */
