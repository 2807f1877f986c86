/*
 * Fuzzer of the virtual PMU: a reference of x86's registers
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qemu/host-utils.h"
#include "tests/qtest/vpmu-bits.h"
#include "core-reference.h"
#include "x86-memory.h"
#include "x86-reference.h"

#define MAX_COUNTERS 16
#define MAX_LBRS 32
#define WIDTH 48

static const RefX86 *pmu;
RefX86State ref_state;

/* The registers of a branch record */
typedef struct Record {
    uint64_t from, to, info;
    bool timed;
} Record;

static struct Registers {
    uint64_t evtsel[8];
    uint64_t value[MAX_COUNTERS];
    uint64_t owed[MAX_COUNTERS];
    uint64_t fixed_ctrl, global_ctrl, status, debugctl;
    uint64_t lbr_select, lbr_config, lbr_tos;
    Record records[MAX_LBRS];
    uint64_t lbr_ctl, lbr_depth;
    Record ler;
    uint64_t ds_area, pebs_enable, ld_lat, data_cfg;
    uint64_t offcore[2];
    uint64_t parts[4];
    uint64_t armed;
    uint64_t saved_debugctl, saved_lbren;
    uint64_t insns[8];
} regs, remembered;

/*
 * Selectors
 */

/* The event by which PEBS samples loads, and the latency of each load */
#define CODE_LOAD_LATENCY 0x01cd
#define LATENCY           32

/* With a core: of a load that hits, and that misses one level or both */
#define LATENCY_OF_L1     4
#define LATENCY_OF_LAST   7
#define LATENCY_OF_MEMORY 14

static unsigned nr_counters(void)
{
    return pmu->nr_gp + pmu->nr_fixed;
}

static bool is_gp(unsigned i)
{
    return i < pmu->nr_gp;
}

/* The four bits of a fixed counter: OS, user, any thread, interrupt. */
static unsigned fixed_field(unsigned i)
{
    return regs.fixed_ctrl >> 4 * (i - pmu->nr_gp) & 0xf;
}

static uint64_t status_bit(unsigned i)
{
    return is_gp(i) ? BIT_ULL(i) : BIT_ULL(32 + i - pmu->nr_gp);
}

/* The fourth fixed counter counts slots. */
static unsigned slots_counter(void)
{
    return pmu->nr_gp + 3;
}

static bool is_slots(unsigned i)
{
    return pmu->slots && i == slots_counter();
}

static bool has_baseline(void)
{
    return pmu->pebs >= 4;
}

/* Without the baseline, bits from 32 on are not for fixed counters. */
static bool is_sampled(unsigned i)
{
    return regs.pebs_enable & status_bit(i) && (is_gp(i) || has_baseline());
}

/* The counter has overflowed in SMM and waits for the first event after it. */
static bool is_armed(unsigned i)
{
    return regs.armed & status_bit(i);
}

static bool interrupts(unsigned i)
{
    if (is_sampled(i)) {
        return false;
    }
    return is_gp(i) ? regs.evtsel[i] & SEL_INT : fixed_field(i) & 8;
}

static bool runs(unsigned i)
{
    bool enabled = is_gp(i) ? regs.evtsel[i] & SEL_EN : fixed_field(i) & 3;

    if (pmu->version >= 2) {
        enabled = enabled && regs.global_ctrl & status_bit(i);
    }
    return enabled && !(regs.status & STATUS_CTR_FRZ);
}

static bool is_denied(uint16_t code)
{
    for (const uint16_t *d = pmu->denied; d && *d; d++) {
        if (*d == code) {
            return true;
        }
    }
    return false;
}

/*
 * MSR_OFFCORE_RSP_x: requests that read, that write, and that fetch; what may
 * answer them: any, the last level in some state, memory; and whether other
 * cores need not be asked, or were not
 */
#define OFFCORE_REQUESTS 0x7
#define OFFCORE_ANY      BIT_ULL(16)
#define OFFCORE_LAST     MAKE_64BIT_MASK(18, 4)
#define OFFCORE_MEMORY   BIT_ULL(26)
#define OFFCORE_SNOOPS   MAKE_64BIT_MASK(31, 2)

/* What answers, of all requests of each kind: anything, last level, memory */
static const PmuTallies answered[8][3] = {
    [1] = { T(L1D_LOAD_MISSES), T(LLC_LOAD_HITS), T(LLC_LOAD_MISSES) },
    [2] = { T(L1D_STORE_MISSES), 0, T(LLC_STORE_MISSES) },
    [4] = { T(L1I_MISSES), 0, T(LLC_FETCH_MISSES) },
    [3] = { T(L1D_MISSES), 0, 0 },
    [7] = { T(LLC_REFS), 0, T(LLC_MISSES) },
};

static PmuTallies tallies_of_offcore(uint64_t rsp)
{
    const PmuTallies *by = answered[rsp & OFFCORE_REQUESTS];

    if (rsp & OFFCORE_ANY) {
        return by[0];
    }
    if (!(rsp & OFFCORE_SNOOPS)) {
        return 0;
    }
    return rsp & OFFCORE_LAST && rsp & OFFCORE_MEMORY ? by[0]
           : rsp & OFFCORE_LAST ? by[1] : rsp & OFFCORE_MEMORY ? by[2] : 0;
}

/* The loads that are slower than MSR_PEBS_LD_LAT says */
static PmuTallies tallies_of_long_loads(void)
{
    uint64_t least = regs.ld_lat;

    if (!pmu->core) {
        return least < LATENCY ? T(LOADS) : 0;
    }
    return least < LATENCY_OF_L1 ? T(LOADS)
           : least < LATENCY_OF_LAST ? T(L1D_LOAD_MISSES)
           : least < LATENCY_OF_MEMORY ? T(LLC_LOAD_MISSES) : 0;
}

static PmuTallies tallies_of(unsigned i)
{
    static const PmuTally fixed[] = {
        PMU_TALLY_INSNS, PMU_TALLY_CYCLES, PMU_TALLY_REF_CYCLES,
        PMU_TALLY_CYCLES,
    };
    uint64_t selector = regs.evtsel[is_gp(i) ? i : 0];
    uint64_t code = selector & (pmu->amd ? 0xf0000ffff : 0xffff | SEL_UMASK2);

    if (!is_gp(i)) {
        return pmu->fixed_denied >> (i - pmu->nr_gp) & 1
               ? 0 : BIT(fixed[i - pmu->nr_gp]);
    }
    if (pmu->offcore && (code == 0x01b7 || code == 0x01bb)) {
        return tallies_of_offcore(regs.offcore[code == 0x01bb]);
    }
    for (const RefEvent *e = pmu->events; e->code; e++) {
        if (e->code == code && !is_denied(code)) {
            return code == CODE_LOAD_LATENCY ? tallies_of_long_loads()
                                             : e->tallies;
        }
    }
    return 0;
}

/*
 * Modes: bit 0 is user, bit 1 an SVM guest, bit 2 SMM.  The host's processor
 * does not see the SMM of KVM's guests.
 */
static bool counts_in(unsigned i, unsigned mode)
{
    uint64_t side = regs.evtsel[is_gp(i) ? i : 0] & (SEL_GUEST | SEL_HOST);
    bool os = is_gp(i) ? regs.evtsel[i] & SEL_OS : fixed_field(i) & 1;
    bool user = is_gp(i) ? regs.evtsel[i] & SEL_USR : fixed_field(i) & 2;

    bool freezes = regs.debugctl & DEBUGCTL_FREEZE_IN_SMM && !pmu->kvm;

    if (mode & 4 && (freezes || is_armed(i))) {
        return false;
    }
    if (pmu->amd && side) {
        if (!ref_state.svme || !(side & (mode & 2 ? SEL_GUEST : SEL_HOST))) {
            return false;
        }
    }
    return mode & 1 ? user : os;
}

/*
 * Thresholds, inversion and edges.  No cycle has two events, so that a
 * threshold is equalled if it is reached.  An inverted counter counts cycles
 * with fewer events than the threshold; each event is subtracted from the
 * cycles that follow.
 */

static bool is_cycles(PmuTallies tallies)
{
    return tallies == BIT(PMU_TALLY_CYCLES)
           || tallies == BIT(PMU_TALLY_REF_CYCLES);
}

/* With a threshold above 1: no cycle has two events. */
static bool counts_above_one(uint64_t sel, PmuTally tally)
{
    return sel & SEL_INV && tally == (sel & SEL_EDGE ? PMU_TALLY_WAKEUPS
                                                     : PMU_TALLY_CYCLES);
}

/* The events that are subtracted, if the counter counts cycles without them. */
static PmuTallies quiet_events(unsigned i)
{
    uint64_t sel = is_gp(i) ? regs.evtsel[i] : 0;
    PmuTallies events = tallies_of(i);

    return (sel >> 24 & 0xff) == 1 && sel & SEL_INV && !(sel & SEL_EDGE)
           && !is_cycles(events) ? events : 0;
}

static bool counts_quiet_cycle(unsigned i, PmuTally tally)
{
    if (tally != PMU_TALLY_CYCLES) {
        regs.owed[i] += quiet_events(i) >> tally & 1;
        return false;
    }
    if (regs.owed[i]) {
        regs.owed[i]--;
        return false;
    }
    return true;
}

static bool counts(unsigned i, PmuTally tally)
{
    PmuTallies events = tallies_of(i);
    uint64_t sel = is_gp(i) ? regs.evtsel[i] : 0;
    unsigned threshold = sel >> 24 & 0xff;

    if (!events) {
        return false;
    }
    if (threshold > 1) {
        return counts_above_one(sel, tally);
    }
    if (quiet_events(i)) {
        return counts_quiet_cycle(i, tally);
    }
    if (is_cycles(events) && threshold == 1 && sel & SEL_INV) {
        return false;
    }
    if (is_cycles(events) && sel & SEL_EDGE) {
        return tally == PMU_TALLY_WAKEUPS;
    }
    return events & BIT(tally);
}

/*
 * Branch records.  Intel's model-specific records form a ring; with AMD's and
 * with architectural ones, the newest record is always the first.
 */

/* The number of cycles in Intel's records */
#define INFO_CYCLES  MAKE_64BIT_MASK(0, 16)
#define TO_CYCLES    MAKE_64BIT_MASK(48, 16)

static bool has_arch_lbrs(void)
{
    return pmu->lbr_format == 0x3f;
}

static bool has_model_lbrs(void)
{
    return pmu->lbrs && !has_arch_lbrs();
}

static bool is_newest_first(void)
{
    return pmu->amd || has_arch_lbrs();
}

static unsigned nr_lbrs(void)
{
    return has_arch_lbrs() ? regs.lbr_depth : pmu->lbrs;
}

static bool has_infos(void)
{
    return pmu->lbr_format == 5 || pmu->lbr_format == 7 || has_arch_lbrs();
}

/*
 * PEBS records, as in the SDM, volume 3B, "Processor Event Based Sampling"
 */

#define FIXED_ADAPTIVE(n) BIT_ULL(32 + 4 * (n))
#define LOAD_LATENCY(n)   BIT_ULL(32 + (n))

/* MSR_PEBS_DATA_CFG */
#define CFG_MEMORY BIT_ULL(0)
#define CFG_GPRS   BIT_ULL(1)
#define CFG_XMMS   BIT_ULL(2)
#define CFG_LBRS   BIT_ULL(3)

/* The level of caches that an access hits, or memory; a miss of the TLB */
#define SOURCE_L1         1
#define SOURCE_LAST       4
#define SOURCE_MEMORY     0xa
#define SOURCE_TLB_MISSED 0x10

#define OF_ACCESSES (BIT(PMU_TALLY_LOADS) | BIT(PMU_TALLY_STORES))
/* Counters of these record the access. */
#define OF_DATA                                                             \
    (OF_ACCESSES | T(L1D_MISSES) | T(L1D_LOAD_MISSES) | T(L1D_LOAD_HITS)    \
     | T(LLC_LOAD_HITS) | T(LLC_LOAD_MISSES))
#define OF_INSNS                                                           \
    (BIT(PMU_TALLY_INSNS) | BIT(PMU_TALLY_COND_TAKEN)                      \
     | BIT(PMU_TALLY_COND_NOT_TAKEN) | BIT(PMU_TALLY_JUMPS)                \
     | BIT(PMU_TALLY_INDIRECT_JUMPS) | BIT(PMU_TALLY_CALLS)                \
     | BIT(PMU_TALLY_INDIRECT_CALLS) | BIT(PMU_TALLY_RETURNS)              \
     | BIT(PMU_TALLY_FAR_BRANCHES) | OF_ACCESSES)

/* The basic group, four others, and 256 branches */
#define MAX_WORDS (4 + 4 + 18 + 32 + 3 * 256)

typedef struct PebsRecord {
    uint64_t words[MAX_WORDS], unknown[MAX_WORDS];
    unsigned nr;
} PebsRecord;

/**
 * struct Sample - an event to record
 * @counters: the counters that have overflowed
 * @events: the events that happened at the same time, and
 * @mode: their mode
 */
typedef struct Sample {
    uint64_t counters;
    PmuTallies events;
    unsigned mode;
} Sample;

/* The instruction that is executed now, if a core sees it, and its events */
static struct Stepped {
    const FuzzInsn *insn;
    RefTimes times;
} stepped;

/* An instruction's address follows from its events, and differs with these. */
uint64_t ref_pc(PmuTallies events)
{
    return 0x401000 + 16 * (uint64_t)(events & ~BIT(PMU_TALLY_INSNS));
}

uint64_t ref_data(PmuTallies events, unsigned mode)
{
    return 0xffff880000002000 + ref_pc(events) + 8 * mode;
}

static bool is_sample_of(const Sample *s, unsigned i)
{
    return s->counters >> i & 1;
}

/* Events without an instruction are noticed before the next instruction. */
static uint64_t eventing_ip(const Sample *s)
{
    return stepped.insn ? stepped.insn->pc
           : s->events & OF_INSNS ? ref_pc(s->events) : REF_IP;
}

static uint64_t applicable_counters(const Sample *s)
{
    uint64_t bits = 0;

    for (unsigned i = 0; i < nr_counters(); i++) {
        bits |= is_sample_of(s, i) ? status_bit(i) : 0;
    }
    return bits;
}

/* Only a counter of accesses records the access. */
static bool tells_access(const Sample *s)
{
    PmuTallies counted = 0;

    for (unsigned i = 0; i < nr_counters(); i++) {
        counted |= is_sample_of(s, i) ? tallies_of(i) : 0;
    }
    return counted & OF_DATA && s->events & OF_ACCESSES;
}

static unsigned times_of(PmuTallies any)
{
    unsigned times = 0;

    for (unsigned t = 0; t < PMU_TALLY__MAX; t++) {
        times += any >> t & 1 ? stepped.times.of[t] : 0;
    }
    return times;
}

/* What no core has seen hits. */
static uint64_t source(void)
{
    unsigned tlb_misses = times_of(T(DTLB_LOAD_MISSES) | T(DTLB_STORE_MISSES));

    return (times_of(T(LLC_LOAD_MISSES) | T(LLC_STORE_MISSES)) ? SOURCE_MEMORY
            : times_of(T(L1D_MISSES)) ? SOURCE_LAST : SOURCE_L1)
           | (tlb_misses ? SOURCE_TLB_MISSED : 0);
}

static uint64_t latency(void)
{
    switch (source() & ~SOURCE_TLB_MISSED) {
    case SOURCE_MEMORY:
        return LATENCY_OF_MEMORY;
    case SOURCE_LAST:
        return LATENCY_OF_LAST;
    default:
        return pmu->core ? LATENCY_OF_L1 : LATENCY;
    }
}

static uint64_t data_address(const Sample *s)
{
    return stepped.insn ? stepped.insn->data : ref_data(s->events, s->mode);
}

static bool tells_latency(const Sample *s)
{
    bool tells = false;

    for (unsigned i = 0; i < pmu->nr_gp; i++) {
        tells |= is_sample_of(s, i)
                 && extract64(regs.evtsel[i], 0, 16) == CODE_LOAD_LATENCY
                 && (pmu->version >= 5 || regs.pebs_enable & LOAD_LATENCY(i));
    }
    return tells && tells_access(s);
}

static void put(PebsRecord *r, uint64_t word)
{
    r->unknown[r->nr] = 0;
    r->words[r->nr++] = word;
}

/* The general registers, which are not in the order of their numbers */
static const uint8_t old_order[] = {
    0, 3, 1, 2, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15,
};

static void put_gprs(PebsRecord *r, const uint8_t *order)
{
    put(r, REF_FLAGS);
    put(r, REF_IP);
    for (unsigned i = 0; i < 16; i++) {
        put(r, REF_GPR(order ? order[i] : i));
    }
}

static void put_access(PebsRecord *r, const Sample *s)
{
    uint64_t cycles = tells_latency(s) ? latency() : 0;

    put(r, tells_access(s) ? data_address(s) : 0);
    put(r, tells_access(s) ? source() : 0);
    put(r, cycles | (pmu->both_latencies ? cycles << 32 : 0));
}

static void make_fixed(PebsRecord *r, const Sample *s)
{
    put_gprs(r, old_order);
    put(r, applicable_counters(s));
    put_access(r, s);
    if (pmu->pebs >= 2) {
        put(r, eventing_ip(s));
        put(r, 0);
    }
    if (pmu->pebs >= 3) {
        put(r, REF_TIME);
    }
}

static bool is_adaptive(const Sample *s)
{
    bool adaptive = false;

    for (unsigned i = 0; i < nr_counters(); i++) {
        adaptive |= is_sample_of(s, i)
                    && (is_gp(i) ? regs.evtsel[i] & SEL_ADAPTIVE
                        : regs.fixed_ctrl & FIXED_ADAPTIVE(i - pmu->nr_gp));
    }
    return adaptive;
}

/* The newest one has age 0. */
static Record record_of_age(unsigned age)
{
    bool on = has_arch_lbrs() ? regs.lbr_ctl & CTL_LBREN
                              : regs.debugctl & DEBUGCTL_LBR;

    if (!on || !pmu->lbrs || age >= nr_lbrs()) {
        return (Record) { };
    }
    return regs.records[is_newest_first() ? age
                        : (regs.lbr_tos - age) % nr_lbrs()];
}

static void put_branch(PebsRecord *r, Record branch)
{
    put(r, branch.from);
    put(r, branch.to);
    put(r, has_infos() ? branch.info : 0);
    r->unknown[r->nr - 1] = has_infos() && branch.timed ? INFO_CYCLES : 0;
}

/* Branches are the only group with a number of entries. */
static void make_chosen(PebsRecord *r, const Sample *s)
{
    uint64_t groups = is_adaptive(s) ? regs.data_cfg : 0;
    unsigned entries = groups & CFG_LBRS ? extract64(groups, 24, 8) + 1 : 0;

    put(r, 0);
    put(r, eventing_ip(s));
    put(r, applicable_counters(s));
    put(r, REF_TIME);
    if (groups & CFG_MEMORY) {
        put_access(r, s);
        put(r, 0);
    }
    if (groups & CFG_GPRS) {
        put_gprs(r, NULL);
    }
    for (unsigned i = 0; groups & CFG_XMMS && i < 32; i++) {
        put(r, REF_XMM(i));
    }
    for (unsigned age = 0; age < entries; age++) {
        put_branch(r, record_of_age(age));
    }
    r->words[0] = (entries ? groups : extract64(groups, 0, 24))
                  | (uint64_t)r->nr * 8 << 48;
}

static void append(const Sample *s)
{
    static PebsRecord r;
    uint64_t index, maximum;
    unsigned size;

    if (!ref_read_word(regs.ds_area + REF_DS_INDEX, &index)
        || !ref_read_word(regs.ds_area + REF_DS_MAXIMUM, &maximum)) {
        return;
    }
    r.nr = 0;
    if (has_baseline()) {
        make_chosen(&r, s);
    } else {
        make_fixed(&r, s);
    }
    size = r.nr * 8;
    if (index > maximum || maximum - index < size
        || !ref_can_write(index, size)
        || !ref_can_write(regs.ds_area + REF_DS_INDEX, 8)) {
        return;
    }
    for (unsigned i = 0; i < r.nr; i++) {
        ref_write_word(index + 8 * i, r.words[i], r.unknown[i]);
    }
    ref_write_word(regs.ds_area + REF_DS_INDEX, index + size, 0);
}

/* Before format 3, each counter has its own record. */
static void append_all(const Sample *s)
{
    if (pmu->pebs >= 3) {
        append(s);
        return;
    }
    for (unsigned i = 0; i < nr_counters(); i++) {
        if (is_sample_of(s, i)) {
            append(&(const Sample) { BIT_ULL(i), s->events, s->mode });
        }
    }
}

static void load_counter(unsigned i)
{
    unsigned slot = is_gp(i) ? i : 8 + i - pmu->nr_gp;
    uint64_t val;

    if (ref_read_word(regs.ds_area + REF_DS_RESET + 8 * slot, &val)) {
        regs.value[i] = val & MAKE_64BIT_MASK(0, WIDTH);
        regs.owed[i] = 0;
    }
}

static bool is_full(void)
{
    uint64_t index, threshold;

    return ref_read_word(regs.ds_area + REF_DS_INDEX, &index)
           && ref_read_word(regs.ds_area + REF_DS_THRESHOLD, &threshold)
           && index >= threshold;
}

/* Overflows in SMM, and that of the RSM, are not recorded: counters wait. */
static void arm(const Sample *s)
{
    for (unsigned i = 0; i < nr_counters(); i++) {
        if (is_sample_of(s, i)) {
            regs.armed |= status_bit(i);
            regs.value[i] = MAKE_64BIT_MASK(0, WIDTH);
            regs.owed[i] = 0;
        }
    }
}

/* Returns: whether the buffer is full, which interrupts */
static bool take_sample(const Sample *s)
{
    if (ref_state.smm || (s->events & OF_INSNS && s->mode & 4)) {
        arm(s);
        return false;
    }
    regs.armed &= ~applicable_counters(s);
    append_all(s);
    for (unsigned i = 0; i < nr_counters(); i++) {
        if (is_sample_of(s, i)) {
            load_counter(i);
        }
    }
    regs.status |= is_full() ? STATUS_OVF_BUF : 0;
    return is_full();
}

bool ref_ds_field(unsigned offset, uint64_t *addr)
{
    *addr = (uint32_t)(regs.ds_area + offset);
    return ref_can_write(*addr, 8);
}

/*
 * Overflow
 */

static void raise_pmi(void)
{
    if (ref_state.lvtpc & REF_LVT_MASKED) {
        return;
    }
    ref_state.nmi = true;
    if (!pmu->amd) {
        ref_state.lvtpc |= REF_LVT_MASKED;
    }
}

static bool freezes_by_status(void)
{
    return pmu->amd || pmu->version >= 4;
}

static void freeze(void)
{
    if (freezes_by_status()) {
        regs.status |= STATUS_CTR_FRZ;
    } else {
        regs.global_ctrl = 0;
    }
}

static void freeze_lbrs(void)
{
    if (freezes_by_status()) {
        regs.status |= STATUS_LBR_FRZ;
    } else {
        regs.debugctl &= ~DEBUGCTL_LBR;
    }
}

/*
 * @metrics: one of those that MSR_PERF_METRICS is made of has overflowed, which
 *           interrupts as the counter of slots does
 */
static void overflow(uint64_t counters, bool metrics, PmuTallies events,
                     unsigned mode)
{
    Sample sample = { .events = events, .mode = mode };
    bool pmi = metrics && interrupts(slots_counter());

    regs.status |= metrics ? GLOBAL_METRICS : 0;
    for (unsigned i = 0; i < nr_counters(); i++) {
        if (counters >> i & 1 && is_sampled(i)) {
            sample.counters |= BIT_ULL(i);
        } else if (counters >> i & 1) {
            pmi |= interrupts(i);
            regs.status |= pmu->version >= 2 ? status_bit(i) : 0;
        }
    }
    if (sample.counters) {
        pmi |= take_sample(&sample);
    }
    if (pmi) {
        if (regs.debugctl & DEBUGCTL_FREEZE_ON_PMI) {
            freeze();
        }
        if (regs.debugctl & DEBUGCTL_FREEZE_LBRS) {
            freeze_lbrs();
        }
        raise_pmi();
    }
}

/* Returns: whether it overflows */
static bool add(uint64_t *value, uint64_t number)
{
    uint64_t before = *value;

    *value = (before + number) & MAKE_64BIT_MASK(0, WIDTH);
    return *value < before;
}

static bool advance(unsigned i, PmuTally tally, unsigned mode)
{
    if (!runs(i) || !counts_in(i, mode) || !counts(i, tally)) {
        return false;
    }
    return add(&regs.value[i], is_slots(i) ? pmu->slots : 1);
}

/* The slots by their cause: retiring, speculation, frontend and backend */
static bool advance_parts(const RefTimes *times, unsigned mode)
{
    static const PmuTally causes[] = {
        PMU_TALLY_RETIRING_CYCLES, PMU_TALLY_SPECULATION_CYCLES,
        PMU_TALLY_FRONTEND_CYCLES, PMU_TALLY_BACKEND_CYCLES,
    };
    bool over = false;

    if (!pmu->slots || !(regs.global_ctrl & GLOBAL_METRICS)
        || !runs(slots_counter()) || !counts_in(slots_counter(), mode)) {
        return false;
    }
    for (unsigned n = 0; n < ARRAY_SIZE(causes); n++) {
        over |= add(&regs.parts[n],
                    (uint64_t)times->of[causes[n]] * pmu->slots);
    }
    return over;
}

static bool advance_by_all(unsigned i, PmuTallies events, unsigned mode)
{
    bool over = false;

    for (unsigned t = 0; t < PMU_TALLY__MAX; t++) {
        over |= events >> t & 1 && advance(i, t, mode);
    }
    return over;
}

static bool advance_by(unsigned i, PmuTally tally, const RefTimes *times,
                       unsigned mode)
{
    bool over = false;

    for (unsigned n = 0; n < times->of[tally]; n++) {
        over |= advance(i, tally, mode);
    }
    return over;
}

/*
 * Cycles come after the events that they may be without.  Misses of TLBs are
 * subtracted from later cycles, as without a core: they come last.
 */
static bool advance_by_times(unsigned i, const RefTimes *times, unsigned mode)
{
    static const PmuTally last[] = {
        PMU_TALLY_CYCLES, PMU_TALLY_REF_CYCLES, PMU_TALLY_DTLB_LOAD_MISSES,
        PMU_TALLY_DTLB_STORE_MISSES, PMU_TALLY_ITLB_MISSES,
    };
    bool over = false;

    for (unsigned t = PMU_TALLY_CORE_FIRST; t < PMU_TALLY__MAX; t++) {
        over |= advance_by(i, t, times, mode);
    }
    for (unsigned n = 0; n < ARRAY_SIZE(last); n++) {
        over |= advance_by(i, last[n], times, mode);
    }
    return over;
}

/* Let events and cycles happen at the same time. */
static void happen(PmuTallies events, unsigned mode, const RefTimes *times)
{
    bool metrics = advance_parts(times, mode);
    uint64_t overflowed = 0;

    for (unsigned i = 0; i < nr_counters(); i++) {
        bool over = advance_by_all(i, events, mode);

        over |= advance_by_times(i, times, mode);
        overflowed |= (uint64_t)over << i;
    }
    if (overflowed || metrics) {
        overflow(overflowed, metrics, events, mode);
    }
}

/* The number of whole cycles is that of instructions times a factor. */
static unsigned cycles_of_next(unsigned mode)
{
    uint64_t before = regs.insns[mode]++ * pmu->cpi / 1000;

    return regs.insns[mode] * pmu->cpi / 1000 - before;
}

static void happen_all(PmuTallies events, unsigned mode, RefTimes *times)
{
    if (pmu) {
        bool retires = events & BIT(PMU_TALLY_INSNS);

        unsigned cycles = retires ? cycles_of_next(mode) : 0;

        times->of[PMU_TALLY_RETIRING_CYCLES] += cycles;
        times->of[PMU_TALLY_CYCLES] += cycles;
        times->of[PMU_TALLY_REF_CYCLES] += cycles;
        happen(events, mode, times);
    }
}

void ref_happen(PmuTallies events, unsigned mode)
{
    RefTimes times = { };

    happen_all(events, mode, &times);
}

void ref_step(const FuzzInsn *insn, PmuTallies events, unsigned mode)
{
    RefTimes times = ref_core_step(pmu->private ? mode & 1 : 0, insn);

    stepped = (struct Stepped) { insn, times };
    happen_all(events, mode, &times);
    stepped = (struct Stepped) { };
}

/*
 * Branch records
 */

/* IA32_LBR_CTL: the kinds of branches */
#define CTL_KINDS MAKE_64BIT_MASK(16, 7)

/* IA32_LBR_x_INFO; type 8 and above are other branches. */
#define INFO_TYPE         56
#define INFO_CYCLES_VALID BIT_ULL(60)

static bool are_lbrs_enabled(void)
{
    return pmu->amd ? regs.lbr_config
           : has_arch_lbrs() ? regs.lbr_ctl & CTL_LBREN
           : regs.debugctl & DEBUGCTL_LBR;
}

static bool records_branches(void)
{
    return pmu->lbrs && !(regs.status & STATUS_LBR_FRZ) && are_lbrs_enabled();
}

static uint64_t exclusion_of(PmuBranchKind kind)
{
    if (kind & PMU_BRANCH_CONDITIONAL) {
        return NO_COND;
    }
    switch (kind) {
    case PMU_BRANCH_CALL:
        return NO_CALL;
    case PMU_BRANCH_CALL_NEXT:
        return NO_CALL | CALL_STACK;
    case PMU_BRANCH_INDIRECT_CALL:
        return NO_IND_CALL;
    case PMU_BRANCH_RETURN:
        return NO_RETURN;
    case PMU_BRANCH_INDIRECT_JUMP:
        return NO_IND_JUMP;
    case PMU_BRANCH_JUMP:
        return NO_JUMP;
    default:
        return NO_FAR;
    }
}

/* Architectural records: the bit that enables a kind, and the kind's type */
typedef struct ArchKind {
    unsigned bit, type;
} ArchKind;

static ArchKind arch_kind(PmuBranchKind kind)
{
    if (kind & PMU_BRANCH_CONDITIONAL) {
        return (ArchKind) { 16, 0 };
    }
    switch (kind) {
    case PMU_BRANCH_JUMP:
        return (ArchKind) { 17, 2 };
    case PMU_BRANCH_INDIRECT_JUMP:
        return (ArchKind) { 18, 1 };
    case PMU_BRANCH_CALL:
    case PMU_BRANCH_CALL_NEXT:
        return (ArchKind) { 19, 4 };
    case PMU_BRANCH_INDIRECT_CALL:
        return (ArchKind) { 20, 3 };
    case PMU_BRANCH_RETURN:
        return (ArchKind) { 21, 5 };
    default:
        return (ArchKind) { 22, 8 };
    }
}

/* A call of the next instruction does not count as a call. */
static bool ctl_wants(PmuBranchKind kind, unsigned mode)
{
    return regs.lbr_ctl & (mode & 1 ? CTL_USR : CTL_OS)
           && regs.lbr_ctl & BIT_ULL(arch_kind(kind).bit)
           && kind != PMU_BRANCH_CALL_NEXT;
}

static bool select_wants(PmuBranchKind kind, unsigned mode)
{
    uint64_t exclusion = mode & 1 ? NO_RING_3 : NO_RING_0;

    return !(regs.lbr_select & (exclusion | exclusion_of(kind)));
}

static bool has_cycles_in_to(void)
{
    return pmu->lbr_format == 6;
}

static bool records_branch(PmuBranchKind kind, unsigned mode)
{
    return records_branches() && !(mode & 4)
           && (has_arch_lbrs() ? ctl_wants(kind, mode)
                               : select_wants(kind, mode));
}

static unsigned bits_in_from(void)
{
    bool flag = pmu->lbr_format == 3 || has_cycles_in_to()
                || (pmu->lbr_format == 1 && !pmu->unfiltered);

    return flag ? 63 : pmu->lbr_format == 4 ? 61 : 64;
}

static uint64_t shown_info(const PmuBranch *branch)
{
    return has_arch_lbrs() ? (uint64_t)arch_kind(branch->kind).type << INFO_TYPE
                             | INFO_CYCLES_VALID : 0;
}

/* Flags are above the addresses; the PMU sets only AMD's valid bit. */
static Record shown(const PmuBranch *branch)
{
    if (pmu->amd) {
        return (Record) {
            .from = extract64(branch->from, 0, 63),
            .to = extract64(branch->to, 0, 61) | AMD_TO_VALID,
        };
    }
    return (Record) {
        .from = extract64(branch->from, 0, bits_in_from()),
        .to = has_cycles_in_to() ? branch->to & ~TO_CYCLES : branch->to,
        .info = shown_info(branch),
        .timed = true,
    };
}

static void push(const PmuBranch *branch)
{
    if (is_newest_first()) {
        memmove(regs.records + 1, regs.records,
                (nr_lbrs() - 1) * sizeof(Record));
        regs.records[0] = shown(branch);
    } else {
        regs.lbr_tos = (regs.lbr_tos + 1) % pmu->lbrs;
        regs.records[regs.lbr_tos] = shown(branch);
    }
}

static void pop(void)
{
    if (is_newest_first()) {
        memmove(regs.records, regs.records + 1,
                (nr_lbrs() - 1) * sizeof(Record));
        regs.records[nr_lbrs() - 1] = (Record) { };
    } else {
        regs.records[regs.lbr_tos] = (Record) { };
        regs.lbr_tos = (regs.lbr_tos - 1) % pmu->lbrs;
    }
}

static bool keeps_call_stack(void)
{
    return has_arch_lbrs() ? regs.lbr_ctl & CTL_CALL_STACK
                           : regs.lbr_select & CALL_STACK;
}

void ref_branch(const PmuBranch *branch, unsigned mode)
{
    if (!pmu || !records_branch(branch->kind, mode)) {
        return;
    }
    if (keeps_call_stack() && branch->kind == PMU_BRANCH_RETURN) {
        pop();
    } else {
        push(branch);
    }
}

/* If any branch is recorded, an event copies the last record. */
void ref_event(void)
{
    if (pmu && has_arch_lbrs() && records_branches() && !ref_state.smm
        && regs.lbr_ctl & (CTL_OS | CTL_USR) && regs.lbr_ctl & CTL_KINDS) {
        regs.ler = regs.records[0];
    }
}

void ref_debug_exception(void)
{
    regs.debugctl &= ~(DEBUGCTL_LBR | DEBUGCTL_BTF);
    regs.lbr_ctl &= ~CTL_LBREN;
}

/*
 * An SMI always saves IA32_LBR_CTL.LBREn, and saves IA32_DEBUGCTL if the guest
 * has asked for it.  It does not save AMD's enable.
 */
void ref_smi(void)
{
    ref_state.smm = true;
    if (regs.debugctl & DEBUGCTL_FREEZE_IN_SMM) {
        regs.saved_debugctl = regs.debugctl;
        regs.debugctl &= ~(DEBUGCTL_LBR | DEBUGCTL_BTF);
    }
    regs.saved_lbren = regs.lbr_ctl & CTL_LBREN;
    regs.lbr_ctl &= ~CTL_LBREN;
}

void ref_rsm(void)
{
    ref_state.smm = false;
    if (regs.saved_debugctl) {
        regs.debugctl = regs.saved_debugctl;
    }
    regs.lbr_ctl = (regs.lbr_ctl & ~CTL_LBREN) | regs.saved_lbren;
    regs.saved_debugctl = 0;
    regs.saved_lbren = 0;
}

bool ref_is_used(void)
{
    uint64_t used = regs.fixed_ctrl | regs.status | regs.debugctl
                    | regs.ds_area | regs.pebs_enable | regs.ld_lat
                    | regs.data_cfg | regs.lbr_ctl
                    | regs.offcore[0] | regs.offcore[1];

    for (unsigned n = 0; pmu && pmu->slots && n < 4; n++) {
        used |= regs.parts[n] | regs.value[slots_counter()];
    }
    for (unsigned i = 0; pmu && i < pmu->nr_gp; i++) {
        used |= regs.evtsel[i];
    }
    return used;
}

void ref_begin_cycle(void)
{
    memset(regs.insns, 0, sizeof(regs.insns));
}

/*
 * Registers
 */

typedef enum Kind {
    NONE, EVTSEL, COUNTER, COUNTER_LEGACY, FIXED, FIXED_CTRL, GLOBAL_CTRL,
    STATUS, STATUS_CLEAR, STATUS_SET, INUSE, CAPABILITIES, DEBUGCTL,
    LBR_SELECT, LBR_TOS, LBR_FROM, LBR_TO, LBR_INFO, LBR_CONFIG,
    CORE_LBR_FROM, CORE_LBR_TO, ARCH_LBR_CTL, ARCH_LBR_DEPTH, ARCH_LBR_FROM,
    ARCH_LBR_TO, ARCH_LBR_INFO, LER_FROM, LER_TO, LER_INFO, DS_AREA,
    PEBS_ENABLE, DATA_CFG, LD_LAT, OFFCORE, METRICS,
} Kind;

/* A range of numbers; @version is the first that has these registers. */
typedef struct Range {
    uint32_t first;
    unsigned numbers, step, version;
    Kind kind;
} Range;

static const Range intel_ranges[] = {
    { MSR_CORE_LBR_FROM, 8, 1, 1, CORE_LBR_FROM },
    { MSR_CORE_LBR_TO, 8, 1, 1, CORE_LBR_TO },
    { MSR_PERFCTR0, 8, 1, 1, COUNTER_LEGACY },
    { MSR_EVTSEL0, 8, 1, 1, EVTSEL },
    { MSR_OFFCORE_RSP_0, 2, 1, 1, OFFCORE },
    { MSR_LBR_SELECT, 1, 1, 1, LBR_SELECT },
    { MSR_LBR_TOS, 1, 1, 1, LBR_TOS },
    { MSR_DEBUGCTL, 1, 1, 1, DEBUGCTL },
    { MSR_LER_FROM, 1, 1, 1, LER_FROM },
    { MSR_LER_TO, 1, 1, 1, LER_TO },
    { MSR_LER_INFO, 1, 1, 1, LER_INFO },
    { MSR_FIXED_CTR0, 4, 1, 2, FIXED },
    { MSR_PERF_METRICS, 1, 1, 1, METRICS },
    { MSR_PERF_CAP, 1, 1, 1, CAPABILITIES },
    { MSR_FIXED_CTR_CTRL, 1, 1, 2, FIXED_CTRL },
    { MSR_STATUS, 1, 1, 2, STATUS },
    { MSR_GLOBAL_CTRL, 1, 1, 2, GLOBAL_CTRL },
    { MSR_STATUS_RESET, 1, 1, 2, STATUS_CLEAR },
    { MSR_STATUS_SET, 1, 1, 4, STATUS_SET },
    { MSR_INUSE, 1, 1, 4, INUSE },
    { MSR_PEBS_ENABLE, 1, 1, 1, PEBS_ENABLE },
    { MSR_PEBS_DATA_CFG, 1, 1, 1, DATA_CFG },
    { MSR_PEBS_LD_LAT, 1, 1, 1, LD_LAT },
    { MSR_DS_AREA, 1, 1, 1, DS_AREA },
    { MSR_A_PMC0, 8, 1, 1, COUNTER },
    { MSR_LBR_FROM, 32, 1, 1, LBR_FROM },
    { MSR_LBR_TO, 32, 1, 1, LBR_TO },
    { MSR_LBR_INFO, 32, 1, 1, LBR_INFO },
    { MSR_ARCH_INFO, 64, 1, 1, ARCH_LBR_INFO },
    { MSR_ARCH_CTL, 1, 1, 1, ARCH_LBR_CTL },
    { MSR_ARCH_DEPTH, 1, 1, 1, ARCH_LBR_DEPTH },
    { MSR_ARCH_FROM, 64, 1, 1, ARCH_LBR_FROM },
    { MSR_ARCH_TO, 64, 1, 1, ARCH_LBR_TO },
    { MSR_PMC_GP0_CTR, 8, 4, 6, COUNTER },
    { MSR_PMC_GP0_CFG_A, 8, 4, 6, EVTSEL },
    { MSR_PMC_FX0_CTR, 4, 4, 6, FIXED },
    { }
};

static const Range amd_ranges[] = {
    { MSR_DEBUGCTL, 1, 1, 1, DEBUGCTL },
    { MSR_LEGACY_EVTSEL0, 4, 1, 1, EVTSEL },
    { MSR_LEGACY_CTR0, 4, 1, 1, COUNTER },
    { MSR_CTL0, 6, 2, 1, EVTSEL },
    { MSR_CTR0, 6, 2, 1, COUNTER },
    { MSR_AMD_STATUS, 1, 1, 2, STATUS },
    { MSR_AMD_CTL, 1, 1, 2, GLOBAL_CTRL },
    { MSR_AMD_STATUS_CLR, 1, 1, 2, STATUS_CLEAR },
    { MSR_AMD_STATUS_SET, 1, 1, 2, STATUS_SET },
    { MSR_AMD_LBR_SELECT, 1, 1, 1, LBR_SELECT },
    { MSR_DBG_EXTN_CFG, 1, 1, 1, LBR_CONFIG },
    { MSR_AMD_LBR_FROM, 16, 2, 1, LBR_FROM },
    { MSR_AMD_LBR_TO, 16, 2, 1, LBR_TO },
    { }
};

/* How many of these registers this PMU has, if its version has them. */
static unsigned count_of(const Range *r)
{
    switch (r->kind) {
    case CAPABILITIES:
        return pmu->no_capabilities ? 0 : 1;
    case COUNTER:
        if (pmu->no_capabilities) {
            return 0;
        }
        /* fall through */
    case EVTSEL:
    case COUNTER_LEGACY:
        return r->step == 2 && pmu->nr_gp < 6 ? 0 : pmu->nr_gp;
    case FIXED:
        return pmu->nr_fixed;
    case LBR_SELECT:
        return has_model_lbrs() && !pmu->unfiltered ? 1 : 0;
    case LBR_TOS:
    case LBR_CONFIG:
        return has_model_lbrs() ? 1 : 0;
    case LBR_FROM:
    case LBR_TO:
        return has_model_lbrs() && !pmu->unfiltered ? pmu->lbrs : 0;
    case CORE_LBR_FROM:
    case CORE_LBR_TO:
        return pmu->unfiltered ? pmu->lbrs : 0;
    case LBR_INFO:
        return has_infos() && has_model_lbrs() ? pmu->lbrs : 0;
    case ARCH_LBR_CTL:
    case ARCH_LBR_DEPTH:
    case LER_INFO:
        return has_arch_lbrs() ? 1 : 0;
    case ARCH_LBR_FROM:
    case ARCH_LBR_TO:
    case ARCH_LBR_INFO:
        return has_arch_lbrs() ? pmu->lbrs : 0;
    case DATA_CFG:
        return has_baseline() ? 1 : 0;
    case DS_AREA:
    case PEBS_ENABLE:
    case LD_LAT:
        return pmu->pebs ? 1 : 0;
    case OFFCORE:
        return 2;
    default:
        return 1;
    }
}

/* Some registers only come with a modelled core. */
static bool is_known(Kind kind)
{
    return kind == OFFCORE ? pmu->offcore
           : kind == METRICS ? pmu->slots : true;
}

/* Returns: NONE if no PMU has this register */
static Kind kind_of(uint32_t msr, unsigned *i, bool *exists)
{
    const Range *r = pmu->amd ? amd_ranges : intel_ranges;

    for (; r->kind; r++) {
        *i = (msr - r->first) / r->step;
        if (msr >= r->first && (msr - r->first) % r->step == 0
            && *i < r->numbers && is_known(r->kind)) {
            *exists = pmu->version >= r->version && *i < count_of(r);
            return r->kind;
        }
    }
    return NONE;
}

/* Software can reduce the number of architectural records. */
static bool is_beyond_depth(Kind kind, unsigned i)
{
    switch (kind) {
    case ARCH_LBR_FROM:
    case ARCH_LBR_TO:
    case ARCH_LBR_INFO:
        return i >= regs.lbr_depth;
    default:
        return false;
    }
}

bool ref_has(uint32_t msr)
{
    unsigned i;
    bool exists;

    return pmu && kind_of(msr, &i, &exists) && exists;
}

static uint64_t all_fixed(uint64_t field)
{
    uint64_t bits = 0;

    for (unsigned i = 0; i < pmu->nr_fixed; i++) {
        bits |= field << 4 * i;
    }
    return bits;
}

static uint64_t counter_bits(void)
{
    uint64_t bits = 0;

    for (unsigned i = 0; i < nr_counters(); i++) {
        bits |= status_bit(i);
    }
    return bits | (pmu->slots ? GLOBAL_METRICS : 0);
}

static bool has_any_thread(void)
{
    return !pmu->amd && (pmu->version == 3 || pmu->version == 4);
}

static uint64_t evtsel_bits(void)
{
    uint64_t bits = MAKE_64BIT_MASK(0, 32) & ~SEL_ANY;

    if (pmu->amd) {
        return (bits & ~BIT_ULL(19))
               | (pmu->select_ext ? 0xfull << 32 | SEL_GUEST | SEL_HOST : 0);
    }
    return bits | (has_any_thread() ? SEL_ANY : 0)
           | (has_baseline() ? SEL_ADAPTIVE : 0)
           | (pmu->version >= 6 ? SEL_EQ | SEL_UMASK2 : 0);
}

/* Bits that belong to no counter; with @clear, also bits to clear only */
static uint64_t status_bits(bool clear)
{
    uint64_t v4 = STATUS_LBR_FRZ | STATUS_CTR_FRZ | BIT_ULL(61)
                  | STATUS_OVF_BUF;

    if (pmu->amd) {
        return pmu->lbrs ? STATUS_LBR_FRZ | STATUS_CTR_FRZ : 0;
    }
    return (pmu->version >= 4 ? v4 : 0)
           | (clear ? STATUS_OVF_BUF | STATUS_COND_CHGD
                      | (pmu->version >= 4 ? BIT_ULL(60) : 0) : 0);
}

static bool freezes_in_smm(void)
{
    return pmu->version >= 2 && !pmu->no_capabilities;
}

/*
 * Without records, bits for model-specific ones can be written, and are lost.
 */
static uint64_t debugctl_bits(void)
{
    uint64_t lbrs = pmu->lbrs ? DEBUGCTL_FREEZE_LBRS : 0;

    if (pmu->amd) {
        return DEBUGCTL_BTF | (pmu->lbrs ? lbrs | DEBUGCTL_FREEZE_ON_PMI : 0);
    }
    return DEBUGCTL_LBR | DEBUGCTL_BTF
           | (pmu->version >= 2 ? DEBUGCTL_FREEZE_ON_PMI | lbrs : 0)
           | (freezes_in_smm() ? DEBUGCTL_FREEZE_IN_SMM : 0);
}

static uint64_t bits_of(Kind kind)
{
    switch (kind) {
    case EVTSEL:
        return evtsel_bits();
    case COUNTER_LEGACY:
        return UINT64_MAX;
    case COUNTER:
    case FIXED:
        return MAKE_64BIT_MASK(0, WIDTH);
    case FIXED_CTRL:
        return all_fixed(has_any_thread() ? 0xf : 0xb)
               | (has_baseline() ? all_fixed(1) << 32 : 0);
    case GLOBAL_CTRL:
        return counter_bits();
    case STATUS_CLEAR:
    case STATUS_SET:
        return counter_bits() | status_bits(kind == STATUS_CLEAR);
    case DEBUGCTL:
        return debugctl_bits();
    case LBR_SELECT:
        return MAKE_64BIT_MASK(0, 9)
               | (!pmu->amd && pmu->lbr_format > 3 ? CALL_STACK : 0);
    case LBR_TOS:
        return pmu->lbrs - 1;
    case LBR_CONFIG:
        return DBG_EXTN_LBR;
    case LBR_FROM:
    case LBR_TO:
    case CORE_LBR_FROM:
    case CORE_LBR_TO:
    case ARCH_LBR_FROM:
    case ARCH_LBR_TO:
    case LER_FROM:
    case LER_TO:
        return UINT64_MAX;
    case LBR_INFO:
        return MAKE_64BIT_MASK(61, 3) | INFO_CYCLES;
    case ARCH_LBR_INFO:
    case LER_INFO:
        return MAKE_64BIT_MASK(56, 8) | INFO_CYCLES;
    case ARCH_LBR_CTL:
        return CTL_LBREN | CTL_OS | CTL_USR | CTL_CALL_STACK | CTL_KINDS;
    case ARCH_LBR_DEPTH:
        return 8 | 16 | 32;
    case DS_AREA:
        return UINT64_MAX;
    case PEBS_ENABLE:
        return has_baseline() ? counter_bits()
               : 0xf | 0xfull << 32 | (pmu->precise_store ? BIT_ULL(63) : 0);
    case DATA_CFG:
        return 0xff00000f;
    case LD_LAT:
        return 0xffff;
    case OFFCORE:
        return pmu->offcore;
    case METRICS:
        return MAKE_64BIT_MASK(0, 32);
    default:
        return 0;
    }
}

uint64_t ref_writable(uint32_t msr)
{
    unsigned i;
    bool exists;

    return pmu ? bits_of(kind_of(msr, &i, &exists)) : 0;
}

static bool is_of_last_event(Kind kind)
{
    return kind == LER_FROM || kind == LER_TO || kind == LER_INFO;
}

/* The record to which a register belongs */
static Record *record_of(Kind kind, unsigned i)
{
    return is_of_last_event(kind) ? &regs.ler : &regs.records[i];
}

/* Records have no cycles here, as no translated code runs to count them. */
uint64_t ref_unknown(uint32_t msr)
{
    unsigned i;
    bool exists;
    Kind kind = pmu ? kind_of(msr, &i, &exists) : NONE;
    bool in_to = kind == LBR_TO && has_cycles_in_to();
    bool in_info = kind == LBR_INFO || kind == ARCH_LBR_INFO
                   || kind == LER_INFO;

    if (!(in_to || in_info) || !exists || !record_of(kind, i)->timed) {
        return 0;
    }
    return in_info ? INFO_CYCLES : TO_CYCLES;
}

static uint64_t inuse(void)
{
    uint64_t bits = regs.pebs_enable ? BIT_ULL(63) : 0;

    for (unsigned i = 0; i < nr_counters(); i++) {
        bool used = is_gp(i) ? regs.evtsel[i] & 0xff : fixed_field(i) & 3;

        bits |= used ? status_bit(i) : 0;
        bits |= interrupts(i) ? BIT_ULL(63) : 0;
    }
    return bits;
}

/* Each part of all slots, in 255ths; the ends of the parts are rounded. */
static uint64_t read_metrics(void)
{
    uint64_t all = 0, end = 0, before = 0, metrics = 0;

    for (unsigned n = 0; n < 4; n++) {
        all += regs.parts[n];
    }
    for (unsigned n = 0; all && n < 4; n++) {
        uint64_t rounded;

        end += regs.parts[n];
        rounded = (end * 255 + all / 2) / all;
        metrics |= (rounded - before) << 8 * n;
        before = rounded;
    }
    return metrics;
}

/* They are parts of the slots that are counted, or of 255. */
static void write_metrics(uint64_t val)
{
    uint64_t slots = MAX(regs.value[slots_counter()], 255);
    uint64_t shares = 0, before = 0;

    for (unsigned n = 0; n < 4; n++) {
        uint64_t end;

        shares += val >> 8 * n & 255;
        end = (slots * shares + 127) / 255;
        regs.parts[n] = (end - before) & MAKE_64BIT_MASK(0, WIDTH);
        before = end;
    }
}

static uint64_t read_kind(Kind kind, unsigned i)
{
    switch (kind) {
    case EVTSEL:
        return regs.evtsel[i];
    case COUNTER:
    case COUNTER_LEGACY:
        return regs.value[i];
    case FIXED:
        return regs.value[pmu->nr_gp + i];
    case FIXED_CTRL:
        return regs.fixed_ctrl;
    case GLOBAL_CTRL:
        return regs.global_ctrl;
    case STATUS:
        return regs.status;
    case INUSE:
        return inuse();
    case CAPABILITIES:
        return PERF_CAP_FULL_WIDTH
               | (freezes_in_smm() ? PERF_CAP_FREEZE_IN_SMM : 0)
               | pmu->lbr_format
               | (pmu->pebs ? PERF_CAP_PEBS(pmu->pebs) : 0)
               | (has_baseline() ? PERF_CAP_BASELINE : 0)
               | (pmu->slots ? PERF_CAP_METRICS : 0);
    case DEBUGCTL:
        return regs.debugctl;
    case LBR_SELECT:
        return regs.lbr_select;
    case LBR_TOS:
        return regs.lbr_tos;
    case LBR_CONFIG:
        return regs.lbr_config;
    case LBR_FROM:
    case CORE_LBR_FROM:
    case ARCH_LBR_FROM:
    case LER_FROM:
        return record_of(kind, i)->from;
    case LBR_TO:
    case CORE_LBR_TO:
    case ARCH_LBR_TO:
    case LER_TO:
        return record_of(kind, i)->to;
    case LBR_INFO:
    case ARCH_LBR_INFO:
    case LER_INFO:
        return record_of(kind, i)->info;
    case ARCH_LBR_CTL:
        return regs.lbr_ctl;
    case ARCH_LBR_DEPTH:
        return regs.lbr_depth;
    case DS_AREA:
        return regs.ds_area;
    case PEBS_ENABLE:
        return regs.pebs_enable;
    case DATA_CFG:
        return regs.data_cfg;
    case LD_LAT:
        return regs.ld_lat;
    case OFFCORE:
        return regs.offcore[i];
    case METRICS:
        return read_metrics();
    default:
        return 0;
    }
}

RefAccess ref_read(uint32_t msr, uint64_t *val)
{
    unsigned i;
    bool exists;
    Kind kind = pmu ? kind_of(msr, &i, &exists) : NONE;

    if (!kind) {
        return REF_NOT_MINE;
    }
    if (!exists || is_beyond_depth(kind, i)) {
        return REF_FAULT;
    }
    *val = read_kind(kind, i);
    return REF_DONE;
}

static void write_counter(unsigned i, uint64_t val)
{
    regs.value[i] = val & MAKE_64BIT_MASK(0, WIDTH);
    regs.owed[i] = 0;
    regs.armed &= ~status_bit(i);
}

/* A new selection drops events that were still to be subtracted. */
static void write_evtsel(unsigned i, uint64_t val)
{
    PmuTallies before = quiet_events(i);

    regs.evtsel[i] = val;
    if (quiet_events(i) != before) {
        regs.owed[i] = 0;
    }
}

/* A counter that is no longer sampled no longer waits for a record. */
static void write_pebs_enable(uint64_t val)
{
    regs.pebs_enable = val;
    for (unsigned i = 0; i < nr_counters(); i++) {
        regs.armed &= is_sampled(i) ? UINT64_MAX : ~status_bit(i);
    }
}

/* Writing the depth clears all records but that of the last event. */
static void write_depth(uint64_t val)
{
    regs.lbr_depth = val;
    memset(regs.records, 0, sizeof(regs.records));
}

static void write_kind(Kind kind, unsigned i, uint64_t val)
{
    switch (kind) {
    case EVTSEL:
        write_evtsel(i, val);
        break;
    case COUNTER_LEGACY:
        write_counter(i, (int64_t)(int32_t)val);
        break;
    case COUNTER:
        write_counter(i, val);
        break;
    case FIXED:
        write_counter(pmu->nr_gp + i, val);
        break;
    case FIXED_CTRL:
        regs.fixed_ctrl = val;
        break;
    case GLOBAL_CTRL:
        regs.global_ctrl = val;
        break;
    case STATUS_CLEAR:
        regs.status &= ~val;
        break;
    case STATUS_SET:
        regs.status |= val;
        break;
    case DEBUGCTL:
        regs.debugctl = val & ~(has_model_lbrs() ? 0 : DEBUGCTL_LBR);
        break;
    case LBR_SELECT:
        regs.lbr_select = val;
        break;
    case LBR_TOS:
        regs.lbr_tos = val;
        break;
    case LBR_CONFIG:
        regs.lbr_config = val;
        break;
    case LBR_FROM:
    case CORE_LBR_FROM:
    case ARCH_LBR_FROM:
    case LER_FROM:
        record_of(kind, i)->from = val;
        break;
    case LBR_TO:
    case CORE_LBR_TO:
    case ARCH_LBR_TO:
    case LER_TO:
        record_of(kind, i)->to = val;
        record_of(kind, i)->timed &= !has_cycles_in_to();
        break;
    case LBR_INFO:
    case ARCH_LBR_INFO:
    case LER_INFO:
        record_of(kind, i)->info = val;
        record_of(kind, i)->timed = false;
        break;
    case ARCH_LBR_CTL:
        regs.lbr_ctl = val;
        break;
    case ARCH_LBR_DEPTH:
        write_depth(val);
        break;
    case DS_AREA:
        regs.ds_area = val;
        break;
    case PEBS_ENABLE:
        write_pebs_enable(val);
        break;
    case DATA_CFG:
        regs.data_cfg = val;
        break;
    case LD_LAT:
        regs.ld_lat = val;
        break;
    case OFFCORE:
        regs.offcore[i] = val;
        break;
    case METRICS:
        write_metrics(val);
        break;
    default:
        break;
    }
}

/* Addresses have 48 or 57 bits, and are sign-extended. */
static bool is_canonical(uint64_t val)
{
    unsigned sign = pmu->la57 ? 56 : 47;

    return val >> sign == 0 || val >> sign == UINT64_MAX >> sign;
}

/* AMD's registers ignore bits; Intel's fault, if the bits are not undefined. */
static bool ignores_bits(Kind kind)
{
    return pmu->amd || kind == ARCH_LBR_INFO || kind == LER_INFO
           || kind == LD_LAT;
}

static bool can_hold(Kind kind, uint64_t val)
{
    switch (kind) {
    case DS_AREA:
        return is_canonical(val);
    case ARCH_LBR_DEPTH:
        return is_power_of_2(val);
    default:
        return true;
    }
}

/*
 * Without architectural records, the registers for the last event's branch are
 * model-specific ones.  QEMU does not implement these: they exist, and hold 0.
 */
static bool is_lost(Kind kind)
{
    return is_of_last_event(kind) && !has_arch_lbrs();
}

static bool is_read_only(Kind kind)
{
    return kind == STATUS || kind == INUSE || kind == CAPABILITIES;
}

RefAccess ref_write(uint32_t msr, uint64_t val)
{
    unsigned i;
    bool exists;
    Kind kind = pmu ? kind_of(msr, &i, &exists) : NONE;

    if (!kind) {
        return REF_NOT_MINE;
    }
    if (!exists || is_beyond_depth(kind, i) || !can_hold(kind, val)) {
        return REF_FAULT;
    }
    if (!ignores_bits(kind) && (is_read_only(kind) || val & ~bits_of(kind))) {
        return REF_FAULT;
    }
    if (!is_read_only(kind) && !is_lost(kind)) {
        write_kind(kind, i, val & bits_of(kind));
    }
    return REF_DONE;
}

bool ref_rdpmc(uint32_t index, uint64_t *val)
{
    bool fixed = pmu && !pmu->amd && index >> 30 == 1;
    uint32_t i = fixed ? index & ~BIT(30) : index;

    if (pmu && pmu->slots && index == 1u << 29) {
        *val = read_metrics();
        return true;
    }
    if (!pmu || i >= (fixed ? pmu->nr_fixed : pmu->nr_gp)) {
        return false;
    }
    *val = regs.value[fixed ? pmu->nr_gp + i : i];
    return true;
}

void ref_init(const RefX86 *which)
{
    pmu = which;
}

void ref_reset(void)
{
    memset(&regs, 0, offsetof(struct Registers, insns));
    if (pmu && (!pmu->amd || pmu->version >= 2)) {
        regs.global_ctrl = MAKE_64BIT_MASK(0, pmu->nr_gp);
    }
    if (pmu && has_arch_lbrs()) {
        regs.lbr_depth = pmu->lbrs;
    }
    ref_core_reset();
}

void ref_init_signal(void)
{
    if (ref_state.smm) {
        ref_rsm();
    }
    regs.armed = 0;
    regs.ds_area = 0;
    regs.pebs_enable = 0;
    regs.ld_lat = 0;
    regs.data_cfg = 0;
}

void ref_moved(void)
{
    regs.armed = 0;
    if (!ref_is_used()) {
        ref_core_reset();
    }
    if (pmu && pmu->kvm) {
        regs.ld_lat = 0;
        regs.saved_debugctl = 0;
        memset(regs.owed, 0, sizeof(regs.owed));
    }
}

static RefX86State remembered_state;

void ref_remember(void)
{
    remembered = regs;
    ref_core_remember();
    remembered_state = ref_state;
}

void ref_recall(void)
{
    regs = remembered;
    ref_core_recall();
    ref_state = remembered_state;
}
