/*
 * Suite sample: the data address of the sampled instruction
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

CODE("sample_code:\n"
     "    addi r4, r3, 8\n"
     "    ld r5, 0(r3)\n"
     "    mulld r5, r5, r5\n"
     "    std r5, 24(r3)\n"
     "    ldu r6, 8(r4)\n"
     "    stdu r6, -8(r4)\n"
     "    ld r4, 0(r4)\n"       /* it overwrites its base */
     "    lbzx r5, 0, r3\n"
     "    lwarx r7, 0, r3\n"
     "    stwcx. r7, 0, r3\n"
     "    beq 1f\n"
     "1:  lmw r30, 4(r3)\n"
     "    nop\n"
     "    blr\n");
code_fn sample_code;

static uint64_t sample_data[4];

#define NO_DATA -1

/*
 * The data of each instruction, as an offset.  The interrupt before stwcx. ends
 * the reservation.
 */
static const int sample_offsets[] = {
    NO_DATA, 0, NO_DATA, 24, 16, 8, 8, 0, 0, NO_DATA, NO_DATA,
};

static void sample_each(uint64_t mmcra)
{
    sample();
    write_pmc(5, PMC_NEGATIVE - 1);
    sample_reload(5, 1);
    mtspr(SPR_MMCRA, mmcra);
    run(MMCR0_FCH | MMCR0_FCS | MMCR0_ALERT | MMCR0_FCECE, STATE_PROBLEM,
        sample_code, (uint64_t)sample_data);
}

TEST(sample, data_address)
{
    sample_each(MMCRA_SAMPLE);
    for (unsigned i = 0; i < ARRAY_SIZE(sample_offsets); i++) {
        const struct sample *s = &samples[i];
        bool data = sample_offsets[i] != NO_DATA;

        expect(s->siar, (uint64_t)sample_code + 4 * i, "insn %u: SIAR", i);
        expect(s->sier & SIER_SDAR_VALID, data ? SIER_SDAR_VALID : 0,
               "insn %u: SIER", i);
        expect(s->sdar, data ? (uint64_t)sample_data + sample_offsets[i] : 0,
               "insn %u: SDAR", i);
    }
}

/* Continuous sampling has no data address. */
TEST(sample, continuous)
{
    sample_each(0);
    for (unsigned i = 0; i < ARRAY_SIZE(sample_offsets); i++) {
        expect(samples[i].siar, (uint64_t)sample_code + 4 * i,
               "insn %u: SIAR", i);
        expect(samples[i].sier & SIER_SDAR_VALID, 0, "insn %u: SIER", i);
        expect(samples[i].sdar, 0, "insn %u: SDAR", i);
    }
}

/* The instruction that made the counter negative, not the last access. */
TEST(sample, fault_in_between)
{
    on_trap(VEC_DATA, skip_insn);
    sample();
    write_pmc(5, PMC_NEGATIVE - 4);
    mtspr(SPR_MMCRA, MMCRA_SAMPLE);
    run(MMCR0_FCH | MMCR0_FCS | MMCR0_ALERT | MMCR0_FCECE, STATE_PROBLEM,
        sample_code, UNMAPPED);
    /* addi, mulld, stwcx. without a reservation, beq. */
    expect(sample_count, 1, "samples");
    expect(samples[0].siar, (uint64_t)sample_code + 4 * 10, "SIAR");
    expect(samples[0].sier & SIER_SDAR_VALID, 0, "SIER");
}
