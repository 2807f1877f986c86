/*
 * Performance monitoring unit: a profile in the format of perf's pipes
 *
 * Records and their fields are named as in the documentation of perf
 * (perf.data-file-format.txt) and of perf_event_open().
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/profile/stream.h"

#define PIPE_MAGIC       0x32454c4946524550ull
#define PIPE_HEADER_SIZE 16

enum {
    RECORD_MMAP = 1,
    RECORD_LOST = 2,
    RECORD_COMM = 3,
    RECORD_THROTTLE = 5,
    RECORD_UNTHROTTLE = 6,
    RECORD_FORK = 7,
    RECORD_SAMPLE = 9,
    RECORD_MMAP2 = 10,
    RECORD_ATTR = 64,
    RECORD_BUILD_ID = 67,
    RECORD_FINISHED_ROUND = 68,
    RECORD_AUXTRACE_ERROR = 72,
    RECORD_EVENT_UPDATE = 78,
    RECORD_FEATURE = 80,
    RECORD_FINISHED_INIT = 82,
};

/* Bits of a record's header */
#define MISC_KERNEL        1
#define MISC_USER          2
#define MISC_HYPERVISOR    3
#define MISC_EXACT_IP      (1 << 14) /* of samples */
#define MISC_BUILD_ID_SIZE (1 << 15) /* of build ids */

/* The fields of samples; all but the first and the last are in other records */
#define SAMPLE_IP        (1u << 0)
#define SAMPLE_TID       (1u << 1)
#define SAMPLE_TIME      (1u << 2)
#define SAMPLE_ADDR      (1u << 3)
#define SAMPLE_CALLCHAIN (1u << 5)
#define SAMPLE_CPU       (1u << 7)
#define SAMPLE_PERIOD    (1u << 8)
#define SAMPLE_BRANCHES  (1u << 11)
#define SAMPLE_WEIGHT    (1u << 14)
#define SAMPLE_DATA_SRC  (1u << 15)

/* The size of the version of perf_event_attr that ends with sig_data */
#define ATTR_SIZE 128

/* Its flags are bit-fields of C: a big-endian host begins at the other end. */
#define ATTR_FIELD(first, width, value) \
    ((uint64_t)(value) << (HOST_BIG_ENDIAN ? 64 - (first) - (width) : (first)))

#define ATTR_EXCLUDE_USER   ATTR_FIELD(4, 1, 1)
#define ATTR_EXCLUDE_KERNEL ATTR_FIELD(5, 1, 1)
#define ATTR_MMAP           ATTR_FIELD(8, 1, 1)
#define ATTR_COMM           ATTR_FIELD(9, 1, 1)
#define ATTR_FREQ           ATTR_FIELD(10, 1, 1)
#define ATTR_PRECISE_IP     ATTR_FIELD(15, 2, 2)
#define ATTR_SAMPLE_ID_ALL  ATTR_FIELD(18, 1, 1)
#define ATTR_MMAP2          ATTR_FIELD(23, 1, 1)

/* branch_sample_type: the branches to record, and that they have types */
#define BRANCH_USER      (1u << 0)
#define BRANCH_KERNEL    (1u << 1)
#define BRANCH_ANY       (1u << 3)
#define BRANCH_TYPES     (1u << 16)
#define BRANCH_TYPE_AT   72 /* in the attributes */

/* The offset of the vCPU in a sample without an address of data */
#define SAMPLE_CPU_AT 32

/*
 * Parts of a source of data: bit-fields, too, which Linux lists in the other
 * order for big-endian hosts, so that the number is the same on all.
 */
#define DATA_FIELD(first, value) ((uint64_t)(value) << (first))
#define DATA_NO_OP     DATA_FIELD(0, 1)
#define DATA_LOAD      DATA_FIELD(0, 2)
#define DATA_STORE     DATA_FIELD(0, 4)
#define DATA_NO_LEVEL  DATA_FIELD(5, 1)
#define DATA_HIT_L1    DATA_FIELD(5, 2 | 8)
#define DATA_HIT_L3    DATA_FIELD(5, 2 | 0x40)
#define DATA_HIT_RAM   DATA_FIELD(5, 2 | 0x80)
#define DATA_NO_SNOOP  DATA_FIELD(19, 1)
#define DATA_NO_LOCK   DATA_FIELD(24, 1)
#define DATA_NO_TLB    DATA_FIELD(26, 1)
#define DATA_HIT_TLB   DATA_FIELD(26, 2 | 8 | 0x10)
#define DATA_MISS_TLB  DATA_FIELD(26, 4 | 0x10)
#define DATA_LEVEL(n)  DATA_FIELD(33, n)

/* Levels in the newer field */
enum {
    LEVEL_L1 = 1,
    LEVEL_L3 = 3,
    LEVEL_RAM = 13,
    LEVEL_NONE = 15,
};

/* Flags of a branch, which are bit-fields, too */
#define BRANCH_MISPREDICTED ATTR_FIELD(0, 1, 1)
#define BRANCH_PREDICTED    ATTR_FIELD(1, 1, 1)
#define BRANCH_TYPE(type)   ATTR_FIELD(20, 4, type)

/* Fields of a record of a map */
#define MMAP2_FILE_SIZE 24
#define MMAP2_READ      1
#define MMAP2_EXECUTE   4
#define MMAP2_PRIVATE   2

/* perf's types of the branches that recorders know */
enum {
    TYPE_UNKNOWN = 0,
    TYPE_CONDITIONAL = 1,
    TYPE_JUMP = 2,
    TYPE_INDIRECT_JUMP = 3,
    TYPE_CALL = 4,
    TYPE_INDIRECT_CALL = 5,
    TYPE_RETURN = 6,
    TYPE_CONDITIONAL_CALL = 9,
    TYPE_CONDITIONAL_RETURN = 10,
};

#define EVENT_UPDATE_NAME 2

#define FEATURE_OSRELEASE 4
#define FEATURE_ARCH      6

/* The ID of the event; perf assumes it where there is only one event. */
#define EVENT_ID 1

#define KERNEL_NAME "[kernel.kallsyms]"
#define NO_PID      UINT32_MAX

/* In callchains: the mode of the addresses that follow */
#define CONTEXT_HYPERVISOR ((uint64_t)-32)
#define CONTEXT_KERNEL     ((uint64_t)-128)
#define CONTEXT_USER       ((uint64_t)-512)
#define CONTEXT_MAX        ((uint64_t)-4095) /* from here on: no addresses */

#define MAX_NAME 255

/* The size of an error's message, with the NUL */
#define MAX_MESSAGE 64

/* An error of a kind that perf does not know, in the format with a time */
#define ERROR_TYPE   0
#define ERROR_FORMAT 1

/* The upper half of 64-bit addresses, in which kernels are */
#define UPPER_HALF (1ull << 63)

static void put8(PmuStream *s, uint8_t val)
{
    g_byte_array_append(s->out, &val, sizeof(val));
}

static void put16(PmuStream *s, uint16_t val)
{
    g_byte_array_append(s->out, (const uint8_t *)&val, sizeof(val));
}

static void put32(PmuStream *s, uint32_t val)
{
    g_byte_array_append(s->out, (const uint8_t *)&val, sizeof(val));
}

static void put64(PmuStream *s, uint64_t val)
{
    g_byte_array_append(s->out, (const uint8_t *)&val, sizeof(val));
}

static void put_zeroes(PmuStream *s, unsigned count)
{
    while (count--) {
        put8(s, 0);
    }
}

/* A guest may choose names: characters that cannot be printed are replaced. */
static unsigned put_printable(PmuStream *s, const char *text)
{
    unsigned i;

    for (i = 0; i < MAX_NAME && text[i]; i++) {
        put8(s, g_ascii_isprint(text[i]) ? text[i] : '?');
    }
    return i;
}

/* Strings in records of the kernel's fill a multiple of 8 bytes. */
static void put_string(PmuStream *s, const char *text)
{
    put_zeroes(s, 8 - put_printable(s, text) % 8);
}

/* Returns: where the record begins, for end_record() */
static unsigned begin_record(PmuStream *s, uint32_t type, uint16_t misc)
{
    unsigned start = s->out->len;

    put32(s, type);
    put16(s, misc);
    put16(s, 0);
    return start;
}

/* perf takes records of any length, but reads their fields where they are. */
static void end_record(PmuStream *s, unsigned start)
{
    uint16_t size;

    put_zeroes(s, -(s->out->len - start) % 8);
    size = s->out->len - start;
    memcpy(s->out->data + start + 6, &size, sizeof(size));
}

/* Ends each record but samples, so that perf sorts these by time, too. */
static void put_sample_id(PmuStream *s, uint32_t pid, uint32_t tid,
                          uint64_t time_ns, uint32_t cpu)
{
    put32(s, pid);
    put32(s, tid);
    put64(s, time_ns);
    put32(s, cpu);
    put32(s, 0);
}

static uint64_t attr_sample_type(const PmuStreamEvent *e)
{
    return SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU | SAMPLE_PERIOD
           | (e->callchain ? SAMPLE_CALLCHAIN : 0)
           | (e->branch_stack ? SAMPLE_BRANCHES : 0)
           | (e->data_address ? SAMPLE_ADDR : 0)
           | (e->data_source ? SAMPLE_WEIGHT | SAMPLE_DATA_SRC : 0);
}

static uint64_t attr_branches(const PmuStreamEvent *e)
{
    return e->branch_stack ? BRANCH_ANY | BRANCH_TYPES
                             | (e->exclude_user ? 0 : BRANCH_USER)
                             | (e->exclude_kernel ? 0 : BRANCH_KERNEL) : 0;
}

static uint64_t attr_flags(const PmuStreamEvent *e)
{
    return ATTR_MMAP | ATTR_MMAP2 | ATTR_COMM | ATTR_SAMPLE_ID_ALL
           | (e->exclude_user ? ATTR_EXCLUDE_USER : 0)
           | (e->exclude_kernel ? ATTR_EXCLUDE_KERNEL : 0)
           | (e->frequency ? ATTR_FREQ : 0)
           | (e->exact ? ATTR_PRECISE_IP : 0);
}

static void put_attr(PmuStream *s, const PmuStreamEvent *e)
{
    unsigned start = begin_record(s, RECORD_ATTR, 0);
    unsigned attr = s->out->len;

    put32(s, e->type);
    put32(s, ATTR_SIZE);
    put64(s, e->config);
    put64(s, e->period);
    put64(s, attr_sample_type(e));
    put64(s, 0); /* read_format */
    put64(s, attr_flags(e));
    put_zeroes(s, attr + BRANCH_TYPE_AT - s->out->len);
    put64(s, attr_branches(e));
    put_zeroes(s, attr + ATTR_SIZE - s->out->len);
    put64(s, EVENT_ID);
    end_record(s, start);
}

static void put_event_name(PmuStream *s, const char *name)
{
    unsigned start = begin_record(s, RECORD_EVENT_UPDATE, 0);

    put64(s, EVENT_UPDATE_NAME);
    put64(s, EVENT_ID);
    put_string(s, name);
    end_record(s, start);
}

/* The length of a feature's string, with the NULs, stands in front of it. */
static void put_feature(PmuStream *s, uint64_t feature, const char *text)
{
    unsigned start = begin_record(s, RECORD_FEATURE, 0);
    unsigned length_at;
    uint32_t length;

    put64(s, feature);
    length_at = s->out->len;
    put32(s, 0);
    put_string(s, text);
    length = s->out->len - length_at - sizeof(length);
    memcpy(s->out->data + length_at, &length, sizeof(length));
    end_record(s, start);
}

void pmu_stream_begin(PmuStream *s, GByteArray *out,
                      const PmuStreamEvent *event, const char *machine)
{
    *s = (PmuStream) {
        .out = out,
        .exact = event->exact,
        .callchain = event->callchain,
        .branch_stack = event->branch_stack,
        .data_address = event->data_address,
        .data_source = event->data_source,
    };
    put64(s, PIPE_MAGIC);
    put64(s, PIPE_HEADER_SIZE);
    put_attr(s, event);
    put_event_name(s, event->name);
    put_feature(s, FEATURE_ARCH, machine);
}

static uint32_t tid_of(const PmuStreamMap *map)
{
    return map->pid == NO_PID ? 0 : map->pid;
}

static void put_range(PmuStream *s, const PmuStreamMap *map)
{
    put32(s, map->pid);
    put32(s, tid_of(map));
    put64(s, map->start);
    put64(s, map->length);
    put64(s, map->offset);
}

static void put_map_name(PmuStream *s, const PmuStreamMap *map)
{
    put_string(s, map->name);
    put_sample_id(s, map->pid, tid_of(map), map->time_ns, 0);
}

/*
 * @misc: MISC_KERNEL or MISC_USER
 */
static void put_mmap(PmuStream *s, uint16_t misc, const PmuStreamMap *map)
{
    unsigned start = begin_record(s, RECORD_MMAP, misc);

    put_range(s, map);
    put_map_name(s, map);
    end_record(s, start);
}

/*
 * perf2bolt looks for programs in records of this type only.  They have the
 * file's device, number and generation, which are not known here, and its
 * permissions.
 */
static void put_mmap2(PmuStream *s, const PmuStreamMap *map)
{
    unsigned start = begin_record(s, RECORD_MMAP2, MISC_USER);

    put_range(s, map);
    put_zeroes(s, MMAP2_FILE_SIZE);
    put32(s, MMAP2_READ | MMAP2_EXECUTE);
    put32(s, MMAP2_PRIVATE);
    put_map_name(s, map);
    end_record(s, start);
}

/*
 * The name ends with a symbol; the offset is the address of that symbol.
 */
static void put_kernel_mmap(PmuStream *s, uint64_t start, uint64_t offset,
                            uint64_t time_ns)
{
    const PmuStreamMap map = {
        .pid = NO_PID,
        .start = start,
        .length = UINT64_MAX - start,
        .offset = offset,
        .name = KERNEL_NAME "_stext",
        .time_ns = time_ns,
    };

    put_mmap(s, MISC_KERNEL, &map);
}

static void put_build_id(PmuStream *s, const uint8_t *id, unsigned size)
{
    unsigned start = begin_record(s, RECORD_BUILD_ID,
                                  MISC_KERNEL | MISC_BUILD_ID_SIZE);

    put32(s, NO_PID);
    g_byte_array_append(s->out, id, size);
    put_zeroes(s, PMU_KERNEL_MAX_BUILD_ID - size);
    put32(s, 0);
    s->out->data[s->out->len - 4] = size;
    put_string(s, KERNEL_NAME);
    end_record(s, start);
}

static void put_kernel_build_id(PmuStream *s, const PmuGuestKernel *kernel)
{
    uint8_t nobodys[PMU_KERNEL_MAX_BUILD_ID];

    if (kernel->build_id_size) {
        put_build_id(s, kernel->build_id, kernel->build_id_size);
    } else {
        memset(nobodys, 0xff, sizeof(nobodys));
        put_build_id(s, nobodys, sizeof(nobodys));
    }
}

void pmu_stream_kernel(PmuStream *s, const PmuGuestKernel *kernel,
                       uint64_t time_ns)
{
    assert(!s->has_kernel);
    s->has_kernel = true;
    put_kernel_build_id(s, kernel);
    put_kernel_mmap(s, kernel->text, kernel->text, time_ns);
    if (kernel->release[0]) {
        put_feature(s, FEATURE_OSRELEASE, kernel->release);
    }
}

void pmu_stream_readers_kernel(PmuStream *s, uint64_t time_ns)
{
    assert(!s->has_kernel);
    s->has_kernel = true;
    put_kernel_mmap(s, UPPER_HALF, 0, time_ns);
}

void pmu_stream_comm(PmuStream *s, uint32_t pid, uint32_t tid,
                     const char *name, uint64_t time_ns)
{
    unsigned start = begin_record(s, RECORD_COMM, 0);

    put32(s, pid);
    put32(s, tid);
    put_string(s, name);
    put_sample_id(s, pid, tid, time_ns, 0);
    end_record(s, start);
}

void pmu_stream_map(PmuStream *s, const PmuStreamMap *map)
{
    put_mmap2(s, map);
}

void pmu_stream_nested(PmuStream *s, uint32_t pid, uint64_t time_ns)
{
    const PmuStreamMap all = {
        .pid = pid,
        .length = UINT64_MAX,
        .name = "[nested-guest]",
        .time_ns = time_ns,
    };

    put_mmap(s, MISC_USER, &all);
}

void pmu_stream_fork(PmuStream *s, uint32_t pid, uint32_t parent,
                     uint64_t time_ns)
{
    unsigned start = begin_record(s, RECORD_FORK, 0);

    put32(s, pid);
    put32(s, parent);
    put32(s, pid);
    put32(s, parent);
    put64(s, time_ns);
    put_sample_id(s, pid, pid, time_ns, 0);
    end_record(s, start);
}

/* The record is one that perf has for errors in decoding traces. */
void pmu_stream_error(PmuStream *s, const char *message, uint64_t time_ns)
{
    unsigned start = begin_record(s, RECORD_AUXTRACE_ERROR, 0);
    char text[MAX_MESSAGE] = {};

    g_strlcpy(text, message, sizeof(text));
    put32(s, ERROR_TYPE);
    put32(s, 0);
    put32(s, 0);
    put32(s, 0);
    put32(s, 0);
    put32(s, ERROR_FORMAT);
    put64(s, 0);
    put64(s, time_ns);
    g_byte_array_append(s->out, (const uint8_t *)text, sizeof(text));
    end_record(s, start);
}

/* A nested guest, with its kernel, is shown as a process of the guest. */
static uint16_t sample_mode(const PmuStream *s, const PmuStreamSample *sample)
{
    if (sample->user || sample->nested) {
        return MISC_USER;
    }
    return s->has_kernel ? MISC_KERNEL : MISC_HYPERVISOR;
}

static uint64_t context(uint16_t mode)
{
    switch (mode) {
    case MISC_USER:
        return CONTEXT_USER;
    case MISC_KERNEL:
        return CONTEXT_KERNEL;
    default:
        return CONTEXT_HYPERVISOR;
    }
}

/* Returns: how many callers come before the first that perf would misread. */
static unsigned count_callers(const PmuStreamSample *sample)
{
    unsigned max = MIN(sample->nr_callers, PMU_STREAM_MAX_CALLCHAIN);
    unsigned n = 0;

    while (n < max && sample->callers[n] < CONTEXT_MAX) {
        n++;
    }
    return n;
}

static void put_callchain(PmuStream *s, const PmuStreamSample *sample)
{
    unsigned n = count_callers(sample);
    unsigned i;

    put64(s, n + 2);
    put64(s, context(sample_mode(s, sample)));
    put64(s, sample->ip);
    for (i = 0; i < n; i++) {
        put64(s, sample->callers[i]);
    }
}

static unsigned type_of_branch(PmuBranchKind kind)
{
    static const uint8_t types[PMU_BRANCH__MAX] = {
        [PMU_BRANCH_JUMP] = TYPE_JUMP,
        [PMU_BRANCH_INDIRECT_JUMP] = TYPE_INDIRECT_JUMP,
        [PMU_BRANCH_CALL] = TYPE_CALL,
        [PMU_BRANCH_INDIRECT_CALL] = TYPE_INDIRECT_CALL,
        [PMU_BRANCH_RETURN] = TYPE_RETURN,
        [PMU_BRANCH_CALL_NEXT] = TYPE_CALL,
        [PMU_BRANCH_JUMP | PMU_BRANCH_CONDITIONAL] = TYPE_CONDITIONAL,
        [PMU_BRANCH_INDIRECT_JUMP | PMU_BRANCH_CONDITIONAL] = TYPE_CONDITIONAL,
        [PMU_BRANCH_CALL | PMU_BRANCH_CONDITIONAL] = TYPE_CONDITIONAL_CALL,
        [PMU_BRANCH_INDIRECT_CALL | PMU_BRANCH_CONDITIONAL]
            = TYPE_CONDITIONAL_CALL,
        [PMU_BRANCH_RETURN | PMU_BRANCH_CONDITIONAL] = TYPE_CONDITIONAL_RETURN,
    };

    return kind < PMU_BRANCH__MAX ? types[kind] : TYPE_UNKNOWN;
}

static void put_branches(PmuStream *s, const PmuStreamSample *sample)
{
    put64(s, sample->nr_branches);
    for (unsigned i = 0; i < sample->nr_branches; i++) {
        const PmuBranch *b = &sample->branches[i];

        put64(s, b->from);
        put64(s, b->to);
        put64(s, (b->mispredicted ? BRANCH_MISPREDICTED : BRANCH_PREDICTED)
                 | BRANCH_TYPE(type_of_branch(b->kind)));
    }
}

static uint64_t op_of(PmuCoreKind kind)
{
    return (kind == PMU_CORE_STORE ? 0 : DATA_LOAD)
           | (kind == PMU_CORE_LOAD ? 0 : DATA_STORE);
}

static uint64_t level_of(uint32_t outcome)
{
    return outcome & PMU_CORE_LAST_MISSED
               ? DATA_HIT_RAM | DATA_LEVEL(LEVEL_RAM)
           : outcome & PMU_CORE_L1_MISSED
               ? DATA_HIT_L3 | DATA_LEVEL(LEVEL_L3)
               : DATA_HIT_L1 | DATA_LEVEL(LEVEL_L1);
}

static uint64_t data_source(const PmuAccess *access)
{
    if (!access || access->kind == PMU_CORE_FETCH) {
        return DATA_NO_OP | DATA_NO_LEVEL | DATA_NO_SNOOP | DATA_NO_LOCK
               | DATA_NO_TLB | DATA_LEVEL(LEVEL_NONE);
    }
    return op_of(access->kind) | level_of(access->outcome) | DATA_NO_SNOOP
           | DATA_NO_LOCK
           | (access->outcome & PMU_CORE_TLB_MISSED ? DATA_MISS_TLB
                                                    : DATA_HIT_TLB);
}

static void put_data_source(PmuStream *s, const PmuAccess *access)
{
    put64(s, access ? access->latency : 0);
    put64(s, data_source(access));
}

void pmu_stream_sample(PmuStream *s, const PmuStreamSample *sample)
{
    unsigned start = begin_record(s, RECORD_SAMPLE,
                                  sample_mode(s, sample)
                                  | (s->exact ? MISC_EXACT_IP : 0));

    put64(s, sample->ip);
    put32(s, sample->pid);
    put32(s, sample->tid);
    put64(s, sample->time_ns);
    if (s->data_address) {
        put64(s, sample->access ? sample->access->address : 0);
    }
    put32(s, sample->cpu);
    put32(s, 0);
    put64(s, sample->period);
    if (s->callchain) {
        put_callchain(s, sample);
    }
    if (s->branch_stack) {
        put_branches(s, sample);
    }
    if (s->data_source) {
        put_data_source(s, sample->access);
    }
    end_record(s, start);
}

void pmu_stream_lost(PmuStream *s, uint32_t cpu, uint64_t count,
                     uint64_t time_ns)
{
    unsigned start = begin_record(s, RECORD_LOST, 0);

    put64(s, EVENT_ID);
    put64(s, count);
    put_sample_id(s, 0, 0, time_ns, cpu);
    end_record(s, start);
}

void pmu_stream_throttle(PmuStream *s, uint32_t cpu, bool throttled,
                         uint64_t time_ns)
{
    unsigned start = begin_record(s, throttled ? RECORD_THROTTLE
                                               : RECORD_UNTHROTTLE, 0);

    put64(s, time_ns);
    put64(s, EVENT_ID);
    put64(s, EVENT_ID);
    put_sample_id(s, 0, 0, time_ns, cpu);
    end_record(s, start);
}

void pmu_stream_round(PmuStream *s)
{
    end_record(s, begin_record(s, RECORD_FINISHED_ROUND, 0));
}

void pmu_stream_flushed(PmuStream *s)
{
    end_record(s, begin_record(s, RECORD_FINISHED_INIT, 0));
}

/* Returns: the size of the first record; 0 if it is not whole */
static size_t size_of_record(const uint8_t *bytes, size_t size)
{
    uint64_t first;
    uint16_t record;

    if (size < sizeof(first)) {
        return 0;
    }
    memcpy(&first, bytes, sizeof(first));
    memcpy(&record, bytes + 6, sizeof(record));
    if (first == PIPE_MAGIC) {
        record = PIPE_HEADER_SIZE;
    }
    return record <= size ? record : 0;
}

size_t pmu_stream_whole(const uint8_t *bytes, size_t size)
{
    size_t whole = 0, record;

    while ((record = size_of_record(bytes + whole, size - whole))) {
        whole += record;
    }
    return whole;
}

bool pmu_stream_next_sample(const PmuStream *s, const uint8_t *bytes,
                            size_t size, size_t *at, uint32_t *cpu)
{
    size_t cpu_at = SAMPLE_CPU_AT + (s->data_address ? sizeof(uint64_t) : 0);
    size_t record;

    while ((record = size_of_record(bytes + *at, size - *at))) {
        const uint8_t *begin = bytes + *at;
        uint32_t type;

        *at += record;
        memcpy(&type, begin, sizeof(type));
        if (type == RECORD_SAMPLE) {
            memcpy(cpu, begin + cpu_at, sizeof(*cpu));
            return true;
        }
    }
    return false;
}
