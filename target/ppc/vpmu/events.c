/*
 * Power virtual PMU: what the processors' event codes mean
 *
 * The codes are those of Linux's tables (arch/powerpc/perf, and perf's lists
 * of events) and of the processors' PMU user's guides.  TCG has no pipeline
 * and no caches: what is dispatched or finished is what completes, each load
 * refers to the L1 cache, and nothing is known of misses but those of the
 * softmmu's TLB.  Where the processors mark some of the instructions that
 * MMCRA makes eligible, all are marked.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "events.h"
#include "regs.h"

#define ANY     0
#define PMC(n)  (1u << (n))

/* Unit 0 has the events that are common to all, and the architecture's. */
#define EVENT(pmcs, unit, sel, name) \
    { pmcs, unit, sel, PMU_EVENT_##name, false, false }
#define RUN_EVENT(pmcs, unit, sel, name) \
    { pmcs, unit, sel, PMU_EVENT_##name, true, false }
#define MARKED_EVENT(pmcs, unit, sel) \
    { pmcs, unit, sel, PMU_EVENT_NONE, false, false, true }

#define COMMON_MMCR0                                                        \
    (MMCR0_FC | MMCR0_FCS | MMCR0_FCP | MMCR0_FCM1 | MMCR0_FCM0             \
     | MMCR0_PMAE | MMCR0_FCECE | MMCR0_TBSEL | MMCR0_TBEE | MMCR0_BHRBA    \
     | MMCR0_EBE | MMCR0_PMCC | MMCR0_PMC1CE | MMCR0_PMCJCE | MMCR0_TRIGGER \
     | MMCR0_FCPC | MMCR0_PMAQ | MMCR0_CC56RUN | MMCR0_PMAO | MMCR0_FC14    \
     | MMCR0_FC56 | MMCR0_FC14WAIT | MMCR0_FCH)

static const PpcEvent architected[] = {
    EVENT(ANY,    0x0, 0x02, INSNS),           /* PM_INST_CMPL */
    EVENT(ANY,    0x0, 0x1e, CYCLES),          /* PM_CYC */
    { PMC(1), 0x0, 0xf0, PMU_EVENT_CYCLES, false, true },
    EVENT(PMC(1), 0x0, 0xf2, INSNS),           /* PM_1PLUS_PPC_CMPL */
    EVENT(PMC(1), 0x0, 0xfe, INSNS),
    EVENT(PMC(2), 0x0, 0xf0, STORES),          /* PM_ST_CMPL */
    EVENT(PMC(2), 0x0, 0xf2, INSNS),           /* PM_INST_DISP */
    RUN_EVENT(PMC(2), 0x0, 0xf4, CYCLES),      /* PM_RUN_CYC */
    EVENT(PMC(2), 0x0, 0xf8, INTERRUPTS),      /* PM_EXT_INT */
    EVENT(PMC(2), 0x0, 0xfa, TAKEN_BRANCHES),  /* PM_BR_TAKEN_CMPL */
    EVENT(PMC(3), 0x0, 0xf2, INSNS),           /* PM_INST_DISP */
    EVENT(PMC(3), 0x0, 0xfc, DTLB_MISSES),     /* PM_DTLB_MISS */
    EVENT(PMC(4), 0x0, 0xf2, INSNS),           /* PM_1PLUS_PPC_DISP */
    RUN_EVENT(PMC(4), 0x0, 0xfa, INSNS),       /* PM_RUN_INST_CMPL */
    EVENT(PMC(4), 0x0, 0xfc, ITLB_MISSES),     /* PM_ITLB_MISS */
    EVENT(PMC(1), 0x0, 0x68, BRANCHES),        /* PM_BRU_FIN, PM_BR_FIN */
    EVENT(PMC(1), 0xe, 0x58, FAILED_STORES),   /* PM_STCX_FAIL */
    MARKED_EVENT(PMC(1), 0x0, 0xe0),           /* PM_MRK_INST_DISP */
    MARKED_EVENT(PMC(2), 0x0, 0x30),           /* PM_MRK_INST_DECODED */
    MARKED_EVENT(PMC(3), 0x0, 0x30),           /* PM_MRK_INST_FIN */
    MARKED_EVENT(PMC(4), 0x0, 0xe0),           /* PM_MRK_INST_CMPL */
};

/* PMC5 and PMC6, whatever MMCR1 says; the run latch is among what freezes. */
static const PpcEvent pmc5 = EVENT(PMC(5), 0, 0xfa, INSNS);
static const PpcEvent pmc6 = EVENT(PMC(6), 0, 0xf4, CYCLES);

static const PpcEvent power8_events[] = {
    EVENT(PMC(1), 0x0, 0xee, LOADS),           /* PM_LD_REF_L1 */
    EVENT(PMC(1), 0x0, 0x2e, LOADS),           /* PM_LD_CMPL */
    EVENT(PMC(2), 0x0, 0x16, STORES),          /* PM_ST_CMPL */
    EVENT(PMC(4), 0x0, 0x60, BRANCHES),        /* PM_BR_CMPL */
};

const PpcVPmuModel ppc_vpmu_power8 = {
    .name = "POWER8",
    .mmcr0 = COMMON_MMCR0,
    .events = power8_events,
    .nr_events = ARRAY_SIZE(power8_events),
    .records_kernel = true,
};

static const PpcEvent power9_events[] = {
    EVENT(PMC(1), 0x0, 0x12, BRANCHES),        /* PM_BR_CMPL */
    EVENT(PMC(1), 0x0, 0xfc, LOADS),           /* PM_LD_REF_L1 */
    EVENT(PMC(2), 0x0, 0x16, STORES),          /* PM_ST_FIN */
    EVENT(PMC(4), 0x0, 0x3e, LOADS),           /* PM_LD_CMPL */
    EVENT(PMC(4), 0xd, 0x5e, BRANCHES),        /* PM_BR_CMPL */
};

const PpcVPmuModel ppc_vpmu_power9 = {
    .name = "POWER9",
    .mmcr0 = COMMON_MMCR0,
    .events = power9_events,
    .nr_events = ARRAY_SIZE(power9_events),
    .records_kernel = true,
};

static const PpcEvent power10_events[] = {
    EVENT(PMC(1), 0x0, 0xfc, LOADS),           /* PM_LD_REF_L1 */
    EVENT(PMC(2), 0xf, 0x4a, BRANCHES),        /* PM_BR_FIN */
    EVENT(PMC(4), 0x0, 0x30, INSNS),           /* PM_INST_FIN */
    EVENT(PMC(4), 0x0, 0x3e, LOADS),           /* PM_LD_CMPL */
    EVENT(PMC(4), 0xd, 0x5e, BRANCHES),        /* PM_BR_CMPL */
};

const PpcVPmuModel ppc_vpmu_power10 = {
    .name = "POWER10",
    .mmcr0 = COMMON_MMCR0 | MMCR0_PMCCEXT,
    .events = power10_events,
    .nr_events = ARRAY_SIZE(power10_events),
};

static const PpcEvent *find_event(const PpcEvent *events, unsigned nr,
                                  unsigned pmc, unsigned unit, unsigned sel)
{
    const PpcEvent *e;

    for (e = events; e < events + nr; e++) {
        if (e->sel == sel && e->unit == unit
            && (e->pmcs == ANY || e->pmcs & PMC(pmc))) {
            return e;
        }
    }
    return NULL;
}

static PmuEvent marked_instructions(uint64_t mmcra)
{
    if (!(mmcra & MMCRA_SAMPLE_ENABLE)
        || MMCRA_SAMP_MODE(mmcra) != SAMP_MODE_RIS) {
        return PMU_EVENT_NONE;
    }
    switch (MMCRA_SAMP_ELIG(mmcra)) {
    case SAMP_ELIG_ALL:
        return PMU_EVENT_INSNS;
    case SAMP_ELIG_LOADS:
        return PMU_EVENT_LOADS;
    case SAMP_ELIG_STORES:
        return PMU_EVENT_STORES;
    default:
        return PMU_EVENT_NONE;
    }
}

PpcEvent ppc_event(const PpcVPmuModel *model, unsigned pmc, uint64_t mmcr1,
                   uint64_t mmcra)
{
    PpcEvent event = { .event = PMU_EVENT_NONE };
    const PpcEvent *found;
    unsigned unit, sel;

    if (pmc >= 5) {
        return pmc == 5 ? pmc5 : pmc6;
    }
    unit = MMCR1_UNIT(mmcr1, pmc);
    sel = MMCR1_SEL(mmcr1, pmc);
    found = find_event(architected, ARRAY_SIZE(architected), pmc, unit, sel)
            ?: find_event(model->events, model->nr_events, pmc, unit, sel);
    if (found) {
        event = *found;
    }
    if (event.marked) {
        event.event = marked_instructions(mmcra);
    }
    return event;
}

uint32_t ppc_event_code(unsigned pmc, uint64_t mmcr1)
{
    unsigned unit = pmc < 5 ? MMCR1_UNIT(mmcr1, pmc) : 0;
    unsigned sel = pmc < 5 ? MMCR1_SEL(mmcr1, pmc)
                   : pmc == 5 ? pmc5.sel : pmc6.sel;

    return pmc << 16 | unit << 12 | sel;
}
