/*
 * x86 virtual PMU: processor event based sampling (PEBS)
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qemu/bswap.h"
#include "qemu/error-report.h"
#include "qemu/rcu.h"
#include "exec/translation-block.h"
#include "migration/vmstate.h"
#include "system/cpu-timers.h"
#include "system/tcg.h"
#include "hw/pmu/pmu-monitor.h"
#include "hw/pmu/compat.h"
#include "internal.h"
#include "lbr.h"
#include "pebs.h"

#define MSR_PEBS_DATA_CFG      0x3f2
#define MSR_PEBS_LD_LAT        0x3f6
#define MSR_IA32_DS_AREA       0x600

#define CODE X86_VPMU_CODE

/* IA32_PERF_CAPABILITIES; the format of records has 4 bits. */
#define PERF_CAP_PEBS_FORMAT   8
#define PERF_CAP_PEBS_TRAP     (1ull << 6)
#define PERF_CAP_PEBS_ARCH_REG (1ull << 7)
#define PERF_CAP_PEBS_BASELINE (1ull << 14)

/* IA32_PEBS_ENABLE, besides general-purpose counters from bit 0 */
#define ENABLE_FIXED           32
#define ENABLE_LOAD_LATENCY    MAKE_64BIT_MASK(32, 4)
#define LOAD_LATENCY(i)        (1ull << (32 + (i)))
#define ENABLE_PRECISE_STORE   (1ull << 63)

/* A counter's records have more than the basic group. */
#define EVTSEL_ADAPTIVE        (1ull << 34)
#define FIXED_ADAPTIVE(i)      (1ull << (32 + 4 * (i)))

/* MSR_PEBS_DATA_CFG: groups of a record */
#define CFG_MEMORY             (1ull << 0)
#define CFG_GPRS               (1ull << 1)
#define CFG_XMMS               (1ull << 2)
#define CFG_LBRS               (1ull << 3)
#define CFG_NR_LBRS            24
#define CFG_BITS               (MAKE_64BIT_MASK(0, 4) \
                                | MAKE_64BIT_MASK(CFG_NR_LBRS, 8))

/* The DS save area: the fields of PEBS */
#define DS_INDEX               0x28
#define DS_MAXIMUM             0x30
#define DS_THRESHOLD           0x38
#define DS_RESET               0x40
#define DS_RESET_FIXED         8

/* A record's size, in the first word of its basic group */
#define BASIC_SIZE             48

/*
 * Where data come from: the first level, the last one, or memory, as all models
 * have it; in addition, whether the TLB was missed.  The lowest bit alone says
 * of a store that it hits the first level.
 */
#define SOURCE_L1              0x1
#define SOURCE_LAST            0x4
#define SOURCE_MEMORY          0xa
#define SOURCE_TLB_MISSED      0x10

/* How long any load takes without a model of the core */
#define LATENCY                32

/* The most that a record says */
#define MAX_LATENCY            0xffff

/* In the memory group: the latency of the access, above the instruction's */
#define ACCESS_LATENCY         32

#define NR_XMMS                16
#define MAX_WORDS (4 + 4 + 2 + CPU_NB_REGS64 + 2 * NR_XMMS + 3 * 256)

const X86VPmuPebs pebs_of_nehalem = {
    .format = 1, .counters = 0xf, .other_enables = ENABLE_LOAD_LATENCY,
    .load_latency = CODE(0x0b, 0x10),
};
const X86VPmuPebs pebs_of_sandy_bridge = {
    .format = 1, .counters = 0xf,
    .other_enables = ENABLE_LOAD_LATENCY | ENABLE_PRECISE_STORE,
    .load_latency = CODE(0xcd, 0x01), .store_sample = CODE(0xcd, 0x02),
    .uops = CODE(0xc2, 0x01),
};
const X86VPmuPebs pebs_of_haswell = {
    .format = 2, .counters = 0xf, .other_enables = ENABLE_LOAD_LATENCY,
    .load_latency = CODE(0xcd, 0x01), .uops = CODE(0xc2, 0x01),
};
const X86VPmuPebs pebs_of_skylake = {
    .format = 3, .counters = 0xf, .other_enables = ENABLE_LOAD_LATENCY,
    .load_latency = CODE(0xcd, 0x01),
};
const X86VPmuPebs pebs_of_ice_lake = {
    .format = 4, .baseline = true, .counters = 0xff,
    .load_latency = CODE(0xcd, 0x01),
};
const X86VPmuPebs pebs_of_golden_cove = {
    .format = 4, .baseline = true, .counters = 0xff,
    .load_latency = CODE(0xcd, 0x01), .store_sample = CODE(0xcd, 0x02),
    .tells_both_latencies = true,
};

/*
 * Code that is compiled relative to the program counter does not know where
 * a counter has overflowed.
 */
static void pebs_init(X86VPmu *v)
{
    v->pebs = x86_vpmu_wanted_pebs(v->cpu);
    if (v->pebs && tcg_enabled()) {
        CPU(v->cpu)->tcg_cflags &= ~CF_PCREL;
    }
}

static void pebs_reset(X86VPmu *v)
{
    v->ds_area = 0;
    v->pebs_enable = 0;
    v->pebs_ld_lat = 0;
    v->pebs_data_cfg = 0;
    v->pebs_armed = 0;
}

uint64_t pebs_capabilities(const X86VPmuPebs *pebs)
{
    return PERF_CAP_PEBS_TRAP | PERF_CAP_PEBS_ARCH_REG
           | pebs->format << PERF_CAP_PEBS_FORMAT
           | (pebs->baseline ? PERF_CAP_PEBS_BASELINE : 0);
}

static bool pebs_is_there(const X86VPmu *v)
{
    return v->pebs;
}

bool pebs_is_shown(const X86CPU *cpu)
{
    const uint64_t *features = cpu->env.features;

    return cpu->enable_pmu && features[FEAT_1_EDX] & CPUID_DTS
           && features[FEAT_1_ECX] & CPUID_EXT_PDCM
           && extract64(features[FEAT_PERF_CAPABILITIES], PERF_CAP_PEBS_FORMAT,
                        4);
}

/* A counter's bit in IA32_PEBS_ENABLE and in the records */
static uint64_t enable_bit(const X86VPmu *v, unsigned counter)
{
    return 1ull << (counter < v->nr_gp ? counter
                    : ENABLE_FIXED + counter - v->nr_gp);
}

/* Only with "baseline" do bits from 32 on stand for fixed counters. */
static uint64_t pebs_counters(const X86VPmu *v)
{
    unsigned nr = !v->pebs ? 0
                  : v->pebs->baseline ? v->nr_gp + v->nr_fixed : v->nr_gp;
    uint64_t counters = 0;

    for (unsigned i = 0; i < nr; i++) {
        counters |= (uint64_t)!!(v->pebs_enable & enable_bit(v, i)) << i;
    }
    return counters;
}

/*
 * Events
 */

/* @outcome: a set of PmuCoreOutcome */
static uint64_t latency_of(const X86VPmu *v, uint32_t outcome)
{
    const PmuCoreModel *core = v->cpu->vpmu_props.core_model;
    uint64_t cycles = core ? pmu_core_latency(&core->penalties, outcome)
                           : LATENCY;

    return MIN(cycles, MAX_LATENCY);
}

/*
 * The loads that take longer than MSR_PEBS_LD_LAT says.  Without a model of the
 * core, these are either all of them or none.
 */
static PmuEvent long_loads(const X86VPmu *v)
{
    const uint64_t least = v->pebs_ld_lat;

    if (least < latency_of(v, 0)) {
        return PMU_EVENT_LOADS;
    }
    if (least < latency_of(v, PMU_CORE_L1_MISSED)) {
        return PMU_EVENT_L1D_LOAD_MISSES;
    }
    return least < latency_of(v, PMU_CORE_L1_MISSED | PMU_CORE_LAST_MISSED)
           ? PMU_EVENT_LLC_LOAD_MISSES : PMU_EVENT_NONE;
}

/* An instruction is one micro-operation. */
static PmuEvent pebs_event(const X86VPmu *v, uint32_t code)
{
    if (!v->pebs || !code) {
        return PMU_EVENT_NONE;
    }
    return code == v->pebs->load_latency ? long_loads(v)
           : code == v->pebs->store_sample ? PMU_EVENT_STORES
           : code == v->pebs->uops ? PMU_EVENT_INSNS : PMU_EVENT_NONE;
}

static bool is_of_memory(const X86VPmu *v, unsigned counter)
{
    switch (pmu_selected(v->pmu, counter)->event) {
    case PMU_EVENT_LOADS:
    case PMU_EVENT_STORES:
    case PMU_EVENT_ACCESSES:
    case PMU_EVENT_L1D_MISSES:
    case PMU_EVENT_L1D_LOAD_MISSES:
    case PMU_EVENT_L1D_LOAD_HITS:
    case PMU_EVENT_LLC_LOAD_HITS:
    case PMU_EVENT_LLC_LOAD_MISSES:
        return true;
    default:
        return false;
    }
}

static bool any_of_memory(const X86VPmu *v, uint64_t counters)
{
    for (unsigned i = 0; i < pmu_nr_counters(v->pmu); i++) {
        if (counters >> i & 1 && is_of_memory(v, i)) {
            return true;
        }
    }
    return false;
}

/*
 * Before version 5, a counter has to be enabled for it: SDM, volume 3B, "Load
 * Latency Performance Monitoring Facility".  Linux enables it only then.
 */
static bool takes_latency(const X86VPmu *v, unsigned counter)
{
    return v->version >= 5 || v->pebs_enable & LOAD_LATENCY(counter);
}

static bool is_load_latency(const X86VPmu *v, unsigned counter)
{
    return v->pebs->load_latency && counter < v->nr_gp
           && v->ops->event_code(v, counter) == v->pebs->load_latency
           && takes_latency(v, counter);
}

static bool any_load_latency(const X86VPmu *v, uint64_t counters)
{
    for (unsigned i = 0; i < v->nr_gp; i++) {
        if (counters >> i & 1 && is_load_latency(v, i)) {
            return true;
        }
    }
    return false;
}

static void pebs_update(X86VPmu *v)
{
    if (v->pebs && tcg_enabled()) {
        pmu_tcg_note_addresses(v->unit->tcg,
                               any_of_memory(v, pebs_counters(v)));
    }
}

/*
 * The guest's memory, with the rights of the kernel, whatever is executed.
 * Only RAM can be accessed.
 */

#ifdef CONFIG_TCG
/* In long mode, addresses have 64 bits for a program of 32 bits, too. */
static int supervisor_index(const CPUX86State *env)
{
    int index = env->hflags & HF_SMAP_MASK ? MMU_KSMAP64_IDX
                                           : MMU_KNOSMAP64_IDX;

    return env->hflags & HF_LMA_MASK ? index
           : index + MMU_KSMAP32_IDX - MMU_KSMAP64_IDX;
}

/*
 * Plugins are not told: records are none of the guest's accesses, and were
 * taken for a device's in the midst of an instruction that a plugin watches.
 *
 * Returns: where it is; NULL if there would be a page fault
 */
static void *find_ram(X86VPmu *v, uint64_t addr, int len, bool write)
{
    CPUX86State *env = &v->cpu->env;
    const int error_code = env->error_code;
    CPUTLBEntryFull *full;
    void *host;
    int flags = probe_access_full_mmu(env, addr, len,
                                      write ? MMU_DATA_STORE : MMU_DATA_LOAD,
                                      supervisor_index(env), &host, &full);

    /* The walk of the tables has changed this field, which is the guest's. */
    env->error_code = error_code;
    return flags & (TLB_INVALID_MASK | TLB_MMIO) ? NULL : host;
}

static bool access_page(X86VPmu *v, uint64_t addr, void *buf, int len,
                        bool write)
{
    void *host = find_ram(v, addr, len, write);

    if (host && buf && write) {
        memcpy(host, buf, len);
    } else if (host && buf) {
        memcpy(buf, host, len);
    }
    return host;
}
#else
static bool access_page(X86VPmu *v, uint64_t addr, void *buf, int len,
                        bool write)
{
    return false;
}
#endif

/* For tests, which have no TLB */
static bool access_page_of_test(X86VPmu *v, uint64_t addr, void *buf, int len,
                                bool write)
{
    uint8_t dummy[8];

    return !cpu_memory_rw_debug(CPU(v->cpu), addr, buf ?: dummy,
                                buf ? len : 1, buf && write);
}

/* Outside long mode addresses have 32 bits, like the instruction pointer. */
static uint64_t linear(const X86VPmu *v, uint64_t addr)
{
    return v->cpu->env.hflags & HF_LMA_MASK ? addr : (uint32_t)addr;
}

/* With @buf NULL, only checks whether it could be accessed. */
static bool access_memory(X86VPmu *v, uint64_t addr, void *buf, int len,
                          bool write)
{
    while (len) {
        uint64_t at = linear(v, addr);
        int part = MIN((uint64_t)len, -(at | TARGET_PAGE_MASK));

        if (!(tcg_enabled() ? access_page(v, at, buf, part, write)
              : access_page_of_test(v, at, buf, part, write))) {
            return false;
        }
        addr += part;
        buf = buf ? (uint8_t *)buf + part : NULL;
        len -= part;
    }
    return true;
}

static bool read_word(X86VPmu *v, uint64_t addr, uint64_t *word)
{
    bool read = access_memory(v, addr, word, sizeof(*word), false);

    *word = read ? le64_to_cpu(*word) : 0;
    return read;
}

/*
 * Records
 */

/**
 * struct Sample - the contents of a record
 * @counters: the counters that have overflowed
 * @names: the same, as records name them
 * @at: the address of the instruction that overflowed
 * @next: the address of the instruction after it
 * @address: the address of its data; 0 for counters of events without data
 * @source, @latency: of that access
 */
typedef struct Sample {
    uint64_t counters;
    uint64_t names;
    uint64_t at;
    uint64_t next;
    uint64_t address;
    uint64_t source;
    uint64_t latency;
} Sample;

typedef struct Record {
    uint64_t words[MAX_WORDS];
    unsigned nr_words;
} Record;

static void put(Record *r, uint64_t word)
{
    r->words[r->nr_words++] = cpu_to_le64(word);
}

static unsigned size_of(const Record *r)
{
    return r->nr_words * sizeof(uint64_t);
}

static uint64_t source_of(uint32_t outcome)
{
    return (outcome & PMU_CORE_LAST_MISSED ? SOURCE_MEMORY
            : outcome & PMU_CORE_L1_MISSED ? SOURCE_LAST : SOURCE_L1)
           | (outcome & PMU_CORE_TLB_MISSED ? SOURCE_TLB_MISSED : 0);
}

static void find_access(const X86VPmu *v, Sample *s)
{
    const PmuCoreEntry *entry;
    uint32_t outcome;

    if (tcg_enabled() && any_of_memory(v, s->counters)
        && pmu_tcg_data_address(CPU(v->cpu), s->at, &s->address)) {
        entry = pmu_tcg_data_entry(CPU(v->cpu));
        outcome = entry ? entry->from : 0;
        s->source = source_of(outcome);
        s->latency = any_load_latency(v, s->counters) ? latency_of(v, outcome)
                                                      : 0;
    } else {
        s->address = 0;
    }
}

/* If the instruction is not known, the next one is used. */
static Sample take_sample(const X86VPmu *v, uint64_t counters)
{
    const CPUX86State *env = &v->cpu->env;
    Sample s = {
        .counters = counters,
        .next = env->hflags & HF_CS64_MASK
                ? env->eip : (uint32_t)(env->segs[R_CS].base + env->eip),
    };
    unsigned mode;

    if (!tcg_enabled() || !pmu_tcg_site(CPU(v->cpu), &s.at, &mode)) {
        s.at = s.next;
    }
    for (unsigned i = 0; i < pmu_nr_counters(v->pmu); i++) {
        s.names |= counters >> i & 1 ? enable_bit(v, i) : 0;
    }
    find_access(v, &s);
    return s;
}

static void put_flags_and_ip(Record *r, const X86VPmu *v, const Sample *s)
{
    put(r, cpu_compute_eflags(&v->cpu->env));
    put(r, s->next);
}

static void put_regs(Record *r, const X86VPmu *v, const uint8_t *order,
                     unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        unsigned reg = order ? order[i] : i;

        put(r, reg < CPU_NB_REGS ? v->cpu->env.regs[reg] : 0);
    }
}

static uint64_t now(const X86VPmu *v)
{
    return cpus_get_elapsed_ticks() + v->cpu->env.tsc_offset;
}

/* A record in the formats before adaptive records */
static void make_fixed(Record *r, const X86VPmu *v, const Sample *s)
{
    static const uint8_t order[CPU_NB_REGS64] = {
        R_EAX, R_EBX, R_ECX, R_EDX, R_ESI, R_EDI, R_EBP, R_ESP,
        8, 9, 10, 11, 12, 13, 14, 15,
    };

    put_flags_and_ip(r, v, s);
    put_regs(r, v, order, ARRAY_SIZE(order));
    put(r, s->names);
    put(r, s->address);
    put(r, s->source);
    put(r, s->latency);
    if (v->pebs->format >= 2) {
        put(r, s->at);
        put(r, 0);
    }
    if (v->pebs->format >= 3) {
        put(r, now(v));
    }
}

static void put_xmms(Record *r, const X86VPmu *v)
{
    for (unsigned i = 0; i < NR_XMMS; i++) {
        const ZMMReg *reg = &v->cpu->env.xmm_regs[i % CPU_NB_REGS];

        for (unsigned half = 0; half < 2; half++) {
            put(r, i < CPU_NB_REGS ? reg->ZMM_Q(half) : 0);
        }
    }
}

/* While branches are not recorded, a record does not have any either. */
static void put_lbrs(Record *r, const X86VPmu *v, unsigned n)
{
    for (unsigned age = 0; age < n; age++) {
        uint64_t branch[X86_VPMU_LER__MAX] = { };

        lbr_read(v, age, branch);
        for (unsigned i = 0; i < ARRAY_SIZE(branch); i++) {
            put(r, branch[i]);
        }
    }
}

static bool is_adaptive(const X86VPmu *v, uint64_t counters)
{
    for (unsigned i = 0; i < pmu_nr_counters(v->pmu); i++) {
        bool adaptive = i < v->nr_gp
                        ? v->evtsel[i] & EVTSEL_ADAPTIVE
                        : v->fixed_ctrl & FIXED_ADAPTIVE(i - v->nr_gp);

        if (counters >> i & 1 && adaptive) {
            return true;
        }
    }
    return false;
}

/* A load takes no more time than its access. */
static uint64_t latencies(const X86VPmu *v, const Sample *s)
{
    return s->latency
           | (v->pebs->tells_both_latencies ? s->latency << ACCESS_LATENCY : 0);
}

/* A record with the groups that the guest has chosen */
static void make_chosen(Record *r, X86VPmu *v, const Sample *s)
{
    uint64_t groups = is_adaptive(v, s->counters) ? v->pebs_data_cfg : 0;

    if (!(groups & CFG_LBRS)) {
        groups = extract64(groups, 0, CFG_NR_LBRS);
    }
    put(r, 0);
    put(r, s->at);
    put(r, s->names);
    put(r, now(v));
    if (groups & CFG_MEMORY) {
        put(r, s->address);
        put(r, s->source);
        put(r, latencies(v, s));
        put(r, 0);
    }
    if (groups & CFG_GPRS) {
        put_flags_and_ip(r, v, s);
        put_regs(r, v, NULL, CPU_NB_REGS64);
    }
    if (groups & CFG_XMMS) {
        put_xmms(r, v);
    }
    if (groups & CFG_LBRS) {
        put_lbrs(r, v, extract64(groups, CFG_NR_LBRS, 8) + 1);
    }
    r->words[0] = cpu_to_le64(groups | (uint64_t)size_of(r) << BASIC_SIZE);
}

/* Write the record before the index, which makes it visible to the guest. */
static void append(X86VPmu *v, const Sample *s)
{
    uint64_t index, maximum, next;
    Record r = { };

    if (!read_word(v, v->ds_area + DS_INDEX, &index)
        || !read_word(v, v->ds_area + DS_MAXIMUM, &maximum)) {
        return;
    }
    if (v->pebs->baseline) {
        make_chosen(&r, v, s);
    } else {
        make_fixed(&r, v, s);
    }
    if (index > maximum || maximum - index < size_of(&r)
        || !access_memory(v, index, NULL, size_of(&r), true)
        || !access_memory(v, v->ds_area + DS_INDEX, NULL, sizeof(next), true)) {
        return;
    }
    access_memory(v, index, r.words, size_of(&r), true);
    next = cpu_to_le64(index + size_of(&r));
    smp_wmb(); /* other CPUs' software polls the index, too */
    access_memory(v, v->ds_area + DS_INDEX, &next, sizeof(next), true);
}

static bool is_over_threshold(X86VPmu *v)
{
    uint64_t index, threshold;

    return read_word(v, v->ds_area + DS_INDEX, &index)
           && read_word(v, v->ds_area + DS_THRESHOLD, &threshold)
           && index >= threshold;
}

/*
 * The counter goes on from the reset value that the guest has set.
 */
static void load_counter(X86VPmu *v, unsigned counter)
{
    unsigned slot = counter < v->nr_gp
                    ? counter : DS_RESET_FIXED + counter - v->nr_gp;
    uint64_t val;

    if (read_word(v, v->ds_area + DS_RESET + slot * sizeof(val), &val)) {
        pmu_write(v->pmu, counter, val);
    }
}

/* Software that knows these formats ignores records of several counters. */
static void append_each(X86VPmu *v, uint64_t counters)
{
    for (unsigned i = 0; i < pmu_nr_counters(v->pmu); i++) {
        if (counters >> i & 1) {
            Sample s = take_sample(v, 1ull << i);

            append(v, &s);
        }
    }
}

/* Whether the instruction is in SMM, which includes RSM */
static bool is_of_smm(const X86VPmu *v)
{
    uint64_t pc;
    unsigned mode;

    return v->cpu->env.hflags & HF_SMM_MASK
           || (tcg_enabled() && pmu_tcg_site(CPU(v->cpu), &pc, &mode)
               && X86_VPMU_MODES_SMM >> mode & 1);
}

/*
 * Walks of page tables may have to wait for all other CPUs, which is possible
 * from the vCPU's loop alone.  Under qtest there is no loop.
 */
static bool can_walk(const X86VPmu *v)
{
    return !tcg_enabled() || CPU(v->cpu)->running;
}

/* Armed counters overflow again at the first event that can be recorded. */
static void arm(X86VPmu *v, uint64_t counters)
{
    for (unsigned i = 0; i < pmu_nr_counters(v->pmu); i++) {
        if (counters >> i & 1) {
            pmu_write(v->pmu, i, -1);
        }
    }
    v->pebs_armed |= counters;
}

static PmuModes pebs_skips(const X86VPmu *v, unsigned counter)
{
    return v->pebs_armed >> counter & 1 ? X86_VPMU_MODES_SMM : 0;
}

static void pebs_disarm(X86VPmu *v, uint64_t counters)
{
    v->pebs_armed &= ~counters;
}

/* The overflow that waited for the end of SMM belongs to the old value. */
static bool pebs_written(X86VPmu *v, unsigned counter)
{
    const bool waited = pebs_skips(v, counter);

    pebs_disarm(v, 1ull << counter);
    return waited;
}

/*
 * Write records and load the counters anew.  If an access would cause a page
 * fault, or is not to RAM, the record is lost, and the buffer's index does not
 * change.  There are no records in SMM, nor while the machine is being stopped:
 * counters are armed instead.
 */
static uint64_t pebs_overflow(X86VPmu *v, uint64_t counters)
{
    RCU_READ_LOCK_GUARD();

    if (is_of_smm(v) || !can_walk(v)) {
        arm(v, counters);
        return 0;
    }
    pebs_disarm(v, counters);
    if (v->pebs->format < 3) {
        append_each(v, counters);
    } else {
        Sample s = take_sample(v, counters);

        append(v, &s);
    }
    for (unsigned i = 0; i < pmu_nr_counters(v->pmu); i++) {
        if (counters >> i & 1) {
            load_counter(v, i);
        }
    }
    return is_over_threshold(v) ? counters : 0;
}

/*
 * Registers
 */

static uint64_t pebs_evtsel_bits(const X86VPmu *v)
{
    return v->pebs && v->pebs->baseline ? EVTSEL_ADAPTIVE : 0;
}

static uint64_t pebs_fixed_ctrl_bits(const X86VPmu *v)
{
    uint64_t bits = 0;

    for (unsigned i = 0; pebs_evtsel_bits(v) && i < v->nr_fixed; i++) {
        bits |= FIXED_ADAPTIVE(i);
    }
    return bits;
}

static unsigned pebs_count_one(const X86VPmu *v)
{
    return v->pebs ? 1 : 0;
}

static unsigned pebs_count_ld_lat(const X86VPmu *v)
{
    return v->pebs && v->pebs->load_latency ? 1 : 0;
}

static unsigned pebs_count_data_cfg(const X86VPmu *v)
{
    return v->pebs && v->pebs->baseline ? 1 : 0;
}

static bool is_ds_area(const X86VPmu *v, uint64_t val)
{
    bool five_levels = v->cpu->env.features[FEAT_7_0_ECX] & CPUID_7_0_ECX_LA57;

    return sextract64(val, 0, five_levels ? 57 : 48) == val;
}

static uint64_t pebs_enable_bits(const X86VPmu *v)
{
    uint64_t bits = (v->pebs->counters & x86_vpmu_low_bits(v->nr_gp))
                    | v->pebs->other_enables;

    return bits | (v->pebs->baseline
                   ? x86_vpmu_low_bits(v->nr_fixed) << ENABLE_FIXED : 0);
}

static void pebs_write_enable(X86VPmu *v, unsigned i, uint64_t val)
{
    pebs_disarm(v, ~pebs_counters(v));
    v->ops->update(v);
}

static uint64_t pebs_ld_lat_bits(const X86VPmu *v)
{
    return MAKE_64BIT_MASK(0, 16);
}

static void pebs_write_ld_lat(X86VPmu *v, unsigned i, uint64_t val)
{
    v->pebs_ld_lat &= pebs_ld_lat_bits(v);
    v->ops->update(v);
}

static uint64_t pebs_data_cfg_bits(const X86VPmu *v)
{
    return CFG_BITS;
}

static const X86VPmuMsr pebs_msrs[] = {
    { MSR_IA32_DS_AREA, 1, 1, pebs_count_one,
      x86_vpmu_any_bits, X86_VPMU_FIELD(ds_area), .valid = is_ds_area },
    { MSR_IA32_PEBS_ENABLE, 1, 1, pebs_count_one,
      pebs_enable_bits, X86_VPMU_FIELD(pebs_enable), pebs_write_enable },
    { MSR_PEBS_LD_LAT, 1, 1, pebs_count_ld_lat,
      x86_vpmu_any_bits, X86_VPMU_FIELD(pebs_ld_lat), pebs_write_ld_lat },
    { MSR_PEBS_DATA_CFG, 1, 1, pebs_count_data_cfg,
      pebs_data_cfg_bits, X86_VPMU_FIELD(pebs_data_cfg) },
    { }
};

static unsigned pebs_count_kept(const X86VPmu *v)
{
    return v->kept.pebs;
}

/* Written before the registers that start counters, whose records need them */
static const X86VPmuStateMsr pebs_state[] = {
    { MSR_IA32_DS_AREA, 1, pebs_count_kept, false, X86_VPMU_FIELD(ds_area) },
    { MSR_PEBS_DATA_CFG, 1, pebs_count_kept, false,
      X86_VPMU_FIELD(pebs_data_cfg) },
    { MSR_IA32_PEBS_ENABLE, 1, pebs_count_kept, false,
      X86_VPMU_FIELD(pebs_enable) },
    { }
};

/*
 * CPUID and the monitor
 */

static uint64_t pebs_inuse_bits(const X86VPmu *v)
{
    return v->pebs_enable ? X86_INUSE_PMI : 0;
}

/* Software must not find a debug store: KVM has no branch traces. */
static uint64_t pebs_lacks(const X86CPU *cpu, FeatureWord w)
{
    return pebs_is_shown(cpu) ? 0
           : w == FEAT_1_ECX ? CPUID_EXT_DTES64 | CPUID_EXT_DSCPL
           : w == FEAT_1_EDX ? CPUID_DTS : 0;
}

static uint64_t pebs_offers(X86CPU *cpu, FeatureWord w)
{
    const X86VPmuPebs *pebs = x86_vpmu_wanted_pebs(cpu);

    if (!pebs) {
        return 0;
    }
    return w == FEAT_1_EDX ? CPUID_DTS
           : w == FEAT_1_ECX ? CPUID_EXT_DTES64
           : w == FEAT_PERF_CAPABILITIES ? pebs_capabilities(pebs) : 0;
}

static void pebs_describe(const X86VPmu *v, PmuInfo *info)
{
    if (v->pebs || v->kept.pebs) {
        info->pebs = g_new0(PmuPebsInfo, 1);
        info->pebs->area = v->ds_area;
        info->pebs->enable = v->pebs_enable;
    }
}

/*
 * Migration
 */

static bool pebs_is_used(const X86VPmu *v)
{
    return v->ds_area | v->pebs_enable | v->pebs_ld_lat | v->pebs_data_cfg;
}

static bool pebs_needed(void *opaque)
{
    X86CPU *cpu = opaque;

    return cpu->vpmu && pebs_is_used(cpu->vpmu);
}

static int pebs_pre_load(void *opaque)
{
    X86CPU *cpu = opaque;

    if (!cpu->vpmu || !cpu->vpmu->pebs) {
        error_report("The source's CPU has PEBS and this one does not; add "
                     "pebs=on.");
        return -EINVAL;
    }
    return 0;
}

static bool is_beyond_registers(const X86VPmu *v)
{
    return (v->pebs_enable & ~pebs_enable_bits(v))
           || (v->pebs_ld_lat & ~pebs_ld_lat_bits(v))
           || (v->pebs_data_cfg
               & ~(pebs_count_data_cfg(v) ? pebs_data_cfg_bits(v) : 0))
           || !is_ds_area(v, v->ds_area);
}

static int pebs_post_load(void *opaque, int version_id)
{
    X86CPU *cpu = opaque;
    X86VPmu *v = cpu->vpmu;

    if (is_beyond_registers(v)) {
        pebs_reset(v);
        error_report("The source's PEBS has bits in its registers that this "
                     "CPU does not have; use the source's CPU model.");
        return -EINVAL;
    }
    pmu_begin(v->pmu);
    v->ops->update(v);
    pmu_commit(v->pmu);
    return 0;
}

static const VMStateDescription vmstate_written = {
    .name = "cpu/vpmu/pebs/written",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(ds_area, X86VPmu),
        VMSTATE_UINT64(pebs_enable, X86VPmu),
        VMSTATE_UINT64(pebs_ld_lat, X86VPmu),
        VMSTATE_UINT64(pebs_data_cfg, X86VPmu),
        VMSTATE_END_OF_LIST()
    }
};

const VMStateDescription vmstate_x86_vpmu_pebs = {
    .name = "cpu/vpmu/pebs",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = pebs_needed,
    .pre_load = pebs_pre_load,
    .post_load = pebs_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(vpmu, X86CPU, vmstate_written, X86VPmu),
        VMSTATE_END_OF_LIST()
    }
};

const X86VPmuFeature intel_pebs = {
    .msrs = pebs_msrs,
    .state = pebs_state,
    .offers = pebs_offers,
    .lacks = pebs_lacks,
    .init = pebs_init,
    .reset = pebs_reset,
    .ends_at_init = pebs_is_there,
    .evtsel = pebs_evtsel_bits,
    .fixed_ctrl = pebs_fixed_ctrl_bits,
    .inuse = pebs_inuse_bits,
    .event = pebs_event,
    .update = pebs_update,
    .skips = pebs_skips,
    .written = pebs_written,
    .claims = pebs_counters,
    .overflow = pebs_overflow,
    .is_used = pebs_is_used,
    .describe = pebs_describe,
};
