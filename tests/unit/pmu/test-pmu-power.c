/*
 * Performance monitoring unit: the model as Power's counters use it
 *
 * Six counters of 32 bits that signal when they turn negative, at 2^31, and
 * count on.  MMCR0 and MMCR2 freeze them by mode; that is part of the
 * selection, and is up to the face (target/ppc/vpmu/freeze.c).  PMC5 and PMC6
 * always count instructions and cycles.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "pmu-rig.h"
#include "freeze.h"
#include "modes.h"
#include "regs.h"

#define NR_PMCS 6
#define NEGATIVE BIT64(31)

/* Counter numbers of PMC1 to PMC6. */
enum { PMC1, PMC2, PMC3, PMC4, PMC5, PMC6 };

/* The face's modes. */
enum {
    PROBLEM = 0,
    PRIVILEGED = PPC_VPMU_MODE_PRIVILEGED,
    PROBLEM_OF_HV = PPC_VPMU_MODE_HV,
    HYPERVISOR = PPC_VPMU_MODE_PRIVILEGED | PPC_VPMU_MODE_HV,
};

static void run_power(gconstpointer data)
{
    void (*test)(Rig *rig) = data;
    unsigned i;
    Rig rig;

    rig_init(&rig, NR_PMCS, PPC_VPMU_NR_MODES);
    for (i = 0; i < NR_PMCS; i++) {
        rig_shape(&rig, i, 32, NEGATIVE);
    }
    rig_start(&rig, PMC5, PMU_EVENT_INSNS, ALL_MODES);
    rig_start(&rig, PMC6, PMU_EVENT_CYCLES, ALL_MODES);
    test(&rig);
    rig_cleanup(&rig);
}

static void test_fixed_events(Rig *rig)
{
    rig_count(rig, PMU_TALLY_INSNS, PROBLEM, 100);
    rig_count(rig, PMU_TALLY_CYCLES, PROBLEM, 150);
    rig_assert_value(rig, PMC5, 100);
    rig_assert_value(rig, PMC6, 150);
}

static void test_signals_when_negative(Rig *rig)
{
    rig_start(rig, PMC1, PMU_EVENT_INSNS, ALL_MODES);
    rig_write(rig, PMC1, NEGATIVE - 10);
    rig_arm(rig, PMC1, 10);
    rig_assert_value(rig, PMC1, NEGATIVE - 10);
    rig_count(rig, PMU_TALLY_INSNS, PROBLEM, 1000);
    rig_assert_overflow(rig, 0, BIT64(PMC1), 10);
    rig_assert_value(rig, PMC1, NEGATIVE + 990);
    g_assert_cmpuint(rig->log->len, ==, 1);
}

static void test_counts_on_and_wraps(Rig *rig)
{
    rig_start(rig, PMC1, PMU_EVENT_LOADS, ALL_MODES);
    rig_arm(rig, PMC1, 1);
    rig_count(rig, PMU_TALLY_LOADS, PROBLEM, NEGATIVE);
    rig_assert_value(rig, PMC1, LOW_BITS(32));
    rig_count(rig, PMU_TALLY_LOADS, PROBLEM, 1);
    rig_assert_value(rig, PMC1, 0);
    g_assert_cmpuint(rig->log->len, ==, 1);
    rig_count(rig, PMU_TALLY_LOADS, PROBLEM, NEGATIVE + 5);
    rig_assert_overflow(rig, 1, BIT64(PMC1), 2 * NEGATIVE + 1);
}

/* A counter loaded negative has to wrap before it turns negative again. */
static void test_loaded_negative(Rig *rig)
{
    rig_start(rig, PMC1, PMU_EVENT_LOADS, ALL_MODES);
    rig_arm(rig, PMC1, 0);
    rig_assert_value(rig, PMC1, NEGATIVE);
    g_assert_cmpuint(pmu_distance(rig->pmu, PMC1), ==, BIT64(32));
    rig_write(rig, PMC1, LOW_BITS(32));
    g_assert_cmpuint(pmu_distance(rig->pmu, PMC1), ==, NEGATIVE + 1);
    rig_count(rig, PMU_TALLY_LOADS, PROBLEM, NEGATIVE);
    g_assert_cmpuint(rig->log->len, ==, 0);
    rig_count(rig, PMU_TALLY_LOADS, PROBLEM, 1);
    rig_assert_overflow(rig, 0, BIT64(PMC1), NEGATIVE + 1);
}

static void test_freeze_by_mode(Rig *rig)
{
    /* PMC1's count of one event in problem state, 16 in privileged... */
    static const struct {
        PpcVPmuFreeze freeze;
        uint64_t expected;
    } rows[] = {
        { { .run = true },                                        0x1111 },
        { { .run = true, .mmcr0 = MMCR0_FC },                     0 },
        { { .run = true, .mmcr0 = MMCR0_FC14 },                   0 },
        { { .run = true, .mmcr0 = MMCR0_FC56 },                   0x1111 },
        { { .run = true, .mmcr0 = MMCR0_FCS },                    0x1101 },
        { { .run = true, .mmcr0 = MMCR0_FCP },                    0x1010 },
        { { .run = true, .mmcr0 = MMCR0_FCPC },                   0x1110 },
        { { .run = true, .mmcr0 = MMCR0_FCP | MMCR0_FCPC },       0x1011 },
        { { .run = true, .mmcr0 = MMCR0_FCH },                    0x0111 },
        { { .run = true, .mmcr0 = MMCR0_FCS | MMCR0_FCH },        0x0101 },
        { { .run = true, .mmcr0 = MMCR0_FCM1 },                   0x1111 },
        { { .run = true, .mmcr0 = MMCR0_FCM1, .pmm = true },      0 },
        { { .run = true, .mmcr0 = MMCR0_FCM0 },                   0 },
        { { .run = true, .mmcr0 = MMCR0_FCM0, .pmm = true },      0x1111 },
        { { .run = false },                                       0x1111 },
        { { .run = false, .mmcr0 = MMCR0_FC14WAIT },              0 },
        { { .run = false, .mmcr2 = MMCR2_FCWAIT(1) },             0 },
        { { .run = true, .mmcr2 = MMCR2_FCS(1) },                 0x1101 },
        { { .run = true, .mmcr2 = MMCR2_FCP0(1) },                0x1010 },
        { { .run = true, .mmcr2 = MMCR2_FCP1(1) },                0x1011 },
        { { .run = true, .mmcr2 = MMCR2_FCH(1) },                 0x0111 },
        { { .run = true, .mmcr2 = MMCR2_FCS(2) },                 0x1111 },
    };
    unsigned i, m;

    for (i = 0; i < G_N_ELEMENTS(rows); i++) {
        rig_start(rig, PMC1, PMU_EVENT_INSNS,
                  ppc_vpmu_freeze_modes(&rows[i].freeze, 1, false));
        rig_write(rig, PMC1, 0);
        for (m = 0; m < PPC_VPMU_NR_MODES; m++) {
            rig_count(rig, PMU_TALLY_INSNS, m, 1 << (4 * m));
        }
        rig_assert_value(rig, PMC1, rows[i].expected);
    }
}

/* MMCR2: each counter has its own freeze conditions. */
static void test_freeze_per_counter(Rig *rig)
{
    PpcVPmuFreeze freeze = {
        .run = true,
        .mmcr2 = MMCR2_FCS(2) | MMCR2_FCH(2) | MMCR2_FCP0(3),
    };

    rig_start(rig, PMC2, PMU_EVENT_INSNS,
              ppc_vpmu_freeze_modes(&freeze, 2, false));
    rig_start(rig, PMC3, PMU_EVENT_INSNS,
              ppc_vpmu_freeze_modes(&freeze, 3, false));
    rig_count(rig, PMU_TALLY_INSNS, PROBLEM, 1);
    rig_count(rig, PMU_TALLY_INSNS, PROBLEM_OF_HV, 10);
    rig_count(rig, PMU_TALLY_INSNS, PRIVILEGED, 100);
    rig_count(rig, PMU_TALLY_INSNS, HYPERVISOR, 1000);
    rig_assert_value(rig, PMC2, 11);
    rig_assert_value(rig, PMC3, 1100);
    rig_assert_value(rig, PMC5, 1111);
}

/* MMCR0[FC], then with FC1_4 and FC5_6, in one write. */
static void test_freeze_groups(Rig *rig)
{
    rig_start(rig, PMC1, PMU_EVENT_INSNS, ALL_MODES);
    rig_count(rig, PMU_TALLY_INSNS, PROBLEM, 5);
    rig_run(rig, 0x3f, false);
    rig_count(rig, PMU_TALLY_INSNS, PROBLEM, 100);
    rig_run(rig, BIT64(PMC5) | BIT64(PMC6), true);
    rig_count(rig, PMU_TALLY_INSNS, PROBLEM, 1000);
    rig_assert_value(rig, PMC1, 5);
    rig_assert_value(rig, PMC5, 1005);
}

/* MMCR0[FCECE]: all freeze after the event that turns one negative. */
static void test_freeze_on_event(Rig *rig)
{
    rig_start(rig, PMC1, PMU_EVENT_INSNS, ALL_MODES);
    rig_arm(rig, PMC1, 100);
    pmu_begin(rig->pmu);
    pmu_set_freeze(rig->pmu, 0x3f, 0x3f);
    pmu_commit(rig->pmu);
    rig_count(rig, PMU_TALLY_CYCLES, PROBLEM, 70);
    rig_count(rig, PMU_TALLY_INSNS, PROBLEM, 1000);
    rig_count(rig, PMU_TALLY_CYCLES, PROBLEM, 1000);
    rig_assert_overflow(rig, 0, BIT64(PMC1), 170);
    rig_assert_value(rig, PMC1, NEGATIVE);
    rig_assert_value(rig, PMC5, 100);
    rig_assert_value(rig, PMC6, 70);
}

/* PMC5 and PMC6 stop while the run latch is off; the face folds at changes. */
static void test_run_latch(Rig *rig)
{
    rig_count(rig, PMU_TALLY_CYCLES, PROBLEM, 10);
    rig_run(rig, BIT64(PMC5) | BIT64(PMC6), false);
    rig_count(rig, PMU_TALLY_CYCLES, PROBLEM, 100);
    rig_run(rig, BIT64(PMC5) | BIT64(PMC6), true);
    rig_count(rig, PMU_TALLY_CYCLES, PROBLEM, 1000);
    rig_assert_value(rig, PMC6, 1010);
}

#define PERIOD 5

static void reload(Rig *rig, uint64_t counters)
{
    g_assert_cmphex(counters, ==, BIT64(PMC5));
    rig_write(rig, PMC5, NEGATIVE - PERIOD);
}

static void test_back_to_back(Rig *rig)
{
    unsigned i;

    rig->handler = reload;
    rig_arm(rig, PMC5, PERIOD);
    for (i = 0; i < 50 * PERIOD; i++) {
        rig_count(rig, PMU_TALLY_INSNS, i % PPC_VPMU_NR_MODES, 1);
    }
    g_assert_cmpuint(rig->log->len, ==, 50);
    for (i = 0; i < 50; i++) {
        rig_assert_overflow(rig, i, BIT64(PMC5), (i + 1) * PERIOD);
    }
}

static void add(const char *path, void (*test)(Rig *rig))
{
    g_test_add_data_func(path, test, run_power);
}

int main(int argc, char *argv[])
{
    g_test_init(&argc, &argv, NULL);
    add("/pmu/power/fixed-events", test_fixed_events);
    add("/pmu/power/signals-when-negative", test_signals_when_negative);
    add("/pmu/power/counts-on-and-wraps", test_counts_on_and_wraps);
    add("/pmu/power/loaded-negative", test_loaded_negative);
    add("/pmu/power/freeze/by-mode", test_freeze_by_mode);
    add("/pmu/power/freeze/per-counter", test_freeze_per_counter);
    add("/pmu/power/freeze/groups", test_freeze_groups);
    add("/pmu/power/freeze/on-event", test_freeze_on_event);
    add("/pmu/power/run-latch", test_run_latch);
    add("/pmu/power/back-to-back", test_back_to_back);
    return g_test_run();
}
