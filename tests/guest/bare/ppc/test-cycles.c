/*
 * Suite cycles: cycles of the default model
 *
 * Each instruction takes opt/vpmu/cpi thousandths of a cycle; `run` passes the
 * value that it has given the CPU.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

#define LINE 200

CODE("cycles_loop:\n"
     "    mtctr r3\n"
     "1:  nop\n"
     "    bdnz 1b\n"
     "    blr\n"
     "cycles_line:\n"           /* LINE */
     "    .rept 199\n"
     "    nop\n"
     "    .endr\n"
     "    blr\n");
code_fn cycles_loop, cycles_line;

/*
 * Cycles of @insns instructions of one mode.  They can begin at any point
 * within a cycle, so that one more cycle can end in them.
 */
static bool fits(uint64_t cycles, uint64_t insns)
{
    uint64_t cpi = option("cpi", 1000), want = insns * cpi / 1000;

    return cpi % 1000 ? cycles - want <= 1 : cycles == want;
}

TEST(cycles, of_instructions)
{
    static const unsigned turns[] = { 1, 10, 12345, 1000000 };

    mtspr(SPR_MMCR1, EV_CYCLES(1) | EV_RUN_CYCLES_2);
    for (unsigned i = 0; i < ARRAY_SIZE(turns); i++) {
        uint64_t insns = 2 * turns[i] + 2 + RUN_STATE_OVERHEAD;

        write_pmc(1, 0);
        write_pmc(2, 0);
        write_pmc(5, 0);
        write_pmc(6, 0);
        run(MMCR0_FCH | MMCR0_FCS, STATE_PROBLEM, cycles_loop, turns[i]);
        expect(read_pmc(5), insns, "%u turns: instructions", turns[i]);
        expect(fits(read_pmc(6), insns), true, "%u turns: %lu cycles",
               turns[i], read_pmc(6));
        expect(read_pmc(1), read_pmc(6), "%u turns: PMC1 and PMC6", turns[i]);
        expect(read_pmc(2), read_pmc(6), "%u turns: PMC2 and PMC6", turns[i]);
    }
}

/* The interrupt comes after the instruction that completes cycle N. */
TEST(cycles, overflow)
{
    uint64_t cpi = option("cpi", 1000);

    for (unsigned n = 1; n <= 190; n++) {
        uint64_t insns = (n * 1000 + cpi - 1) / cpi;
        uint64_t place;

        write_pmc(6, PMC_NEGATIVE - n);
        sample();
        run(MMCR0_FCH | MMCR0_FCS | MMCR0_ALERT | MMCR0_FCECE, STATE_PROBLEM,
            cycles_line, 0);
        expect(sample_count, 1, "cycle %u: samples", n);
        place = (samples[0].nip - (uint64_t)cycles_line) / 4;
        if (cpi % 1000) {
            /* One instruction less, if the run begins late in a cycle */
            expect(insns - place <= 1, true, "cycle %u: instruction %lu", n,
                   place);
        } else {
            expect(place, insns, "cycle %u: instruction", n);
        }
        expect(samples[0].siar, samples[0].nip - 4, "cycle %u: SIAR", n);
    }
}
