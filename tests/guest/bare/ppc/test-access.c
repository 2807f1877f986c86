/*
 * Suite access: access to registers by programs and by privileged code below
 * the hypervisor
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

/* The vector and cause of an access's interrupt; 0 without interrupt */
struct outcome {
    unsigned vector;
    unsigned cause;
};

static struct outcome outcome;

static void note_outcome(struct regs *regs)
{
    outcome.vector = regs->vector;
    if (regs->vector == VEC_FACILITY) {
        outcome.cause = FSCR_CAUSE(mfspr(SPR_FSCR));
    } else if (regs->vector == VEC_HV_FACILITY) {
        outcome.cause = FSCR_CAUSE(mfspr(SPR_HFSCR));
    }
    regs->nip += 4;
}

static void expect_interrupts(void)
{
    on_trap(VEC_PROGRAM, note_outcome);
    on_trap(VEC_EMULATION, note_outcome);
    on_trap(VEC_FACILITY, note_outcome);
    on_trap(VEC_HV_FACILITY, note_outcome);
}

static uint32_t access_code[2];

static uint64_t access(uint64_t msr, uint32_t opcode, unsigned spr,
                       uint64_t value, uint64_t mmcr0)
{
    access_code[0] = opcode | 3 << 21 | (spr & 31) << 16 | spr >> 5 << 11;
    access_code[1] = 0x4e800020;
    code_changed(access_code, sizeof(access_code));
    outcome = (struct outcome) {};
    return run(mmcr0, msr, (code_fn *)access_code, value);
}

static uint64_t read_in(uint64_t msr, unsigned spr, uint64_t mmcr0)
{
    return access(msr, 0x7c0002a6, spr, 0, mmcr0);
}

static void write_in(uint64_t msr, unsigned spr, uint64_t value,
                     uint64_t mmcr0)
{
    access(msr, 0x7c0003a6, spr, value, mmcr0);
}

/* The registers by their privileged numbers. */
static const struct {
    unsigned spr;
    bool group_a, since_power10;
} registers[] = {
    { SPR_SIER2, false, true }, { SPR_SIER3, false, true },
    { SPR_MMCR3, false, true }, { SPR_SIER, false, false },
    { SPR_MMCR2, true, false }, { SPR_MMCRA, true, false },
    { SPR_PMC1, true, false }, { SPR_PMC2, true, false },
    { SPR_PMC3, true, false }, { SPR_PMC4, true, false },
    { SPR_PMC5, true, false }, { SPR_PMC6, true, false },
    { SPR_MMCR0, true, false }, { SPR_SIAR, false, false },
    { SPR_SDAR, false, false }, { SPR_MMCR1, false, false },
};

/* Power ISA 3.1B, book III, MMCR0[PMCC]. */
static struct outcome expected(unsigned i, unsigned pmcc, bool ext,
                               bool write)
{
    const struct outcome unavailable = { VEC_FACILITY, CAUSE_PM };
    const struct outcome illegal = { VEC_EMULATION, 0 };
    const struct outcome allowed = {};
    unsigned spr = registers[i].spr;

    if (pmcc == 1
        || (pmcc == 3 && (spr == SPR_PMC5 || spr == SPR_PMC6))) {
        return unavailable;
    }
    if (write) {
        return registers[i].group_a && pmcc >= 2 ? allowed : illegal;
    }
    return !registers[i].group_a && pmcc == 0 && ext ? unavailable : allowed;
}

static void check_access(unsigned i, unsigned pmcc, bool ext, uint64_t msr)
{
    unsigned spr = registers[i].spr - SPR_PROBLEM;
    uint64_t mmcr0 = MMCR0_FC | MMCR0_PMCC(pmcc)
                     | (ext ? MMCR0_PMCCEXT : 0);

    for (unsigned write = 0; write < 2; write++) {
        struct outcome want = expected(i, pmcc, ext, write);

        if (write) {
            write_in(msr, spr, mmcr0, mmcr0);
        } else {
            read_in(msr, spr, mmcr0);
        }
        expect(outcome.vector, want.vector,
               "PMCC %u%s, SPR %u, %s: interrupt", pmcc, ext ? "+" : "", spr,
               write ? "write" : "read");
        expect(outcome.cause, want.cause, "PMCC %u%s, SPR %u, %s: cause",
               pmcc, ext ? "+" : "", spr, write ? "write" : "read");
    }
}

TEST(access, problem_state)
{
    static const uint64_t states[] = { STATE_PROBLEM, STATE_HV_PROBLEM };

    expect_interrupts();
    for (unsigned i = 0; i < ARRAY_SIZE(registers); i++) {
        if (registers[i].since_power10 && !is_power10()) {
            continue;
        }
        for (unsigned n = 0; n < 8 * ARRAY_SIZE(states); n++) {
            if (n & 4 && !is_power10()) {
                continue;
            }
            check_access(i, n & 3, n & 4, states[n / 8]);
        }
    }
}

/* In privileged state, writes to read-only numbers do nothing. */
TEST(access, read_only_numbers)
{
    static const uint64_t states[] = { STATE_PRIV, STATE_HV };

    expect_interrupts();
    for (unsigned i = 0; i < ARRAY_SIZE(registers); i++) {
        unsigned spr = registers[i].spr;

        if (registers[i].group_a
            || (registers[i].since_power10 && !is_power10())) {
            continue;
        }
        for (unsigned s = 0; s < ARRAY_SIZE(states); s++) {
            write_in(states[s], spr, 0x1230, MMCR0_FC);
            write_in(states[s], spr - SPR_PROBLEM, 0x3210, MMCR0_FC);
            expect(outcome.vector, 0, "SPR %u, state %u: interrupt", spr, s);
            expect(read_in(states[s], spr, MMCR0_FC), 0x1230,
                   "SPR %u, state %u", spr, s);
        }
    }
}

/* A read by another number shows the same register, or its visible bits. */
TEST(access, aliases)
{
    for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
        write_pmc(pmc, 1000 + pmc);
    }
    mtspr(SPR_MMCR1, 0x123456789abcdef0);
    mtspr(SPR_MMCR2, MMCR2_FIELD(FCNP0, 3) | MMCR2_FIELD(FCNS, 3));
    mtspr(SPR_SIAR, 0x1234567890);
    mtspr(SPR_SDAR, 0x9876543210);
    mtspr(SPR_SIER, -1ull);
    for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
        expect(read_in(STATE_PROBLEM, SPR_PMC1 - SPR_PROBLEM + pmc - 1,
                       MMCR0_FC), 1000 + pmc, "PMC%u", pmc);
    }
    expect(read_in(STATE_PROBLEM, SPR_MMCR1 - SPR_PROBLEM, MMCR0_FC),
           0x123456789abcdef0, "MMCR1");
    expect(read_in(STATE_PROBLEM, SPR_MMCR2 - SPR_PROBLEM, MMCR0_FC),
           MMCR2_FIELD(FCNP0, 3), "MMCR2");
    expect(read_in(STATE_PROBLEM, SPR_SIAR - SPR_PROBLEM, MMCR0_FC),
           0x1234567890, "SIAR");
    expect(read_in(STATE_PROBLEM, SPR_SDAR - SPR_PROBLEM, MMCR0_FC),
           0x9876543210, "SDAR");
    expect(read_in(STATE_PROBLEM, SPR_SIER - SPR_PROBLEM, MMCR0_FC),
           0x7fffff, "SIER");
    expect(read_in(STATE_PROBLEM, SPR_MMCR0 - SPR_PROBLEM,
                   MMCR0_FC | MMCR0_FCECE | MMCR0_PMCJCE), MMCR0_FC, "MMCR0");
    expect(read_in(STATE_PRIV, SPR_MMCR1 - SPR_PROBLEM, MMCR0_FC),
           0x123456789abcdef0, "MMCR1, privileged");
    if (is_power10()) {
        mtspr(SPR_MMCR3, 0x1230);
        mtspr(SPR_SIER2, 0x4567);
        expect(read_in(STATE_PROBLEM, SPR_MMCR3 - SPR_PROBLEM, MMCR0_FC),
               0x1230, "MMCR3");
        expect(read_in(STATE_PROBLEM, SPR_SIER2 - SPR_PROBLEM, MMCR0_FC),
               0x4567, "SIER2");
    }
}

/* Writes in problem state change only the allowed bits. */
TEST(access, writes)
{
    const uint64_t mmcr0 = MMCR0_FC | MMCR0_PMCC(2) | MMCR0_PMCJCE;

    expect_interrupts();
    write_in(STATE_PROBLEM, SPR_PMC3 - SPR_PROBLEM, 77, mmcr0);
    expect(outcome.vector, 0, "PMC3: interrupt");
    expect(read_pmc(3), 77, "PMC3");
    write_in(STATE_PROBLEM, SPR_MMCR2 - SPR_PROBLEM, -1ull, mmcr0);
    expect(mfspr(SPR_MMCR2), 0x4020100804020000, "MMCR2");
    write_in(STATE_PROBLEM, SPR_MMCR0 - SPR_PROBLEM, MMCR0_FCH | MMCR0_PMAE,
             mmcr0);
    expect(run_mmcr0, (mmcr0 & ~MMCR0_FC) | MMCR0_PMAE, "MMCR0");
}

/* The hypervisor can deny the PMU to all states below it. */
TEST(access, hypervisor)
{
    static const uint64_t below[] = { STATE_PRIV, STATE_PROBLEM };

    expect_interrupts();
    mtspr(SPR_HFSCR, mfspr(SPR_HFSCR) & ~FSCR_PM);
    for (unsigned i = 0; i < ARRAY_SIZE(below); i++) {
        read_in(below[i], SPR_PMC1 - (i ? SPR_PROBLEM : 0), MMCR0_FC);
        expect(outcome.vector, VEC_HV_FACILITY, "state %u: read", i);
        expect(outcome.cause, CAUSE_PM, "state %u: cause", i);
        write_in(below[i], SPR_PMC1 - (i ? SPR_PROBLEM : 0), 5,
                 MMCR0_FC | MMCR0_PMCC(2));
        expect(outcome.vector, VEC_HV_FACILITY, "state %u: write", i);
    }
    read_in(STATE_HV, SPR_PMC1, MMCR0_FC);
    expect(outcome.vector, 0, "hypervisor");
    read_in(STATE_HV_PROBLEM, SPR_PMC1 - SPR_PROBLEM, MMCR0_FC);
    expect(outcome.vector, 0, "hypervisor's problem state");
}

/* Problem state cannot read by privileged numbers. */
TEST(access, privileged)
{
    expect_interrupts();
    for (unsigned i = 0; i < ARRAY_SIZE(registers); i++) {
        if (registers[i].since_power10 && !is_power10()) {
            continue;
        }
        read_in(STATE_PROBLEM, registers[i].spr, MMCR0_FC | MMCR0_PMCC(2));
        expect(outcome.vector, VEC_PROGRAM, "SPR %u", registers[i].spr);
    }
}

/* A refused access does not complete. */
CODE("access_refused:\n"
     "    nop\n"
     "    mfspr r4, 771\n"
     "    nop\n"
     "    mtspr 771, r4\n"
     "    nop\n"
     "    blr\n");
code_fn access_refused;

TEST(access, not_counted)
{
    expect_interrupts();
    run(MMCR0_PMCC(1) | MMCR0_FCH | MMCR0_FCS, STATE_PROBLEM, access_refused,
        0);
    expect(read_pmc(5), 4 + RUN_STATE_OVERHEAD, "instructions");
}
