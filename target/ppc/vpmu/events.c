/*
 * Power virtual PMU: the processors' event codes
 *
 * The codes come from Linux's tables (arch/powerpc/perf, and perf's lists
 * of events) and from the processors' PMU user's guides.  TCG has no pipeline
 * and no caches: instructions are dispatched and finished when they complete,
 * each load refers to the L1 cache, and only misses of the softmmu's TLB are
 * known.  Where the processors mark some of the instructions that MMCRA makes
 * eligible, all are marked.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "cpu.h"
#include "events.h"
#include "modes.h"
#include "regs.h"

#define ANY     0
#define PMC(n)  (1u << (n))

/* Unit 0 has the events that all units share, and the architecture's. */
#define EVENT(pmcs, unit, sel, name) \
    { pmcs, unit, sel, PMU_EVENT_##name }
#define LATCHED(pmcs, unit, sel, name, whose) \
    { pmcs, unit, sel, PMU_EVENT_##name, .latch = PPC_VPMU_LATCH_##whose }
#define IN_STATE(pmcs, unit, sel, name, state) \
    { pmcs, unit, sel, PMU_EVENT_##name, .states = 1u << (state) }
#define MARKED(pmcs, unit, sel) \
    { pmcs, unit, sel, PMU_EVENT_NONE, .marked = true }
#define LIST(events) { events, ARRAY_SIZE(events) }

/* Since Power ISA 2.06. */
static const PpcVPmuEvent common_events[] = {
    EVENT(ANY,    0x0, 0x02, INSNS),             /* PM_INST_CMPL */
    EVENT(ANY,    0x0, 0x1e, CYCLES),            /* PM_CYC */
    EVENT(PMC(1), 0x0, 0x68, BRANCHES),          /* PM_BRU_FIN, PM_BR_FIN */
    EVENT(PMC(1), 0x0, 0xf2, INSNS),             /* PM_1PLUS_PPC_CMPL */
    LATCHED(PMC(1), 0x0, 0xfa, CYCLES, ANY),     /* PM_ANY_THRD_RUN_CYC */
    LATCHED(PMC(2), 0x0, 0x0c, CYCLES, ALL),     /* PM_THRD_ALL_RUN_CYC */
    EVENT(PMC(2), 0x0, 0xf0, STORES),            /* PM_ST_FIN, PM_ST_CMPL */
    EVENT(PMC(2), 0x0, 0xf2, INSNS),             /* PM_INST_DISP */
    LATCHED(PMC(2), 0x0, 0xf4, CYCLES, OWN),     /* PM_RUN_CYC */
    EVENT(PMC(3), 0x0, 0xf2, INSNS),             /* PM_INST_DISP */
    LATCHED(PMC(3), 0x0, 0xf4, INSNS, ALL),      /* PM_THRD_CONC_RUN_INST */
    EVENT(PMC(3), 0x0, 0xfc, DTLB_MISSES),       /* PM_DTLB_MISS */
    EVENT(PMC(4), 0x0, 0xf2, INSNS),             /* PM_1PLUS_PPC_DISP */
    LATCHED(PMC(4), 0x0, 0xfa, INSNS, OWN),      /* PM_RUN_INST_CMPL */
    EVENT(PMC(4), 0x0, 0xfc, ITLB_MISSES),       /* PM_ITLB_MISS */
};

/* Since Power ISA 2.07. */
static const PpcVPmuEvent isa207_events[] = {
    { PMC(1), 0x0, 0xf0, PMU_EVENT_CYCLES, .runs_always = true },
    EVENT(PMC(1), 0x0, 0xfe, INSNS),
    EVENT(PMC(2), 0x0, 0xfa, TAKEN_BRANCHES),    /* PM_BR_TAKEN_CMPL */
    EVENT(PMC(1), 0xe, 0x58, FAILED_STORES),     /* PM_STCX_FAIL */
    MARKED(PMC(1), 0x0, 0xe0),                   /* PM_MRK_INST_DISP */
    MARKED(PMC(2), 0x0, 0x30),                   /* PM_MRK_INST_DECODED */
    MARKED(PMC(3), 0x0, 0x30),                   /* PM_MRK_INST_FIN */
    MARKED(PMC(4), 0x0, 0xe0),                   /* PM_MRK_INST_CMPL */
};

/* Of a model of the core; it has no level between the first and the last. */
static const PpcVPmuEvent core_events[] = {
    EVENT(PMC(2), 0x0, 0xfc, L1I_MISSES),        /* PM_L1_ICACHE_MISS */
    EVENT(PMC(2), 0x0, 0xfd, L1I_MISSES),        /* PM_L1_ICACHE_MISS */
    EVENT(PMC(2), 0x0, 0xfe, LLC_LOAD_MISSES),   /* PM_DATA_FROM_MEMORY */
    EVENT(PMC(2), 0xc, 0x4e, L1D_LOAD_MISSES),   /* PM_LD_MISS_L1_FIN */
    EVENT(PMC(3), 0x0, 0xf0, L1D_STORE_MISSES),  /* PM_ST_MISS_L1 */
    EVENT(PMC(3), 0x0, 0xf6, BRANCH_MISSES),     /* PM_BR_MISPREDICT */
    EVENT(PMC(3), 0x0, 0xfe, LLC_LOAD_MISSES),   /* PM_DATA_FROM_L3MISS */
    EVENT(PMC(3), 0xe, 0x54, L1D_LOAD_MISSES),   /* PM_LD_MISS_L1 */
    EVENT(PMC(4), 0x0, 0xf0, L1D_LOAD_MISSES),   /* PM_LD_MISS_L1 */
    EVENT(PMC(4), 0x0, 0xf6, BRANCH_MISSES),     /* PM_BR_MPRED_CMPL */
    EVENT(PMC(4), 0x0, 0xfe, LLC_LOAD_MISSES),   /* PM_LD_NOT_CACHED */
    EVENT(PMC(4), 0xc, 0x42, LLC_LOAD_HITS),     /* PM_DATA_FROM_L3 */
    EVENT(ANY,    0x4, 0x80, INSNS),             /* PM_INST_FROM_L1 */
    /* PM_GCT_NOSLOT_CYC, PM_ICT_NOSLOT_CYC, PM_DISP_STALL_CYC */
    EVENT(PMC(1), 0x0, 0xf8, FRONTEND_CYCLES),
};

/* What differs: PM_CMPLU_STALL; since POWER10 PM_EXEC_STALL, PM_MPRED_BR_FIN */
static const PpcVPmuEvent power7_core[] = {
    EVENT(PMC(4), 0x0, 0x0a, BACKEND_CYCLES),
};
static const PpcVPmuEvent power9_core[] = {
    EVENT(PMC(1), 0xe, 0x54, BACKEND_CYCLES),
};
static const PpcVPmuEvent power10_core[] = {
    EVENT(PMC(3), 0xe, 0x98, BRANCH_MISSES),
    EVENT(PMC(3), 0x0, 0x08, BACKEND_CYCLES),
    /* PM_DATA_FROM_*: PM_DATA_FROM_L3 */
    { ANY, 0xc, 0x40, PMU_EVENT_LLC_LOAD_HITS, .source = 0x9a },
};

/* PMC5 and PMC6, whatever MMCR1 says; the run latch is with the freeze bits. */
static const PpcVPmuEvent pmc5 = EVENT(PMC(5), 0, 0xfa, INSNS);
static const PpcVPmuEvent pmc6 = EVENT(PMC(6), 0, 0xf4, CYCLES);

/* The bits of MMCR0 since Power ISA 2.06, and the ones added by 2.07 */
#define ISA206_MMCR0                                                       \
    (MMCR0_FC | MMCR0_FCS | MMCR0_FCP | MMCR0_FCM1 | MMCR0_FCM0            \
     | MMCR0_PMAE | MMCR0_FCECE | MMCR0_TBSEL | MMCR0_TBEE | MMCR0_PMC1CE  \
     | MMCR0_PMCJCE | MMCR0_TRIGGER | MMCR0_PMAO | MMCR0_FC14 | MMCR0_FC56 \
     | MMCR0_FC14WAIT | MMCR0_FCH)
#define ISA207_MMCR0                                                       \
    (ISA206_MMCR0 | MMCR0_BHRBA | MMCR0_EBE | MMCR0_PMCC | MMCR0_FCPC      \
     | MMCR0_PMAQ | MMCR0_CC56RUN)

/* There are no misses for SDAR to follow. */
#define ISA207_MMCRA \
    (MMCRA_SDAR_MODE | MMCRA_SAMPLE | MMCRA_BHRBRD | MMCRA_IFM)

static const PpcVPmuSampleFields sier_fields = {
    .reg = SPR_POWER_SIER,
    .all = UINT64_MAX,
    .problem = SIER_SIPR,
    .hypervisor = SIER_SIHV,
    .siar_valid = SIER_SIAR_VALID,
    .sdar_valid = SIER_SDAR_VALID,
    .load = SIER_TYPE_LOAD,
    .store = SIER_TYPE_STORE,
};

/* The bits for valid addresses are POWER7+'s. */
static const PpcVPmuSampleFields power7_fields = {
    .reg = SPR_POWER_MMCRA,
    .all = POWER7_MMCRA_SAMPLE,
    .problem = POWER7_MMCRA_SIPR,
    .hypervisor = POWER7_MMCRA_SIHV,
    .siar_valid = POWER7_MMCRA_SIAR_VALID,
    .sdar_valid = POWER7_MMCRA_SDSYNC | POWER7_MMCRA_SDAR_VALID,
};

#define PM_EXT_INT EVENT(PMC(2), 0x0, 0xf8, INTERRUPTS)

static const PpcVPmuEvent power7_events[] = {
    PM_EXT_INT,
    EVENT(PMC(2), 0x0, 0x04, TAKEN_BRANCHES),    /* PM_BR_TAKEN */
    EVENT(ANY,    0xc, 0x80, LOADS),             /* PM_LD_REF_L1, _LSU0 */
};

const PpcVPmuModel ppc_vpmu_power7 = {
    .name = "POWER7",
    .mmcr0 = ISA206_MMCR0,
    .mmcra = MMCRA_SAMPLE_ENABLE | POWER7_MMCRA_SAMPLE
             | POWER7_MMCRA_SDAR_MISSES,
    .lists = { LIST(power7_events), LIST(common_events) },
    .core = LIST(power7_core),
    .sample = &power7_fields,
};

static const PpcVPmuEvent power8_events[] = {
    PM_EXT_INT,
    EVENT(PMC(1), 0x0, 0xee, LOADS),             /* PM_LD_REF_L1 */
    EVENT(PMC(1), 0x0, 0x2e, LOADS),             /* PM_LD_CMPL */
    EVENT(PMC(2), 0x0, 0x16, STORES),            /* PM_ST_CMPL */
    EVENT(PMC(4), 0x0, 0x60, BRANCHES),          /* PM_BR_CMPL */
};

const PpcVPmuModel ppc_vpmu_power8 = {
    .name = "POWER8",
    .mmcr0 = ISA207_MMCR0,
    .mmcr2 = UINT64_MAX,
    .mmcra = ISA207_MMCRA,
    .lists = { LIST(power8_events), LIST(isa207_events),
               LIST(common_events) },
    .core = LIST(power7_core),
    .sample = &sier_fields,
    .records_kernel = true,
};

static const PpcVPmuEvent power9_events[] = {
    PM_EXT_INT,
    EVENT(PMC(1), 0x0, 0x12, BRANCHES),          /* PM_BR_CMPL */
    EVENT(PMC(1), 0x0, 0xfc, LOADS),             /* PM_LD_REF_L1 */
    EVENT(PMC(2), 0x0, 0x16, STORES),            /* PM_ST_FIN */
    EVENT(PMC(4), 0x0, 0x3e, LOADS),             /* PM_LD_CMPL */
    EVENT(PMC(4), 0xd, 0x5e, BRANCHES),          /* PM_BR_CMPL */
};

const PpcVPmuModel ppc_vpmu_power9 = {
    .name = "POWER9",
    .mmcr0 = ISA207_MMCR0,
    .mmcr2 = UINT64_MAX,
    .mmcra = ISA207_MMCRA,
    .lists = { LIST(power9_events), LIST(isa207_events),
               LIST(common_events) },
    .core = LIST(power9_core),
    .sample = &sier_fields,
    .records_kernel = true,
};

/* MSR[HV PR], with MSR[S] = 0: there is no ultravisor. */
#define PRIVILEGED PPC_VPMU_MODE_PRIVILEGED
#define HYPERVISOR (PPC_VPMU_MODE_HV | PPC_VPMU_MODE_PRIVILEGED)
#define ADJUNCT    PPC_VPMU_MODE_HV

/*
 * Its PM_EXT_INT counts cycles in which an external interrupt is active.  The
 * model does not know these.
 */
static const PpcVPmuEvent power10_events[] = {
    EVENT(PMC(1), 0x0, 0xfc, LOADS),             /* PM_LD_REF_L1 */
    EVENT(PMC(2), 0xf, 0x4a, BRANCHES),          /* PM_BR_FIN */
    EVENT(PMC(4), 0x0, 0x30, INSNS),             /* PM_INST_FIN */
    EVENT(PMC(4), 0x0, 0x3e, LOADS),             /* PM_LD_CMPL */
    EVENT(PMC(4), 0xd, 0x5e, BRANCHES),          /* PM_BR_CMPL */
    IN_STATE(PMC(1), 0x0, 0x66, CYCLES, ADJUNCT),    /* PM_ADJUNCT_CYC */
    IN_STATE(PMC(2), 0xe, 0x10, INSNS, ADJUNCT),     /* ..._INST_CMPL */
    IN_STATE(PMC(2), 0x0, 0x0a, CYCLES, HYPERVISOR), /* PM_HYPERVISOR_CYC */
    IN_STATE(PMC(4), 0xd, 0x22, INSNS, HYPERVISOR),  /* ..._INST_CMPL */
    IN_STATE(PMC(4), 0xd, 0x28, CYCLES, PRIVILEGED), /* PM_PRIVILEGED_CYC */
    IN_STATE(PMC(3), 0x4, 0x5a, INSNS, PRIVILEGED),  /* ..._INST_CMPL */
};

const PpcVPmuModel ppc_vpmu_power10 = {
    .name = "POWER10",
    .mmcr0 = ISA207_MMCR0 | MMCR0_PMCCEXT,
    .mmcr2 = UINT64_MAX,
    .mmcra = ISA207_MMCRA,
    .lists = { LIST(power10_events), LIST(isa207_events),
               LIST(common_events) },
    .core = LIST(power10_core),
    .sample = &sier_fields,
};

PpcVPmuModel ppc_vpmu_with_core(const PpcVPmuModel *model)
{
    PpcVPmuModel with = *model;

    with.lists[ARRAY_SIZE(with.lists) - 1] =
        (PpcVPmuEventList) LIST(core_events);
    with.lists[ARRAY_SIZE(with.lists) - 2] = model->core;
    return with;
}

static const PpcVPmuEvent *find_in(const PpcVPmuEventList *list, unsigned pmc,
                                   unsigned unit, unsigned sel)
{
    const PpcVPmuEvent *e;

    for (e = list->events; e < list->events + list->nr; e++) {
        if (e->sel == sel && e->unit == unit
            && (e->pmcs == ANY || e->pmcs & PMC(pmc))) {
            return e;
        }
    }
    return NULL;
}

static const PpcVPmuEvent *find_event(const PpcVPmuModel *model, unsigned pmc,
                                      unsigned unit, unsigned sel)
{
    const PpcVPmuEvent *found = NULL;
    unsigned i;

    for (i = 0; !found && i < ARRAY_SIZE(model->lists); i++) {
        found = find_in(&model->lists[i], pmc, unit, sel);
    }
    return found;
}

/* Which instructions MMCRA[SAMP_MODE] and [SAMP_ELIG] make eligible */
static const struct {
    unsigned mode, elig;
    PmuEvent event;
} eligible[] = {
    { SAMP_MODE_ANY, SAMP_ELIG_ALL,      PMU_EVENT_INSNS },
    { SAMP_MODE_ANY, SAMP_ELIG_ACCESSES, PMU_EVENT_ACCESSES },
    { SAMP_MODE_ANY, SAMP_ELIG_LOADS,    PMU_EVENT_LOADS },
    { SAMP_MODE_ANY, SAMP_ELIG_STORES,   PMU_EVENT_STORES },
    { SAMP_MODE_ACCESSES, SAMP_ELIG_ALL, PMU_EVENT_ACCESSES },
};

static PmuEvent marked_instructions(uint64_t mmcra)
{
    unsigned i;

    for (i = 0; mmcra & MMCRA_SAMPLE_ENABLE && i < ARRAY_SIZE(eligible); i++) {
        if (eligible[i].mode == MMCRA_SAMP_MODE(mmcra)
            && eligible[i].elig == MMCRA_SAMP_ELIG(mmcra)) {
            return eligible[i].event;
        }
    }
    return PMU_EVENT_NONE;
}

PpcVPmuEvent ppc_vpmu_event(const PpcVPmuModel *model, unsigned pmc,
                            uint64_t mmcr1, uint64_t mmcra,
                            uint64_t mmcr3)
{
    PpcVPmuEvent event = { .event = PMU_EVENT_NONE };
    const PpcVPmuEvent *found;

    if (pmc >= 5) {
        return pmc == 5 ? pmc5 : pmc6;
    }
    found = find_event(model, pmc, MMCR1_UNIT(mmcr1, pmc),
                       MMCR1_SEL(mmcr1, pmc));
    if (found) {
        event = *found;
    }
    if (event.marked) {
        event.event = marked_instructions(mmcra);
    }
    if (event.source && event.source != MMCR3_SOURCE(mmcr3, pmc)) {
        event.event = PMU_EVENT_NONE;
    }
    return event;
}

uint32_t ppc_vpmu_event_code(unsigned pmc, uint64_t mmcr1)
{
    unsigned unit = pmc < 5 ? MMCR1_UNIT(mmcr1, pmc) : 0;
    unsigned sel = pmc < 5 ? MMCR1_SEL(mmcr1, pmc)
                   : pmc == 5 ? pmc5.sel : pmc6.sel;

    return pmc << 16 | unit << 12 | sel;
}

/* For one counter; PMC5 and PMC6 have one event each. */
static const PpcVPmuEvent *find_code(const PpcVPmuModel *model, unsigned pmc,
                                     uint32_t code)
{
    const PpcVPmuEvent *only = pmc == 5 ? &pmc5 : &pmc6;

    if (pmc < 5) {
        return find_event(model, pmc, extract32(code, 12, 4),
                          extract32(code, 0, 8));
    }
    return extract32(code, 0, 16) == only->sel ? only : NULL;
}

PmuEvent ppc_vpmu_code_event(const PpcVPmuModel *model, uint32_t code)
{
    unsigned wanted = extract32(code, 16, 16);

    for (unsigned pmc = 1; pmc <= PPC_VPMU_NR_PMCS; pmc++) {
        const PpcVPmuEvent *e = !wanted || wanted == pmc
                                ? find_code(model, pmc, code) : NULL;

        if (e && !e->marked && !e->states && !e->source
            && e->latch == PPC_VPMU_LATCH_NONE) {
            return e->event;
        }
    }
    return PMU_EVENT_NONE;
}
