/*
 * Suite core: the misses of a modelled core, and the cycles that they cost
 *
 * The core is that of the preset "power9": a first level of 32 sets with 8
 * lines of 128 bytes.  Each program is executed before it is counted, so that
 * the result does not depend on other cases.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

#define EV_L3_MISSES_3     EVENT(3, 0, 0xfe)
#define EV_BR_MISSES_3     EVENT(3, 0, 0xf6)
#define EV_LD_MISSES_4     EVENT(4, 0, 0xf0)
#define EV_L3_HITS_4       EVENT(4, 0xc, 0x42)
#define EV_NO_SLOT_1       EVENT(1, 0, 0xf8)

#define L1_CYCLES     40
#define BRANCH_CYCLES 13

/* Lines of twice the first level, and how often all are read */
#define LINES 512
#define TURNS 3

CODE("core_walk:\n"
     "    li r6, 3\n"
     "1:  lis r4, core_area@ha\n"
     "    addi r4, r4, core_area@l\n"
     "    mtctr r3\n"
     "2:  ld r5, 0(r4)\n"
     "    addi r4, r4, 128\n"
     "    bdnz 2b\n"
     "    addic. r6, r6, -1\n"
     "    bne 1b\n"
     "    blr\n");
code_fn core_walk;
#define LOAD ((uint64_t)core_walk + 4 * 4)

uint8_t core_area[LINES * 128] __attribute__((aligned(128)));

/* Executions before the one that is counted: predictions need some. */
#define WARMING 4

static void warm(uint64_t lines)
{
    for (unsigned i = 0; i < WARMING; i++) {
        run(MMCR0_FC, STATE_PROBLEM, core_walk, lines);
    }
    for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
        write_pmc(pmc, 0);
    }
}

static void count(uint64_t events, uint64_t lines)
{
    warm(lines);
    mtspr(SPR_MMCR1, events);
    run(MMCR0_FCH | MMCR0_FCS, STATE_PROBLEM, core_walk, lines);
}

/* Half of the first level misses nothing; twice as much misses each line. */
TEST(core, working_sets)
{
    count(EV_LOADS_1 | EV_L3_MISSES_3 | EV_LD_MISSES_4, 128);
    expect(read_pmc(1), TURNS * 128, "loads");
    expect(read_pmc(4), 0, "misses of what fits");
    count(EV_L3_MISSES_3 | EV_LD_MISSES_4, LINES);
    expect(read_pmc(4), TURNS * LINES, "misses of what does not fit");
    expect(read_pmc(3), 0, "misses of the last level");
    count(EV_L3_HITS_4, LINES);
    expect(read_pmc(4), TURNS * LINES, "hits of the last level");
}

/* Nothing waits for code. */
TEST(core, cycles)
{
    count(EV_NO_SLOT_1 | EV_BR_MISSES_3 | EV_LD_MISSES_4, LINES);
    expect(read_pmc(1), 0, "cycles without code");
    expect(read_pmc(6), read_pmc(5) + read_pmc(4) * L1_CYCLES
           + read_pmc(3) * BRANCH_CYCLES, "cycles");
}

/* Each sample is the load that missed. */
TEST(core, overflow)
{
    static const unsigned periods[] = { 1, 2, 7, 100, TURNS * LINES };

    for (unsigned i = 0; i < ARRAY_SIZE(periods); i++) {
        warm(LINES);
        mtspr(SPR_MMCR1, EV_LD_MISSES_4);
        write_pmc(4, PMC_NEGATIVE - periods[i]);
        sample();
        run(MMCR0_FCH | MMCR0_FCS | MMCR0_ALERT | MMCR0_FCECE, STATE_PROBLEM,
            core_walk, LINES);
        expect(sample_count, 1, "period %u: samples", periods[i]);
        expect(samples[0].siar, LOAD, "period %u: SIAR", periods[i]);
    }
}
