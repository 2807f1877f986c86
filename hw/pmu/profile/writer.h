/*
 * Performance monitoring unit: from samples to the stream of a profile
 *
 * Takes what samplers have, gives each address space a pid, says which kernel
 * runs and what is lost, and has the bytes ready for a sink.
 *
 * Threads: those that hold the big lock.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_WRITER_H
#define HW_PMU_PROFILE_WRITER_H

#include "hw/pmu/profile/talk.h"
#include "sampler.h"

/**
 * struct PmuWriter - what writes the stream of a profile
 * @clock: the profile's
 * @is_guests: the guest itself reads the stream
 * @max_size: where the stream is to end, in bytes; 0 for nowhere
 * @asks_guest: the guest is asked which kernel it runs
 * @kernel: what runs, if the guest or the user has said it
 * @streaming: somebody reads the stream
 * @size: bytes of it so far
 * @samples: samples that were written
 * @lost: samples that are missing
 * @throttled: how often the host took none for a while
 * @stream: the stream, while @streaming
 * @pids: of the address spaces, by PmuGuestSpace
 * @names: what tasks are called, by their numbers
 * @taken_ns: when all had been written that there was
 * @sample: the one on its way to the stream
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
 * pmu_writer_destroy - release what a writer refers to
 * @writer: the writer
 */
void pmu_writer_destroy(PmuWriter *writer);

/**
 * pmu_writer_begin - begin a stream
 * @writer: the writer
 * @event: what the samples are of
 * @machine: the guest's, as uname -m has it
 */
void pmu_writer_begin(PmuWriter *writer, const PmuStreamEvent *event,
                      const char *machine);

/**
 * pmu_writer_end - nobody reads the stream any more
 * @writer: the writer
 */
void pmu_writer_end(PmuWriter *writer);

/**
 * pmu_writer_ask_kernel - ask the guest which kernel runs, until it tells
 * @writer: the writer
 * @since_ns: the time from which on the stream is to have the kernel; all
 *            samples that are older were written
 */
void pmu_writer_ask_kernel(PmuWriter *writer, int64_t since_ns);

/**
 * pmu_writer_may_have_other_kernel - whether it is not sure that the stream's
 *                                    kernel runs: the guest says another one,
 *                                    or it was the user who said which
 * @writer: the writer
 */
bool pmu_writer_may_have_other_kernel(const PmuWriter *writer);

/**
 * pmu_writer_depends_on_kernel - whether somebody has said which kernel runs:
 *                                a stream has one alone.  A guest that reads
 *                                begins another one when it has another kernel.
 * @writer: the writer
 */
bool pmu_writer_depends_on_kernel(const PmuWriter *writer);

/**
 * pmu_writer_is_full - whether the stream is as long as it may be
 * @writer: the writer
 */
bool pmu_writer_is_full(const PmuWriter *writer);

/**
 * pmu_writer_empty - write what a sampler has, or drop it if nobody reads
 * @writer: the writer
 * @sampler: the sampler
 *
 * Until the stream is full; what does not fit in stays where it is, and so do
 * samples that are taken meanwhile.
 */
void pmu_writer_empty(PmuWriter *writer, PmuSampler *sampler);

/**
 * pmu_writer_empty_to_end - the same, and write what is lost behind it
 * @writer: the writer
 * @sampler: the sampler; where the loss is, is right if it takes no samples
 *           meanwhile
 */
void pmu_writer_empty_to_end(PmuWriter *writer, PmuSampler *sampler);

/**
 * pmu_writer_map - write that a process has mapped a file
 * @writer: the writer, while it is streaming
 * @map: what the guest says of that
 */
void pmu_writer_map(PmuWriter *writer, const PmuTalkMap *map);

/**
 * pmu_writer_fork - write that a process has begun
 * @writer: the writer, while it is streaming
 * @fork: what the guest says of that
 */
void pmu_writer_fork(PmuWriter *writer, const PmuTalkFork *fork);

/**
 * pmu_writer_error - write what the reader has done wrong
 * @writer: the writer, while it is streaming
 * @message: what
 */
void pmu_writer_error(PmuWriter *writer, const char *message);

/**
 * pmu_writer_unwrite - something was taken, and not written after all
 * @writer: the writer
 * @bytes: that: whole records
 * @size: how much
 *
 * Its samples are lost.
 */
void pmu_writer_unwrite(PmuWriter *writer, const uint8_t *bytes, size_t size);

/**
 * pmu_writer_take - what has been written since the last time
 * @writer: the writer
 *
 * To be called when all samplers were emptied.
 *
 * Returns: whole records; NULL if there are none.
 */
GByteArray *pmu_writer_take(PmuWriter *writer);

#endif /* HW_PMU_PROFILE_WRITER_H */
