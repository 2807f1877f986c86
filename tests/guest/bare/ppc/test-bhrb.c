/*
 * Suite bhrb: the branch history rolling buffer
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

#define ENTRIES 32

/* This entry is the target of the branch in the next entry. */
#define TARGET 2

/* Read all entries, the newest first, into the array at r3. */
CODE(".globl bhrb_read, bhrb_clear\n"
     "bhrb_read:\n"
     "    .set bhrb_n, 0\n"
     "    .rept 32\n"
     "    mfbhrbe r4, bhrb_n\n"
     "    std r4, bhrb_n * 8(r3)\n"
     "    .set bhrb_n, bhrb_n + 1\n"
     "    .endr\n"
     "    blr\n"
     "bhrb_clear:\n"
     "    clrbhrb\n"
     "    blr\n");
code_fn bhrb_read, bhrb_clear;

CODE("bhrb_code:\n"
     "    mflr r12\n"
     "    cmpd r3, r3\n"
     "    bne 1f\n"             /* not taken: no entry */
     "1:\n"
     "bhrb_beq:\n"
     "    beq 1f\n"
     "    nop\n"
     "1:\n"
     "bhrb_b:\n"
     "    b 1f\n"
     "    nop\n"
     "1:  lis r5, bhrb_leaf@ha\n"
     "    addi r5, r5, bhrb_leaf@l\n"
     "    mtctr r5\n"
     "bhrb_bl:\n"
     "    bl bhrb_leaf\n"
     "bhrb_bctrl:\n"
     "    bctrl\n"
     "bhrb_behind:\n"
     "    mtlr r12\n"
     "bhrb_end:\n"
     "    blr\n"
     "bhrb_leaf:\n"
     "    blr\n");
code_fn bhrb_code;
LABEL(bhrb_beq);
LABEL(bhrb_b);
LABEL(bhrb_bl);
LABEL(bhrb_bctrl);
LABEL(bhrb_behind);
LABEL(bhrb_end);
LABEL(bhrb_leaf);

static uint64_t entries[ENTRIES];

static void record_in(uint64_t msr, uint64_t mmcr0, uint64_t mmcra,
                      code_fn *fn)
{
    mtspr(SPR_MMCRA, mmcra);
    bhrb_clear(0);
    run(mmcr0 | MMCR0_PMAE, msr, fn, 0);
    mtspr(SPR_MMCR0, MMCR0_FC);
    bhrb_read((uint64_t)entries);
}

static void record(uint64_t mmcr0, uint64_t mmcra, code_fn *fn)
{
    record_in(STATE_PROBLEM, mmcr0, mmcra, fn);
}

static void expect_entries(const char *what, const uint64_t *want, unsigned n)
{
    for (unsigned i = 0; i < ENTRIES; i++) {
        expect(entries[i], i < n ? want[i] : 0, "%s: entry %u", what, i);
    }
}

#define AT(label) ((uint64_t)(label))

/* All of bhrb_code, or nothing. */
static void expect_all(const char *what, bool recorded)
{
    const uint64_t want[] = {
        AT(run_return) | TARGET, AT(bhrb_end),
        AT(bhrb_behind) | TARGET, AT(bhrb_leaf),
        AT(bhrb_leaf) | TARGET, AT(bhrb_bctrl),
        AT(bhrb_bctrl) | TARGET, AT(bhrb_leaf),
        AT(bhrb_bl), AT(bhrb_b), AT(bhrb_beq),
    };

    expect_entries(what, want, recorded ? ARRAY_SIZE(want) : 0);
}

TEST(bhrb, entries)
{
    record(MMCR0_FCH | MMCR0_FCS, 0, bhrb_code);
    expect_all("all", true);
}

TEST(bhrb, filters)
{
    const uint64_t calls[] = {
        AT(bhrb_leaf) | TARGET, AT(bhrb_bctrl), AT(bhrb_bl),
    };
    /* Indirect calls count as calls. */
    const uint64_t indirect[] = {
        AT(run_return) | TARGET, AT(bhrb_end),
        AT(bhrb_behind) | TARGET, AT(bhrb_leaf),
        AT(bhrb_bctrl) | TARGET, AT(bhrb_leaf),
    };
    const uint64_t conditional[] = { AT(bhrb_beq) };

    record(MMCR0_FCH | MMCR0_FCS, MMCRA_IFM(1), bhrb_code);
    expect_entries("calls", calls, ARRAY_SIZE(calls));
    record(MMCR0_FCH | MMCR0_FCS, MMCRA_IFM(2), bhrb_code);
    expect_entries("indirect", indirect, ARRAY_SIZE(indirect));
    record(MMCR0_FCH | MMCR0_FCS, MMCRA_IFM(3), bhrb_code);
    expect_entries("conditional", conditional, ARRAY_SIZE(conditional));
}

/* Only the last of many are kept. */
CODE("bhrb_loop:\n"
     "    li r4, 100\n"
     "    mtctr r4\n"
     "1:  nop\n"
     "bhrb_bdnz:\n"
     "    bdnz 1b\n"
     "bhrb_loop_end:\n"
     "    blr\n");
code_fn bhrb_loop;
LABEL(bhrb_bdnz);
LABEL(bhrb_loop_end);

TEST(bhrb, rolls)
{
    record(MMCR0_FCH | MMCR0_FCS, 0, bhrb_loop);
    expect(entries[0], AT(run_return) | TARGET, "entry 0");
    expect(entries[1], AT(bhrb_loop_end), "entry 1");
    for (unsigned i = 2; i < ENTRIES; i++) {
        expect(entries[i], AT(bhrb_bdnz), "entry %u", i);
    }
}

/* Three interrupts between branches, each of which is skipped. */
CODE("bhrb_skip:\n"
     "    mfspr r10, 26\n"
     "    addi r10, r10, 4\n"
     "    b 1f\n"
     "    nop\n"
     "1:  mtspr 26, r10\n"
     "    rfid\n"
     "bhrb_faults:\n"
     "    lis r9, 0x4000\n"
     "    cmpd r3, r3\n"
     "    trap\n"
     "bhrb_trapped:\n"
     "    beq 1f\n"
     "    nop\n"
     "1:  lwz r4, 0(r9)\n"
     "    mfmsr r4\n"
     "bhrb_privileged:\n"
     "    b 1f\n"
     "    trap\n"
     "1:\n"
     "bhrb_faults_end:\n"
     "    blr\n");
code_fn bhrb_faults;
LABEL(bhrb_skip);
LABEL(bhrb_trapped);
LABEL(bhrb_privileged);
LABEL(bhrb_faults_end);

/* Recording of problem state has no interrupts and no handlers. */
TEST(bhrb, faults)
{
    const uint64_t want[] = {
        AT(run_return) | TARGET, AT(bhrb_faults_end), AT(bhrb_privileged),
        AT(bhrb_trapped),
    };

    set_vector(0x300, bhrb_skip);
    set_vector(0x700, bhrb_skip);
    record(MMCR0_FCH | MMCR0_FCS, 0, bhrb_faults);
    expect_entries("between faults", want, ARRAY_SIZE(want));
}

/* Recording stops at an alert; earlier branches stay. */
TEST(bhrb, stops_at_alert)
{
    sample();
    /* The bl is the ninth of bhrb_code; it is recorded last. */
    write_pmc(5, PMC_NEGATIVE - 9);
    record(MMCR0_FCH | MMCR0_FCS | MMCR0_ALERT | MMCR0_FCECE, 0, bhrb_code);
    const uint64_t want[] = { AT(bhrb_bl), AT(bhrb_b), AT(bhrb_beq) };

    expect(sample_count, 1, "samples");
    expect(samples[0].siar, AT(bhrb_bl), "SIAR");
    expect_entries("before the alert", want, ARRAY_SIZE(want));
}

/*
 * FCP freezes recording in problem state.  With FCPC, this depends on MSR[HV],
 * and FCP selects for which value.  POWER10 records only problem state.
 */
TEST(bhrb, frozen_by_state)
{
    static const struct {
        const char *name;
        uint64_t mmcr0;
        bool problem, hv_problem, privileged;
    } freezes[] = {
        { "nothing", 0, true, true, true },
        { "FCP", MMCR0_FCP, false, false, true },
        { "FCPC", MMCR0_FCPC, false, true, true },
        { "FCP, FCPC", MMCR0_FCP | MMCR0_FCPC, true, false, true },
        { "FCS", MMCR0_FCS, true, true, false },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(freezes); i++) {
        uint64_t mmcr0 = MMCR0_FCH | freezes[i].mmcr0;

        record_in(STATE_PROBLEM, mmcr0, 0, bhrb_code);
        expect_all(freezes[i].name, freezes[i].problem);
        record_in(STATE_HV_PROBLEM, mmcr0, 0, bhrb_code);
        expect_all(freezes[i].name, freezes[i].hv_problem);
        record_in(STATE_PRIV, mmcr0, 0, bhrb_code);
        expect_all(freezes[i].name, freezes[i].privileged && !is_power10());
    }
}

/* Twenty branches, then two hundred in problem state, without an rfid. */
CODE("bhrb_drops:\n"
     "    li r4, 21\n"
     "    mtctr r4\n"
     "1:  nop\n"
     "bhrb_privileged_bdnz:\n"
     "    bdnz 1b\n"
     "    mfmsr r5\n"
     "    ori r5, r5, 0x4000\n"     /* PR */
     "    mtmsrd r5\n"
     "    li r4, 201\n"
     "    mtctr r4\n"
     "1:  nop\n"
     "bhrb_problem_bdnz:\n"
     "    bdnz 1b\n"
     "bhrb_drops_end:\n"
     "    blr\n");
code_fn bhrb_drops;
LABEL(bhrb_privileged_bdnz);
LABEL(bhrb_problem_bdnz);
LABEL(bhrb_drops_end);

/* Records of one state stay while the other state does not record. */
TEST(bhrb, state_changes_quietly)
{
    uint64_t privileged[20];
    uint64_t problem[ENTRIES] = { AT(run_return) | TARGET, AT(bhrb_drops_end) };

    for (unsigned i = 0; i < ARRAY_SIZE(privileged); i++) {
        privileged[i] = AT(bhrb_privileged_bdnz);
    }
    for (unsigned i = 2; i < ENTRIES; i++) {
        problem[i] = AT(bhrb_problem_bdnz);
    }
    record_in(STATE_PRIV, MMCR0_FCH | MMCR0_FCP, 0, bhrb_drops);
    expect_entries("of privileged state", privileged,
                   is_power10() ? 0 : ARRAY_SIZE(privileged));
    record_in(STATE_PRIV, MMCR0_FCH | MMCR0_FCS, 0, bhrb_drops);
    expect_entries("of problem state", problem, ENTRIES);
}

/* Recording needs enabled alerts, and must not be switched off. */
TEST(bhrb, frozen)
{
    if (is_power10()) {
        record(MMCR0_FCH | MMCR0_FCS, MMCRA_BHRBRD, bhrb_code);
        expect_entries("recording disabled", NULL, 0);
    }
    bhrb_clear(0);
    run(MMCR0_FCH | MMCR0_FCS, STATE_PROBLEM, bhrb_code, 0);
    mtspr(SPR_MMCR0, MMCR0_FC);
    bhrb_read((uint64_t)entries);
    expect_entries("without PMAE", NULL, 0);
}

/* A hundred instructions. */
CODE("bhrb_line:\n"
     "    .rept 99\n"
     "    nop\n"
     "    .endr\n"
     "    blr\n"
     "bhrb_wake:\n"
     "    clrbhrb\n"
     "bhrb_wake_b:\n"
     "    b 1f\n"
     "    nop\n"
     "1:\n"
     "bhrb_wake_end:\n"
     "    blr\n");
code_fn bhrb_line, bhrb_wake;
LABEL(bhrb_wake_b);
LABEL(bhrb_wake_end);

/* After so many alerts without a read of the BHRB, recording stops. */
#define UNUSED_ALERTS 64

/* Recording also stops if the alert stays pending and the program goes on. */
TEST(bhrb, stops_at_pending_alert)
{
    const uint64_t want[] = { AT(bhrb_bl), AT(bhrb_b), AT(bhrb_beq) };

    write_pmc(5, PMC_NEGATIVE - 9);
    record_in(STATE_PRIV, MMCR0_FCH | MMCR0_ALERT, 0, bhrb_code);
    expect_entries("before the alert", want,
                   is_power10() ? 0 : ARRAY_SIZE(want));
}

/* Recording resumes with the next branch, though alerts are enabled. */
TEST(bhrb, again)
{
    const uint64_t want[] = {
        AT(run_return) | TARGET, AT(bhrb_wake_end), AT(bhrb_wake_b),
    };

    sample();
    sample_reload(5, 1);
    write_pmc(5, PMC_NEGATIVE - 1);
    run(MMCR0_FCH | MMCR0_FCS | MMCR0_ALERT, STATE_PROBLEM, bhrb_line, 0);
    expect(sample_count > UNUSED_ALERTS, true, "enough alerts");

    write_pmc(5, 0);
    run(MMCR0_FCH | MMCR0_FCS | MMCR0_PMAE | MMCR0_BHRBA, STATE_PROBLEM,
        bhrb_wake, 0);
    mtspr(SPR_MMCR0, MMCR0_FC);
    bhrb_read((uint64_t)entries);
    expect_entries("behind clrbhrb", want, ARRAY_SIZE(want));
}

static unsigned refused;

static void note_refused(struct regs *regs)
{
    expect(FSCR_CAUSE(regs->vector == VEC_FACILITY ? mfspr(SPR_FSCR)
                                                   : mfspr(SPR_HFSCR)),
           CAUSE_BHRB, "cause");
    refused++;
    regs->nip += 4;
}

/* BHRBA allows access in problem state, HFSCR below the hypervisor. */
TEST(bhrb, access)
{
    refused = 0;
    on_trap(VEC_FACILITY, note_refused);
    on_trap(VEC_HV_FACILITY, note_refused);
    run(MMCR0_FC | MMCR0_BHRBA, STATE_PROBLEM, bhrb_clear, 0);
    expect(refused, 0, "BHRBA = 1: interrupts");
    run(MMCR0_FC, STATE_PROBLEM, bhrb_clear, 0);
    expect(refused, 1, "BHRBA = 0: interrupts");
    run(MMCR0_FC, STATE_PROBLEM, bhrb_read, (uint64_t)entries);
    expect(refused, 1 + ENTRIES, "mfbhrbe: interrupts");
    mtspr(SPR_HFSCR, mfspr(SPR_HFSCR) & ~FSCR_BHRB);
    run(MMCR0_FC, STATE_PRIV, bhrb_clear, 0);
    expect(refused, 2 + ENTRIES, "HFSCR: interrupts");
}
