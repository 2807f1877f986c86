/*
 * Performance monitoring unit: the model as AMD's core counters use it
 *
 * Six counters of 48 bits that overflow at 2^48 and count on.  Nothing freezes.
 * HostOnly and GuestOnly depend on the CPU's state and are tested in
 * tests/qtest.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "pmu-rig.h"

#define NR_COUNTERS 6

/* A mode of the x86 face: CPL above 0. */
#define CPL 1

static void run_amd(gconstpointer data)
{
    void (*test)(Rig *rig) = data;
    Rig rig;

    rig_init(&rig, NR_COUNTERS, PMU_MAX_MODES);
    test(&rig);
    rig_cleanup(&rig);
}

static void test_six_counters(Rig *rig)
{
    unsigned i;

    for (i = 0; i < NR_COUNTERS; i++) {
        rig_start(rig, i, PMU_EVENT_COND_BRANCHES, ALL_MODES);
        rig_write(rig, i, LOW_BITS(48) - i);
    }
    rig_count(rig, PMU_TALLY_COND_NOT_TAKEN, CPL, 3);
    for (i = 0; i < NR_COUNTERS; i++) {
        rig_assert_value(rig, i, (LOW_BITS(48) - i + 3) & LOW_BITS(48));
    }
}

/* The interrupt comes at the overflow, and the counter counts on from 0. */
static void test_interrupts_and_counts_on(Rig *rig)
{
    rig_start(rig, 5, PMU_EVENT_INSNS, ALL_MODES);
    rig_arm(rig, 5, 100);
    rig_count(rig, PMU_TALLY_INSNS, CPL, 150);
    rig_assert_overflow(rig, 0, BIT64(5), 100);
    rig_assert_value(rig, 5, 50);
    g_assert_true(pmu_is_running(rig->pmu, 5));
}

/* With Int clear, PerfCntrGlobalStatus has the bit when it is read. */
static void test_masked(Rig *rig)
{
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_write(rig, 0, LOW_BITS(48) - 9);
    rig_start(rig, 1, PMU_EVENT_INSNS, ALL_MODES);
    rig_count(rig, PMU_TALLY_INSNS, CPL, 150);
    g_assert_cmpuint(rig->log->len, ==, 0);
    rig_assert_value(rig, 1, 150);
    rig_assert_overflow(rig, 0, BIT64(0), 150);
    rig_assert_value(rig, 0, 140);
}

#define PERIOD 0x10007ull

/* As Linux does before PerfMonV2: test the top bit, then load -period. */
static void reload_non_negative(Rig *rig, uint64_t counters)
{
    unsigned i;

    for (i = 0; i < NR_COUNTERS; i++) {
        bool negative = pmu_read(rig->pmu, i) & BIT64(47);

        g_assert_cmpint(negative, ==, !(counters & BIT64(i)));
        if (!negative) {
            rig_write(rig, i, -(PERIOD + i));
        }
    }
}

static void test_sampling(Rig *rig)
{
    unsigned i, j, samples = 0;

    rig->handler = reload_non_negative;
    pmu_begin(rig->pmu);
    for (i = 0; i < NR_COUNTERS; i++) {
        rig_start(rig, i, PMU_EVENT_INSNS, ALL_MODES);
        rig_arm(rig, i, PERIOD + i);
    }
    pmu_commit(rig->pmu);
    rig_count(rig, PMU_TALLY_INSNS, CPL, 100 * PERIOD);
    for (i = 0; i < NR_COUNTERS; i++) {
        samples += 100 * PERIOD / (PERIOD + i);
    }
    g_assert_cmpuint(rig->log->len, ==, samples);
    for (j = 0; j < samples; j++) {
        i = __builtin_ctzll(rig_overflow(rig, j)->counters);
        g_assert_cmpuint(rig_overflow(rig, j)->at % (PERIOD + i), ==, 0);
    }
}

int main(int argc, char *argv[])
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/pmu/amd/six-counters", test_six_counters, run_amd);
    g_test_add_data_func("/pmu/amd/counts-on", test_interrupts_and_counts_on,
                         run_amd);
    g_test_add_data_func("/pmu/amd/masked", test_masked, run_amd);
    g_test_add_data_func("/pmu/amd/sampling", test_sampling, run_amd);
    return g_test_run();
}
