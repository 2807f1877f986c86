/*
 * Suite debugger: access to the PMU by a debugger
 *
 * assistant.py is connected to QEMU's gdb stub, and serves the guest's
 * requests.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

/**
 * struct request - a request to the debugger at debugger_stop
 * @name: a register, as gdb calls it
 * @how: an enum how
 * @value: the value read, or to be written
 * @pmc5: the program's view of PMC5 at that point
 */
struct request {
    const char *name;
    uint64_t how, value, pmc5;
};

enum how { READ, WRITE, ASK_MONITOR };

static const enum how ways[] = { READ, ASK_MONITOR };

CODE("debugger_call:\n"
     ".globl debugger_stop\n"
     "debugger_stop:\n"
     "    trap\n"              /* is never executed */
     "debugger_behind:\n"
     "    mfspr r4, 791\n"
     "    std r4, 24(r3)\n"
     "    blr\n"
     "debugger_call_problem:\n"
     ".globl debugger_stop_problem\n"
     "debugger_stop_problem:\n"
     "    trap\n"
     "    nop\n"
     "    blr\n"
     "debugger_branch:\n"
     "    li r4, 1\n"
     "    std r4, 24(r3)\n"
     "    mtspr 802, r4\n"      /* BESCRR: PMEO */
     "    rfebb 1\n");
code_fn debugger_call, debugger_call_problem;
LABEL(debugger_behind);
LABEL(debugger_branch);

/* When the debugger stops, one instruction of run() has been counted. */
#define BEFORE 1
#define CALL   3
#define AFTER  (RUN_OVERHEAD - BEFORE)

static void start(void)
{
    mtspr(SPR_MMCR1, EV_INSNS_ALL);
    for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
        write_pmc(pmc, 0);
    }
}

/* Returns: the value that the debugger has read */
static uint64_t ask(uint64_t mmcr0, enum how how, const char *name)
{
    struct request r = { .name = name, .how = how };

    run(mmcr0, STATE_PRIV, debugger_call, (uint64_t)&r);
    return r.value;
}

/* Returns: the program's view of PMC5, after the write */
static uint64_t let_write(uint64_t mmcr0, uint64_t msr, const char *name,
                          uint64_t value)
{
    struct request r = { .name = name, .how = WRITE, .value = value };

    run(mmcr0, msr, msr & MSR_PR ? debugger_call_problem : debugger_call,
        (uint64_t)&r);
    return r.pmc5;
}

/* The debugger reads the values that the program would read. */
TEST(debugger, counters)
{
    static const char *const names[] = {
        "pmc1", "pmc2", "pmc3", "pmc4", "pmc5", "pmc6",
        "upmc1", "upmc2", "upmc3", "upmc4", "upmc5", "upmc6",
    };

    for (unsigned way = 0; way < ARRAY_SIZE(ways); way++) {
        for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
            start();
            expect(ask(0, ways[way], names[i]), BEFORE, "%s, way %u",
                   names[i], way);
            expect(read_pmc(5), BEFORE + CALL + AFTER, "PMC5 afterwards");
        }
    }
}

TEST(debugger, control)
{
    static const uint64_t mmcr0 = MMCR0_FCM1 | MMCR0_PMCC(2);

    for (unsigned way = 0; way < ARRAY_SIZE(ways); way++) {
        start();
        mtspr(SPR_MMCR2, MMCR2_FIELD(FCNM1, 1));
        expect(ask(mmcr0, ways[way], "mmcr0"), mmcr0, "MMCR0");
        expect(ask(mmcr0, ways[way], "ummcr0"), mmcr0, "UMMCR0");
        expect(ask(0, ways[way], "mmcr1"), EV_INSNS_ALL, "MMCR1");
        expect(ask(0, ways[way], "mmcr2"), MMCR2_FIELD(FCNM1, 1), "MMCR2");
    }
}

TEST(debugger, sets_counter)
{
    start();
    expect(let_write(0, STATE_PRIV, "pmc5", 1000), 1000, "PMC5 at once");
    expect(read_pmc(5), 1000 + CALL + AFTER, "PMC5");
    expect(read_pmc(1), BEFORE + CALL + AFTER, "PMC1");
}

TEST(debugger, freezes)
{
    start();
    expect(let_write(0, STATE_PRIV, "mmcr0", MMCR0_FC), BEFORE,
           "PMC5 where it is frozen");
    expect(read_pmc(5), BEFORE, "PMC5");
    expect(read_pmc(1), BEFORE, "PMC1");

    start();
    let_write(MMCR0_FC, STATE_PRIV, "mmcr0", 0);
    expect(read_pmc(5), CALL + AFTER, "PMC5, thawed");

    start();
    let_write(0, STATE_PRIV, "mmcr2", MMCR2_FIELD(FCNS, 1));
    expect(read_pmc(1), RUN_HV_OVERHEAD, "PMC1, MMCR2");
    expect(read_pmc(5), BEFORE + CALL + AFTER, "PMC5, MMCR2");
}

TEST(debugger, chooses_event)
{
    start();
    let_write(0, STATE_PRIV, "mmcr1", EV_TAKEN_2 | EV_INSNS(3));
    expect(read_pmc(1), BEFORE, "PMC1, without an event");
    /* blr, and the one at the vector of sc */
    expect(read_pmc(2), BEFORE + 2, "PMC2, taken branches");
    expect(read_pmc(3), BEFORE + CALL + AFTER, "PMC3");
}

/* MSR[PMM] and CTRL[RUN] freeze, too. */
TEST(debugger, state)
{
    start();
    let_write(MMCR0_FCM1, STATE_PRIV, "msr", STATE_PRIV | MSR_PMM);
    expect(read_pmc(5), RUN_HV_OVERHEAD, "PMC5, marked");

    start();
    let_write(0, STATE_PRIV, "ctrl", 0);
    expect(read_pmc(5), BEFORE, "PMC5 without the run latch");
    expect(read_pmc(1), BEFORE + CALL + AFTER, "PMC1 without the run latch");
}

TEST(debugger, alerts)
{
    sample();
    let_write(MMCR0_ALERT, STATE_PRIV | MSR_EE, "pmc5", PMC_NEGATIVE);
    expect(sample_count, 1, "alerts");
    expect(samples[0].nip, (uint64_t)debugger_behind, "SRR0");

    sample();
    let_write(0, STATE_PRIV | MSR_EE, "mmcr0", MMCR0_FC | MMCR0_PMAO);
    expect(sample_count, 1, "interrupts");
    expect(samples[0].nip, (uint64_t)debugger_behind, "SRR0");
}

/* The handler stores 1 in the place of PMC5's value. */
TEST(debugger, branches)
{
    mtspr(SPR_EBBHR, (uint64_t)debugger_branch);
    mtspr(SPR_BESCR, 0);
    expect(let_write(MMCR0_FC, STATE_PROBLEM, "bescr", BESCR_GE | BESCR_PMEO),
           1, "event-based branches");
    mtspr(SPR_BESCR, BESCR_PMEO);
    expect(let_write(MMCR0_FC, STATE_PROBLEM, "bescrsu", BESCR_GE >> 32), 1,
           "event-based branches, by BESCRSU");
    expect(ask(MMCR0_FC, READ, "bescrs"), BESCR_GE, "BESCRS");
    mtspr(SPR_BESCR, 0);
}

/*
 * A hashed table with the page of a request at SEGMENT, in the first group of
 * the segment.  What a debugger reads and writes there does not mark the page:
 * the hypervisor of a guest goes by these bits.
 */
#define HASH_SIZE       0x40000
#define GROUP_ENTRIES   16      /* 64-bit words */
#define VSID            1
#define HPTE_VALID      BIT(63)
#define HPTE_WRITABLE   BIT(62)
#define HPTE_CHANGED    BIT(56)
#define HPTE_REFERENCED BIT(55)

static uint64_t hashed[HASH_SIZE / 8] __attribute__((aligned(HASH_SIZE)));

static struct {
    struct request request;
    char name[16];
} page __attribute__((aligned(0x1000))) = { .name = "pmc5" };

TEST(debugger, page_is_not_marked)
{
    uint64_t *entry = &hashed[VSID * GROUP_ENTRIES];
    const char *name = (char *)SEGMENT + offsetof(typeof(page), name);

    page.request = (struct request) { .name = name, .how = READ };
    entry[0] = (uint64_t)VSID << 12 | HPTE_VALID;
    entry[1] = (uint64_t)&page | HPTE_WRITABLE;
    start();
    write_pmc(5, 1000);
    use_hashed_table((uint64_t)hashed, VSID);
    run(MMCR0_FC, STATE_HV | MSR_DR, debugger_call_problem, SEGMENT);
    use_tree();
    expect(page.request.value, 1000, "PMC5");
    expect(entry[1] & (HPTE_REFERENCED | HPTE_CHANGED), 0, "marks");
}
