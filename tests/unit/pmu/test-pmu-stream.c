/*
 * Performance monitoring unit: profiles in the format of perf's pipes
 *
 * The numbers are from perf_event_open(2), and from perf's own documentation,
 * perf.data-file-format.txt.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include <sys/mman.h>
#include <linux/perf_event.h>
#include "hw/pmu/profile/stream.h"

/* The offset of the word of flags, which are bit-fields */
#define FLAGS_OFFSET (offsetof(struct perf_event_attr, read_format) + 8)

#define KERNEL_TEXT 0xffffffff9a000000ull

/* A stream, and how far it has been read */
typedef struct Tape {
    PmuStream stream;
    GByteArray *out;
    size_t at;
    size_t end;
} Tape;

static const PmuStreamEvent instructions = {
    .name = "instructions",
    .type = 4,
    .config = 0x1c0,
    .period = 100003,
};

static const PmuStreamEvent with_callchain = {
    .name = "instructions",
    .type = 4,
    .config = 0x1c0,
    .period = 4000,
    .frequency = true,
    .exact = true,
    .callchain = true,
    .exclude_user = true,
};

static const PmuGuestKernel known = {
    .release = "6.1.0-test",
    .text = KERNEL_TEXT,
    .build_id = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 },
    .build_id_size = 16,
};

static void take(Tape *tape, void *val, size_t size)
{
    g_assert_cmpuint(tape->at + size, <=, tape->out->len);
    memcpy(val, tape->out->data + tape->at, size);
    tape->at += size;
}

static uint64_t take8(Tape *tape)
{
    uint8_t val;

    take(tape, &val, sizeof(val));
    return val;
}

static uint64_t take16(Tape *tape)
{
    uint16_t val;

    take(tape, &val, sizeof(val));
    return val;
}

static uint64_t take32(Tape *tape)
{
    uint32_t val;

    take(tape, &val, sizeof(val));
    return val;
}

static uint64_t take64(Tape *tape)
{
    uint64_t val;

    take(tape, &val, sizeof(val));
    return val;
}

static void assert_zeroes(Tape *tape, unsigned count)
{
    while (count--) {
        g_assert_cmpuint(take8(tape), ==, 0);
    }
}

/* The text, and 1 to 8 NULs up to a multiple of 8 bytes */
static void assert_string(Tape *tape, const char *text)
{
    size_t length = strlen(text);
    g_autofree char *read = g_malloc0(length + 1);

    take(tape, read, length);
    g_assert_cmpstr(read, ==, text);
    assert_zeroes(tape, 8 - length % 8);
}

static void assert_begins(Tape *tape, uint32_t type, uint16_t misc)
{
    size_t start = tape->at;

    g_assert_cmpuint(start % 8, ==, 0);
    g_assert_cmpuint(take32(tape), ==, type);
    g_assert_cmphex(take16(tape), ==, misc);
    tape->end = start + take16(tape);
    g_assert_cmpuint(tape->end, <=, tape->out->len);
}

static void assert_ends(Tape *tape)
{
    g_assert_cmpuint(tape->at, ==, tape->end);
}

/* A test ends with this: it must have read the whole stream. */
static void assert_all_read(Tape *tape)
{
    g_assert_cmpuint(tape->at, ==, tape->out->len);
}

static void skip_record(Tape *tape)
{
    take32(tape);
    take16(tape);
    tape->at += take16(tape) - 8;
}

/* The magic number, the event, its name, and the architecture */
static void skip_beginning(Tape *tape)
{
    tape->at = 16;
    skip_record(tape);
    skip_record(tape);
    skip_record(tape);
}

static void assert_sample_id(Tape *tape, uint32_t pid, uint32_t tid,
                             uint64_t time_ns, uint32_t cpu)
{
    g_assert_cmphex(take32(tape), ==, pid);
    g_assert_cmphex(take32(tape), ==, tid);
    g_assert_cmpuint(take64(tape), ==, time_ns);
    g_assert_cmpuint(take32(tape), ==, cpu);
    g_assert_cmpuint(take32(tape), ==, 0);
    assert_ends(tape);
}

/* The flags are as the compiler lays them out, on any host. */
static void assert_flags(Tape *tape, const struct perf_event_attr *want)
{
    struct perf_event_attr attr = {};
    uint64_t flags = take64(tape);

    memcpy((char *)&attr + FLAGS_OFFSET, &flags, sizeof(flags));
    g_assert_cmpmem(&attr, sizeof(attr), want, sizeof(*want));
}

/* User, kernel, any, and with types */
static uint64_t branch_sample_type(const PmuStreamEvent *event)
{
    return event->branch_stack ? 1 << 16 | 1 << 3 | !event->exclude_kernel << 1
                                 | !event->exclude_user : 0;
}

static void assert_attr(Tape *tape, const PmuStreamEvent *event,
                        uint64_t sample_type,
                        const struct perf_event_attr *flags)
{
    assert_begins(tape, 64, 0);
    g_assert_cmpuint(take32(tape), ==, event->type);
    g_assert_cmpuint(take32(tape), ==, 128);
    g_assert_cmphex(take64(tape), ==, event->config);
    g_assert_cmpuint(take64(tape), ==, event->period);
    g_assert_cmphex(take64(tape), ==, sample_type);
    g_assert_cmphex(take64(tape), ==, 0);
    assert_flags(tape, flags);
    assert_zeroes(tape, 72 - 48);
    g_assert_cmphex(take64(tape), ==, branch_sample_type(event));
    assert_zeroes(tape, 128 - 80);
    g_assert_cmpuint(take64(tape), ==, 1);
    assert_ends(tape);
}

static void assert_feature(Tape *tape, uint64_t feature, const char *text)
{
    size_t length;

    assert_begins(tape, 80, 0);
    g_assert_cmpuint(take64(tape), ==, feature);
    length = take32(tape);
    g_assert_cmpuint(length, >, strlen(text));
    g_assert_cmpuint(tape->at + length, <=, tape->end);
    g_assert_cmpstr((char *)tape->out->data + tape->at, ==, text);
    tape->at = tape->end;
}

static void assert_beginning(Tape *tape, const PmuStreamEvent *event,
                             uint64_t sample_type,
                             const struct perf_event_attr *flags)
{
    g_assert_cmphex(take64(tape), ==, 0x32454c4946524550);
    g_assert_cmpuint(take64(tape), ==, 16);
    assert_attr(tape, event, sample_type, flags);
    assert_begins(tape, 78, 0);
    g_assert_cmpuint(take64(tape), ==, 2);
    g_assert_cmpuint(take64(tape), ==, 1);
    assert_string(tape, event->name);
    assert_ends(tape);
    assert_feature(tape, 6, "x86_64");
}

static void test_begin(Tape *tape)
{
    PmuStreamEvent event = instructions;
    /* There are names and maps, and every record has a time. */
    struct perf_event_attr flags = {
        .mmap = 1, .mmap2 = 1, .comm = 1, .sample_id_all = 1,
    };

    assert_beginning(tape, &event, 0x187, &flags);
    assert_all_read(tape);

    event.exclude_kernel = true;
    tape->at = tape->out->len;
    pmu_stream_begin(&tape->stream, tape->out, &event, "x86_64");
    flags.exclude_kernel = 1;
    assert_beginning(tape, &event, 0x187, &flags);

    tape->at = tape->out->len;
    pmu_stream_begin(&tape->stream, tape->out, &with_callchain, "x86_64");
    flags.exclude_kernel = 0;
    flags.exclude_user = 1;
    flags.freq = 1;
    flags.precise_ip = 2;
    assert_beginning(tape, &with_callchain, 0x1a7, &flags);
    assert_all_read(tape);
}

static void assert_mmap(Tape *tape, uint16_t misc, uint32_t pid, uint32_t tid,
                        uint64_t start, const char *name, uint64_t time_ns)
{
    assert_begins(tape, 1, misc);
    g_assert_cmphex(take32(tape), ==, pid);
    g_assert_cmphex(take32(tape), ==, tid);
    g_assert_cmphex(take64(tape), ==, start);
    g_assert_cmphex(take64(tape), ==, UINT64_MAX - start);
    g_assert_cmphex(take64(tape), ==, start);
    assert_string(tape, name);
    assert_sample_id(tape, pid, tid, time_ns, 0);
}

static void assert_build_id(Tape *tape, const uint8_t id[20], unsigned size)
{
    uint8_t read[20];

    assert_begins(tape, 67, 1 | 1 << 15);
    g_assert_cmphex(take32(tape), ==, 0xffffffff);
    take(tape, read, sizeof(read));
    g_assert_cmpmem(read, sizeof(read), id, 20);
    g_assert_cmpuint(take8(tape), ==, size);
    assert_zeroes(tape, 3);
    assert_string(tape, "[kernel.kallsyms]");
    assert_zeroes(tape, 4);
    assert_ends(tape);
}

static void test_kernel(Tape *tape)
{
    skip_beginning(tape);
    pmu_stream_kernel(&tape->stream, &known, 77);
    assert_build_id(tape, known.build_id, 16);
    assert_mmap(tape, 1, 0xffffffff, 0, KERNEL_TEXT,
                "[kernel.kallsyms]_stext", 77);
    assert_feature(tape, 4, "6.1.0-test");
    assert_all_read(tape);
}

/* Without a build id, perf would use the symbols of its own machine. */
static void test_unknown_kernel(Tape *tape)
{
    static const PmuGuestKernel unknown = {};
    uint8_t nobodys[20];

    memset(nobodys, 0xff, sizeof(nobodys));
    skip_beginning(tape);
    pmu_stream_kernel(&tape->stream, &unknown, 0);
    assert_build_id(tape, nobodys, 20);
    assert_mmap(tape, 1, 0xffffffff, 0, 0, "[kernel.kallsyms]_stext", 0);
    assert_all_read(tape);
}

/*
 * The reader runs the guest's kernel: symbols are at the reader's addresses.
 */
static void test_readers_kernel(Tape *tape)
{
    skip_beginning(tape);
    pmu_stream_readers_kernel(&tape->stream, 77);
    assert_begins(tape, 1, 1);
    g_assert_cmphex(take32(tape), ==, 0xffffffff);
    g_assert_cmphex(take32(tape), ==, 0);
    g_assert_cmphex(take64(tape), ==, 1ull << 63);
    g_assert_cmphex(take64(tape), ==, INT64_MAX);
    g_assert_cmphex(take64(tape), ==, 0);
    assert_string(tape, "[kernel.kallsyms]_stext");
    assert_sample_id(tape, 0xffffffff, 0, 77, 0);
    assert_all_read(tape);
    g_assert_true(tape->stream.has_kernel);
}

static void test_map(Tape *tape)
{
    static const PmuStreamMap map = {
        .pid = 9, .start = 0x401000, .length = 0x2000, .offset = 0x1000,
        .name = "/bin/cat\a", .time_ns = 5,
    };

    skip_beginning(tape);
    pmu_stream_map(&tape->stream, &map);
    assert_begins(tape, 10, 2);
    g_assert_cmpuint(take32(tape), ==, 9);
    g_assert_cmpuint(take32(tape), ==, 9);
    g_assert_cmphex(take64(tape), ==, 0x401000);
    g_assert_cmphex(take64(tape), ==, 0x2000);
    g_assert_cmphex(take64(tape), ==, 0x1000);
    assert_zeroes(tape, 24);
    g_assert_cmpuint(take32(tape), ==, PROT_READ | PROT_EXEC);
    g_assert_cmpuint(take32(tape), ==, MAP_PRIVATE);
    assert_string(tape, "/bin/cat?");
    assert_sample_id(tape, 9, 9, 5, 0);
    assert_all_read(tape);
}

static void test_fork(Tape *tape)
{
    skip_beginning(tape);
    pmu_stream_fork(&tape->stream, 9, 8, 5);
    assert_begins(tape, 7, 0);
    g_assert_cmpuint(take32(tape), ==, 9);
    g_assert_cmpuint(take32(tape), ==, 8);
    g_assert_cmpuint(take32(tape), ==, 9);
    g_assert_cmpuint(take32(tape), ==, 8);
    g_assert_cmpuint(take64(tape), ==, 5);
    assert_sample_id(tape, 9, 9, 5, 0);
    assert_all_read(tape);
}

static void assert_error(Tape *tape, uint64_t time_ns, const char *message)
{
    assert_begins(tape, 72, 0);
    assert_zeroes(tape, 20);
    g_assert_cmpuint(take32(tape), ==, 1);
    g_assert_cmpuint(take64(tape), ==, 0);
    g_assert_cmpuint(take64(tape), ==, time_ns);
    g_assert_cmpstr((char *)tape->out->data + tape->at, ==, message);
    tape->at += 64;
    assert_ends(tape);
}

static void test_error(Tape *tape)
{
    g_autofree char *message = g_strnfill(100, 'm');
    g_autofree char *cut = g_strnfill(63, 'm');

    skip_beginning(tape);
    pmu_stream_error(&tape->stream, "wrong", 5);
    assert_error(tape, 5, "wrong");
    pmu_stream_error(&tape->stream, message, 6);
    assert_error(tape, 6, cut);
    assert_all_read(tape);
}

static void test_flushed(Tape *tape)
{
    skip_beginning(tape);
    pmu_stream_flushed(&tape->stream);
    assert_begins(tape, 82, 0);
    assert_ends(tape);
    assert_all_read(tape);
}

static void test_comm(Tape *tape)
{
    skip_beginning(tape);
    pmu_stream_comm(&tape->stream, 3, 4, "cr3=0x10", 5);
    assert_begins(tape, 3, 0);
    g_assert_cmpuint(take32(tape), ==, 3);
    g_assert_cmpuint(take32(tape), ==, 4);
    assert_string(tape, "cr3=0x10");
    assert_sample_id(tape, 3, 4, 5, 0);
    assert_all_read(tape);
}

/* Control characters in a guest's task names must not reach a terminal. */
static void test_names_are_printable(Tape *tape)
{
    skip_beginning(tape);
    pmu_stream_comm(&tape->stream, 3, 3, "a\033[2J\n\377", 5);
    assert_begins(tape, 3, 0);
    take64(tape);
    assert_string(tape, "a?[2J??");
}

static void test_names_are_bounded(Tape *tape)
{
    g_autofree char *name = g_strnfill(100000, 'x');

    skip_beginning(tape);
    pmu_stream_comm(&tape->stream, 3, 3, name, 5);
    assert_begins(tape, 3, 0);
    take64(tape);
    name[255] = '\0';
    assert_string(tape, name);
    assert_sample_id(tape, 3, 3, 5, 0);
}

static void test_nested(Tape *tape)
{
    skip_beginning(tape);
    pmu_stream_nested(&tape->stream, 9, 5);
    assert_mmap(tape, 2, 9, 9, 0, "[nested-guest]", 5);
    assert_all_read(tape);
}

static void assert_sample_begins(Tape *tape, const PmuStreamSample *sample,
                                 uint16_t misc)
{
    assert_begins(tape, 9, misc);
    g_assert_cmphex(take64(tape), ==, sample->ip);
    g_assert_cmpuint(take32(tape), ==, sample->pid);
    g_assert_cmpuint(take32(tape), ==, sample->tid);
    g_assert_cmpuint(take64(tape), ==, sample->time_ns);
}

static void assert_sample_goes_on(Tape *tape, const PmuStreamSample *sample)
{
    g_assert_cmpuint(take32(tape), ==, sample->cpu);
    g_assert_cmpuint(take32(tape), ==, 0);
    g_assert_cmpuint(take64(tape), ==, sample->period);
}

static void assert_sample(Tape *tape, const PmuStreamSample *sample,
                          uint16_t misc)
{
    assert_sample_begins(tape, sample, misc);
    assert_sample_goes_on(tape, sample);
}

static const uint64_t callers[2000] = { 0x401000, 0x402000, 0x403000 };

static PmuStreamSample a_sample(void)
{
    return (PmuStreamSample) {
        .ip = 0x400123,
        .pid = 2,
        .tid = 3,
        .cpu = 4,
        .time_ns = 5000000000,
        .period = 100003,
        .callers = callers,
        .nr_callers = 3,
    };
}

/* Before and after the kernel is known, in user programs, and nested */
static void test_sample(Tape *tape)
{
    PmuStreamSample sample = a_sample();

    skip_beginning(tape);
    pmu_stream_sample(&tape->stream, &sample);
    assert_sample(tape, &sample, 3);
    assert_ends(tape);

    pmu_stream_kernel(&tape->stream, &known, 0);
    tape->at = tape->out->len;
    pmu_stream_sample(&tape->stream, &sample);
    assert_sample(tape, &sample, 1);

    sample.user = true;
    pmu_stream_sample(&tape->stream, &sample);
    assert_sample(tape, &sample, 2);

    sample.user = false;
    sample.nested = true;
    pmu_stream_sample(&tape->stream, &sample);
    assert_sample(tape, &sample, 2);
    assert_all_read(tape);
}

static void begin_with_callchain(Tape *tape)
{
    tape->at = tape->out->len;
    pmu_stream_begin(&tape->stream, tape->out, &with_callchain, "x86_64");
    tape->at = tape->out->len;
}

static void assert_chain(Tape *tape, const PmuStreamSample *sample,
                         uint16_t misc, int64_t context, unsigned nr_callers)
{
    unsigned i;

    assert_sample(tape, sample, misc | 1 << 14);
    g_assert_cmpuint(take64(tape), ==, nr_callers + 2);
    g_assert_cmpint(take64(tape), ==, context);
    g_assert_cmphex(take64(tape), ==, sample->ip);
    for (i = 0; i < nr_callers; i++) {
        g_assert_cmphex(take64(tape), ==, sample->callers[i]);
    }
    assert_ends(tape);
}

/* A branch that was taken, predicted or not, and of a type */
static void assert_branch(Tape *tape, uint64_t from, uint64_t to, bool wrong,
                          unsigned type)
{
    uint64_t flags;

    g_assert_cmphex(take64(tape), ==, from);
    g_assert_cmphex(take64(tape), ==, to);
    flags = take64(tape);
    g_assert_cmphex(flags, ==, HOST_BIG_ENDIAN ? 1ull << (wrong ? 63 : 62)
                                                 | (uint64_t)type << 40
                                               : (wrong ? 1 : 2) | type << 20);
}

static void test_branches(Tape *tape)
{
    static const PmuBranch branches[] = {
        { 0x401010, 0x402000, PMU_BRANCH_CALL, 0, false },
        { 0x403000, 0x401000, PMU_BRANCH_JUMP | PMU_BRANCH_CONDITIONAL, 0,
          true },
        { 0xffffffff81000000, 0x403000, PMU_BRANCH_FAR, 0, false },
    };
    PmuStreamEvent event = instructions;
    struct perf_event_attr flags = {
        .mmap = 1, .mmap2 = 1, .comm = 1, .sample_id_all = 1,
    };
    PmuStreamSample sample = a_sample();

    event.branch_stack = true;
    tape->at = tape->out->len;
    pmu_stream_begin(&tape->stream, tape->out, &event, "x86_64");
    assert_beginning(tape, &event, 0x987, &flags);
    sample.branches = branches;
    sample.nr_branches = G_N_ELEMENTS(branches);
    pmu_stream_sample(&tape->stream, &sample);
    assert_sample(tape, &sample, 3);
    g_assert_cmpuint(take64(tape), ==, 3);
    assert_branch(tape, 0x401010, 0x402000, false, 4);
    assert_branch(tape, 0x403000, 0x401000, true, 1);
    assert_branch(tape, 0xffffffff81000000, 0x403000, false, 0);
    assert_ends(tape);

    sample.nr_branches = 0;
    pmu_stream_sample(&tape->stream, &sample);
    assert_sample(tape, &sample, 3);
    g_assert_cmpuint(take64(tape), ==, 0);
    assert_ends(tape);
    assert_all_read(tape);
}

static void begin_with_data(Tape *tape, bool source)
{
    PmuStreamEvent event = instructions;
    struct perf_event_attr flags = {
        .mmap = 1, .mmap2 = 1, .comm = 1, .sample_id_all = 1,
    };

    event.data_address = true;
    event.data_source = source;
    tape->at = tape->out->len;
    pmu_stream_begin(&tape->stream, tape->out, &event, "x86_64");
    assert_beginning(tape, &event, source ? 0xc18f : 0x18f, &flags);
}

/* A sample that has the address of data, if @access is not NULL */
static void assert_address(Tape *tape, const PmuAccess *access)
{
    PmuStreamSample sample = a_sample();

    sample.access = access;
    pmu_stream_sample(&tape->stream, &sample);
    assert_sample_begins(tape, &sample, 3);
    g_assert_cmphex(take64(tape), ==, access ? access->address : 0);
    assert_sample_goes_on(tape, &sample);
}

static void test_address(Tape *tape)
{
    const PmuAccess access = { .address = 0x7ffc12345678 };

    begin_with_data(tape, false);
    assert_address(tape, &access);
    assert_ends(tape);
    assert_address(tape, NULL);
    assert_ends(tape);
}

static void assert_source(Tape *tape, const PmuAccess *access,
                          union perf_mem_data_src want)
{
    union perf_mem_data_src source;

    assert_address(tape, access);
    g_assert_cmpuint(take64(tape), ==, access ? access->latency : 0);
    source.val = take64(tape);
    g_assert_cmphex(source.val, ==, want.val);
    assert_ends(tape);
}

/* What an access that a core has seen is to perf */
static union perf_mem_data_src source(unsigned op, unsigned level,
                                      unsigned number, unsigned tlb)
{
    return (union perf_mem_data_src) {
        .mem_op = op, .mem_lvl = PERF_MEM_LVL_HIT | level,
        .mem_lvl_num = number, .mem_dtlb = tlb | PERF_MEM_TLB_L2,
        .mem_snoop = PERF_MEM_SNOOP_NA, .mem_lock = PERF_MEM_LOCK_NA,
    };
}

static void test_source(Tape *tape)
{
    const union perf_mem_data_src unknown = {
        .mem_op = PERF_MEM_OP_NA, .mem_lvl = PERF_MEM_LVL_NA,
        .mem_lvl_num = PERF_MEM_LVLNUM_NA, .mem_dtlb = PERF_MEM_TLB_NA,
        .mem_snoop = PERF_MEM_SNOOP_NA, .mem_lock = PERF_MEM_LOCK_NA,
    };
    PmuAccess access = { .address = 0x1000 };

    begin_with_data(tape, true);
    assert_source(tape, NULL, unknown);
    assert_source(tape, &access, unknown);
    access = (PmuAccess) {
        .address = 0x2000, .kind = PMU_CORE_LOAD, .latency = 4,
    };
    assert_source(tape, &access,
                  source(PERF_MEM_OP_LOAD, PERF_MEM_LVL_L1, PERF_MEM_LVLNUM_L1,
                         PERF_MEM_TLB_HIT | PERF_MEM_TLB_L1));
    access.kind = PMU_CORE_STORE;
    access.outcome = PMU_CORE_L1_MISSED;
    access.latency = 44;
    assert_source(tape, &access,
                  source(PERF_MEM_OP_STORE, PERF_MEM_LVL_L3, PERF_MEM_LVLNUM_L3,
                         PERF_MEM_TLB_HIT | PERF_MEM_TLB_L1));
    access.kind = PMU_CORE_MODIFY;
    access.outcome |= PMU_CORE_LAST_MISSED | PMU_CORE_TLB_MISSED;
    assert_source(tape, &access,
                  source(PERF_MEM_OP_LOAD | PERF_MEM_OP_STORE,
                         PERF_MEM_LVL_LOC_RAM, PERF_MEM_LVLNUM_RAM,
                         PERF_MEM_TLB_MISS));
}

static void test_callchain(Tape *tape)
{
    PmuStreamSample sample = a_sample();

    begin_with_callchain(tape);
    pmu_stream_sample(&tape->stream, &sample);
    assert_chain(tape, &sample, 3, -32, 3);

    pmu_stream_kernel(&tape->stream, &known, 0);
    tape->at = tape->out->len;
    pmu_stream_sample(&tape->stream, &sample);
    assert_chain(tape, &sample, 1, -128, 3);

    sample.user = true;
    sample.nr_callers = 0;
    pmu_stream_sample(&tape->stream, &sample);
    assert_chain(tape, &sample, 2, -512, 0);

    sample.nr_callers = G_N_ELEMENTS(callers);
    pmu_stream_sample(&tape->stream, &sample);
    assert_chain(tape, &sample, 2, -512, 1024);
    assert_all_read(tape);
}

/* perf would take such an address for a mode, and refuse unknown ones. */
static void test_callers_are_no_contexts(Tape *tape)
{
    static const uint64_t not_all_callers[] = {
        0x401000, (uint64_t)-4096, (uint64_t)-4095, 0x402000,
    };
    PmuStreamSample sample = a_sample();

    begin_with_callchain(tape);
    sample.user = true;
    sample.callers = not_all_callers;
    sample.nr_callers = G_N_ELEMENTS(not_all_callers);
    pmu_stream_sample(&tape->stream, &sample);
    assert_chain(tape, &sample, 2, -512, 2);
}

static void test_lost(Tape *tape)
{
    skip_beginning(tape);
    pmu_stream_lost(&tape->stream, 3, 12345, 99);
    assert_begins(tape, 2, 0);
    g_assert_cmpuint(take64(tape), ==, 1);
    g_assert_cmpuint(take64(tape), ==, 12345);
    assert_sample_id(tape, 0, 0, 99, 3);
    assert_all_read(tape);
}

static void assert_throttle(Tape *tape, uint32_t type, uint32_t cpu,
                            uint64_t time_ns)
{
    assert_begins(tape, type, 0);
    g_assert_cmpuint(take64(tape), ==, time_ns);
    g_assert_cmpuint(take64(tape), ==, 1);
    g_assert_cmpuint(take64(tape), ==, 1);
    assert_sample_id(tape, 0, 0, time_ns, cpu);
}

static void test_throttle(Tape *tape)
{
    skip_beginning(tape);
    pmu_stream_throttle(&tape->stream, 3, true, 99);
    pmu_stream_throttle(&tape->stream, 2, false, 100);
    assert_throttle(tape, 5, 3, 99);
    assert_throttle(tape, 6, 2, 100);
    assert_all_read(tape);
}

static void test_round(Tape *tape)
{
    skip_beginning(tape);
    pmu_stream_round(&tape->stream);
    assert_begins(tape, 68, 0);
    assert_ends(tape);
    assert_all_read(tape);
}

/* The data can be taken away at any time between two calls. */
static void test_is_taken_away(Tape *tape)
{
    PmuStreamSample sample = a_sample();

    g_byte_array_set_size(tape->out, 0);
    pmu_stream_sample(&tape->stream, &sample);
    assert_sample(tape, &sample, 3);
    assert_ends(tape);
    assert_all_read(tape);
}

/* A stream that is cut in a record ends with the record before. */
static void test_whole(Tape *tape)
{
    PmuStreamSample sample = a_sample();
    size_t begin = tape->out->len, end;

    pmu_stream_sample(&tape->stream, &sample);
    end = tape->out->len;
    for (size_t size = begin; size < end; size++) {
        g_assert_cmpuint(pmu_stream_whole(tape->out->data, size), ==, begin);
    }
    g_assert_cmpuint(pmu_stream_whole(tape->out->data, end), ==, end);
    g_assert_cmpuint(pmu_stream_whole(tape->out->data + begin, end - begin),
                     ==, end - begin);
    g_assert_cmpuint(pmu_stream_whole(tape->out->data, 7), ==, 0);
}

static void assert_next_samples(Tape *tape)
{
    PmuStreamSample sample = a_sample();
    size_t at = 0, end;
    uint32_t cpu;

    for (sample.cpu = 5; sample.cpu < 7; sample.cpu++) {
        pmu_stream_sample(&tape->stream, &sample);
        pmu_stream_round(&tape->stream);
    }
    end = tape->out->len;
    for (unsigned want = 5; want < 7; want++) {
        g_assert_true(pmu_stream_next_sample(&tape->stream, tape->out->data,
                                             end, &at, &cpu));
        g_assert_cmpuint(cpu, ==, want);
    }
    g_assert_false(pmu_stream_next_sample(&tape->stream, tape->out->data, end,
                                          &at, &cpu));
}

static void test_next_sample(Tape *tape)
{
    assert_next_samples(tape);
}

static void test_next_address(Tape *tape)
{
    g_byte_array_set_size(tape->out, 0);
    begin_with_data(tape, true);
    assert_next_samples(tape);
}

static void run(gconstpointer data)
{
    void (*test)(Tape *tape) = data;
    Tape tape = { .out = g_byte_array_new() };

    pmu_stream_begin(&tape.stream, tape.out, &instructions, "x86_64");
    test(&tape);
    g_byte_array_unref(tape.out);
}

static void add(const char *path, void (*test)(Tape *tape))
{
    g_test_add_data_func(path, test, run);
}

int main(int argc, char *argv[])
{
    g_test_init(&argc, &argv, NULL);
    add("/pmu/stream/begin", test_begin);
    add("/pmu/stream/kernel", test_kernel);
    add("/pmu/stream/unknown-kernel", test_unknown_kernel);
    add("/pmu/stream/readers-kernel", test_readers_kernel);
    add("/pmu/stream/map", test_map);
    add("/pmu/stream/fork", test_fork);
    add("/pmu/stream/error", test_error);
    add("/pmu/stream/flushed", test_flushed);
    add("/pmu/stream/comm", test_comm);
    add("/pmu/stream/names-are-printable", test_names_are_printable);
    add("/pmu/stream/names-are-bounded", test_names_are_bounded);
    add("/pmu/stream/nested", test_nested);
    add("/pmu/stream/sample", test_sample);
    add("/pmu/stream/callchain", test_callchain);
    add("/pmu/stream/branches", test_branches);
    add("/pmu/stream/address", test_address);
    add("/pmu/stream/source", test_source);
    add("/pmu/stream/callers-are-no-contexts", test_callers_are_no_contexts);
    add("/pmu/stream/lost", test_lost);
    add("/pmu/stream/throttle", test_throttle);
    add("/pmu/stream/round", test_round);
    add("/pmu/stream/is-taken-away", test_is_taken_away);
    add("/pmu/stream/whole", test_whole);
    add("/pmu/stream/next-sample", test_next_sample);
    add("/pmu/stream/next-address", test_next_address);
    return g_test_run();
}
