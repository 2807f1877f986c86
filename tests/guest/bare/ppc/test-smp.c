/*
 * Suite smp: several processors, or threads of one, each with its own PMU
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

/* 3 instructions a turn, and 2 more */
CODE("smp_loop:\n"
     "    mtctr r3\n"
     "1:  nop\n"
     "    nop\n"
     "    bdnz 1b\n"
     "    blr\n");
code_fn smp_loop;

#define LOOP_INSNS(turns) (3 * (turns) + 2)

/**
 * struct job - work for another processor
 * @mmcr0: MMCR0 while it counts
 * @pmc5: first value of its counter
 * @turns: turns of the loop
 * @count, @cycles, @siar, @after: registers afterwards
 */
static struct job {
    uint64_t mmcr0, pmc5, turns;
    uint64_t count, cycles, siar, after;
} jobs[MAX_OTHERS];

static unsigned others(void)
{
    return option("cpus", 2) - 1;
}

/* Count as run() does, but in the hypervisor's state. */
CODE("smp_count:\n"             /* r3: turns, r4: MMCR0, r5: to freeze */
     "    mflr r6\n"
     "    mtspr 795, r4\n"
     "    bl smp_loop\n"
     "    mtspr 795, r5\n"
     "    mtlr r6\n"
     "    blr\n");
uint64_t smp_count(uint64_t turns, uint64_t mmcr0, uint64_t frozen);

#define OWN_INSNS 2             /* the call, and the write that stops */

static void begin(const struct job *job)
{
    mtspr(SPR_CTRL_WRITE, 1);
    mtspr(SPR_MMCR0, MMCR0_FC);
    mtspr(SPR_PMC5, job->pmc5);
    mtspr(SPR_PMC6, 0);
}

static void count(unsigned index)
{
    struct job *job = &jobs[index];

    begin(job);
    smp_count(job->turns, job->mmcr0, MMCR0_FC);
    job->count = mfspr(SPR_PMC5);
    job->cycles = mfspr(SPR_PMC6);
}

/* The same until the counter overflows, which freezes it. */
CODE("smp_overflow:\n"          /* r3: turns, r4: MMCR0 */
     "    mflr r6\n"
     "    mtspr 795, r4\n"
     "    bl smp_loop\n"
     "    mtlr r6\n"
     "    blr\n");
void smp_overflow(uint64_t turns, uint64_t mmcr0);

static void overflow(unsigned index)
{
    struct job *job = &jobs[index];

    begin(job);
    smp_overflow(job->turns, job->mmcr0);
    job->after = mfspr(SPR_MMCR0);
    job->siar = mfspr(SPR_SIAR);
    mtspr(SPR_MMCR0, MMCR0_FC);
    job->count = mfspr(SPR_PMC5);
    job->cycles = mfspr(SPR_PMC6);
}

static void give(void (*fn)(unsigned index))
{
    asm volatile("lwsync" : : : "memory");
    for (unsigned i = 0; i < others(); i++) {
        work[i] = fn;
    }
}

/* Wait without time limit, as all may share a thread of the host. */
static void await(void)
{
    for (unsigned i = 0; i < others(); i++) {
        while (work[i]) {
            asm volatile("or 27, 27, 27" : : : "memory");   /* yield */
        }
    }
    asm volatile("isync" : : : "memory");
}

static void expect_counted(unsigned trial)
{
    for (unsigned i = 0; i < others(); i++) {
        expect(jobs[i].count, LOOP_INSNS(jobs[i].turns) + OWN_INSNS,
               "trial %u: instructions of other %u", trial, i);
        expect(jobs[i].cycles, jobs[i].count,
               "trial %u: cycles of other %u", trial, i);
    }
}

TEST(smp, counts)
{
    for (unsigned trial = 0; trial < 100; trial++) {
        uint64_t turns = 1 + random() % 5000;
        struct counts c;

        for (unsigned i = 0; i < others(); i++) {
            jobs[i] = (struct job) { .turns = 1 + random() % 5000 };
        }
        give(count);
        c = measure(STATE_PROBLEM, smp_loop, turns);
        await();
        expect_counts("loop", c, 0, 0, LOOP_INSNS(turns));
        expect_counted(trial);
    }
}

/* One processor is frozen by each bit in turn while the others count. */
TEST(smp, registers)
{
    static const uint64_t bits[] = {
        MMCR0_FC, MMCR0_FCH, MMCR0_FC56, MMCR0_FCM0,
    };

    for (unsigned i = 0; i < ARRAY_SIZE(bits); i++) {
        for (unsigned j = 0; j < others(); j++) {
            jobs[j] = (struct job) {
                .turns = 100, .mmcr0 = j ? 0 : bits[i], .pmc5 = j ? 0 : 5,
            };
        }
        give(count);
        expect_counts("loop", measure(STATE_HV, smp_loop, 1000),
                      LOOP_INSNS(1000), 0, 0);
        await();
        expect(jobs[0].count, 5, "%lx: instructions of the frozen", bits[i]);
        for (unsigned j = 1; j < others(); j++) {
            expect(jobs[j].count, LOOP_INSNS(100) + OWN_INSNS,
                   "%lx: instructions of other %u", bits[i], j);
        }
    }
}

#define ARMED (MMCR0_ALERT | MMCR0_FCECE)

/* Another processor's distance from its alert: some turns of the loop */
static uint64_t distance(unsigned period, unsigned i)
{
    return (7 * period + 50 * i) % 300 + 101;
}

static void arm_others(unsigned period)
{
    for (unsigned i = 0; i < others(); i++) {
        jobs[i] = (struct job) {
            .turns = 200, .mmcr0 = ARMED,
            .pmc5 = PMC_NEGATIVE - distance(period, i),
        };
    }
}

static void expect_alerts(unsigned period)
{
    for (unsigned i = 0; i < others(); i++) {
        const struct job *job = &jobs[i];
        /* Subtract two before the turns: the call, and the loop's first */
        uint64_t place = distance(period, i) - 2;

        expect(job->count, PMC_NEGATIVE, "%u: PMC5 of other %u", period, i);
        expect(job->cycles, distance(period, i), "%u: PMC6 of other %u",
               period, i);
        expect(job->after & (MMCR0_FC | MMCR0_PMAO), MMCR0_FC | MMCR0_PMAO,
               "%u: MMCR0 of other %u", period, i);
        expect(job->siar, (uint64_t)smp_loop + 4 + 4 * ((place - 1) % 3),
               "%u: SIAR of other %u", period, i);
    }
}

/* All processors overflow; each has only its own alerts. */
TEST(smp, alerts)
{
    for (unsigned period = 1; period <= 300; period++) {
        arm_others(period);
        write_pmc(5, PMC_NEGATIVE - period);
        sample();
        give(overflow);
        run(ARMED | MMCR0_FCH | MMCR0_FCS, STATE_PROBLEM, smp_loop, 200);
        await();
        expect(sample_count, 1, "%u: alerts", period);
        expect(samples[0].siar,
               (uint64_t)smp_loop
               + (period == 1 ? 0 : 4 + 4 * ((period - 2) % 3)),
               "%u: SIAR", period);
        expect_alerts(period);
    }
}

/* With other processors running, QEMU executes this lwat exclusively. */
CODE("smp_exclusive:\n"
     "    nop\n"
     "    nop\n"
     "smp_exclusive_lwat:\n"
     "    lwat r4, r3, 24\n"
     "smp_exclusive_behind:\n"
     "    nop\n"
     "    blr\n");
code_fn smp_exclusive;
LABEL(smp_exclusive_lwat);
LABEL(smp_exclusive_behind);

TEST(smp, exclusive)
{
    static uint32_t pair[2] __attribute__((aligned(8)));

    sample();
    write_pmc(5, PMC_NEGATIVE - 3);
    run(MMCR0_ALERT | MMCR0_FCECE | MMCR0_FCH | MMCR0_FCS, STATE_PROBLEM,
        smp_exclusive, (uint64_t)pair);
    expect(sample_count, 1, "alerts");
    expect(samples[0].siar, (uint64_t)smp_exclusive_lwat, "SIAR");
    expect(samples[0].nip, (uint64_t)smp_exclusive_behind, "SRR0");
    expect(read_pmc(5), PMC_NEGATIVE, "PMC5");
}
