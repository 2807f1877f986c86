/*
 * Suite ebb: event-based branches
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

/**
 * struct ebb - data of programs and their handler, in r20 to r24
 * @log: the array in which the handler stores each EBBRR
 * @pmc5: the handler's value for PMC5
 * @mmcr0: its value for MMCR0
 * @times: how often it uses @pmc5
 * @then: its value for PMC5 from then on
 */
static struct ebb {
    uint64_t *log, pmc5, mmcr0, times, then;
} ebb;

static uint64_t log[1024];

/* Low bits to add to the handler's address */
static uint64_t low_bits;

/* PMC5 counts after the write of MMCR0: three instructions of the handler. */
CODE("ebb_handler:\n"
     "    mfspr r10, 805\n"     /* EBBRR */
     "    std r10, 0(r20)\n"
     "    addi r20, r20, 8\n"
     "    addic. r23, r23, -1\n"
     "    bne 1f\n"
     "    mr r21, r24\n"
     "1:  mtspr 775, r21\n"     /* PMC5 */
     "    li r10, 1\n"
     "    sldi r11, r10, 32\n"
     "    mtspr 779, r22\n"     /* MMCR0: no alert */
     "    mtspr 802, r10\n"     /* BESCRR: PMEO */
     "    mtspr 800, r11\n"     /* BESCRS: PME */
     "    rfebb 1\n");
LABEL(ebb_handler);
#define HANDLER_INSNS 3

CODE("ebb_loop:\n"              /* 9 + 4 * 100 + 1 */
     "    ld r20, 0(r3)\n"
     "    ld r21, 8(r3)\n"
     "    ld r22, 16(r3)\n"
     "    ld r23, 24(r3)\n"
     "    ld r24, 32(r3)\n"
     "    li r4, 100\n"
     "    mtctr r4\n"
     "    mflr r12\n"
     "1:  nop\n"
     "    bl 2f\n"
     "    bdnz 1b\n"
     "    mtlr r12\n"
     "    blr\n"
     "2:  blr\n");
code_fn ebb_loop;

#define LOADS 5

#define EBB_MMCR0 \
    (MMCR0_EBE | MMCR0_PMCC(2) | MMCR0_ALERT | MMCR0_FCECE | MMCR0_FCH \
     | MMCR0_FCS)

/* Returns: the number of event-based branches */
static unsigned run_ebb(code_fn *fn, uint64_t first, uint64_t period,
                        uint64_t bescr)
{
    unsigned n = 0;

    memset(log, 0, sizeof(log));
    ebb = (struct ebb) {
        .log = log,
        .pmc5 = PMC_NEGATIVE - period,
        .mmcr0 = MMCR0_PMAE,
        .times = 1000000,
    };
    mtspr(SPR_EBBHR, (uint64_t)ebb_handler | low_bits);
    mtspr(SPR_BESCR, bescr);
    write_pmc(5, PMC_NEGATIVE - first);
    run(EBB_MMCR0, STATE_PROBLEM, fn, (uint64_t)&ebb);
    while (n < ARRAY_SIZE(log) && log[n]) {
        n++;
    }
    mtspr(SPR_MMCR0, MMCR0_FC);
    mtspr(SPR_BESCR, 0);
    return n;
}

static uint64_t address_of(code_fn *fn, uint64_t n)
{
    return n == 1 ? (uint64_t)fn : step_trace[n - 2];
}

/* The handler is called right after the instruction, at every distance. */
TEST(ebb, every_distance)
{
    uint64_t total = count_steps(STATE_PROBLEM, ebb_loop, (uint64_t)&ebb);

    for (unsigned n = LOADS; n <= LOADS + 64; n++) {
        expect(run_ebb(ebb_loop, n, 100000, BESCR_GE | BESCR_PME), 1,
               "instruction %u: branches", n);
        expect(log[0], address_of(ebb_loop, n + 1), "instruction %u: EBBRR",
               n);
        expect(mfspr(SPR_SIAR), address_of(ebb_loop, n),
               "instruction %u: SIAR", n);
    }
    expect(total, 10 + 400, "steps");
}

TEST(ebb, periods)
{
    static const unsigned periods[] = { 4, 5, 6, 7, 8, 13, 50, 100 };
    uint64_t total = count_steps(STATE_PROBLEM, ebb_loop, (uint64_t)&ebb);

    for (unsigned i = 0; i < ARRAY_SIZE(periods); i++) {
        unsigned period = periods[i], first = LOADS + 2;
        unsigned n = run_ebb(ebb_loop, first, period, BESCR_GE | BESCR_PME);

        /* The first instruction of run_return is in problem state, too. */
        expect(n, (total + 1 - first) / (period - HANDLER_INSNS) + 1,
               "period %u: branches", period);
        for (unsigned k = 0; k < n; k++) {
            uint64_t at = first + k * (period - HANDLER_INSNS);

            if (at < total) {
                expect(log[k], address_of(ebb_loop, at + 1),
                       "period %u, branch %u: EBBRR", period, k);
            }
        }
    }
}

/*
 * The handler's own instructions, which end with rfebb, make the counter
 * overflow: it is called again at once, without progress of the program.
 */
CODE("ebb_few:\n"
     "    ld r20, 0(r3)\n"
     "    ld r21, 8(r3)\n"
     "    ld r22, 16(r3)\n"
     "    li r23, 11\n"
     "    lis r24, 0x7000\n"
     "    nop\n"
     "    nop\n"
     "    nop\n"
     "    nop\n"
     "    blr\n");
code_fn ebb_few;

TEST(ebb, back_to_back)
{
    for (unsigned period = 1; period <= HANDLER_INSNS; period++) {
        expect(run_ebb(ebb_few, 7, period, BESCR_GE | BESCR_PME), 11,
               "period %u: branches", period);
        for (unsigned i = 0; i < 11; i++) {
            expect(log[i], (uint64_t)ebb_few + 7 * 4,
                   "period %u, branch %u: EBBRR", period, i);
        }
    }
}

/* No alert is lost while event-based branches are disabled. */
CODE("ebb_disabled:\n"
     "    ld r20, 0(r3)\n"
     "    ld r21, 8(r3)\n"
     "    ld r22, 16(r3)\n"
     "    li r23, 11\n"
     "    li r5, 1\n"
     "    sldi r5, r5, 63\n"
     "    nop\n"
     "    nop\n"
     "    nop\n"
     "    mtspr 800, r5\n"      /* BESCRS: GE */
     "ebb_enabled:\n"
     "    nop\n"
     "    nop\n"
     "    blr\n");
code_fn ebb_disabled;
LABEL(ebb_enabled);

TEST(ebb, pending)
{
    expect(run_ebb(ebb_disabled, 7, 100000, BESCR_PME), 1, "branches");
    expect(log[0], (uint64_t)ebb_enabled, "EBBRR");
    expect(mfspr(SPR_SIAR), (uint64_t)ebb_disabled + 4 * 6, "SIAR");
}

/* Without PME there is no branch; the alert is kept in MMCR0. */
TEST(ebb, not_enabled)
{
    expect(run_ebb(ebb_loop, 50, 100000, BESCR_GE), 0, "branches");
    expect(run_mmcr0 & (MMCR0_PMAO | MMCR0_PMAE), MMCR0_PMAO, "MMCR0");
}

/* PME is set later: the alert kept in MMCR0 causes a branch. */
CODE("ebb_pme:\n"
     "    ld r20, 0(r3)\n"
     "    ld r21, 8(r3)\n"
     "    ld r22, 16(r3)\n"
     "    li r23, 11\n"
     "    li r5, 1\n"
     "    nop\n"
     "    nop\n"
     "    nop\n"
     "    mtspr 801, r5\n"      /* BESCRSU: PME */
     "ebb_pme_set:\n"
     "    nop\n"
     "    blr\n"
     "ebb_pmao:\n"
     "    ld r20, 0(r3)\n"
     "    ld r21, 8(r3)\n"
     "    ld r22, 16(r3)\n"
     "    li r23, 11\n"
     "    lis r5, 0x8000\n"
     "    ori r5, r5, 0x80\n"
     "    nop\n"
     "    mtspr 779, r5\n"      /* MMCR0: FC, PMAO */
     "ebb_pmao_set:\n"
     "    nop\n"
     "    blr\n");
code_fn ebb_pme, ebb_pmao;
LABEL(ebb_pme_set);
LABEL(ebb_pmao_set);

TEST(ebb, enabled_later)
{
    expect(run_ebb(ebb_pme, 7, 100000, BESCR_GE), 1, "branches");
    expect(log[0], (uint64_t)ebb_pme_set, "EBBRR");
}

/* A program restores an alert by writing MMCR0. */
TEST(ebb, by_software)
{
    expect(run_ebb(ebb_pmao, 100000, 100000, BESCR_GE | BESCR_PME), 1,
           "branches");
    expect(log[0], (uint64_t)ebb_pmao_set, "EBBRR");
}

/*
 * The branch comes in problem state only: here, when the system call returns.
 */
CODE("ebb_call:\n"
     "    ld r20, 0(r3)\n"
     "    ld r21, 8(r3)\n"
     "    ld r22, 16(r3)\n"
     "    li r23, 11\n"
     "    li r0, 0x7e59\n"
     "    sc\n"
     "ebb_called:\n"
     "    nop\n"
     "    blr\n");
code_fn ebb_call;
LABEL(ebb_called);

TEST(ebb, system_call)
{
    expect(run_ebb(ebb_call, 6, 100000, BESCR_GE | BESCR_PME), 1, "branches");
    expect(log[0], (uint64_t)ebb_called, "EBBRR");
    expect(mfspr(SPR_SIAR), (uint64_t)ebb_called - 4, "SIAR");
}

static unsigned unavailable;

static void make_available(struct regs *regs)
{
    (void)regs;
    expect(FSCR_CAUSE(mfspr(SPR_FSCR)), 7, "cause");
    unavailable++;
    mtspr(SPR_FSCR, mfspr(SPR_FSCR) | FSCR_EBB);
}

/* The branch also waits while the facility is not available. */
TEST(ebb, facility)
{
    unavailable = 0;
    on_trap(VEC_FACILITY, make_available);
    mtspr(SPR_FSCR, mfspr(SPR_FSCR) & ~FSCR_EBB);
    expect(run_ebb(ebb_disabled, 7, 100000, BESCR_GE | BESCR_PME), 1,
           "branches");
    expect(unavailable, 1, "facility unavailable interrupts");
    expect(log[0], (uint64_t)ebb_enabled - 4, "EBBRR");
}

/* The register and its four views. */
TEST(ebb, registers)
{
    mtspr(SPR_BESCR, 0);
    mtspr(SPR_BESCRS, BESCR_GE | BESCR_PMEO);
    expect(mfspr(SPR_BESCR), BESCR_GE | BESCR_PMEO, "set");
    mtspr(SPR_BESCRR, BESCR_GE);
    expect(mfspr(SPR_BESCR), BESCR_PMEO, "reset");
    mtspr(801, 1);
    expect(mfspr(SPR_BESCR), BESCR_PME | BESCR_PMEO, "upper half set");
    mtspr(803, 1);
    expect(mfspr(SPR_BESCR), BESCR_PMEO, "upper half reset");
    mtspr(SPR_BESCR, 0);
}

/* Accesses to all registers; the last one returns to EBBRR's address. */
CODE("ebb_accesses:\n"
     "    mfspr r4, 806\n"
     "    mtspr 806, r4\n"
     "    mtspr 800, r4\n"
     "    mfspr r4, 804\n"
     "    mtspr 804, r4\n"
     "    mfspr r4, 805\n"
     "    mtspr 805, r4\n"
     "ebb_rfebb:\n"
     "    rfebb 0\n"
     "ebb_behind:\n"
     "    blr\n");
code_fn ebb_accesses;
LABEL(ebb_behind);

#define ACCESSES 8

static unsigned refused;

static void note_refused(struct regs *regs)
{
    expect(FSCR_CAUSE(mfspr(SPR_HFSCR)), CAUSE_EBB, "cause");
    refused++;
    regs->nip += 4;
}

static void note_refused_by_supervisor(struct regs *regs)
{
    expect(FSCR_CAUSE(mfspr(SPR_FSCR)), CAUSE_EBB, "cause");
    refused++;
    regs->nip += 4;
}

/* HFSCR denies the facility to all states below the hypervisor. */
TEST(ebb, hypervisor)
{
    static const struct {
        uint64_t msr;
        bool below;
    } states[] = {
        { STATE_PROBLEM, true },
        { STATE_PRIV, true },
        { STATE_HV_PROBLEM, false },
        { STATE_HV, false },
    };

    on_trap(VEC_HV_FACILITY, note_refused);
    mtspr(SPR_BESCR, 0);
    mtspr(SPR_EBBRR, (uint64_t)ebb_behind);
    for (unsigned i = 0; i < ARRAY_SIZE(states); i++) {
        refused = 0;
        run(MMCR0_FC, states[i].msr, ebb_accesses, 0);
        expect(refused, 0, "state %u, available: interrupts", i);
    }
    mtspr(SPR_HFSCR, mfspr(SPR_HFSCR) & ~FSCR_EBB);
    for (unsigned i = 0; i < ARRAY_SIZE(states); i++) {
        refused = 0;
        run(MMCR0_FC, states[i].msr, ebb_accesses, 0);
        expect(refused, states[i].below ? ACCESSES : 0,
               "state %u: interrupts", i);
    }
}

/* The same for FSCR, which denies it to problem state. */
TEST(ebb, supervisor)
{
    static const struct {
        uint64_t msr;
        unsigned refused;
    } states[] = {
        { STATE_PROBLEM, ACCESSES },
        { STATE_HV_PROBLEM, ACCESSES },
        { STATE_PRIV, 0 },
        { STATE_HV, 0 },
    };

    on_trap(VEC_FACILITY, note_refused_by_supervisor);
    mtspr(SPR_BESCR, 0);
    mtspr(SPR_EBBRR, (uint64_t)ebb_behind);
    mtspr(SPR_FSCR, mfspr(SPR_FSCR) & ~FSCR_EBB);
    for (unsigned i = 0; i < ARRAY_SIZE(states); i++) {
        refused = 0;
        run(MMCR0_FC, states[i].msr, ebb_accesses, 0);
        expect(refused, states[i].refused, "state %u: interrupts", i);
    }
}

/* rfebb sets GE to its operand, not to the register of that number. */
CODE("ebb_enabling:\n"
     "    li r0, 0\n"
     "    li r1, 0\n"
     "    rfebb 1\n"
     "ebb_disabling:\n"
     "    li r0, -1\n"
     "    li r1, -1\n"
     "    rfebb 0\n");
code_fn ebb_enabling, ebb_disabling;

TEST(ebb, operand)
{
    mtspr(SPR_EBBRR, (uint64_t)ebb_behind);
    mtspr(SPR_BESCR, 0);
    run(MMCR0_FC, STATE_PROBLEM, ebb_enabling, 0);
    expect(mfspr(SPR_BESCR), BESCR_GE, "enabled");
    run(MMCR0_FC, STATE_PROBLEM, ebb_disabling, 0);
    expect(mfspr(SPR_BESCR), 0, "disabled");
}

/* Both addresses ignore the last two bits. */
TEST(ebb, addresses)
{
    low_bits = 3;
    expect(run_ebb(ebb_loop, LOADS + 2, 100000, BESCR_GE | BESCR_PME), 1,
           "branches");
    low_bits = 0;
    expect(mfspr(SPR_SIAR), address_of(ebb_loop, LOADS + 2), "SIAR");
    expect(log[0], address_of(ebb_loop, LOADS + 3), "EBBRR");
    mtspr(SPR_EBBRR, (uint64_t)ebb_behind | 3);
    mtspr(SPR_BESCR, BESCR_GE);
    run(MMCR0_FC, STATE_PROBLEM, ebb_disabling, 0);
    expect(mfspr(SPR_BESCR), 0, "behind");
}

/* rfebb takes no trace interrupt; the instruction after it does. */
TEST(ebb, single_step)
{
    mtspr(SPR_EBBRR, (uint64_t)ebb_behind);
    mtspr(SPR_BESCR, 0);
    expect(count_steps(STATE_PROBLEM, ebb_enabling, 0), 3, "steps");
    expect(step_trace[2], (uint64_t)run_return, "return");
    expect(mfspr(SPR_BESCR), BESCR_GE, "BESCR");
    mtspr(SPR_BESCR, 0);
}
