/*
 * Performance monitoring unit: overflow of counters
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "pmu-rig.h"

static void test_at_the_event(Rig *rig)
{
    rig_start(rig, 3, PMU_EVENT_INSNS, ALL_MODES);
    rig_arm(rig, 3, 1000);
    rig_count(rig, PMU_TALLY_INSNS, USER, 999);
    g_assert_cmpuint(rig->log->len, ==, 0);
    rig_count(rig, PMU_TALLY_INSNS, USER, 1);
    rig_assert_overflow(rig, 0, BIT64(3), 1000);
    rig_assert_value(rig, 3, 0);
}

static void test_inside_a_burst(Rig *rig)
{
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_arm(rig, 0, 1000);
    rig_count(rig, PMU_TALLY_INSNS, USER, 5000);
    rig_assert_overflow(rig, 0, BIT64(0), 1000);
    g_assert_cmpuint(rig->log->len, ==, 1);
    rig_assert_value(rig, 0, 4000);
}

static void test_distance(Rig *rig)
{
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_arm(rig, 0, 1000);
    g_assert_cmpuint(pmu_distance(rig->pmu, 0), ==, 1000);
    rig_count(rig, PMU_TALLY_INSNS, USER, 999);
    g_assert_cmpuint(pmu_distance(rig->pmu, 0), ==, 1);
    rig_count(rig, PMU_TALLY_INSNS, USER, 1);
    g_assert_cmpuint(pmu_distance(rig->pmu, 0), ==, BIT64(48));
}

static void test_without_alert(Rig *rig)
{
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_write(rig, 0, LOW_BITS(48) - 9);
    rig_count(rig, PMU_TALLY_INSNS, USER, 500);
    g_assert_cmpuint(rig->log->len, ==, 0);
    pmu_fold(rig->pmu);
    rig_assert_overflow(rig, 0, BIT64(0), 500);
    pmu_fold(rig->pmu);
    g_assert_cmpuint(rig->log->len, ==, 1);
}

static void test_stopped_just_before(Rig *rig)
{
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_arm(rig, 0, 10);
    rig_count(rig, PMU_TALLY_INSNS, USER, 9);
    rig_run(rig, BIT64(0), false);
    rig_count(rig, PMU_TALLY_INSNS, USER, 100);
    g_assert_cmpuint(rig->log->len, ==, 0);
    rig_run(rig, BIT64(0), true);
    rig_count(rig, PMU_TALLY_INSNS, USER, 1);
    rig_assert_overflow(rig, 0, BIT64(0), 110);
}

static void test_writing_never_overflows(Rig *rig)
{
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_arm(rig, 0, 1);
    rig_write(rig, 0, 0);
    rig_write(rig, 0, UINT64_MAX);
    rig_write(rig, 0, 0);
    rig_count(rig, PMU_TALLY_INSNS, USER, 10);
    g_assert_cmpuint(rig->log->len, ==, 0);
}

/* A counter rewritten in time starts over; too late, it has overflowed. */
static void test_rewriting_in_time(Rig *rig)
{
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_arm(rig, 0, 10);
    rig_count(rig, PMU_TALLY_INSNS, USER, 9);
    rig_arm(rig, 0, 10);
    rig_count(rig, PMU_TALLY_INSNS, USER, 9);
    g_assert_cmpuint(rig->log->len, ==, 0);
    rig_count(rig, PMU_TALLY_INSNS, USER, 1);
    rig_assert_overflow(rig, 0, BIT64(0), 19);
}

static void test_together(Rig *rig)
{
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_start(rig, 1, PMU_EVENT_INSNS, BIT64(USER));
    rig_start(rig, 2, PMU_EVENT_INSNS, ALL_MODES);
    rig_arm(rig, 0, 100);
    rig_arm(rig, 1, 60);
    rig_arm(rig, 2, 101);
    rig_count(rig, PMU_TALLY_INSNS, KERNEL, 40);
    rig_count(rig, PMU_TALLY_INSNS, USER, 100);
    rig_assert_overflow(rig, 0, BIT64(0) | BIT64(1), 100);
    rig_assert_overflow(rig, 1, BIT64(2), 101);
    g_assert_cmpuint(rig->log->len, ==, 2);
}

/* A counter without alert that overflows at the same event is not missed. */
static void test_alert_brings_others(Rig *rig)
{
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_start(rig, 1, PMU_EVENT_INSNS, ALL_MODES);
    rig_arm(rig, 0, 50);
    rig_write(rig, 1, LOW_BITS(48));
    rig_count(rig, PMU_TALLY_INSNS, USER, 50);
    rig_assert_overflow(rig, 0, BIT64(0) | BIT64(1), 50);
}

static uint64_t period;

static void reload(Rig *rig, uint64_t counters)
{
    pmu_begin(rig->pmu);
    g_assert_cmphex(counters, ==, BIT64(0));
    g_assert_cmphex(pmu_read(rig->pmu, 0), ==, 0);
    pmu_write(rig->pmu, 0, -period);
    pmu_run(rig->pmu, 0, true);
    pmu_commit(rig->pmu);
}

static void test_periods(Rig *rig)
{
    uint64_t start, n;

    rig->handler = reload;
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    for (period = 1; period < 200; period++) {
        start = rig_events(rig);
        g_array_set_size(rig->log, 0);
        rig_arm(rig, 0, period);
        rig_count(rig, PMU_TALLY_INSNS, USER, 20 * period);
        g_assert_cmpuint(rig->log->len, ==, 20);
        for (n = 0; n < 20; n++) {
            rig_assert_overflow(rig, n, BIT64(0), start + (n + 1) * period);
        }
    }
}

static void test_periods_across_modes(Rig *rig)
{
    uint64_t start, n;

    rig->handler = reload;
    rig_start(rig, 0, PMU_EVENT_BRANCHES, ALL_MODES);
    for (period = 1; period < 100; period++) {
        start = rig_events(rig);
        g_array_set_size(rig->log, 0);
        rig_arm(rig, 0, period);
        for (n = 0; n < 8 * period; n++) {
            rig_count(rig, PMU_TALLY_COND_TAKEN + n % 8, n / 3 % 8, 1);
        }
        g_assert_cmpuint(rig->log->len, ==, 8);
        for (n = 0; n < 8; n++) {
            rig_assert_overflow(rig, n, BIT64(0), start + (n + 1) * period);
        }
    }
}

static unsigned largest_budget(const Rig *rig, PmuTally tally)
{
    const uint64_t *budgets = rig->engine.budgets[tally];
    unsigned mode, largest = 0;

    for (mode = 1; mode < PMU_MAX_MODES; mode++) {
        largest = budgets[mode] > budgets[largest] ? mode : largest;
    }
    return largest;
}

/* All modes but one use up their budgets unnoticed, up to the exact sum. */
static void test_shares(Rig *rig)
{
    unsigned distance, mode, last;
    uint64_t start;

    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    for (distance = 1; distance < 2000; distance++) {
        start = rig_events(rig);
        g_array_set_size(rig->log, 0);
        rig_arm(rig, 0, distance);
        last = largest_budget(rig, PMU_TALLY_INSNS);
        for (mode = 0; mode < PMU_MAX_MODES; mode++) {
            uint64_t budget = rig->engine.budgets[PMU_TALLY_INSNS][mode];

            rig_count(rig, PMU_TALLY_INSNS, mode,
                      mode == last ? 0 : budget - 1);
        }
        g_assert_cmpuint(rig->log->len, ==, 0);
        rig_count(rig, PMU_TALLY_INSNS, last,
                  start + distance - rig_events(rig));
        rig_assert_overflow(rig, 0, BIT64(0), start + distance);
    }
}

static void stop_all(Rig *rig, uint64_t counters)
{
    g_assert_cmphex(counters, ==, BIT64(0));
    rig_run(rig, 0xff, false);
}

static void test_handler_stops(Rig *rig)
{
    rig->handler = stop_all;
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_start(rig, 1, PMU_EVENT_INSNS, ALL_MODES);
    rig_arm(rig, 0, 10);
    rig_count(rig, PMU_TALLY_INSNS, USER, 1000);
    rig_assert_value(rig, 0, 0);
    rig_assert_value(rig, 1, 10);
    g_assert_cmphex(rig->engine.wanted, ==, 0);
}

static void swap_events(Rig *rig, uint64_t counters)
{
    g_assert_cmphex(counters, ==, BIT64(0));
    rig_start(rig, 0, PMU_EVENT_LOADS, BIT64(KERNEL));
    rig_arm(rig, 0, 5);
}

static void test_handler_reprograms(Rig *rig)
{
    rig->handler = swap_events;
    rig_start(rig, 0, PMU_EVENT_INSNS, BIT64(USER));
    rig_count(rig, PMU_TALLY_LOADS, KERNEL, 77);
    rig_arm(rig, 0, 10);
    rig_count(rig, PMU_TALLY_INSNS, USER, 1000);
    rig_assert_overflow(rig, 0, BIT64(0), 87);
    rig_count(rig, PMU_TALLY_LOADS, KERNEL, 12);
    rig_assert_overflow(rig, 1, BIT64(0), 1082);
    rig_assert_overflow(rig, 2, BIT64(0), 1087);
    rig_assert_value(rig, 0, LOW_BITS(48) - 2);
}

/* An overflow found by pmu_begin(): the writer sees the handler's changes. */
static void test_handler_in_transaction(Rig *rig)
{
    rig->handler = stop_all;
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_start(rig, 1, PMU_EVENT_INSNS, ALL_MODES);
    rig_write(rig, 0, LOW_BITS(48));
    rig_count(rig, PMU_TALLY_INSNS, USER, 4);
    pmu_begin(rig->pmu);
    rig_assert_overflow(rig, 0, BIT64(0), 4);
    g_assert_false(pmu_is_running(rig->pmu, 1));
    pmu_run(rig->pmu, 1, true);
    pmu_commit(rig->pmu);
    rig_count(rig, PMU_TALLY_INSNS, USER, 4);
    rig_assert_value(rig, 0, 3);
    rig_assert_value(rig, 1, 8);
}

static void freeze_on(Rig *rig, uint64_t by, uint64_t frozen)
{
    pmu_begin(rig->pmu);
    pmu_set_freeze(rig->pmu, by, frozen);
    pmu_commit(rig->pmu);
}

static void test_freeze(Rig *rig)
{
    unsigned i;

    for (i = 0; i < 4; i++) {
        rig_start(rig, i, PMU_EVENT_INSNS, ALL_MODES);
    }
    rig_write(rig, 2, LOW_BITS(48) - 9);
    freeze_on(rig, BIT64(2), BIT64(0) | BIT64(2) | BIT64(3));
    rig_count(rig, PMU_TALLY_INSNS, USER, 1000);
    rig_assert_overflow(rig, 0, BIT64(2), 10);
    rig_assert_value(rig, 0, 10);
    rig_assert_value(rig, 1, 1000);
    rig_assert_value(rig, 2, 0);
    rig_assert_value(rig, 3, 10);
    g_assert_false(pmu_is_running(rig->pmu, 0));
    g_assert_true(pmu_is_running(rig->pmu, 1));
}

static void test_frozen_starts_again(Rig *rig)
{
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_write(rig, 0, LOW_BITS(48) - 9);
    freeze_on(rig, BIT64(0), BIT64(0));
    rig_count(rig, PMU_TALLY_INSNS, USER, 1000);
    rig_write(rig, 0, LOW_BITS(48) - 4);
    rig_run(rig, BIT64(0), true);
    rig_count(rig, PMU_TALLY_INSNS, USER, 1000);
    rig_assert_overflow(rig, 1, BIT64(0), 1005);
    rig_assert_value(rig, 0, 0);
}

static void test_others_do_not_freeze(Rig *rig)
{
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_start(rig, 1, PMU_EVENT_INSNS, ALL_MODES);
    freeze_on(rig, BIT64(1), 0xff);
    rig_arm(rig, 0, 10);
    rig_count(rig, PMU_TALLY_INSNS, USER, 100);
    rig_assert_overflow(rig, 0, BIT64(0), 10);
    rig_assert_value(rig, 0, 90);
    rig_assert_value(rig, 1, 100);
}

static void see_frozen(Rig *rig, uint64_t counters)
{
    g_assert_cmphex(counters, ==, BIT64(0));
    g_assert_false(pmu_is_running(rig->pmu, 0));
    g_assert_false(pmu_is_running(rig->pmu, 1));
    rig_run(rig, BIT64(1), true);
}

static void test_handler_thaws(Rig *rig)
{
    rig->handler = see_frozen;
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_start(rig, 1, PMU_EVENT_INSNS, ALL_MODES);
    rig_arm(rig, 0, 10);
    freeze_on(rig, BIT64(0), 0xff);
    rig_count(rig, PMU_TALLY_INSNS, USER, 100);
    rig_assert_value(rig, 0, 0);
    rig_assert_value(rig, 1, 100);
}

static void test_64_bits(Rig *rig)
{
    rig_shape(rig, 0, 64, 0);
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    g_assert_cmpuint(pmu_distance(rig->pmu, 0), ==, UINT64_MAX);
    rig_arm(rig, 0, 1);
    rig_count(rig, PMU_TALLY_INSNS, USER, 1);
    rig_assert_overflow(rig, 0, BIT64(0), 1);
    rig_count(rig, PMU_TALLY_INSNS, KERNEL, 1);
    rig_assert_value(rig, 0, 1);
    g_assert_cmpuint(pmu_distance(rig->pmu, 0), ==, UINT64_MAX);
    rig_count(rig, PMU_TALLY_INSNS, USER, BIT64(62));
    rig_assert_value(rig, 0, BIT64(62) + 1);
    g_assert_cmpuint(rig->log->len, ==, 1);
}

static void test_64_bits_far_away(Rig *rig)
{
    rig_shape(rig, 0, 64, 0);
    rig_start(rig, 0, PMU_EVENT_INSNS, BIT64(USER));
    rig_arm(rig, 0, BIT64(63));
    rig_count(rig, PMU_TALLY_INSNS, USER, BIT64(63) - 1);
    rig_assert_value(rig, 0, UINT64_MAX);
    g_assert_cmpuint(pmu_distance(rig->pmu, 0), ==, 1);
    g_assert_cmpuint(rig->log->len, ==, 0);
    rig_count(rig, PMU_TALLY_INSNS, USER, 2);
    rig_assert_overflow(rig, 0, BIT64(0), BIT64(63));
    rig_assert_value(rig, 0, 1);
}

static void test_narrow(Rig *rig)
{
    rig_shape(rig, 0, 1, 0);
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_arm(rig, 0, 2);
    g_assert_cmpuint(pmu_distance(rig->pmu, 0), ==, 2);
    rig_count(rig, PMU_TALLY_INSNS, USER, 7);
    g_assert_cmpuint(rig->log->len, ==, 3);
    rig_assert_overflow(rig, 2, BIT64(0), 6);
    rig_assert_value(rig, 0, 1);
}

/* Each overflow is counted once, however it is noticed, and kept by a reset. */
static void test_number(Rig *rig)
{
    rig_shape(rig, 1, 8, 0);
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_start(rig, 1, PMU_EVENT_INSNS, ALL_MODES);
    rig_arm(rig, 0, 10);
    g_assert_cmpint(pmu_overflows(rig->pmu, 0), ==, 0);
    rig_count(rig, PMU_TALLY_INSNS, USER, 3 * 256 + 255);
    g_assert_cmpint(pmu_overflows(rig->pmu, 0), ==, 1);
    g_assert_cmpint(pmu_overflows(rig->pmu, 1), ==, 3);
    rig_count(rig, PMU_TALLY_INSNS, USER, 1);
    g_assert_cmpint(pmu_overflows(rig->pmu, 1), ==, 4);
    pmu_fold(rig->pmu);
    g_assert_cmpint(pmu_overflows(rig->pmu, 1), ==, 4);
    pmu_reset(rig->pmu);
    g_assert_cmpint(pmu_overflows(rig->pmu, 0), ==, 1);
    g_assert_cmpint(pmu_overflows(rig->pmu, 1), ==, 4);
}

static void test_number_of_64_bits(Rig *rig)
{
    rig_shape(rig, 0, 64, 0);
    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    rig_count(rig, PMU_TALLY_INSNS, USER, UINT64_MAX);
    g_assert_cmpint(pmu_overflows(rig->pmu, 0), ==, 0);
    rig_write(rig, 0, UINT64_MAX);
    rig_start(rig, 0, PMU_EVENT_BRANCHES, ALL_MODES);
    rig_count(rig, PMU_TALLY_CALLS, USER, UINT64_MAX);
    g_assert_cmpint(pmu_overflows(rig->pmu, 0), ==, 1);
}

/* Peeking does not fold; a transaction folds once. */
static void test_folds(Rig *rig)
{
    uint64_t before = pmu_folds(rig->pmu);

    rig_start(rig, 0, PMU_EVENT_INSNS, ALL_MODES);
    g_assert_cmpint(pmu_folds(rig->pmu), ==, before + 1);
    pmu_peek(rig->pmu, 0);
    pmu_distance(rig->pmu, 0);
    pmu_overflows(rig->pmu, 0);
    g_assert_cmpint(pmu_folds(rig->pmu), ==, before + 1);
    pmu_begin(rig->pmu);
    pmu_read(rig->pmu, 0);
    pmu_commit(rig->pmu);
    g_assert_cmpint(pmu_folds(rig->pmu), ==, before + 2);
}

int main(int argc, char *argv[])
{
    g_test_init(&argc, &argv, NULL);
    rig_add("/pmu/overflow/at-the-event", test_at_the_event);
    rig_add("/pmu/overflow/inside-a-burst", test_inside_a_burst);
    rig_add("/pmu/overflow/distance", test_distance);
    rig_add("/pmu/overflow/without-alert", test_without_alert);
    rig_add("/pmu/overflow/stopped-just-before", test_stopped_just_before);
    rig_add("/pmu/overflow/not-by-writing", test_writing_never_overflows);
    rig_add("/pmu/overflow/rewriting-in-time", test_rewriting_in_time);
    rig_add("/pmu/overflow/together", test_together);
    rig_add("/pmu/overflow/alert-brings-others", test_alert_brings_others);
    rig_add("/pmu/overflow/periods", test_periods);
    rig_add("/pmu/overflow/periods-across-modes", test_periods_across_modes);
    rig_add("/pmu/overflow/shares", test_shares);
    rig_add("/pmu/overflow/64-bits", test_64_bits);
    rig_add("/pmu/overflow/64-bits-far-away", test_64_bits_far_away);
    rig_add("/pmu/overflow/narrow", test_narrow);
    rig_add("/pmu/overflow/number", test_number);
    rig_add("/pmu/overflow/number-of-64-bits", test_number_of_64_bits);
    rig_add("/pmu/overflow/folds", test_folds);
    rig_add("/pmu/handler/stops", test_handler_stops);
    rig_add("/pmu/handler/reprograms", test_handler_reprograms);
    rig_add("/pmu/handler/in-transaction", test_handler_in_transaction);
    rig_add("/pmu/freeze/stops", test_freeze);
    rig_add("/pmu/freeze/starts-again", test_frozen_starts_again);
    rig_add("/pmu/freeze/only-by-some", test_others_do_not_freeze);
    rig_add("/pmu/freeze/handler-thaws", test_handler_thaws);
    return g_test_run();
}
