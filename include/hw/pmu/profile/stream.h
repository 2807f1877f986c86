/*
 * Performance monitoring unit: a profile in the format of perf's pipes
 *
 * This writes what `perf record -o -` would have written inside the guest, so
 * that `perf report -i`, `perf script -i` and whatever reads their output can
 * be used.  (perf takes such a stream as a file, too.)  Numbers are in the byte
 * order of the host.  perf reads them on hosts of the same one: on others it
 * complains, or shows wrong CPUs.
 *
 * perf must not show symbols of a kernel that the guest is not said to run:
 *
 * - Until the kernel is known, the guest's kernel is shown as [H] without
 *   symbols: these samples are in hypervisor mode, for which perf has none.
 * - A kernel whose build id is not known gets one that no kernel has.  perf
 *   then resolves nothing by itself, but does with --kallsyms.  One that is
 *   known is believed, even if it is that of the host's kernel.
 * - Of nested guests nothing but the address is shown, as in "[nested-guest]".
 *
 * What is known before the first sample therefore gives the best profile.
 *
 * Plain C on GLib.  A stream belongs to one thread at a time.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_STREAM_H
#define HW_PMU_PROFILE_STREAM_H

#include "hw/pmu/pmu-recorder.h"
#include "hw/pmu/profile/guest-kernel.h"

/* Longer ones are cut.  So are longer names, at 255 bytes. */
#define PMU_STREAM_MAX_CALLCHAIN 1024

/**
 * struct PmuStreamEvent - what the samples are of
 * @name: as perf is to show it
 * @type, @config: as in perf_event_attr
 * @period: events between two samples, or samples a second if @frequency
 * @frequency: which of the two
 * @exact: samples have the address of the very instruction
 * @callchain: samples have callchains
 * @branch_stack: samples have branches
 * @exclude_user, @exclude_kernel: what was left out
 */
typedef struct PmuStreamEvent {
    const char *name;
    uint32_t type;
    uint64_t config;
    uint64_t period;
    bool frequency;
    bool exact;
    bool callchain;
    bool branch_stack;
    bool exclude_user;
    bool exclude_kernel;
} PmuStreamEvent;

/**
 * struct PmuStreamSample - one sample
 * @ip: the address of the instruction
 * @user: it is a user program's
 * @nested: it is a nested guest's; @pid must be one that was announced so
 * @pid, @tid: from 1 on; perf takes 0 for the idle task
 * @cpu: the vCPU
 * @time_ns: when; see pmu_stream_round()
 * @period: how many events the sample stands for
 * @callers: whence @ip was called, the innermost first, in the same mode
 * @nr_callers: how many these are; ignored if the event is without callchains
 * @branches: what was taken before @ip or by it, the newest first
 * @nr_branches: how many these are; ignored if the event is without branches
 */
typedef struct PmuStreamSample {
    uint64_t ip;
    bool user;
    bool nested;
    uint32_t pid, tid;
    uint32_t cpu;
    uint64_t time_ns;
    uint64_t period;
    const uint64_t *callers;
    unsigned nr_callers;
    const PmuBranch *branches;
    unsigned nr_branches;
} PmuStreamSample;

/**
 * struct PmuStreamMap - a file that a process has in its memory
 * @pid: the process
 * @start, @length: where
 * @offset: in the file
 * @name: of the file; what cannot be printed is replaced
 * @time_ns: since when
 */
typedef struct PmuStreamMap {
    uint32_t pid;
    uint64_t start;
    uint64_t length;
    uint64_t offset;
    const char *name;
    uint64_t time_ns;
} PmuStreamMap;

/**
 * struct PmuStream - a stream that is being written
 * @out: what has been written; whoever passes it on may take bytes away from
 *       it between two calls
 * @exact, @callchain, @branch_stack: as in its event
 * @has_kernel: pmu_stream_kernel() was called
 */
typedef struct PmuStream {
    GByteArray *out;
    bool exact;
    bool callchain;
    bool branch_stack;
    bool has_kernel;
} PmuStream;

/**
 * pmu_stream_begin - write what has to come first
 * @stream: the stream; need not be initialized
 * @out: where to; is the caller's, and must outlive @stream
 * @event: what the samples are of
 * @machine: the guest's, as uname -m has it
 */
void pmu_stream_begin(PmuStream *stream, GByteArray *out,
                      const PmuStreamEvent *event, const char *machine);

/**
 * pmu_stream_kernel - say which kernel the guest runs
 * @stream: the stream
 * @kernel: the kernel, as far as it is known.  If nothing is, as of a guest
 *          that will never tell, its samples are at least named
 *          [kernel.kallsyms] and resolved with --kallsyms.
 * @time_ns: since when; not later than the samples of it
 *
 * Once: perf has one kernel for all of a stream.  When the guest boots another
 * one, or the same one at another address, that is the end of this stream, and
 * needs another.
 */
void pmu_stream_kernel(PmuStream *stream, const PmuGuestKernel *kernel,
                       uint64_t time_ns);

/**
 * pmu_stream_readers_kernel - say that the guest runs the reader's kernel
 * @stream: the stream
 * @time_ns: since when; not later than the samples of it
 *
 * In place of pmu_stream_kernel(), where the reader is in the guest: its perf
 * takes the symbols of the kernel that it runs on.
 */
void pmu_stream_readers_kernel(PmuStream *stream, uint64_t time_ns);

/**
 * pmu_stream_comm - name a task
 * @stream: the stream
 * @pid, @tid: which; a thread without a name of its own has none in perf's
 *             output, so without threads @tid is @pid
 * @name: the name; what cannot be printed is replaced
 * @time_ns: since when
 */
void pmu_stream_comm(PmuStream *stream, uint32_t pid, uint32_t tid,
                     const char *name, uint64_t time_ns);

/**
 * pmu_stream_map - say that a process has a file in its memory
 * @stream: the stream
 * @map: which, and where
 */
void pmu_stream_map(PmuStream *stream, const PmuStreamMap *map);

/**
 * pmu_stream_fork - say that a process has begun, with the maps of another
 * @stream: the stream
 * @pid: which; its name is the other's until it is named again
 * @parent: the other
 * @time_ns: since when
 */
void pmu_stream_fork(PmuStream *stream, uint32_t pid, uint32_t parent,
                     uint64_t time_ns);

/**
 * pmu_stream_nested - say that a pid stands for a nested guest
 * @stream: the stream
 * @pid: which; all its samples are of nested guests
 * @time_ns: since when
 *
 * In addition to pmu_stream_comm().
 */
void pmu_stream_nested(PmuStream *stream, uint32_t pid, uint64_t time_ns);

/**
 * pmu_stream_sample - write a sample
 * @stream: the stream
 * @sample: the sample
 */
void pmu_stream_sample(PmuStream *stream, const PmuStreamSample *sample);

/**
 * pmu_stream_lost - say that samples are missing
 * @stream: the stream
 * @cpu: of which vCPU
 * @count: how many, since the last time
 * @time_ns: before when
 */
void pmu_stream_lost(PmuStream *stream, uint32_t cpu, uint64_t count,
                     uint64_t time_ns);

/**
 * pmu_stream_throttle - say that samples begin, or cease, to be missing
 * @stream: the stream
 * @cpu: of which vCPU
 * @throttled: they begin to: the host has had too many of them
 * @time_ns: since when
 */
void pmu_stream_throttle(PmuStream *stream, uint32_t cpu, bool throttled,
                         uint64_t time_ns);

/**
 * pmu_stream_error - write a message, which perf passes over
 * @stream: the stream
 * @message: what; at most 63 bytes of it
 * @time_ns: when that was
 */
void pmu_stream_error(PmuStream *stream, const char *message,
                      uint64_t time_ns);

/**
 * pmu_stream_flushed - what the reader has asked to be written was written
 * @stream: the stream
 */
void pmu_stream_flushed(PmuStream *stream);

/**
 * pmu_stream_round - all that had happened has been written
 * @stream: the stream
 *
 * To be called after each time that all vCPUs' samples were fetched in turn.
 * perf sorts by time all that comes between two of these and one more: nothing
 * that is written later may be earlier than the last but one of these calls.
 */
void pmu_stream_round(PmuStream *stream);

/**
 * pmu_stream_whole - how much of a stream are whole records
 * @bytes: the stream, from the beginning of any of its records on
 * @size: how much there is of it
 */
size_t pmu_stream_whole(const uint8_t *bytes, size_t size);

/**
 * pmu_stream_next_sample - find a sample in a stream
 * @bytes: the stream, from the beginning of any of its records on
 * @size: how much there is of it
 * @at: where a record begins; is moved behind the sample
 * @cpu: where the number of the sample's vCPU is stored
 *
 * Returns: whether there is one.
 */
bool pmu_stream_next_sample(const uint8_t *bytes, size_t size, size_t *at,
                            uint32_t *cpu);

#endif /* HW_PMU_PROFILE_STREAM_H */
