/*
 * Performance monitoring unit: a profile in the format of perf's pipes
 *
 * The stream is like the output of `perf record -o -` inside the guest, so
 * `perf report -i`, `perf script -i` and programs that read their output can be
 * used.  (perf takes such a stream as a file, too.)  Numbers are in the byte
 * order of the host.  perf has to read them on a host with the same byte order:
 * on others it complains, or shows wrong CPUs.
 *
 * perf must not show symbols of a kernel that the guest may not run:
 *
 * - Until the kernel is known, the guest's kernel is shown as [H] without
 *   symbols: these samples are in hypervisor mode, and perf does not resolve
 *   addresses of that mode.
 * - If the kernel's build id is not known, the stream has one that belongs to
 *   no kernel.  perf then resolves addresses only with --kallsyms.  If it is
 *   known, perf uses it, even if it is the build id of the host's kernel.
 * - For nested guests, perf shows only the address, in "[nested-guest]".
 *
 * So the profile is best if the kernel is known before the first sample.
 *
 * Plain C on GLib.  A stream belongs to one thread at a time.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_STREAM_H
#define HW_PMU_PROFILE_STREAM_H

#include "hw/pmu/pmu-core.h"
#include "hw/pmu/pmu-recorder.h"
#include "hw/pmu/profile/guest-kernel.h"

/* Longer callchains are cut.  Names are cut after 255 bytes. */
#define PMU_STREAM_MAX_CALLCHAIN 1024

/**
 * struct PmuStreamEvent - the event that is sampled
 * @name: the name that perf shows
 * @type, @config: as in perf_event_attr
 * @period: events between two samples, or samples a second if @frequency
 * @frequency: says which of the two
 * @exact: samples have the address of the very instruction
 * @callchain: samples have callchains
 * @branch_stack: samples have branches
 * @data_address: samples have the addresses of data
 * @data_source: and where the data was, and how long an access took
 * @exclude_user, @exclude_kernel: no samples were taken in that mode
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
    bool data_address;
    bool data_source;
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
 * @branches: branches taken before the instruction at @ip or by it, the newest
 *            first
 * @nr_branches: how many these are; ignored if the event is without branches
 * @access: the instruction's access to data; NULL if it is not known; ignored
 *          if the event is without addresses of data
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
    const PmuAccess *access;
} PmuStreamSample;

/**
 * struct PmuStreamMap - a file that a process has in its memory
 * @pid: the process
 * @start, @length: where
 * @offset: in the file
 * @name: of the file; characters that cannot be printed are replaced
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
 * @out: the bytes that were written; between two calls, the caller may take
 *       bytes away
 * @exact, @callchain, @branch_stack, @data_address, @data_source: as in its
 *     event
 * @has_kernel: pmu_stream_kernel() was called
 */
typedef struct PmuStream {
    GByteArray *out;
    bool exact;
    bool callchain;
    bool branch_stack;
    bool data_address;
    bool data_source;
    bool has_kernel;
} PmuStream;

/**
 * pmu_stream_begin - write the records that have to come first
 * @stream: the stream; need not be initialized
 * @out: gets the bytes; belongs to the caller, and must outlive @stream
 * @event: the event that is sampled
 * @machine: the guest's machine, as uname -m prints it
 */
void pmu_stream_begin(PmuStream *stream, GByteArray *out,
                      const PmuStreamEvent *event, const char *machine);

/**
 * pmu_stream_kernel - say which kernel the guest runs
 * @stream: the stream
 * @kernel: the kernel, as far as it is known.  If nothing is known, as with a
 *          guest that will never report it, perf shows its samples as
 *          [kernel.kallsyms], and can resolve them with --kallsyms.
 * @time_ns: since when; not later than the samples taken in it
 *
 * To be called only once: for perf, a stream has only one kernel.  When the
 * guest boots another kernel, or the same one at another address, this stream
 * has to end, and another one begins.
 */
void pmu_stream_kernel(PmuStream *stream, const PmuGuestKernel *kernel,
                       uint64_t time_ns);

/**
 * pmu_stream_readers_kernel - say that the guest runs the reader's kernel
 * @stream: the stream
 * @time_ns: since when; not later than the samples taken in it
 *
 * To be called in place of pmu_stream_kernel(), if the reader is in the guest:
 * its perf uses the symbols of the kernel that it runs on.
 */
void pmu_stream_readers_kernel(PmuStream *stream, uint64_t time_ns);

/**
 * pmu_stream_comm - name a task
 * @stream: the stream
 * @pid, @tid: which; perf shows no name for a thread without a name of its
 *             own, so for a process without threads, pass @pid as @tid
 * @name: the name; characters that cannot be printed are replaced
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
 * @pid: which; it has the name of the other until it is named
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
 * pmu_stream_throttle - say that the host stops, or resumes, taking samples
 * @stream: the stream
 * @cpu: of which vCPU
 * @throttled: it stops: there were too many samples
 * @time_ns: since when
 */
void pmu_stream_throttle(PmuStream *stream, uint32_t cpu, bool throttled,
                         uint64_t time_ns);

/**
 * pmu_stream_error - write an error message, which perf skips
 * @stream: the stream
 * @message: the message, cut after 63 bytes
 * @time_ns: the time of the error
 */
void pmu_stream_error(PmuStream *stream, const char *message,
                      uint64_t time_ns);

/**
 * pmu_stream_flushed - say that all samples the reader asked for were written
 * @stream: the stream
 */
void pmu_stream_flushed(PmuStream *stream);

/**
 * pmu_stream_round - end a round
 * @stream: the stream
 *
 * To be called after each round in which the samples of all vCPUs were fetched.
 * perf sorts the records of two consecutive rounds by time: a record must not
 * have a time before the last but one call of this function.
 */
void pmu_stream_round(PmuStream *stream);

/**
 * pmu_stream_whole - the size of the whole records of a stream
 * @bytes: the stream, from the beginning of any of its records on
 * @size: how much there is of it
 */
size_t pmu_stream_whole(const uint8_t *bytes, size_t size);

/**
 * pmu_stream_next_sample - find a sample in a stream
 * @stream: the stream
 * @bytes: its bytes, from the beginning of any of its records on
 * @size: how much there is of it
 * @at: where a record begins; is set to the end of the sample
 * @cpu: is set to the number of the sample's vCPU
 *
 * Returns: whether there is a sample.
 */
bool pmu_stream_next_sample(const PmuStream *stream, const uint8_t *bytes,
                            size_t size, size_t *at, uint32_t *cpu);

#endif /* HW_PMU_PROFILE_STREAM_H */
