/*
 * Fuzzer of the virtual PMU: a reference of Power's registers
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "tests/qtest/vpmu-bits.h"
#include "core-reference.h"
#include "ppc-reference.h"

#define NR_PMCS 6
#define NEGATIVE BIT_ULL(31)

static const RefPpc *pmu;
RefPpcState ref_state;
static RefPpcState remembered_state;

/* The number of entries, and the most branches */
#define NR_ENTRIES 32

/*
 * The number of alerts without a read of the BHRB after which this PMU stops
 * recording.  The architecture has no such rule.
 */
#define UNREAD 64

/* @branches: the BHRB's, the newest first, followed by entries of 0 */
static struct Registers {
    uint64_t spr[REF_NR_SPRS];
    uint64_t insns[4];
    RefBranch branches[NR_ENTRIES];
    bool uses_bhrb;
    unsigned alerts_unread;
} regs, remembered;

static bool mmcr0(uint64_t bit)
{
    return regs.spr[SPR_MMCR0] & bit;
}

static bool mmcr2(unsigned pmc, unsigned n)
{
    return regs.spr[SPR_MMCR2] & MMCR2_FIELD(n, pmc);
}

static unsigned pmcc(void)
{
    return regs.spr[SPR_MMCR0] >> (63 - 45) & 3;
}

/*
 * Events that counters count
 */

static uint32_t code_of(unsigned pmc)
{
    unsigned selector = regs.spr[SPR_MMCR1] >> 8 * (4 - pmc) & 0xff;
    unsigned unit = regs.spr[SPR_MMCR1] >> (64 - 4 * pmc) & 0xf;

    return pmc << 16 | unit << 12 | selector;
}

/* PMC5 and PMC6 have one event each. */
static const RefEvent fixed[] = {
    { 0x500fa, T(INSNS) }, { 0x600f4, T(CYCLES) },
};

static const RefEvent *find_event(unsigned pmc)
{
    if (pmc >= 5) {
        return &fixed[pmc - 5];
    }
    for (const RefEvent *e = pmu->events; e->code; e++) {
        if (e->code == code_of(pmc)) {
            return e;
        }
    }
    return NULL;
}

static bool is_denied(const RefEvent *e)
{
    for (const uint32_t *d = pmu->denied; d && *d; d++) {
        if (*d == e->code || *d == (e->code & 0xffff)) {
            return true;
        }
    }
    return false;
}

/* Events that random sampling makes eligible */
static PmuTallies marked(void)
{
    uint64_t mmcra = regs.spr[SPR_MMCRA];
    unsigned mode = mmcra >> 1 & 3, eligible = mmcra >> 4 & 7;

    if (!(mmcra & 1) || mode > 1 || (mode == 1 && eligible)) {
        return 0;
    }
    return mode == 1 || eligible == 1 ? T(LOADS) | T(STORES)
           : eligible == 0 ? T(INSNS)
           : eligible == 5 ? T(LOADS)
           : eligible == 7 ? T(STORES) : 0;
}

static PmuTallies tallies_of(unsigned pmc)
{
    const RefEvent *e = find_event(pmc);

    return !e ? 0 : e->when == REF_MARKED ? marked() : e->tallies;
}

/*
 * Conditions under which events are counted
 */

static bool frozen_by_privilege(unsigned pmc, unsigned mode)
{
    bool hv = mode & REF_HV;

    if (mode & REF_PRIVILEGED) {
        return hv ? mmcr0(MMCR0_FCH) || mmcr2(pmc, FCNH)
                  : mmcr0(MMCR0_FCS) || mmcr2(pmc, FCNS);
    }
    if (mmcr2(pmc, FCNP0) || (hv && mmcr2(pmc, FCNP1))) {
        return true;
    }
    return mmcr0(MMCR0_FCPC) ? mmcr0(MMCR0_FCP) == hv : mmcr0(MMCR0_FCP);
}

static bool frozen_by_latch(unsigned pmc, const RefEvent *e)
{
    if (ref_state.run) {
        return false;
    }
    return e->when == REF_RUN || mmcr2(pmc, FCNWAIT)
           || (pmc >= 5 ? !mmcr0(MMCR0_CC56RUN)
                        : mmcr0(MMCR0_FC14WAIT) && e->when != REF_WAIT);
}

static bool is_outside(unsigned pmc)
{
    return pmc >= 5 && pmcc() == 3;
}

static bool counts(unsigned pmc, unsigned mode)
{
    const RefEvent *e = find_event(pmc);

    if (!e || is_denied(e)) {
        return false;
    }
    if (is_outside(pmc)) {
        return ref_state.run;
    }
    return !mmcr0(MMCR0_FC) && !mmcr0(ref_state.pmm ? MMCR0_FCM1 : MMCR0_FCM0)
           && !mmcr2(pmc, ref_state.pmm ? FCNM1 : FCNM0)
           && !(pmc > 1 && mmcr0(MMCR0_TRIGGER))
           && !mmcr0(pmc >= 5 ? MMCR0_FC56 : MMCR0_FC14)
           && !frozen_by_latch(pmc, e) && !frozen_by_privilege(pmc, mode)
           && (e->when < REF_IN || e->when == REF_IN + mode);
}

/*
 * Alerts
 */

static uint64_t *pmc_value(unsigned pmc)
{
    return &regs.spr[SPR_PMC1 + pmc - 1];
}

static bool is_enabled(unsigned pmc)
{
    return mmcr0(pmc == 1 ? MMCR0_PMC1CE : MMCR0_PMCJCE) && !is_outside(pmc);
}

/* Sets of PMCs: bit n is PMCn. */
#define ALL_PMCS MAKE_64BIT_MASK(1, NR_PMCS)

/* The first of these that is negative, and whose condition is enabled. */
static unsigned first_negative(unsigned pmcs)
{
    for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
        if (pmcs >> pmc & 1 && is_enabled(pmc)
            && *pmc_value(pmc) & NEGATIVE) {
            return pmc;
        }
    }
    return 0;
}

static void update_ebb(void)
{
    if (ref_state.bescr & BESCR_PME && mmcr0(MMCR0_EBE) && mmcr0(MMCR0_PMAO)) {
        ref_state.bescr ^= BESCR_PME;
        ref_state.bescr |= BESCR_PMEO;
    }
    ref_state.ebb = ref_state.bescr & BESCR_GE
                    && ref_state.bescr & (BESCR_PMEO | BESCR_EEO);
}

static void update_interrupt(void)
{
    ref_state.perfm = mmcr0(MMCR0_PMAO) && !mmcr0(MMCR0_EBE);
    update_ebb();
}

static void take_sample_206(void)
{
    const uint64_t sdsync = REF_BIT(20), sihv = REF_BIT(21),
                   sipr = REF_BIT(22), siar = REF_BIT(35), sdar = REF_BIT(36);

    regs.spr[SPR_MMCRA] &= ~(sdsync | sihv | sipr | siar | sdar);
    regs.spr[SPR_MMCRA] |= siar
                           | (ref_state.mode & REF_PRIVILEGED ? 0 : sipr)
                           | (ref_state.mode & REF_HV ? sihv : 0);
}

/* A CPU that executes nothing has no data address. */
static void take_sample(void)
{
    PmuTallies type = tallies_of(first_negative(ALL_PMCS));

    regs.spr[SPR_SIAR] = ref_state.nip;
    regs.spr[SPR_SDAR] = 0;
    regs.spr[SPR_SIER2] = 0;
    regs.spr[SPR_SIER3] = 0;
    if (pmu->isa == 206) {
        take_sample_206();
        return;
    }
    regs.spr[SPR_SIER] = SIER_SIAR_VALID
                         | (ref_state.mode & REF_PRIVILEGED ? 0 : SIER_SIPR)
                         | (ref_state.mode & REF_HV ? SIER_SIHV : 0)
                         | (type == T(LOADS) ? SIER_LOAD : 0)
                         | (type == T(STORES) ? SIER_STORE : 0);
}

static void alert(void)
{
    take_sample();
    regs.alerts_unread++;
    regs.spr[SPR_MMCR0] &= ~(MMCR0_PMAE | MMCR0_PMAQ);
    regs.spr[SPR_MMCR0] |= MMCR0_PMAO;
    update_interrupt();
}

/*
 * The conditions of these may occur now.  FCECE has no effect as long as
 * counters wait for the trigger.
 */
static void look(unsigned pmcs)
{
    bool due = first_negative(pmcs);

    if (mmcr0(MMCR0_TRIGGER)) {
        if (due || *pmc_value(1) & NEGATIVE) {
            regs.spr[SPR_MMCR0] &= ~MMCR0_TRIGGER;
        }
    } else if (due && mmcr0(MMCR0_FCECE)) {
        regs.spr[SPR_MMCR0] |= MMCR0_FC;
    }
    if (due && mmcr0(MMCR0_PMAE)) {
        alert();
    }
}

void ref_write_bescr(uint64_t val)
{
    ref_state.bescr = val;
    update_ebb();
}

/*
 * Events
 */

static unsigned times_of(PmuTallies any, const RefTimes *times)
{
    unsigned sum = 0;

    for (unsigned t = 0; t < PMU_TALLY__MAX; t++) {
        sum += any >> t & 1 ? times->of[t] : 0;
    }
    return sum;
}

/* Returns: whether it has become negative, and its condition is in use */
static bool advance(unsigned pmc, PmuTallies events, unsigned mode,
                    const RefTimes *times)
{
    PmuTallies counted = tallies_of(pmc);
    unsigned by = ctpop64(counted & events) + times_of(counted, times);
    uint64_t *value = pmc_value(pmc), before = *value;

    if (!by || !counts(pmc, mode)) {
        return false;
    }
    *value = (uint32_t)(before + by);
    return before < NEGATIVE && *value & NEGATIVE
           && (is_enabled(pmc) || (pmc == 1 && mmcr0(MMCR0_TRIGGER)));
}

static unsigned cycles_of_next(unsigned mode)
{
    uint64_t before = regs.insns[mode]++ * pmu->cpi / 1000;

    return regs.insns[mode] * pmu->cpi / 1000 - before;
}

static void happen(PmuTallies events, unsigned mode, RefTimes *times)
{
    unsigned negative = 0;

    if (!pmu) {
        return;
    }
    times->of[PMU_TALLY_CYCLES] += events & T(INSNS) ? cycles_of_next(mode)
                                                     : 0;
    for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
        negative |= advance(pmc, events, mode, times) << pmc;
    }
    if (negative) {
        look(negative);
    }
}

void ref_happen(PmuTallies events, unsigned mode)
{
    RefTimes times = { };

    happen(events, mode, &times);
}

void ref_step(const FuzzInsn *insn, PmuTallies events, unsigned mode)
{
    RefTimes times = ref_core_step(0, insn);

    happen(events, mode, &times);
}

/*
 * The BHRB
 */

static bool frozen_for_branches(unsigned mode)
{
    bool hv = mode & REF_HV;

    if (mode & REF_PRIVILEGED) {
        return mmcr0(hv ? MMCR0_FCH : MMCR0_FCS) || pmu->isa >= 310;
    }
    return mmcr0(MMCR0_FCPC) ? mmcr0(MMCR0_FCP) == hv : mmcr0(MMCR0_FCP);
}

static bool is_filtered(const RefBranch *branch)
{
    switch (regs.spr[SPR_MMCRA] & MMCRA_IFM(3)) {
    case MMCRA_IFM(0):
        return false;
    case MMCRA_IFM(1):
        return !branch->call;
    case MMCRA_IFM(2):
        return branch->call || !branch->indirect;
    default:
        return !branch->conditional;
    }
}

void ref_branch(const RefBranch *branch, unsigned mode)
{
    if (!pmu || pmu->isa < 207 || !mmcr0(MMCR0_PMAE)
        || !regs.uses_bhrb || regs.alerts_unread >= UNREAD
        || (pmu->isa >= 310 && regs.spr[SPR_MMCRA] & MMCRA_BHRBRD)
        || frozen_for_branches(mode) || branch->interrupt
        || is_filtered(branch)) {
        return;
    }
    memmove(&regs.branches[1], &regs.branches[0],
            (NR_ENTRIES - 1) * sizeof(regs.branches[0]));
    regs.branches[0] = *branch;
}

void ref_use_bhrb(bool clear)
{
    if (clear) {
        memset(regs.branches, 0, sizeof(regs.branches));
    }
    regs.uses_bhrb = true;
    regs.alerts_unread = 0;
}

uint64_t ref_bhrb_entry(unsigned n)
{
    for (const RefBranch *b = regs.branches; b < &regs.branches[NR_ENTRIES];
         b++) {
        if (b->indirect && n-- == 0) {
            return b->to | 2;
        }
        if (n-- == 0) {
            return b->from;
        }
    }
    g_assert_not_reached();
}

/*
 * Migration resets the count of alerts, and can lose half of the last branch.
 * What a core remembers moves if events are counted.
 */
void ref_moved(void)
{
    unsigned entry = 0;

    if (!regs.spr[SPR_MMCR1] && !mmcr0(MMCR0_PMAE | MMCR0_PMAO)) {
        ref_core_reset();
    }
    regs.alerts_unread = 0;
    for (unsigned i = 0; i < NR_ENTRIES; i++) {
        RefBranch *b = &regs.branches[i];

        if (entry >= NR_ENTRIES) {
            *b = (RefBranch) { };
        } else if (b->indirect && entry == NR_ENTRIES - 1) {
            b->from = 0;
        }
        entry += 1 + b->indirect;
    }
}

void ref_begin_cycle(void)
{
    memset(regs.insns, 0, sizeof(regs.insns));
}

/*
 * Registers
 */

static bool is_group_a(unsigned reg)
{
    return reg == SPR_MMCR0 || reg == SPR_MMCR2 || reg == SPR_MMCRA
           || (reg >= SPR_PMC1 && reg <= SPR_PMC6);
}

static unsigned privileged_number(unsigned spr)
{
    return spr | 16;
}

static bool is_problem_state(void)
{
    return !(ref_state.mode & REF_PRIVILEGED);
}

static bool may_be_seen(unsigned reg)
{
    switch (pmcc()) {
    case 0:
        return is_group_a(reg) || !mmcr0(MMCR0_PMCCEXT);
    case 1:
        return false;
    case 2:
        return true;
    default:
        return reg != SPR_PMC1 + 4 && reg != SPR_PMC6;
    }
}

RefAccess ref_access(unsigned spr, bool write)
{
    unsigned reg = privileged_number(spr);

    if (!is_problem_state()) {
        return REF_ALLOWED;
    }
    if (!pmu) {
        return REF_UNAVAILABLE;
    }
    if (write && pmcc() == 0) {
        return REF_ILLEGAL;
    }
    if (!may_be_seen(reg)) {
        return REF_UNAVAILABLE;
    }
    return write && !is_group_a(reg) ? REF_ILLEGAL : REF_ALLOWED;
}

static uint64_t bits_in_problem_state(unsigned reg)
{
    uint64_t bits = 0;

    switch (reg) {
    case SPR_MMCR0:
        return MMCR0_FC | MMCR0_PMAE | MMCR0_PMAO;
    case SPR_MMCR2:
        for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
            bits |= MMCR2_FIELD(FCNP0, pmc);
        }
        return bits;
    case SPR_SIER:
        return MAKE_64BIT_MASK(0, 23);
    default:
        return UINT64_MAX;
    }
}

uint64_t ref_writable(unsigned spr)
{
    unsigned reg = privileged_number(spr);

    if (reg >= SPR_PMC1 && reg <= SPR_PMC6) {
        return UINT32_MAX;
    }
    return reg != SPR_MMCR0 ? UINT64_MAX
           : pmu->isa == 206 ? 0xffc0e0b3
           : pmu->isa < 310 ? 0xfffcf9b3 : 0xfffcfbb3;
}

uint64_t ref_peek(unsigned spr)
{
    return regs.spr[privileged_number(spr)];
}

uint64_t ref_read(unsigned spr)
{
    uint64_t val = pmu ? ref_peek(spr) : 0;

    return is_problem_state() ? val & bits_in_problem_state(spr | 16) : val;
}

static unsigned pmcs_written(unsigned reg)
{
    return reg == SPR_MMCR0 ? ALL_PMCS
           : reg >= SPR_PMC1 && reg <= SPR_PMC6 ? 2u << (reg - SPR_PMC1) : 0;
}

void ref_write(unsigned spr, uint64_t val)
{
    unsigned reg = privileged_number(spr);
    uint64_t bits = is_problem_state() ? bits_in_problem_state(reg)
                                       : UINT64_MAX;

    if (!pmu || (spr != reg && !is_group_a(reg))) {
        return;
    }
    val = (val & bits) | (regs.spr[reg] & ~bits);
    regs.spr[reg] = val & ref_writable(reg);
    if (reg == SPR_MMCR0) {
        update_interrupt();
    }
    look(pmcs_written(reg));
}

void ref_init(const RefPpc *which)
{
    pmu = which;
}

void ref_reset(void)
{
    memset(regs.spr, 0, sizeof(regs.spr));
    regs.spr[SPR_MMCR0] = MMCR0_FC;
    memset(regs.branches, 0, sizeof(regs.branches));
    regs.uses_bhrb = false;
    ref_state.bescr = 0;
    ref_core_reset();
    update_interrupt();
}

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
