/*
 * Performance monitoring unit: from samples to the stream of a profile
 *
 * A writer takes samples from samplers, gives each address space a pid, and
 * turns all into records, with the kernel that runs and the samples that are
 * lost.  A sink then takes the bytes.
 *
 * Threads: any that holds the big lock.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_WRITER_H
#define HW_PMU_PROFILE_WRITER_H

#include "hw/pmu/profile/talk.h"
#include "sampler.h"

/**
 * struct PmuWriter - the writer of a profile's stream
 * @clock: the profile's clock
 * @is_guests: the guest itself reads the stream
 * @max_size: the size at which the stream ends, in bytes; 0 for no limit
 * @asks_guest: the guest is asked which kernel it runs
 * @kernel: the guest's kernel, as far as the guest or the user has named it
 * @streaming: the stream has a reader
 * @size: the size of the stream so far, in bytes
 * @samples: how many samples were written
 * @lost: how many samples are missing
 * @throttled: how often the host took no samples for a while
 * @stream: the stream, while @streaming
 * @pids: the pids of address spaces, by PmuGuestSpace
 * @names: the names of tasks, by their numbers
 * @taken_ns: when pmu_writer_take() was last called: older samples of all vCPUs
 *            were written then
 * @sample: the sample that is being written
 */
typedef struct PmuWriter {
    const PmuProfileClock *clock;
    bool is_guests;
    uint64_t max_size;
    bool asks_guest;
    PmuGuestKernel kernel;

    bool streaming;
    uint64_t size;
    uint64_t samples;
    uint64_t lost;
    uint64_t throttled;

    PmuStream stream;
    GHashTable *pids;
    GHashTable *names;
    uint64_t taken_ns;
    PmuSample sample;
} PmuWriter;

/**
 * pmu_writer_init - make ready
 * @writer: the writer, all 0
 * @clock: the profile's
 */
void pmu_writer_init(PmuWriter *writer, const PmuProfileClock *clock);

/**
 * pmu_writer_destroy - release the contents of a writer
 * @writer: the writer
 */
void pmu_writer_destroy(PmuWriter *writer);

/**
 * pmu_writer_begin - begin a stream
 * @writer: the writer
 * @event: the event that is sampled
 * @machine: the guest's machine, as uname -m prints it
 */
void pmu_writer_begin(PmuWriter *writer, const PmuStreamEvent *event,
                      const char *machine);

/**
 * pmu_writer_end - end the stream, as it has no reader any more
 * @writer: the writer
 */
void pmu_writer_end(PmuWriter *writer);

/**
 * pmu_writer_ask_kernel - ask the guest which kernel runs, until it says so
 * @writer: the writer
 * @since_ns: the time from which on the stream has the kernel; all samples that
 *            are older were written
 */
void pmu_writer_ask_kernel(PmuWriter *writer, int64_t since_ns);

/**
 * pmu_writer_may_have_other_kernel - whether another kernel may run now
 * @writer: the writer
 *
 * Returns: whether the stream depends on its kernel, and the guest does not
 * confirm that this kernel runs.  If the user has named it, the guest is not
 * asked.
 */
bool pmu_writer_may_have_other_kernel(const PmuWriter *writer);

/**
 * pmu_writer_depends_on_kernel - whether the stream holds for one kernel only
 * @writer: the writer
 *
 * A stream can have one kernel only.  It holds for that kernel once the guest
 * has named it, or if the user has.  If the guest itself reads the stream,
 * another kernel begins another stream.
 */
bool pmu_writer_depends_on_kernel(const PmuWriter *writer);

/**
 * pmu_writer_is_full - whether the stream is as long as it may be
 * @writer: the writer
 */
bool pmu_writer_is_full(const PmuWriter *writer);

/**
 * pmu_writer_empty - write the samples of a sampler, or drop them
 * @writer: the writer
 * @sampler: the sampler
 *
 * Samples are dropped while the stream has no reader.  When the stream is full,
 * the rest stays in the sampler, and so do samples that are taken meanwhile.
 */
void pmu_writer_empty(PmuWriter *writer, PmuSampler *sampler);

/**
 * pmu_writer_empty_to_end - also write how many samples were lost at the end
 * @writer: the writer
 * @sampler: the sampler; the time of the loss is right only if it takes no
 *           samples meanwhile
 */
void pmu_writer_empty_to_end(PmuWriter *writer, PmuSampler *sampler);

/**
 * pmu_writer_map - write that a process has mapped a file
 * @writer: the writer, while it is streaming
 * @map: the guest's message
 */
void pmu_writer_map(PmuWriter *writer, const PmuTalkMap *map);

/**
 * pmu_writer_fork - write that a process has begun
 * @writer: the writer, while it is streaming
 * @fork: the guest's message
 */
void pmu_writer_fork(PmuWriter *writer, const PmuTalkFork *fork);

/**
 * pmu_writer_error - write a message about an error of the reader's
 * @writer: the writer, while it is streaming
 * @message: the message
 */
void pmu_writer_error(PmuWriter *writer, const char *message);

/**
 * pmu_writer_unwrite - count samples as lost that the sink could not write
 * @writer: the writer
 * @bytes: whole records that pmu_writer_take() has returned
 * @size: how many bytes
 */
void pmu_writer_unwrite(PmuWriter *writer, const uint8_t *bytes, size_t size);

/**
 * pmu_writer_take - take the records that were written since the last call
 * @writer: the writer
 *
 * To be called when all samplers were emptied.
 *
 * Returns: whole records, or NULL.
 */
GByteArray *pmu_writer_take(PmuWriter *writer);

#endif /* HW_PMU_PROFILE_WRITER_H */
